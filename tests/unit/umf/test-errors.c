/* SPDX-License-Identifier: Apache-2.0 */
/* Failures are reported to the thread that had them, and name the provider that the program knows. */
#include <pthread.h>

#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/unit/umf/mock.h"

#define P ((void *)0x10000)

static struct mock mock;
static umf_memory_provider_handle_t provider;

static int setup(void **state)
{
    for (unsigned op = 0; op < MOCK_OPS; op++)
        mock.fails[op] = UMF_RESULT_ERROR_UNKNOWN;
    provider = mock_new(&mock);
    return 0;
}

static int teardown(void **state)
{
    umfMemoryProviderDestroy(provider);
    return 0;
}

/* In a new thread nothing has failed. */
static void *ask(void *argument)
{
    (void)argument;
    return umfGetLastFailedMemoryProvider();
}

static void of_a_thread(void **state)
{
    umf_memory_provider_handle_t fine = mock_of(MOCK_NULL);
    pthread_t thread;
    void *other, *ptr;

    assert_null(umfGetLastFailedMemoryProvider());
    assert_result(umfMemoryProviderAlloc(provider, 1, 0, &ptr), UMF_RESULT_ERROR_UNKNOWN);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);
    assert_int_equal(pthread_create(&thread, NULL, ask, NULL), 0);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_null(other);
    /* successes do not count, nor does a NULL provider */
    assert_success(umfMemoryProviderAlloc(fine, 1, 0, &ptr));
    assert_result(umfMemoryProviderAlloc(NULL, 1, 0, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);
    umfMemoryProviderDestroy(fine);
}

/* Runs a call that must fail, and checks whose failure it is. */
#define fails(call, wanted)                                                                     \
    do {                                                                                        \
        assert_result(umfMemoryProviderPurgeLazy(other, P, 1), UMF_RESULT_ERROR_NOT_SUPPORTED); \
        assert_ptr_equal(umfGetLastFailedMemoryProvider(), other);                              \
        assert_result(call, wanted);                                                            \
        assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);                           \
    } while (0)

