/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document on pools, sentence by sentence: with every allocator that this build and machine have, and one of our
 * own. Each test quotes the function and what of it is checked.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/umf.h>
#include <memclient/umf/ipc.h>
#include <memclient/umf/memory_pool_ops.h>
#include <memclient/umf/pools/pool_disjoint.h>
#include <memclient/umf/pools/pool_jemalloc.h>
#include <memclient/umf/pools/pool_proxy.h>
#include <memclient/umf/pools/pool_scalable.h>
#include <memclient/umf/providers/provider_os_memory.h>

#include "tests/unit/umf/providers.h"

#pragma weak umfJemallocPoolOps /* not every build has it */

static umf_memory_provider_handle_t os;

static int setup(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    (void)state;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &os));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    umfMemoryProviderDestroy(os);
    return 0;
}

/* ---- a pool of our own ----------------------------------------------------------------------------------- */

static struct {
    umf_memory_provider_handle_t provider;
    void *params;
    unsigned begun, ended;
} own;
static __thread umf_result_t last_error;

static void *told(void *ptr)
{
    if (!ptr)
        last_error = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return ptr;
}

static umf_result_t own_initialize(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    own.provider = provider;
    own.params = params;
    own.begun++;
    *pool = &own;
    return UMF_RESULT_SUCCESS;
}

static void own_finalize(void *pool)
{
    assert_ptr_equal(pool, &own);
    own.ended++;
}

/* The compiler knows malloc(), and what cannot be. */
static volatile size_t limit = SIZE_MAX / 4;

static void *own_malloc(void *pool, size_t size)
{
    (void)pool;
    return told(size > limit ? NULL : malloc(size));
}

static void *own_calloc(void *pool, size_t num, size_t size)
{
    size_t bytes;

    (void)pool;
    return told(__builtin_mul_overflow(num, size, &bytes) ? NULL : calloc(1, bytes));
}

static void *own_realloc(void *pool, void *ptr, size_t size)
{
    (void)pool;
    return told(size > limit ? NULL : realloc(ptr, size));
}

static void *own_aligned_malloc(void *pool, size_t size, size_t alignment)
{
    void *ptr = NULL;

    (void)pool;
    return told(size > limit || posix_memalign(&ptr, alignment < 8 ? 8 : alignment, size) ? NULL : ptr);
}

static size_t own_malloc_usable_size(void *pool, void *ptr)
{
    (void)pool;
    return malloc_usable_size(ptr);
}

static umf_result_t own_free(void *pool, void *ptr)
{
    (void)pool;
    free(ptr);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t own_last_error(void *pool)
{
    (void)pool;
    return last_error;
}

static umf_memory_pool_ops_t own_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = own_initialize,
    .finalize = own_finalize,
    .malloc = own_malloc,
    .calloc = own_calloc,
    .realloc = own_realloc,
    .aligned_malloc = own_aligned_malloc,
    .malloc_usable_size = own_malloc_usable_size,
    .free = own_free,
    .get_last_allocation_error = own_last_error,
};

/* Calls a function with each allocator, over memory of the operating system; "whole" ones have every operation. */
static void with_pools(bool whole, void (*function)(umf_memory_pool_handle_t))
{
    umf_disjoint_pool_params_t slabs = umfDisjointPoolParamsDefault();
    const struct {
        const umf_memory_pool_ops_t *ops;
        void *params;
        bool whole;
    } all[] = {
        {&own_ops, NULL, true},
        {umfScalablePoolOps(), NULL, true},
        {umfJemallocPoolOps ? umfJemallocPoolOps() : NULL, NULL, true},
        {umfDisjointPoolOps(), &slabs, false},
        {umfProxyPoolOps(), NULL, false},
    };

    slabs.SlabMinSize = 65536;
    slabs.MaxPoolableSize = 1 << 20;
    slabs.Capacity = 4;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        umf_memory_pool_handle_t pool = NULL;
        umf_result_t result;

        if (!all[i].ops || (whole && !all[i].whole))
            continue;
        result = umfPoolCreate(all[i].ops, os, all[i].params, UMF_POOL_CREATE_FLAG_NONE, &pool);
        if (result == UMF_RESULT_ERROR_NOT_SUPPORTED)
            continue; /* not on this machine */
        assert_success(result);
        function(pool);
        umfPoolDestroy(pool);
    }
}

/* ---- making one ------------------------------------------------------------------------------------------ */

