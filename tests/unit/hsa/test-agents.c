/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_iterate_agents, hsa_agent_get_info with every attribute of hsa_agent_info_t and hsa_amd_agent_info_t that a CPU
 * agent has, hsa_agent_iterate_caches, hsa_cache_get_info, hsa_agent_iterate_isas and hsa_isa_get_info_alt.
 */
#include <string.h>

#include "tests/unit/hsa/ask.h"

/* Types and, where they are the same on every machine, values. */
static const struct attribute rows[] = {
    ATTRIBUTE(HSA_AGENT_INFO_NAME, char[64], DIFFERS),
    ATTRIBUTE(HSA_AGENT_INFO_VENDOR_NAME, char[64], DIFFERS),
    ATTRIBUTE(HSA_AGENT_INFO_FEATURE, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_MACHINE_MODEL, hsa_machine_model_t, HSA_MACHINE_MODEL_LARGE),
    ATTRIBUTE(HSA_AGENT_INFO_PROFILE, hsa_profile_t, HSA_PROFILE_FULL),
    ATTRIBUTE(HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE, hsa_default_float_rounding_mode_t,
              HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR),
    ATTRIBUTE(HSA_AGENT_INFO_WAVEFRONT_SIZE, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_WORKGROUP_MAX_DIM, uint16_t[3], 0),
    ATTRIBUTE(HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_GRID_MAX_DIM, hsa_dim3_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_GRID_MAX_SIZE, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_FBARRIER_MAX_SIZE, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_QUEUES_MAX, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_QUEUE_MIN_SIZE, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_QUEUE_MAX_SIZE, uint32_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_QUEUE_TYPE, hsa_queue_type32_t, HSA_QUEUE_TYPE_MULTI),
    ATTRIBUTE(HSA_AGENT_INFO_NODE, uint32_t, DIFFERS),
    ATTRIBUTE(HSA_AGENT_INFO_DEVICE, hsa_device_type_t, HSA_DEVICE_TYPE_CPU),
    ATTRIBUTE(HSA_AGENT_INFO_CACHE_SIZE, uint32_t[4], DIFFERS),
    ATTRIBUTE(HSA_AGENT_INFO_ISA, hsa_isa_t, 0),
    ATTRIBUTE(HSA_AGENT_INFO_EXTENSIONS, uint8_t[128], 0),
    ATTRIBUTE(HSA_AGENT_INFO_VERSION_MAJOR, uint16_t, 1),
    ATTRIBUTE(HSA_AGENT_INFO_VERSION_MINOR, uint16_t, 1),
    ATTRIBUTE(HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES, uint32_t, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR),
    ATTRIBUTE(HSA_AGENT_INFO_FAST_F16_OPERATION, bool, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_CHIP_ID, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_CACHELINE_SIZE, uint32_t, DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, uint32_t, DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY, uint32_t, DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, uint32_t, DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS, uint32_t, 1),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_BDFID, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_PRODUCT_NAME, char[64], DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_HDP_FLUSH, hsa_amd_hdp_flush_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_DOMAIN, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES, bool, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_UUID, char[21], DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_ASIC_REVISION, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS, bool, 1),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT, uint32_t, DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_MEMORY_AVAIL, uint64_t, DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, uint64_t, 1000000000),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_UCODE_VERSION, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_IOMMU_SUPPORT, hsa_amd_iommu_version_t, HSA_IOMMU_SUPPORT_NONE),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_NUM_XCC, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_DRIVER_UID, uint32_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_NEAREST_CPU, hsa_agent_t, DIFFERS),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES, uint8_t[8], 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_AQL_EXTENSIONS, uint8_t[8], 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX, uint64_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT, uint64_t, 0),
    ATTRIBUTE(HSA_AMD_AGENT_INFO_CLOCK_COUNTERS, hsa_amd_clock_counters_t, DIFFERS),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS, uint32_t, 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS, uint32_t, 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS, uint32_t, 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS, uint32_t[2], 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS, uint32_t[2], 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS, uint32_t[2], 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS, uint32_t[2], 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS, uint32_t[3], 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS, uint32_t, 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES, uint32_t, 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES, uint32_t, 0),
    ATTRIBUTE(HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS, uint32_t, 0),
};

