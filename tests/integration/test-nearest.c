/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of the nodes that a placement permits the caller's own comes first, and then the nearest to it: through every
 * interface, from every processor, for every choice of nodes. On a machine with one node the broker simulates four,
 * and the caller is on the first of them; where there are several (make check-vm), the kernel is asked as well.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/nbla.h>
#include <memclient/svm.h>
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/memspace.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "tests/integration/observer.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"

#define SIZE ((size_t)64 << 10)

struct machine_node {
    bool exists;
    bool has_cpus;
    bool simulated;
    size_t n_distances;
    uint32_t distances[NODES_MAX];
};

struct node_list {
    size_t n;
    uint32_t node[NODES_MAX];
};

static struct machine_node machine[NODES_MAX];
static struct node_list all; /* the highest number first: so an order by number is none by distance */
static bool simulated;

static int note_node(const struct memclient_node_info *node, void *data)
{
    struct machine_node *mine = &machine[node->node];

    (void)data;
    *mine = (struct machine_node){.exists = node->total, .has_cpus = node->has_cpus, .n_distances = node->n_distances};
    memcpy(mine->distances, node->distances, node->n_distances * sizeof(*node->distances));
    simulated |= node->simulated;
    return 0;
}

static uint32_t distance(uint32_t from, uint32_t to)
{
    assert_true(to < machine[from].n_distances);
    return from == to ? 0 : machine[from].distances[to];
}

static bool is_nearer(uint32_t a, uint32_t b, uint32_t from)
{
    return distance(from, a) < distance(from, b) ||
           (distance(from, a) == distance(from, b) && machine[a].has_cpus && !machine[b].has_cpus);
}

/* The one that is to be taken of the list, for a caller on this node. */
static uint32_t nearest(const struct node_list *list, uint32_t from)
{
    uint32_t best = list->node[0];

    for (size_t i = 1; i < list->n; i++)
        if (is_nearer(list->node[i], best, from))
            best = list->node[i];
    return best;
}

/* Where the memory there lies, as the broker has it, and the kernel. */
static uint32_t node_of(const void *at)
{
    struct memclient_address_info address = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    assert_int_equal(memclient_address_query(at, &address), 0);
    assert_int_equal(memclient_buffer_query(address.buffer, &info), 0);
    assert_int_equal(info.n_nodes, 1);
    if (!simulated) {
        volatile char touched = *(const char *)at;

        (void)touched;
        assert_int_equal(page_node(at), info.nodes[0]);
    }
    return info.nodes[0];
}

/* ---- the ways ---------------------------------------------------------------------------------------------------- */

/* Each allocates on the nodes of the list, or without any if that is empty, and says where that was. */
typedef uint32_t allocate_fn(const struct node_list *list);

static uint32_t native(const struct node_list *list, unsigned placement)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    const uint64_t sizes[] = {SIZE, SIZE};
    struct memclient_buffer *bufs[2];
    uint32_t node[2];

    options.nodes = list->node;
    options.n_nodes = list->n;
    options.placement = placement;
    assert_int_equal(memclient_alloc_many(NULL, 2, sizes, &options, bufs), 0);
    for (unsigned i = 0; i < 2; i++) {
        void *at;

        assert_int_equal(memclient_map(bufs[i], NULL, &at), 0);
        memset(at, 1, SIZE);
        node[i] = node_of(at);
        assert_int_equal(memclient_unmap(NULL, at, 0), 0);
        memclient_buffer_unref(bufs[i]);
    }
    return node[0] == node[1] ? node[0] : NODES_MAX; /* no node: they are apart */
}

static uint32_t native_pool(const struct node_list *list)
{
    return native(list, MEMCLIENT_PLACEMENT_POOL);
}

static uint32_t native_bind(const struct node_list *list)
{
    return native(list, MEMCLIENT_PLACEMENT_BIND);
}

