/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing the value of a signal: in every order, against a model, by many threads at once; and what is stored
 * silently, or by the value's address. Waking several processes is in test-ipc-signal.c and test-signal-several.c.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/hsa.h"

typedef void change_function(hsa_signal_t, hsa_signal_value_t);
typedef hsa_signal_value_t exchange_function(hsa_signal_t, hsa_signal_value_t);
typedef hsa_signal_value_t cas_function(hsa_signal_t, hsa_signal_value_t, hsa_signal_value_t);

enum { ORDERS = 7 };

#define IN_EVERY_ORDER(name)                                                                             \
    {                                                                                                    \
        hsa_signal_##name##_relaxed, hsa_signal_##name##_scacquire, hsa_signal_##name##_acquire,         \
            hsa_signal_##name##_screlease, hsa_signal_##name##_release, hsa_signal_##name##_scacq_screl, \
            hsa_signal_##name##_acq_rel                                                                  \
    }
static exchange_function *const exchanges[ORDERS] = IN_EVERY_ORDER(exchange);
static cas_function *const swaps[ORDERS] = IN_EVERY_ORDER(cas);

static uint64_t model_add(uint64_t a, uint64_t b)
{
    return a + b;
}

static uint64_t model_subtract(uint64_t a, uint64_t b)
{
    return a - b;
}

static uint64_t model_and(uint64_t a, uint64_t b)
{
    return a & b;
}

static uint64_t model_or(uint64_t a, uint64_t b)
{
    return a | b;
}

static uint64_t model_xor(uint64_t a, uint64_t b)
{
    return a ^ b;
}

static const struct {
    uint64_t (*model)(uint64_t, uint64_t);
    change_function *functions[ORDERS];
} changes[] = {
    {model_add, IN_EVERY_ORDER(add)}, {model_subtract, IN_EVERY_ORDER(subtract)}, {model_and, IN_EVERY_ORDER(and)},
    {model_or, IN_EVERY_ORDER(or)},   {model_xor, IN_EVERY_ORDER(xor)},
};

enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

static const hsa_signal_value_t numbers[] = {
    0, 1, -1, 5, -77, INT64_MAX, INT64_MIN, INT64_C(1) << 32, 0x5555555555555555};

enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static hsa_signal_t make(hsa_signal_value_t value, uint64_t attributes)
{
    hsa_signal_t signal = {0};

    assert_success(hsa_amd_signal_create(value, 0, NULL, attributes, &signal));
    return signal;
}

/* Of one process, and of several. */
static const uint64_t kinds[] = {0, HSA_AMD_SIGNAL_IPC};

/*
 * hsa_signal_add_relaxed
 * hsa_signal_add_scacquire
 * hsa_signal_add_acquire
 * hsa_signal_add_screlease
 * hsa_signal_add_release
 * hsa_signal_add_scacq_screl
 * hsa_signal_add_acq_rel
 * hsa_signal_subtract_relaxed
 * hsa_signal_subtract_scacquire
 * hsa_signal_subtract_acquire
 * hsa_signal_subtract_screlease
 * hsa_signal_subtract_release
 * hsa_signal_subtract_scacq_screl
 * hsa_signal_subtract_acq_rel
 * hsa_signal_and_relaxed
 * hsa_signal_and_scacquire
 * hsa_signal_and_acquire
 * hsa_signal_and_screlease
 * hsa_signal_and_release
 * hsa_signal_and_scacq_screl
 * hsa_signal_and_acq_rel
 * hsa_signal_or_relaxed
 * hsa_signal_or_scacquire
 * hsa_signal_or_acquire
 * hsa_signal_or_screlease
 * hsa_signal_or_release
 * hsa_signal_or_scacq_screl
 * hsa_signal_or_acq_rel
 * hsa_signal_xor_relaxed
 * hsa_signal_xor_scacquire
 * hsa_signal_xor_acquire
 * hsa_signal_xor_screlease
 * hsa_signal_xor_release
 * hsa_signal_xor_scacq_screl
 * hsa_signal_xor_acq_rel
 * signal, value: what is there becomes what the model says; too large goes on with the smallest
 */
