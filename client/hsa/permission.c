/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which agents may use a mapping.
 *
 * A change has the same three sets for all mappings of a run: the agents that it is about, those that may read
 * afterwards, and those that may write. The result depends on what a mapping had before, and so does the need to call
 * the kernel. All of a change happens under the lock, so no other thread sees half of it, and unmapping happens before
 * or after it.
 */
#include <errno.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/align.h"
#include "hsa/runtime.h"
#include "hsa/vmem.h"

struct change {
    struct permissions list;
    bool replaces; /* agents that it is not about lose their access */
};

/* The union of all agents, as an access of memclient_protect(). */
static unsigned permissions_access(const struct permissions *permissions)
{
    if (permissions->write)
        return MEMCLIENT_READ | MEMCLIENT_WRITE;
    return permissions->read ? MEMCLIENT_READ : MEMCLIENT_NO_ACCESS;
}

static hsa_access_permission_t permissions_of_agent(const struct permissions *permissions, const struct agent *agent)
{
    unsigned access = HSA_ACCESS_PERMISSION_NONE;

    if (permissions->read & agent_bit(agent))
        access |= HSA_ACCESS_PERMISSION_RO;
    if (permissions->write & agent_bit(agent))
        access |= HSA_ACCESS_PERMISSION_WO;
    return (hsa_access_permission_t)access;
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

static struct permissions permissions_change(const struct permissions *old, const struct change *change)
{
    uint64_t kept = change->replaces ? 0 : ~change->list.set;

    return (struct permissions){
        .set = (old->set & kept) | change->list.set,
        .read = (old->read & kept) | change->list.read,
        .write = (old->write & kept) | change->list.write,
    };
}

/* Protects a mapping's pages, if that makes a difference to them. */
static int permissions_protect(const struct vmem_mapping *mapping, const struct permissions *from,
                               const struct permissions *to)
{
    unsigned access = permissions_access(to);

    if (access == permissions_access(from))
        return 0;
    return memclient_protect(runtime_context(), (void *)(uintptr_t)mapping->range.start, mapping->range.bytes, access);
}

/* Applies the change to all of a run, or to none of it. Needs the lock. */
static hsa_status_t permissions_apply(struct vmem_mapping *first, uint64_t end, const struct change *change)
{
    struct vmem_mapping *failed = NULL;
    int r = 0;

    for (struct vmem_mapping *m = first; m && !failed; m = mapping_next(m, end)) {
        struct permissions new = permissions_change(&m->permissions, change);

        r = permissions_protect(m, &m->permissions, &new);
        if (r < 0)
            failed = m;
    }
    for (struct vmem_mapping *m = first; m && m != failed; m = mapping_next(m, end)) {
        struct permissions new = permissions_change(&m->permissions, change);

        if (failed)
            (void)permissions_protect(m, &new, &m->permissions);
        else
            m->permissions = new;
    }
    switch (-r) {
    case 0:
        return HSA_STATUS_SUCCESS;
    case EACCES:
    case EROFS:
        /* memory that was shared for reading only */
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    case ENOMEM:
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    default:
        return HSA_STATUS_ERROR;
    }
}

/* Reads the caller's array once, before anything changes, since it may lie in the mapping. The last entry of an agent
 * counts. */
static hsa_status_t permissions_read(const hsa_amd_memory_access_desc_t *desc, size_t n, struct permissions *list)
{
    *list = (struct permissions){0};
    for (size_t i = 0; i < n; i++)
        if ((unsigned)desc[i].permissions > HSA_ACCESS_PERMISSION_RW)
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    for (size_t i = 0; i < n; i++) {
        const struct agent *agent = topology_agent(desc[i].agent_handle);
        unsigned access = desc[i].permissions;

        if (!agent)
            return HSA_STATUS_ERROR_INVALID_AGENT;
        list->set |= agent_bit(agent);
        list->read &= ~agent_bit(agent);
        list->write &= ~agent_bit(agent);
        if (access & HSA_ACCESS_PERMISSION_RO)
            list->read |= agent_bit(agent);
        if (access & HSA_ACCESS_PERMISSION_WO)
            list->write |= agent_bit(agent);
    }
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_vmem_set_access(void *va, size_t size, const hsa_amd_memory_access_desc_t *desc, size_t desc_cnt)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct change change = {.replaces = !runtime_is_like_rocr()};
    struct vmem_mapping *first;
    hsa_status_t status;

    if (!ctx || !va || !desc || !size || !desc_cnt || !is_page_aligned(size))
        return runtime_refusal(ctx);
    status = permissions_read(desc, desc_cnt, &change.list);
    if (status)
        return status;
    address_map_lock();
    first = mapping_run(va, size);
    if (!reservation_around((uintptr_t)va, size))
        status = HSA_STATUS_ERROR_INVALID_ARGUMENT;
    else if (!first)
        status = HSA_STATUS_ERROR_INVALID_ALLOCATION;
    else
        status = permissions_apply(first, (uintptr_t)va + size, &change);
    address_map_unlock();
    return status;
}

/* Lets these agents read and write the mapping and those that follow it without a gap. Needs the lock. */
static hsa_status_t permissions_allow(struct vmem_mapping *mapping, uint64_t agents)
{
    const struct change change = {.list = {.set = agents, .read = agents, .write = agents}};
    uint64_t end = mapping->range.start + mapping->range.bytes;
    struct address_range *next = address_map_next(&mapping->range);

    for (; next && next->start == end && next->kind == RANGE_MAPPING && !next->busy; next = address_map_next(next))
        end += next->bytes;
    return permissions_apply(mapping, end, &change);
}

/* Allocations need no change: all agents may use them. Needs the lock. */
static hsa_status_t permissions_allow_at(const void *ptr, uint64_t agents)
{
    struct address_range *range = address_map_find(ptr);
    struct vmem_mapping *mapping = range_mapping(range);

    if (mapping)
        return permissions_allow(mapping, agents);
    if (!range || range->kind == RANGE_LOCKED || range->start != (uintptr_t)ptr)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_agents_allow_access(uint32_t num_agents, const hsa_agent_t *agents, const uint32_t *flags,
                                         const void *ptr)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    hsa_status_t status;
    uint64_t set;

    if (!ctx || !num_agents || !agents || flags || !ptr)
        return runtime_refusal(ctx);
    if (!topology_agents(num_agents, agents, &set))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    address_map_lock();
    status = permissions_allow_at(ptr, set);
    address_map_unlock();
    return status;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

hsa_status_t hsa_amd_vmem_get_access(void *va, hsa_access_permission_t *perms, hsa_agent_t agent_handle)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    const struct agent *agent = topology_agent(agent_handle);
    hsa_status_t status = HSA_STATUS_SUCCESS;
    const struct permissions *found;
    struct vmem_mapping *mapping;

    if (!ctx || !va || !perms)
        return runtime_refusal(ctx);
    *perms = HSA_ACCESS_PERMISSION_NONE;
    address_map_lock_read();
    mapping = range_mapping(address_map_find(va));
    found = mapping ? &mapping->permissions : NULL;
    if (!found)
        status = HSA_STATUS_ERROR_INVALID_ALLOCATION;
    else if (!agent)
        status = HSA_STATUS_ERROR_INVALID_AGENT;
    else if (!(found->set & agent_bit(agent)) && !runtime_is_like_rocr())
        status = HSA_STATUS_ERROR_INVALID_ALLOCATION;
    else
        *perms = permissions_of_agent(found, agent);
    address_map_unlock();
    return status;
}
