/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests to the broker UMF's operations cost on memoryd's memory. */
#include <memclient/umf/umf/pools/pool_disjoint.h>

#include "tests/unit/umf/umf.h"

#define SIZE ((size_t)64 << 10)
enum { MANY = 1000 };

#define assert_costs(wanted, statement) observer_assert_costs(NULL, wanted, statement)

static umf_memory_provider_handle_t make_provider(void)
{
    umf_memory_provider_handle_t provider;

    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider));
    return provider;
}

static void provider_calls(void **state)
{
    umf_memory_provider_handle_t provider = make_provider();
    uint8_t handle[256];
    size_t bytes;
    void *ptr, *opened;

    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &bytes));
    assert_in_range(bytes, 1, sizeof(handle));
    assert_costs(1, assert_success(umfMemoryProviderAlloc(provider, SIZE, 0, &ptr)));
    assert_costs(1, assert_success(umfMemoryProviderGetIPCHandle(provider, ptr, SIZE, handle)));
    assert_costs(0, {
        assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
        assert_success(umfMemoryProviderGetIPCHandle(provider, ptr, SIZE, handle));
    });
    assert_costs(1, assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, &opened)));
    assert_costs(0, assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, SIZE)));
    assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
    assert_costs(1, assert_success(umfMemoryProviderFree(provider, ptr, SIZE)));
    umfMemoryProviderDestroy(provider);
}

static umf_memory_pool_handle_t make_pool(void)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_pool_handle_t pool;

    params.SlabMinSize = 256 << 10;
    params.MaxPoolableSize = 4 << 20;
    params.MinBucketSize = 16;
    assert_success(
        umfPoolCreate(umfDisjointPoolOps(), make_provider(), &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool));
    return pool;
}

/* A slab is one request, its handle is another, and opening it a third, however much is in it. */
static void objects_of_a_slab(void **state)
{
    umf_memory_pool_handle_t pool = make_pool(), consumer = make_pool();
    static umf_ipc_handle_t handles[MANY];
    static void *ptrs[MANY], *opened[MANY];
    size_t bytes;

    assert_costs(1, {
        for (int i = 0; i < MANY; i++)
            assert_non_null(ptrs[i] = umfPoolMalloc(pool, 64));
    });
    assert_costs(1, {
        for (int i = 0; i < MANY; i++)
            assert_success(umfGetIPCHandle(ptrs[i], &handles[i], &bytes));
    });
    assert_costs(1, {
        for (int i = 0; i < MANY; i++)
            assert_success(umfOpenIPCHandle(consumer, handles[i], &opened[i]));
    });
    assert_costs(0, {
        for (int i = 0; i < MANY; i++)
            assert_success(umfPutIPCHandle(handles[i]));
        for (int i = 0; i < MANY; i++)
            assert_success(umfPoolFree(pool, ptrs[i]));
        for (int i = 0; i < MANY; i++)
            assert_non_null(ptrs[i] = umfPoolMalloc(pool, 64));
    });
    for (int i = 0; i < MANY; i++) {
        assert_success(umfCloseIPCHandle(opened[i]));
        assert_success(umfPoolFree(pool, ptrs[i]));
    }
    umfPoolDestroy(consumer);
    umfPoolDestroy(pool);
}

#define TEST(function) cmocka_unit_test_teardown(function, umf_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(provider_calls),
        TEST(objects_of_a_slab),
    };

    return test_run(tests, umf_group_setup, umf_group_teardown);
}