static void of_every_operation(void **state)
{
    umf_memory_provider_handle_t other = mock_of(MOCK_NULL);
    char data[MOCK_HANDLE_SIZE];
    size_t size;
    void *ptr;

    fails(umfMemoryProviderAlloc(provider, 1, 0, &ptr), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderFree(provider, P, 1), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderGetRecommendedPageSize(provider, 1, &size), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderGetMinPageSize(provider, P, &size), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderPurgeLazy(provider, P, 1), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderPurgeForce(provider, P, 1), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderAllocationSplit(provider, P, 2, 1), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderAllocationMerge(provider, P, (char *)P + 1, 2), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderAllocationSplit(provider, P, 2, 2), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    fails(umfMemoryProviderGetIPCHandleSize(provider, &size), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderGetIPCHandle(provider, P, 1, data), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderPutIPCHandle(provider, data), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderOpenIPCHandle(provider, data, &ptr), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderCloseIPCHandle(provider, P, 1), UMF_RESULT_ERROR_UNKNOWN);
    umfMemoryProviderDestroy(other);
}

static umf_memory_provider_handle_t given;

static umf_result_t initialize(umf_memory_provider_handle_t inner, void *params, void **pool)
{
    given = inner;
    return umfProxyPoolOps()->initialize(inner, params, pool);
}

/* Below a pool it is the program's own provider, and not the tracking before it, even if that refuses itself. */
static void of_a_pool(void **state)
{
    umf_memory_provider_handle_t other = mock_of(MOCK_NULL);
    umf_memory_pool_ops_t ops = *umfProxyPoolOps();
    umf_memory_pool_handle_t pool;

    ops.initialize = initialize;
    assert_success(umfPoolCreate(&ops, provider, NULL, 0, &pool));
    assert_ptr_not_equal(given, provider);
    assert_result(umfMemoryProviderPurgeLazy(other, P, 1), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_null(umfPoolMalloc(pool, 1));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_UNKNOWN);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);
    fails(umfPoolFree(pool, P), UMF_RESULT_ERROR_UNKNOWN);
    fails(umfMemoryProviderAllocationSplit(given, P, 2, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(other);
}

/* A pool's last error is the thread's own as well. */
static void *error_of_thread(void *argument)
{
    umf_memory_pool_handle_t pool = argument;
    void *ptr = umfPoolMalloc(pool, 16);
    uintptr_t error = umfPoolGetLastAllocationError(pool);

    (void)umfFree(ptr);
    return (void *)error;
}

static void of_allocations(void **state)
{
    umf_memory_provider_handle_t fine = mock_of(MOCK_MALLOC);
    umf_memory_pool_handle_t pool = proxy_of(fine), failing = proxy_of(provider);
    pthread_t thread;
    void *error;

    assert_null(umfPoolMalloc(failing, 1));
    assert_int_equal(pthread_create(&thread, NULL, error_of_thread, pool), 0);
    assert_int_equal(pthread_join(thread, &error), 0);
    assert_int_equal((uintptr_t)error, UMF_RESULT_SUCCESS);
    assert_result(umfPoolGetLastAllocationError(failing), UMF_RESULT_ERROR_UNKNOWN);
    umfPoolDestroy(pool);
    umfPoolDestroy(failing);
    umfMemoryProviderDestroy(fine);
}

static pthread_barrier_t within, go_on;

static void block(void)
{
    pthread_barrier_wait(&within);
    pthread_barrier_wait(&go_on);
}

static void *open_blocked(void *argument)
{
    umf_memory_provider_handle_t blocked = argument;
    char handle[MOCK_HANDLE_SIZE] = {0};
    void *ptr;

    return umfMemoryProviderOpenIPCHandle(blocked, handle, &ptr) == UMF_RESULT_SUCCESS ? blocked : NULL;
}

/* umfMemoryProviderGetLastNativeError and umfGetLastFailedMemoryProvider are lock-free: they return while another
 * thread is blocked in the provider. */
static void lock_free(void **state)
{
    struct mock blocking = {.on_open = block};
    umf_memory_provider_handle_t blocked = mock_new(&blocking);
    pthread_t thread;
    int32_t error = 0;
    void *opened;

    pthread_barrier_init(&within, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, open_blocked, blocked), 0);
    pthread_barrier_wait(&within);
    umfMemoryProviderGetLastNativeError(blocked, NULL, &error);
    assert_int_equal(error, MOCK_NATIVE_ERROR);
    assert_result(umfMemoryProviderPurgeLazy(provider, P, 1), UMF_RESULT_ERROR_UNKNOWN);
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);
    pthread_barrier_wait(&go_on);
    assert_int_equal(pthread_join(thread, &opened), 0);
    assert_null(opened); /* its bytes were no handle */
    pthread_barrier_destroy(&within);
    pthread_barrier_destroy(&go_on);
    umfMemoryProviderDestroy(blocked);
}

struct opening {
    umf_memory_pool_handle_t pool;
    umf_ipc_handle_t handle;
};

static void *open_in_pool_blocked(void *argument)
{
    struct opening *opening = argument;
    void *ptr;

    if (umfOpenIPCHandle(opening->pool, opening->handle, &ptr) != UMF_RESULT_SUCCESS)
        return opening;
    return umfCloseIPCHandle(ptr) == UMF_RESULT_SUCCESS ? NULL : opening;
}

/* umfPoolGetLastAllocationError is lock-free: it returns while another thread is blocked in the pool's provider, and in
 * simultaneous threads. */
static void last_error_is_lock_free(void **state)
{
    struct mock blocking = {.on_open = block};
    umf_memory_provider_handle_t blocked = mock_new(&blocking);
    struct opening opening = {.pool = proxy_of(blocked)};
    void *ptr = umfPoolMalloc(opening.pool, 5000), *wrong;
    pthread_t thread;
    size_t size;

    assert_success(umfGetIPCHandle(ptr, &opening.handle, &size));
    pthread_barrier_init(&within, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, open_in_pool_blocked, &opening), 0);
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
    umfMemoryProviderDestroy(blocked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_a_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(of_every_operation, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(of_allocations, setup, teardown),
        cmocka_unit_test_setup_teardown(lock_free, setup, teardown),
        cmocka_unit_test_setup_teardown(last_error_is_lock_free, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
