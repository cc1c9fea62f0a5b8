/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the disjoint pool has: which sizes share a slab, how many slabs there are and are kept, limits, traces, and
 * threads. test-pools-common has what it shares with other pools.
 */
#include "tests/unit/umf/mock.h"

#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLAB 1024

static umf_disjoint_pool_params_t params_of(size_t slab_min, size_t max_poolable, size_t capacity, size_t min_bucket)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();

    params.SlabMinSize = slab_min;
    params.MaxPoolableSize = max_poolable;
    params.Capacity = capacity;
    params.MinBucketSize = min_bucket;
    return params;
}

static umf_memory_pool_handle_t pool_of(umf_disjoint_pool_params_t params, struct mock *mock)
{
    return mock_pool(umfDisjointPoolOps(), &params, mock);
}

static void malloc_all(umf_memory_pool_handle_t pool, void **ptrs, unsigned n, size_t size)
{
    for (unsigned i = 0; i < n; i++) {
        ptrs[i] = umfPoolMalloc(pool, size);
        assert_non_null(ptrs[i]);
        memset(ptrs[i], (int)i, size);
    }
}

static void free_all(umf_memory_pool_handle_t pool, void **ptrs, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_success(umfPoolFree(pool, ptrs[i]));
}

static void end(umf_memory_pool_handle_t pool, struct mock *mock)
{
    umfPoolDestroy(pool);
    assert_int_equal(mock->calls[MOCK_FREE], mock->calls[MOCK_ALLOC]);
    assert_int_equal(mock->bytes, 0);
    assert_int_equal(mock->wrong, 0);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* umfDisjointPoolParamsDefault */
static void test_defaults(void **state)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();

    assert_int_equal(params.SlabMinSize, 0);
    assert_int_equal(params.MaxPoolableSize, 0);
    assert_int_equal(params.Capacity, 0);
    assert_int_equal(params.MinBucketSize, UMF_DISJOINT_POOL_MIN_BUCKET_DEFAULT_SIZE);
    assert_int_equal(params.CurPoolSize, 0);
    assert_int_equal(params.PoolTrace, 0);
    assert_null(params.SharedLimits);
    assert_string_equal(params.Name, "disjoint_pool");
}