static uint32_t native_preferred(const struct node_list *list)
{
    return native(list, MEMCLIENT_PLACEMENT_PREFERRED);
}

static uint32_t native_local(const struct node_list *list)
{
    return native(list, MEMCLIENT_PLACEMENT_LOCAL);
}

static uint32_t take_of(umf_memory_provider_handle_t provider, bool shared)
{
    uint32_t node;
    void *at;

    assert_int_equal(umfMemoryProviderAlloc(provider, SIZE, 0, &at), UMF_RESULT_SUCCESS);
    memset(at, 1, SIZE);
    node = shared ? node_of(at) : (uint32_t)page_node(at);
    assert_int_equal(umfMemoryProviderFree(provider, at, SIZE), UMF_RESULT_SUCCESS);
    umfMemoryProviderDestroy(provider);
    return node;
}

static uint32_t umf_os(const struct node_list *list, umf_numa_mode_t mode)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;

    params.visibility = UMF_MEM_MAP_SHARED;
    params.numa_mode = mode;
    params.numa_list = (unsigned *)(uintptr_t)list->node;
    params.numa_list_len = (unsigned)list->n;
    assert_int_equal(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider), UMF_RESULT_SUCCESS);
    return take_of(provider, true);
}

static uint32_t umf_os_default(const struct node_list *list)
{
    return umf_os(list, UMF_NUMA_MODE_DEFAULT);
}

static uint32_t umf_os_local(const struct node_list *list)
{
    return umf_os(list, UMF_NUMA_MODE_LOCAL);
}

static uint32_t umf_os_bind(const struct node_list *list)
{
    return umf_os(list, UMF_NUMA_MODE_BIND);
}

static uint32_t umf_os_preferred(const struct node_list *list)
{
    return umf_os(list, UMF_NUMA_MODE_PREFERRED);
}

/* The thread's policy names the nodes. */
static uint32_t umf_os_policy(const struct node_list *list)
{
    const struct node_list none = {0};
    unsigned long mask = 0;
    uint32_t node;

    for (size_t i = 0; i < list->n; i++)
        mask |= 1UL << list->node[i];
    assert_ok(syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 8 * sizeof(mask) + 1));
    node = umf_os(&none, UMF_NUMA_MODE_DEFAULT);
    assert_ok(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0));
    return node;
}

/* Private memory, which the kernel places: the broker's is to be where that would be. */
static uint32_t umf_memspace(const struct node_list *list)
{
    umf_memory_provider_handle_t provider;
    umf_memspace_handle_t memspace;
    uint32_t node;

    assert_int_equal(umfMemspaceCreateFromNumaArray((unsigned *)(uintptr_t)list->node, list->n, &memspace),
                     UMF_RESULT_SUCCESS);
    assert_int_equal(umfMemoryProviderCreateFromMemspace(memspace, NULL, &provider), UMF_RESULT_SUCCESS);
    node = take_of(provider, false);
    umfMemspaceDestroy(memspace);
    return node;
}

static umf_memory_provider_handle_t memoryd_provider(const struct node_list *list, unsigned placement)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;

    params.nodes = list->node;
    params.n_nodes = list->n;
    params.placement = placement;
    assert_int_equal(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &provider), UMF_RESULT_SUCCESS);
    return provider;
}

static uint32_t umf_memoryd(const struct node_list *list)
{
    return take_of(memoryd_provider(list, MEMCLIENT_PLACEMENT_POOL), true);
}

static uint32_t umf_memoryd_bind(const struct node_list *list)
{
    return take_of(memoryd_provider(list, MEMCLIENT_PLACEMENT_BIND), true);
}

