/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OS provider with system calls of our own. They fail where real ones hardly do, and show more nodes than this
 * machine has, and record what is bound to which. Shared memory comes from a real broker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/memory.h"
#include "tests/unit/umf/umf.h"
#include "umf/os.h"

enum { PREFERRED = 1, BIND = 2, INTERLEAVE = 3, LOCAL = 4, PREFERRED_MANY = 5 };

static const struct os_calls *kernel;
static struct os_calls calls;
static umf_memory_provider_handle_t provider;
static size_t page;

/* ---- a kernel of ours -------------------------------------------------------------------------------------------- */

#define BOUND_MAX 4096

static struct bound {
    char *start;
    size_t length;
    int mode;
    unsigned long nodes; /* the first 64 */
} bound[BOUND_MAX];
static size_t n_bound;
static bool only_one_preferred;

static long note_mbind(void *address, unsigned long length, int mode, const unsigned long *nodes, unsigned long max,
                       unsigned flags)
{
    assert_int_equal(flags, 0);
    assert_true((mode == LOCAL) == (max == 0));
    if (mode == PREFERRED_MANY && only_one_preferred) {
        errno = EINVAL;
        return -1;
    }
    assert_true(n_bound < BOUND_MAX);
    bound[n_bound++] = (struct bound){address, length, mode, nodes ? nodes[0] : 0};
    return 0;
}

/* The nodes that a page of the allocation is bound to. Every page must be bound exactly once. */
static unsigned long nodes_of(const char *ptr, size_t n)
{
    for (size_t i = 0; i < n_bound; i++)
        if (ptr + n * page >= bound[i].start && ptr + n * page < bound[i].start + bound[i].length)
            return bound[i].nodes;
    fail_msg("page %zu is not bound", n);
    return 0;
}

static int setup(void **state)
{
    page = (size_t)page_size();
    kernel = os_calls;
    calls = *os_calls;
    os_calls = &calls;
    n_bound = 0;
    only_one_preferred = false;
    provider = NULL;
    return 0;
}

static int teardown(void **state)
{
    calls = *kernel;
    umfMemoryProviderDestroy(provider);
    os_calls = kernel;
    return 0;
}

static void make(umf_os_memory_provider_params_t params)
{
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider));
}

