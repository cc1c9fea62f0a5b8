/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the library's structs to JSON objects: the one place that knows memctl's keys.
 */
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "memctl/rows.h"

#define INT(value) ((json_int_t)(value))

/* null for 0 where 0 is none */
static json_t *
some_json(uint64_t number)
{
    return number ? json_integer(INT(number)) : json_null();
}

/* "rwsm", "r"; null for none */
static json_t *
rights_json(unsigned rights)
{
    static const struct {
        unsigned right;
        char letter;
    } letters[] = {{MEMCLIENT_READ, 'r'}, {MEMCLIENT_WRITE, 'w'}, {MEMCLIENT_SHARE, 's'}, {MEMCLIENT_MANAGE, 'm'}};
    char text[5] = "";
    size_t n = 0;

    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
        if (rights & letters[i].right)
            text[n++] = letters[i].letter;
    return json_text(text);
}

/* how memctl takes an id for sure */
static json_t *
ref_json(uint64_t id)
{
    return json_sprintf("id:%" PRIu64, id);
}

static json_t *
address_json(uint64_t address)
{
    char text[24];

    if (!address)
        return json_null();
    snprintf(text, sizeof(text), "0x%" PRIx64, address);
    return json_string(text);
}

static json_t *
numbers_json(const uint32_t *numbers, size_t n)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer(numbers[i]));
    return array;
}

static const char *
pages_text(unsigned pages)
{
    switch (pages) {
    case MEMCLIENT_PAGES_BASE:
        return "base";
    case MEMCLIENT_PAGES_THP:
        return "thp";
    case MEMCLIENT_PAGES_HUGETLB:
        return "hugetlb";
    }
    return "any";
}

static const char *
placement_text(unsigned placement)
{
    static const char *const texts[] = {"pool", "bind", "preferred", "interleave", "split", "local"};

    return placement < sizeof(texts) / sizeof(texts[0]) ? texts[placement] : "unknown";
}

static const char *
state_text(unsigned state)
{
    static const char *const texts[] = {"committing", "live", "detached", "ending"};

    return state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "unknown";
}

static const char *
policy_text(unsigned policy)
{
    static const char *const texts[] = {"keep", "free", "keep-for"};

    return policy < sizeof(texts) / sizeof(texts[0]) ? texts[policy] : "unknown";
}

static json_t *
claim_json(unsigned claim)
{
    static const char *const texts[] = {"", "shared", "exclusive"};

    return json_text(claim < sizeof(texts) / sizeof(texts[0]) ? texts[claim] : "unknown");
}

static json_t *
flags_json(unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {{MEMCLIENT_PUBLISHABLE, "publishable"},
                 {MEMCLIENT_NO_ADDRESS, "no-address"},
                 {MEMCLIENT_BUFFER_PUBLISHED, "published"},
                 {MEMCLIENT_BUFFER_FUTURE_ONLY, "future-only"},
                 {MEMCLIENT_BUFFER_LAZY, "lazy"},
                 {MEMCLIENT_BUFFER_EXPORTED, "exported"},
                 {MEMCLIENT_BUFFER_VERIFIED, "verified"},
                 {MEMCLIENT_BUFFER_FOREIGN, "foreign"}};
    json_t *array = json_array();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (flags & names[i].flag)
            json_array_append_new(array, json_string(names[i].name));
    return array;
}

static int64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

json_t *
row_status(const struct memclient_broker_status *status, const struct memclient_connection_info *connection,
           const struct capacity *capacity)
{
    char broker[16];

    snprintf(broker, sizeof(broker), "%08x", status->broker_id);
    return json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I,"
                     " s:b, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:I}",
                     "version", status->version, "socket", json_text(connection->socket), "broker_id", broker,
                     "broker_pid",
                     INT(status->broker_pid), "broker_uid", INT(status->broker_uid), "started_ms",
                     INT(now_ms() - (int64_t)status->uptime_ms), "uptime_ms", INT(status->uptime_ms), "sessions",
                     INT(status->sessions), "buffers", INT(status->buffers), "buffers_detached",
                     INT(status->buffers_detached), "bytes", INT(status->bytes), "names", INT(status->names), "tokens",
                     INT(status->tokens), "reservations", INT(status->reservations), "fds", INT(status->fds),
                     "fds_limit", INT(status->fds_limit), "requests", INT(status->requests), "refused",
                     INT(status->refused), "simulated", (int)status->simulated, "arena_base",
                     address_json(status->arena_base), "arena_size", INT(status->arena_size), "config",
                     json_text(status->config), "keeper_pid", INT(status->keeper_pid), "restarts",
                     INT(status->restarts),
                     "quarantined", INT(status->quarantined), "buffers_ending", INT(status->buffers_ending),
                     "config_stale", (int)status->config_stale, "capacity", INT(capacity->capacity), "used",
                     INT(capacity->used), "huge_capacity", INT(capacity->huge_capacity), "huge_used",
                     INT(capacity->huge_used));
}

