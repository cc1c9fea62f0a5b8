/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_init and hsa_shut_down: the count is exact, whoever races; what they mean for a fork, without a broker, and in
 * callbacks; and that HSA goes on when the broker is killed.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/ask.h"

#define THREADS         1000
#define NOT_INITIALIZED HSA_STATUS_ERROR_NOT_INITIALIZED

static hsa_status_t visit_agent(hsa_agent_t agent, void *data)
{
    return visit(agent.handle, data);
}

static hsa_status_t visit_region(hsa_region_t region, void *data)
{
    return visit(region.handle, data);
}

static hsa_status_t visit_pool(hsa_amd_memory_pool_t pool, void *data)
{
    return visit(pool.handle, data);
}

static hsa_status_t visit_cache(hsa_cache_t cache, void *data)
{
    return visit(cache.handle, data);
}

static hsa_status_t visit_isa(hsa_isa_t isa, void *data)
{
    return visit(isa.handle, data);
}

static bool is_up(void)
{
    uint16_t version;

    return hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &version) == HSA_STATUS_SUCCESS;
}

/* hsa_init: INVALID_ARGUMENT where the environment names no profile. It is looked at once in a process, so this comes
 * first. */
static void no_profile(void **state)
{
    setenv("MEMORYD_HSA_PROFILE", "no profile", 1);
    assert_status(hsa_init(), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    unsetenv("MEMORYD_HSA_PROFILE");
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* hsa_init counts up, hsa_shut_down down; at 0 it is HSA_STATUS_ERROR_NOT_INITIALIZED, however often. */
static void counts(void **state)
{
    for (unsigned i = 0; i < 3; i++)
        assert_success(hsa_init());
    for (unsigned i = 0; i < 4; i++) {
        assert_true(is_up());
        assert_success(hsa_shut_down());
    }
    assert_false(is_up());
    assert_status(hsa_shut_down(), NOT_INITIALIZED);
    assert_status(hsa_shut_down(), NOT_INITIALIZED);
    assert_success(hsa_init());
    assert_true(is_up());
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED, "The HSA runtime has not been initialized", is what every function that tells
 * something says first, even with arguments that are wrong. */
static void every_query_needs_init(void **state)
{
    struct visit v = {0};
    uint8_t value[ANSWER_MAX];

    assert_success(hsa_shut_down());
    assert_status(hsa_iterate_agents(visit_agent, &v), NOT_INITIALIZED);
    assert_status(hsa_iterate_agents(NULL, NULL), NOT_INITIALIZED);
    assert_status(hsa_agent_get_info(agents[0], HSA_AGENT_INFO_NODE, value), NOT_INITIALIZED);
    assert_status(hsa_agent_get_info(agents[0], (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MEMORY_AVAIL, value),
                  NOT_INITIALIZED);
    assert_status(hsa_agent_get_info(agents[0], HSA_AGENT_INFO_NODE, NULL), NOT_INITIALIZED);
    assert_status(hsa_agent_iterate_regions(agents[0], visit_region, &v), NOT_INITIALIZED);
    assert_status(hsa_agent_iterate_regions((hsa_agent_t){0}, NULL, NULL), NOT_INITIALIZED);
    assert_status(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_SIZE, value), NOT_INITIALIZED);
    assert_status(hsa_region_get_info((hsa_region_t){0}, HSA_REGION_INFO_SIZE, NULL), NOT_INITIALIZED);
    assert_status(hsa_amd_agent_iterate_memory_pools(agents[0], visit_pool, &v), NOT_INITIALIZED);
    assert_status(hsa_amd_agent_iterate_memory_pools((hsa_agent_t){0}, NULL, NULL), NOT_INITIALIZED);
    assert_status(hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, value),
                  NOT_INITIALIZED);
    assert_status(hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_SIZE, NULL), NOT_INITIALIZED);
    assert_status(
        hsa_amd_agent_memory_pool_get_info(agents[0], pools[0][FINE], HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, value),
        NOT_INITIALIZED);
    assert_status(hsa_agent_iterate_caches(agents[0], visit_cache, &v), NOT_INITIALIZED);
    assert_status(hsa_cache_get_info((hsa_cache_t){1}, HSA_CACHE_INFO_LEVEL, value), NOT_INITIALIZED);
    assert_status(hsa_agent_iterate_isas(agents[0], visit_isa, &v), NOT_INITIALIZED);
    assert_status(hsa_isa_get_info_alt((hsa_isa_t){1}, HSA_ISA_INFO_NAME, value), NOT_INITIALIZED);
    assert_status(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, value), NOT_INITIALIZED);
    assert_status(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, NULL), NOT_INITIALIZED);
    assert_int_equal(v.calls, 0);
    assert_success(hsa_init());
}