static char *alloc(size_t size)
{
    void *ptr;

    n_bound = 0;
    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    return ptr;
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void *mmap_askew(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    (void)address;
    (void)length;
    (void)protection;
    (void)flags;
    (void)fd;
    (void)offset;
    return (void *)(page + 8);
}

static int munmap_fails(void *address, size_t length)
{
    (void)address;
    (void)length;
    errno = ENOMEM;
    return -1;
}

static int munmap_nothing(void *address, size_t length)
{
    (void)address;
    (void)length;
    return 0;
}

static int madvise_fails(void *address, size_t length, int advice)
{
    (void)address;
    (void)length;
    (void)advice;
    errno = EAGAIN;
    return -1;
}

static long mbind_fails(void *address, unsigned long length, int mode, const unsigned long *nodes, unsigned long max,
                        unsigned flags)
{
    (void)address;
    (void)length;
    (void)mode;
    (void)nodes;
    (void)max;
    (void)flags;
    errno = EIO;
    return -1;
}

static long get_mempolicy_fails(int *mode, unsigned long *nodes, unsigned long max, void *address, unsigned long flags)
{
    (void)mode;
    (void)nodes;
    (void)max;
    (void)address;
    (void)flags;
    errno = ENOSYS;
    return -1;
}

/* umf_os_memory_provider_native_error_t: UMF_OS_RESULT_ERROR_ADDRESS_NOT_ALIGNED */
static void test_address_not_aligned(void **state)
{
    void *ptr;

    make(umfOsMemoryProviderParamsDefault());
    calls.mmap = mmap_askew;
    calls.munmap = munmap_nothing;
    assert_native(provider, umfMemoryProviderAlloc(provider, page, 0, &ptr), UMF_OS_RESULT_ERROR_ADDRESS_NOT_ALIGNED,
                  "allocated address is not aligned");
}

/* umf_os_memory_provider_native_error_t: UMF_OS_RESULT_ERROR_FREE_FAILED */
static void test_free_fails(void **state)
{
    void *ptr;

    make(umfOsMemoryProviderParamsDefault());
    ptr = alloc(page);
    calls.munmap = munmap_fails;
    assert_native(provider, umfMemoryProviderFree(provider, ptr, page), UMF_OS_RESULT_ERROR_FREE_FAILED,
                  "memory deallocation failed: Cannot allocate memory");
    /* it is still mapped, and can be freed */
    *(char *)ptr = 1;
    calls.munmap = kernel->munmap;
    assert_success(umfMemoryProviderFree(provider, ptr, page));
}

/* Memory that was unmapped without the providers' knowledge belongs to whoever the kernel gives it to next. */
static void *next_mapped;

static void *mmap_next(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    (void)address;
    (void)length;
    (void)protection;
    (void)flags;
    (void)fd;
    (void)offset;
    return next_mapped;
}

static void test_unmapped_unseen(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    char *region = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    umf_memory_provider_handle_t second;
    void *ptr;

    assert_mapped(region);
    make(params);
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &second));
    calls.mmap = mmap_next;
    calls.munmap = munmap_nothing;
    next_mapped = region;
    assert_ptr_equal(alloc(4 * page), region);
    next_mapped = region + page;
    assert_success(umfMemoryProviderAlloc(second, 2 * page, 0, &ptr));
    assert_success(umfMemoryProviderPurgeForce(second, region + page, 2 * page));
    assert_success(umfMemoryProviderPurgeForce(provider, region, page));
    assert_success(umfMemoryProviderPurgeForce(provider, region + 3 * page, page));
    assert_result(umfMemoryProviderPurgeForce(provider, region + page, page),
                  UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    assert_result(umfMemoryProviderPurgeForce(provider, region, 4 * page), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    /* the neighbour is the first one's own */
    assert_success(umfMemoryProviderFree(second, region + page, page));
    next_mapped = region + page;
    assert_ptr_equal(alloc(page), region + page);
    assert_success(umfMemoryProviderPurgeForce(provider, region, 2 * page));
    assert_success(umfMemoryProviderFree(second, region + 2 * page, page));
    assert_success(umfMemoryProviderFree(provider, region, 2 * page));
    assert_success(umfMemoryProviderFree(provider, region + 3 * page, page));
    umfMemoryProviderDestroy(second);
    assert_ok(munmap(region, 4 * page));
}

/* umf_os_memory_provider_native_error_t: UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED,
 * UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED */
static void test_purge_fails(void **state)
{
    void *ptr;

    make(umfOsMemoryProviderParamsDefault());
    ptr = alloc(page);
    calls.madvise = madvise_fails;
    assert_native(provider, umfMemoryProviderPurgeLazy(provider, ptr, page), UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED,
                  "lazy purging failed: Resource temporarily unavailable");
    assert_native(provider, umfMemoryProviderPurgeForce(provider, ptr, page), UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED,
                  "force purging failed: Resource temporarily unavailable");
}

/* umf_os_memory_provider_native_error_t: UMF_OS_RESULT_ERROR_BIND_FAILED */
static void test_bind_fails(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    void *ptr = &ptr;

    params.numa_mode = UMF_NUMA_MODE_LOCAL;
    make(params);
    calls.mbind = mbind_fails;
    assert_native(provider, umfMemoryProviderAlloc(provider, page, 0, &ptr), UMF_OS_RESULT_ERROR_BIND_FAILED,
                  "binding memory to NUMA node failed: Input/output error");
    assert_ptr_equal(ptr, &ptr);
}

/* umf_os_memory_provider_native_error_t: UMF_OS_RESULT_ERROR_TOPO_DISCOVERY_FAILED, where a policy needs to know
 * nodes. umfOsMemoryProviderOps: UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC. */
static void test_discovery_fails(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    const char *text;
    int32_t number;

    calls.get_mempolicy = get_mempolicy_fails;
    make(params); /* it needs no nodes */
    params.numa_mode = UMF_NUMA_MODE_LOCAL;
    assert_result(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &(umf_memory_provider_handle_t){NULL}),
                  UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    umfMemoryProviderGetLastNativeError(provider, &text, &number);
    assert_int_equal(number, UMF_OS_RESULT_ERROR_TOPO_DISCOVERY_FAILED);
    assert_string_equal(text, "HWLOC topology discovery failed: Function not implemented");
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static umf_os_memory_provider_params_t on(umf_numa_mode_t mode, unsigned *nodes, unsigned n)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.numa_mode = mode;
    params.numa_list = nodes;
    params.numa_list_len = n;
    calls.mbind = note_mbind;
    return params;
}

static void expect_one(const char *ptr, size_t length, int mode, unsigned long nodes)
{
    assert_int_equal(n_bound, 1);
    assert_ptr_equal(bound[0].start, ptr);
    assert_int_equal(bound[0].length, length);
    assert_int_equal(bound[0].mode, mode);
    assert_int_equal(bound[0].nodes, nodes);
}

static void test_whole(void **state)
{
    const struct {
        umf_numa_mode_t mode;
        unsigned n;
        int policy;
        unsigned long nodes;
    } cases[] = {
        {UMF_NUMA_MODE_BIND, 3, BIND, 0x26},
        {UMF_NUMA_MODE_BIND, 1, BIND, 0x20},
        {UMF_NUMA_MODE_INTERLEAVE, 3, INTERLEAVE, 0x26},
        {UMF_NUMA_MODE_PREFERRED, 3, PREFERRED_MANY, 0x26},
        {UMF_NUMA_MODE_PREFERRED, 1, PREFERRED, 0x20},
        {UMF_NUMA_MODE_PREFERRED, 0, LOCAL, 0},
        {UMF_NUMA_MODE_LOCAL, 0, LOCAL, 0},
    };
    unsigned nodes[] = {5, 1, 2};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *ptr;

        make(on(cases[i].mode, nodes, cases[i].n));
        ptr = alloc(3 * page + 1);
        expect_one(ptr, 4 * page, cases[i].policy, cases[i].nodes);
        umfMemoryProviderDestroy(provider);
    }
    /* the list was copied; kernels that prefer one node prefer the first */
    make(on(UMF_NUMA_MODE_PREFERRED, nodes, 3));
    nodes[0] = 9;
    only_one_preferred = true;
    expect_one(alloc(page), page, PREFERRED, 0x20);
    umfMemoryProviderDestroy(provider);
    make(on(UMF_NUMA_MODE_DEFAULT, NULL, 0));
    (void)alloc(page);
    assert_int_equal(n_bound, 0);
}

