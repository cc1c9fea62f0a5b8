/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring two ways to do a thing in one run.
 *
 * No figure means anything by itself: the machine is shared, and two runs a minute apart differ by a factor. So every
 * row names a floor, what the kernel alone takes for the same work, or a rival, and the two are paired in short rounds:
 * what else the machine does in a round happens to both. What counts is the ratio of each round; the row's is their
 * median, with the interval in which it lies (stats.h), and there are more rounds until that is narrow or the time that
 * a row has is over. README.md tells how to read the table.
 *
 * A program has a list of rows, which `--list` prints, and measures those that are asked for:
 *
 *     PROGRAM [--list] [--json FILE] [--visit NUMBER OF FOLDER] [NAME...]
 *
 * NAME is any part of a row's name; without one, all rows. A line is printed for each row, and with --json an object
 * for each is added to FILE. With --visit this is one of so many visits (report.h), and only the last one tells.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What is measured is in us or in bytes; what is shown is in these, for each of the operations of a measurement. */
enum bench_unit {
    BENCH_US,
    BENCH_NS,
    BENCH_MS,
    BENCH_PER_S,    /* a rate: more is better */
    BENCH_GB_PER_S, /* a rate; the operations are bytes */
    BENCH_BYTES
};

struct bench_row {
    const char *name; /* the same for good */
    enum bench_unit unit;
    double operations; /* in one measurement; 0 = 1 */
    double quantile;   /* what is compared; 0 = the median */
    bool rival;        /* the other side is not a floor, but what else one would use */
    double hold;       /* the ratio, ours to the other: at most, for a rate at least; 0 = no more than to be known */
    double goal;       /* likewise for our figure, in the row's unit */
    bool exact;        /* once measured is enough: it is no matter of chance */
};

/* ---- measurements ------------------------------------------------------------------------------------------------ */

struct samples {
    double *values;
    size_t n, room;
};

void samples_add(struct samples *samples, double value);
/* Sorts them. There is one at least. */
double samples_quantile(struct samples *samples, double quantile);
void samples_free(struct samples *samples);

double bench_now_us(void);

/*
 * Processor time that this process has taken by now, in us, with children that it has waited for, and `workers`,
 * processes that work for it, up to a 0. Negative: one of them is not there any more.
 */
double bench_processor_us(const pid_t *workers);
/* The broker and its keeper, for that. */
const pid_t *bench_broker(void);

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* What a program begins with, once it knows its rows; ends the process where nothing is to be measured. */
void bench_begin(int argc, char **argv, const struct bench_row *rows, size_t n);
/* Is it asked for? */
bool bench_wanted(const struct bench_row *row);
/* May there be so many buffers? Each is a descriptor of the broker, which keeps a quarter of its limit for others. */
bool bench_has_descriptors(size_t n);
/* Ends it: the status for main(). */
int bench_end(void);

/* Tells that it could not be measured here. */
void bench_skip(const struct bench_row *row, const char *reason);

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

/* What one side did in a round. */
struct bench_turn {
    struct samples times;
    double processor_us; /* for each of them; negative: not known */
};

/* What was measured in a row's rounds so far. Of zeros at first. */
struct bench_rounds {
    double begun_us;
    struct samples ours, other;        /* all that was measured */
    struct samples figures[2], ratios; /* of each round, as they are shown: ours and the other's, and ours to it */
    struct samples processor[2];       /* likewise, where it is known of both */
    struct samples processor_ratios;
    struct samples visits[2]; /* medians of each visit (report.h): of our figures and of the ratios */
    size_t next_look;
};

/* Moves what is in the turns there, and empties them. NULL: there is no other side, the row's `goal` is its measure. */
void bench_round_ended(const struct bench_row *row, struct bench_rounds *rounds, struct bench_turn *ours,
                       struct bench_turn *other);
/* At least `at_least` in all visits (0: as few as make an interval), until it is narrow; fewer where they take long. */
bool bench_wants_more(const struct bench_row *row, struct bench_rounds *rounds, size_t at_least);
/* Tells the row, and frees them. */
void bench_report(const struct bench_row *row, struct bench_rounds *rounds);

struct bench_side {
    void (*once)(void *context);    /* ends the process when it fails */
    void (*after)(void *context);   /* after each, not timed; NULL: nothing is to be done */
    double (*timed)(void *context); /* instead of `once`: measures itself, and says how many us it took */
    const pid_t *workers;           /* for bench_processor_us(); `ours` without them: bench_broker() */
};

struct bench {
    struct bench_side ours, other;
    void *context;
    size_t rounds;  /* at least; fewer where they take long */
    size_t a_round; /* measurements in a row on each side */
    bool wall_only; /* what is not timed takes so much that processor time would tell of that */
};

struct bench_result {
    double ours, other; /* medians as measured */
};

/* Measures and tells a row, if it is wanted. */
struct bench_result bench_run(const struct bench_row *row, const struct bench *bench);

/* Ends the process with a message unless `ok`. */
void bench_must(int ok, const char *what);
/* Likewise, of what libmemclient returned. */
void bench_did(int result);
