/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for any or all of several signals, of this process and of others, and groups of signals.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/hsa.h"

#define EQ HSA_SIGNAL_CONDITION_EQ
#define NE HSA_SIGNAL_CONDITION_NE

static hsa_signal_t make(hsa_signal_value_t value, uint64_t attributes)
{
    hsa_signal_t signal = {0};

    assert_success(hsa_amd_signal_create(value, 0, NULL, attributes, &signal));
    return signal;
}

static void destroy_all(unsigned n, const hsa_signal_t *signals)
{
    for (unsigned i = 0; i < n; i++)
        assert_success(hsa_signal_destroy(signals[i]));
}

/* ---- what holds already, and time -------------------------------------------------------------------------------- */

/* hsa_amd_signal_wait_any: signal_count, signals, conds, values, satisfying_value: the first that is met, and its
 * value; what is no signal is left out, UINT32_MAX if nothing else is there */
static void any_of_what_holds(void **state)
{
    hsa_signal_t signals[] = {make(1, 0), {0}, make(2, HSA_AMD_SIGNAL_IPC), {77}, make(3, 0)};
    hsa_signal_condition_t conds[] = {EQ, EQ, EQ, NE, HSA_SIGNAL_CONDITION_GTE};
    hsa_signal_value_t values[] = {5, 0, 2, 1, 3}, value = 99;

    assert_int_equal(hsa_amd_signal_wait_any(5, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, &value), 2);
    assert_int_equal(value, 2);
    values[2] = 7;
    assert_int_equal(hsa_amd_signal_wait_any(5, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_ACTIVE, &value), 4);
    assert_int_equal(value, 3);
    assert_int_equal(hsa_amd_signal_wait_any(5, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, NULL), 4);
    value = 99;
    assert_int_equal(hsa_amd_signal_wait_any(0, NULL, NULL, NULL, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, &value),
                     UINT32_MAX);
    assert_int_equal(
        hsa_amd_signal_wait_any(1, &signals[1], &conds[1], &values[1], UINT64_MAX, HSA_WAIT_STATE_BLOCKED, &value),
        UINT32_MAX);
    conds[4] = (hsa_signal_condition_t)4;
    assert_int_equal(hsa_amd_signal_wait_any(5, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, &value),
                     UINT32_MAX);
    assert_int_equal(value, 99);
    destroy_all(1, &signals[0]);
    destroy_all(1, &signals[2]);
    destroy_all(1, &signals[4]);
}

/* hsa_amd_signal_wait_all: signal_count, signals, conds, values, satisfying_values: 0, and what met each; what is no
 * signal has met its own with 0 */
static void all_of_what_holds(void **state)
{
    hsa_signal_t signals[] = {make(1, 0), {0}, make(-2, HSA_AMD_SIGNAL_IPC)};
    hsa_signal_condition_t conds[] = {EQ, EQ, HSA_SIGNAL_CONDITION_LT};
    hsa_signal_value_t values[] = {1, 17, 0}, seen[] = {99, 99, 99};

    assert_int_equal(hsa_amd_signal_wait_all(3, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, seen), 0);
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 0);
    assert_int_equal(seen[2], -2);
    assert_int_equal(hsa_amd_signal_wait_all(3, signals, conds, values, 0, HSA_WAIT_STATE_ACTIVE, NULL), 0);
    seen[0] = 99;
    assert_int_equal(hsa_amd_signal_wait_all(1, &signals[1], conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, seen),
                     0);
    assert_int_equal(seen[0], 0);
    assert_int_equal(hsa_amd_signal_wait_all(0, NULL, NULL, NULL, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, seen), 0);
    conds[0] = (hsa_signal_condition_t)-1;
    seen[0] = 99;
    assert_int_equal(hsa_amd_signal_wait_all(3, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, seen),
                     UINT32_MAX);
    assert_int_equal(seen[0], 99);
    destroy_all(1, &signals[0]);
    destroy_all(1, &signals[2]);
}

