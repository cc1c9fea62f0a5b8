/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hsa_ext_amd_gpu.h has: there is no GPU, so everything is refused. The manual lists these functions by name.
 */
#include "hsa/check.h"

hsa_status_t hsa_amd_queue_cu_set_mask(const hsa_queue_t *queue, uint32_t num_cu_mask_count, const uint32_t *cu_mask)
{
    return check(queue && num_cu_mask_count % 32 == 0 && (cu_mask || !num_cu_mask_count),
                  HSA_STATUS_ERROR_INVALID_QUEUE);
}

hsa_status_t hsa_amd_queue_cu_get_mask(const hsa_queue_t *queue, uint32_t num_cu_mask_count, uint32_t *cu_mask)
{
    return check(queue && num_cu_mask_count && num_cu_mask_count % 32 == 0 && cu_mask, HSA_STATUS_ERROR_INVALID_QUEUE);
}

hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t *queue, hsa_amd_queue_priority_t priority)
{
    return check(queue, HSA_STATUS_ERROR_INVALID_QUEUE);
}

hsa_status_t hsa_amd_queue_get_info(hsa_queue_t *queue, hsa_queue_info_attribute_t attribute, void *value)
{
    return check(queue && value, HSA_STATUS_ERROR_INVALID_QUEUE);
}

hsa_status_t hsa_amd_counted_queue_acquire(hsa_agent_t agent, hsa_queue_type_t type, hsa_amd_queue_priority_t priority,
                                           void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data),
                                           void *data, uint64_t flags, hsa_queue_t **queue)
{
    return check_agent(queue, agent, HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
}

hsa_status_t hsa_amd_counted_queue_release(hsa_queue_t *queue)
{
    return check(queue, HSA_STATUS_ERROR_INVALID_QUEUE);
}

hsa_status_t hsa_amd_agent_set_async_scratch_limit(hsa_agent_t agent, size_t threshold)
{
    return check_agent(true, agent, HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t *queue, int enable)
{
    return check(queue, HSA_STATUS_ERROR_INVALID_QUEUE);
}

hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                                                 hsa_amd_profiling_dispatch_time_t *time)
{
    return check(time, HSA_STATUS_ERROR_INVALID_AGENT);
}

hsa_status_t hsa_amd_profiling_convert_tick_to_system_domain(hsa_agent_t agent, uint64_t agent_tick,
                                                             uint64_t *system_tick)
{
    return check(system_tick, HSA_STATUS_ERROR_INVALID_AGENT);
}

hsa_status_t hsa_amd_spm_acquire(hsa_agent_t preferred_agent)
{
    return check(true, HSA_STATUS_ERROR_INVALID_AGENT);
}

hsa_status_t hsa_amd_spm_release(hsa_agent_t preferred_agent)
{
    return check(true, HSA_STATUS_ERROR_INVALID_AGENT);
}

hsa_status_t hsa_amd_spm_set_dest_buffer(hsa_agent_t preferred_agent, size_t size_in_bytes, uint32_t *timeout,
                                         uint32_t *size_copied, void *dest, bool *is_data_loss)
{
    return check(true, HSA_STATUS_ERROR_INVALID_AGENT);
}

hsa_status_t hsa_amd_enable_logging(uint8_t *flags, void *file)
{
    return check(true, NOT_SUPPORTED);
}

hsa_status_t hsa_amd_coherency_get_type(hsa_agent_t agent, hsa_amd_coherency_type_t *type)
{
    return check(type, HSA_STATUS_ERROR_INVALID_AGENT);
}

hsa_status_t hsa_amd_coherency_set_type(hsa_agent_t agent, hsa_amd_coherency_type_t type)
{
    return check(type == HSA_AMD_COHERENCY_TYPE_COHERENT || type == HSA_AMD_COHERENCY_TYPE_NONCOHERENT,
                  HSA_STATUS_ERROR_INVALID_AGENT);
}

hsa_status_t hsa_amd_ais_file_write(hsa_amd_ais_file_handle_t handle, void *devicePtr, uint64_t size,
                                    int64_t file_offset, uint64_t *size_copied, int32_t *status)
{
    return check(devicePtr && size, NOT_SUPPORTED);
}

hsa_status_t hsa_amd_ais_file_read(hsa_amd_ais_file_handle_t handle, void *devicePtr, uint64_t size,
                                   int64_t file_offset, uint64_t *size_copied, int32_t *status)
{
    return check(devicePtr && size, NOT_SUPPORTED);
}

hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback, void *data)
{
    return check(callback, HSA_STATUS_SUCCESS);
}