static uint32_t number(unsigned agent, uint32_t attribute)
{
    uint32_t value;

    assert_success(ask_agent(agents[agent].handle, attribute, &value));
    return value;
}

static hsa_status_t visit_agent(hsa_agent_t agent, void *data)
{
    return visit(agent.handle, data);
}

static hsa_status_t visit_cache(hsa_cache_t cache, void *data)
{
    return visit(cache.handle, data);
}

static hsa_status_t visit_isa(hsa_isa_t isa, void *data)
{
    return visit(isa.handle, data);
}

static hsa_status_t count_nothing(hsa_agent_t agent, void *data)
{
    assert_non_null((void *)(uintptr_t)agent.handle);
    assert_null(data);
    return HSA_STATUS_SUCCESS;
}

/* hsa_iterate_agents: SUCCESS, every agent once, in the order of nodes; 0 is no agent; data may be NULL. */
static void iterate_agents(void **state)
{
    struct visit v = {0};

    assert_success(hsa_iterate_agents(visit_agent, &v));
    assert_int_equal(v.calls, AGENTS);
    for (unsigned i = 0; i < AGENTS; i++) {
        assert_int_equal(v.seen[i], agents[i].handle);
        assert_int_equal(number(i, HSA_AGENT_INFO_NODE), i);
        assert_int_not_equal(v.seen[i], 0);
    }
    assert_success(hsa_iterate_agents(count_nothing, NULL));
}

