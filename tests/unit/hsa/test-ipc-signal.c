/* SPDX-License-Identifier: Apache-2.0 */
/* hsa_amd_ipc_signal_create, hsa_amd_ipc_signal_attach: signals that processes share. */
#include <pthread.h>
#include <string.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/hsa.h"

static hsa_signal_t make(hsa_signal_value_t value)
{
    hsa_signal_t signal;

    assert_success(hsa_amd_signal_create(value, 0, NULL, HSA_AMD_SIGNAL_IPC, &signal));
    return signal;
}

static hsa_amd_ipc_signal_t handle_of(hsa_signal_t signal)
{
    hsa_amd_ipc_signal_t handle;

    assert_success(hsa_amd_ipc_signal_create(signal, &handle));
    return handle;
}

/* hsa_amd_ipc_signal_create(signal, handle): SUCCESS, INVALID_ARGUMENT, INVALID_SIGNAL */
static void create_checks_its_arguments(void **state)
{
    hsa_signal_t local, plain, signal = make(0);
    hsa_amd_ipc_signal_t handle, again;

    memset(&handle, 0x5a, sizeof(handle));
    again = handle;
    assert_success(hsa_signal_create(0, 0, NULL, &local));
    assert_status(hsa_amd_ipc_signal_create(signal, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_signal_create(local, &handle), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_signal_create((hsa_signal_t){0}, &handle), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_amd_ipc_signal_create((hsa_signal_t){12}, &handle), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_amd_ipc_signal_create((hsa_signal_t){UINT64_MAX}, &handle), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_success(hsa_amd_signal_create(1, 1, agents, HSA_AMD_SIGNAL_AMD_GPU_ONLY, &plain));
    assert_status(hsa_amd_ipc_signal_create(plain, &handle), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_signal_destroy(plain));
    assert_memory_equal(&handle, &again, sizeof(handle));
    handle = handle_of(signal);
    again = handle_of(signal);
    assert_memory_equal(&handle, &again, sizeof(handle));
    assert_success(hsa_signal_destroy(signal));
    assert_success(hsa_signal_destroy(local));
    assert_status(hsa_amd_ipc_signal_create(signal, &handle), HSA_STATUS_ERROR_INVALID_SIGNAL);
}

static void refuses_attach(const hsa_amd_ipc_signal_t *handle)
{
    hsa_signal_t signal = {99};

    assert_status(hsa_amd_ipc_signal_attach(handle, &signal), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(signal.handle, 99);
}

/* hsa_amd_ipc_signal_attach(handle, signal): SUCCESS, INVALID_ARGUMENT */
static void attach_checks_its_arguments(void **state)
{
    hsa_signal_t signal = make(0), attached;
    hsa_amd_ipc_signal_t handle = handle_of(signal), forged;
    hsa_amd_ipc_memory_t memory;
    void *ptr;

    refuses_attach(NULL);
    assert_status(hsa_amd_ipc_signal_attach(&handle, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < sizeof(handle) * 8; i++) {
        forged = handle;
        forged.handle[i / 32] ^= 1U << i % 32;
        refuses_attach(&forged);
    }
    /* memory is no signal, whatever its size */
    for (size_t size = 24; size <= MIB; size *= size < 4096 ? 1000 : 64) {
        assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], size, 0, &ptr));
        assert_success(hsa_amd_ipc_memory_create(ptr, size, &memory));
        refuses_attach(&memory);
        assert_success(hsa_memory_free(ptr));
    }
    /* as long as it exists anywhere */
    assert_success(hsa_amd_ipc_signal_attach(&handle, &attached));
    assert_success(hsa_signal_destroy(signal));
    assert_success(hsa_amd_ipc_signal_attach(&handle, &signal));
    assert_success(hsa_signal_destroy(attached));
    assert_success(hsa_signal_destroy(signal));
    refuses_attach(&handle);
}

/* Attached in the same process: another handle of the same signal, which ends on its own. */
static void attach_in_the_same_process(void **state)
{
    hsa_signal_t signal = make(5), attached;
    hsa_amd_ipc_signal_t handle = handle_of(signal), again;

    assert_success(hsa_amd_ipc_signal_attach(&handle, &attached));
    assert_int_not_equal(attached.handle, signal.handle);
    assert_int_equal(hsa_signal_load_relaxed(attached), 5);
    hsa_signal_store_relaxed(attached, 6);
    assert_int_equal(hsa_signal_load_relaxed(signal), 6);
    again = handle_of(attached);
    assert_memory_equal(&handle, &again, sizeof(handle));
    assert_success(hsa_signal_destroy(attached));
    assert_int_equal(hsa_signal_load_relaxed(attached), 0);
    assert_int_equal(hsa_signal_load_relaxed(signal), 6);
    assert_success(hsa_signal_destroy(signal));
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static hsa_signal_t attach_in_child(const void *handle)
{
    hsa_signal_t signal;

    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_signal_attach(handle, &signal) == HSA_STATUS_SUCCESS);
    return signal;
}

/* Answers odd numbers by the next even one, until it is told to stop. */
static void answer(int channel, void *handle)
{
    hsa_signal_t signal = attach_in_child(handle);

    (void)channel;
    for (int i = 1; i < 1000; i += 2) {
        CHECK(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, i, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) == i);
        hsa_signal_store_screlease(signal, i + 1);
    }
    CHECK(hsa_signal_destroy(signal) == HSA_STATUS_SUCCESS);
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* Two processes take turns, and no wake-up is lost. */
static void two_processes(void **state)
{
    hsa_signal_t signal = make(0);
    hsa_amd_ipc_signal_t handle = handle_of(signal);
    struct child child;

    child_start(&child, answer, &handle);
    for (int i = 1; i < 1000; i += 2) {
        hsa_signal_store_screlease(signal, i);
        assert_int_equal(
            hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, i + 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED),
            i + 1);
    }
    child_finish(&child);
    assert_success(hsa_signal_destroy(signal));
}

