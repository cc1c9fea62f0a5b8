/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs need before they can use HSA's memory: starting, statuses, agents, pools, and what each can be asked.
 * Each test quotes the function and what of it is checked, as COVERAGE lists them.
 */
#include "tests/unit/hsa/hsa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/child.h"

/* Has just this many bytes been written? */
static void assert_width(const unsigned char value[256], size_t width, unsigned attribute)
{
    for (size_t i = width; i < 256; i++)
        if (value[i] != 0xA5)
            fail_msg("attribute 0x%x: byte %zu was written", attribute, i);
}

static void assert_zeros(const unsigned char value[256], size_t width, unsigned attribute)
{
    for (size_t i = 0; i < width; i++)
        if (value[i])
            fail_msg("attribute 0x%x: byte %zu is not 0", attribute, i);
}

/* ---- hsa_init(), hsa_shut_down(), hsa_status_string() ---------------------------------------------------- */

static void *init_and_shut_down(void *data)
{
    for (unsigned i = 0; i < 100; i++) {
        if (hsa_init() || hsa_iterate_agents(data, NULL) != HSA_STATUS_INFO_BREAK || hsa_shut_down())
            return data;
    }
    return NULL;
}

static hsa_status_t stop_at_once(hsa_agent_t agent, void *data)
{
    (void)agent;
    (void)data;
    return HSA_STATUS_INFO_BREAK;
}

/* hsa_init(): HSA_STATUS_SUCCESS, counted up; hsa_shut_down(): HSA_STATUS_SUCCESS, counted down, and
 * HSA_STATUS_ERROR_NOT_INITIALIZED at 0; exact from several threads, through 0 and back too. */
static void init_counts(void **state)
{
    pthread_t threads[8];
    void *failed;

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        assert_status(hsa_init(), HSA_STATUS_SUCCESS);
    for (unsigned i = 0; i < 6; i++)
        assert_status(hsa_shut_down(), HSA_STATUS_SUCCESS);
    assert_status(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, init_and_shut_down, (void *)stop_at_once), 0);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_status(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_success(hsa_init());
}

/* hsa_shut_down(): the last one takes all memory back. */
static void shut_down_frees(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle;
    void *ptr, *va;

    (void)state;
    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, &ptr));
    assert_success(hsa_amd_vmem_address_reserve(&va, MIB, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[1][COARSE], MIB, MEMORY_TYPE_NONE, 0, &handle));
    assert_success(hsa_amd_vmem_map(va, MIB, 0, handle, 0));
    assert_success(hsa_shut_down());
    hsa_nothing_left(state);
    assert_success(hsa_init());
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_address_free(va, MIB), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_init(): HSA_STATUS_ERROR_INVALID_ARGUMENT where the environment names no profile. Looked at once in a process, so
 * this comes first. */
