/* SPDX-License-Identifier: Apache-2.0 */
/* What is at an address, and which access is allowed there. */
#include <string.h>

#include <memclient/hsa/hsa/hsa_ext_memoryd.h>

#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/runtime.h"
#include "hsa/vmem.h"

/* ---- describing -------------------------------------------------------------------------------------------------- */

struct lookup {
    hsa_amd_pointer_info_t info;
    uint64_t agents;                      /* with access */
    struct memclient_buffer *undescribed; /* a reference, if the broker must be asked for its pool */
};

/* The pool is NULL if the memory was imported and its node is no agent. */
static void pointer_describe_pool(const struct pool *pool, struct lookup *lookup)
{
    if (!pool)
        return;
    lookup->info.agentOwner = pool->agent->handle;
    lookup->info.global_flags = pool->flags;
}

/* No agent has access to it. Other processes avoid its addresses, unless it is private to this process. */
static void pointer_describe_reservation(const struct vmem_reservation *reservation, const void *ptr,
                                         struct lookup *lookup)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    lookup->info.type = HSA_EXT_POINTER_TYPE_RESERVED_ADDR;
    lookup->info.registered = !reservation->no_register;
    lookup->info.agentBaseAddress = NULL;
    if (!memclient_address_query(ptr, &info) && info.process_private)
        lookup->info.global_flags = MEMCLIENT_HSA_POINTER_PROCESS_PRIVATE;
}

static void pointer_describe_mapping(const struct vmem_mapping *mapping, const void *ptr, struct lookup *lookup)
{
    lookup->info.type = HSA_EXT_POINTER_TYPE_HSA_VMEM;
    lookup->info.hostBaseAddress = (void *)(uintptr_t)ptr;
    lookup->info.agentBaseAddress = (void *)(uintptr_t)ptr;
    lookup->agents = mapping->permissions.read | mapping->permissions.write;
    if (mapping->handle->is_described)
        pointer_describe_pool(mapping->handle->pool, lookup);
    else
        lookup->undescribed = memclient_buffer_ref(mapping->handle->buffer);
}

static void pointer_describe_attachment(const struct attachment *attachment, struct lookup *lookup)
{
    lookup->info.type = attachment->interop ? HSA_EXT_POINTER_TYPE_GRAPHICS : HSA_EXT_POINTER_TYPE_IPC;
    lookup->agents = attachment->allowed;
    if (attachment->is_described)
        pointer_describe_pool(attachment->pool, lookup);
    else
        lookup->undescribed = memclient_buffer_ref(attachment->buffer);
}

/* The range at the address, reservations last; or NULL. Needs the lock. */
static struct address_range *pointer_find(const void *ptr)
{
    struct address_range *range = address_map_find(ptr);

    return range ? range : reservation_find(ptr);
}

/* Leaves the type UNKNOWN if nothing is there. Needs the lock. */
static void pointer_describe(const void *ptr, struct lookup *lookup)
{
    struct address_range *range = pointer_find(ptr);

    if (!range)
        return;
    lookup->info.hostBaseAddress = lookup->info.agentBaseAddress = (void *)(uintptr_t)range->start;
    lookup->info.sizeInBytes = range->size;
    lookup->info.userData = range->userdata;
    lookup->info.registered = true;
    switch (range->kind) {
    case RANGE_ALLOCATION:
        lookup->info.type = HSA_EXT_POINTER_TYPE_HSA;
        lookup->agents = agents_all();
        pointer_describe_pool(range_allocation(range)->pool, lookup);
        lookup->info.agentOwner = range_allocation(range)->owner->handle;
        lookup->info.alloc_flags = range_allocation(range)->flags;
        break;
    case RANGE_ATTACHMENT:
        pointer_describe_attachment(range_attachment(range), lookup);
        break;
    case RANGE_LOCKED:
        lookup->info.type = HSA_EXT_POINTER_TYPE_LOCKED;
        lookup->agents = agents_all();
        /* all agents share it, so any of them may be named */
        lookup->info.agentOwner = topology()->agents[0].handle;
        lookup->info.global_flags = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
        break;
    case RANGE_MAPPING:
        pointer_describe_mapping(range_mapping(range), ptr, lookup);
        break;
    case RANGE_RESERVATION:
        pointer_describe_reservation(range_reservation(range), ptr, lookup);
        break;
    }
}

/* Keeps the pool for later queries, if the memory is still there. Needs the lock. */
static void pointer_store_pool(const void *ptr, const struct memclient_buffer *buffer,
                               const struct memclient_buffer_info *info)
{
    struct address_range *range = address_map_find(ptr);
    struct attachment *attachment = range_attachment(range);
    const struct vmem_mapping *mapping = range_mapping(range);

    if (attachment && attachment->buffer == buffer) {
        attachment->pool = topology_pool_of(info);
        attachment->is_described = true;
    } else if (mapping && mapping->handle->buffer == buffer) {
        handle_describe(mapping->handle, info);
    }
}