/* umfPoolCreate with wrong parameters: INVALID_ARGUMENT. */
static void test_wrong(void **state)
{
    static const size_t wrong[] = {0, 3, 24, 65};
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_pool_handle_t pool = NULL;

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        params.MinBucketSize = wrong[i];
        assert_result(umfPoolCreate(umfDisjointPoolOps(), provider, &params, 0, &pool),
                      UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    assert_result(umfPoolCreate(umfDisjointPoolOps(), provider, NULL, 0, &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(pool);
    umfMemoryProviderDestroy(provider);
}

/* By default the provider gets every call, and a success without memory and a failing free are passed on. */
static void test_default_pool(void **state)
{
    struct mock null = {.kind = MOCK_NULL}, mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pool = pool_of(umfDisjointPoolParamsDefault(), &null);
    void *ptr;

    assert_null(umfPoolMalloc(pool, 64));
    assert_success(umfPoolGetLastAllocationError(pool));
    assert_success(umfPoolFree(pool, NULL));
    umfPoolDestroy(pool);

    pool = pool_of(umfDisjointPoolParamsDefault(), &mock);
    assert_int_equal(mock.calls[MOCK_MIN_PAGE_SIZE], 1);
    ptr = umfPoolMalloc(pool, 64);
    assert_non_null(ptr);
    assert_ptr_equal(umfPoolByPtr(ptr), pool);
    mock.fails[MOCK_FREE] = UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    assert_result(umfPoolFree(pool, ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    mock.fails[MOCK_FREE] = UMF_RESULT_SUCCESS;
    mock.calls[MOCK_FREE] = 0; /* it freed nothing */
    assert_success(umfPoolFree(pool, ptr));
    assert_int_equal(mock.calls[MOCK_ALLOC], 1);
    assert_int_equal(mock.calls[MOCK_FREE], 1);
    end(pool, &mock);
}

/* ---- slabs and limits -------------------------------------------------------------------------------------------- */

/* umfDisjointPoolSharedLimitsCreate, MaxSize: umfDisjointPoolSharedLimitsCreate, umfDisjointPoolSharedLimitsDestroy:
 * two pools keep what the limits allow both. */
static void test_shared_limits(void **state)
{
    umf_disjoint_pool_shared_limits_t *limits = umfDisjointPoolSharedLimitsCreate(4 * SLAB);
    umf_disjoint_pool_params_t params = params_of(SLAB, 4096, 4, 64);
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pools[2];
    void *ptrs[2][4];

    assert_non_null(limits);
    params.SharedLimits = limits;
    for (unsigned i = 0; i < 2; i++) {
        pools[i] = pool_of(params, &mock);
        malloc_all(pools[i], ptrs[i], 4, SLAB);
    }
    assert_int_equal(mock.calls[MOCK_ALLOC], 8);
    assert_int_equal(mock.calls[MOCK_FREE], 0);
    for (unsigned i = 0; i < 2; i++)
        free_all(pools[i], ptrs[i], 4);
    assert_int_equal(mock.calls[MOCK_FREE], 4);
    umfPoolDestroy(pools[0]);
    end(pools[1], &mock);
    assert_int_equal(mock.calls[MOCK_ALLOC], 8);
    umfDisjointPoolSharedLimitsDestroy(limits);
    umfDisjointPoolSharedLimitsDestroy(NULL);
}

/* An empty slab that is used again is not counted by the limits. */
static void test_limits_of_chunks(void **state)
{
    umf_disjoint_pool_shared_limits_t *limits = umfDisjointPoolSharedLimitsCreate(SLAB);
    umf_disjoint_pool_params_t params = params_of(SLAB, 4096, 4, 64);
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pool;
    void *chunk, *slab;

    params.SharedLimits = limits;
    pool = pool_of(params, &mock);
    chunk = umfPoolMalloc(pool, 64);
    slab = umfPoolMalloc(pool, SLAB);
    assert_success(umfPoolFree(pool, chunk)); /* kept */
    assert_success(umfPoolFree(pool, slab));  /* no room */
    assert_int_equal(mock.calls[MOCK_FREE], 1);
    chunk = umfPoolMalloc(pool, 64);
    slab = umfPoolMalloc(pool, SLAB);
    assert_int_equal(mock.calls[MOCK_ALLOC], 3);
    assert_success(umfPoolFree(pool, slab));  /* kept */
    assert_success(umfPoolFree(pool, chunk)); /* no room */
    assert_int_equal(mock.calls[MOCK_FREE], 2);
    end(pool, &mock);
    umfDisjointPoolSharedLimitsDestroy(limits);
}

/* Capacity is the number of kept slabs that are one allocation. */
static void test_capacity(void **state)
{
    for (unsigned capacity = 0; capacity <= 6; capacity++) {
        struct mock mock = {.kind = MOCK_MALLOC};
        umf_memory_pool_handle_t pool = pool_of(params_of(SLAB, 4096, capacity, 64), &mock);
        void *ptrs[6];

        malloc_all(pool, ptrs, 6, 2000);
        free_all(pool, ptrs, 6);
        assert_int_equal(mock.calls[MOCK_FREE], 6 - capacity);
        malloc_all(pool, ptrs, 6, 2048);
        assert_int_equal(mock.calls[MOCK_ALLOC], 12 - capacity);
        free_all(pool, ptrs, 6);
        end(pool, &mock);
    }
}

/* umfPoolCreate; umfDisjointPoolOps; umf_disjoint_pool_params_t, Capacity, MaxPoolableSize, SlabMinSize: User data is
 * the provider's and metadata is not, so the memory need not be readable; chunks are MinBucketSize apart. CurPoolSize
 * has no effect. */
static void test_untouched(void **state)
{
    struct mock mock = {.kind = MOCK_PAGES, .is_guarded = true};
    umf_disjoint_pool_params_t params = params_of(4096, 4096, 1, 64);
    umf_memory_pool_handle_t pool;
    void *small[4], *large;

    params.CurPoolSize = SIZE_MAX;
    pool = pool_of(params, &mock);
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
    free_all(pool, small, 4);
    assert_int_equal(mock.calls[MOCK_FREE], 1); /* the slab is kept */
    end(pool, &mock);
}

/* SlabMinSize: sizes up to half of it are chunks; one slab of chunks is kept. */
static void test_chunks(void **state)
{
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pool = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
    void *ptrs[48];

    malloc_all(pool, ptrs, 48, 64);
    assert_int_equal(mock.calls[MOCK_ALLOC], 3);
    for (unsigned i = 0; i < 48; i++) {
        assert_ptr_equal(umfPoolByPtr((char *)ptrs[i] + 63), pool);
        assert_int_equal(*(char *)ptrs[i], (char)i);
    }
    free_all(pool, ptrs, 48);
    assert_int_equal(mock.calls[MOCK_FREE], 2);
    malloc_all(pool, ptrs, 16, 64);
    assert_int_equal(mock.calls[MOCK_ALLOC], 3);
    free_all(pool, ptrs, 16);
    assert_int_equal(mock.calls[MOCK_FREE], 2);
    malloc_all(pool, ptrs, 2, 512);
    assert_int_equal(mock.calls[MOCK_ALLOC], 4);
    free_all(pool, ptrs, 2);
    end(pool, &mock);
}

/* Buckets: 64, 96, 128, 192, ...: a size in between shares slabs with the larger one. */
static void test_buckets(void **state)
{
    static const size_t sizes[] = {1, 64, 65, 96, 97, 128, 129, 192, 193, 256, 257, 384, 385, 512};
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pool = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
    void *ptrs[sizeof(sizes) / sizeof(*sizes)];

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        ptrs[i] = umfPoolMalloc(pool, sizes[i]);
        assert_int_equal(mock.calls[MOCK_ALLOC], i / 2 + 1);
    }
    free_all(pool, ptrs, sizeof(sizes) / sizeof(*sizes));
    end(pool, &mock);
}

/* MaxPoolableSize: larger allocations go to the provider, and back at once. */
static void test_large(void **state)
{
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pool = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
    void *ptr = umfPoolMalloc(pool, 4097);

    assert_int_equal(mock.bytes, 4097);
    assert_success(umfPoolFree(pool, ptr));
    assert_int_equal(mock.bytes, 0);
    ptr = umfPoolMalloc(pool, 4096);
    assert_success(umfPoolFree(pool, ptr));
    assert_int_equal(mock.bytes, 4096);
    end(pool, &mock);
}

/* umfPoolDestroy with allocations: the provider gets everything back. */
static void test_leak(void **state)
{
    static const size_t sizes[] = {8, 100, 512, 1024, 4096, 10000};
    struct mock mock = {.kind = MOCK_PAGES};
    umf_memory_pool_handle_t pool = pool_of(params_of(SLAB, 4096, 4, 8), &mock);

    for (unsigned i = 0; i < 1000; i++)
        assert_non_null(umfPoolMalloc(pool, sizes[i % 6]));
    end(pool, &mock);
}

/* Odd slabs with the smallest buckets: every pointer is aligned to 8 bytes, and none overlaps another. */
static void test_odd(void **state)
{
    static const size_t slabs[] = {1, 40, 100, 1000, 5000, 70001};

    for (unsigned k = 0; k < sizeof(slabs) / sizeof(*slabs); k++) {
        struct mock mock = {.kind = MOCK_MALLOC};
        umf_memory_pool_handle_t pool = pool_of(params_of(slabs[k], 5000, 2, 8), &mock);
        unsigned char *ptrs[500];

        for (unsigned i = 0; i < 500; i++) {
            ptrs[i] = umfPoolMalloc(pool, 1 + i * 13 % 600);
            assert_non_null(ptrs[i]);
            assert_int_equal((uintptr_t)ptrs[i] % 8, 0);
            memset(ptrs[i], (int)i % 251, 1 + i * 13 % 600);
        }
        for (unsigned i = 0; i < 500; i++)
            for (unsigned j = 0; j < 1 + i * 13 % 600; j++)
                assert_int_equal(ptrs[i][j], i % 251);
        for (unsigned i = 0; i < 500; i++)
            assert_success(umfPoolFree(pool, ptrs[i]));
        end(pool, &mock);
    }
}

/* umfPoolAlignedMalloc in chunks, slabs and beyond, with a provider that knows its pages and one that does not. */
static void test_aligned(void **state)
{
    for (enum mock_kind kind = MOCK_PAGES; kind <= MOCK_MALLOC; kind++) {
        struct mock mock = {.kind = kind};
        umf_memory_pool_handle_t pool = pool_of(params_of(65536, 1 << 20, 4, 8), &mock);
        void *ptrs[24][8];

        for (unsigned log = 0; log <= 22; log++)
            for (unsigned i = 0; i < 8; i++) {
                size_t size = i % 2 ? (size_t)1 << log : 3 * i + 1;

                ptrs[log][i] = umfPoolAlignedMalloc(pool, size, (size_t)1 << log);
                assert_non_null(ptrs[log][i]);
                assert_int_equal((uintptr_t)ptrs[log][i] % ((size_t)1 << log), 0);
                memset(ptrs[log][i], 1, size);
            }
        for (unsigned log = 0; log <= 22; log++)
            free_all(pool, ptrs[log], 8);
        assert_null(umfPoolAlignedMalloc(pool, 64, 48));
        assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
        assert_null(umfPoolAlignedMalloc(pool, SIZE_MAX, 64));
        assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
        end(pool, &mock);
    }
}

/* ---- traces ------------------------------------------------------------------------------------------------------ */

/* umf_disjoint_pool_params_t: PoolTrace: nothing, totals, buckets, calls. */
static void test_trace(void **state)
{
    char path[] = "traceXXXXXX", text[4096];
    int fd = mkstemp(path), saved = dup(STDERR_FILENO);

    assert_ok(fd);
    assert_ok(saved);
    for (int level = 0; level <= 3; level++) {
        struct mock mock = {.kind = MOCK_MALLOC};
        umf_disjoint_pool_params_t params = params_of(SLAB, 4096, 4, 64);
        umf_memory_pool_handle_t pool;
        ssize_t n;

        params.PoolTrace = level;
        params.Name = "traced";
        assert_ok(ftruncate(fd, 0));
        fflush(stderr);
        assert_ok(dup2(fd, STDERR_FILENO));
        pool = pool_of(params, &mock);
        for (int i = 0; i < 3; i++)
            (void)umfPoolFree(pool, umfPoolMalloc(pool, 100));
        umfPoolDestroy(pool);
        fflush(stderr);
        (void)dup2(saved, STDERR_FILENO);
        n = pread(fd, text, sizeof(text) - 1, 0);
        assert_ok(n);
        text[n] = 0;
        assert_int_equal(strstr(text, "traced: 3 allocations, 3 frees, 2 from the pool; 1024 bytes kept") != NULL,
                         level >= 1);
        assert_int_equal(strstr(text, "bucket") != NULL, level >= 2);
        assert_int_equal(strstr(text, "allocated 100 bytes") != NULL, level >= 3);
        assert_ok(lseek(fd, 0, SEEK_SET));
    }
    close(saved);
    close(fd);
    unlink(path);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS  (TEST_TSAN ? 1000 : 4000)
#define SLOTS   64

static umf_memory_pool_handle_t shared_pool;
static _Atomic(unsigned char *) slots[SLOTS];
static atomic_uint wrong;

static size_t size_at(unsigned slot)
{
    return 1 + slot * slot * 3;
}

static void check_and_free(unsigned slot, unsigned char *ptr)
{
    for (size_t i = 0; ptr && i < size_at(slot); i++)
        wrong += ptr[i] != slot;
    wrong += umfPoolFree(shared_pool, ptr) != UMF_RESULT_SUCCESS;
}

/* Mostly, one thread frees what another allocates. */
static void *exchange(void *arg)
{
    unsigned at = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned slot = (at = at * 1664525 + 1013904223) >> 26;
        unsigned char *ptr = umfPoolMalloc(shared_pool, size_at(slot));

        wrong += !ptr;
        if (ptr)
            memset(ptr, (int)slot, size_at(slot));
        check_and_free(slot, atomic_exchange(&slots[slot], ptr));
    }
    return NULL;
}

static void run(unsigned n, void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(wrong, 0);
}

/* Threads come and go, and free what others allocated; some take over what those had. At the end one slab of each
 * bucket is kept. */
static void test_threads(void **state)
{
    umf_disjoint_pool_params_t params = params_of(4096, 8192, 1, 8);
    umf_disjoint_pool_shared_limits_t *limits = umfDisjointPoolSharedLimitsCreate(64 * SLAB);

    for (int limited = 0; limited < 2; limited++) {
        struct mock mock = {.kind = MOCK_MALLOC};

        params.SharedLimits = limited ? limits : NULL;
        shared_pool = pool_of(params, &mock);
        for (int i = 0; i < 3; i++)
            run(THREADS, exchange);
        for (unsigned i = 0; i < SLOTS; i++)
            check_and_free(i, atomic_exchange(&slots[i], NULL));
        assert_int_equal(wrong, 0);
        assert_in_range(mock.bytes, 0, limited ? 64 * SLAB : 20 * 8192 + 2 * 4096);
        end(shared_pool, &mock);
    }
    umfDisjointPoolSharedLimitsDestroy(limits);
}

static void *keep_some(void *arg)
{
    void *ptrs[100];

    for (unsigned i = 0; i < 100; i++)
        ptrs[i] = umfPoolMalloc(shared_pool, 64);
    for (unsigned i = 0; i < 100; i++)
        wrong += umfPoolFree(shared_pool, ptrs[i]) != UMF_RESULT_SUCCESS;
    (void)arg;
    return NULL;
}

/* What an ended thread had is given back, except for the slab that its bucket keeps, and the next thread uses. */
static void test_thread_end(void **state)
{
    struct mock mock = {.kind = MOCK_MALLOC};

    shared_pool = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
    run(4, keep_some);
    assert_int_equal(mock.bytes, SLAB);
    assert_success(umfPoolFree(shared_pool, umfPoolMalloc(shared_pool, 64)));
    assert_int_equal(mock.bytes, SLAB);
    end(shared_pool, &mock);
}

static void *left_behind;

static void *leave_one(void *arg)
{
    (void)arg;
    left_behind = umfPoolMalloc(shared_pool, 64);
    return NULL;
}

/* What an ended thread has left can be freed, and its slab goes the usual way. */
static void test_left_behind(void **state)
{
    struct mock mock = {.kind = MOCK_MALLOC};
    void *ptr;

    shared_pool = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
    ptr = umfPoolMalloc(shared_pool, 64);
    run(1, leave_one);
    assert_int_equal(mock.bytes, 2 * SLAB);
    assert_success(umfPoolFree(shared_pool, left_behind));
    assert_int_equal(mock.bytes, 2 * SLAB);
    assert_success(umfPoolFree(shared_pool, ptr));
    assert_int_equal(mock.bytes, SLAB);
    end(shared_pool, &mock);
}

/* More pools at once than a thread's cache holds, and pools at addresses where others were. */
static void test_many_pools(void **state)
{
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pools[40];
    void *ptrs[40];

    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 40; i++)
            pools[i] = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
        for (unsigned k = 0; k < 3; k++) {
            for (unsigned i = 0; i < 40; i++)
                malloc_all(pools[i], &ptrs[i], 1, 64);
            for (unsigned i = 0; i < 40; i++)
                assert_success(umfFree(ptrs[i]));
        }
        assert_int_equal(mock.bytes, 40 * SLAB);
        for (unsigned i = 0; i < 40; i++)
            umfPoolDestroy(pools[i]);
        assert_int_equal(mock.bytes, 0);
    }
}

/* A child goes on with what its thread had, and with new pools. So does the parent, and forks again. */
static void test_fork(void **state)
{
    struct mock mock = {.kind = MOCK_MALLOC};
    umf_memory_pool_handle_t pool = pool_of(params_of(SLAB, 4096, 4, 64), &mock), other;
    void *ptr = umfPoolMalloc(pool, 64);

    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        int status;

        assert_ok(pid);
        if (!pid) {
            bool right = umfPoolFree(pool, ptr) == UMF_RESULT_SUCCESS && umfPoolMalloc(pool, 64);

            other = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
            _exit(!right || !umfPoolMalloc(other, 64));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        other = pool_of(params_of(SLAB, 4096, 4, 64), &mock);
        assert_non_null(umfPoolMalloc(other, 64));
        umfPoolDestroy(other);
    }
    assert_success(umfPoolFree(pool, ptr));
    end(pool, &mock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_default_pool),
        cmocka_unit_test(test_shared_limits),
        cmocka_unit_test(test_limits_of_chunks),
        cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_leak),
        cmocka_unit_test(test_odd),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_thread_end),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_many_pools),
        cmocka_unit_test(test_fork),
    };

    return test_run(tests, NULL, NULL);
}
