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

/* A size; "-" if the row has none, as those of an older broker or an old recording may. */
static const char *bytes_of(const json_t *row, const char *key, char text[24])
{
    const json_t *value = json_object_get(row, key);

    if (json_is_integer(value))
        format_bytes((uint64_t)json_integer_value(value), text, 24);
    else
        (void)snprintf(text, 24, "-");
    return text;
}

#define COUNT_MAX 32

/* "1 buffer", "3 buffers" */
static const char *count_of(json_int_t n, const char *noun, char text[COUNT_MAX])
{
    (void)snprintf(text, COUNT_MAX, "%" JSON_INTEGER_FORMAT " %s%s", n, noun, plural((uint64_t)n));
    return text;
}

/* Likewise of a number of a row, which may be missing. */
static const char *number_of(const json_t *row, const char *key, const char *noun, char text[COUNT_MAX])
{
    const json_t *value = json_object_get(row, key);

    if (json_is_integer(value))
        return count_of(json_integer_value(value), noun, text);
    (void)snprintf(text, COUNT_MAX, "- %ss", noun);
    return text;
}

enum draw_form { DRAW_TEXT, DRAW_NUMBER, DRAW_BYTES, DRAW_AGE, DRAW_RATE };

struct draw_column {
    const char *heading;
    const char *key;
    enum draw_form form;
    int width; /* 0: what is left */
};

static void draw_rate(json_int_t rate, char cell[CELL_MAX])
{
    const char *sign = rate < 0 ? "-" : rate ? "+" : "";
    char bytes[24];

    format_bytes((uint64_t)(rate < 0 ? -rate : rate), bytes, sizeof(bytes));
    (void)snprintf(cell, CELL_MAX, "%s%s/s", sign, bytes);
}

static void draw_format(const struct draw_column *column, const json_t *row, uint64_t now_ms, char cell[CELL_MAX])
{
    const json_t *value = json_object_get(row, column->key);
    json_int_t number = json_integer_value(value);

    if (column->form == DRAW_TEXT) {
        const char *text = text_of(row, column->key, cell);

        if (text != cell)
            (void)snprintf(cell, CELL_MAX, "%s", text);
        return;
    }
    /* a recorded listing does not say when that was */
    if (!json_is_integer(value) || (column->form == DRAW_AGE && !now_ms))
        (void)snprintf(cell, CELL_MAX, "-");
    else if (column->form == DRAW_NUMBER)
        (void)snprintf(cell, CELL_MAX, "%" JSON_INTEGER_FORMAT, number);
    else if (column->form == DRAW_BYTES)
        format_bytes((uint64_t)number, cell, CELL_MAX);
    else if (column->form == DRAW_AGE)
        output_format_span(((int64_t)now_ms - number) / 1000, cell, CELL_MAX);
    else
        draw_rate(number, cell);
}

static const struct draw_column buffer_view[] = {
    {"BUFFER", "id", DRAW_NUMBER, 7},  {"BYTES", "bytes", DRAW_BYTES, 8},  {"UID", "charged_uid", DRAW_NUMBER, 6},
    {"PID", "pid", DRAW_NUMBER, 7},    {"HOLDS", "holds", DRAW_NUMBER, 5}, {"AGE", "created_ms", DRAW_AGE, 4},
    {"STATE", "state", DRAW_TEXT, -8}, {"POOL", "pool", DRAW_TEXT, -10},   {"NAME", "name", DRAW_TEXT, 0},
    {NULL, NULL, DRAW_TEXT, 0},
};
/* … of one session: what it may do with each, and since when, comes before what may be cut */
static const struct draw_column session_view[] = {
    {"BUFFER", "id", DRAW_NUMBER, 7},   {"BYTES", "bytes", DRAW_BYTES, 8},  {"RIGHTS", "rights", DRAW_TEXT, -6},
    {"SINCE", "since_ms", DRAW_AGE, 5}, {"CLAIM", "claim", DRAW_TEXT, -9},  {"UID", "charged_uid", DRAW_NUMBER, 6},
    {"HOLDS", "holds", DRAW_NUMBER, 5}, {"AGE", "created_ms", DRAW_AGE, 4}, {"POOL", "pool", DRAW_TEXT, -10},
    {"NAME", "name", DRAW_TEXT, 0},     {NULL, NULL, DRAW_TEXT, 0},
};
static const struct draw_column holder_view[] = {
    {"RIGHTS", "rights", DRAW_TEXT, -6},  {"SINCE", "since_ms", DRAW_AGE, 5}, {"CLAIM", "claim", DRAW_TEXT, -9},
    {"UID", "uid", DRAW_NUMBER, 7},       {"PID", "pid", DRAW_NUMBER, 8},     {"SESSION", "session", DRAW_NUMBER, 8},
    {"PROGRAM", "program", DRAW_TEXT, 0}, {NULL, NULL, DRAW_TEXT, 0},
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
                  clock, up, bytes_of(broker, "used", used), bytes_of(broker, "capacity", capacity),
                  count_of(top_number(broker, "buffers") + top_number(broker, "detached"), "buffer", buffers),
                  count_of(top_number(broker, "sessions"), "client", others));
    } else {
        draw_line(page, TOP_TITLE, "a recorded listing  %s", clock);
    }
    draw_line(page, TOP_PLAIN, "chosen: %s, %s, of that %s in huge pages and %s detached; %s",
              number_of(sums, "buffers", "buffer", buffers), bytes_of(sums, "bytes", bytes),
              bytes_of(sums, "huge_bytes", huge), bytes_of(sums, "detached_bytes", detached),
              number_of(sums, "holds", "hold", others));
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
                  bytes_of(pool, "used", used), bytes_of(pool, "stock", stock), bytes_of(pool, "capacity", capacity),
                  text_of(pool, "pages", kind));
    }
}