/* hsa_amd_signal_wait_any, hsa_amd_signal_wait_all: timeout_hint, wait_hint: over when the time is, and not before */
static void timeouts(void **state)
{
    hsa_signal_t signals[] = {make(0, 0), make(0, HSA_AMD_SIGNAL_IPC)};
    hsa_signal_condition_t conds[] = {NE, NE};
    hsa_signal_value_t values[] = {0, 0}, seen[] = {99, 99};
    uint64_t frequency, before, after;

    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    for (uint32_t n = 1; n <= 2; n++)
        for (int all = 0; all < 2; all++)
            for (int s = HSA_WAIT_STATE_BLOCKED; s <= HSA_WAIT_STATE_ACTIVE; s++) {
                __typeof__(hsa_amd_signal_wait_any) *wait = all ? hsa_amd_signal_wait_all : hsa_amd_signal_wait_any;

                assert_int_equal(wait(n, signals, conds, values, 0, (hsa_wait_state_t)s, seen), UINT32_MAX);
                assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
                assert_int_equal(wait(n, signals, conds, values, frequency / 50, (hsa_wait_state_t)s, seen),
                                 UINT32_MAX);
                assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
                assert_true(after - before >= frequency / 50);
            }
    assert_int_equal(seen[0], 99);
    destroy_all(2, signals);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { MANY = 300 };

struct waiter {
    pthread_t thread;
    bool all;
    uint32_t n, result;
    hsa_signal_t signals[MANY];
    hsa_signal_condition_t conds[MANY];
    hsa_signal_value_t values[MANY], seen[MANY];
    _Atomic pid_t tid;
    _Atomic bool waits, done;
};

static void *wait_for_them(void *data)
{
    struct waiter *waiter = data;

    waiter->tid = gettid();
    waiter->waits = true;
    waiter->result = (waiter->all ? hsa_amd_signal_wait_all : hsa_amd_signal_wait_any)(
        waiter->n, waiter->signals, waiter->conds, waiter->values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, waiter->seen);
    waiter->done = true;
    return NULL;
}

/* Waits until each is 1. */
static void start(struct waiter *waiter, bool all, uint32_t n, const hsa_signal_t *signals)
{
    waiter->all = all;
    waiter->n = n;
    waiter->waits = waiter->done = false;
    for (uint32_t i = 0; i < n; i++) {
        waiter->signals[i] = signals[i];
        waiter->conds[i] = EQ;
        waiter->values[i] = 1;
    }
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_them, waiter), 0);
    assert_true(WAIT_UNTIL(waiter->waits));
    wait_a_moment();
}

static void finish(struct waiter *waiter)
{
    assert_true(WAIT_UNTIL(waiter->done));
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
}

static struct waiter waiters[3];

/* Whichever changes wakes who waits for any of them; of few and of more than the kernel takes at once, of this process
 * alone and of several. */
static void any_wakes(void **state)
{
    static const struct {
        unsigned n, shared;
    } cases[] = {{2, 0}, {MANY, 0}, {3, 2}, {3, 3}, {MANY, 1}, {MANY, 140}};
    hsa_signal_t signals[MANY];

    for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const unsigned n = cases[c].n, which[] = {0, 1, n / 2, n - 1};

        for (unsigned i = 0; i < n; i++)
            signals[i] = make(0, i < cases[c].shared ? HSA_AMD_SIGNAL_IPC : 0);
        for (unsigned i = 0; i < 4; i++) {
            start(&waiters[0], false, n, signals);
            hsa_signal_store_relaxed(signals[which[i]], 2);
            hsa_signal_store_relaxed(signals[which[i]], 1);
            finish(&waiters[0]);
            assert_int_equal(waiters[0].result, which[i]);
            assert_int_equal(waiters[0].seen[0], 1);
            hsa_signal_store_relaxed(signals[which[i]], 0);
        }
        destroy_all(n, signals);
    }
}

/* What was met once counts, whatever it is afterwards. */
static void all_wakes(void **state)
{
    hsa_signal_t signals[] = {make(0, 0), make(0, HSA_AMD_SIGNAL_IPC), make(0, 0)};

    for (unsigned i = 0; i < 20; i++) {
        start(&waiters[0], true, 3, signals);
        hsa_signal_store_relaxed(signals[2], 1);
        hsa_signal_store_relaxed(signals[1], 1);
        assert_false(waiters[0].done);
        hsa_signal_store_relaxed(signals[0], 1);
        finish(&waiters[0]);
        assert_int_equal(waiters[0].result, 0);
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(waiters[0].seen[k], 1);
            hsa_signal_store_relaxed(signals[k], 0);
        }
    }
    destroy_all(3, signals);
}

