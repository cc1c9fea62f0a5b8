/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be said of a figure that was measured in a number of rounds: its median, and between what it lies.
 *
 * The interval is that of the order statistics. Whatever the distribution, a round is below the true median as often as
 * above it; so how many of n independent rounds are below it is binomial, and from the k-th smallest to the k-th
 * largest is an interval that misses it with twice the probability that fewer than k are. k is the greatest with which
 * that is 5 % at most. A bootstrap would need as many assumptions, but of a median of a dozen rounds it draws the same
 * few values again and again and comes out too narrow; and it needs random numbers, where the same rounds are to give
 * the same interval.
 *
 * The rounds of one visit of a process are less independent than that: whatever kept the machine busy did so for all of
 * them, and the process has its code and data where it has them. So where there are several visits, the interval is to
 * reach each one's median; and nothing is beyond a limit that is so near that two runs of one program differ by it.
 *
 * Fewer than six rounds cannot be that sure of anything. Their interval is all of them, and it is not narrow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STATS_SURE       0.95
#define STATS_NARROW     0.1 /* from end to end, as part of the median */
#define STATS_FEWEST_N   6
#define STATS_RESOLUTION 0.02 /* of a limit: what two processes that do the same may differ by */

struct stats_interval {
    double median, low, high;
    bool sure; /* STATS_SURE, that is */
};

/* Sorts them. There is one at least, and a quantile is one of them. */
double stats_quantile(double *values, size_t n, double quantile);
struct stats_interval stats_median(double *values, size_t n);

/* Makes the interval as wide as that takes. */
void stats_reach(struct stats_interval *interval, double value);

bool stats_is_narrow(const struct stats_interval *interval);
/* All of it is beyond the limit by more than STATS_RESOLUTION. Of what is better the more there is of it, the limit is
 * the least. */
bool stats_is_beyond(const struct stats_interval *interval, double limit, bool more_is_better);
