/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of huge pages that the broker's configuration declares are further pools of their agent, behind the usual. */
#include "tests/unit/hsa/ask.h"

#include "tests/support/settings.h"

static hsa_status_t visit_pool(hsa_amd_memory_pool_t pool, void *data)
{
    return visit(pool.handle, data);
}

static hsa_status_t visit_region(hsa_region_t region, void *data)
{
    return visit(region.handle, data);
}

static size_t size_of(uint64_t pool, hsa_amd_memory_pool_info_t attribute)
{
    size_t size;

    assert_success(ask_pool(pool, attribute, &size));
    return size;
}

/* Everything that is asked of it, its ends and its granule. */
static void use(uint64_t handle)
{
    const hsa_amd_memory_pool_t pool = {handle};
    size_t huge = huge_page_size(), before = size_of(handle, HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE);
    uint32_t flags;
    void *ptr;

    assert_success(ask_pool(handle, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    assert_int_equal(flags, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
    assert_int_equal(size_of(handle, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE), huge);
    assert_int_equal(size_of(handle, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT), huge);
    assert_in_range(size_of(handle, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE), huge, SIZE_MAX);
    assert_in_range(before, huge, size_of(handle, HSA_AMD_MEMORY_POOL_INFO_SIZE));
    assert_success(hsa_amd_memory_pool_allocate(pool, 1, 0, &ptr));
    assert_int_equal((uintptr_t)ptr % huge, 0);
    *(volatile char *)ptr = 1;
    assert_int_equal(size_of(handle, HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE), before - huge);
    /* an owner it may have; its pages stay */
    assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RO));
    assert_int_equal(*(volatile char *)ptr, 1);
    assert_success(hsa_amd_memory_pool_free(ptr));
    assert_int_equal(size_of(handle, HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE), before);
    assert_status(hsa_amd_memory_pool_allocate(pool, before + 1, 0, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

static void declared(void **state)
{
    struct visit of_first = {0}, of_second = {0}, all = {0};

    settings_huge_pages(huge_page_size(), 4);
    hsa_config = "[pool wanted]\nnodes = 0\npages = hugetlb\n"
                 "[pool small]\nnodes = 1\npages = base\n";
    hsa_group_setup(state);
    assert_success(hsa_amd_agent_iterate_memory_pools(agents[0], visit_pool, &of_first));
    assert_success(hsa_amd_agent_iterate_memory_pools(agents[1], visit_pool, &of_second));
    assert_int_equal(of_first.calls, POOLS + 1);
    assert_int_equal(of_second.calls, POOLS);
    use(of_first.seen[POOLS]);
    assert_success(hsa_agent_iterate_regions(agents[0], visit_region, &all));
    assert_int_equal(all.calls, POOLS + 1 + 3 + POOLS);
    assert_int_equal(all.seen[POOLS], of_first.seen[POOLS]);
    hsa_group_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_with_settings(declared)};

    return test_run(tests, NULL, NULL);
}
