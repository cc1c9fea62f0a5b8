/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record is found by its handle when that is opened again, and by an address when it is closed. Both need only
 * ipc_lock_read(). Adding and removing records, and changing their states, needs opened_mutex and ipc_lock(), which are
 * "both locks" below.
 *
 * Ranges may overlap, since a provider may map memory where it has something already. They nest if several pools have
 * opened the same memory. Then the innermost is found.
 *
 * The provider is called without a lock to open and close. Meanwhile the record's state says so, and others wait for
 * it.
 *
 * Several pools may open one handle, and a provider may give them one address. When that address is closed, it is not
 * known which pool is meant. So records of the same range are counted together, and closed together.
 */
#include "umf/opened.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/memclient.h>

#include "base/hash.h"
#include "base/interval.h"
#include "base/list.h"
#include "umf/ipc_lock.h"
#include "umf/pool.h"

enum opened_state { OPENING, OPEN, CLOSING };

struct opened {
    struct interval range; /* in the tree while OPEN */
    uint64_t size;         /* as its handle says; 0 takes one byte in the tree */
    umf_memory_pool_handle_t pool;
    UT_hash_handle hh;      /* in the pool's table */
    struct opened *next;    /* of the same range, to be closed with it */
    struct list in_transit; /* unless it is OPEN */
    pthread_t thread;       /* that is in the provider for it */
    enum opened_state state;
    _Atomic int64_t opens;
    _Atomic int64_t uses; /* opens minus closes; only the sum over the same range has a meaning */
    uint8_t handle[];
};

pthread_mutex_t opened_mutex = PTHREAD_MUTEX_INITIALIZER; /* taken before ipc_lock() */
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER; /* a record has become OPEN, or is gone */
static struct list in_transit = LIST_INIT(in_transit);
static struct interval_tree open_ranges;

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* With a lock. */
static struct opened *opened_find(umf_memory_pool_handle_t pool, const void *handle, size_t size, unsigned hash)
{
    struct opened *opened;

    HASH_FIND_BYHASHVALUE(hh, pool->opened, handle, size, hash, opened);
    return opened;
}

static struct opened *opened_of(struct interval *range)
{
    return range ? container_of(range, struct opened, range) : NULL;
}

/* With a lock. Finds the innermost record around ptr. */
static struct opened *opened_find_around(const void *ptr)
{
    return opened_of(interval_innermost(&open_ranges, (uintptr_t)ptr, NULL));
}

/* With a lock. Finds the next record of the same range, outwards. */
static struct opened *next_same_range(struct opened *opened)
{
    struct opened *other = opened_of(interval_previous(&opened->range));

    return other && other->range.start == opened->range.start && other->size == opened->size ? other : NULL;
}

umf_memory_pool_handle_t opened_pool(const void *ptr)
{
    umf_memory_pool_handle_t pool = NULL;
    const struct opened *opened;

    ipc_lock_read();
    opened = opened_find_around(ptr);
    if (opened && pool_is_tracked(opened->pool))
        pool = opened->pool;
    ipc_unlock_read();
    return pool;
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

/* With both locks. From now on this thread is in the provider for the record. */
static void opened_leave(struct opened *opened, enum opened_state state)
{
    opened->state = state;
    opened->thread = pthread_self();
    list_append(&in_transit, &opened->in_transit);
}

/* With both locks. Adds a record in state OPENING. NULL: no memory. */
static struct opened *opened_begin(umf_memory_pool_handle_t pool, const void *handle, size_t size, unsigned hash,
                                   size_t base_size)
{
    struct opened *opened = calloc(1, sizeof(*opened) + size);

    if (!opened)
        return NULL;
    opened->size = base_size;
    opened->pool = pool;
    opened->opens = 1;
    opened->uses = 1;
    memcpy(opened->handle, handle, size);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, pool->opened, opened->handle, size, hash, opened);
    if (!opened->hh.tbl) {
        free(opened);
        return NULL;
    }
    opened_leave(opened, OPENING);
    return opened;
}

