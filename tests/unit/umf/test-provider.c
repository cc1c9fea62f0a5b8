/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers with a program's own operations: what a table must have, what reaches the operations, and what they return.
 */
#include <string.h>

#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "tests/unit/umf/mock.h"

#define P ((void *)0x10000)

/* ---- making one -------------------------------------------------------------------------------------------------- */

static umf_result_t try_ops(const umf_memory_provider_ops_t *ops)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = NULL;
    umf_result_t result = umfMemoryProviderCreate(ops, &mock, &provider);

    assert_true(!provider == (result != UMF_RESULT_SUCCESS));
    umfMemoryProviderDestroy(provider);
    return result;
}

/* umfMemoryProviderCreate, ops */
static void create_checks_its_arguments(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = NULL;

    assert_result(umfMemoryProviderCreate(NULL, &mock, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(provider);
    assert_result(umfMemoryProviderCreate(&mock_ops[MOCK_PAGES], &mock, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(NULL);
}

/* Tries a table without one member. */
#define without(member)                                        \
    ({                                                         \
        umf_memory_provider_ops_t _ops = mock_ops[MOCK_PAGES]; \
                                                               \
        _ops.member = NULL;                                    \
        try_ops(&_ops);                                        \
    })

/* umfMemoryProviderCreate: every provider must have these operations. */
static void create_wants_every_operation(void **state)
{
    assert_success(try_ops(&mock_ops[MOCK_PAGES]));
    assert_result(without(initialize), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(finalize), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(alloc), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(free), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(get_last_native_error), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(get_recommended_page_size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(get_min_page_size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(get_name), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* umfMemoryProviderCreate: split and merge, and the operations for sharing, must be given together. */
static void create_wants_pairs_and_all_of_ipc(void **state)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];

    assert_success(without(ext.purge_lazy));
    assert_success(without(ext.purge_force));
    assert_result(without(ext.allocation_split), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(ext.allocation_merge), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ops.ext.allocation_merge = NULL;
    ops.ext.allocation_split = NULL;
    assert_success(try_ops(&ops));
    assert_result(without(ipc.get_ipc_handle_size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(ipc.get_ipc_handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(ipc.put_ipc_handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(ipc.open_ipc_handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(without(ipc.close_ipc_handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    memset(&ops.ipc, 0, sizeof(ops.ipc));
    assert_success(try_ops(&ops));
}

/* umfMemoryProviderCreate: A later or older minor version is accepted, another major version is not. */
static void create_looks_at_the_version(void **state)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];

    ops.version = UMF_MAKE_VERSION(0, 1);
    assert_success(try_ops(&ops));
    ops.version = UMF_MAKE_VERSION(0, 99);
    assert_success(try_ops(&ops));
    ops.version = UMF_MAKE_VERSION(1, 0);
    assert_result(try_ops(&ops), UMF_RESULT_ERROR_NOT_SUPPORTED);
}

static umf_result_t fails_with(void *params, void **provider)
{
    (void)provider;
    return *(umf_result_t *)params;
}

static void create_passes_failures_on(void **state)
{
    static const umf_result_t results[] = {
        UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC,
        UMF_RESULT_ERROR_INVALID_ARGUMENT,   UMF_RESULT_ERROR_INVALID_ALIGNMENT,
        UMF_RESULT_ERROR_NOT_SUPPORTED,      UMF_RESULT_ERROR_UNKNOWN,
    };
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];
    umf_memory_provider_handle_t provider = (void *)&ops;

    ops.initialize = fails_with;
    for (unsigned i = 0; i < sizeof(results) / sizeof(*results); i++)
        assert_result(umfMemoryProviderCreate(&ops, (void *)&results[i], &provider), results[i]);
    assert_ptr_equal(provider, &ops);
}

static void *initialized_with;
static unsigned finalized;

static umf_result_t initialize(void *params, void **provider)
{
    initialized_with = params;
    return params ? mock_ops[MOCK_PAGES].initialize(params, provider) : UMF_RESULT_ERROR_UNKNOWN;
}

static void finalize(void *provider)
{
    assert_ptr_equal(provider, initialized_with);
    finalized++;
}

/* umf_result_t, INVALID_ARGUMENT; umfMemoryProviderCreate, params, hProvider; umfMemoryProviderDestroy, hProvider: The
 * parameters reach initialize. What that makes reaches finalize, once. After a failure finalize is not called. */
static void parameters_reach_the_provider(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];
    umf_memory_provider_handle_t provider = NULL;

    ops.initialize = initialize;
    ops.finalize = finalize;
    finalized = 0;
    assert_result(umfMemoryProviderCreate(&ops, NULL, &provider), UMF_RESULT_ERROR_UNKNOWN);
    assert_null(provider);
    assert_int_equal(finalized, 0);
    assert_success(umfMemoryProviderCreate(&ops, &mock, &provider));
    assert_ptr_equal(initialized_with, &mock);
    umfMemoryProviderDestroy(provider);
    assert_int_equal(finalized, 1);
}

static void the_table_is_copied(void **state)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider;

    assert_success(umfMemoryProviderCreate(&ops, &mock, &provider));
    memset(&ops, 0, sizeof(ops));
    assert_success(umfMemoryProviderPurgeLazy(provider, P, 1));
    umfMemoryProviderDestroy(provider);
}

/* ---- using it ---------------------------------------------------------------------------------------------------- */

/* umfMemoryProviderCreate; umf_memory_provider_ops_t, alloc, ext, free, get_last_native_error, get_min_page_size,
 * get_name, get_recommended_page_size; umf_memory_provider_ext_ops_t, allocation_merge, allocation_split, purge_force,
 * purge_lazy: Each call makes one call, whatever its arguments are. */
static void each_call_is_one(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    size_t size;

    assert_int_equal(mock_called(&mock), 0);
    assert_result(umfMemoryProviderAlloc(provider, 0, 3, NULL), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    assert_int_equal(mock.alignment, 3);
    assert_success(umfMemoryProviderFree(provider, NULL, 0));
    umfMemoryProviderGetLastNativeError(provider, NULL, NULL);
    assert_success(umfMemoryProviderGetRecommendedPageSize(provider, 0, NULL));
    assert_success(umfMemoryProviderGetMinPageSize(provider, NULL, NULL));
    assert_string_equal(umfMemoryProviderGetName(provider), "mock");
    assert_success(umfMemoryProviderPurgeLazy(provider, NULL, 0));
    assert_success(umfMemoryProviderPurgeForce(provider, NULL, 0));
    assert_success(umfMemoryProviderAllocationMerge(provider, P, (char *)P + 1, 3));
    assert_int_equal(mock.first_size, 1);
    assert_int_equal(mock.size, 3);
    assert_success(umfMemoryProviderAllocationSplit(provider, P, 5, 4));
    assert_int_equal(mock.first_size, 4);
    assert_int_equal(mock.size, 5);
    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &size));
    assert_int_equal(size, MOCK_HANDLE_SIZE);
    for (unsigned op = 0; op < MOCK_IPC_GET; op++)
        assert_int_equal(mock.calls[op], 1);
    umfMemoryProviderDestroy(provider);
}

/* umf_result_t: UMF_RESULT_SUCCESS, UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC,
 * UMF_RESULT_ERROR_INVALID_ARGUMENT, UMF_RESULT_ERROR_INVALID_ALIGNMENT, UMF_RESULT_ERROR_NOT_SUPPORTED and
 * UMF_RESULT_ERROR_UNKNOWN come through as the provider returned them. */
static void results_come_through(void **state)
{
    const umf_result_t all[] = {
        UMF_RESULT_SUCCESS,
        UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC,
        UMF_RESULT_ERROR_INVALID_ARGUMENT,
        UMF_RESULT_ERROR_INVALID_ALIGNMENT,
        UMF_RESULT_ERROR_NOT_SUPPORTED,
        UMF_RESULT_ERROR_UNKNOWN,
    };
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        mock.fails[MOCK_PURGE_LAZY] = all[i];
        assert_result(umfMemoryProviderPurgeLazy(provider, NULL, 0), all[i]);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(all[i], all[k]);
    }
    umfMemoryProviderDestroy(provider);
}

static void native_errors(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    const char *message = NULL;
    int32_t error = 0;

    umfMemoryProviderGetLastNativeError(provider, &message, &error);
    assert_string_equal(message, "mock");
    assert_int_equal(error, MOCK_NATIVE_ERROR);
    umfMemoryProviderGetLastNativeError(NULL, &message, &error);
    umfMemoryProviderDestroy(provider);
}

/* umf_memory_provider_ops_t, ipc; umf_memory_provider_ipc_ops_t, close_ipc_handle, get_ipc_handle, get_ipc_handle_size,
 * open_ipc_handle, put_ipc_handle */
static void handles_of_memory(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    uint8_t handle[MOCK_HANDLE_SIZE];
    void *ptr, *opened;

    assert_success(umfMemoryProviderAlloc(provider, 100, 0, &ptr));
    memcpy(ptr, "shared", sizeof("shared"));
    assert_success(umfMemoryProviderGetIPCHandle(provider, ptr, 100, handle));
    assert_ptr_equal(mock.ipc_ptr, ptr);
    assert_int_equal(mock.ipc_size, 100);
    assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, &opened));
    assert_string_equal(opened, "shared");
    assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, 100));
    assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
    for (unsigned op = MOCK_IPC_GET; op < MOCK_OPS; op++)
        assert_int_equal(mock.calls[op], 1);
    memset(handle, 0, sizeof(handle));
    assert_result(umfMemoryProviderOpenIPCHandle(provider, handle, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(provider, handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, 100));
    umfMemoryProviderDestroy(provider);
}

/* umf_result_t: Operations that a provider does not have are not supported. */
static void missing_operations(void **state)
{
    umf_memory_provider_handle_t provider = mock_of(MOCK_NULL);
    char data[8] = "";
    size_t size;
    void *ptr;

    assert_result(umfMemoryProviderPurgeLazy(provider, P, 1), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderPurgeForce(provider, P, 1), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderAllocationSplit(provider, P, 2, 1), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderAllocationMerge(provider, P, (char *)P + 1, 2), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderGetIPCHandleSize(provider, &size), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderGetIPCHandle(provider, P, 1, data), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderPutIPCHandle(provider, data), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, data, &ptr), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, P, 1), UMF_RESULT_ERROR_NOT_SUPPORTED);
    umfMemoryProviderDestroy(provider);
}

static void no_provider(void **state)
{
    char data[8] = "";
    size_t size;
    void *ptr;

    assert_result(umfMemoryProviderAlloc(NULL, 1, 0, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderFree(NULL, P, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetRecommendedPageSize(NULL, 1, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetMinPageSize(NULL, P, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(umfMemoryProviderGetName(NULL));
    assert_result(umfMemoryProviderPurgeLazy(NULL, P, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPurgeForce(NULL, P, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(NULL, P, 2, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(NULL, P, (char *)P + 1, 2), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandleSize(NULL, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(NULL, P, 1, data), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(NULL, data), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderOpenIPCHandle(NULL, data, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(NULL, P, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* ptr, totalSize, firstSize: INVALID_ARGUMENT before the provider is called. */
static void split_checks_its_arguments(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);

    assert_result(umfMemoryProviderAllocationSplit(provider, NULL, 2, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(provider, P, 0, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(provider, P, 2, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(provider, P, 2, 2), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(provider, P, 2, 3), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mock_called(&mock), 0);
    umfMemoryProviderDestroy(provider);
}

static void merge_checks_its_arguments(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    char *high = (char *)P + 4;

    assert_result(umfMemoryProviderAllocationMerge(provider, NULL, high, 8), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(provider, P, NULL, 8), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(provider, P, high, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(provider, P, P, 8), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(provider, high, P, 8), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(provider, P, high, 3), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mock_called(&mock), 0);
    umfMemoryProviderDestroy(provider);
}

/* The library's own providers check their arguments before they look for a broker. */
static void nothing_to_share(umf_memory_provider_handle_t provider)
{
    char data[256] = "";
    void *ptr = NULL;

    assert_result(umfMemoryProviderGetIPCHandleSize(provider, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, NULL, 1, data), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, data, 1, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(provider, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(provider, data), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, NULL, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, data, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, data, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, NULL, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(ptr);
    umfMemoryProviderDestroy(provider);
}

static void our_own_check_for_null(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;

    params.visibility = UMF_MEM_MAP_SHARED;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    nothing_to_share(provider);
    nothing_to_share(provider_of(umfMemorydMemoryProviderOps()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_checks_its_arguments),
        cmocka_unit_test(create_wants_every_operation),
        cmocka_unit_test(create_wants_pairs_and_all_of_ipc),
        cmocka_unit_test(create_looks_at_the_version),
        cmocka_unit_test(create_passes_failures_on),
        cmocka_unit_test(parameters_reach_the_provider),
        cmocka_unit_test(the_table_is_copied),
        cmocka_unit_test(each_call_is_one),
        cmocka_unit_test(results_come_through),
        cmocka_unit_test(native_errors),
        cmocka_unit_test(handles_of_memory),
        cmocka_unit_test(missing_operations),
        cmocka_unit_test(no_provider),
        cmocka_unit_test(split_checks_its_arguments),
        cmocka_unit_test(merge_checks_its_arguments),
        cmocka_unit_test(our_own_check_for_null),
    };

    return test_run(tests, NULL, NULL);
}
