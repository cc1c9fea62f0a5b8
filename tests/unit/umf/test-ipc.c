/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of pools' memory, over a provider that counts: how often it is called, what damaged handles do, and how long
 * what is open where.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/unit/umf/mock.h"

#define SIZE ((size_t)8192)

static struct mock mock;
static umf_memory_provider_handle_t provider;
static umf_memory_pool_handle_t pool, other;

/* Two pools over one provider, whose counts are zero. */
static int setup(void **state)
{
    memset(&mock, 0, sizeof(mock));
    provider = mock_new(&mock);
    pool = proxy_of(provider);
    other = proxy_of(provider);
    return 0;
}

/* Every handle that was got was put, and all that was opened was closed. */
static int teardown(void **state)
{
    umfPoolDestroy(pool);
    umfPoolDestroy(other);
    umfMemoryProviderDestroy(provider);
    assert_int_equal(mock.calls[MOCK_IPC_GET], mock.calls[MOCK_IPC_PUT]);
    assert_int_equal(mock.calls[MOCK_IPC_OPEN], mock.calls[MOCK_IPC_CLOSE]);
    return 0;
}

/* Copies a handle's bytes, as another process gets them. */
static umf_ipc_handle_t handle_of(const void *ptr, size_t *size)
{
    umf_ipc_handle_t handle, copy;

    assert_success(umfGetIPCHandle(ptr, &handle, size));
    copy = malloc(*size);
    assert_non_null(copy);
    memcpy(copy, handle, *size);
    assert_success(umfPutIPCHandle(handle));
    return copy;
}

/* ---- making them ------------------------------------------------------------------------------------------------- */

