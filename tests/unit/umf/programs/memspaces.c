/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by its nodes: memspaces that the machine has and those from arrays of nodes, with every policy, and the OS
 * provider's modes; where the machine has several nodes the kernel is asked on which of them each page lies.
 */
#include "program.h"

#include <numaif.h>

enum { NODES = 64, PAGES = 64 };

static unsigned nodes[NODES]; /* with memory, in order */
static size_t n_nodes;

static void find_nodes(void)
{
    unsigned long mask[NODES / (8 * sizeof(unsigned long)) + 1] = {0};

    NEED_TRUE(get_mempolicy(NULL, mask, NODES + 1, NULL, MPOL_F_MEMS_ALLOWED) == 0);
    for (unsigned node = 0; node < NODES; node++)
        if (mask[node / (8 * sizeof(mask[0]))] >> node % (8 * sizeof(mask[0])) & 1)
            nodes[n_nodes++] = node;
    NEED_TRUE(n_nodes > 0);
}

static int mode_at(void *ptr)
{
    int mode = -1;

    NEED_TRUE(get_mempolicy(&mode, NULL, 0, ptr, MPOL_F_ADDR) == 0);
    return mode;
}

static unsigned node_at(void *ptr)
{
    int node = -1;

    NEED_TRUE(get_mempolicy(&node, NULL, 0, ptr, MPOL_F_ADDR | MPOL_F_NODE) == 0);
    return (unsigned)node;
}

