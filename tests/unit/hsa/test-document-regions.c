/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSA's document on memory, its first part: regions and what can be asked of them. Each test quotes the function and
 * what of it is checked, as COVERAGE lists them.
 */
#include "tests/unit/hsa/hsa.h"

#include <pthread.h>
#include <string.h>

#include "tests/unit/hsa/vmem.h"

#define REGIONS_MAX 64

struct listing {
    unsigned n;
    hsa_region_t regions[REGIONS_MAX];
};

static hsa_status_t note(hsa_region_t region, void *data)
{
    struct listing *listing = data;

    if (listing->n == REGIONS_MAX)
        return HSA_STATUS_ERROR_EXCEPTION;
    listing->regions[listing->n++] = region;
    return HSA_STATUS_SUCCESS;
}

static struct listing regions_of(hsa_agent_t agent)
{
    struct listing listing = {0};

    assert_success(hsa_agent_iterate_regions(agent, note, &listing));
    return listing;
}

static bool is_listed(const struct listing *listing, hsa_region_t region)
{
    for (unsigned i = 0; i < listing->n; i++)
        if (listing->regions[i].handle == region.handle)
            return true;
    return false;
}

/* The attribute has just this many bytes: what follows stays as it was. */
static void assert_width(hsa_region_t region, hsa_region_info_t attribute, size_t width)
{
    unsigned char value[64];

    memset(value, 0xA5, sizeof(value));
    assert_success(hsa_region_get_info(region, attribute, value));
    for (size_t i = width; i < sizeof(value); i++)
        if (value[i] != 0xA5)
            fail_msg("attribute %u: byte %zu was written", (unsigned)attribute, i);
}

static hsa_region_segment_t segment_of(hsa_region_t region)
{
    hsa_region_segment_t segment = HSA_REGION_SEGMENT_KERNARG;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_SEGMENT, &segment));
    return segment;
}

static size_t size_info(hsa_region_t region, hsa_region_info_t attribute)
{
    size_t value = SIZE_MAX;

    assert_success(hsa_region_get_info(region, attribute, &value));
    return value;
}

static uint32_t flags_of(hsa_region_t region)
{
    uint32_t flags = UINT32_MAX;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_GLOBAL_FLAGS, &flags));
    return flags;
}

static bool is_allocatable(hsa_region_t region)
{
    bool allowed = false;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
    return allowed;
}

/* The agent's own region of that segment. */
static hsa_region_t region_of_segment(hsa_agent_t agent, hsa_region_segment_t segment)
{
    struct listing listing = regions_of(agent);

    for (unsigned i = 0; i < listing.n; i++)
        if (segment_of(listing.regions[i]) == segment)
            return listing.regions[i];
    fail_msg("no region of segment %u", (unsigned)segment);
    return (hsa_region_t){0};
}

/* ---- hsa_region_get_info() ------------------------------------------------------------------------------- */

/* hsa_region_get_info(region, attribute, value): region "A valid region": every one that is listed.
 * HSA_STATUS_SUCCESS; HSA_STATUS_ERROR_INVALID_REGION for any other. */
static void region_get_info_region(void **state)
{
    const uint64_t none[] = {0, 1, agents[0].handle, agents[1].handle, UINT64_MAX, INT64_MAX, (uintptr_t)&none};
    hsa_region_segment_t segment = HSA_REGION_SEGMENT_KERNARG;

    (void)state;
    for (unsigned a = 0; a < AGENTS; a++) {
        struct listing listing = regions_of(agents[a]);

        for (unsigned i = 0; i < listing.n; i++)
            assert_status(hsa_region_get_info(listing.regions[i], HSA_REGION_INFO_SEGMENT, &segment),
                          HSA_STATUS_SUCCESS);
    }
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_region_get_info((hsa_region_t){none[i]}, HSA_REGION_INFO_SEGMENT, &segment),
                      HSA_STATUS_ERROR_INVALID_REGION);
}

