/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memctl prints: rows, as a table for people or as one JSON array for programs.
 *
 * A row is a JSON object with the documented, stable keys. A table shows those that have a heading, in the same order,
 * so that a new column is one line for both. A value that is absent is null in JSON and "-" in a table.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum column_form {
    COLUMN_TEXT, /* a string as it is */
    COLUMN_NUMBER,
    COLUMN_BYTES,  /* 8M, 1.5G */
    COLUMN_AMOUNT, /* the same, if the row's "unit" is "bytes"; else a number */
    COLUMN_LIST,   /* an array, joined with commas */
    COLUMN_YES,    /* a boolean: yes or no */
    COLUMN_AGE,    /* milliseconds since 1970: "3m" ago */
    COLUMN_SPAN,   /* milliseconds: "3m" */
    COLUMN_RATIO,  /* 1.5x */
};

/*
 * A fact about an item, which is a struct. The value is what make() says of the item, or number() of a member of it, or
 * one of the words, by the member's value, or the member itself: a number, a boolean (COLUMN_YES), a string
 * (COLUMN_TEXT) or a pointer to numbers (COLUMN_LIST). It is null where there is none of these, and where the mask does
 * not apply.
 */
struct column {
    const char *heading; /* NULL: it is in JSON only */
    const char *key;
    enum column_form form;
    size_t offset; /* of the member */
    size_t size;
    size_t count_offset;      /* of a size_t: how many numbers there are */
    const char *const *words; /* up to a NULL; other values are "unknown" */
    unsigned mask;            /* applies if one of the bits is set; 0: always */
    unsigned mask_not;        /* … if none is set */
    size_t mask_offset;       /* of an unsigned */
    json_t *(*number)(uint64_t number);
    json_t *(*make)(const void *item);
};

#define COLUMNS_END ((struct column){.key = NULL})

struct output {
    bool json;
    bool vertical;                /* prints a line for each column of the only row */
    const struct column *columns; /* up to COLUMNS_END; NULL: there is no table */
    json_t *rows;
    bool no_memory;
};

/* The word of a value. */
json_t *json_word(const char *const *words, uint64_t value);
/* A string, with escapes for what is not UTF-8; null for the empty one. */
json_t *json_text(const char *text);

/* Starts an output of rows. `columns` must outlive it. */
void output_init(struct output *output, bool json, const struct column *columns);
/* Appends the row, whose reference it takes over. 0, or -ENOMEM, also of a NULL row. */
int output_row(struct output *output, json_t *row);
/* Appends the item as a row. */
int output_item(struct output *output, const void *item);
/* Ends the output, after printing all of it unless the result so far, `r`, is a failure. Returns `r`, or EXIT_REFUSED
 * after printing why. */
int output_end(struct output *output, int r);

/* Prints a single row as JSON, and takes over the reference to it. The result: EXIT_DONE or EXIT_REFUSED. */
int output_one(json_t *row);
/* Prints a single item, with the same result. */
int output_one_item(bool json, const struct column *columns, const void *item);

/* Formats a time: "45s", "3m", "5h", "2d". */
void output_format_span(int64_t seconds, char *text, size_t size);

/* Flushes standard output. 0, or EXIT_REFUSED after printing why something could not be written. */
int output_flush(void);
