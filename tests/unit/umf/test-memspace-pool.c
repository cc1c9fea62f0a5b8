/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of memspaces: their allocations are on the nodes that memspace and policy say, with any allocator. The program
 * runs itself again without TBB to get the next one.
 */
#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memclient/umf/umf.h>

#include "tests/support/files.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/unit/umf/again.h"

#define OBJECTS 300
#define TBB     "libtbbmalloc.so.2"

static const size_t sizes[] = {1, 8, 100, 1000, 4096, 5000, 70000, 300000};

static size_t size_of(unsigned object)
{
    return sizes[object % (sizeof(sizes) / sizeof(sizes[0]))];
}

static umf_memory_pool_handle_t pool_of(umf_const_memspace_handle_t memspace, umf_const_mempolicy_handle_t policy)
{
    umf_memory_provider_handle_t provider = NULL;
    umf_memory_pool_handle_t pool = NULL;

    assert_int_equal(umfPoolCreateFromMemspace(memspace, policy, &pool), UMF_RESULT_SUCCESS);
    assert_non_null(pool);
    assert_int_equal(umfPoolGetMemoryProvider(pool, &provider), UMF_RESULT_SUCCESS);
    assert_string_equal(umfMemoryProviderGetName(provider), "OS");
    return pool;
}

/* Writes and reads objects of many sizes, and checks that none is on a node outside the mask. */
static void use(umf_memory_pool_handle_t pool, unsigned long nodes)
{
    unsigned char *objects[OBJECTS];

    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i] = umfPoolMalloc(pool, size_of(i));
        assert_non_null(objects[i]);
        assert_ptr_equal(umfPoolByPtr(objects[i] + size_of(i) - 1), pool);
        memset(objects[i], (int)i, size_of(i));
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        assert_int_equal(objects[i][0], i % 256);
        assert_int_equal(objects[i][size_of(i) - 1], i % 256);
        for (size_t at = 0; at < size_of(i); at += page_size())
            assert_true(nodes >> page_node(objects[i] + at) & 1);
        assert_int_equal(i % 2 ? umfFree(objects[i]) : umfPoolFree(pool, objects[i]), UMF_RESULT_SUCCESS);
    }
}

/* umfPoolCreateFromMemspace: TBB's allocator if it is installed, which nothing else here has loaded. */
static void the_scalable_pool_comes_first(void **state)
{
    umf_memory_pool_handle_t pool = pool_of(umfMemspaceHostAllGet(), NULL);
    void *loaded = dlopen(TBB, RTLD_LAZY | RTLD_NOLOAD), *there = dlopen(TBB, RTLD_LAZY | RTLD_LOCAL);

    assert_int_equal(loaded != NULL, there != NULL);
    if (there) {
        (void)dlclose(loaded);
        (void)dlclose(there);
    }
    umfPoolDestroy(pool);
}

static void no_arguments(void **state)
{
    umf_memory_pool_handle_t pool = NULL;

    assert_int_equal(umfPoolCreateFromMemspace(NULL, NULL, &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(pool);
    assert_int_equal(umfPoolCreateFromMemspace(umfMemspaceHostAllGet(), NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* A mistake in the policy is reported, and nothing is made. */
static void a_policy_for_other_nodes(void **state)
{
    umf_mempolicy_split_partition_t nowhere = {1, 1000};
    umf_mempolicy_handle_t policy;
    umf_memory_pool_handle_t pool = NULL;

    assert_int_equal(umfMempolicyCreate(UMF_MEMPOLICY_SPLIT, &policy), UMF_RESULT_SUCCESS);
    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, &nowhere, 1), UMF_RESULT_SUCCESS);
    assert_int_equal(umfPoolCreateFromMemspace(umfMemspaceHostAllGet(), policy, &pool),
                     UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(pool);
    assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
}

static void predefined_memspaces(void **state)
{
    umf_const_memspace_handle_t memspaces[] = {
        umfMemspaceHostAllGet(),
        umfMemspaceHighestCapacityGet(),
        umfMemspaceHighestBandwidthGet(),
        umfMemspaceLowestLatencyGet(),
    };

    for (unsigned i = 0; i < sizeof(memspaces) / sizeof(memspaces[0]); i++) {
        umf_memory_pool_handle_t pool;

        if (!memspaces[i])
            continue; /* this machine has no HMAT */
        pool = pool_of(memspaces[i], NULL);
        use(pool, nodes_with_memory());
        umfPoolDestroy(pool);
    }
}

/* umfPoolCreateFromMemspace, hPolicy */
static void each_policy(void **state)
{
    for (unsigned bind = UMF_MEMPOLICY_INTERLEAVE; bind <= UMF_MEMPOLICY_SPLIT; bind++) {
        umf_mempolicy_handle_t policy;
        umf_memory_pool_handle_t pool;

        assert_int_equal(umfMempolicyCreate((umf_mempolicy_membind_t)bind, &policy), UMF_RESULT_SUCCESS);
        pool = pool_of(umfMemspaceHostAllGet(), policy);
        assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
        use(pool, nodes_with_memory());
        umfPoolDestroy(pool);
    }
}

/* umfPoolCreateFromMemspace, hMemspace, hPool */
static void bound_to_each_node(void **state)
{
    unsigned long nodes = nodes_with_memory();

    for (unsigned node = 0; node < NODES_MAX; node++) {
        umf_memspace_handle_t memspace;
        umf_mempolicy_handle_t policy;
        umf_memory_pool_handle_t pool;
        void *ptr;
        int mode;

        if (!(nodes >> node & 1))
            continue;
        assert_int_equal(umfMemspaceCreateFromNumaArray(&node, 1, &memspace), UMF_RESULT_SUCCESS);
        assert_int_equal(umfMempolicyCreate(UMF_MEMPOLICY_BIND, &policy), UMF_RESULT_SUCCESS);
        for (unsigned by_policy = 0; by_policy < 2; by_policy++) {
            pool = pool_of(memspace, by_policy ? policy : NULL);
            use(pool, 1UL << node);
            ptr = umfPoolMalloc(pool, 10000);
            assert_non_null(ptr);
            assert_int_equal(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, ptr, MPOL_F_ADDR), 0);
            assert_int_equal(mode, MPOL_BIND);
            assert_int_equal(umfPoolFree(pool, ptr), UMF_RESULT_SUCCESS);
            umfPoolDestroy(pool);
        }
        umfMemspaceDestroy(memspace);
        assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
    }
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* umfPoolCreateFromMemspace: jemalloc, or else the disjoint pool, where TBB is not there. */
static void without_tbb(void **state)
{
    files_put(TBB, "this is no library\n");
    assert_int_equal(run_again(files_root, "again"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scalable_pool_comes_first),
        cmocka_unit_test(no_arguments),
        cmocka_unit_test(a_policy_for_other_nodes),
        cmocka_unit_test(predefined_memspaces),
        cmocka_unit_test(each_policy),
        cmocka_unit_test(bound_to_each_node),
    };
    const struct CMUnitTest again[] = {
        cmocka_unit_test_setup_teardown(without_tbb, files_set_up, files_clean_up),
    };
    int status = test_run(tests, NULL, NULL);

    (void)argv;
    if (argc > 1 || status)
        return status;
    return test_run(again, NULL, NULL);
}