/* hsa_shut_down to 0 takes all memory back; after another hsa_init agents and pools are the same. */
static void shut_down_frees_memory_and_init_finds_the_same_agents(void **state)
{
    void *ptr;
    struct visit v = {0};

    for (unsigned i = 0; i < 20; i++) {
        assert_success(hsa_memory_allocate(regions[i % AGENTS][i % POOLS], MIB, &ptr));
        assert_success(hsa_shut_down());
        hsa_nothing_left(state);
        assert_success(hsa_init());
        assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    }
    assert_success(hsa_iterate_agents(visit_agent, &v));
    assert_int_equal(v.calls, AGENTS);
    for (unsigned i = 0; i < AGENTS; i++)
        assert_int_equal(v.seen[i], agents[i].handle);
}

/* So does virtual memory. */
static void shut_down_frees_virtual_memory(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle;
    void *va;

    assert_success(hsa_amd_vmem_address_reserve(&va, MIB, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[1][COARSE], MIB, MEMORY_TYPE_NONE, 0, &handle));
    assert_success(hsa_amd_vmem_map(va, MIB, 0, handle, 0));
    assert_success(hsa_shut_down());
    hsa_nothing_left(state);
    assert_success(hsa_init());
    assert_status(hsa_amd_vmem_address_free(va, MIB), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* ---- racing ------------------------------------------------------------------------------------------------------ */

static pthread_barrier_t barrier;
static unsigned successes, refusals, faults; /* atomic */

static void count(unsigned *what)
{
    __atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static void race(void *(*body)(void *))
{
    pthread_t *threads = calloc(THREADS, sizeof(*threads));
    pthread_attr_t small;

    assert_non_null(threads);
    successes = refusals = faults = 0;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 512 * 1024), 0);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], &small, body, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&barrier);
    pthread_attr_destroy(&small);
    free(threads);
}

static void *init_once(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    count(hsa_init() ? &faults : &successes);
    return NULL;
}

static void *shut_down_twice(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 2; i++) {
        hsa_status_t status = hsa_shut_down();

        count(!status ? &successes : status == NOT_INITIALIZED ? &refusals : &faults);
    }
    return NULL;
}

/* hsa_init in a thousand threads at once is a thousand; and of two thousand hsa_shut_down, just as many succeed. */
static void racing_counts(void **state)
{
    assert_success(hsa_shut_down());
    race(init_once);
    assert_int_equal(successes, THREADS);
    assert_true(is_up());
    race(shut_down_twice);
    assert_int_equal(faults, 0);
    assert_int_equal(successes, THREADS);
    assert_int_equal(refusals, THREADS);
    assert_false(is_up());
    assert_success(hsa_init());
}

static void *up_and_down(void *data)
{
    unsigned n = (unsigned)(uintptr_t)data;

    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 5; i++) {
        uint32_t node;
        uint64_t bytes;
        struct visit v = {0};

        if (hsa_init() || hsa_iterate_agents(visit_agent, &v) || v.calls != AGENTS ||
            hsa_agent_get_info((hsa_agent_t){v.seen[n % AGENTS]}, HSA_AGENT_INFO_NODE, &node) || node != n % AGENTS)
            count(&faults);
        if (n % 100 == 0 && ask_agent(v.seen[0], HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes))
            count(&faults);
        if (hsa_shut_down())
            count(&faults);
    }
    return NULL;
}

/* Between hsa_init and its own hsa_shut_down every thread finds the runtime up, though others stop and start it. */
static void racing_up_and_down(void **state)
{
    assert_success(hsa_shut_down());
    race(up_and_down);
    assert_int_equal(faults, 0);
    assert_status(hsa_shut_down(), NOT_INITIALIZED);
    assert_success(hsa_init());
}

