/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document on the pools that come with the library, sentence by sentence. Each test quotes the function and what of
 * it is checked.
 */
#include <stdlib.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/pools/pool_scalable.h>

#include "tests/unit/umf/document.h"

#pragma weak umfJemallocPoolOps /* not every build has it */

/* umf_memory_pool_ops_t: each implementation initializes all function pointers. They are static tables. */
static void whole_tables(void **state)
{
    umf_memory_pool_ops_t *(*const all[])(void) = {umfDisjointPoolOps, umfJemallocPoolOps, umfProxyPoolOps,
                                                   umfScalablePoolOps};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        const umf_memory_pool_ops_t *ops;

        if (!all[i])
            continue;
        ops = all[i]();
        assert_ptr_equal(all[i](), ops);
        assert_int_equal(ops->version, UMF_VERSION_CURRENT);
        assert_true(ops->initialize && ops->finalize && ops->malloc && ops->calloc && ops->realloc &&
                    ops->aligned_malloc && ops->malloc_usable_size && ops->free && ops->get_last_allocation_error);
    }
}

/* umfProxyPoolOps: the Proxy Pool forwards all requests to the provider; umfPoolRealloc, umfPoolCalloc and
 * umfPoolMallocUsableSize are not supported. */
static void proxy(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool = proxy_of(provider);
    void *ptr = umfPoolAlignedMalloc(pool, 100, 64);

    (void)state;
    assert_ptr_equal(umfProxyPoolOps(), umfProxyPoolOps());
    assert_int_equal(mock.size, 100);
    assert_int_equal(mock.alignment, 64);
    assert_null(umfPoolCalloc(pool, 1, 1));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_success(umfPoolFree(pool, umfPoolMalloc(pool, 1)));
    assert_null(umfPoolRealloc(pool, ptr, 200));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_int_equal(umfPoolMallocUsableSize(pool, ptr), 0);
    assert_success(umfPoolFree(pool, ptr));
    assert_int_equal(mock.calls[MOCK_ALLOC], 2);
    assert_int_equal(mock.calls[MOCK_FREE], 2);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* umfScalablePoolOps: a pool of TBB's allocator, or UMF_RESULT_ERROR_NOT_SUPPORTED. */
static void scalable(void **state)
{
    umf_memory_pool_handle_t pool = NULL;
    umf_result_t result = umfPoolCreate(umfScalablePoolOps(), os, NULL, 0, &pool);
    void *ptr;

    (void)state;
    assert_ptr_equal(umfScalablePoolOps(), umfScalablePoolOps());
    if (result == UMF_RESULT_ERROR_NOT_SUPPORTED)
        test_skip("libtbbmalloc.so.2 is not here");
    assert_success(result);
    ptr = umfPoolMalloc(pool, 100);
    assert_ptr_equal(umfPoolByPtr(ptr), pool);
    assert_success(umfFree(ptr));
    umfPoolDestroy(pool);
}

/* umfJemallocPoolOps: a jemalloc-based pool; umf_jemalloc_pool_params_t, by umfJemallocPoolParamsDefault:
 * disable_provider_free: nothing goes back to the provider before the end. */
static void jemalloc(void **state)
{
    umf_jemalloc_pool_params_t params = umfJemallocPoolParamsDefault();
    umf_memory_pool_handle_t pool = NULL;
    umf_result_t result;
    void *ptr;

    (void)state;
    assert_false(params.disable_provider_free);
    if (!umfJemallocPoolOps)
        test_skip("this build has no jemalloc");
    for (int i = 0; i < 2; i++) {
        params.disable_provider_free = i;
        result = umfPoolCreate(umfJemallocPoolOps(), os, &params, 0, &pool);
        if (result == UMF_RESULT_ERROR_NOT_SUPPORTED)
            test_skip("this build has no jemalloc");
        assert_success(result);
        ptr = umfPoolMalloc(pool, 100);
        assert_ptr_equal(umfPoolByPtr(ptr), pool);
        assert_success(umfFree(ptr));
        umfPoolDestroy(pool);
    }
}

static umf_memory_pool_handle_t disjoint_of(umf_disjoint_pool_params_t params, umf_memory_provider_handle_t provider)
{
    umf_memory_pool_handle_t pool = NULL;

    assert_success(umfPoolCreate(umfDisjointPoolOps(), provider, &params, 0, &pool));
    return pool;
}

/* umfDisjointPoolOps: user data is the provider's, metadata is not, so the memory need not be readable;
 * umf_disjoint_pool_params_t, by umfDisjointPoolParamsDefault: SlabMinSize, MaxPoolableSize, Capacity,
 * MinBucketSize, which is UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE, CurPoolSize, PoolTrace, SharedLimits, Name.
 * umfDisjointPoolOps: UMF_RESULT_ERROR_INVALID_ARGUMENT: no parameters, or MinBucketSize is no power of 2.
 * umfPoolCreate: the provider is for coarse-grained allocations. */
static void disjoint(void **state)
{
    struct mock mock = {.is_guarded = true};
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool;
    void *small[4], *large;

    (void)state;
    assert_int_equal(params.MinBucketSize, UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE);
    assert_string_equal(params.Name, "disjoint_pool");
    assert_int_equal(params.CurPoolSize, 0);
    assert_int_equal(params.PoolTrace, 0);
    assert_null(params.SharedLimits);
    params.SlabMinSize = 4096;
    params.MaxPoolableSize = 4096;
    params.Capacity = 1;
    params.CurPoolSize = SIZE_MAX; /* has no effect */
    params.MinBucketSize = 3;
    assert_result(umfPoolCreate(umfDisjointPoolOps(), provider, &params, 0, &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(umfDisjointPoolOps(), provider, NULL, 0, &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    params.MinBucketSize = 64;
    pool = disjoint_of(params, provider);
    for (unsigned i = 0; i < 4; i++) {
        small[i] = umfPoolMalloc(pool, 1);
        assert_non_null(small[i]);
        for (unsigned k = 0; k < i; k++)
            assert_true(labs((char *)small[i] - (char *)small[k]) >= 64);
    }
    assert_int_equal(mock.calls[MOCK_ALLOC], 1);
    assert_int_equal(mock.size, 4096);
    large = umfPoolMalloc(pool, 5000);
    assert_int_equal(mock.calls[MOCK_ALLOC], 2);
    assert_success(umfPoolFree(pool, large));
    assert_int_equal(mock.calls[MOCK_FREE], 1);
    for (unsigned i = 0; i < 4; i++)
        assert_success(umfPoolFree(pool, small[i]));
    assert_int_equal(mock.calls[MOCK_FREE], 1); /* the slab is kept */
    umfPoolDestroy(pool);
    assert_int_equal(mock.calls[MOCK_FREE], 2);
    umfMemoryProviderDestroy(provider);
}

/* umfDisjointPoolSharedLimitsCreate(MaxSize): pointer to limits, an umf_disjoint_pool_shared_limits_t, that are shared
 * between pools: the sum of what they keep cannot exceed MaxSize; umfDisjointPoolSharedLimitsDestroy(limits). */
static void shared_limits(void **state)
{
    const size_t MaxSize = 8192;
    umf_disjoint_pool_shared_limits_t *limits = umfDisjointPoolSharedLimitsCreate(MaxSize);
    struct mock mock = {.calls = {0}};
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pools[2];
    void *ptrs[2][4];

    (void)state;
    assert_non_null(limits);
    params.SlabMinSize = 4096;
    params.MaxPoolableSize = 4096;
    params.Capacity = 4;
    params.SharedLimits = limits;
    for (unsigned i = 0; i < 2; i++)
        pools[i] = disjoint_of(params, provider);
    for (unsigned i = 0; i < 8; i++)
        ptrs[i / 4][i % 4] = umfPoolMalloc(pools[i / 4], 4096);
    assert_int_equal(mock.calls[MOCK_ALLOC], 8);
    for (unsigned i = 0; i < 8; i++)
        assert_success(umfPoolFree(pools[i / 4], ptrs[i / 4][i % 4]));
    assert_int_equal(mock.calls[MOCK_FREE], 8 - MaxSize / 4096);
    for (unsigned i = 0; i < 2; i++)
        umfPoolDestroy(pools[i]);
    assert_int_equal(mock.calls[MOCK_FREE], 8);
    umfDisjointPoolSharedLimitsDestroy(limits);
    umfMemoryProviderDestroy(provider);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, os_setup, os_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_tables),
        TEST(proxy),
        TEST(scalable),
        TEST(jemalloc),
        TEST(disjoint),
        TEST(shared_limits),
    };

    return test_run(tests, NULL, NULL);
}