/* hsa_region_get_info(): attribute: HSA_STATUS_ERROR_INVALID_ARGUMENT if it is none, value left alone. */
static void region_get_info_attribute(void **state)
{
    const unsigned none[] = {3, 9, 15, 16, 0xA004, 0x7FFFFFFF};
    size_t value = 77;

    (void)state;
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_region_get_info(regions[0][FINE], (hsa_region_info_t)none[i], &value),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(value, 77);
}

/* hsa_region_get_info(): value "Pointer to a application-allocated buffer": NULL is
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, whatever else is wrong; nothing behind the attribute's type is written. */
static void region_get_info_value(void **state)
{
    (void)state;
    assert_status(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_SIZE, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_region_get_info((hsa_region_t){0}, HSA_REGION_INFO_SIZE, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_width(regions[0][FINE], HSA_REGION_INFO_SIZE, sizeof(size_t));
}

/* hsa_region_get_info(HSA_REGION_INFO_SEGMENT): "The type of this attribute is hsa_region_segment_t", and there are
 * regions of HSA_REGION_SEGMENT_GLOBAL, _READONLY, _PRIVATE and _GROUP. */
static void region_info_segment(void **state)
{
    unsigned found[5] = {0};
    struct listing listing = regions_of(agents[0]);

    (void)state;
    assert_width(regions[0][FINE], HSA_REGION_INFO_SEGMENT, sizeof(hsa_region_segment_t));
    for (unsigned i = 0; i < listing.n; i++) {
        assert_true(segment_of(listing.regions[i]) <= HSA_REGION_SEGMENT_KERNARG);
        found[segment_of(listing.regions[i])]++;
    }
    assert_true(found[HSA_REGION_SEGMENT_GLOBAL] >= POOLS);
    assert_true(found[HSA_REGION_SEGMENT_READONLY]);
    assert_true(found[HSA_REGION_SEGMENT_PRIVATE]);
    assert_true(found[HSA_REGION_SEGMENT_GROUP]);
}

/* hsa_region_get_info(HSA_REGION_INFO_GLOBAL_FLAGS): "Flag mask", uint32_t, of hsa_region_global_flag_t values. */
static void region_info_global_flags(void **state)
{
    struct listing listing = regions_of(agents[0]);

    (void)state;
    for (unsigned i = 0; i < listing.n; i++) {
        assert_width(listing.regions[i], HSA_REGION_INFO_GLOBAL_FLAGS, sizeof(uint32_t));
        if (segment_of(listing.regions[i]) == HSA_REGION_SEGMENT_GLOBAL) {
            assert_int_not_equal(flags_of(listing.regions[i]), 0);
            assert_int_equal(flags_of(listing.regions[i]) & ~15U, 0);
        }
    }
}

/* hsa_region_get_info(HSA_REGION_INFO_SIZE): "Size of this region, in bytes", size_t. */
static void region_info_size(void **state)
{
    (void)state;
    assert_width(regions[0][COARSE], HSA_REGION_INFO_SIZE, sizeof(size_t));
    /* as the broker is configured */
    for (unsigned k = 0; k < POOLS; k++)
        assert_int_equal(size_info(regions[1][k], HSA_REGION_INFO_SIZE), 64 * MIB);
}

/* hsa_region_get_info(HSA_REGION_INFO_ALLOC_MAX_SIZE): size_t, "Must not exceed the value of HSA_REGION_INFO_SIZE";
 * "the maximum size that the application can pass to hsa_memory_allocate", of which one byte more is refused. */
static void region_info_alloc_max_size(void **state)
{
    struct listing listing = regions_of(agents[0]);
    size_t max;
    void *ptr;

    (void)state;
    for (unsigned i = 0; i < listing.n; i++) {
        assert_width(listing.regions[i], HSA_REGION_INFO_ALLOC_MAX_SIZE, sizeof(size_t));
        assert_true(size_info(listing.regions[i], HSA_REGION_INFO_ALLOC_MAX_SIZE) <=
                    size_info(listing.regions[i], HSA_REGION_INFO_SIZE));
    }
    for (unsigned k = 0; k < POOLS; k++) {
        max = size_info(regions[0][k], HSA_REGION_INFO_ALLOC_MAX_SIZE);
        assert_true(max > 0);
        assert_status(hsa_memory_allocate(regions[0][k], max + 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        assert_success(hsa_memory_allocate(regions[0][k], max, &ptr));
        memset(ptr, 1, max);
        assert_success(hsa_memory_free(ptr));
    }
}

/* hsa_region_get_info(HSA_REGION_INFO_ALLOC_MAX_SIZE) of the group segment: "the maximum size (per work-group)"; of
 * the private segment "must be at least 256 bytes". */
static void region_info_alloc_max_size_of_kernels(void **state)
{
    (void)state;
    for (unsigned a = 0; a < AGENTS; a++) {
        assert_true(size_info(region_of_segment(agents[a], HSA_REGION_SEGMENT_PRIVATE),
                              HSA_REGION_INFO_ALLOC_MAX_SIZE) >= 256);
        assert_true(size_info(region_of_segment(agents[a], HSA_REGION_SEGMENT_GROUP),
                              HSA_REGION_INFO_ALLOC_MAX_SIZE) > 0);
    }
}

/* hsa_region_get_info(HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE): uint32_t, of the private segment "at least
 * 65536 bytes"; of others it is an attribute too, undefined, here 0. */
static void region_info_alloc_max_private_workgroup_size(void **state)
{
    uint32_t value = 0;

    (void)state;
    for (unsigned a = 0; a < AGENTS; a++) {
        hsa_region_t region = region_of_segment(agents[a], HSA_REGION_SEGMENT_PRIVATE);

        assert_width(region, HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, sizeof(uint32_t));
        assert_success(hsa_region_get_info(region, HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, &value));
        assert_true(value >= 65536);
        assert_success(
            hsa_region_get_info(regions[a][FINE], HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, &value));
        assert_int_equal(value, 0);
    }
}

/* hsa_region_get_info(HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED): bool, "whether memory in this region can be allocated
 * using hsa_memory_allocate"; "always false for regions in the group and private segments". */
static void region_info_runtime_alloc_allowed(void **state)
{
    struct listing listing = regions_of(agents[0]);

    (void)state;
    for (unsigned i = 0; i < listing.n; i++) {
        hsa_region_t region = listing.regions[i];
        hsa_region_segment_t segment = segment_of(region);
        void *ptr;

        assert_width(region, HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, sizeof(bool));
        if (segment == HSA_REGION_SEGMENT_GROUP || segment == HSA_REGION_SEGMENT_PRIVATE)
            assert_false(is_allocatable(region));
        if (is_allocatable(region)) {
            assert_success(hsa_memory_allocate(region, 1, &ptr));
            assert_success(hsa_memory_free(ptr));
        } else {
            assert_status(hsa_memory_allocate(region, 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        }
    }
}

/* hsa_region_get_info(HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE): size_t; "The size of a buffer allocated in this
 * region is a multiple of the value of this attribute": what hsa_memory_allocate() made is, and can be used to its
 * end. */
static void region_info_runtime_alloc_granule(void **state)
{
    (void)state;
    assert_width(regions[0][FINE], HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE, sizeof(size_t));
    for (unsigned k = 0; k < POOLS; k++) {
        size_t granule = size_info(regions[0][k], HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE);
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
        struct memclient_buffer *buffer;
        void *ptr;

        assert_true(granule > 0);
        assert_success(hsa_memory_allocate(regions[0][k], granule + 1, &ptr));
        memset(ptr, 1, 2 * granule);
        assert_success(memclient_hsa_buffer(ptr, &buffer));
        assert_int_equal(memclient_buffer_info(buffer, &info), 0);
        assert_true(info.bytes >= 2 * granule);
        assert_int_equal(info.bytes % granule, 0);
        memclient_buffer_unref(buffer);
        assert_success(hsa_memory_free(ptr));
    }
}

/* hsa_region_get_info(HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT): size_t, "must be a power of 2": "Alignment of buffers
 * allocated by hsa_memory_allocate in this region". */
static void region_info_runtime_alloc_alignment(void **state)
{
    (void)state;
    assert_width(regions[0][FINE], HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT, sizeof(size_t));
    for (unsigned k = 0; k < POOLS; k++) {
        size_t alignment = size_info(regions[0][k], HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT);
        void *ptr[3];

        assert_true(alignment > 0 && (alignment & (alignment - 1)) == 0);
        for (unsigned i = 0; i < 3; i++) {
            assert_success(hsa_memory_allocate(regions[0][k], 1 + i * alignment, &ptr[i]));
            assert_int_equal((uintptr_t)ptr[i] % alignment, 0);
        }
        for (unsigned i = 0; i < 3; i++)
            assert_success(hsa_memory_free(ptr[i]));
    }
}

/* ---- enumerators ----------------------------------------------------------------------------------------- */

/* The document's values: hsa_region_segment_t, hsa_region_global_flag_t and hsa_region_info_t, as
 * hsa_region_get_info() takes and gives them. */
static void region_enumerators(void **state)
{
    (void)state;
    assert_int_equal(HSA_REGION_SEGMENT_GLOBAL, 0);
    assert_int_equal(HSA_REGION_SEGMENT_READONLY, 1);
    assert_int_equal(HSA_REGION_SEGMENT_PRIVATE, 2);
    assert_int_equal(HSA_REGION_SEGMENT_GROUP, 3);
    assert_int_equal(HSA_REGION_SEGMENT_KERNARG, 4);
    assert_int_equal(HSA_REGION_GLOBAL_FLAG_KERNARG, 1);
    assert_int_equal(HSA_REGION_GLOBAL_FLAG_FINE_GRAINED, 2);
    assert_int_equal(HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED, 4);
    assert_int_equal(HSA_REGION_INFO_SEGMENT, 0);
    assert_int_equal(HSA_REGION_INFO_GLOBAL_FLAGS, 1);
    assert_int_equal(HSA_REGION_INFO_SIZE, 2);
    assert_int_equal(HSA_REGION_INFO_ALLOC_MAX_SIZE, 4);
    assert_int_equal(HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, 8);
    assert_int_equal(HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, 5);
    assert_int_equal(HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE, 6);
    assert_int_equal(HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT, 7);
}

/* hsa_region_segment_t: HSA_REGION_SEGMENT_GLOBAL "Used to hold data that is shared by all agents": every agent
 * lists it (hsa_agent_iterate_regions), so "A region might be associated with more than one agent" (hsa_region_t).
 * */
static void region_segment_global(void **state)
{
    (void)state;
    for (unsigned a = 0; a < AGENTS; a++) {
        struct listing listing = regions_of(agents[a]);

        for (unsigned b = 0; b < AGENTS; b++)
            for (unsigned k = 0; k < POOLS; k++)
                assert_true(is_listed(&listing, regions[b][k]));
    }
}

/* hsa_region_segment_t: HSA_REGION_SEGMENT_READONLY, HSA_REGION_SEGMENT_PRIVATE and HSA_REGION_SEGMENT_GROUP are for
 * kernels: of the agent that runs them alone (hsa_agent_iterate_regions), and nothing is allocated there. */
static void region_segments_of_kernels(void **state)
{
    const hsa_region_segment_t segments[] = {HSA_REGION_SEGMENT_READONLY, HSA_REGION_SEGMENT_PRIVATE,
                                             HSA_REGION_SEGMENT_GROUP};
    struct listing other = regions_of(agents[1]);
    void *ptr;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        hsa_region_t region = region_of_segment(agents[0], segments[i]);

        assert_false(is_listed(&other, region));
        assert_status(hsa_memory_allocate(region, 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    }
}

/* hsa_region_segment_t: HSA_REGION_SEGMENT_KERNARG "Used to store kernel arguments"; hsa_region_global_flag_t:
 * HSA_REGION_GLOBAL_FLAG_KERNARG "The application can use memory in the region to store kernel arguments. If this
 * flag is set, then HSA_REGION_GLOBAL_FLAG_FINE_GRAINED must be set": arguments are in a global region,
 * hsa_agent_iterate_regions() lists none of the segment. */
static void region_flag_kernarg(void **state)
{
    struct listing listing = regions_of(agents[0]);
    unsigned found = 0;
    char *ptr;

    (void)state;
    for (unsigned i = 0; i < listing.n; i++) {
        uint32_t flags = flags_of(listing.regions[i]);

        assert_int_not_equal(segment_of(listing.regions[i]), HSA_REGION_SEGMENT_KERNARG);
        if (!(flags & HSA_REGION_GLOBAL_FLAG_KERNARG))
            continue;
        found++;
        assert_true(flags & HSA_REGION_GLOBAL_FLAG_FINE_GRAINED);
        assert_success(hsa_memory_allocate(listing.regions[i], 4096, (void **)&ptr));
        memset(ptr, 7, 4096);
        assert_success(hsa_memory_free(ptr));
    }
    assert_int_equal(found, AGENTS);
}

static void *as_another_agent(void *data)
{
    volatile unsigned *word = data;

    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 1)
        ;
    __atomic_store_n(word, 2, __ATOMIC_RELEASE);
    return NULL;
}

/* hsa_region_global_flag_t: HSA_REGION_GLOBAL_FLAG_FINE_GRAINED "Updates to memory in this region are immediately
 * visible to all the agents"; "then HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED must not be set"
 * (hsa_agent_iterate_regions). */
static void region_flag_fine_grained(void **state)
{
    struct listing listing = regions_of(agents[0]);
    volatile unsigned *word;
    pthread_t thread;

    (void)state;
    for (unsigned i = 0; i < listing.n; i++)
        if (flags_of(listing.regions[i]) & HSA_REGION_GLOBAL_FLAG_FINE_GRAINED)
            assert_false(flags_of(listing.regions[i]) & HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED);
    assert_success(hsa_memory_allocate(regions[1][FINE], sizeof(*word), (void **)&word));
    assert_int_equal(pthread_create(&thread, NULL, as_another_agent, (void *)word), 0);
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 2)
        ;
    pthread_join(thread, NULL);
    assert_success(hsa_memory_free((void *)word));
}

/* hsa_region_global_flag_t: HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED "Updates to memory in this region can be
 * performed by a single agent at a time", who gets it by hsa_memory_assign_agent(); there is such a region
 * (hsa_agent_iterate_regions). */
static void region_flag_coarse_grained(void **state)
{
    void *ptr;

    (void)state;
    assert_int_equal(flags_of(regions[0][COARSE]), HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED);
    assert_success(hsa_memory_allocate(regions[0][COARSE], 4096, &ptr));
    assert_true(vmem_is_writable(ptr));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RO));
    assert_false(vmem_is_writable(ptr));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RW));
    assert_true(vmem_is_writable(ptr));
    assert_success(hsa_memory_free(ptr));
}

/* ---- hsa_agent_iterate_regions() ------------------------------------------------------------------------- */

/* hsa_agent_iterate_regions(agent, callback, data): agent "A valid agent", HSA_STATUS_SUCCESS; else
 * HSA_STATUS_ERROR_INVALID_AGENT, and nothing is called. */
static void iterate_regions_agent(void **state)
{
    const uint64_t none[] = {0, 1, regions[0][FINE].handle, UINT64_MAX, INT64_MAX, (uintptr_t)&none};
    struct listing listing = {0};

    (void)state;
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_agent_iterate_regions((hsa_agent_t){none[i]}, note, &listing),
                      HSA_STATUS_ERROR_INVALID_AGENT);
    assert_int_equal(listing.n, 0);
    assert_status(hsa_agent_iterate_regions(agents[1], note, &listing), HSA_STATUS_SUCCESS);
    assert_true(listing.n >= POOLS);
}