/* umfPoolGetIPCHandleSize, hPool */
static void size_of_handles(void **state)
{
    umf_memory_provider_handle_t none = mock_of(MOCK_NULL);
    umf_memory_pool_handle_t cannot = proxy_of(none);
    size_t size = 0;

    assert_result(umfPoolGetIPCHandleSize(NULL, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolGetIPCHandleSize(pool, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolGetIPCHandleSize(cannot, &size), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_int_equal(size, 0);
    assert_success(umfPoolGetIPCHandleSize(pool, &size));
    assert_true(size > MOCK_HANDLE_SIZE);
    umfPoolDestroy(cannot);
    umfMemoryProviderDestroy(none);
}

static void get_checks_its_arguments(void **state)
{
    umf_memory_provider_handle_t malloced = mock_of(MOCK_MALLOC);
    umf_memory_pool_handle_t cannot = proxy_of(malloced), blind;
    char *ptr = umfPoolMalloc(pool, SIZE), *unshared = umfPoolMalloc(cannot, 10), here[8];
    umf_ipc_handle_t handle = NULL;
    size_t size = 0;

    assert_result(umfGetIPCHandle(NULL, &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(ptr, NULL, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(ptr, &handle, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(here, &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(ptr + SIZE, &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(unshared, &handle, &size), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_success(umfFree(unshared));
    umfPoolDestroy(cannot);
    umfMemoryProviderDestroy(malloced);
    assert_success(umfFree(ptr));

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_DISABLE_TRACKING, &blind));
    ptr = umfPoolMalloc(blind, SIZE);
    assert_result(umfGetIPCHandle(ptr, &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
    umfPoolDestroy(blind);
    assert_null(handle);
    assert_int_equal(size, 0);
    assert_int_equal(mock.calls[MOCK_IPC_GET], 0);
    assert_success(umfPutIPCHandle(NULL));
}

/* umfGetIPCHandle, ipcHandle; umfPutIPCHandle, ipcHandle: The provider is called once for the whole allocation,
 * whatever place in it is meant, and gets its handle back in the end. */
static void one_for_all_of_an_allocation(void **state)
{
    char *ptr = umfPoolMalloc(pool, SIZE);
    umf_ipc_handle_t first, second;
    size_t size, other_size, told;

    assert_success(umfGetIPCHandle(ptr + SIZE / 2, &first, &size));
    assert_ptr_equal(mock.ipc_ptr, ptr);
    assert_int_equal(mock.ipc_size, SIZE);
    assert_success(umfGetIPCHandle(ptr, &second, &other_size));
    assert_int_equal(size, other_size);
    assert_success(umfPoolGetIPCHandleSize(pool, &told));
    assert_int_equal(size, told);
    assert_int_equal(mock.calls[MOCK_IPC_GET], 1);
    assert_success(umfPutIPCHandle(first));
    assert_success(umfPutIPCHandle(second));
    assert_int_equal(mock.calls[MOCK_IPC_PUT], 0);
    assert_success(umfGetIPCHandle(ptr + 1, &first, &size));
    assert_int_equal(mock.calls[MOCK_IPC_GET], 1);
    assert_success(umfFree(ptr));
    assert_int_equal(mock.calls[MOCK_IPC_PUT], 1);
    /* its memory is freed, but the caller may still put it */
    assert_success(umfPutIPCHandle(first));
    assert_int_equal(mock.calls[MOCK_IPC_PUT], 1);
}

static void get_passes_failures_on(void **state)
{
    char *ptr = umfPoolMalloc(pool, SIZE);
    umf_ipc_handle_t handle = NULL;
    size_t size;

    mock.fails[MOCK_IPC_GET] = UMF_RESULT_ERROR_INVALID_ARGUMENT;
    assert_result(umfGetIPCHandle(ptr, &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    mock.fails[MOCK_IPC_SIZE] = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfGetIPCHandle(ptr, &handle, &size), UMF_RESULT_ERROR_UNKNOWN);
    assert_null(handle);
    assert_success(umfFree(ptr));
    mock.calls[MOCK_IPC_GET] = 0; /* it made no handle */
}

/* Destroying a pool gives back the handles of what it did not free. */
static void pool_ends_with_handles(void **state)
{
    umf_memory_pool_handle_t third = proxy_of(provider);
    char *ptr = umfPoolMalloc(third, SIZE);
    size_t size;

    free(handle_of(ptr, &size));
    umfPoolDestroy(third);
    assert_int_equal(mock.calls[MOCK_IPC_PUT], 1);
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
}

/* An address that is allocated again is another allocation. */
static void allocated_again(void **state)
{
    size_t size;
    char *ptr;

    for (unsigned i = 1; i <= 3; i++) {
        ptr = umfPoolMalloc(pool, SIZE);
        free(handle_of(ptr, &size));
        assert_int_equal(mock.calls[MOCK_IPC_GET], i);
        assert_success(umfFree(ptr));
        assert_int_equal(mock.calls[MOCK_IPC_PUT], i);
    }
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* umfPutIPCHandle; umfOpenIPCHandle, hPool, ipcHandle */
static void opens_where_it_was_made(void **state)
{
    char *ptr = umfPoolMalloc(pool, SIZE), *opened = NULL;
    umf_ipc_handle_t handle;
    size_t size;

    memcpy(ptr + 100, "in the middle", sizeof("in the middle"));
    handle = handle_of(ptr + 100, &size);
    assert_success(umfOpenIPCHandle(other, handle, (void **)&opened));
    assert_string_equal(opened, "in the middle");
    /* all of it belongs to the pool that opened it, and umfFree() ignores it */
    assert_ptr_equal(umfPoolByPtr(opened), other);
    assert_ptr_equal(umfPoolByPtr(opened - 100), other);
    assert_ptr_equal(umfPoolByPtr(opened - 100 + SIZE - 1), other);
    assert_ptr_not_equal(umfPoolByPtr(opened - 101), other);
    assert_ptr_not_equal(umfPoolByPtr(opened - 100 + SIZE), other);
    assert_success(umfFree(opened));
    assert_string_equal(opened, "in the middle");
    /* any address in it can be closed */
    assert_success(umfCloseIPCHandle(opened - 100 + SIZE - 1));
    assert_null(umfPoolByPtr(opened));
    assert_result(umfCloseIPCHandle(opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfCloseIPCHandle(NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfCloseIPCHandle(ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mock.calls[MOCK_IPC_CLOSE], 1);
    free(handle);
    assert_success(umfFree(ptr));
}

/* What is open is counted, and only the first opening and the last closing call the provider. */
static void counts(void **state)
{
    char *ptr = umfPoolMalloc(pool, SIZE), *opened[10];
    umf_ipc_handle_t handles[2];
    size_t size;

    handles[0] = handle_of(ptr, &size);
    handles[1] = handle_of(ptr + 50, &size);
    for (unsigned i = 0; i < 10; i++)
        assert_success(umfOpenIPCHandle(other, handles[i % 2], (void **)&opened[i]));
    for (unsigned i = 1; i < 10; i++)
        assert_ptr_equal(opened[i], opened[0] + (i % 2) * 50);
    assert_int_equal(mock.calls[MOCK_IPC_OPEN], 1);
    for (unsigned i = 0; i < 9; i++)
        assert_success(umfCloseIPCHandle(opened[i]));
    assert_int_equal(mock.calls[MOCK_IPC_CLOSE], 0);
    assert_ptr_equal(umfPoolByPtr(opened[0]), other);
    assert_success(umfCloseIPCHandle(opened[9]));
    assert_int_equal(mock.calls[MOCK_IPC_CLOSE], 1);
    assert_result(umfCloseIPCHandle(opened[0]), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < 2; i++)
        free(handles[i]);
    assert_success(umfFree(ptr));
}

static void open_checks_its_arguments(void **state)
{
    umf_memory_provider_handle_t none = mock_of(MOCK_MALLOC);
    umf_memory_pool_handle_t cannot = proxy_of(none);
    void *ptr = umfPoolMalloc(pool, SIZE), *opened = NULL;
    umf_ipc_handle_t handle;
    size_t size;

    handle = handle_of(ptr, &size);
    assert_result(umfOpenIPCHandle(NULL, handle, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfOpenIPCHandle(pool, NULL, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfOpenIPCHandle(pool, handle, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfOpenIPCHandle(cannot, handle, &opened), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_int_equal(mock.calls[MOCK_IPC_OPEN], 0);
    mock.fails[MOCK_IPC_OPEN] = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    assert_result(umfOpenIPCHandle(other, handle, &opened), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    mock.fails[MOCK_IPC_OPEN] = UMF_RESULT_SUCCESS;
    assert_null(opened);
    /* a failure leaves nothing behind */
    assert_success(umfOpenIPCHandle(other, handle, &opened));
    assert_success(umfCloseIPCHandle(opened));
    mock.calls[MOCK_IPC_OPEN]--;
    free(handle);
    assert_success(umfFree(ptr));
    umfPoolDestroy(cannot);
    umfMemoryProviderDestroy(none);
}

/* Every single bit is damaged, and every length is cut off. */
static void damaged_bytes(void **state)
{
    void *ptr = umfPoolMalloc(pool, SIZE), *opened = NULL;
    umf_ipc_handle_t handle;
    size_t size;
    char *bytes;

    handle = handle_of((char *)ptr + 4, &size);
    bytes = (char *)handle;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        assert_result(umfOpenIPCHandle(other, handle, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t length = 0; length < size; length++) {
        char *cut = calloc(1, size);

        memcpy(cut, handle, length);
        if (memcmp(cut, handle, size))
            assert_result(umfOpenIPCHandle(other, (umf_ipc_handle_t)cut, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        free(cut);
    }
    assert_null(opened);
    /* the provider was not called */
    assert_int_equal(mock.calls[MOCK_IPC_OPEN], 0);
    assert_success(umfOpenIPCHandle(other, handle, &opened));
    assert_success(umfCloseIPCHandle(opened));
    free(handle);
    assert_success(umfFree(ptr));
}

static umf_result_t large_size(void *unused, size_t *size)
{
    (void)unused;
    *size = MOCK_HANDLE_SIZE + 8;
    return UMF_RESULT_SUCCESS;
}

/* A pool whose provider makes handles of another size. */
static void wrong_pool(void **state)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];
    umf_memory_provider_handle_t stranger;
    umf_memory_pool_handle_t wrong;
    void *ptr = umfPoolMalloc(pool, SIZE), *opened;
    umf_ipc_handle_t handle;
    size_t size;

    ops.ipc.get_ipc_handle_size = large_size;
    assert_success(umfMemoryProviderCreate(&ops, &mock, &stranger));
    wrong = proxy_of(stranger);
    handle = handle_of(ptr, &size);
    assert_result(umfOpenIPCHandle(wrong, handle, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mock.calls[MOCK_IPC_OPEN], 0);
    free(handle);
    assert_success(umfFree(ptr));
    umfPoolDestroy(wrong);
    umfMemoryProviderDestroy(stranger);
}

static umf_result_t get_and_free(void *provider_data, const void *ptr, size_t size, void *data)
{
    umf_result_t result = mock_ops[MOCK_PAGES].ipc.get_ipc_handle(provider_data, ptr, size, data);

    assert_success(umfFree((void *)(uintptr_t)ptr));
    return result;
}

/* A handle that the provider has got back is not returned. */
static void freed_while_the_handle_is_made(void **state)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_PAGES];
    umf_memory_provider_handle_t own;
    umf_memory_pool_handle_t over;
    umf_ipc_handle_t handle;
    size_t size;

    ops.ipc.get_ipc_handle = get_and_free;
    assert_success(umfMemoryProviderCreate(&ops, &mock, &own));
    over = proxy_of(own);
    assert_result(umfGetIPCHandle(umfPoolMalloc(over, SIZE), &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mock.calls[MOCK_IPC_PUT], 1);
    umfPoolDestroy(over);
    umfMemoryProviderDestroy(own);
}

/* Destroying a pool closes what is open in it. */
static void pool_ends_with_open_handles(void **state)
{
    umf_memory_pool_handle_t third = proxy_of(provider);
    void *pieces[3], *opened[3];
    umf_ipc_handle_t handles[3];
    size_t size;

    for (unsigned i = 0; i < 3; i++) {
        pieces[i] = umfPoolMalloc(pool, SIZE);
        handles[i] = handle_of(pieces[i], &size);
        assert_success(umfOpenIPCHandle(third, handles[i], &opened[i]));
        assert_success(umfOpenIPCHandle(third, handles[i], &opened[i]));
    }
    umfPoolDestroy(third);
    assert_int_equal(mock.calls[MOCK_IPC_CLOSE], 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_null(umfPoolByPtr(opened[i]));
        assert_result(umfCloseIPCHandle(opened[i]), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        free(handles[i]);
        assert_success(umfFree(pieces[i]));
    }
}

/* A failing close is reported, and nothing is open afterwards. */
static void close_fails(void **state)
{
    void *ptr = umfPoolMalloc(pool, SIZE), *opened;
    umf_ipc_handle_t handle;
    size_t size;

    handle = handle_of(ptr, &size);
    assert_success(umfOpenIPCHandle(other, handle, &opened));
    mock.fails[MOCK_IPC_CLOSE] = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfCloseIPCHandle(opened), UMF_RESULT_ERROR_UNKNOWN);
    assert_result(umfCloseIPCHandle(opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    mock.fails[MOCK_IPC_CLOSE] = UMF_RESULT_SUCCESS;
    assert_success(umfMemoryProviderFree(provider, opened, SIZE));
    free(handle);
    assert_success(umfFree(ptr));
}

/* A pool that is not tracked can open and close. Only its addresses do not lead to it. */
static void opens_untracked(void **state)
{
    void *ptr = umfPoolMalloc(pool, SIZE), *opened;
    umf_memory_pool_handle_t blind;
    umf_ipc_handle_t handle;
    size_t size;

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_DISABLE_TRACKING, &blind));
    handle = handle_of(ptr, &size);
    assert_success(umfOpenIPCHandle(blind, handle, &opened));
    assert_null(umfPoolByPtr(opened));
    assert_success(umfCloseIPCHandle(opened));
    umfPoolDestroy(blind);
    free(handle);
    assert_success(umfFree(ptr));
}

/* ---- two pools, one address -------------------------------------------------------------------------------------- */

/* Two pools have the same range open. Whichever closes first, or is destroyed first, it stays open for the other. */
static void opens_the_same_range_twice(void **state)
{
    umf_memory_pool_handle_t pools[2];
    void *ptr = umfPoolMalloc(pool, SIZE), *opened[2];
    umf_ipc_handle_t handle;
    size_t size;

    mock.opens_in_place = true;
    handle = handle_of(ptr, &size);
    for (unsigned leaver = 0; leaver < 2; leaver++) {
        unsigned closed = mock.calls[MOCK_IPC_CLOSE];

        for (unsigned i = 0; i < 2; i++) {
            pools[i] = proxy_of(provider);
            assert_success(umfOpenIPCHandle(pools[i], handle, &opened[i]));
            assert_ptr_equal(opened[i], ptr);
        }
        /* one has closed, and is destroyed */
        assert_success(umfCloseIPCHandle(opened[leaver]));
        umfPoolDestroy(pools[leaver]);
        assert_int_equal(mock.calls[MOCK_IPC_CLOSE], closed + 1);
        /* it is still open in the other */
        assert_success(umfCloseIPCHandle(opened[!leaver]));
        assert_int_equal(mock.calls[MOCK_IPC_CLOSE], closed + 2);
        assert_result(umfCloseIPCHandle(opened[!leaver]), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        umfPoolDestroy(pools[!leaver]);
    }
    /* both close, and then both are destroyed */
    for (unsigned i = 0; i < 2; i++) {
        pools[i] = proxy_of(provider);
        assert_success(umfOpenIPCHandle(pools[i], handle, &opened[i]));
    }
    for (unsigned i = 0; i < 2; i++)
        assert_success(umfCloseIPCHandle(opened[i]));
    assert_result(umfCloseIPCHandle(ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < 2; i++)
        umfPoolDestroy(pools[i]);
    assert_int_equal(mock.calls[MOCK_IPC_CLOSE], 6);
    free(handle);
    assert_success(umfFree(ptr));
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#define THREADS 10
#define ROUNDS  100

struct work {
    char *ptr;
    umf_ipc_handle_t handle;
    pthread_barrier_t *barrier;
};

static void *get_and_put(void *argument)
{
    struct work *work = argument;
    umf_ipc_handle_t handle;
    size_t size, wrong = 0;

    pthread_barrier_wait(work->barrier);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (umfGetIPCHandle(work->ptr + i, &handle, &size) == UMF_RESULT_SUCCESS)
            wrong += umfPutIPCHandle(handle) != UMF_RESULT_SUCCESS;
        else
            wrong++;
    }
    return (void *)wrong;
}

static void *open_and_close(void *argument)
{
    struct work *work = argument;
    size_t wrong = 0;
    char *opened;

    pthread_barrier_wait(work->barrier);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (umfOpenIPCHandle(other, work->handle, (void **)&opened) == UMF_RESULT_SUCCESS) {
            wrong += strcmp(opened, "all see it") != 0;
            wrong += umfPoolByPtr(opened) != other;
            wrong += umfCloseIPCHandle(opened) != UMF_RESULT_SUCCESS;
        } else {
            wrong++;
        }
    }
    return (void *)wrong;
}

static void run(void *(*body)(void *), struct work *work)
{
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    void *wrong;

    pthread_barrier_init(&barrier, NULL, THREADS);
    work->barrier = &barrier;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, work), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    pthread_barrier_destroy(&barrier);
}

static void threads_get_and_put(void **state)
{
    struct work work = {.ptr = umfPoolMalloc(pool, SIZE)};

    run(get_and_put, &work);
    assert_in_range(mock.calls[MOCK_IPC_GET], 1, THREADS);
    assert_success(umfFree(work.ptr));
    assert_int_equal(mock.calls[MOCK_IPC_GET], mock.calls[MOCK_IPC_PUT]);
}

static void threads_open_and_close(void **state)
{
    struct work work = {.ptr = umfPoolMalloc(pool, SIZE)};
    size_t size;

    memcpy(work.ptr, "all see it", sizeof("all see it"));
    work.handle = handle_of(work.ptr, &size);
    run(open_and_close, &work);
    assert_in_range(mock.calls[MOCK_IPC_OPEN], 1, THREADS * ROUNDS);
    assert_int_equal(mock.calls[MOCK_IPC_OPEN], mock.calls[MOCK_IPC_CLOSE]);
    free(work.handle);
    assert_success(umfFree(work.ptr));
}

/* A thread that comes while another is in the provider waits for it, and opens nothing itself. */
static pthread_barrier_t at_provider, go_on;

static void block(void)
{
    pthread_barrier_wait(&at_provider);
    pthread_barrier_wait(&go_on);
}

static void *open_one(void *argument)
{
    void *opened = NULL;

    return umfOpenIPCHandle(other, argument, &opened) == UMF_RESULT_SUCCESS ? opened : NULL;
}

static void waits_for_the_first(void **state)
{
    void *ptr = umfPoolMalloc(pool, SIZE), *first, *second;
    pthread_t threads[2];
    umf_ipc_handle_t handle;
    size_t size;

    handle = handle_of(ptr, &size);
    pthread_barrier_init(&at_provider, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    mock.on_open = block;
    assert_int_equal(pthread_create(&threads[0], NULL, open_one, handle), 0);
    pthread_barrier_wait(&at_provider);
    assert_int_equal(pthread_create(&threads[1], NULL, open_one, handle), 0);
    pthread_barrier_wait(&go_on);
    assert_int_equal(pthread_join(threads[0], &first), 0);
    assert_int_equal(pthread_join(threads[1], &second), 0);
    assert_non_null(first);
    assert_ptr_equal(first, second);
    assert_int_equal(mock.calls[MOCK_IPC_OPEN], 1);
    assert_success(umfCloseIPCHandle(first));
    assert_success(umfCloseIPCHandle(second));
    pthread_barrier_destroy(&at_provider);
    pthread_barrier_destroy(&go_on);
    free(handle);
    assert_success(umfFree(ptr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(size_of_handles, setup, teardown),
        cmocka_unit_test_setup_teardown(get_checks_its_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(one_for_all_of_an_allocation, setup, teardown),
        cmocka_unit_test_setup_teardown(get_passes_failures_on, setup, teardown),
        cmocka_unit_test_setup_teardown(pool_ends_with_handles, setup, teardown),
        cmocka_unit_test_setup_teardown(allocated_again, setup, teardown),
        cmocka_unit_test_setup_teardown(opens_where_it_was_made, setup, teardown),
        cmocka_unit_test_setup_teardown(counts, setup, teardown),
        cmocka_unit_test_setup_teardown(open_checks_its_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(freed_while_the_handle_is_made, setup, teardown),
        cmocka_unit_test_setup_teardown(pool_ends_with_open_handles, setup, teardown),
        cmocka_unit_test_setup_teardown(close_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(opens_untracked, setup, teardown),
        cmocka_unit_test_setup_teardown(opens_the_same_range_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_get_and_put, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_open_and_close, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_for_the_first, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
