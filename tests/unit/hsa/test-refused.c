/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What agents without queues and kernels refuse: hsa_kernels.h, hsa_ext_amd_gpu.h; and what can be asked about
 * extensions, of which there is none. Each function is called with arguments that are valid as far as that can be, and
 * with each that is not; all of them once more before hsa_init().
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/child.h"
#include "tests/unit/hsa/hsa.h"

#define NOT_SUPPORTED ((hsa_status_t)HSA_STATUS_ERROR_NOT_SUPPORTED)

static const hsa_agent_t no_agent = {12345};
static char bytes[256];
static void *const place = bytes; /* for whatever would be written or read */
static bool is_child;

static void never(void)
{
    abort();
}

static void check_call(hsa_status_t got, hsa_status_t wanted, const char *call, int line)
{
    char untouched[sizeof(bytes)];

    if (is_child) {
        CHECK(got == HSA_STATUS_ERROR_NOT_INITIALIZED);
        return;
    }
    hsa_assert_status(got, wanted, call, __FILE__, line);
    memset(untouched, 0x5a, sizeof(untouched));
    assert_memory_equal(bytes, untouched, sizeof(untouched));
}

#define CALL(call, wanted)                             \
    do {                                               \
        memset(bytes, 0x5a, sizeof(bytes));            \
        check_call((call), (wanted), #call, __LINE__); \
    } while (0)

/* Refused: agent_isa, attribute, callback, code_object_isa, data, flush_mode, fp_type, index, isa, mask, name,
 * profile, result, round_method, value, wavefront. HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_ISA,
 * HSA_STATUS_ERROR_INVALID_ISA_NAME, HSA_STATUS_ERROR_INVALID_WAVEFRONT, HSA_STATUS_SUCCESS never */
static void instruction_sets(void **state)
{
    CALL(hsa_isa_from_name("name", place), HSA_STATUS_ERROR_INVALID_ISA_NAME);
    CALL(hsa_isa_from_name(NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_isa_from_name("name", NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_isa_get_info((hsa_isa_t){1}, (hsa_isa_info_t)1, 1, place), HSA_STATUS_ERROR_INVALID_ISA);
    CALL(hsa_isa_get_info((hsa_isa_t){1}, (hsa_isa_info_t)1, 1, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_isa_get_exception_policies((hsa_isa_t){1}, (hsa_profile_t)1, place), HSA_STATUS_ERROR_INVALID_ISA);
    CALL(hsa_isa_get_exception_policies((hsa_isa_t){1}, (hsa_profile_t)1, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_isa_get_round_method((hsa_isa_t){1}, (hsa_fp_type_t)1, (hsa_flush_mode_t)1, place),
         HSA_STATUS_ERROR_INVALID_ISA);
    CALL(hsa_isa_get_round_method((hsa_isa_t){1}, (hsa_fp_type_t)1, (hsa_flush_mode_t)1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_isa_iterate_wavefronts((hsa_isa_t){1}, (hsa_status_t(*)(hsa_wavefront_t wavefront, void *data))never,
                                    place),
         HSA_STATUS_ERROR_INVALID_ISA);
    CALL(hsa_isa_iterate_wavefronts((hsa_isa_t){1}, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_isa_compatible((hsa_isa_t){1}, (hsa_isa_t){1}, place), HSA_STATUS_ERROR_INVALID_ISA);
    CALL(hsa_isa_compatible((hsa_isa_t){1}, (hsa_isa_t){1}, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_wavefront_get_info((hsa_wavefront_t){1}, (hsa_wavefront_info_t)1, place),
         HSA_STATUS_ERROR_INVALID_WAVEFRONT);
    CALL(hsa_wavefront_get_info((hsa_wavefront_t){1}, (hsa_wavefront_info_t)1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* Refused: code_object, code_object_reader, file, size. HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER, HSA_STATUS_ERROR_NOT_SUPPORTED, HSA_STATUS_SUCCESS never */
static void code(void **state)
{
    CALL(hsa_code_object_reader_create_from_file(0, place), NOT_SUPPORTED);
    CALL(hsa_code_object_reader_create_from_file(-1, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_reader_create_from_file(0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_reader_create_from_memory(place, 1, place), NOT_SUPPORTED);
    CALL(hsa_code_object_reader_create_from_memory(NULL, 1, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_reader_create_from_memory(place, 0, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_reader_create_from_memory(place, 1, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_reader_destroy((hsa_code_object_reader_t){1}), HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER);
}

/* Refused: address, agent, attribute, call_convention, callback, code_object_reader, data,
 * default_float_rounding_mode, executable, executable_state, executable_symbol, loaded_code_object, module_name,
 * options, profile, result, symbol, symbol_name, value, variable_name. HSA_STATUS_ERROR_INVALID_AGENT,
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_EXECUTABLE,
 * HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL, HSA_STATUS_ERROR_NOT_SUPPORTED, HSA_STATUS_SUCCESS never */
static void executables(void **state)
{
    CALL(hsa_executable_create((hsa_profile_t)1, (hsa_executable_state_t)1, "name", place), NOT_SUPPORTED);
    CALL(hsa_executable_create((hsa_profile_t)1, (hsa_executable_state_t)1, "name", NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_create_alt((hsa_profile_t)1, (hsa_default_float_rounding_mode_t)1, "name", place),
         NOT_SUPPORTED);
    CALL(hsa_executable_create_alt((hsa_profile_t)1, (hsa_default_float_rounding_mode_t)1, "name", NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_destroy((hsa_executable_t){1}), HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_freeze((hsa_executable_t){1}, "name"), HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_load_program_code_object((hsa_executable_t){1}, (hsa_code_object_reader_t){1}, "name", place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_load_agent_code_object((hsa_executable_t){1}, agents[0], (hsa_code_object_reader_t){1}, "name",
                                               place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_load_agent_code_object((hsa_executable_t){1}, no_agent, (hsa_code_object_reader_t){1}, "name",
                                               place),
         HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_executable_get_info((hsa_executable_t){1}, (hsa_executable_info_t)1, place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_get_info((hsa_executable_t){1}, (hsa_executable_info_t)1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_validate((hsa_executable_t){1}, place), HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_validate((hsa_executable_t){1}, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_validate_alt((hsa_executable_t){1}, "name", place), HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_validate_alt((hsa_executable_t){1}, "name", NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_global_variable_define((hsa_executable_t){1}, "name", place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_global_variable_define((hsa_executable_t){1}, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_agent_global_variable_define((hsa_executable_t){1}, agents[0], "name", place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_agent_global_variable_define((hsa_executable_t){1}, no_agent, "name", place),
         HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_executable_agent_global_variable_define((hsa_executable_t){1}, agents[0], NULL, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_readonly_variable_define((hsa_executable_t){1}, agents[0], "name", place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_readonly_variable_define((hsa_executable_t){1}, no_agent, "name", place),
         HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_executable_readonly_variable_define((hsa_executable_t){1}, agents[0], NULL, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_get_symbol((hsa_executable_t){1}, "name", "name", agents[0], 1, place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_get_symbol((hsa_executable_t){1}, "name", NULL, agents[0], 1, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_get_symbol((hsa_executable_t){1}, "name", "name", agents[0], 1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_get_symbol_by_name((hsa_executable_t){1}, "name", place, place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_get_symbol_by_name((hsa_executable_t){1}, NULL, place, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_get_symbol_by_name((hsa_executable_t){1}, "name", place, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_iterate_symbols(
             (hsa_executable_t){1},
             (hsa_status_t(*)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data))never, place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_iterate_symbols((hsa_executable_t){1}, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_iterate_agent_symbols((hsa_executable_t){1}, agents[0],
                                              (hsa_status_t(*)(hsa_executable_t exec, hsa_agent_t agent,
                                                               hsa_executable_symbol_t symbol, void *data))never,
                                              place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_iterate_agent_symbols((hsa_executable_t){1}, no_agent,
                                              (hsa_status_t(*)(hsa_executable_t exec, hsa_agent_t agent,
                                                               hsa_executable_symbol_t symbol, void *data))never,
                                              place),
         HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_executable_iterate_agent_symbols((hsa_executable_t){1}, agents[0], NULL, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_iterate_program_symbols(
             (hsa_executable_t){1},
             (hsa_status_t(*)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data))never, place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_iterate_program_symbols((hsa_executable_t){1}, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_executable_symbol_get_info((hsa_executable_symbol_t){1}, (hsa_executable_symbol_info_t)1, place),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL);
    CALL(hsa_executable_symbol_get_info((hsa_executable_symbol_t){1}, (hsa_executable_symbol_info_t)1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* Refused: agent, alloc_callback, attribute, callback, callback_data, code_object, code_symbol, data, executable,
 * module_name, options, serialized_code_object, serialized_code_object_size, symbol, symbol_name, value.
 * HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
 * HSA_STATUS_ERROR_INVALID_CODE_SYMBOL, HSA_STATUS_ERROR_INVALID_EXECUTABLE, HSA_STATUS_ERROR_NOT_SUPPORTED,
 * HSA_STATUS_SUCCESS never */
static void code_objects(void **state)
{
    CALL(hsa_executable_load_code_object((hsa_executable_t){1}, agents[0], (hsa_code_object_t){1}, "name"),
         HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    CALL(hsa_executable_load_code_object((hsa_executable_t){1}, no_agent, (hsa_code_object_t){1}, "name"),
         HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_code_object_deserialize(place, 1, "name", place), NOT_SUPPORTED);
    CALL(hsa_code_object_deserialize(NULL, 1, "name", place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_deserialize(place, 0, "name", place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_deserialize(place, 1, "name", NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_serialize((hsa_code_object_t){1},
                                   (hsa_status_t(*)(size_t size, hsa_callback_data_t data, void **address))never,
                                   (hsa_callback_data_t){1}, "name", place, place),
         HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    CALL(hsa_code_object_destroy((hsa_code_object_t){1}), HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    CALL(hsa_code_object_get_info((hsa_code_object_t){1}, (hsa_code_object_info_t)1, place),
         HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    CALL(hsa_code_object_get_info((hsa_code_object_t){1}, (hsa_code_object_info_t)1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_get_symbol((hsa_code_object_t){1}, "name", place), HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    CALL(hsa_code_object_get_symbol((hsa_code_object_t){1}, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_get_symbol((hsa_code_object_t){1}, "name", NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_get_symbol_from_name((hsa_code_object_t){1}, "name", "name", place),
         HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    CALL(hsa_code_object_get_symbol_from_name((hsa_code_object_t){1}, "name", NULL, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_get_symbol_from_name((hsa_code_object_t){1}, "name", "name", NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_object_iterate_symbols(
             (hsa_code_object_t){1},
             (hsa_status_t(*)(hsa_code_object_t code_object, hsa_code_symbol_t symbol, void *data))never, place),
         HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    CALL(hsa_code_object_iterate_symbols((hsa_code_object_t){1}, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_code_symbol_get_info((hsa_code_symbol_t){1}, (hsa_code_symbol_info_t)1, place),
         HSA_STATUS_ERROR_INVALID_CODE_SYMBOL);
    CALL(hsa_code_symbol_get_info((hsa_code_symbol_t){1}, (hsa_code_symbol_info_t)1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* Refused: agent, attribute, callback, cu_mask, data, flags, num_cu_mask_count, priority, queue, threshold, type,
 * value. HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_QUEUE,
 * HSA_STATUS_ERROR_INVALID_QUEUE_CREATION, HSA_STATUS_SUCCESS never */
static void queues_of_amd(void **state)
{
    CALL(hsa_amd_queue_cu_set_mask(place, 32, place), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_amd_queue_cu_set_mask(NULL, 32, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_cu_set_mask(place, 31, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_cu_set_mask(place, 32, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_cu_get_mask(place, 32, place), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_amd_queue_cu_get_mask(NULL, 32, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_cu_get_mask(place, 31, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_cu_get_mask(place, 32, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_set_priority(place, (hsa_amd_queue_priority_t)1), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_amd_queue_set_priority(NULL, (hsa_amd_queue_priority_t)1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_get_info(place, (hsa_queue_info_attribute_t)1, place), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_amd_queue_get_info(NULL, (hsa_queue_info_attribute_t)1, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_queue_get_info(place, (hsa_queue_info_attribute_t)1, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_counted_queue_acquire(agents[0], (hsa_queue_type_t)1, (hsa_amd_queue_priority_t)1,
                                       (void (*)(hsa_status_t status, hsa_queue_t * source, void *data)) never, place,
                                       1, place),
         HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
    CALL(hsa_amd_counted_queue_acquire(no_agent, (hsa_queue_type_t)1, (hsa_amd_queue_priority_t)1,
                                       (void (*)(hsa_status_t status, hsa_queue_t * source, void *data)) never, place,
                                       1, place),
         HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_counted_queue_acquire(agents[0], (hsa_queue_type_t)1, (hsa_amd_queue_priority_t)1,
                                       (void (*)(hsa_status_t status, hsa_queue_t * source, void *data)) never, place,
                                       1, NULL),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_counted_queue_release(place), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_amd_counted_queue_release(NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_agent_set_async_scratch_limit(agents[0], 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_agent_set_async_scratch_limit(no_agent, 1), HSA_STATUS_ERROR_INVALID_AGENT);
}

/* Refused: agent, agent_tick, dest, enable, file, flags, is_data_loss, preferred_agent, queue, signal, size_copied,
 * size_in_bytes, system_tick, time, timeout. HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_QUEUE, HSA_STATUS_ERROR_NOT_SUPPORTED, HSA_STATUS_SUCCESS never */
static void profiling(void **state)
{
    CALL(hsa_amd_profiling_set_profiler_enabled(place, 1), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_amd_profiling_set_profiler_enabled(NULL, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_profiling_get_dispatch_time(agents[0], (hsa_signal_t){1}, place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_profiling_get_dispatch_time(agents[0], (hsa_signal_t){1}, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_profiling_convert_tick_to_system_domain(agents[0], 1, place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_profiling_convert_tick_to_system_domain(agents[0], 1, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_spm_acquire(agents[0]), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_spm_release(agents[0]), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_spm_set_dest_buffer(agents[0], 1, place, place, place, place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_enable_logging(place, place), NOT_SUPPORTED);
}

/* Refused: agent, type. HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_SUCCESS never */
static void coherency(void **state)
{
    CALL(hsa_amd_coherency_get_type(agents[0], place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_coherency_get_type(agents[0], NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_coherency_set_type(agents[0], HSA_AMD_COHERENCY_TYPE_NONCOHERENT), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_amd_coherency_set_type(agents[0], (hsa_amd_coherency_type_t)7), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* Refused: devicePtr, file_offset, handle, size, size_copied, status. HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_NOT_SUPPORTED, HSA_STATUS_SUCCESS never */
static void files(void **state)
{
    CALL(hsa_amd_ais_file_write((hsa_amd_ais_file_handle_t){{NULL}}, place, 1, 1, place, place), NOT_SUPPORTED);
    CALL(hsa_amd_ais_file_write((hsa_amd_ais_file_handle_t){{NULL}}, NULL, 1, 1, place, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_ais_file_write((hsa_amd_ais_file_handle_t){{NULL}}, place, 0, 1, place, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_ais_file_read((hsa_amd_ais_file_handle_t){{NULL}}, place, 1, 1, place, place), NOT_SUPPORTED);
    CALL(hsa_amd_ais_file_read((hsa_amd_ais_file_handle_t){{NULL}}, NULL, 1, 1, place, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_amd_ais_file_read((hsa_amd_ais_file_handle_t){{NULL}}, place, 0, 1, place, place),
         HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* Refused: agent, region, size, type, features, doorbell_signal, callback, data, private_segment_size,
 * group_segment_size, queue. HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT,
 * HSA_STATUS_ERROR_INVALID_REGION, HSA_STATUS_ERROR_INVALID_QUEUE_CREATION, HSA_STATUS_ERROR_INVALID_QUEUE,
 * HSA_STATUS_SUCCESS never */
static void queues(void **state)
{
    for (uint32_t type = HSA_QUEUE_TYPE_MULTI; type <= HSA_QUEUE_TYPE_COOPERATIVE; type++)
        CALL(hsa_queue_create(agents[0], 64, type, NULL, NULL, 0, 0, place), HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
    CALL(hsa_queue_create(agents[0], 64, 0, NULL, NULL, 0, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_queue_create(agents[0], 0, 0, NULL, NULL, 0, 0, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_queue_create(agents[0], 63, 0, NULL, NULL, 0, 0, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_queue_create(no_agent, 64, 0, NULL, NULL, 0, 0, place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_soft_queue_create(regions[0][FINE], 64, 0, 1, (hsa_signal_t){0}, place),
         HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
    CALL(hsa_soft_queue_create(regions[0][FINE], 64, 0, 1, (hsa_signal_t){0}, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_soft_queue_create(regions[0][FINE], 6, 0, 1, (hsa_signal_t){0}, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_soft_queue_create((hsa_region_t){12345}, 64, 0, 1, (hsa_signal_t){0}, place),
         HSA_STATUS_ERROR_INVALID_REGION);
    CALL(hsa_queue_destroy(place), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_queue_destroy(NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_queue_inactivate(place), HSA_STATUS_ERROR_INVALID_QUEUE);
    CALL(hsa_queue_inactivate(NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* Of what is no queue: queue, value, expected: 0, and nothing changes. */
static void indexes(void **state)
{
    static uint64_t (*const loads[])(const hsa_queue_t *) = {
        hsa_queue_load_read_index_relaxed,  hsa_queue_load_read_index_scacquire,  hsa_queue_load_read_index_acquire,
        hsa_queue_load_write_index_relaxed, hsa_queue_load_write_index_scacquire, hsa_queue_load_write_index_acquire,
    };
    static void (*const stores[])(const hsa_queue_t *, uint64_t) = {
        hsa_queue_store_write_index_relaxed, hsa_queue_store_write_index_screlease, hsa_queue_store_write_index_release,
        hsa_queue_store_read_index_relaxed,  hsa_queue_store_read_index_screlease,  hsa_queue_store_read_index_release,
    };
    static uint64_t (*const swaps[])(const hsa_queue_t *, uint64_t, uint64_t) = {
        hsa_queue_cas_write_index_relaxed,   hsa_queue_cas_write_index_scacquire, hsa_queue_cas_write_index_acquire,
        hsa_queue_cas_write_index_screlease, hsa_queue_cas_write_index_release,   hsa_queue_cas_write_index_scacq_screl,
        hsa_queue_cas_write_index_acq_rel,
    };
    static uint64_t (*const adds[])(const hsa_queue_t *, uint64_t) = {
        hsa_queue_add_write_index_relaxed,   hsa_queue_add_write_index_scacquire, hsa_queue_add_write_index_acquire,
        hsa_queue_add_write_index_screlease, hsa_queue_add_write_index_release,   hsa_queue_add_write_index_scacq_screl,
        hsa_queue_add_write_index_acq_rel,
    };
    hsa_queue_t queue, before;

    memset(&queue, 0x5a, sizeof(queue));
    before = queue;
    for (unsigned i = 0; i < sizeof(stores) / sizeof(stores[0]); i++)
        stores[i](&queue, 1);
    for (unsigned i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        assert_int_equal(loads[i](&queue), 0);
    for (unsigned i = 0; i < sizeof(swaps) / sizeof(swaps[0]); i++)
        assert_int_equal(swaps[i](&queue, 0, 1), 0);
    for (unsigned i = 0; i < sizeof(adds) / sizeof(adds[0]); i++)
        assert_int_equal(adds[i](&queue, 1), 0);
    assert_memory_equal(&queue, &before, sizeof(queue));
}

/* hsa_amd_register_system_event_handler: callback, data: HSA_STATUS_SUCCESS, and it is never called;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT */
static void events(void **state)
{
    CALL(hsa_amd_register_system_event_handler((hsa_amd_system_event_callback_t)never, place), HSA_STATUS_SUCCESS);
    CALL(hsa_amd_register_system_event_handler(NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

static const struct {
    uint16_t extension;
    const char *name;
} extensions[] = {
    {HSA_EXTENSION_FINALIZER, "HSA_EXTENSION_FINALIZER"},
    {HSA_EXTENSION_IMAGES, "HSA_EXTENSION_IMAGES"},
    {HSA_EXTENSION_PERFORMANCE_COUNTERS, "HSA_EXTENSION_PERFORMANCE_COUNTERS"},
    {HSA_EXTENSION_PROFILING_EVENTS, "HSA_EXTENSION_PROFILING_EVENTS"},
    {HSA_EXTENSION_AMD_PROFILER, "HSA_EXTENSION_AMD_PROFILER"},
    {HSA_EXTENSION_AMD_LOADER, "HSA_EXTENSION_AMD_LOADER"},
    {HSA_EXTENSION_AMD_AQLPROFILE, "HSA_EXTENSION_AMD_AQLPROFILE"},
    {HSA_EXTENSION_AMD_PC_SAMPLING, "HSA_EXTENSION_AMD_PC_SAMPLING"},
};

/* hsa_extension_get_name, hsa_system_extension_supported, hsa_system_major_extension_supported,
 * hsa_agent_extension_supported, hsa_agent_major_extension_supported: extension, name, agent, version_major,
 * version_minor, result: HSA_STATUS_SUCCESS: each has a name, and none is there */
static void no_extension_is_there(void **state)
{
    for (unsigned i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
        const uint16_t extension = extensions[i].extension;
        const char *name = NULL;
        uint16_t minor = 99;
        bool result;

        assert_success(hsa_extension_get_name(extension, &name));
        assert_string_equal(name, extensions[i].name);
        result = true;
        assert_success(hsa_system_extension_supported(extension, 1, 0, &result));
        assert_false(result);
        result = true;
        assert_success(hsa_system_major_extension_supported(extension, 1, &minor, &result));
        assert_false(result);
        result = true;
        assert_success(hsa_agent_extension_supported(extension, agents[1], 1, 0, &result));
        assert_false(result);
        result = true;
        assert_success(hsa_agent_major_extension_supported(extension, agents[1], 1, &minor, &result));
        assert_false(result);
        assert_int_equal(minor, 99);
    }
}

/* hsa_extension_get_name, hsa_system_extension_supported, hsa_system_major_extension_supported,
 * hsa_agent_extension_supported, hsa_agent_major_extension_supported, hsa_system_get_extension_table,
 * hsa_system_get_major_extension_table: table, table_length, extension, version_major, version_minor:
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR; HSA_STATUS_SUCCESS never */
static void extensions_are_checked(void **state)
{
    const uint16_t none[] = {4, 0x1ff, 0x204, UINT16_MAX}, one = HSA_EXTENSION_AMD_LOADER;

    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        CALL(hsa_extension_get_name(none[i], place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        CALL(hsa_system_extension_supported(none[i], 1, 0, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        CALL(hsa_system_major_extension_supported(none[i], 1, place, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        CALL(hsa_agent_extension_supported(none[i], agents[0], 1, 0, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        CALL(hsa_agent_major_extension_supported(none[i], agents[0], 1, place, place),
             HSA_STATUS_ERROR_INVALID_ARGUMENT);
        CALL(hsa_system_get_extension_table(none[i], 1, 0, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        CALL(hsa_system_get_major_extension_table(none[i], 1, 8, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    CALL(hsa_extension_get_name(one, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_system_extension_supported(one, 1, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_system_major_extension_supported(one, 1, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_system_major_extension_supported(one, 1, place, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_agent_extension_supported(one, agents[0], 1, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_agent_extension_supported(one, no_agent, 1, 0, place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_agent_major_extension_supported(one, agents[0], 1, NULL, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_agent_major_extension_supported(one, agents[0], 1, place, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_agent_major_extension_supported(one, no_agent, 1, place, place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_system_get_extension_table(one, 1, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_system_get_extension_table(one, 1, 0, place), HSA_STATUS_ERROR);
    CALL(hsa_system_get_major_extension_table(one, 1, 8, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_system_get_major_extension_table(one, 1, 0, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_system_get_major_extension_table(one, 1, 8, place), HSA_STATUS_ERROR);
}

/* hsa_agent_get_exception_policies: agent, profile, mask: HSA_STATUS_SUCCESS and none;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT */
static void exception_policies(void **state)
{
    uint16_t mask = 99;

    CALL(hsa_agent_get_exception_policies(agents[0], HSA_PROFILE_FULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_agent_get_exception_policies(agents[0], (hsa_profile_t)2, place), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CALL(hsa_agent_get_exception_policies(no_agent, HSA_PROFILE_BASE, place), HSA_STATUS_ERROR_INVALID_AGENT);
    CALL(hsa_agent_get_exception_policies(agents[1], HSA_PROFILE_FULL, &mask), HSA_STATUS_SUCCESS);
    assert_true(is_child || mask == 0);
}

/* hsa_code_object_info_t, hsa_code_symbol_info_t, hsa_executable_info_t, hsa_executable_symbol_info_t,
 * hsa_wavefront_info_t, hsa_amd_gpu_hw_exception_info_t, hsa_amd_gpu_memory_error_info_t,
 * hsa_amd_gpu_memory_fault_info_t: what programs that were compiled elsewhere have of them */
static void numbers(void **state)
{
    static const struct {
        unsigned got, wanted;
    } rows[] = {
        {HSA_CODE_OBJECT_INFO_VERSION, 0},
        {HSA_CODE_OBJECT_INFO_TYPE, 1},
        {HSA_CODE_OBJECT_INFO_ISA, 2},
        {HSA_CODE_OBJECT_INFO_MACHINE_MODEL, 3},
        {HSA_CODE_OBJECT_INFO_PROFILE, 4},
        {HSA_CODE_OBJECT_INFO_DEFAULT_FLOAT_ROUNDING_MODE, 5},
        {HSA_CODE_SYMBOL_INFO_TYPE, 0},
        {HSA_CODE_SYMBOL_INFO_NAME_LENGTH, 1},
        {HSA_CODE_SYMBOL_INFO_NAME, 2},
        {HSA_CODE_SYMBOL_INFO_MODULE_NAME_LENGTH, 3},
        {HSA_CODE_SYMBOL_INFO_MODULE_NAME, 4},
        {HSA_CODE_SYMBOL_INFO_LINKAGE, 5},
        {HSA_CODE_SYMBOL_INFO_IS_DEFINITION, 17},
        {HSA_CODE_SYMBOL_INFO_VARIABLE_ALLOCATION, 6},
        {HSA_CODE_SYMBOL_INFO_VARIABLE_SEGMENT, 7},
        {HSA_CODE_SYMBOL_INFO_VARIABLE_ALIGNMENT, 8},
        {HSA_CODE_SYMBOL_INFO_VARIABLE_SIZE, 9},
        {HSA_CODE_SYMBOL_INFO_VARIABLE_IS_CONST, 10},
        {HSA_CODE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, 11},
        {HSA_CODE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT, 12},
        {HSA_CODE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, 13},
        {HSA_CODE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, 14},
        {HSA_CODE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, 15},
        {HSA_CODE_SYMBOL_INFO_KERNEL_CALL_CONVENTION, 18},
        {HSA_CODE_SYMBOL_INFO_INDIRECT_FUNCTION_CALL_CONVENTION, 16},
        {HSA_CODE_SYMBOL_INFO_KERNEL_WAVEFRONT_SIZE, 19},
        {HSA_EXECUTABLE_INFO_PROFILE, 1},
        {HSA_EXECUTABLE_INFO_STATE, 2},
        {HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE, 3},
        {HSA_EXECUTABLE_SYMBOL_INFO_TYPE, 0},
        {HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, 1},
        {HSA_EXECUTABLE_SYMBOL_INFO_NAME, 2},
        {HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH, 3},
        {HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME, 4},
        {HSA_EXECUTABLE_SYMBOL_INFO_AGENT, 20},
        {HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, 21},
        {HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE, 5},
        {HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION, 17},
        {HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION, 6},
        {HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT, 7},
        {HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT, 8},
        {HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, 9},
        {HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST, 10},
        {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, 22},
        {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, 11},
        {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT, 12},
        {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, 13},
        {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, 14},
        {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, 15},
        {HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION, 18},
        {HSA_EXECUTABLE_SYMBOL_INFO_INDIRECT_FUNCTION_OBJECT, 23},
        {HSA_EXECUTABLE_SYMBOL_INFO_INDIRECT_FUNCTION_CALL_CONVENTION, 16},
        {HSA_WAVEFRONT_INFO_SIZE, 0},
        {offsetof(hsa_amd_gpu_hw_exception_info_t, agent), 0},
        {offsetof(hsa_amd_gpu_hw_exception_info_t, reset_type), 8},
        {offsetof(hsa_amd_gpu_hw_exception_info_t, reset_cause), 12},
        {offsetof(hsa_amd_gpu_memory_error_info_t, agent), 0},
        {offsetof(hsa_amd_gpu_memory_error_info_t, virtual_address), 8},
        {offsetof(hsa_amd_gpu_memory_error_info_t, error_reason_mask), 16},
        {offsetof(hsa_amd_gpu_memory_fault_info_t, agent), 0},
        {offsetof(hsa_amd_gpu_memory_fault_info_t, virtual_address), 8},
        {offsetof(hsa_amd_gpu_memory_fault_info_t, fault_reason_mask), 16},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(rows[i].got, rows[i].wanted);
}

static void call_all(int channel, void *context)
{
    is_child = true;
    instruction_sets(NULL);
    code(NULL);
    executables(NULL);
    code_objects(NULL);
    queues_of_amd(NULL);
    profiling(NULL);
    coherency(NULL);
    files(NULL);
    queues(NULL);
    events(NULL);
    extensions_are_checked(NULL);
    exception_policies(NULL);
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED: of hsa_isa_from_name, hsa_isa_get_info, hsa_isa_get_exception_policies,
 * hsa_isa_get_round_method, hsa_isa_iterate_wavefronts, hsa_isa_compatible, hsa_wavefront_get_info,
 * hsa_code_object_reader_create_from_file, hsa_code_object_reader_create_from_memory,
 * hsa_code_object_reader_destroy, hsa_executable_create, hsa_executable_create_alt, hsa_executable_destroy,
 * hsa_executable_freeze, hsa_executable_load_program_code_object, hsa_executable_load_agent_code_object,
 * hsa_executable_get_info, hsa_executable_validate, hsa_executable_validate_alt,
 * hsa_executable_global_variable_define, hsa_executable_agent_global_variable_define,
 * hsa_executable_readonly_variable_define, hsa_executable_get_symbol, hsa_executable_get_symbol_by_name,
 * hsa_executable_iterate_symbols, hsa_executable_iterate_agent_symbols, hsa_executable_iterate_program_symbols,
 * hsa_executable_symbol_get_info, hsa_executable_load_code_object, hsa_code_object_deserialize,
 * hsa_code_object_serialize, hsa_code_object_destroy, hsa_code_object_get_info, hsa_code_object_get_symbol,
 * hsa_code_object_get_symbol_from_name, hsa_code_object_iterate_symbols, hsa_code_symbol_get_info,
 * hsa_amd_queue_cu_set_mask, hsa_amd_queue_cu_get_mask, hsa_amd_queue_set_priority, hsa_amd_queue_get_info,
 * hsa_amd_counted_queue_acquire, hsa_amd_counted_queue_release, hsa_amd_agent_set_async_scratch_limit,
 * hsa_amd_profiling_set_profiler_enabled, hsa_amd_profiling_get_dispatch_time,
 * hsa_amd_profiling_convert_tick_to_system_domain, hsa_amd_spm_acquire, hsa_amd_spm_release,
 * hsa_amd_spm_set_dest_buffer, hsa_amd_enable_logging, hsa_amd_coherency_get_type, hsa_amd_coherency_set_type,
 * hsa_amd_ais_file_write, hsa_amd_ais_file_read, hsa_queue_create, hsa_soft_queue_create, hsa_queue_destroy,
 * hsa_queue_inactivate, hsa_amd_register_system_event_handler, hsa_extension_get_name,
 * hsa_system_extension_supported, hsa_system_major_extension_supported, hsa_system_get_extension_table,
 * hsa_system_get_major_extension_table, hsa_agent_extension_supported, hsa_agent_major_extension_supported,
 * hsa_agent_get_exception_policies */
static void not_initialized(void **state)
{
    child_run(call_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(not_initialized, hsa_nothing_left),
        cmocka_unit_test_teardown(instruction_sets, hsa_nothing_left),
        cmocka_unit_test_teardown(code, hsa_nothing_left),
        cmocka_unit_test_teardown(executables, hsa_nothing_left),
        cmocka_unit_test_teardown(code_objects, hsa_nothing_left),
        cmocka_unit_test_teardown(queues_of_amd, hsa_nothing_left),
        cmocka_unit_test_teardown(profiling, hsa_nothing_left),
        cmocka_unit_test_teardown(coherency, hsa_nothing_left),
        cmocka_unit_test_teardown(files, hsa_nothing_left),
        cmocka_unit_test_teardown(queues, hsa_nothing_left),
        cmocka_unit_test_teardown(indexes, hsa_nothing_left),
        cmocka_unit_test(numbers),
        cmocka_unit_test_teardown(events, hsa_nothing_left),
        cmocka_unit_test_teardown(no_extension_is_there, hsa_nothing_left),
        cmocka_unit_test_teardown(extensions_are_checked, hsa_nothing_left),
        cmocka_unit_test_teardown(exception_policies, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
