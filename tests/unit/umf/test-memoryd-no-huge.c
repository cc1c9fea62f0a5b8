/* SPDX-License-Identifier: Apache-2.0 */
/* The memoryd provider with huge pages of which the system has set aside none. */
#include <string.h>

#include "tests/support/memory.h"
#include "tests/support/settings.h"
#include "tests/unit/umf/umf.h"

static void none_is_set_aside(void **state)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;
    size_t huge = huge_page_size();
    const char *message;
    int32_t error;
    void *ptr;

    if (!huge)
        test_skip("this kernel has no huge pages");
    settings_huge_pages(huge, 0);
    umf_group_setup(state);
    params.pages = MEMCLIENT_PAGES_HUGETLB;
    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &provider));
    assert_result(umfMemoryProviderAlloc(provider, huge, 0, &ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    umfMemoryProviderGetLastNativeError(provider, &message, &error);
    assert_non_null(strstr(message, "huge pages"));
    umfMemoryProviderDestroy(provider);
    umf_group_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_settings(none_is_set_aside),
    };

    return test_run(tests, NULL, NULL);
}
