/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds and rows; bench.h says why.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <memclient/memclient.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/bench/stats.h"

/* What a row may take, so that all together take minutes on a busy machine, too; BENCH_SECONDS=N: N. */
#define PATIENCE_US 4e6
/* What it takes at least: rounds that are over in a moment all see the same moment of the machine. */
#define CALM_US 0.3e6

/* bench.sh has them, too */
#define BENCH_COLUMNS "%-30s %10s %10s %8s  %-15s %10s %-4s  %9s %9s %-5s  %-14s %s%s\n"

static const struct {
    const char *name;
    bool rate;
    double factor; /* from us */
    const char *processor; /* the unit of processor time, of an operation; of bytes, there is too little for each */
    double processor_factor;
} units[] = {
    [BENCH_US] = {"us", false, 1, "us", 1},        [BENCH_NS] = {"ns", false, 1e3, "ns", 1e3},
    [BENCH_MS] = {"ms", false, 1e-3, "ms", 1e-3},  [BENCH_PER_S] = {"1/s", true, 1e6, "us", 1},
    [BENCH_GB_PER_S] = {"GB/s", true, 1e-3, "ms/GB", 1e6}, [BENCH_BYTES] = {"B", false, 1, "us", 1},
};

static double patience_us = PATIENCE_US;
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

double
samples_quantile(struct samples *samples, double quantile)
{
    return stats_quantile(samples->values, samples->n, quantile);
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
    const char *seconds = getenv("BENCH_SECONDS");
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
    if (seconds)
        patience_us = strtod(seconds, NULL) * 1e6;
    raise_nofile();
}

int
bench_end(void)
{
    return fflush(stdout) || (json && fclose(json));
}

/* ---- processors -------------------------------------------------------------------------------------------- */

const pid_t *
bench_broker(void)
{
    static pid_t pids[3];
    struct memclient_broker_status status = MEMCLIENT_BROKER_STATUS_INIT;
    struct memclient *ctx;

    if (!pids[0]) {
        bench_did(memclient_open(NULL, &ctx));
        bench_did(memclient_status(ctx, &status));
        memclient_close(ctx);
        pids[0] = status.broker_pid;
        pids[1] = status.keeper_pid;
    }
    return pids;
}

