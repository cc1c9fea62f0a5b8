/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Listings. The broker offers one record after the other; each is copied with its message into the scratch arena and
 * its size on the wire is counted, until the packet, the arena or what the client asked for is full. The record that
 * did not fit is the first of the next packet.
 *
 * Strings and arrays of a record lie in the copy, so a row is one piece: the record, and the message that points
 * into it.
 */

#include <string.h>

#include "rpc/request.h"
#include "rpc/serve.h"

/* A row's tag and length, and the reply's own fields. */
#define ROW_OVERHEAD   4
#define REPLY_OVERHEAD 64

struct listing {
    struct rpc *rpc;
    uint32_t most;
    size_t used;
    uint32_t n;
    ProtobufCMessage *rows[MEMORYD_ROWS_MAX];
};

struct list_request {
    struct request request;
    struct list_args args;
    struct listing listing;
    uint64_t next;
};

/* Room for a row in the scratch arena; NULL if there is none. */
static void *row_alloc(struct listing *listing, size_t size)
{
    return listing->n < listing->most ? arena_alloc(&listing->rpc->scratch, size) : NULL;
}

static bool row_take(struct listing *listing, ProtobufCMessage *row)
{
    size_t size = protobuf_c_message_get_packed_size(row) + ROW_OVERHEAD;

    if (listing->used + size > MEMORYD_PAYLOAD_MAX - REPLY_OVERHEAD)
        return false;
    listing->used += size;
    listing->rows[listing->n++] = row;
    return true;
}

static bool add_node(void *userdata, const struct node_info *info)
{
    struct { Memoryd__V1__NodeInfo message; struct node_info info; } *row = row_alloc(userdata, sizeof(*row));

    if (!row)
        return false;
    row->info = *info;
    row->message = (Memoryd__V1__NodeInfo)MEMORYD__V1__NODE_INFO__INIT;
    row->message.node = info->node;
    row->message.physical = info->physical;
    row->message.total = info->total;
    row->message.capacity = info->capacity;
    row->message.used = info->used;
    row->message.has_cpus = info->has_cpus;
    row->message.n_distances = info->n_distances;
    row->message.distances = row->info.distances;
    return row_take(userdata, &row->message.base);
}

static bool add_pool(void *userdata, const struct pool_info *info)
{
    struct { Memoryd__V1__PoolInfo message; struct pool_info info; } *row = row_alloc(userdata, sizeof(*row));

    if (!row)
        return false;
    row->info = *info;
    row->message = (Memoryd__V1__PoolInfo)MEMORYD__V1__POOL_INFO__INIT;
    row->message.name = row->info.name;
    row->message.n_nodes = info->n_nodes;
    row->message.nodes = row->info.nodes;
    row->message.pages = (Memoryd__V1__Pages)info->pages;
    row->message.page_size = info->page_size;
    row->message.granule = info->granule;
    row->message.placement = (Memoryd__V1__Placement)info->placement;
    row->message.part_size = info->part_size;
    row->message.n_weights = info->n_weights;
    row->message.weights = row->info.weights;
    row->message.lazy = info->lazy;
    row->message.declared = info->declared;
    row->message.capacity = info->capacity;
    row->message.used = info->used;
    row->message.available = info->available;
    row->message.buffers = info->buffers;
    row->message.stock = info->stock;
    row->message.stock_buffers = info->stock_buffers;
    row->message.stock_ready = info->stock_ready;
    return row_take(userdata, &row->message.base);
}

static bool add_buffer(void *userdata, const struct buffer_info *info)
{
    struct { Memoryd__V1__BufferInfo message; struct buffer_info info; } *row = row_alloc(userdata, sizeof(*row));

    if (!row)
        return false;
    row->info = *info;
    buffer_info_message(&row->message, &row->info);
    return row_take(userdata, &row->message.base);
}

static bool add_session(void *userdata, const struct session_info *info)
{
    struct { Memoryd__V1__SessionInfo message; struct session_info info; } *row = row_alloc(userdata, sizeof(*row));

    if (!row)
        return false;
    row->info = *info;
    row->message = (Memoryd__V1__SessionInfo)MEMORYD__V1__SESSION_INFO__INIT;
    row->message.id = info->id;
    row->message.uid = info->uid;
    row->message.gid = info->gid;
    row->message.pid = (uint32_t)info->pid;
    row->message.program = row->info.program;
    row->message.connected = info->connected;
    row->message.created_ms = info->created_ms;
    row->message.bytes = info->bytes;
    row->message.holds = info->holds;
    row->message.tokens = info->tokens;
    row->message.reservations = info->reservations;
    row->message.fds_in_flight = info->fds_in_flight;
    row->message.queued_bytes = info->queued_bytes;
    return row_take(userdata, &row->message.base);
}