static void changes_in_every_order(void **state)
{
    for (unsigned k = 0; k < 2; k++) {
        hsa_signal_t signal = make(0, kinds[k]);

        for (unsigned c = 0; c < CHANGES; c++)
            for (unsigned i = 0; i < NUMBERS * NUMBERS * ORDERS; i++) {
                hsa_signal_value_t from = numbers[i % NUMBERS], operand = numbers[i / NUMBERS % NUMBERS];

                hsa_signal_store_relaxed(signal, from);
                changes[c].functions[i / NUMBERS / NUMBERS](signal, operand);
                assert_true((uint64_t)hsa_signal_load_relaxed(signal) ==
                            changes[c].model((uint64_t)from, (uint64_t)operand));
            }
        assert_success(hsa_signal_destroy(signal));
    }
}

/*
 * hsa_signal_exchange_relaxed
 * hsa_signal_exchange_scacquire
 * hsa_signal_exchange_acquire
 * hsa_signal_exchange_screlease
 * hsa_signal_exchange_release
 * hsa_signal_exchange_scacq_screl
 * hsa_signal_exchange_acq_rel
 * signal, value: what was there before
 */
static void exchanges_in_every_order(void **state)
{
    for (unsigned k = 0; k < 2; k++) {
        hsa_signal_t signal = make(0, kinds[k]);

        for (unsigned i = 0; i < NUMBERS * NUMBERS * ORDERS; i++) {
            hsa_signal_value_t from = numbers[i % NUMBERS], to = numbers[i / NUMBERS % NUMBERS];

            hsa_signal_store_relaxed(signal, from);
            assert_true(exchanges[i / NUMBERS / NUMBERS](signal, to) == from);
            assert_true(hsa_signal_load_relaxed(signal) == to);
        }
        assert_success(hsa_signal_destroy(signal));
    }
}

/*
 * hsa_signal_cas_relaxed
 * hsa_signal_cas_scacquire
 * hsa_signal_cas_acquire
 * hsa_signal_cas_screlease
 * hsa_signal_cas_release
 * hsa_signal_cas_scacq_screl
 * hsa_signal_cas_acq_rel
 * signal, expected, value: set where it is as expected, else left; what was there before either way
 */
static void swaps_in_every_order(void **state)
{
    for (unsigned k = 0; k < 2; k++) {
        hsa_signal_t signal = make(0, kinds[k]);

        for (unsigned i = 0; i < NUMBERS * NUMBERS * ORDERS; i++) {
            hsa_signal_value_t from = numbers[i % NUMBERS], expected = numbers[i / NUMBERS % NUMBERS];

            hsa_signal_store_relaxed(signal, from);
            assert_true(swaps[i / NUMBERS / NUMBERS](signal, expected, 42) == from);
            assert_true(hsa_signal_load_relaxed(signal) == (from == expected ? 42 : from));
        }
        assert_success(hsa_signal_destroy(signal));
    }
}

/* Of what is no signal, and of nothing: nothing happens, and the value is 0. */
static void no_signal(void **state)
{
    hsa_signal_t gone = make(6, 0), other = make(5, 0);
    const uint64_t handles[] = {0, 1, UINT64_MAX, (uintptr_t)&gone, gone.handle};

    assert_success(hsa_signal_destroy(gone));
    for (unsigned i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        hsa_signal_t signal = {handles[i]};

        for (unsigned o = 0; o < ORDERS; o++) {
            for (unsigned c = 0; c < CHANGES; c++)
                changes[c].functions[o](signal, 3);
            assert_int_equal(exchanges[o](signal, 3), 0);
            assert_int_equal(swaps[o](signal, 0, 3), 0);
        }
        hsa_signal_silent_store_relaxed(signal, 3);
        hsa_signal_silent_store_screlease(signal, 3);
    }
    assert_int_equal(hsa_signal_load_relaxed(other), 5);
    assert_success(hsa_signal_destroy(other));
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    hsa_signal_t signal;
    hsa_signal_condition_t condition;
    hsa_signal_value_t compare, seen;
    _Atomic bool waits, done;
};

