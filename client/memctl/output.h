/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memctl prints: rows, as a table for people or as one JSON array for programs.
 *
 * A command describes each thing as a JSON object, whose keys are the documented, stable ones. A table shows some of
 * them, in the order and under the headings that its columns say. So both forms tell the same facts, and a key
 * that is new in the one is in the other for a line. What is absent is null in the one and "-" in the other.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum column_form {
    COLUMN_TEXT,   /* a string as it is */
    COLUMN_NUMBER,
    COLUMN_BYTES,  /* 8M, 1.5G */
    COLUMN_LIST,   /* an array, joined with commas */
    COLUMN_YES,    /* a boolean: yes or no */
    COLUMN_AGE,    /* milliseconds since 1970: "3m" ago */
    COLUMN_SPAN,   /* milliseconds: "3m" */
};

struct column {
    const char *heading;
    const char *key;
    enum column_form form;
};

struct output {
    bool json;
    bool vertical; /* a line for each column of the one row, not a column */
    const struct column *columns; /* up to one without a heading; NULL: what has no table */
    json_t *rows;
    bool no_memory;
};

/* A string, with escapes for what is no text of JSON's; null for the empty one, which is none. */
json_t *json_text(const char *text);

/* Starts an output of rows. `columns` must live as long. */
void output_init(struct output *output, bool json, const struct column *columns);
/* Takes the reference to `row`. 0, or -ENOMEM also for a NULL row. */
int output_row(struct output *output, json_t *row);
/* Prints everything, unless `r`, the outcome so far, is a failure, and ends the output. The outcome: `r`, or
 * EXIT_REFUSED after having said why. */
int output_end(struct output *output, int r);

/* All of it for a single row. */
int output_one(bool json, const struct column *columns, json_t *row);

/* Everything that was written is where it should be: 0, or EXIT_REFUSED after having said why. */
int output_flush(void);
