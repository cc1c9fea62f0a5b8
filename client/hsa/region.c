/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions: the pools, under the name that they have in HSA's core, and those that only kernels would use.
 *
 * The latter exist because HSA requires them of every agent. Nothing can be allocated from them. Their sizes are
 * constants, not below the minimum that HSA requires.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/headroom.h"
#include "hsa/info.h"
#include "hsa/runtime.h"

/* The agent's own regions come first, since programs take the first that fits. */
hsa_status_t hsa_agent_iterate_regions(hsa_agent_t handle, hsa_status_t (*callback)(hsa_region_t region, void *data),
                                       void *data)
{
    const struct topology *t = topology();
    const struct agent *agent = topology_agent(handle);
    hsa_status_t status = check_agent(callback, handle, HSA_STATUS_SUCCESS);

    for (unsigned i = 0; !status && i < agent->n_regions; i++)
        status = callback((hsa_region_t){agent->pools[i].handle}, data);
    for (unsigned k = 0; !status && k < t->n_agents; k++)
        for (unsigned i = 0; !status && k != agent->index && i < t->agents[k].n_pools; i++)
            status = callback((hsa_region_t){t->agents[k].pools[i].handle}, data);
    return status;
}

/* The largest request: of memory, or by a kernel for one work-group or work-item. */
static hsa_status_t region_put_max_size(const void *object, void *value)
{
    const struct pool *region = object;
    size_t most = region->kind == REGION_READONLY ? 0 : region->capacity;

    if (region->allocatable)
        return headroom_put(region, value);
    memcpy(value, &most, sizeof(most));
    return HSA_STATUS_SUCCESS;
}

static const struct info region_info[] = {
    INFO_FIELD(HSA_REGION_INFO_SEGMENT, pool, segment),
    INFO_FIELD(HSA_REGION_INFO_GLOBAL_FLAGS, pool, flags),
    INFO_FIELD(HSA_REGION_INFO_SIZE, pool, capacity),
    INFO_FUNCTION(HSA_REGION_INFO_ALLOC_MAX_SIZE, region_put_max_size),
    INFO_FIELD(HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, pool, private_max),
    INFO_FIELD(HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, pool, allocatable),
    INFO_FIELD(HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE, pool, granule),
    INFO_FIELD(HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT, pool, granule),
    INFO_FIELD(HSA_AMD_REGION_INFO_HOST_ACCESSIBLE, pool, allocatable),
    INFO_CONSTANT(HSA_AMD_REGION_INFO_BASE, void *, NULL),
    INFO_CONSTANT(HSA_AMD_REGION_INFO_BUS_WIDTH, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY, uint32_t, 0),
};

hsa_status_t hsa_region_get_info(hsa_region_t handle, hsa_region_info_t attribute, void *value)
{
    return INFO_PUT(region_info, attribute, topology_pool(handle.handle), HSA_STATUS_ERROR_INVALID_REGION, value);
}
