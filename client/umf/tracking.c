/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each coarse allocation of a pool has an entry in the tracker, which lasts until it is freed, and follows it when it
 * is cut and joined. The tracker's lock is never held while a provider is called, since that may take long, and come
 * back to us. So what was found before such a call is looked for again behind it.
 */
#include "umf/tracking.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/steal.h"
#include "umf/pool.h"
#include "umf/provider.h"
#include "umf/tracker.h"

/* ---- getting and freeing --------------------------------------------------------------------------------- */

static umf_result_t initialize(void *params, void **provider)
{
    *provider = params; /* the pool */
    return UMF_RESULT_SUCCESS;
}

static void finalize(void *provider)
{
    (void)provider;
}

static umf_result_t do_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    umf_memory_pool_handle_t pool = provider;
    struct tracked *tracked;
    void *got = NULL;
    umf_result_t result = umfMemoryProviderAlloc(pool->provider, size, alignment, &got);

    if (result != UMF_RESULT_SUCCESS)
        return result;
    if (got) {
        tracked = calloc(1, sizeof(*tracked));
        if (!tracked) {
            (void)umfMemoryProviderFree(pool->provider, got, size);
            return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        }
        tracked->kind = TRACKED_OWN;
        tracked->start = (uintptr_t)got;
        tracked->size = size;
        tracked->pool = pool;
        tracker_lock();
        tracker_insert_new(tracked);
        tracker_unlock();
    }
    *ptr = got;
    return UMF_RESULT_SUCCESS;
}

/* The handle that an entry has, if any, is given back: the entry is about to change or has gone. */
static void put_handle(umf_memory_pool_handle_t pool, void *data)
{
    if (!data)
        return;
    (void)umfMemoryProviderPutIPCHandle(pool->provider, data);
    free(data);
}

/* What is being freed: an allocation or a part of one. */
struct freed {
    struct tracked *tracked; /* out of the tracker, with just this range; NULL if it was not there */
    bool has_before, has_behind; /* of the same allocation, there is more, which is still in the tracker */
    void *ipc_data;          /* of the whole */
};

/* With the lock for changing. */
static umf_result_t take(umf_memory_pool_handle_t pool, const void *ptr, size_t size, struct freed *freed)
{
    uint64_t address = (uintptr_t)ptr;
    struct tracked *whole = tracker_find_base(TRACKED_OWN, ptr, pool);
    _cleanup_free_ struct tracked *part = NULL, *behind = NULL;

    if (!whole && size)
        whole = tracker_find(TRACKED_OWN, ptr);
    if (!whole || whole->pool != pool)
        return UMF_RESULT_SUCCESS;
    freed->has_before = address > whole->start;
    freed->has_behind = size && size < whole->size - (address - whole->start);
    part = freed->has_before ? malloc(sizeof(*part)) : NULL;
    behind = freed->has_behind ? malloc(sizeof(*behind)) : NULL;
    if ((freed->has_before && !part) || (freed->has_behind && !behind))
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    freed->ipc_data = steal_ptr(&whole->ipc_data);
    freed->tracked = whole;
    if (freed->has_before) {
        tracker_split(whole, address - whole->start, part);
        freed->tracked = steal_ptr(&part);
    }
    if (freed->has_behind)
        tracker_split(freed->tracked, size, steal_ptr(&behind));
    tracker_remove(freed->tracked);
    return UMF_RESULT_SUCCESS;
}

/* With the lock for changing: undoes that, but for the handle. */
static void put_back(umf_memory_pool_handle_t pool, const struct freed *freed)
{
    struct tracked *tracked = freed->tracked, *other;

    tracker_insert(tracked);
    if (freed->has_behind) {
        other = tracker_find_base(TRACKED_OWN, (void *)(uintptr_t)(tracked->start + tracked->size), pool);
        if (other) {
            tracker_merge(tracked, other);
            free(other);
        }
    }
    if (freed->has_before) {
        other = tracker_find(TRACKED_OWN, (void *)(uintptr_t)(tracked->start - 1));
        if (other && other->pool == pool) {
            tracker_merge(other, tracked);
            free(tracked);
        }
    }
}

/*
 * Out of the tracker first: the provider may give the addresses to another thread at once. Size 0 is the allocation's
 * own: the proxy pool does not know it.
 */
