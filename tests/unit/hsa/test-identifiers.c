/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's own tests of HSA, rocrtst, are compiled with our headers alone. This is a list of what they name, of all their
 * suites: the functions are there to be called, the types have a size, and the constants a value.
 */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ext_image.h>

#include "tests/support/test.h"

/* clang-format off */
#define FUNCTION(name) {#name, (void (*)(void))(name)}
#define TYPE(name)     {#name, sizeof(name)}
#define CONSTANT(name) {#name, (int64_t)(name)}
/* clang-format on */

static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {
    FUNCTION(hsa_agent_get_info),
    FUNCTION(hsa_amd_agent_iterate_memory_pools),
    FUNCTION(hsa_amd_agent_memory_pool_get_info),
    FUNCTION(hsa_amd_agents_allow_access),
    FUNCTION(hsa_amd_counted_queue_acquire),
    FUNCTION(hsa_amd_counted_queue_release),
    FUNCTION(hsa_amd_deregister_deallocation_callback),
    FUNCTION(hsa_amd_interop_map_buffer),
    FUNCTION(hsa_amd_interop_unmap_buffer),
    FUNCTION(hsa_amd_ipc_memory_attach),
    FUNCTION(hsa_amd_ipc_memory_create),
    FUNCTION(hsa_amd_ipc_memory_detach),
    FUNCTION(hsa_amd_ipc_signal_attach),
    FUNCTION(hsa_amd_ipc_signal_create),
    FUNCTION(hsa_amd_memory_async_copy),
    FUNCTION(hsa_amd_memory_fill),
    FUNCTION(hsa_amd_memory_lock),
    FUNCTION(hsa_amd_memory_pool_allocate),
    FUNCTION(hsa_amd_memory_pool_free),
    FUNCTION(hsa_amd_memory_pool_get_info),
    FUNCTION(hsa_amd_memory_unlock),
    FUNCTION(hsa_amd_pointer_info),
    FUNCTION(hsa_amd_portable_export_dmabuf),
    FUNCTION(hsa_amd_queue_cu_get_mask),
    FUNCTION(hsa_amd_queue_cu_set_mask),
    FUNCTION(hsa_amd_queue_get_info),
    FUNCTION(hsa_amd_queue_set_priority),
    FUNCTION(hsa_amd_register_deallocation_callback),
    FUNCTION(hsa_amd_register_system_event_handler),
    FUNCTION(hsa_amd_signal_create),
    FUNCTION(hsa_amd_svm_attributes_set),
    FUNCTION(hsa_amd_vmem_address_free),
    FUNCTION(hsa_amd_vmem_address_reserve),
    FUNCTION(hsa_amd_vmem_export_shareable_handle),
    FUNCTION(hsa_amd_vmem_get_access),
    FUNCTION(hsa_amd_vmem_get_alloc_properties_from_handle),
    FUNCTION(hsa_amd_vmem_handle_create),
    FUNCTION(hsa_amd_vmem_handle_release),
    FUNCTION(hsa_amd_vmem_import_shareable_handle),
    FUNCTION(hsa_amd_vmem_map),
    FUNCTION(hsa_amd_vmem_retain_alloc_handle),
    FUNCTION(hsa_amd_vmem_set_access),
    FUNCTION(hsa_amd_vmem_unmap),
    FUNCTION(hsa_code_object_reader_create_from_file),
    FUNCTION(hsa_code_object_reader_destroy),
    FUNCTION(hsa_executable_create_alt),
    FUNCTION(hsa_executable_destroy),
    FUNCTION(hsa_executable_freeze),
    FUNCTION(hsa_executable_get_symbol_by_name),
    FUNCTION(hsa_executable_load_agent_code_object),
    FUNCTION(hsa_executable_symbol_get_info),
    FUNCTION(hsa_init),
    FUNCTION(hsa_iterate_agents),
    FUNCTION(hsa_memory_allocate),
    FUNCTION(hsa_memory_copy),
    FUNCTION(hsa_memory_free),
    FUNCTION(hsa_queue_add_write_index_relaxed),
    FUNCTION(hsa_queue_add_write_index_scacq_screl),
    FUNCTION(hsa_queue_add_write_index_scacquire),
    FUNCTION(hsa_queue_add_write_index_screlease),
    FUNCTION(hsa_queue_cas_write_index_relaxed),
    FUNCTION(hsa_queue_cas_write_index_scacq_screl),
    FUNCTION(hsa_queue_cas_write_index_scacquire),
    FUNCTION(hsa_queue_cas_write_index_screlease),
    FUNCTION(hsa_queue_create),
    FUNCTION(hsa_queue_destroy),
    FUNCTION(hsa_queue_load_read_index_relaxed),
    FUNCTION(hsa_queue_load_read_index_scacquire),
    FUNCTION(hsa_queue_load_write_index_relaxed),
    FUNCTION(hsa_queue_load_write_index_scacquire),
    FUNCTION(hsa_queue_store_write_index_relaxed),
    FUNCTION(hsa_queue_store_write_index_release),
    FUNCTION(hsa_queue_store_write_index_screlease),
    FUNCTION(hsa_shut_down),
    FUNCTION(hsa_signal_create),
    FUNCTION(hsa_signal_destroy),
    FUNCTION(hsa_signal_store_relaxed),
    FUNCTION(hsa_signal_store_release),
    FUNCTION(hsa_signal_store_screlease),
    FUNCTION(hsa_signal_wait_acquire),
    FUNCTION(hsa_signal_wait_relaxed),
    FUNCTION(hsa_signal_wait_scacquire),
    FUNCTION(hsa_status_string),
    FUNCTION(hsa_system_get_info),
};

