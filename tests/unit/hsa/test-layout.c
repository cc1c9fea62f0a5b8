/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that were compiled with another vendor's headers have the sizes, offsets and numbers of those in them.
 * Ours are the same, to the byte.
 */
#include "tests/support/test.h"

#include <assert.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/hsa/hsa/hsa_ext_memoryd.h>

/* The type of an expression, where it has one of its own. */
#define is_a(expression, type) _Generic((expression), type : 1, default : 0)

#define layout(type, size, align)                                     \
    static_assert(sizeof(type) == (size), #type " has another size"); \
    static_assert(_Alignof(type) == (align), #type " is aligned otherwise")
#define field(type, name, at) static_assert(offsetof(type, name) == (at), #type "." #name " is elsewhere")
#define value(name, number)   static_assert((name) == (number), #name " is another number")

/* ---- handles ----------------------------------------------------------------------------------------------------- */

#define handle(type)        \
    layout(type, 8, 8);     \
    field(type, handle, 0); \
    static_assert(is_a(((type *)NULL)->handle, uint64_t), #type " holds something else")
handle(hsa_agent_t);
handle(hsa_region_t);
handle(hsa_signal_t);
handle(hsa_cache_t);
handle(hsa_isa_t);
handle(hsa_code_object_reader_t);
handle(hsa_executable_t);
handle(hsa_loaded_code_object_t);
handle(hsa_executable_symbol_t);
handle(hsa_wavefront_t);
handle(hsa_signal_group_t);
handle(hsa_amd_memory_pool_t);
handle(hsa_amd_vmem_alloc_handle_t);
/* the tags are part of the interface too */
handle(struct hsa_agent_s);
handle(struct hsa_region_s);
handle(struct hsa_signal_s);
handle(struct hsa_cache_s);
handle(struct hsa_isa_s);
handle(struct hsa_amd_memory_pool_s);
handle(struct hsa_amd_vmem_alloc_handle_s);

/* ---- structs ----------------------------------------------------------------------------------------------------- */

layout(hsa_dim3_t, 12, 4);
field(struct hsa_dim3_s, x, 0);
field(hsa_dim3_t, y, 4);
field(hsa_dim3_t, z, 8);

layout(hsa_queue_t, 40, 8);
field(struct hsa_queue_s, type, 0);
field(hsa_queue_t, features, 4);
field(hsa_queue_t, base_address, 8);
field(hsa_queue_t, doorbell_signal, 16);
field(hsa_queue_t, size, 24);
field(hsa_queue_t, id, 32);

layout(hsa_amd_memory_access_desc_t, 16, 8);
field(struct hsa_amd_memory_access_desc_s, permissions, 0);
field(hsa_amd_memory_access_desc_t, agent_handle, 8);

layout(hsa_amd_pointer_info_t, 64, 8);
field(struct hsa_amd_pointer_info_s, size, 0);
field(hsa_amd_pointer_info_t, type, 4);
field(hsa_amd_pointer_info_t, agentBaseAddress, 8);
field(hsa_amd_pointer_info_t, hostBaseAddress, 16);
field(hsa_amd_pointer_info_t, sizeInBytes, 24);
field(hsa_amd_pointer_info_t, userData, 32);
field(hsa_amd_pointer_info_t, agentOwner, 40);
field(hsa_amd_pointer_info_t, global_flags, 48);
field(hsa_amd_pointer_info_t, registered, 52);
field(hsa_amd_pointer_info_t, alloc_flags, 56);

layout(hsa_pitched_ptr_t, 24, 8);
field(struct hsa_pitched_ptr_s, base, 0);
field(hsa_pitched_ptr_t, pitch, 8);
field(hsa_pitched_ptr_t, slice, 16);

layout(hsa_amd_svm_attribute_pair_t, 16, 8);
field(struct hsa_amd_svm_attribute_pair_s, attribute, 0);
field(hsa_amd_svm_attribute_pair_t, value, 8);

layout(hsa_amd_profiling_async_copy_time_t, 16, 8);
layout(hsa_amd_profiling_dispatch_time_t, 16, 8);

/* packets, which programs write byte by byte */
layout(hsa_kernel_dispatch_packet_t, 64, 8);
field(struct hsa_kernel_dispatch_packet_s, setup, 2);
field(hsa_kernel_dispatch_packet_t, grid_size_x, 12);
field(hsa_kernel_dispatch_packet_t, private_segment_size, 24);
field(hsa_kernel_dispatch_packet_t, kernel_object, 32);
field(hsa_kernel_dispatch_packet_t, kernarg_address, 40);
field(hsa_kernel_dispatch_packet_t, completion_signal, 56);
layout(hsa_agent_dispatch_packet_t, 64, 8);
field(struct hsa_agent_dispatch_packet_s, return_address, 8);
field(hsa_agent_dispatch_packet_t, arg, 16);
field(hsa_agent_dispatch_packet_t, completion_signal, 56);
layout(hsa_barrier_and_packet_t, 64, 8);
field(struct hsa_barrier_and_packet_s, dep_signal, 8);
field(hsa_barrier_and_packet_t, completion_signal, 56);
layout(hsa_barrier_or_packet_t, 64, 8);
field(struct hsa_barrier_or_packet_s, dep_signal, 8);
field(hsa_barrier_or_packet_t, completion_signal, 56);
layout(hsa_amd_barrier_value_packet_t, 64, 8);
field(struct hsa_amd_barrier_value_packet_s, signal, 8);
field(hsa_amd_barrier_value_packet_t, cond, 32);
field(hsa_amd_barrier_value_packet_t, completion_signal, 56);
layout(hsa_amd_aie_ert_packet_t, 64, 8);
field(struct hsa_amd_aie_ert_packet_s, payload_data, 56);
layout(hsa_amd_event_t, 32, 8);
field(struct hsa_amd_event_s, memory_fault, 8);
layout(hsa_amd_ais_file_handle_t, 8, 8);

layout(hsa_amd_ipc_memory_t, 32, 4);
layout(hsa_amd_ipc_signal_t, 32, 4);
field(struct hsa_amd_ipc_memory_s, handle, 0);

layout(hsa_amd_memory_pool_link_info_t, 28, 4);
field(struct hsa_amd_memory_pool_link_info_s, min_latency, 0);
field(hsa_amd_memory_pool_link_info_t, max_latency, 4);
field(hsa_amd_memory_pool_link_info_t, min_bandwidth, 8);
field(hsa_amd_memory_pool_link_info_t, max_bandwidth, 12);
field(hsa_amd_memory_pool_link_info_t, atomic_support_32bit, 16);
field(hsa_amd_memory_pool_link_info_t, atomic_support_64bit, 17);
field(hsa_amd_memory_pool_link_info_t, coherent_support, 18);
field(hsa_amd_memory_pool_link_info_t, link_type, 20);
field(hsa_amd_memory_pool_link_info_t, numa_distance, 24);

layout(hsa_amd_hdp_flush_t, 16, 8);
layout(hsa_amd_clock_counters_t, 32, 8);

/* ---- enums: all are 4 bytes wide, where they are written to a caller's variable ---------------------------------- */

layout(hsa_status_t, 4, 4);
layout(hsa_access_permission_t, 4, 4);
layout(hsa_endianness_t, 4, 4);
layout(hsa_machine_model_t, 4, 4);
layout(hsa_profile_t, 4, 4);
layout(hsa_default_float_rounding_mode_t, 4, 4);
layout(hsa_queue_type_t, 4, 4);
layout(hsa_queue_type32_t, 4, 4);
layout(hsa_device_type_t, 4, 4);
layout(hsa_system_info_t, 4, 4);
layout(hsa_agent_info_t, 4, 4);
layout(hsa_cache_info_t, 4, 4);
layout(hsa_isa_info_t, 4, 4);
layout(hsa_signal_condition_t, 4, 4);
layout(hsa_wait_state_t, 4, 4);
layout(hsa_region_segment_t, 4, 4);
layout(hsa_region_info_t, 4, 4);
layout(hsa_amd_memory_pool_info_t, 4, 4);
layout(hsa_amd_memory_pool_location_t, 4, 4);
layout(hsa_amd_memory_pool_access_t, 4, 4);
layout(hsa_amd_segment_t, 4, 4);
layout(hsa_amd_memory_type_t, 4, 4);
layout(hsa_amd_pointer_type_t, 4, 4);
layout(hsa_amd_link_info_type_t, 4, 4);
layout(hsa_amd_iommu_version_t, 4, 4);
static_assert(sizeof(bool) == 1, "bool is another type");
static_assert(is_a((hsa_signal_value_t)0, int64_t), "signals hold another type");
#ifndef HSA_LARGE_MODEL
#error "HSA_LARGE_MODEL is not defined on a 64-bit machine"
#endif

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

value(HSA_STATUS_SUCCESS, 0);
value(HSA_STATUS_INFO_BREAK, 1);
value(HSA_STATUS_ERROR, 0x1000);
value(HSA_STATUS_ERROR_INVALID_ARGUMENT, 0x1001);
value(HSA_STATUS_ERROR_INVALID_QUEUE_CREATION, 0x1002);
value(HSA_STATUS_ERROR_INVALID_ALLOCATION, 0x1003);
value(HSA_STATUS_ERROR_INVALID_AGENT, 0x1004);
value(HSA_STATUS_ERROR_INVALID_REGION, 0x1005);
value(HSA_STATUS_ERROR_INVALID_SIGNAL, 0x1006);
value(HSA_STATUS_ERROR_INVALID_QUEUE, 0x1007);
value(HSA_STATUS_ERROR_OUT_OF_RESOURCES, 0x1008);
value(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, 0x1009);
value(HSA_STATUS_ERROR_RESOURCE_FREE, 0x100A);
value(HSA_STATUS_ERROR_NOT_INITIALIZED, 0x100B);
value(HSA_STATUS_ERROR_REFCOUNT_OVERFLOW, 0x100C);
value(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, 0x100D);
value(HSA_STATUS_ERROR_INVALID_INDEX, 0x100E);
value(HSA_STATUS_ERROR_INVALID_ISA, 0x100F);
value(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, 0x1010);
value(HSA_STATUS_ERROR_INVALID_EXECUTABLE, 0x1011);
value(HSA_STATUS_ERROR_FROZEN_EXECUTABLE, 0x1012);
value(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME, 0x1013);
value(HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED, 0x1014);
value(HSA_STATUS_ERROR_VARIABLE_UNDEFINED, 0x1015);
value(HSA_STATUS_ERROR_EXCEPTION, 0x1016);
value(HSA_STATUS_ERROR_INVALID_ISA_NAME, 0x1017);
value(HSA_STATUS_ERROR_INVALID_CODE_SYMBOL, 0x1018);
value(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL, 0x1019);
value(HSA_STATUS_ERROR_INVALID_FILE, 0x1020);
value(HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER, 0x1021);
value(HSA_STATUS_ERROR_INVALID_CACHE, 0x1022);
value(HSA_STATUS_ERROR_INVALID_WAVEFRONT, 0x1023);
value(HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP, 0x1024);
value(HSA_STATUS_ERROR_INVALID_RUNTIME_STATE, 0x1025);
value(HSA_STATUS_ERROR_FATAL, 0x1026);
value(HSA_STATUS_ERROR_INVALID_MEMORY_POOL, 40);
value(HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION, 41);
value(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION, 42);
value(HSA_STATUS_ERROR_MEMORY_FAULT, 43);
value(HSA_STATUS_CU_MASK_REDUCED, 44);
value(HSA_STATUS_ERROR_OUT_OF_REGISTERS, 45);
value(HSA_STATUS_ERROR_RESOURCE_BUSY, 46);
value(HSA_STATUS_ERROR_NOT_SUPPORTED, 47);

value(HSA_ACCESS_PERMISSION_NONE, 0);
value(HSA_ACCESS_PERMISSION_RO, 1);
value(HSA_ACCESS_PERMISSION_WO, 2);
value(HSA_ACCESS_PERMISSION_RW, 3);
value(HSA_DEVICE_TYPE_CPU, 0);
value(HSA_DEVICE_TYPE_GPU, 1);
value(HSA_DEVICE_TYPE_DSP, 2);
value(HSA_DEVICE_TYPE_AIE, 3);
value(HSA_PROFILE_BASE, 0);
value(HSA_PROFILE_FULL, 1);
value(HSA_MACHINE_MODEL_LARGE, 1);
value(HSA_ENDIANNESS_LITTLE, 0);
value(HSA_AGENT_FEATURE_KERNEL_DISPATCH, 1);
value(HSA_AGENT_FEATURE_AGENT_DISPATCH, 2);
value(HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR, 2);
value(HSA_QUEUE_TYPE_MULTI, 0);
value(HSA_QUEUE_TYPE_SINGLE, 1);

value(HSA_SYSTEM_INFO_VERSION_MAJOR, 0);
value(HSA_SYSTEM_INFO_VERSION_MINOR, 1);
value(HSA_SYSTEM_INFO_TIMESTAMP, 2);
value(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, 3);
value(HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT, 4);
value(HSA_SYSTEM_INFO_ENDIANNESS, 5);
value(HSA_SYSTEM_INFO_MACHINE_MODEL, 6);
value(HSA_SYSTEM_INFO_EXTENSIONS, 7);
value(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, 0x200);
value(HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, 0x201);
value(HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT, 0x202);
value(HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED, 0x203);
value(HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED, 0x204);
value(HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED, 0x205);
value(HSA_AMD_SYSTEM_INFO_XNACK_ENABLED, 0x206);
value(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR, 0x207);
value(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR, 0x208);

value(HSA_AGENT_INFO_NAME, 0);
value(HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE, 5);
value(HSA_AGENT_INFO_FBARRIER_MAX_SIZE, 11);
value(HSA_AGENT_INFO_QUEUES_MAX, 12);
value(HSA_AGENT_INFO_NODE, 16);
value(HSA_AGENT_INFO_DEVICE, 17);
value(HSA_AGENT_INFO_CACHE_SIZE, 18);
value(HSA_AGENT_INFO_ISA, 19);
value(HSA_AGENT_INFO_EXTENSIONS, 20);
value(HSA_AGENT_INFO_VERSION_MINOR, 22);
value(HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES, 23);
value(HSA_AGENT_INFO_FAST_F16_OPERATION, 24);
value(HSA_AGENT_INFO_LAST, INT32_MAX);
value(HSA_AMD_AGENT_INFO_CHIP_ID, 0xA000);
value(HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, 0xA004);
value(HSA_AMD_AGENT_INFO_PRODUCT_NAME, 0xA009);
value(HSA_AMD_AGENT_INFO_HDP_FLUSH, 0xA00E);
value(HSA_AMD_AGENT_INFO_UUID, 0xA011);
value(HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS, 0xA013);
value(HSA_AMD_AGENT_INFO_MEMORY_AVAIL, 0xA015);
value(HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, 0xA016);
value(HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID, 0xA107);
value(HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG, 0xA10B);
value(HSA_AMD_AGENT_INFO_IOMMU_SUPPORT, 0xA110);
value(HSA_AMD_AGENT_INFO_NEAREST_CPU, 0xA113);
value(HSA_AMD_AGENT_INFO_CLOCK_COUNTERS, 0xA118);

value(HSA_REGION_SEGMENT_GLOBAL, 0);
value(HSA_REGION_SEGMENT_READONLY, 1);
value(HSA_REGION_SEGMENT_PRIVATE, 2);
value(HSA_REGION_SEGMENT_GROUP, 3);
value(HSA_REGION_SEGMENT_KERNARG, 4);
value(HSA_REGION_GLOBAL_FLAG_KERNARG, 1);
value(HSA_REGION_GLOBAL_FLAG_FINE_GRAINED, 2);
value(HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED, 4);
value(HSA_REGION_INFO_SEGMENT, 0);
value(HSA_REGION_INFO_GLOBAL_FLAGS, 1);
value(HSA_REGION_INFO_SIZE, 2);
value(HSA_REGION_INFO_ALLOC_MAX_SIZE, 4);
value(HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, 5);
value(HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE, 6);
value(HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT, 7);
value(HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, 8);
value(HSA_AMD_REGION_INFO_HOST_ACCESSIBLE, 0xA000);
value(HSA_AMD_REGION_INFO_BASE, 0xA001);
value(HSA_AMD_REGION_INFO_BUS_WIDTH, 0xA002);
value(HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY, 0xA003);

value(HSA_AMD_SEGMENT_GLOBAL, 0);
value(HSA_AMD_SEGMENT_GROUP, 3);
value(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT, 1);
value(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, 2);
value(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, 4);
value(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED, 8);
value(HSA_AMD_MEMORY_POOL_INFO_SEGMENT, 0);
value(HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, 1);
value(HSA_AMD_MEMORY_POOL_INFO_SIZE, 2);
value(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, 5);
value(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, 6);
value(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT, 7);
value(HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL, 15);
value(HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, 16);
value(HSA_AMD_MEMORY_POOL_INFO_LOCATION, 17);
value(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE, 18);
value(HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG, 4);
value(HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED, 0);
value(HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT, 1);
value(HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT, 2);
value(HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, 0);
value(HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, 1);
value(HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, 2);
value(HSA_AMD_LINK_INFO_TYPE_HYPERTRANSPORT, 0);
value(HSA_AMD_LINK_INFO_TYPE_QPI, 1);
value(HSA_AMD_LINK_INFO_TYPE_XGMI, 4);
value(HSA_EXT_POINTER_TYPE_UNKNOWN, 0);
value(HSA_EXT_POINTER_TYPE_HSA, 1);
value(HSA_EXT_POINTER_TYPE_LOCKED, 2);
value(HSA_EXT_POINTER_TYPE_GRAPHICS, 3);
value(HSA_EXT_POINTER_TYPE_IPC, 4);
value(HSA_EXT_POINTER_TYPE_RESERVED_ADDR, 5);
value(HSA_EXT_POINTER_TYPE_HSA_VMEM, 6);
value(MEMORY_TYPE_NONE, 0);
value(MEMORY_TYPE_PINNED, 1);
value(HSA_AMD_VMEM_ADDRESS_NO_REGISTER, 1);
value(HSA_AMD_DMABUF_MAPPING_TYPE_PCIE, 1);
value(HSA_AMD_SIGNAL_AMD_GPU_ONLY, 1);
value(HSA_AMD_SIGNAL_IPC, 2);
value(HSA_SIGNAL_CONDITION_EQ, 0);
value(HSA_SIGNAL_CONDITION_NE, 1);
value(HSA_SIGNAL_CONDITION_LT, 2);
value(HSA_SIGNAL_CONDITION_GTE, 3);
value(HSA_WAIT_STATE_BLOCKED, 0);
value(HSA_WAIT_STATE_ACTIVE, 1);
value(HSA_CACHE_INFO_NAME_LENGTH, 0);
value(HSA_CACHE_INFO_NAME, 1);
value(HSA_CACHE_INFO_LEVEL, 2);
value(HSA_CACHE_INFO_SIZE, 3);
value(HSA_ISA_INFO_NAME_LENGTH, 0);
value(HSA_ISA_INFO_FBARRIER_MAX_SIZE, 17);
value(HSA_EXTENSION_AMD_PROFILER, 0x200);

/* ---- what programs write ----------------------------------------------------------------------------------------- */

/* Upstream's headers declare hsa_init() without void; programs keep it in a pointer of either kind. */
static hsa_status_t (*const initialise)(void) = hsa_init;
static const hsa_amd_deallocation_callback_t no_callback;

static void permissions_come_first_in_an_access_entry(void **state)
{
    const hsa_agent_t agent = {7};
    const hsa_amd_memory_access_desc_t positional = {HSA_ACCESS_PERMISSION_RO, agent};

    assert_int_equal(positional.permissions, HSA_ACCESS_PERMISSION_RO);
    assert_int_equal(positional.agent_handle.handle, 7);
    assert_non_null(initialise);
    assert_null(no_callback);
}

static void attributes_and_statuses_of_extensions_go_through_casts(void **state)
{
    const hsa_agent_info_t attribute = (hsa_agent_info_t)HSA_AMD_AGENT_INFO_UUID;
    const hsa_region_info_t region = (hsa_region_info_t)HSA_AMD_REGION_INFO_HOST_ACCESSIBLE;
    const hsa_status_t status = (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;

    assert_int_equal(attribute, 0xA011);
    assert_int_equal(region, 0xA000);
    assert_int_equal(status, 40);
}

/* hsa_flag_isset64(value, bit), hsa_flag_set64(value, bit) */
static void flags_are_bits_of_eight_bytes(void **state)
{
    uint8_t flags[8] = {0};

    hsa_flag_set64(flags, 0);
    hsa_flag_set64(flags, 63);
    assert_int_equal(flags[0], 1);
    assert_int_equal(flags[7], 128);
    assert_true(hsa_flag_isset64(flags, 0));
    assert_true(hsa_flag_isset64(flags, 63));
    assert_false(hsa_flag_isset64(flags, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permissions_come_first_in_an_access_entry),
        cmocka_unit_test(attributes_and_statuses_of_extensions_go_through_casts),
        cmocka_unit_test(flags_are_bits_of_eight_bytes),
    };

    return test_run(tests, NULL, NULL);
}
