/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks. A heap takes a chunk from its bin's current slab: one that was freed, from the stack, or else one that was
 * never used. When the slab is used up, the heap goes to the next in the bin's list. The list has slabs that may have
 * free chunks. A slab leaves it when it turns out to have none, and returns with the first chunk that is freed. A bin
 * keeps one empty slab, at the end of the list.
 *
 * A thread that frees a chunk of another heap puts it onto the slab's list `freed`. The first to do so since the last
 * collection also puts the slab onto the heap's list `pending`. Nobody collects between the two, so the slab is not
 * found empty, and goes nowhere. Then the thread checks that the heap has a thread that will collect. A heap that loses
 * its thread says so first and is collected afterwards, so one of the two sees the other.
 */
#include "umf/pool_disjoint.h"

#include <stdlib.h>

#include "umf/mutex.h"

struct slab heap_no_slab = {.block.from = UINTPTR_MAX};
struct heap heap_none = {
    .recent = &heap_no_slab,
    .bins = {[0 ... BUCKETS_MAX - 1] = {.current = &heap_no_slab}},
};

static struct thread_part *heap_make(struct thread_parts *parts)
{
    struct heap *heap = calloc(1, sizeof(*heap));

    if (!heap)
        return NULL;
    heap->pool = container_of(parts, struct disjoint, heaps);
    heap->recent = &heap_no_slab;
    thread_part_init(&heap->part, parts);
    list_init(&heap->unused);
    for (unsigned i = 0; i < BUCKETS_MAX; i++) {
        list_init(&heap->bins[i].available);
        heap->bins[i].current = &heap_no_slab;
    }
    return &heap->part;
}

static struct bin *bin_of(struct slab *slab)
{
    return &slab->block.heap->bins[slab->block.bucket - slab->block.heap->pool->buckets];
}

/* ---- slabs of a heap --------------------------------------------------------------------------------------------- */

static bool slab_is_empty(const struct slab *slab)
{
    return slab->n_free == slab->n_fresh;
}

static bool slab_is_used_up(const struct slab *slab)
{
    return !slab->n_free && slab->n_fresh == slab->n;
}

static void slab_set_listed(struct slab *slab, bool listed)
{
    slab->listed = listed;
    slab->slow_free = !listed || slab->aligned || slab->block.heap->pool->counted;
}

static void bin_enter(struct heap *heap, struct bin *bin, struct slab *slab)
{
    slab->block.heap = heap;
    list_prepend(&bin->available, &slab->block.link);
    slab->aligned = slab->kept = false;
    slab_set_listed(slab, true);
}

static void bin_set_kept(struct bin *bin, struct slab *slab)
{
    if (bin->empty)
        bin->empty->kept = false;
    if (slab)
        slab->kept = true;
    bin->empty = slab;
}

static void bin_leave(struct bin *bin, struct slab *slab)
{
    struct heap *heap = slab->block.heap;

    if (bin->current == slab)
        bin->current = &heap_no_slab;
    if (slab->kept)
        bin_set_kept(bin, NULL);
    if (heap->recent == slab)
        heap->recent = &heap_no_slab;
    list_remove(&slab->block.link);
}

/* The slab in `empty` may have been used again: only counting pools note that when they take a chunk. */
static bool bin_may_keep(const struct bin *bin, const struct slab *slab)
{
    const struct bucket *bucket = slab->block.bucket;

    return !(bin->empty && slab_is_empty(bin->empty)) && !atomic_load_explicit(&bucket->n_kept, memory_order_relaxed);
}

/* The slab's last chunk was freed. */
bool heap_emptied(struct slab *slab)
{
    struct heap *heap = slab->block.heap;
    struct bin *bin = bin_of(slab);
    bool attached = atomic_load_explicit(&heap->attached, memory_order_relaxed);

    if (attached && bin_may_keep(bin, slab) && slab_keep(slab->block.bucket)) {
        bin_set_kept(bin, slab);
        list_remove(&slab->block.link);
        list_append(&bin->available, &slab->block.link);
        return true;
    }
    bin_leave(bin, slab);
    if (attached)
        return slab_put(slab, false);
    list_append(&heap->unused, &slab->block.link);
    return true;
}

/* ---- free chunks ------------------------------------------------------------------------------------------------- */

static uint32_t chunk_number(const struct slab *slab, const void *ptr)
{
    return (uint32_t)((size_t)((const char *)ptr - (const char *)slab->block.base) / slab->block.bucket->stride);
}

/* Pushes a chunk onto the stack. heap_push() does the same in the common case. */
static void slab_stack_push(struct slab *slab, uint32_t number)
{
    slab->stack[slab->n_free++] = (uint32_t)(number * slab->block.bucket->stride / 8);
    if (!slab->listed) {
        list_prepend(&bin_of(slab)->available, &slab->block.link);
        slab_set_listed(slab, true);
    }
}

