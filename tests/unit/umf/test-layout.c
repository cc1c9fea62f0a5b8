/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that were compiled with upstream's headers have its sizes, offsets and numbers in them. Ours are the same,
 * to the byte.
 */
#include "tests/support/test.h"

#include <assert.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/providers/provider_level_zero.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#define layout(type, size)    static_assert(sizeof(type) == (size), #type " has another size")
#define field(type, name, at) static_assert(offsetof(type, name) == (at), #type "." #name " is elsewhere")
#define value(name, number)   static_assert((name) == (number), #name " is another number")
#define same(type, other)     static_assert(_Generic((type)0, other : 1, default : 0), #type " is something else")

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

value(UMF_VERSION_CURRENT, 9);
value(UMF_MAKE_VERSION(3, 5), 0x30005);
value(UMF_MAJOR_VERSION(0x30005), 3);
value(UMF_MINOR_VERSION(0x30005), 5);

value(UMF_RESULT_SUCCESS, 0);
value(UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY, 1);
value(UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC, 2);
value(UMF_RESULT_ERROR_INVALID_ARGUMENT, 3);
value(UMF_RESULT_ERROR_INVALID_ALIGNMENT, 4);
value(UMF_RESULT_ERROR_NOT_SUPPORTED, 5);
value(UMF_RESULT_ERROR_UNKNOWN, 0x7ffffffe);
layout(enum umf_result_t, 4);
layout(umf_result_t, 4);

value(UMF_POOL_CREATE_FLAG_NONE, 0);
value(UMF_POOL_CREATE_FLAG_OWN_PROVIDER, 1);
value(UMF_POOL_CREATE_FLAG_DISABLE_TRACKING, 2);
value(UMF_POOL_CREATE_FLAG_FORCE_UINT32, 0x7fffffff);
layout(enum umf_pool_create_flag_t, 4);
same(umf_pool_create_flags_t, uint32_t);

value(UMF_PROTECTION_NONE, 1);
value(UMF_PROTECTION_READ, 2);
value(UMF_PROTECTION_WRITE, 4);
value(UMF_PROTECTION_EXEC, 8);
value(UMF_PROTECTION_MAX, 9);
layout(enum umf_mem_protection_flags_t, 4);

value(UMF_MEM_MAP_PRIVATE, 1);
value(UMF_MEM_MAP_SHARED, 2);
layout(enum umf_memory_visibility_t, 4);

value(UMF_NUMA_MODE_DEFAULT, 0);
value(UMF_NUMA_MODE_BIND, 1);
value(UMF_NUMA_MODE_INTERLEAVE, 2);
value(UMF_NUMA_MODE_PREFERRED, 3);
value(UMF_NUMA_MODE_SPLIT, 4);
value(UMF_NUMA_MODE_LOCAL, 5);
layout(enum umf_numa_mode_t, 4);

value(UMF_OS_RESULTS_START_FROM, 1000);
value(UMF_OS_RESULT_SUCCESS, 1000);
value(UMF_OS_RESULT_ERROR_ALLOC_FAILED, 1001);
value(UMF_OS_RESULT_ERROR_ADDRESS_NOT_ALIGNED, 1002);
value(UMF_OS_RESULT_ERROR_BIND_FAILED, 1003);
value(UMF_OS_RESULT_ERROR_FREE_FAILED, 1004);
value(UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED, 1005);
value(UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED, 1006);
value(UMF_OS_RESULT_ERROR_TOPO_DISCOVERY_FAILED, 1007);
layout(enum umf_os_memory_provider_native_error, 4);
layout(umf_os_memory_provider_native_error_t, 4);

value(UMF_MEMORY_TYPE_UNKNOWN, 0);
value(UMF_MEMORY_TYPE_HOST, 1);
value(UMF_MEMORY_TYPE_DEVICE, 2);
value(UMF_MEMORY_TYPE_SHARED, 3);
layout(enum umf_usm_memory_type_t, 4);

value(UMF_MEMPOLICY_INTERLEAVE, 0);
value(UMF_MEMPOLICY_BIND, 1);
value(UMF_MEMPOLICY_PREFERRED, 2);
value(UMF_MEMPOLICY_SPLIT, 3);
layout(enum umf_mempolicy_membind_t, 4);

value(UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE, 8);

/* ---- handles ----------------------------------------------------------------------------------------------------- */

same(umf_memory_provider_handle_t, struct umf_memory_provider_t *);
same(umf_memory_pool_handle_t, struct umf_memory_pool_t *);
same(umf_ipc_handle_t, struct umf_ipc_data_t *);
same(umf_memspace_handle_t, struct umf_memspace_t *);
same(umf_const_memspace_handle_t, const struct umf_memspace_t *);
same(umf_mempolicy_handle_t, struct umf_mempolicy_t *);
same(umf_const_mempolicy_handle_t, const struct umf_mempolicy_t *);

/* ---- tables ------------------------------------------------------------------------------------------------------ */

layout(umf_memory_provider_ext_ops_t, 32);
field(umf_memory_provider_ext_ops_t, purge_lazy, 0);
field(umf_memory_provider_ext_ops_t, purge_force, 8);
field(umf_memory_provider_ext_ops_t, allocation_merge, 16);
field(umf_memory_provider_ext_ops_t, allocation_split, 24);

