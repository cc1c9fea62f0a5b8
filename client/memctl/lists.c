/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that show: one JSON object per thing, and the columns that a table has of it.
 *
 * Keys are documented in memctl(1) and do not change. Numbers are numbers; addresses are hexadecimal strings, since
 * many JSON readers lose the low bits of a large number, and people read them in hexadecimal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "memctl/command.h"
#include "memctl/output.h"
#include "memctl/rows.h"
#include "memctl/text.h"

/* One listing of the library as a command: memclient_list_PLURAL() fills rows with row_SINGULAR(). */
#define LISTING(plural, singular, type)                                                                      \
    static int singular##_item(const struct type *item, void *data)                                          \
    {                                                                                                        \
        return output_row(data, row_##singular(item));                                                       \
    }                                                                                                        \
    static int run_##plural(struct invocation *invocation, struct memclient *ctx)                            \
    {                                                                                                        \
        struct output output;                                                                                \
                                                                                                             \
        output_init(&output, invocation->json, singular##_columns);                                          \
        return output_end(&output, memclient_list_##plural(ctx, singular##_item, &output));                  \
    }

/* ---- status ------------------------------------------------------------------------------------ */

static const struct column status_columns[] = {
    {"version", "version", COLUMN_TEXT},
    {"socket", "socket", COLUMN_TEXT},
    {"configuration", "config", COLUMN_TEXT},
    {"stale-configuration", "config_stale", COLUMN_YES},
    {"uid", "broker_uid", COLUMN_NUMBER},
    {"broker", "broker_pid", COLUMN_NUMBER},
    {"keeper", "keeper_pid", COLUMN_NUMBER},
    {"up", "started_ms", COLUMN_AGE},
    {"restarts", "restarts", COLUMN_NUMBER},
    {"simulated", "simulated", COLUMN_YES},
    {"capacity", "capacity", COLUMN_BYTES},
    {"used", "used", COLUMN_BYTES},
    {"huge-capacity", "huge_capacity", COLUMN_BYTES},
    {"huge-used", "huge_used", COLUMN_BYTES},
    {"bytes", "bytes", COLUMN_BYTES},
    {"buffers", "buffers", COLUMN_NUMBER},
    {"detached", "buffers_detached", COLUMN_NUMBER},
    {"ending", "buffers_ending", COLUMN_NUMBER},
    {"sessions", "sessions", COLUMN_NUMBER},
    {"names", "names", COLUMN_NUMBER},
    {"tokens", "tokens", COLUMN_NUMBER},
    {"reservations", "reservations", COLUMN_NUMBER},
    {"fds", "fds", COLUMN_NUMBER},
    {"fd-limit", "fds_limit", COLUMN_NUMBER},
    {"requests", "requests", COLUMN_NUMBER},
    {"refused", "refused", COLUMN_NUMBER},
    {"quarantined", "quarantined", COLUMN_NUMBER},
    {NULL, NULL, COLUMN_TEXT},
};

static int
add_node(const struct memclient_node *node, void *data)
{
    struct capacity *sum = data;

    sum->capacity += node->capacity;
    sum->used += node->used;
    return 0;
}

/* Declared pools are parts of those of the nodes. */
static int
add_huge_pool(const struct memclient_pool *pool, void *data)
{
    struct capacity *sum = data;

    if (pool->pages == MEMCLIENT_PAGES_HUGETLB && !pool->declared) {
        sum->huge_capacity += pool->capacity;
        sum->huge_used += pool->used;
    }
    return 0;
}

static int
run_status(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_broker_status status = MEMCLIENT_BROKER_STATUS_INIT;
    struct memclient_connection_info connection = MEMCLIENT_CONNECTION_INFO_INIT;
    struct capacity capacity = {.capacity = 0};
    struct output output;
    int r;

    r = memclient_connection(ctx, &connection);
    if (!r)
        r = memclient_status(ctx, &status);
    if (!r)
        r = memclient_list_nodes(ctx, add_node, &capacity);
    if (!r)
        r = memclient_list_pools(ctx, add_huge_pool, &capacity);
    if (r < 0)
        return r;
    output_init(&output, invocation->json, status_columns);
    output.vertical = true;
    return output_end(&output, output_row(&output, row_status(&status, &connection, &capacity)));
}

/* ---- nodes and pools --------------------------------------------------------------------------- */

static const struct column node_columns[] = {
    {"NODE", "node", COLUMN_NUMBER},
    {"TOTAL", "total", COLUMN_BYTES},
    {"CAPACITY", "capacity", COLUMN_BYTES},
    {"USED", "used", COLUMN_BYTES},
    {"CPUS", "has_cpus", COLUMN_YES},
    {"SIMULATED", "simulated", COLUMN_YES},
    {"DISTANCES", "distances", COLUMN_LIST},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(nodes, node, memclient_node)

static const struct column pool_columns[] = {
    {"POOL", "name", COLUMN_TEXT},
    {"NODES", "nodes", COLUMN_LIST},
    {"PAGES", "pages", COLUMN_TEXT},
    {"PAGE", "page_size", COLUMN_BYTES},
    {"PLACEMENT", "placement", COLUMN_TEXT},
    {"LAZY", "lazy", COLUMN_YES},
    {"CAPACITY", "capacity", COLUMN_BYTES},
    {"USED", "used", COLUMN_BYTES},
    {"AVAILABLE", "available", COLUMN_BYTES},
    {"BUFFERS", "buffers", COLUMN_NUMBER},
    {"STOCK", "stock", COLUMN_BYTES},
    {"SIMULATED", "simulated", COLUMN_YES},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(pools, pool, memclient_pool)

/* ---- what the broker keeps --------------------------------------------------------------------- */

const struct column buffer_columns[] = {
    {"ID", "id", COLUMN_NUMBER},
    {"SIZE", "size", COLUMN_BYTES},
    {"POOL", "pool", COLUMN_TEXT},
    {"STATE", "state", COLUMN_TEXT},
    {"UID", "charged_uid", COLUMN_NUMBER},
    {"PID", "pid", COLUMN_NUMBER},
    {"HOLDS", "holds", COLUMN_NUMBER},
    {"NAMES", "names", COLUMN_NUMBER},
    {"TOKENS", "tokens", COLUMN_NUMBER},
    {"ADDRESS", "address", COLUMN_TEXT},
    {"AGE", "created_ms", COLUMN_AGE},
    {"FLAGS", "flags", COLUMN_LIST},
    {"NAME", "name", COLUMN_TEXT},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(buffers, buffer, memclient_buffer_info)

/* ---- leaks ------------------------------------------------------------------------------------- */

static const struct column leak_columns[] = {
    {"ID", "id", COLUMN_NUMBER},
    {"BYTES", "bytes", COLUMN_BYTES},
    {"POOL", "pool", COLUMN_TEXT},
    {"SINCE", "detached_ms", COLUMN_AGE},
    {"UID", "charged_uid", COLUMN_NUMBER},
    {"USER", "user", COLUMN_TEXT},
    {"PID", "pid", COLUMN_NUMBER},
    {"PROGRAM", "program", COLUMN_TEXT},
    {"INODE", "inode", COLUMN_NUMBER},
    {NULL, NULL, COLUMN_TEXT},
};

struct leaks {
    struct output output;
    uint64_t n, bytes;
};

static int
leak_item(const struct memclient_buffer_info *info, void *data)
{
    struct leaks *leaks = data;

    if (info->state != MEMCLIENT_STATE_DETACHED)
        return 0;
    leaks->n++;
    leaks->bytes += info->bytes;
    return output_row(&leaks->output, row_leak(info));
}

/* The maker's program, if a session of the process that made a buffer is older than the buffer: then it is the same
 * process. Nobody knows the others' any more. */
static int
name_makers(const struct memclient_session *session, void *data)
{
    struct leaks *leaks = data;
    size_t index;
    json_t *row;

    json_array_foreach (leaks->output.rows, index, row)
        if (json_integer_value(json_object_get(row, "pid")) == session->pid
            && json_integer_value(json_object_get(row, "uid")) == session->uid
            && json_integer_value(json_object_get(row, "created_ms")) >= (json_int_t)session->created_ms
            && *session->program && json_object_set_new(row, "program", json_string(session->program)))
            return -ENOMEM;
    return 0;
}

static int
run_leaks(struct invocation *invocation, struct memclient *ctx)
{
    struct leaks leaks = {.n = 0};
    char bytes[24];
    int r;

    output_init(&leaks.output, invocation->json, leak_columns);
    r = memclient_list_buffers(ctx, leak_item, &leaks);
    if (!r && leaks.n)
        r = memclient_list_sessions(ctx, name_makers, &leaks);
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
           leaks.n == 1 ? "" : "s", bytes);
    return output_flush();
}

static const struct column session_columns[] = {
    {"SESSION", "id", COLUMN_NUMBER},
    {"UID", "uid", COLUMN_NUMBER},
    {"PID", "pid", COLUMN_NUMBER},
    {"PROGRAM", "program", COLUMN_TEXT},
    {"CONNECTED", "connected", COLUMN_YES},
    {"BYTES", "bytes", COLUMN_BYTES},
    {"HOLDS", "holds", COLUMN_NUMBER},
    {"TOKENS", "tokens", COLUMN_NUMBER},
    {"RESERVATIONS", "reservations", COLUMN_NUMBER},
    {"AGE", "created_ms", COLUMN_AGE},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(sessions, session, memclient_session)

static const struct column reservation_columns[] = {
    {"RESERVATION", "id", COLUMN_NUMBER},
    {"ADDRESS", "address", COLUMN_TEXT},
    {"SIZE", "size", COLUMN_BYTES},
    {"SESSION", "session", COLUMN_NUMBER},
    {"UID", "uid", COLUMN_NUMBER},
    {"BUFFERS", "buffers", COLUMN_NUMBER},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(reservations, reservation, memclient_reservation_info)

static const struct column name_columns[] = {
    {"NAME", "name", COLUMN_TEXT},
    {"UID", "uid", COLUMN_NUMBER},
    {"BUFFER", "buffer", COLUMN_NUMBER},
    {"POLICY", "policy", COLUMN_TEXT},
    {"GROUP", "group_rights", COLUMN_TEXT},
    {"GID", "gid", COLUMN_NUMBER},
    {"OTHERS", "other_rights", COLUMN_TEXT},
    {"SESSION", "session", COLUMN_NUMBER},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(names, name, memclient_name)

static const struct column token_columns[] = {
    {"SERIAL", "serial", COLUMN_NUMBER},
    {"BUFFER", "buffer", COLUMN_NUMBER},
    {"RIGHTS", "rights", COLUMN_TEXT},
    {"KEEPING", "keeping", COLUMN_YES},
    {"USES", "uses_left", COLUMN_NUMBER},
    {"EXPIRES", "expires_ms", COLUMN_SPAN},
    {"FOR-UID", "for_uid", COLUMN_NUMBER},
    {"FOR-GID", "for_gid", COLUMN_NUMBER},
    {"FOR-PID", "for_pid", COLUMN_NUMBER},
    {"MAKER", "maker_uid", COLUMN_NUMBER},
    {"SESSION", "session", COLUMN_NUMBER},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(tokens, token, memclient_token_info)

/* ---- check ------------------------------------------------------------------------------------- */

static int
run_check(struct invocation *invocation, struct memclient *ctx)
{
    static const struct column columns[] = {{"BUFFERS", "buffers", COLUMN_NUMBER},
                                            {"RECORDS", "records", COLUMN_NUMBER},
                                            {"FAULTS", "faults", COLUMN_NUMBER},
                                            {NULL, NULL, COLUMN_TEXT}};
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    int r;

    r = memclient_check(ctx, &result);
    if (r < 0)
        return r;
    r = output_one(invocation->json, columns, row_check(&result));
    for (uint32_t i = 0; i < result.n_sentences; i++)
        say("check: %s", result.sentences[i]);
    return r ? r : result.faults ? EXIT_REFUSED : EXIT_DONE;
}

const struct command list_commands[] = {
    {.name = "status", .synopsis = "", .summary = "Show the broker: who it is, what it keeps, its limits",
     .help = "What each line means is in memctl(1), as for the columns of all listings.\n",
     .parse = parse_nothing, .run = run_status},
    {.name = "nodes", .synopsis = "", .summary = "List the NUMA nodes", .help = "",
     .parse = parse_nothing, .run = run_nodes},
    {.name = "pools", .synopsis = "", .summary = "List the pools that memory comes from", .help = "",
     .parse = parse_nothing, .run = run_pools},
    {.name = "buffers", .synopsis = "", .summary = "List buffers",
     .help = "Your own, or everybody's if you are root or the broker's user.\n",
     .parse = parse_nothing, .run = run_buffers},
    {.name = "leaks", .synopsis = "",
     .summary = "List buffers that only descriptors outside of any session still hold",
     .help = "Their life is over, but some process has them open or mapped and does not say so: a\n"
             "descriptor that was passed on and forgotten, a child that lives on. They stay charged\n"
             "until it lets go. To find it, look for the INODE: `lsof | grep INODE`.\n",
     .parse = parse_nothing, .run = run_leaks},
    {.name = "sessions", .synopsis = "", .summary = "List sessions: which processes hold what", .help = "",
     .parse = parse_nothing, .run = run_sessions},
    {.name = "reservations", .synopsis = "", .summary = "List the ranges of the address arena in use", .help = "",
     .parse = parse_nothing, .run = run_reservations},
    {.name = "names", .synopsis = "", .summary = "List names", .help = "", .parse = parse_nothing, .run = run_names},
    {.name = "tokens", .synopsis = "", .summary = "List tokens, without their secrets", .help = "",
     .parse = parse_nothing, .run = run_tokens},
    {.name = "check", .synopsis = "",
     .summary = "Have the broker prove its accounts against its records",
     .help = "For root and the broker's user. Exit status 1 and a sentence for each fault, if there is one.\n",
     .parse = parse_nothing, .run = run_check},
    {.name = NULL},
};