static umf_result_t do_free(void *provider, void *ptr, size_t size)
{
    umf_memory_pool_handle_t pool = provider;
    struct freed freed = {.tracked = NULL};
    umf_result_t result = UMF_RESULT_SUCCESS;

    if (ptr) {
        tracker_lock();
        result = take(pool, ptr, size, &freed);
        tracker_unlock();
    }
    if (result != UMF_RESULT_SUCCESS)
        return result;
    put_handle(pool, freed.ipc_data);
    if (freed.tracked && !size)
        size = freed.tracked->size;
    result = umfMemoryProviderFree(pool->provider, ptr, size);
    if (result == UMF_RESULT_SUCCESS) {
        free(freed.tracked);
    } else if (freed.tracked) {
        tracker_lock();
        put_back(pool, &freed);
        tracker_unlock();
    }
    return result;
}

/* ---- parts ----------------------------------------------------------------------------------------------- */

/* With a lock: the pool's allocation of just this range; any size if that is 0. */
static struct tracked *find_whole(umf_memory_pool_handle_t pool, const void *ptr, size_t size)
{
    struct tracked *tracked = tracker_find_base(TRACKED_OWN, ptr, pool);

    return tracked && (!size || tracked->size == size) ? tracked : NULL;
}

static umf_result_t do_split(void *provider, void *ptr, size_t total, size_t first)
{
    umf_memory_pool_handle_t pool = provider;
    _cleanup_free_ struct tracked *rest = malloc(sizeof(*rest));
    struct tracked *tracked;
    void *data = NULL;
    umf_result_t result;

    if (!rest)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    tracker_lock_read();
    tracked = find_whole(pool, ptr, total);
    tracker_unlock_read();
    if (!tracked)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderAllocationSplit(pool->provider, ptr, total, first);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    tracker_lock();
    tracked = find_whole(pool, ptr, total);
    if (tracked) {
        data = steal_ptr(&tracked->ipc_data);
        tracker_split(tracked, first, steal_ptr(&rest));
    }
    tracker_unlock();
    put_handle(pool, data);
    return UMF_RESULT_SUCCESS;
}

/* With a lock: two allocations that follow each other, and are so large together. */
static bool find_both(umf_memory_pool_handle_t pool, const void *low_ptr, const void *high_ptr, size_t total,
                      struct tracked **low, struct tracked **high)
{
    *low = find_whole(pool, low_ptr, 0);
    *high = find_whole(pool, high_ptr, 0);
    return *low && *high && (*low)->start + (*low)->size == (*high)->start && (*low)->size + (*high)->size == total;
}

