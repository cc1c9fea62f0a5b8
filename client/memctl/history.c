/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands about what happened, and about what users may have: why, events and limits.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "memctl/history.h"
#include "memctl/line.h"
#include "memctl/text.h"

/* How far back `why` looks if it is not told. */
enum { WHY_MS = 3600000 };

/* ---- which ------------------------------------------------------------------------------------------------------- */

static bool is_selected(const struct memclient_history_entry *entry)
{
    unsigned by = line.share.flags;

    if (line.kinds.history && !(line.kinds.history & 1U << entry->kind))
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
    if (entry->kind == MEMCLIENT_HISTORY_STARTED)
        return entry->end == MEMCLIENT_END_DIED;
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

int history_query_run(struct history_query *query, struct memclient_context *ctx)
{
    int r;

    query->begun_ms = clock_wall_ms();
    r = memclient_list_history(ctx, query->last, query_add, query);
    return r > 0 ? 0 : r;
}

/* ---- why --------------------------------------------------------------------------------------------------------- */

static int parse_history(struct invocation *invocation)
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
    r = history_query_run(&query, ctx);
    if (!r && !invocation->json && !json_array_size(query.output.rows)) {
        json_decref(query.output.rows);
        puts("nothing was refused or waited for, and nothing died, that you may see");
        return output_flush();
    }
    return output_end(&query.output, r);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* What the broker keeps nothing of can only be followed. */
static int parse_past(const struct invocation *invocation)
{
    if (line.given)
        return usage_error(invocation, "what becomes of `%s' is shown with --follow only", line.given);
    for (const struct event_word *word = event_words; word->word; word++)
        if (line.kinds.events & word->event)
            return usage_error(invocation, "--kind %s is shown with --follow only", word->word);
    return parse_end(invocation);
}

static bool is_anything(const struct memclient_history_entry *entry)
{
    return entry->serial;
}

static int parse_events(struct invocation *invocation)
{
    int r = parse_any_reference(invocation);

    return r ? r : line.follow ? follow_parse(invocation) : parse_past(invocation);
}

static int run_events(struct invocation *invocation, struct memclient_context *ctx)
{
    struct history_query query = {.wanted = is_anything};

    if (line.follow)
        return follow_run(&query, invocation, ctx);
    output_init(&query.output, invocation->json, history_columns);
    return output_end(&query.output, history_query_run(&query, ctx));
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static int limit_add(const struct memclient_limit_info *info, void *data)
{
    return output_item(data, info);
}

/* For whom it is, to the pool's row. */
static int limit_add_allowed(const struct memclient_pool_info *pool, void *data)
{
    const struct output *output = data;
    size_t index;
    json_t *row;

    json_array_foreach(output->rows, index, row) {
        const char *of = json_string_value(json_object_get(row, "pool"));

        if (of && !strcmp(of, pool->name) && json_object_set_new(row, "allow", json_text(pool->allow)))
            return -ENOMEM;
    }
    return 0;
}

static int run_limits(struct invocation *invocation, struct memclient_context *ctx)
{
    struct output output;
    int r;

    if (!(line.share.flags & MEMCLIENT_TOKEN_ONLY_UID))
        line.share.uid = geteuid();
    output_init(&output, invocation->json, limit_columns);
    r = memclient_list_limits_of(ctx, line.share.uid, limit_add, &output);
    if (!r)
        r = memclient_list_pools(ctx, limit_add_allowed, &output);
    if (!r && !invocation->json && !json_array_size(output.rows)) {
        json_decref(output.rows);
        printf("user %u has nothing now, and this broker is too old to say what it may have\n",
               (unsigned)line.share.uid);
        return output_flush();
    }
    return output_end(&output, r);
}

const struct command history_commands[] = {
    {.name = "why",
     .synopsis = "[--uid USER] [--pid PID] [--since TIME]",
     .summary = "Show what was refused or waited for, and which programs and brokers died",
     .help = "With the numbers of that moment, and who had most. Your own, or everybody's if you are root or the\n"
             "broker's user. Of the last hour, unless --since says otherwise.\n",
     .options = "UIS",
     .parse = parse_history,
     .run = run_why},
    {.name = "events",
     .synopsis = "[--kind KIND[,KIND...]] [--uid USER] [--pid PID] [--since TIME] [--follow [BUFFER|NAME]]",
     .summary = "Show all that happened, and with --follow what happens",
     .help = "KIND is refused, waited, ended, started or done. With --follow it may also be held, left, died, death,\n"
             "published, discarded, moved, destroyed or name, of any buffer that you may see, or pressure or\n"
             "shutdown. With a buffer, what becomes of that is shown until it has ended; with a name, when that is\n"
             "bound and unbound, too. With --uid or --pid, of these only held, left, died and death are shown. With\n"
             "--json each event is an object on a line of its own. It goes on when the broker is replaced.\n",
     .options = "oyUIS",
     .parse = parse_events,
     .run = run_events},
    {.name = "limits",
     .synopsis = "[--uid USER]",
     .summary = "Show what you may have, how much of it is used, and what to configure",
     .help = "With --uid, for root and the broker's user: what another user may have. What it may have by one of its\n"
             "groups is known while it has a session.\n",
     .options = "U",
     .parse = parse_history,
     .run = run_limits},
    {.name = NULL},
};
