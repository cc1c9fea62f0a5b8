/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions: the pools once more, as HSA's core calls them, and those that only kernels would use.
 *
 * The latter exist since HSA has them on every agent; nothing can be allocated from them. Their sizes are constants,
 * not below the least that HSA lets a runtime have.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/answer.h"
#include "hsa/room.h"
#include "hsa/runtime.h"
#include "hsa/topology.h"

/* The agent's own first: programs take the first that fits. */
hsa_status_t hsa_agent_iterate_regions(hsa_agent_t handle, hsa_status_t (*callback)(hsa_region_t region, void *data),
                                       void *data)
{
    const struct topology *t;
    const struct agent *agent;
    hsa_status_t status = HSA_STATUS_SUCCESS;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!callback)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    agent = topology_agent(handle);
    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    t = topology();
    for (unsigned i = 0; !status && i < agent->n_regions; i++)
        status = callback((hsa_region_t){agent->pools[i].handle}, data);
    for (unsigned k = 0; k < t->n_agents; k++)
        for (unsigned i = 0; !status && k != agent->index && i < t->agents[k].n_pools; i++)
            status = callback((hsa_region_t){t->agents[k].pools[i].handle}, data);
    return status;
}

/* The most that can be asked for at once: of memory, or by a kernel for one of its work-groups or work-items. */
static hsa_status_t tell_max_size(const struct pool *region, void *value)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    uint64_t bytes;
    hsa_status_t status;

    if (!region->allocatable)
        return answer_size(value, region->kind == REGION_READONLY ? 0 : region->capacity);
    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    status = room_tell(region, &bytes);
    return status ? status : answer_size(value, bytes);
}

static hsa_status_t tell_of_amd(const struct pool *region, uint32_t attribute, void *value)
{
    switch (attribute) {
    case HSA_AMD_REGION_INFO_HOST_ACCESSIBLE:
        return answer_bool(value, region->allocatable);
    case HSA_AMD_REGION_INFO_BASE:
        return answer_zeros(value, sizeof(void *));
    case HSA_AMD_REGION_INFO_BUS_WIDTH:
    case HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY:
        return answer_u32(value, 0);
    default:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

hsa_status_t hsa_region_get_info(hsa_region_t handle, hsa_region_info_t attribute, void *value)
{
    const struct pool *region;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!value)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    region = topology_pool(handle.handle);
    if (!region)
        return HSA_STATUS_ERROR_INVALID_REGION;
    switch ((uint32_t)attribute) {
    case HSA_REGION_INFO_SEGMENT:
        return answer_u32(value, region->segment);
    case HSA_REGION_INFO_GLOBAL_FLAGS:
        return answer_u32(value, region->flags);
    case HSA_REGION_INFO_SIZE:
        return answer_size(value, region->capacity);
    case HSA_REGION_INFO_ALLOC_MAX_SIZE:
        return tell_max_size(region, value);
    case HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE:
        return answer_u32(value, region->kind == REGION_PRIVATE ? (uint32_t)region->capacity : 0);
    case HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED:
        return answer_bool(value, region->allocatable);
    case HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT:
        return answer_size(value, region->granule);
    default:
        return tell_of_amd(region, (uint32_t)attribute, value);
    }
}
