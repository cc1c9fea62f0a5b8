/* SPDX-License-Identifier: Apache-2.0 */
/* hsa_amd_memory_async_copy. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/child.h"
#include "tests/unit/hsa/hsa.h"

#define SIZE (8 * MIB)

static char *from, *to;

static int setup(void **state)
{
    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE, 0, (void **)&from));
    assert_success(hsa_amd_memory_pool_allocate(pools[1][COARSE], SIZE, 0, (void **)&to));
    memset(from, 'f', SIZE);
    return 0;
}

static int teardown(void **state)
{
    assert_success(hsa_memory_free(from));
    assert_success(hsa_memory_free(to));
    return hsa_nothing_left(state);
}

static hsa_signal_t make(hsa_signal_value_t value)
{
    hsa_signal_t signal;

    assert_success(hsa_signal_create(value, 0, NULL, &signal));
    return signal;
}

static hsa_status_t copy(char *dst, const char *src, uint32_t n, const hsa_signal_t *needed, hsa_signal_t done)
{
    return hsa_amd_memory_async_copy(dst, agents[1], src, agents[0], SIZE, n, needed, done);
}

static hsa_signal_value_t until_below(hsa_signal_t signal, hsa_signal_value_t value)
{
    return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, value, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
}

/* hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, size, num_dep_signals, dep_signals, completion_signal).
 * Every argument: INVALID_ARGUMENT, INVALID_AGENT, INVALID_SIGNAL. Nothing is copied, and no signal changes. */
