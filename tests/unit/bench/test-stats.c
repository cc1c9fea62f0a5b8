/* SPDX-License-Identifier: Apache-2.0 */
/* The intervals of known samples, when they are narrow, and when a row is missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/bench/stats.h"

/* 1 to n, from both ends. */
static struct stats_interval interval_of_first(size_t n)
{
    double *values = calloc(n, sizeof(*values));
    struct stats_interval interval;

    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = i % 2 ? (double)(n - i / 2) : (double)(i / 2 + 1);
    interval = stats_median(values, n);
    free(values);
    return interval;
}

/* Ranks as the tables of the sign test have them, for 5 % on both sides together. */
static void test_known_ranks(void **state)
{
    static const struct {
        size_t n, low;
    } table[] = {{6, 1},  {7, 1},  {8, 1},   {9, 2},   {11, 2},  {12, 3},  {15, 4},   {17, 5},
                 {20, 6}, {25, 8}, {30, 10}, {40, 14}, {50, 18}, {70, 27}, {100, 40}, {1000, 469}};

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct stats_interval interval = interval_of_first(table[i].n);

        assert_true(interval.sure);
        assert_float_equal(interval.median, (double)(table[i].n + 1) / 2, 0);
        assert_int_equal((size_t)interval.low, table[i].low);
        assert_int_equal((size_t)interval.high, table[i].n + 1 - table[i].low);
    }
}

/* However many there are, it is an interval about the median, and no worse than that of fewer. */
static void test_many(void **state)
{
    struct stats_interval interval = interval_of_first(100000);

    assert_true(interval.sure);
    assert_true(interval.low < 50000 && interval.high > 50001);
    assert_true(interval.high - interval.low <= 0.07 * 100000);
}

static void test_too_few(void **state)
{
    struct stats_interval interval;

    for (size_t n = 1; n < STATS_FEWEST_N; n++) {
        interval = interval_of_first(n);
        assert_false(interval.sure);
        assert_int_equal((size_t)interval.low, 1);
        assert_int_equal((size_t)interval.high, n);
        assert_false(stats_is_narrow(&interval));
    }
    assert_true(interval_of_first(STATS_FEWEST_N).sure);
}

/* As often as it says: of rounds with a skewed distribution and outliers, whose median is known. */
static void test_covers(void **state)
{
    enum { TRIES = 4000, ROUNDS = 12 };
    double values[ROUNDS];
    uint64_t x = 1;
    int missed = 0;

    for (int i = 0; i < TRIES; i++) {
        struct stats_interval interval;

        for (int k = 0; k < ROUNDS; k++) {
            double u;

            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            u = (double)(x >> 11) / (double)(UINT64_C(1) << 53);
            values[k] = 1 / (1 - u);
        }
        /* P(1/(1-u) < m) = 1/2 for m = 2 */
        interval = stats_median(values, ROUNDS);
        missed += interval.low > 2 || interval.high < 2;
    }
    /* exactly 3.86 % for 12 rounds: 154, and 12 to either side is the standard deviation */
    assert_in_range(missed, 154 - 60, 154 + 60);
}

/* A neighbour that slows a third of the rounds down by much does not move the median out of the others. */
static void test_outliers(void **state)
{
    double values[] = {1.01, 9, 1.02, 1.00, 7, 1.03, 0.99, 1.01, 30, 1.00, 8, 1.02, 1.01, 0.98, 1.00, 9, 1.01, 1.02};
    struct stats_interval interval = stats_median(values, sizeof(values) / sizeof(*values));

    assert_true(interval.low >= 0.98 && interval.median < 1.03);
    assert_false(stats_is_beyond(&interval, 1.05, false));
}

static void test_even_and_odd(void **state)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 2, 3};

    assert_float_equal(stats_median(odd, 3).median, 2, 0);
    assert_float_equal(stats_median(even, 4).median, 2.5, 0);
}

static void test_quantiles(void **state)
{
    double values[101];

    for (int i = 0; i <= 100; i++)
        values[i] = 100 - i;
    assert_float_equal(stats_quantile(values, 101, 0.5), 50, 0);
    assert_float_equal(stats_quantile(values, 101, 0.99), 99, 0);
    assert_float_equal(stats_quantile(values, 101, 1), 100, 0);
    assert_float_equal(stats_quantile(values, 1, 0.99), 0, 0);
}

static void test_narrow(void **state)
{
    struct stats_interval interval = {.median = 2, .low = 1.91, .high = 2.1, .sure = true};

    assert_true(stats_is_narrow(&interval));
    interval.low = 1.89;
    assert_false(stats_is_narrow(&interval));
    interval = (struct stats_interval){.median = 2, .low = 2, .high = 2, .sure = false};
    assert_false(stats_is_narrow(&interval));
}

/* Missed only where all of the interval is; an end that touches the limit reaches it. */
static void test_verdict(void **state)
{
    struct stats_interval interval = {.median = 1.6, .low = 1.5, .high = 1.8, .sure = true};

    assert_false(stats_is_beyond(&interval, 1.5, false));
    assert_false(stats_is_beyond(&interval, 1.7, false));
    assert_false(stats_is_beyond(&interval, 2, false));
    assert_true(stats_is_beyond(&interval, 1.45, false));
    /* of a rate */
    assert_false(stats_is_beyond(&interval, 1.8, true));
    assert_false(stats_is_beyond(&interval, 1.7, true));
    assert_false(stats_is_beyond(&interval, 1, true));
    assert_true(stats_is_beyond(&interval, 1.85, true));
}

/* However narrow it is, what differs by no more than two processes do is not beyond. */
static void test_resolution(void **state)
{
    struct stats_interval interval = {.median = 1.003, .low = 1.002, .high = 1.004, .sure = true};

    assert_false(stats_is_beyond(&interval, 1, false));
    assert_false(stats_is_beyond(&interval, 1.01, true));
    assert_true(stats_is_beyond(&interval, 0.98, false));
    assert_true(stats_is_beyond(&interval, 1.03, true));
}

/* Visits that differ by more than their rounds: the row is as uncertain as that, and missed only if all are. */
static void test_visits(void **state)
{
    struct stats_interval interval = {.median = 1.6, .low = 1.59, .high = 1.61, .sure = true};

    stats_reach(&interval, 1.6);
    assert_true(stats_is_narrow(&interval));
    assert_true(stats_is_beyond(&interval, 1.5, false));
    stats_reach(&interval, 1.4);
    stats_reach(&interval, 1.7);
    assert_float_equal(interval.low, 1.4, 0);
    assert_float_equal(interval.high, 1.7, 0);
    assert_false(stats_is_narrow(&interval));
    assert_false(stats_is_beyond(&interval, 1.5, false));
    assert_true(stats_is_beyond(&interval, 1.3, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_ranks), cmocka_unit_test(test_many),     cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_covers),      cmocka_unit_test(test_outliers), cmocka_unit_test(test_even_and_odd),
        cmocka_unit_test(test_quantiles),   cmocka_unit_test(test_narrow),   cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_resolution),  cmocka_unit_test(test_visits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
