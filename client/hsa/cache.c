/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's caches and instruction sets. No agent has an instruction set for which programs could be compiled. */
#include <memclient/hsa/hsa/hsa.h>

#include "hsa/info.h"
#include "hsa/runtime.h"

hsa_status_t hsa_agent_iterate_caches(hsa_agent_t handle, hsa_status_t (*callback)(hsa_cache_t cache, void *data),
                                      void *data)
{
    const struct agent *agent = topology_agent(handle);
    hsa_status_t status = check_agent(callback, handle, HSA_STATUS_SUCCESS);

    for (unsigned i = 0; !status && i < agent->n_caches; i++)
        status = callback(agent->caches[i].handle, data);
    return status;
}

/* The caller's buffer has room for the name only, not for the whole array. */
static hsa_status_t cache_put_name(const void *object, void *value)
{
    const struct cache *cache = object;

    memcpy(value, cache->name, strlen(cache->name) + 1);
    return HSA_STATUS_SUCCESS;
}

static const struct info cache_info[] = {
    INFO_FIELD(HSA_CACHE_INFO_NAME_LENGTH, cache, name_length),
    INFO_FUNCTION(HSA_CACHE_INFO_NAME, cache_put_name),
    INFO_FIELD(HSA_CACHE_INFO_LEVEL, cache, level),
    INFO_FIELD(HSA_CACHE_INFO_SIZE, cache, size),
};

hsa_status_t hsa_cache_get_info(hsa_cache_t handle, hsa_cache_info_t attribute, void *value)
{
    return INFO_PUT(cache_info, attribute, topology_cache(handle), HSA_STATUS_ERROR_INVALID_CACHE, value);
}

hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t isa, void *data), void *data)
{
    return check_agent(callback, agent, HSA_STATUS_SUCCESS);
}

hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void *value)
{
    return check(value, HSA_STATUS_ERROR_INVALID_ISA);
}
