/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that is scraped: all families of metrics, a few lines at a time.
 *
 * Two forms differ in little: OpenMetrics 1.0, for who accepts it, and the text format 0.0.4 of Prometheus for all
 * others. families.c has the table of families; a family has rows, one for each pool or method, which are written one
 * by one, so that the work can be done in slices while other users are served in between. What changes meanwhile is
 * shown as it is when its row is written.
 *
 * Which labels there are does not depend on what programs choose, but for users, of whom there are as many as have
 * something of the broker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"

struct evbuffer;

struct exposition {
    struct broker_figures figures;
    bool openmetrics;
    bool users; /* those are shown, too */
    /* the rest is 0 at first */
    unsigned family; /* that is being written */
    uint64_t cursor; /* of its next row */
};

#define EXPOSITION_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define EXPOSITION_TEXT        "text/plain; version=0.0.4; charset=utf-8"

/* Appends the next row. 1: there are more; 0: that was all; or -ENOMEM. */
int exposition_next(struct exposition *exposition, struct evbuffer *out);
/* Does a client that sends this header Accept (NULL: none) want OpenMetrics? */
bool exposition_is_openmetrics(const char *accept);

/* ---- between the files of this module ---------------------------------------------------------------------------- */

enum family_type { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_HISTOGRAM, FAMILY_INFO };

struct family {
    const char *name; /* with its unit at the end, and without "_total" */
    enum family_type type;
    const char *unit; /* or NULL */
    const char *help;
    bool of_users;
    /* Writes the row at *cursor, which moves on behind it. Nothing is written, and *cursor is 0, at the end. */
    void (*row)(const struct exposition *exposition, const struct family *family, struct evbuffer *out,
                uint64_t *cursor);
};

extern const struct family families[];
extern const unsigned n_families;
