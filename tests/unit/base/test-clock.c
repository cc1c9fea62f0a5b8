/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, computed from given times; only the condition is waited for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void test_forward_only(void **state)
{
    uint64_t before = clock_now_ns();
    uint64_t us = clock_now_us();
    uint64_t after = clock_now_ns();

    assert_true(before <= after);
    assert_true(before / NSEC_PER_USEC <= us && us <= after / NSEC_PER_USEC);
}

static void test_deadline_saturates(void **state)
{
    assert_true(deadline_at(5, 7) == 12);
    assert_true(deadline_at(5, 0) == 5);
    assert_true(deadline_at(5, UINT64_MAX) == DEADLINE_NEVER);
    assert_true(deadline_at(5, UINT64_MAX - 5) == DEADLINE_NEVER);
    assert_true(deadline_at(5, UINT64_MAX - 6) == UINT64_MAX - 1);
    assert_true(deadline_after_ns(UINT64_MAX) == DEADLINE_NEVER);
    assert_true(deadline_after_ms(UINT64_MAX) == DEADLINE_NEVER);
    assert_true(deadline_after_ms(UINT64_MAX / NSEC_PER_MSEC + 1) == DEADLINE_NEVER);
    assert_true(deadline_after_ms(1000) >= clock_now_ns());
}

static void test_what_is_left(void **state)
{
    assert_true(deadline_left(100, 40) == 60);
    assert_true(deadline_left(100, 99) == 1);
    assert_true(deadline_left(100, 100) == 0);
    assert_true(deadline_left(100, 101) == 0);
    assert_true(deadline_left(0, 0) == 0);
    assert_true(deadline_left(DEADLINE_NEVER, UINT64_MAX) == UINT64_MAX);
    assert_true(deadline_left(DEADLINE_NEVER, 0) == UINT64_MAX);

    assert_false(deadline_passed(100, 99));
    assert_true(deadline_passed(100, 100));
    assert_true(deadline_passed(100, UINT64_MAX));
    assert_false(deadline_passed(DEADLINE_NEVER, UINT64_MAX));
}

static void test_for_poll(void **state)
{
    const uint64_t ms = NSEC_PER_MSEC;

    assert_int_equal(deadline_poll_ms(DEADLINE_NEVER, 0), -1);
    assert_int_equal(deadline_poll_ms(DEADLINE_NEVER, UINT64_MAX), -1);
    assert_int_equal(deadline_poll_ms(100, 100), 0);
    assert_int_equal(deadline_poll_ms(100, 200), 0);
    /* never 0 while something is left */
    assert_int_equal(deadline_poll_ms(101, 100), 1);
    assert_int_equal(deadline_poll_ms(ms, 0), 1);
    assert_int_equal(deadline_poll_ms(ms + 1, 0), 2);
    assert_int_equal(deadline_poll_ms(ms * INT_MAX, 0), INT_MAX);
    assert_int_equal(deadline_poll_ms(ms * INT_MAX - ms, 0), INT_MAX - 1);
    assert_int_equal(deadline_poll_ms(ms * INT_MAX + 1, 0), INT_MAX);
    assert_int_equal(deadline_poll_ms(DEADLINE_NEVER - 1, 0), INT_MAX);
}

static void test_condition(void **state)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    uint64_t deadline = deadline_after_ms(2);

    pthread_mutex_lock(&lock);
    while (!deadline_cond_wait(&never, &lock, deadline))
        ;
    assert_true(deadline_passed(deadline, clock_now_ns()));
    assert_int_equal(deadline_cond_wait(&never, &lock, 0), ETIMEDOUT);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_only), cmocka_unit_test(test_deadline_saturates),
        cmocka_unit_test(test_what_is_left), cmocka_unit_test(test_for_poll),
        cmocka_unit_test(test_condition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
