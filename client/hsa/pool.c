/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools, and how far each is from an agent.
 *
 * Every agent can use every pool at once, its own directly and another's over one link. What is known of that is the
 * distance in the system's table and that it is coherent; the kernel has no figures for its kind and its speed.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/check.h"
#include "hsa/headroom.h"
#include "hsa/info.h"

hsa_status_t hsa_amd_agent_iterate_memory_pools(
    hsa_agent_t handle, hsa_status_t (*callback)(hsa_amd_memory_pool_t memory_pool, void *data), void *data)
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
    const struct pool *pool = topology_memory_pool(handle);
    hsa_status_t status = check(value, pool ? HSA_STATUS_SUCCESS : INVALID_MEMORY_POOL);

    return status ? status : INFO_PUT(pool_info, attribute, pool, value);
}

/* What an agent and a pool are to each other. */
struct link {
    const struct agent *agent;
    const struct pool *pool;
};

static hsa_status_t put_hops(const void *object, void *value)
{
    const struct link *link = object;
    uint32_t hops = link->pool->agent != link->agent;

    memcpy(value, &hops, sizeof(hops));
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t put_link(const void *object, void *value)
{
    const struct link *link = object;
    hsa_amd_memory_pool_link_info_t info;

    memset(&info, 0, sizeof(info));
    if (link->pool->agent != link->agent) {
        info.atomic_support_32bit = true;
        info.atomic_support_64bit = true;
        info.coherent_support = true;
        info.numa_distance = link->agent->distances[link->pool->agent->index];
    }
    memcpy(value, &info, sizeof(info));
    return HSA_STATUS_SUCCESS;
}

static const struct info link_info[] = {
    INFO_CONSTANT(HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, hsa_amd_memory_pool_access_t,
                  HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT),
    INFO_FUNCTION(HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, put_hops),
    INFO_FUNCTION(HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, put_link),
};

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
                                                hsa_amd_agent_memory_pool_info_t attribute, void *value)
{
    struct link link = {topology_agent(agent), topology_memory_pool(pool)};
    hsa_status_t status = check_agent(value, agent, link.pool ? HSA_STATUS_SUCCESS : INVALID_MEMORY_POOL);

    return status ? status : INFO_PUT(link_info, attribute, &link, value);
}
