/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each coarse allocation of a pool has an entry in owned.h until it is freed, which is split and merged with it. The
 * mutex of the entries is never held during a call of a provider, which may take long, or call us. So an entry that was
 * found before such a call is looked up again after it.
 */
#include "umf/tracking.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "umf/ipc_lock.h"
#include "umf/mutex.h"
#include "umf/owned.h"
#include "umf/pool.h"

/* ---- getting and freeing ----------------------------------------------------------------------------------------- */

static umf_result_t tracked_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    umf_memory_pool_handle_t pool = provider;
    void *got = NULL;
    umf_result_t result = umfMemoryProviderAlloc(pool->provider, size, alignment, &got);

    if (result == UMF_RESULT_SUCCESS && got) {
        pthread_mutex_lock(&owned_mutex);
        result = owned_add(pool, (uintptr_t)got, size);
        pthread_mutex_unlock(&owned_mutex);
        if (result != UMF_RESULT_SUCCESS)
            (void)umfMemoryProviderFree(pool->provider, got, size);
    }
    if (result == UMF_RESULT_SUCCESS)
        *ptr = got;
    return result;
}

/* Gives a handle back to the provider; NULL is none. An entry's handle goes when the entry changes. */
static void put_handle(umf_memory_pool_handle_t pool, void *data)
{
    if (!data)
        return;
    (void)umfMemoryProviderPutIPCHandle(pool->provider, data);
    owned_free_handle(data);
}

/* What is about to be freed: an allocation or a part of one. */
struct freed {
    struct owned owned;          /* what was taken out; its pool is NULL if nothing was */
    bool has_before, has_behind; /* more of the same allocation remains */
    void *ipc_data;              /* of the whole allocation */
};

/* With the mutex. Cuts off what is not freed. */
static umf_result_t cut_owned(const struct owned *whole, struct freed *freed, size_t size)
{
    struct owned *part = &freed->owned;
    umf_result_t result = UMF_RESULT_SUCCESS;

    if (freed->has_before)
        result = owned_split(whole, part->start);
    if (result != UMF_RESULT_SUCCESS || !freed->has_behind)
        return result;
    result = owned_split(part, part->start + size);
    if (result == UMF_RESULT_SUCCESS)
        part->size = size;
    else if (freed->has_before)
        (void)owned_merge(whole, part->start);
    return result;
}

static umf_result_t take_owned(umf_memory_pool_handle_t pool, const void *ptr, size_t size, struct freed *freed)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&owned_mutex);
    struct owned whole;
    uint64_t before;
    umf_result_t result;

    if (owned_take(pool, ptr, size, &freed->owned)) {
        freed->ipc_data = owned_take_handle(&freed->owned);
        return UMF_RESULT_SUCCESS;
    }
    /* perhaps it is a part of one */
    if (!size || (!owned_find_base(ptr, pool, &whole) && !owned_find(ptr, &whole)) || whole.pool != pool)
        return UMF_RESULT_SUCCESS;
    before = (uintptr_t)ptr - whole.start;
    freed->owned = whole;
    freed->owned.start += before;
    freed->owned.size -= before;
    freed->has_before = before;
    freed->has_behind = size < freed->owned.size;
    result = cut_owned(&whole, freed, size);
    if (result != UMF_RESULT_SUCCESS) {
        freed->owned.pool = NULL;
        return result;
    }
    freed->ipc_data = owned_take_handle(&whole);
    (void)owned_take(pool, ptr, 0, &freed->owned);
    return UMF_RESULT_SUCCESS;
}

/* Undoes take_owned(), except for the handle. Without memory, the pool is no longer found by these addresses. */
static void put_back_freed(const struct freed *freed)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&owned_mutex);
    struct owned owned = freed->owned, before;

    if (owned_put_back(&owned) != UMF_RESULT_SUCCESS)
        return;
    if (freed->has_behind)
        (void)owned_merge(&owned, owned.start + owned.size);
    if (freed->has_before && owned_find((void *)(uintptr_t)(owned.start - 1), &before) && before.pool == owned.pool)
        (void)owned_merge(&before, owned.start);
}

/* The entry is taken out first, since the provider may give the addresses to another thread at once. With size 0, which
 * the proxy pool uses, the entry has the size. */
static umf_result_t tracked_free(void *provider, void *ptr, size_t size)
{
    umf_memory_pool_handle_t pool = provider;
    struct freed freed = {.ipc_data = NULL};
    umf_result_t result = UMF_RESULT_SUCCESS;

    if (ptr)
        result = take_owned(pool, ptr, size, &freed);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    put_handle(pool, freed.ipc_data);
    if (!size)
        size = freed.owned.size;
    result = umfMemoryProviderFree(pool->provider, ptr, size);
    if (result != UMF_RESULT_SUCCESS && freed.owned.pool)
        put_back_freed(&freed);
    return result;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* Finds the pool's allocation of exactly this range; of any size if `size` is 0. */
static bool find_whole(umf_memory_pool_handle_t pool, const void *ptr, size_t size, struct owned *ret)
{
    return owned_find_base(ptr, pool, ret) && (!size || ret->size == size);
}

/* Splits the entry as the provider has split the allocation, and takes its handle. */
static umf_result_t split_owned(umf_memory_pool_handle_t pool, const void *ptr, size_t total, size_t first, void **data)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&owned_mutex);
    struct owned owned;
    umf_result_t result;

    if (!find_whole(pool, ptr, total, &owned))
        return UMF_RESULT_SUCCESS;
    result = owned_split(&owned, owned.start + first);
    if (result == UMF_RESULT_SUCCESS)
        *data = owned_take_handle(&owned);
    return result;
}

