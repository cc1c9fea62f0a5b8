/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lines a user may cause, what becomes of the others, and that nobody is silenced by somebody else.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "log/limit.h"
#include "log/log.h"

#define WINDOW (LOG_CLIENT_WINDOW_SEC * NSEC_PER_SEC)
#define BEGIN  UINT64_C(1000000000000)

static struct log_limit limit;
static char line[1024];
static int level;

static int reset(void **state)
{
    limit = (struct log_limit){.first_end = 0};
    return 0;
}

static bool report(uint64_t now)
{
    *line = '\0';
    return log_limit_report(&limit, now, line, sizeof(line), &level);
}

/* How many of n lines are said. */
static unsigned say(uid_t uid, unsigned n, uint64_t now)
{
    unsigned said = 0;

    for (unsigned i = 0; i < n; i++)
        said += log_limit_ask(&limit, uid, LOG_LEVEL_INFO, now) != LOG_LIMIT_LEAVE_OUT;
    return said;
}

static void the_rest_is_counted_and_told_once(void **state)
{
    assert_int_equal(say(1000, LOG_CLIENT_LINES - 1, BEGIN), LOG_CLIENT_LINES - 1);
    assert_int_equal(log_limit_ask(&limit, 1000, LOG_LEVEL_INFO, BEGIN), LOG_LIMIT_LAST);
    assert_int_equal(say(1000, 1234, BEGIN + WINDOW - 1), 0);
    assert_false(report(BEGIN + WINDOW - 1));
    assert_true(report(BEGIN + WINDOW));
    assert_string_equal(line, "lines about clients were left out: 1234 of uid 1000");
    assert_int_equal(level, LOG_LEVEL_INFO);
    assert_false(report(BEGIN + WINDOW));
    assert_false(report(BEGIN + 9 * WINDOW));
    assert_int_equal(say(1000, 100, BEGIN + WINDOW), LOG_CLIENT_LINES);
}

/* Whatever the numbers of two users have in common. */
static void nobody_is_silenced_by_another(void **state)
{
    for (uid_t uid = 0; uid < LOG_LIMIT_USERS; uid++)
        assert_int_equal(say(uid * 64, 1000, BEGIN), LOG_CLIENT_LINES);
    assert_true(report(BEGIN + WINDOW));
    assert_non_null(strstr(line, "990 of uid 0, 990 of uid 64, "));
    assert_non_null(strstr(line, ", and 47520 of 48 more users"));
    assert_int_equal(strlen(line) + 1 < sizeof(line), 1);
}

/* Together they have what one has; who was there before has its own, and who comes when there is a place again, too. */
static void the_table_is_bounded(void **state)
{
    for (uid_t uid = 0; uid < LOG_LIMIT_USERS; uid++)
        assert_int_equal(say(uid, 1, BEGIN), 1);
    assert_int_equal(say(5000, 8, BEGIN + 1), 8);
    assert_int_equal(say(6000, 8, BEGIN + 1), LOG_CLIENT_LINES - 8);
    assert_int_equal(say(7, 1000, BEGIN + 1), LOG_CLIENT_LINES - 1);
    assert_true(report(BEGIN + WINDOW + 1));
    assert_string_equal(line, "lines about clients were left out: 6 of other users, 991 of uid 7");
    assert_int_equal(say(6000, 1000, BEGIN + WINDOW + 1), LOG_CLIENT_LINES);
    assert_true(report(BEGIN + 2 * WINDOW + 1));
    assert_string_equal(line, "lines about clients were left out: 990 of uid 6000");
}

static void a_report_is_as_severe_as_what_it_counts(void **state)
{
    say(1000, LOG_CLIENT_LINES + 1, BEGIN);
    assert_int_equal(log_limit_ask(&limit, 1000, LOG_LEVEL_WARNING, BEGIN), LOG_LIMIT_LEAVE_OUT);
    say(1000, 1, BEGIN);
    assert_true(report(BEGIN + WINDOW));
    assert_int_equal(level, LOG_LEVEL_WARNING);
    assert_string_equal(line, "lines about clients were left out: 3 of uid 1000");
}

/* Each window has its own end, and none is forgotten. */
static void windows_end_one_by_one(void **state)
{
    say(1, 11, BEGIN);
    say(2, 11, BEGIN + 5);
    say(3, 1, BEGIN + 7);
    assert_true(report(BEGIN + WINDOW));
    assert_non_null(strstr(line, ": 1 of uid 1"));
    assert_false(report(BEGIN + WINDOW + 4));
    assert_true(report(BEGIN + WINDOW + 5));
    assert_non_null(strstr(line, ": 1 of uid 2"));
    assert_false(report(BEGIN + 2 * WINDOW));
}

#define TEST(f) cmocka_unit_test_setup(f, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_rest_is_counted_and_told_once),       TEST(nobody_is_silenced_by_another), TEST(the_table_is_bounded),
        TEST(a_report_is_as_severe_as_what_it_counts), TEST(windows_end_one_by_one),
    };

    return test_run(tests, NULL, NULL);
}
