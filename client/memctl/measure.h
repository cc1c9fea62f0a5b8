/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory of one kind costs a program on this machine, and what two ways to the same thing cost, each in a small
 * part of a second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum measured_pages {
    MEASURE_BASE,    /* shared memory, base pages */
    MEASURE_THP,     /* shared memory, transparent huge pages */
    MEASURE_PRIVATE, /* private memory, transparent huge pages */
    MEASURE_HUGETLB, /* shared memory, huge pages of the system's default size */
};

struct measured {
    double touch; /* seconds until all of some MiB have been written for the first time, */
    double read;  /* and until many of their words, here and there, have been read one after the other */
};

/* The best of a few tries. False: there is no such memory now. */
bool measure_pages(enum measured_pages pages, struct measured *ret);

/* Seconds of two ways to the same thing. */
struct measured_ways {
    double good, other;
};

/* The best of some tries of each, in turns. A try returns its seconds, or a negative number if that way is not there;
 * then the result is false. */
bool measure_ways(double (*good)(void *data), double (*other)(void *data), void *data, struct measured_ways *ret);

/* To read words here and there in memory of the node of this processor, and of another one. */
bool measure_nodes(unsigned near, unsigned far, struct measured_ways *ret);
/* The NUMA node of the processor that this runs on. */
unsigned measure_node(void);

/* Seconds of a clock that is never set. */
double measure_now(void);
