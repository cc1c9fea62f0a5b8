/* SPDX-License-Identifier: Apache-2.0 */
/* See block.h. */
#include "heap/block.h"

#include <errno.h>

#include "heap/cache.h"
#include "heap/reader.h"
#include "heap/slab.h"
#include "rpc/fail.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/*
 * The first hint that is true. Hints are others' too, so each may be wrong, and who clears them all the time could keep
 * this busy. So it goes round the bitmaps twice, where each hint that is wrong counts as much as a word of them; wrong
 * by honest mistake are only those that other caches had in mind when the bitmaps were made from the words.
 */
static bool block_pop(struct memclient_heap *heap, struct heap_cache *cache, unsigned class, unsigned member,
                      void **address)
{
    struct cache_class *cached = &cache->classes[class];
    uint64_t left = 2 * ((uint64_t)heap_n_slabs(heap) * (1 + slab_hint_words(heap->geometry.classes[class].n_blocks)) +
                         (uint64_t)heap->n_caches * cached->max);

    for (;;) {
        for (; cached->n; left -= left > 0) {
            struct hint hint = cached->hints[--cached->n];
            uint64_t *word = &hint.slab->words[hint.index], seen = word_load(word);

            if (word_is_free(seen) && word_swap(word, seen, word_make(word_generation(seen), 0, member))) {
                __atomic_store_n(&hint.slab->taken[hint.index], 1, __ATOMIC_RELAXED);
                *address = slab_block(hint.slab, hint.index);
                return true;
            }
        }
        if (!cache_refill(heap, cache, class, &left))
            return false;
    }
}

int block_alloc(struct memclient_heap *heap, unsigned class, void **address)
{
    unsigned member = heap_member(heap);
    struct heap_cache *cache;
    bool found;

    /* of a child that is no member yet */
    if (!member)
        return 0;
    cache = cache_lock(heap);
    found = block_pop(heap, cache, class, member, address);
    cache_unlock(cache);
    return found;
}

/* ---- what a member owns ------------------------------------------------------------------------------------------ */

int block_refuse(const struct memclient_heap *heap, uint64_t word)
{
    unsigned me = heap_member(heap);

    if (word_is_free(word))
        return fail_with(EALREADY, "the block is free already, in generation %llu: it was freed twice",
                         ULL(word_generation(word)));
    if (word_to(word))
        return fail_with(EBUSY, "the block was given away, and nobody has taken it yet: take it back first");
    if (!me)
        return fail_with(EPERM,
                         "a child of fork() has none of its parent's blocks, and can free only those that it gets");
    if (word_owner(word) != me)
        return fail_with(EPERM, "member %u owns the block, and this is member %u", word_owner(word), me);
    return heap->control ? fail_with(EBUSY, "another thread has freed or given the block at the same time")
                         : fail_with(EALREADY, "this reader has not taken the block, or has freed it already");
}

/* With a cache locked: the block that begins at an address. */
static int block_find(struct memclient_heap *heap, struct heap_cache *cache, uint64_t address, struct slab **slab,
                      uint64_t *index)
{
    struct slab *found = slab_find(heap, cache, address);
    uint64_t offset;

    if (!found)
        return fail_with(EFAULT, "0x%llx is in no slab of this heap: is it another heap's, or no block?", ULL(address));
    offset = address - (uintptr_t)found->base;
    *index = offset / found->block_size;
    if (*index * found->block_size != offset)
        return fail_with(EINVAL, "no block begins at 0x%llx: the next one before it begins at 0x%llx", ULL(address),
                         ULL(address - offset % found->block_size));
    *slab = found;
    return 0;
}

int block_size(struct memclient_heap *heap, uint64_t address, uint64_t *bytes)
{
    struct heap_cache *cache = cache_lock(heap);
    struct slab *slab;
    uint64_t index;
    int r;

    r = block_find(heap, cache, address, &slab, &index);
    if (!r)
        *bytes = slab->block_size;
    cache_unlock(cache);
    return r;
}

/* Passes a block that this member owns on. It must not have it any more when another thread can get it. */
static int block_pass(struct memclient_heap *heap, struct slab *slab, uint64_t index, unsigned to, unsigned owner,
                      uint64_t *passed)
{
    uint64_t *word = &slab->words[index], seen = word_load(word);

    if (!__atomic_exchange_n(&slab->taken[index], 0, __ATOMIC_RELAXED))
        return block_refuse(heap, seen);
    *passed = word_pass(seen, to, owner);
    if (!word_is_free(seen) && word_owner(seen) == heap_member(heap) && !word_to(seen) &&
        word_swap(word, seen, *passed))
        return 0;
    __atomic_store_n(&slab->taken[index], 1, __ATOMIC_RELAXED);
    return block_refuse(heap, seen);
}

int block_free(struct memclient_heap *heap, uint64_t address)
{
    struct heap_cache *cache = cache_lock(heap);
    struct slab *slab;
    uint64_t index, passed;
    int r;

    r = block_find(heap, cache, address, &slab, &index);
    if (!r && !heap->control)
        r = reader_free(heap, slab, index);
    else if (!r) {
        r = block_pass(heap, slab, index, 0, 0, &passed);
        if (!r)
            cache_put(cache, slab, index);
    }
    cache_unlock(cache);
    return r;
}

/* ---- giving and taking ------------------------------------------------------------------------------------------- */

