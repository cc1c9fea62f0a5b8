/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds, medians and rows; bench.h says why.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <memclient/memclient.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* On a busy machine there are fewer rounds, so that all rows together take minutes there, too. */
#define PATIENCE_US 10e6
#define ROUNDS_MIN  2

static const struct {
    const char *name;
    bool rate;
    double factor; /* from us */
} units[] = {
    [BENCH_US] = {"us", false, 1},     [BENCH_NS] = {"ns", false, 1e3},      [BENCH_MS] = {"ms", false, 1e-3},
    [BENCH_PER_S] = {"1/s", true, 1e6}, [BENCH_GB_PER_S] = {"GB/s", true, 1e-3}, [BENCH_BYTES] = {"B", false, 1},
};

static char **wanted; /* NULL at the end; none: all */
static FILE *json;

void
bench_must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: %s failed: %s\n", what, strerror(errno));
    exit(1);
}

void
bench_did(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "bench: %s\n", memclient_error());
    exit(1);
}

/* ---- measurements ------------------------------------------------------------------------------------------ */

double
bench_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void
samples_add(struct samples *samples, double value)
{
    if (samples->n == samples->room) {
        samples->room = samples->room ? 2 * samples->room : 1024;
        samples->values = reallocarray(samples->values, samples->room, sizeof(double));
        bench_must(!!samples->values, "reallocarray");
    }
    samples->values[samples->n++] = value;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double
samples_quantile(struct samples *samples, double quantile)
{
    qsort(samples->values, samples->n, sizeof(double), compare);
    return samples->values[(size_t)((double)(samples->n - 1) * quantile + 0.5)];
}

void
samples_free(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){0};
}

/* ---- what is asked for ------------------------------------------------------------------------------------- */

bool
bench_wanted(const struct bench_row *row)
{
    for (char **part = wanted; *part; part++)
        if (strstr(row->name, *part))
            return true;
    return !*wanted;
}

