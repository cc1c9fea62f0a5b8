/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h. */
#include "tests/bench/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/stats.h"

/* bench.sh has them, too */
#define BENCH_COLUMNS "%-30s %10s %10s %8s  %-15s %10s %-4s  %9s %9s %-5s  %-14s %s%s\n"

static const struct {
    const char *name;
    bool rate;
    double factor;         /* from us */
    const char *processor; /* the unit of processor time, of an operation; of bytes, there is too little for each */
    double processor_factor;
} units[] = {
    [BENCH_US] = {"us", false, 1, "us", 1},
    [BENCH_NS] = {"ns", false, 1e3, "ns", 1e3},
    [BENCH_MS] = {"ms", false, 1e-3, "ms", 1e-3},
    [BENCH_PER_S] = {"1/s", true, 1e6, "us", 1},
    [BENCH_GB_PER_S] = {"GB/s", true, 1e-3, "ms/GB", 1e6},
    [BENCH_BYTES] = {"B", false, 1, "us", 1},
};

static FILE *json;
static const char *folder; /* of several visits; NULL: this is all */
static bool last = true;   /* of them */

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

void report_into(const char *file)
{
    json = fopen(file, "ae");
    bench_must(!!json, file);
}

void report_visit(bool is_last, const char *kept_in)
{
    last = is_last;
    folder = kept_in;
}

int report_end(void)
{
    return fflush(stdout) || (json && fclose(json));
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

double report_figure(const struct bench_row *row, double value)
{
    double operations = row->operations > 0 ? row->operations : 1, factor = units[row->unit].factor;

    return units[row->unit].rate ? operations / value * factor : value / operations * factor;
}

double report_processor(const struct bench_row *row, double us)
{
    return us / (row->operations > 0 ? row->operations : 1) * units[row->unit].processor_factor;
}

/* "<= 1.5x, <= 100 ns" */
static void format_hold(const struct bench_row *row, char *text, size_t size)
{
    const char *sign = units[row->unit].rate ? ">=" : "<=", *unit = units[row->unit].name;
    int n = 0;

    *text = '\0';
    if (row->hold > 0)
        n = snprintf(text, size, "%s %gx", sign, row->hold);
    if (row->goal > 0)
        (void)snprintf(text + n, size - (size_t)n, "%s%s %.12g %s", n ? ", " : "", sign, row->goal, unit);
}

void bench_skip(const struct bench_row *row, const char *reason)
{
    if (!bench_wanted(row) || !last)
        return;
    printf("%-30s skipped: %s\n", row->name, reason);
    fflush(stdout);
    if (json) {
        fprintf(json, "{\"name\": \"%s\", \"skipped\": \"%s\"}\n", row->name, reason);
        fflush(json);
    }
}

double report_quantile(const struct bench_row *row)
{
    return row->quantile > 0 ? row->quantile : 0.5;
}

static struct stats_interval median_of(struct samples *samples)
{
    return stats_median(samples->values, samples->n);
}

/* Of all rounds, with what the visits differ by. */
static struct stats_interval interval_of(struct samples *rounds, struct samples *visits)
{
    struct stats_interval interval = median_of(rounds);

    for (size_t i = 0; i < visits->n; i++)
        stats_reach(&interval, visits->values[i]);
    return interval;
}

/* What is held to something; else it is the ratio. */
static bool are_narrow(const struct bench_row *row, const struct stats_interval *ratio,
                       const struct stats_interval *ours)
{
    return (row->goal <= 0 || stats_is_narrow(ours)) && ((row->goal > 0 && row->hold <= 0) || stats_is_narrow(ratio));
}

bool report_is_narrow(const struct bench_row *row, struct bench_rounds *rounds)
{
    struct stats_interval ratio = median_of(&rounds->ratios), ours = median_of(&rounds->figures[0]);

    return are_narrow(row, &ratio, &ours);
}

/* ---- visits ------------------------------------------------------------------------------------------------------ */

enum { KEPT = 10 };

static void list_samples(struct bench_rounds *rounds, struct samples *all[KEPT])
{
    struct samples *const these[KEPT] = {
        &rounds->ours,         &rounds->other,        &rounds->figures[0],       &rounds->figures[1],
        &rounds->processor[0], &rounds->processor[1], &rounds->processor_ratios, &rounds->ratios,
        &rounds->visits[0],    &rounds->visits[1],
    };

    memcpy(all, these, sizeof(these));
}

static FILE *open_kept(const struct bench_row *row, const char *mode)
{
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, row->name);
    return fopen(path, mode);
}

