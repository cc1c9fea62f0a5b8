/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all pools have in common, over providers of malloc's memory and of pages: umfPoolMalloc, umfPoolCalloc,
 * umfPoolRealloc, umfPoolAlignedMalloc, umfPoolMallocUsableSize, umfPoolFree, umfFree, umfPoolByPtr,
 * umfPoolGetLastAllocationError, in one thread and several. Pools without calloc, realloc and usable size say so.
 */
#include "tests/unit/umf/mock.h"

#include <errno.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/pools/pool_scalable.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum which { PROXY, DISJOINT, SCALABLE, JEMALLOC };

struct fixture {
    struct mock mock;
    umf_memory_pool_handle_t pool;
    enum which which;
};

static const struct variant {
    enum which which;
    enum mock_kind kind;
} variants[] = {
    {PROXY, MOCK_MALLOC}, {DISJOINT, MOCK_MALLOC}, {SCALABLE, MOCK_MALLOC}, {JEMALLOC, MOCK_MALLOC},
    {PROXY, MOCK_PAGES},  {DISJOINT, MOCK_PAGES},  {SCALABLE, MOCK_PAGES},  {JEMALLOC, MOCK_PAGES},
};

static bool has_all(const struct fixture *fixture)
{
    return fixture->which == SCALABLE || fixture->which == JEMALLOC;
}

static int setup(void **state)
{
    const struct variant *variant = *state;
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_pool_ops_t *ops[] = {umfProxyPoolOps(), umfDisjointPoolOps(), umfScalablePoolOps(),
                                    umfJemallocPoolOps()};

    assert_non_null(fixture);
    params.SlabMinSize = 4096;
    params.MaxPoolableSize = 65536;
    params.Capacity = 4;
    params.MinBucketSize = 64;
    fixture->which = variant->which;
    fixture->mock.kind = variant->kind;
    *state = fixture;
    fixture->pool = mock_pool(ops[fixture->which], fixture->which == DISJOINT ? &params : NULL, &fixture->mock);
    return 0;
}

static void end(struct fixture *fixture)
{
    umfPoolDestroy(fixture->pool);
    assert_int_equal(fixture->mock.bytes, 0);
    assert_int_equal(fixture->mock.wrong, 0);
    free(fixture);
}

/* ---- one thread -------------------------------------------------------------------------------------------------- */

/* umfPoolCreate; umfPoolMalloc, hPool, size */
static void check_malloc(void **state)
{
    static const size_t sizes[] = {1, 8, 64, 100, 4096, 5000, 70000, 1 << 20, 5 << 20};
    struct fixture *fixture;
    void *ptrs[9];

    setup(state);
    fixture = *state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 9; i++) {
            ptrs[i] = umfPoolMalloc(fixture->pool, sizes[i]);
            assert_non_null(ptrs[i]);
            assert_success(umfPoolGetLastAllocationError(fixture->pool));
            assert_int_equal((uintptr_t)ptrs[i] % 8, 0);
            memset(ptrs[i], i + 1, sizes[i]);
            assert_ptr_equal(umfPoolByPtr((char *)ptrs[i] + sizes[i] - 1), fixture->pool);
        }
        for (int i = 0; i < 9; i++) {
            assert_int_equal(*(char *)ptrs[i], i + 1);
            assert_int_equal(((char *)ptrs[i])[sizes[i] - 1], i + 1);
            assert_success(i % 2 ? umfFree(ptrs[i]) : umfPoolFree(fixture->pool, ptrs[i]));
        }
    }
    end(fixture);
}

static void check_nothing(void **state)
{
    struct fixture *fixture;
    void *ptr;

    setup(state);
    fixture = *state;
    errno = 0;
    if (fixture->which != PROXY)
        assert_success(umfPoolFree(fixture->pool, NULL));
    assert_success(umfFree(NULL));
    assert_int_equal(errno, 0);
    if (fixture->which != PROXY) {
        ptr = umfPoolMalloc(fixture->pool, 0);
        assert_int_equal(ptr != NULL, fixture->which != DISJOINT);
        assert_success(umfPoolGetLastAllocationError(fixture->pool));
        assert_success(umfPoolFree(fixture->pool, ptr));
    }
    end(fixture);
}