static const struct {
    const char *name;
    size_t size;
} types[] = {
    TYPE(hsa_access_permission_t),
    TYPE(hsa_agent_info_t),
    TYPE(hsa_agent_t),
    TYPE(hsa_amd_event_t),
    TYPE(hsa_amd_gpu_memory_error_info_t),
    TYPE(hsa_amd_ipc_memory_t),
    TYPE(hsa_amd_ipc_signal_t),
    TYPE(hsa_amd_memory_access_desc_t),
    TYPE(hsa_amd_memory_pool_access_t),
    TYPE(hsa_amd_memory_pool_global_flag_t),
    TYPE(hsa_amd_memory_pool_info_t),
    TYPE(hsa_amd_memory_pool_t),
    TYPE(hsa_amd_memory_type_t),
    TYPE(hsa_amd_pointer_info_t),
    TYPE(hsa_amd_queue_priority_t),
    TYPE(hsa_amd_segment_t),
    TYPE(hsa_amd_svm_attribute_pair_t),
    TYPE(hsa_amd_vmem_alloc_handle_t),
    TYPE(hsa_barrier_and_packet_t),
    TYPE(hsa_barrier_or_packet_t),
    TYPE(hsa_code_object_reader_t),
    TYPE(hsa_device_type_t),
    TYPE(hsa_executable_symbol_t),
    TYPE(hsa_executable_t),
    TYPE(hsa_file_t),
    TYPE(hsa_kernel_dispatch_packet_t),
    TYPE(hsa_machine_model_t),
    TYPE(hsa_profile_t),
    TYPE(hsa_queue_t),
    TYPE(hsa_signal_t),
    TYPE(hsa_signal_value_t),
    TYPE(hsa_status_t),
};