/* With the threads that have ended, and to the nanosecond, which /proc/PID/stat and schedstat are not. */
static double
processor_us_of(pid_t pid)
{
    struct timespec t;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
        return -1;
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

double
bench_processor_us(const pid_t *workers)
{
    double sum = processor_us_of(0), us;
    struct rusage children;

    bench_must(!getrusage(RUSAGE_CHILDREN, &children), "getrusage");
    sum += (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1e6 +
           (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
    for (; workers && *workers; workers++, sum += us)
        if ((us = processor_us_of(*workers)) < 0)
            return -1;
    return sum;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

static double
shown(const struct bench_row *row, double value)
{
    double operations = row->operations > 0 ? row->operations : 1, factor = units[row->unit].factor;

    return units[row->unit].rate ? operations / value * factor : value / operations * factor;
}

static double
shown_processor(const struct bench_row *row, double us)
{
    return us / (row->operations > 0 ? row->operations : 1) * units[row->unit].processor_factor;
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

/* ---- rounds ------------------------------------------------------------------------------------------------ */

static double
quantile_of(const struct bench_row *row)
{
    return row->quantile > 0 ? row->quantile : 0.5;
}

static void
move_samples(struct samples *to, struct samples *from)
{
    for (size_t i = 0; i < from->n; i++)
        samples_add(to, from->values[i]);
    from->n = 0;
}

void
bench_round_ended(const struct bench_row *row, struct bench_rounds *rounds, struct bench_turn *ours,
                  struct bench_turn *other)
{
    double us = shown(row, samples_quantile(&ours->times, quantile_of(row)));
    double them = other ? shown(row, samples_quantile(&other->times, quantile_of(row))) : row->goal;

    samples_add(&rounds->figures[0], us);
    samples_add(&rounds->figures[1], them);
    samples_add(&rounds->ratios, us / them);
    move_samples(&rounds->ours, &ours->times);
    if (other)
        move_samples(&rounds->other, &other->times);
    if (!other || ours->processor_us < 0 || other->processor_us < 0)
        return;
    samples_add(&rounds->processor[0], shown_processor(row, ours->processor_us));
    samples_add(&rounds->processor[1], shown_processor(row, other->processor_us));
    if (other->processor_us > 0)
        samples_add(&rounds->processor_ratios, ours->processor_us / other->processor_us);
}

static struct stats_interval
median_of(struct samples *samples)
{
    return stats_median(samples->values, samples->n);
}

/* What is held to something has to be narrow; else it is the ratio. */
static bool
is_narrow(const struct bench_row *row, struct bench_rounds *rounds)
{
    struct stats_interval ratio = median_of(&rounds->ratios), figure = median_of(&rounds->figures[0]);

    return (row->goal <= 0 || stats_is_narrow(&figure)) &&
           ((row->goal > 0 && row->hold <= 0) || stats_is_narrow(&ratio));
}

bool
bench_wants_more(const struct bench_row *row, struct bench_rounds *rounds, size_t at_least)
{
    size_t n = rounds->ratios.n;
    double took = bench_now_us() - rounds->begun_us;

    if (!n) {
        rounds->begun_us = bench_now_us();
        rounds->next_look = at_least > STATS_FEWEST_N ? at_least : STATS_FEWEST_N;
        return true;
    }
    if (n < STATS_FEWEST_N)
        return true;
    if (took > patience_us)
        return false;
    if (n < rounds->next_look || took < CALM_US)
        return true;
    /* whoever looks after each round stops at one that looks narrow by chance */
    rounds->next_look = n + n / 4 + 1;
    return !is_narrow(row, rounds);
}

/* ---- telling ----------------------------------------------------------------------------------------------- */

/* What is told of a row. */
struct result {
    struct stats_interval ratio, ours;
    double other, p99;
    const char *verdict;
    bool has_other, wide, has_processor;
    double processor[2];
    struct stats_interval processor_ratio;
};

static struct result
result_of(const struct bench_row *row, struct bench_rounds *rounds)
{
    bool rate = units[row->unit].rate;
    struct result result = {
        .p99 = shown(row, samples_quantile(&rounds->ours, 0.99)),
        .ratio = median_of(&rounds->ratios),
        .ours = median_of(&rounds->figures[0]),
        .other = median_of(&rounds->figures[1]).median,
        .has_other = rounds->other.n > 0,
        .has_processor = rounds->processor_ratios.n > 0,
        .verdict = "",
    };

    if (row->hold > 0 || row->goal > 0)
        result.verdict = (row->hold > 0 && stats_is_beyond(&result.ratio, row->hold, rate)) ||
                                 (row->goal > 0 && stats_is_beyond(&result.ours, row->goal, rate))
                             ? "missed"
                             : "ok";
    /* what is measured once only is no matter of chance */
    result.wide = rounds->ratios.n > 1 && !is_narrow(row, rounds);
    for (int i = 0; i < 2 && result.has_processor; i++)
        result.processor[i] = samples_quantile(&rounds->processor[i], 0.5);
    if (result.has_processor)
        result.processor_ratio = median_of(&rounds->processor_ratios);
    return result;
}

/* Three digits are enough, and large numbers want no fraction. NULL: there is none. */
static const char *
number(char *text, size_t size, const double *value)
{
    if (!value)
        return "-";
    (void)snprintf(text, size, *value < 10 ? "%.3f" : *value < 1000 ? "%.1f" : "%.0f", *value);
    return text;
}

static void
print_row(const struct bench_row *row, const struct result *result)
{
    char hold[64], interval[32], text[6][24];
    const double *mine = result->has_processor ? &result->processor[0] : NULL;
    const double *theirs = result->has_processor ? &result->processor[1] : NULL;

    format_hold(row, hold, sizeof(hold));
    (void)snprintf(interval, sizeof(interval), "%.3g-%.3g", result->ratio.low, result->ratio.high);
    printf(BENCH_COLUMNS, row->name, number(text[0], sizeof(text[0]), &result->ours.median),
           number(text[1], sizeof(text[1]), result->has_other ? &result->other : NULL),
           number(text[2], sizeof(text[2]), &result->ratio.median), interval,
           number(text[3], sizeof(text[3]), &result->p99), units[row->unit].name,
           number(text[4], sizeof(text[4]), mine), number(text[5], sizeof(text[5]), theirs),
           mine ? units[row->unit].processor : "", hold, result->verdict, result->wide ? " wide" : "");
    fflush(stdout);
}

/* `, "NAME": VALUE`, or null. */
static void
print_json_number(const char *name, const double *value)
{
    fprintf(json, value ? ", \"%s\": %.4g" : ", \"%s\": null", name, value ? *value : 0);
}

static void
print_json(const struct bench_row *row, const struct result *result, size_t rounds)
{
    const double *other = result->has_other ? &result->other : NULL;
    const struct stats_interval *processor = result->has_processor ? &result->processor_ratio : NULL;
    char hold[64];

    format_hold(row, hold, sizeof(hold));
    fprintf(json, "{\"name\": \"%s\", \"unit\": \"%s\"", row->name, units[row->unit].name);
    print_json_number("ours", &result->ours.median);
    print_json_number("floor", other);
    print_json_number("rival", row->rival ? other : NULL);
    print_json_number("ratio", &result->ratio.median);
    print_json_number("ratio_low", &result->ratio.low);
    print_json_number("ratio_high", &result->ratio.high);
    print_json_number("ours_low", &result->ours.low);
    print_json_number("ours_high", &result->ours.high);
    print_json_number("p99", &result->p99);
    fprintf(json, ", \"rounds\": %zu, \"wide\": %s", rounds, result->wide ? "true" : "false");
    fprintf(json, ", \"processor_unit\": \"%s\"", units[row->unit].processor);
    print_json_number("processor_ours", processor ? &result->processor[0] : NULL);
    print_json_number("processor_floor", processor ? &result->processor[1] : NULL);
    print_json_number("processor_ratio", processor ? &processor->median : NULL);
    print_json_number("processor_ratio_low", processor ? &processor->low : NULL);
    print_json_number("processor_ratio_high", processor ? &processor->high : NULL);
    fprintf(json, ", \"hold\": \"%s\", \"verdict\": \"%s\"}\n", hold, result->verdict);
    fflush(json);
}

void
bench_report(const struct bench_row *row, struct bench_rounds *rounds)
{
    struct result result = result_of(row, rounds);

    print_row(row, &result);
    if (json)
        print_json(row, &result, rounds->ratios.n);
    samples_free(&rounds->ours);
    samples_free(&rounds->other);
    samples_free(&rounds->figures[0]);
    samples_free(&rounds->figures[1]);
    samples_free(&rounds->ratios);
    samples_free(&rounds->processor[0]);
    samples_free(&rounds->processor[1]);
    samples_free(&rounds->processor_ratios);
    *rounds = (struct bench_rounds){0};
}

/* ---- two sides --------------------------------------------------------------------------------------------- */

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
take_turn(const struct bench_side *side, const struct bench *bench, const pid_t *workers, struct bench_turn *turn)
{
    /* the first after the other side's turn finds cold caches: where there are several, it is not what they are like */
    size_t warming = bench->a_round > 1;
    double begin = bench_processor_us(workers), end;

    for (size_t i = 0; i < warming; i++)
        (void)time_once(side, bench->context);
    for (size_t i = 0; i < bench->a_round; i++)
        samples_add(&turn->times, time_once(side, bench->context));
    end = bench_processor_us(workers);
    turn->processor_us = -1;
    if (begin >= 0 && end >= 0 && !bench->wall_only)
        turn->processor_us = (end - begin) / (double)(warming + bench->a_round);
}

struct bench_result
bench_run(const struct bench_row *row, const struct bench *bench)
{
    const pid_t *workers = bench->ours.workers ? bench->ours.workers : bench_broker();
    struct bench_result result = {0};
    struct bench_rounds rounds = {0};
    struct bench_turn ours = {0}, other = {0};

    if (!bench_wanted(row))
        return result;
    while (bench_wants_more(row, &rounds, bench->rounds)) {
        take_turn(&bench->other, bench, bench->other.workers, &other);
        take_turn(&bench->ours, bench, workers, &ours);
        bench_round_ended(row, &rounds, &ours, &other);
    }
    result = (struct bench_result){.ours = samples_quantile(&rounds.ours, 0.5),
                                   .other = samples_quantile(&rounds.other, 0.5)};
    bench_report(row, &rounds);
    samples_free(&ours.times);
    samples_free(&other.times);
    return result;
}
