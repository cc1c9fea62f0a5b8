/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of hsa_kernels.h and hsa_ext_amd_gpu.h for queues, code and GPUs, which do not exist here. Each
 * function checks its arguments and fails. The manual lists them by name.
 */
#include "base/align.h"
#include "hsa/runtime.h"

/* A function, the error that it returns for valid arguments, which arguments are valid, and its parameters. */
#define REFUSED(function, error, is_valid, parameters)                  \
    hsa_status_t function parameters                                    \
    {                                                                   \
        return check(is_valid, (hsa_status_t)HSA_STATUS_ERROR_##error); \
    }
/* The same, for a function whose parameter `agent` is checked as well. */
#define REFUSED_AGENT(function, error, is_valid, parameters)                         \
    hsa_status_t function parameters                                                 \
    {                                                                                \
        return check_agent(is_valid, agent, (hsa_status_t)HSA_STATUS_ERROR_##error); \
    }

/* clang-format cannot lay out such tables. */
/* clang-format off */

/* ---- queues ------------------------------------------------------------------------------------------------------ */

REFUSED_AGENT(hsa_queue_create, INVALID_QUEUE_CREATION, queue && is_power_of_two(size),
              (hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
               void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data), void *data,
               uint32_t private_segment_size, uint32_t group_segment_size, hsa_queue_t **queue))
REFUSED(hsa_queue_destroy, INVALID_QUEUE, queue, (hsa_queue_t *queue))
REFUSED(hsa_queue_inactivate, INVALID_QUEUE, queue, (hsa_queue_t *queue))

/* The indices of a queue are 0, and nothing changes them. */
#define INDEX_IS_0(function, parameters) \
    uint64_t function parameters         \
    {                                    \
        return 0;                        \
    }
INDEX_IS_0(hsa_queue_load_read_index_relaxed, (const hsa_queue_t *queue))
INDEX_IS_0(hsa_queue_load_read_index_scacquire, (const hsa_queue_t *queue))
INDEX_IS_0(hsa_queue_load_read_index_acquire, (const hsa_queue_t *queue))
INDEX_IS_0(hsa_queue_load_write_index_relaxed, (const hsa_queue_t *queue))
INDEX_IS_0(hsa_queue_load_write_index_scacquire, (const hsa_queue_t *queue))
INDEX_IS_0(hsa_queue_load_write_index_acquire, (const hsa_queue_t *queue))
INDEX_IS_0(hsa_queue_cas_write_index_relaxed, (const hsa_queue_t *queue, uint64_t expected, uint64_t value))
INDEX_IS_0(hsa_queue_cas_write_index_scacquire, (const hsa_queue_t *queue, uint64_t expected, uint64_t value))
INDEX_IS_0(hsa_queue_cas_write_index_acquire, (const hsa_queue_t *queue, uint64_t expected, uint64_t value))
INDEX_IS_0(hsa_queue_cas_write_index_screlease, (const hsa_queue_t *queue, uint64_t expected, uint64_t value))
INDEX_IS_0(hsa_queue_cas_write_index_release, (const hsa_queue_t *queue, uint64_t expected, uint64_t value))
INDEX_IS_0(hsa_queue_cas_write_index_scacq_screl, (const hsa_queue_t *queue, uint64_t expected, uint64_t value))
INDEX_IS_0(hsa_queue_cas_write_index_acq_rel, (const hsa_queue_t *queue, uint64_t expected, uint64_t value))
INDEX_IS_0(hsa_queue_add_write_index_relaxed, (const hsa_queue_t *queue, uint64_t value))
INDEX_IS_0(hsa_queue_add_write_index_scacquire, (const hsa_queue_t *queue, uint64_t value))
INDEX_IS_0(hsa_queue_add_write_index_acquire, (const hsa_queue_t *queue, uint64_t value))
INDEX_IS_0(hsa_queue_add_write_index_screlease, (const hsa_queue_t *queue, uint64_t value))
INDEX_IS_0(hsa_queue_add_write_index_release, (const hsa_queue_t *queue, uint64_t value))
INDEX_IS_0(hsa_queue_add_write_index_scacq_screl, (const hsa_queue_t *queue, uint64_t value))
INDEX_IS_0(hsa_queue_add_write_index_acq_rel, (const hsa_queue_t *queue, uint64_t value))

#define INDEX_STORED(function)                              \
    void function(const hsa_queue_t *queue, uint64_t value) \
    {                                                       \
    }
INDEX_STORED(hsa_queue_store_write_index_relaxed)
INDEX_STORED(hsa_queue_store_write_index_screlease)
INDEX_STORED(hsa_queue_store_write_index_release)
INDEX_STORED(hsa_queue_store_read_index_relaxed)
INDEX_STORED(hsa_queue_store_read_index_screlease)
INDEX_STORED(hsa_queue_store_read_index_release)

/* ---- instruction sets, code and executables ---------------------------------------------------------------------- */

REFUSED(hsa_isa_from_name, INVALID_ISA_NAME, name && isa, (const char *name, hsa_isa_t *isa))
REFUSED(hsa_isa_get_info, INVALID_ISA, value, (hsa_isa_t isa, hsa_isa_info_t attribute, uint32_t index, void *value))
REFUSED(hsa_isa_get_exception_policies, INVALID_ISA, mask, (hsa_isa_t isa, hsa_profile_t profile, uint16_t *mask))
REFUSED(hsa_isa_get_round_method, INVALID_ISA, round_method,
        (hsa_isa_t isa, hsa_fp_type_t fp_type, hsa_flush_mode_t flush_mode, hsa_round_method_t *round_method))
REFUSED(hsa_isa_iterate_wavefronts, INVALID_ISA, callback,
        (hsa_isa_t isa, hsa_status_t (*callback)(hsa_wavefront_t wavefront, void *data), void *data))
REFUSED(hsa_isa_compatible, INVALID_ISA, result, (hsa_isa_t code_object_isa, hsa_isa_t agent_isa, bool *result))
REFUSED(hsa_wavefront_get_info, INVALID_WAVEFRONT, value,
        (hsa_wavefront_t wavefront, hsa_wavefront_info_t attribute, void *value))
REFUSED(hsa_code_object_reader_create_from_file, NOT_SUPPORTED, file >= 0 && code_object_reader,
        (hsa_file_t file, hsa_code_object_reader_t *code_object_reader))
REFUSED(hsa_code_object_reader_create_from_memory, NOT_SUPPORTED, code_object && size && code_object_reader,
        (const void *code_object, size_t size, hsa_code_object_reader_t *code_object_reader))
REFUSED(hsa_code_object_reader_destroy, INVALID_CODE_OBJECT_READER, true, (hsa_code_object_reader_t code_object_reader))
REFUSED(hsa_executable_create, NOT_SUPPORTED, executable,
        (hsa_profile_t profile, hsa_executable_state_t executable_state, const char *options,
         hsa_executable_t *executable))
REFUSED(hsa_executable_create_alt, NOT_SUPPORTED, executable,
        (hsa_profile_t profile, hsa_default_float_rounding_mode_t default_float_rounding_mode, const char *options,
         hsa_executable_t *executable))
REFUSED(hsa_executable_destroy, INVALID_EXECUTABLE, true, (hsa_executable_t executable))
REFUSED(hsa_executable_freeze, INVALID_EXECUTABLE, true, (hsa_executable_t executable, const char *options))
REFUSED(hsa_executable_load_program_code_object, INVALID_EXECUTABLE, true,
        (hsa_executable_t executable, hsa_code_object_reader_t code_object_reader, const char *options,
         hsa_loaded_code_object_t *loaded_code_object))
REFUSED_AGENT(hsa_executable_load_agent_code_object, INVALID_EXECUTABLE, true,
              (hsa_executable_t executable, hsa_agent_t agent, hsa_code_object_reader_t code_object_reader,
               const char *options, hsa_loaded_code_object_t *loaded_code_object))
REFUSED(hsa_executable_get_info, INVALID_EXECUTABLE, value,
        (hsa_executable_t executable, hsa_executable_info_t attribute, void *value))
REFUSED(hsa_executable_validate, INVALID_EXECUTABLE, result, (hsa_executable_t executable, uint32_t *result))
REFUSED(hsa_executable_validate_alt, INVALID_EXECUTABLE, result,
        (hsa_executable_t executable, const char *options, uint32_t *result))
REFUSED(hsa_executable_global_variable_define, INVALID_EXECUTABLE, variable_name,
        (hsa_executable_t executable, const char *variable_name, void *address))
REFUSED_AGENT(hsa_executable_agent_global_variable_define, INVALID_EXECUTABLE, variable_name,
              (hsa_executable_t executable, hsa_agent_t agent, const char *variable_name, void *address))
REFUSED_AGENT(hsa_executable_readonly_variable_define, INVALID_EXECUTABLE, variable_name,
              (hsa_executable_t executable, hsa_agent_t agent, const char *variable_name, void *address))
REFUSED(hsa_executable_get_symbol, INVALID_EXECUTABLE, symbol_name && symbol,
        (hsa_executable_t executable, const char *module_name, const char *symbol_name, hsa_agent_t agent,
         int32_t call_convention, hsa_executable_symbol_t *symbol))
REFUSED(hsa_executable_get_symbol_by_name, INVALID_EXECUTABLE, symbol_name && symbol,
        (hsa_executable_t executable, const char *symbol_name, const hsa_agent_t *agent,
         hsa_executable_symbol_t *symbol))
REFUSED(hsa_executable_iterate_symbols, INVALID_EXECUTABLE, callback,
        (hsa_executable_t executable,
         hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data), void *data))
