/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs: status, check and the listings.
 *
 * A page of a listing can be as large as a packet, and its items go to a function of the caller's
 * that may call the library again. So the bytes of the reply are copied out, and decoded here, in
 * memory of this listing, after the connection has gone back to work.
 */
#include "rpc/stubs.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/envelope.h"
#include "proto/schema.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/fail.h"

struct rpc_listing {
    struct arena arena;
    uint8_t bytes[MEMORYD_PAYLOAD_MAX];
};

struct rpc_listing *rpc_listing_new(void)
{
    struct rpc_listing *listing = malloc(sizeof(*listing));

    if (!listing)
        return NULL;
    if (arena_init(&listing->arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES)) {
        free(listing);
        return NULL;
    }
    return listing;
}

struct rpc_listing *rpc_listing_free(struct rpc_listing *listing)
{
    if (listing)
        arena_deinit(&listing->arena);
    free(listing);
    return NULL;
}

static int emit_node(const Memoryd__V1__NodeInfo *m, bool simulated, rpc_item *fn, void *data)
{
    struct memclient_node item = {
        .size = sizeof(item),
        .node = m->node,
        .physical = m->physical,
        .total = m->total,
        .capacity = m->capacity,
        .used = m->used,
        .has_cpus = m->has_cpus,
        .simulated = simulated,
        .n_distances = m->n_distances,
        .distances = m->distances,
    };

    return fn(&item, data);
}

static int emit_pool(const Memoryd__V1__PoolInfo *m, bool simulated, rpc_item *fn, void *data)
{
    struct memclient_pool item = {
        .size = sizeof(item),
        .name = m->name,
        .n_nodes = m->n_nodes,
        .nodes = m->nodes,
        .pages = m->pages,
        .placement = m->placement,
        .page_size = m->page_size,
        .granule = m->granule,
        .part_size = m->part_size,
        .n_weights = m->n_weights,
        .weights = m->weights,
        .lazy = m->lazy,
        .declared = m->declared,
        .simulated = simulated,
        .capacity = m->capacity,
        .used = m->used,
        .available = m->available,
        .buffers = m->buffers,
        .stock = m->stock,
        .stock_buffers = m->stock_buffers,
        .stock_ready = m->stock_ready,
    };

    return fn(&item, data);
}

static int emit_buffer(const Memoryd__V1__BufferInfo *m, rpc_item *fn, void *data)
{
    struct memclient_buffer_info item;

    convert_buffer_info(m, &item);
    return fn(&item, data);
}

static int emit_session(const Memoryd__V1__SessionInfo *m, rpc_item *fn, void *data)
{
    struct memclient_session item = {
        .size = sizeof(item),
        .id = m->id,
        .uid = m->uid,
        .gid = m->gid,
        .pid = (int32_t)m->pid,
        .program = m->program,
        .connected = m->connected,
        .created_ms = m->created_ms,
        .bytes = m->bytes,
        .holds = m->holds,
        .tokens = m->tokens,
        .reservations = m->reservations,
        .fds_in_flight = m->fds_in_flight,
        .queued_bytes = m->queued_bytes,
    };

    return fn(&item, data);
}

static int emit_reservation(const Memoryd__V1__ReservationInfo *m, rpc_item *fn, void *data)
{
    struct memclient_reservation_info item = {
        .size = sizeof(item),
        .id = m->id,
        .session = m->session,
        .address = m->address,
        .length = m->size,
        .buffers = m->buffers,
        .uid = m->uid,
    };

    return fn(&item, data);
}

static int emit_name(const Memoryd__V1__NameInfo *m, rpc_item *fn, void *data)
{
    struct memclient_name item = {
        .size = sizeof(item),
        .name = m->name,
        .uid = m->uid,
        .buffer = m->buffer,
        .policy = m->policy,
        .keep_ms = m->keep_ms,
        .group_rights = m->group,
        .gid = m->gid,
        .other_rights = m->others,
        .session = m->session,
    };

    return fn(&item, data);
}