/* ---- details ----------------------------------------------------------------------------------------------------- */

/* A hold as a row of a table. */
static json_t *draw_hold(const struct top *top, json_t *holder)
{
    static const char *const keys[] = {"uid", "pid", "program"};
    const json_t *session = top_find(top, "processes", "id", (uint64_t)top_number(holder, "session"));
    json_t *row = json_copy(holder);

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        (void)json_object_set(row, keys[i], json_object_get(session, keys[i]));
    if (json_is_true(json_object_get(row, "cached")))
        (void)json_object_set_new(row, "claim", json_string("cached"));
    return row;
}

static void draw_holders(const struct top *top, struct top_page *page, const json_t *row)
{
    const uint64_t now_ms = (uint64_t)top_number(top->snapshot, "at_ms");
    const json_t *holders = json_object_get(row, "holders");
    json_int_t n = (json_int_t)json_array_size(holders);
    char others[COUNT_MAX];
    size_t index;
    json_t *holder;

    if (n)
        draw_row(page, TOP_HEADING, "  ", holder_view, NULL, now_ms);
    json_array_foreach(holders, index, holder) {
        json_t *hold = draw_hold(top, holder);

        draw_row(page, TOP_PLAIN, "  ", holder_view, hold, now_ms);
        json_decref(hold);
    }
    if (n < top_number(row, "holds"))
        draw_line(page, TOP_PLAIN, "  and %s", count_of(top_number(row, "holds") - n, "other session", others));
}

/* As many lines as it takes. */
static void draw_openers(const struct top *top, struct top_page *page)
{
    const size_t n = json_array_size(top->open_in);
    const char *heading = "open in";
    char text[CELL_MAX] = "";
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        char pid[32];

        (void)snprintf(pid, sizeof(pid), "%" JSON_INTEGER_FORMAT "%s",
                       json_integer_value(json_array_get(top->open_in, i)), i + 1 < n ? ", " : "");
        if (used && (13 + used + strlen(pid) > page->width || used + sizeof(pid) > sizeof(text))) {
            draw_line(page, TOP_PLAIN, "  %-10s %s", heading, text);
            heading = "";
            used = 0;
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", pid);
    }
    draw_line(page, TOP_PLAIN, "  %-10s %s", heading, top->recorded ? "(it is recorded)" : n ? text : "-");
}

static void draw_facts(const struct top *top, struct top_page *page, const json_t *row)
{
    const struct draw_column age_of = {"AGE", "created_ms", DRAW_AGE, 0};
    char state[CELL_MAX], pool[CELL_MAX], pages[CELL_MAX], name[CELL_MAX], address[CELL_MAX], age[CELL_MAX], bytes[24];
    char holds[COUNT_MAX], names[COUNT_MAX], tokens[COUNT_MAX];

    draw_format(&age_of, row, (uint64_t)top_number(top->snapshot, "at_ms"), age);
    draw_line(page, TOP_PLAIN, "  name       %s", text_of(row, "name", name));
    draw_line(page, TOP_PLAIN, "  memory     %s of pool %s, %s pages, %s", bytes_of(row, "bytes", bytes),
              text_of(row, "pool", pool), text_of(row, "pages", pages), text_of(row, "state", state));
    draw_line(page, TOP_PLAIN,
              "  made by    pid %" JSON_INTEGER_FORMAT " of uid %" JSON_INTEGER_FORMAT
              ", %s ago; uid %" JSON_INTEGER_FORMAT " pays",
              top_number(row, "pid"), top_number(row, "uid"), age, top_number(row, "charged_uid"));
    draw_line(page, TOP_PLAIN, "  address    %s", text_of(row, "address", address));
    draw_line(page, TOP_PLAIN, "  kept by    %s, %s, %s", number_of(row, "holds", "session", holds),
              number_of(row, "names", "name", names), number_of(row, "tokens", "token", tokens));
    draw_openers(top, page);
}

/*
 * What there is room for, from the line that was scrolled to. The first line stays, and says how much is not seen; so
 * does the heading of the list, which then takes the place of the first line below it.
 */
