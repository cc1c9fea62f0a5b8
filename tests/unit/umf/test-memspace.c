/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memspaces, and the providers made of them: the kernel is asked where their memory is, under each policy. Several
 * nodes and an HMAT test everything (make check-vm). On one node pages can only be there, but modes can be checked.
 * test-nodes has other machines.
 */
#include <glob.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "tests/support/memory.h"
#include "tests/support/test.h"

#define MASK_WORDS     (1024 / (8 * sizeof(unsigned long)) + 1)
#define PREFERRED_MANY 5 /* not in older headers */

/* The placement of an address. */
struct placement {
    int mode;
    unsigned long nodes[MASK_WORDS];
};

static struct placement placement_of(void *address)
{
    struct placement placement = {.mode = -1};

    assert_ok(syscall(SYS_get_mempolicy, &placement.mode, placement.nodes, 8 * sizeof(placement.nodes), address,
                      MPOL_F_ADDR));
    return placement;
}

static void assert_same_placement(void *address, void *other)
{
    struct placement a = placement_of(address), b = placement_of(other);

    assert_int_equal(a.mode, b.mode);
    assert_memory_equal(a.nodes, b.nodes, sizeof(a.nodes));
}

/* The nodes with memory, in order. */
struct machine {
    unsigned n;
    unsigned nodes[NODES_MAX];
};

static struct machine this_machine(void)
{
    unsigned long mask = nodes_with_memory();
    struct machine machine = {0};

    for (unsigned node = 0; node < NODES_MAX; node++)
        if (mask & 1UL << node)
            machine.nodes[machine.n++] = node;
    assert_true(machine.n > 0);
    return machine;
}

static umf_memspace_handle_t memspace_of(const unsigned *nodes, size_t n)
{
    unsigned copy[NODES_MAX];
    umf_memspace_handle_t memspace = NULL;

    memcpy(copy, nodes, n * sizeof(*copy));
    assert_int_equal(umfMemspaceCreateFromNumaArray(copy, n, &memspace), UMF_RESULT_SUCCESS);
    assert_non_null(memspace);
    memset(copy, 0xff, sizeof(copy)); /* it was copied */
    return memspace;
}

static umf_memory_provider_handle_t provider_of(umf_const_memspace_handle_t memspace,
                                                umf_const_mempolicy_handle_t policy)
{
    umf_memory_provider_handle_t provider = NULL;

    assert_int_equal(umfMemoryProviderCreateFromMemspace(memspace, policy, &provider), UMF_RESULT_SUCCESS);
    assert_non_null(provider);
    assert_string_equal(umfMemoryProviderGetName(provider), "OS");
    return provider;
}

/* Only the provider knows the policy, which is destroyed. */
static umf_memory_provider_handle_t provider_by(umf_const_memspace_handle_t memspace, umf_mempolicy_handle_t policy)
{
    umf_memory_provider_handle_t provider = provider_of(memspace, policy);

    assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
    return provider;
}

static umf_mempolicy_handle_t policy_of(umf_mempolicy_membind_t bind)
{
    umf_mempolicy_handle_t policy = NULL;

    assert_int_equal(umfMempolicyCreate(bind, &policy), UMF_RESULT_SUCCESS);
    return policy;
}

static char *allocate(umf_memory_provider_handle_t provider, size_t pages)
{
    void *ptr = NULL;

    assert_int_equal(umfMemoryProviderAlloc(provider, pages * page_size(), 0, &ptr), UMF_RESULT_SUCCESS);
    assert_non_null(ptr);
    return ptr;
}

static void release(umf_memory_provider_handle_t provider, char *ptr, size_t pages)
{
    assert_int_equal(umfMemoryProviderFree(provider, ptr, pages * page_size()), UMF_RESULT_SUCCESS);
    umfMemoryProviderDestroy(provider);
}

