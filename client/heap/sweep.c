/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep.h. */
#include "heap/sweep.h"

#include "heap/cache.h"
#include "heap/directory.h"
#include "heap/lock.h"
#include "heap/reader.h"

/* A word changes under the sweeper if a living member gives the dead one a block or takes it back: once, not more. */
#define SWEEP_TRIES 16

static bool sweep_bears(uint64_t word, const struct sweep_dead *dead)
{
    return dead->is[word_owner(word)] || dead->is[word_to(word)];
}

/* What the word becomes. */
static uint64_t sweep_word(const struct memclient_heap *heap, uint64_t word, const struct sweep_dead *dead)
{
    bool stays = word_to(word) && !dead->is[word_to(word)];

    if (stays && heap->geometry.flags & MEMCLIENT_HEAP_KEEP_GIVEN)
        return word_make(word_generation(word), word_to(word), 0);
    return word_pass(word, 0, 0);
}

/* False: a member that lies keeps on changing it. */
static bool sweep_block(const struct memclient_heap *heap, uint64_t *block, const struct sweep_dead *dead)
{
    for (unsigned i = 0; i < SWEEP_TRIES; i++) {
        uint64_t word = word_load(block);

        if (!sweep_bears(word, dead) || word_swap(block, word, sweep_word(heap, word, dead)))
            return true;
    }
    return false;
}

static bool sweep_slab(const struct memclient_heap *heap, struct slab *slab, const struct sweep_dead *dead)
{
    bool done = true;

    for (uint64_t word = 0; word < slab_hint_words(slab->n_blocks); word++) {
        uint64_t mask = 0, first = word * 64;

        for (unsigned bit = 0; bit < 64 && first + bit < slab->n_blocks; bit++) {
            if (!sweep_bears(word_load(&slab->words[first + bit]), dead))
                continue;
            done = sweep_block(heap, &slab->words[first + bit], dead) && done;
            mask |= UINT64_C(1) << bit;
        }
        if (mask)
            cache_note_free(slab, word, mask);
    }
    return done;
}

static uint64_t *sweep_entry(struct memclient_heap *heap, unsigned number)
{
    return &heap->control->members[number].word;
}

/* Whom they had invited, and who has not come yet, waits no longer. */
static void sweep_invitations(struct memclient_heap *heap, const struct sweep_dead *dead)
{
    for (unsigned number = 1; number < HEAP_MEMBERS; number++) {
        uint64_t word = word_load(sweep_entry(heap, number));

        if (entry_kind(word) == ENTRY_READER && entry_member(word) && dead->is[entry_member(word)])
            (void)word_swap(sweep_entry(heap, number), word, entry_make(ENTRY_READER, 0, entry_incarnation(word)));
    }
}

/* From one kind to the next. */
static void sweep_mark(struct memclient_heap *heap, const struct sweep_dead *dead, unsigned kind)
{
    for (unsigned number = 1; number < HEAP_MEMBERS; number++) {
        uint32_t incarnation = entry_incarnation(word_load(sweep_entry(heap, number)));

        if (dead->is[number])
            __atomic_store_n(sweep_entry(heap, number), entry_make(kind, 0, incarnation + (kind == ENTRY_BUSY)),
                             __ATOMIC_SEQ_CST);
    }
}

bool sweep_numbers(struct memclient_heap *heap, const struct sweep_dead *dead)
{
    bool done;

    sweep_mark(heap, dead, ENTRY_BUSY);
    done = !directory_refresh_all(heap);
    for (unsigned i = 0; i < heap_n_slabs(heap); i++) {
        struct slab *slab = heap_slab(heap, i);

        if (slab)
            done = sweep_slab(heap, slab, dead) && done;
    }
    done = directory_sweep(heap, dead->is) && done;
    sweep_invitations(heap, dead);
    for (unsigned number = 1; number < HEAP_MEMBERS; number++)
        if (dead->is[number])
            queue_close(heap, number);
    if (done)
        sweep_mark(heap, dead, ENTRY_FREE);
    return done;
}

bool sweep_number(struct memclient_heap *heap, unsigned number)
{
    struct sweep_dead dead = {.n = 1};

    dead.is[number] = true;
    return sweep_numbers(heap, &dead);
}

bool sweep_is_dead(struct memclient_heap *heap, unsigned number)
{
    switch (entry_kind(word_load(sweep_entry(heap, number)))) {
    case ENTRY_FREE:
        return false;
    case ENTRY_READER:
        return queue_reader_is_gone(heap, number);
    default: /* its lock was there to be taken */
        return true;
    }
}

unsigned sweep_all(struct memclient_heap *heap)
{
    struct sweep_dead dead = {.n = 0};
    unsigned first = heap->in_readers.next;

    queue_drain_all(heap);
    for (unsigned i = 0; i < HEAP_MEMBERS; i++) {
        unsigned number = (first + i) % HEAP_MEMBERS;

        if (!number || number == heap_member(heap) || entry_kind(word_load(sweep_entry(heap, number))) == ENTRY_FREE ||
            lock_try(heap->lock_fd, number) <= 0)
            continue;
        dead.is[number] = sweep_is_dead(heap, number);
        dead.n += dead.is[number];
        if (!dead.is[number])
            lock_drop(heap->lock_fd, number);
    }
    if (dead.n)
        (void)sweep_numbers(heap, &dead);
    for (unsigned number = 1; number < HEAP_MEMBERS; number++)
        if (dead.is[number])
            lock_drop(heap->lock_fd, number);
    return dead.n;
}
