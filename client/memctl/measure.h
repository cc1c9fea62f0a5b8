/* SPDX-License-Identifier: Apache-2.0 */
/* What pages of one kind cost a program on this machine, in a fraction of a second. */
#pragma once

#include <stdbool.h>

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
