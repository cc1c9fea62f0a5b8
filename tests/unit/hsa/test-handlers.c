/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are called when a signal meets a condition: hsa_amd_signal_async_handler, hsa_amd_async_function.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
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

static unsigned count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    unsigned n = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

/* What a handler has been called with, and is to answer. */
struct calls {
    hsa_signal_t signal; /* is set to 0 by it */
    unsigned wanted;     /* again, until it was called so often */
    _Atomic unsigned n;
    _Atomic int64_t sum;
    pthread_t thread;
};

static bool note_call(hsa_signal_value_t value, void *arg)
{
    struct calls *calls = arg;

    calls->thread = pthread_self();
    calls->sum += value;
    if (calls->signal.handle)
        hsa_signal_store_screlease(calls->signal, 0);
    return ++calls->n < calls->wanted;
}

static void note_plain_call(void *arg)
{
    struct calls *calls = arg;

    calls->thread = pthread_self();
    calls->n++;
}

/* Until no handler is being called any more: they are called one after the other. */
static void settle(void)
{
    static struct calls last;
    unsigned before = last.n;

    assert_success(hsa_amd_async_function(note_plain_call, &last));
    assert_true(WAIT_UNTIL(last.n == before + 1));
}

/* hsa_amd_signal_async_handler: signal, cond, value, handler, arg: INVALID_ARGUMENT, INVALID_SIGNAL;
 * hsa_amd_async_function: callback, arg: INVALID_ARGUMENT. HSA_STATUS_SUCCESS is below.
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_SIGNAL */
static void check_arguments(void **state)
{
    hsa_signal_t signal = make(1, 0);
    struct calls calls = {0};

    assert_status(hsa_amd_signal_async_handler(signal, EQ, 1, NULL, &calls), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_async_handler(signal, (hsa_signal_condition_t)4, 1, note_call, &calls),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_async_handler((hsa_signal_t){0}, EQ, 0, note_call, &calls),
                  HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_amd_signal_async_handler((hsa_signal_t){3}, EQ, 0, note_call, &calls),
                  HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_success(hsa_signal_destroy(signal));
    assert_status(hsa_amd_signal_async_handler(signal, EQ, 1, note_call, &calls), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_amd_async_function(NULL, &calls), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(calls.n, 0);
}

/* No thread before the first call, one after it however many there are, and none after the last hsa_shut_down(). */
static void in_threads(int channel, void *context)
{
    hsa_signal_t signals[3];
    struct calls calls[3] = {0};
    unsigned before;

    CHECK(hsa_amd_signal_async_handler((hsa_signal_t){1}, EQ, 1, note_call, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_async_function(note_plain_call, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    if (TEST_TSAN) /* which allows no threads in a child of a process that has some */
        return;
    for (unsigned round = 0; round < 5; round++) {
        CHECK(hsa_init() == HSA_STATUS_SUCCESS);
        before = count_threads();
        for (unsigned i = 0; i < 3; i++) {
            CHECK(hsa_signal_create(0, 0, NULL, &signals[i]) == HSA_STATUS_SUCCESS);
            CHECK(count_threads() == before + (i > 0));
            calls[i].n = 0;
            CHECK(hsa_amd_signal_async_handler(signals[i], EQ, 1, note_call, &calls[i]) == HSA_STATUS_SUCCESS);
        }
        for (unsigned i = 0; i < 3; i++) {
            hsa_signal_store_relaxed(signals[i], 1);
            while (!calls[i].n)
                wait_a_moment();
            CHECK(pthread_equal(calls[i].thread, calls[0].thread));
            CHECK(!pthread_equal(calls[i].thread, pthread_self()));
        }
        CHECK(count_threads() == before + 1);
        CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
        while (count_threads() != before)
            wait_a_moment();
    }
}

/* hsa_amd_signal_async_handler, hsa_amd_async_function: HSA_STATUS_ERROR_NOT_INITIALIZED, HSA_STATUS_SUCCESS */
static void one_thread(void **state)
{
    child_run(in_threads, NULL);
}

/* hsa_amd_signal_async_handler: cond, value, arg: HSA_STATUS_SUCCESS: called when it is met, with the value that met
 * it, once; or again, as often as it says so */
static void called_as_often(void **state)
{
    static const uint64_t kinds[] = {0, HSA_AMD_SIGNAL_IPC};

    for (unsigned k = 0; k < 2; k++)
        for (unsigned wanted = 1; wanted <= 4; wanted++) {
            hsa_signal_t signal = make(0, kinds[k]);
            struct calls calls = {.signal = signal, .wanted = wanted};

            assert_success(hsa_amd_signal_async_handler(signal, NE, 0, note_call, &calls));
            for (unsigned i = 1; i <= wanted; i++) {
                assert_int_equal(calls.n, i - 1);
                hsa_signal_add_screlease(signal, 10 * i);
                assert_true(WAIT_UNTIL(calls.n == i));
                /* it has set it to 0, and then waits again */
                assert_int_equal(hsa_signal_load_scacquire(signal), 0);
            }
            assert_int_equal(calls.sum, 5 * wanted * (wanted + 1));
            hsa_signal_store_relaxed(signal, 1);
            for (unsigned i = 0; i < QUIET_MS / 5; i++)
                wait_a_moment();
            assert_int_equal(calls.n, wanted);
            assert_success(hsa_signal_destroy(signal));
            settle();
        }
}

/* What holds already is called for at once; what goes on holding, again and again. */
static void called_at_once(void **state)
{
    hsa_signal_t signal = make(5, 0);
    struct calls calls = {.wanted = 1000}, plain = {0};

    assert_success(hsa_amd_signal_async_handler(signal, EQ, 5, note_call, &calls));
    assert_true(WAIT_UNTIL(calls.n == 1000));
    assert_int_equal(calls.sum, 5000);
    assert_success(hsa_amd_async_function(note_plain_call, &plain));
    assert_true(WAIT_UNTIL(plain.n == 1));
    assert_success(hsa_signal_destroy(signal));
    settle();
}

/* One that goes on forever does not keep the others from their turn; the same may be there any number of times. */
static void takes_turns(void **state)
{
    hsa_signal_t holds = make(1, 0), other = make(0, 0);
    struct calls forever = {.wanted = UINT32_MAX}, once[50] = {{.wanted = 0}};

    assert_success(hsa_amd_signal_async_handler(holds, EQ, 1, note_call, &forever));
    for (unsigned i = 0; i < 50; i++)
        assert_success(hsa_amd_signal_async_handler(other, EQ, 1, note_call, &once[i]));
    hsa_signal_store_relaxed(other, 1);
    for (unsigned i = 0; i < 50; i++)
        assert_true(WAIT_UNTIL(once[i].n == 1));
    assert_true(forever.n > 0);
    hsa_signal_store_relaxed(holds, 0);
    assert_success(hsa_signal_destroy(holds));
    assert_success(hsa_signal_destroy(other));
    settle();
}

struct nested {
    hsa_signal_t first, second;
    _Atomic unsigned steps;
};

static bool second_step(hsa_signal_value_t value, void *arg)
{
    struct nested *nested = arg;
    void *memory;

    if (value == 7 && !hsa_amd_memory_pool_allocate(pools[0][FINE], 100, 0, &memory) && !hsa_memory_free(memory) &&
        !hsa_signal_destroy(nested->second))
        nested->steps++;
    return true; /* it is destroyed: not called again */
}

static bool first_step(hsa_signal_value_t value, void *arg)
{
    struct nested *nested = arg;

    if (!hsa_amd_signal_async_handler(nested->second, EQ, 7, second_step, nested)) {
        nested->steps++;
        hsa_signal_store_relaxed(nested->second, 7);
    }
    return false;
}

/* Handlers may do everything: allocate, destroy, add handlers. */
static void may_do_everything(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        struct nested nested = {make(0, 0), make(0, 0), 0};

        assert_success(hsa_amd_signal_async_handler(nested.first, EQ, 1, first_step, &nested));
        hsa_signal_store_relaxed(nested.first, 1);
        assert_true(WAIT_UNTIL(nested.steps == 2));
        assert_success(hsa_signal_destroy(nested.first));
        settle();
    }
}

/* That of a signal that was destroyed is not called. */
static void destroyed(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        hsa_signal_t signal = make(0, i % 2 ? HSA_AMD_SIGNAL_IPC : 0);
        struct calls calls = {0}, after = {0};

        assert_success(hsa_amd_signal_async_handler(signal, EQ, 1, note_call, &calls));
        assert_success(hsa_signal_destroy(signal));
        assert_success(hsa_amd_async_function(note_plain_call, &after));
        assert_true(WAIT_UNTIL(after.n == 1));
        assert_int_equal(calls.n, 0);
    }
}

static void *change_wildly(void *data)
{
    for (unsigned i = 0; i < 2000; i++)
        hsa_signal_add_relaxed(*(hsa_signal_t *)data, 1);
    return NULL;
}

static bool count_down(hsa_signal_value_t value, void *arg)
{
    struct calls *calls = arg;

    calls->sum += value;
    calls->n++;
    hsa_signal_subtract_relaxed(calls->signal, value);
    return true;
}

/* Threads that add, and a handler that takes away what it saw: in the end nothing is left, and nothing is missing. */
static void many_threads(void **state)
{
    enum { N = 4 };
    hsa_signal_t signal = make(0, 0);
    struct calls calls = {.signal = signal};
    pthread_t threads[N];

    assert_success(hsa_amd_signal_async_handler(signal, NE, 0, count_down, &calls));
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_wildly, &signal), 0);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(WAIT_UNTIL(hsa_signal_load_relaxed(signal) == 0));
    assert_int_equal(calls.sum, N * 2000);
    assert_success(hsa_signal_destroy(signal));
    settle();
}

static void store_from_elsewhere(int channel, void *handle)
{
    hsa_signal_t signal;

    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_signal_attach(handle, &signal) == HSA_STATUS_SUCCESS);
    for (unsigned i = 1; i <= 20; i++) {
        hsa_signal_store_screlease(signal, i);
        CHECK(hsa_signal_wait_scacquire(signal, EQ, 0, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) == 0);
    }
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* Another process's change calls it, too. */
static void another_process(void **state)
{
    hsa_signal_t signal = make(0, HSA_AMD_SIGNAL_IPC), local = make(0, 0);
    struct calls calls = {.signal = signal, .wanted = UINT32_MAX}, others = {0};
    hsa_amd_ipc_signal_t handle;

    assert_success(hsa_amd_ipc_signal_create(signal, &handle));
    assert_success(hsa_amd_signal_async_handler(signal, NE, 0, note_call, &calls));
    assert_success(hsa_amd_signal_async_handler(local, NE, 0, note_call, &others));
    child_run(store_from_elsewhere, &handle);
    assert_int_equal(calls.n, 20);
    assert_int_equal(calls.sum, 210);
    hsa_signal_store_relaxed(local, 1);
    assert_true(WAIT_UNTIL(others.n == 1));
    assert_success(hsa_signal_destroy(signal));
    assert_success(hsa_signal_destroy(local));
    settle();
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

struct ending {
    hsa_signal_t signal;
    _Atomic bool is_in, may_go;
    bool went;
};

static bool stay_a_while(hsa_signal_value_t value, void *arg)
{
    struct ending *ending = arg;
    hsa_signal_t signal;

    ending->is_in = true;
    while (!ending->may_go)
        wait_a_moment();
    (void)hsa_signal_create(0, 0, NULL, &signal); /* the runtime may be shut down by now, or not */
    ending->went = true;
    return true;
}

static bool shut_down_inside(hsa_signal_value_t value, void *arg)
{
    struct ending *ending = arg;

    ending->went = hsa_shut_down() == HSA_STATUS_SUCCESS;
    ending->is_in = true;
    return true;
}

static void *let_go(void *arg)
{
    struct ending *ending = arg;

    while (!ending->is_in)
        wait_a_moment();
    wait_a_moment();
    ending->may_go = true;
    return NULL;
}

/* Shutting down waits for the handler that is being called, and for no other; from inside of one it works, too. */
static void shut_down_in_a_child(int channel, void *context)
{
    struct calls never = {0};
    pthread_t thread;

    for (unsigned i = 0; i < 20; i++) {
        struct ending ending = {0};
        hsa_signal_t other;

        CHECK(hsa_init() == HSA_STATUS_SUCCESS);
        CHECK(hsa_signal_create(1, 0, NULL, &ending.signal) == HSA_STATUS_SUCCESS);
        CHECK(hsa_signal_create(0, 0, NULL, &other) == HSA_STATUS_SUCCESS);
        CHECK(hsa_amd_signal_async_handler(other, EQ, 1, note_call, &never) == HSA_STATUS_SUCCESS);
        CHECK(hsa_amd_signal_async_handler(ending.signal, EQ, 1, i % 2 ? shut_down_inside : stay_a_while, &ending) ==
              HSA_STATUS_SUCCESS);
        if (i % 2) {
            while (!ending.is_in)
                wait_a_moment();
        } else {
            CHECK(pthread_create(&thread, NULL, let_go, &ending) == 0);
            while (!ending.is_in)
                wait_a_moment();
            CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
            CHECK(pthread_join(thread, NULL) == 0);
        }
        CHECK(ending.went);
        CHECK(hsa_shut_down() == HSA_STATUS_ERROR_NOT_INITIALIZED);
    }
    CHECK(never.n == 0);
    while (count_threads() != 1)
        wait_a_moment();
}

static void shut_down(void **state)
{
    if (!TEST_TSAN)
        child_run(shut_down_in_a_child, NULL);
}

static bool fork_inside(hsa_signal_value_t value, void *arg)
{
    struct calls *calls = arg;
    pid_t child = fork();
    int status = -1;

    if (!child)
        return false; /* ends the child's only thread, and so the child: with 0 */
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status))
        calls->n++;
    return false;
}