/* umfPoolCalloc, hPool, num, size */
static void check_calloc(void **state)
{
    struct fixture *fixture;
    char *ptr;

    setup(state);
    fixture = *state;
    for (size_t n = 1; n < 300000; n = n * 3 + 1) {
        void *dirty = umfPoolMalloc(fixture->pool, n * 7);

        memset(dirty, 1, n * 7);
        assert_success(umfPoolFree(fixture->pool, dirty));
        ptr = umfPoolCalloc(fixture->pool, n, 7);
        assert_int_equal(ptr != NULL, has_all(fixture));
        assert_result(umfPoolGetLastAllocationError(fixture->pool),
                      ptr ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_NOT_SUPPORTED);
        for (size_t i = 0; ptr && i < n * 7; i++)
            assert_int_equal(ptr[i], 0);
        if (ptr)
            assert_success(umfPoolFree(fixture->pool, ptr));
    }
    assert_null(umfPoolCalloc(fixture->pool, SIZE_MAX / 2 + 2, 2));
    assert_result(umfPoolGetLastAllocationError(fixture->pool),
                  has_all(fixture) ? UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY : UMF_RESULT_ERROR_NOT_SUPPORTED);
    end(fixture);
}

/* umfPoolRealloc, hPool */
static void check_realloc(void **state)
{
    struct fixture *fixture;
    unsigned char *ptr;
    size_t before = 100;

    setup(state);
    fixture = *state;
    ptr = umfPoolRealloc(fixture->pool, NULL, 100);
    if (!has_all(fixture)) {
        assert_null(ptr);
        assert_result(umfPoolGetLastAllocationError(fixture->pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
        end(fixture);
        return;
    }
    assert_non_null(ptr);
    for (unsigned i = 0; i < 100; i++)
        ptr[i] = (unsigned char)i;
    for (size_t size = 200; size < 4 << 20; size *= 3) {
        ptr = umfPoolRealloc(fixture->pool, ptr, size);
        assert_non_null(ptr);
        for (size_t i = 0; i < before; i++)
            assert_int_equal(ptr[i], i < 100 ? i : 1);
        assert_true(umfPoolMallocUsableSize(fixture->pool, ptr) >= size);
        memset(ptr + 100, 1, umfPoolMallocUsableSize(fixture->pool, ptr) - 100);
        before = size;
    }
    ptr = umfPoolRealloc(fixture->pool, ptr, 50);
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(ptr[i], i);
    assert_success(umfPoolFree(fixture->pool, ptr));
    end(fixture);
}

/* umfPoolMallocUsableSize, hPool */
static void check_usable_size(void **state)
{
    struct fixture *fixture;
    void *ptr;

    setup(state);
    fixture = *state;
    ptr = umfPoolMalloc(fixture->pool, 100);
    if (has_all(fixture)) {
        assert_true(umfPoolMallocUsableSize(fixture->pool, ptr) >= 100);
        assert_int_equal(umfPoolMallocUsableSize(fixture->pool, NULL), 0);
    } else {
        assert_int_equal(umfPoolMallocUsableSize(fixture->pool, ptr), 0);
        assert_result(umfPoolGetLastAllocationError(fixture->pool), UMF_RESULT_ERROR_NOT_SUPPORTED);
    }
    assert_success(umfPoolFree(fixture->pool, ptr));
    end(fixture);
}

static void aligned(umf_memory_pool_handle_t pool)
{
    static const size_t sizes[] = {1, 100, 5000, 1 << 20};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (size_t alignment = 8; alignment <= 65536; alignment *= 8) {
            void *ptr = umfPoolAlignedMalloc(pool, sizes[i], alignment);

            assert_non_null(ptr);
            assert_int_equal((uintptr_t)ptr % alignment, 0);
            memset(ptr, 1, sizes[i]);
            assert_success(umfPoolFree(pool, ptr));
        }
    for (size_t alignment = 1; alignment <= 4 << 20; alignment *= 2) {
        void *ptrs[4];

        for (unsigned i = 0; i < 4; i++) {
            ptrs[i] = umfPoolAlignedMalloc(pool, alignment, alignment);
            assert_non_null(ptrs[i]);
            assert_int_equal((uintptr_t)ptrs[i] % alignment, 0);
            memset(ptrs[i], (int)i, alignment);
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(((char *)ptrs[i])[alignment - 1], i);
            assert_success(umfPoolFree(pool, ptrs[i]));
        }
    }
}

/* umfPoolAlignedMalloc, hPool, size, alignment */
static void check_aligned(void **state)
{
    struct fixture *fixture;

    setup(state);
    fixture = *state;
    aligned(fixture->pool);
    end(fixture);
}

static void check_no_memory(void **state)
{
    struct fixture *fixture;

    setup(state);
    fixture = *state;
    fixture->mock.fails[MOCK_ALLOC] = UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t size = 64; size < 1 << 24; size *= 64) {
        assert_null(umfPoolMalloc(fixture->pool, size));
        assert_result(umfPoolGetLastAllocationError(fixture->pool), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    }
    fixture->mock.fails[MOCK_ALLOC] = UMF_RESULT_SUCCESS;
    assert_success(umfPoolFree(fixture->pool, umfPoolMalloc(fixture->pool, 64)));
    end(fixture);
}

static void *free_elsewhere(void *pool)
{
    return umfPoolFree(pool, umfPoolMalloc(pool, 16)) == UMF_RESULT_SUCCESS ? pool : NULL;
}

/* A failure in another thread does not change this thread's last error. */
static void check_last_error(void **state)
{
    struct fixture *fixture;
    pthread_t thread;
    umf_result_t error;
    void *fine;

    setup(state);
    fixture = *state;
    assert_null(umfPoolMalloc(fixture->pool, SIZE_MAX / 2));
    error = umfPoolGetLastAllocationError(fixture->pool);
    assert_int_not_equal(error, UMF_RESULT_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, free_elsewhere, fixture->pool), 0);
    assert_int_equal(pthread_join(thread, &fine), 0);
    assert_ptr_equal(fine, fixture->pool);
    assert_result(umfPoolGetLastAllocationError(fixture->pool), error);
    end(fixture);
}

/* ---- several threads --------------------------------------------------------------------------------------------- */

#define THREADS 5

static umf_memory_pool_handle_t shared_pool;
static atomic_uint wrong;

static void *use(void *arg)
{
    unsigned char *ptrs[100] = {NULL};
    size_t sizes[100] = {0};
    unsigned x = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < (TEST_TSAN ? 2000 : 10000); i++) {
        unsigned k = (x = x * 1664525 + 1013904223) >> 8;

        k %= 100;
        if (ptrs[k]) {
            wrong += ptrs[k][0] != k || ptrs[k][sizes[k] - 1] != k;
            wrong += umfPoolFree(shared_pool, ptrs[k]) != UMF_RESULT_SUCCESS;
        }
        sizes[k] = i % 100 ? 1 + x % 3000 : 1 + x % 300000;
        ptrs[k] = umfPoolMalloc(shared_pool, sizes[k]);
        wrong += !ptrs[k];
        ptrs[k][0] = ptrs[k][sizes[k] - 1] = (unsigned char)k;
    }
    for (unsigned k = 0; k < 100; k++)
        if (ptrs[k])
            wrong += umfPoolFree(shared_pool, ptrs[k]) != UMF_RESULT_SUCCESS;
    return NULL;
}