REFUSED_AGENT(hsa_executable_iterate_agent_symbols, INVALID_EXECUTABLE, callback,
              (hsa_executable_t executable, hsa_agent_t agent,
               hsa_status_t (*callback)(hsa_executable_t exec, hsa_agent_t agent, hsa_executable_symbol_t symbol,
                                        void *data), void *data))
REFUSED(hsa_executable_iterate_program_symbols, INVALID_EXECUTABLE, callback,
        (hsa_executable_t executable,
         hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data), void *data))
REFUSED(hsa_executable_symbol_get_info, INVALID_EXECUTABLE_SYMBOL, value,
        (hsa_executable_symbol_t executable_symbol, hsa_executable_symbol_info_t attribute, void *value))
REFUSED_AGENT(hsa_executable_load_code_object, INVALID_EXECUTABLE, true,
              (hsa_executable_t executable, hsa_agent_t agent, hsa_code_object_t code_object, const char *options))
REFUSED(hsa_code_object_deserialize, NOT_SUPPORTED, serialized && size && code_object,
        (void *serialized, size_t size, const char *options, hsa_code_object_t *code_object))
REFUSED(hsa_code_object_serialize, INVALID_CODE_OBJECT, true,
        (hsa_code_object_t code_object,
         hsa_status_t (*alloc_callback)(size_t size, hsa_callback_data_t data, void **address),
         hsa_callback_data_t callback_data, const char *options, void **serialized_code_object,
         size_t *serialized_code_object_size))
