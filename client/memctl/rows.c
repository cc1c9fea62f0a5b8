/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of listings. Nothing else knows their keys and headings. A new column is a line here.
 */
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "memctl/rows.h"
#include "memctl/values.h"

/* the member of `struct type` that a column shows */
#define IN(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)

/* … only or unless a flag of another member is set */
#define ONLY(type, member, bits)   .mask = (bits), .mask_offset = offsetof(struct type, member)
#define UNLESS(type, member, bits) .mask_not = (bits), .mask_offset = offsetof(struct type, member)

/* … with as many elements as a third one says */
#define COUNT(type, member) .count_offset = offsetof(struct type, member)

#define INT(value) ((json_int_t)(value))

/* null for 0 where 0 is none */
static json_t *some_json(uint64_t number)
{
    return number ? json_integer(INT(number)) : json_null();
}

/* null for none */
static json_t *rights_json(uint64_t rights)
{
    char text[RIGHTS_TEXT];

    format_rights((unsigned)rights, text);
    return json_text(text);
}

/* the id as an unambiguous reference */
static json_t *ref_json(uint64_t id)
{
    return json_sprintf("id:%" PRIu64, id);
}

static json_t *address_json(uint64_t address)
{
    char text[24];

    if (!address)
        return json_null();
    snprintf(text, sizeof(text), "0x%" PRIx64, address);
    return json_string(text);
}

static const char *const charge_words[] = {"broker", "client", NULL};
static const char *const state_words[] = {"committing", "live", "detached", "ending", NULL};
static const char *const policy_words[] = {"keep", "free", "keep-for", NULL};

static json_t *flags_json(uint64_t flags)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {{MEMCLIENT_BUFFER_PUBLISHABLE, "publishable"},
                 {MEMCLIENT_BUFFER_NO_HOME, "no-address"},
                 {MEMCLIENT_BUFFER_PUBLISHED, "published"},
                 {MEMCLIENT_BUFFER_FUTURE_ONLY, "future-only"},
                 {MEMCLIENT_BUFFER_LAZY, "lazy"},
                 {MEMCLIENT_BUFFER_EXPORTED, "exported"},
                 {MEMCLIENT_BUFFER_VERIFIED, "verified"},
                 {MEMCLIENT_BUFFER_FOREIGN, "foreign"},
                 {MEMCLIENT_BUFFER_CLIENT_CHARGED, "client-charged"}};
    json_t *array = json_array();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (flags & names[i].flag)
            json_array_append_new(array, json_string(names[i].name));
    return array;
}

/* As fcntl(2) has them, in small letters. */
static json_t *seals_json(uint64_t seals)
{
    static const char *const names[] = {"seal", "shrink", "grow", "write", "future-write", "exec"};
    json_t *array = json_array();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (seals >> i & 1)
            json_array_append_new(array, json_string(names[i]));
    return array;
}

/* ---- the broker -------------------------------------------------------------------------------------------------- */

static json_t *broker_id_json(uint64_t id)
{
    return json_sprintf("%08" PRIx64, id);
}

static json_t *started_json(uint64_t uptime_ms)
{
    return json_integer(INT(clock_wall_ms() - uptime_ms));
}