static void *use_aligned(void *arg)
{
    (void)arg;
    for (size_t alignment = 1; alignment <= 4 << 20; alignment *= 2) {
        void *ptrs[4];

        for (unsigned i = 0; i < 4; i++) {
            ptrs[i] = umfPoolAlignedMalloc(shared_pool, alignment, alignment);
            wrong += !ptrs[i] || (uintptr_t)ptrs[i] % alignment;
        }
        for (unsigned i = 0; i < 4; i++)
            wrong += umfPoolFree(shared_pool, ptrs[i]) != UMF_RESULT_SUCCESS;
    }
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(wrong, 0);
}

static void check_threads(void **state)
{
    const struct variant *variant = *state;
    struct fixture *fixture;

    if (TEST_TSAN && variant->which == SCALABLE)
        test_skip("TSan does not see how TBB's allocator hands memory from one thread to another");
    setup(state);
    fixture = *state;
    shared_pool = fixture->pool;
    run(use);
    run(use_aligned);
    end(fixture);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

#define TESTS    9
#define VARIANTS (sizeof(variants) / sizeof(*variants))

int main(void)
{
    static const CMUnitTestFunction functions[TESTS] = {
        check_malloc,  check_nothing,   check_calloc,     check_realloc, check_usable_size,
        check_aligned, check_no_memory, check_last_error, check_threads,
    };
    static const char *const names[] = {"proxy", "disjoint", "scalable", "jemalloc"};
    struct CMUnitTest tests[VARIANTS * TESTS];
    char labels[VARIANTS * TESTS][64];

    for (unsigned i = 0; i < VARIANTS * TESTS; i++) {
        const struct variant *variant = &variants[i / TESTS];

        (void)snprintf(labels[i], sizeof(labels[i]), "%s over %s: test %u", names[variant->which],
                       variant->kind == MOCK_MALLOC ? "malloc" : "pages", i % TESTS);
        tests[i] = (struct CMUnitTest){
            .name = labels[i],
            .test_func = functions[i % TESTS],
            .initial_state = (void *)(uintptr_t)variant,
        };
    }
    return test_run(tests, NULL, NULL);
}
