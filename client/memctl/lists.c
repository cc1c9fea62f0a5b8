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

static int
print_rows(struct output *output, int r)
{
    if (!r && output_print(output) < 0) {
        fputs("memctl: cannot write to standard output\n", stderr);
        r = EXIT_REFUSED;
    }
    output_deinit(output);
    return r;
}

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
        return print_rows(&output, memclient_list_##plural(ctx, singular##_item, &output));                  \
    }

/* ---- status ------------------------------------------------------------------------------------ */

static const struct column status_columns[] = {
    {"KEEPER", "keeper_pid", COLUMN_TEXT},
    {"BROKER", "broker_pid", COLUMN_TEXT},    {"UID", "broker_uid", COLUMN_TEXT},
    {"UP", "started_ms", COLUMN_SINCE},       {"SESSIONS", "sessions", COLUMN_TEXT},
    {"BUFFERS", "buffers", COLUMN_TEXT},      {"DETACHED", "buffers_detached", COLUMN_TEXT},
    {"ENDING", "buffers_ending", COLUMN_TEXT},
    {"BYTES", "bytes", COLUMN_BYTES},         {"NAMES", "names", COLUMN_TEXT},
    {"TOKENS", "tokens", COLUMN_TEXT},        {"RESERVATIONS", "reservations", COLUMN_TEXT},
    {"FDS", "fds", COLUMN_TEXT},              {"FD-LIMIT", "fds_limit", COLUMN_TEXT},
    {"RESTARTS", "restarts", COLUMN_TEXT},    {"QUARANTINED", "quarantined", COLUMN_TEXT},
    {"SIMULATED", "simulated", COLUMN_YES},   {"STALE-CONFIG", "config_stale", COLUMN_YES},
    {NULL, NULL, COLUMN_TEXT},
};

static int
run_status(struct invocation *invocation, struct memclient *ctx)
{
    struct memclient_broker_status status = MEMCLIENT_BROKER_STATUS_INIT;
    struct memclient_connection_info connection = MEMCLIENT_CONNECTION_INFO_INIT;
    struct output output;
    int r;

    r = memclient_connection(ctx, &connection);
    if (!r)
        r = memclient_status(ctx, &status);
    if (r < 0)
        return r;
    output_init(&output, invocation->json, status_columns);
    r = output_row(&output, row_status(&status, &connection));
    return print_rows(&output, r);
}

/* ---- nodes and pools --------------------------------------------------------------------------- */

static const struct column node_columns[] = {
    {"NODE", "node", COLUMN_TEXT},          {"TOTAL", "total", COLUMN_BYTES},
    {"CAPACITY", "capacity", COLUMN_BYTES}, {"USED", "used", COLUMN_BYTES},
    {"CPUS", "has_cpus", COLUMN_YES},       {"SIMULATED", "simulated", COLUMN_YES},
    {"DISTANCES", "distances", COLUMN_LIST}, {NULL, NULL, COLUMN_TEXT},
};

LISTING(nodes, node, memclient_node)

static const struct column pool_columns[] = {
    {"POOL", "name", COLUMN_TEXT},            {"NODES", "nodes", COLUMN_LIST},
    {"PAGES", "pages", COLUMN_TEXT},          {"PAGE", "page_size", COLUMN_BYTES},
    {"PLACEMENT", "placement", COLUMN_TEXT},  {"LAZY", "lazy", COLUMN_YES},
    {"CAPACITY", "capacity", COLUMN_BYTES},   {"USED", "used", COLUMN_BYTES},
    {"AVAILABLE", "available", COLUMN_BYTES}, {"BUFFERS", "buffers", COLUMN_TEXT},
    {"STOCK", "stock", COLUMN_BYTES},         {"SIMULATED", "simulated", COLUMN_YES},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(pools, pool, memclient_pool)

/* ---- what the broker keeps --------------------------------------------------------------------- */

const struct column buffer_columns[] = {
    {"ID", "ref", COLUMN_TEXT},        {"SIZE", "size", COLUMN_BYTES},     {"POOL", "pool", COLUMN_TEXT},
    {"STATE", "state", COLUMN_TEXT},   {"UID", "charged_uid", COLUMN_TEXT}, {"PID", "pid", COLUMN_TEXT},
    {"HOLDS", "holds", COLUMN_TEXT},   {"NAMES", "names", COLUMN_TEXT},    {"TOKENS", "tokens", COLUMN_TEXT},
    {"ADDRESS", "address", COLUMN_HEX}, {"AGE", "created_ms", COLUMN_SINCE}, {"FLAGS", "flags", COLUMN_LIST},
    {"NAME", "name", COLUMN_TEXT},     {NULL, NULL, COLUMN_TEXT},
};

LISTING(buffers, buffer, memclient_buffer_info)

/* ---- leaks ------------------------------------------------------------------------------------- */

static const struct column leak_columns[] = {
    {"ID", "ref", COLUMN_TEXT},        {"BYTES", "bytes", COLUMN_BYTES}, {"POOL", "pool", COLUMN_TEXT},
    {"SINCE", "detached_ms", COLUMN_SINCE}, {"UID", "charged_uid", COLUMN_TEXT}, {"USER", "user", COLUMN_TEXT},
    {"PID", "pid", COLUMN_TEXT},       {"PROGRAM", "program", COLUMN_TEXT}, {"INODE", "inode", COLUMN_TEXT},
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
            && json_object_set_new(row, "program", json_string(session->program)))
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
        output_deinit(&leaks.output);
        puts("no leaks: every buffer is held by a session, a name or a keeping token");
        return EXIT_DONE;
    }
    r = print_rows(&leaks.output, r);
    format_bytes(leaks.bytes, bytes, sizeof(bytes));
    if (!r && !invocation->json)
        printf("%" PRIu64 " buffer%s, %s, only held by descriptors and mappings outside of any session\n", leaks.n,
               leaks.n == 1 ? "" : "s", bytes);
    return r;
}

