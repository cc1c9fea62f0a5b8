/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: creating them, their settings, and invalid arguments. test-memspace has their effects. */
#include <stdint.h>

#include <memclient/umf/umf.h>

#include "tests/support/test.h"

#define KINDS 4 /* numbers 0 to 3 */

/* umf_const_mempolicy_handle_t; umfMempolicyCreate, bind, hPolicy; umfMempolicyDestroy, hPolicy */
static void every_kind_can_be_made(void **state)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        umf_mempolicy_handle_t policy = NULL;

        assert_int_equal(umfMempolicyCreate((umf_mempolicy_membind_t)kind, &policy), UMF_RESULT_SUCCESS);
        assert_non_null(policy);
        assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
    }
}

static void no_kind(void **state)
{
    umf_mempolicy_handle_t policy = NULL;

    assert_int_equal(umfMempolicyCreate((umf_mempolicy_membind_t)KINDS, &policy), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMempolicyCreate((umf_mempolicy_membind_t)-1, &policy), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(policy);
    assert_int_equal(umfMempolicyCreate(UMF_MEMPOLICY_BIND, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMempolicyDestroy(NULL), UMF_RESULT_SUCCESS);
}

/* Parts belong to interleaving, pieces to splitting. */
static void each_setting_has_its_kind(void **state)
{
    umf_mempolicy_split_partition_t pieces[] = {{1, 0}, {3, 0}};

    for (unsigned kind = 0; kind < KINDS; kind++) {
        umf_mempolicy_handle_t policy;

        assert_int_equal(umfMempolicyCreate((umf_mempolicy_membind_t)kind, &policy), UMF_RESULT_SUCCESS);
        for (size_t size = 0; size < 3 * 4096; size += 4096)
            assert_int_equal(umfMempolicySetInterleavePartSize(policy, size),
                             kind == UMF_MEMPOLICY_INTERLEAVE ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT);
        for (size_t n = 0; n <= 2; n++)
            assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, pieces, n),
                             kind == UMF_MEMPOLICY_SPLIT ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
    }
}

static void no_arguments(void **state)
{
    umf_mempolicy_split_partition_t piece = {1, 0};
    umf_mempolicy_handle_t policy;

    assert_int_equal(umfMempolicySetInterleavePartSize(NULL, 4096), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMempolicySetCustomSplitPartitions(NULL, &piece, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMempolicyCreate(UMF_MEMPOLICY_SPLIT, &policy), UMF_RESULT_SUCCESS);
    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, NULL, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, &piece, SIZE_MAX), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, NULL, 0), UMF_RESULT_SUCCESS);
    assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_can_be_made),
        cmocka_unit_test(no_kind),
        cmocka_unit_test(each_setting_has_its_kind),
        cmocka_unit_test(no_arguments),
    };

    return test_run(tests, NULL, NULL);
}
