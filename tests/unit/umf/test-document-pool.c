/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document on pools as such, sentence by sentence: making them, with operations of one's own. Each test quotes the
 * function and what of it is checked.
 */
#include <malloc.h>
#include <string.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/unit/umf/document.h"

/* umfPoolCreate(ops, provider, params, flags, hPool): UMF_RESULT_SUCCESS: hPool is the newly created pool, an
 * umf_memory_pool_handle_t; ops, an umf_memory_pool_ops_t of version, initialize and finalize, was called with params.
 * UMF_RESULT_ERROR_INVALID_ARGUMENT: ops, provider or hPool is NULL, or flags are none;
 * UMF_RESULT_ERROR_NOT_SUPPORTED: a version to come. umfPoolDestroy(hPool): destroys it. */
static void create_and_destroy(void **state)
{
    umf_memory_pool_ops_t ops = heap_ops;
    umf_memory_pool_handle_t hPool = NULL;
    int params;

    (void)state;
    heap.begun = heap.ended = 0;
    assert_result(umfPoolCreate(NULL, os, &params, 0, &hPool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(&ops, NULL, &params, 0, &hPool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(&ops, os, &params, 0, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(&ops, os, &params, 4, &hPool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ops.version = UMF_MAKE_VERSION(1, 0);
    assert_result(umfPoolCreate(&ops, os, &params, 0, &hPool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_null(hPool);
    assert_int_equal(heap.begun, 0);

    ops.version = UMF_VERSION_CURRENT;
    assert_result(umfPoolCreate(&ops, os, &params, 0, &hPool), UMF_RESULT_SUCCESS);
    assert_non_null(hPool);
    assert_ptr_equal(heap.params, &params);
    assert_string_equal(umfMemoryProviderGetName(heap.provider), "OS");
    assert_int_equal(heap.begun, 1);
    umfPoolDestroy(hPool);
    assert_int_equal(heap.ended, 1);
}

static unsigned finalized;

static void count_finalize(void *provider)
{
    (void)provider;
    finalized++;
}

/* umf_pool_create_flag_t, combined in umf_pool_create_flags_t: UMF_POOL_CREATE_FLAG_NONE: no additional flags;
 * UMF_POOL_CREATE_FLAG_OWN_PROVIDER: the provider is destroyed in umfPoolDestroy;
 * UMF_POOL_CREATE_FLAG_DISABLE_TRACKING: allocations are not tracked. UMF_POOL_CREATE_FLAG_FORCE_UINT32 is no flag. */
static void flags(void **state)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_MALLOC];

    (void)state;
    ops.finalize = count_finalize;
    for (umf_pool_create_flags_t set = UMF_POOL_CREATE_FLAG_NONE; set <= 3; set++) {
        umf_memory_provider_handle_t provider = provider_of(&ops);
        umf_memory_pool_handle_t pool = NULL;
        void *ptr;

        finalized = 0;
        assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, set, &pool));
        ptr = umfPoolMalloc(pool, 100);
        assert_ptr_equal(umfPoolByPtr(ptr), set & UMF_POOL_CREATE_FLAG_DISABLE_TRACKING ? NULL : pool);
        assert_success(umfPoolFree(pool, ptr));
        umfPoolDestroy(pool);
        assert_int_equal(finalized, set & UMF_POOL_CREATE_FLAG_OWN_PROVIDER ? 1 : 0);
        if (!finalized)
            umfMemoryProviderDestroy(provider);
    }
    {
        umf_memory_pool_handle_t pool = NULL;

        assert_result(umfPoolCreate(umfProxyPoolOps(), os, NULL, UMF_POOL_CREATE_FLAG_FORCE_UINT32, &pool),
                      UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
}

/* umf_memory_pool_ops_t: malloc, calloc, realloc, aligned_malloc, malloc_usable_size, free and
 * get_last_allocation_error are used by the corresponding umfPool* calls. */
static void operations(void **state)
{
    umf_memory_pool_ops_t ops = heap_ops;
    umf_memory_pool_handle_t pool = NULL;
    void *ptr;

    (void)state;
    assert_success(umfPoolCreate(&ops, os, NULL, 0, &pool));
    memset(&ops, 0, sizeof(ops)); /* it was copied */
    ptr = umfPoolRealloc(pool, umfPoolMalloc(pool, 10), 100);
    assert_int_equal(umfPoolMallocUsableSize(pool, ptr), malloc_usable_size(ptr));
    assert_success(umfPoolFree(pool, ptr));
    assert_success(umfPoolFree(pool, umfPoolAlignedMalloc(pool, 64, 64)));
    assert_success(umfPoolFree(pool, umfPoolCalloc(pool, 2, 2)));
    heap_error = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_UNKNOWN);
    umfPoolDestroy(pool);
}

/* umfPoolGetMemoryProvider(hPool, hProvider): UMF_RESULT_SUCCESS: the provider associated with the pool;
 * UMF_RESULT_ERROR_INVALID_ARGUMENT if hProvider is NULL, or hPool. */
static void get_memory_provider(void **state)
{
    umf_memory_pool_handle_t hPool = proxy_of(os);
    umf_memory_provider_handle_t hProvider = NULL;

    (void)state;
    assert_result(umfPoolGetMemoryProvider(hPool, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolGetMemoryProvider(NULL, &hProvider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(hProvider);
    assert_result(umfPoolGetMemoryProvider(hPool, &hProvider), UMF_RESULT_SUCCESS);
    assert_ptr_equal(hProvider, os);
    umfPoolDestroy(hPool);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, os_setup, os_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create_and_destroy),
        TEST(flags),
        TEST(operations),
        TEST(get_memory_provider),
    };

    return test_run(tests, NULL, NULL);
}
