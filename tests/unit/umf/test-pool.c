/* SPDX-License-Identifier: Apache-2.0 */
/* Pools with a program's own operations: how they are created and destroyed, and what reaches them. */
#include <string.h>

#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/pools/pool_scalable.h>

#include "tests/unit/umf/mock.h"

#pragma weak umfJemallocPoolOps /* not in every build */

#define BOGUS ((umf_memory_provider_handle_t)0x1)
#define P     ((void *)0x10000)

/* ---- a pool of the program's ------------------------------------------------------------------------------------- */

static struct {
    umf_memory_provider_handle_t provider;
    void *params;
    unsigned initialized, finalized, calls;
    size_t size, count, alignment;
    void *ptr;
    umf_result_t fails;
} seen;

static umf_result_t initialize(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    seen.provider = provider;
    seen.params = params;
    seen.initialized++;
    *pool = &seen;
    return seen.fails;
}

static void finalize(void *pool)
{
    assert_ptr_equal(pool, &seen);
    seen.finalized++;
}

static void *note(void *pool, void *ptr, size_t count, size_t size, size_t alignment)
{
    assert_ptr_equal(pool, &seen);
    seen.calls++;
    seen.ptr = ptr;
    seen.count = count;
    seen.size = size;
    seen.alignment = alignment;
    return P;
}

static void *do_malloc(void *pool, size_t size)
{
    return note(pool, NULL, 0, size, 0);
}

static void *do_calloc(void *pool, size_t count, size_t size)
{
    return note(pool, NULL, count, size, 0);
}

static void *do_realloc(void *pool, void *ptr, size_t size)
{
    return note(pool, ptr, 0, size, 0);
}

static void *aligned_malloc(void *pool, size_t size, size_t alignment)
{
    return note(pool, NULL, 0, size, alignment);
}

static size_t usable_size(void *pool, void *ptr)
{
    note(pool, ptr, 0, 0, 0);
    return 77;
}

static umf_result_t do_free(void *pool, void *ptr)
{
    note(pool, ptr, 0, 0, 0);
    return UMF_RESULT_ERROR_UNKNOWN;
}

static umf_result_t last_error(void *pool)
{
    note(pool, NULL, 0, 0, 0);
    return UMF_RESULT_ERROR_INVALID_ALIGNMENT;
}

static const umf_memory_pool_ops_t ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = initialize,
    .finalize = finalize,
    .malloc = do_malloc,
    .calloc = do_calloc,
    .realloc = do_realloc,
    .aligned_malloc = aligned_malloc,
    .malloc_usable_size = usable_size,
    .free = do_free,
    .get_last_allocation_error = last_error,
};

