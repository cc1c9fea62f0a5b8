/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents: listing them, and their attributes.
 *
 * An agent is a processor with memory and nothing else, so most attributes (waves, queues, work-groups) are 0. The
 * snapshot of the topology has all of them except MEMORY_AVAIL, so queries take no lock and do not call the broker.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/clock.h"
#include "hsa/headroom.h"
#include "hsa/info.h"
#include "hsa/runtime.h"

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data), void *data)
{
    const struct topology *t = topology();
    hsa_status_t status = check(callback, HSA_STATUS_SUCCESS);

    for (unsigned i = 0; !status && i < t->n_agents; i++)
        status = callback(t->agents[i].handle, data);
    return status;
}

static hsa_status_t agent_put_available(const void *agent, void *value)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    uint64_t bytes;
    hsa_status_t status;

    if (!ctx)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    status = headroom_of_agent(agent, &bytes);
    if (!status)
        memcpy(value, &bytes, sizeof(bytes));
    return status;
}

static hsa_status_t agent_put_clocks(const void *agent, void *value)
{
    uint64_t now = clock_now_ns();
    hsa_amd_clock_counters_t clocks = {
        .cpu_clock_counter = now,
        .system_clock_counter = now,
        .system_clock_frequency = NSEC_PER_SEC,
    };

    memcpy(value, &clocks, sizeof(clocks));
    return HSA_STATUS_SUCCESS;
}

static const struct info agent_info[] = {
    INFO_FIELD(HSA_AGENT_INFO_NAME, agent, name),
    INFO_CONSTANT(HSA_AGENT_INFO_VENDOR_NAME, char[64], "CPU"),
    INFO_CONSTANT(HSA_AGENT_INFO_MACHINE_MODEL, hsa_machine_model_t, MACHINE_MODEL),
    INFO_CONSTANT(HSA_AGENT_INFO_PROFILE, hsa_profile_t, HSA_PROFILE_FULL),
    INFO_CONSTANT(HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE, hsa_default_float_rounding_mode_t,
                  HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR),
    INFO_CONSTANT(HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES, hsa_default_float_rounding_mode_t,
                  HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR),
    INFO_CONSTANT(HSA_AGENT_INFO_QUEUE_TYPE, hsa_queue_type32_t, HSA_QUEUE_TYPE_MULTI),
    INFO_FIELD(HSA_AGENT_INFO_NODE, agent, node),
    INFO_CONSTANT(HSA_AGENT_INFO_DEVICE, hsa_device_type_t, HSA_DEVICE_TYPE_CPU),
    INFO_FIELD(HSA_AGENT_INFO_CACHE_SIZE, agent, cache_bytes),
    INFO_CONSTANT(HSA_AGENT_INFO_VERSION_MAJOR, uint16_t, 1),
    INFO_CONSTANT(HSA_AGENT_INFO_VERSION_MINOR, uint16_t, 1),
    INFO_FIELD(HSA_AMD_AGENT_INFO_CACHELINE_SIZE, agent, cacheline),
    INFO_FIELD(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, agent, cores),
    INFO_FIELD(HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT, agent, cores),
    INFO_FIELD(HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY, agent, max_mhz),
    INFO_FIELD(HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, agent, node),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS, uint32_t, 1),
    INFO_FIELD(HSA_AMD_AGENT_INFO_PRODUCT_NAME, agent, name),
    INFO_FIELD(HSA_AMD_AGENT_INFO_UUID, agent, uuid),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS, bool, true),
    INFO_FUNCTION(HSA_AMD_AGENT_INFO_MEMORY_AVAIL, agent_put_available),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, uint64_t, NSEC_PER_SEC),
    INFO_FUNCTION(HSA_AMD_AGENT_INFO_CLOCK_COUNTERS, agent_put_clocks),
    INFO_FIELD(HSA_AMD_AGENT_INFO_NEAREST_CPU, agent, nearest_cpu),
    /* 0 or empty on every CPU */
    INFO_CONSTANT(HSA_AGENT_INFO_FEATURE, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_WAVEFRONT_SIZE, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_WORKGROUP_MAX_DIM, uint16_t[3], 0),
    INFO_CONSTANT(HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_GRID_MAX_DIM, hsa_dim3_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_GRID_MAX_SIZE, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_FBARRIER_MAX_SIZE, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_QUEUES_MAX, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_QUEUE_MIN_SIZE, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_QUEUE_MAX_SIZE, uint32_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_ISA, hsa_isa_t, 0),
    INFO_CONSTANT(HSA_AGENT_INFO_EXTENSIONS, uint8_t[128], 0),
    INFO_CONSTANT(HSA_AGENT_INFO_FAST_F16_OPERATION, bool, 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS, uint32_t, 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS, uint32_t, 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS, uint32_t, 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS, uint32_t[2], 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS, uint32_t[2], 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS, uint32_t[2], 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS, uint32_t[2], 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS, uint32_t[3], 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS, uint32_t, 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES, uint32_t, 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES, uint32_t, 0),
    INFO_CONSTANT(HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_CHIP_ID, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_BDFID, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_HDP_FLUSH, hsa_amd_hdp_flush_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_DOMAIN, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES, bool, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_ASIC_REVISION, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_UCODE_VERSION, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_IOMMU_SUPPORT, hsa_amd_iommu_version_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_NUM_XCC, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_DRIVER_UID, uint32_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES, uint8_t[8], 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_AQL_EXTENSIONS, uint8_t[8], 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX, uint64_t, 0),
    INFO_CONSTANT(HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT, uint64_t, 0),
};

hsa_status_t hsa_agent_get_info(hsa_agent_t handle, hsa_agent_info_t attribute, void *value)
{
    return INFO_PUT(agent_info, attribute, topology_agent(handle), HSA_STATUS_ERROR_INVALID_AGENT, value);
}
