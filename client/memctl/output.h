/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memctl prints: rows, as a table for people or as one JSON array for programs.
 *
 * A command describes each thing as a JSON object, whose keys are the documented, stable ones. A table shows some of
 * them, in the order and under the headings that its columns say. So both forms tell the same facts, and a key
 * that is new in the one is in the other for a line.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum column_form {
    COLUMN_TEXT,   /* a string or number as it is */
    COLUMN_BYTES,  /* 8M, 1.5G */
    COLUMN_HEX,    /* 0x400000000000; "-" for 0 */
    COLUMN_SOME,   /* a number where there is one; "-" for 0 */
    COLUMN_LIST,   /* an array, joined with commas */
    COLUMN_YES,    /* a boolean: yes or nothing */
    COLUMN_SINCE,  /* milliseconds since 1970: "3m" ago; "-" for 0 */
};

struct column {
    const char *heading;
    const char *key;
    enum column_form form;
};

struct output {
    bool json;
    const struct column *columns; /* up to one without a heading */
    json_t *rows;
};

/* Starts an output of rows. `columns` must live as long. */
void output_init(struct output *output, bool json, const struct column *columns);
/* Takes the reference to `row`. 0, or -ENOMEM also for a NULL row. */
int output_row(struct output *output, json_t *row);
/* Prints everything; 0, or a negative errno when stdout does not take it. */
int output_print(struct output *output);
void output_deinit(struct output *output);

/* "8M", "1.5G", "100" */
void format_bytes(uint64_t bytes, char *text, size_t size);