static bool heap_slow_push(struct slab *slab, const void *ptr)
{
    slab_stack_push(slab, chunk_number(slab, ptr));
    return !slab_is_empty(slab) || slab->kept || heap_emptied(slab);
}

/* Frees the chunks that other threads have put onto lists. */
static void heap_collect(struct heap *heap)
{
    struct slab *slab = atomic_exchange(&heap->pending, NULL), *next;

    for (; slab; slab = next) {
        next = slab->next_pending;
        for (uint32_t number = atomic_exchange(&slab->freed, 0); number; number = slab->next[number - 1])
            slab_stack_push(slab, number - 1);
        if (slab_is_empty(slab) && !slab->kept)
            (void)heap_emptied(slab);
    }
}

/* Drops the lock, and then gives up the slabs in `unused`. */
static void heap_unlock(struct heap *heap)
{
    struct list unused = LIST_INIT(unused), *link;

    while ((link = list_pop(&heap->unused)))
        list_append(&unused, link);
    pthread_mutex_unlock(&heap->pool->lock);
    while ((link = list_pop(&unused)))
        (void)slab_put(container_of(link, struct slab, block.link), true);
}

static void heap_collect_unattached(struct heap *heap)
{
    pthread_mutex_lock(&heap->pool->lock);
    if (!atomic_load(&heap->attached))
        heap_collect(heap);
    heap_unlock(heap);
}

static void heap_put_others(struct slab *slab, uint32_t number)
{
    struct heap *heap = slab->block.heap;
    uint32_t first = atomic_load_explicit(&slab->freed, memory_order_relaxed);

    do
        slab->next[number] = first;
    while (!atomic_compare_exchange_weak(&slab->freed, &first, number + 1));
    if (!first) {
        slab->next_pending = atomic_load_explicit(&heap->pending, memory_order_relaxed);
        while (!atomic_compare_exchange_weak(&heap->pending, &slab->next_pending, slab))
            ;
        if (!atomic_load(&heap->attached))
            heap_collect_unattached(heap);
    }
}

bool heap_put(struct heap *mine, struct slab *slab, const void *ptr)
{
    if (mine == slab->block.heap)
        return heap_slow_push(slab, ptr);
    heap_put_others(slab, chunk_number(slab, ptr));
    return true;
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Finds the next slab with a free chunk in the bin's list. */
static struct slab *bin_next_available(struct bin *bin)
{
    struct list *link;

    while ((link = list_first(&bin->available))) {
        struct slab *slab = container_of(link, struct slab, block.link);

        if (!slab_is_used_up(slab))
            return slab;
        list_remove(link);
        slab_set_listed(slab, false);
    }
    return NULL;
}

static struct slab *bin_refill(struct heap *heap, struct bin *bin, struct bucket *bucket, umf_result_t *result)
{
    struct slab *slab = bin_next_available(bin);

    if (slab)
        return slab;
    heap_collect(heap);
    slab = bin_next_available(bin);
    if (slab)
        return slab;
    slab = slab_get(bucket, result);
    if (slab)
        bin_enter(heap, bin, slab);
    return slab;
}

void *heap_malloc(struct heap *heap, struct bucket *bucket, bool aligned, umf_result_t *result)
{
    struct bin *bin = &heap->bins[bucket - heap->pool->buckets];
    struct slab *slab = bin->current;
    void *ptr;

    if (slab_is_used_up(slab)) {
        slab = bin_refill(heap, bin, bucket, result);
        if (!slab)
            return NULL;
        bin->current = slab;
    }
    if (heap->pool->counted && slab->kept) {
        bin_set_kept(bin, NULL);
        slab_unkeep(bucket);
    }
    if (aligned)
        slab->aligned = slab->slow_free = true;
    ptr = heap_pop(bin);
    return ptr ? ptr : (char *)slab->block.base + slab->n_fresh++ * bucket->stride;
}

/* ---- heaps and threads ------------------------------------------------------------------------------------------- */

static void heap_attach(struct thread_part *part)
{
    struct heap *heap = heap_of(part);

    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&heap->pool->lock);

    atomic_store(&heap->attached, true);
}

static void bin_give_up_empty(struct bin *bin)
{
    struct slab *slab = bin->empty;

    if (!slab)
        return;
    bin_set_kept(bin, NULL);
    if (!slab_is_empty(slab))
        return;
    slab_unkeep(slab->block.bucket);
    bin_leave(bin, slab);
    list_append(&slab->block.heap->unused, &slab->block.link);
}

void heap_detach(struct thread_part *part)
{
    struct heap *heap = heap_of(part);

    pthread_mutex_lock(&heap->pool->lock);
    atomic_store(&heap->attached, false);
    heap_collect(heap);
    for (unsigned i = 0; i < heap->pool->n_buckets; i++)
        bin_give_up_empty(&heap->bins[i]);
    heap_unlock(heap);
}

const struct thread_parts_ops heap_ops = {
    .make = heap_make,
    .attach = heap_attach,
    .detach = heap_detach,
};