layout(umf_memory_provider_ipc_ops_t, 40);
field(umf_memory_provider_ipc_ops_t, get_ipc_handle_size, 0);
field(umf_memory_provider_ipc_ops_t, get_ipc_handle, 8);
field(umf_memory_provider_ipc_ops_t, put_ipc_handle, 16);
field(umf_memory_provider_ipc_ops_t, open_ipc_handle, 24);
field(umf_memory_provider_ipc_ops_t, close_ipc_handle, 32);

layout(umf_memory_provider_ops_t, 144);
layout(struct umf_memory_provider_ops_t, 144);
field(umf_memory_provider_ops_t, version, 0);
field(umf_memory_provider_ops_t, initialize, 8);
field(umf_memory_provider_ops_t, finalize, 16);
field(umf_memory_provider_ops_t, alloc, 24);
field(umf_memory_provider_ops_t, free, 32);
field(umf_memory_provider_ops_t, get_last_native_error, 40);
field(umf_memory_provider_ops_t, get_recommended_page_size, 48);
field(umf_memory_provider_ops_t, get_min_page_size, 56);
field(umf_memory_provider_ops_t, get_name, 64);
field(umf_memory_provider_ops_t, ext, 72);
field(umf_memory_provider_ops_t, ipc, 104);

layout(umf_memory_pool_ops_t, 80);
layout(struct umf_memory_pool_ops_t, 80);
field(umf_memory_pool_ops_t, version, 0);
field(umf_memory_pool_ops_t, initialize, 8);
field(umf_memory_pool_ops_t, finalize, 16);
field(umf_memory_pool_ops_t, malloc, 24);
field(umf_memory_pool_ops_t, calloc, 32);
field(umf_memory_pool_ops_t, realloc, 40);
field(umf_memory_pool_ops_t, aligned_malloc, 48);
field(umf_memory_pool_ops_t, malloc_usable_size, 56);
field(umf_memory_pool_ops_t, free, 64);
field(umf_memory_pool_ops_t, get_last_allocation_error, 72);

/* ---- parameters -------------------------------------------------------------------------------------------------- */

layout(umf_numa_split_partition_t, 8);
field(struct umf_numa_split_partition_t, weight, 0);
field(umf_numa_split_partition_t, target, 4);

layout(umf_mempolicy_split_partition_t, 8);
field(struct umf_mempolicy_split_partition_t, weight, 0);
field(umf_mempolicy_split_partition_t, target, 4);

layout(umf_os_memory_provider_params_t, 56);
field(struct umf_os_memory_provider_params_t, protection, 0);
field(umf_os_memory_provider_params_t, visibility, 4);
field(umf_os_memory_provider_params_t, shm_name, 8);
field(umf_os_memory_provider_params_t, numa_list, 16);
field(umf_os_memory_provider_params_t, numa_list_len, 24);
field(umf_os_memory_provider_params_t, numa_mode, 28);
field(umf_os_memory_provider_params_t, part_size, 32);
field(umf_os_memory_provider_params_t, partitions, 40);
field(umf_os_memory_provider_params_t, partitions_len, 48);

layout(umf_disjoint_pool_params_t, 64);
field(struct umf_disjoint_pool_params_t, SlabMinSize, 0);
field(umf_disjoint_pool_params_t, MaxPoolableSize, 8);
field(umf_disjoint_pool_params_t, Capacity, 16);
field(umf_disjoint_pool_params_t, MinBucketSize, 24);
field(umf_disjoint_pool_params_t, CurPoolSize, 32);
field(umf_disjoint_pool_params_t, PoolTrace, 40);
field(umf_disjoint_pool_params_t, SharedLimits, 48);
field(umf_disjoint_pool_params_t, Name, 56);

layout(umf_jemalloc_pool_params_t, 1);
field(struct umf_jemalloc_pool_params_t, disable_provider_free, 0);

layout(level_zero_memory_provider_params_t, 24);
field(struct level_zero_memory_provider_params_t, level_zero_context_handle, 0);
field(level_zero_memory_provider_params_t, level_zero_device_handle, 8);
field(level_zero_memory_provider_params_t, memory_type, 16);

/* ---- defaults ---------------------------------------------------------------------------------------------------- */

static void os_defaults(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    assert_int_equal(params.protection, UMF_PROTECTION_READ | UMF_PROTECTION_WRITE);
    assert_int_equal(params.visibility, UMF_MEM_MAP_PRIVATE);
    assert_null(params.shm_name);
    assert_null(params.numa_list);
    assert_int_equal(params.numa_list_len, 0);
    assert_int_equal(params.numa_mode, UMF_NUMA_MODE_DEFAULT);
    assert_int_equal(params.part_size, 0);
    assert_null(params.partitions);
    assert_int_equal(params.partitions_len, 0);
}

static void disjoint_defaults(void **state)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();

    assert_int_equal(params.SlabMinSize, 0);
    assert_int_equal(params.MaxPoolableSize, 0);
    assert_int_equal(params.Capacity, 0);
    assert_int_equal(params.MinBucketSize, UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE);
    assert_int_equal(params.CurPoolSize, 0);
    assert_int_equal(params.PoolTrace, 0);
    assert_null(params.SharedLimits);
    assert_string_equal(params.Name, "disjoint_pool");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(os_defaults),
        cmocka_unit_test(disjoint_defaults),
    };

    return test_run(tests, NULL, NULL);
}
