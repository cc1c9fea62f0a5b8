/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints rows as text or JSON.
 *
 * It collects all rows before it prints the first: a table's columns are as wide as their widest cell, and half an
 * array is no JSON. A listing of 100 000 buffers takes about 100 MB, in a process that ends with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "memctl/command.h"
#include "memctl/output.h"
#include "memctl/text.h"

enum { COLUMNS_MAX = 32 };

void output_init(struct output *output, bool json, const struct column *columns)
{
    *output = (struct output){.json = json, .columns = columns, .rows = json_array()};
}

int output_row(struct output *output, json_t *row)
{
    if (!json_array_append_new(output->rows, row))
        return 0;
    output->no_memory = true;
    return -ENOMEM;
}

json_t *json_word(const char *const *words, uint64_t value)
{
    for (; *words; words++)
        if (!value--)
            return json_string(*words);
    return json_string("unknown");
}

static json_t *output_numbers(const uint32_t *numbers, size_t n)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer(numbers[i]));
    return array;
}

static json_t *column_value(const struct column *column, const void *item)
{
    const char *start = item;
    const void *member = start + column->offset;
    const unsigned *flags = (const void *)(start + column->mask_offset);
    const size_t *count = (const void *)(start + column->count_offset);
    uint64_t number;

    if (column->make)
        return column->make(item);
    if (!column->size || (column->mask && !(column->mask & *flags)) || column->mask_not & *flags)
        return json_null();
    if (column->count_offset)
        return output_numbers(*(const uint32_t *const *)member, *count);
    /* a text is a pointer or, if it is longer than one, an array */
    if (column->form == COLUMN_TEXT && !column->number && !column->words)
        return json_text(column->size > sizeof(char *) ? member : *(const char *const *)member);
    if (column->size == sizeof(bool))
        number = *(const bool *)member;
    else if (column->size == sizeof(uint32_t))
        number = *(const uint32_t *)member;
    else
        number = *(const uint64_t *)member;
    if (column->number)
        return column->number(number);
    if (column->words)
        return json_word(column->words, number);
    return column->form == COLUMN_YES ? json_boolean(number) : json_integer((json_int_t)number);
}

int output_item(struct output *output, const void *item)
{
    json_t *row = json_object();

    for (const struct column *column = output->columns; column->key; column++)
        if (json_object_set_new(row, column->key, column_value(column, item))) {
            json_decref(row);
            row = NULL;
            break;
        }
    return output_row(output, row);
}

json_t *json_text(const char *text)
{
    char clean[TEXT_MAX];

    if (!*text)
        return json_null();
    return utf8_is_text(text, strlen(text)) ? json_string(text) : json_string(text_clean(text, clean, sizeof(clean)));
}

