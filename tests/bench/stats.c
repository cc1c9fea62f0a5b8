/* SPDX-License-Identifier: Apache-2.0 */
/* See stats.h. */
#include "tests/bench/stats.h"

#include <stdlib.h>

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sort_values(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_values);
}

double stats_quantile(double *values, size_t n, double quantile)
{
    sort_values(values, n);
    return values[(size_t)((double)(n - 1) * quantile + 0.5)];
}

/*
 * The greatest k with P(B < k) <= (1 - STATS_SURE) / 2 for B of binomial(n, 1/2); 0 where even k = 1 misses too often.
 */
static size_t binomial_rank(size_t n)
{
    double term = 1, sum, most = (1 - STATS_SURE) / 2;
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        term /= 2;
    for (sum = term; k < n && sum <= most; sum += term) {
        k++;
        term *= (double)(n - k + 1) / (double)k;
    }
    return k;
}

struct stats_interval stats_median(double *values, size_t n)
{
    size_t k;

    sort_values(values, n);
    /* 2^-n is no double any more where n is above 1074; the share of the ranks that 1000 have is wider than needed */
    k = n <= 1000 ? binomial_rank(n) : binomial_rank(1000) * n / 1000;
    return (struct stats_interval){
        .median = (values[(n - 1) / 2] + values[n / 2]) / 2,
        .low = values[k ? k - 1 : 0],
        .high = values[k ? n - k : n - 1],
        .sure = k > 0,
    };
}

void stats_reach(struct stats_interval *interval, double value)
{
    if (value < interval->low)
        interval->low = value;
    if (value > interval->high)
        interval->high = value;
}

bool stats_is_narrow(const struct stats_interval *interval)
{
    return interval->sure && interval->high - interval->low <= STATS_NARROW * interval->median;
}

bool stats_is_beyond(const struct stats_interval *interval, double limit, bool more_is_better)
{
    return more_is_better ? interval->high < limit * (1 - STATS_RESOLUTION)
                          : interval->low > limit * (1 + STATS_RESOLUTION);
}