static void wait_for_seven(int channel, void *handle)
{
    hsa_signal_t signal = attach_in_child(handle);

    tell(channel);
    CHECK(hsa_signal_wait_relaxed(signal, HSA_SIGNAL_CONDITION_EQ, 7, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) == 7);
    tell(channel);
    hear(channel);
    CHECK(hsa_signal_load_relaxed(signal) == 8);
}

/* One that is killed while it waits harms nobody; the signal outlives who made it. */
static void three_processes(void **state)
{
    hsa_signal_t signal = make(0);
    hsa_amd_ipc_signal_t handle = handle_of(signal);
    struct child waiting, killed;

    child_start(&waiting, wait_for_seven, &handle);
    child_start(&killed, wait_for_seven, &handle);
    child_hear(&waiting);
    child_hear(&killed);
    child_kill(&killed);
    hsa_signal_store_relaxed(signal, 7);
    child_hear(&waiting);
    hsa_signal_store_relaxed(signal, 8);
    assert_success(hsa_signal_destroy(signal));
    child_tell(&waiting);
    child_finish(&waiting);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    refuses_attach(&handle);
}

static void *wait_without_end(void *signal)
{
    (void)hsa_signal_wait_relaxed(*(hsa_signal_t *)signal, HSA_SIGNAL_CONDITION_EQ, 1, UINT64_MAX,
                                  HSA_WAIT_STATE_BLOCKED);
    return NULL;
}

/* Shutting down unmaps the value, after those that wait for it are out. */
static void shut_down_under_a_waiter(int channel, void *handle)
{
    hsa_signal_t signal = attach_in_child(handle);
    pthread_t threads[4];

    (void)channel;
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_without_end, &signal) == 0);
    for (unsigned i = 0; i < 10; i++)
        wait_a_moment();
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void shut_down(void **state)
{
    hsa_signal_t signal = make(0);
    hsa_amd_ipc_signal_t handle = handle_of(signal);

    child_run(shut_down_under_a_waiter, &handle);
    assert_int_equal(hsa_signal_load_relaxed(signal), 0);
    assert_success(hsa_signal_destroy(signal));
}

static void call_all(int channel, void *context)
{
    hsa_amd_ipc_signal_t handle = {{0}};
    hsa_signal_t signal = {1};

    (void)channel;
    (void)context;
    CHECK(hsa_amd_ipc_signal_create(signal, &handle) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_signal_create(signal, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_signal_attach(&handle, &signal) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_signal_attach(NULL, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
}

static void not_initialized(void **state)
{
    child_run(call_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(create_checks_its_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_checks_its_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_in_the_same_process, hsa_nothing_left),
        cmocka_unit_test_teardown(two_processes, hsa_nothing_left),
        cmocka_unit_test_teardown(three_processes, hsa_nothing_left),
        cmocka_unit_test_teardown(shut_down, hsa_nothing_left),
        cmocka_unit_test_teardown(not_initialized, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