static uint32_t umf_disjoint(const struct node_list *list)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_pool_handle_t pool;
    uint32_t node;
    void *at;

    params.SlabMinSize = 4 * SIZE;
    params.MaxPoolableSize = 2 * SIZE;
    params.Capacity = 1;
    assert_int_equal(umfPoolCreate(umfDisjointPoolOps(), memoryd_provider(list, MEMCLIENT_PLACEMENT_POOL), &params,
                                   UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool),
                     UMF_RESULT_SUCCESS);
    at = umfPoolMalloc(pool, SIZE);
    assert_non_null(at);
    memset(at, 1, SIZE);
    node = node_of(at);
    assert_int_equal(umfFree(at), UMF_RESULT_SUCCESS);
    umfPoolDestroy(pool);
    return node;
}

/* "numa:3,1", or without any "" */
static const char *device_of(const struct node_list *list)
{
    static char device[8 + 4 * NODES_MAX];
    size_t at = 0;

    device[0] = '\0';
    for (size_t i = 0; i < list->n; i++)
        at += (size_t)snprintf(device + at, sizeof(device) - at, "%s%u", i ? "," : "numa:", list->node[i]);
    return device;
}

static uint32_t nbla(const struct node_list *list)
{
    nbla_memory *memory = nbla_memory_new(NULL, SIZE, device_of(list));
    uint32_t node;

    assert_non_null(memory);
    assert_int_equal(nbla_memory_alloc(memory), 0);
    memset(nbla_memory_pointer(memory), 1, SIZE);
    node = node_of(nbla_memory_pointer(memory));
    assert_int_equal(nbla_memory_destroy(memory), 0);
    return node;
}

