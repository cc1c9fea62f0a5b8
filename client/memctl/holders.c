/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who keeps buffers alive: sessions that hold them, names, tokens, and processes outside of any session.
 *
 * It is put together from the listings of buffers, sessions and names, so that a buffer that comes or goes meanwhile
 * may be shown without all that it has.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memctl/history.h"
#include "memctl/line.h"
#include "memctl/openers.h"
#include "memctl/text.h"

#define INT(value) ((json_int_t)(value))

static struct holders_query {
    enum { HOLDERS_OF_BUFFER, HOLDERS_OF_PID, HOLDERS_OF_USER } of;
    uint64_t buffer;
    bool seen; /* there is such a buffer */
    pid_t pid;
    uid_t uid;
} query;

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static json_t *holders_row(const struct memclient_buffer_info *info, const char *by)
{
    static const char *const states[] = {"committing", "live", "detached", "ending", NULL};

    return json_pack("{s:I, s:I, s:o, s:o, s:I, s:s, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:[], s:I}", "buffer",
                     INT(info->id), "bytes", INT(info->bytes), "pool", json_text(info->pool), "state",
                     json_word(states, info->state), "created_ms", INT(info->created_ms), "by", by, "session", "uid",
                     "pid", "program", "rights", "claim", "since_ms", "session_since_ms", "name", "open_in", "inode",
                     INT(info->inode));
}

static int holders_add_hold(struct output *output, const struct memclient_buffer_info *info, uint32_t i)
{
    json_t *row = holders_row(info, info->holder_cached[i] ? "cache" : "session");
    char rights[RIGHTS_TEXT];

    format_rights(info->holder_rights[i], rights);
    if (json_object_set_new(row, "session", json_integer(INT(info->holders[i]))) ||
        json_object_set_new(row, "rights", json_text(rights)) ||
        (info->holder_claims[i] && json_object_set_new(row, "claim", json_word(claim_words, info->holder_claims[i]))) ||
        (info->holder_since_ms[i] &&
         json_object_set_new(row, "since_ms", json_integer(INT(info->holder_since_ms[i]))))) {
        json_decref(row);
        row = NULL;
    }
    return output_row(output, row);
}

/* Those that are not in the list of holders, since it is bounded or they are others'. */
static int holders_add_rest(struct output *output, const struct memclient_buffer_info *info)
{
    char text[64];

    if (info->holds <= info->n_holders)
        return 0;
    (void)snprintf(text, sizeof(text), "%" PRIu32 " other session%s", info->holds - info->n_holders,
                   plural(info->holds - info->n_holders));
    return output_row(output, holders_row(info, text));
}

/* Nobody's session has it any more: it is the business of the user who pays for it. */
static int holders_add_open(struct output *output, const struct memclient_buffer_info *info)
{
    json_t *row = holders_row(info, "open");

    (void)json_object_set_new(row, "uid", json_integer(INT(info->charged_uid)));
    return output_row(output, row);
}

static int holders_add_buffer(const struct memclient_buffer_info *info, void *data)
{
    struct output *output = data;
    int r = 0;

    if (query.of == HOLDERS_OF_BUFFER && info->id != query.buffer)
        return 0;
    query.seen = true;
    for (uint32_t i = 0; i < info->n_holders && !r; i++)
        r = holders_add_hold(output, info, i);
    if (!r)
        r = holders_add_rest(output, info);
    if (!r && info->tokens)
        r = output_row(output, holders_row(info, "tokens"));
    if (!r && info->detached_ms)
        r = holders_add_open(output, info);
    if (!r && info->names) {
        json_t *row = holders_row(info, "name");

        (void)json_object_set_new(row, "name", json_text(info->name));
        r = output_row(output, row);
    }
    return r;
}

/* ---- what is known of them --------------------------------------------------------------------------------------- */

static int holders_add_session(const struct memclient_session_info *session, void *data)
{
    struct output *output = data;
    size_t index;
    json_t *row;

    json_array_foreach(output->rows, index, row)
        if ((uint64_t)json_integer_value(json_object_get(row, "session")) == session->id &&
            (json_object_set_new(row, "uid", json_integer(INT(session->uid))) ||
             json_object_set_new(row, "pid", json_integer(INT(session->pid))) ||
             json_object_set_new(row, "program", json_text(session->program)) ||
             json_object_set_new(row, "session_since_ms", json_integer(INT(session->created_ms)))))
            return -ENOMEM;
    return 0;
}