static const struct column session_columns[] = {
    {"SESSION", "id", COLUMN_TEXT},     {"UID", "uid", COLUMN_TEXT},
    {"PID", "pid", COLUMN_TEXT},        {"PROGRAM", "program", COLUMN_TEXT},
    {"CONNECTED", "connected", COLUMN_YES}, {"BYTES", "bytes", COLUMN_BYTES},
    {"HOLDS", "holds", COLUMN_TEXT},    {"TOKENS", "tokens", COLUMN_TEXT},
    {"RESERVATIONS", "reservations", COLUMN_TEXT}, {"AGE", "created_ms", COLUMN_SINCE},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(sessions, session, memclient_session)

static const struct column reservation_columns[] = {
    {"RESERVATION", "id", COLUMN_TEXT}, {"ADDRESS", "address", COLUMN_HEX},
    {"SIZE", "size", COLUMN_BYTES},     {"SESSION", "session", COLUMN_SOME},
    {"UID", "uid", COLUMN_TEXT},        {"BUFFERS", "buffers", COLUMN_TEXT},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(reservations, reservation, memclient_reservation_info)

static const struct column name_columns[] = {
    {"NAME", "name", COLUMN_TEXT},   {"UID", "uid", COLUMN_TEXT},
    {"BUFFER", "buffer", COLUMN_TEXT}, {"POLICY", "policy", COLUMN_TEXT},
    {"GROUP", "group_rights", COLUMN_TEXT}, {"GID", "gid", COLUMN_TEXT},
    {"OTHERS", "other_rights", COLUMN_TEXT}, {"SESSION", "session", COLUMN_SOME},
    {NULL, NULL, COLUMN_TEXT},
};

LISTING(names, name, memclient_name)

static const struct column token_columns[] = {
    {"SERIAL", "serial", COLUMN_TEXT},   {"BUFFER", "buffer", COLUMN_TEXT},
    {"RIGHTS", "rights", COLUMN_TEXT},   {"KEEPING", "keeping", COLUMN_YES},
    {"USES", "uses_left", COLUMN_SOME},  {"EXPIRES-MS", "expires_ms", COLUMN_SOME},
    {"FOR-UID", "for_uid", COLUMN_TEXT}, {"FOR-GID", "for_gid", COLUMN_TEXT},
    {"FOR-PID", "for_pid", COLUMN_TEXT}, {"MAKER", "maker_uid", COLUMN_TEXT},
    {"SESSION", "session", COLUMN_SOME}, {NULL, NULL, COLUMN_TEXT},
};

LISTING(tokens, token, memclient_token_info)

/* ---- check ------------------------------------------------------------------------------------- */

static int
run_check(struct invocation *invocation, struct memclient *ctx)
{
    static const struct column columns[] = {{"BUFFERS", "buffers", COLUMN_TEXT},
                                            {"RECORDS", "records", COLUMN_TEXT},
                                            {"FAULTS", "faults", COLUMN_TEXT},
                                            {NULL, NULL, COLUMN_TEXT}};
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    struct output output;
    int r;

    r = memclient_check(ctx, &result);
    if (r < 0)
        return r;
    output_init(&output, invocation->json, columns);
    r = output_row(&output, row_check(&result));
    r = print_rows(&output, r);
    for (uint32_t i = 0; i < result.n_sentences; i++)
        fprintf(stderr, "memctl: check: %s\n", result.sentences[i]);
    return r ? r : result.faults ? EXIT_REFUSED : EXIT_DONE;
}

const struct command list_commands[] = {
    {.name = "status", .synopsis = "", .summary = "Show the broker: who it is, what it keeps, its limits",
     .help = "RESTARTS: brokers before it, of which it knows what they left. QUARANTINED: records of theirs that made\n"
             "no sense to it, which it leaves alone; its log names them.\n",
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
     .help = "Their life is over, but some process has them open or mapped and does not say so: a descriptor that was\n"
             "passed on and forgotten, a child that lives on. They stay charged until it lets go. To find it, look\n"
             "for the INODE: `lsof | grep INODE`.\n",
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