static umf_result_t tracked_split(void *provider, void *ptr, size_t total, size_t first)
{
    umf_memory_pool_handle_t pool = provider;
    struct owned owned;
    void *data = NULL;
    umf_result_t result;

    if (!find_whole(pool, ptr, total, &owned))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderAllocationSplit(pool->provider, ptr, total, first);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    result = split_owned(pool, ptr, total, first, &data);
    if (result != UMF_RESULT_SUCCESS)
        (void)umfMemoryProviderAllocationMerge(pool->provider, ptr, (char *)ptr + first, total);
    put_handle(pool, data);
    return result;
}

/* Finds two adjacent allocations that have this size together. */
static bool find_both(umf_memory_pool_handle_t pool, const void *low_ptr, const void *high_ptr, size_t total,
                      struct owned *low, struct owned *high)
{
    return find_whole(pool, low_ptr, 0, low) && find_whole(pool, high_ptr, 0, high) &&
           low->start + low->size == high->start && low->size + high->size == total && low->level == high->level;
}

/* Merges the entries as the provider has merged the allocations, and takes their handles. */
static umf_result_t merge_owned(umf_memory_pool_handle_t pool, const void *low_ptr, const void *high_ptr, size_t total,
                                void **low_data, void **high_data)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&owned_mutex);
    struct owned low, high;
    umf_result_t result;

    if (!find_both(pool, low_ptr, high_ptr, total, &low, &high))
        return UMF_RESULT_SUCCESS;
    result = owned_merge(&low, high.start);
    if (result == UMF_RESULT_SUCCESS) {
        *low_data = owned_take_handle(&low);
        *high_data = owned_take_handle(&high);
    }
    return result;
}

static umf_result_t tracked_merge(void *provider, void *low_ptr, void *high_ptr, size_t total)
{
    umf_memory_pool_handle_t pool = provider;
    void *low_data = NULL, *high_data = NULL;
    struct owned low, high;
    umf_result_t result;

    if (!find_both(pool, low_ptr, high_ptr, total, &low, &high))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderAllocationMerge(pool->provider, low_ptr, high_ptr, total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    result = merge_owned(pool, low_ptr, high_ptr, total, &low_data, &high_data);
    if (result != UMF_RESULT_SUCCESS)
        (void)umfMemoryProviderAllocationSplit(pool->provider, low_ptr, total, low.size);
    put_handle(pool, low_data);
    put_handle(pool, high_data);
    return result;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* Keeps a new handle with the allocation, and sets *new to NULL. If another thread has kept one meanwhile, `data` gets
 * that. INVALID_ARGUMENT: the allocation was split, merged or freed meanwhile. */
static umf_result_t keep_handle(umf_memory_pool_handle_t pool, const void *base, size_t base_size, size_t size,
                                void *data, void **new)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&owned_mutex);
    struct owned owned;
    const void *kept;

    if (!find_whole(pool, base, base_size, &owned))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    kept = owned_handle(&owned);
    if (kept)
        memcpy(data, kept, size);
    else if (owned_keep_handle(&owned, *new))
        *new = NULL;
    else
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return UMF_RESULT_SUCCESS;
}

umf_result_t tracking_get_ipc(umf_memory_pool_handle_t pool, const void *ptr, size_t size, void *data, void **base,
                              size_t *base_size)
{
    const void *kept = NULL;
    struct owned owned;
    umf_result_t result;
    bool found;
    void *new;

    ipc_lock_read();
    found = owned_find(ptr, &owned) && owned.pool == pool;
    if (found)
        kept = owned_handle(&owned);
    if (kept)
        memcpy(data, kept, size);
    ipc_unlock_read();
    if (!found)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *base = (void *)(uintptr_t)owned.start;
    *base_size = owned.size;
    if (kept)
        return UMF_RESULT_SUCCESS;
    new = calloc(1, size ? size : 1);
    if (!new)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    result = umfMemoryProviderGetIPCHandle(pool->provider, *base, *base_size, new);
    if (result != UMF_RESULT_SUCCESS) {
        free(new);
        return result;
    }
    memcpy(data, new, size);
    result = keep_handle(pool, *base, *base_size, size, data, &new);
    /* a handle that was not kept is given back, and with that its copy in `data` is of no use */
    put_handle(pool, new);
    if (result == UMF_RESULT_ERROR_INVALID_ARGUMENT)
        return tracking_get_ipc(pool, ptr, size, data, base, base_size);
    return result;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

void tracking_init(umf_memory_pool_handle_t pool)
{
    pool->tracking = (struct umf_memory_provider_t){
        .ops =
            {
                .alloc = tracked_alloc,
                .free = tracked_free,
                .ext.allocation_merge = tracked_merge,
                .ext.allocation_split = tracked_split,
            },
        .priv = pool,
        .upstream = pool->provider,
    };
}

bool tracking_is(umf_memory_provider_handle_t provider)
{
    return provider->ops.alloc == tracked_alloc;
}

static void forget_owned(umf_memory_pool_handle_t pool, bool give_back)
{
    struct owned owned = {.start = 0}, taken;

    pthread_mutex_lock(&owned_mutex);
    while (pool->n_owned && owned_next(pool, &owned)) {
        void *data = owned_take_handle(&owned);

        (void)owned_take(pool, (void *)(uintptr_t)owned.start, 0, &taken);
        pthread_mutex_unlock(&owned_mutex);
        put_handle(pool, data);
        if (give_back)
            (void)umfMemoryProviderFree(pool->provider, (void *)(uintptr_t)taken.start, taken.size);
        pthread_mutex_lock(&owned_mutex);
    }
    pthread_mutex_unlock(&owned_mutex);
}

void tracking_give_back_all(umf_memory_provider_handle_t tracking)
{
    forget_owned(tracking->priv, true);
}

void tracking_deinit(umf_memory_pool_handle_t pool)
{
    forget_owned(pool, false);
}