/* Is `to` still who it was, and what? */
static unsigned block_kind_of(const struct memclient_heap *heap, uint64_t to)
{
    uint64_t number = to & UINT32_MAX, word;

    if (!number || number >= HEAP_MEMBERS)
        return ENTRY_FREE;
    word = __atomic_load_n(&heap->control->members[number].word, __ATOMIC_SEQ_CST);
    return entry_incarnation(word) == to >> 32 ? entry_kind(word) : ENTRY_FREE;
}

static int block_give_to(struct memclient_heap *heap, struct slab *slab, uint64_t index, uint64_t to,
                         struct memclient_block *block)
{
    unsigned kind = to ? block_kind_of(heap, to) : ENTRY_LIVE, number = to ? (unsigned)to : HEAP_ANYBODY;
    bool reads = kind == ENTRY_READER;
    uint64_t passed;
    int r;

    if (kind != ENTRY_LIVE && !reads)
        return fail_with(ESRCH, "member %u has left the heap, or died", number);
    r = block_pass(heap, slab, index, reads ? 0 : number, reads ? number : heap_member(heap), &passed);
    if (r)
        return r;
    /* who died meanwhile may have been swept already (sweep.h) */
    if (to && block_kind_of(heap, to) != kind &&
        word_swap(&slab->words[index], passed, word_pass(passed, 0, heap_member(heap)))) {
        __atomic_store_n(&slab->taken[index], 1, __ATOMIC_RELAXED);
        return fail_with(ESRCH, "member %u has left the heap, or died", number);
    }
    *block = block_make(heap, slab, index, word_generation(passed));
    return 0;
}

int block_give(struct memclient_heap *heap, uint64_t address, uint64_t to, struct memclient_block *block,
               struct memclient_token *token)
{
    struct heap_cache *cache = cache_lock(heap);
    struct slab *slab;
    uint64_t index;
    int r;

    r = block_find(heap, cache, address, &slab, &index);
    if (!r && !heap->control)
        r = fail_with(EPERM, "a reader cannot give blocks away");
    if (!r)
        r = block_give_to(heap, slab, index, to, block);
    if (!r && token)
        *token = heap->control->slabs[slab->number].reading;
    cache_unlock(cache);
    return r;
}

/* Nobody else changes the word of a block that this member has. */
int block_prepare(struct memclient_heap *heap, uint64_t address, struct memclient_block *block)
{
    struct heap_cache *cache = cache_lock(heap);
    struct slab *slab;
    uint64_t index, word;
    int r;

    r = block_find(heap, cache, address, &slab, &index);
    if (!r && !heap->control)
        r = fail_with(EPERM, "a reader cannot give blocks away");
    if (!r) {
        word = word_load(&slab->words[index]);
        if (!__atomic_load_n(&slab->taken[index], __ATOMIC_RELAXED) || word_is_free(word) || word_to(word) ||
            word_owner(word) != heap_member(heap))
            r = block_refuse(heap, word);
        else
            *block = block_make(heap, slab, index, word_generation(word_pass(word, 0, 0)));
    }
    cache_unlock(cache);
    return r;
}

static int block_take_word(struct memclient_heap *heap, struct slab *slab, uint64_t index, uint64_t generation)
{
    uint64_t word = word_load(&slab->words[index]);
    unsigned me = heap_member(heap), to = word_to(word);

    if (word_generation(word) != generation || word_is_free(word))
        return fail_with(ESTALE, "the block was freed or given on since: this is generation %llu, and it has %llu",
                         ULL(generation), ULL(word_generation(word)));
    if (!heap->control)
        return reader_take(heap, slab, index, word);
    if (!to)
        return word_owner(word) == me ? fail_with(EALREADY, "this member has taken the block already")
                                      : fail_with(ESTALE, "member %u has taken the block", word_owner(word));
    if (to != me && to != HEAP_ANYBODY && word_owner(word) != me)
        return fail_with(EPERM, "the block is for member %u, and this is member %u", to, me);
    if (!word_swap(&slab->words[index], word, word_make(generation, 0, me)))
        return fail_with(ESTALE, "another member or thread has taken the block at the same time");
    __atomic_store_n(&slab->taken[index], 1, __ATOMIC_RELAXED);
    return 0;
}

int block_take(struct memclient_heap *heap, const struct memclient_block *block, void **address)
{
    uint64_t index = block_index(block), generation = block_generation(heap, block->generation);
    unsigned number = block_slab(block);
    struct heap_cache *cache;
    struct slab *slab;
    int r;

    if (generation > WORD_GENERATIONS)
        return fail_with(EINVAL, "the block is of another heap, or was not copied whole");
    if (number >= HEAP_SLABS)
        return fail_with(EINVAL, "the block is of slab %u, and a heap has %d at most: was it copied whole?", number,
                         HEAP_SLABS);
    cache = cache_lock(heap);
    slab = heap_slab(heap, number);
    if (!slab || slab_is_leaving(slab) || (slab->incarnation & 0xffff) != block_incarnation(block))
        r = 1;
    else if (index >= slab->n_blocks)
        r = fail_with(EINVAL, "slab %u has no block %llu", number, ULL(index));
    else
        r = block_take_word(heap, slab, index, generation);
    if (!r)
        *address = slab_block(slab, index);
    cache_unlock(cache);
    return r;
}
