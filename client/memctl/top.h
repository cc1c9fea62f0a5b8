/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memctl top: a snapshot of the broker, drawn again and again.
 *
 * A snapshot is a JSON object with the documented keys, whose rows have those of the listings. So --json prints it as
 * it is, and a recorded one is drawn like one of now. It is taken by collect.c or read by replay.c of this family,
 * becomes lines in draw.c, which the terminal (screen.c) and --once (top.c) show.
 */
#pragma once

#include <jansson.h>
#include <memclient/memclient.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum top_view { TOP_BUFFERS, TOP_PROCESSES, TOP_USERS, TOP_VIEWS };

/* What the rows are sorted by; not every view has each. */
enum top_sort {
    TOP_BY_BYTES,
    TOP_BY_HOLDS,
    TOP_BY_OLDEST,
    TOP_BY_NEWEST,
    TOP_BY_RATE,
    TOP_BY_REQUESTS,
    TOP_BY_WAITING,
    TOP_SORTS
};

/* Which buffers; -1, 0 and "" choose all. */
struct top_filter {
    int64_t uid;
    int64_t pid;
    uint64_t session;
    char pool[MEMCLIENT_POOL_NAME_SIZE];
};

struct top {
    enum top_view view;
    enum top_sort sort;
    struct top_filter filter;
    uint64_t most; /* rows of buffers */
    uint64_t interval_ms;
    uint64_t selected;     /* the row with the marker, … */
    uint64_t first;        /* … and the first one that is shown */
    uint64_t n_rows;       /* as last drawn */
    uint64_t detail;       /* a buffer's id: its details are shown, and no rows; 0 = none */
    unsigned detail_first; /* … from which line on */
    json_t *open_in;       /* … and the processes that have it */
    json_t *snapshot;      /* NULL: there is none yet */
    json_t *recorded;      /* what is replayed, or NULL */
    char trouble[512];     /* why the latest snapshot could not be taken; "" if it could */
};

/* The words of the enums, up to a NULL. */
extern const char *const top_view_words[];
extern const char *const top_sort_words[];

/* The next sort that the view has. */
enum top_sort top_next_sort(enum top_view view, enum top_sort sort);
/* "uid:1000", "pid:123", "session:12", "pool:NAME", or "" for all. False: it is none. */
bool top_parse_filter(const char *text, struct top_filter *filter);
/* Likewise as a text; "" for all. */
void top_format_filter(const struct top_filter *filter, char *text, size_t size);

/* top_collect.c: takes a snapshot of the broker. 0, or a negative errno with memclient_error() set; then the one before
 * stays. */
int top_collect(struct top *top, struct memclient_context *ctx);
/* The processes that have the buffer of the details open or mapped. 0 or a negative errno. */
int top_find_openers(struct top *top);
/* A number of a row; 0 if it has none of that name. */
static inline json_int_t top_number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}
/* The sums of a snapshot; NULL: there is no memory. */
json_t *top_pack_sums(const struct memclient_buffer_sums *sums);
/* The row of a listing in the snapshot whose member `key` is this number; NULL: there is none. */
const json_t *top_find(const struct top *top, const char *listing, const char *key, uint64_t number);
/* Sorts a listing: the greatest number of `key` first, or the smallest. */
void top_sort_rows(json_t *rows, const char *key, bool smallest_first);
/* The key of a sort. */
const char *top_sort_key(enum top_sort sort);

/* top_replay.c: reads a recorded snapshot, or a listing of buffers. NULL, or what is wrong with it. */
const char *top_load(struct top *top, const char *path);
/* Makes the snapshot of the record, as filter and sort have it. 0 or -ENOMEM. */
int top_replay(struct top *top);

/* ---- lines ------------------------------------------------------------------------------------------------------- */

enum top_style { TOP_PLAIN, TOP_TITLE, TOP_HEADING, TOP_SELECTED, TOP_TROUBLE, TOP_KEYS };

struct top_line {
    enum top_style style;
    char text[1024];
};

enum { TOP_LINES_MAX = 512 };

struct top_page {
    unsigned width;  /* columns */
    unsigned height; /* lines that there is room for; 0: as many as there are, without keys and a marker */
    unsigned n;
    struct top_line lines[TOP_LINES_MAX];
};

/* top_draw.c: makes the lines of the snapshot. */
void top_draw(struct top *top, struct top_page *page);

/* top_screen.c: shows it until the user has enough of it. An exit status. */
struct invocation;
int top_run_screen(struct top *top, const struct invocation *invocation);
/* Takes a snapshot, from the broker or the record. *ctx is opened if it is NULL. An errno is told in top->trouble. */
int top_refresh(struct top *top, const struct invocation *invocation, struct memclient_context **ctx);