static void init_invalid_argument(void **state)
{
    (void)state;
    setenv("MEMORYD_HSA_PROFILE", "no profile", 1);
    assert_status(hsa_init(), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    unsetenv("MEMORYD_HSA_PROFILE");
}

static void without_broker(int channel, void *data)
{
    (void)channel;
    (void)data;
    setenv("MEMORYD_SOCKET", "/nowhere/memoryd.sock", 1);
    CHECK(hsa_init() == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    CHECK(hsa_shut_down() == HSA_STATUS_ERROR_NOT_INITIALIZED);
}

/* hsa_init(): HSA_STATUS_ERROR_OUT_OF_RESOURCES where there is no broker; nothing is initialised. */
static void init_out_of_resources(void **state)
{
    (void)state;
    child_run(without_broker, NULL);
}

/* hsa_status_string(status, status_string): HSA_STATUS_SUCCESS: status "NAME: sentence", without hsa_init() too. */
static void status_string(void **state)
{
    const unsigned known[] = {0, 1, 0x1000, 0x1001, 0x1008, 0x100A, 0x100B, 0x1019, 0x1020, 0x1026, 40, 44, 47};
    const unsigned unknown[] = {2, 39, 48, 0xFFF, 0x101A, 0x1027, 0xFFFFFFFF};
    const char *text = NULL, *before;

    (void)state;
    assert_success(hsa_shut_down());
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_status(hsa_status_string((hsa_status_t)known[i], &text), HSA_STATUS_SUCCESS);
        assert_int_equal(strncmp(text, "HSA_STATUS_", 11), 0);
        assert_non_null(strstr(text, ": "));
    }
    before = text;
    for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_status(hsa_status_string((hsa_status_t)unknown[i], &text), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(text, before);
    assert_status(hsa_status_string(HSA_STATUS_SUCCESS, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_init());
}

/* ---- hsa_system_get_info() ------------------------------------------------------------------------------- */

/* hsa_system_get_info(attribute, value): HSA_STATUS_SUCCESS, each of its type; HSA_STATUS_ERROR_INVALID_ARGUMENT if
 * attribute is none, or value NULL. */
static void system_info(void **state)
{
    const struct {
        hsa_system_info_t attribute;
        unsigned width;
        uint64_t wanted;
    } rows[] = {
        {HSA_SYSTEM_INFO_VERSION_MAJOR, 2, 1},
        {HSA_SYSTEM_INFO_VERSION_MINOR, 2, UINT64_MAX},
        {HSA_SYSTEM_INFO_TIMESTAMP, 8, UINT64_MAX},
        {HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, 8, UINT64_MAX},
        {HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT, 8, UINT64_MAX},
        {HSA_SYSTEM_INFO_ENDIANNESS, 4, HSA_ENDIANNESS_LITTLE},
        {HSA_SYSTEM_INFO_MACHINE_MODEL, 4, HSA_MACHINE_MODEL_LARGE},
        {HSA_SYSTEM_INFO_EXTENSIONS, 128, 0},
        {HSA_AMD_SYSTEM_INFO_BUILD_VERSION, sizeof(char *), UINT64_MAX},
        {HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, 1, UINT64_MAX},
        {HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT, 1, UINT64_MAX},
        {HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED, 1, false},
        {HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED, 1, true},
        {HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED, 1, true},
        {HSA_AMD_SYSTEM_INFO_XNACK_ENABLED, 1, false},
        {HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR, 2, HSA_AMD_INTERFACE_VERSION_MAJOR},
        {HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR, 2, HSA_AMD_INTERFACE_VERSION_MINOR},
    };
    const unsigned none[] = {8, 100, 0x1FF, 0x209, 0x7FFFFFFF};
    unsigned char value[256];

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t got = 0;

        memset(value, 0xA5, sizeof(value));
        assert_status(hsa_system_get_info(rows[i].attribute, value), HSA_STATUS_SUCCESS);
        assert_width(value, rows[i].width, rows[i].attribute);
        memcpy(&got, value, rows[i].width < 8 ? rows[i].width : 8);
        if (rows[i].wanted != UINT64_MAX)
            assert_int_equal(got, rows[i].wanted);
        assert_status(hsa_system_get_info(rows[i].attribute, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_system_get_info((hsa_system_info_t)none[i], value), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP) goes forward at HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, and a wait
 * may be HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT long. */
static void system_time(void **state)
{
    uint64_t first = 0, second = 0, frequency = 0, longest = 0;

    (void)state;
    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &first));
    usleep(20000);
    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &second));
    assert_true(second - first >= frequency / 50);
    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT, &longest));
    assert_true(longest == UINT64_MAX);
}

/* ---- hsa_iterate_agents(), hsa_agent_get_info() ---------------------------------------------------------- */

struct seen {
    unsigned n;
    hsa_agent_t agents[AGENTS];
};

