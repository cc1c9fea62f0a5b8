/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as lines. Nothing is said by colour: what is used of a pool has another letter than what is free, and the
 * selected row has a marker. A line is as wide as the terminal at most, and columns have fixed widths, so that what
 * does not change stays where it is.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "memctl/output.h"
#include "memctl/text.h"
#include "memctl/top.h"

enum { BAR_MAX = 60, POOLS_MAX = 6, CELL_MAX = 512 };

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Writes what fits into `width` columns, and a + where it was cut. */
static void draw_cut(char *to, size_t size, const char *text, size_t width)
{
    size_t used = 0, columns = 0;
    bool cut = text_columns(text) > width;

    while (*text) {
        uint32_t c = 0;
        size_t length = utf8_decode(text, strnlen(text, 4), &c);
        int w = length ? wcwidth((wchar_t)c) : 1;

        length = length ? length : 1;
        w = w < 0 ? 1 : w;
        if (columns + (size_t)w + cut > width || used + length + 2 > size)
            break;
        memcpy(to + used, text, length);
        used += length;
        columns += (size_t)w;
        text += length;
    }
    if (cut && columns < width && used + 1 < size)
        to[used++] = '+';
    to[used] = '\0';
}

static void draw_line(struct top_page *page, enum top_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void draw_line(struct top_page *page, enum top_style style, const char *format, ...)
{
    struct top_line *line = &page->lines[page->n];
    char text[sizeof(line->text)];
    va_list arguments;

    if (page->n == TOP_LINES_MAX || (page->height && page->n >= page->height))
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    line->style = style;
    draw_cut(line->text, sizeof(line->text), text, page->width);
    page->n++;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A text of somebody else's, clean; "-" if there is none. */
static const char *text_of(const json_t *row, const char *key, char clean[CELL_MAX])
{
    const char *text = json_string_value(json_object_get(row, key));

    return text && *text ? text_clean(text, clean, CELL_MAX) : "-";
}

static const char *bytes_of(uint64_t bytes, char text[24])
{
    format_bytes(bytes, text, 24);
    return text;
}

#define COUNT_MAX 32

/* "1 buffer", "3 buffers" */
static const char *count_of(json_int_t n, const char *noun, char text[COUNT_MAX])
{
    (void)snprintf(text, COUNT_MAX, "%" JSON_INTEGER_FORMAT " %s%s", n, noun, plural((uint64_t)n));
    return text;
}

enum draw_form { DRAW_TEXT, DRAW_NUMBER, DRAW_BYTES, DRAW_AGE, DRAW_RATE };

struct draw_column {
    const char *heading;
    const char *key;
    enum draw_form form;
    int width; /* 0: what is left */
};

static void draw_format(const struct draw_column *column, const json_t *row, uint64_t now_ms, char cell[CELL_MAX])
{
    const json_t *value = json_object_get(row, column->key);
    json_int_t number = json_integer_value(value);
    char bytes[24];

    if (column->form == DRAW_TEXT) {
        const char *text = text_of(row, column->key, cell);

        if (text != cell)
            (void)snprintf(cell, CELL_MAX, "%s", text);
        return;
    }
    if (!json_is_integer(value))
        (void)snprintf(cell, CELL_MAX, "-");
    else if (column->form == DRAW_NUMBER)
        (void)snprintf(cell, CELL_MAX, "%" JSON_INTEGER_FORMAT, number);
    else if (column->form == DRAW_BYTES)
        format_bytes((uint64_t)number, cell, CELL_MAX);
    else if (column->form == DRAW_AGE)
        output_format_span(((int64_t)now_ms - number) / 1000, cell, CELL_MAX);
    else
        (void)snprintf(cell, CELL_MAX, "%s%s/s",
                       number < 0 ? "-"
                       : number   ? "+"
                                  : "",
                       bytes_of((uint64_t)(number < 0 ? -number : number), bytes));
}

static const struct draw_column buffer_view[] = {
    {"BUFFER", "id", DRAW_NUMBER, 7},  {"BYTES", "bytes", DRAW_BYTES, 8},  {"UID", "charged_uid", DRAW_NUMBER, 6},
    {"PID", "pid", DRAW_NUMBER, 7},    {"HOLDS", "holds", DRAW_NUMBER, 5}, {"AGE", "created_ms", DRAW_AGE, 4},
    {"STATE", "state", DRAW_TEXT, -8}, {"POOL", "pool", DRAW_TEXT, -10},   {"NAME", "name", DRAW_TEXT, 0},
    {NULL, NULL, DRAW_TEXT, 0},
};
static const struct draw_column process_view[] = {
    {"PID", "pid", DRAW_NUMBER, 8},         {"UID", "uid", DRAW_NUMBER, 7},
    {"BYTES", "bytes", DRAW_BYTES, 8},      {"HOLDS", "holds", DRAW_NUMBER, 7},
    {"RATE", "rate", DRAW_RATE, 11},        {"REQ/S", "request_rate", DRAW_NUMBER, 6},
    {"WAITING", "waiting", DRAW_NUMBER, 7}, {"AGE", "created_ms", DRAW_AGE, 5},
    {"PROGRAM", "program", DRAW_TEXT, 0},   {NULL, NULL, DRAW_TEXT, 0},
};
static const struct draw_column user_view[] = {
    {"UID", "uid", DRAW_NUMBER, 7},     {"BYTES", "bytes", DRAW_BYTES, 8},
    {"LIMIT", "limit", DRAW_BYTES, 8},  {"PROCESSES", "processes", DRAW_NUMBER, 9},
    {"HOLDS", "holds", DRAW_NUMBER, 7}, {"WAITING", "waiting", DRAW_NUMBER, 7},
    {"USER", "user", DRAW_TEXT, 0},     {NULL, NULL, DRAW_TEXT, 0},
};

static const struct {
    const char *listing;
    const struct draw_column *columns;
} views[TOP_VIEWS] = {{"buffers", buffer_view}, {"processes", process_view}, {"users", user_view}};

/* The heading, if `row` is NULL. A negative width is of a column whose texts begin below each other. */
static void draw_row(struct top_page *page, enum top_style style, const char *marker, const struct draw_column *columns,
                     const json_t *row, uint64_t now_ms)
{
    char line[sizeof(page->lines[0].text)];
    size_t used = (size_t)snprintf(line, sizeof(line), "%s", marker);

    for (const struct draw_column *column = columns; column->heading; column++) {
        char cell[CELL_MAX], cut[CELL_MAX];
        size_t width = (size_t)(column->width < 0 ? -column->width : column->width), columns_taken;
        int blanks;

        if (row)
            draw_format(column, row, now_ms, cell);
        else
            (void)snprintf(cell, sizeof(cell), "%s", column->heading);
        draw_cut(cut, sizeof(cut), cell, width ? width : CELL_MAX);
        columns_taken = text_columns(cut);
        blanks = width > columns_taken ? (int)(width - columns_taken) : 0;
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%*s%s%*s ", column->width > 0 ? blanks : 0, "", cut,
                                 column->width < 0 ? blanks : 0, "");
        if (used >= sizeof(line))
            break;
    }
    draw_line(page, style, "%s", line);
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static void draw_head(const struct top *top, struct top_page *page)
{
    const json_t *broker = json_object_get(top->snapshot, "broker"), *sums = json_object_get(top->snapshot, "sums");
    time_t at = (time_t)(top_number(top->snapshot, "at_ms") / 1000);
    char clock[32] = "", used[24], capacity[24], bytes[24], huge[24], detached[24], up[24], version[CELL_MAX];
    char buffers[COUNT_MAX], others[COUNT_MAX];
    struct tm tm;

    if (at && localtime_r(&at, &tm))
        (void)strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    if (json_is_object(broker)) {
        output_format_span(top_number(broker, "uptime_ms") / 1000, up, sizeof(up));
        draw_line(page, TOP_TITLE, "memoryd %s  %s  up %s  %s of %s used  %s  %s", text_of(broker, "version", version),
                  clock, up, bytes_of((uint64_t)top_number(broker, "used"), used),
                  bytes_of((uint64_t)top_number(broker, "capacity"), capacity),
                  count_of(top_number(broker, "buffers") + top_number(broker, "detached"), "buffer", buffers),
                  count_of(top_number(broker, "sessions"), "client", others));
    } else {
        draw_line(page, TOP_TITLE, "a recorded listing  %s", clock);
    }
    draw_line(page, TOP_PLAIN, "chosen: %s, %s, of that %s in huge pages and %s detached; %s",
              count_of(top_number(sums, "buffers"), "buffer", buffers),
              bytes_of((uint64_t)top_number(sums, "bytes"), bytes),
              bytes_of((uint64_t)top_number(sums, "huge_bytes"), huge),
              bytes_of((uint64_t)top_number(sums, "detached_bytes"), detached),
              count_of(top_number(sums, "holds"), "hold", others));
}

/* # used, in huge pages of the system H; = warm stock; . free */
static void draw_bar(const json_t *pool, size_t width, char bar[BAR_MAX + 1])
{
    const char *pages = json_string_value(json_object_get(pool, "pages"));
    double capacity = (double)top_number(pool, "capacity");
    double used = (double)top_number(pool, "used"), stock = (double)top_number(pool, "stock");
    size_t n_used = capacity > 0 ? (size_t)(used / capacity * (double)width + 0.5) : 0;
    size_t n_stock = capacity > 0 ? (size_t)((used + stock) / capacity * (double)width + 0.5) : 0;

    /* what there is shows, if it is little */
    n_used = used > 0 && !n_used ? 1 : n_used;
    n_stock = stock > 0 && n_stock <= n_used ? n_used + 1 : n_stock;
    for (size_t i = 0; i < width; i++)
        bar[i] = i < n_used ? (pages && !strcmp(pages, "hugetlb") ? 'H' : '#') : i < n_stock ? '=' : '.';
    bar[width] = '\0';
}

static void draw_pools(const struct top *top, struct top_page *page)
{
    const json_t *pools = json_object_get(top->snapshot, "pools"), *pool;
    size_t width = page->width > 100 ? 40 : page->width > 70 ? 24 : 10, index, left;
    const size_t most = page->height ? POOLS_MAX : TOP_LINES_MAX;

    json_array_foreach(pools, index, pool) {
        char name[CELL_MAX], cut[64], bar[BAR_MAX + 1], used[24], stock[24], capacity[24], kind[CELL_MAX];

        left = json_array_size(pools) - index;
        if (index + 1 >= most && left > 1) {
            draw_line(page, TOP_PLAIN, "and %zu more pools", left);
            return;
        }
        draw_bar(pool, width, bar);
        draw_cut(cut, sizeof(cut), text_of(pool, "name", name), 14);
        draw_line(page, TOP_PLAIN, "%s%*s [%s] %s used, %s warm, of %s %s", cut, (int)(14 - text_columns(cut)), "", bar,
                  bytes_of((uint64_t)top_number(pool, "used"), used),
                  bytes_of((uint64_t)top_number(pool, "stock"), stock),
                  bytes_of((uint64_t)top_number(pool, "capacity"), capacity), text_of(pool, "pages", kind));
    }
}

/* ---- details ----------------------------------------------------------------------------------------------------- */

static void draw_since(const json_t *holder, uint64_t now_ms, char *text, size_t size)
{
    json_int_t since_ms = top_number(holder, "since_ms");
    char span[24];

    if (since_ms) {
        output_format_span(((int64_t)now_ms - since_ms) / 1000, span, sizeof(span));
        (void)snprintf(text, size, "for %s", span);
    } else {
        (void)snprintf(text, size, "since before this broker");
    }
}

static void draw_holders(const struct top *top, struct top_page *page, const json_t *row)
{
    const uint64_t now_ms = (uint64_t)top_number(top->snapshot, "at_ms");
    const json_t *holders = json_object_get(row, "holders"), *holder;
    char others[COUNT_MAX];
    size_t index;

    json_array_foreach(holders, index, holder) {
        uint64_t id = (uint64_t)top_number(holder, "session");
        const json_t *session = top_find(top, "processes", "id", id);
        char rights[CELL_MAX], claim[CELL_MAX], program[CELL_MAX], since[48];

        draw_since(holder, now_ms, since, sizeof(since));
        draw_line(page, TOP_PLAIN,
                  "  held by pid %" JSON_INTEGER_FORMAT " (%s), session %" PRIu64 ", %s, rights %s, claim %s%s",
                  top_number(session, "pid"), text_of(session, "program", program), id, since,
                  text_of(holder, "rights", rights), text_of(holder, "claim", claim),
                  json_is_true(json_object_get(holder, "cached")) ? ", only cached" : "");
    }
    if ((json_int_t)json_array_size(holders) < top_number(row, "holds"))
        draw_line(page, TOP_PLAIN, "  and by %s",
                  count_of(top_number(row, "holds") - (json_int_t)json_array_size(holders), "more session", others));
}

static void draw_detail(const struct top *top, struct top_page *page)
{
    const json_t *row = top_find(top, "buffers", "id", top->detail), *pid;
    const uint64_t now_ms = (uint64_t)top_number(top->snapshot, "at_ms");
    char state[CELL_MAX], pool[CELL_MAX], pages[CELL_MAX], name[CELL_MAX], address[CELL_MAX], bytes[24], age[24];
    char open_in[CELL_MAX] = "", holds[COUNT_MAX], names[COUNT_MAX], tokens[COUNT_MAX];
    size_t index, used = 0;

    draw_line(page, TOP_HEADING, "buffer %" PRIu64, top->detail);
    if (!row) {
        draw_line(page, TOP_PLAIN, "  is not among those that are listed any more");
        return;
    }
    output_format_span(((int64_t)now_ms - top_number(row, "created_ms")) / 1000, age, sizeof(age));
    draw_line(page, TOP_PLAIN, "  name       %s", text_of(row, "name", name));
    draw_line(page, TOP_PLAIN, "  memory     %s of pool %s, %s pages, %s",
              bytes_of((uint64_t)top_number(row, "bytes"), bytes), text_of(row, "pool", pool),
              text_of(row, "pages", pages), text_of(row, "state", state));
    draw_line(page, TOP_PLAIN,
              "  made by    pid %" JSON_INTEGER_FORMAT " of uid %" JSON_INTEGER_FORMAT
              ", %s ago; uid %" JSON_INTEGER_FORMAT " pays",
              top_number(row, "pid"), top_number(row, "uid"), age, top_number(row, "charged_uid"));
    draw_line(page, TOP_PLAIN, "  address    %s", text_of(row, "address", address));
    draw_line(page, TOP_PLAIN, "  kept by    %s, %s, %s", count_of(top_number(row, "holds"), "session", holds),
              count_of(top_number(row, "names"), "name", names), count_of(top_number(row, "tokens"), "token", tokens));
    json_array_foreach(top->open_in, index, pid)
        if (used + 16 < sizeof(open_in))
            used += (size_t)snprintf(open_in + used, sizeof(open_in) - used, "%s%" JSON_INTEGER_FORMAT,
                                     index ? ", " : "", json_integer_value(pid));
    draw_line(page, TOP_PLAIN, "  open in    %s", top->recorded ? "(it is recorded)" : *open_in ? open_in : "-");
    draw_holders(top, page, row);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* The rows begin such that the selected one is seen. */
static void draw_scroll(struct top *top, uint64_t room)
{
    if (top->selected >= top->n_rows)
        top->selected = top->n_rows ? top->n_rows - 1 : 0;
    if (top->selected < top->first)
        top->first = top->selected;
    if (room && top->selected >= top->first + room)
        top->first = top->selected - room + 1;
    if (top->first + room > top->n_rows)
        top->first = top->n_rows > room ? top->n_rows - room : 0;
}

static void draw_rows(struct top *top, struct top_page *page)
{
    json_t *rows = json_object_get(top->snapshot, views[top->view].listing);
    const uint64_t now_ms = (uint64_t)top_number(top->snapshot, "at_ms");
    char filter[128], clean[128];
    uint64_t room, n;

    if (top->view != TOP_BUFFERS)
        top_sort_rows(rows, top_sort_key(top->sort), top->sort == TOP_BY_OLDEST);
    n = json_array_size(rows);
    top->n_rows = page->height || n < top->most ? n : top->most;
    filter[0] = '\0';
    if (top->view == TOP_BUFFERS)
        top_format_filter(&top->filter, filter, sizeof(filter));
    draw_line(page, TOP_PLAIN, "%s by %s%s%s", top_view_words[top->view], top_sort_words[top->sort],
              *filter ? ", only " : "", text_clean(filter, clean, sizeof(clean)));
    draw_row(page, TOP_HEADING, page->height ? "  " : "", views[top->view].columns, NULL, now_ms);
    room = page->height ? (page->height > page->n + 1 ? page->height - page->n - 1 : 0) : top->n_rows;
    if (page->height)
        draw_scroll(top, room);
    for (uint64_t i = 0; i < room && top->first + i < top->n_rows; i++) {
        bool selected = page->height && top->first + i == top->selected;

        draw_row(page, selected ? TOP_SELECTED : TOP_PLAIN,
                 !page->height ? ""
                 : selected    ? "> "
                               : "  ",
                 views[top->view].columns, json_array_get(rows, top->first + i), now_ms);
    }
}

void top_draw(struct top *top, struct top_page *page)
{
    char clean[sizeof(top->trouble)];

    page->n = 0;
    if (*top->trouble)
        draw_line(page, TOP_TROUBLE, "! %s", text_clean(top->trouble, clean, sizeof(clean)));
    if (top->snapshot) {
        draw_head(top, page);
        draw_pools(top, page);
        if (top->detail)
            draw_detail(top, page);
        else
            draw_rows(top, page);
    }
    if (!page->height)
        return;
    if (page->n >= page->height)
        page->n = page->height - 1;
    while (page->n + 1 < page->height)
        draw_line(page, TOP_PLAIN, "%s", "");
    draw_line(page, TOP_KEYS, "%s",
              top->detail ? "Esc back  q quit"
                          : "q quit  Tab view  s sort  / filter  Up Down Enter look into  Esc back  r refresh");
}