static void draw_part(struct top *top, struct top_page *page, const struct top_page *all)
{
    const unsigned room = page->height > page->n + 2 ? page->height - page->n - 2 : 0; /* beside first line and keys */
    const unsigned most = all->n > room + 1 ? all->n - room - 1 : 0;
    unsigned list = 0;

    if (top->detail_first > most)
        top->detail_first = most;
    for (unsigned i = 1; i < all->n; i++)
        if (all->lines[i].style == TOP_HEADING)
            list = i;
    if (most)
        draw_line(page, TOP_HEADING, "%s: %u more line%s above, %u below (Up, Down)", all->lines[0].text,
                  top->detail_first, plural(top->detail_first), most - top->detail_first);
    else
        draw_line(page, TOP_HEADING, "%s", all->lines[0].text);
    for (unsigned i = 0; i < room; i++) {
        unsigned at = 1 + top->detail_first + i;

        if (!i && list && at > list)
            at = list;
        if (at < all->n)
            draw_line(page, all->lines[at].style, "%s", all->lines[at].text);
    }
}

static void draw_detail(struct top *top, struct top_page *page)
{
    static struct top_page all;
    const json_t *row = top_find(top, "buffers", "id", top->detail);

    all.n = 0;
    all.width = page->width;
    draw_line(&all, TOP_HEADING, "buffer %" PRIu64, top->detail);
    if (row) {
        draw_facts(top, &all, row);
        draw_holders(top, &all, row);
    } else {
        draw_line(&all, TOP_PLAIN, "  is not among those that are listed any more");
    }
    draw_part(top, page, &all);
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

/* What is sorted how, which of it, and how much of that is seen. */
static void draw_title(const struct top *top, struct top_page *page, uint64_t room)
{
    const json_t *sums = json_object_get(top->snapshot, "sums");
    uint64_t shown = top->n_rows - top->first < room ? top->n_rows - top->first : room;
    uint64_t n = json_array_size(json_object_get(top->snapshot, views[top->view].listing));
    char filter[128] = "", clean[128], part[80] = "";

    if (top->view == TOP_BUFFERS) {
        top_format_filter(&top->filter, filter, sizeof(filter));
        if (n < (uint64_t)top_number(sums, "buffers"))
            n = (uint64_t)top_number(sums, "buffers");
    }
    if (shown && shown < n)
        (void)snprintf(part, sizeof(part), ": %" PRIu64 " to %" PRIu64 " of %" PRIu64, top->first + 1,
                       top->first + shown, n);
    draw_line(page, TOP_PLAIN, "%s by %s%s%s%s", top_view_words[top->view], top_sort_words[top->sort],
              *filter ? ", only " : "", text_clean(filter, clean, sizeof(clean)), part);
}

/* A row; of a session's buffers, with how it holds this one. */
static json_t *draw_row_of(const struct top *top, json_t *row)
{
    const json_t *holders = json_object_get(row, "holders");
    size_t index;
    json_t *holder;

    if (top->view != TOP_BUFFERS || !top->filter.session)
        return json_incref(row);
    json_array_foreach(holders, index, holder) {
        json_t *both;

        if ((uint64_t)top_number(holder, "session") != top->filter.session)
            continue;
        both = draw_hold(top, holder);
        (void)json_object_update(both, row);
        return both;
    }
    return json_incref(row);
}

static void draw_rows(struct top *top, struct top_page *page)
{
    json_t *rows = json_object_get(top->snapshot, views[top->view].listing);
    const struct draw_column *columns =
        top->view == TOP_BUFFERS && top->filter.session ? session_view : views[top->view].columns;
    const uint64_t now_ms = (uint64_t)top_number(top->snapshot, "at_ms");
    uint64_t room, n;

    if (top->view != TOP_BUFFERS)
        top_sort_rows(rows, top_sort_key(top->sort), top->sort == TOP_BY_OLDEST);
    n = json_array_size(rows);
    top->n_rows = page->height || n < top->most ? n : top->most;
    room = page->height ? (page->height > page->n + 3 ? page->height - page->n - 3 : 0) : top->n_rows;
    if (page->height)
        draw_scroll(top, room);
    draw_title(top, page, room);
    draw_row(page, TOP_HEADING, page->height ? "  " : "", columns, NULL, now_ms);
    for (uint64_t i = 0; i < room && top->first + i < top->n_rows; i++) {
        bool selected = page->height && top->first + i == top->selected;
        json_t *row = draw_row_of(top, json_array_get(rows, top->first + i));

        draw_row(page, selected ? TOP_SELECTED : TOP_PLAIN,
                 !page->height ? ""
                 : selected    ? "> "
                               : "  ",
                 columns, row, now_ms);
        json_decref(row);
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
              top->detail ? "Esc back  q quit  Up Down scroll"
                          : "q quit  Tab view  s sort  / filter  Up Down Enter look into  Esc back  r refresh");
}