static umf_result_t do_merge(void *provider, void *low_ptr, void *high_ptr, size_t total)
{
    umf_memory_pool_handle_t pool = provider;
    struct tracked *low, *high;
    void *low_data = NULL, *high_data = NULL;
    umf_result_t result;
    bool found;

    tracker_lock_read();
    found = find_both(pool, low_ptr, high_ptr, total, &low, &high);
    tracker_unlock_read();
    if (!found)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderAllocationMerge(pool->provider, low_ptr, high_ptr, total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    tracker_lock();
    if (find_both(pool, low_ptr, high_ptr, total, &low, &high)) {
        low_data = steal_ptr(&low->ipc_data);
        high_data = steal_ptr(&high->ipc_data);
        tracker_merge(low, high);
        free(high);
    }
    tracker_unlock();
    put_handle(pool, low_data);
    put_handle(pool, high_data);
    return UMF_RESULT_SUCCESS;
}

/* ---- handles --------------------------------------------------------------------------------------------- */

/* Keeps a new handle with the allocation; one that another thread has kept meanwhile is the right one instead. What is
 * not kept is left in *new. */
static void keep_handle(umf_memory_pool_handle_t pool, const void *base, size_t base_size, size_t size, void *data,
                        void **new)
{
    struct tracked *tracked;

    tracker_lock();
    tracked = find_whole(pool, base, base_size);
    if (tracked && tracked->ipc_data)
        memcpy(data, tracked->ipc_data, size);
    else if (tracked)
        tracked->ipc_data = steal_ptr(new);
    tracker_unlock();
}

umf_result_t tracking_get_ipc(umf_memory_pool_handle_t pool, const void *ptr, size_t size, void *data, void **base,
                              size_t *base_size)
{
    const struct tracked *tracked;
    bool found, kept = false;
    umf_result_t result;
    void *new;

    tracker_lock_read();
    tracked = tracker_find(TRACKED_OWN, ptr);
    found = tracked && tracked->pool == pool;
    if (found) {
        *base = (void *)(uintptr_t)tracked->start;
        *base_size = tracked->size;
        kept = tracked->ipc_data;
    }
    if (kept)
        memcpy(data, tracked->ipc_data, size);
    tracker_unlock_read();
    if (!found)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
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
    keep_handle(pool, *base, *base_size, size, data, &new);
    put_handle(pool, new);
    return UMF_RESULT_SUCCESS;
}

/* ---- the rest is passed on ------------------------------------------------------------------------------- */

static umf_memory_provider_handle_t upstream_of(void *provider)
{
    return ((umf_memory_pool_handle_t)provider)->provider;
}

static void get_last_native_error(void *provider, const char **message, int32_t *error)
{
    umfMemoryProviderGetLastNativeError(upstream_of(provider), message, error);
}

static umf_result_t get_recommended_page_size(void *provider, size_t size, size_t *page_size)
{
    return umfMemoryProviderGetRecommendedPageSize(upstream_of(provider), size, page_size);
}

static umf_result_t get_min_page_size(void *provider, void *ptr, size_t *page_size)
{
    return umfMemoryProviderGetMinPageSize(upstream_of(provider), ptr, page_size);
}

static const char *get_name(void *provider)
{
    return umfMemoryProviderGetName(upstream_of(provider));
}

static umf_result_t purge_lazy(void *provider, void *ptr, size_t size)
{
    return umfMemoryProviderPurgeLazy(upstream_of(provider), ptr, size);
}

static umf_result_t purge_force(void *provider, void *ptr, size_t size)
{
    return umfMemoryProviderPurgeForce(upstream_of(provider), ptr, size);
}

static umf_result_t get_ipc_handle_size(void *provider, size_t *size)
{
    return umfMemoryProviderGetIPCHandleSize(upstream_of(provider), size);
}

static umf_result_t get_ipc_handle(void *provider, const void *ptr, size_t size, void *data)
{
    return umfMemoryProviderGetIPCHandle(upstream_of(provider), ptr, size, data);
}

static umf_result_t put_ipc_handle(void *provider, void *data)
{
    return umfMemoryProviderPutIPCHandle(upstream_of(provider), data);
}

static umf_result_t open_ipc_handle(void *provider, void *data, void **ptr)
{
    return umfMemoryProviderOpenIPCHandle(upstream_of(provider), data, ptr);
}

static umf_result_t close_ipc_handle(void *provider, void *ptr, size_t size)
{
    return umfMemoryProviderCloseIPCHandle(upstream_of(provider), ptr, size);
}

/* ---- making one ------------------------------------------------------------------------------------------ */

static const umf_memory_provider_ops_t tracking_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = initialize,
    .finalize = finalize,
    .alloc = do_alloc,
    .free = do_free,
    .get_last_native_error = get_last_native_error,
    .get_recommended_page_size = get_recommended_page_size,
    .get_min_page_size = get_min_page_size,
    .get_name = get_name,
    .ext =
        {
            .purge_lazy = purge_lazy,
            .purge_force = purge_force,
            .allocation_merge = do_merge,
            .allocation_split = do_split,
        },
    .ipc =
        {
            .get_ipc_handle_size = get_ipc_handle_size,
            .get_ipc_handle = get_ipc_handle,
            .put_ipc_handle = put_ipc_handle,
            .open_ipc_handle = open_ipc_handle,
            .close_ipc_handle = close_ipc_handle,
        },
};

umf_result_t tracking_new(umf_memory_pool_handle_t pool, umf_memory_provider_handle_t *ret)
{
    return provider_new(&tracking_ops, pool, pool->provider, ret);
}

void tracking_free(umf_memory_provider_handle_t tracking)
{
    umf_memory_pool_handle_t pool = tracking->priv;
    struct tracked *tracked;

    tracker_lock();
    while (!list_is_empty(&pool->own)) {
        tracked = container_of(pool->own.next, struct tracked, in_pool);
        tracker_remove(tracked);
        tracker_unlock();
        put_handle(pool, tracked->ipc_data);
        free(tracked);
        tracker_lock();
    }
    tracker_unlock();
    umfMemoryProviderDestroy(tracking);
}
