/* SPDX-License-Identifier: Apache-2.0 */
/* hsa_agent_iterate_regions, and hsa_region_get_info with every attribute of hsa_region_info_t and of AMD's. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/hsa/ask.h"

#define OWN        6          /* regions of an agent: three global ones, read-only, group, private */
#define NODE_BYTES (64 * MIB) /* as configured below */

static hsa_status_t visit_region(hsa_region_t region, void *data)
{
    return visit(region.handle, data);
}

static struct visit regions_of(unsigned agent)
{
    struct visit v = {0};

    assert_success(hsa_agent_iterate_regions(agents[agent], visit_region, &v));
    return v;
}

static hsa_region_segment_t segment_of(uint64_t region)
{
    hsa_region_segment_t segment;

    assert_success(ask_region(region, HSA_REGION_INFO_SEGMENT, &segment));
    return segment;
}

static uint32_t flags_of(uint64_t region)
{
    uint32_t flags;

    assert_success(ask_region(region, HSA_REGION_INFO_GLOBAL_FLAGS, &flags));
    return flags;
}

static size_t size_of(uint64_t region, hsa_region_info_t attribute)
{
    size_t size;

    assert_success(ask_region(region, attribute, &size));
    return size;
}

static bool may_allocate(uint64_t region)
{
    bool allowed;

    assert_success(ask_region(region, HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
    return allowed;
}

static uint64_t region_of_segment(unsigned agent, hsa_region_segment_t segment)
{
    struct visit v = regions_of(agent);

    for (unsigned i = 0; i < OWN; i++)
        if (segment_of(v.seen[i]) == segment)
            return v.seen[i];
    fail_msg("agent %u has no region of segment %d", agent, (int)segment);
    return 0;
}

static bool is_seen(const struct visit *v, uint64_t region)
{
    for (unsigned i = 0; i < v->calls; i++)
        if (v->seen[i] == region)
            return true;
    return false;
}

/*
 * hsa_agent_iterate_regions, agent and callback: "invoked once per region that is accessible from the agent",
 * HSA_STATUS_SUCCESS. First its own, then the global ones of the other agents. hsa_region_t: "A region might be
 * associated with more than one agent".
 *
 * hsa_region_segment_t, which is HSA_REGION_INFO_SEGMENT of hsa_region_get_info: HSA_REGION_SEGMENT_GLOBAL "Used to
 * hold data that is shared by all agents"; HSA_REGION_SEGMENT_READONLY, HSA_REGION_SEGMENT_PRIVATE and
 * HSA_REGION_SEGMENT_GROUP are for the kernels of one agent. Kernels' arguments are in a global region, and none is of
 * HSA_REGION_SEGMENT_KERNARG.
 */
static void iterate_regions(void **state)
{
    static const hsa_region_segment_t own[OWN] = {HSA_REGION_SEGMENT_GLOBAL, HSA_REGION_SEGMENT_GLOBAL,
                                                  HSA_REGION_SEGMENT_GLOBAL, HSA_REGION_SEGMENT_READONLY,
                                                  HSA_REGION_SEGMENT_GROUP,  HSA_REGION_SEGMENT_PRIVATE};

    for (unsigned agent = 0; agent < AGENTS; agent++) {
        struct visit v = regions_of(agent), others = regions_of(1 - agent);

        assert_int_equal(v.calls, OWN + POOLS);
        for (unsigned i = 0; i < v.calls; i++)
            for (unsigned k = 0; k < i; k++)
                assert_int_not_equal(v.seen[i], v.seen[k]);
        for (unsigned i = 0; i < OWN; i++)
            assert_int_equal(segment_of(v.seen[i]), own[i]);
        for (unsigned i = 0; i < OWN; i++)
            assert_int_equal(is_seen(&others, v.seen[i]), own[i] == HSA_REGION_SEGMENT_GLOBAL);
        for (unsigned kind = 0; kind < POOLS; kind++) {
            assert_int_equal(v.seen[kind], regions[agent][kind].handle);
            assert_int_equal(v.seen[OWN + kind], regions[1 - agent][kind].handle);
        }
    }
}

/* hsa_agent_iterate_regions, callback: "If callback returns a status other than HSA_STATUS_SUCCESS for a particular
 * iteration, the traversal stops and hsa_agent_iterate_regions returns that status value." Also among others' ones. */
static void iterate_regions_ends_early(void **state)
{
    for (unsigned end = 1; end <= OWN + POOLS; end++) {
        struct visit v = {.end_at = end, .end_with = end % 2 ? HSA_STATUS_INFO_BREAK : HSA_STATUS_ERROR};

        assert_status(hsa_agent_iterate_regions(agents[0], visit_region, &v), v.end_with);
        assert_int_equal(v.calls, end);
    }
}

static hsa_status_t expect_null(hsa_region_t region, void *data)
{
    (void)region;
    assert_null(data);
    return HSA_STATUS_SUCCESS;
}

/* hsa_agent_iterate_regions, data: "May be NULL." HSA_STATUS_ERROR_INVALID_AGENT: "The agent is invalid."
 * HSA_STATUS_ERROR_INVALID_ARGUMENT: "callback is NULL", which is looked at first. */
static void iterate_regions_arguments(void **state)
{
    const uint64_t none[] = {0, 1, regions[0][FINE].handle, UINT64_MAX, INT64_MAX, (uintptr_t)&none};
    struct visit v = {0};

    assert_success(hsa_agent_iterate_regions(agents[0], expect_null, NULL));
    assert_status(hsa_agent_iterate_regions(agents[0], NULL, &v), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_agent_iterate_regions((hsa_agent_t){0}, NULL, &v), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (unsigned bit = 0; bit < 64; bit++)
        if ((agents[0].handle ^ UINT64_C(1) << bit) != agents[1].handle)
            assert_status(
                hsa_agent_iterate_regions((hsa_agent_t){agents[0].handle ^ UINT64_C(1) << bit}, visit_region, &v),
                HSA_STATUS_ERROR_INVALID_AGENT);
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_agent_iterate_regions((hsa_agent_t){none[i]}, visit_region, &v),
                      HSA_STATUS_ERROR_INVALID_AGENT);
    assert_int_equal(v.calls, 0);
}

static hsa_status_t allocate_there(hsa_region_t region, void *data)
{
    void *ptr;

    if (!may_allocate(region.handle))
        return HSA_STATUS_SUCCESS;
    return hsa_memory_allocate(region, 4096, &ptr) ? HSA_STATUS_ERROR : hsa_memory_free(ptr);
}

/* hsa_agent_iterate_regions: "invoke an application-defined callback on every iteration", which may call everything. */
static void iterate_regions_may_call(void **state)
{
    assert_success(hsa_agent_iterate_regions(agents[0], allocate_there, NULL));
}

/* hsa_region_get_info, attribute and value, of hsa_region_info_t: each attribute has its size, and nothing else is an
 * attribute: INVALID_ARGUMENT, and nothing is written. */
static void attributes(void **state)
{
    static const struct attribute rows[] = {
        ATTRIBUTE(HSA_REGION_INFO_SEGMENT, hsa_region_segment_t, DIFFERS),
        ATTRIBUTE(HSA_REGION_INFO_GLOBAL_FLAGS, uint32_t, DIFFERS),
        ATTRIBUTE(HSA_REGION_INFO_SIZE, size_t, DIFFERS),
        ATTRIBUTE(HSA_REGION_INFO_ALLOC_MAX_SIZE, size_t, DIFFERS),
        ATTRIBUTE(HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, uint32_t, DIFFERS),
        ATTRIBUTE(HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, bool, DIFFERS),
        ATTRIBUTE(HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE, size_t, DIFFERS),
        ATTRIBUTE(HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT, size_t, DIFFERS),
        ATTRIBUTE(HSA_AMD_REGION_INFO_HOST_ACCESSIBLE, bool, DIFFERS),
        ATTRIBUTE(HSA_AMD_REGION_INFO_BASE, void *, 0),
        ATTRIBUTE(HSA_AMD_REGION_INFO_BUS_WIDTH, uint32_t, 0),
        ATTRIBUTE(HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY, uint32_t, 0),
    };
    struct visit v = regions_of(0);

    for (unsigned i = 0; i < v.calls; i++)
        ask_all(ask_region, v.seen[i], rows, sizeof(rows) / sizeof(rows[0]));
}

/* hsa_region_get_info, region: HSA_STATUS_SUCCESS for every one, HSA_STATUS_ERROR_INVALID_REGION, "The region is
 * invalid", for an agent as for any other handle. value and attribute:
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, "attribute is an invalid region attribute, or value is NULL." */
static void invalid_regions(void **state)
{
    uint64_t handles[AGENTS * OWN];

    for (unsigned agent = 0; agent < AGENTS; agent++)
        for (unsigned i = 0; i < OWN; i++)
            handles[agent * OWN + i] = regions_of(agent).seen[i];
    ask_handles(ask_region, HSA_REGION_INFO_SEGMENT, handles, AGENTS * OWN, HSA_STATUS_ERROR_INVALID_REGION);
    ask_in_order(ask_region, handles[0], HSA_REGION_INFO_SEGMENT, HSA_STATUS_ERROR_INVALID_REGION);
    for (unsigned agent = 0; agent < AGENTS; agent++)
        assert_status(ask_region(agents[agent].handle, HSA_REGION_INFO_SEGMENT, handles),
                      HSA_STATUS_ERROR_INVALID_REGION);
    assert_status(ask_region(INT64_MAX, HSA_REGION_INFO_SEGMENT, handles), HSA_STATUS_ERROR_INVALID_REGION);
}

/* hsa_region_global_flag_t, which are HSA_REGION_INFO_GLOBAL_FLAGS of hsa_region_get_info.
 * HSA_REGION_GLOBAL_FLAG_KERNARG, "can use memory in the region to store kernel arguments": "If this flag is set, then
 * HSA_REGION_GLOBAL_FLAG_FINE_GRAINED must be set." FINE_GRAINED: "If this flag is set, then
 * HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED must not be set." The first region is fine-grained and not for kernel
 * arguments. */
static void global_flags(void **state)
{
    const uint32_t wanted[POOLS] = {
        [FINE] = HSA_REGION_GLOBAL_FLAG_FINE_GRAINED,
        [KERNARG] = HSA_REGION_GLOBAL_FLAG_FINE_GRAINED | HSA_REGION_GLOBAL_FLAG_KERNARG,
        [COARSE] = HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED,
    };
    struct visit v = regions_of(1);

    for (unsigned kind = 0; kind < POOLS; kind++) {
        assert_int_equal(flags_of(v.seen[kind]), wanted[kind]);
        assert_int_equal(flags_of(v.seen[OWN + kind]), wanted[kind]);
    }
    for (unsigned i = 0; i < v.calls; i++) {
        uint32_t flags = flags_of(v.seen[i]);

        if (flags & HSA_REGION_GLOBAL_FLAG_KERNARG)
            assert_true(flags & HSA_REGION_GLOBAL_FLAG_FINE_GRAINED);
        if (flags & HSA_REGION_GLOBAL_FLAG_FINE_GRAINED)
            assert_false(flags & HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED);
        if (segment_of(v.seen[i]) != HSA_REGION_SEGMENT_GLOBAL)
            assert_int_equal(flags, 0);
    }
}

static void *answer(void *word)
{
    while (__atomic_load_n((unsigned *)word, __ATOMIC_ACQUIRE) != 1)
        ;
    __atomic_store_n((unsigned *)word, 2, __ATOMIC_RELEASE);
    return NULL;
}

/* hsa_region_global_flag_t: HSA_REGION_GLOBAL_FLAG_FINE_GRAINED "Updates to memory in this region are immediately
 * visible to all the agents". */
static void fine_grained(void **state)
{
    unsigned *word;
    pthread_t thread;

    assert_success(hsa_memory_allocate(regions[1][FINE], sizeof(*word), (void **)&word));
    assert_int_equal(pthread_create(&thread, NULL, answer, word), 0);
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 2)
        ;
    pthread_join(thread, NULL);
    assert_success(hsa_memory_free(word));
}

/* HSA_REGION_INFO_SIZE of hsa_region_get_info: "in bytes", as configured. ALLOC_MAX_SIZE: "Must not exceed the value of
 * HSA_REGION_INFO_SIZE." The regions of a node have the same size, the node's, and what is allocated of one is missing
 * in all. */
static void sizes(void **state)
{
    struct visit v = regions_of(0);
    size_t before = size_of(regions[0][FINE].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE);
    size_t others = size_of(regions[1][FINE].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE);
    void *ptr;

    for (unsigned i = 0; i < v.calls; i++)
        assert_in_range(size_of(v.seen[i], HSA_REGION_INFO_ALLOC_MAX_SIZE), 0,
                        size_of(v.seen[i], HSA_REGION_INFO_SIZE));
    assert_in_range(before, MIB, SIZE_MAX);
    assert_success(hsa_memory_allocate(regions[0][FINE], 3 * MIB, &ptr));
    for (unsigned kind = 0; kind < POOLS; kind++) {
        assert_int_equal(size_of(regions[0][kind].handle, HSA_REGION_INFO_SIZE), NODE_BYTES);
        assert_int_equal(size_of(regions[1][kind].handle, HSA_REGION_INFO_SIZE), NODE_BYTES);
        assert_in_range(size_of(regions[0][kind].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE), before - 4 * MIB,
                        before - 3 * MIB);
    }
    assert_int_equal(size_of(regions[1][FINE].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE), others);
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(size_of(regions[0][FINE].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE), before);
}

/* HSA_REGION_INFO_ALLOC_MAX_SIZE of hsa_region_get_info: "If the region is in the global or readonly segments, this is
 * the maximum size that the application can pass to hsa_memory_allocate": all of that is there, and one more byte is
 * INVALID_ALLOCATION. */
static void maximum(void **state)
{
    uint64_t readonly = region_of_segment(0, HSA_REGION_SEGMENT_READONLY);
    void *ptr;

    for (unsigned kind = 0; kind < POOLS; kind++) {
        size_t max = size_of(regions[1][kind].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE);

        assert_status(hsa_memory_allocate(regions[1][kind], max + 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        assert_status(hsa_memory_allocate(regions[1][kind], SIZE_MAX, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
        assert_success(hsa_memory_allocate(regions[1][kind], max, &ptr));
        memset(ptr, 1, max);
        assert_success(hsa_memory_free(ptr));
    }
    assert_int_equal(size_of(readonly, HSA_REGION_INFO_ALLOC_MAX_SIZE), 0);
    assert_status(hsa_memory_allocate((hsa_region_t){readonly}, 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_region_get_info. HSA_REGION_INFO_ALLOC_MAX_SIZE: "If the region is in the private segment, this is the maximum
 * size (per work-item) that can be requested for a specific kernel dispatch, and must be at least 256 bytes"; in the
 * group segment there is one too (per work-group). HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE: "Must be at least
 * 65536 bytes" in the private segment, and is 0 elsewhere. */
static void regions_of_kernels(void **state)
{
    for (unsigned agent = 0; agent < AGENTS; agent++) {
        uint64_t region = region_of_segment(agent, HSA_REGION_SEGMENT_PRIVATE);
        uint64_t group = region_of_segment(agent, HSA_REGION_SEGMENT_GROUP);
        uint32_t of_group, other = 1;

        assert_in_range(size_of(region, HSA_REGION_INFO_ALLOC_MAX_SIZE), 256, SIZE_MAX);
        assert_in_range(size_of(group, HSA_REGION_INFO_ALLOC_MAX_SIZE), 1, SIZE_MAX);
        assert_success(ask_region(region, HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, &of_group));
        assert_in_range(of_group, 65536, UINT32_MAX);
        assert_success(
            ask_region(regions[agent][FINE].handle, HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE, &other));
        assert_int_equal(other, 0);
    }
}

/* HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED of hsa_region_get_info: "Indicates whether memory in this region can be
 * allocated using hsa_memory_allocate. The value of this flag is always false for regions in the group and private
 * segments." */
static void allowed(void **state)
{
    struct visit v = regions_of(0);

    assert_false(may_allocate(region_of_segment(0, HSA_REGION_SEGMENT_GROUP)));
    assert_false(may_allocate(region_of_segment(0, HSA_REGION_SEGMENT_PRIVATE)));
    for (unsigned i = 0; i < v.calls; i++) {
        bool accessible;
        void *ptr;
        hsa_status_t status = hsa_memory_allocate((hsa_region_t){v.seen[i]}, 1, &ptr);

        assert_success(ask_region(v.seen[i], HSA_AMD_REGION_INFO_HOST_ACCESSIBLE, &accessible));
        assert_int_equal(accessible, may_allocate(v.seen[i]));
        assert_int_equal(segment_of(v.seen[i]) == HSA_REGION_SEGMENT_GLOBAL, may_allocate(v.seen[i]));
        assert_status(status, may_allocate(v.seen[i]) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION);
        if (!status)
            assert_success(hsa_memory_free(ptr));
    }
}

/* hsa_region_get_info. HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE: "The size of a buffer allocated in this region is a
 * multiple of the value of this attribute", and it can be used to its end. HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT:
 * "must be a power of 2", of every buffer. */
static void granules(void **state)
{
    for (unsigned kind = 0; kind < POOLS; kind++) {
        size_t granule = size_of(regions[0][kind].handle, HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE);
        size_t alignment = size_of(regions[0][kind].handle, HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT);
        size_t before = size_of(regions[0][kind].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE);
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
        struct memclient_buffer *buffer;
        void *ptr[3];

        assert_int_equal(granule, (size_t)sysconf(_SC_PAGESIZE));
        assert_int_not_equal(alignment, 0);
        assert_int_equal(alignment & (alignment - 1), 0);
        for (unsigned i = 0; i < 3; i++) {
            assert_success(hsa_memory_allocate(regions[0][kind], granule + 1 + i * alignment, &ptr[i]));
            assert_int_equal((uintptr_t)ptr[i] % alignment, 0);
            memset(ptr[i], 1, 2 * granule + i * alignment);
            assert_int_equal((before - size_of(regions[0][kind].handle, HSA_REGION_INFO_ALLOC_MAX_SIZE)) % granule, 0);
        }
        assert_success(memclient_hsa_buffer(ptr[0], &buffer));
        assert_int_equal(memclient_buffer_query(buffer, &info), 0);
        assert_true(info.bytes >= 2 * granule);
        assert_int_equal(info.bytes % granule, 0);
        memclient_buffer_unref(buffer);
        for (unsigned i = 0; i < 3; i++)
            assert_success(hsa_memory_free(ptr[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterate_regions),
        cmocka_unit_test(iterate_regions_ends_early),
        cmocka_unit_test(iterate_regions_arguments),
        cmocka_unit_test_teardown(iterate_regions_may_call, hsa_nothing_left),
        cmocka_unit_test(attributes),
        cmocka_unit_test(invalid_regions),
        cmocka_unit_test(global_flags),
        cmocka_unit_test_teardown(fine_grained, hsa_nothing_left),
        cmocka_unit_test_teardown(sizes, hsa_nothing_left),
        cmocka_unit_test_teardown(maximum, hsa_nothing_left),
        cmocka_unit_test(regions_of_kernels),
        cmocka_unit_test_teardown(allowed, hsa_nothing_left),
        cmocka_unit_test_teardown(granules, hsa_nothing_left),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
