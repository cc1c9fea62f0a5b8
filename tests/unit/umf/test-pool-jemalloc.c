/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the jemalloc pool has; test-pools-common has the rest. In particular, it is not the process's malloc, and
 * has no records in the provider's memory.
 */
#include "tests/unit/umf/mock.h"

#include <dlfcn.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void end(umf_memory_pool_handle_t pool, struct mock *mock)
{
    umfPoolDestroy(pool);
    assert_int_equal(mock->bytes, 0);
    assert_int_equal(mock->wrong, 0);
}

/* umfPoolMalloc, umfPoolFree do not touch the provider's memory. */
static void test_untouched(void **state)
{
    struct mock mock = {.kind = MOCK_PAGES, .is_guarded = true};
    umf_memory_pool_handle_t pool = mock_pool(umfJemallocPoolOps(), NULL, &mock);
    void *ptrs[1024];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1024; i++) {
            ptrs[i] = umfPoolMalloc(pool, 1024);
            assert_non_null(ptrs[i]);
        }
        for (int i = 0; i < 1024; i++)
            assert_success(umfPoolFree(pool, ptrs[i]));
    }
    end(pool, &mock);
}

static int compare(const void *a, const void *b)
{
    const char *const *first = a, *const *second = b;

    return (*first > *second) - (*first < *second);
}

/* Many sizes, freed in another order: the provider splits and merges, and gets everything back in the end. */
static void test_parts(void **state)
{
    struct mock mock = {.kind = MOCK_PAGES};
    umf_memory_pool_handle_t pool = mock_pool(umfJemallocPoolOps(), NULL, &mock);
    char *ptrs[400];
    unsigned x = 1;

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 400; i++) {
            size_t size = 1 + (x = x * 1664525 + 1013904223) % 200000;

            ptrs[i] = umfPoolMalloc(pool, size);
            assert_non_null(ptrs[i]);
            memset(ptrs[i], 1, size);
        }
        qsort(ptrs, 400, sizeof(ptrs[0]), compare);
        for (int i = 0; i < 400; i++)
            assert_success(umfPoolFree(pool, ptrs[i * 7 % 400]));
    }
    assert_true(mock.calls[MOCK_SPLIT] > 0);
    end(pool, &mock);
}

/* umf_jemalloc_pool_params_t disable_provider_free: nothing goes back before the end. */
static void test_disable_provider_free(void **state)
{
    umf_jemalloc_pool_params_t params = umfJemallocPoolParamsDefault();
    struct mock mock = {.kind = MOCK_PAGES};
    umf_memory_pool_handle_t pool;

    assert_false(params.disable_provider_free);
    params.disable_provider_free = true;
    pool = mock_pool(umfJemallocPoolOps(), &params, &mock);
    for (int i = 0; i < 100; i++)
        assert_success(umfPoolFree(pool, umfPoolMalloc(pool, (size_t)i << 17)));
    assert_int_equal(mock.calls[MOCK_FREE], 0);
    end(pool, &mock);
}

/* umfPoolDestroy with allocations, by this thread and others. */
static umf_memory_pool_handle_t shared_pool;

static void *leave_some(void *arg)
{
    for (size_t size = 8; size < 1 << 20; size *= 2) {
        (void)umfPoolMalloc(shared_pool, size);
        (void)umfPoolFree(shared_pool, umfPoolMalloc(shared_pool, size));
    }
    return arg;
}

static void test_leak(void **state)
{
    for (enum mock_kind kind = MOCK_PAGES; kind <= MOCK_MALLOC; kind++) {
        struct mock mock = {.kind = kind};
        pthread_t thread;

        shared_pool = mock_pool(umfJemallocPoolOps(), NULL, &mock);
        (void)leave_some(NULL);
        assert_int_equal(pthread_create(&thread, NULL, leave_some, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        end(shared_pool, &mock);
    }
}

/* umfPoolRealloc to 0 frees, without an error. */
static void test_realloc_to_nothing(void **state)
{
    struct mock mock = {.kind = MOCK_PAGES};
    umf_memory_pool_handle_t pool = mock_pool(umfJemallocPoolOps(), NULL, &mock);

    assert_null(umfPoolRealloc(pool, umfPoolMalloc(pool, 100), 0));
    assert_success(umfPoolGetLastAllocationError(pool));
    end(pool, &mock);
}

/* Several pools at once are independent. */
static void test_several(void **state)
{
    struct mock mocks[20] = {{.kind = MOCK_PAGES}};
    umf_memory_pool_handle_t pools[20];
    void *ptrs[20];

    for (int i = 0; i < 20; i++) {
        mocks[i].kind = MOCK_PAGES;
        pools[i] = mock_pool(umfJemallocPoolOps(), NULL, &mocks[i]);
    }
    for (int i = 0; i < 20; i++) {
        ptrs[i] = umfPoolMalloc(pools[i], 100);
        assert_ptr_equal(umfPoolByPtr(ptrs[i]), pools[i]);
    }
    for (int i = 0; i < 20; i++) {
        assert_success(umfFree(ptrs[i]));
        end(pools[i], &mocks[i]);
    }
}

/* The process's malloc is unchanged, and no function of jemalloc can be found. */
static void test_process(void **state)
{
    Dl_info info;

    assert_null(dlsym(RTLD_DEFAULT, "mallocx"));
    assert_null(dlsym(RTLD_DEFAULT, "mallctl"));
    assert_null(dlsym(RTLD_DEFAULT, "umf_je_mallocx"));
    assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info), 0);
    assert_null(strstr(info.dli_fname, "memclient"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_disable_provider_free),
        cmocka_unit_test(test_leak),
        cmocka_unit_test(test_realloc_to_nothing),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_process),
    };

    return test_run(tests, NULL, NULL);
}
