/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocating and freeing, for both APIs.
 *
 * An allocation is one request to the broker and one mmap(). Nobody knows its address before it is returned, so its
 * record enters the address map complete. Freeing removes the record first: a second free finds nothing and fails,
 * while the addresses stay taken until the mapping is gone.
 */
#include "hsa/memory.h"

#include <errno.h>
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/cleanup.h"
#include "hsa/headroom.h"
#include "hsa/ipc.h"
#include "hsa/runtime.h"

/* The buffer gets a home, so that other processes map it at the same address, unless the arena is full. */
static int memory_allocate_buffer(const struct pool *pool, uint64_t size, struct memclient_buffer **buffer)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    int r;

    options.pool = pool->name;
    options.alignment = size >= HUGE_PAGE && pool->granule < HUGE_PAGE ? HUGE_PAGE : 0;
    r = memclient_alloc(runtime_context(), size, &options, buffer);
    if (r == -EADDRNOTAVAIL) {
        options.alignment = 0;
        options.flags = MEMCLIENT_ALLOC_NO_HOME;
        r = memclient_alloc(runtime_context(), size, &options, buffer);
    }
    return r;
}

static hsa_status_t memory_allocate(const struct pool *pool, size_t size, uint32_t flags, void **ptr)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    struct allocation *allocation;
    void *address;
    int r;

    r = memory_allocate_buffer(pool, size, &buffer);
    headroom_changed();
    if (r < 0)
        return headroom_refusal(pool, size, r);
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    r = memclient_map(buffer, &options, &address);
    if (r < 0)
        return runtime_status(r);
    allocation = calloc(1, sizeof(*allocation));
    if (!allocation) {
        (void)memclient_unmap(runtime_context(), address, 0);
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    address_range_init(&allocation->range, RANGE_ALLOCATION, address, size, memclient_buffer_bytes(buffer));
    allocation->buffer = steal_ptr(&buffer);
    allocation->pool = pool;
    allocation->flags = flags;
    allocation->owner = pool->agent;
    allocation->access = HSA_ACCESS_PERMISSION_RW;
    address_map_lock();
    address_map_insert(&allocation->range);
    address_map_unlock();
    *ptr = address;
    return HSA_STATUS_SUCCESS;
}

/* Removes an allocation and its callbacks from the address map. */
static hsa_status_t memory_take(void *ptr, struct allocation **allocation, struct list *callbacks)
{
    hsa_status_t status = HSA_STATUS_SUCCESS;
    struct address_range *range;

    address_map_lock();
    range = address_map_find_base(ptr);
    *allocation = range_allocation(range);
    if (*allocation) {
        address_map_remove(range);
        callbacks_take(range, callbacks);
    } else {
        status = range_attachment(range) ? HSA_STATUS_ERROR_INVALID_ARGUMENT : HSA_STATUS_ERROR_INVALID_ALLOCATION;
    }
    address_map_unlock();
    return status;
}

void memory_release(const struct address_range *range, struct memclient_buffer *buffer, struct memclient_context *ctx)
{
    if (memclient_buffer_context(buffer) == ctx)
        (void)memclient_unmap(ctx, (void *)(uintptr_t)range->start, range->bytes);
    memclient_buffer_unref(buffer);
    headroom_changed();
}

/* NULL is no error. */
hsa_status_t hsa_memory_free(void *ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct list callbacks = LIST_INIT(callbacks);
    struct allocation *allocation = NULL;
    hsa_status_t status;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!ptr)
        return HSA_STATUS_SUCCESS;
    status = memory_take(ptr, &allocation, &callbacks);
    if (status)
        return status;
    callbacks_run_outside(&callbacks, &ctx);
    memory_release(&allocation->range, allocation->buffer, ctx);
    free(allocation);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_memory_allocate(hsa_region_t region, size_t size, void **ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    const struct pool *pool;

    if (!ctx || !ptr || !size)
        return runtime_refusal(ctx);
    pool = topology_pool(region.handle);
    if (!pool)
        return HSA_STATUS_ERROR_INVALID_REGION;
    if (!pool->allocatable)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    return memory_allocate(pool, size, 0, ptr);
}

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t memory_pool, size_t size, uint32_t flags, void **ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    const struct pool *pool;

    if (!ctx || !ptr || !size)
        return runtime_refusal(ctx);
    pool = topology_memory_pool(memory_pool);
    if (!pool)
        return INVALID_MEMORY_POOL;
    return memory_allocate(pool, size, flags, ptr);
}

hsa_status_t hsa_amd_memory_pool_free(void *ptr)
{
    return hsa_memory_free(ptr);
}
