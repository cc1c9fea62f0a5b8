/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy pool passes every allocation on to the provider. */
#include <errno.h>
#include <string.h>

#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/unit/umf/mock.h"

/* umfProxyPoolOps */
static void allocates_and_frees(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool = proxy_of(provider);
    char *ptr = umfPoolMalloc(pool, 100);

    assert_non_null(ptr);
    assert_int_equal(mock.size, 100);
    assert_int_equal(mock.alignment, 0);
    memset(ptr, 1, 100);
    assert_success(umfPoolFree(pool, ptr));
    assert_ptr_equal(mock.ptr, ptr);
    assert_int_equal(mock.size, 100);
    /* any alignment */
    ptr = umfPoolAlignedMalloc(pool, 10, 48);
    assert_non_null(ptr);
    assert_int_equal(mock.alignment, 48);
    assert_success(umfFree(ptr));
    assert_int_equal(mock.size, 10);
    /* no other operation was called */
    assert_int_equal(mock_called(&mock), 1U << MOCK_ALLOC | 1U << MOCK_FREE);
    assert_int_equal(mock.calls[MOCK_ALLOC], 2);
    assert_int_equal(mock.calls[MOCK_FREE], 2);
    umfPoolDestroy(pool);
    assert_int_equal(mock_called(&mock), 1U << MOCK_ALLOC | 1U << MOCK_FREE);
    umfMemoryProviderDestroy(provider);
}

/* umfProxyPoolOps */
static void cannot_do_more(void **state)
{
    umf_memory_provider_handle_t provider = mock_of(MOCK_MALLOC);
    umf_memory_pool_handle_t pool = proxy_of(provider);
    void *ptr = umfPoolMalloc(pool, 8);

    assert_null(umfPoolCalloc(pool, 1, 8));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_success(umfPoolFree(pool, ptr));
    ptr = umfPoolMalloc(pool, 8);
    assert_success(umfPoolGetLastAllocationError(pool));
    assert_null(umfPoolRealloc(pool, ptr, 16));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_success(umfPoolFree(pool, umfPoolMalloc(pool, 8)));
    assert_int_equal(umfPoolMallocUsableSize(pool, ptr), 0);
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_success(umfPoolFree(pool, ptr));
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

static void passes_failures_on(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool = proxy_of(provider);

    assert_null(umfPoolMalloc(pool, 0));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    assert_null(umfPoolMalloc(pool, SIZE_MAX));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    mock.fails[MOCK_ALLOC] = UMF_RESULT_ERROR_UNKNOWN;
    assert_null(umfPoolAlignedMalloc(pool, 1, 1));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_UNKNOWN);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* A pool passes NULL on to the provider. umfFree() ignores it. */
static void frees_null(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool = proxy_of(provider);

    errno = 0;
    mock.size = 1;
    assert_success(umfPoolFree(pool, NULL));
    assert_int_equal(mock.calls[MOCK_FREE], 1);
    assert_int_equal(mock.size, 0);
    assert_success(umfFree(NULL));
    assert_int_equal(errno, 0);
    assert_int_equal(mock.calls[MOCK_FREE], 1);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* A provider that succeeds without memory. */
static void gets_nothing(void **state)
{
    umf_memory_provider_handle_t provider = mock_of(MOCK_NULL);
    umf_memory_pool_handle_t pool = proxy_of(provider);

    for (size_t size = 0; size < 3; size++) {
        assert_null(umfPoolMalloc(pool, size));
        assert_success(umfPoolGetLastAllocationError(pool));
        assert_null(umfPoolByPtr(NULL));
    }
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocates_and_frees), cmocka_unit_test(cannot_do_more), cmocka_unit_test(passes_failures_on),
        cmocka_unit_test(frees_null),          cmocka_unit_test(gets_nothing),
    };

    return test_run(tests, NULL, NULL);
}