static int emit_token(const Memoryd__V1__TokenInfo *m, rpc_item *fn, void *data)
{
    struct memclient_token_info item = {
        .size = sizeof(item),
        .serial = m->serial,
        .buffer = m->buffer,
        .rights = m->rights,
        .flags = m->flags,
        .uid = m->uid,
        .gid = m->gid,
        .pid = (int32_t)m->pid,
        .uses_left = m->uses_left,
        .expires_ms = m->expires_ms,
        .maker_uid = m->maker_uid,
        .session = m->session,
    };

    return fn(&item, data);
}

static enum method method_of(enum rpc_list what)
{
    switch (what) {
    case RPC_NODES:
        return METHOD_LIST_NODES;
    case RPC_POOLS:
        return METHOD_LIST_POOLS;
    case RPC_BUFFERS:
        return METHOD_LIST_BUFFERS;
    case RPC_SESSIONS:
        return METHOD_LIST_SESSIONS;
    case RPC_RESERVATIONS:
        return METHOD_LIST_RESERVATIONS;
    case RPC_NAMES:
        return METHOD_LIST_NAMES;
    case RPC_TOKENS:
        break;
    }
    return METHOD_LIST_TOKENS;
}

/* Calls fn with each row until it says stop, and gives the cursor of the next page. */
#define EACH(Reply, field, emit)                                         \
    {                                                                    \
        const Memoryd__V1__##Reply *reply = (const void *)message;       \
                                                                         \
        *next = reply->next;                                             \
        for (size_t i = 0; i < reply->n_##field && !stopped; i++)        \
            stopped = emit;                                              \
        break;                                                           \
    }

static int emit_page(enum rpc_list what, const ProtobufCMessage *message, rpc_item *fn, void *data,
                     uint64_t *next)
{
    int stopped = 0;

    switch (what) {
    case RPC_NODES:
        EACH(NodesReply, nodes, emit_node(reply->nodes[i], reply->simulated, fn, data))
    case RPC_POOLS:
        EACH(PoolsReply, pools, emit_pool(reply->pools[i], reply->simulated, fn, data))
    case RPC_BUFFERS:
        EACH(BuffersReply, buffers, emit_buffer(reply->buffers[i], fn, data))
    case RPC_SESSIONS:
        EACH(SessionsReply, sessions, emit_session(reply->sessions[i], fn, data))
    case RPC_RESERVATIONS:
        EACH(ReservationsReply, reservations, emit_reservation(reply->reservations[i], fn, data))
    case RPC_NAMES:
        EACH(NamesReply, names, emit_name(reply->names[i], fn, data))
    case RPC_TOKENS:
        EACH(TokensReply, tokens, emit_token(reply->tokens[i], fn, data))
    }
    return stopped;
}

int rpc_list(struct channel *channel, enum rpc_list what, struct rpc_listing *listing,
             uint64_t *cursor, uint64_t deadline, rpc_item *fn, void *data, int *stopped)
{
    Memoryd__V1__ListRequest request = MEMORYD__V1__LIST_REQUEST__INIT;
    struct channel_raw raw = {.bytes = listing->bytes};
    ProtobufCMessage *message;
    uint64_t next = 0;
    int r;

    request.cursor = *cursor;
    r = channel_call(channel, method_of(what), &request.base, NULL, 0, deadline, NULL, NULL, &raw);
    if (r)
        return r;
    if (envelope_unpack(schema_method((uint16_t)method_of(what))->reply, raw.bytes, raw.n,
                        &listing->arena, &message))
        return fail_with(EPROTO, "the broker's listing makes no sense");
    *stopped = emit_page(what, message, fn, data, &next);
    *cursor = next;
    return 0;
}

/* ---- status and check ----------------------------------------------------------------------- */

static int take_status(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__StatusReply *m = (const Memoryd__V1__StatusReply *)reply;
    struct memclient_broker_status *status = result;

    (void)fds;
    *status = (struct memclient_broker_status){
        .size = sizeof(*status),
        .broker_id = m->broker,
        .broker_pid = (int32_t)m->broker_pid,
        .broker_uid = m->broker_uid,
        .simulated = m->simulated,
        .uptime_ms = m->uptime_ms,
        .sessions = m->sessions,
        .buffers = m->buffers,
        .buffers_detached = m->buffers_detached,
        .buffers_ending = m->buffers_ending,
        .bytes = m->bytes,
        .names = m->names,
        .tokens = m->tokens,
        .reservations = m->reservations,
        .fds = m->fds,
        .fds_limit = m->fds_limit,
        .requests = m->requests,
        .refused = m->refused,
        .arena_base = m->arena_base,
        .arena_size = m->arena_size,
        .keeper_pid = (int32_t)m->keeper_pid,
        .restarts = m->restarts,
        .quarantined = m->quarantined,
        .config_stale = m->config_stale,
    };
    COPY_TEXT(status->version, m->version);
    COPY_TEXT(status->config, m->config);
    return 0;
}

int rpc_status(struct channel *channel, uint64_t deadline, struct memclient_broker_status *status)
{
    Memoryd__V1__StatusRequest request = MEMORYD__V1__STATUS_REQUEST__INIT;

    return channel_call(channel, METHOD_STATUS, &request.base, NULL, 0, deadline, take_status,
                        status, NULL);
}

static int take_check(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__CheckReply *m = (const Memoryd__V1__CheckReply *)reply;
    struct memclient_check_result *check = result;

    (void)fds;
    *check = (struct memclient_check_result){
        .size = sizeof(*check),
        .buffers = m->buffers,
        .records = m->records,
        .faults = m->faults,
    };
    for (size_t i = 0; i < m->n_sentences && i < MEMORYD_CHECK_SENTENCES_MAX; i++)
        COPY_TEXT(check->sentences[check->n_sentences++], m->sentences[i]);
    return 0;
}

int rpc_check(struct channel *channel, uint64_t deadline, struct memclient_check_result *result)
{
    Memoryd__V1__CheckRequest request = MEMORYD__V1__CHECK_REQUEST__INIT;

    return channel_call(channel, METHOD_CHECK, &request.base, NULL, 0, deadline, take_check,
                        result, NULL);
}

int rpc_upgrade(struct channel *channel, uint64_t deadline)
{
    Memoryd__V1__UpgradeRequest request = MEMORYD__V1__UPGRADE_REQUEST__INIT;

    return call_done(channel, METHOD_UPGRADE, &request.base, deadline);
}

static void take_lines(struct memclient_reload_result *result, unsigned what, size_t n, char **lines)
{
    const size_t most = sizeof(result->lines) / sizeof(result->lines[0]);

    for (size_t i = 0; i < n && result->n_lines < most; i++) {
        struct memclient_reload_line *line = &result->lines[result->n_lines++];

        line->what = what;
        COPY_TEXT(line->text, lines[i]);
    }
}

static int take_reload(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__ReloadReply *m = (const Memoryd__V1__ReloadReply *)reply;
    struct memclient_reload_result *reload = result;

    (void)fds;
    *reload = (struct memclient_reload_result){.size = sizeof(*reload)};
    COPY_TEXT(reload->config, m->config);
    take_lines(reload, MEMCLIENT_RELOAD_MISTAKE, m->n_mistakes, m->mistakes);
    take_lines(reload, MEMCLIENT_RELOAD_APPLIED, m->n_applied, m->applied);
    take_lines(reload, MEMCLIENT_RELOAD_RESTART, m->n_restart, m->restart);
    return 0;
}

int rpc_reload(struct channel *channel, uint64_t deadline, struct memclient_reload_result *result)
{
    Memoryd__V1__ReloadRequest request = MEMORYD__V1__RELOAD_REQUEST__INIT;

    return channel_call(channel, METHOD_RELOAD, &request.base, NULL, 0, deadline, take_reload, result, NULL);
}
