/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of one process: hsa_signal_create, hsa_signal_destroy, hsa_amd_signal_create, loading, storing, waiting.
 * Those of several processes are in test-ipc-signal.c.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/hsa.h"

#define LONG_AGO UINT64_C(1)

static hsa_signal_t make(hsa_signal_value_t value)
{
    hsa_signal_t signal = {0};

    assert_success(hsa_signal_create(value, 0, NULL, &signal));
    assert_int_not_equal(signal.handle, 0);
    return signal;
}

/* hsa_signal_create(initial_value, num_consumers, consumers, signal), hsa_amd_signal_create(initial_value,
 * num_consumers, consumers, attributes, signal): SUCCESS, INVALID_ARGUMENT, INVALID_AGENT */
static void create_checks_its_arguments(void **state)
{
    hsa_agent_t twice[] = {agents[0], agents[1], agents[0]}, bad[] = {agents[0], {7}};
    hsa_signal_t signal = {99};

    assert_status(hsa_signal_create(0, 0, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_create(0, 1, NULL, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_create(0, 3, twice, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_create(0, 2, bad, &signal), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_signal_create(0, 0, NULL, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_create(0, 1, NULL, 0, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_create(0, 0, NULL, 4, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_create(0, 0, NULL, UINT64_C(1) << 63, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_create(0, 2, bad, 0, &signal), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_int_equal(signal.handle, 99);
    for (uint32_t n = 0; n <= AGENTS; n++) {
        assert_success(hsa_signal_create(0, n, n ? agents : NULL, &signal));
        assert_success(hsa_signal_destroy(signal));
    }
    assert_success(hsa_amd_signal_create(5, AGENTS, agents, HSA_AMD_SIGNAL_AMD_GPU_ONLY, &signal));
    assert_int_equal(hsa_signal_load_relaxed(signal), 5);
    assert_success(hsa_signal_destroy(signal));
}

/* hsa_signal_destroy(signal): SUCCESS, INVALID_ARGUMENT, INVALID_SIGNAL. What was destroyed is no signal, and never
 * another. */
static void destroy_checks_its_argument(void **state)
{
    hsa_signal_t signal = make(1), next;

    assert_status(hsa_signal_destroy((hsa_signal_t){0}), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_destroy((hsa_signal_t){agents[0].handle}), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_signal_destroy((hsa_signal_t){pools[0][0].handle}), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_signal_destroy((hsa_signal_t){UINT64_MAX}), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_signal_destroy((hsa_signal_t){(uintptr_t)&signal}), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_success(hsa_signal_destroy(signal));
    assert_status(hsa_signal_destroy(signal), HSA_STATUS_ERROR_INVALID_SIGNAL);
    next = make(2);
    assert_int_not_equal(next.handle, signal.handle);
    hsa_signal_store_relaxed(signal, 3);
    assert_int_equal(hsa_signal_load_relaxed(signal), 0);
    assert_int_equal(hsa_signal_load_relaxed(next), 2);
    assert_success(hsa_signal_destroy(next));
}

/* Local signals are nobody's business but the process's. */
static void local_signals_make_no_call(void **state)
{
    hsa_signal_t signal;
    uint64_t before;
    size_t max;

    /* a call, which is answered after what was given back before */
    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_ALLOC_MAX_SIZE, &max));
    before = observer_requests();
    signal = make(0);
    hsa_signal_store_release(signal, 1);
    (void)hsa_signal_wait_acquire(signal, HSA_SIGNAL_CONDITION_EQ, 1, UINT64_MAX, HSA_WAIT_STATE_ACTIVE);
    assert_success(hsa_signal_destroy(signal));
    assert_int_equal(observer_requests(), before);
}

static hsa_signal_value_t (*const loads[])(hsa_signal_t) = {hsa_signal_load_relaxed, hsa_signal_load_scacquire,
                                                            hsa_signal_load_acquire};
static void (*const stores[])(hsa_signal_t, hsa_signal_value_t) = {hsa_signal_store_relaxed, hsa_signal_store_screlease,
                                                                   hsa_signal_store_release};
typedef hsa_signal_value_t wait_function(hsa_signal_t, hsa_signal_condition_t, hsa_signal_value_t, uint64_t,
                                         hsa_wait_state_t);
static wait_function *const waits[] = {hsa_signal_wait_relaxed, hsa_signal_wait_scacquire, hsa_signal_wait_acquire};

/* Every load sees every store, of all 64 bits: hsa_signal_load_relaxed(signal), hsa_signal_load_scacquire,
 * hsa_signal_load_acquire, hsa_signal_store_relaxed(signal, value), hsa_signal_store_screlease,
 * hsa_signal_store_release. */
static void values(void **state)
{
    const hsa_signal_value_t all[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    hsa_signal_t signal = make(INT64_MIN);

    assert_true(hsa_signal_load_relaxed(signal) == INT64_MIN);
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (unsigned s = 0; s < 3; s++)
            for (unsigned l = 0; l < 3; l++) {
                stores[s](signal, all[i]);
                assert_true(loads[l](signal) == all[i]);
                stores[s](signal, 77);
            }
    assert_success(hsa_signal_destroy(signal));
}

/* A handle that is none: nothing happens, and the value is 0, without waiting. */
static void no_signal(void **state)
{
    const uint64_t handles[] = {0, 1, UINT64_MAX, (uintptr_t)state};

    for (unsigned i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        hsa_signal_t signal = {handles[i]};

        for (unsigned k = 0; k < 3; k++) {
            stores[k](signal, 5);
            assert_int_equal(loads[k](signal), 0);
            assert_int_equal(waits[k](signal, HSA_SIGNAL_CONDITION_EQ, 5, UINT64_MAX, HSA_WAIT_STATE_BLOCKED), 0);
        }
    }
}

/* hsa_signal_wait_...: condition, compare_value: what holds already is not waited for */
static void conditions(void **state)
{
    static const struct {
        hsa_signal_condition_t condition;
        hsa_signal_value_t compare;
        bool met;
    } cases[] = {
        {HSA_SIGNAL_CONDITION_EQ, 5, true},   {HSA_SIGNAL_CONDITION_EQ, 4, false}, {HSA_SIGNAL_CONDITION_NE, 4, true},
        {HSA_SIGNAL_CONDITION_NE, 5, false},  {HSA_SIGNAL_CONDITION_LT, 6, true},  {HSA_SIGNAL_CONDITION_LT, 5, false},
        {HSA_SIGNAL_CONDITION_LT, -1, false}, {HSA_SIGNAL_CONDITION_GTE, 5, true}, {HSA_SIGNAL_CONDITION_GTE, -1, true},
        {HSA_SIGNAL_CONDITION_GTE, 6, false},
    };
    hsa_signal_t signal = make(5);

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (unsigned w = 0; w < 3; w++)
            assert_int_equal(waits[w](signal, cases[i].condition, cases[i].compare,
                                      cases[i].met ? UINT64_MAX : LONG_AGO, HSA_WAIT_STATE_BLOCKED),
                             5);
    /* nothing could ever meet it */
    assert_int_equal(hsa_signal_wait_relaxed(signal, (hsa_signal_condition_t)9, 0, UINT64_MAX, HSA_WAIT_STATE_ACTIVE),
                     5);
    assert_success(hsa_signal_destroy(signal));
}

/* hsa_signal_wait_relaxed(signal, condition, compare_value, timeout_hint, wait_state_hint), hsa_signal_wait_scacquire,
 * hsa_signal_wait_acquire: timeout_hint is in ticks of HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY */
static void timeouts(void **state)
{
    uint64_t frequency, before, after;
    hsa_signal_t signal = make(0);

    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    for (unsigned w = 0; w < 3; w++)
        for (int s = HSA_WAIT_STATE_BLOCKED; s <= HSA_WAIT_STATE_ACTIVE; s++) {
            assert_int_equal(waits[w](signal, HSA_SIGNAL_CONDITION_NE, 0, 0, (hsa_wait_state_t)s), 0);
            assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
            assert_int_equal(waits[w](signal, HSA_SIGNAL_CONDITION_NE, 0, frequency / 50, (hsa_wait_state_t)s), 0);
            assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
            assert_true(after - before >= frequency / 50);
        }
    assert_success(hsa_signal_destroy(signal));
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    hsa_signal_t signal;
    hsa_signal_condition_t condition;
    hsa_signal_value_t compare, seen;
    hsa_wait_state_t state;
    _Atomic bool waits, done;
};

static void *wait_for_it(void *data)
{
    struct waiter *waiter = data;

    waiter->waits = true;
    waiter->seen =
        hsa_signal_wait_scacquire(waiter->signal, waiter->condition, waiter->compare, UINT64_MAX, waiter->state);
    waiter->done = true;
    return NULL;
}

static void start(struct waiter *waiter, hsa_signal_t signal, hsa_signal_condition_t condition,
                  hsa_signal_value_t compare)
{
    *waiter = (struct waiter){.signal = signal, .condition = condition, .compare = compare};
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_it, waiter), 0);
    assert_true(WAIT_UNTIL(waiter->waits));
}

static void finish(struct waiter *waiter)
{
    assert_true(WAIT_UNTIL(waiter->done));
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
}

/* Each waits for its own; a store wakes those that it concerns. */
static void stores_wake(void **state)
{
    enum { N = 4 };
    hsa_signal_t signal = make(0);
    struct waiter waiters[N], all;

    for (int i = 0; i < N; i++)
        start(&waiters[i], signal, HSA_SIGNAL_CONDITION_GTE, i + 1);
    start(&all, signal, HSA_SIGNAL_CONDITION_LT, 0);
    for (int i = 0; i < N; i++) {
        stores[i % 3](signal, i + 1);
        finish(&waiters[i]);
        assert_true(waiters[i].seen >= i + 1);
        for (int k = i + 1; k < N; k++)
            assert_false(waiters[k].done);
    }
    /* only the upper half changes */
    hsa_signal_store_relaxed(signal, N - (INT64_C(1) << 32));
    finish(&all);
    assert_success(hsa_signal_destroy(signal));
}

static void *ping(void *data)
{
    const hsa_signal_t *signals = data;

    for (int i = 1; i <= 2000; i++) {
        (void)hsa_signal_wait_relaxed(signals[0], HSA_SIGNAL_CONDITION_EQ, i, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
        hsa_signal_store_relaxed(signals[1], i);
    }
    return NULL;
}

/* No wake-up is lost, however the two sides meet. */
static void ping_pong(void **state)
{
    hsa_signal_t signals[] = {make(0), make(0)};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, ping, signals), 0);
    for (int i = 1; i <= 2000; i++) {
        hsa_signal_store_relaxed(signals[0], i);
        assert_int_equal(
            hsa_signal_wait_relaxed(signals[1], HSA_SIGNAL_CONDITION_EQ, i, UINT64_MAX, HSA_WAIT_STATE_BLOCKED), i);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_success(hsa_signal_destroy(signals[0]));
    assert_success(hsa_signal_destroy(signals[1]));
}

/* It is a mistake of the program's, and ends the wait. */
static void destroyed_under_a_waiter(void **state)
{
    for (unsigned round = 0; round < 50; round++) {
        hsa_signal_t signal = make(6);
        struct waiter waiter;

        start(&waiter, signal, HSA_SIGNAL_CONDITION_EQ, 7);
        assert_success(hsa_signal_destroy(signal));
        finish(&waiter);
        assert_true(waiter.seen == 6 || waiter.seen == 0);
    }
}

static void *use_wildly(void *data)
{
    hsa_signal_t *signals = data;

    for (unsigned i = 0; i < 3000; i++) {
        hsa_signal_t signal = {__atomic_load_n(&signals[i % 4].handle, __ATOMIC_RELAXED)};

        hsa_signal_store_relaxed(signal, i);
        (void)hsa_signal_load_relaxed(signal);
        (void)hsa_signal_wait_relaxed(signal, HSA_SIGNAL_CONDITION_LT, 0, LONG_AGO, HSA_WAIT_STATE_BLOCKED);
        if (i % 16 == 0) {
            hsa_signal_t new;

            if (hsa_signal_create(0, 0, NULL, &new))
                return data;
            signal.handle = __atomic_exchange_n(&signals[i / 16 % 4].handle, new.handle, __ATOMIC_RELAXED);
            if (signal.handle && hsa_signal_destroy(signal))
                return data;
        }
    }
    return NULL;
}

/* Threads that make, use and destroy the same signals. */
static void many_threads(void **state)
{
    enum { N = 6 };
    hsa_signal_t signals[4] = {{0}};
    pthread_t threads[N];
    void *failed;

    for (unsigned i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_wildly, signals), 0);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_success(hsa_signal_destroy(signals[i]));
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static void in_a_child(int channel, void *context)
{
    hsa_signal_t parents = *(hsa_signal_t *)context, signal;
    struct waiter waiter = {.condition = HSA_SIGNAL_CONDITION_EQ, .compare = 1};

    (void)channel;
    CHECK(hsa_signal_create(0, 0, NULL, &signal) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_signal_create(0, 0, NULL, 0, &signal) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_signal_destroy(parents) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_signal_load_relaxed(parents) == 0);
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_signal_load_relaxed(parents) == 0);
    CHECK(hsa_signal_destroy(parents) == HSA_STATUS_ERROR_INVALID_SIGNAL);
    if (TEST_TSAN) /* which allows no threads in a child of a process that has some */
        return;
    /* shutting down ends all signals, and waits for who waits */
    CHECK(hsa_signal_create(0, 0, NULL, &waiter.signal) == HSA_STATUS_SUCCESS);
    CHECK(pthread_create(&waiter.thread, NULL, wait_for_it, &waiter) == 0);
    while (!waiter.waits)
        wait_a_moment();
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
    CHECK(pthread_join(waiter.thread, NULL) == 0);
    CHECK(hsa_signal_load_relaxed(waiter.signal) == 0);
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_signal_destroy(waiter.signal) == HSA_STATUS_ERROR_INVALID_SIGNAL);
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* NOT_INITIALIZED; a child begins without, and has none of its parent's signals. */
static void before_and_after(void **state)
{
    hsa_signal_t signal = make(8);
    struct waiter waiter;

    start(&waiter, signal, HSA_SIGNAL_CONDITION_EQ, 9);
    child_run(in_a_child, &signal);
    hsa_signal_store_relaxed(signal, 9);
    finish(&waiter);
    assert_success(hsa_signal_destroy(signal));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(create_checks_its_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(destroy_checks_its_argument, hsa_nothing_left),
        cmocka_unit_test_teardown(local_signals_make_no_call, hsa_nothing_left),
        cmocka_unit_test_teardown(values, hsa_nothing_left),
        cmocka_unit_test_teardown(no_signal, hsa_nothing_left),
        cmocka_unit_test_teardown(conditions, hsa_nothing_left),
        cmocka_unit_test_teardown(timeouts, hsa_nothing_left),
        cmocka_unit_test_teardown(stores_wake, hsa_nothing_left),
        cmocka_unit_test_teardown(ping_pong, hsa_nothing_left),
        cmocka_unit_test_teardown(destroyed_under_a_waiter, hsa_nothing_left),
        cmocka_unit_test_teardown(many_threads, hsa_nothing_left),
        cmocka_unit_test_teardown(before_and_after, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