static void checks_its_arguments(void **state)
{
    hsa_signal_t done = make(1), needed[] = {make(0), {5}};
    hsa_agent_t bad = {pools[0][0].handle};

    assert_status(copy(NULL, from, 0, NULL, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(copy(to, NULL, 0, NULL, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(copy(to, from, 1, NULL, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(copy(to, from, 0, needed, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy(to, bad, from, agents[0], SIZE, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_async_copy(to, agents[0], from, bad, SIZE, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(copy(to, from, 2, needed, done), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(copy(to, from, 0, NULL, (hsa_signal_t){0}), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(copy(to, from, 1, needed, (hsa_signal_t){agents[0].handle}), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_int_equal(hsa_signal_load_relaxed(done), 1);
    assert_int_equal(to[0], 0);
    assert_success(hsa_signal_destroy(done));
    assert_success(hsa_signal_destroy(needed[0]));
}

/* hsa_amd_memory_async_copy: SUCCESS. completion_signal is counted down, after all is copied; also of nothing */
static void copies(void **state)
{
    char *ordinary = malloc(SIZE);
    hsa_signal_t done = make(3);

    assert_success(copy(to, from, 0, NULL, done));
    assert_int_equal(until_below(done, 3), 2);
    assert_memory_equal(to, from, SIZE);
    memset(to, 't', SIZE);
    assert_success(copy(ordinary, to, 0, NULL, done));
    assert_int_equal(until_below(done, 2), 1);
    assert_memory_equal(ordinary, to, SIZE);
    assert_success(hsa_amd_memory_async_copy(to, agents[0], from, agents[0], 0, 0, NULL, done));
    assert_int_equal(until_below(done, 1), 0);
    assert_int_equal(to[0], 't');
    assert_success(hsa_signal_destroy(done));
    free(ordinary);
}

/* dep_signals: not before all are 0, whatever the order in which they become so */
static void waits_for_others(void **state)
{
    hsa_signal_t needed[] = {make(2), make(1), make(0)}, done = make(1);

    assert_success(copy(to, from, 3, needed, done));
    hsa_signal_store_relaxed(needed[1], 0);
    hsa_signal_store_relaxed(needed[0], 1);
    assert_int_equal(hsa_signal_wait_relaxed(done, HSA_SIGNAL_CONDITION_LT, 1, 20000000, HSA_WAIT_STATE_BLOCKED), 1);
    assert_int_equal(to[0], 0);
    hsa_signal_store_screlease(needed[0], 0);
    assert_int_equal(until_below(done, 1), 0);
    assert_memory_equal(to, from, SIZE);
    for (unsigned i = 0; i < 3; i++)
        assert_success(hsa_signal_destroy(needed[i]));
    assert_success(hsa_signal_destroy(done));
}

/* Each waits for the next one, so all are under way at the same time. */
static void chains(void **state)
{
    enum { N = 16 };
    hsa_signal_t signals[N + 1];
    size_t part = SIZE / (N + 1);

    for (unsigned i = 0; i <= N; i++)
        signals[i] = make(1);
    for (unsigned i = 0; i < N; i++)
        assert_success(hsa_amd_memory_async_copy(from + i * part, agents[0], from + (i + 1) * part, agents[0], part, 1,
                                                 &signals[i + 1], signals[i]));
    memset(from + N * part, 'z', part);
    hsa_signal_store_screlease(signals[N], 0);
    assert_int_equal(until_below(signals[0], 1), 0);
    for (size_t i = 0; i < (N + 1) * part; i++)
        if (from[i] != 'z')
            fail_msg("byte %zu", i);
    for (unsigned i = 0; i <= N; i++)
        assert_success(hsa_signal_destroy(signals[i]));
}

/* One that failed has a negative signal, and so have those that wait for it; what may not be touched is not. */
static void failures(void **state)
{
    hsa_signal_t first = make(1), second = make(1), third = make(1);

    memcpy(to, "kept", sizeof("kept"));
    assert_success(hsa_memory_assign_agent(to, agents[0], HSA_ACCESS_PERMISSION_RO));
    assert_success(copy(to, from, 0, NULL, first));
    assert_true(until_below(first, 1) < 0);
    assert_success(copy(from, to, 1, &first, second));
    assert_true(until_below(second, 1) < 0);
    assert_string_equal(to, "kept");
    assert_int_equal(from[0], 'f');
    /* a signal that is destroyed is never 0 */
    assert_success(hsa_signal_destroy(second));
    second = make(1);
    assert_success(copy(from, to, 1, &second, third));
    assert_success(hsa_signal_destroy(second));
    assert_true(until_below(third, 1) < 0);
    assert_success(hsa_signal_destroy(first));
    assert_success(hsa_signal_destroy(third));
}

/* Its signals may be destroyed meanwhile: it counts down what nobody here has a handle of any more. */
static void signals_go(void **state)
{
    for (unsigned i = 0; i < 10; i++) {
        hsa_amd_ipc_signal_t handle;
        hsa_signal_t done, same;

        assert_success(hsa_amd_signal_create(1, 0, NULL, HSA_AMD_SIGNAL_IPC, &done));
        assert_success(hsa_amd_ipc_signal_create(done, &handle));
        assert_success(hsa_amd_ipc_signal_attach(&handle, &same));
        assert_success(copy(to, from, 0, NULL, done));
        assert_success(hsa_signal_destroy(done));
        assert_int_equal(until_below(same, 1), 0);
        assert_memory_equal(to, from, SIZE);
        assert_success(hsa_signal_destroy(same));
    }
}

static hsa_status_t take_fine(hsa_amd_memory_pool_t pool, void *data)
{
    *(hsa_amd_memory_pool_t *)data = pool;
    return HSA_STATUS_INFO_BREAK;
}

/* Copies that have begun are done; those that wait are given up. */
static void shut_down_meanwhile(int channel, void *context)
{
    char *ordinary = calloc(4, SIZE), *memory;
    hsa_signal_t never, done;
    hsa_amd_memory_pool_t pool;

    (void)channel;
    (void)context;
    CHECK(hsa_amd_memory_async_copy(ordinary, agents[0], ordinary, agents[0], 1, 0, NULL, (hsa_signal_t){1}) ==
          HSA_STATUS_ERROR_NOT_INITIALIZED);
    for (unsigned i = 0; i < 10; i++) {
        CHECK(hsa_init() == HSA_STATUS_SUCCESS);
        CHECK(hsa_amd_agent_iterate_memory_pools(agents[0], take_fine, &pool) == HSA_STATUS_INFO_BREAK);
        CHECK(hsa_amd_memory_pool_allocate(pool, SIZE, 0, (void **)&memory) == HSA_STATUS_SUCCESS);
        CHECK(hsa_signal_create(1, 0, NULL, &never) == HSA_STATUS_SUCCESS);
        CHECK(hsa_signal_create(8, 0, NULL, &done) == HSA_STATUS_SUCCESS);
        memset(memory, 'm', SIZE);
        for (unsigned k = 0; k < 4; k++)
            CHECK(copy(ordinary + k * SIZE, memory, 0, NULL, done) == HSA_STATUS_SUCCESS);
        for (unsigned k = 0; k < 4; k++)
            CHECK(copy(memory, ordinary, 1, &never, done) == HSA_STATUS_SUCCESS);
        CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
        CHECK(ordinary[0] == 'm' && ordinary[4 * SIZE - 1] == 'm');
    }
    free(ordinary);
}

static void shut_down(void **state)
{
    child_run(shut_down_meanwhile, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first: a thread that has copied may be ending yet when all that one can see of its copy is done */
        cmocka_unit_test_setup_teardown(shut_down, setup, teardown),
        cmocka_unit_test_setup_teardown(checks_its_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(copies, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_for_others, setup, teardown),
        cmocka_unit_test_setup_teardown(chains, setup, teardown),
        cmocka_unit_test_setup_teardown(failures, setup, teardown),
        cmocka_unit_test_setup_teardown(signals_go, setup, teardown),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