static void *wait_for_it(void *data)
{
    struct waiter *waiter = data;

    waiter->waits = true;
    waiter->seen = hsa_signal_wait_scacquire(waiter->signal, waiter->condition, waiter->compare, UINT64_MAX,
                                             HSA_WAIT_STATE_BLOCKED);
    waiter->done = true;
    return NULL;
}

static void start(struct waiter *waiter, hsa_signal_t signal, hsa_signal_condition_t condition,
                  hsa_signal_value_t compare)
{
    *waiter = (struct waiter){.signal = signal, .condition = condition, .compare = compare};
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_it, waiter), 0);
    assert_true(WAIT_UNTIL(waiter->waits));
    wait_a_moment(); /* most of them sleep by then */
}

static void finish(struct waiter *waiter)
{
    assert_true(WAIT_UNTIL(waiter->done));
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
}

/* Each kind of change wakes who waits, in every order. */
static void changes_wake(void **state)
{
    hsa_signal_t signal = make(0, 0);
    struct waiter waiter;

    for (unsigned o = 0; o < ORDERS; o++) {
        for (unsigned c = 0; c < CHANGES; c++) {
            hsa_signal_store_relaxed(signal, 12);
            start(&waiter, signal, HSA_SIGNAL_CONDITION_NE, 12);
            changes[c].functions[o](signal, 7);
            finish(&waiter);
            assert_true((uint64_t)waiter.seen == changes[c].model(12, 7));
        }
        start(&waiter, signal, HSA_SIGNAL_CONDITION_EQ, 99);
        (void)exchanges[o](signal, 99);
        finish(&waiter);
        start(&waiter, signal, HSA_SIGNAL_CONDITION_LT, 0);
        assert_int_equal(swaps[o](signal, 98, -1), 99);
        assert_int_equal(swaps[o](signal, 99, -1), 99);
        finish(&waiter);
    }
    assert_success(hsa_signal_destroy(signal));
}

struct adder {
    pthread_t thread;
    hsa_signal_t signal;
};

enum { ROUNDS = 4000 };

static void *add_and_subtract(void *data)
{
    const struct adder *adder = data;

    for (unsigned i = 0; i < ROUNDS; i++) {
        hsa_signal_value_t seen = hsa_signal_load_relaxed(adder->signal);

        changes[0].functions[i % ORDERS](adder->signal, 3);
        changes[1].functions[i % ORDERS](adder->signal, 2);
        while (swaps[i % ORDERS](adder->signal, seen, seen + 1) != seen)
            seen = hsa_signal_load_relaxed(adder->signal);
    }
    return NULL;
}

/* Nothing gets lost between threads. */
static void threads_add(void **state)
{
    enum { N = 4 };
    struct adder adders[N];

    for (unsigned k = 0; k < 2; k++) {
        hsa_signal_t signal = make(0, kinds[k]);

        for (unsigned i = 0; i < N; i++) {
            adders[i].signal = signal;
            assert_int_equal(pthread_create(&adders[i].thread, NULL, add_and_subtract, &adders[i]), 0);
        }
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(pthread_join(adders[i].thread, NULL), 0);
        assert_int_equal(hsa_signal_load_relaxed(signal), 2 * N * ROUNDS);
        assert_success(hsa_signal_destroy(signal));
    }
}

/* hsa_signal_silent_store_relaxed, hsa_signal_silent_store_screlease: signal, value: the value is there, and nobody
 * is woken; who is woken by something else sees it. */