REFUSED(hsa_code_object_destroy, INVALID_CODE_OBJECT, true, (hsa_code_object_t code_object))
REFUSED(hsa_code_object_get_info, INVALID_CODE_OBJECT, value,
        (hsa_code_object_t code_object, hsa_code_object_info_t attribute, void *value))
REFUSED(hsa_code_object_get_symbol, INVALID_CODE_OBJECT, symbol_name && symbol,
        (hsa_code_object_t code_object, const char *symbol_name, hsa_code_symbol_t *symbol))
REFUSED(hsa_code_object_get_symbol_from_name, INVALID_CODE_OBJECT, symbol_name && symbol,
        (hsa_code_object_t code_object, const char *module_name, const char *symbol_name, hsa_code_symbol_t *symbol))
REFUSED(hsa_code_object_iterate_symbols, INVALID_CODE_OBJECT, callback,
        (hsa_code_object_t code_object,
         hsa_status_t (*callback)(hsa_code_object_t code_object, hsa_code_symbol_t symbol, void *data), void *data))
REFUSED(hsa_code_symbol_get_info, INVALID_CODE_SYMBOL, value,
        (hsa_code_symbol_t code_symbol, hsa_code_symbol_info_t attribute, void *value))

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

REFUSED(hsa_amd_queue_cu_set_mask, INVALID_QUEUE, queue && n % 32 == 0 && (mask || !n),
        (const hsa_queue_t *queue, uint32_t n, const uint32_t *mask))
