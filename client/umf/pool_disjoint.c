/* SPDX-License-Identifier: Apache-2.0 */
/* The disjoint pool's operations: they choose the bucket for a size, or pass the allocation on. */
#include "umf/pool_disjoint.h"

#include <stdlib.h>
#include <sys/param.h>

#include <memclient/umf/umf/memory_pool_ops.h>

#include "base/align.h"
#include "umf/tracking.h"

#define BUCKET_SIZE_MAX ((size_t)1 << 31)
#define GRANULE_MIN     64

/* ---- making one -------------------------------------------------------------------------------------------------- */

static void make_buckets(struct disjoint *pool)
{
    size_t size = pool->params.MinBucketSize;

    if (size < UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE)
        size = UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE;
    if (size > BUCKET_SIZE_MAX)
        size = BUCKET_SIZE_MAX;
    pool->first_bucket = 2 * (unsigned)__builtin_ctzll(size) - 1;
    for (; size < BUCKET_SIZE_MAX; size *= 2) {
        bucket_init(&pool->buckets[pool->n_buckets++], pool, size);
        bucket_init(&pool->buckets[pool->n_buckets++], pool, size + size / 2);
    }
    bucket_init(&pool->buckets[pool->n_buckets++], pool, size);
}

/* 0: no bucket's slabs are cut. */
static size_t largest_cut(const struct disjoint *pool)
{
    size_t size = 0;

    for (unsigned i = 0; i < pool->n_buckets && pool->buckets[i].is_cut; i++)
        size = pool->buckets[i].size;
    return size;
}