static void silent_stores(void **state)
{
    hsa_signal_t signal = make(0, 0);
    struct waiter waiter;

    hsa_signal_silent_store_relaxed(signal, 4);
    assert_int_equal(hsa_signal_load_relaxed(signal), 4);
    start(&waiter, signal, HSA_SIGNAL_CONDITION_EQ, 5);
    for (unsigned i = 0; i < QUIET_MS; i++)
        wait_a_moment();
    hsa_signal_silent_store_screlease(signal, 5);
    assert_int_equal(hsa_signal_load_relaxed(signal), 5);
    for (unsigned i = 0; i < QUIET_MS; i++)
        wait_a_moment();
    assert_false(waiter.done);
    hsa_signal_add_relaxed(signal, 0);
    finish(&waiter);
    assert_success(hsa_signal_destroy(signal));
}

/* ---- the value's address ----------------------------------------------------------------------------------------- */

/* hsa_amd_signal_value_pointer: signal, value_ptr: HSA_STATUS_SUCCESS, HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_SIGNAL */
static void pointer_checks_its_arguments(void **state)
{
    hsa_signal_t plain = make(1, 0), shared = make(1, HSA_AMD_SIGNAL_IPC);
    volatile hsa_signal_value_t *value = NULL;

    assert_status(hsa_amd_signal_value_pointer(shared, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_value_pointer(plain, &value), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_signal_value_pointer((hsa_signal_t){0}, &value), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_success(hsa_signal_destroy(plain));
    assert_status(hsa_amd_signal_value_pointer(plain, &value), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_null(value);
    assert_success(hsa_amd_signal_value_pointer(shared, &value));
    assert_int_equal(__atomic_load_n(value, __ATOMIC_RELAXED), 1);
    assert_success(hsa_signal_destroy(shared));
}

/* It is the value, and a change that nobody is told of ends a wait all the same, also one that has begun before. */
static void pointer_is_the_value(void **state)
{
    const uint64_t attributes[] = {HSA_AMD_SIGNAL_IPC, HSA_AMD_SIGNAL_AMD_GPU_ONLY};

    for (unsigned k = 0; k < 2; k++) {
        hsa_signal_t signal = make(10, attributes[k]);
        volatile hsa_signal_value_t *value;
        struct waiter before, after;

        start(&before, signal, HSA_SIGNAL_CONDITION_EQ, 12);
        assert_success(hsa_amd_signal_value_pointer(signal, &value));
        hsa_signal_add_relaxed(signal, 1);
        assert_int_equal(__atomic_load_n(value, __ATOMIC_SEQ_CST), 11);
        start(&after, signal, HSA_SIGNAL_CONDITION_EQ, 12);
        assert_int_equal(__atomic_fetch_add(value, 1, __ATOMIC_SEQ_CST), 11);
        finish(&before);
        finish(&after);
        assert_int_equal(hsa_signal_load_relaxed(signal), 12);
        assert_success(hsa_signal_destroy(signal));
    }
}

static void call_it(int channel, void *context)
{
    volatile hsa_signal_value_t *value;

    CHECK(hsa_amd_signal_value_pointer(*(hsa_signal_t *)context, &value) == HSA_STATUS_ERROR_NOT_INITIALIZED);
}

/* hsa_amd_signal_value_pointer: HSA_STATUS_ERROR_NOT_INITIALIZED */
static void not_initialized(void **state)
{
    hsa_signal_t signal = make(0, HSA_AMD_SIGNAL_IPC);

    child_run(call_it, &signal);
    assert_success(hsa_signal_destroy(signal));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(changes_in_every_order, hsa_nothing_left),
        cmocka_unit_test_teardown(exchanges_in_every_order, hsa_nothing_left),
        cmocka_unit_test_teardown(swaps_in_every_order, hsa_nothing_left),
        cmocka_unit_test_teardown(no_signal, hsa_nothing_left),
        cmocka_unit_test_teardown(changes_wake, hsa_nothing_left),
        cmocka_unit_test_teardown(threads_add, hsa_nothing_left),
        cmocka_unit_test_teardown(silent_stores, hsa_nothing_left),
        cmocka_unit_test_teardown(pointer_checks_its_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(pointer_is_the_value, hsa_nothing_left),
        cmocka_unit_test_teardown(not_initialized, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