/* Some rows have a descriptor for each of many buffers, and the limit that programs begin with is for select(). */
static void
raise_nofile(void)
{
    struct rlimit limit;

    bench_must(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

bool
bench_has_descriptors(size_t n)
{
    struct rlimit limit;

    bench_must(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    return n + n / 3 + 512 <= limit.rlim_cur;
}

void
bench_begin(int argc, char **argv, const struct bench_row *rows, size_t n)
{
    bool any = false;

    argc--, argv++;
    if (argc == 1 && !strcmp(*argv, "--list")) {
        for (size_t i = 0; i < n; i++)
            puts(rows[i].name);
        exit(fflush(stdout) ? 1 : 0);
    }
    if (argc >= 2 && !strcmp(*argv, "--json")) {
        json = fopen(argv[1], "ae");
        bench_must(!!json, argv[1]);
        argv += 2;
    }
    wanted = argv;
    for (size_t i = 0; i < n; i++)
        any = any || bench_wanted(&rows[i]);
    if (!any)
        exit(0);
    raise_nofile();
}

int
bench_end(void)
{
    return fflush(stdout) || (json && fclose(json));
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

static double
shown(const struct bench_row *row, double value)
{
    double operations = row->operations > 0 ? row->operations : 1, factor = units[row->unit].factor;

    return units[row->unit].rate ? operations / value * factor : value / operations * factor;
}

static bool
holds(const struct bench_row *row, double value, double limit)
{
    return limit <= 0 || (units[row->unit].rate ? value >= limit : value <= limit);
}

/* "<= 1.5x, <= 100 ns" */
static void
format_hold(const struct bench_row *row, char *text, size_t size)
{
    const char *sign = units[row->unit].rate ? ">=" : "<=", *unit = units[row->unit].name;
    int n = 0;

    *text = '\0';
    if (row->hold > 0)
        n = snprintf(text, size, "%s %gx", sign, row->hold);
    if (row->goal > 0)
        (void)snprintf(text + n, size - (size_t)n, "%s%s %.12g %s", n ? ", " : "", sign, row->goal, unit);
}

/* Three digits are enough, and large numbers want no fraction. */
static const char *
number(char *text, size_t size, double value)
{
    (void)snprintf(text, size, value < 10 ? "%.3f" : value < 1000 ? "%.1f" : "%.0f", value);
    return text;
}

void
bench_report(const struct bench_row *row, struct samples *ours, struct samples *other)
{
    double quantile = row->quantile > 0 ? row->quantile : 0.5;
    double us = shown(row, samples_quantile(ours, quantile)), p99 = shown(row, samples_quantile(ours, 0.99));
    double them = other ? shown(row, samples_quantile(other, quantile)) : 0;
    double ratio = us / (other ? them : row->goal);
    bool ok = holds(row, ratio, row->hold) && holds(row, us, row->goal);
    const char *verdict = row->hold <= 0 && row->goal <= 0 ? "" : ok ? "ok" : "missed";
    char hold[64], text[4][32];

    format_hold(row, hold, sizeof(hold));
    printf("%-30s %10s %10s %8s %10s  %-4s  %-22s %s\n", row->name, number(text[0], sizeof(text[0]), us),
           other ? number(text[1], sizeof(text[1]), them) : "-", number(text[2], sizeof(text[2]), ratio),
           number(text[3], sizeof(text[3]), p99), units[row->unit].name, hold, verdict);
    fflush(stdout);
    if (!json)
        return;
    fprintf(json, "{\"name\": \"%s\", \"unit\": \"%s\", \"ours\": %.4g, ", row->name, units[row->unit].name, us);
    if (other)
        fprintf(json, "\"floor\": %.4g, ", them);
    else
        fprintf(json, "\"floor\": null, ");
    if (other && row->rival)
        fprintf(json, "\"rival\": %.4g, ", them);
    else
        fprintf(json, "\"rival\": null, ");
    fprintf(json, "\"ratio\": %.4g, \"p99\": %.4g, \"hold\": \"%s\", \"verdict\": \"%s\"}\n", ratio, p99, hold,
            verdict);
    fflush(json);
}

void
bench_skip(const struct bench_row *row, const char *reason)
{
    if (!bench_wanted(row))
        return;
    printf("%-30s skipped: %s\n", row->name, reason);
    fflush(stdout);
    if (json) {
        fprintf(json, "{\"name\": \"%s\", \"skipped\": \"%s\"}\n", row->name, reason);
        fflush(json);
    }
}

static double
time_once(const struct bench_side *side, void *context)
{
    double begin = bench_now_us(), took;

    if (side->timed) {
        took = side->timed(context);
    } else {
        side->once(context);
        took = bench_now_us() - begin;
    }
    if (side->after)
        side->after(context);
    return took;
}

static void
measure(const struct bench_side *side, const struct bench *bench, struct samples *samples)
{
    /* the first after the other side's turn finds cold caches: where there are several, it is not what they are like */
    if (bench->a_round > 1)
        (void)time_once(side, bench->context);
    for (size_t i = 0; i < bench->a_round; i++)
        samples_add(samples, time_once(side, bench->context));
}

struct bench_result
bench_run(const struct bench_row *row, const struct bench *bench)
{
    struct bench_result result = {0};
    struct samples ours = {0}, other = {0};
    double end = bench_now_us() + PATIENCE_US;

    if (!bench_wanted(row))
        return result;
    for (size_t i = 0; i < bench->rounds && (i < ROUNDS_MIN || bench_now_us() < end); i++) {
        measure(&bench->other, bench, &other);
        measure(&bench->ours, bench, &ours);
    }
    bench_report(row, &ours, &other);
    result = (struct bench_result){.ours = samples_quantile(&ours, 0.5), .other = samples_quantile(&other, 0.5)};
    samples_free(&ours);
    samples_free(&other);
    return result;
}