static int forget(void **state)
{
    memset(&seen, 0, sizeof(seen));
    return 0;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* umf_pool_create_flag_t */
static void create_checks_its_arguments(void **state)
{
    static const umf_pool_create_flags_t flags[] = {UMF_POOL_CREATE_FLAG_NONE, UMF_POOL_CREATE_FLAG_OWN_PROVIDER};
    umf_memory_provider_handle_t provider = mock_of(MOCK_NULL);
    umf_memory_pool_handle_t pool = NULL;

    for (unsigned i = 0; i < 2; i++) {
        assert_result(umfPoolCreate(NULL, provider, NULL, flags[i], &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(umfPoolCreate(&ops, NULL, NULL, flags[i], &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(umfPoolCreate(&ops, provider, NULL, flags[i], NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    assert_result(umfPoolCreate(&ops, provider, NULL, 4, &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(&ops, provider, NULL, UMF_POOL_CREATE_FLAG_FORCE_UINT32, &pool),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(pool);
    assert_int_equal(seen.initialized, 0);
    umfPoolDestroy(NULL);
    umfMemoryProviderDestroy(provider);
}

static void create_looks_at_the_version(void **state)
{
    umf_memory_pool_ops_t other = ops;
    umf_memory_pool_handle_t pool = NULL;

    other.version = UMF_MAKE_VERSION(1, 0);
    assert_result(umfPoolCreate(&other, BOGUS, NULL, 0, &pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_null(pool);
}

/* The provider remains its owner's, even one that the pool was to own. What the pool has allocated is forgotten. */
static void create_passes_failures_on(void **state)
{
    umf_memory_provider_handle_t provider = mock_of(MOCK_NULL);
    umf_memory_pool_handle_t pool = NULL;

    seen.fails = UMF_RESULT_ERROR_UNKNOWN;
    for (umf_pool_create_flags_t flags = 0; flags < 4; flags++)
        assert_result(umfPoolCreate(&ops, provider, NULL, flags, &pool), UMF_RESULT_ERROR_UNKNOWN);
    assert_null(pool);
    assert_int_equal(seen.initialized, 4);
    assert_int_equal(seen.finalized, 0);
    assert_string_equal(umfMemoryProviderGetName(provider), "mock");
    umfMemoryProviderDestroy(provider);
}

/* umfPoolGetMemoryProvider, hPool, hProvider: A provider is not called before it is needed. */
static void provider_may_be_anything(void **state)
{
    umf_memory_provider_handle_t provider = NULL;
    umf_memory_pool_handle_t pool;

    for (unsigned i = 0; i < 2; i++) {
        assert_success(umfPoolCreate(umfProxyPoolOps(), BOGUS, NULL,
                                     i ? UMF_POOL_CREATE_FLAG_DISABLE_TRACKING : UMF_POOL_CREATE_FLAG_NONE, &pool));
        assert_success(umfPoolGetMemoryProvider(pool, &provider));
        assert_ptr_equal(provider, BOGUS);
        assert_result(umfPoolGetMemoryProvider(pool, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        umfPoolDestroy(pool);
    }
    assert_result(umfPoolGetMemoryProvider(NULL, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

static unsigned finalized;

static void count_finalize(void *provider)
{
    (void)provider;
    finalized++;
}

/* umf_memory_pool_ops_t; umfPoolDestroy, hPool */
static void owned_provider(void **state)
{
    umf_memory_provider_ops_t own = mock_ops[MOCK_NULL];
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;

    own.finalize = count_finalize;
    finalized = 0;
    assert_success(umfMemoryProviderCreate(&own, NULL, &provider));
    assert_success(umfPoolCreate(&ops, provider, NULL, UMF_POOL_CREATE_FLAG_NONE, &pool));
    umfPoolDestroy(pool);
    assert_int_equal(finalized, 0);
    assert_success(umfPoolCreate(&ops, provider, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool));
    umfPoolDestroy(pool);
    assert_int_equal(finalized, 1);
    assert_int_equal(seen.finalized, 2);
}

/* umf_pool_create_flag_t, combined in umf_pool_create_flags_t: UMF_POOL_CREATE_FLAG_NONE: no additional flags;
 * UMF_POOL_CREATE_FLAG_OWN_PROVIDER: the provider is destroyed in umfPoolDestroy;
 * UMF_POOL_CREATE_FLAG_DISABLE_TRACKING: allocations are not tracked. UMF_POOL_CREATE_FLAG_FORCE_UINT32 is no flag. */
static void every_flag(void **state)
{
    umf_memory_provider_ops_t own = mock_ops[MOCK_MALLOC];

    own.finalize = count_finalize;
    for (umf_pool_create_flags_t set = UMF_POOL_CREATE_FLAG_NONE; set <= 3; set++) {
        umf_memory_provider_handle_t provider = provider_of(&own);
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
}

/* umf_memory_pool_ops_t: each implementation initializes all function pointers. They are static tables. */
static void whole_tables(void **state)
{
    umf_memory_pool_ops_t *(*const all[])(void) = {umfDisjointPoolOps, umfJemallocPoolOps, umfProxyPoolOps,
                                                   umfScalablePoolOps};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        const umf_memory_pool_ops_t *table;

        if (!all[i])
            continue;
        table = all[i]();
        assert_ptr_equal(all[i](), table);
        assert_int_equal(table->version, UMF_VERSION_CURRENT);
        assert_true(table->initialize && table->finalize && table->malloc && table->calloc && table->realloc &&
                    table->aligned_malloc && table->malloc_usable_size && table->free &&
                    table->get_last_allocation_error);
    }
}

/* ---- using it ---------------------------------------------------------------------------------------------------- */

/* umf_memory_pool_ops_t, aligned_malloc, calloc, free, get_last_allocation_error, initialize, malloc,
 * malloc_usable_size, realloc; umfPoolCreate, hPool */
static void everything_reaches_the_pool(void **state)
{
    umf_memory_provider_handle_t provider = mock_of(MOCK_NULL);
    umf_memory_pool_ops_t copied = ops;
    umf_memory_pool_handle_t pool;
    int params;

    assert_success(umfPoolCreate(&copied, provider, &params, 0, &pool));
    memset(&copied, 0, sizeof(copied));
    assert_ptr_equal(seen.params, &params);
    assert_string_equal(umfMemoryProviderGetName(seen.provider), "mock");
    assert_ptr_equal(umfPoolMalloc(pool, 1), P);
    assert_null(umfPoolByPtr(P)); /* not a provider's memory */
    assert_int_equal(seen.size, 1);
    assert_ptr_equal(umfPoolCalloc(pool, 2, 3), P);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.size, 3);
    assert_ptr_equal(umfPoolRealloc(pool, P, 4), P);
    assert_ptr_equal(seen.ptr, P);
    assert_int_equal(seen.size, 4);
    assert_ptr_equal(umfPoolAlignedMalloc(pool, 5, 6), P);
    assert_int_equal(seen.size, 5);
    assert_int_equal(seen.alignment, 6);
    assert_int_equal(umfPoolMallocUsableSize(pool, P), 77);
    assert_result(umfPoolFree(pool, NULL), UMF_RESULT_ERROR_UNKNOWN);
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_int_equal(seen.calls, 7);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* The pool gets a provider that stands for the given one, with all its operations. */
static void whole_provider_reaches_the_pool(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool;
    const char *message;
    int32_t error;
    size_t size;
    uint8_t handle[MOCK_HANDLE_SIZE];
    void *ptr, *opened;

    assert_success(umfPoolCreate(&ops, provider, NULL, 0, &pool));
    assert_success(umfMemoryProviderAlloc(seen.provider, 8192, 0, &ptr));
    umfMemoryProviderGetLastNativeError(seen.provider, &message, &error);
    assert_int_equal(error, MOCK_NATIVE_ERROR);
    assert_success(umfMemoryProviderGetRecommendedPageSize(seen.provider, 1, &size));
    assert_int_equal(size, 8192);
    assert_success(umfMemoryProviderGetMinPageSize(seen.provider, ptr, &size));
    assert_int_equal(size, 4096);
    assert_success(umfMemoryProviderPurgeLazy(seen.provider, ptr, 4096));
    assert_success(umfMemoryProviderPurgeForce(seen.provider, ptr, 4096));
    assert_success(umfMemoryProviderAllocationSplit(seen.provider, ptr, 8192, 4096));
    assert_success(umfMemoryProviderAllocationMerge(seen.provider, ptr, (char *)ptr + 4096, 8192));
    assert_success(umfMemoryProviderGetIPCHandleSize(seen.provider, &size));
    assert_success(umfMemoryProviderGetIPCHandle(seen.provider, ptr, 8192, handle));
    assert_success(umfMemoryProviderOpenIPCHandle(seen.provider, handle, &opened));
    assert_success(umfMemoryProviderCloseIPCHandle(seen.provider, opened, 8192));
    assert_success(umfMemoryProviderPutIPCHandle(seen.provider, handle));
    assert_success(umfMemoryProviderFree(seen.provider, ptr, 8192));
    for (unsigned op = 0; op < MOCK_OPS; op++)
        assert_int_equal(mock.calls[op], op == MOCK_NAME ? 0 : 1);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

static void no_pool(void **state)
{
    assert_null(umfPoolMalloc(NULL, 1));
    assert_null(umfPoolAlignedMalloc(NULL, 1, 8));
    assert_null(umfPoolCalloc(NULL, 1, 1));
    assert_null(umfPoolRealloc(NULL, P, 1));
    assert_int_equal(umfPoolMallocUsableSize(NULL, P), 0);
    assert_result(umfPoolFree(NULL, P), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolGetLastAllocationError(NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(create_checks_its_arguments, forget),
        cmocka_unit_test_setup(create_looks_at_the_version, forget),
        cmocka_unit_test_setup(create_passes_failures_on, forget),
        cmocka_unit_test(provider_may_be_anything),
        cmocka_unit_test_setup(owned_provider, forget),
        cmocka_unit_test(every_flag),
        cmocka_unit_test(whole_tables),
        cmocka_unit_test_setup(everything_reaches_the_pool, forget),
        cmocka_unit_test_setup(whole_provider_reaches_the_pool, forget),
        cmocka_unit_test(no_pool),
    };

    return test_run(tests, NULL, NULL);
}
