/* SPDX-License-Identifier: Apache-2.0 */
/* What a disjoint pool prints to stderr. Nothing is counted unless PoolTrace asks for it. */
#include "umf/pool_disjoint.h"

#include <stdio.h>

/* The values of PoolTrace. */
enum { TRACE_TOTALS = 1, TRACE_BUCKETS, TRACE_CALLS };

static const char *trace_name(const struct disjoint *pool)
{
    return pool->params.Name ? pool->params.Name : "disjoint_pool";
}

void trace_alloc(struct disjoint *pool, struct bucket *bucket, const void *ptr, size_t size, size_t alignment)
{
    bool from_pool = !thread_now()->disjoint_grew;

    if (bucket) {
        atomic_fetch_add(&bucket->n_allocs, 1);
        atomic_fetch_add(&bucket->n_from_pool, from_pool);
    }
    if (pool->params.PoolTrace >= TRACE_CALLS)
        fprintf(stderr, "%s: allocated %zu bytes aligned at %zu from %s: %p\n", trace_name(pool), size, alignment,
                from_pool ? "the pool" : "the provider", ptr);
}

void trace_free(struct disjoint *pool, struct bucket *bucket, const void *ptr, bool to_pool)
{
    if (bucket)
        atomic_fetch_add(&bucket->n_frees, 1);
    if (pool->params.PoolTrace >= TRACE_CALLS)
        fprintf(stderr, "%s: freed %p to %s\n", trace_name(pool), ptr, to_pool ? "the pool" : "the provider");
}

static void trace_count(atomic_size_t *n, atomic_size_t *max, int more)
{
    size_t now = atomic_fetch_add(n, (size_t)more) + (size_t)more;
    size_t before = atomic_load(max);

    while (now > before && !atomic_compare_exchange_weak(max, &before, now))
        ;
}

void trace_slabs(struct bucket *bucket, int in_use, int in_pool)
{
    trace_count(&bucket->n_in_pool, &bucket->max_in_pool, in_pool);
    trace_count(&bucket->n_in_use, &bucket->max_in_use, in_use);
}

static void print_bucket(const struct bucket *bucket)
{
    fprintf(stderr, "%12zu %12zu %12zu %12zu %14zu %14zu\n", bucket->size, bucket->n_allocs, bucket->n_frees,
            bucket->n_from_pool, bucket->max_in_use, bucket->max_in_pool);
}

void trace_end(struct disjoint *pool)
{
    const umf_disjoint_pool_shared_limits_t *limits = pool->params.SharedLimits;
    size_t n_allocs = 0, n_frees = 0, n_from_pool = 0, kept = 0;

    if (pool->params.PoolTrace >= TRACE_BUCKETS)
        fprintf(stderr, "%s: bucket       allocated        freed    from pool  most in use     most in pool\n",
                trace_name(pool));
    for (unsigned i = 0; i < pool->n_buckets; i++) {
        const struct bucket *bucket = &pool->buckets[i];

        n_allocs += bucket->n_allocs;
        n_frees += bucket->n_frees;
        n_from_pool += bucket->n_from_pool;
        kept += bucket->n_in_pool * bucket->slab_size;
        if (pool->params.PoolTrace >= TRACE_BUCKETS && bucket->n_allocs)
            print_bucket(bucket);
    }
    fprintf(stderr, "%s: %zu allocations, %zu frees, %zu from the pool; %zu bytes kept", trace_name(pool), n_allocs,
            n_frees, n_from_pool, kept);
    if (limits)
        fprintf(stderr, "; %zu of %zu by all pools with its limits", limits->total, limits->max);
    fputc('\n', stderr);
}
