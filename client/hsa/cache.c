/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent's caches and instruction sets. It has no instruction set that programs could be made for.
 */
#include <memclient/hsa/hsa/hsa.h>

#include "hsa/answer.h"
#include "hsa/runtime.h"
#include "hsa/topology.h"

hsa_status_t hsa_agent_iterate_caches(hsa_agent_t handle, hsa_status_t (*callback)(hsa_cache_t cache, void *data),
                                      void *data)
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
    for (unsigned i = 0; !status && i < agent->n_caches; i++)
        status = callback(agent->caches[i].handle, data);
    return status;
}

hsa_status_t hsa_cache_get_info(hsa_cache_t handle, hsa_cache_info_t attribute, void *value)
{
    const struct cache *cache;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!value)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    cache = topology_cache(handle);
    if (!cache)
        return HSA_STATUS_ERROR_INVALID_CACHE;
    switch ((uint32_t)attribute) {
    case HSA_CACHE_INFO_NAME_LENGTH:
        return answer_u32(value, (uint32_t)strlen(cache->name));
    case HSA_CACHE_INFO_NAME:
        return answer(value, cache->name, strlen(cache->name) + 1);
    case HSA_CACHE_INFO_LEVEL:
        return answer_u8(value, (uint8_t)cache->level);
    case HSA_CACHE_INFO_SIZE:
        return answer_u32(value, cache->size);
    default:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t isa, void *data), void *data)
{
    (void)data;
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!callback)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return topology_agent(agent) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_AGENT;
}

hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void *value)
{
    (void)isa;
    (void)attribute;
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    return value ? HSA_STATUS_ERROR_INVALID_ISA : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
