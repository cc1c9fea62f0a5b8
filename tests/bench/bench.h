/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring two ways to do a thing in one run.
 *
 * No figure means anything by itself: the machine is shared, and two runs a minute apart differ by a factor. So every
 * benchmark names a floor, what the kernel alone takes for the same work, and the two alternate in short rounds until
 * there are enough of each. What counts is the ratio of the medians. README.md tells how to read the table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_side {
    const char *name;
    void (*once)(void *context);  /* ends the process when it fails */
    void (*after)(void *context); /* after each, not measured; NULL: nothing is to be done */
    double (*timed)(void *context); /* instead of `once`: measures itself, and says how many us it took */
};

struct bench {
    const char *name;
    struct bench_side ours, floor;
    void *context;
    size_t rounds;   /* alternations */
    size_t a_round;  /* measurements in a row on each side */
    double hold;     /* the ratio that design and users expect at most; 0 = none */
};

struct bench_result {
    double ours_us, floor_us; /* medians */
};

/* Measures one and prints it, as bench_main() does. */
struct bench_result bench_run(const struct bench *bench, bool json);

/* The arguments of such a program; false and a message if they are wrong. */
bool bench_options(int argc, char **argv, bool *json);

/* Measures, and prints a row for people, or an object with --json. Status for main(). */
int bench_main(int argc, char **argv, const struct bench *benches, size_t n);

/* Ends the process with a message unless `ok`. */
void bench_must(int ok, const char *what);
