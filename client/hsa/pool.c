/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools, and their distances from agents.
 *
 * Every agent can use every pool, its own directly and another's over one link. Of a link, only the system's distance
 * and its coherence are known: the kernel has no figures for its kind and speed.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/headroom.h"
#include "hsa/info.h"
#include "hsa/runtime.h"

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t handle,
                                                hsa_status_t (*callback)(hsa_amd_memory_pool_t memory_pool, void *data),
                                                void *data)
{
    const struct agent *agent = topology_agent(handle);
    hsa_status_t status = check_agent(callback, handle, HSA_STATUS_SUCCESS);

    for (unsigned i = 0; !status && i < agent->n_pools; i++)
        status = callback((hsa_amd_memory_pool_t){agent->pools[i].handle}, data);
    return status;
}

static const struct info pool_info[] = {
    INFO_FIELD(HSA_AMD_MEMORY_POOL_INFO_SEGMENT, pool, segment),
    INFO_FIELD(HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, pool, flags),
    INFO_FIELD(HSA_AMD_MEMORY_POOL_INFO_SIZE, pool, capacity),
    INFO_CONSTANT(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, bool, true),
    INFO_CONSTANT(HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL, bool, true),
    INFO_FIELD(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, pool, granule),
    INFO_FIELD(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT, pool, granule),
    INFO_FUNCTION(HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, headroom_put),
    INFO_CONSTANT(HSA_AMD_MEMORY_POOL_INFO_LOCATION, uint32_t, HSA_AMD_MEMORY_POOL_LOCATION_CPU),
    INFO_FIELD(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE, pool, recommended),
};

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t handle, hsa_amd_memory_pool_info_t attribute,
                                          void *value)
{
    return INFO_PUT(pool_info, attribute, topology_memory_pool(handle), INVALID_MEMORY_POOL, value);
}

/* The way from an agent to a pool. */
struct link {
    uint32_t hops;
    hsa_amd_memory_pool_link_info_t info;
};

static const struct info link_info[] = {
    INFO_CONSTANT(HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, hsa_amd_memory_pool_access_t,
                  HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT),
    INFO_FIELD(HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, link, hops),
    INFO_FIELD(HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, link, info),
};

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent_handle, hsa_amd_memory_pool_t pool_handle,
                                                hsa_amd_agent_memory_pool_info_t attribute, void *value)
{
    const struct agent *agent = topology_agent(agent_handle);
    const struct pool *pool = topology_memory_pool(pool_handle);
    struct link link;

    memset(&link, 0, sizeof(link));
    if (agent && pool && pool->agent != agent) {
        link.hops = 1;
        link.info.atomic_support_32bit = true;
        link.info.atomic_support_64bit = true;
        link.info.coherent_support = true;
        link.info.numa_distance = agent->distances[pool->agent->index];
    }
    return INFO_PUT(link_info, attribute, agent && pool ? &link : NULL,
                    agent ? INVALID_MEMORY_POOL : HSA_STATUS_ERROR_INVALID_AGENT, value);
}

/* ---- migration --------------------------------------------------------------------------------------------------- */

/* Memory does not migrate between pools. hsa_memory_assign_agent() changes its node. */
hsa_status_t hsa_amd_memory_pool_can_migrate(hsa_amd_memory_pool_t src_memory_pool,
                                             hsa_amd_memory_pool_t dst_memory_pool, bool *result)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();

    if (!ctx || !result)
        return runtime_refusal(ctx);
    if (!topology_memory_pool(src_memory_pool) || !topology_memory_pool(dst_memory_pool))
        return INVALID_MEMORY_POOL;
    *result = false;
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_amd_memory_migrate(const void *ptr, hsa_amd_memory_pool_t memory_pool, uint32_t flags)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();

    if (!ctx || !ptr || flags)
        return runtime_refusal(ctx);
    return topology_memory_pool(memory_pool) ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : INVALID_MEMORY_POOL;
}