const struct column status_columns[] = {
    {"version", "version", COLUMN_TEXT, IN(status_row, status.version)},
    {"socket", "socket", COLUMN_TEXT, IN(status_row, connection.socket)},
    {"configuration", "config", COLUMN_TEXT, IN(status_row, status.config)},
    {"stale-configuration", "config_stale", COLUMN_YES, IN(status_row, status.config_stale)},
    {NULL, "broker_id", COLUMN_TEXT, IN(status_row, status.broker_id), .number = broker_id_json},
    {"uid", "broker_uid", COLUMN_NUMBER, IN(status_row, status.broker_uid)},
    {"broker", "broker_pid", COLUMN_NUMBER, IN(status_row, status.broker_pid)},
    {"keeper", "keeper_pid", COLUMN_NUMBER, IN(status_row, status.keeper_pid)},
    {"up", "started_ms", COLUMN_AGE, IN(status_row, status.uptime_ms), .number = started_json},
    {NULL, "uptime_ms", COLUMN_SPAN, IN(status_row, status.uptime_ms)},
    {"restarts", "restarts", COLUMN_NUMBER, IN(status_row, status.restarts)},
    {"simulated", "simulated", COLUMN_YES, IN(status_row, status.simulated)},
    {"capacity", "capacity", COLUMN_BYTES, IN(status_row, capacity.capacity)},
    {"used", "used", COLUMN_BYTES, IN(status_row, capacity.used)},
    {"huge-capacity", "huge_capacity", COLUMN_BYTES, IN(status_row, capacity.huge_capacity)},
    {"huge-used", "huge_used", COLUMN_BYTES, IN(status_row, capacity.huge_used)},
    {"bytes", "bytes", COLUMN_BYTES, IN(status_row, status.bytes)},
    {"buffers", "buffers", COLUMN_NUMBER, IN(status_row, status.buffers)},
    {"detached", "buffers_detached", COLUMN_NUMBER, IN(status_row, status.buffers_detached)},
    {"ending", "buffers_ending", COLUMN_NUMBER, IN(status_row, status.buffers_ending)},
    {"sessions", "sessions", COLUMN_NUMBER, IN(status_row, status.sessions)},
    {"names", "names", COLUMN_NUMBER, IN(status_row, status.names)},
    {"tokens", "tokens", COLUMN_NUMBER, IN(status_row, status.tokens)},
    {"reservations", "reservations", COLUMN_NUMBER, IN(status_row, status.reservations)},
    {"fds", "fds", COLUMN_NUMBER, IN(status_row, status.fds)},
    {"fd-limit", "fds_limit", COLUMN_NUMBER, IN(status_row, status.fds_limit)},
    {"requests", "requests", COLUMN_NUMBER, IN(status_row, status.requests)},
    {"refused", "refused", COLUMN_NUMBER, IN(status_row, status.refused)},
    {"quarantined", "quarantined", COLUMN_NUMBER, IN(status_row, status.quarantined)},
    {NULL, "arena_base", COLUMN_TEXT, IN(status_row, status.arena_base), .number = address_json},
    {NULL, "arena_size", COLUMN_BYTES, IN(status_row, status.arena_size)},
    COLUMNS_END,
};

/* ---- nodes and pools --------------------------------------------------------------------------------------------- */

const struct column node_columns[] = {
    {"NODE", "node", COLUMN_NUMBER, IN(memclient_node_info, node)},
    {NULL, "physical", COLUMN_NUMBER, IN(memclient_node_info, physical)},
    {"TOTAL", "total", COLUMN_BYTES, IN(memclient_node_info, total)},
    {"CAPACITY", "capacity", COLUMN_BYTES, IN(memclient_node_info, capacity)},
    {"USED", "used", COLUMN_BYTES, IN(memclient_node_info, used)},
    {"CPUS", "has_cpus", COLUMN_YES, IN(memclient_node_info, has_cpus)},
    {"SIMULATED", "simulated", COLUMN_YES, IN(memclient_node_info, simulated)},
    {"DISTANCES", "distances", COLUMN_LIST, IN(memclient_node_info, distances),
     COUNT(memclient_node_info, n_distances)},
    COLUMNS_END,
};

const struct column pool_columns[] = {
    {"POOL", "name", COLUMN_TEXT, IN(memclient_pool_info, name)},
    {"NODES", "nodes", COLUMN_LIST, IN(memclient_pool_info, nodes), COUNT(memclient_pool_info, n_nodes)},
    {"PAGES", "pages", COLUMN_TEXT, IN(memclient_pool_info, pages), .words = pages_words},
    {"PAGE", "page_size", COLUMN_BYTES, IN(memclient_pool_info, page_size)},
    {NULL, "granule", COLUMN_BYTES, IN(memclient_pool_info, granule)},
    {"PLACEMENT", "placement", COLUMN_TEXT, IN(memclient_pool_info, placement), .words = placement_words},
    {NULL, "part_size", COLUMN_BYTES, IN(memclient_pool_info, part_size), .number = some_json},
    {NULL, "weights", COLUMN_LIST, IN(memclient_pool_info, weights), COUNT(memclient_pool_info, n_weights)},
    {"LAZY", "lazy", COLUMN_YES, IN(memclient_pool_info, lazy)},
    {"CAPACITY", "capacity", COLUMN_BYTES, IN(memclient_pool_info, capacity)},
    {"USED", "used", COLUMN_BYTES, IN(memclient_pool_info, used)},
    {"AVAILABLE", "available", COLUMN_BYTES, IN(memclient_pool_info, available)},
    {"BUFFERS", "buffers", COLUMN_NUMBER, IN(memclient_pool_info, buffers)},
    {NULL, "declared", COLUMN_YES, IN(memclient_pool_info, declared)},
    {"STOCK", "stock", COLUMN_BYTES, IN(memclient_pool_info, stock)},
    {NULL, "stock_buffers", COLUMN_NUMBER, IN(memclient_pool_info, stock_buffers)},
    {NULL, "stock_ready", COLUMN_BYTES, IN(memclient_pool_info, stock_ready)},
    {"CHARGE", "charge", COLUMN_TEXT, IN(memclient_pool_info, client_charged), .words = charge_words},
    {"ALLOW", "allow", COLUMN_TEXT, IN(memclient_pool_info, allow)},
    {"SIMULATED", "simulated", COLUMN_YES, IN(memclient_pool_info, simulated)},
    COLUMNS_END,
};

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* A live buffer that programs only keep for their next allocation is "cached". */
static json_t *buffer_state_json(const void *item)
{
    const struct memclient_buffer_info *info = item;
    uint32_t cached = 0;

    for (uint32_t i = 0; i < info->n_holders; i++)
        cached += info->holder_cached[i];
    if (info->state == MEMCLIENT_BUFFER_STATE_LIVE && cached && cached == info->holds)
        return json_string("cached");
    return json_word(state_words, info->state);
}