static void in_a_child(int channel, void *context)
{
    struct calls *calls = context, own = {0};
    unsigned before = calls->n;
    hsa_signal_t signal;

    /* there is no thread, and what is added is the child's own */
    CHECK(count_threads() == 1);
    if (TEST_TSAN)
        return;
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_signal_create(0, 0, NULL, &signal) == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_signal_async_handler(signal, EQ, 1, note_call, &own) == HSA_STATUS_SUCCESS);
    hsa_signal_store_relaxed(signal, 1);
    while (!own.n)
        wait_a_moment();
    CHECK(calls->n == before);
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* A child has no thread and no handlers of its parent's, which has them still; also of a fork in a handler. */
static void forks(void **state)
{
    hsa_signal_t signal = make(0, 0);
    struct calls calls = {0}, inside = {0};

    assert_success(hsa_amd_signal_async_handler(signal, EQ, 1, note_call, &calls));
    child_run(in_a_child, &calls);
    hsa_signal_store_relaxed(signal, 1);
    assert_true(WAIT_UNTIL(calls.n == 1));
    if (!TEST_TSAN) {
        child_need_malloc();
        assert_success(hsa_amd_signal_async_handler(signal, EQ, 1, fork_inside, &inside));
        assert_true(WAIT_UNTIL(inside.n == 1));
    }
    assert_success(hsa_signal_destroy(signal));
    settle();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first: that there is no thread yet */
        cmocka_unit_test_teardown(one_thread, hsa_nothing_left),
        cmocka_unit_test_teardown(shut_down, hsa_nothing_left),
        cmocka_unit_test_teardown(check_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(called_as_often, hsa_nothing_left),
        cmocka_unit_test_teardown(called_at_once, hsa_nothing_left),
        cmocka_unit_test_teardown(takes_turns, hsa_nothing_left),
        cmocka_unit_test_teardown(may_do_everything, hsa_nothing_left),
        cmocka_unit_test_teardown(destroyed, hsa_nothing_left),
        cmocka_unit_test_teardown(many_threads, hsa_nothing_left),
        cmocka_unit_test_teardown(another_process, hsa_nothing_left),
        cmocka_unit_test_teardown(forks, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
