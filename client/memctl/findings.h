/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memctl doctor found: a row for each thing that it examined, with what there is to do about it.
 */
#pragma once

#include <stdbool.h>

#include "memctl/output.h"

struct findings {
    struct output output;
    bool healthy;
    bool no_broker;
    int r;
};

void findings_init(struct findings *findings, bool json);

void findings_report(struct findings *findings, const char *check, bool ok, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What can be done about it: */
struct remedy {
    double ratio;     /* how many times as long something takes, or as little there is; 0: nobody can measure that */
    const char *mend; /* a line to be entered by root, or NULL */
};

void findings_report_mend(struct findings *findings, const char *check, bool ok, struct remedy remedy,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Prints it, unless that is too late. Returns an exit status. */
int findings_end(struct findings *findings);
