/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is an index for each level, whose ranges do not overlap. A range is one level above what encloses it, so the
 * innermost is on the highest level. Most programs have one level. Higher levels are searched only after they were
 * used.
 */
#include "umf/owned.h"

#include <errno.h>
#include <stdlib.h>

#include "base/range_index.h"
#include "umf/ipc_lock.h"
#include "umf/pool.h"

#define LEVELS 16

static struct range_index levels[LEVELS];
static struct range_index handles[LEVELS]; /* by the start of the range */
static unsigned n_levels = 1;              /* how many were ever used */
pthread_mutex_t owned_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static void to_owned(const struct range_entry *entry, unsigned level, struct owned *owned)
{
    *owned = (struct owned){.start = entry->start, .size = entry->size, .pool = entry->value, .level = level};
}

bool owned_find(const void *ptr, struct owned *ret)
{
    struct range_entry entry;

    for (unsigned level = __atomic_load_n(&n_levels, __ATOMIC_RELAXED); level--;)
        if (range_index_find(&levels[level], (uintptr_t)ptr, &entry)) {
            to_owned(&entry, level, ret);
            return true;
        }
    return false;
}

bool owned_find_base(const void *ptr, umf_memory_pool_handle_t pool, struct owned *ret)
{
    struct range_entry entry;

    for (unsigned level = __atomic_load_n(&n_levels, __ATOMIC_RELAXED); level--;)
        if (range_index_find(&levels[level], (uintptr_t)ptr, &entry) && entry.start == (uintptr_t)ptr &&
            entry.value == pool) {
            to_owned(&entry, level, ret);
            return true;
        }
    return false;
}

void *owned_handle(const struct owned *owned)
{
    struct range_entry entry;

    return range_index_find(&handles[owned->level], owned->start, &entry) ? entry.value : NULL;
}

bool owned_next(umf_memory_pool_handle_t pool, struct owned *owned)
{
    uint64_t from = owned->start;
    struct range_entry entry;

    for (unsigned level = owned->level; level < n_levels; level++, from = 0)
        for (; range_index_next(&levels[level], from, &entry); from = entry.start + (entry.size ? entry.size : 1))
            if (entry.value == pool) {
                to_owned(&entry, level, owned);
                return true;
            }
    return false;
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

bool owned_keep_handle(const struct owned *owned, void *handle)
{
    return !range_index_insert(&handles[owned->level], owned->start, 1, handle);
}

void *owned_take_handle(const struct owned *owned)
{
    struct range_entry entry;

    return range_index_take(&handles[owned->level], owned->start, 0, NULL, &entry) ? entry.value : NULL;
}

/* Readers that copy handles hold ipc_lock_read(). */
void owned_free_handle(void *handle)
{
    if (!handle)
        return;
    ipc_lock();
    ipc_unlock();
    free(handle);
}

bool owned_take(umf_memory_pool_handle_t pool, const void *ptr, uint64_t size, struct owned *ret)
{
    struct range_entry entry;

    for (unsigned level = n_levels; level--;)
        if (range_index_take(&levels[level], (uintptr_t)ptr, size, pool, &entry)) {
            to_owned(&entry, level, ret);
            pool->n_owned--;
            return true;
        }
    return false;
}

/* Is the range within another of this level? Others that it overlaps are dropped. */
static bool owned_is_enclosed(unsigned level, uint64_t start, uint64_t size)
{
    uint64_t last = start + (size ? size - 1 : 0);
    struct range_entry there;
    struct owned stale;

    while (range_index_next(&levels[level], start, &there) && there.start <= last) {
        if (there.start <= start && range_entry_holds(&there, last))
            return true;
        to_owned(&there, level, &stale);
        (void)range_index_remove(&levels[level], there.start);
        stale.pool->n_owned--;
        owned_free_handle(owned_take_handle(&stale));
    }
    return false;
}

/* Enters the range on the first level from this one where nothing overlaps it. A new range goes above what encloses it,
 * and drops what does not. */
static umf_result_t owned_enter(umf_memory_pool_handle_t pool, uint64_t start, uint64_t size, unsigned level,
                                bool is_new)
{
    int r = -EEXIST;

    while (level < LEVELS && (r = range_index_insert(&levels[level], start, size, pool)) == -EEXIST)
        if (!is_new || owned_is_enclosed(level, start, size))
            level++;
    if (r)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (level >= n_levels)
        __atomic_store_n(&n_levels, level + 1, __ATOMIC_RELAXED);
    pool->n_owned++;
    return UMF_RESULT_SUCCESS;
}

umf_result_t owned_add(umf_memory_pool_handle_t pool, uint64_t start, uint64_t size)
{
    unsigned level = 0;

    if (size && size - 1 > UINT64_MAX - start)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    for (unsigned i = n_levels - 1; i && !level; i--)
        if (owned_is_enclosed(i, start, size))
            level = i + 1;
    return owned_enter(pool, start, size, level, true);
}

umf_result_t owned_put_back(const struct owned *owned)
{
    return owned_enter(owned->pool, owned->start, owned->size, owned->level, false);
}

umf_result_t owned_split(const struct owned *owned, uint64_t address)
{
    if (range_index_split(&levels[owned->level], address))
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    owned->pool->n_owned++;
    return UMF_RESULT_SUCCESS;
}

umf_result_t owned_merge(const struct owned *low, uint64_t high)
{
    if (range_index_merge(&levels[low->level], low->start, high))
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    low->pool->n_owned--;
    return UMF_RESULT_SUCCESS;
}
