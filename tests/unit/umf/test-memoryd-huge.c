/* SPDX-License-Identifier: Apache-2.0 */
/* The memoryd provider with huge pages that the system has set aside: all sizes are multiples of them. */
#include <string.h>

#include "tests/support/memory.h"
#include "tests/support/settings.h"
#include "tests/unit/umf/umf.h"

static void use(umf_memory_provider_handle_t provider, size_t huge)
{
    size_t page = (size_t)page_size(), size = 0;
    uint8_t handle[64];
    char *ptr, *opened;
    void *none;

    assert_success(umfMemoryProviderGetMinPageSize(provider, NULL, &size));
    assert_int_equal(size, huge);
    assert_result(umfMemoryProviderAlloc(provider, huge, huge + page, &none), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderAlloc(provider, huge + 1, page, (void **)&ptr));
    assert_int_equal((uintptr_t)ptr % huge, 0);
    assert_success(umfMemoryProviderGetMinPageSize(provider, ptr, &size));
    assert_int_equal(size, huge);
    memset(ptr, 1, 2 * huge);
    /* they cannot be given back but with the whole; so a lazy purge does nothing */
    assert_result(umfMemoryProviderPurgeForce(provider, ptr, huge), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, huge));
    assert_result(umfMemoryProviderPurgeForce(provider, ptr, page), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderAllocationSplit(provider, ptr, 2 * huge, page), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr, 2 * huge, huge));
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr + page, page, handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderGetIPCHandle(provider, ptr + huge, huge, handle));
    assert_success(umfMemoryProviderFree(provider, ptr, huge));
    assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, (void **)&opened));
    assert_true(opened[0] == 1 && opened[huge - 1] == 1);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, huge));
    assert_success(umfMemoryProviderFree(provider, ptr + huge, huge));
}

/* memclient_umf_params: page_size, of pages that are huge. */
static void test_huge_pages(void **state)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;
    size_t huge = huge_page_size();

    if (!huge)
        test_skip("this kernel has no huge pages");
    settings_huge_pages(huge, 4);
    umf_group_setup(state);
    params.pages = MEMCLIENT_PAGES_HUGETLB;
    params.page_size = huge;
    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &provider));
    use(provider, huge);
    umfMemoryProviderDestroy(provider);
    umf_group_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_settings(test_huge_pages),
    };

    return test_run(tests, NULL, NULL);
}