static json_t *places_json(const void *item)
{
    const struct memclient_buffer_info *info = item;
    json_t *array = json_array();

    for (uint32_t i = 0; i < info->n_nodes; i++)
        json_array_append_new(array,
                              json_pack("{s:I, s:I}", "node", INT(info->nodes[i]), "bytes", INT(info->node_bytes[i])));
    return array;
}

static json_t *holder_claim_json(unsigned claim)
{
    return claim ? json_word(claim_words, claim) : json_null();
}

static json_t *holders_json(const void *item)
{
    const struct memclient_buffer_info *info = item;
    json_t *array = json_array();

    for (uint32_t i = 0; i < info->n_holders; i++)
        json_array_append_new(
            array, json_pack("{s:I, s:o, s:o, s:b, s:o}", "session", INT(info->holders[i]), "rights",
                             rights_json(info->holder_rights[i]), "claim", holder_claim_json(info->holder_claims[i]),
                             "cached", (int)info->holder_cached[i], "since_ms", some_json(info->holder_since_ms[i])));
    return array;
}

const struct column buffer_columns[] = {
    {"ID", "id", COLUMN_NUMBER, IN(memclient_buffer_info, id)},
    {NULL, "ref", COLUMN_TEXT, IN(memclient_buffer_info, id), .number = ref_json},
    {"SIZE", "size", COLUMN_BYTES, IN(memclient_buffer_info, length)},
    {NULL, "bytes", COLUMN_BYTES, IN(memclient_buffer_info, bytes)},
    {"POOL", "pool", COLUMN_TEXT, IN(memclient_buffer_info, pool)},
    /* a foreign one is of no pool, and has no pages of the broker's */
    {NULL, "pages", COLUMN_TEXT, IN(memclient_buffer_info, pages), .words = pages_words,
     UNLESS(memclient_buffer_info, flags, MEMCLIENT_BUFFER_FOREIGN)},
    {NULL, "page_size", COLUMN_BYTES, IN(memclient_buffer_info, page_size), .number = some_json},
    {NULL, "placement", COLUMN_TEXT, IN(memclient_buffer_info, placement), .words = placement_words,
     UNLESS(memclient_buffer_info, flags, MEMCLIENT_BUFFER_FOREIGN)},
    {NULL, "places", COLUMN_LIST, .make = places_json},
    {NULL, "huge_bytes", COLUMN_BYTES, IN(memclient_buffer_info, huge_bytes)},
    {"STATE", "state", COLUMN_TEXT, .make = buffer_state_json},
    {NULL, "uid", COLUMN_NUMBER, IN(memclient_buffer_info, uid)},
    {"UID", "charged_uid", COLUMN_NUMBER, IN(memclient_buffer_info, charged_uid)},
    {"PID", "pid", COLUMN_NUMBER, IN(memclient_buffer_info, pid)},
    {"HOLDS", "holds", COLUMN_NUMBER, IN(memclient_buffer_info, holds)},
    {"NAMES", "names", COLUMN_NUMBER, IN(memclient_buffer_info, names)},
    {"TOKENS", "tokens", COLUMN_NUMBER, IN(memclient_buffer_info, tokens)},
    {NULL, "inode", COLUMN_NUMBER, IN(memclient_buffer_info, inode), .number = some_json},
    {"ADDRESS", "address", COLUMN_TEXT, IN(memclient_buffer_info, address), .number = address_json},
    {"AGE", "created_ms", COLUMN_AGE, IN(memclient_buffer_info, created_ms)},
    {NULL, "detached_ms", COLUMN_AGE, IN(memclient_buffer_info, detached_ms), .number = some_json},
    {"FLAGS", "flags", COLUMN_LIST, IN(memclient_buffer_info, flags), .number = flags_json},
    {NULL, "seals", COLUMN_LIST, IN(memclient_buffer_info, seals), .number = seals_json},
    {"NAME", "name", COLUMN_TEXT, IN(memclient_buffer_info, name)},
    {NULL, "holders", COLUMN_LIST, .make = holders_json},
    COLUMNS_END,
};