static void test_interleave(void **state)
{
    unsigned nodes[] = {3, 0, 7};
    umf_os_memory_provider_params_t params = on(UMF_NUMA_MODE_INTERLEAVE, nodes, 3);
    char *ptr;

    params.part_size = 2 * page - 5; /* rounded up */
    make(params);
    ptr = alloc(7 * page);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(nodes_of(ptr, i), 1UL << nodes[i / 2 % 3]);
    assert_int_equal(bound[0].mode, BIND);
    assert_int_equal(n_bound, 4);
    /* goes on at the node after that of the last allocation */
    ptr = alloc(page);
    assert_int_equal(nodes_of(ptr, 0), 1UL << nodes[(7 * page) / params.part_size % 3]);
    ptr = alloc(3 * page);
    assert_int_equal(nodes_of(ptr, 0), 1UL << nodes[(8 * page) / params.part_size % 3]);
    umfMemoryProviderDestroy(provider);
    params.part_size = SIZE_MAX;
    make(params);
    expect_one(alloc(5 * page), 5 * page, BIND, 1UL << 3);
}

static size_t n_advised;
static bool never_huge;

static int note_madvise(void *address, size_t length, int advice)
{
    assert_int_equal(n_bound, 0); /* before any of its pages exists */
    assert_true((uintptr_t)address % page == 0 && length % page == 0);
    assert_int_equal(advice, MADV_NOHUGEPAGE);
    n_advised++;
    if (!never_huge)
        return 0;
    errno = EINVAL;
    return -1;
}

/* Memory that is on several nodes page by page has no huge pages. */
static void test_interleave_by_pages(void **state)
{
    unsigned nodes[] = {3, 0};
    umf_os_memory_provider_params_t params = on(UMF_NUMA_MODE_INTERLEAVE, nodes, 2);

    calls.madvise = note_madvise;
    for (size_t i = 1; i <= 2; i++) {
        never_huge = i == 2;
        n_bound = 0;
        make(params);
        expect_one(alloc(1024 * page), 1024 * page, INTERLEAVE, 0x9);
        assert_int_equal(n_advised, i);
        umfMemoryProviderDestroy(provider);
    }
    n_bound = 0;
    params.numa_list_len = 1;
    make(params);
    expect_one(alloc(1024 * page), 1024 * page, INTERLEAVE, 0x8);
    assert_int_equal(n_advised, 2);
}

static void expect_split(umf_numa_split_partition_t *partitions, unsigned n, size_t n_pages)
{
    unsigned nodes[] = {0, 1, 2, 3};
    umf_os_memory_provider_params_t params = on(UMF_NUMA_MODE_SPLIT, nodes, 4);
    uint64_t sum = 0;
    char *ptr;

    params.partitions = partitions;
    params.partitions_len = n;
    make(params);
    ptr = alloc(n_pages * page);
    for (unsigned i = 0; i < n; i++)
        sum += partitions[i].weight;
    for (size_t k = 0; k < n_pages; k++) {
        unsigned long wanted = 0;
        uint64_t before = 0;

        /* partition i has the weights [before, before + weight), page k has [k, k + 1) * sum / n_pages */
        for (unsigned i = 0; i < n; before += partitions[i++].weight)
            if (before * n_pages < (k + 1) * sum && (before + partitions[i].weight) * n_pages > k * sum)
                wanted |= 1UL << partitions[i].target;
        assert_int_equal(nodes_of(ptr, k), wanted);
    }
    umfMemoryProviderDestroy(provider);
    provider = NULL;
}