json_t *
row_node(const struct memclient_node *node)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o}", "node", INT(node->node), "physical",
                     INT(node->physical), "total", INT(node->total), "capacity", INT(node->capacity), "used",
                     INT(node->used), "has_cpus", (int)node->has_cpus, "simulated", (int)node->simulated, "distances",
                     numbers_json(node->distances, node->n_distances));
}

json_t *
row_pool(const struct memclient_pool *pool)
{
    return json_pack("{s:s, s:o, s:s, s:I, s:I, s:s, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I}",
                     "name", pool->name, "nodes", numbers_json(pool->nodes, pool->n_nodes), "pages",
                     pages_text(pool->pages), "page_size", INT(pool->page_size), "granule",
                     INT(pool->granule), "placement", placement_text(pool->placement), "part_size",
                     some_json(pool->part_size), "weights", numbers_json(pool->weights, pool->n_weights), "lazy",
                     (int)pool->lazy, "simulated", (int)pool->simulated, "capacity", INT(pool->capacity), "used",
                     INT(pool->used), "available", INT(pool->available), "buffers", INT(pool->buffers), "declared",
                     (int)pool->declared, "stock", INT(pool->stock), "stock_buffers", INT(pool->stock_buffers),
                     "stock_ready", INT(pool->stock_ready));
}

static json_t *
holders_json(const struct memclient_buffer_info *info)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < info->n_holders; i++)
        json_array_append_new(array, json_pack("{s:I, s:o, s:o, s:b}", "session", INT(info->holders[i]), "rights",
                                               rights_json(info->holder_rights[i]), "claim",
                                               claim_json(info->holder_claims[i]), "cached",
                                               (int)info->holder_cached[i]));
    return array;
}

/* One that nobody uses now, but that programs keep for the next time, lives for that alone. */
static const char *
buffer_state_text(const struct memclient_buffer_info *info)
{
    uint32_t cached = 0;

    for (uint32_t i = 0; i < info->n_holders; i++)
        cached += info->holder_cached[i];
    return info->state == MEMCLIENT_STATE_LIVE && cached && cached == info->holds ? "cached" : state_text(info->state);
}

static json_t *
places_json(const struct memclient_buffer_info *info)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < info->n_nodes; i++)
        json_array_append_new(array, json_pack("{s:I, s:I}", "node", INT(info->nodes[i]), "bytes",
                                               INT(info->node_bytes[i])));
    return array;
}

json_t *
row_buffer(const struct memclient_buffer_info *info)
{
    /* a foreign one is of no pool and has no pages of ours */
    bool foreign = info->flags & MEMCLIENT_BUFFER_FOREIGN;

    return json_pack("{s:I, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o,"
                     " s:o, s:I, s:o, s:o, s:o}",
                     "id", INT(info->id), "ref", ref_json(info->id), "state", buffer_state_text(info), "size",
                     INT(info->length), "bytes", INT(info->bytes), "pool", json_text(info->pool), "pages",
                     json_text(foreign ? "" : pages_text(info->pages)), "page_size", some_json(info->page_size),
                     "placement", json_text(foreign ? "" : placement_text(info->placement)), "places",
                     places_json(info), "huge_bytes", INT(info->huge_bytes), "flags", flags_json(info->flags), "uid",
                     INT(info->uid), "charged_uid", INT(info->charged_uid), "pid", INT(info->pid), "holds",
                     INT(info->holds), "names", INT(info->names), "tokens", INT(info->tokens), "inode",
                     some_json(info->inode), "address", address_json(info->address), "created_ms",
                     INT(info->created_ms), "detached_ms", some_json(info->detached_ms), "name",
                     json_text(info->name), "holders", holders_json(info));
}

json_t *
row_leak(const struct memclient_buffer_info *info)
{
    const struct passwd *user = getpwuid(info->charged_uid);

    return json_pack("{s:I, s:o, s:I, s:I, s:o, s:I, s:o, s:I, s:I, s:n, s:o, s:I, s:o}", "id", INT(info->id), "ref",
                     ref_json(info->id), "size", INT(info->length), "bytes", INT(info->bytes), "pool",
                     json_text(info->pool), "charged_uid", INT(info->charged_uid), "user",
                     json_text(user ? user->pw_name : ""), "uid", INT(info->uid), "pid", INT(info->pid), "program",
                     "inode", some_json(info->inode), "created_ms", INT(info->created_ms), "detached_ms",
                     some_json(info->detached_ms));
}

