/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSA_STATUS_ERROR_REFCOUNT_OVERFLOW of hsa_init: it was called INT32_MAX times. The process ends with that, since
 * counting down again would take as long.
 */
#include "tests/unit/hsa/hsa.h"

static void overflows(void **state)
{
    for (int32_t n = 1; n < INT32_MAX; n++)
        if (hsa_init())
            fail_msg("the %dth call failed", n + 1);
    for (unsigned i = 0; i < 3; i++)
        assert_status(hsa_init(), HSA_STATUS_ERROR_REFCOUNT_OVERFLOW);
    assert_success(hsa_shut_down());
    assert_success(hsa_init());
    assert_status(hsa_init(), HSA_STATUS_ERROR_REFCOUNT_OVERFLOW);
}

static int stop_broker(void **state)
{
    broker_stop(&observed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(overflows)};

    return test_run(tests, hsa_group_setup, stop_broker);
}
