/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pool an address belongs to: anywhere in what pools have from their providers; while it is split, merged, freed
 * in part, freed without success, or in another pool's memory; while other threads ask; and in a pool that is not
 * tracked.
 */
#include <pthread.h>
#include <string.h>

#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/unit/umf/mock.h"

#define PAGE ((size_t)4096)

/* A proxy pool, whose tracking provider the test can call as the pool does. */
struct open_pool {
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;
    umf_memory_provider_handle_t inner; /* the pool's tracking provider */
};

static umf_memory_provider_handle_t got;

static umf_result_t initialize(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    got = provider;
    return umfProxyPoolOps()->initialize(provider, params, pool);
}

static struct open_pool open_pool(struct mock *mock)
{
    umf_memory_pool_ops_t ops = *umfProxyPoolOps();
    struct open_pool open = {.provider = mock_new(mock)};

    ops.initialize = initialize;
    assert_success(umfPoolCreate(&ops, open.provider, NULL, 0, &open.pool));
    open.inner = got;
    return open;
}

static void open_pool_done(struct open_pool *open)
{
    umfPoolDestroy(open->pool);
    umfMemoryProviderDestroy(open->provider);
}

/* Checks that all of [from, to) is the pool's, by single bytes. */
static void assert_pool(const char *from, const char *to, umf_memory_pool_handle_t pool)
{
    assert_ptr_equal(umfPoolByPtr(from), pool);
    assert_ptr_equal(umfPoolByPtr(from + (to - from) / 2), pool);
    assert_ptr_equal(umfPoolByPtr(to - 1), pool);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void any_address_within(void **state)
{
    static const size_t sizes[] = {1, 2, 7, 100, 4096, 5000};
    struct mock mock = {.calls = {0}};
    struct open_pool open = open_pool(&mock);

    assert_null(umfPoolByPtr(NULL));
    assert_null(umfPoolByPtr(&mock));
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *ptr = umfPoolMalloc(open.pool, sizes[i]);

        assert_pool(ptr, ptr + sizes[i], open.pool);
        assert_null(umfPoolByPtr(ptr - 1));
        assert_null(umfPoolByPtr(ptr + sizes[i]));
        assert_success(umfPoolFree(open.pool, ptr));
        assert_null(umfPoolByPtr(ptr));
    }
    open_pool_done(&open);
}

static void many_pools(void **state)
{
    enum { POOLS = 16, PIECES = 64 };
    umf_memory_provider_handle_t provider = mock_of(MOCK_MALLOC);
    umf_memory_pool_handle_t pools[POOLS];
    char *pieces[POOLS][PIECES];

    for (unsigned i = 0; i < POOLS; i++)
        pools[i] = proxy_of(provider);
    for (unsigned j = 0; j < PIECES; j++)
        for (unsigned i = 0; i < POOLS; i++)
            pieces[i][j] = umfPoolMalloc(pools[i], 16 + i + j);
    for (unsigned i = 0; i < POOLS; i++)
        for (unsigned j = 0; j < PIECES; j++)
            assert_pool(pieces[i][j], pieces[i][j] + 16 + i + j, pools[i]);
    /* found by address alone, in another order */
    for (unsigned j = PIECES; j--;)
        for (unsigned i = 0; i < POOLS; i++)
            assert_success(umfFree(pieces[i][j]));
    for (unsigned i = 0; i < POOLS; i++) {
        assert_null(umfPoolByPtr(pieces[i][0]));
        umfPoolDestroy(pools[i]);
    }
    umfMemoryProviderDestroy(provider);
}

static void what_is_no_pools(void **state)
{
    char here[8];

    assert_success(umfFree(here));
    assert_success(umfFree(NULL));
    assert_null(umfPoolByPtr(here));
}

/* Destroying a pool frees what it did not free. */
static void pool_ends(void **state)
{
    struct mock mock = {.calls = {0}};
    struct open_pool open = open_pool(&mock);
    char *ptr = umfPoolMalloc(open.pool, PAGE), *other;

    other = umfPoolMalloc(open.pool, PAGE);
    umfPoolDestroy(open.pool);
    assert_null(umfPoolByPtr(ptr));
    assert_null(umfPoolByPtr(other));
    assert_int_equal(mock.calls[MOCK_FREE], 0);
    assert_success(umfMemoryProviderFree(open.provider, ptr, PAGE));
    assert_success(umfMemoryProviderFree(open.provider, other, PAGE));
    umfMemoryProviderDestroy(open.provider);
}