/* Asks the broker, on first use, for the pool of memory that another process made. */
static hsa_status_t pointer_load_pool(const void *ptr, struct lookup *lookup)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    int r;

    if (!lookup->undescribed)
        return HSA_STATUS_SUCCESS;
    r = memclient_buffer_query(lookup->undescribed, &info);
    if (!r) {
        pointer_describe_pool(topology_pool_of(&info), lookup);
        address_map_lock();
        pointer_store_pool(ptr, lookup->undescribed, &info);
        address_map_unlock();
    }
    lookup->undescribed = memclient_buffer_unref(lookup->undescribed);
    return runtime_status(r);
}

/* It calls the application, outside of the runtime: it needs only the topology, which is never freed. */
static hsa_status_t pointer_list_agents(uint64_t set, void *(*alloc)(size_t), uint32_t *n, hsa_agent_t **list)
{
    unsigned count = (unsigned)__builtin_popcountll(set);
    hsa_agent_t *array = NULL;

    if (count) {
        array = alloc(count * sizeof(*array));
        if (!array)
            return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    for (unsigned i = 0; i < count; i++, set &= set - 1)
        array[i] = topology()->agents[__builtin_ctzll(set)].handle;
    *n = count;
    *list = array;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_pointer_info(const void *ptr, hsa_amd_pointer_info_t *info, void *(*alloc)(size_t),
                                  uint32_t *num_agents_accessible, hsa_agent_t **accessible)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct lookup lookup = {.info.type = HSA_EXT_POINTER_TYPE_UNKNOWN};
    hsa_status_t status;

    if (!ctx || !ptr || !info || !info->size)
        return runtime_refusal(ctx);
    address_map_lock_read();
    pointer_describe(ptr, &lookup);
    address_map_unlock();
    status = pointer_load_pool(ptr, &lookup);
    runtime_leavep(&ctx);
    if (status)
        return status;
    if (alloc && num_agents_accessible && accessible) {
        status = pointer_list_agents(lookup.agents, alloc, num_agents_accessible, accessible);
        if (status)
            return status;
    }
    lookup.info.size = info->size < sizeof(*info) ? info->size : (uint32_t)sizeof(*info);
    memcpy(info, &lookup.info, lookup.info.size);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_pointer_info_set_userdata(const void *ptr, void *userdata)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct address_range *range;

    if (!ctx || !ptr)
        return runtime_refusal(ctx);
    address_map_lock();
    range = pointer_find(ptr);
    if (range)
        range->userdata = userdata;
    address_map_unlock();
    return range ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* ---- permissions ------------------------------------------------------------------------------------------------- */

static bool pointer_range_allows(struct address_range *range, hsa_access_permission_t access)
{
    const struct permissions *permissions;

    if (range->busy)
        return false;
    switch (range->kind) {
    case RANGE_ALLOCATION:
        return (range_allocation(range)->access & access) == access;
    case RANGE_ATTACHMENT:
        return access == HSA_ACCESS_PERMISSION_RO ||
               (memclient_buffer_rights(range_attachment(range)->buffer) & MEMCLIENT_WRITE);
    case RANGE_MAPPING:
        permissions = &range_mapping(range)->permissions;
        return (access == HSA_ACCESS_PERMISSION_RO ? permissions->read : permissions->write) != 0;
    default:
        return true;
    }
}

bool pointer_allows(const void *address, size_t size, hsa_access_permission_t access)
{
    uint64_t at = (uintptr_t)address;
    uint64_t end;

    if (__builtin_add_overflow(at, size, &end))
        return false;
    for (struct address_range *range = address_map_first(at); range && range->start < end;
         range = address_map_next(range)) {
        /* before the range: not HSA's, or reserved and empty */
        if (range->start > at && !reservation_is_none(at, range->start - at))
            return false;
        if (!pointer_range_allows(range, access))
            return false;
        at = range->start + range->bytes;
    }
    return at >= end || reservation_is_none(at, end - at);
}

bool pointer_allows_copy(const void *to, const void *from, size_t size)
{
    bool allowed;

    if (!size)
        return true;
    address_map_lock_read();
    allowed = pointer_allows(from, size, HSA_ACCESS_PERMISSION_RO);
    allowed = allowed && pointer_allows(to, size, HSA_ACCESS_PERMISSION_WO);
    address_map_unlock();
    return allowed;
}
