/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks by which jemalloc allocates, frees, splits, merges and purges its extents. A hook returns true to refuse.
 *
 * jemalloc calls for an extent from one thread at a time. So what is known of it stays valid while its hook calls the
 * provider without the lock.
 */
#include "umf/pool_jemalloc.h"

#include <stdint.h>
#include <string.h>

#include "base/list.h"
#include "umf/mutex.h"

static struct jemalloc_memory *memory_of(extent_hooks_t *hooks)
{
    return container_of(hooks, struct jemalloc_memory, hooks);
}

/* ---- what the provider knows ------------------------------------------------------------------------------------- */

/* The size of the provider's allocation that starts exactly there, or 0. */
static size_t extent_size(const struct jemalloc_memory *memory, const void *base)
{
    struct range_entry entry;

    return range_index_find(&memory->extents, (uintptr_t)base, &entry) && entry.start == (uintptr_t)base ? entry.size
                                                                                                         : 0;
}

static bool extent_add(struct jemalloc_memory *memory, const void *base, size_t size)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&memory->lock);

    return !range_index_insert(&memory->extents, (uintptr_t)base, size, NULL);
}

/* False: the provider does not know this as one allocation. */
static bool extent_take(struct jemalloc_memory *memory, const void *base, size_t size)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&memory->lock);
    struct range_entry entry;

    return range_index_take(&memory->extents, (uintptr_t)base, size, NULL, &entry);
}

static bool extent_split(struct jemalloc_memory *memory, const void *rest)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&memory->lock);

    return !range_index_split(&memory->extents, (uintptr_t)rest);
}

static bool extent_merge(struct jemalloc_memory *memory, const void *low, const void *high)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&memory->lock);

    return !range_index_merge(&memory->extents, (uintptr_t)low, (uintptr_t)high);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static void *hook_alloc(extent_hooks_t *hooks, void *wanted, size_t size, size_t alignment, bool *zero, bool *commit,
                        unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);
    void *ptr = NULL;

    if (wanted || umfMemoryProviderAlloc(memory->provider, size, alignment, &ptr) != UMF_RESULT_SUCCESS || !ptr)
        return NULL;
    if ((uintptr_t)ptr & (alignment - 1) || !extent_add(memory, ptr, size)) {
        (void)umfMemoryProviderFree(memory->provider, ptr, size);
        return NULL;
    }
    if (*zero)
        memset(ptr, 0, size);
    *commit = true;
    return ptr;
}

/* The extent is removed first, since the provider may give the address to another thread at once. */
static bool hook_dalloc(extent_hooks_t *hooks, void *ptr, size_t size, bool committed, unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);

    if (memory->disable_free || !extent_take(memory, ptr, size))
        return true;
    if (umfMemoryProviderFree(memory->provider, ptr, size) == UMF_RESULT_SUCCESS)
        return false;
    (void)extent_add(memory, ptr, size);
    return true;
}

static void hook_destroy(extent_hooks_t *hooks, void *ptr, size_t size, bool committed, unsigned arena)
{
    (void)hook_dalloc(hooks, ptr, size, committed, arena);
}

static bool hook_commit(extent_hooks_t *hooks, void *ptr, size_t size, size_t offset, size_t length, unsigned arena)
{
    return false;
}

static bool hook_purge_lazy(extent_hooks_t *hooks, void *ptr, size_t size, size_t offset, size_t length, unsigned arena)
{
    return umfMemoryProviderPurgeLazy(memory_of(hooks)->provider, (char *)ptr + offset, length) != UMF_RESULT_SUCCESS;
}

static bool hook_purge_forced(extent_hooks_t *hooks, void *ptr, size_t size, size_t offset, size_t length,
                              unsigned arena)
{
    return umfMemoryProviderPurgeForce(memory_of(hooks)->provider, (char *)ptr + offset, length) != UMF_RESULT_SUCCESS;
}

/* The provider is not asked if it does not know the extent as one allocation. */
static bool hook_split(extent_hooks_t *hooks, void *ptr, size_t size, size_t first, size_t second, bool committed,
                       unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);

    if (extent_size(memory, ptr) != size || __atomic_load_n(&memory->whole, __ATOMIC_RELAXED))
        return false;
    if (umfMemoryProviderAllocationSplit(memory->provider, ptr, size, first) != UMF_RESULT_SUCCESS) {
        __atomic_store_n(&memory->whole, true, __ATOMIC_RELAXED);
        return false;
    }
    if (extent_split(memory, (char *)ptr + first))
        return false;
    (void)umfMemoryProviderAllocationMerge(memory->provider, ptr, (char *)ptr + first, size);
    return true;
}

static bool hook_merge(extent_hooks_t *hooks, void *low, size_t low_size, void *high, size_t high_size, bool committed,
                       unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);
    size_t second = extent_size(memory, high);

    if (!second)
        return false; /* both are parts of one allocation */
    if (second != high_size || extent_size(memory, low) != low_size ||
        umfMemoryProviderAllocationMerge(memory->provider, low, high, low_size + high_size) != UMF_RESULT_SUCCESS)
        return true;
    if (extent_merge(memory, low, high))
        return false;
    (void)umfMemoryProviderAllocationSplit(memory->provider, low, low_size + high_size, low_size);
    return true;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

void jemalloc_memory_init(struct jemalloc_memory *memory, umf_memory_provider_handle_t provider, bool disable_free)
{
    *memory = (struct jemalloc_memory){
        .hooks =
            {
                .alloc = hook_alloc,
                .dalloc = hook_dalloc,
                .destroy = hook_destroy,
                .commit = hook_commit,
                .purge_lazy = hook_purge_lazy,
                .purge_forced = hook_purge_forced,
                .split = hook_split,
                .merge = hook_merge,
            },
        .provider = provider,
        .disable_free = disable_free,
    };
    (void)pthread_mutex_init(&memory->lock, NULL);
}

void jemalloc_memory_deinit(struct jemalloc_memory *memory)
{
    struct range_entry extent;

    for (uint64_t from = 0; range_index_next(&memory->extents, from, &extent); from = extent.start + extent.size)
        (void)umfMemoryProviderFree(memory->provider, (void *)(uintptr_t)extent.start, extent.size);
    range_index_deinit(&memory->extents);
    (void)pthread_mutex_destroy(&memory->lock);
}
