/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions for what only GPUs have. They look at their arguments as all others do, and then refuse.
 */
#pragma once

#include <stdbool.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/runtime.h"
#include "hsa/topology.h"

/* Its header has it outside of the type. */
#define NOT_SUPPORTED ((hsa_status_t)HSA_STATUS_ERROR_NOT_SUPPORTED)

/* With `status`, if the arguments that are no handles are valid. */
static inline hsa_status_t refuse(bool is_valid, hsa_status_t status)
{
    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    return is_valid ? status : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static inline hsa_status_t refuse_agent(bool is_valid, hsa_agent_t agent, hsa_status_t status)
{
    status = refuse(is_valid, status);
    if (status == HSA_STATUS_ERROR_NOT_INITIALIZED || !is_valid)
        return status;
    return topology_agent(agent) ? status : HSA_STATUS_ERROR_INVALID_AGENT;
}
