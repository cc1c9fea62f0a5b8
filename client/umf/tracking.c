/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the pool's own: an entry of the tracker for each coarse allocation. The tracker's lock is never held while
 * a provider is called, since that may take long, and come back to us.
 *
 * Memory of others: one record for each handle that is open in a pool, found by the handle's bytes. Opening and closing
 * call the provider without a lock as well; meanwhile the record says so, and whoever wants the same handle waits.
 */
#include "umf/tracking.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/steal.h"
#include "umf/pool.h"
#include "umf/provider.h"
#include "umf/tracker.h"

struct tracking {
    umf_memory_provider_handle_t upstream;
    umf_memory_pool_handle_t pool;
    struct opened *opened; /* hash by handle, with the lock below */
};

/* ---- memory of the pool's own ---------------------------------------------------------------------------- */

struct new {
    umf_memory_provider_handle_t upstream;
    umf_memory_pool_handle_t pool;
};

static umf_result_t initialize(void *params, void **provider)
{
    const struct new *new = params;
    struct tracking *tracking = calloc(1, sizeof(*tracking));

    if (!tracking)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    tracking->upstream = new->upstream;
    tracking->pool = new->pool;
    *provider = tracking;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t do_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct tracking *tracking = provider;
    struct tracked *tracked;
    void *got = NULL;
    umf_result_t result = umfMemoryProviderAlloc(tracking->upstream, size, alignment, &got);

    if (result != UMF_RESULT_SUCCESS)
        return result;
    if (got) {
        tracked = calloc(1, sizeof(*tracked));
        if (!tracked) {
            (void)umfMemoryProviderFree(tracking->upstream, got, size);
            return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        }
        tracked->kind = TRACKED_OWN;
        tracked->start = (uintptr_t)got;
        tracked->size = size;
        tracked->pool = tracking->pool;
        tracker_lock();
        tracker_insert(tracked);
        tracker_unlock();
    }
    *ptr = got;
    return UMF_RESULT_SUCCESS;
}

/* The handle that an entry has, if any, is given back: the entry is about to change or has gone. */
static void put_handle(struct tracking *tracking, void *data)
{
    if (!data)
        return;
    (void)umfMemoryProviderPutIPCHandle(tracking->upstream, data);
    free(data);
}

/* Out of the tracker first: the provider may give the addresses to another thread at once. */
static umf_result_t do_free(void *provider, void *ptr, size_t size)
{
    struct tracking *tracking = provider;
    struct tracked *tracked = NULL;
    umf_result_t result;

    if (ptr) {
        tracker_lock();
        tracked = tracker_find_base(TRACKED_OWN, ptr, tracking->pool);
        if (tracked)
            tracker_remove(tracked);
        tracker_unlock();
    }
    if (tracked) {
        put_handle(tracking, steal_ptr(&tracked->ipc_data));
        size = size ? size : tracked->size;
    }
    result = umfMemoryProviderFree(tracking->upstream, ptr, size);
    if (result == UMF_RESULT_SUCCESS) {
        free(tracked);
    } else if (tracked) {
        tracker_lock();
        tracker_insert(tracked);
        tracker_unlock();
    }
    return result;
}

/* Handles of what the pool has not freed, and then the entries. */
static void forget_own(struct tracking *tracking)
{
    struct tracked *taken;

    tracker_lock();
    taken = tracker_take_pool(tracking->pool);
    tracker_unlock();
    while (taken) {
        struct tracked *next = taken->outer;

        put_handle(tracking, taken->ipc_data);
        free(taken);
        taken = next;
    }
}

/* ---- parts ----------------------------------------------------------------------------------------------- */

/* With the lock for changing: the allocation of just this range, without its handle, which goes to *data. */
static struct tracked *find_whole(struct tracking *tracking, const void *ptr, size_t size, void **data)
{
    struct tracked *tracked = tracker_find_base(TRACKED_OWN, ptr, tracking->pool);

    if (!tracked || (size && tracked->size != size))
        return NULL;
    *data = steal_ptr(&tracked->ipc_data);
    return tracked;
}

static umf_result_t do_split(void *provider, void *ptr, size_t total, size_t first)
{
    struct tracking *tracking = provider;
    _cleanup_free_ struct tracked *rest = malloc(sizeof(*rest));
    struct tracked *tracked;
    void *data = NULL;
    umf_result_t result;

    if (!rest)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    tracker_lock();
    tracked = find_whole(tracking, ptr, total, &data);
    tracker_unlock();
    put_handle(tracking, data);
    if (!tracked)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderAllocationSplit(tracking->upstream, ptr, total, first);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    /* the allocation is its caller's, so nobody has freed it meanwhile */
    tracker_lock();
    tracker_split(tracked, first, steal_ptr(&rest));
    tracker_unlock();
    return UMF_RESULT_SUCCESS;
}