static const struct {
    const char *name;
    int64_t value;
} constants[] = {
    CONSTANT(HSA_ACCESS_PERMISSION_NONE),
    CONSTANT(HSA_ACCESS_PERMISSION_RO),
    CONSTANT(HSA_ACCESS_PERMISSION_RW),
    CONSTANT(HSA_AGENT_FEATURE_KERNEL_DISPATCH),
    CONSTANT(HSA_AGENT_INFO_DEVICE),
    CONSTANT(HSA_AGENT_INFO_FEATURE),
    CONSTANT(HSA_AGENT_INFO_GRID_MAX_SIZE),
    CONSTANT(HSA_AGENT_INFO_MACHINE_MODEL),
    CONSTANT(HSA_AGENT_INFO_NAME),
    CONSTANT(HSA_AGENT_INFO_NODE),
    CONSTANT(HSA_AGENT_INFO_PROFILE),
    CONSTANT(HSA_AGENT_INFO_QUEUE_MAX_SIZE),
    CONSTANT(HSA_AGENT_INFO_WORKGROUP_MAX_SIZE),
    CONSTANT(HSA_AMD_AGENT_INFO_BDFID),
    CONSTANT(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT),
    CONSTANT(HSA_AMD_AGENT_INFO_DOMAIN),
    CONSTANT(HSA_AMD_AGENT_INFO_MEMORY_AVAIL),
    CONSTANT(HSA_AMD_AGENT_INFO_UUID),
    CONSTANT(HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS),
    CONSTANT(HSA_AMD_GPU_MEMORY_ERROR_EVENT),
    CONSTANT(HSA_AMD_MEMORY_ERROR_MEMORY_IN_USE),
    CONSTANT(HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT),
    CONSTANT(HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED),
    CONSTANT(HSA_AMD_MEMORY_POOL_CONTIGUOUS_FLAG),
    CONSTANT(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED),
    CONSTANT(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED),
    CONSTANT(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED),
    CONSTANT(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_SEGMENT),
    CONSTANT(HSA_AMD_MEMORY_POOL_INFO_SIZE),
    CONSTANT(HSA_AMD_QUEUE_PRIORITY_HIGH),
    CONSTANT(HSA_AMD_QUEUE_PRIORITY_LOW),
    CONSTANT(HSA_AMD_QUEUE_PRIORITY_NORMAL),
    CONSTANT(HSA_AMD_SEGMENT_GLOBAL),
    CONSTANT(HSA_AMD_SEGMENT_GROUP),
    CONSTANT(HSA_AMD_SEGMENT_PRIVATE),
    CONSTANT(HSA_AMD_SEGMENT_READONLY),
    CONSTANT(HSA_AMD_SIGNAL_IPC),
    CONSTANT(HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE),
    CONSTANT(HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION),
    CONSTANT(HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED),
    CONSTANT(HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT),
    CONSTANT(HSA_DEVICE_TYPE_AIE),
    CONSTANT(HSA_DEVICE_TYPE_CPU),
    CONSTANT(HSA_DEVICE_TYPE_DSP),
    CONSTANT(HSA_DEVICE_TYPE_GPU),
    CONSTANT(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE),
    CONSTANT(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT),
    CONSTANT(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE),
    CONSTANT(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT),
    CONSTANT(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE),
    CONSTANT(HSA_EXT_POINTER_TYPE_GRAPHICS),
    CONSTANT(HSA_EXT_POINTER_TYPE_HSA),
    CONSTANT(HSA_EXT_POINTER_TYPE_IPC),
    CONSTANT(HSA_EXT_POINTER_TYPE_LOCKED),
    CONSTANT(HSA_EXT_POINTER_TYPE_UNKNOWN),
    CONSTANT(HSA_FENCE_SCOPE_SYSTEM),
    CONSTANT(HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS),
    CONSTANT(HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE),
    CONSTANT(HSA_PACKET_HEADER_BARRIER),
    CONSTANT(HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE),
    CONSTANT(HSA_PACKET_HEADER_TYPE),
    CONSTANT(HSA_PACKET_TYPE_KERNEL_DISPATCH),
    CONSTANT(HSA_PROFILE_BASE),
    CONSTANT(HSA_PROFILE_FULL),
    CONSTANT(HSA_QUEUE_INFO_HW_ID),
    CONSTANT(HSA_QUEUE_INFO_USE_COUNT),
    CONSTANT(HSA_QUEUE_TYPE_MULTI),
    CONSTANT(HSA_QUEUE_TYPE_SINGLE),
    CONSTANT(HSA_SIGNAL_CONDITION_EQ),
    CONSTANT(HSA_SIGNAL_CONDITION_LT),
    CONSTANT(HSA_SIGNAL_CONDITION_NE),
    CONSTANT(HSA_STATUS_CU_MASK_REDUCED),
    CONSTANT(HSA_STATUS_ERROR),
    CONSTANT(HSA_STATUS_ERROR_EXCEPTION),
    CONSTANT(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS),
    CONSTANT(HSA_STATUS_ERROR_INVALID_ALLOCATION),
    CONSTANT(HSA_STATUS_ERROR_INVALID_ARGUMENT),
    CONSTANT(HSA_STATUS_ERROR_INVALID_CODE_OBJECT),
    CONSTANT(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT),
    CONSTANT(HSA_STATUS_ERROR_NOT_INITIALIZED),
    CONSTANT(HSA_STATUS_ERROR_OUT_OF_RESOURCES),
    CONSTANT(HSA_STATUS_ERROR_REFCOUNT_OVERFLOW),
    CONSTANT(HSA_STATUS_INFO_BREAK),
    CONSTANT(HSA_STATUS_SUCCESS),
    CONSTANT(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY),
    CONSTANT(HSA_WAIT_STATE_ACTIVE),
    CONSTANT(HSA_WAIT_STATE_BLOCKED),
};

static void all_are_there(void **state)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (!functions[i].function)
            fail_msg("%s", functions[i].name);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (!types[i].size)
            fail_msg("%s", types[i].name);
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (constants[i].value < INT32_MIN || constants[i].value > UINT32_MAX)
            fail_msg("%s", constants[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_there)};

    return test_run(tests, NULL, NULL);
}
