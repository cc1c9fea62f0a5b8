/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds, medians and rows; bench.h says why.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/bench.h"

struct samples {
    double *us;
    size_t n;
};

void
bench_must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: %s failed: %s\n", what, strerror(errno));
    exit(1);
}

static double
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
quantile(const struct samples *samples, double q)
{
    return samples->us[(size_t)((double)(samples->n - 1) * q)];
}

static double
time_once(const struct bench_side *side, void *context)
{
    double begin = now_us(), took;

    if (side->timed) {
        took = side->timed(context);
    } else {
        side->once(context);
        took = now_us() - begin;
    }
    if (side->after)
        side->after(context);
    return took;
}

static void
measure(const struct bench_side *side, const struct bench *bench, struct samples *samples)
{
    /* the first after the other side's turn finds cold caches: it is not what either is like */
    (void)time_once(side, bench->context);
    for (size_t i = 0; i < bench->a_round; i++)
        samples->us[samples->n++] = time_once(side, bench->context);
}

struct bench_result
bench_run(const struct bench *bench, bool json)
{
    struct bench_result result;
    struct samples ours = {0}, floor_ = {0};
    double ratio;

    ours.us = calloc(bench->rounds * bench->a_round, sizeof(double));
    floor_.us = calloc(bench->rounds * bench->a_round, sizeof(double));
    bench_must(ours.us && floor_.us, "calloc");
    for (size_t i = 0; i < bench->rounds; i++) {
        measure(&bench->floor, bench, &floor_);
        measure(&bench->ours, bench, &ours);
    }
    qsort(ours.us, ours.n, sizeof(double), compare);
    qsort(floor_.us, floor_.n, sizeof(double), compare);
    ratio = quantile(&ours, 0.5) / quantile(&floor_, 0.5);

    if (json)
        printf("{\"name\": \"%s\", \"ours\": \"%s\", \"ours_p50_us\": %.3f, \"ours_p99_us\": %.3f, "
               "\"floor\": \"%s\", \"floor_p50_us\": %.3f, \"floor_p99_us\": %.3f, \"ratio\": %.3f, \"hold\": %.2f}\n",
               bench->name, bench->ours.name, quantile(&ours, 0.5), quantile(&ours, 0.99), bench->floor.name,
               quantile(&floor_, 0.5), quantile(&floor_, 0.99), ratio, bench->hold);
    else
        printf("%-34s %10.2f %10.2f   %10.2f %10.2f   %6.2f  %s\n", bench->name, quantile(&ours, 0.5),
               quantile(&ours, 0.99), quantile(&floor_, 0.5), quantile(&floor_, 0.99), ratio, bench->floor.name);
    result = (struct bench_result){.ours_us = quantile(&ours, 0.5), .floor_us = quantile(&floor_, 0.5)};
    free(ours.us);
    free(floor_.us);
    return result;
}

bool
bench_options(int argc, char **argv, bool *json)
{
    *json = argc > 1 && !strcmp(argv[1], "--json");
    if (argc <= 1 || (argc == 2 && *json))
        return true;
    fprintf(stderr, "usage: %s [--json]\n", argv[0]);
    return false;
}

int
bench_main(int argc, char **argv, const struct bench *benches, size_t n)
{
    bool json;

    if (!bench_options(argc, argv, &json))
        return 2;
    for (size_t i = 0; i < n; i++)
        (void)bench_run(&benches[i], json);
    return fflush(stdout) ? 1 : 0;
}