json_t *
row_session(const struct memclient_session *session)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "id", INT(session->id),
                     "uid", INT(session->uid), "gid", INT(session->gid), "pid", INT(session->pid), "program",
                     json_text(session->program), "connected", (int)session->connected, "created_ms",
                     INT(session->created_ms),
                     "bytes", INT(session->bytes), "holds", INT(session->holds), "tokens", INT(session->tokens),
                     "reservations", INT(session->reservations), "fds_in_flight", INT(session->fds_in_flight),
                     "queued_bytes", INT(session->queued_bytes));
}

json_t *
row_reservation(const struct memclient_reservation_info *reservation)
{
    return json_pack("{s:I, s:o, s:o, s:I, s:I, s:I}", "id", INT(reservation->id), "session",
                     some_json(reservation->session), "address", address_json(reservation->address), "size",
                     INT(reservation->length), "buffers", INT(reservation->buffers), "uid", INT(reservation->uid));
}

json_t *
row_name(const struct memclient_name *name)
{
    bool keeps = name->policy == MEMCLIENT_NAME_KEEP_FOR;

    return json_pack("{s:o, s:I, s:I, s:s, s:o, s:o, s:o, s:o, s:o}", "name", json_text(name->name), "uid",
                     INT(name->uid), "buffer", INT(name->buffer), "policy", policy_text(name->policy), "keep_ms",
                     keeps ? json_integer(INT(name->keep_ms)) : json_null(), "group_rights",
                     rights_json(name->group_rights), "gid",
                     name->group_rights ? json_integer(INT(name->gid)) : json_null(), "other_rights",
                     rights_json(name->other_rights), "session", some_json(name->session));
}

/* whom a token is for: a number where it is restricted, else null */
static json_t *
only_json(const struct memclient_token_info *token, unsigned flag, int64_t number)
{
    return token->flags & flag ? json_integer(number) : json_null();
}

json_t *
row_token(const struct memclient_token_info *token)
{
    return json_pack("{s:I, s:I, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "serial", INT(token->serial),
                     "buffer", INT(token->buffer), "rights", rights_json(token->rights), "keeping",
                     (int)!!(token->flags & MEMCLIENT_TOKEN_KEEPING), "for_uid",
                     only_json(token, MEMCLIENT_TOKEN_ONLY_UID, token->uid), "for_gid",
                     only_json(token, MEMCLIENT_TOKEN_ONLY_GID, token->gid), "for_pid",
                     only_json(token, MEMCLIENT_TOKEN_ONLY_PID, token->pid), "uses_left", some_json(token->uses_left),
                     "expires_ms", some_json(token->expires_ms), "maker_uid", INT(token->maker_uid), "session",
                     some_json(token->session));
}

json_t *
row_check(const struct memclient_check_result *result)
{
    json_t *sentences = json_array();

    for (uint32_t i = 0; i < result->n_sentences; i++)
        json_array_append_new(sentences, json_text(result->sentences[i]));
    return json_pack("{s:I, s:I, s:I, s:o}", "buffers", INT(result->buffers), "records", INT(result->records),
                     "faults", INT(result->faults), "sentences", sentences);
}

json_t *
row_removed(const char *kind, const char *given)
{
    return json_pack("{s:s, s:o}", "kind", kind, "removed", json_text(given));
}

json_t *
row_upgrade(const struct memclient_broker_status *before, const struct memclient_broker_status *now, uint64_t ms)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "version", now->version, "was_version", before->version,
                     "broker_pid", INT(now->broker_pid), "was_broker_pid", INT(before->broker_pid), "buffers",
                     INT(now->buffers + now->buffers_detached), "sessions", INT(now->sessions - 1), "ms", INT(ms));
}

static json_t *
lines_json(const struct memclient_reload_result *result, unsigned what)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < result->n_lines; i++)
        if (result->lines[i].what == what)
            json_array_append_new(array, json_text(result->lines[i].text));
    return array;
}

json_t *
row_reload(const struct memclient_reload_result *result)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "config", json_text(result->config), "applied",
                     lines_json(result, MEMCLIENT_RELOAD_APPLIED), "restart",
                     lines_json(result, MEMCLIENT_RELOAD_RESTART), "mistakes",
                     lines_json(result, MEMCLIENT_RELOAD_MISTAKE));
}