/* hsa_iterate_agents, callback: what it returns other than SUCCESS ends it and is returned; NULL: INVALID_ARGUMENT. */
static void iterate_agents_ends_early(void **state)
{
    static const hsa_status_t ends[] = {HSA_STATUS_INFO_BREAK, HSA_STATUS_ERROR, (hsa_status_t)12345};

    for (unsigned i = 0; i < 3; i++) {
        struct visit v = {.end_at = 1, .end_with = ends[i]};

        assert_status(hsa_iterate_agents(visit_agent, &v), ends[i]);
        assert_int_equal(v.calls, 1);
    }
    assert_status(hsa_iterate_agents(NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_agent_get_info, agent, attribute and value: SUCCESS, each attribute has its size and value, and nothing else is
 * an attribute: INVALID_ARGUMENT, also for what only GPUs have (HSA_AMD_AGENT_INFO_MEMORY_WIDTH,
 * HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY, HSA_AMD_AGENT_INFO_PM4_EMULATION, HSA_AMD_AGENT_INFO_LUID) and for
 * HSA_AGENT_INFO_LAST. */
static void attributes(void **state)
{
    for (unsigned i = 0; i < AGENTS; i++)
        ask_all(ask_agent, agents[i].handle, rows, sizeof(rows) / sizeof(rows[0]));
}

/* hsa_agent_get_info, agent: what is none is INVALID_AGENT, and checks go by value, agent, attribute. */
static void invalid_agents(void **state)
{
    uint64_t handles[AGENTS];

    for (unsigned i = 0; i < AGENTS; i++)
        handles[i] = agents[i].handle;
    ask_handles(ask_agent, HSA_AGENT_INFO_NODE, handles, AGENTS, HSA_STATUS_ERROR_INVALID_AGENT);
    ask_in_order(ask_agent, handles[0], HSA_AGENT_INFO_NODE, HSA_STATUS_ERROR_INVALID_AGENT);
}

/* HSA_AGENT_INFO_NAME, VENDOR_NAME, HSA_AMD_AGENT_INFO_PRODUCT_NAME: texts, with NULs to the end. */
static void names(void **state)
{
    static const char cpu[64] = "CPU";
    char name[64], vendor[64], product[64];

    for (unsigned agent = 0; agent < AGENTS; agent++) {
        assert_success(hsa_agent_get_info(agents[agent], HSA_AGENT_INFO_NAME, name));
        assert_success(hsa_agent_get_info(agents[agent], HSA_AGENT_INFO_VENDOR_NAME, vendor));
        assert_success(ask_agent(agents[agent].handle, HSA_AMD_AGENT_INFO_PRODUCT_NAME, product));
        assert_memory_equal(vendor, cpu, sizeof(cpu));
        assert_memory_equal(name, product, sizeof(name));
        assert_in_range(strnlen(name, sizeof(name)), 1, sizeof(name) - 1);
        for (size_t i = strlen(name); i < sizeof(name); i++)
            assert_int_equal(name[i], 0);
    }
}

/* HSA_AGENT_INFO_NODE, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, COMPUTE_UNIT_COUNT, COOPERATIVE_COMPUTE_UNIT_COUNT,
 * CACHELINE_SIZE, NEAREST_CPU: of the agent's own node. */
static void processors(void **state)
{
    for (unsigned i = 0; i < AGENTS; i++) {
        uint32_t line = number(i, HSA_AMD_AGENT_INFO_CACHELINE_SIZE);
        hsa_agent_t nearest;

        assert_int_equal(number(i, HSA_AGENT_INFO_NODE), i);
        assert_int_equal(number(i, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID), i);
        assert_in_range(number(i, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT), 1, 65536);
        assert_int_equal(number(i, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT),
                         number(i, HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT));
        assert_in_range(line, 16, 4096);
        assert_int_equal(line & (line - 1), 0);
        assert_success(ask_agent(agents[i].handle, HSA_AMD_AGENT_INFO_NEAREST_CPU, &nearest));
        assert_int_equal(nearest.handle, agents[i].handle);
    }
}

/* HSA_AMD_AGENT_INFO_UUID: "CPU-" and 16 hexadecimal digits; another one for each agent, and the same each time. */
static void uuids(void **state)
{
    char uuid[AGENTS][21], again[21];

    for (unsigned i = 0; i < AGENTS; i++) {
        assert_success(ask_agent(agents[i].handle, HSA_AMD_AGENT_INFO_UUID, uuid[i]));
        assert_memory_equal(uuid[i], "CPU-", 4);
        assert_int_equal(strspn(uuid[i] + 4, "0123456789abcdef"), 16);
        assert_int_equal(uuid[i][20], 0);
    }
    assert_string_not_equal(uuid[0], uuid[1]);
    assert_success(hsa_shut_down());
    assert_success(hsa_init());
    assert_success(ask_agent(agents[1].handle, HSA_AMD_AGENT_INFO_UUID, again));
    assert_string_equal(uuid[1], again);
}

static uint64_t memory(unsigned agent)
{
    uint64_t bytes;

    assert_success(ask_agent(agents[agent].handle, HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes));
    return bytes;
}

/* HSA_AMD_AGENT_INFO_MEMORY_AVAIL: less by what is allocated of any of the agent's pools, and after it was freed
 * exactly what it was before. The other agent has its own. */
static void available_memory_shrinks_and_grows(void **state)
{
    uint64_t before[AGENTS] = {memory(0), memory(1)};

    for (unsigned kind = 0; kind < POOLS; kind++) {
        void *ptr;

        assert_success(hsa_amd_memory_pool_allocate(pools[1][kind], 8 * MIB + 1, 0, &ptr));
        assert_int_equal(memory(0), before[0]);
        assert_in_range(memory(1), before[1] - 10 * MIB, before[1] - 8 * MIB - 1);
        assert_success(hsa_amd_memory_pool_free(ptr));
        assert_int_equal(memory(1), before[1]);
    }
}

/* HSA_AMD_AGENT_INFO_MEMORY_AVAIL makes a call to the broker, but not each time; all other attributes make none. */
static void calls(void **state)
{
    uint8_t value[ANSWER_MAX];
    uint64_t before;
    size_t max;

    /* a call, which is answered after what was given back before */
    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_ALLOC_MAX_SIZE, &max));
    before = observer_requests();
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].attribute != HSA_AMD_AGENT_INFO_MEMORY_AVAIL)
            assert_success(ask_agent(agents[0].handle, rows[i].attribute, value));
    assert_int_equal(observer_requests(), before);
    for (unsigned i = 0; i < 1000; i++)
        (void)memory(0);
    assert_in_range(observer_requests(), before, before + 500);
}