static uint32_t nbla_chunk(const struct node_list *list)
{
    nbla_physical_memory *chunk = nbla_physical_memory_new(NULL, SIZE, device_of(list));
    nbla_memory *memory;
    uint32_t node;

    assert_non_null(chunk);
    assert_true(nbla_physical_memory_alloc(chunk) >= SIZE);
    memory = nbla_memory_new_virtual(NULL, nbla_physical_memory_bytes(chunk), device_of(list), &chunk, 1);
    assert_non_null(memory);
    assert_int_equal(nbla_memory_bind(memory), 0);
    memset(nbla_memory_pointer(memory), 1, SIZE);
    node = node_of(nbla_memory_pointer(memory));
    assert_int_equal(nbla_memory_unbind(memory), 0);
    assert_int_equal(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(chunk);
    return node;
}

static uint32_t svm(const struct node_list *list, unsigned placement)
{
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;
    struct memclient_svm *heap;
    uint32_t node;
    void *at;

    options.nodes = list->node;
    options.n_nodes = list->n;
    options.placement = placement;
    assert_int_equal(memclient_svm_create(&options, &heap), 0);
    assert_int_equal(memclient_svm_alloc(heap, 0, SIZE, 0, &at), 0);
    memset(at, 1, SIZE);
    node = node_of(at);
    assert_int_equal(memclient_svm_free(heap, at), 0);
    memclient_svm_destroy(heap);
    return node;
}

static uint32_t svm_heap(const struct node_list *list)
{
    return svm(list, MEMCLIENT_PLACEMENT_POOL);
}

static uint32_t svm_bind(const struct node_list *list)
{
    return svm(list, MEMCLIENT_PLACEMENT_BIND);
}

struct way {
    const char *name;
    allocate_fn *allocate;
    bool may_name; /* nodes */
    bool must_name;
    bool of_kernel; /* what is named, which knows no simulated nodes, nor an order */
};

static const struct way ways[] = {
    {"native, as the pool has it", native_pool, .may_name = true},
    {"native, BIND", native_bind, .may_name = true},
    {"native, PREFERRED", native_preferred, .may_name = true},
    {"native, LOCAL", native_local},
    {"UMF, shared, DEFAULT", umf_os_default},
    {"UMF, shared, LOCAL", umf_os_local},
    {"UMF, shared, BIND", umf_os_bind, .must_name = true},
    {"UMF, shared, PREFERRED", umf_os_preferred, .may_name = true},
    {"UMF, shared, as the thread's policy", umf_os_policy, .must_name = true, .of_kernel = true},
    {"UMF, private, memspace", umf_memspace, .must_name = true, .of_kernel = true},
    {"UMF, memoryd provider", umf_memoryd, .may_name = true},
    {"UMF, memoryd provider, BIND", umf_memoryd_bind, .may_name = true},
    {"UMF, disjoint pool", umf_disjoint, .may_name = true},
    {"nbla", nbla, .may_name = true},
    {"nbla, physical", nbla_chunk, .may_name = true},
    {"SVM", svm_heap, .may_name = true},
    {"SVM, BIND", svm_bind, .may_name = true},
};

/* ---- from everywhere --------------------------------------------------------------------------------------------- */

static unsigned wrong; /* so often, of each way once from each processor */

/* Is it where it should be? */
static bool try_list(const struct way *way, const struct node_list *list, uint32_t here)
{
    uint32_t wanted = nearest(list->n ? list : &all, here), node;

    if (way->of_kernel && simulated)
        return true;
    node = way->allocate(list);
    /* a policy's nodes have no order: of those that are equally far any will do */
    if (node < NODES_MAX && (way->of_kernel ? !is_nearer(wanted, node, here) : node == wanted))
        return true;
    print_error("%s: from node %u it is on node %u, and %u is nearer (%s)\n", way->name, here, node, wanted,
                device_of(list));
    wrong++;
    return false;
}

/* Every choice of several nodes; of a single one there is none. */
static void try_way(const struct way *way, uint32_t here)
{
    const struct node_list none = {0};

    if (!way->must_name && !try_list(way, &none, here))
        return;
    for (unsigned long chosen = 0; (way->may_name || way->must_name) && chosen < 1UL << all.n; chosen++) {
        struct node_list list = {0};

        for (size_t i = 0; i < all.n; i++)
            if (chosen & 1UL << i)
                list.node[list.n++] = all.node[i];
        if (list.n > 1 && !try_list(way, &list, here))
            return;
    }
}

/* This thread is on each processor in turn. */
static void for_each_caller(void (*fn)(uint32_t here))
{
    cpu_set_t before, set;

    assert_ok(sched_getaffinity(0, sizeof(before), &before));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        unsigned on, here;

        if (!CPU_ISSET(cpu, &before))
            continue;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        assert_ok(sched_setaffinity(0, sizeof(set), &set));
        assert_ok(getcpu(&on, &here));
        fn(here);
    }
    assert_ok(sched_setaffinity(0, sizeof(before), &before));
}

static void try_ways(uint32_t here)
{
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        try_way(&ways[i], here);
}

static void memory_is_near_its_caller(void **state)
{
    for_each_caller(try_ways);
    assert_int_equal(wrong, 0);
    observer_expect_nothing();
}

static uint32_t in_pool(const char *pool)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;
    uint32_t node;
    void *at;

    options.pool = pool;
    assert_int_equal(memclient_alloc(NULL, SIZE, &options, &buf), 0);
    assert_int_equal(memclient_map(buf, NULL, &at), 0);
    memset(at, 1, SIZE);
    node = node_of(at);
    assert_int_equal(memclient_unmap(NULL, at, 0), 0);
    memclient_buffer_unref(buf);
    return node;
}

static void try_declared(uint32_t here)
{
    static const char *const pools[] = {"near-bind", "near-preferred", "near-local"};

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(in_pool(pools[i]), nearest(&all, here));
}

static void declared_pools_of_several_nodes_are_no_different(void **state)
{
    for_each_caller(try_declared);
    observer_expect_nothing();
}

