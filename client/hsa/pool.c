/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools, and how far each is from an agent.
 *
 * Every agent can use every pool at once, its own directly and another's over one link. What is known of that is the
 * distance in the system's table and that it is coherent; the kernel has no figures for its kind and its speed.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/answer.h"
#include "hsa/room.h"
#include "hsa/runtime.h"
#include "hsa/topology.h"

hsa_status_t hsa_amd_agent_iterate_memory_pools(
    hsa_agent_t handle, hsa_status_t (*callback)(hsa_amd_memory_pool_t memory_pool, void *data), void *data)
{
    const struct agent *agent;
    hsa_status_t status = HSA_STATUS_SUCCESS;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!callback)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    agent = topology_agent(handle);
    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    for (unsigned i = 0; !status && i < agent->n_pools; i++)
        status = callback((hsa_amd_memory_pool_t){agent->pools[i].handle}, data);
    return status;
}

static hsa_status_t tell_room(const struct pool *pool, void *value)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    uint64_t bytes;
    hsa_status_t status;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    status = room_tell(pool, &bytes);
    return status ? status : answer_size(value, bytes);
}

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t handle, hsa_amd_memory_pool_info_t attribute,
                                          void *value)
{
    const struct pool *pool;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!value)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    pool = topology_memory_pool(handle);
    if (!pool)
        return INVALID_MEMORY_POOL;
    switch ((uint32_t)attribute) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
        return answer_u32(value, pool->segment);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
        return answer_u32(value, pool->flags);
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
        return answer_size(value, pool->capacity);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
    case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
        return answer_bool(value, true);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
        return answer_size(value, pool->granule);
    case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
        return tell_room(pool, value);
    case HSA_AMD_MEMORY_POOL_INFO_LOCATION:
        return answer_u32(value, HSA_AMD_MEMORY_POOL_LOCATION_CPU);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE:
        return answer_size(value, pool->recommended);
    default:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent_handle, hsa_amd_memory_pool_t pool_handle,
                                                hsa_amd_agent_memory_pool_info_t attribute, void *value)
{
    hsa_amd_memory_pool_link_info_t link;
    const struct agent *agent;
    const struct pool *pool;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!value)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    agent = topology_agent(agent_handle);
    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    pool = topology_memory_pool(pool_handle);
    if (!pool)
        return INVALID_MEMORY_POOL;
    switch ((uint32_t)attribute) {
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
        return answer_u32(value, HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
        return answer_u32(value, pool->agent != agent);
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO:
        memset(&link, 0, sizeof(link));
        if (pool->agent != agent) {
            link.atomic_support_32bit = true;
            link.atomic_support_64bit = true;
            link.coherent_support = true;
            link.numa_distance = agent->distances[pool->agent->index];
        }
        return answer(value, &link, sizeof(link));
    default:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}
