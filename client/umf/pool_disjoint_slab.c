/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs and large allocations, from the provider and back, and the free slabs that are kept. A bucket whose slabs are
 * cut keeps one. Other buckets keep as many as Capacity says. The shared limits count what is kept, and nothing beyond
 * them is.
 */
#include "umf/pool_disjoint.h"

#include <stdlib.h>

#include "base/align.h"
#include "umf/mutex.h"

/* ---- limits ------------------------------------------------------------------------------------------------------ */

umf_disjoint_pool_shared_limits_t *umfDisjointPoolSharedLimitsCreate(size_t MaxSize)
{
    umf_disjoint_pool_shared_limits_t *limits = calloc(1, sizeof(*limits));

    if (limits)
        limits->max = MaxSize;
    return limits;
}

void umfDisjointPoolSharedLimitsDestroy(umf_disjoint_pool_shared_limits_t *limits)
{
    free(limits);
}

/* false: the limit has no room for another slab. */
static bool limits_charge(umf_disjoint_pool_shared_limits_t *limits, size_t size)
{
    size_t total;

    if (!limits)
        return true;
    total = atomic_load_explicit(&limits->total, memory_order_relaxed);
    do
        if (total > limits->max || size > limits->max - total)
            return false;
    while (!atomic_compare_exchange_weak(&limits->total, &total, total + size));
    return true;
}

bool slab_keep(struct bucket *bucket)
{
    bool kept = limits_charge(bucket->pool->params.SharedLimits, bucket->slab_size);

    if (bucket->pool->params.PoolTrace)
        trace_slabs(bucket, -1, kept);
    return kept;
}

void slab_unkeep(struct bucket *bucket)
{
    if (bucket->pool->params.SharedLimits)
        atomic_fetch_sub(&bucket->pool->params.SharedLimits->total, bucket->slab_size);
    if (bucket->pool->params.PoolTrace)
        trace_slabs(bucket, 1, -1);
}

/* ---- from the provider, and back --------------------------------------------------------------------------------- */

static bool block_enter_map(struct disjoint *pool, struct block *block, uintptr_t from, size_t span)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&pool->lock);

    return map_insert(&pool->map, block, from, span);
}

static void block_leave_map(struct disjoint *pool, struct block *block)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&pool->lock);

    map_remove(&pool->map, block);
}

/* Sets block->base. A success may come without memory. */
static umf_result_t block_alloc(struct disjoint *pool, struct block *block, size_t size, size_t alignment)
{
    umf_result_t result;

    block->base = NULL;
    block->size = size;
    result = umfMemoryProviderAlloc(pool->provider, size, alignment, &block->base);
    thread_now()->disjoint_grew = true;
    return result;
}

static void block_recycle(struct disjoint *pool, struct list *spare, struct block *block)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&pool->lock);

    list_prepend(spare, &block->link);
}

static struct block *block_take_first(struct disjoint *pool, struct list *list, atomic_size_t *n)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&pool->lock);
    struct list *link = list_pop(list);

    if (link && n)
        atomic_fetch_sub(n, 1);
    return link ? container_of(link, struct block, link) : NULL;
}

/* Reuses a record or makes one. */
static struct block *block_new(struct disjoint *pool, struct list *spare, size_t size, umf_result_t *result)
{
    struct block *block = block_take_first(pool, spare, NULL);

    if (block)
        return block;
    block = calloc(1, size);
    if (!block)
        *result = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else
        list_init(&block->link);
    return block;
}

void block_list_free(struct list *list)
{
    struct list *link;

    while ((link = list_pop(list)))
        free(container_of(link, struct block, link));
}

/* A failure cannot be reported to anybody, since the allocation was freed before. */
static void block_give_back(struct bucket *bucket, struct block *block)
{
    (void)umfMemoryProviderFree(bucket->pool->provider, block->base, block->size);
    block_recycle(bucket->pool, &bucket->spare, block);
}

static struct block *slab_alloc(struct bucket *bucket, size_t record_size, umf_result_t *result)
{
    struct block *block = block_new(bucket->pool, &bucket->spare, record_size, result);

    if (!block)
        return NULL;
    block->bucket = bucket;
    *result = block_alloc(bucket->pool, block, bucket->slab_size, 0);
    if (*result != UMF_RESULT_SUCCESS || !block->base) {
        block_recycle(bucket->pool, &bucket->spare, block);
        return NULL;
    }
    if (bucket->pool->params.PoolTrace)
        trace_slabs(bucket, 1, 0);
    return block;
}

/* ---- slabs that are cut ------------------------------------------------------------------------------------------ */

static struct slab *slab_cut(struct bucket *bucket, umf_result_t *result)
{
    size_t n = bucket->slab_size / bucket->stride;
    struct slab *slab;
    struct block *block;

