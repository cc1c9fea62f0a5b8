/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines come in order, once each, and slices that come again do not keep others waiting. */
#include "broker/timers.h"

#include "base/clock.h"
#include "base/list.h"
#include "tests/support/test.h"

static struct timers timers;
static char fired[64];
static unsigned n_fired;

struct one {
    struct timer timer;
    char name;
    unsigned again;
};

static void fire(struct timer *timer)
{
    struct one *one = container_of(timer, struct one, timer);

    fired[n_fired++] = one->name;
    fired[n_fired] = '\0';
    if (one->again) {
        one->again--;
        timer_arm(&timers, timer, 0);
    }
}

static int setup(void **state)
{
    timers = (struct timers)TIMERS_INIT(NULL, NULL);
    n_fired = 0;
    fired[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    timers_deinit(&timers);
    return 0;
}

/* clang-format off */
#define ONE(c) {.timer = TIMER_INIT(fire), .name = (c)}
/* clang-format on */

static void in_order_of_time(void **state)
{
    struct one a = ONE('a'), b = ONE('b'), c = ONE('c');

    assert_true(timers_next(&timers) == DEADLINE_NEVER);
    timer_arm(&timers, &a.timer, 30);
    timer_arm(&timers, &b.timer, 10);
    timer_arm(&timers, &c.timer, 20);
    assert_int_equal(timers_next(&timers), 10);
    timers_run(&timers, 20);
    assert_string_equal(fired, "bc");
    assert_int_equal(timers_next(&timers), 30);
    timer_arm(&timers, &a.timer, 50);
    timers_run(&timers, 40);
    assert_string_equal(fired, "bc");
    timer_disarm(&timers, &a.timer);
    timer_disarm(&timers, &a.timer);
    timers_run(&timers, 100);
    assert_string_equal(fired, "bc");
    assert_true(timers_next(&timers) == DEADLINE_NEVER);
}

static void slices_take_turns(void **state)
{
    struct one a = ONE('a'), b = ONE('b'), c = ONE('c');

    a.again = 2;
    b.again = 1;
    timer_arm(&timers, &a.timer, 0);
    timer_arm(&timers, &b.timer, 0);
    timer_arm(&timers, &c.timer, 5);
    timers_run(&timers, 5);
    assert_string_equal(fired, "abc");
    timers_run(&timers, 5);
    assert_string_equal(fired, "abcab");
    timers_run(&timers, 5);
    assert_string_equal(fired, "abcaba");
    timers_run(&timers, 5);
    assert_string_equal(fired, "abcaba");
}

static void count(void *userdata, uint64_t id)
{
    (void)id;
    ++*(unsigned *)userdata;
}

static void many_that_are_due_at_once_take_several_turns(void **state)
{
    enum { N = 5000 };
    unsigned fires = 0, runs = 0;

    for (uint64_t id = 0; id < N; id++)
        assert_int_equal(timers_set_record(&timers, 1, id, 10, count, &fires), 0);
    while (timers_next(&timers) <= 10) {
        unsigned before = fires;

        timers_run(&timers, 10);
        assert_in_range(fires - before, 1, 1000);
        runs++;
    }
    assert_int_equal(fires, N);
    assert_true(runs > 1);
}

static void record_fire(void *userdata, uint64_t id)
{
    (void)userdata;
    fired[n_fired++] = (char)id;
    fired[n_fired] = '\0';
}

static void one_time_for_each_record(void **state)
{
    assert_int_equal(timers_set_record(&timers, 1, 'x', 10, record_fire, NULL), 0);
    assert_int_equal(timers_set_record(&timers, 2, 'x', 20, record_fire, NULL), 0);
    assert_int_equal(timers_set_record(&timers, 1, 'y', 30, record_fire, NULL), 0);
    assert_int_equal(timers_set_record(&timers, 1, 'y', 5, record_fire, NULL), 0);
    assert_int_equal(timers_next(&timers), 5);
    timers_clear_record(&timers, 2, 'y');
    timers_run(&timers, 10);
    assert_string_equal(fired, "yx");
    timers_clear_record(&timers, 2, 'x');
    timers_run(&timers, 100);
    assert_string_equal(fired, "yx");
    /* what is left when it ends is freed: the leak checker looks */
    assert_int_equal(timers_set_record(&timers, 3, 'z', 1000, record_fire, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_order_of_time, setup, teardown),
        cmocka_unit_test_setup_teardown(slices_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(many_that_are_due_at_once_take_several_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(one_time_for_each_record, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
