/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocating and freeing, by regions and by pools. Each test quotes the function and what of it is checked, in the
 * document's words.
 */
#include "tests/unit/hsa/hsa.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/hsa/vmem.h"

#define NODE_BYTES          (64 * MIB) /* capacity of a node, below */
#define BYTES               (3 * MIB + 5)
#define INVALID_MEMORY_POOL (hsa_status_t) HSA_STATUS_ERROR_INVALID_MEMORY_POOL

static hsa_region_t region_of(hsa_region_segment_t segment);

/* ---- hsa_memory_allocate ----------------------------------------------------------------------------------------- */

/* hsa_memory_allocate: SUCCESS, on every region that has RUNTIME_ALLOC_ALLOWED; ptr "the base address of the allocated
 * block", which is zeroed, on the region's node, and may be used to its end. */
static void test_allocate(void **state)
{
    for (unsigned i = 0; i < AGENTS; i++)
        for (unsigned k = 0; k < POOLS; k++) {
            struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
            struct memclient_buffer *buffer;
            uint32_t node;
            void *ptr = NULL;

            assert_success(hsa_memory_allocate(regions[i][k], BYTES, &ptr));
            assert_non_null(ptr);
            for (size_t at = 0; at < BYTES; at += 4096)
                assert_int_equal(((char *)ptr)[at], 0);
            memset(ptr, 0x5a, BYTES);
            assert_success(memclient_hsa_buffer(ptr, &buffer));
            assert_int_equal(memclient_buffer_query(buffer, &info), 0);
            memclient_buffer_unref(buffer);
            assert_success(hsa_agent_get_info(agents[i], HSA_AGENT_INFO_NODE, &node));
            assert_int_equal(info.n_nodes, 1);
            assert_int_equal(info.nodes[0], node);
            assert_int_equal(info.length, BYTES);
            assert_success(hsa_memory_free(ptr));
        }
}

/* hsa_memory_allocate, size: "rounded up to the nearest multiple of HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE". */
static void test_allocate_granule(void **state)
{
    struct memclient_buffer *buffer;
    size_t granule = 0;
    char *ptr;

    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE, &granule));
    assert_success(hsa_memory_allocate(regions[0][FINE], 1, (void **)&ptr));
    for (size_t i = 0; i < granule; i++)
        assert_int_equal(ptr[i], 0);
    memset(ptr, 1, granule);
    assert_success(memclient_hsa_buffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_bytes(buffer), granule);
    memclient_buffer_unref(buffer);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_allocate, ptr: "aligned to the value of HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT"; and so that huge pages
 * can back what is large enough for one. */
static void test_allocate_alignment(void **state)
{
    size_t alignment = 0;
    void *small[8], *large;

    assert_success(hsa_region_get_info(regions[0][COARSE], HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT, &alignment));
    assert_true(alignment && !(alignment & (alignment - 1)));
    for (int i = 0; i < 8; i++) {
        assert_success(hsa_memory_allocate(regions[0][COARSE], 100, &small[i]));
        assert_int_equal((uintptr_t)small[i] % alignment, 0);
    }
    assert_success(hsa_memory_allocate(regions[0][COARSE], 2 * MIB, &large));
    assert_int_equal((uintptr_t)large % (2 * MIB), 0);
    for (int i = 0; i < 8; i++)
        assert_success(hsa_memory_free(small[i]));
    assert_success(hsa_memory_free(large));
    for (size_t size = 1; size < 4 * MIB; size = size * 3 + 1) {
        assert_success(hsa_memory_allocate(regions[0][FINE], size, &large));
        assert_int_equal((uintptr_t)large % alignment, 0);
        assert_success(hsa_memory_free(large));
    }
}