    /* chunks of a very large slab that have no number are not used */
    n = n * (bucket->stride / 8) < UINT32_MAX ? n : UINT32_MAX / (bucket->stride / 8);
    block = slab_alloc(bucket, sizeof(*slab) + 2 * n * sizeof(slab->stack[0]), result);
    if (!block)
        return NULL;
    if (!block_enter_map(bucket->pool, block, (uintptr_t)block->base, block->size)) {
        block_give_back(bucket, block);
        *result = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    slab = container_of(block, struct slab, block);
    slab->n = (uint32_t)n;
    slab->n_free = slab->n_fresh = 0;
    slab->next = slab->stack + n;
    atomic_store_explicit(&slab->freed, 0, memory_order_relaxed);
    return slab;
}

struct slab *slab_get(struct bucket *bucket, umf_result_t *result)
{
    struct block *block = block_take_first(bucket->pool, &bucket->kept, &bucket->n_kept);

    if (!block)
        return slab_cut(bucket, result);
    slab_unkeep(bucket);
    return container_of(block, struct slab, block);
}

/* True: the bucket keeps it. */
static bool bucket_keep(struct bucket *bucket, struct block *block, size_t capacity)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&bucket->pool->lock);

    if (bucket->n_kept >= capacity || !slab_keep(bucket))
        return false;
    list_prepend(&bucket->kept, &block->link);
    atomic_fetch_add(&bucket->n_kept, 1);
    return true;
}

bool slab_put(struct slab *slab, bool may_keep)
{
    struct bucket *bucket = slab->block.bucket;

    if (bucket_keep(bucket, &slab->block, may_keep))
        return true;
    block_leave_map(bucket->pool, &slab->block);
    block_give_back(bucket, &slab->block);
    return false;
}

/* ---- slabs that are one allocation ------------------------------------------------------------------------------- */

bool whole_put(struct block *block)
{
    struct bucket *bucket = block->bucket;

    block_leave_map(bucket->pool, block);
    if (bucket_keep(bucket, block, bucket->pool->params.Capacity))
        return true;
    block_give_back(bucket, block);
    return false;
}

void *whole_get(struct bucket *bucket, size_t alignment, umf_result_t *result)
{
    struct block *block = block_take_first(bucket->pool, &bucket->kept, &bucket->n_kept);
    uintptr_t ptr;

    if (block)
        slab_unkeep(bucket);
    else
        block = slab_alloc(bucket, sizeof(*block), result);
    if (!block)
        return NULL;
    ptr = align_up((uintptr_t)block->base, alignment);
    if (block_enter_map(bucket->pool, block, ptr, 1))
        return (void *)ptr;
    block_give_back(bucket, block);
    *result = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return NULL;
}

/* ---- large allocations ------------------------------------------------------------------------------------------- */

void *large_get(struct disjoint *pool, size_t size, size_t alignment, umf_result_t *result)
{
    struct block *block;
    void *ptr = NULL;

    if (pool->is_tracked) {
        *result = umfMemoryProviderAlloc(pool->provider, size, alignment, &ptr);
        return *result == UMF_RESULT_SUCCESS ? ptr : NULL;
    }
    block = block_new(pool, &pool->spare, sizeof(*block), result);
    if (!block)
        return NULL;
    block->bucket = NULL;
    *result = block_alloc(pool, block, size, alignment);
    if (*result == UMF_RESULT_SUCCESS && block->base && !block_enter_map(pool, block, (uintptr_t)block->base, 1)) {
        (void)umfMemoryProviderFree(pool->provider, block->base, size);
        *result = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (*result == UMF_RESULT_SUCCESS && block->base)
        return block->base;
    block_recycle(pool, &pool->spare, block);
    return NULL;
}

/* The block leaves the map first, since the provider may give the address to another thread at once. If the provider
 * fails, it is allocated as before. */
umf_result_t large_put(struct disjoint *pool, struct block *block)
{
    umf_result_t result;

    block_leave_map(pool, block);
    result = umfMemoryProviderFree(pool->provider, block->base, block->size);
    if (result == UMF_RESULT_SUCCESS || !block_enter_map(pool, block, (uintptr_t)block->base, 1))
        block_recycle(pool, &pool->spare, block);
    return result;
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

void bucket_init(struct bucket *bucket, struct disjoint *pool, size_t size)
{
    size_t slab_min = pool->params.SlabMinSize;

    *bucket = (struct bucket){
        .pool = pool,
        .size = size,
        .stride = align_up(size, 8),
        .slab_size = size > slab_min ? size : slab_min,
        .is_cut = size <= slab_min / 2,
    };
    list_init(&bucket->kept);
    list_init(&bucket->spare);
}

void bucket_deinit(struct bucket *bucket)
{
    struct block *block;

    while ((block = block_take_first(bucket->pool, &bucket->kept, &bucket->n_kept))) {
        slab_unkeep(bucket);
        if (bucket->is_cut)
            block_leave_map(bucket->pool, block);
        block_give_back(bucket, block);
    }
    block_list_free(&bucket->spare);
}