static umf_result_t do_merge(void *provider, void *low_ptr, void *high_ptr, size_t total)
{
    struct tracking *tracking = provider;
    struct tracked *low, *high;
    void *low_data = NULL, *high_data = NULL;
    umf_result_t result;

    tracker_lock();
    low = find_whole(tracking, low_ptr, 0, &low_data);
    high = find_whole(tracking, high_ptr, 0, &high_data);
    if (!low || !high || low->start + low->size != high->start || low->size + high->size != total)
        low = NULL;
    tracker_unlock();
    put_handle(tracking, low_data);
    put_handle(tracking, high_data);
    if (!low)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    result = umfMemoryProviderAllocationMerge(tracking->upstream, low_ptr, high_ptr, total);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    tracker_lock();
    tracker_merge(low, high);
    tracker_unlock();
    free(high);
    return UMF_RESULT_SUCCESS;
}

/* ---- handles of one's own -------------------------------------------------------------------------------- */

/* With a lock: the pool's allocation around ptr. */
static struct tracked *find_around(struct tracking *tracking, const void *ptr)
{
    struct tracked *tracked = tracker_find(TRACKED_OWN, ptr);

    while (tracked && tracked->pool != tracking->pool)
        tracked = tracked->outer;
    return tracked;
}

/* Keeps a new handle with the allocation; one that another thread has kept meanwhile is the right one instead. What is
 * not kept is left in *new. */
static void keep_handle(struct tracking *tracking, const void *base, size_t size, void *data, void **new)
{
    struct tracked *tracked;

    tracker_lock();
    tracked = tracker_find_base(TRACKED_OWN, base, tracking->pool);
    if (tracked && !tracked->ipc_data)
        tracked->ipc_data = steal_ptr(new);
    if (tracked)
        memcpy(data, tracked->ipc_data, size);
    tracker_unlock();
}

umf_result_t tracking_get_ipc(umf_memory_provider_handle_t provider, const void *ptr, size_t size, void *data,
                              void **base, size_t *base_size)
{
    struct tracking *tracking = provider->priv;
    const struct tracked *tracked;
    bool kept = false;
    void *new;
    umf_result_t result;

    tracker_lock_read();
    tracked = find_around(tracking, ptr);
    if (tracked) {
        *base = (void *)(uintptr_t)tracked->start;
        *base_size = tracked->size;
        kept = tracked->ipc_data;
        if (kept)
            memcpy(data, tracked->ipc_data, size);
    }
    tracker_unlock_read();
    if (!tracked)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (kept)
        return UMF_RESULT_SUCCESS;
    new = calloc(1, size);
    if (!new)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    result = umfMemoryProviderGetIPCHandle(tracking->upstream, *base, *base_size, new);
    if (result != UMF_RESULT_SUCCESS) {
        free(new);
        return result;
    }
    memcpy(data, new, size);
    keep_handle(tracking, *base, size, data, &new);
    put_handle(tracking, new);
    return UMF_RESULT_SUCCESS;
}

/* ---- others' memory -------------------------------------------------------------------------------------- */

enum opened_state { OPENING, OPEN, CLOSING };

struct opened {
    struct tracked tracked; /* in the tracker while it is OPEN; the first member */
    UT_hash_handle hh;
    struct tracking *tracking;
    enum opened_state state;
    uint64_t refs;
    uint8_t handle[];
};

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* of all records; before the tracker's lock */
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;   /* some record is OPEN, or has gone */

/* As many bytes at a time as a register has: handles are looked up often, and are nobody's to choose. */
static unsigned hash_of(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = size, word;

    for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (; size; bytes++, size--)
        hash = (hash ^ *bytes) * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(hash ^ hash >> 32);
}

/* With the lock, which is given up while somebody else is opening or closing it. */
static struct opened *find_opened(struct tracking *tracking, const void *handle, size_t size, unsigned hash)
{
    struct opened *opened;

    for (;;) {
        HASH_FIND_BYHASHVALUE(hh, tracking->opened, handle, size, hash, opened);
        if (!opened || opened->state == OPEN)
            return opened;
        pthread_cond_wait(&settled, &opening);
    }
}

/* With the lock: its record, in state OPENING. NULL without memory. */
static struct opened *begin(struct tracking *tracking, const void *handle, size_t size, unsigned hash)
{
    struct opened *opened = calloc(1, sizeof(*opened) + size);

    if (!opened)
        return NULL;
    opened->tracking = tracking;
    opened->tracked.kind = TRACKED_OPENED;
    opened->tracked.pool = tracking->pool;
    opened->refs = 1;
    memcpy(opened->handle, handle, size);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, tracking->opened, opened->handle, size, hash, opened);
    if (opened->hh.tbl)
        return opened;
    free(opened);
    return NULL;
}

/* With the lock: it is not open any more, and not known. */
static void end(struct opened *opened)
{
    HASH_DELETE(hh, opened->tracking->opened, opened);
    free(opened);
    pthread_cond_broadcast(&settled);
}