REFUSED(hsa_amd_queue_cu_get_mask, INVALID_QUEUE, queue && n && n % 32 == 0 && mask,
        (const hsa_queue_t *queue, uint32_t n, uint32_t *mask))
REFUSED(hsa_amd_queue_set_priority, INVALID_QUEUE, queue, (hsa_queue_t *queue, hsa_amd_queue_priority_t priority))
REFUSED(hsa_amd_queue_get_info, INVALID_QUEUE, queue && value,
        (hsa_queue_t *queue, hsa_queue_info_attribute_t attribute, void *value))
REFUSED_AGENT(hsa_amd_counted_queue_acquire, INVALID_QUEUE_CREATION, queue,
              (hsa_agent_t agent, hsa_queue_type_t type, hsa_amd_queue_priority_t priority,
               void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data), void *data, uint64_t flags,
               hsa_queue_t **queue))
REFUSED(hsa_amd_counted_queue_release, INVALID_QUEUE, queue, (hsa_queue_t *queue))
REFUSED_AGENT(hsa_amd_agent_set_async_scratch_limit, INVALID_ARGUMENT, true, (hsa_agent_t agent, size_t threshold))
REFUSED(hsa_amd_profiling_set_profiler_enabled, INVALID_QUEUE, queue, (hsa_queue_t *queue, int enable))
REFUSED(hsa_amd_profiling_get_dispatch_time, INVALID_AGENT, time,
        (hsa_agent_t agent, hsa_signal_t signal, hsa_amd_profiling_dispatch_time_t *time))
REFUSED(hsa_amd_profiling_convert_tick_to_system_domain, INVALID_AGENT, system_tick,
        (hsa_agent_t agent, uint64_t agent_tick, uint64_t *system_tick))
REFUSED(hsa_amd_spm_acquire, INVALID_AGENT, true, (hsa_agent_t preferred_agent))
REFUSED(hsa_amd_spm_release, INVALID_AGENT, true, (hsa_agent_t preferred_agent))
REFUSED(hsa_amd_spm_set_dest_buffer, INVALID_AGENT, true,
        (hsa_agent_t preferred_agent, size_t size_in_bytes, uint32_t *timeout, uint32_t *size_copied, void *dest,
         bool *is_data_loss))
REFUSED(hsa_amd_enable_logging, NOT_SUPPORTED, true, (uint8_t *flags, void *file))
REFUSED(hsa_amd_coherency_get_type, INVALID_AGENT, type, (hsa_agent_t agent, hsa_amd_coherency_type_t *type))
REFUSED(hsa_amd_coherency_set_type, INVALID_AGENT,
        type == HSA_AMD_COHERENCY_TYPE_COHERENT || type == HSA_AMD_COHERENCY_TYPE_NONCOHERENT,
        (hsa_agent_t agent, hsa_amd_coherency_type_t type))
REFUSED(hsa_amd_ais_file_write, NOT_SUPPORTED, devicePtr && size,
        (hsa_amd_ais_file_handle_t handle, void *devicePtr, uint64_t size, int64_t file_offset, uint64_t *size_copied,
         int32_t *status))
REFUSED(hsa_amd_ais_file_read, NOT_SUPPORTED, devicePtr && size,
        (hsa_amd_ais_file_handle_t handle, void *devicePtr, uint64_t size, int64_t file_offset, uint64_t *size_copied,
         int32_t *status))

/* clang-format on */

/* ---- two that differ --------------------------------------------------------------------------------------------- */

hsa_status_t hsa_soft_queue_create(hsa_region_t region, uint32_t size, hsa_queue_type32_t type, uint32_t features,
                                   hsa_signal_t doorbell_signal, hsa_queue_t **queue)
{
    bool is_region = topology_pool(region.handle);

    return check(queue && is_power_of_two(size),
                 is_region ? HSA_STATUS_ERROR_INVALID_QUEUE_CREATION : HSA_STATUS_ERROR_INVALID_REGION);
}

/* It succeeds, but no event ever calls the callback. */
hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback, void *data)
{
    return check(callback, HSA_STATUS_SUCCESS);
}