/* Several threads that wait for overlapping lists. */
static void several_waiters(void **state)
{
    hsa_signal_t signals[] = {make(0, 0), make(0, 0), make(0, HSA_AMD_SIGNAL_IPC)};

    for (unsigned i = 0; i < 50; i++) {
        start(&waiters[0], false, 2, &signals[0]);
        start(&waiters[1], false, 2, &signals[1]);
        start(&waiters[2], true, 3, signals);
        hsa_signal_store_relaxed(signals[1], 1);
        finish(&waiters[0]);
        finish(&waiters[1]);
        assert_int_equal(waiters[0].result, 1);
        assert_int_equal(waiters[1].result, 0);
        hsa_signal_store_relaxed(signals[2], 1);
        hsa_signal_store_relaxed(signals[0], 1);
        finish(&waiters[2]);
        for (unsigned k = 0; k < 3; k++)
            hsa_signal_store_relaxed(signals[k], 0);
    }
    destroy_all(3, signals);
}

/* Does the kernel say that the thread sleeps? One that looks again and again never does. */
static bool sleeps(const struct waiter *waiter)
{
    char path[64], line[256] = "";
    const char *state;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)waiter->tid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    (void)fclose(file);
    state = strrchr(line, ')');
    return state && state[2] == 'S';
}

/* Who waits sleeps: on one word, on several, and between looks where the value may change without one. */
static void waits_asleep(void **state)
{
    hsa_signal_t signals[] = {make(0, 0), make(0, HSA_AMD_SIGNAL_IPC)};
    volatile hsa_signal_value_t *value;

    for (unsigned round = 0; round < 3; round++) {
        start(&waiters[0], true, round ? 2 : 1, signals);
        assert_true(WAIT_UNTIL(sleeps(&waiters[0])));
        if (round == 2)
            assert_success(hsa_amd_signal_value_pointer(signals[1], &value));
        assert_true(WAIT_UNTIL(sleeps(&waiters[0])));
        hsa_signal_store_relaxed(signals[0], 1);
        if (round == 2)
            __atomic_store_n(value, 1, __ATOMIC_SEQ_CST);
        else
            hsa_signal_store_relaxed(signals[1], 1);
        finish(&waiters[0]);
        assert_int_equal(waiters[0].result, 0);
        hsa_signal_store_relaxed(signals[0], 0);
        hsa_signal_store_relaxed(signals[1], 0);
    }
    destroy_all(2, signals);
}

static void *turn(void *data)
{
    hsa_signal_t *signals = data;
    hsa_signal_condition_t conds[] = {NE, NE};
    hsa_signal_value_t values[] = {0, 0}, seen;

    for (unsigned i = 0; i < 1000; i++) {
        uint32_t which = hsa_amd_signal_wait_any(2, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, &seen);

        if (which > 1)
            return data;
        hsa_signal_store_relaxed(signals[which], 0);
        hsa_signal_add_relaxed(signals[2], 1);
    }
    return NULL;
}

/* No wake-up is lost, however the two sides meet. */
static void no_wakeup_is_lost(void **state)
{
    for (unsigned k = 0; k < 2; k++) {
        hsa_signal_t signals[] = {make(0, 0), make(0, k ? HSA_AMD_SIGNAL_IPC : 0), make(0, 0)};
        pthread_t thread;
        void *failed;

        assert_int_equal(pthread_create(&thread, NULL, turn, signals), 0);
        for (unsigned i = 0; i < 1000; i++) {
            hsa_signal_store_relaxed(signals[i % 2], 1);
            assert_int_equal(hsa_signal_wait_relaxed(signals[2], EQ, i + 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED), i + 1);
        }
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        destroy_all(3, signals);
    }
}

