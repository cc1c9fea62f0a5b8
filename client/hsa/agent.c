/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents: listing them, and what can be asked of one.
 *
 * An agent is a processor with memory and nothing else, so most of what HSA lets one ask about agents (waves, queues,
 * work-groups) has the answer 0. Everything but MEMORY_AVAIL is in the snapshot: no lock is taken and no call made.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/clock.h"
#include "hsa/answer.h"
#include "hsa/room.h"
#include "hsa/runtime.h"
#include "hsa/topology.h"

#ifdef HSA_LARGE_MODEL
#define MODEL HSA_MACHINE_MODEL_LARGE
#else
#define MODEL HSA_MACHINE_MODEL_SMALL
#endif

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data), void *data)
{
    const struct topology *t;
    hsa_status_t status = HSA_STATUS_SUCCESS;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!callback)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    t = topology();
    for (unsigned i = 0; !status && i < t->n_agents; i++)
        status = callback(t->agents[i].handle, data);
    return status;
}

/* What is 0, or empty, on every CPU, and how many bytes of that. */
static const struct {
    uint32_t attribute;
    uint32_t size;
} zeros[] = {
    {HSA_AGENT_INFO_FEATURE, sizeof(uint32_t)},
    {HSA_AGENT_INFO_WAVEFRONT_SIZE, sizeof(uint32_t)},
    {HSA_AGENT_INFO_WORKGROUP_MAX_DIM, sizeof(uint16_t[3])},
    {HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, sizeof(uint32_t)},
    {HSA_AGENT_INFO_GRID_MAX_DIM, sizeof(hsa_dim3_t)},
    {HSA_AGENT_INFO_GRID_MAX_SIZE, sizeof(uint32_t)},
    {HSA_AGENT_INFO_FBARRIER_MAX_SIZE, sizeof(uint32_t)},
    {HSA_AGENT_INFO_QUEUES_MAX, sizeof(uint32_t)},
    {HSA_AGENT_INFO_QUEUE_MIN_SIZE, sizeof(uint32_t)},
    {HSA_AGENT_INFO_QUEUE_MAX_SIZE, sizeof(uint32_t)},
    {HSA_AGENT_INFO_ISA, sizeof(hsa_isa_t)},
    {HSA_AGENT_INFO_EXTENSIONS, sizeof(uint8_t[128])},
    {HSA_AGENT_INFO_FAST_F16_OPERATION, sizeof(bool)},
    {HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS, sizeof(uint32_t)},
    {HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS, sizeof(uint32_t)},
    {HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS, sizeof(uint32_t)},
    {HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS, sizeof(uint32_t[2])},
    {HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS, sizeof(uint32_t[2])},
    {HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS, sizeof(uint32_t[2])},
    {HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS, sizeof(uint32_t[2])},
    {HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS, sizeof(uint32_t[3])},
    {HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS, sizeof(uint32_t)},
    {HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES, sizeof(uint32_t)},
    {HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES, sizeof(uint32_t)},
    {HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_CHIP_ID, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_BDFID, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_HDP_FLUSH, sizeof(hsa_amd_hdp_flush_t)},
    {HSA_AMD_AGENT_INFO_DOMAIN, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES, sizeof(bool)},
    {HSA_AMD_AGENT_INFO_ASIC_REVISION, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_UCODE_VERSION, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_IOMMU_SUPPORT, sizeof(hsa_amd_iommu_version_t)},
    {HSA_AMD_AGENT_INFO_NUM_XCC, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_DRIVER_UID, sizeof(uint32_t)},
    {HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES, sizeof(uint8_t[8])},
    {HSA_AMD_AGENT_INFO_AQL_EXTENSIONS, sizeof(uint8_t[8])},
    {HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX, sizeof(uint64_t)},
    {HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT, sizeof(uint64_t)},
};

static hsa_status_t tell_what_is_zero(uint32_t attribute, void *value)
{
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
        if (zeros[i].attribute == attribute)
            return answer_zeros(value, zeros[i].size);
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static hsa_status_t tell_memory(const struct agent *agent, void *value)
{
    _cleanup_(runtime_leavep) struct memclient *ctx = runtime_enter();
    uint64_t bytes;
    hsa_status_t status;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    status = room_of_agent(agent, &bytes);
    return status ? status : answer_u64(value, bytes);
}

static hsa_status_t tell_clocks(void *value)
{
    uint64_t now = clock_now_ns();
    hsa_amd_clock_counters_t clocks = {
        .cpu_clock_counter = now,
        .system_clock_counter = now,
        .system_clock_frequency = NSEC_PER_SEC,
    };

    return answer(value, &clocks, sizeof(clocks));
}

static hsa_status_t tell_of_amd(const struct agent *agent, uint32_t attribute, void *value)
{
    switch (attribute) {
    case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
        return answer_u32(value, agent->cacheline);
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
    case HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT:
        return answer_u32(value, agent->cores);
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
        return answer_u32(value, agent->max_mhz);
    case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
        return answer_u32(value, agent->node);
    case HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS:
        return answer_u32(value, 1);
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
        return answer(value, agent->name, sizeof(agent->name));
    case HSA_AMD_AGENT_INFO_UUID:
        return answer(value, agent->uuid, sizeof(agent->uuid));
    case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
        return answer_bool(value, true);
    case HSA_AMD_AGENT_INFO_MEMORY_AVAIL:
        return tell_memory(agent, value);
    case HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY:
        return answer_u64(value, NSEC_PER_SEC);
    case HSA_AMD_AGENT_INFO_CLOCK_COUNTERS:
        return tell_clocks(value);
    case HSA_AMD_AGENT_INFO_NEAREST_CPU:
        return answer(value, &agent->nearest_cpu, sizeof(agent->nearest_cpu));
    default:
        return tell_what_is_zero(attribute, value);
    }
}

hsa_status_t hsa_agent_get_info(hsa_agent_t handle, hsa_agent_info_t attribute, void *value)
{
    static const char vendor[64] = "CPU";
    const struct agent *agent;

    if (!runtime_is_up())
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (!value)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    agent = topology_agent(handle);
    if (!agent)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    switch ((uint32_t)attribute) {
    case HSA_AGENT_INFO_NAME:
        return answer(value, agent->name, sizeof(agent->name));
    case HSA_AGENT_INFO_VENDOR_NAME:
        return answer(value, vendor, sizeof(vendor));
    case HSA_AGENT_INFO_MACHINE_MODEL:
        return answer_u32(value, MODEL);
    case HSA_AGENT_INFO_PROFILE:
        return answer_u32(value, HSA_PROFILE_FULL);
    case HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE:
    case HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES:
        return answer_u32(value, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR);
    case HSA_AGENT_INFO_QUEUE_TYPE:
        return answer_u32(value, HSA_QUEUE_TYPE_MULTI);
    case HSA_AGENT_INFO_NODE:
        return answer_u32(value, agent->node);
    case HSA_AGENT_INFO_DEVICE:
        return answer_u32(value, HSA_DEVICE_TYPE_CPU);
    case HSA_AGENT_INFO_CACHE_SIZE:
        return answer(value, agent->cache_bytes, sizeof(agent->cache_bytes));
    case HSA_AGENT_INFO_VERSION_MAJOR:
    case HSA_AGENT_INFO_VERSION_MINOR:
        return answer_u16(value, 1);
    default:
        return tell_of_amd(agent, (uint32_t)attribute, value);
    }
}
