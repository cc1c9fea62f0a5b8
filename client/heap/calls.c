/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with a heap that is open: letting others in, blocks, sweeping, counting.
 *
 * A block is found in this order, each step only if the one before has found none: by a hint of a cache or the bitmaps
 * (cache.h), by looking at all words, in slabs that others have added or among blocks of the dead (sweep.h), in a new
 * slab (directory.h).
 */
#include <errno.h>

#include "api/check.h"
#include "base/align.h"
#include "heap/block.h"
#include "heap/cache.h"
#include "heap/directory.h"
#include "heap/heap.h"
#include "heap/member.h"
#include "heap/reader.h"

#define MEMBER_RIGHTS (MEMCLIENT_READ | MEMCLIENT_WRITE | MEMCLIENT_SHARE)
#define SLABS_AT_ONCE 4

/* ---- letting others in ------------------------------------------------------------------------------------------- */

/* A member, also in a child, and no reader. */
static int calls_check_member(struct memclient_heap *heap, const char *what)
{
    int r = check_pointer(heap, "heap");

    if (!r && !heap->control)
        r = fail_with(EPERM, "a reader cannot %s", what);
    return r ? r : member_join_again(heap);
}

int memclient_heap_share(struct memclient_heap *heap, const struct memclient_share_options *from,
                         struct memclient_token *token)
{
    struct memclient_share_options options;
    int r = check_pointer(token, "token");

    if (!r)
        r = calls_check_member(heap, "share a heap");
    if (!r)
        r = check_options(&options, sizeof(options), from, "share options");
    if (!r && options.rights && options.rights != MEMBER_RIGHTS)
        r = fail_with(EINVAL, "rights: a member has READ, WRITE and SHARE: ask for these, or leave it 0");
    if (r)
        return r;
    options.rights = MEMBER_RIGHTS;
    return memclient_share(heap->control_buf, &options, token);
}

int memclient_heap_invite(struct memclient_heap *heap, struct memclient_token *token, uint64_t *member)
{
    int r = check_pointer(token, "token");

    if (!r)
        r = check_pointer(member, "member");
    if (!r)
        r = calls_check_member(heap, "invite another one");
    if (r)
        return r;
    pthread_mutex_lock(&heap->sweep);
    r = queue_invite(heap, token, member);
    pthread_mutex_unlock(&heap->sweep);
    return r;
}