/* hsa_agent_iterate_regions(): callback: HSA_STATUS_ERROR_INVALID_ARGUMENT if it is NULL. "invoked once per region
 * that is accessible from the agent", its own first. */
static void iterate_regions_callback(void **state)
{
    (void)state;
    assert_status(hsa_agent_iterate_regions(agents[0], NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_agent_iterate_regions((hsa_agent_t){0}, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (unsigned a = 0; a < AGENTS; a++) {
        struct listing listing = regions_of(agents[a]);

        for (unsigned i = 0; i < listing.n; i++)
            for (unsigned k = i + 1; k < listing.n; k++)
                assert_int_not_equal(listing.regions[i].handle, listing.regions[k].handle);
        assert_int_equal(listing.regions[0].handle, regions[a][FINE].handle);
    }
}

static unsigned calls;

static hsa_status_t stop_at_second(hsa_region_t region, void *data)
{
    (void)region;
    (void)data;
    return ++calls == 2 ? HSA_STATUS_ERROR_FATAL : HSA_STATUS_SUCCESS;
}

static hsa_status_t break_off(hsa_region_t region, void *data)
{
    (void)region;
    (void)data;
    calls++;
    return HSA_STATUS_INFO_BREAK;
}

/* hsa_agent_iterate_regions(): "If callback returns a status other than HSA_STATUS_SUCCESS for a particular
 * iteration, the traversal stops and hsa_agent_iterate_regions returns that status value". */
static void iterate_regions_stops(void **state)
{
    (void)state;
    calls = 0;
    assert_status(hsa_agent_iterate_regions(agents[0], stop_at_second, NULL), HSA_STATUS_ERROR_FATAL);
    assert_int_equal(calls, 2);
    calls = 0;
    assert_status(hsa_agent_iterate_regions(agents[0], break_off, NULL), HSA_STATUS_INFO_BREAK);
    assert_int_equal(calls, 1);
}

static hsa_status_t compare_data(hsa_region_t region, void *data)
{
    (void)region;
    return data == &calls ? HSA_STATUS_SUCCESS : data ? HSA_STATUS_ERROR : HSA_STATUS_ERROR_EXCEPTION;
}

/* hsa_agent_iterate_regions(): data "is passed to callback on every iteration. May be NULL". */
static void iterate_regions_data(void **state)
{
    (void)state;
    assert_success(hsa_agent_iterate_regions(agents[0], compare_data, &calls));
    assert_status(hsa_agent_iterate_regions(agents[0], compare_data, NULL), HSA_STATUS_ERROR_EXCEPTION);
}

static hsa_status_t allocate_there(hsa_region_t region, void *data)
{
    void *ptr;

    (void)data;
    if (!is_allocatable(region))
        return HSA_STATUS_SUCCESS;
    return hsa_memory_allocate(region, 4096, &ptr) ? HSA_STATUS_ERROR : hsa_memory_free(ptr);
}

/* hsa_agent_iterate_regions(): "invoke an application-defined callback on every iteration", which may call
 * everything. */
static void iterate_regions_may_call(void **state)
{
    (void)state;
    assert_success(hsa_agent_iterate_regions(agents[0], allocate_there, NULL));
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(region_get_info_region),
        TEST(region_get_info_attribute),
        TEST(region_get_info_value),
        TEST(region_info_segment),
        TEST(region_info_global_flags),
        TEST(region_info_size),
        TEST(region_info_alloc_max_size),
        TEST(region_info_alloc_max_size_of_kernels),
        TEST(region_info_alloc_max_private_workgroup_size),
        TEST(region_info_runtime_alloc_allowed),
        TEST(region_info_runtime_alloc_granule),
        TEST(region_info_runtime_alloc_alignment),
        TEST(region_enumerators),
        TEST(region_segment_global),
        TEST(region_segments_of_kernels),
        TEST(region_flag_kernarg),
        TEST(region_flag_fine_grained),
        TEST(region_flag_coarse_grained),
        TEST(iterate_regions_agent),
        TEST(iterate_regions_callback),
        TEST(iterate_regions_stops),
        TEST(iterate_regions_data),
        TEST(iterate_regions_may_call),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
