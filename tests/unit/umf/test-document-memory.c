/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document on memory of pools, sentence by sentence: with every allocator that this build and machine have, and one
 * of our own. Each test quotes the function and what of it is checked.
 */
#include <pthread.h>
#include <string.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/pools/pool_scalable.h>

#include "tests/unit/umf/document.h"

#pragma weak umfJemallocPoolOps /* not every build has it */

/* Calls a function with each allocator, over memory of the operating system; "whole" ones have every operation. */
static void with_pools(bool whole, void (*function)(umf_memory_pool_handle_t))
{
    umf_disjoint_pool_params_t slabs = umfDisjointPoolParamsDefault();
    const struct {
        const umf_memory_pool_ops_t *ops;
        void *params;
        bool whole;
    } all[] = {
        {&heap_ops, NULL, true},
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
 * umfPoolFree(hPool, ptr): UMF_RESULT_SUCCESS; without a pool NULL and UMF_RESULT_ERROR_INVALID_ARGUMENT. The
 * allocators are those of umfPoolCreate. */
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

/* umfPoolCalloc(hPool, num, size): an array of num elements of size bytes each, all initialized to zero.
 * UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY: a product that overflows. */
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
    umf_memory_pool_handle_t pool = proxy_of(provider), elsewhere = NULL;
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

    assert_success(umfPoolCreate(&heap_ops, os, NULL, 0, &elsewhere)); /* which has its memory from elsewhere */
    ptr = umfPoolMalloc(elsewhere, 100);
    assert_null(umfPoolByPtr(ptr));
    assert_success(umfPoolFree(elsewhere, ptr));
    umfPoolDestroy(elsewhere);
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
    assert_success(umfPoolCreate(&heap_ops, os, NULL, 0, &hPool));
    for (unsigned i = 0; i < 4; i++) {
        heap_error = UMF_RESULT_SUCCESS;
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, os_setup, os_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(malloc_and_free),
        TEST(calloc_zeroes),
        TEST(realloc_and_usable_size),
        TEST(free_and_by_ptr),
        TEST(last_allocation_error),
        TEST(last_error_lock_free),
    };

    return test_run(tests, NULL, NULL);
}
