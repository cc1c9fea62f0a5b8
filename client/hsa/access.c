/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting agents use memory. CPU agents may use all allocations as it is; of virtual memory it is a permission.
 */
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/memory.h"
#include "hsa/runtime.h"
#include "hsa/vmem.h"

/* With the lock. */
static hsa_status_t access_allow(const void *ptr, uint64_t agents)
{
    struct address_range *range = address_map_find(ptr);
    struct mapping *mapping = range_mapping(range);

    if (mapping)
        return permissions_allow(mapping, agents);
    if (!range || range->kind == RANGE_LOCKED || range->start != (uintptr_t)ptr)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_agents_allow_access(uint32_t num_agents, const hsa_agent_t *agents, const uint32_t *flags,
                                         const void *ptr)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    hsa_status_t status;
    uint64_t set;

    if (!ctx || !num_agents || !agents || flags || !ptr)
        return runtime_refusal(ctx);
    if (!topology_agents(num_agents, agents, &set))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    address_map_lock();
    status = access_allow(ptr, set);
    address_map_unlock();
    return status;
}