/* hsa_agent_iterate_caches(agent, callback, data): SUCCESS, each of the agent's, and of no other's. callback NULL:
 * INVALID_ARGUMENT; INVALID_AGENT. */
static void iterate_caches(void **state)
{
    struct visit v[AGENTS] = {{0}}, first = {.end_at = 1, .end_with = HSA_STATUS_INFO_BREAK}, none = {0};

    for (unsigned i = 0; i < AGENTS; i++)
        assert_success(hsa_agent_iterate_caches(agents[i], visit_cache, &v[i]));
    for (unsigned i = 0; i < v[0].calls; i++)
        for (unsigned k = 0; k < v[1].calls; k++)
            assert_int_not_equal(v[0].seen[i], v[1].seen[k]);
    assert_status(hsa_agent_iterate_caches(agents[0], NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_agent_iterate_caches((hsa_agent_t){0}, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_agent_iterate_caches((hsa_agent_t){0}, visit_cache, &none), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_int_equal(none.calls, 0);
    if (!v[0].calls)
        test_skip("nothing here knows of a cache");
    assert_status(hsa_agent_iterate_caches(agents[0], visit_cache, &first), HSA_STATUS_INFO_BREAK);
    assert_int_equal(first.calls, 1);
}

/* hsa_cache_get_info(cache, attribute, value): SUCCESS for HSA_CACHE_INFO_NAME_LENGTH, HSA_CACHE_INFO_NAME,
 * HSA_CACHE_INFO_LEVEL and HSA_CACHE_INFO_SIZE, the last as HSA_AGENT_INFO_CACHE_SIZE has it; else INVALID_ARGUMENT. */
static void cache_attributes(void **state)
{
    struct visit v = {0};
    uint32_t sizes[4];

    assert_success(hsa_agent_iterate_caches(agents[1], visit_cache, &v));
    assert_success(hsa_agent_get_info(agents[1], HSA_AGENT_INFO_CACHE_SIZE, sizes));
    for (unsigned i = 0; i < v.calls; i++) {
        uint32_t length, size;
        uint8_t level;
        char name[ANSWER_MAX];

        ask_exactly(ask_cache, v.seen[i], HSA_CACHE_INFO_NAME_LENGTH, sizeof(length), &length);
        ask_exactly(ask_cache, v.seen[i], HSA_CACHE_INFO_NAME, length + 1, name);
        ask_exactly(ask_cache, v.seen[i], HSA_CACHE_INFO_LEVEL, sizeof(level), &level);
        ask_exactly(ask_cache, v.seen[i], HSA_CACHE_INFO_SIZE, sizeof(size), &size);
        assert_int_equal(strlen(name), length);
        assert_in_range(level, 1, 4);
        assert_int_equal(size, sizes[level - 1]);
        ask_in_order(ask_cache, v.seen[i], HSA_CACHE_INFO_LEVEL, HSA_STATUS_ERROR_INVALID_CACHE);
        for (uint32_t other = HSA_CACHE_INFO_SIZE + 1; other < 1000; other++)
            assert_status(ask_cache(v.seen[i], other, name), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
}

/* hsa_cache_get_info, cache: what is none is INVALID_CACHE. */
static void invalid_caches(void **state)
{
    struct visit v = {0};

    for (unsigned i = 0; i < AGENTS; i++)
        assert_success(hsa_agent_iterate_caches(agents[i], visit_cache, &v));
    ask_handles(ask_cache, HSA_CACHE_INFO_LEVEL, v.seen, v.calls, HSA_STATUS_ERROR_INVALID_CACHE);
    assert_status(ask_cache(agents[0].handle, HSA_CACHE_INFO_SIZE, &v), HSA_STATUS_ERROR_INVALID_CACHE);
}

/* hsa_agent_iterate_isas(agent, callback, data): SUCCESS, and there is none; INVALID_AGENT, INVALID_ARGUMENT.
 * hsa_isa_get_info_alt(isa, attribute, value): value NULL is INVALID_ARGUMENT, else INVALID_ISA. */
static void instruction_sets(void **state)
{
    const hsa_isa_info_t attributes_of_isas[] = {
        HSA_ISA_INFO_NAME_LENGTH,
        HSA_ISA_INFO_NAME,
        HSA_ISA_INFO_CALL_CONVENTION_COUNT,
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE,
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONTS_PER_COMPUTE_UNIT,
        HSA_ISA_INFO_MACHINE_MODELS,
        HSA_ISA_INFO_PROFILES,
        HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES,
        HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES,
        HSA_ISA_INFO_FAST_F16_OPERATION,
        HSA_ISA_INFO_WORKGROUP_MAX_DIM,
        HSA_ISA_INFO_WORKGROUP_MAX_SIZE,
        HSA_ISA_INFO_GRID_MAX_DIM,
        HSA_ISA_INFO_GRID_MAX_SIZE,
        HSA_ISA_INFO_FBARRIER_MAX_SIZE,
    };
    struct visit v = {0};
    hsa_isa_t isa;
    uint32_t length;

    assert_success(hsa_agent_iterate_isas(agents[0], visit_isa, &v));
    assert_int_equal(v.calls, 0);
    assert_status(hsa_agent_iterate_isas(agents[0], NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_agent_iterate_isas((hsa_agent_t){7}, visit_isa, &v), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_success(hsa_agent_get_info(agents[0], HSA_AGENT_INFO_ISA, &isa));
    assert_status(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length), HSA_STATUS_ERROR_INVALID_ISA);
    for (unsigned i = 0; i < sizeof(attributes_of_isas) / sizeof(attributes_of_isas[0]); i++)
        assert_status(hsa_isa_get_info_alt((hsa_isa_t){i}, attributes_of_isas[i], &length),
                      HSA_STATUS_ERROR_INVALID_ISA);
}

/* HSA_AMD_AGENT_INFO_CLOCK_COUNTERS: the system's clock, which goes on; a processor has no GPU's. */
static void clock_counters(void **state)
{
    hsa_amd_clock_counters_t before = {0}, after = {0};
    uint64_t now, frequency;

    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    for (unsigned i = 0; i < AGENTS; i++) {
        const hsa_agent_info_t attribute = (hsa_agent_info_t)HSA_AMD_AGENT_INFO_CLOCK_COUNTERS;

        assert_success(hsa_agent_get_info(agents[i], attribute, &before));
        assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now));
        assert_success(hsa_agent_get_info(agents[i], attribute, &after));
        assert_in_range(now, before.system_clock_counter, after.system_clock_counter);
        assert_int_equal(before.cpu_clock_counter, before.system_clock_counter);
        assert_int_equal(before.system_clock_frequency, frequency);
        assert_int_equal(before.gpu_clock_counter, 0);
        assert_true(before.system_clock_counter > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterate_agents),
        cmocka_unit_test(iterate_agents_ends_early),
        cmocka_unit_test(attributes),
        cmocka_unit_test(invalid_agents),
        cmocka_unit_test(names),
        cmocka_unit_test(processors),
        cmocka_unit_test(uuids),
        cmocka_unit_test(available_memory_shrinks_and_grows),
        cmocka_unit_test(calls),
        cmocka_unit_test(iterate_caches),
        cmocka_unit_test(cache_attributes),
        cmocka_unit_test(invalid_caches),
        cmocka_unit_test(instruction_sets),
        cmocka_unit_test(clock_counters),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
