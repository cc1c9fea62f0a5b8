/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc asks here for memory, gives it back, cuts it, joins it, and lets its contents go. A hook that returns true
 * has refused.
 *
 * jemalloc calls for one extent from one thread at a time, so a record stays while its hook is in the provider, which
 * is without the lock.
 */
#include "umf/pool_jemalloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/steal.h"

struct range {
    UT_hash_handle hh;
    void *base;
    size_t size;
};

static struct jemalloc_memory *memory_of(extent_hooks_t *hooks)
{
    return container_of(hooks, struct jemalloc_memory, hooks);
}

/* ---- records ---------------------------------------------------------------------------------------------- */

static struct range *find(struct jemalloc_memory *memory, void *base)
{
    struct range *range;

    pthread_mutex_lock(&memory->lock);
    HASH_FIND_PTR(memory->ranges, &base, range);
    pthread_mutex_unlock(&memory->lock);
    return range;
}

/* What the provider knows as just this; else NULL. */
static struct range *find_whole(struct jemalloc_memory *memory, void *base, size_t size)
{
    struct range *range = find(memory, base);

    return range && range->size == size ? range : NULL;
}

static bool add(struct jemalloc_memory *memory, struct range *range, void *base, size_t size)
{
    range->base = base;
    range->size = size;
    pthread_mutex_lock(&memory->lock);
    HASH_ADD_PTR(memory->ranges, base, range);
    pthread_mutex_unlock(&memory->lock);
    return range->hh.tbl;
}

static void drop(struct jemalloc_memory *memory, struct range *range)
{
    pthread_mutex_lock(&memory->lock);
    HASH_DELETE(hh, memory->ranges, range);
    pthread_mutex_unlock(&memory->lock);
}

/* ---- hooks ------------------------------------------------------------------------------------------------ */

static void *hook_alloc(extent_hooks_t *hooks, void *wanted, size_t size, size_t alignment, bool *zero, bool *commit,
                        unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);
    _cleanup_free_ struct range *range = calloc(1, sizeof(*range));
    void *ptr = NULL;

    (void)arena;
    if (wanted || !range || umfMemoryProviderAlloc(memory->provider, size, alignment, &ptr) != UMF_RESULT_SUCCESS ||
        !ptr)
        return NULL;
    if ((uintptr_t)ptr & (alignment - 1) || !add(memory, range, ptr, size)) {
        (void)umfMemoryProviderFree(memory->provider, ptr, size);
        return NULL;
    }
    steal_ptr(&range);
    if (*zero)
        memset(ptr, 0, size);
    *commit = true;
    return ptr;
}

/* The record goes first: the provider may give the address to another thread at once. */
static bool hook_dalloc(extent_hooks_t *hooks, void *ptr, size_t size, bool committed, unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);
    struct range *range = memory->disable_free ? NULL : find_whole(memory, ptr, size);

    (void)committed;
    (void)arena;
    if (!range)
        return true;
    drop(memory, range);
    if (umfMemoryProviderFree(memory->provider, ptr, size) == UMF_RESULT_SUCCESS) {
        free(range);
        return false;
    }
    (void)add(memory, range, ptr, size);
    return true;
}

static void hook_destroy(extent_hooks_t *hooks, void *ptr, size_t size, bool committed, unsigned arena)
{
    (void)hook_dalloc(hooks, ptr, size, committed, arena);
}

static bool hook_commit(extent_hooks_t *hooks, void *ptr, size_t size, size_t offset, size_t length, unsigned arena)
{
    (void)hooks;
    (void)ptr;
    (void)size;
    (void)offset;
    (void)length;
    (void)arena;
    return false;
}

static bool hook_purge_lazy(extent_hooks_t *hooks, void *ptr, size_t size, size_t offset, size_t length,
                            unsigned arena)
{
    (void)size;
    (void)arena;
    return umfMemoryProviderPurgeLazy(memory_of(hooks)->provider, (char *)ptr + offset, length) != UMF_RESULT_SUCCESS;
}

static bool hook_purge_forced(extent_hooks_t *hooks, void *ptr, size_t size, size_t offset, size_t length,
                              unsigned arena)
{
    (void)size;
    (void)arena;
    return umfMemoryProviderPurgeForce(memory_of(hooks)->provider, (char *)ptr + offset, length) != UMF_RESULT_SUCCESS;
}

/* What the provider does not know as one allocation is cut without it. */
static bool hook_split(extent_hooks_t *hooks, void *ptr, size_t size, size_t first, size_t second, bool committed,
                       unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);
    struct range *range = find_whole(memory, ptr, size);
    _cleanup_free_ struct range *rest = NULL;

    (void)committed;
    (void)arena;
    if (!range || __atomic_load_n(&memory->whole, __ATOMIC_RELAXED))
        return false;
    rest = calloc(1, sizeof(*rest));
    if (!rest || !add(memory, rest, (char *)ptr + first, second))
        return true;
    if (umfMemoryProviderAllocationSplit(memory->provider, ptr, size, first) == UMF_RESULT_SUCCESS) {
        range->size = first;
        steal_ptr(&rest);
        return false;
    }
    drop(memory, rest);
    __atomic_store_n(&memory->whole, true, __ATOMIC_RELAXED);
    return false;
}

static bool hook_merge(extent_hooks_t *hooks, void *low, size_t low_size, void *high, size_t high_size, bool committed,
                       unsigned arena)
{
    struct jemalloc_memory *memory = memory_of(hooks);
    struct range *first, *second = find(memory, high);

    (void)committed;
    (void)arena;
    if (!second)
        return false; /* parts of one */
    first = find_whole(memory, low, low_size);
    if (!first || second->size != high_size ||
        umfMemoryProviderAllocationMerge(memory->provider, low, high, low_size + high_size) != UMF_RESULT_SUCCESS)
        return true;
    first->size += high_size;
    drop(memory, second);
    free(second);
    return false;
}

/* ---- all of it -------------------------------------------------------------------------------------------- */

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
    struct range *range, *next;

    HASH_ITER(hh, memory->ranges, range, next) {
        HASH_DELETE(hh, memory->ranges, range);
        (void)umfMemoryProviderFree(memory->provider, range->base, range->size);
        free(range);
    }
    (void)pthread_mutex_destroy(&memory->lock);
}
