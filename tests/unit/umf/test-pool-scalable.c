/* SPDX-License-Identifier: Apache-2.0 */
/* What only the scalable pool has; test-pools-common has the rest. */
#include "tests/unit/umf/mock.h"

#include <memclient/umf/umf/pools/pool_scalable.h>
#include <stdlib.h>

/* umfScalablePoolOps: it allocates 2 MiB at a time, and gives everything back at the end. */
static void test_granularity(void **state)
{
    struct mock mock = {.kind = MOCK_PAGES};
    umf_memory_pool_handle_t pool = mock_pool(umfScalablePoolOps(), NULL, &mock);

    for (int i = 0; i < 1000; i++)
        assert_non_null(umfPoolMalloc(pool, 100));
    assert_true(mock.calls[MOCK_ALLOC] > 0);
    assert_int_equal(mock.bytes % ((size_t)2 << 20), 0);
    umfPoolDestroy(pool);
    assert_int_equal(mock.bytes, 0);
    assert_int_equal(mock.wrong, 0);
}

/* umfPoolMalloc, umfPoolGetLastAllocationError: any failure of the provider is OUT_OF_HOST_MEMORY. */
static void test_provider_fails(void **state)
{
    struct mock mock = {.kind = MOCK_PAGES, .fails[MOCK_ALLOC] = UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool = NULL;
    umf_result_t result = umfPoolCreate(umfScalablePoolOps(), provider, NULL, 0, &pool);

    if (result == UMF_RESULT_ERROR_NOT_SUPPORTED) {
        umfMemoryProviderDestroy(provider);
        test_skip("libtbbmalloc.so.2 is not here");
    }
    assert_success(result);
    assert_null(umfPoolMalloc(pool, 100));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* umfPoolRealloc to 0 frees; UNKNOWN. */
static void test_realloc_to_nothing(void **state)
{
    struct mock mock = {.kind = MOCK_PAGES};
    umf_memory_pool_handle_t pool = mock_pool(umfScalablePoolOps(), NULL, &mock);

    assert_null(umfPoolRealloc(pool, umfPoolMalloc(pool, 100), 0));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_UNKNOWN);
    umfPoolDestroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_granularity),
        cmocka_unit_test(test_provider_fails),
        cmocka_unit_test(test_realloc_to_nothing),
    };

    return test_run(tests, NULL, NULL);
}
