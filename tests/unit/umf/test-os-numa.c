/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of the OS provider: which parameters fit together; what the kernel says of private memory; and where the broker
 * puts shared memory on its two nodes, simulated or real. test-os-calls has private memory on several nodes.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/memory.h"
#include "tests/unit/umf/umf.h"

enum { DEFAULT, PREFERRED, BIND, INTERLEAVE, LOCAL, PREFERRED_MANY };

#define OF_ADDRESS      2
#define NODE_OF_ADDRESS 3

static size_t page;
static unsigned both[] = {0, 1}, turned[] = {1, 0}, nowhere[] = {700};

static umf_os_memory_provider_params_t with(umf_numa_mode_t mode, unsigned *nodes, unsigned n)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.numa_mode = mode;
    params.numa_list = nodes;
    params.numa_list_len = n;
    return params;
}

static umf_result_t create(umf_os_memory_provider_params_t params)
{
    umf_memory_provider_handle_t provider = NULL;
    umf_result_t result = umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider);

    assert_int_equal(result == UMF_RESULT_SUCCESS, provider != NULL);
    umfMemoryProviderDestroy(provider);
    return result;
}

static void expect_invalid(umf_os_memory_provider_params_t params)
{
    assert_result(create(params), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    params.visibility = UMF_MEM_MAP_SHARED;
    assert_result(create(params), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* umf_os_memory_provider_params_t, numa_list, numa_list_len, numa_mode */
static void test_parameters(void **state)
{
    umf_numa_split_partition_t none = {0, 0}, missing = {1, 5};
    umf_os_memory_provider_params_t params;

    expect_invalid(with(UMF_NUMA_MODE_DEFAULT, both, 1));
    expect_invalid(with(UMF_NUMA_MODE_LOCAL, both, 1));
    expect_invalid(with(UMF_NUMA_MODE_BIND, NULL, 0));
    expect_invalid(with(UMF_NUMA_MODE_BIND, both, 0));
    expect_invalid(with(UMF_NUMA_MODE_BIND, NULL, 1));
    expect_invalid(with(UMF_NUMA_MODE_INTERLEAVE, NULL, 0));
    expect_invalid(with(UMF_NUMA_MODE_SPLIT, NULL, 0));
    expect_invalid(with((umf_numa_mode_t)6, both, 1));
    assert_success(create(with(UMF_NUMA_MODE_PREFERRED, NULL, 0)));
    assert_success(create(with(UMF_NUMA_MODE_PREFERRED, both, 2)));
    assert_success(create(with(UMF_NUMA_MODE_BIND, nowhere, 1)));
    params = with(UMF_NUMA_MODE_SPLIT, both, 2);
    assert_success(create(params));
    params.partitions_len = 1;
    expect_invalid(params);
    params.partitions = &none;
    expect_invalid(params);
    params.partitions = &missing;
    expect_invalid(params);
}

/* ---- private memory ---------------------------------------------------------------------------------------------- */

static int policy_at(const void *ptr, unsigned long *nodes)
{
    unsigned long mask[16] = {0};
    int mode = -1;

    assert_int_equal(syscall(SYS_get_mempolicy, &mode, mask, 8 * sizeof(mask), ptr, OF_ADDRESS), 0);
    *nodes = mask[0];
    return mode;
}

static int policy_of(umf_os_memory_provider_params_t params, unsigned long *nodes)
{
    umf_memory_provider_handle_t provider;
    int mode, node = -1;
    void *ptr;

    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    assert_success(umfMemoryProviderAlloc(provider, 10 * page, 0, &ptr));
    memset(ptr, 1, 10 * page);
    mode = policy_at(ptr, nodes);
    assert_int_equal(syscall(SYS_get_mempolicy, &node, NULL, 0, ptr, NODE_OF_ADDRESS), 0);
    assert_true(node >= 0);
    assert_success(umfMemoryProviderFree(provider, ptr, 10 * page));
    umfMemoryProviderDestroy(provider);
    return mode;
}

/* umf_numa_mode_t */
static void test_policies(void **state)
{
    umf_os_memory_provider_params_t params;
    unsigned long nodes;
    int mode;

    assert_int_equal(policy_of(with(UMF_NUMA_MODE_DEFAULT, NULL, 0), &nodes), DEFAULT);
    assert_int_equal(nodes, 0);
    assert_int_equal(policy_of(with(UMF_NUMA_MODE_BIND, both, 1), &nodes), BIND);
    assert_int_equal(nodes, 1);
    assert_int_equal(policy_of(with(UMF_NUMA_MODE_INTERLEAVE, both, 1), &nodes), INTERLEAVE);
    assert_int_equal(nodes, 1);
    mode = policy_of(with(UMF_NUMA_MODE_PREFERRED, both, 1), &nodes);
    assert_true(mode == PREFERRED || mode == PREFERRED_MANY);
    assert_int_equal(nodes, 1);
    mode = policy_of(with(UMF_NUMA_MODE_LOCAL, NULL, 0), &nodes);
    assert_true(mode == PREFERRED || mode == PREFERRED_MANY || mode == LOCAL);
    assert_int_equal(policy_of(with(UMF_NUMA_MODE_SPLIT, both, 1), &nodes), BIND);
    params = with(UMF_NUMA_MODE_INTERLEAVE, both, 1);
    params.part_size = 3 * page;
    assert_int_equal(policy_of(params, &nodes), BIND);
}

static void set_policy(int mode, unsigned long nodes)
{
    assert_int_equal(syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL, nodes ? 8 * sizeof(nodes) : 0UL), 0);
}

/* DEFAULT is the thread's policy at the time when a page is touched. */
static void test_default_is_the_threads(void **state)
{
    unsigned long nodes;

    set_policy(BIND, 1);
    /* the mapping has no policy of its own, like any that mmap() makes */
    assert_int_equal(policy_of(with(UMF_NUMA_MODE_DEFAULT, NULL, 0), &nodes), DEFAULT);
    set_policy(DEFAULT, 0);
}

static void expect_bind_fails(umf_os_memory_provider_params_t params)
{
    umf_memory_provider_handle_t provider;
    void *ptr = &ptr;

    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    assert_native(provider, umfMemoryProviderAlloc(provider, page, 0, &ptr), UMF_OS_RESULT_ERROR_BIND_FAILED,
                  "binding memory to NUMA node failed: ");
    assert_ptr_equal(ptr, &ptr);
    umfMemoryProviderDestroy(provider);
}

static void test_no_such_node(void **state)
{
    unsigned beyond[] = {100000};
    umf_os_memory_provider_params_t params;

    expect_bind_fails(with(UMF_NUMA_MODE_BIND, nowhere, 1));
    expect_bind_fails(with(UMF_NUMA_MODE_INTERLEAVE, beyond, 1));
    expect_bind_fails(with(UMF_NUMA_MODE_SPLIT, beyond, 1));
    expect_bind_fails(with(UMF_NUMA_MODE_PREFERRED, beyond, 1));
    params = with(UMF_NUMA_MODE_BIND, nowhere, 1);
    params.visibility = UMF_MEM_MAP_SHARED;
    expect_bind_fails(params);
}

/* Every page is on another node than the one before it, although the kernel could use huge pages: in the machine with
 * two nodes that tests/vm makes. */
static void test_interleaved_pages(void **state)
{
    const size_t n = 1024;
    umf_os_memory_provider_params_t params = with(UMF_NUMA_MODE_INTERLEAVE, both, 2);
    umf_memory_provider_handle_t provider;
    int node, before = -1;
    char *ptr;

    if (!getenv("MEMORYD_VM"))
        return;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    assert_success(umfMemoryProviderAlloc(provider, n * page, 0, (void **)&ptr));
    memset(ptr, 1, n * page);
    for (size_t i = 0; i < n; i++, before = node) {
        assert_int_equal(syscall(SYS_get_mempolicy, &node, NULL, 0, ptr + i * page, NODE_OF_ADDRESS), 0);
        assert_int_not_equal(node, before);
    }
    assert_success(umfMemoryProviderFree(provider, ptr, n * page));
    umfMemoryProviderDestroy(provider);
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

/* If the nodes are the machine's own, the kernel reports for each page what the broker reports for all. */
static void compare_with_kernel(void *ptr, size_t n, const uint64_t bytes[2])
{
    uint64_t found[2] = {0, 0};

    if (!getenv("MEMORYD_VM"))
        return;
    for (size_t i = 0; i < n; i++) {
        int node = -1;

        assert_int_equal(syscall(SYS_get_mempolicy, &node, NULL, 0, (char *)ptr + i * page, NODE_OF_ADDRESS), 0);
        assert_in_range(node, 0, 1);
        found[node] += page;
    }
    assert_memory_equal(found, bytes, sizeof(found));
}

/* What the broker reports for an allocation of n pages: returns its placement, and sets bytes[] to the size on each
 * node. */
static unsigned placement_of(umf_os_memory_provider_params_t params, size_t n, uint64_t bytes[2])
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    umf_memory_provider_handle_t provider;
    struct memclient_buffer *buffer;
    void *ptr;

    params.visibility = UMF_MEM_MAP_SHARED;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    assert_success(umfMemoryProviderAlloc(provider, n * page, 0, &ptr));
    assert_success(umfMemorydGetBuffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_query(buffer, &info), 0);
    bytes[0] = bytes[1] = 0;
    for (uint32_t i = 0; i < info.n_nodes; i++) {
        assert_true(info.nodes[i] < 2);
        bytes[info.nodes[i]] = info.node_bytes[i];
    }
    compare_with_kernel(ptr, n, bytes);
    memclient_buffer_unref(buffer);
    assert_success(umfMemoryProviderFree(provider, ptr, n * page));
    umfMemoryProviderDestroy(provider);
    return info.placement;
}

static void expect_placement(umf_os_memory_provider_params_t params, unsigned placement, size_t n, size_t first,
                             size_t second)
{
    uint64_t bytes[2];

    assert_int_equal(placement_of(params, n, bytes), placement);
    assert_int_equal(bytes[0], first * page);
    assert_int_equal(bytes[1], second * page);
}

/* umf_numa_mode_t; umf_numa_split_partition_t, target */
static void test_shared_placements(void **state)
{
    umf_numa_split_partition_t weights[] = {{3, 1}, {1, 0}}, again[] = {{1, 0}, {2, 1}, {1, 0}};
    umf_os_memory_provider_params_t params;

    expect_placement(with(UMF_NUMA_MODE_BIND, both + 1, 1), MEMCLIENT_PLACEMENT_BIND, 8, 0, 8);
    expect_placement(with(UMF_NUMA_MODE_BIND, turned, 2), MEMCLIENT_PLACEMENT_BIND, 8, 8, 0);
    expect_placement(with(UMF_NUMA_MODE_PREFERRED, both + 1, 1), MEMCLIENT_PLACEMENT_PREFERRED, 8, 0, 8);
    expect_placement(with(UMF_NUMA_MODE_PREFERRED, turned, 2), MEMCLIENT_PLACEMENT_PREFERRED, 8, 8, 0);
    expect_placement(with(UMF_NUMA_MODE_PREFERRED, NULL, 0), MEMCLIENT_PLACEMENT_LOCAL, 8, 8, 0);
    expect_placement(with(UMF_NUMA_MODE_LOCAL, NULL, 0), MEMCLIENT_PLACEMENT_LOCAL, 8, 8, 0);
    expect_placement(with(UMF_NUMA_MODE_INTERLEAVE, both, 2), MEMCLIENT_PLACEMENT_INTERLEAVE, 8, 4, 4);
    expect_placement(with(UMF_NUMA_MODE_INTERLEAVE, turned, 2), MEMCLIENT_PLACEMENT_INTERLEAVE, 7, 3, 4);
    params = with(UMF_NUMA_MODE_INTERLEAVE, both, 2);
    params.part_size = 3 * page - 1;
    expect_placement(params, MEMCLIENT_PLACEMENT_INTERLEAVE, 8, 5, 3);
    expect_placement(with(UMF_NUMA_MODE_SPLIT, both, 2), MEMCLIENT_PLACEMENT_SPLIT, 8, 4, 4);
    params = with(UMF_NUMA_MODE_SPLIT, both, 2);
    params.partitions = weights;
    params.partitions_len = 2;
    expect_placement(params, MEMCLIENT_PLACEMENT_SPLIT, 8, 2, 6);
    /* a node that is listed twice has the weight of both */
    params.partitions = again;
    params.partitions_len = 3;
    expect_placement(params, MEMCLIENT_PLACEMENT_SPLIT, 8, 4, 4);
}

/* The thread's policy is sent to the broker. */
static void test_shared_default(void **state)
{
    const umf_os_memory_provider_params_t params = with(UMF_NUMA_MODE_DEFAULT, NULL, 0);

    expect_placement(params, MEMCLIENT_PLACEMENT_LOCAL, 8, 8, 0);
    set_policy(BIND, 1);
    expect_placement(params, MEMCLIENT_PLACEMENT_BIND, 8, 8, 0);
    set_policy(INTERLEAVE, 1);
    expect_placement(params, MEMCLIENT_PLACEMENT_INTERLEAVE, 8, 8, 0);
    set_policy(PREFERRED, 1);
    expect_placement(params, MEMCLIENT_PLACEMENT_PREFERRED, 8, 8, 0);
    set_policy(DEFAULT, 0);
}

/* Allocations of one part each go to the nodes in turn. */
static void test_shared_interleave_goes_on(void **state)
{
    umf_os_memory_provider_params_t params = with(UMF_NUMA_MODE_INTERLEAVE, both, 2);
    umf_memory_provider_handle_t provider;

    params.visibility = UMF_MEM_MAP_SHARED;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    for (unsigned i = 0; i < 4; i++) {
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
        struct memclient_buffer *buffer;
        void *ptr;

        assert_success(umfMemoryProviderAlloc(provider, page, 0, &ptr));
        assert_success(umfMemorydGetBuffer(ptr, &buffer));
        assert_int_equal(memclient_buffer_query(buffer, &info), 0);
        for (uint32_t k = 0; k < info.n_nodes; k++)
            assert_int_equal(info.node_bytes[k], info.nodes[k] == i % 2 ? page : 0);
        memclient_buffer_unref(buffer);
    }
    umfMemoryProviderDestroy(provider);
}

#define TEST(function) cmocka_unit_test_teardown(function, umf_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_parameters),
        TEST(test_policies),
        TEST(test_default_is_the_threads),
        TEST(test_no_such_node),
        TEST(test_interleaved_pages),
        TEST(test_shared_placements),
        TEST(test_shared_default),
        TEST(test_shared_interleave_goes_on),
    };
    cpu_set_t first;

    /* memory near this thread is on the first node */
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    (void)sched_setaffinity(0, sizeof(first), &first);
    page = (size_t)page_size();
    return test_run(tests, umf_group_setup, umf_group_teardown);
}