static void not_tracked(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    umf_memory_pool_handle_t pool;
    void *ptr;

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_DISABLE_TRACKING, &pool));
    ptr = umfPoolMalloc(pool, 100);
    assert_non_null(ptr);
    assert_null(umfPoolByPtr(ptr));
    assert_success(umfFree(ptr));
    assert_int_equal(mock.calls[MOCK_FREE], 0);
    /* nobody knows the size */
    assert_result(umfPoolFree(pool, ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    assert_int_equal(mock.size, 0);
    assert_success(umfMemoryProviderFree(provider, ptr, 100));
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* umfPoolFree, hPool: What the provider did not take back remains the pool's, with its size. */
static void free_fails(void **state)
{
    struct mock mock = {.calls = {0}};
    struct open_pool open = open_pool(&mock);
    char *ptr = umfPoolMalloc(open.pool, 5000);

    mock.fails[MOCK_FREE] = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfPoolFree(open.pool, ptr), UMF_RESULT_ERROR_UNKNOWN);
    assert_result(umfFree(ptr), UMF_RESULT_ERROR_UNKNOWN);
    assert_pool(ptr, ptr + 5000, open.pool);
    assert_null(umfPoolByPtr(ptr + 5000));
    mock.fails[MOCK_FREE] = UMF_RESULT_SUCCESS;
    assert_success(umfFree(ptr));
    assert_int_equal(mock.size, 5000);
    assert_null(umfPoolByPtr(ptr));
    open_pool_done(&open);
}

/* The pool does not know the address, so the provider has to, and it is not the pool's afterwards either. */
static void frees_the_unknown(void **state)
{
    struct mock mock = {.calls = {0}};
    struct open_pool open = open_pool(&mock);
    char here[8];

    mock.fails[MOCK_FREE] = UMF_RESULT_ERROR_INVALID_ARGUMENT;
    assert_result(umfPoolFree(open.pool, here), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(umfPoolByPtr(here));
    open_pool_done(&open);
}

/* The beginning, the end and the middle of an allocation are freed separately. */
static void frees_parts(void **state)
{
    struct mock mock = {.calls = {0}};
    struct open_pool open = open_pool(&mock);
    char *ptr = umfPoolMalloc(open.pool, 7 * PAGE);

    assert_success(umfMemoryProviderFree(open.inner, ptr, PAGE));
    assert_null(umfPoolByPtr(ptr));
    assert_pool(ptr + PAGE, ptr + 7 * PAGE, open.pool);
    assert_success(umfMemoryProviderFree(open.inner, ptr + 6 * PAGE, PAGE));
    assert_null(umfPoolByPtr(ptr + 6 * PAGE));
    assert_pool(ptr + PAGE, ptr + 6 * PAGE, open.pool);
    /* a free that fails leaves the allocation whole */
    mock.fails[MOCK_FREE] = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfMemoryProviderFree(open.inner, ptr + 3 * PAGE, PAGE), UMF_RESULT_ERROR_UNKNOWN);
    assert_pool(ptr + PAGE, ptr + 6 * PAGE, open.pool);
    assert_success(umfMemoryProviderAllocationSplit(open.inner, ptr + PAGE, 5 * PAGE, 4 * PAGE));
    assert_success(umfMemoryProviderAllocationMerge(open.inner, ptr + PAGE, ptr + 5 * PAGE, 5 * PAGE));
    mock.fails[MOCK_FREE] = UMF_RESULT_SUCCESS;
    assert_success(umfMemoryProviderFree(open.inner, ptr + 3 * PAGE, PAGE));
    assert_pool(ptr + PAGE, ptr + 3 * PAGE, open.pool);
    assert_null(umfPoolByPtr(ptr + 3 * PAGE));
    assert_pool(ptr + 4 * PAGE, ptr + 6 * PAGE, open.pool);
    /* each is an allocation of its own now */
    assert_success(umfFree(ptr + PAGE));
    assert_int_equal(mock.size, 2 * PAGE);
    assert_success(umfFree(ptr + 4 * PAGE));
    assert_int_equal(mock.size, 2 * PAGE);
    assert_null(umfPoolByPtr(ptr + 5 * PAGE));
    open_pool_done(&open);
}

/* ---- cutting and joining ----------------------------------------------------------------------------------------- */

static void splits_and_merges(void **state)
{
    struct mock mock = {.calls = {0}};
    struct open_pool open = open_pool(&mock);
    char *ptr = umfPoolMalloc(open.pool, 8 * PAGE);

    assert_success(umfMemoryProviderAllocationSplit(open.inner, ptr, 8 * PAGE, 3 * PAGE));
    assert_success(umfMemoryProviderAllocationSplit(open.inner, ptr + 3 * PAGE, 5 * PAGE, PAGE));
    assert_pool(ptr, ptr + 8 * PAGE, open.pool);
    assert_success(umfMemoryProviderAllocationMerge(open.inner, ptr, ptr + 3 * PAGE, 4 * PAGE));
    assert_success(umfFree(ptr + 4 * PAGE));
    assert_int_equal(mock.size, 4 * PAGE);
    assert_null(umfPoolByPtr(ptr + 4 * PAGE));
    assert_pool(ptr, ptr + 4 * PAGE, open.pool);
    assert_success(umfFree(ptr));
    assert_int_equal(mock.size, 4 * PAGE);
    assert_int_equal(mock.calls[MOCK_SPLIT], 2);
    assert_int_equal(mock.calls[MOCK_MERGE], 1);
    open_pool_done(&open);
}

/* Only existing allocations of exactly this size are split and merged. For others the provider is not called. */
static void splits_and_merges_what_is_there(void **state)
{
    struct mock mock = {.calls = {0}}, other_mock = {.calls = {0}};
    struct open_pool open = open_pool(&mock), other = open_pool(&other_mock);
    char *ptr = umfPoolMalloc(open.pool, 4 * PAGE);

    assert_result(umfMemoryProviderAllocationSplit(open.inner, ptr, 3 * PAGE, PAGE), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(open.inner, ptr, 5 * PAGE, PAGE), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(open.inner, ptr + PAGE, 3 * PAGE, PAGE),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationSplit(other.inner, ptr, 4 * PAGE, PAGE),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mock.calls[MOCK_SPLIT], 0);
    assert_success(umfMemoryProviderAllocationSplit(open.inner, ptr, 4 * PAGE, PAGE));
    assert_success(umfMemoryProviderAllocationSplit(open.inner, ptr + PAGE, 3 * PAGE, PAGE));
    assert_result(umfMemoryProviderAllocationMerge(open.inner, ptr, ptr + PAGE, 3 * PAGE),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(open.inner, ptr, ptr + 2 * PAGE, 3 * PAGE),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(other.inner, ptr, ptr + PAGE, 2 * PAGE),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mock.calls[MOCK_MERGE], 0);
    /* if the provider refuses, nothing changes */
    mock.fails[MOCK_MERGE] = mock.fails[MOCK_SPLIT] = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfMemoryProviderAllocationMerge(open.inner, ptr, ptr + PAGE, 2 * PAGE), UMF_RESULT_ERROR_UNKNOWN);
    assert_result(umfMemoryProviderAllocationSplit(open.inner, ptr + 2 * PAGE, 2 * PAGE, PAGE),
                  UMF_RESULT_ERROR_UNKNOWN);
    for (unsigned i = 0; i < 2; i++) {
        assert_success(umfFree(ptr + i * PAGE));
        assert_int_equal(mock.size, PAGE);
    }
    assert_success(umfFree(ptr + 2 * PAGE));
    assert_int_equal(mock.size, 2 * PAGE);
    open_pool_done(&open);
    open_pool_done(&other);
}

