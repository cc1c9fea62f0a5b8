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

#include "tests/bench/report.h"
#include "tests/bench/stats.h"

/* What a row may take, so that all together take minutes on a busy machine, too; BENCH_SECONDS=N: N. */
#define PATIENCE_US 4e6
/* What it takes at least: rounds that are over in a moment all see the same moment of the machine. */
#define CALM_US 0.2e6

static double patience_us = PATIENCE_US;
static size_t visits = 1;
static char **wanted; /* NULL at the end; none: all */

void bench_must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: %s failed: %s\n", what, strerror(errno));
    exit(1);
}

void bench_did(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "bench: %s\n", memclient_error());
    exit(1);
}

/* ---- measurements ------------------------------------------------------------------------------------------------ */

double bench_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void samples_add(struct samples *samples, double value)
{
    if (samples->n == samples->room) {
        samples->room = samples->room ? 2 * samples->room : 1024;
        samples->values = reallocarray(samples->values, samples->room, sizeof(double));
        bench_must(!!samples->values, "reallocarray");
    }
    samples->values[samples->n++] = value;
}

double samples_quantile(struct samples *samples, double quantile)
{
    return stats_quantile(samples->values, samples->n, quantile);
}

void samples_free(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){0};
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

bool bench_wanted(const struct bench_row *row)
{
    for (char **part = wanted; *part; part++)
        if (strstr(row->name, *part))
            return true;
    return !*wanted;
}

/* Some rows have a descriptor for each of many buffers, and the limit that programs begin with is for select(). */
static void raise_nofile(void)
{
    struct rlimit limit;

    bench_must(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

bool bench_has_descriptors(size_t n)
{
    struct rlimit limit;

    bench_must(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    return n + n / 3 + 512 <= limit.rlim_cur;
}

void bench_begin(int argc, char **argv, const struct bench_row *rows, size_t n)
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
        report_into(argv[1]);
        argc -= 2, argv += 2;
    }
    if (argc >= 4 && !strcmp(*argv, "--visit")) {
        visits = strtoul(argv[2], NULL, 10);
        bench_must(visits > 0, "--visit NUMBER OF FOLDER");
        report_visit(strtoul(argv[1], NULL, 10) == visits, argv[3]);
        argv += 4;
    }
    wanted = argv;
    for (size_t i = 0; i < n; i++)
        any = any || bench_wanted(&rows[i]);
    if (!any)
        exit(0);
    if (seconds)
        patience_us = strtod(seconds, NULL) * 1e6;
    patience_us /= (double)visits;
    raise_nofile();
}

int bench_end(void)
{
    return report_end();
}

/* ---- processors -------------------------------------------------------------------------------------------------- */

const pid_t *bench_broker(void)
{
    static pid_t pids[3];
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct memclient_context *ctx;

    if (!pids[0]) {
        bench_did(memclient_context_open(NULL, &ctx));
        bench_did(memclient_broker_query(ctx, &status));
        memclient_context_close(ctx);
        pids[0] = status.broker_pid;
        pids[1] = status.keeper_pid;
    }
    return pids;
}

/* With the threads that have ended, and to the nanosecond, which /proc/PID/stat and schedstat are not. */
static double processor_us_of(pid_t pid)
{
    struct timespec t;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
        return -1;
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

double bench_processor_us(const pid_t *workers)
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

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void move_samples(struct samples *to, struct samples *from)
{
    for (size_t i = 0; i < from->n; i++)
        samples_add(to, from->values[i]);
    from->n = 0;
}

void bench_round_ended(const struct bench_row *row, struct bench_rounds *rounds, struct bench_turn *ours,
                       struct bench_turn *other)
{
    double us = report_figure(row, samples_quantile(&ours->times, report_quantile(row)));
    double them = other ? report_figure(row, samples_quantile(&other->times, report_quantile(row))) : row->goal;

    samples_add(&rounds->figures[0], us);
    samples_add(&rounds->figures[1], them);
    samples_add(&rounds->ratios, us / them);
    move_samples(&rounds->ours, &ours->times);
    if (other)
        move_samples(&rounds->other, &other->times);
    if (!other || ours->processor_us < 0 || other->processor_us < 0)
        return;
    samples_add(&rounds->processor[0], report_processor(row, ours->processor_us));
    samples_add(&rounds->processor[1], report_processor(row, other->processor_us));
    if (other->processor_us > 0)
        samples_add(&rounds->processor_ratios, ours->processor_us / other->processor_us);
}

/* Of what a row has in all its visits, so much is one's. */
static size_t share_of(size_t n)
{
    return (n + visits - 1) / visits;
}

bool bench_wants_more(const struct bench_row *row, struct bench_rounds *rounds, size_t at_least)
{
    size_t n = rounds->ratios.n, fewest = share_of(STATS_FEWEST_N);
    double took = bench_now_us() - rounds->begun_us;

    if (!n) {
        rounds->begun_us = bench_now_us();
        rounds->next_look = share_of(at_least) > STATS_FEWEST_N ? share_of(at_least) : STATS_FEWEST_N;
        return true;
    }
    if (n < fewest)
        return true;
    if (took > patience_us)
        return false;
    if (n < rounds->next_look || took < CALM_US)
        return true;
    /* whoever looks after each round stops at one that looks narrow by chance */
    rounds->next_look = n + n / 4 + 1;
    return !report_is_narrow(row, rounds);
}

/* ---- two sides --------------------------------------------------------------------------------------------------- */

static double time_once(const struct bench_side *side, void *context)
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

static void take_turn(const struct bench_side *side, const struct bench *bench, const pid_t *workers,
                      struct bench_turn *turn)
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

struct bench_result bench_run(const struct bench_row *row, const struct bench *bench)
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