void output_format_span(int64_t seconds, char *text, size_t size)
{
    if (seconds < 0)
        snprintf(text, size, "0s");
    else if (seconds < 120)
        snprintf(text, size, "%" PRId64 "s", seconds);
    else if (seconds < 2 * 3600)
        snprintf(text, size, "%" PRId64 "m", seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(text, size, "%" PRId64 "h", seconds / 3600);
    else
        snprintf(text, size, "%" PRId64 "d", seconds / 86400);
}

static void output_format_plain(const json_t *value, char *text, size_t size)
{
    if (json_is_string(value) && *json_string_value(value))
        text_clean(json_string_value(value), text, size);
    else if (json_is_integer(value))
        snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        snprintf(text, size, "-");
}

static void output_format_list(const json_t *value, char *text, size_t size)
{
    size_t index, used = 0;
    const json_t *element;

    snprintf(text, size, "-");
    json_array_foreach(value, index, element) {
        if (index && used < size - 1)
            text[used++] = ',';
        output_format_plain(element, text + used, size - used);
        used += strlen(text + used);
    }
}

static void output_format_cell(const struct column *column, const json_t *row, char *text, size_t size)
{
    const json_t *value = json_object_get(row, column->key);
    json_int_t number = json_integer_value(value);

    if (!value || json_is_null(value)) {
        snprintf(text, size, "-");
        return;
    }
    switch (column->form) {
    case COLUMN_TEXT:
    case COLUMN_NUMBER:
        output_format_plain(value, text, size);
        return;
    case COLUMN_AMOUNT:
        if (strcmp(json_string_value(json_object_get(row, "unit")), "bytes") != 0) {
            output_format_plain(value, text, size);
            return;
        }
        format_bytes((uint64_t)number, text, size);
        return;
    case COLUMN_BYTES:
        format_bytes((uint64_t)number, text, size);
        return;
    case COLUMN_LIST:
        output_format_list(value, text, size);
        return;
    case COLUMN_YES:
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
        return;
    case COLUMN_AGE:
        output_format_span((int64_t)(clock_wall_ms() / MSEC_PER_SEC) - number / 1000, text, size);
        return;
    case COLUMN_SPAN:
        output_format_span(number / 1000, text, size);
        return;
    case COLUMN_RATIO:
        snprintf(text, size, "%.1fx", json_number_value(value));
        return;
    }
}

/* Are its cells numbers, which end below each other? */
static bool output_is_right_aligned(const struct column *column)
{
    return column->form != COLUMN_TEXT && column->form != COLUMN_LIST && column->form != COLUMN_YES;
}

static void output_print_cell(const char *cell, size_t width, bool right, bool last)
{
    size_t columns = text_columns(cell), blanks = columns < width ? width - columns : 0;

    if (right)
        printf("%*s%s", (int)blanks, "", cell);
    else
        printf("%s%*s", cell, last ? 0 : (int)blanks, "");
}

static void output_print_row(const struct column *const *columns, const size_t *widths, size_t n, const json_t *row)
{
    for (size_t i = 0; i < n; i++) {
        char cell[TEXT_MAX];

        fputs(i ? "  " : "", stdout);
        if (row)
            output_format_cell(columns[i], row, cell, sizeof(cell));
        output_print_cell(row ? cell : columns[i]->heading, widths[i], output_is_right_aligned(columns[i]), i + 1 == n);
    }
    putchar('\n');
}

static void output_print_table(const struct output *output)
{
    const struct column *columns[COLUMNS_MAX];
    size_t widths[COLUMNS_MAX], index, n = 0;
    const json_t *row;

    for (const struct column *column = output->columns; column->key && n < COLUMNS_MAX; column++)
        if (column->heading) {
            widths[n] = text_columns(column->heading);
            columns[n++] = column;
        }
    json_array_foreach(output->rows, index, row)
        for (size_t i = 0; i < n; i++) {
            char cell[TEXT_MAX];
            size_t width;

            output_format_cell(columns[i], row, cell, sizeof(cell));
            width = text_columns(cell);
            if (width > widths[i])
                widths[i] = width;
        }

    output_print_row(columns, widths, n, NULL);
    json_array_foreach(output->rows, index, row)
        output_print_row(columns, widths, n, row);
}

static void output_print_vertical(const struct output *output)
{
    const json_t *row = json_array_get(output->rows, 0);
    size_t width = 0;
    char cell[TEXT_MAX];

    for (const struct column *column = output->columns; column->key; column++)
        if (column->heading && strlen(column->heading) > width)
            width = strlen(column->heading);
    for (const struct column *column = output->columns; column->key; column++) {
        if (!column->heading)
            continue;
        output_format_cell(column, row, cell, sizeof(cell));
        printf("%s:%*s %s\n", column->heading, (int)(width - strlen(column->heading)), "", cell);
    }
}

int output_flush(void)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return EXIT_DONE;
    say("cannot write to standard output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
    return EXIT_REFUSED;
}

/* All is ASCII, since all else is escaped, but DEL, which JSON permits, too; it can only be within a string. */
static int output_write_json(const char *piece, size_t n, void *data)
{
    for (size_t i = 0; i < n; i++)
        if ((piece[i] == 0x7f ? fputs("\\u007f", stdout) : putchar(piece[i])) == EOF)
            return -1;
    return 0;
}

int output_end(struct output *output, int r)
{
    if (output->no_memory) {
        say("not enough memory to print the result");
        r = EXIT_REFUSED;
    } else if (!r) {
        if (output->json) {
            (void)json_dump_callback(output->rows, output_write_json, NULL, JSON_INDENT(2) | JSON_ENSURE_ASCII);
            putchar('\n');
        } else if (output->vertical) {
            output_print_vertical(output);
        } else {
            output_print_table(output);
        }
        r = output_flush();
    }
    json_decref(output->rows);
    output->rows = NULL;
    return r;
}

int output_one(json_t *row)
{
    struct output output;

    output_init(&output, true, NULL);
    return output_end(&output, output_row(&output, row));
}

int output_one_item(bool json, const struct column *columns, const void *item)
{
    struct output output;

    output_init(&output, json, columns);
    return output_end(&output, output_item(&output, item));
}