static bool over; /* atomic */

static void *ask_always(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        uint64_t bytes;
        hsa_status_t status = ask_agent(agents[0].handle, HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes);

        if (status && status != NOT_INITIALIZED)
            count(&faults);
    }
    return NULL;
}

/* hsa_shut_down waits for those inside, and those that come too late are not inside: it ends while others ask on. */
static void shut_down_ends_while_others_query(void **state)
{
    pthread_t threads[8];

    faults = 0;
    over = false;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_always, NULL), 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_success(hsa_shut_down());
        assert_success(hsa_init());
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(faults, 0);
}

/* ---- in callbacks ------------------------------------------------------------------------------------------------ */

/* Stops, starts, and asks. */
static hsa_status_t do_everything(void)
{
    struct visit v = {0};
    uint64_t bytes;

    assert_success(hsa_shut_down());
    assert_false(is_up());
    assert_success(hsa_init());
    assert_success(hsa_iterate_agents(visit_agent, &v));
    assert_int_equal(v.calls, AGENTS);
    assert_success(ask_agent(agents[0].handle, HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes));
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t from_agent(hsa_agent_t agent, void *data)
{
    (void)visit(agent.handle, data);
    return do_everything();
}

static hsa_status_t from_region(hsa_region_t region, void *data)
{
    (void)visit(region.handle, data);
    return do_everything();
}

static hsa_status_t from_pool(hsa_amd_memory_pool_t pool, void *data)
{
    (void)visit(pool.handle, data);
    return do_everything();
}

static hsa_status_t from_cache(hsa_cache_t cache, void *data)
{
    (void)visit(cache.handle, data);
    return do_everything();
}

/* Callbacks of hsa_iterate_agents, hsa_agent_iterate_regions, hsa_amd_agent_iterate_memory_pools and
 * hsa_agent_iterate_caches may call anything, hsa_shut_down and hsa_init too, and the iteration goes on. */
static void callbacks_may_call(void **state)
{
    struct visit v = {0};

    assert_success(hsa_iterate_agents(from_agent, &v));
    assert_int_equal(v.calls, AGENTS);
    v.calls = 0;
    assert_success(hsa_agent_iterate_regions(agents[0], from_region, &v));
    assert_int_equal(v.calls, 9);
    v.calls = 0;
    assert_success(hsa_amd_agent_iterate_memory_pools(agents[1], from_pool, &v));
    assert_int_equal(v.calls, POOLS);
    assert_success(hsa_agent_iterate_caches(agents[0], from_cache, &v));
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void child_begins_anew(int channel, void *context)
{
    struct visit v = {0};
    uint64_t bytes;
    void *ptr;

    (void)channel;
    (void)context;
    CHECK(!is_up());
    CHECK(hsa_shut_down() == NOT_INITIALIZED);
    CHECK(hsa_memory_free(context) == NOT_INITIALIZED);
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_iterate_agents(visit_agent, &v) == HSA_STATUS_SUCCESS && v.calls == AGENTS);
    CHECK(ask_agent(agents[1].handle, HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes) == HSA_STATUS_SUCCESS);
    CHECK(hsa_memory_allocate(regions[0][FINE], MIB, &ptr) == HSA_STATUS_SUCCESS);
    memset(ptr, 1, MIB);
    CHECK(hsa_memory_free(context) == HSA_STATUS_ERROR_INVALID_ALLOCATION);
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
    CHECK(hsa_shut_down() == NOT_INITIALIZED);
}

/* After a fork the child is not initialised, and may do so itself; the parent goes on. */
static void forks(void **state)
{
    void *ptr;

    assert_success(hsa_init());
    assert_success(hsa_memory_allocate(regions[1][COARSE], MIB, &ptr));
    child_run(child_begins_anew, ptr);
    assert_success(hsa_memory_free(ptr));
    assert_success(hsa_shut_down());
    assert_true(is_up());
}

/* What threads that the fork has left behind were holding is nobody's in the child, and would be taken for a leak. */
static void child_begins_anew_unchecked(int channel, void *context)
{
    child_begins_anew(channel, context);
    execl("/bin/true", "true", (char *)NULL);
    CHECK(!"/bin/true");
}

static void *start_and_stop_always(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        void *ptr;

        if (hsa_init())
            count(&faults);
        if (!hsa_memory_allocate(regions[0][FINE], 4096, &ptr))
            (void)hsa_memory_free(ptr);
        if (hsa_shut_down())
            count(&faults);
    }
    return NULL;
}

