/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs written for UMF's 0.9 releases rely on by default, without MEMORYD_UMF_PROFILE and
 * umfMemorydSetProfile(): the rows of memclient-umf(3)'s table of profiles, and what else upstream's tests assert and
 * its document does not say.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memclient/umf/umf/memspace.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "tests/support/memory.h"
#include "tests/unit/umf/umf.h"

static size_t page;

static umf_memory_provider_handle_t make(umf_memory_visibility_t visibility)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;

    params.visibility = visibility;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    return provider;
}

static char *alloc(umf_memory_provider_handle_t provider, size_t size)
{
    void *ptr = NULL;

    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    assert_non_null(ptr);
    return ptr;
}

/* Memory that no provider has. It stays, whatever the result. */
static char *strange(void)
{
    char *ptr = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(ptr != MAP_FAILED);
    ptr[0] = 's';
    return ptr;
}

static void strange_stays(char *ptr)
{
    assert_int_equal(ptr[0], 's');
    assert_int_equal(munmap(ptr, page), 0);
}

/* ---- the OS provider --------------------------------------------------------------------------------------------- */

static void frees(umf_memory_visibility_t visibility)
{
    umf_memory_provider_handle_t provider = make(visibility);
    char *ptr = alloc(provider, 1024 * page), *other = strange();

    /* fewer bytes than there are, and again what is free already */
    assert_success(umfMemoryProviderFree(provider, ptr, 1024));
    assert_success(umfMemoryProviderFree(provider, ptr, 1024));
    assert_success(umfMemoryProviderFree(provider, ptr, 1024 * page));
    assert_success(umfMemoryProviderFree(provider, ptr, 1024 * page));
    assert_success(umfMemoryProviderFree(provider, other, page));
    assert_native(provider, umfMemoryProviderFree(provider, (void *)1, page), UMF_OS_RESULT_ERROR_FREE_FAILED,
                  "memory deallocation failed");
    strange_stays(other);
    umfMemoryProviderDestroy(provider);
}

static void frees_what_it_does_not_have(void **state)
{
    frees(UMF_MEM_MAP_PRIVATE);
    frees(UMF_MEM_MAP_SHARED);
}

static void purges(umf_memory_visibility_t visibility)
{
    umf_memory_provider_handle_t provider = make(visibility);
    char *ptr = alloc(provider, 2 * page);

    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, page + 64));
    assert_success(umfMemoryProviderPurgeForce(provider, ptr, page + 64));
    assert_native(provider, umfMemoryProviderPurgeLazy(provider, (void *)1, 1), UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED,
                  "lazy purging failed");
    assert_native(provider, umfMemoryProviderPurgeForce(provider, (void *)1, 1), UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED,
                  "force purging failed");
    assert_result(umfMemoryProviderPurgeForce(provider, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, 2 * page));
    umfMemoryProviderDestroy(provider);
}

static void purges_what_are_no_whole_pages(void **state)
{
    purges(UMF_MEM_MAP_PRIVATE);
    purges(UMF_MEM_MAP_SHARED);
}

static void private_memory_has_no_handles(void **state)
{
    umf_memory_provider_handle_t provider = make(UMF_MEM_MAP_PRIVATE);
    umf_memory_pool_handle_t pool;
    umf_ipc_handle_t handle;
    char data[1024];
    size_t size = 0;
    void *ptr;

    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &size));
    assert_in_range(size, 1, sizeof(data));
    ptr = alloc(provider, page);
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr, page, data), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, page));
    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool));
    ptr = umfPoolMalloc(pool, page);
    assert_non_null(ptr);
    assert_success(umfPoolGetIPCHandleSize(pool, &size));
    assert_result(umfGetIPCHandle(ptr, &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfPoolFree(pool, ptr));
    umfPoolDestroy(pool);
}

static void splits_and_closes_anything(void **state)
{
    umf_memory_provider_handle_t provider = make(UMF_MEM_MAP_PRIVATE), shared = make(UMF_MEM_MAP_SHARED);
    char *other = strange();

    assert_success(umfMemoryProviderAllocationSplit(provider, other, page, 64));
    assert_success(umfMemoryProviderAllocationMerge(provider, other, other + 64, page));
    assert_success(umfMemoryProviderCloseIPCHandle(shared, other, 8));
    strange_stays(other);
    umfMemoryProviderDestroy(provider);
    umfMemoryProviderDestroy(shared);
}

