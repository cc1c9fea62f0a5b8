/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process forks while its threads are in pools. The child goes on with what its thread had, frees what others had,
 * starts threads of its own, and destroys the pool.
 */
#include "tests/support/child.h"
#include "tests/unit/umf/mock.h"
#include "tests/unit/umf/umf.h"

#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define FORKS   40
#define SLOTS   64
#define MINUTE  60

static umf_memory_pool_handle_t pool;
static void *_Atomic slots[SLOTS]; /* allocations that go from thread to thread */
static atomic_bool stop;
static atomic_uint wrong;

/* Chunks, slabs, and sizes that are passed on to the provider. */
static size_t size_by(unsigned x)
{
    return x % 50 ? 1 + x % 3000 : 1 + x % 50000;
}

static void exchange(unsigned slot, size_t size)
{
    char *ptr = umfPoolMalloc(pool, size), *other;

    if (ptr)
        *ptr = 1;
    else
        wrong++;
    other = atomic_exchange(&slots[slot], ptr);
    if (other)
        wrong += umfPoolFree(pool, other) != UMF_RESULT_SUCCESS;
}

static void *use(void *arg)
{
    unsigned x = 1 + (unsigned)(uintptr_t)arg;

    while (!stop) {
        x = x * 1664525 + 1013904223;
        exchange(x >> 26, size_by(x >> 8));
    }
    return NULL;
}

/* A thread that comes and goes. */
static void *use_a_little(void *arg)
{
    for (unsigned i = 0; i < SLOTS; i++)
        exchange(i, size_by((unsigned)(uintptr_t)arg + i * 17));
    return NULL;
}

static void free_all(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        void *ptr = atomic_exchange(&slots[i], NULL);

        if (ptr)
            wrong += umfPoolFree(pool, ptr) != UMF_RESULT_SUCCESS;
    }
}

/* If it waits forever, it is killed. */
static void be_child(void *mine)
{
    pthread_t thread;

    (void)alarm(MINUTE);
    wrong = 0;
    wrong += umfPoolFree(pool, mine) != UMF_RESULT_SUCCESS;
    for (unsigned i = 0; i < 10 * SLOTS; i++)
        exchange(i % SLOTS, size_by(i * 31));
    if (!pthread_create(&thread, NULL, use_a_little, NULL))
        (void)pthread_join(thread, NULL);
    free_all();
    umfPoolDestroy(pool);
    _exit(wrong != 0);
}

static void fork_once(unsigned i)
{
    void *mine = umfPoolMalloc(pool, 100);
    int status;
    pid_t pid;

    assert_non_null(mine);
    pid = fork();
    assert_ok(pid);
    if (!pid)
        be_child(mine);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_success(umfPoolFree(pool, mine));
    (void)use_a_little((void *)(uintptr_t)i);
}

static void check_pool(void)
{
    pthread_t threads[THREADS], thread;

    stop = false;
    wrong = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)i), 0);
    for (unsigned i = 0; i < FORKS; i++) {
        assert_int_equal(pthread_create(&thread, NULL, use_a_little, (void *)(uintptr_t)i), 0);
        fork_once(i);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    free_all();
    umfPoolDestroy(pool);
    assert_int_equal(wrong, 0);
}

static void check(const umf_memory_pool_ops_t *ops, void *params)
{
    struct mock mock = {.kind = MOCK_PAGES};

    child_need_malloc();
    pool = mock_pool(ops, params, &mock);
    check_pool();
    assert_int_equal(mock.bytes, 0);
    assert_int_equal(mock.wrong, 0);
}

/* Over the broker's memory. */
static void check_shared(const umf_memory_pool_ops_t *ops, void *params)
{
    umf_memory_provider_handle_t provider;
    umf_result_t result;

    child_need_malloc();
    assert_result(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider), UMF_RESULT_SUCCESS);
    result = umfPoolCreate(ops, provider, params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool);
    if (result == UMF_RESULT_ERROR_NOT_SUPPORTED) {
        umfMemoryProviderDestroy(provider);
        test_skip("this pool is not in this build");
    }
    assert_result(result, UMF_RESULT_SUCCESS);
    check_pool();
}

static umf_disjoint_pool_params_t slabs_of(size_t size)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();

    params.SlabMinSize = size;
    params.MaxPoolableSize = 4 * size;
    params.Capacity = 2;
    params.MinBucketSize = 8;
    return params;
}

static void test_disjoint(void **state)
{
    umf_disjoint_pool_params_t params = slabs_of(4096);

    check(umfDisjointPoolOps(), &params);
}

static void test_disjoint_shared(void **state)
{
    umf_disjoint_pool_params_t params = slabs_of(65536);

    check_shared(umfDisjointPoolOps(), &params);
}

static void test_jemalloc(void **state)
{
    check(umfJemallocPoolOps(), NULL);
}

static void test_jemalloc_shared(void **state)
{
    check_shared(umfJemallocPoolOps(), NULL);
}

static void test_proxy(void **state)
{
    check(umfProxyPoolOps(), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disjoint),        cmocka_unit_test(test_disjoint_shared), cmocka_unit_test(test_jemalloc),
        cmocka_unit_test(test_jemalloc_shared), cmocka_unit_test(test_proxy),
    };

    return test_run(tests, umf_group_setup, umf_group_teardown);
}
