/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs link with beside HSA's memory: caches, instruction sets, locking, migration, foreign descriptors,
 * signals and copies that use them. Each test quotes the function and what of it is checked, as COVERAGE lists them.
 */
#include "tests/unit/hsa/hsa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"

#define PAGE                ((size_t)sysconf(_SC_PAGESIZE))
#define INVALID_MEMORY_POOL ((hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL)

static const hsa_agent_t no_agent;
static const hsa_amd_memory_pool_t no_pool;
static const hsa_signal_t no_signal;

/* ---- caches and instruction sets ------------------------------------------------------------------------- */

static hsa_status_t look_at_cache(hsa_cache_t cache, void *data)
{
    uint32_t length = 0, size = 0;
    uint8_t level = 0;
    char name[256];

    ++*(unsigned *)data;
    assert_status(hsa_cache_get_info(cache, HSA_CACHE_INFO_NAME_LENGTH, &length), HSA_STATUS_SUCCESS);
    assert_true(length < sizeof(name));
    assert_success(hsa_cache_get_info(cache, HSA_CACHE_INFO_NAME, name));
    assert_int_equal(strlen(name), length);
    assert_success(hsa_cache_get_info(cache, HSA_CACHE_INFO_LEVEL, &level));
    assert_true(level >= 1 && level <= 4);
    assert_success(hsa_cache_get_info(cache, HSA_CACHE_INFO_SIZE, &size));
    assert_status(hsa_cache_get_info(cache, HSA_CACHE_INFO_SIZE, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_cache_get_info(cache, (hsa_cache_info_t)4, &size), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    return HSA_STATUS_SUCCESS;
}

/* hsa_agent_iterate_caches(agent, callback, data) and hsa_cache_get_info(cache, attribute, value):
 * HSA_STATUS_SUCCESS for each cache: HSA_CACHE_INFO_NAME_LENGTH, HSA_CACHE_INFO_NAME, HSA_CACHE_INFO_LEVEL,
 * HSA_CACHE_INFO_SIZE; HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_CACHE,
 * HSA_STATUS_ERROR_INVALID_ARGUMENT. */
static void caches(void **state)
{
    uint32_t size = 0;
    unsigned n = 0;

    (void)state;
    assert_status(hsa_agent_iterate_caches(agents[0], look_at_cache, &n), HSA_STATUS_SUCCESS);
    assert_status(hsa_agent_iterate_caches(no_agent, look_at_cache, &n), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_agent_iterate_caches(agents[0], NULL, &n), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_cache_get_info((hsa_cache_t){0}, HSA_CACHE_INFO_SIZE, &size), HSA_STATUS_ERROR_INVALID_CACHE);
    assert_status(hsa_cache_get_info((hsa_cache_t){agents[0].handle}, HSA_CACHE_INFO_SIZE, &size),
                  HSA_STATUS_ERROR_INVALID_CACHE);
}

static hsa_status_t never_isa(hsa_isa_t isa, void *data)
{
    (void)isa;
    (void)data;
    return HSA_STATUS_ERROR;
}

/* hsa_agent_iterate_isas(agent, callback, data): HSA_STATUS_SUCCESS, and there is none:
 * HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_ARGUMENT. hsa_isa_get_info_alt(isa, attribute, value):
 * HSA_STATUS_ERROR_INVALID_ISA, HSA_STATUS_ERROR_INVALID_ARGUMENT. */
static void isas(void **state)
{
    const unsigned attributes[] = {
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
    char value[64];

    (void)state;
    assert_status(hsa_agent_iterate_isas(agents[1], never_isa, NULL), HSA_STATUS_SUCCESS);
    assert_status(hsa_agent_iterate_isas(no_agent, never_isa, NULL), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_agent_iterate_isas(agents[1], NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
        assert_status(hsa_isa_get_info_alt((hsa_isa_t){i}, (hsa_isa_info_t)attributes[i], value),
                      HSA_STATUS_ERROR_INVALID_ISA);
    assert_status(hsa_isa_get_info_alt((hsa_isa_t){0}, HSA_ISA_INFO_NAME, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_region_get_info(): AMD's HSA_AMD_REGION_INFO_HOST_ACCESSIBLE, HSA_AMD_REGION_INFO_BASE,
 * HSA_AMD_REGION_INFO_BUS_WIDTH, HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY. */
static void amd_region_info(void **state)
{
    bool accessible = false;
    void *base = &accessible;
    uint32_t value = 77;

    (void)state;
    assert_success(
        hsa_region_get_info(regions[0][FINE], (hsa_region_info_t)HSA_AMD_REGION_INFO_HOST_ACCESSIBLE, &accessible));
    assert_true(accessible);
    assert_success(hsa_region_get_info(regions[0][FINE], (hsa_region_info_t)HSA_AMD_REGION_INFO_BASE, &base));
    assert_null(base);
    assert_success(hsa_region_get_info(regions[0][FINE], (hsa_region_info_t)HSA_AMD_REGION_INFO_BUS_WIDTH, &value));
    assert_int_equal(value, 0);
    value = 77;
    assert_success(
        hsa_region_get_info(regions[0][FINE], (hsa_region_info_t)HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY, &value));
    assert_int_equal(value, 0);
}

/* ---- locking and migration ------------------------------------------------------------------------------- */

/* hsa_amd_memory_lock(host_ptr, size, agents, num_agent, agent_ptr): HSA_STATUS_SUCCESS: *agent_ptr is host_ptr;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT. hsa_amd_memory_unlock(host_ptr):
 * HSA_STATUS_SUCCESS, also of what was not locked. */
static void memory_lock(void **state)
{
    char *ordinary = malloc(10000);
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_agent_t wrong[1] = {{0}};
    void *ptr = NULL;

    (void)state;
    assert_status(hsa_amd_memory_lock(ordinary, 10000, agents, AGENTS, &ptr), HSA_STATUS_SUCCESS);
    assert_ptr_equal(ptr, ordinary);
    assert_success(hsa_amd_pointer_info(ordinary, &info, NULL, NULL, NULL));
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_LOCKED);
    assert_status(hsa_amd_memory_unlock(ordinary), HSA_STATUS_SUCCESS);
    assert_success(hsa_amd_memory_unlock(ordinary));
    assert_success(hsa_amd_memory_unlock(NULL));
    assert_success(hsa_amd_pointer_info(ordinary, &info, NULL, NULL, NULL));
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_success(hsa_amd_memory_lock(ordinary, 100, NULL, 0, &ptr));
    assert_success(hsa_amd_memory_unlock(ordinary));
    assert_status(hsa_amd_memory_lock(NULL, 100, NULL, 0, &ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(ordinary, 0, NULL, 0, &ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(ordinary, 100, NULL, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(ordinary, 100, NULL, 1, &ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(ordinary, 100, wrong, 1, &ptr), HSA_STATUS_ERROR_INVALID_AGENT);
    free(ordinary);
}

/* hsa_amd_memory_lock_to_pool(host_ptr, size, agents, num_agent, pool, flags, agent_ptr): HSA_STATUS_SUCCESS;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_MEMORY_POOL. */
static void memory_lock_to_pool(void **state)
{
    char *ordinary = malloc(10000);
    hsa_agent_t wrong[1] = {{0}};
    void *ptr = NULL;

    (void)state;
    assert_status(hsa_amd_memory_lock_to_pool(ordinary, 100, NULL, 0, pools[0][FINE], 0, &ptr), HSA_STATUS_SUCCESS);
    assert_ptr_equal(ptr, ordinary);
    assert_success(hsa_amd_memory_unlock(ordinary));
    assert_status(hsa_amd_memory_lock_to_pool(ordinary, 100, NULL, 0, pools[0][FINE], 1, &ptr),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock_to_pool(ordinary, 100, wrong, 1, pools[0][FINE], 0, &ptr),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_lock_to_pool(ordinary, 100, NULL, 0, no_pool, 0, &ptr), INVALID_MEMORY_POOL);
    free(ordinary);
}

/* hsa_amd_memory_pool_can_migrate(src_memory_pool, dst_memory_pool, result): HSA_STATUS_ERROR_OUT_OF_RESOURCES,
 * result is false; HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_MEMORY_POOL.
 * hsa_amd_memory_migrate(ptr, memory_pool, flags): HSA_STATUS_ERROR_OUT_OF_RESOURCES;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_MEMORY_POOL. */
static void migration(void **state)
{
    bool result = true;
    void *ptr = NULL;

    (void)state;
    assert_status(hsa_amd_memory_pool_can_migrate(pools[0][FINE], pools[1][FINE], &result),
                  HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_false(result);
    assert_status(hsa_amd_memory_pool_can_migrate(pools[0][FINE], pools[1][FINE], NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_can_migrate(no_pool, pools[1][FINE], &result), INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_pool_can_migrate(pools[0][FINE], no_pool, &result), INVALID_MEMORY_POOL);
    assert_success(hsa_memory_allocate(regions[0][FINE], PAGE, &ptr));
    assert_status(hsa_amd_memory_migrate(ptr, pools[1][FINE], 0), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_status(hsa_amd_memory_migrate(ptr, pools[1][FINE], 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_migrate(NULL, pools[1][FINE], 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_migrate(ptr, no_pool, 0), INVALID_MEMORY_POOL);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_amd_interop_map_buffer(num_agents, agents, interop_handle, flags, size, ptr, metadata_size, metadata):
 * HSA_STATUS_SUCCESS: the memory of a descriptor; HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT,
 * HSA_STATUS_ERROR_INVALID_ALLOCATION. hsa_amd_interop_unmap_buffer(ptr): HSA_STATUS_SUCCESS, of anything. */
static void interop(void **state)
{
    int fd = -1, foreign = memfd_create("foreign", MFD_CLOEXEC);
    const void *metadata = &fd;
    size_t size = 0, metadata_size = 77;
    uint64_t offset = 0;
    hsa_agent_t wrong[1] = {{0}};
    char *ptr = NULL, *mapped = NULL;

    (void)state;
    assert_success(hsa_memory_allocate(regions[0][FINE], 3 * PAGE, (void **)&ptr));
    assert_success(hsa_amd_portable_export_dmabuf(ptr, 3 * PAGE, &fd, &offset));
    assert_status(
        hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, (void **)&mapped, &metadata_size, &metadata),
        HSA_STATUS_SUCCESS);
    assert_true(size >= 3 * PAGE);
    assert_int_equal(metadata_size, 0);
    assert_null(metadata);
    memcpy(ptr + PAGE, "the same", sizeof("the same"));
    assert_string_equal(mapped + offset + PAGE, "the same");
    assert_status(hsa_amd_interop_map_buffer(0, agents, fd, 0, &size, (void **)&mapped, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_interop_map_buffer(1, NULL, fd, 0, &size, (void **)&mapped, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_interop_map_buffer(1, agents, fd, 1, &size, (void **)&mapped, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_interop_map_buffer(1, agents, fd, 0, NULL, (void **)&mapped, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, NULL, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_interop_map_buffer(1, wrong, fd, 0, &size, (void **)&mapped, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_interop_map_buffer(1, agents, foreign, 0, &size, (void **)&mapped, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_interop_unmap_buffer(mapped), HSA_STATUS_SUCCESS);
    assert_success(hsa_amd_interop_unmap_buffer(NULL));
    assert_success(hsa_amd_interop_unmap_buffer(&fd));
    close(fd);
    close(foreign);
    assert_success(hsa_memory_free(ptr));
}

/* ---- signals --------------------------------------------------------------------------------------------- */

/* hsa_signal_create(initial_value, num_consumers, consumers, signal): HSA_STATUS_SUCCESS;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT. hsa_signal_destroy(signal): HSA_STATUS_SUCCESS,
 * HSA_STATUS_ERROR_INVALID_ARGUMENT for 0, HSA_STATUS_ERROR_INVALID_SIGNAL for none. */
static void signal_create(void **state)
{
    const hsa_agent_t twice[2] = {agents[0], agents[0]};
    hsa_signal_t signal = {0};

    (void)state;
    assert_status(hsa_signal_create(7, AGENTS, agents, &signal), HSA_STATUS_SUCCESS);
    assert_int_equal(hsa_signal_load_relaxed(signal), 7);
    assert_status(hsa_signal_destroy(signal), HSA_STATUS_SUCCESS);
    assert_status(hsa_signal_destroy(signal), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_signal_destroy(no_signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_create(0, 0, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_create(0, 1, NULL, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_create(0, 2, twice, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_create(0, 1, &no_agent, &signal), HSA_STATUS_ERROR_INVALID_AGENT);
}

static void *set_to_zero(void *data)
{
    hsa_signal_store_screlease(*(hsa_signal_t *)data, 0);
    return NULL;
}

/* hsa_signal_load_scacquire(signal), hsa_signal_load_relaxed(signal), hsa_signal_load_acquire(signal),
 * hsa_signal_store_relaxed(signal, value), hsa_signal_store_screlease(signal, value),
 * hsa_signal_store_release(signal, value): what was stored last is loaded. hsa_signal_wait_scacquire(signal,
 * condition, compare_value, timeout_hint, wait_state_hint), hsa_signal_wait_relaxed(...),
 * hsa_signal_wait_acquire(...): until it is so, or the time is over. */
static void signal_wait(void **state)
{
    hsa_signal_t signal = {0};
    pthread_t thread;

    (void)state;
    assert_success(hsa_signal_create(1, 0, NULL, &signal));
    hsa_signal_store_relaxed(signal, -5);
    assert_int_equal(hsa_signal_load_scacquire(signal), -5);
    hsa_signal_store_release(signal, INT64_MAX);
    assert_true(hsa_signal_load_acquire(signal) == INT64_MAX);
    hsa_signal_store_screlease(signal, 1);
    assert_int_equal(hsa_signal_load_relaxed(signal), 1);
    assert_int_equal(hsa_signal_wait_relaxed(signal, HSA_SIGNAL_CONDITION_EQ, 1, 0, HSA_WAIT_STATE_ACTIVE), 1);
    assert_int_equal(hsa_signal_wait_acquire(signal, HSA_SIGNAL_CONDITION_NE, 2, 0, HSA_WAIT_STATE_BLOCKED), 1);
    assert_int_equal(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_GTE, 1, 0, HSA_WAIT_STATE_BLOCKED), 1);
    /* the time is over first */
    assert_int_equal(hsa_signal_wait_relaxed(signal, HSA_SIGNAL_CONDITION_LT, 1, 1000, HSA_WAIT_STATE_BLOCKED), 1);
    assert_int_equal(pthread_create(&thread, NULL, set_to_zero, &signal), 0);
    assert_int_equal(
        hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED), 0);
    pthread_join(thread, NULL);
    assert_success(hsa_signal_destroy(signal));
}

static bool is_no_more(const hsa_amd_ipc_signal_t *handle)
{
    hsa_signal_t signal;
    hsa_status_t status = hsa_amd_ipc_signal_attach(handle, &signal);

    if (status == HSA_STATUS_SUCCESS)
        CHECK(hsa_signal_destroy(signal) == HSA_STATUS_SUCCESS);
    return status == HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static void signaller(int channel, void *data)
{
    hsa_amd_ipc_signal_t *handle = data;
    hsa_signal_t signal = {0};

    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_signal_attach(NULL, &signal) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_signal_attach(handle, NULL) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_signal_attach(handle, &signal) == HSA_STATUS_SUCCESS);
    tell(channel);
    CHECK(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 2, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) == 2);
    hsa_signal_store_screlease(signal, 3);
    CHECK(hsa_signal_destroy(signal) == HSA_STATUS_SUCCESS);
    hear(channel);
    CHECK(WAIT_UNTIL(is_no_more(handle)));
}

/* hsa_amd_signal_create(initial_value, num_consumers, consumers, attributes, signal): HSA_STATUS_SUCCESS;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT. hsa_amd_ipc_signal_create(signal, handle):
 * HSA_STATUS_SUCCESS, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_SIGNAL.
 * hsa_amd_ipc_signal_attach(handle, signal): HSA_STATUS_SUCCESS: the same signal in another process;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, also when it is no more. */
static void ipc_signals(void **state)
{
    hsa_signal_t signal = {0}, plain = {0};
    hsa_amd_ipc_signal_t handle;
    struct child child;

    (void)state;
    assert_status(hsa_amd_signal_create(1, 0, NULL, HSA_AMD_SIGNAL_IPC, &signal), HSA_STATUS_SUCCESS);
    assert_success(hsa_amd_signal_create(1, 1, agents, HSA_AMD_SIGNAL_AMD_GPU_ONLY, &plain));
    assert_status(hsa_amd_signal_create(1, 0, NULL, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_create(1, 0, NULL, 1 << 20, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_create(1, 1, &no_agent, 0, &signal), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_ipc_signal_create(signal, &handle), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_ipc_signal_create(signal, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_signal_create(plain, &handle), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_signal_create((hsa_signal_t){UINT64_MAX}, &handle), HSA_STATUS_ERROR_INVALID_SIGNAL);
    child_start(&child, signaller, &handle);
    child_hear(&child);
    hsa_signal_store_screlease(signal, 2);
    assert_int_equal(
        hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 3, UINT64_MAX, HSA_WAIT_STATE_BLOCKED), 3);
    assert_success(hsa_signal_destroy(signal));
    assert_success(hsa_signal_destroy(plain));
    child_tell(&child);
    child_finish(&child);
}

/* hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, size, num_dep_signals, dep_signals, completion_signal):
 * HSA_STATUS_SUCCESS: after dep_signals, and completion_signal counts down; HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_SIGNAL. */
static void async_copy(void **state)
{
    hsa_signal_t before = {0}, done = {0};
    char *a = NULL, *b = NULL;

    (void)state;
    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, (void **)&a));
    assert_success(hsa_memory_allocate(regions[1][FINE], MIB, (void **)&b));
    assert_success(hsa_signal_create(1, 0, NULL, &before));
    assert_success(hsa_signal_create(1, 0, NULL, &done));
    memset(a, 5, MIB);
    assert_status(hsa_amd_memory_async_copy(b, agents[1], a, agents[0], MIB, 1, &before, done), HSA_STATUS_SUCCESS);
    assert_int_equal(hsa_signal_load_scacquire(done), 1);
    assert_int_equal(b[0], 0);
    hsa_signal_store_screlease(before, 0);
    assert_int_equal(
        hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED), 0);
    assert_int_equal(b[MIB - 1], 5);
    assert_status(hsa_amd_memory_async_copy(NULL, agents[1], a, agents[0], MIB, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy(b, agents[1], NULL, agents[0], MIB, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy(b, agents[1], a, agents[0], MIB, 1, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy(b, no_agent, a, agents[0], MIB, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_async_copy(b, agents[1], a, no_agent, MIB, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_async_copy(b, agents[1], a, agents[0], MIB, 0, NULL, no_signal),
                  HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_amd_memory_async_copy(b, agents[1], a, agents[0], MIB, 1, &no_signal, done),
                  HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_int_equal(hsa_signal_load_relaxed(done), 0);
    assert_success(hsa_signal_destroy(before));
    assert_success(hsa_signal_destroy(done));
    assert_success(hsa_memory_free(a));
    assert_success(hsa_memory_free(b));
}

/* ---- hsa_ext_memoryd.h ----------------------------------------------------------------------------------- */

/* memclient_hsa_set_profile(profile): HSA_STATUS_SUCCESS; HSA_STATUS_ERROR_INVALID_ARGUMENT for none. In the rocr
 * profile hsa_amd_vmem_set_access() adds, and hsa_amd_vmem_get_access() of an agent never named is NONE. */
static void set_profile(void **state)
{
    hsa_access_permission_t perms = HSA_ACCESS_PERMISSION_RW;
    hsa_amd_vmem_alloc_handle_t handle;
    char *va;

    (void)state;
    assert_status(memclient_hsa_set_profile((enum memclient_hsa_profile)2), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_ROCR), HSA_STATUS_SUCCESS);
    assert_success(hsa_amd_vmem_address_reserve((void **)&va, PAGE, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], PAGE, MEMORY_TYPE_NONE, 0, &handle));
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handle, 0));
    assert_success(hsa_amd_vmem_get_access(va, &perms, agents[1]));
    assert_int_equal(perms, HSA_ACCESS_PERMISSION_NONE);
    for (unsigned i = 0; i < AGENTS; i++) {
        hsa_amd_memory_access_desc_t desc = {i ? HSA_ACCESS_PERMISSION_RO : HSA_ACCESS_PERMISSION_RW, agents[i]};

        assert_success(hsa_amd_vmem_set_access(va, PAGE, &desc, 1));
    }
    assert_success(hsa_amd_vmem_get_access(va, &perms, agents[0]));
    assert_int_equal(perms, HSA_ACCESS_PERMISSION_RW);
    *va = 1;
    assert_success(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_DOCUMENT));
    assert_success(hsa_amd_vmem_unmap(va, PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, PAGE));
}

/* memclient_hsa_buffer(ptr, buf): HSA_STATUS_SUCCESS: the native API's buffer; HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_ALLOCATION. */
static void native_buffer(void **state)
{
    struct memclient_buffer *buffer = NULL;
    void *ptr = NULL;

    (void)state;
    assert_success(hsa_memory_allocate(regions[0][FINE], 2 * PAGE, &ptr));
    assert_status(memclient_hsa_buffer((char *)ptr + PAGE, &buffer), HSA_STATUS_SUCCESS);
    memclient_buffer_unref(buffer);
    assert_status(memclient_hsa_buffer(NULL, &buffer), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(memclient_hsa_buffer(ptr, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(memclient_hsa_buffer(&buffer, &buffer), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_free(ptr));
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(caches),
        TEST(isas),
        TEST(amd_region_info),
        TEST(memory_lock),
        TEST(memory_lock_to_pool),
        TEST(migration),
        TEST(interop),
        TEST(signal_create),
        TEST(signal_wait),
        TEST(ipc_signals),
        TEST(async_copy),
        TEST(set_profile),
        TEST(native_buffer),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
