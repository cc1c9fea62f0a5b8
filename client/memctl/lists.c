/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that show something. rows.c has the columns.
 *
 * Keys are documented in memctl(1) and do not change. Numbers are numbers. Addresses are hexadecimal strings: many JSON
 * readers lose the low bits of a large number, and people read addresses in hexadecimal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "memctl/command.h"
#include "memctl/openers.h"
#include "memctl/output.h"
#include "memctl/rows.h"
#include "memctl/text.h"

/* A listing of the library as a command: the items of memclient_list_PLURAL() become rows of SINGULAR_columns. */
#define LISTING(plural, singular, type)                                                     \
    static int singular##_item(const struct type *item, void *data)                         \
    {                                                                                       \
        return output_item(data, item);                                                     \
    }                                                                                       \
    static int run_##plural(struct invocation *invocation, struct memclient_context *ctx)   \
    {                                                                                       \
        struct output output;                                                               \
                                                                                            \
        output_init(&output, invocation->json, singular##_columns);                         \
        return output_end(&output, memclient_list_##plural(ctx, singular##_item, &output)); \
    }

/* ---- status ------------------------------------------------------------------------------------------------------ */

static int status_add_node(const struct memclient_node_info *node, void *data)
{
    struct capacity *sum = data;

    sum->capacity += node->capacity;
    sum->used += node->used;
    return 0;
}

/* Declared pools are parts of the pools of nodes. */
static int status_add_huge_pool(const struct memclient_pool_info *pool, void *data)
{
    struct capacity *sum = data;

    if (pool->pages == MEMCLIENT_PAGES_HUGETLB && !pool->declared) {
        sum->huge_capacity += pool->capacity;
        sum->huge_used += pool->used;
    }
    return 0;
}

static int run_status(struct invocation *invocation, struct memclient_context *ctx)
{
    struct status_row row = {.status = MEMCLIENT_BROKER_INFO_INIT, .connection = MEMCLIENT_CONTEXT_INFO_INIT};
    struct output output;
    int r;

    r = memclient_context_query(ctx, &row.connection);
    if (!r)
        r = memclient_broker_query(ctx, &row.status);
    if (!r)
        r = memclient_list_nodes(ctx, status_add_node, &row.capacity);
    if (!r)
        r = memclient_list_pools(ctx, status_add_huge_pool, &row.capacity);
    if (r < 0)
        return r;
    output_init(&output, invocation->json, status_columns);
    output.vertical = true;
    return output_end(&output, output_item(&output, &row));
}

/* ---- listings ---------------------------------------------------------------------------------------------------- */

LISTING(nodes, node, memclient_node_info)
LISTING(pools, pool, memclient_pool_info)
LISTING(buffers, buffer, memclient_buffer_info)
LISTING(sessions, session, memclient_session_info)
LISTING(reservations, reservation, memclient_reservation_info)
LISTING(names, name, memclient_name_info)
LISTING(tokens, token, memclient_token_info)

/* ---- leaks ------------------------------------------------------------------------------------------------------- */

struct leaks {
    struct output output;
    uint64_t n, bytes;
};

static int leak_add_item(const struct memclient_buffer_info *info, void *data)
{
    struct leaks *leaks = data;

    if (!info->detached_ms)
        return 0;
    leaks->n++;
    leaks->bytes += info->bytes;
    return output_item(&leaks->output, info);
}

/* Adds the maker's program to its rows, if the process still has a session that is older than the buffer. A younger
 * session may be of another process with the same pid. */
static int leak_name_makers(const struct memclient_session_info *session, void *data)
{
    struct leaks *leaks = data;
    size_t index;
    json_t *row;

    json_array_foreach(leaks->output.rows, index, row)
        if (json_integer_value(json_object_get(row, "pid")) == session->pid &&
            json_integer_value(json_object_get(row, "uid")) == session->uid &&
            json_integer_value(json_object_get(row, "created_ms")) >= (json_int_t)session->created_ms &&
            *session->program && json_object_set_new(row, "program", json_string(session->program)))
            return -ENOMEM;
    return 0;
}

/* Adds the processes that have it. */
static int leak_find_openers(struct leaks *leaks, struct memclient_context *ctx)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    int r = memclient_broker_query(ctx, &status);

    return r ? r : openers_add(leaks->output.rows, "open_in", (pid_t)status.broker_pid, (pid_t)status.keeper_pid);
}

static int run_leaks(struct invocation *invocation, struct memclient_context *ctx)
{
    struct leaks leaks = {.n = 0};
    char bytes[24];
    int r;

    output_init(&leaks.output, invocation->json, leak_columns);
    r = memclient_list_buffers(ctx, leak_add_item, &leaks);
    if (!r && leaks.n)
        r = memclient_list_sessions(ctx, leak_name_makers, &leaks);
    if (!r && leaks.n)
        r = leak_find_openers(&leaks, ctx);
    if (!r && !leaks.n && !invocation->json) {
        json_decref(leaks.output.rows);
        puts("no leaks: every buffer is held by a session, a name or a keeping token");
        return output_flush();
    }
    r = output_end(&leaks.output, r);
    if (r || invocation->json)
        return r;
    format_bytes(leaks.bytes, bytes, sizeof(bytes));
    printf("%" PRIu64 " buffer%s, %s, only held by descriptors and mappings outside of any session\n", leaks.n,
           plural(leaks.n), bytes);
    return output_flush();
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

static int run_check(struct invocation *invocation, struct memclient_context *ctx)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    int r;

    r = memclient_broker_check(ctx, &result);
    if (r < 0)
        return r;
    r = output_one_item(invocation->json, check_columns, &result);
    for (uint32_t i = 0; i < result.n_sentences; i++)
        say("check: %s", result.sentences[i]);
    return r ? r : result.faults ? EXIT_REFUSED : EXIT_DONE;
}

const struct command list_commands[] = {
    {.name = "status",
     .summary = "Show the broker: its processes, what it holds, its limits",
     .help = "What each line means is in memctl(1), as for the columns of all listings.\n",
     .run = run_status},
    {.name = "nodes", .summary = "List the NUMA nodes", .run = run_nodes},
    {.name = "pools", .summary = "List the pools that memory comes from", .run = run_pools},
    {.name = "buffers",
     .summary = "List buffers",
     .help = "Your own, or everybody's if you are root or the broker's user.\n",
     .run = run_buffers},
    {.name = "leaks",
     .summary = "List buffers that only descriptors outside of any session still hold",
     .help = "Nothing refers to them any more, but some process still has them open or mapped: a descriptor\n"
             "that was passed on and forgotten, or a child that lives on. They stay charged until it closes\n"
             "them. OPEN-IN shows the processes that you may look into.\n",
     .run = run_leaks},
    {.name = "sessions", .summary = "List sessions: which processes hold what", .run = run_sessions},
    {.name = "reservations", .summary = "List the ranges of the address arena in use", .run = run_reservations},
    {.name = "names", .summary = "List names", .run = run_names},
    {.name = "tokens", .summary = "List tokens, without their secrets", .run = run_tokens},
    {.name = "check",
     .summary = "Verify the broker's accounts against its records",
     .help = "For root and the broker's user. Each fault is reported in a sentence; if there is one, the exit\n"
             "status is 1.\n",
     .run = run_check},
    {.name = NULL},
};