/* hsa_memory_allocate: INVALID_ARGUMENT "ptr is NULL, or size is 0", whatever the region. */
static void test_allocate_invalid_argument(void **state)
{
    void *ptr = &ptr;

    assert_status(hsa_memory_allocate(regions[0][FINE], 4096, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_allocate(regions[0][FINE], 0, &ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_allocate((hsa_region_t){77}, 0, &ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_allocate((hsa_region_t){0}, 4096, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(ptr, &ptr);
}

/* hsa_memory_allocate: INVALID_REGION "The region is invalid". */
static void test_allocate_invalid_region(void **state)
{
    const uint64_t handles[] = {0, 1, 77, UINT64_MAX, (uintptr_t)&state, agents[0].handle};
    void *ptr = &ptr;

    for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++)
        assert_status(hsa_memory_allocate((hsa_region_t){handles[i]}, 4096, &ptr), HSA_STATUS_ERROR_INVALID_REGION);
    assert_ptr_equal(ptr, &ptr);
}

/* hsa_memory_allocate, region: "must have the HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED flag set", else INVALID_ALLOCATION
 * "The host is not allowed to allocate memory in region". */
static void test_allocate_not_allowed(void **state)
{
    const hsa_region_segment_t segments[] = {HSA_REGION_SEGMENT_READONLY, HSA_REGION_SEGMENT_GROUP,
                                             HSA_REGION_SEGMENT_PRIVATE};
    void *ptr;

    for (int i = 0; i < 3; i++) {
        hsa_region_t region = region_of(segments[i]);
        bool allowed = true;

        assert_success(hsa_region_get_info(region, HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
        assert_false(allowed);
        assert_status(hsa_memory_allocate(region, 4096, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    }
}

/* hsa_memory_allocate: INVALID_ALLOCATION "size is greater than the value of HSA_REGION_INFO_ALLOC_MAX_SIZE". ptr: "If
 * the allocation fails, the returned value is undefined": here it stays. */
static void test_allocate_too_large(void **state)
{
    size_t max = 0;
    void *ptr = &max;

    for (unsigned k = 0; k < POOLS; k++) {
        assert_success(hsa_region_get_info(regions[0][k], HSA_REGION_INFO_ALLOC_MAX_SIZE, &max));
        assert_int_equal(max, NODE_BYTES);
        assert_status(hsa_memory_allocate(regions[0][k], max + 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        assert_status(hsa_memory_allocate(regions[0][k], SIZE_MAX / 2, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        assert_status(hsa_memory_allocate(regions[0][k], SIZE_MAX, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        assert_ptr_equal(ptr, &max);
        assert_success(hsa_memory_allocate(regions[0][k], max, &ptr));
        assert_success(hsa_memory_free(ptr));
        ptr = &max;
    }
}

/* hsa_memory_allocate: OUT_OF_RESOURCES "failed to allocate the required resources": what the region said it could give
 * is taken meanwhile. Asked again, it says so, and then it is INVALID_ALLOCATION. */
static void test_allocate_out_of_resources(void **state)
{
    size_t max = 0;
    void *ptr, *other = NULL;

    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_ALLOC_MAX_SIZE, &max));
    assert_success(hsa_memory_allocate(regions[0][FINE], NODE_BYTES - 8 * MIB, &ptr));
    assert_status(hsa_memory_allocate(regions[0][FINE], 9 * MIB, &other), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_status(hsa_memory_allocate(regions[0][COARSE], 9 * MIB, &other), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    /* the other node has room; its memory is not taken for this one's */
    assert_success(hsa_memory_allocate(regions[1][FINE], 9 * MIB, &other));
    assert_success(hsa_memory_free(other));
    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_ALLOC_MAX_SIZE, &max));
    assert_int_equal(max, 8 * MIB);
    assert_status(hsa_memory_allocate(regions[0][FINE], 9 * MIB, &other), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_allocate(regions[0][FINE], max, &other));
    assert_success(hsa_memory_free(other));
    assert_success(hsa_memory_free(ptr));
    /* what was freed can be had again at once */
    assert_success(hsa_memory_allocate(regions[0][FINE], NODE_BYTES, &ptr));
    assert_success(hsa_memory_free(ptr));
}

/* One call of the broker for each, of which no descriptor stays. */
static void test_allocate_requests(void **state)
{
    uint64_t before;
    void *first, *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, &first));
    before = observer_requests();
    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, &ptr));
    assert_int_equal(observer_requests() - before, 1);
    assert_success(hsa_memory_free(ptr));
    assert_true(WAIT_UNTIL(observer_requests() - before == 2));
    assert_success(hsa_memory_free(first));
}

/* Takes all addresses that can be shared, until the last page is this process's alone. Returns how many ranges. */
static size_t fill_arena(void *ranges[64], size_t sizes[64])
{
    size_t n = 0;

    for (size_t size = MIB << 20; size >= 4096;) {
        hsa_amd_pointer_info_t info = {.size = sizeof(info)};
        void *va;

        /* so much is more than some machines have for a process */
        if (hsa_amd_vmem_address_reserve(&va, size, 0, 0)) {
            size /= 2;
            continue;
        }
        assert_success(hsa_amd_pointer_info(va, &info, NULL, NULL, NULL));
        if (info.global_flags & MEMCLIENT_HSA_POINTER_PROCESS_PRIVATE) {
            assert_success(hsa_amd_vmem_address_free(va, size));
            size /= 2;
            continue;
        }
        assert_in_range(n, 0, 63);
        ranges[n] = va;
        sizes[n++] = size;
    }
    return n;
}

/* hsa_memory_allocate works without an address that other processes could use as well. */
static void test_allocate_arena_full(void **state)
{
    void *ranges[64], *attached;
    size_t sizes[64];
    size_t n = fill_arena(ranges, sizes);
    hsa_amd_ipc_memory_t handle;
    char *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], BYTES, (void **)&ptr));
    memset(ptr, 0x5a, BYTES);
    assert_success(hsa_amd_ipc_memory_create(ptr, BYTES, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, BYTES, 0, NULL, &attached));
    assert_memory_equal(attached, ptr, BYTES);
    assert_success(hsa_amd_ipc_memory_detach(attached));
    assert_success(hsa_memory_free(ptr));
    while (n--)
        assert_success(hsa_amd_vmem_address_free(ranges[n], sizes[n]));
}

/* ---- hsa_memory_free --------------------------------------------------------------------------------------------- */

/* hsa_memory_free: SUCCESS, and NULL is SUCCESS; the memory goes. */
static void test_free_allocated(void **state)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    void *ptr;

    assert_success(hsa_memory_free(NULL));
    assert_success(hsa_memory_allocate(regions[1][KERNARG], MIB, &ptr));
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_success(hsa_memory_free(ptr));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_string_equal(vmem_pages(ptr), "");
}

/* hsa_memory_free, ptr: "If ptr does not match a value previously returned by hsa_memory_allocate, the behavior is
 * undefined": INVALID_ALLOCATION, and nothing happens. */
static void test_free_unknown(void **state)
{
    char *ptr, *ordinary = malloc(4096);

    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, (void **)&ptr));
    assert_status(hsa_memory_free(&ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_free(ordinary), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    free(ordinary);
    assert_status(hsa_memory_free(ptr + 1), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_free(ptr + 4096), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_free(ptr + MIB), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_free((void *)8), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    memset(ptr, 1, MIB);
    assert_success(hsa_memory_free(ptr));
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_memory_free of memory that was attached: INVALID_ARGUMENT. */
static void test_free_attached(void **state)
{
    hsa_amd_ipc_memory_t handle;
    void *ptr, *attached;

    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, &ptr));
    assert_success(hsa_amd_ipc_memory_create(ptr, MIB, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, MIB, 0, NULL, &attached));
    assert_status(hsa_memory_free(attached), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_free(attached), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_ipc_memory_detach(attached));
    assert_success(hsa_memory_free(ptr));
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* hsa_amd_memory_pool_allocate(memory_pool, size, flags, ptr) and hsa_amd_memory_pool_free(ptr): the same memory as by
 * regions, and freed by either, once, by its address. */
static void test_pool(void **state)
{
    void *ptr;

    for (unsigned i = 0; i < AGENTS; i++)
        for (unsigned k = 0; k < POOLS; k++) {
            assert_success(hsa_amd_memory_pool_allocate(pools[i][k], BYTES, 0, &ptr));
            memset(ptr, 1, BYTES);
            assert_success(hsa_memory_free(ptr));
            assert_success(hsa_memory_allocate(regions[i][k], BYTES, &ptr));
            assert_status(hsa_amd_memory_pool_free((char *)ptr + 4096), HSA_STATUS_ERROR_INVALID_ALLOCATION);
            assert_status(hsa_amd_memory_pool_free(&ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
            assert_success(hsa_amd_memory_pool_free(ptr));
            assert_status(hsa_amd_memory_pool_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        }
    assert_success(hsa_amd_memory_pool_free(NULL));
}

/* hsa_amd_memory_pool_allocate, flags: wishes for GPUs; none is an error. */
static void test_pool_flags(void **state)
{
    const uint32_t flags[] = {HSA_AMD_MEMORY_POOL_STANDARD_FLAG,   HSA_AMD_MEMORY_POOL_PCIE_FLAG,
                              HSA_AMD_MEMORY_POOL_CONTIGUOUS_FLAG, HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG,
                              HSA_AMD_MEMORY_POOL_UNCACHED_FLAG,   UINT32_MAX};
    void *ptr;

    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], 4096, flags[i], &ptr));
        assert_success(hsa_amd_memory_pool_free(ptr));
    }
}

/* hsa_amd_memory_pool_allocate: INVALID_ARGUMENT first, INVALID_MEMORY_POOL also for regions that are no pools,
 * INVALID_ALLOCATION above ALLOC_MAX_SIZE, OUT_OF_RESOURCES when that has become less. */
static void test_pool_errors(void **state)
{
    hsa_amd_memory_pool_t readonly = {region_of(HSA_REGION_SEGMENT_READONLY).handle};
    void *ptr, *other;

    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], 0, 0, &ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], 1, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){0}, 0, 0, &ptr),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){0}, 1, 0, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){0}, 1, 0, &ptr), INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){agents[0].handle}, 1, 0, &ptr),
                  INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){(uintptr_t)&ptr}, 1, 0, &ptr),
                  INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_pool_allocate(readonly, 1, 0, &ptr), INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], NODE_BYTES + 1, 0, &ptr),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE_MAX, 0, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], NODE_BYTES, 0, &ptr));
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], MIB, 0, &other), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_success(hsa_amd_memory_pool_free(ptr));
}