static void test_split(void **state)
{
    umf_numa_split_partition_t even[] = {{1, 2}, {1, 0}}, uneven[] = {{3, 1}, {1, 0}, {5, 3}},
                               again[] = {{1, 0}, {1, 1}, {1, 0}, {1, 2}},
                               large[] = {{UINT32_MAX, 3}, {UINT32_MAX, 2}, {1, 1}};
    const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 100, 1000};
    unsigned nodes[] = {4, 1, 2};
    umf_os_memory_provider_params_t params = on(UMF_NUMA_MODE_SPLIT, nodes, 3);
    char *ptr;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        expect_split(even, 2, sizes[i]);
        expect_split(uneven, 3, sizes[i]);
        expect_split(again, 4, sizes[i]);
        expect_split(large, 3, sizes[i]);
    }
    /* without partitions: equal parts in the list's order */
    make(params);
    ptr = alloc(6 * page);
    for (size_t k = 0; k < 6; k++)
        assert_int_equal(nodes_of(ptr, k), 1UL << nodes[k / 2]);
}

/* ---- a thread's policy, and the broker --------------------------------------------------------------------------- */

static int thread_mode;
static unsigned long thread_nodes;

static long get_mempolicy_of_thread(int *mode, unsigned long *nodes, unsigned long max, void *address,
                                    unsigned long flags)
{
    (void)max;
    assert_null(address);
    assert_int_equal(flags, 0);
    *mode = thread_mode;
    nodes[0] = thread_nodes;
    return 0;
}

/* Checks how many of 8 shared pages are on the broker's first node; the others must be on its second. */
static void expect_shared(int mode, unsigned long nodes, unsigned placement, size_t first)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buffer;
    size_t pages[2] = {0, 0};
    void *ptr;

    thread_mode = mode;
    thread_nodes = nodes;
    ptr = alloc(8 * page);
    assert_success(umfMemorydGetBuffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_query(buffer, &info), 0);
    for (uint32_t i = 0; i < info.n_nodes; i++)
        pages[info.nodes[i] % 2] = info.node_bytes[i] / page;
    assert_int_equal(info.placement, placement);
    assert_int_equal(pages[0], first);
    assert_int_equal(pages[1], 8 - first);
    memclient_buffer_unref(buffer);
    assert_success(umfMemoryProviderFree(provider, ptr, 8 * page));
}

/* The broker has the first two nodes. The thread's policy names others as well. */
static void test_thread_wants_nodes_that_are_not_served(void **state)
{
    const unsigned long first = 1, second = 2, others = 1UL << 40 | 1UL << 50;
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.visibility = UMF_MEM_MAP_SHARED;
    make(params);
    calls.get_mempolicy = get_mempolicy_of_thread;
    expect_shared(BIND, others | second, MEMCLIENT_PLACEMENT_BIND, 0);
    expect_shared(PREFERRED, second, MEMCLIENT_PLACEMENT_PREFERRED, 0);
    expect_shared(PREFERRED_MANY, others | second, MEMCLIENT_PLACEMENT_PREFERRED, 0);
    expect_shared(INTERLEAVE, others | first | second, MEMCLIENT_PLACEMENT_INTERLEAVE, 4);
    expect_shared(INTERLEAVE, others | first, MEMCLIENT_PLACEMENT_INTERLEAVE, 8);
    /* none of them: wherever there is room, near the thread */
    expect_shared(BIND, others, MEMCLIENT_PLACEMENT_LOCAL, 8);
    expect_shared(PREFERRED, others, MEMCLIENT_PLACEMENT_LOCAL, 8);
    expect_shared(INTERLEAVE, others, MEMCLIENT_PLACEMENT_LOCAL, 8);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_address_not_aligned),
        TEST(test_free_fails),
        TEST(test_unmapped_unseen),
        TEST(test_purge_fails),
        TEST(test_bind_fails),
        TEST(test_discovery_fails),
        TEST(test_whole),
        TEST(test_interleave),
        TEST(test_interleave_by_pages),
        TEST(test_split),
        TEST(test_thread_wants_nodes_that_are_not_served),
    };

    return test_run(tests, umf_group_setup, umf_group_teardown);
}