/* ---- leaks: buffers, too ----------------------------------------------------------------------------------------- */

static json_t *user_json(uint64_t uid)
{
    const struct passwd *user = getpwuid((uid_t)uid);

    return json_text(user ? user->pw_name : "");
}

const struct column leak_columns[] = {
    {"ID", "id", COLUMN_NUMBER, IN(memclient_buffer_info, id)},
    {NULL, "ref", COLUMN_TEXT, IN(memclient_buffer_info, id), .number = ref_json},
    {NULL, "size", COLUMN_BYTES, IN(memclient_buffer_info, length)},
    {"BYTES", "bytes", COLUMN_BYTES, IN(memclient_buffer_info, bytes)},
    {"POOL", "pool", COLUMN_TEXT, IN(memclient_buffer_info, pool)},
    {"SINCE", "detached_ms", COLUMN_AGE, IN(memclient_buffer_info, detached_ms), .number = some_json},
    {NULL, "created_ms", COLUMN_AGE, IN(memclient_buffer_info, created_ms)},
    {"UID", "charged_uid", COLUMN_NUMBER, IN(memclient_buffer_info, charged_uid)},
    {"USER", "user", COLUMN_TEXT, IN(memclient_buffer_info, charged_uid), .number = user_json},
    {NULL, "uid", COLUMN_NUMBER, IN(memclient_buffer_info, uid)},
    {"PID", "pid", COLUMN_NUMBER, IN(memclient_buffer_info, pid)},
    {"PROGRAM", "program", COLUMN_TEXT}, /* of the maker; sessions know it */
    {"INODE", "inode", COLUMN_NUMBER, IN(memclient_buffer_info, inode), .number = some_json},
    {"OPEN-IN", "open_in", COLUMN_LIST}, /* processes; openers.h finds them */
    COLUMNS_END,
};

/* ---- sessions and reservations ----------------------------------------------------------------------------------- */

const struct column session_columns[] = {
    {"SESSION", "id", COLUMN_NUMBER, IN(memclient_session_info, id)},
    {"UID", "uid", COLUMN_NUMBER, IN(memclient_session_info, uid)},
    {NULL, "gid", COLUMN_NUMBER, IN(memclient_session_info, gid)},
    {"PID", "pid", COLUMN_NUMBER, IN(memclient_session_info, pid)},
    {"PROGRAM", "program", COLUMN_TEXT, IN(memclient_session_info, program)},
    {"CONNECTED", "connected", COLUMN_YES, IN(memclient_session_info, connected)},
    {"BYTES", "bytes", COLUMN_BYTES, IN(memclient_session_info, bytes)},
    {"HOLDS", "holds", COLUMN_NUMBER, IN(memclient_session_info, holds)},
    {"TOKENS", "tokens", COLUMN_NUMBER, IN(memclient_session_info, tokens)},
    {"RESERVATIONS", "reservations", COLUMN_NUMBER, IN(memclient_session_info, reservations)},
    {NULL, "fds_in_flight", COLUMN_NUMBER, IN(memclient_session_info, fds_in_flight)},
    {NULL, "queued_bytes", COLUMN_BYTES, IN(memclient_session_info, queued_bytes)},
    {NULL, "waiting", COLUMN_NUMBER, IN(memclient_session_info, waiting)},
    {NULL, "requests", COLUMN_NUMBER, IN(memclient_session_info, requests)},
    {"AGE", "created_ms", COLUMN_AGE, IN(memclient_session_info, created_ms)},
    COLUMNS_END,
};

