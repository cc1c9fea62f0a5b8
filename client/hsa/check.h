/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What functions begin with that need the topology alone, or nothing at all, and take no lock.
 */
#pragma once

#include <stdbool.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/runtime.h"
#include "hsa/topology.h"

/* Its header has it outside of the type. */
#define NOT_SUPPORTED ((hsa_status_t)HSA_STATUS_ERROR_NOT_SUPPORTED)

/* With `status`, if HSA is up and the arguments that are no handles are valid. */
static inline hsa_status_t check(bool is_valid, hsa_status_t status)
{
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    return is_valid ? status : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* The same, if the handle is an agent's, too. */
static inline hsa_status_t check_agent(bool is_valid, hsa_agent_t agent, hsa_status_t status)
{
    return check(is_valid, topology_agent(agent) ? status : HSA_STATUS_ERROR_INVALID_AGENT);
}