/* With both locks. The memory is at ptr now. */
static void opened_settle(struct opened *opened, const void *ptr)
{
    list_remove(&opened->in_transit);
    opened->state = OPEN;
    /* of records with one start the larger is first, so that an inner one comes after the outer one */
    opened->range = (struct interval){.start = (uintptr_t)ptr, .rank = UINT64_MAX - opened->size};
    opened->range.last = opened->range.start + (opened->size ? opened->size - 1 : 0);
    interval_insert(&open_ranges, &opened->range);
    pthread_cond_broadcast(&settled);
}

/* With both locks. Removes the record. */
static void opened_end(struct opened *opened)
{
    list_remove(&opened->in_transit);
    HASH_DELETE(hh, opened->pool->opened, opened);
    free(opened);
    pthread_cond_broadcast(&settled);
}

/* With the mutex, which is dropped meanwhile. The record is in transit. */
static umf_result_t call_close(struct opened *opened)
{
    umf_memory_provider_handle_t provider = opened->pool->provider;
    umf_result_t result;

    pthread_mutex_unlock(&opened_mutex);
    result = umfMemoryProviderCloseIPCHandle(provider, (void *)(uintptr_t)opened->range.start, opened->size);
    pthread_mutex_lock(&opened_mutex);
    ipc_lock();
    opened_end(opened);
    ipc_unlock();
    return result;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* With a lock. Opens an OPEN record once more. All handles of one memory have the same size. */
static umf_result_t opened_use(struct opened *opened, size_t base_size, void **base)
{
    if (opened->size != base_size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    atomic_fetch_add_explicit(&opened->opens, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&opened->uses, 1, memory_order_relaxed);
    *base = (void *)(uintptr_t)opened->range.start;
    return UMF_RESULT_SUCCESS;
}

/* The size of the broker's memory is known. For other memory the handle must be trusted. */
static bool is_so_large(const void *base, uint64_t size)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    if (memclient_address_query(base, &info) < 0 || !info.buffer)
        return true;
    return size <= info.length - ((uintptr_t)base - (uintptr_t)info.address);
}

/* Without a lock. */
static umf_result_t call_open(struct opened *opened, void **ptr)
{
    umf_memory_provider_handle_t provider = opened->pool->provider;
    umf_result_t result = umfMemoryProviderOpenIPCHandle(provider, opened->handle, ptr);

    if (result != UMF_RESULT_SUCCESS || is_so_large(*ptr, opened->size))
        return result;
    (void)umfMemoryProviderCloseIPCHandle(provider, *ptr, opened->size);
    return UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

/* With the mutex, which is dropped meanwhile. The pool does not have it open. */
static umf_result_t open_first(umf_memory_pool_handle_t pool, const void *handle, size_t size, unsigned hash,
                               size_t base_size, void **base)
{
    struct opened *opened;
    umf_result_t result;
    void *ptr = NULL;

    ipc_lock();
    opened = opened_begin(pool, handle, size, hash, base_size);
    ipc_unlock();
    if (!opened)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    pthread_mutex_unlock(&opened_mutex);
    result = call_open(opened, &ptr);
    pthread_mutex_lock(&opened_mutex);
    ipc_lock();
    if (result == UMF_RESULT_SUCCESS) {
        opened_settle(opened, ptr);
        *base = ptr;
    } else {
        opened_end(opened);
    }
    ipc_unlock();
    return result;
}

umf_result_t opened_open(umf_memory_pool_handle_t pool, const void *handle, size_t size, unsigned hash,
                         size_t base_size, void **base)
{
    struct opened *opened;
    umf_result_t result;

    ipc_lock_read();
    opened = opened_find(pool, handle, size, hash);
    if (opened && opened->state != OPEN)
        opened = NULL;
    result = opened ? opened_use(opened, base_size, base) : UMF_RESULT_SUCCESS;
    ipc_unlock_read();
    if (opened)
        return result;

    pthread_mutex_lock(&opened_mutex);
    while ((opened = opened_find(pool, handle, size, hash)) && opened->state != OPEN)
        pthread_cond_wait(&settled, &opened_mutex);
    result = opened ? opened_use(opened, base_size, base) : open_first(pool, handle, size, hash, base_size, base);
    pthread_mutex_unlock(&opened_mutex);
    return result;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

/* Counts down if the record stays open anyway, which needs no other lock. */
static bool close_one_of_many(const void *ptr)
{
    struct opened *opened;
    int64_t uses = 0;

    ipc_lock_read();
    opened = opened_find_around(ptr);
    if (opened && !next_same_range(opened))
        uses = atomic_load_explicit(&opened->uses, memory_order_relaxed);
    while (uses > 1 && !atomic_compare_exchange_weak_explicit(&opened->uses, &uses, uses - 1, memory_order_relaxed,
                                                              memory_order_relaxed))
        ;
    ipc_unlock_read();
    return uses > 1;
}

/* With both locks. All records of the range are about to be closed. */
static void opened_leave_all(struct opened *opened)
{
    for (; opened; opened = opened->next) {
        opened->next = next_same_range(opened);
        interval_remove(&open_ranges, &opened->range);
        opened_leave(opened, CLOSING);
    }
}

/* With both locks. The uses of all records of the range. */
static int64_t uses_of_all(struct opened *opened)
{
    int64_t uses = 0;

    for (; opened; opened = next_same_range(opened))
        uses += opened->uses;
    return uses;
}

umf_result_t opened_close(const void *ptr)
{
    umf_result_t result = UMF_RESULT_SUCCESS, one;
    struct opened *opened, *next;

    if (close_one_of_many(ptr))
        return UMF_RESULT_SUCCESS;
    pthread_mutex_lock(&opened_mutex);
    ipc_lock();
    opened = opened_find_around(ptr);
    if (!opened)
        result = UMF_RESULT_ERROR_INVALID_ARGUMENT;
    else
        opened->uses--;
    if (opened && !uses_of_all(opened))
        opened_leave_all(opened);
    else
        opened = NULL;
    ipc_unlock();
    for (; opened; opened = next) {
        next = opened->next;
        one = call_close(opened);
        result = result == UMF_RESULT_SUCCESS ? one : result;
    }
    pthread_mutex_unlock(&opened_mutex);
    return result;
}

/*
 * With both locks. The record is about to go before others of the same range, and its uses become theirs. They are at
 * most as many as the others were opened: closes so far are taken to be those of its own users, since a careful program
 * closes all that a pool has open before it destroys the pool.
 */
static void opened_hand_over_uses(struct opened *opened)
{
    struct opened *other = opened_find_around((void *)(uintptr_t)opened->range.start);

    while (other && (other == opened || other->size != opened->size))
        other = next_same_range(other);
    if (!other)
        return;
    other->uses += opened->uses;
    if (other->uses > other->opens)
        other->uses = (int64_t)other->opens;
}

void opened_close_all(umf_memory_pool_handle_t pool)
{
    pthread_mutex_lock(&opened_mutex);
    while (pool->opened) {
        struct opened *opened = pool->opened;

        /* another thread may be closing it along with its range */
        if (opened->state != OPEN) {
            pthread_cond_wait(&settled, &opened_mutex);
            continue;
        }
        ipc_lock();
        opened_hand_over_uses(opened);
        interval_remove(&open_ranges, &opened->range);
        opened_leave(opened, CLOSING);
        ipc_unlock();
        (void)call_close(opened);
    }
    pthread_mutex_unlock(&opened_mutex);
}

/* ---- around a fork ----------------------------------------------------------------------------------------------- */

/* Threads that were in the provider do not exist here, so their records go. What they opened is unknown. */
void opened_in_child(void)
{
    (void)pthread_cond_init(&settled, NULL);
    list_for_each_entry_safe(opened, &in_transit, struct opened, in_transit)
        if (!pthread_equal(opened->thread, pthread_self()))
            opened_end(opened);
}