uint64_t memclient_heap_member(const struct memclient_heap *heap)
{
    unsigned member = heap_member(heap);

    return member ? (uint64_t)heap->incarnation << 32 | member : 0;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* A slab whose blocks others are faster to take is not made without end. */
static int calls_alloc_added(struct memclient_heap *heap, unsigned class, void **address)
{
    for (unsigned i = 0; i < SLABS_AT_ONCE; i++) {
        int r = directory_add(heap, class);

        if (r || block_alloc(heap, class, address))
            return r;
    }
    return fail_with(ENOMEM, "others have taken all blocks of %d slabs that were just added", SLABS_AT_ONCE);
}

/* With `grow`: the second half of the essay's list. */
static int calls_alloc_searching(struct memclient_heap *heap, unsigned class, void **address)
{
    /* another thread may have made a slab meanwhile */
    if (block_alloc(heap, class, address))
        return 0;
    if (cache_rebuild(heap, class) && block_alloc(heap, class, address))
        return 0;
    member_sweep_others(heap, 1, FAILED_CALLS_MAX);
    if (cache_rebuild(heap, class) && block_alloc(heap, class, address))
        return 0;
    return calls_alloc_added(heap, class, address);
}

/* One thread makes a slab for all that wait for one. */
static int calls_alloc_slowly(struct memclient_heap *heap, unsigned class, void **address)
{
    int r = calls_check_member(heap, "allocate");

    if (r)
        return r;
    pthread_mutex_lock(&heap->grow);
    r = calls_alloc_searching(heap, class, address);
    pthread_mutex_unlock(&heap->grow);
    return r;
}

static inline int calls_alloc(struct memclient_heap *heap, unsigned class, void **address)
{
    if (__builtin_expect(heap->control && block_alloc(heap, class, address), true))
        return 0;
    return calls_alloc_slowly(heap, class, address);
}

int memclient_heap_alloc(struct memclient_heap *heap, uint64_t bytes, void **address)
{
    unsigned class = 0;
    int r;

    if (__builtin_expect(!heap || !address, false)) {
        r = check_pointer(heap, "heap");
        return r ? r : check_pointer(address, "address");
    }
    while (class < heap->geometry.n_classes && heap->geometry.classes[class].block_size < bytes)
        class ++;
    if (class == heap->geometry.n_classes)
        return fail_with(EMSGSIZE, "%llu bytes: the heap's largest blocks have %llu", ULL(bytes),
                         ULL(heap->geometry.classes[class - 1].block_size));
    return calls_alloc(heap, class, address);
}

/* HEAP_CLASSES: there is no such size. */
static unsigned calls_class_of(const struct memclient_heap *heap, uint64_t bytes, uint64_t alignment)
{
    for (unsigned class = 0; class < heap->geometry.n_classes; class ++) {
        uint64_t size = heap->geometry.classes[class].block_size;

        if (size >= bytes && is_aligned(size, alignment))
            return class;
    }
    return HEAP_CLASSES;
}

int memclient_heap_alloc_aligned(struct memclient_heap *heap, uint64_t bytes, uint64_t alignment, void **address)
{
    unsigned class;
    void *made;
    int r;

    r = check_pointer(heap, "heap");
    if (!r)
        r = check_pointer(address, "address");
    if (!r && (!is_power_of_two(alignment) || alignment > HEAP_ALIGNMENT_MAX))
        r = fail_with(EINVAL, "alignment %llu: it is a power of two, and %llu at most", ULL(alignment),
                      ULL(HEAP_ALIGNMENT_MAX));
    if (r)
        return r;
    class = calls_class_of(heap, bytes, alignment);
    if (class == HEAP_CLASSES)
        return fail_with(EMSGSIZE, "%llu bytes at a multiple of %llu: the heap has no blocks of a size that is one",
                         ULL(bytes), ULL(alignment));
    r = calls_alloc(heap, class, &made);
    if (r)
        return r;
    if (!is_aligned((uintptr_t)made, alignment)) {
        (void)block_free(heap, (uintptr_t)made);
        return fail_with(EADDRNOTAVAIL,
                         "something is in the way of a slab, and where it is mapped instead, blocks are "
                         "no multiples of %llu",
                         ULL(alignment));
    }
    *address = made;
    return 0;
}

int memclient_heap_free(struct memclient_heap *heap, void *address)
{
    if (!address)
        return 0;
    return heap ? block_free(heap, (uintptr_t)address) : check_pointer(heap, "heap");
}

int memclient_block_bytes(struct memclient_heap *heap, const void *address, uint64_t *bytes)
{
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_pointer(bytes, "bytes");
    return r ? r : block_size(heap, (uintptr_t)address, bytes);
}

int memclient_block_give(struct memclient_heap *heap, void *address, uint64_t to, struct memclient_block *block)
{
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_pointer(block, "block");
    return r ? r : block_give(heap, (uintptr_t)address, to, block, NULL);
}

int memclient_block_prepare(struct memclient_heap *heap, void *address, struct memclient_block *block)
{
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_pointer(block, "block");
    return r ? r : block_prepare(heap, (uintptr_t)address, block);
}

int memclient_block_share(struct memclient_heap *heap, void *address, uint64_t to, struct memclient_block_token *token)
{
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_pointer(token, "token");
    return r ? r : block_give(heap, (uintptr_t)address, to, &token->block, &token->slab);
}

static int calls_check_take(struct memclient_heap *heap, const void *given, void **address)
{
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_pointer(given, "block");
    if (!r)
        r = check_pointer(address, "address");
    return !r && !heap_member(heap) ? member_join_again(heap) : r;
}

/* The slab was added since this member has looked last, or is gone. */
static int calls_take_slowly(struct memclient_heap *heap, const struct memclient_block *block, void **address)
{
    int r;

    pthread_mutex_lock(&heap->sweep);
    heap_begin_asking(heap, FAILED_CALLS_MAX);
    r = directory_refresh(heap, block_slab(block));
    pthread_mutex_unlock(&heap->sweep);
    if (r && r != -EAGAIN)
        return r;
    r = block_take(heap, block, address);
    return r > 0 ? fail_with(ESTALE, "slab %u, of which the block is, is gone", block_slab(block)) : r;
}

int memclient_block_take(struct memclient_heap *heap, const struct memclient_block *block, void **address)
{
    int r = calls_check_take(heap, block, address);

    if (!r)
        r = block_take(heap, block, address);
    if (r <= 0)
        return r;
    if (heap->control)
        return calls_take_slowly(heap, block, address);
    return fail_with(ENXIO, "this reader has not had slab %u yet: memclient_block_open() opens it", block_slab(block));
}

int memclient_block_open(struct memclient_heap *heap, const struct memclient_block_token *token, void **address)
{
    int r = calls_check_take(heap, token, address);

    if (!r)
        r = block_take(heap, &token->block, address);
    if (r <= 0)
        return r;
    if (heap->control)
        return calls_take_slowly(heap, &token->block, address);
    r = reader_open_slab(heap, token);
    return r ? r : memclient_block_take(heap, &token->block, address);
}

/* ---- sweeping and counting --------------------------------------------------------------------------------------- */

int memclient_heap_sweep(struct memclient_heap *heap)
{
    int r = calls_check_member(heap, "sweep");

    if (!r)
        member_sweep_others(heap, 1, FAILED_CALLS_MAX_ALL);
    return r;
}

int memclient_heap_trim(struct memclient_heap *heap)
{
    int r = calls_check_member(heap, "trim a heap");

    if (!r)
        member_sweep_others(heap, 0, FAILED_CALLS_MAX_ALL);
    return r;
}

static void calls_count_slab(const struct memclient_heap *heap, const struct slab *slab,
                             struct memclient_heap_info *info)
{
    info->slabs++;
    info->bytes += memclient_buffer_bytes(slab->buf);
    info->blocks += slab->n_blocks;
    for (uint64_t i = 0; i < slab->n_blocks; i++) {
        uint64_t word = word_load(&slab->words[i]);

        if (word_is_free(word))
            info->blocks_free++;
        else if (word_to(word))
            info->blocks_given++;
        else
            info->blocks_owned++;
        info->blocks_mine += !word_to(word) && heap_member(heap) && word_owner(word) == heap_member(heap);
    }
}

static void calls_count_members(const struct memclient_heap *heap, struct memclient_heap_info *info)
{
    for (unsigned i = 1; heap->control && i < HEAP_MEMBERS; i++) {
        unsigned kind = entry_kind(word_load(&heap->control->members[i].word));

        info->members += kind == ENTRY_LIVE || kind == ENTRY_BUSY;
        info->readers += kind == ENTRY_READER;
    }
}

int memclient_heap_query(struct memclient_heap *heap, struct memclient_heap_info *info)
{
    struct memclient_heap_info filled = MEMCLIENT_HEAP_INFO_INIT;
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_output(info, "info");
    if (r)
        return r;
    filled.member = memclient_heap_member(heap);
    filled.n_block_sizes = heap->geometry.n_classes;
    for (unsigned i = 0; i < heap->geometry.n_classes; i++)
        filled.block_sizes[i] = heap->geometry.classes[i].block_size;
    pthread_mutex_lock(&heap->sweep);
    heap_begin_asking(heap, FAILED_CALLS_MAX_ALL);
    if (heap->control)
        (void)directory_refresh_all(heap);
    for (unsigned i = 0; i < heap_n_slabs(heap); i++)
        if (heap_slab(heap, i))
            calls_count_slab(heap, heap_slab(heap, i), &filled);
    calls_count_members(heap, &filled);
    pthread_mutex_unlock(&heap->sweep);
    return write_output(info, &filled, sizeof(filled));
}