/* ---- pools in pools ---------------------------------------------------------------------------------------------- */

/* A provider whose memory is another pool's. */
static umf_result_t of_pool_initialize(void *params, void **provider)
{
    *provider = params;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t of_pool_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    *ptr = umfPoolAlignedMalloc(provider, size, alignment);
    return *ptr ? UMF_RESULT_SUCCESS : umfPoolGetLastAllocationError(provider);
}

static umf_result_t of_pool_free(void *provider, void *ptr, size_t size)
{
    (void)size;
    return umfPoolFree(provider, ptr);
}

static umf_memory_provider_handle_t provider_of_pool(umf_memory_pool_handle_t pool)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_NULL];
    umf_memory_provider_handle_t provider;

    ops.initialize = of_pool_initialize;
    ops.alloc = of_pool_alloc;
    ops.free = of_pool_free;
    assert_success(umfMemoryProviderCreate(&ops, pool, &provider));
    return provider;
}

/* Both pools have the same range. The inner one is found, and freeing goes outwards, step by step. */
static void pool_in_pool(void **state)
{
    struct mock mock = {.calls = {0}};
    struct open_pool outer = open_pool(&mock);
    umf_memory_provider_handle_t provider = provider_of_pool(outer.pool);
    umf_memory_pool_handle_t inner = proxy_of(provider);
    char *ptr = umfPoolMalloc(inner, 3 * PAGE), *sibling = umfPoolMalloc(outer.pool, PAGE);

    assert_pool(ptr, ptr + 3 * PAGE, inner);
    assert_pool(sibling, sibling + PAGE, outer.pool);
    mock.fails[MOCK_FREE] = UMF_RESULT_ERROR_UNKNOWN;
    assert_result(umfFree(ptr), UMF_RESULT_ERROR_UNKNOWN);
    assert_pool(ptr, ptr + 3 * PAGE, inner);
    mock.fails[MOCK_FREE] = UMF_RESULT_SUCCESS;
    assert_success(umfFree(ptr));
    assert_int_equal(mock.size, 3 * PAGE);
    assert_null(umfPoolByPtr(ptr));
    assert_success(umfFree(sibling));
    umfPoolDestroy(inner);
    umfMemoryProviderDestroy(provider);
    open_pool_done(&outer);
}