static hsa_status_t see(hsa_agent_t agent, void *data)
{
    struct seen *seen = data;

    seen->agents[seen->n++] = agent;
    return seen->n > AGENTS ? HSA_STATUS_ERROR_FATAL : HSA_STATUS_SUCCESS;
}

/* hsa_iterate_agents(callback, data): HSA_STATUS_SUCCESS: callback is called for each agent, with data; what it
 * returns otherwise stops it; HSA_STATUS_ERROR_INVALID_ARGUMENT if it is NULL. */
static void iterate_agents(void **state)
{
    struct seen seen = {0};

    (void)state;
    assert_status(hsa_iterate_agents(see, &seen), HSA_STATUS_SUCCESS);
    assert_int_equal(seen.n, AGENTS);
    assert_int_not_equal(seen.agents[0].handle, seen.agents[1].handle);
    assert_status(hsa_iterate_agents(stop_at_once, NULL), HSA_STATUS_INFO_BREAK);
    assert_status(hsa_iterate_agents(NULL, &seen), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_agent_get_info(agent, attribute, value): HSA_STATUS_SUCCESS, each of its type, and what a CPU answers; asked
 * with no value or for what no CPU has HSA_STATUS_ERROR_INVALID_ARGUMENT; HSA_STATUS_ERROR_INVALID_AGENT. */
static void agent_info(void **state)
{
    enum { ANY, ZERO };
    const struct {
        unsigned attribute, width;
        int wanted;
    } rows[] = {
        {HSA_AGENT_INFO_NAME, 64, ANY},
        {HSA_AGENT_INFO_VENDOR_NAME, 64, ANY},
        {HSA_AGENT_INFO_FEATURE, 4, ZERO},
        {HSA_AGENT_INFO_MACHINE_MODEL, 4, ANY},
        {HSA_AGENT_INFO_PROFILE, 4, ANY},
        {HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE, 4, ANY},
        {HSA_AGENT_INFO_WAVEFRONT_SIZE, 4, ZERO},
        {HSA_AGENT_INFO_WORKGROUP_MAX_DIM, 6, ZERO},
        {HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, 4, ZERO},
        {HSA_AGENT_INFO_GRID_MAX_DIM, 12, ZERO},
        {HSA_AGENT_INFO_GRID_MAX_SIZE, 4, ZERO},
        {HSA_AGENT_INFO_FBARRIER_MAX_SIZE, 4, ZERO},
        {HSA_AGENT_INFO_QUEUES_MAX, 4, ZERO},
        {HSA_AGENT_INFO_QUEUE_MIN_SIZE, 4, ZERO},
        {HSA_AGENT_INFO_QUEUE_MAX_SIZE, 4, ZERO},
        {HSA_AGENT_INFO_QUEUE_TYPE, 4, ZERO},
        {HSA_AGENT_INFO_NODE, 4, ANY},
        {HSA_AGENT_INFO_DEVICE, 4, ZERO},
        {HSA_AGENT_INFO_CACHE_SIZE, 16, ANY},
        {HSA_AGENT_INFO_ISA, 8, ZERO},
        {HSA_AGENT_INFO_EXTENSIONS, 128, ZERO},
        {HSA_AGENT_INFO_VERSION_MAJOR, 2, ANY},
        {HSA_AGENT_INFO_VERSION_MINOR, 2, ANY},
        {HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES, 4, ANY},
        {HSA_AGENT_INFO_FAST_F16_OPERATION, 1, ZERO},
        {HSA_AMD_AGENT_INFO_CHIP_ID, 4, ZERO},
        {HSA_AMD_AGENT_INFO_CACHELINE_SIZE, 4, ANY},
        {HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, 4, ANY},
        {HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY, 4, ANY},
        {HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, 4, ANY},
        {HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS, 4, ANY},
        {HSA_AMD_AGENT_INFO_BDFID, 4, ZERO},
        {HSA_AMD_AGENT_INFO_PRODUCT_NAME, 64, ANY},
        {HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, 4, ZERO},
        {HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU, 4, ZERO},
        {HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES, 4, ZERO},
        {HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE, 4, ZERO},
        {HSA_AMD_AGENT_INFO_HDP_FLUSH, 16, ZERO},
        {HSA_AMD_AGENT_INFO_DOMAIN, 4, ZERO},
        {HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES, 1, ZERO},
        {HSA_AMD_AGENT_INFO_UUID, 21, ANY},
        {HSA_AMD_AGENT_INFO_ASIC_REVISION, 4, ZERO},
        {HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS, 1, ANY},
        {HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT, 4, ANY},
        {HSA_AMD_AGENT_INFO_MEMORY_AVAIL, 8, ANY},
        {HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, 8, ANY},
        {HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID, 4, ZERO},
        {HSA_AMD_AGENT_INFO_UCODE_VERSION, 4, ZERO},
        {HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION, 4, ZERO},
        {HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, 4, ZERO},
        {HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG, 4, ZERO},
        {HSA_AMD_AGENT_INFO_IOMMU_SUPPORT, 4, ZERO},
        {HSA_AMD_AGENT_INFO_NUM_XCC, 4, ZERO},
        {HSA_AMD_AGENT_INFO_DRIVER_UID, 4, ZERO},
        {HSA_AMD_AGENT_INFO_NEAREST_CPU, 8, ANY},
        {HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES, 8, ZERO},
        {HSA_AMD_AGENT_INFO_AQL_EXTENSIONS, 8, ZERO},
        {HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX, 8, ZERO},
        {HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT, 8, ZERO},
        {HSA_AMD_AGENT_INFO_CLOCK_COUNTERS, sizeof(hsa_amd_clock_counters_t), ANY},
        {HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS, 4, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS, 4, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS, 4, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS, 8, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS, 8, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS, 8, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS, 8, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS, 12, ZERO},
        {HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS, 4, ZERO},
        {HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES, 4, ZERO},
        {HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES, 4, ZERO},
        {HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS, 4, ZERO},
    };
    const unsigned none[] = {HSA_AMD_AGENT_INFO_MEMORY_WIDTH,
                             HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY,
                             HSA_AMD_AGENT_INFO_PM4_EMULATION,
                             HSA_AMD_AGENT_INFO_LUID,
                             HSA_EXT_AGENT_INFO_IMAGE_LINEAR_ROW_PITCH_ALIGNMENT,
                             HSA_AGENT_INFO_LAST,
                             25,
                             0x9FFF,
                             0xA017,
                             0xA200};
    unsigned char value[256];

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hsa_agent_info_t attribute = (hsa_agent_info_t)rows[i].attribute;

        memset(value, 0xA5, sizeof(value));
        assert_status(hsa_agent_get_info(agents[i % AGENTS], attribute, value), HSA_STATUS_SUCCESS);
        assert_width(value, rows[i].width, rows[i].attribute);
        if (rows[i].wanted == ZERO)
            assert_zeros(value, rows[i].width, rows[i].attribute);
        assert_status(hsa_agent_get_info(agents[0], attribute, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_status(hsa_agent_get_info((hsa_agent_t){0}, attribute, value), HSA_STATUS_ERROR_INVALID_AGENT);
    }
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_agent_get_info(agents[0], (hsa_agent_info_t)none[i], value),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

#define agent_u32(agent, attribute) \
    __extension__({ \
        uint32_t value_ = UINT32_MAX; \
        assert_success(hsa_agent_get_info(agent, (hsa_agent_info_t)(attribute), &value_)); \
        value_; \
    })

/* hsa_agent_get_info(): what a CPU agent says that is not 0: HSA_AGENT_INFO_VENDOR_NAME, _PROFILE, _NODE, _DEVICE;
 * HSA_AMD_AGENT_INFO_UUID, _CACHELINE_SIZE, _COMPUTE_UNIT_COUNT, _NEAREST_CPU. */
static void agent_info_of_a_cpu(void **state)
{
    char uuid[21];

    (void)state;
    for (unsigned a = 0; a < AGENTS; a++) {
        char text[64] = "";
        hsa_agent_t nearest = {0};

        assert_success(hsa_agent_get_info(agents[a], HSA_AGENT_INFO_VENDOR_NAME, text));
        assert_string_equal(text, "CPU");
        assert_success(hsa_agent_get_info(agents[a], HSA_AGENT_INFO_NAME, text));
        assert_int_not_equal(text[0], 0);
        assert_int_equal(agent_u32(agents[a], HSA_AGENT_INFO_MACHINE_MODEL), HSA_MACHINE_MODEL_LARGE);
        assert_int_equal(agent_u32(agents[a], HSA_AGENT_INFO_PROFILE), HSA_PROFILE_FULL);
        assert_int_equal(agent_u32(agents[a], HSA_AGENT_INFO_DEVICE), HSA_DEVICE_TYPE_CPU);
        assert_int_equal(agent_u32(agents[a], HSA_AGENT_INFO_NODE), a);
        assert_true(agent_u32(agents[a], HSA_AMD_AGENT_INFO_CACHELINE_SIZE) >= 16);
        assert_true(agent_u32(agents[a], HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT) >= 1);
        assert_success(hsa_agent_get_info(agents[a], (hsa_agent_info_t)HSA_AMD_AGENT_INFO_UUID, text));
        assert_int_equal(strncmp(text, "CPU-", 4), 0);
        if (a)
            assert_string_not_equal(text, uuid);
        memcpy(uuid, text, sizeof(uuid));
        assert_success(hsa_agent_get_info(agents[a], (hsa_agent_info_t)HSA_AMD_AGENT_INFO_NEAREST_CPU, &nearest));
        assert_int_equal(nearest.handle, agents[a].handle);
    }
}

static uint64_t available(hsa_agent_t agent)
{
    uint64_t value = 0;

    assert_success(hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &value));
    return value;
}

/* hsa_agent_get_info(HSA_AMD_AGENT_INFO_MEMORY_AVAIL): less by what is allocated, and the same as before when that is
 * freed. */
static void agent_info_memory_avail(void **state)
{
    uint64_t before = available(agents[0]), other = available(agents[1]);
    void *ptr;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        assert_success(hsa_memory_allocate(regions[0][i % POOLS], 8 * MIB, &ptr));
        assert_int_equal(available(agents[0]), before - 8 * MIB);
        assert_int_equal(available(agents[1]), other);
        assert_success(hsa_memory_free(ptr));
        assert_int_equal(available(agents[0]), before);
    }
}

/* ---- pools ----------------------------------------------------------------------------------------------- */

struct pools_seen {
    unsigned n;
    uint64_t handles[POOLS];
};

static hsa_status_t see_pool(hsa_amd_memory_pool_t pool, void *data)
{
    struct pools_seen *seen = data;

    if (seen->n == POOLS)
        return HSA_STATUS_ERROR_FATAL;
    seen->handles[seen->n++] = pool.handle;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t stop_at_pool(hsa_amd_memory_pool_t pool, void *data)
{
    (void)pool;
    (void)data;
    return HSA_STATUS_ERROR_EXCEPTION;
}

/* hsa_amd_agent_iterate_memory_pools(agent, callback, data): HSA_STATUS_SUCCESS: the agent's own pools, each once,
 * the standard one first; HSA_STATUS_ERROR_INVALID_AGENT; HSA_STATUS_ERROR_INVALID_ARGUMENT without a callback. */
static void iterate_memory_pools(void **state)
{
    (void)state;
    for (unsigned a = 0; a < AGENTS; a++) {
        struct pools_seen seen = {0};

        assert_status(hsa_amd_agent_iterate_memory_pools(agents[a], see_pool, &seen), HSA_STATUS_SUCCESS);
        assert_int_equal(seen.n, POOLS);
        assert_int_equal(seen.handles[0], pools[a][FINE].handle);
        assert_int_equal(seen.handles[1], pools[a][KERNARG].handle);
        assert_int_equal(seen.handles[2], pools[a][COARSE].handle);
        assert_status(hsa_amd_agent_iterate_memory_pools(agents[a], stop_at_pool, NULL), HSA_STATUS_ERROR_EXCEPTION);
    }
    assert_status(hsa_amd_agent_iterate_memory_pools((hsa_agent_t){0}, stop_at_pool, NULL),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_agent_iterate_memory_pools(agents[0], NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_amd_memory_pool_get_info(memory_pool, attribute, value): HSA_STATUS_SUCCESS, each of its type;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT for what is no attribute of pools or without value;
 * HSA_STATUS_ERROR_INVALID_MEMORY_POOL. */
static void memory_pool_info(void **state)
{
    const struct {
        hsa_amd_memory_pool_info_t attribute;
        unsigned width;
        uint64_t wanted; /* UINT64_MAX: any */
    } rows[] = {
        {HSA_AMD_MEMORY_POOL_INFO_SEGMENT, 4, HSA_AMD_SEGMENT_GLOBAL},
        {HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, 4, UINT64_MAX},
        {HSA_AMD_MEMORY_POOL_INFO_SIZE, 8, UINT64_MAX},
        {HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, 1, true},
        {HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, 8, (uint64_t)sysconf(_SC_PAGESIZE)},
        {HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT, 8, (uint64_t)sysconf(_SC_PAGESIZE)},
        {HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL, 1, true},
        {HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, 8, UINT64_MAX},
        {HSA_AMD_MEMORY_POOL_INFO_LOCATION, 4, HSA_AMD_MEMORY_POOL_LOCATION_CPU},
        {HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE, 8, 2 * MIB},
    };
    const uint32_t flags[POOLS] = {2, 3, 4};
    const unsigned none[] = {3, 4, 8, 9, 14, 19, 0xA000};
    unsigned char value[256];

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]) * AGENTS * POOLS; i++) {
        unsigned row = i / AGENTS / POOLS;
        uint64_t got = 0;

        memset(value, 0xA5, sizeof(value));
        assert_status(hsa_amd_memory_pool_get_info(pools[i % AGENTS][i / AGENTS % POOLS], rows[row].attribute, value),
                      HSA_STATUS_SUCCESS);
        assert_width(value, rows[row].width, rows[row].attribute);
        memcpy(&got, value, rows[row].width);
        if (rows[row].attribute == HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS)
            assert_int_equal(got, flags[i / AGENTS % POOLS]);
        else if (rows[row].wanted != UINT64_MAX)
            assert_int_equal(got, rows[row].wanted);
        assert_status(hsa_amd_memory_pool_get_info((hsa_amd_memory_pool_t){0}, rows[row].attribute, value),
                      HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
        assert_status(hsa_amd_memory_pool_get_info(pools[0][FINE], rows[row].attribute, NULL),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_amd_memory_pool_get_info(pools[0][FINE], (hsa_amd_memory_pool_info_t)none[i], value),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest at_first[] = {
        cmocka_unit_test(init_invalid_argument),
    };
    const struct CMUnitTest tests[] = {
        TEST(init_counts),
        TEST(shut_down_frees),
        TEST(init_out_of_resources),
        TEST(status_string),
        TEST(system_info),
        TEST(system_time),
        TEST(iterate_agents),
        TEST(agent_info),
        TEST(agent_info_of_a_cpu),
        TEST(agent_info_memory_avail),
        TEST(iterate_memory_pools),
        TEST(memory_pool_info),
    };

    return cmocka_run_group_tests(at_first, NULL, NULL) ? EXIT_FAILURE
                                                        : test_run(tests, hsa_group_setup, hsa_group_teardown);
}
