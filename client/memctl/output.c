/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows to text or JSON.
 *
 * All rows are gathered before the first is printed: a table's columns are as wide as their widest cell, and half an
 * array is no JSON. A listing of 100 000 buffers is about 100 MB here, in a process that ends with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "memctl/output.h"

enum { CELL_MAX = 320, COLUMNS_MAX = 16 };

void
output_init(struct output *output, bool json, const struct column *columns)
{
    *output = (struct output){.json = json, .columns = columns, .rows = json_array()};
}

void
output_deinit(struct output *output)
{
    json_decref(output->rows);
    output->rows = NULL;
}

int
output_row(struct output *output, json_t *row)
{
    return json_array_append_new(output->rows, row) ? -ENOMEM : 0;
}

/* The longest unit in which the number has at most one decimal that is exact, or four digits. */
void
format_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char units[] = "BKMGTPE";
    unsigned unit = 0;
    double value = (double)bytes;

    while (value >= 1024 && unit + 1 < sizeof(units) - 1) {
        value /= 1024;
        unit++;
    }
    if (!unit)
        snprintf(text, size, "%" PRIu64, bytes);
    else if (!(bytes & ((UINT64_C(1) << (10 * unit)) - 1)))
        snprintf(text, size, "%.0f%c", value, units[unit]);
    else
        snprintf(text, size, "%.1f%c", value, units[unit]);
}

static void
format_since(int64_t ms, char *text, size_t size)
{
    struct timespec now;
    int64_t seconds;

    clock_gettime(CLOCK_REALTIME, &now);
    seconds = (int64_t)now.tv_sec - ms / 1000;
    if (!ms)
        snprintf(text, size, "-");
    else if (seconds < 0)
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

static void
format_plain(const json_t *value, char *text, size_t size)
{
    if (json_is_string(value))
        snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_true(value))
        snprintf(text, size, "yes");
    else if (json_is_false(value))
        snprintf(text, size, "no");
    else
        snprintf(text, size, "-");
}

static void
format_list(const json_t *value, char *text, size_t size)
{
    size_t index, used = 0;
    const json_t *element;

    snprintf(text, size, "%s", json_array_size(value) ? "" : "-");
    json_array_foreach (value, index, element) {
        char one[CELL_MAX];
        int n;

        format_plain(element, one, sizeof(one));
        n = snprintf(text + used, size - used, "%s%s", index ? "," : "", one);
        if (n < 0 || (size_t)n >= size - used)
            return;
        used += (size_t)n;
    }
}

static void
format_cell(const struct column *column, const json_t *row, char *text, size_t size)
{
    const json_t *value = json_object_get(row, column->key);
    uint64_t number = (uint64_t)json_integer_value(value);

    switch (column->form) {
    case COLUMN_TEXT:
        format_plain(value, text, size);
        if (!*text)
            snprintf(text, size, "-");
        return;
    case COLUMN_SOME:
        if (number)
            format_plain(value, text, size);
        else
            snprintf(text, size, "-");
        return;
    case COLUMN_BYTES:
        format_bytes(number, text, size);
        return;
    case COLUMN_HEX:
        if (json_is_string(value))
            snprintf(text, size, "%s", json_string_value(value));
        else
            snprintf(text, size, "-");
        return;
    case COLUMN_LIST:
        format_list(value, text, size);
        return;
    case COLUMN_YES:
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : "-");
        return;
    case COLUMN_SINCE:
        format_since((int64_t)number, text, size);
        return;
    }
}

static bool
column_is_right(const struct column *column, const json_t *row)
{
    return column->form == COLUMN_BYTES || column->form == COLUMN_SINCE || column->form == COLUMN_SOME
           || (column->form == COLUMN_TEXT && json_is_integer(json_object_get(row, column->key)));
}

static void
print_table(const struct output *output)
{
    size_t widths[COLUMNS_MAX] = {0}, index, n = 0;
    const json_t *first = json_array_get(output->rows, 0), *row;
    char cell[CELL_MAX];

    for (; n < COLUMNS_MAX && output->columns[n].heading; n++)
        widths[n] = strlen(output->columns[n].heading);
    json_array_foreach (output->rows, index, row)
        for (size_t i = 0; i < n; i++) {
            size_t length;

            format_cell(&output->columns[i], row, cell, sizeof(cell));
            length = strlen(cell);
            if (length > widths[i])
                widths[i] = length;
        }

    for (size_t i = 0; i < n; i++) {
        bool right = column_is_right(&output->columns[i], first);

        printf("%s%*s", i ? "  " : "", i + 1 == n && !right ? 0 : (right ? 1 : -1) * (int)widths[i],
               output->columns[i].heading);
    }
    putchar('\n');
    json_array_foreach (output->rows, index, row) {
        for (size_t i = 0; i < n; i++) {
            bool right = column_is_right(&output->columns[i], first);

            format_cell(&output->columns[i], row, cell, sizeof(cell));
            printf("%s%*s", i ? "  " : "", i + 1 == n && !right ? 0 : (right ? 1 : -1) * (int)widths[i],
                   cell);
        }
        putchar('\n');
    }
}

int
output_print(struct output *output)
{
    if (output->json) {
        if (json_dumpf(output->rows, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII))
            return -EIO;
        putchar('\n');
    } else {
        print_table(output);
    }
    return fflush(stdout) || ferror(stdout) ? -EIO : 0;
}