static umf_result_t disjoint_initialize(umf_memory_provider_handle_t provider, void *arg, void **ret)
{
    const umf_disjoint_pool_params_t *params = arg;
    struct disjoint *pool;

    if (!params || !is_power_of_two(params->MinBucketSize))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (!map_init(&pool->map, params->SlabMinSize > GRANULE_MIN ? params->SlabMinSize : GRANULE_MIN)) {
        free(pool);
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    pool->provider = provider;
    pool->params = *params;
    list_init(&pool->spare);
    (void)pthread_mutex_init(&pool->lock, NULL);
    make_buckets(pool);
    pool->counted = params->PoolTrace || params->SharedLimits;
    pool->is_tracked = !params->PoolTrace && tracking_is(provider);
    if (!pool->counted)
        pool->cut_max = MIN(params->MaxPoolableSize, largest_cut(pool));
    /* a provider may fail here, or succeed without writing it */
    if (umfMemoryProviderGetMinPageSize(provider, NULL, &pool->min_page_size) != UMF_RESULT_SUCCESS)
        pool->min_page_size = 0;
    thread_parts_init(&pool->heaps, &heap_ops, &pool->lock, &heap_none.part);
    *ret = pool;
    return UMF_RESULT_SUCCESS;
}

/* Everything goes back to the provider: what is kept, and what is still allocated. */
static void disjoint_finalize(void *arg)
{
    struct disjoint *pool = arg;
    struct list left = LIST_INIT(left), *link;

    thread_parts_leave(&pool->heaps);
    list_for_each_entry(part, &pool->heaps.all, struct thread_part, in_pool)
        if (!part->lost)
            heap_detach(part);
    if (pool->params.PoolTrace)
        trace_end(pool);
    for (unsigned i = 0; i < pool->n_buckets; i++)
        bucket_deinit(&pool->buckets[i]);
    map_take_all(&pool->map, &left);
    while ((link = list_pop(&left))) {
        struct block *block = container_of(link, struct block, link);

        (void)umfMemoryProviderFree(pool->provider, block->base, block->size);
        free(block);
    }
    if (pool->is_tracked)
        tracking_give_back_all(pool->provider);
    list_for_each_entry_safe(part, &pool->heaps.all, struct thread_part, in_pool)
        free(heap_of(part));
    block_list_free(&pool->spare);
    map_deinit(&pool->map);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Chooses the smallest bucket with room for the size, by the two highest bits of the last byte's number. There is no
 * branch, since none could be predicted. */
static inline unsigned bucket_for(const struct disjoint *pool, size_t size)
{
    size_t last = MAX(size, pool->buckets[0].size) - 1;
    unsigned log = 63 ^ (unsigned)__builtin_clzll(last);

    return 2 * log + (unsigned)(last >> (log - 1) & 1) - pool->first_bucket;
}

static inline bool is_pooled(const struct disjoint *pool, size_t size)
{
    return size <= pool->params.MaxPoolableSize && size <= BUCKET_SIZE_MAX;
}

static void *chunk_get(struct disjoint *pool, struct bucket *bucket, bool aligned, umf_result_t *result)
{
    struct thread_part *part = thread_part_mine(thread_now(), &pool->heaps);

    if (part == pool->heaps.none)
        part = thread_part_get(&pool->heaps);
    if (part)
        return heap_malloc(heap_of(part), bucket, aligned, result);
    *result = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return NULL;
}

static void *disjoint_get(struct disjoint *pool, size_t size, size_t room, size_t alignment)
{
    umf_result_t result = UMF_RESULT_SUCCESS;
    struct bucket *bucket = NULL;
    void *ptr;

    thread_now()->disjoint_grew = false;
    if (!is_pooled(pool, room)) {
        ptr = large_get(pool, size, alignment, &result);
    } else {
        bucket = &pool->buckets[bucket_for(pool, room)];
        if (bucket->is_cut) {
            ptr = chunk_get(pool, bucket, room > size, &result);
            if (alignment)
                ptr = (void *)(uintptr_t)align_up((uintptr_t)ptr, alignment);
        } else {
            ptr = whole_get(bucket, alignment ? alignment : 1, &result);
        }
    }
    thread_now()->disjoint_error = result;
    if (pool->params.PoolTrace && ptr)
        trace_alloc(pool, bucket, ptr, size, alignment);
    return ptr;
}

/* It is a function of its own so that disjoint_malloc() is a leaf, without a frame. */
__attribute__((__noinline__)) static void *disjoint_malloc_slow(struct disjoint *pool, size_t size)
{
    if (size)
        return disjoint_get(pool, size, size, 0);
    thread_now()->disjoint_error = UMF_RESULT_SUCCESS;
    return NULL;
}

static void *disjoint_malloc(void *arg, size_t size)
{
    struct disjoint *pool = arg;
    struct thread_now *now = thread_now_quick();
    struct thread_part *part = thread_part_quick(now, &pool->heaps);
    void *ptr;

    if (!part || size - 1 >= pool->cut_max)
        return disjoint_malloc_slow(pool, size);
    ptr = heap_pop(&heap_of(part)->bins[bucket_for(pool, size)]);
    if (!ptr)
        return disjoint_malloc_slow(pool, size);
    now->disjoint_error = UMF_RESULT_SUCCESS;
    return ptr;
}

static void *disjoint_aligned_malloc(void *arg, size_t size, size_t alignment)
{
    struct disjoint *pool = arg;
    size_t room;

    if (!size || alignment <= 1)
        return disjoint_malloc(pool, size);
    if (!is_power_of_two(alignment)) {
        thread_now()->disjoint_error = UMF_RESULT_ERROR_INVALID_ALIGNMENT;
        return NULL;
    }
    if (size > SIZE_MAX - (alignment - 1)) {
        thread_now()->disjoint_error = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    /* slabs begin at pages, so chunks of a multiple of the alignment are aligned; a larger alignment needs room */
    room = size + alignment - 1;
    if (alignment <= pool->min_page_size)
        room = align_down(room, alignment);
    return disjoint_get(pool, size, room, alignment);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

__attribute__((__noinline__)) static umf_result_t disjoint_free_slow(struct disjoint *pool, void *ptr)
{
    struct block *block = map_find(&pool->map, ptr);
    umf_result_t result = UMF_RESULT_SUCCESS;
    struct bucket *bucket;
    bool to_pool = false;

    if (!ptr)
        return UMF_RESULT_SUCCESS;
    if (!block) /* a large one, or one that only the provider may know */
        return umfMemoryProviderFree(pool->provider, ptr, 0);
    bucket = block->bucket;
    if (!bucket)
        result = large_put(pool, block);
    else if (bucket->is_cut)
        to_pool = heap_put(heap_mine(thread_now(), pool), container_of(block, struct slab, block), ptr);
    else
        to_pool = whole_put(block);
    if (pool->params.PoolTrace)
        trace_free(pool, bucket, ptr, to_pool);
    return result;
}

static umf_result_t disjoint_free(void *arg, void *ptr)
{
    struct disjoint *pool = arg;
    struct thread_part *part = thread_part_quick(thread_now_quick(), &pool->heaps);
    struct slab *slab = part ? heap_find(pool, heap_of(part), ptr) : NULL;

    if (!slab || slab->slow_free)
        return disjoint_free_slow(pool, ptr);
    heap_push(slab, ptr);
    return UMF_RESULT_SUCCESS;
}

/* ---- what it has not --------------------------------------------------------------------------------------------- */

static void *disjoint_calloc(void *pool, size_t num, size_t size)
{
    thread_now()->disjoint_error = UMF_RESULT_ERROR_NOT_SUPPORTED;
    return NULL;
}

static void *disjoint_realloc(void *pool, void *ptr, size_t size)
{
    thread_now()->disjoint_error = UMF_RESULT_ERROR_NOT_SUPPORTED;
    return NULL;
}

static size_t disjoint_malloc_usable_size(void *pool, void *ptr)
{
    thread_now()->disjoint_error = UMF_RESULT_ERROR_NOT_SUPPORTED;
    return 0;
}

static umf_result_t disjoint_get_last_allocation_error(void *pool)
{
    return thread_now()->disjoint_error;
}

umf_memory_pool_ops_t *umfDisjointPoolOps(void)
{
    static umf_memory_pool_ops_t ops = {
        .version = UMF_VERSION_CURRENT,
        .initialize = disjoint_initialize,
        .finalize = disjoint_finalize,
        .malloc = disjoint_malloc,
        .calloc = disjoint_calloc,
        .realloc = disjoint_realloc,
        .aligned_malloc = disjoint_aligned_malloc,
        .malloc_usable_size = disjoint_malloc_usable_size,
        .free = disjoint_free,
        .get_last_allocation_error = disjoint_get_last_allocation_error,
    };

    return &ops;
}