/* Adds what the visits before have left, if there were any. */
static void load_kept(const struct bench_row *row, struct bench_rounds *rounds)
{
    struct samples *all[KEPT];
    FILE *file = open_kept(row, "re");
    double value;
    size_t n;

    if (!file)
        return;
    list_samples(rounds, all);
    for (size_t i = 0; i < KEPT; i++) {
        bench_must(fread(&n, sizeof(n), 1, file) == 1, "reading what was measured before");
        for (; n; n--) {
            bench_must(fread(&value, sizeof(value), 1, file) == 1, "reading what was measured before");
            samples_add(all[i], value);
        }
    }
    (void)fclose(file);
}

static void keep(const struct bench_row *row, struct bench_rounds *rounds)
{
    struct samples *all[KEPT];
    FILE *file = open_kept(row, "we");
    bool written = true;

    bench_must(!!file, folder);
    list_samples(rounds, all);
    for (size_t i = 0; i < KEPT; i++)
        written = written && fwrite(&all[i]->n, sizeof(all[i]->n), 1, file) == 1 &&
                  fwrite(all[i]->values, sizeof(double), all[i]->n, file) == all[i]->n;
    bench_must(!fclose(file) && written, "keeping what was measured");
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

/* What is told of a row. */
struct result {
    struct stats_interval ratio, ours;
    double other, p99;
    const char *verdict;
    bool has_other, wide, has_processor;
    double processor[2];
    struct stats_interval processor_ratio;
};

static struct result result_of(const struct bench_row *row, struct bench_rounds *rounds)
{
    bool rate = units[row->unit].rate;
    struct result result = {
        .p99 = report_figure(row, samples_quantile(&rounds->ours, 0.99)),
        .ratio = interval_of(&rounds->ratios, &rounds->visits[1]),
        .ours = interval_of(&rounds->figures[0], &rounds->visits[0]),
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
    result.wide = !row->exact && !are_narrow(row, &result.ratio, &result.ours);
    for (int i = 0; i < 2 && result.has_processor; i++)
        result.processor[i] = samples_quantile(&rounds->processor[i], 0.5);
    if (result.has_processor)
        result.processor_ratio = median_of(&rounds->processor_ratios);
    return result;
}

/* Three digits are enough, and large numbers want no fraction. NULL: there is none. */
static const char *number(char *text, size_t size, const double *value)
{
    if (!value)
        return "-";
    (void)snprintf(text, size, *value < 10 ? "%.3f" : *value < 1000 ? "%.1f" : "%.0f", *value);
    return text;
}

static void print_row(const struct bench_row *row, const struct result *result)
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
static void print_json_number(const char *name, const double *value)
{
    fprintf(json, value ? ", \"%s\": %.4g" : ", \"%s\": null", name, value ? *value : 0);
}

static void print_json(const struct bench_row *row, const struct result *result, size_t rounds)
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

void bench_report(const struct bench_row *row, struct bench_rounds *rounds)
{
    struct samples *all[KEPT];
    struct result result;

    samples_add(&rounds->visits[0], median_of(&rounds->figures[0]).median);
    samples_add(&rounds->visits[1], median_of(&rounds->ratios).median);
    if (folder) {
        load_kept(row, rounds);
        keep(row, rounds);
    }
    if (last) {
        result = result_of(row, rounds);
        print_row(row, &result);
        if (json)
            print_json(row, &result, rounds->ratios.n);
    }
    list_samples(rounds, all);
    for (size_t i = 0; i < KEPT; i++)
        samples_free(all[i]);
    *rounds = (struct bench_rounds){0};
}