/* One that is destroyed ends the wait. */
static void destroyed_meanwhile(void **state)
{
    for (unsigned i = 0; i < 40; i++) {
        hsa_signal_t signals[] = {make(0, 0), make(0, i % 2 ? HSA_AMD_SIGNAL_IPC : 0)};

        start(&waiters[0], i & 2, 2, signals);
        assert_success(hsa_signal_destroy(signals[1]));
        /* all but the one that is left, if it was not there yet when that one went */
        hsa_signal_store_relaxed(signals[0], 1);
        finish(&waiters[0]);
        assert_true(waiters[0].result == UINT32_MAX || waiters[0].result == 0);
        assert_success(hsa_signal_destroy(signals[0]));
    }
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

struct shared {
    hsa_amd_ipc_signal_t handles[2];
};

/* Answers each turn of one signal by the other. */
static void answer(int channel, void *context)
{
    struct shared *shared = context;
    hsa_signal_t signals[2];

    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        CHECK(hsa_amd_ipc_signal_attach(&shared->handles[i], &signals[i]) == HSA_STATUS_SUCCESS);
    for (int i = 1; i <= 500; i++) {
        CHECK(hsa_signal_wait_scacquire(signals[0], EQ, i, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) == i);
        (void)hsa_signal_exchange_scacq_screl(signals[1], i);
    }
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* Another process wakes who waits for any, and for all. */
static void another_process(void **state)
{
    hsa_signal_t signals[] = {make(0, HSA_AMD_SIGNAL_IPC), make(0, HSA_AMD_SIGNAL_IPC), make(0, 0)};
    hsa_signal_t waited[] = {signals[2], signals[1]};
    hsa_signal_condition_t conds[] = {EQ, EQ};
    struct shared shared;
    struct child child;

    for (unsigned i = 0; i < 2; i++)
        assert_success(hsa_amd_ipc_signal_create(signals[i], &shared.handles[i]));
    child_start(&child, answer, &shared);
    for (int i = 1; i <= 500; i++) {
        hsa_signal_value_t values[] = {-1, i}, seen[2] = {0};

        hsa_signal_store_screlease(signals[0], i);
        if (i % 2) {
            assert_int_equal(
                hsa_amd_signal_wait_any(2, waited, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, seen), 1);
            assert_int_equal(seen[0], i);
        } else {
            hsa_signal_silent_store_relaxed(signals[2], -1);
            assert_int_equal(
                hsa_amd_signal_wait_all(2, waited, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, seen), 0);
            assert_int_equal(seen[1], i);
            hsa_signal_silent_store_relaxed(signals[2], 0);
        }
    }
    child_finish(&child);
    destroy_all(3, signals);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* hsa_signal_group_create: num_signals, signals, num_consumers, consumers, signal_group; hsa_signal_group_destroy:
 * HSA_STATUS_SUCCESS, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_SIGNAL,
 * HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP */
static void groups_check_their_arguments(void **state)
{
    hsa_signal_t signals[] = {make(1, 0), make(2, 0)}, bad[] = {signals[0], {5}};
    hsa_agent_t bad_agents[] = {agents[0], {12345}};
    hsa_signal_group_t group = {99}, next;

    assert_status(hsa_signal_group_create(0, signals, 0, NULL, &group), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_create(1, NULL, 0, NULL, &group), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_create(1, signals, 1, NULL, &group), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_create(1, signals, 0, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_create(2, bad, 0, NULL, &group), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_signal_group_create(2, signals, 2, bad_agents, &group), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_int_equal(group.handle, 99);
    assert_status(hsa_signal_group_destroy(group), HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP);
    assert_status(hsa_signal_group_destroy((hsa_signal_group_t){0}), HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP);
    assert_status(hsa_signal_group_destroy((hsa_signal_group_t){signals[0].handle}),
                  HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP);
    assert_success(hsa_signal_group_create(2, signals, AGENTS, agents, &group));
    assert_success(hsa_signal_group_create(2, signals, 0, NULL, &next));
    assert_int_not_equal(group.handle, next.handle);
    assert_success(hsa_signal_group_destroy(group));
    assert_status(hsa_signal_group_destroy(group), HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP);
    assert_success(hsa_signal_group_destroy(next));
    destroy_all(2, signals);
}

struct group_waiter {
    pthread_t thread;
    hsa_signal_group_t group;
    hsa_signal_t signal;
    hsa_signal_value_t value;
    hsa_status_t status;
    _Atomic bool waits;
};

static void *wait_for_group(void *data)
{
    struct group_waiter *waiter = data;
    hsa_signal_condition_t conditions[] = {NE, NE};
    hsa_signal_value_t values[] = {0, 0};

    waiter->waits = true;
    waiter->status = hsa_signal_group_wait_any_relaxed(waiter->group, conditions, values, HSA_WAIT_STATE_BLOCKED,
                                                       &waiter->signal, &waiter->value);
    return NULL;
}

/* hsa_signal_group_wait_any_scacquire, hsa_signal_group_wait_any_relaxed: signal_group, conditions, compare_values,
 * wait_state_hint, signal, value: HSA_STATUS_SUCCESS, HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP */
static void groups_wait(void **state)
{
    hsa_signal_t signals[] = {make(1, 0), make(2, 0)}, signal = {99};
    hsa_signal_condition_t conditions[] = {EQ, EQ};
    hsa_signal_value_t values[] = {0, 2}, value = 99;
    struct group_waiter waiter = {0};
    hsa_signal_group_t group;

    assert_success(hsa_signal_group_create(2, signals, 0, NULL, &group));
    assert_status(hsa_signal_group_wait_any_scacquire(group, NULL, values, HSA_WAIT_STATE_BLOCKED, &signal, &value),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_wait_any_scacquire(group, conditions, NULL, HSA_WAIT_STATE_BLOCKED, &signal, &value),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_wait_any_scacquire(group, conditions, values, HSA_WAIT_STATE_BLOCKED, NULL, &value),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_wait_any_scacquire(group, conditions, values, HSA_WAIT_STATE_BLOCKED, &signal, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_signal_group_wait_any_relaxed((hsa_signal_group_t){7}, conditions, values, HSA_WAIT_STATE_BLOCKED,
                                                    &signal, &value),
                  HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP);
    assert_int_equal(signal.handle, 99);
    assert_success(
        hsa_signal_group_wait_any_scacquire(group, conditions, values, HSA_WAIT_STATE_ACTIVE, &signal, &value));
    assert_int_equal(signal.handle, signals[1].handle);
    assert_int_equal(value, 2);
    /* asleep, and on when the group has gone */
    hsa_signal_store_relaxed(signals[0], 0);
    hsa_signal_store_relaxed(signals[1], 0);
    waiter.group = group;
    assert_int_equal(pthread_create(&waiter.thread, NULL, wait_for_group, &waiter), 0);
    assert_true(WAIT_UNTIL(waiter.waits));
    wait_a_moment();
    assert_success(hsa_signal_group_destroy(group));
    hsa_signal_store_relaxed(signals[0], 3);
    assert_int_equal(pthread_join(waiter.thread, NULL), 0);
    if (waiter.status != HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP) { /* it did not come too late */
        assert_success(waiter.status);
        assert_int_equal(waiter.signal.handle, signals[0].handle);
        assert_int_equal(waiter.value, 3);
    }
    destroy_all(2, signals);
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static void in_a_child(int channel, void *context)
{
    hsa_signal_t *signals = context, own;
    hsa_signal_condition_t conds[] = {EQ, EQ};
    hsa_signal_value_t values[] = {5, 5}, value;
    hsa_signal_group_t group = {1};

    CHECK(hsa_signal_group_create(1, signals, 0, NULL, &group) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_signal_group_destroy(group) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_signal_group_wait_any_relaxed(group, conds, values, HSA_WAIT_STATE_BLOCKED, &own, &value) ==
          HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_signal_group_wait_any_scacquire(group, conds, values, HSA_WAIT_STATE_BLOCKED, &own, &value) ==
          HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_signal_wait_any(1, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, NULL) == UINT32_MAX);
    CHECK(hsa_amd_signal_wait_all(1, signals, conds, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, NULL) == 0);
    if (TEST_TSAN) /* which allows no threads in a child of a process that has some */
        return;
    /* shutting down ends the waits of other threads */
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_signal_create(0, 0, NULL, &own) == HSA_STATUS_SUCCESS);
    waiters[0] = (struct waiter){.n = 1, .signals = {own}, .conds = {EQ}, .values = {1}};
    CHECK(pthread_create(&waiters[0].thread, NULL, wait_for_them, &waiters[0]) == 0);
    while (!waiters[0].waits)
        wait_a_moment();
    wait_a_moment();
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
    CHECK(pthread_join(waiters[0].thread, NULL) == 0);
    CHECK(waiters[0].result == UINT32_MAX);
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED: of hsa_signal_group_create, hsa_signal_group_destroy,
 * hsa_signal_group_wait_any_relaxed, hsa_signal_group_wait_any_scacquire */
static void before_and_after(void **state)
{
    hsa_signal_t signal = make(0, 0);
    hsa_signal_group_t group;

    assert_success(hsa_signal_group_create(1, &signal, 0, NULL, &group));
    child_run(in_a_child, &signal);
    assert_success(hsa_signal_group_destroy(group));
    destroy_all(1, &signal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(before_and_after, hsa_nothing_left),
        cmocka_unit_test_teardown(any_of_what_holds, hsa_nothing_left),
        cmocka_unit_test_teardown(all_of_what_holds, hsa_nothing_left),
        cmocka_unit_test_teardown(timeouts, hsa_nothing_left),
        cmocka_unit_test_teardown(any_wakes, hsa_nothing_left),
        cmocka_unit_test_teardown(all_wakes, hsa_nothing_left),
        cmocka_unit_test_teardown(several_waiters, hsa_nothing_left),
        cmocka_unit_test_teardown(waits_asleep, hsa_nothing_left),
        cmocka_unit_test_teardown(no_wakeup_is_lost, hsa_nothing_left),
        cmocka_unit_test_teardown(destroyed_meanwhile, hsa_nothing_left),
        cmocka_unit_test_teardown(another_process, hsa_nothing_left),
        cmocka_unit_test_teardown(groups_check_their_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(groups_wait, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