/* What does not fit on the nearest node goes to the next, whole: so it is known that room is no reason to go there. */
static void try_next(uint32_t here)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *bufs[NODES_MAX];
    struct node_list left = all;

    options.nodes = all.node;
    options.n_nodes = all.n;
    options.placement = MEMCLIENT_PLACEMENT_BIND;
    options.pages = MEMCLIENT_PAGES_BASE;
    for (size_t i = 0; i < all.n; i++) {
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
        uint32_t wanted = nearest(&left, here);
        size_t k = 0;

        /* more than half of what each has */
        assert_int_equal(memclient_alloc(NULL, 40 * MIB, &options, &bufs[i]), 0);
        assert_int_equal(memclient_buffer_query(bufs[i], &info), 0);
        assert_int_equal(info.n_nodes, 1);
        assert_int_equal(info.nodes[0], wanted);
        while (left.node[k] != wanted)
            k++;
        memmove(left.node + k, left.node + k + 1, (left.n - k - 1) * sizeof(left.node[0]));
        left.n--;
    }
    /* together they have less than that left */
    assert_int_equal(memclient_alloc(NULL, all.n * 24 * MIB + MIB, &options, &bufs[0]), -ENOMEM);
    memclient_buffer_unref_many(all.n, bufs);
    observer_expect_nothing();
}

static void full_nodes_are_passed_over_in_order(void **state)
{
    for_each_caller(try_next);
}

/* ---- HSA --------------------------------------------------------------------------------------------------------- */

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *data)
{
    *(hsa_amd_memory_pool_t *)data = pool;
    return HSA_STATUS_INFO_BREAK;
}

/* Its pools are of an agent's node, whoever asks. */
static hsa_status_t try_agent(hsa_agent_t agent, void *data)
{
    hsa_amd_memory_pool_t pool;
    uint32_t node;
    void *at;

    (void)data;
    assert_int_equal(hsa_agent_get_info(agent, HSA_AGENT_INFO_NODE, &node), HSA_STATUS_SUCCESS);
    if (hsa_amd_agent_iterate_memory_pools(agent, take_pool, &pool) != HSA_STATUS_INFO_BREAK)
        return HSA_STATUS_SUCCESS;
    assert_int_equal(hsa_amd_memory_pool_allocate(pool, SIZE, 0, &at), HSA_STATUS_SUCCESS);
    memset(at, 1, SIZE);
    assert_int_equal(node_of(at), node);
    assert_int_equal(hsa_amd_memory_pool_free(at), HSA_STATUS_SUCCESS);
    return HSA_STATUS_SUCCESS;
}

static void try_agents(uint32_t here)
{
    (void)here;
    assert_int_equal(hsa_iterate_agents(try_agent, NULL), HSA_STATUS_SUCCESS);
}

static void an_agents_memory_is_on_its_node_whoever_asks(void **state)
{
    assert_int_equal(hsa_init(), HSA_STATUS_SUCCESS);
    for_each_caller(try_agents);
    assert_int_equal(hsa_shut_down(), HSA_STATUS_SUCCESS);
    observer_expect_nothing();
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static int group_setup(void **state)
{
    bool several = __builtin_popcountl(nodes_with_memory()) > 1;

    observer_start(several ? 0 : 4, "[pools]\ncapacity = 64M\n"
                                    "[pool near-bind]\nplacement = bind\n"
                                    "[pool near-preferred]\nplacement = preferred\n"
                                    "[pool near-local]\nplacement = local\n");
    assert_int_equal(memclient_list_nodes(NULL, note_node, NULL), 0);
    for (uint32_t node = NODES_MAX; node--;)
        if (machine[node].exists)
            all.node[all.n++] = node;
    assert_true(all.n > 1);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_near_its_caller),
        cmocka_unit_test(declared_pools_of_several_nodes_are_no_different),
        cmocka_unit_test(full_nodes_are_passed_over_in_order),
        cmocka_unit_test(an_agents_memory_is_on_its_node_whoever_asks),
    };

    /* what is cached would lie where the one before was placed, and be there when nothing is expected */
    setenv("MEMORYD_CACHE", "0", 1);
    return test_run(tests, group_setup, observer_group_teardown);
}