/* A fork at any moment of other threads' starting, stopping, asking and allocating leaves a child that works. */
static void forks_amid_threads(void **state)
{
    pthread_t threads[4];

    child_need_malloc();
    faults = 0;
    over = false;
    assert_success(hsa_shut_down());
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? ask_always : start_and_stop_always, NULL), 0);
    for (unsigned i = 0; i < 50; i++)
        child_run(child_begins_anew_unchecked, (void *)4096);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(faults, 0);
    assert_success(hsa_init());
}

/* ---- the broker -------------------------------------------------------------------------------------------------- */

/* The broker is killed and comes back: the runtime stays up, and everything goes on. */
static void broker_is_killed(void **state)
{
    void *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], MIB, &ptr));
    for (unsigned i = 0; i < 3; i++) {
        uint64_t bytes;

        broker_kill_child(&observed);
        assert_success(ask_agent(agents[0].handle, HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes));
        assert_success(hsa_init());
        assert_success(hsa_shut_down());
    }
    assert_success(hsa_memory_free(ptr));
    broker_kill_child(&observed);
    assert_success(hsa_shut_down());
    broker_kill_child(&observed);
    assert_success(hsa_init());
}

static void child_finds_none(int channel, void *context)
{
    const char *socket = getenv("MEMORYD_SOCKET");

    (void)channel;
    (void)context;
    setenv("MEMORYD_SOCKET", "/nonexistent/socket", 1);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(hsa_init() == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
        CHECK(!is_up());
        CHECK(hsa_shut_down() == NOT_INITIALIZED);
    }
    setenv("MEMORYD_SOCKET", socket, 1);
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* hsa_init, HSA_STATUS_ERROR_OUT_OF_RESOURCES: no broker can be reached. Nothing is initialised; later it may work. */
static void no_broker(void **state)
{
    child_run(child_finds_none, NULL);
}

/* Each hsa_init after the last hsa_shut_down looks at the broker that it finds then. */
static void another_broker(void **state)
{
    static struct broker_process other;

    assert_success(hsa_shut_down());
    broker_start(&other, "[topology]\nsimulate_nodes = 5\n", 0);
    for (unsigned i = 0; i < 3; i++) {
        unsigned there = i % 2 ? AGENTS : 5;
        struct visit v = {0};
        uint32_t node;

        setenv("MEMORYD_SOCKET", i % 2 ? observed.socket : other.socket, 1);
        assert_success(hsa_init());
        assert_success(hsa_iterate_agents(visit_agent, &v));
        assert_int_equal(v.calls, there);
        assert_status(ask_agent(agents[1].handle + 1, HSA_AGENT_INFO_NODE, &node),
                      there > AGENTS ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_AGENT);
        assert_success(hsa_shut_down());
    }
    broker_stop(&other);
    setenv("MEMORYD_SOCKET", observed.socket, 1);
    assert_success(hsa_init());
}

int main(void)
{
    const struct CMUnitTest at_first[] = {
        cmocka_unit_test(no_profile),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(every_query_needs_init),
        cmocka_unit_test_teardown(shut_down_frees_memory_and_init_finds_the_same_agents, hsa_nothing_left),
        cmocka_unit_test_teardown(shut_down_frees_virtual_memory, hsa_nothing_left),
        cmocka_unit_test(racing_counts),
        cmocka_unit_test(racing_up_and_down),
        cmocka_unit_test(shut_down_ends_while_others_query),
        cmocka_unit_test(callbacks_may_call),
        cmocka_unit_test_teardown(forks, hsa_nothing_left),
        cmocka_unit_test_teardown(forks_amid_threads, hsa_nothing_left),
        cmocka_unit_test_teardown(broker_is_killed, hsa_nothing_left),
        cmocka_unit_test(no_broker),
        cmocka_unit_test(another_broker),
    };

    if (cmocka_run_group_tests(at_first, NULL, NULL))
        return EXIT_FAILURE;
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