/* Pools are nested as deep as possible. What cannot be recorded is not allocated. */
static void pools_in_pools(void **state)
{
    enum { DEEP = 16 };
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t providers[DEEP + 1] = {mock_new(&mock)};
    umf_memory_pool_handle_t pools[DEEP + 1];
    char *ptr;

    for (unsigned i = 0; i <= DEEP; i++) {
        if (i)
            providers[i] = provider_of_pool(pools[i - 1]);
        pools[i] = proxy_of(providers[i]);
        ptr = umfPoolMalloc(pools[i], 3 * PAGE);
        if (i == DEEP)
            break;
        assert_pool(ptr, ptr + 3 * PAGE, pools[i]);
        assert_success(umfFree(ptr));
        assert_null(umfPoolByPtr(ptr));
    }
    assert_null(ptr);
    assert_result(umfPoolGetLastAllocationError(pools[DEEP]), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    assert_int_equal(mock.bytes, 0);
    for (unsigned i = DEEP + 1; i--;) {
        umfPoolDestroy(pools[i]);
        umfMemoryProviderDestroy(providers[i]);
    }
}

/* A pool that gives out parts of one allocation of its provider, one after another. */
struct bump {
    umf_memory_provider_handle_t provider;
    char *base;
    size_t used;
};

static umf_result_t bump_initialize(umf_memory_provider_handle_t provider, void *params, void **pool)
{
    struct bump *bump = params;
    void *ptr;

    bump->provider = provider;
    assert_success(umfMemoryProviderAlloc(provider, 64 * PAGE, 0, &ptr));
    bump->base = ptr;
    *pool = bump;
    return UMF_RESULT_SUCCESS;
}

static void bump_finalize(void *pool)
{
    struct bump *bump = pool;

    assert_success(umfMemoryProviderFree(bump->provider, bump->base, 64 * PAGE));
}

static void *bump_malloc(void *pool, size_t size, size_t alignment)
{
    struct bump *bump = pool;
    char *ptr = bump->base + bump->used;

    (void)alignment;
    bump->used += size;
    return ptr;
}

static umf_result_t bump_free(void *pool, void *ptr)
{
    (void)pool;
    (void)ptr;
    return UMF_RESULT_SUCCESS;
}

static void parts_in_a_pool(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock), second;
    umf_memory_pool_ops_t ops = *umfProxyPoolOps();
    umf_memory_pool_handle_t outer, inner;
    struct bump bump = {.used = 0};
    char *parts[60];

    ops.initialize = bump_initialize;
    ops.finalize = bump_finalize;
    ops.aligned_malloc = bump_malloc;
    ops.free = bump_free;
    assert_success(umfPoolCreate(&ops, provider, &bump, 0, &outer));
    second = provider_of_pool(outer);
    inner = proxy_of(second);
    for (unsigned i = 0; i < 60; i++)
        parts[i] = umfPoolMalloc(inner, PAGE);
    assert_pool(bump.base, bump.base + 60 * PAGE, inner);
    assert_pool(bump.base + 60 * PAGE, bump.base + 64 * PAGE, outer);
    /* what was freed inside is the outer pool's again */
    for (unsigned i = 0; i < 60; i += 2)
        assert_success(umfFree(parts[i]));
    for (unsigned i = 0; i < 60; i++)
        assert_pool(parts[i], parts[i] + PAGE, i % 2 ? inner : outer);
    /* the outer allocation may be split and merged around what lies in it */
    assert_success(umfMemoryProviderAllocationSplit(bump.provider, bump.base, 64 * PAGE, 10 * PAGE));
    assert_success(umfMemoryProviderAllocationMerge(bump.provider, bump.base, bump.base + 10 * PAGE, 64 * PAGE));
    for (unsigned i = 0; i < 60; i++)
        assert_pool(parts[i], parts[i] + PAGE, i % 2 ? inner : outer);
    for (unsigned i = 1; i < 60; i += 2)
        assert_success(umfFree(parts[i]));
    assert_pool(bump.base, bump.base + 64 * PAGE, outer);
    umfPoolDestroy(inner);
    umfMemoryProviderDestroy(second);
    umfPoolDestroy(outer);
    assert_null(umfPoolByPtr(bump.base));
    umfMemoryProviderDestroy(provider);
}

