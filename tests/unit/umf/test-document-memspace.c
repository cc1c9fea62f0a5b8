/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document on memspaces and policies, sentence by sentence, as far as one node shows it; test-memspace has machines
 * with more. Each test quotes the function and what of it is checked.
 */
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memclient/umf/umf.h>

#include "tests/support/memory.h"
#include "tests/unit/umf/result.h"

#define PREFERRED_MANY 5 /* younger than some headers */
#define PAGES 4

/* The first node with memory, and one that is not there. */
static unsigned first_node(void)
{
    return (unsigned)__builtin_ctzl(nodes_with_memory());
}

static umf_memspace_handle_t memspace_of(unsigned node)
{
    umf_memspace_handle_t memspace = NULL;

    assert_success(umfMemspaceCreateFromNumaArray(&node, 1, &memspace));
    return memspace;
}

static umf_mempolicy_handle_t policy_of(umf_mempolicy_membind_t bind)
{
    umf_mempolicy_handle_t policy = NULL;

    assert_success(umfMempolicyCreate(bind, &policy));
    return policy;
}

/* The kernel's mode of memory of such a provider, which is all on that node. */
static int mode_of(umf_const_memspace_handle_t memspace, umf_const_mempolicy_handle_t policy, unsigned node)
{
    umf_memory_provider_handle_t provider = NULL;
    size_t size = PAGES * page_size();
    void *ptr = NULL;
    int mode = -1;

    assert_success(umfMemoryProviderCreateFromMemspace(memspace, policy, &provider));
    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    memset(ptr, 1, size);
    for (unsigned i = 0; i < PAGES; i++)
        assert_int_equal(page_node((char *)ptr + i * page_size()), node);
    assert_ok(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, ptr, MPOL_F_ADDR));
    assert_success(umfMemoryProviderFree(provider, ptr, size));
    umfMemoryProviderDestroy(provider);
    return mode;
}

/* ---- memspaces ------------------------------------------------------------------------------------------- */

/* umfMemspaceCreateFromNumaArray(nodeIds, numIds, hMemspace): UMF_RESULT_SUCCESS: hMemspace is an
 * umf_memspace_handle_t, usable as umf_const_memspace_handle_t, of these nodes; UMF_RESULT_ERROR_INVALID_ARGUMENT:
 * an argument is NULL or numIds is 0. umfMemspaceDestroy(hMemspace): destroys it, and NULL is nothing. */
