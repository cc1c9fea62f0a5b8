/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hsa_kernels.h has of instruction sets, code and executables: there are none, so everything is refused. The
 * manual lists these functions by name.
 */
#include "hsa/check.h"

hsa_status_t hsa_isa_from_name(const char *name, hsa_isa_t *isa)
{
    return check(name && isa, HSA_STATUS_ERROR_INVALID_ISA_NAME);
}

hsa_status_t hsa_isa_get_info(hsa_isa_t isa, hsa_isa_info_t attribute, uint32_t index, void *value)
{
    return check(value, HSA_STATUS_ERROR_INVALID_ISA);
}

hsa_status_t hsa_isa_get_exception_policies(hsa_isa_t isa, hsa_profile_t profile, uint16_t *mask)
{
    return check(mask, HSA_STATUS_ERROR_INVALID_ISA);
}

hsa_status_t hsa_isa_get_round_method(hsa_isa_t isa, hsa_fp_type_t fp_type, hsa_flush_mode_t flush_mode,
                                      hsa_round_method_t *round_method)
{
    return check(round_method, HSA_STATUS_ERROR_INVALID_ISA);
}

hsa_status_t hsa_isa_iterate_wavefronts(hsa_isa_t isa, hsa_status_t (*callback)(hsa_wavefront_t wavefront, void *data),
                                        void *data)
{
    return check(callback, HSA_STATUS_ERROR_INVALID_ISA);
}

hsa_status_t hsa_isa_compatible(hsa_isa_t code_object_isa, hsa_isa_t agent_isa, bool *result)
{
    return check(result, HSA_STATUS_ERROR_INVALID_ISA);
}

hsa_status_t hsa_wavefront_get_info(hsa_wavefront_t wavefront, hsa_wavefront_info_t attribute, void *value)
{
    return check(value, HSA_STATUS_ERROR_INVALID_WAVEFRONT);
}

hsa_status_t hsa_code_object_reader_create_from_file(hsa_file_t file, hsa_code_object_reader_t *code_object_reader)
{
    return check(file >= 0 && code_object_reader, NOT_SUPPORTED);
}

hsa_status_t hsa_code_object_reader_create_from_memory(const void *code_object, size_t size,
                                                       hsa_code_object_reader_t *code_object_reader)
{
    return check(code_object && size && code_object_reader, NOT_SUPPORTED);
}

hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t code_object_reader)
{
    return check(true, HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER);
}

hsa_status_t hsa_executable_create(hsa_profile_t profile, hsa_executable_state_t executable_state, const char *options,
                                   hsa_executable_t *executable)
{
    return check(executable, NOT_SUPPORTED);
}

hsa_status_t hsa_executable_create_alt(hsa_profile_t profile,
                                       hsa_default_float_rounding_mode_t default_float_rounding_mode,
                                       const char *options, hsa_executable_t *executable)
{
    return check(executable, NOT_SUPPORTED);
}

hsa_status_t hsa_executable_destroy(hsa_executable_t executable)
{
    return check(true, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options)
{
    return check(true, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_load_program_code_object(hsa_executable_t executable,
                                                     hsa_code_object_reader_t code_object_reader, const char *options,
                                                     hsa_loaded_code_object_t *loaded_code_object)
{
    return check(true, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t code_object_reader, const char *options,
                                                   hsa_loaded_code_object_t *loaded_code_object)
{
    return check_agent(true, agent, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_get_info(hsa_executable_t executable, hsa_executable_info_t attribute, void *value)
{
    return check(value, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_validate(hsa_executable_t executable, uint32_t *result)
{
    return check(result, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_validate_alt(hsa_executable_t executable, const char *options, uint32_t *result)
{
    return check(result, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_global_variable_define(hsa_executable_t executable, const char *variable_name,
                                                   void *address)
{
    return check(variable_name, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_agent_global_variable_define(hsa_executable_t executable, hsa_agent_t agent,
                                                         const char *variable_name, void *address)
{
    return check_agent(variable_name, agent, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_readonly_variable_define(hsa_executable_t executable, hsa_agent_t agent,
                                                     const char *variable_name, void *address)
{
    return check_agent(variable_name, agent, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_get_symbol(hsa_executable_t executable, const char *module_name, const char *symbol_name,
                                       hsa_agent_t agent, int32_t call_convention, hsa_executable_symbol_t *symbol)
{
    return check(symbol_name && symbol, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *symbol_name,
                                               const hsa_agent_t *agent, hsa_executable_symbol_t *symbol)
{
    return check(symbol_name && symbol, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_iterate_symbols(
    hsa_executable_t executable,
    hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data), void *data)
{
    return check(callback, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_iterate_agent_symbols(
    hsa_executable_t executable, hsa_agent_t agent,
    hsa_status_t (*callback)(hsa_executable_t exec, hsa_agent_t agent, hsa_executable_symbol_t symbol, void *data),
    void *data)
{
    return check_agent(callback, agent, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_iterate_program_symbols(
    hsa_executable_t executable,
    hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data), void *data)
{
    return check(callback, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t executable_symbol,
                                            hsa_executable_symbol_info_t attribute, void *value)
{
    return check(value, HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL);
}

hsa_status_t hsa_executable_load_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                             hsa_code_object_t code_object, const char *options)
{
    return check_agent(true, agent, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

hsa_status_t hsa_code_object_deserialize(void *serialized_code_object, size_t serialized_code_object_size,
                                         const char *options, hsa_code_object_t *code_object)
{
    return check(serialized_code_object && serialized_code_object_size && code_object, NOT_SUPPORTED);
}

hsa_status_t hsa_code_object_serialize(
    hsa_code_object_t code_object,
    hsa_status_t (*alloc_callback)(size_t size, hsa_callback_data_t data, void **address),
    hsa_callback_data_t callback_data, const char *options, void **serialized_code_object,
    size_t *serialized_code_object_size)
{
    return check(true, HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
}

hsa_status_t hsa_code_object_destroy(hsa_code_object_t code_object)
{
    return check(true, HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
}

hsa_status_t hsa_code_object_get_info(hsa_code_object_t code_object, hsa_code_object_info_t attribute, void *value)
{
    return check(value, HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
}

hsa_status_t hsa_code_object_get_symbol(hsa_code_object_t code_object, const char *symbol_name,
                                        hsa_code_symbol_t *symbol)
{
    return check(symbol_name && symbol, HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
}

hsa_status_t hsa_code_object_get_symbol_from_name(hsa_code_object_t code_object, const char *module_name,
                                                  const char *symbol_name, hsa_code_symbol_t *symbol)
{
    return check(symbol_name && symbol, HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
}

hsa_status_t hsa_code_object_iterate_symbols(
    hsa_code_object_t code_object,
    hsa_status_t (*callback)(hsa_code_object_t code_object, hsa_code_symbol_t symbol, void *data), void *data)
{
    return check(callback, HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
}

hsa_status_t hsa_code_symbol_get_info(hsa_code_symbol_t code_symbol, hsa_code_symbol_info_t attribute, void *value)
{
    return check(value, HSA_STATUS_ERROR_INVALID_CODE_SYMBOL);
}