static unsigned char *allocate(umf_memory_provider_handle_t provider, size_t size)
{
    void *ptr = NULL;

    NEED(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    memset(ptr, 0xFF, size);
    return ptr;
}

static void finish(umf_memory_provider_handle_t provider, void *ptr, size_t size)
{
    NEED(umfMemoryProviderFree(provider, ptr, size));
    umfMemoryProviderDestroy(provider);
}

static umf_memory_provider_handle_t from_memspace(umf_const_memspace_handle_t memspace,
                                                  umf_const_mempolicy_handle_t policy)
{
    umf_memory_provider_handle_t provider = NULL;

    NEED(umfMemoryProviderCreateFromMemspace(memspace, policy, &provider));
    NEED_TRUE(provider);
    return provider;
}

/* ---- memspaces of the machine ------------------------------------------------------------------------------------ */

static void *use_memspace(void *argument)
{
    umf_const_memspace_handle_t memspace = argument;
    umf_memory_provider_handle_t provider = from_memspace(memspace, NULL);

    for (unsigned i = 0; i < 10; i++) {
        unsigned char *ptr = allocate(provider, 10000);

        NEED(umfMemoryProviderFree(provider, ptr, 10000));
    }
    umfMemoryProviderDestroy(provider);
    return NULL;
}

static void use_everywhere(umf_const_memspace_handle_t (*get)(void))
{
    umf_const_memspace_handle_t memspace = get();

    if (!memspace)
        return; /* the machine does not tell */
    NEED_TRUE(get() == memspace);
    run_threads(4, use_memspace, (void *)(uintptr_t)memspace);
}

/* Without a policy it is as memory that was mapped plainly. */
static void use_host_all(void)
{
    umf_memory_provider_handle_t provider = from_memspace(umfMemspaceHostAllGet(), NULL);
    unsigned char *ptr = allocate(provider, 4096);

    NEED_TRUE(mode_at(ptr) == MPOL_DEFAULT);
    finish(provider, ptr, 4096);
}

static void use_memspaces(void)
{
    NEED_TRUE(umfMemspaceHostAllGet());
    NEED_TRUE(umfMemspaceHighestCapacityGet());
    use_everywhere(umfMemspaceHostAllGet);
    use_everywhere(umfMemspaceHighestCapacityGet);
    use_everywhere(umfMemspaceHighestBandwidthGet);
    use_everywhere(umfMemspaceLowestLatencyGet);
    use_host_all();
}

/* ---- memspaces from nodes, and policies -------------------------------------------------------------------------- */

static umf_memspace_handle_t all_nodes(void)
{
    umf_memspace_handle_t memspace = NULL;

    NEED(umfMemspaceCreateFromNumaArray(nodes, n_nodes, &memspace));
    return memspace;
}

static void refuse_nodes(void)
{
    umf_memspace_handle_t memspace = NULL;
    umf_memory_provider_handle_t provider = NULL;
    umf_memory_pool_handle_t pool = NULL;

    NEED_RESULT(umfMemspaceCreateFromNumaArray(NULL, 1, &memspace), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_RESULT(umfMemspaceCreateFromNumaArray(nodes, 0, &memspace), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_RESULT(umfMemspaceCreateFromNumaArray(nodes, 1, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_TRUE(!memspace);
    memspace = all_nodes();
    NEED_RESULT(umfMemoryProviderCreateFromMemspace(NULL, NULL, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_RESULT(umfMemoryProviderCreateFromMemspace(memspace, NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_RESULT(umfPoolCreateFromMemspace(NULL, NULL, &pool), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_TRUE(!provider && !pool);
    umfMemspaceDestroy(memspace);
}

/* What is not the policy's is refused, and neither policy nor memspace is needed any more when the provider is made. */
static umf_memory_provider_handle_t make_with(umf_mempolicy_membind_t mode, size_t part,
                                              umf_mempolicy_split_partition_t *parts, size_t n_parts)
{
    umf_memspace_handle_t memspace = all_nodes();
    umf_memory_provider_handle_t provider;
    umf_mempolicy_handle_t policy = NULL;

    NEED(umfMempolicyCreate(mode, &policy));
    if (mode == UMF_MEMPOLICY_INTERLEAVE)
        NEED(umfMempolicySetInterleavePartSize(policy, part));
    else
        NEED_RESULT(umfMempolicySetInterleavePartSize(policy, page_size()), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    if (mode == UMF_MEMPOLICY_SPLIT && parts)
        NEED(umfMempolicySetCustomSplitPartitions(policy, parts, n_parts));
    if (mode != UMF_MEMPOLICY_SPLIT)
        NEED_RESULT(umfMempolicySetCustomSplitPartitions(policy, &(umf_mempolicy_split_partition_t){1, 0}, 1),
                    UMF_RESULT_ERROR_INVALID_ARGUMENT);
    provider = from_memspace(memspace, policy);
    NEED(umfMempolicyDestroy(policy));
    umfMemspaceDestroy(memspace);
    return provider;
}

static void bind(void)
{
    umf_memory_provider_handle_t provider = make_with(UMF_MEMPOLICY_BIND, 0, NULL, 0);
    unsigned char *ptr = allocate(provider, PAGES * page_size());

    NEED_TRUE(mode_at(ptr) == MPOL_BIND);
    finish(provider, ptr, PAGES * page_size());
}

static void prefer(void)
{
    umf_memory_provider_handle_t provider = make_with(UMF_MEMPOLICY_PREFERRED, 0, NULL, 0);
    unsigned char *ptr = allocate(provider, PAGES * page_size());
    int mode = mode_at(ptr);

    NEED_TRUE(mode == MPOL_PREFERRED || mode == 5 /* many of them */);
    finish(provider, ptr, PAGES * page_size());
}

/* In the order of the nodes, from where the allocation begins. */
static void need_turns(unsigned char *ptr, size_t size, size_t part)
{
    size_t turn = 0;

    while (nodes[turn] != node_at(ptr))
        NEED_TRUE(++turn < n_nodes);
    for (size_t at = 0; at < size; at += page_size())
        NEED_TRUE(node_at(ptr + at) == nodes[(turn + at / part) % n_nodes]);
}

static void interleave(size_t part)
{
    umf_memory_provider_handle_t provider = make_with(UMF_MEMPOLICY_INTERLEAVE, part, NULL, 0);
    unsigned char *ptr = allocate(provider, PAGES * page_size()), *next;

    NEED_TRUE(part || mode_at(ptr) == MPOL_INTERLEAVE);
    need_turns(ptr, PAGES * page_size(), part ? (part + page_size() - 1) / page_size() * page_size() : page_size());
    next = allocate(provider, page_size());
    NEED(umfMemoryProviderFree(provider, next, page_size()));
    finish(provider, ptr, PAGES * page_size());
}

/* By default in equal parts; else three quarters on the last node and the rest on the first. */
static void split(bool custom)
{
    umf_mempolicy_split_partition_t parts[2] = {{3, nodes[n_nodes - 1]}, {1, nodes[0]}};
    umf_memory_provider_handle_t provider = make_with(UMF_MEMPOLICY_SPLIT, 0, custom ? parts : NULL, 2);
    unsigned char *ptr = allocate(provider, PAGES * page_size());

    for (size_t page = 0; page < PAGES; page++) {
        unsigned node = node_at(ptr + page * page_size());

        if (custom)
            NEED_TRUE(node == parts[page < PAGES / 4 * 3 ? 0 : 1].target);
        else if (PAGES % n_nodes == 0)
            NEED_TRUE(node == nodes[page / (PAGES / n_nodes)]);
    }
    finish(provider, ptr, PAGES * page_size());
}

static void use_policies(void)
{
    umf_mempolicy_handle_t policy = NULL;

    NEED_RESULT(umfMempolicyCreate(UMF_MEMPOLICY_BIND, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_RESULT(umfMempolicySetInterleavePartSize(NULL, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_RESULT(umfMempolicySetCustomSplitPartitions(NULL, NULL, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED(umfMempolicyCreate(UMF_MEMPOLICY_SPLIT, &policy));
    NEED(umfMempolicyDestroy(policy));
    refuse_nodes();
    bind();
    prefer();
    interleave(0);
    interleave(5 * page_size() - 1);
    split(false);
    split(true);
}

/* ---- one node ---------------------------------------------------------------------------------------------------- */

static umf_memory_provider_handle_t make_os(umf_numa_mode_t mode, unsigned *list, unsigned n)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider = NULL;

    params.numa_mode = mode;
    params.numa_list = list;
    params.numa_list_len = n;
    NEED(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
    return provider;
}

/* The same provider for allocations and for what a pool makes of them. */
static void use_node(unsigned node)
{
    const umf_numa_mode_t modes[] = {UMF_NUMA_MODE_BIND, UMF_NUMA_MODE_PREFERRED, UMF_NUMA_MODE_INTERLEAVE,
                                     UMF_NUMA_MODE_SPLIT};

    for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        umf_memory_provider_handle_t provider = make_os(modes[i], &node, 1);
        unsigned char *ptr = allocate(provider, PAGES * page_size());

        for (size_t page = 0; page < PAGES; page++)
            NEED_TRUE(node_at(ptr + page * page_size()) == node);
        finish(provider, ptr, PAGES * page_size());
    }
    for (unsigned kind = 0; kind < POOLS; kind++) {
        umf_memory_pool_handle_t pool =
            make_pool_with(kind, make_os(UMF_NUMA_MODE_BIND, &node, 1), UMF_POOL_CREATE_FLAG_OWN_PROVIDER);
        unsigned char *ptr = umfPoolMalloc(pool, 100);

        NEED_TRUE(ptr);
        ptr[0] = 1;
        NEED_TRUE(node_at(ptr) == node);
        NEED(umfPoolFree(pool, ptr));
        umfPoolDestroy(pool);
    }
}

/* Without a wish, the thread's own policy counts when the page is touched. */
static void follow_thread(unsigned node)
{
    unsigned long mask[2] = {0};
    umf_memory_provider_handle_t provider = make_os(UMF_NUMA_MODE_DEFAULT, NULL, 0);
    unsigned char *ptr;

    mask[node / (8 * sizeof(mask[0]))] = 1UL << node % (8 * sizeof(mask[0]));
    NEED_TRUE(set_mempolicy(MPOL_BIND, mask, NODES + 1) == 0);
    ptr = allocate(provider, page_size());
    NEED_TRUE(node_at(ptr) == node);
    NEED_TRUE(set_mempolicy(MPOL_DEFAULT, NULL, 0) == 0);
    finish(provider, ptr, page_size());
}

static void follow_processor(umf_numa_mode_t mode)
{
    umf_memory_provider_handle_t provider = make_os(mode, NULL, 0);
    unsigned char *ptr = allocate(provider, page_size());
    int of = mode_at(ptr);

    NEED_TRUE(of == MPOL_PREFERRED || of == 4 /* local */ || of == 5 /* preferred, many */);
    finish(provider, ptr, page_size());
}

int main(void)
{
    find_nodes();
    use_memspaces();
    use_policies();
    for (size_t i = 0; i < n_nodes; i++) {
        use_node(nodes[i]);
        follow_thread(nodes[i]);
    }
    follow_processor(UMF_NUMA_MODE_LOCAL);
    follow_processor(UMF_NUMA_MODE_PREFERRED);
    return 0;
}