/* umfPoolCreate(ops, provider, params, flags, hPool): UMF_RESULT_SUCCESS: hPool is the newly created pool, an
 * umf_memory_pool_handle_t; ops, an umf_memory_pool_ops_t of version, initialize and finalize, was called with params.
 * UMF_RESULT_ERROR_INVALID_ARGUMENT: ops, provider or hPool is NULL, or flags are none;
 * UMF_RESULT_ERROR_NOT_SUPPORTED: a version to come. umfPoolDestroy(hPool): destroys it. */
static void create_and_destroy(void **state)
{
    umf_memory_pool_ops_t ops = own_ops;
    umf_memory_pool_handle_t hPool = NULL;
    int params;

    (void)state;
    own.begun = own.ended = 0;
    assert_result(umfPoolCreate(NULL, os, &params, 0, &hPool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(&ops, NULL, &params, 0, &hPool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(&ops, os, &params, 0, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreate(&ops, os, &params, 4, &hPool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ops.version = UMF_MAKE_VERSION(1, 0);
    assert_result(umfPoolCreate(&ops, os, &params, 0, &hPool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_null(hPool);
    assert_int_equal(own.begun, 0);

    ops.version = UMF_VERSION_CURRENT;
    assert_result(umfPoolCreate(&ops, os, &params, 0, &hPool), UMF_RESULT_SUCCESS);
    assert_non_null(hPool);
    assert_ptr_equal(own.params, &params);
    assert_string_equal(umfMemoryProviderGetName(own.provider), "OS");
    assert_int_equal(own.begun, 1);
    umfPoolDestroy(hPool);
    assert_int_equal(own.ended, 1);
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
    umf_memory_provider_ops_t ops = malloc_ops;

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
    umf_memory_pool_handle_t pool = NULL;
    void *ptr;

    (void)state;
    assert_success(umfPoolCreate(&own_ops, os, NULL, 0, &pool));
    ptr = umfPoolRealloc(pool, umfPoolMalloc(pool, 10), 100);
    assert_int_equal(umfPoolMallocUsableSize(pool, ptr), malloc_usable_size(ptr));
    assert_success(umfPoolFree(pool, ptr));
    assert_success(umfPoolFree(pool, umfPoolAlignedMalloc(pool, 64, 64)));
    assert_success(umfPoolFree(pool, umfPoolCalloc(pool, 2, 2)));
    last_error = UMF_RESULT_ERROR_UNKNOWN;
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

/* ---- memory ---------------------------------------------------------------------------------------------- */

static void allocate(umf_memory_pool_handle_t hPool)
{
    const size_t sizes[] = {1, 100, 5000, 1 << 20};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const size_t size = sizes[i];
        char *ptr = umfPoolMalloc(hPool, size);

        assert_non_null(ptr);
        assert_int_equal((uintptr_t)ptr % 8, 0);
        memset(ptr, 1, size);
        assert_result(umfPoolFree(hPool, ptr), UMF_RESULT_SUCCESS);
        for (size_t alignment = 8; alignment <= 65536; alignment *= 8) {
            ptr = umfPoolAlignedMalloc(hPool, size, alignment);
            assert_non_null(ptr);
            assert_int_equal((uintptr_t)ptr % alignment, 0);
            memset(ptr, 1, size);
            assert_result(umfPoolFree(hPool, ptr), UMF_RESULT_SUCCESS);
        }
    }
}

/* umfPoolMalloc(hPool, size): allocates size bytes; umfPoolAlignedMalloc(hPool, size, alignment): at that alignment;
 * umfPoolFree(hPool, ptr): UMF_RESULT_SUCCESS; without a pool NULL and UMF_RESULT_ERROR_INVALID_ARGUMENT. */
static void malloc_and_free(void **state)
{
    (void)state;
    with_pools(false, allocate);
    assert_null(umfPoolMalloc(NULL, 1));
    assert_null(umfPoolAlignedMalloc(NULL, 1, 8));
    assert_result(umfPoolFree(NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

static void zeroed(umf_memory_pool_handle_t hPool)
{
    const size_t num = 37, size = 113;
    void *dirty = umfPoolMalloc(hPool, num * size);
    char *ptr;

    memset(dirty, 1, num * size);
    assert_success(umfPoolFree(hPool, dirty));
    ptr = umfPoolCalloc(hPool, num, size);
    for (size_t i = 0; i < num * size; i++)
        assert_int_equal(ptr[i], 0);
    assert_success(umfPoolFree(hPool, ptr));
    assert_null(umfPoolCalloc(hPool, SIZE_MAX / 2 + 2, 2));
    assert_result(umfPoolGetLastAllocationError(hPool), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
}

/* umfPoolCalloc(hPool, num, size): an array of num elements of size bytes each, all initialized to zero. */
static void calloc_zeroes(void **state)
{
    (void)state;
    with_pools(true, zeroed);
    assert_null(umfPoolCalloc(NULL, 1, 1));
}

static void resized(umf_memory_pool_handle_t hPool)
{
    char *ptr = NULL;

    for (size_t size = 10; size < 1000000; size *= 3) {
        const size_t before = size / 3;

        ptr = umfPoolRealloc(hPool, ptr, size);
        assert_non_null(ptr);
        for (size_t i = 0; size > 10 && i < before; i++)
            assert_int_equal(ptr[i], 5);
        assert_true(umfPoolMallocUsableSize(hPool, ptr) >= size);
        memset(ptr, 5, umfPoolMallocUsableSize(hPool, ptr));
    }
    ptr = umfPoolRealloc(hPool, ptr, 10);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(ptr[i], 5);
    assert_success(umfPoolFree(hPool, ptr));
}

/* umfPoolRealloc(hPool, ptr, size): reallocates, contents stay; umfPoolMallocUsableSize(hPool, ptr): size of the
 * block. */
static void realloc_and_usable_size(void **state)
{
    (void)state;
    with_pools(true, resized);
    assert_null(umfPoolRealloc(NULL, NULL, 1));
    assert_int_equal(umfPoolMallocUsableSize(NULL, NULL), 0);
}

/* umfFree(ptr): UMF_RESULT_SUCCESS: frees it if it belongs to a pool, does nothing otherwise; whether any other
 * status can be returned depends on the provider; so with umfPoolFree(hPool, ptr). umfPoolByPtr(ptr): the pool that
 * contains ptr, or NULL; only memory allocated with the usage of a provider is being tracked. */
static void free_and_by_ptr(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool = proxy_of(provider), heap = NULL;
    char *ptr = umfPoolMalloc(pool, 5000), mine;

    (void)state;
    assert_ptr_equal(umfPoolByPtr(ptr), pool);
    assert_ptr_equal(umfPoolByPtr(ptr + 4999), pool);
    assert_ptr_not_equal(umfPoolByPtr(ptr + 5000), pool);
    assert_null(umfPoolByPtr(&mine));
    assert_null(umfPoolByPtr(NULL));
    assert_result(umfFree(&mine), UMF_RESULT_SUCCESS);
    assert_result(umfFree(NULL), UMF_RESULT_SUCCESS);
    assert_int_equal(mock.calls[MOCK_FREE], 0);
    mock.fails[MOCK_FREE] = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfFree(ptr), UMF_RESULT_ERROR_UNKNOWN);
    assert_result(umfPoolFree(pool, ptr), UMF_RESULT_ERROR_UNKNOWN);
    mock.fails[MOCK_FREE] = UMF_RESULT_SUCCESS;
    assert_result(umfFree(ptr), UMF_RESULT_SUCCESS);
    assert_null(umfPoolByPtr(ptr));
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);

    assert_success(umfPoolCreate(&own_ops, os, NULL, 0, &heap)); /* which has its memory from elsewhere */
    ptr = umfPoolMalloc(heap, 100);
    assert_null(umfPoolByPtr(ptr));
    assert_success(umfPoolFree(heap, ptr));
    umfPoolDestroy(heap);
}

static void *fail_elsewhere(void *argument)
{
    umf_memory_pool_handle_t hPool = argument;
    void *ptr = umfPoolMalloc(hPool, 16);

    return umfPoolFree(hPool, ptr) == UMF_RESULT_SUCCESS ? hPool : NULL;
}

static void failing(umf_memory_pool_handle_t hPool)
{
    pthread_t thread;
    umf_result_t error;
    void *fine;

    assert_null(umfPoolMalloc(hPool, SIZE_MAX / 2));
    error = umfPoolGetLastAllocationError(hPool);
    assert_int_not_equal(error, UMF_RESULT_SUCCESS);
    /* what another thread does is its own business */
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, hPool), 0);
    assert_int_equal(pthread_join(thread, &fine), 0);
    assert_ptr_equal(fine, hPool);
    assert_result(umfPoolGetLastAllocationError(hPool), error);
}

/* umfPoolGetLastAllocationError(hPool): the error of the last failed allocation in this thread (malloc, calloc,
 * realloc, aligned_malloc), from thread-local storage; UMF_RESULT_ERROR_INVALID_ARGUMENT: hPool is NULL;
 * UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY, UMF_RESULT_ERROR_NOT_SUPPORTED. */
static void last_allocation_error(void **state)
{
    umf_memory_pool_handle_t hPool = NULL;

    (void)state;
    with_pools(false, failing);
    assert_result(umfPoolGetLastAllocationError(NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfPoolCreate(&own_ops, os, NULL, 0, &hPool));
    for (unsigned i = 0; i < 4; i++) {
        last_error = UMF_RESULT_SUCCESS;
        assert_null(i == 0   ? umfPoolMalloc(hPool, SIZE_MAX)
                    : i == 1 ? umfPoolCalloc(hPool, SIZE_MAX, SIZE_MAX)
                    : i == 2 ? umfPoolRealloc(hPool, NULL, SIZE_MAX)
                             : umfPoolAlignedMalloc(hPool, SIZE_MAX, 8));
        assert_result(umfPoolGetLastAllocationError(hPool), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    }
    umfPoolDestroy(hPool);
    hPool = proxy_of(os);
    assert_null(umfPoolCalloc(hPool, 1, 1));
    assert_result(umfPoolGetLastAllocationError(hPool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    umfPoolDestroy(hPool);
}

static pthread_barrier_t within, go_on;

static void block(void)
{
    pthread_barrier_wait(&within);
    pthread_barrier_wait(&go_on);
}

struct opening {
    umf_memory_pool_handle_t pool;
    umf_ipc_handle_t handle;
};

static void *open_blocked(void *argument)
{
    struct opening *opening = argument;
    void *ptr;

    if (umfOpenIPCHandle(opening->pool, opening->handle, &ptr) != UMF_RESULT_SUCCESS)
        return opening;
    return umfCloseIPCHandle(ptr) == UMF_RESULT_SUCCESS ? NULL : opening;
}

/* umfPoolGetLastAllocationError is lock-free: it answers while another thread is held up in the pool's provider;
 * also from simultaneous threads. */
static void last_error_lock_free(void **state)
{
    struct mock mock = {.on_open = block};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    struct opening opening = {.pool = proxy_of(provider)};
    void *ptr = umfPoolMalloc(opening.pool, 5000), *wrong;
    pthread_t thread;
    size_t size;

    (void)state;
    assert_success(umfGetIPCHandle(ptr, &opening.handle, &size));
    pthread_barrier_init(&within, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, open_blocked, &opening), 0);
    pthread_barrier_wait(&within);
    assert_null(umfPoolCalloc(opening.pool, 1, 1));
    assert_result(umfPoolGetLastAllocationError(opening.pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    pthread_barrier_wait(&go_on);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    pthread_barrier_destroy(&within);
    pthread_barrier_destroy(&go_on);
    assert_success(umfPutIPCHandle(opening.handle));
    assert_success(umfFree(ptr));
    umfPoolDestroy(opening.pool);
    umfMemoryProviderDestroy(provider);
}

/* ---- the pools that come with it ------------------------------------------------------------------------- */

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

/* umfDisjointPoolOps: user data is the provider's, metadata is not; umf_disjoint_pool_params_t, by
 * umfDisjointPoolParamsDefault: SlabMinSize, MaxPoolableSize, Capacity, MinBucketSize, which is
 * UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE, CurPoolSize, PoolTrace, SharedLimits, Name. */
static void disjoint(void **state)
{
    struct mock mock = {.calls = {0}};
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
    params.MinBucketSize = 3;
    assert_result(umfPoolCreate(umfDisjointPoolOps(), provider, &params, 0, &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create_and_destroy),
        TEST(flags),
        TEST(operations),
        TEST(get_memory_provider),
        TEST(malloc_and_free),
        TEST(calloc_zeroes),
        TEST(realloc_and_usable_size),
        TEST(free_and_by_ptr),
        TEST(last_allocation_error),
        TEST(last_error_lock_free),
        TEST(proxy),
        TEST(scalable),
        TEST(jemalloc),
        TEST(disjoint),
        TEST(shared_limits),
    };

    return test_run(tests, NULL, NULL);
}