/* Without the lock, but for the tracker's. */
static umf_result_t open_it(struct opened *opened, size_t base_size)
{
    umf_memory_provider_handle_t upstream = opened->tracking->upstream;
    void *ptr = NULL;
    umf_result_t result = umfMemoryProviderOpenIPCHandle(upstream, opened->handle, &ptr);
    bool collides;

    if (result != UMF_RESULT_SUCCESS)
        return result;
    opened->tracked.start = (uintptr_t)ptr;
    opened->tracked.size = base_size;
    tracker_lock();
    collides = tracker_collides(&opened->tracked);
    if (!collides)
        tracker_insert(&opened->tracked);
    tracker_unlock();
    if (!collides)
        return UMF_RESULT_SUCCESS;
    /* it cannot be as large as the handle says */
    (void)umfMemoryProviderCloseIPCHandle(upstream, ptr, base_size);
    return UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

umf_result_t tracking_open(umf_memory_provider_handle_t provider, const void *data, size_t size, size_t base_size,
                           void **base)
{
    struct tracking *tracking = provider->priv;
    unsigned hash = hash_of(data, size);
    umf_result_t result = UMF_RESULT_SUCCESS;
    struct opened *opened;

    pthread_mutex_lock(&opening);
    opened = find_opened(tracking, data, size, hash);
    if (opened) {
        opened->refs++;
    } else {
        opened = begin(tracking, data, size, hash);
        if (!opened) {
            pthread_mutex_unlock(&opening);
            return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        }
        pthread_mutex_unlock(&opening);
        result = open_it(opened, base_size);
        pthread_mutex_lock(&opening);
        if (result == UMF_RESULT_SUCCESS) {
            opened->state = OPEN;
            pthread_cond_broadcast(&settled);
        } else {
            end(opened);
        }
    }
    if (result == UMF_RESULT_SUCCESS)
        *base = (void *)(uintptr_t)opened->tracked.start;
    pthread_mutex_unlock(&opening);
    return result;
}

/* With the lock. What its first opener has not been told of yet is open for nobody. */
static struct opened *find_open(const void *ptr)
{
    struct tracked *tracked;

    tracker_lock_read();
    tracked = tracker_find(TRACKED_OPENED, ptr);
    tracker_unlock_read();
    if (!tracked || container_of(tracked, struct opened, tracked)->state != OPEN)
        return NULL;
    return container_of(tracked, struct opened, tracked);
}

/* With the lock, which is given up meanwhile. */
static umf_result_t close_it(struct opened *opened)
{
    void *base = (void *)(uintptr_t)opened->tracked.start;
    umf_result_t result;

    opened->state = CLOSING;
    tracker_lock();
    tracker_remove(&opened->tracked);
    tracker_unlock();
    pthread_mutex_unlock(&opening);
    result = umfMemoryProviderCloseIPCHandle(opened->tracking->upstream, base, opened->tracked.size);
    pthread_mutex_lock(&opening);
    end(opened);
    return result;
}

umf_result_t tracking_close(const void *ptr)
{
    umf_result_t result = UMF_RESULT_SUCCESS;
    struct opened *opened;

    pthread_mutex_lock(&opening);
    opened = find_open(ptr);
    if (!opened)
        result = UMF_RESULT_ERROR_INVALID_ARGUMENT;
    else if (!--opened->refs)
        result = close_it(opened);
    pthread_mutex_unlock(&opening);
    return result;
}

/* ---- around a fork --------------------------------------------------------------------------------------- */

void tracking_fork_prepare(void)
{
    pthread_mutex_lock(&opening);
}

void tracking_fork_parent(void)
{
    pthread_mutex_unlock(&opening);
}

void tracking_fork_child(void)
{
    (void)pthread_mutex_init(&opening, NULL);
    (void)pthread_cond_init(&settled, NULL);
}

/* ---- the rest is passed on ------------------------------------------------------------------------------- */

static umf_memory_provider_handle_t upstream_of(void *provider)
{
    return ((struct tracking *)provider)->upstream;
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

static void finalize(void *provider)
{
    free(provider);
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

umf_result_t tracking_new(umf_memory_provider_handle_t upstream, umf_memory_pool_handle_t pool,
                          umf_memory_provider_handle_t *ret)
{
    struct new new = {.upstream = upstream, .pool = pool};

    return provider_new(&tracking_ops, &new, true, ret);
}

void tracking_free(umf_memory_provider_handle_t provider)
{
    struct tracking *tracking = provider->priv;
    struct opened *opened, *next;

    pthread_mutex_lock(&opening);
    HASH_ITER(hh, tracking->opened, opened, next)
        (void)close_it(opened);
    pthread_mutex_unlock(&opening);
    forget_own(tracking);
    umfMemoryProviderDestroy(provider);
}
