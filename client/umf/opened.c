/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record is found by its handle's bytes when it is opened again, and by addresses when it is closed; both without
 * any lock but ipc_lock_read(). Whatever changes which records there are, or their states, holds the lock below and
 * ipc_lock().
 *
 * A provider may well put it where it has something already, so ranges may overlap. They nest where several pools
 * opened the same; then the innermost is meant.
 *
 * Opening and closing call the provider without a lock; meanwhile the record says so, and whoever wants it waits.
 *
 * Several pools may have opened one handle, and a provider may give them one address. Closing says just that address,
 * so it is not known whose it is: records of the same range count together, and close together.
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
    struct interval range;  /* in the tree while it is OPEN */
    uint64_t size;          /* as its handle says; 0 takes 1 byte in the tree */
    umf_memory_pool_handle_t pool;
    UT_hash_handle hh;      /* in its pool's */
    struct opened *next;    /* of the same range, which are closing */
    struct list in_transit; /* while it is not OPEN */
    pthread_t thread;       /* whose doing that is */
    enum opened_state state;
    _Atomic int64_t opens;
    _Atomic int64_t uses; /* opens less closes; of the same range only the sum means something */
    uint8_t handle[];
};

pthread_mutex_t opened_mutex = PTHREAD_MUTEX_INITIALIZER; /* before ipc_lock */
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;    /* some record is OPEN, or has gone */
static struct list in_transit = LIST_INIT(in_transit);
static struct interval_tree open_ranges;

/* ---- finding --------------------------------------------------------------------------------------------- */

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

/* With a lock: the innermost that is open around ptr. */
static struct opened *opened_find_around(const void *ptr)
{
    return opened_of(interval_innermost(&open_ranges, (uintptr_t)ptr, NULL));
}

/* With a lock: the next record of the same range, outwards. */
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

/* ---- changing -------------------------------------------------------------------------------------------- */

/* With the lock: this thread goes to the provider for it. */
static void opened_leave(struct opened *opened, enum opened_state state)
{
    opened->state = state;
    opened->thread = pthread_self();
    list_append(&in_transit, &opened->in_transit);
}

/* With both locks: its record, in state OPENING. NULL without memory. */
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

/* With both locks: it is at this address. */
static void opened_settle(struct opened *opened, const void *ptr)
{
    list_remove(&opened->in_transit);
    opened->state = OPEN;
    /* of those that start at one address the larger comes first, so that an inner one comes behind the outer one */
    opened->range = (struct interval){.start = (uintptr_t)ptr, .rank = UINT64_MAX - opened->size};
    opened->range.last = opened->range.start + (opened->size ? opened->size - 1 : 0);
    interval_insert(&open_ranges, &opened->range);
    pthread_cond_broadcast(&settled);
}

/* With both locks: it is not open any more, and not known. */
static void opened_end(struct opened *opened)
{
    list_remove(&opened->in_transit);
    HASH_DELETE(hh, opened->pool->opened, opened);
    free(opened);
    pthread_cond_broadcast(&settled);
}

/* With the lock, which is given up meanwhile. The record is in transit. */
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

/* ---- opening --------------------------------------------------------------------------------------------- */

/* With a lock: one more of what is OPEN. Handles of the same memory know the same size. */
static umf_result_t opened_use(struct opened *opened, size_t base_size, void **base)
{
    if (opened->size != base_size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    atomic_fetch_add_explicit(&opened->opens, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&opened->uses, 1, memory_order_relaxed);
    *base = (void *)(uintptr_t)opened->range.start;
    return UMF_RESULT_SUCCESS;
}

/* Memory of the broker is known to be as large as it is; of other memory the handle must be believed. */
static bool is_so_large(const void *base, uint64_t size)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    if (memclient_query_address(base, &info) < 0 || !info.buffer)
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

/* With the lock, which is given up meanwhile: nobody has it open. */
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

/* ---- closing --------------------------------------------------------------------------------------------- */

/* Counts down what stays open in any case, which is no change. */
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

/* With both locks: takes all of the same range to the provider. */
static struct opened *opened_leave_all(struct opened *opened)
{
    struct opened *next;

    for (struct opened *at = opened; at; at = next) {
        next = next_same_range(at);
        interval_remove(&open_ranges, &at->range);
        opened_leave(at, CLOSING);
        at->next = next;
    }
    return opened;
}

/* With both locks: how many uses they have together. */
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
        opened = opened_leave_all(opened);
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
 * With both locks: it goes before the others of the same range. What was closed was closed by its own users first, so
 * far as there were any, since a pool is not destroyed with something open in it by those who mind.
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

        /* closing another of the same range takes it along */
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

/* ---- around a fork --------------------------------------------------------------------------------------- */

/* Threads that were at the provider are not here: nobody is to wait for them. What they opened nobody knows. */
void opened_in_child(void)
{
    (void)pthread_cond_init(&settled, NULL);
    list_for_each_entry_safe(opened, &in_transit, struct opened, in_transit)
        if (!pthread_equal(opened->thread, pthread_self()))
            opened_end(opened);
}