static bool add_reservation(void *userdata, const struct reservation_info *info)
{
    Memoryd__V1__ReservationInfo *row = row_alloc(userdata, sizeof(*row));

    if (!row)
        return false;
    *row = (Memoryd__V1__ReservationInfo)MEMORYD__V1__RESERVATION_INFO__INIT;
    row->id = info->id;
    row->session = info->session;
    row->address = info->address;
    row->size = info->size;
    row->buffers = info->buffers;
    row->uid = info->uid;
    return row_take(userdata, &row->base);
}

static bool add_name(void *userdata, const struct name_info *info)
{
    struct { Memoryd__V1__NameInfo message; struct name_info info; } *row = row_alloc(userdata, sizeof(*row));

    if (!row)
        return false;
    row->info = *info;
    row->message = (Memoryd__V1__NameInfo)MEMORYD__V1__NAME_INFO__INIT;
    row->message.name = row->info.name;
    row->message.uid = info->uid;
    row->message.buffer = info->buffer;
    row->message.policy = (Memoryd__V1__NamePolicy)info->policy;
    row->message.keep_ms = info->keep_ms;
    row->message.group = info->group_rights;
    row->message.gid = info->gid;
    row->message.others = info->other_rights;
    row->message.session = info->session;
    return row_take(userdata, &row->message.base);
}

static bool add_token(void *userdata, const struct token_info *info)
{
    Memoryd__V1__TokenInfo *row = row_alloc(userdata, sizeof(*row));

    if (!row)
        return false;
    *row = (Memoryd__V1__TokenInfo)MEMORYD__V1__TOKEN_INFO__INIT;
    row->serial = info->serial;
    row->buffer = info->buffer;
    row->rights = info->rights;
    row->flags = info->flags;
    row->uid = info->uid;
    row->gid = info->gid;
    row->pid = (uint32_t)info->pid;
    row->uses_left = info->uses_left;
    row->expires_ms = info->expires_ms;
    row->maker_uid = info->maker_uid;
    row->session = info->session;
    return row_take(userdata, &row->base);
}

/* ---------------------------------------------------------------------------------------------------- replies */

static bool is_simulated(struct request *request)
{
    struct status_info status = {0};
    struct op op = {.broker = request->op.broker, .session = request->op.session};

    return op_status(&op, &status) == 0 && status.simulated;
}

/* LISTING(name, item, Item, Reply, REPLY, field, extra): an answer and a serve function */
#define LISTING(name, item, Item, Reply, REPLY, field, extra)                                                \
    static void answer_list_##name(struct request *request)                                                  \
    {                                                                                                        \
        struct list_request *list = (struct list_request *)request;                                          \
        Memoryd__V1__##Reply reply = MEMORYD__V1__##REPLY##__INIT;                                           \
                                                                                                             \
        reply.n_##field = list->listing.n;                                                                    \
        reply.field = (Memoryd__V1__##Item **)(void *)list->listing.rows;                                     \
        reply.next = list->next;                                                                             \
        extra;                                                                                               \
        request_reply(request, &reply.base, NULL);                                                           \
    }                                                                                                        \
                                                                                                             \
    int serve_list_##name(const struct call *call, const Memoryd__V1__ListRequest *m)                        \
    {                                                                                                        \
        struct list_request *list = list_request_new(call, m, answer_list_##name);                           \
        struct problem problem = PROBLEM_NULL;                                                               \
                                                                                                             \
        if (!list)                                                                                           \
            return call_refuse(call, STATUS_NO_MEMORY, &problem);                                            \
        return request_go(&list->request,                                                                    \
                          op_list_##name(&list->request.op, &list->args, &list->next, add_##item));          \
    }

static struct list_request *list_request_new(const struct call *call, const Memoryd__V1__ListRequest *m,
                                             void (*answer)(struct request *request))
{
    struct list_request *list = request_new(call, sizeof(*list), answer, NULL);

    if (!list)
        return NULL;
    arena_reset(&call->rpc->scratch);
    list->listing.rpc = call->rpc;
    list->listing.most = m->most && m->most < MEMORYD_ROWS_MAX ? m->most : MEMORYD_ROWS_MAX;
    list->args.cursor = m->cursor;
    list->args.buffer = m->buffer;
    list->args.userdata = &list->listing;
    return list;
}

LISTING(nodes, node, NodeInfo, NodesReply, NODES_REPLY, nodes, reply.simulated = is_simulated(request))
LISTING(pools, pool, PoolInfo, PoolsReply, POOLS_REPLY, pools, reply.simulated = is_simulated(request))
LISTING(buffers, buffer, BufferInfo, BuffersReply, BUFFERS_REPLY, buffers, (void)0)
LISTING(sessions, session, SessionInfo, SessionsReply, SESSIONS_REPLY, sessions, (void)0)
LISTING(reservations, reservation, ReservationInfo, ReservationsReply, RESERVATIONS_REPLY, reservations, (void)0)
LISTING(names, name, NameInfo, NamesReply, NAMES_REPLY, names, (void)0)
LISTING(tokens, token, TokenInfo, TokensReply, TOKENS_REPLY, tokens, (void)0)