static int holders_add_name(const struct memclient_name_info *name, void *data)
{
    struct output *output = data;
    size_t index;
    json_t *row;

    json_array_foreach(output->rows, index, row)
        if ((uint64_t)json_integer_value(json_object_get(row, "buffer")) == name->buffer &&
            !strcmp(json_string_value(json_object_get(row, "by")), "name") &&
            json_object_set_new(row, "uid", json_integer(INT(name->uid))))
            return -ENOMEM;
    return 0;
}

/* Only those of the process or user that was asked for. */
static void holders_drop_others(struct output *output)
{
    const char *key = query.of == HOLDERS_OF_PID ? "pid" : "uid";
    json_int_t wanted = query.of == HOLDERS_OF_PID ? INT(query.pid) : INT(query.uid);

    if (query.of == HOLDERS_OF_BUFFER)
        return;
    for (size_t i = json_array_size(output->rows); i-- > 0;) {
        const json_t *value = json_object_get(json_array_get(output->rows, i), key);

        if (!json_is_integer(value) || json_integer_value(value) != wanted)
            (void)json_array_remove(output->rows, i);
    }
}

static bool holders_are_detached(const struct output *output)
{
    size_t index;
    json_t *row;

    json_array_foreach(output->rows, index, row)
        if (!strcmp(json_string_value(json_object_get(row, "by")), "open"))
            return true;
    return false;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int parse_holders(struct invocation *invocation)
{
    const char *of;
    int r;

    if (next_option(invocation) != -1)
        return EXIT_USAGE;
    of = optind < invocation->argc ? invocation->argv[optind] : NULL;
    if (of && !strncmp(of, "pid:", 4)) {
        query.of = HOLDERS_OF_PID;
        r = parse_pid(of + 4, &query.pid);
    } else if (of && !strncmp(of, "uid:", 4) && !strchr(of, '/')) {
        query.of = HOLDERS_OF_USER;
        r = parse_user(of + 4, &query.uid);
    } else {
        return parse_only_reference(invocation);
    }
    if (r)
        return usage_error(invocation, "`%s' names no process and no user", of);
    optind++;
    return parse_end(invocation);
}

/* 0, a negative errno, or an exit status. */
static int holders_find_buffer(const struct invocation *invocation, struct memclient_context *ctx)
{
    int r;

    if (line.reference.kind == REFERENCE_TOKEN)
        return refused(invocation, "a token would have to be used up for that; give the buffer's id or name");
    r = line_find_buffer(ctx, &query.buffer);
    return r || query.buffer ? r : refused(invocation, "none of the names that you may see is this one");
}

static int run_holders(struct invocation *invocation, struct memclient_context *ctx)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct output output;
    int r;

    r = query.of == HOLDERS_OF_BUFFER ? holders_find_buffer(invocation, ctx) : 0;
    if (r)
        return r;
    output_init(&output, invocation->json, holder_columns);
    r = memclient_list_buffers(ctx, holders_add_buffer, &output);
    if (!r && query.of == HOLDERS_OF_BUFFER && !query.seen) {
        json_decref(output.rows);
        return refused(invocation, "none of the buffers that you may see has this id");
    }
    if (!r)
        r = memclient_list_sessions(ctx, holders_add_session, &output);
    if (!r)
        r = memclient_list_names(ctx, holders_add_name, &output);
    if (!r)
        holders_drop_others(&output);
    if (!r && holders_are_detached(&output)) {
        r = memclient_broker_query(ctx, &status);
        if (!r)
            r = openers_add(output.rows, "open_in", (pid_t)status.broker_pid, (pid_t)status.keeper_pid);
    }
    if (!r && !invocation->json && !json_array_size(output.rows)) {
        json_decref(output.rows);
        puts(query.of == HOLDERS_OF_BUFFER ? "nobody keeps it: it is ending"
                                           : "nothing that you may see is held by it, or it has no session");
        return output_flush();
    }
    return output_end(&output, r);
}

const struct command holder_commands[] = {
    {.name = "holders",
     .synopsis = "BUFFER|pid:PID|uid:USER",
     .summary = "Show who keeps a buffer alive, or what a process or user holds",
     .help = "Sessions that hold it, with their processes and rights; names and tokens; and of a buffer that only\n"
             "descriptors and mappings keep, the processes that have it, as far as you may look into them.\n",
     .parse = parse_holders,
     .run = run_holders},
    {.name = NULL},
};