/* ---- the runtime's end ------------------------------------------------------------------------------------------- */

/* NOT_INITIALIZED "The HSA runtime has not been initialized", before anything else is looked at. */
static void test_not_initialized(void **state)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    char memory[64];
    void *ptr = memory;

    assert_success(hsa_shut_down());
    assert_status(hsa_memory_allocate((hsa_region_t){0}, 0, NULL), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_memory_free(NULL), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_memory_copy(NULL, NULL, 0), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_memory_assign_agent(NULL, agents[0], HSA_ACCESS_PERMISSION_RW), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_memory_register(NULL, 0), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_memory_deregister(NULL, 0), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], 1, 0, &ptr), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_memory_pool_free(NULL), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, ptr), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_memory_fill(ptr, 0, 1), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_memory_lock(ptr, 1, NULL, 0, &ptr), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_memory_lock_to_pool(ptr, 1, NULL, 0, pools[0][FINE], 0, &ptr),
                  HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_memory_unlock(ptr), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_status(hsa_amd_pointer_info_set_userdata(ptr, NULL), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_success(hsa_init());
}

/* hsa_shut_down to 0 frees what was allocated; afterwards it is unknown. */
static void test_shut_down_frees(void **state)
{
    void *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, &ptr));
    assert_success(hsa_memory_register(&ptr, sizeof(ptr)));
    assert_success(hsa_shut_down());
    hsa_nothing_left(state);
    assert_success(hsa_init());
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

struct search {
    hsa_region_segment_t segment;
    hsa_region_t found;
};

static hsa_status_t look_at(hsa_region_t region, void *data)
{
    struct search *search = data;
    hsa_region_segment_t segment;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_SEGMENT, &segment));
    if (segment != search->segment)
        return HSA_STATUS_SUCCESS;
    search->found = region;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_region_t region_of(hsa_region_segment_t segment)
{
    struct search search = {.segment = segment};

    assert_status(hsa_agent_iterate_regions(agents[0], look_at, &search), HSA_STATUS_INFO_BREAK);
    return search.found;
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_allocate),
        TEST(test_allocate_granule),
        TEST(test_allocate_alignment),
        TEST(test_allocate_invalid_argument),
        TEST(test_allocate_invalid_region),
        TEST(test_allocate_not_allowed),
        TEST(test_allocate_too_large),
        TEST(test_allocate_out_of_resources),
        TEST(test_allocate_requests),
        TEST(test_allocate_arena_full),
        TEST(test_free_allocated),
        TEST(test_free_unknown),
        TEST(test_free_attached),
        TEST(test_pool),
        TEST(test_pool_flags),
        TEST(test_pool_errors),
        TEST(test_not_initialized),
        TEST(test_shut_down_frees),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