static void assert_mode(void *address, int mode, const unsigned *nodes, unsigned n)
{
    struct placement placement = placement_of(address);
    unsigned long wanted[MASK_WORDS] = {0};

    for (unsigned i = 0; i < n; i++)
        wanted[nodes[i] / (8 * sizeof(long))] |= 1UL << nodes[i] % (8 * sizeof(long));
    assert_int_equal(placement.mode, mode);
    assert_memory_equal(placement.nodes, wanted, sizeof(wanted));
}

/* The nodes that a memspace's memory is bound to, one bit each. */
static unsigned long nodes_of(umf_const_memspace_handle_t memspace)
{
    umf_memory_provider_handle_t provider = provider_by(memspace, policy_of(UMF_MEMPOLICY_BIND));
    char *ptr = allocate(provider, 1);
    struct placement placement = placement_of(ptr);

    assert_int_equal(placement.mode, MPOL_BIND);
    release(provider, ptr, 1);
    return placement.nodes[0];
}

/* ---- memspaces --------------------------------------------------------------------------------------------------- */

static void no_arguments(void **state)
{
    unsigned node = 0;
    umf_memspace_handle_t memspace = NULL;
    umf_memory_provider_handle_t provider = NULL;

    assert_int_equal(umfMemspaceCreateFromNumaArray(NULL, 1, &memspace), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMemspaceCreateFromNumaArray(&node, 0, &memspace), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMemspaceCreateFromNumaArray(NULL, 0, &memspace), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(memspace);
    assert_int_equal(umfMemspaceCreateFromNumaArray(&node, 1, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemspaceDestroy(NULL);

    assert_int_equal(umfMemoryProviderCreateFromMemspace(NULL, NULL, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(provider);
    assert_int_equal(umfMemoryProviderCreateFromMemspace(umfMemspaceHostAllGet(), NULL, NULL),
                     UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* umfMemspaceDestroy: predefined ones are left alone. */
static void predefined_ones_stay(void **state)
{
    umf_const_memspace_handle_t all = umfMemspaceHostAllGet(), largest = umfMemspaceHighestCapacityGet();

    assert_non_null(all);
    assert_non_null(largest);
    umfMemspaceDestroy((umf_memspace_handle_t)all);
    umfMemspaceDestroy((umf_memspace_handle_t)largest);
    assert_ptr_equal(umfMemspaceHostAllGet(), all);
    assert_ptr_equal(umfMemspaceHighestCapacityGet(), largest);
    assert_int_equal(nodes_of(all), nodes_with_memory());
}

static uint64_t node_bytes(unsigned node)
{
    char path[100], line[200];
    const char *total;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", node);
    file = fopen(path, "re");
    if (!file)
        return 0; /* there is one node then */
    assert_non_null(fgets(line, sizeof(line), file));
    assert_int_equal(fclose(file), 0);
    total = strstr(line, "MemTotal:");
    assert_non_null(total);
    return strtoull(total + strlen("MemTotal:"), NULL, 10);
}

/* umfMemspaceHighestCapacityGet: the largest node. */
static void the_largest_node_has_the_highest_capacity(void **state)
{
    struct machine machine = this_machine();
    unsigned long nodes = nodes_of(umfMemspaceHighestCapacityGet());
    unsigned largest = (unsigned)__builtin_ctzl(nodes);

    assert_int_equal(nodes & (nodes - 1), 0); /* exactly one bit */
    for (unsigned i = 0; i < machine.n; i++)
        assert_true(node_bytes(machine.nodes[i]) <= node_bytes(largest));
}

static bool kernel_tells(const char *quantity)
{
    char pattern[200];
    glob_t found;
    bool tells;

    (void)snprintf(pattern, sizeof(pattern), "/sys/devices/system/node/node*/access*/initiators/read_%s", quantity);
    tells = !glob(pattern, GLOB_NOSORT, NULL, &found);
    globfree(&found);
    return tells;
}

/* umfMemspaceHighestBandwidthGet, umfMemspaceLowestLatencyGet: NULL where the machine does not tell (no HMAT
 * support). In the machine with tiers (see tests/vm/lib.sh), each processor's fastest node of those that are nearest
 * to it. */
static void the_fastest_nodes(void **state)
{
    const char *machine = getenv("MEMORYD_VM");

    assert_int_equal(umfMemspaceHighestBandwidthGet() != NULL, kernel_tells("bandwidth"));
    assert_int_equal(umfMemspaceLowestLatencyGet() != NULL, kernel_tells("latency"));
    assert_ptr_equal(umfMemspaceHighestBandwidthGet(), umfMemspaceHighestBandwidthGet());
    assert_ptr_equal(umfMemspaceLowestLatencyGet(), umfMemspaceLowestLatencyGet());
    if (!machine || strcmp(machine, "tiers") != 0)
        return;
    assert_int_equal(nodes_of(umfMemspaceHighestBandwidthGet()), 1UL << 1 | 1UL << 2);
    assert_int_equal(nodes_of(umfMemspaceLowestLatencyGet()), 1UL << 0 | 1UL << 1);
}

/* ---- without a policy -------------------------------------------------------------------------------------------- */

/* umfMemspaceHostAllGet: all nodes with memory. Memory of all of the host is as the kernel gives it to anybody: the
 * thread's policy holds. */
static void all_of_the_host_is_left_to_the_kernel(void **state)
{
    umf_memory_provider_handle_t provider = provider_of(umfMemspaceHostAllGet(), NULL);
    struct machine machine = this_machine();
    unsigned long mask = 1UL << machine.nodes[machine.n - 1];
    char *ptr = allocate(provider, 2), *other;
    void *plain = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_mapped(plain);
    assert_same_placement(ptr, plain);
    assert_int_equal(placement_of(ptr).mode, MPOL_DEFAULT);
    assert_ok(syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 8 * sizeof(mask)));
    other = allocate(provider, 1);
    *other = 1;
    assert_int_equal(page_node(other), machine.nodes[machine.n - 1]);
    assert_same_placement(other, plain);
    assert_ok(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0));
    assert_int_equal(umfMemoryProviderFree(provider, other, page_size()), UMF_RESULT_SUCCESS);
    release(provider, ptr, 2);
    assert_ok(munmap(plain, page_size()));
}

/* umf_const_memspace_handle_t; umfMemspaceCreateFromNumaArray, nodeIds, numIds, hMemspace, SUCCESS; umfMemspaceDestroy,
 * hMemspace */
static void others_are_bound(void **state)
{
    struct machine machine = this_machine();

    for (unsigned i = 0; i < machine.n; i++) {
        umf_memspace_handle_t memspace = memspace_of(&machine.nodes[i], 1);
        umf_memory_provider_handle_t provider = provider_of(memspace, NULL);
        char *ptr = allocate(provider, 4);

        umfMemspaceDestroy(memspace); /* the provider does not need it */
        assert_mode(ptr, MPOL_BIND, &machine.nodes[i], 1);
        memset(ptr, 1, 4 * page_size());
        for (unsigned page = 0; page < 4; page++)
            assert_int_equal(page_node(ptr + page * page_size()), machine.nodes[i]);
        release(provider, ptr, 4);
    }
}

/* umfMemspaceCreateFromNumaArray: Nodes are not checked when a memspace is made of them; the kernel has none such. */
static void a_node_that_is_not_there(void **state)
{
    unsigned node = 1000;
    umf_memspace_handle_t memspace = memspace_of(&node, 1);
    umf_memory_provider_handle_t provider = provider_of(memspace, NULL);
    const char *message = NULL;
    void *ptr = NULL;
    int32_t code = 0;

    assert_int_equal(umfMemoryProviderAlloc(provider, page_size(), 0, &ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    assert_null(ptr);
    umfMemoryProviderGetLastNativeError(provider, &message, &code);
    assert_int_equal(code, UMF_OS_RESULT_ERROR_BIND_FAILED);
    umfMemoryProviderDestroy(provider);
    umfMemspaceDestroy(memspace);
}

/* ---- policies ---------------------------------------------------------------------------------------------------- */

/* umfMemoryProviderCreateFromMemspace, hMemspace, hPolicy, hProvider, SUCCESS: umf_mempolicy_membind_t:
 * UMF_MEMPOLICY_INTERLEAVE: interleaves memory from all memory in the memspace; UMF_MEMPOLICY_BIND: binds memory to the
 * memspace; UMF_MEMPOLICY_PREFERRED: prefers memory of the memspace, but falls back to others. umfMempolicyDestroy:
 * providers go on. */
static void each_policy_is_the_kernels(void **state)
{
    struct machine machine = this_machine();
    umf_memspace_handle_t memspaces[] = {NULL, memspace_of(machine.nodes, machine.n)};

    for (unsigned i = 0; i < 2; i++) {
        umf_const_memspace_handle_t memspace = memspaces[i] ? memspaces[i] : umfMemspaceHostAllGet();
        umf_memory_provider_handle_t provider = provider_by(memspace, policy_of(UMF_MEMPOLICY_BIND));
        char *ptr = allocate(provider, 1);
        int mode;

        assert_mode(ptr, MPOL_BIND, machine.nodes, machine.n);
        release(provider, ptr, 1);

        provider = provider_by(memspace, policy_of(UMF_MEMPOLICY_INTERLEAVE));
        ptr = allocate(provider, 1);
        assert_mode(ptr, MPOL_INTERLEAVE, machine.nodes, machine.n);
        release(provider, ptr, 1);

        provider = provider_by(memspace, policy_of(UMF_MEMPOLICY_PREFERRED));
        ptr = allocate(provider, 1);
        mode = placement_of(ptr).mode;
        assert_true(mode == MPOL_PREFERRED || mode == PREFERRED_MANY);
        memset(ptr, 1, page_size());
        release(provider, ptr, 1);
    }
    umfMemspaceDestroy(memspaces[1]);
}

/* Checks the nodes of these pages, which are written to first. */
static void assert_pages(char *ptr, const unsigned *wanted, size_t n)
{
    memset(ptr, 1, n * page_size());
    for (size_t page = 0; page < n; page++)
        assert_int_equal(page_node(ptr + page * page_size()), wanted[page]);
}

/* umfMempolicySetInterleavePartSize, hPolicy, partSize: umfMempolicySetInterleavePartSize: parts in turn on each node;
 * the last call counts. */
static void interleaving_in_parts(void **state)
{
    struct machine machine = this_machine();
    umf_memspace_handle_t memspace = memspace_of(machine.nodes, machine.n);
    umf_mempolicy_handle_t policy = policy_of(UMF_MEMPOLICY_INTERLEAVE);
    umf_memory_provider_handle_t provider;
    unsigned wanted[12];
    char *ptr;

    assert_int_equal(umfMempolicySetInterleavePartSize(policy, 3 * page_size()), UMF_RESULT_SUCCESS);
    assert_int_equal(umfMempolicySetInterleavePartSize(policy, 0), UMF_RESULT_SUCCESS); /* by pages, as by default */
    provider = provider_of(memspace, policy);
    ptr = allocate(provider, 1);
    assert_int_equal(placement_of(ptr).mode, MPOL_INTERLEAVE);
    release(provider, ptr, 1);
    assert_int_equal(umfMempolicySetInterleavePartSize(policy, 2 * page_size()), UMF_RESULT_SUCCESS); /* the last */
    provider = provider_by(memspace, policy);
    for (unsigned page = 0; page < 12; page++)
        wanted[page] = machine.nodes[page / 2 % machine.n];
    ptr = allocate(provider, 12);
    assert_pages(ptr, wanted, 12);
    assert_int_equal(placement_of(ptr).mode, MPOL_BIND);
    release(provider, ptr, 12);
    umfMemspaceDestroy(memspace);
}

/* umf_mempolicy_membind_t: UMF_MEMPOLICY_SPLIT: evenly across nodes. */
static void splitting_in_equal_pieces(void **state)
{
    struct machine machine = this_machine();
    umf_memspace_handle_t memspace = memspace_of(machine.nodes, machine.n);
    umf_memory_provider_handle_t provider = provider_by(memspace, policy_of(UMF_MEMPOLICY_SPLIT));
    unsigned wanted[4 * NODES_MAX];
    char *ptr = allocate(provider, 4 * machine.n);

    for (unsigned page = 0; page < 4 * machine.n; page++)
        wanted[page] = machine.nodes[page / 4];
    assert_pages(ptr, wanted, 4 * machine.n);
    assert_int_equal(placement_of(ptr).mode, MPOL_BIND);
    release(provider, ptr, 4 * machine.n);
    umfMemspaceDestroy(memspace);
}

/* umfMempolicySetCustomSplitPartitions, hPolicy, partList, partListLen: umf_mempolicy_membind_t: UMF_MEMPOLICY_SPLIT
 * with umf_mempolicy_split_partition_t: weight, target; umfMempolicySetCustomSplitPartitions: They are copied: what
 * becomes of the array afterwards does not matter. Their order is that of the array. */
static void splitting_in_pieces_of_ones_own(void **state)
{
    struct machine machine = this_machine();
    unsigned last = machine.nodes[machine.n - 1], first = machine.nodes[0];
    umf_memspace_handle_t memspace = memspace_of(machine.nodes, machine.n);
    umf_mempolicy_handle_t policy = policy_of(UMF_MEMPOLICY_SPLIT);
    umf_mempolicy_split_partition_t pieces[] = {{1, last}, {2, first}, {1, last}};
    const unsigned wanted[] = {last, last, first, first, first, first, last, last};
    umf_memory_provider_handle_t provider;
    char *ptr;

    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, pieces, 3), UMF_RESULT_SUCCESS);
    memset(pieces, 0, sizeof(pieces));
    provider = provider_of(memspace, policy);
    ptr = allocate(provider, 8);
    assert_pages(ptr, wanted, 8);
    release(provider, ptr, 8);
    /* no pieces: equal ones again */
    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, NULL, 0), UMF_RESULT_SUCCESS);
    provider = provider_by(memspace, policy);
    ptr = allocate(provider, machine.n);
    assert_pages(ptr, machine.nodes, machine.n);
    release(provider, ptr, machine.n);
    umfMemspaceDestroy(memspace);
}

static void pieces_that_are_none(void **state)
{
    struct machine machine = this_machine();
    umf_mempolicy_split_partition_t nowhere = {1, 1000}, nothing = {0, machine.nodes[0]};
    umf_memspace_handle_t memspace = memspace_of(machine.nodes, machine.n);
    umf_mempolicy_handle_t policy = policy_of(UMF_MEMPOLICY_SPLIT);
    umf_memory_provider_handle_t provider = NULL;

    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, &nowhere, 1), UMF_RESULT_SUCCESS);
    assert_int_equal(umfMemoryProviderCreateFromMemspace(memspace, policy, &provider),
                     UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMempolicySetCustomSplitPartitions(policy, &nothing, 1), UMF_RESULT_SUCCESS);
    assert_int_equal(umfMemoryProviderCreateFromMemspace(memspace, policy, &provider),
                     UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(provider);
    assert_int_equal(umfMempolicyDestroy(policy), UMF_RESULT_SUCCESS);
    umfMemspaceDestroy(memspace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_arguments),
        cmocka_unit_test(predefined_ones_stay),
        cmocka_unit_test(the_largest_node_has_the_highest_capacity),
        cmocka_unit_test(the_fastest_nodes),
        cmocka_unit_test(all_of_the_host_is_left_to_the_kernel),
        cmocka_unit_test(others_are_bound),
        cmocka_unit_test(a_node_that_is_not_there),
        cmocka_unit_test(each_policy_is_the_kernels),
        cmocka_unit_test(interleaving_in_parts),
        cmocka_unit_test(splitting_in_equal_pieces),
        cmocka_unit_test(splitting_in_pieces_of_ones_own),
        cmocka_unit_test(pieces_that_are_none),
    };

    return test_run(tests, NULL, NULL);
}
