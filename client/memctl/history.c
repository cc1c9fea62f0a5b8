/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands about what happened, and about what users may have: why, events and limits.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "memctl/history.h"
#include "memctl/line.h"
#include "memctl/text.h"

/* How often `events --follow` asks a broker that has no events for that; how far back `why` looks if it is not told. */
enum { FOLLOW_MS = 500, WHY_MS = 3600000 };

struct history_query {
    bool (*wanted)(const struct memclient_history_entry *entry);
    uint64_t begun_ms;
    uint64_t last; /* serial */
    struct output output;
};

/* ---- which ------------------------------------------------------------------------------------------------------- */

static bool is_selected(const struct memclient_history_entry *entry)
{
    unsigned by = line.share.flags;

    if (line.kind && entry->kind != line.kind)
        return false;
    if (by & MEMCLIENT_TOKEN_ONLY_UID && entry->uid != line.share.uid)
        return false;
    return !(by & MEMCLIENT_TOKEN_ONLY_PID) || entry->pid == line.share.pid;
}

/* Did something go wrong that somebody may ask about? */
static bool is_trouble(const struct memclient_history_entry *entry)
{
    if (entry->kind == MEMCLIENT_HISTORY_REFUSED || entry->kind == MEMCLIENT_HISTORY_WAITED)
        return true;
    if (entry->kind != MEMCLIENT_HISTORY_ENDED)
        return false;
    return entry->end != MEMCLIENT_END_GOODBYE && (entry->end != MEMCLIENT_END_EXITED || entry->exit_status);
}

static bool is_recent(const struct memclient_history_entry *entry, const struct history_query *query)
{
    return !line.since_ms || entry->at_ms + line.since_ms >= query->begun_ms;
}

/* What happens while they are listed comes last, and may come for ever. */
static int query_add(const struct memclient_history_entry *entry, void *data)
{
    struct history_query *query = data;

    if (entry->at_ms > query->begun_ms)
        return 1;
    query->last = entry->serial;
    if (!query->wanted(entry) || !is_selected(entry) || !is_recent(entry, query))
        return 0;
    return output_item(&query->output, entry);
}

static int query_run(struct history_query *query, struct memclient_context *ctx)
{
    int r;

    query->begun_ms = clock_wall_ms();
    r = memclient_list_history(ctx, query->last, query_add, query);
    return r > 0 ? 0 : r;
}

/* ---- why --------------------------------------------------------------------------------------------------------- */

static int parse_events(struct invocation *invocation)
{
    int r = parse_options(invocation);

    return r ? r : parse_end(invocation);
}

static int run_why(struct invocation *invocation, struct memclient_context *ctx)
{
    struct history_query query = {.wanted = is_trouble};
    int r;

    if (!line.since_ms)
        line.since_ms = WHY_MS;
    output_init(&query.output, invocation->json, history_columns);
    r = query_run(&query, ctx);
    if (!r && !invocation->json && !json_array_size(query.output.rows)) {
        json_decref(query.output.rows);
        puts("nothing was refused or waited for, and nothing died");
        return output_flush();
    }
    return output_end(&query.output, r);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static bool is_anything(const struct memclient_history_entry *entry)
{
    return entry->serial;
}

static const char *row_text(const json_t *row, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(row, key));

    return value ? text_clean(value, text, size) : "-";
}

/* A line for each, since nobody knows how wide the next one will be. */
static void follow_print(const json_t *row)
{
    time_t seconds = (time_t)(json_integer_value(json_object_get(row, "at_ms")) / 1000);
    char when[32] = "", kind[32], program[512], detail[TEXT_MAX];
    struct tm tm;

    if (localtime_r(&seconds, &tm))
        (void)strftime(when, sizeof(when), "%H:%M:%S", &tm);
    printf("%s  %-8s uid %" JSON_INTEGER_FORMAT " pid %" JSON_INTEGER_FORMAT " (%s) ×%" JSON_INTEGER_FORMAT "  %s\n",
           when, row_text(row, "kind", kind, sizeof(kind)), json_integer_value(json_object_get(row, "uid")),
           json_integer_value(json_object_get(row, "pid")), row_text(row, "program", program, sizeof(program)),
           json_integer_value(json_object_get(row, "count")), row_text(row, "detail", detail, sizeof(detail)));
}

/* An object a line, for programs that read on. */
static void follow_print_json(const json_t *row)
{
    (void)json_dumpf(row, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
}

/* Until the history has something new, or may have, since a broker was lost. < 0: `fd` is none. */
static int follow_wait(struct memclient_context *ctx, int fd)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    if (fd < 0) {
        (void)poll(NULL, 0, FOLLOW_MS);
        return 0;
    }
    while (memclient_event_next(ctx, &event) < 0)
        if (poll(&wait, 1, -1) < 0)
            return -errno;
    return 0;
}

static int follow(struct history_query *query, const struct invocation *invocation, struct memclient_context *ctx)
{
    int fd = -1;

    /* before it is listed, so that nothing is missed */
    if (!memclient_event_subscribe(ctx, MEMCLIENT_EVENT_HISTORY) && memclient_event_fd(ctx, &fd) < 0)
        fd = -1;
    for (;;) {
        size_t index;
        json_t *row;
        int r;

        output_init(&query->output, invocation->json, history_columns);
        r = query_run(query, ctx);
        json_array_foreach(query->output.rows, index, row)
            (invocation->json ? follow_print_json : follow_print)(row);
        json_decref(query->output.rows);
        if (!r)
            r = output_flush();
        if (!r)
            r = follow_wait(ctx, fd);
        if (r)
            return r;
    }
}

static int run_events(struct invocation *invocation, struct memclient_context *ctx)
{
    struct history_query query = {.wanted = is_anything};

    if (line.follow)
        return follow(&query, invocation, ctx);
    output_init(&query.output, invocation->json, history_columns);
    return output_end(&query.output, query_run(&query, ctx));
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static int limit_add(const struct memclient_limit_info *info, void *data)
{
    return info->uid == line.share.uid ? output_item(data, info) : 0;
}

static int run_limits(struct invocation *invocation, struct memclient_context *ctx)
{
    struct output output;

    if (!(line.share.flags & MEMCLIENT_TOKEN_ONLY_UID))
        line.share.uid = geteuid();
    output_init(&output, invocation->json, limit_columns);
    return output_end(&output, memclient_list_limits(ctx, limit_add, &output));
}

const struct command history_commands[] = {
    {.name = "why",
     .synopsis = "[--uid USER] [--pid PID] [--since TIME]",
     .summary = "Show what was refused or waited for, and which programs died",
     .help = "With the numbers of that moment, and who had most. Your own, or everybody's if you are root or the\n"
             "broker's user. Of the last hour, unless --since says otherwise.\n",
     .options = "UIS",
     .parse = parse_events,
     .run = run_why},
    {.name = "events",
     .synopsis = "[--follow] [--kind KIND] [--uid USER] [--pid PID] [--since TIME]",
     .summary = "Show all that happened, and with --follow what happens",
     .help = "KIND is refused, waited, ended, started or done. With --follow and --json each event is an object on a\n"
             "line of its own. It goes on when the broker is replaced.\n",
     .options = "oyUIS",
     .parse = parse_events,
     .run = run_events},
    {.name = "limits",
     .synopsis = "[--uid USER]",
     .summary = "Show what you may have, how much of it is used, and what to configure",
     .help = "With --uid, for root and the broker's user: what another user may have. Users who have nothing are\n"
             "not known.\n",
     .options = "U",
     .parse = parse_events,
     .run = run_limits},
    {.name = NULL},
};