static void create_from_numa_array(void **state)
{
    unsigned nodeIds[] = {first_node()};
    umf_memspace_handle_t hMemspace = NULL;

    (void)state;
    assert_result(umfMemspaceCreateFromNumaArray(NULL, 1, &hMemspace), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemspaceCreateFromNumaArray(nodeIds, 0, &hMemspace), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemspaceCreateFromNumaArray(nodeIds, 1, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(hMemspace);
    assert_result(umfMemspaceCreateFromNumaArray(nodeIds, 1, &hMemspace), UMF_RESULT_SUCCESS);
    assert_int_equal(mode_of(hMemspace, NULL, first_node()), MPOL_BIND);
    umfMemspaceDestroy(hMemspace);
    umfMemspaceDestroy(NULL);
}

/* umfMemspaceHostAllGet, umfMemspaceHighestCapacityGet: predefined ones; umfMemspaceHighestBandwidthGet,
 * umfMemspaceLowestLatencyGet: a handle, or NULL on failure (no HMAT support). They are the same each time. */
static void predefined(void **state)
{
    umf_const_memspace_handle_t (*const all[])(void) = {umfMemspaceHostAllGet, umfMemspaceHighestCapacityGet,
                                                        umfMemspaceHighestBandwidthGet, umfMemspaceLowestLatencyGet};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        umf_const_memspace_handle_t memspace = all[i]();
        umf_memory_provider_handle_t provider = NULL;
        void *ptr = NULL;

        assert_ptr_equal(all[i](), memspace);
        if (i < 2)
            assert_non_null(memspace);
        if (!memspace)
            continue;
        assert_success(umfMemoryProviderCreateFromMemspace(memspace, NULL, &provider));
        assert_success(umfMemoryProviderAlloc(provider, page_size(), 0, &ptr));
        *(char *)ptr = 1;
        assert_success(umfMemoryProviderFree(provider, ptr, page_size()));
        umfMemoryProviderDestroy(provider);
    }
}

/* umfMemoryProviderCreateFromMemspace(hMemspace, hPolicy, hProvider): UMF_RESULT_SUCCESS: a provider of that
 * memspace and policy; UMF_RESULT_ERROR_INVALID_ARGUMENT: hMemspace or hProvider is NULL. */
static void provider_from_memspace(void **state)
{
    umf_memspace_handle_t hMemspace = memspace_of(first_node());
    umf_mempolicy_handle_t hPolicy = policy_of(UMF_MEMPOLICY_INTERLEAVE);
    umf_memory_provider_handle_t hProvider = NULL;

    (void)state;
    assert_result(umfMemoryProviderCreateFromMemspace(NULL, hPolicy, &hProvider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCreateFromMemspace(hMemspace, hPolicy, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(hProvider);
    assert_result(umfMemoryProviderCreateFromMemspace(hMemspace, hPolicy, &hProvider), UMF_RESULT_SUCCESS);
    assert_string_equal(umfMemoryProviderGetName(hProvider), "OS");
    umfMemoryProviderDestroy(hProvider);
    assert_int_equal(mode_of(hMemspace, hPolicy, first_node()), MPOL_INTERLEAVE);
    assert_success(umfMempolicyDestroy(hPolicy));
    umfMemspaceDestroy(hMemspace);
}

/* umfPoolCreateFromMemspace(hMemspace, hPolicy, hPool): UMF_RESULT_SUCCESS: a pool of that memspace and policy;
 * UMF_RESULT_ERROR_INVALID_ARGUMENT: hMemspace or hPool is NULL. */
static void pool_from_memspace(void **state)
{
    umf_memspace_handle_t hMemspace = memspace_of(first_node());
    umf_mempolicy_handle_t hPolicy = policy_of(UMF_MEMPOLICY_BIND);
    umf_memory_pool_handle_t hPool = NULL;
    char *ptr;
    int mode;

    (void)state;
    assert_result(umfPoolCreateFromMemspace(NULL, hPolicy, &hPool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolCreateFromMemspace(hMemspace, hPolicy, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(hPool);
    assert_result(umfPoolCreateFromMemspace(hMemspace, hPolicy, &hPool), UMF_RESULT_SUCCESS);
    ptr = umfPoolMalloc(hPool, 10000);
    memset(ptr, 1, 10000);
    assert_ptr_equal(umfPoolByPtr(ptr), hPool);
    assert_int_equal(page_node(ptr), first_node());
    assert_ok(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, ptr, MPOL_F_ADDR));
    assert_int_equal(mode, MPOL_BIND);
    assert_success(umfPoolFree(hPool, ptr));
    umfPoolDestroy(hPool);
    assert_success(umfMempolicyDestroy(hPolicy));
    umfMemspaceDestroy(hMemspace);
}

/* ---- policies -------------------------------------------------------------------------------------------- */

/* umf_mempolicy_membind_t: UMF_MEMPOLICY_INTERLEAVE: interleave memory from all memory in memspace; UMF_MEMPOLICY_BIND:
 * bind memory to memspace; UMF_MEMPOLICY_PREFERRED: prefer memory from memspace but fallback to other memory;
 * UMF_MEMPOLICY_SPLIT: split evenly across nodes. */
static void membind(void **state)
{
    const umf_mempolicy_membind_t all[] = {UMF_MEMPOLICY_INTERLEAVE, UMF_MEMPOLICY_BIND, UMF_MEMPOLICY_PREFERRED,
                                           UMF_MEMPOLICY_SPLIT};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        umf_memspace_handle_t memspace = memspace_of(first_node());
        umf_mempolicy_handle_t policy = policy_of(all[i]);
        int mode = mode_of(memspace, policy, first_node());

        assert_true(all[i] == UMF_MEMPOLICY_INTERLEAVE  ? mode == MPOL_INTERLEAVE
                    : all[i] == UMF_MEMPOLICY_PREFERRED ? mode == MPOL_PREFERRED || mode == PREFERRED_MANY
                                                        : mode == MPOL_BIND);
        assert_success(umfMempolicyDestroy(policy));
        umfMemspaceDestroy(memspace);
    }
}

/* umfMempolicyCreate(bind, hPolicy): UMF_RESULT_SUCCESS: hPolicy is an umf_mempolicy_handle_t, usable as
 * umf_const_mempolicy_handle_t; umfMempolicyDestroy(hPolicy): UMF_RESULT_SUCCESS; both
 * UMF_RESULT_ERROR_INVALID_ARGUMENT: hPolicy is NULL, or bind is none. */
static void create_and_destroy(void **state)
{
    umf_mempolicy_handle_t hPolicy = NULL;

    (void)state;
    assert_result(umfMempolicyCreate((umf_mempolicy_membind_t)4, &hPolicy), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(hPolicy);
    assert_result(umfMempolicyCreate(UMF_MEMPOLICY_BIND, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMempolicyCreate(UMF_MEMPOLICY_BIND, &hPolicy), UMF_RESULT_SUCCESS);
    assert_non_null(hPolicy);
    assert_result(umfMempolicyDestroy(hPolicy), UMF_RESULT_SUCCESS);
    assert_success(umfMempolicyDestroy(NULL));
}

/* umfMempolicySetInterleavePartSize(hPolicy, partSize): UMF_RESULT_SUCCESS: size of the parts, by default and with 0
 * it is interleaved by pages; UMF_RESULT_ERROR_INVALID_ARGUMENT: hPolicy is NULL or another policy. */
static void interleave_part_size(void **state)
{
    umf_memspace_handle_t memspace = memspace_of(first_node());
    umf_mempolicy_handle_t hPolicy = policy_of(UMF_MEMPOLICY_INTERLEAVE), other = policy_of(UMF_MEMPOLICY_BIND);
    const size_t partSize = 2 * page_size();

    (void)state;
    assert_int_equal(mode_of(memspace, hPolicy, first_node()), MPOL_INTERLEAVE);
    assert_result(umfMempolicySetInterleavePartSize(hPolicy, partSize), UMF_RESULT_SUCCESS);
    assert_int_equal(mode_of(memspace, hPolicy, first_node()), MPOL_BIND); /* part by part */
    assert_result(umfMempolicySetInterleavePartSize(hPolicy, 0), UMF_RESULT_SUCCESS);
    assert_int_equal(mode_of(memspace, hPolicy, first_node()), MPOL_INTERLEAVE);
    assert_result(umfMempolicySetInterleavePartSize(other, partSize), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMempolicySetInterleavePartSize(NULL, partSize), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMempolicyDestroy(hPolicy));
    assert_success(umfMempolicyDestroy(other));
    umfMemspaceDestroy(memspace);
}

/* umfMempolicySetCustomSplitPartitions(hPolicy, partList, partListLen): UMF_RESULT_SUCCESS: an ordered array of
 * umf_mempolicy_split_partition_t: weight, target; UMF_RESULT_ERROR_INVALID_ARGUMENT: hPolicy is NULL or another
 * policy, or partList is NULL. */
static void custom_split_partitions(void **state)
{
    umf_memspace_handle_t memspace = memspace_of(first_node());
    umf_mempolicy_handle_t hPolicy = policy_of(UMF_MEMPOLICY_SPLIT), other = policy_of(UMF_MEMPOLICY_BIND);
    umf_mempolicy_split_partition_t partList[] = {{.weight = 1, .target = first_node()}, {3, first_node()}};
    const size_t partListLen = 2;
    umf_memory_provider_handle_t provider = NULL;

    (void)state;
    assert_result(umfMempolicySetCustomSplitPartitions(NULL, partList, partListLen), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMempolicySetCustomSplitPartitions(other, partList, partListLen),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMempolicySetCustomSplitPartitions(hPolicy, NULL, partListLen), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMempolicySetCustomSplitPartitions(hPolicy, partList, partListLen), UMF_RESULT_SUCCESS);
    assert_int_equal(mode_of(memspace, hPolicy, first_node()), MPOL_BIND);
    /* a target that is not of the memspace shows that they are used */
    partList[1].target = first_node() + 700;
    assert_success(umfMempolicySetCustomSplitPartitions(hPolicy, partList, partListLen));
    assert_result(umfMemoryProviderCreateFromMemspace(memspace, hPolicy, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(provider);
    assert_success(umfMempolicyDestroy(hPolicy));
    assert_success(umfMempolicyDestroy(other));
    umfMemspaceDestroy(memspace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_from_numa_array), cmocka_unit_test(predefined),
        cmocka_unit_test(provider_from_memspace), cmocka_unit_test(pool_from_memspace),
        cmocka_unit_test(membind),                cmocka_unit_test(create_and_destroy),
        cmocka_unit_test(interleave_part_size),   cmocka_unit_test(custom_split_partitions),
    };

    return test_run(tests, NULL, NULL);
}