/* For any size, and whatever huge pages the machine has. */
static void recommends_the_page(void **state)
{
    umf_memory_provider_handle_t provider = make(UMF_MEM_MAP_PRIVATE);

    for (size_t size = 0; size < (size_t)1 << 40; size = 4 * size + 1) {
        size_t recommended = 0;

        assert_success(umfMemoryProviderGetRecommendedPageSize(provider, size, &recommended));
        assert_int_equal(recommended, page);
    }
    umfMemoryProviderDestroy(provider);
}

static umf_result_t create(umf_numa_mode_t mode, unsigned weight, unsigned target)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_numa_split_partition_t partition = {.weight = weight, .target = target};
    umf_memory_provider_handle_t provider;
    unsigned node = 0;
    umf_result_t result;

    params.numa_mode = mode;
    params.numa_list = &node;
    params.numa_list_len = 1;
    params.partitions = &partition;
    params.partitions_len = 1;
    result = umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider);
    if (result == UMF_RESULT_SUCCESS)
        umfMemoryProviderDestroy(provider);
    return result;
}

/* Partitions are used in one mode, and checked in all. */
static void looks_at_partitions(void **state)
{
    static const umf_numa_mode_t modes[] = {UMF_NUMA_MODE_BIND, UMF_NUMA_MODE_INTERLEAVE, UMF_NUMA_MODE_PREFERRED,
                                            UMF_NUMA_MODE_SPLIT};
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_numa_split_partition_t partition = {.weight = 1, .target = 0};
    umf_memory_provider_handle_t provider;

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_success(create(modes[i], 1, 0));
        assert_result(create(modes[i], 0, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(create(modes[i], 1, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    /* there is no list of nodes for it to be in */
    params.partitions = &partition;
    params.partitions_len = 1;
    assert_result(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* A success clears neither the last failed provider nor the native error, but a pool's last error. */
static void errors_last(void **state)
{
    umf_memory_provider_handle_t provider = make(UMF_MEM_MAP_PRIVATE);
    umf_memory_pool_handle_t pool;
    const char *text = NULL;
    int32_t number = 0;
    void *ptr = NULL;

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_NONE, &pool));
    assert_null(umfPoolMalloc(pool, SIZE_MAX));
    assert_result(umfPoolGetLastAllocationError(pool), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    ptr = umfPoolMalloc(pool, page);
    assert_non_null(ptr);
    assert_success(umfPoolGetLastAllocationError(pool));
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);
    umfMemoryProviderGetLastNativeError(provider, &text, &number);
    assert_int_equal(number, UMF_OS_RESULT_ERROR_ALLOC_FAILED);
    assert_int_equal(strncmp(text, "memory allocation failed", 24), 0);
    assert_success(umfPoolFree(pool, ptr));
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

static void policies_that_are_none_may_be_destroyed(void **state)
{
    assert_success(umfMempolicyDestroy(NULL));
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

/* Upstream has no such provider, so no program relies on mistakes that go unnoticed. */
static void the_memoryd_provider_keeps_to_the_document(void **state)
{
    umf_memory_provider_handle_t provider;
    char *other = strange(), *ptr;

    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider));
    ptr = alloc(provider, 2 * page);
    assert_result(umfMemoryProviderPurgeForce(provider, ptr, page + 64), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, 2 * page));
    assert_result(umfMemoryProviderFree(provider, ptr, 2 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderFree(provider, other, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, other, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    strange_stays(other);
    umfMemoryProviderDestroy(provider);
}

static int nothing_left(void **state)
{
    observer_expect_nothing();
    return 0;
}

int main(void)
{
#define TEST(function) cmocka_unit_test_teardown(function, nothing_left)
    const struct CMUnitTest tests[] = {
        TEST(frees_what_it_does_not_have),
        TEST(purges_what_are_no_whole_pages),
        TEST(private_memory_has_no_handles),
        TEST(splits_and_closes_anything),
        TEST(recommends_the_page),
        TEST(looks_at_partitions),
        TEST(errors_last),
        TEST(policies_that_are_none_may_be_destroyed),
        TEST(the_memoryd_provider_keeps_to_the_document),
    };

    page = (size_t)page_size();
    unsetenv("MEMORYD_UMF_PROFILE");
    return test_run(tests, observer_group_setup, observer_group_teardown);
}