const struct column reservation_columns[] = {
    {"RESERVATION", "id", COLUMN_NUMBER, IN(memclient_reservation_info, id)},
    {"ADDRESS", "address", COLUMN_TEXT, IN(memclient_reservation_info, address), .number = address_json},
    {"SIZE", "size", COLUMN_BYTES, IN(memclient_reservation_info, length)},
    {"SESSION", "session", COLUMN_NUMBER, IN(memclient_reservation_info, session), .number = some_json},
    {"UID", "uid", COLUMN_NUMBER, IN(memclient_reservation_info, uid)},
    {"BUFFERS", "buffers", COLUMN_NUMBER, IN(memclient_reservation_info, buffers)},
    COLUMNS_END,
};

/* ---- names and tokens -------------------------------------------------------------------------------------------- */

const struct column name_columns[] = {
    {"NAME", "name", COLUMN_TEXT, IN(memclient_name_info, name)},
    {"UID", "uid", COLUMN_NUMBER, IN(memclient_name_info, uid)},
    {"BUFFER", "buffer", COLUMN_NUMBER, IN(memclient_name_info, buffer)},
    {"POLICY", "policy", COLUMN_TEXT, IN(memclient_name_info, policy), .words = policy_words},
    {NULL, "keep_ms", COLUMN_SPAN, IN(memclient_name_info, keep_ms),
     ONLY(memclient_name_info, policy, MEMCLIENT_NAME_KEEP_FOR)},
    {"GROUP", "group_rights", COLUMN_TEXT, IN(memclient_name_info, group_rights), .number = rights_json},
    {"GID", "gid", COLUMN_NUMBER, IN(memclient_name_info, gid), ONLY(memclient_name_info, group_rights, ~0u)},
    {"OTHERS", "other_rights", COLUMN_TEXT, IN(memclient_name_info, other_rights), .number = rights_json},
    {"SESSION", "session", COLUMN_NUMBER, IN(memclient_name_info, session), .number = some_json},
    COLUMNS_END,
};

static json_t *keeping_json(uint64_t flags)
{
    return json_boolean(flags & MEMCLIENT_TOKEN_KEEPING);
}

const struct column token_columns[] = {
    {"SERIAL", "serial", COLUMN_NUMBER, IN(memclient_token_info, serial)},
    {"BUFFER", "buffer", COLUMN_NUMBER, IN(memclient_token_info, buffer)},
    {"RIGHTS", "rights", COLUMN_TEXT, IN(memclient_token_info, rights), .number = rights_json},
    {"KEEPING", "keeping", COLUMN_YES, IN(memclient_token_info, flags), .number = keeping_json},
    {"USES", "uses_left", COLUMN_NUMBER, IN(memclient_token_info, uses_left), .number = some_json},
    {"EXPIRES", "expires_ms", COLUMN_SPAN, IN(memclient_token_info, expires_ms), .number = some_json},
    {"FOR-UID", "for_uid", COLUMN_NUMBER, IN(memclient_token_info, uid),
     ONLY(memclient_token_info, flags, MEMCLIENT_TOKEN_ONLY_UID)},
    {"FOR-GID", "for_gid", COLUMN_NUMBER, IN(memclient_token_info, gid),
     ONLY(memclient_token_info, flags, MEMCLIENT_TOKEN_ONLY_GID)},
    {"FOR-PID", "for_pid", COLUMN_NUMBER, IN(memclient_token_info, pid),
     ONLY(memclient_token_info, flags, MEMCLIENT_TOKEN_ONLY_PID)},
    {"MAKER", "maker_uid", COLUMN_NUMBER, IN(memclient_token_info, maker_uid)},
    {"SESSION", "session", COLUMN_NUMBER, IN(memclient_token_info, session), .number = some_json},
    COLUMNS_END,
};

/* ---- check ------------------------------------------------------------------------------------------------------- */

static json_t *sentences_json(const void *item)
{
    const struct memclient_check_result *result = item;
    json_t *array = json_array();

    for (uint32_t i = 0; i < result->n_sentences; i++)
        json_array_append_new(array, json_text(result->sentences[i]));
    return array;
}

const struct column check_columns[] = {
    {"BUFFERS", "buffers", COLUMN_NUMBER, IN(memclient_check_result, buffers)},
    {"RECORDS", "records", COLUMN_NUMBER, IN(memclient_check_result, records)},
    {"FAULTS", "faults", COLUMN_NUMBER, IN(memclient_check_result, faults)},
    {NULL, "sentences", COLUMN_LIST, .make = sentences_json},
    COLUMNS_END,
};