/* A provider that returns memory that the pool has already: the old allocation is gone. */
static char arena[64];
static size_t next_start;

static umf_result_t arena_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    (void)provider;
    (void)size;
    (void)alignment;
    *ptr = arena + next_start;
    return UMF_RESULT_SUCCESS;
}

static void *give(umf_memory_pool_handle_t pool, size_t start, size_t size)
{
    next_start = start;
    return umfPoolMalloc(pool, size);
}

static void given_back_unseen(void **state)
{
    umf_memory_provider_ops_t ops = mock_ops[MOCK_NULL];
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t first, second;

    ops.alloc = arena_alloc;
    provider = provider_of(&ops);
    first = proxy_of(provider);
    second = proxy_of(provider);
    (void)give(first, 0, 16);
    (void)give(first, 16, 16);
    (void)give(first, 32, 16);
    (void)give(second, 8, 30);
    assert_pool(arena + 8, arena + 38, second);
    assert_null(umfPoolByPtr(arena));
    assert_null(umfPoolByPtr(arena + 40));
    (void)give(first, 0, 64);
    assert_pool(arena, arena + 64, first);
    assert_success(umfFree(arena));
    assert_null(umfPoolByPtr(arena + 20));
    umfPoolDestroy(first);
    umfPoolDestroy(second);
    umfMemoryProviderDestroy(provider);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#define THREADS 4

static atomic_bool stop;

static void *look(void *argument)
{
    struct open_pool *open = argument;
    char *fixed = umfPoolMalloc(open->pool, PAGE);
    size_t wrong = 0;

    while (!stop)
        wrong += umfPoolByPtr(fixed + 77) != open->pool;
    wrong += umfFree(fixed) != UMF_RESULT_SUCCESS;
    return (void *)wrong;
}

static void *change(void *argument)
{
    struct open_pool *open = argument;
    size_t wrong = 0;

    for (unsigned i = 0; i < 200; i++) {
        char *ptr = umfPoolMalloc(open->pool, 64 + i);

        wrong += umfPoolByPtr(ptr + 63) != open->pool;
        wrong += umfFree(ptr) != UMF_RESULT_SUCCESS;
    }
    return (void *)wrong;
}

static void threads_look_and_change(void **state)
{
    struct open_pool open = {.provider = mock_of(MOCK_MALLOC)};
    pthread_t lookers[THREADS], changers[THREADS];
    void *wrong;

    open.pool = proxy_of(open.provider);
    stop = false;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&lookers[i], NULL, look, &open), 0);
        assert_int_equal(pthread_create(&changers[i], NULL, change, &open), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(changers[i], &wrong), 0);
        assert_null(wrong);
    }
    stop = true;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(lookers[i], &wrong), 0);
        assert_null(wrong);
    }
    open_pool_done(&open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_address_within),
        cmocka_unit_test(many_pools),
        cmocka_unit_test(what_is_no_pools),
        cmocka_unit_test(pool_ends),
        cmocka_unit_test(not_tracked),
        cmocka_unit_test(free_fails),
        cmocka_unit_test(frees_the_unknown),
        cmocka_unit_test(frees_parts),
        cmocka_unit_test(splits_and_merges),
        cmocka_unit_test(splits_and_merges_what_is_there),
        cmocka_unit_test(pool_in_pool),
        cmocka_unit_test(pools_in_pools),
        cmocka_unit_test(parts_in_a_pool),
        cmocka_unit_test(given_back_unseen),
        cmocka_unit_test(threads_look_and_change),
    };

    return test_run(tests, NULL, NULL);
}
