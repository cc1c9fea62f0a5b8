/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings: walks over the records, so many in one call, with what the caller may see.
 *
 * A cursor on the wire is one more than the walk's own, which begins at 0: so 0 is "the beginning" in a request
 * and "that was all" in a reply, and there is no third meaning.
 */
#include <assert.h>
#include <string.h>

#include "base/align.h"
#include "base/clock.h"
#include "broker/lookup.h"
#include "broker/op_buffer.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "mem/pool.h"

static_assert(TOPOLOGY_NODES_MAX <= MEMORYD_NODES_MAX, "a node's distances fit into a row");

struct walk {
    struct session *session;
    uint64_t cursor;
    uint64_t before; /* of the item at hand */
    unsigned budget;
    bool all; /* an administrator's */
};

static int walk_begin(struct op *op, const struct list_args *args, struct walk *walk)
{
    int r;

    *walk = (struct walk){.cursor = args->cursor ? args->cursor - 1 : 0, .budget = SLICE};
    r = op_session(op, &walk->session);
    if (r)
        return r;
    walk->all = is_admin(op->broker, walk->session);
    return 0;
}

static bool may_see(const struct walk *walk, uid_t uid)
{
    return walk->all || uid == walk->session->record->uid;
}

/* The walk is over, or its budget is. */
static uint64_t walk_end(const struct walk *walk)
{
    return walk->cursor ? walk->cursor + 1 : 0;
}

/* The item at hand found no room: it comes first in the next. */
static uint64_t walk_again(const struct walk *walk)
{
    return walk->before + 1;
}

#define WALK(walk, object, next) while (((walk).before = (walk).cursor, (object) = (next)))

/* ---- the machine ---------------------------------------------------------------------------------------- */

int op_list_nodes(struct op *op, const struct list_args *args, uint64_t *ret_next,
                  bool (*item)(void *userdata, const struct node_info *info))
{
    const struct topology *topology = op->broker->options.topology;
    struct walk walk;
    int r = walk_begin(op, args, &walk);

    if (r)
        return r;
    for (uint64_t i = walk.cursor; i < topology->n_nodes; i++) {
        const struct topology_node *node = &topology->nodes[i];
        const struct budget *budget = pools_node_budget(op->broker->options.pools, node->number);
        struct node_info info = {
            .node = node->number,
            .physical = node->physical,
            .total = node->total,
            .capacity = budget ? budget->capacity : 0,
            .used = budget ? budget->used : 0,
            .has_cpus = node->has_cpus,
        };

        for (uint32_t to = 0; to < TOPOLOGY_NODES_MAX; to++) {
            info.distances[to] = node->distances[to];
            if (node->distances[to])
                info.n_distances = to + 1;
        }
        if (!item(args->userdata, &info)) {
            *ret_next = i + 1;
            return 0;
        }
    }
    *ret_next = 0;
    return 0;
}

/* In one piece, if need be after waiting for what is on its way back (op_alloc.c). */
static uint64_t pool_available_to(struct pool *pool, const struct session *session)
{
    uint64_t mine = account_left(session->account, ACCOUNT_BYTES), largest = pool_largest_soon(pool);

    if (pool->retired)
        return 0;
    return mine < largest ? align_down(mine, pool->granule) : largest;
}

static void fill_pool(const struct broker *broker, struct pool *pool, const struct session *session,
                      struct pool_info *info)
{
    *info = (struct pool_info){
        .n_nodes = pool->n_nodes,
        .pages = pool->pages,
        .page_size = pool->page_size,
        .granule = pool->granule,
        .placement = pool->placement,
        .part_size = pool->part_size,
        .n_weights = pool->n_weights,
        .lazy = pool->lazy,
        .declared = pool->declared,
        .capacity = pool_capacity(pool),
        .used = pool->used,
        .available = pool_available_to(pool, session),
        .buffers = pool->buffers,
        .stock = pool->stock,
        .stock_buffers = pool->stock_buffers,
        .stock_ready = stocking_ready(broker, pool),
    };
    memcpy(info->name, pool->name, sizeof(pool->name));
    memcpy(info->nodes, pool->nodes, pool->n_nodes * sizeof(*info->nodes));
    memcpy(info->weights, pool->weights, pool->n_weights * sizeof(*info->weights));
}

int op_list_pools(struct op *op, const struct list_args *args, uint64_t *ret_next,
                  bool (*item)(void *userdata, const struct pool_info *info))
{
    struct pools *pools = op->broker->options.pools;
    struct walk walk;
    int r = walk_begin(op, args, &walk);

    if (r)
        return r;
    pools_refresh(pools);
    for (uint64_t i = walk.cursor; i < pools_count(pools); i++) {
        struct pool_info info;

        fill_pool(op->broker, pools_get(pools, (uint32_t)i), walk.session, &info);
        if (!item(args->userdata, &info)) {
            *ret_next = i + 1;
            return 0;
        }
    }
    *ret_next = 0;
    return 0;
}

/* ---- buffers and sessions ------------------------------------------------------------------------------- */

int op_list_buffers(struct op *op, const struct list_args *args, uint64_t *ret_next,
                    bool (*item)(void *userdata, const struct buffer_info *info))
{
    struct broker *broker = op->broker;
    struct buffer *buffer;
    struct walk walk;
    int r = walk_begin(op, args, &walk);

    if (r)
        return r;
    WALK(walk, buffer, buffers_next(&broker->buffers, &walk.cursor, &walk.budget))
    {
        struct buffer_info info;

        if ((args->buffer && buffer->record->head.id != args->buffer) || buffer_is_nobodys(buffer) ||
            !may_see_buffer(broker, walk.session, buffer))
            continue;
        fill_info(broker, walk.session, buffer, &info);
        if (!item(args->userdata, &info)) {
            *ret_next = walk_again(&walk);
            return 0;
        }
    }
    *ret_next = walk_end(&walk);
    return 0;
}

static void fill_session(struct broker *broker, const struct session *session, struct session_info *info)
{
    const struct session_record *record = session->record;
    const uint64_t *used = session->account->used;

    *info = (struct session_info){
        .id = record->head.id,
        .uid = record->uid,
        .gid = record->gid,
        .pid = (pid_t)record->pid,
        .connected = session->connection,
        .created_ms = record->created_ms,
        .bytes = used[ACCOUNT_BYTES],
        .holds = session->n_holds,
        .tokens = (uint32_t)used[ACCOUNT_TOKENS],
        .reservations = (uint32_t)used[ACCOUNT_RESERVATIONS],
    };
    memcpy(info->program, record->program, sizeof(info->program));
    if (session->connection)
        broker->host.connection_info(broker->host.userdata, session->connection, &info->fds_in_flight,
                                     &info->queued_bytes);
}

int op_list_sessions(struct op *op, const struct list_args *args, uint64_t *ret_next,
                     bool (*item)(void *userdata, const struct session_info *info))
{
    struct broker *broker = op->broker;
    struct session *session;
    struct walk walk;
    int r = walk_begin(op, args, &walk);

    if (r)
        return r;
    WALK(walk, session, sessions_next(&broker->sessions, &walk.cursor, &walk.budget))
    {
        struct session_info info;

        if (!may_see(&walk, session->record->uid) ||
            (args->buffer && !session_hold(session, args->buffer)))
            continue;
        fill_session(broker, session, &info);
        if (!item(args->userdata, &info)) {
            *ret_next = walk_again(&walk);
            return 0;
        }
    }
    *ret_next = walk_end(&walk);
    return 0;
}

/* ---- reservations, names, tokens ------------------------------------------------------------------------ */

int op_list_reservations(struct op *op, const struct list_args *args, uint64_t *ret_next,
                         bool (*item)(void *userdata, const struct reservation_info *info))
{
    struct reservation *reservation;
    struct walk walk;
    int r = walk_begin(op, args, &walk);

    if (r)
        return r;
    WALK(walk, reservation, reservations_next(&op->broker->reservations, &walk.cursor, &walk.budget))
    {
        const struct reservation_record *record = reservation->record;
        struct reservation_info info = {
            .id = record->head.id,
            .session = record->session,
            .address = record->address,
            .size = record->size,
            .buffers = record->buffers,
            .uid = record->uid,
        };

        if (!may_see(&walk, record->uid))
            continue;
        if (!item(args->userdata, &info)) {
            *ret_next = walk_again(&walk);
            return 0;
        }
    }
    *ret_next = walk_end(&walk);
    return 0;
}

int op_list_names(struct op *op, const struct list_args *args, uint64_t *ret_next,
                  bool (*item)(void *userdata, const struct name_info *info))
{
    struct name *name;
    struct walk walk;
    int r = walk_begin(op, args, &walk);

    if (r)
        return r;
    WALK(walk, name, names_next(&op->broker->names, &walk.cursor, &walk.budget))
    {
        const struct name_record *record = name->record;
        struct name_info info = {
            .uid = record->uid,
            .buffer = record->buffer,
            .policy = record->policy,
            .keep_ms = record->keep_ms,
            .group_rights = record->group_rights,
            .gid = record->gid,
            .other_rights = record->other_rights,
            .session = record->session,
        };

        if (!may_see(&walk, record->uid) || (args->buffer && record->buffer != args->buffer))
            continue;
        memcpy(info.name, record->path, sizeof(info.name));
        if (!item(args->userdata, &info)) {
            *ret_next = walk_again(&walk);
            return 0;
        }
    }
    *ret_next = walk_end(&walk);
    return 0;
}

int op_list_tokens(struct op *op, const struct list_args *args, uint64_t *ret_next,
                   bool (*item)(void *userdata, const struct token_info *info))
{
    uint64_t now = clock_now_ns();
    struct token *token;
    struct walk walk;
    int r = walk_begin(op, args, &walk);

    if (r)
        return r;
    WALK(walk, token, tokens_next(&op->broker->tokens, &walk.cursor, &walk.budget))
    {
        const struct token_record *record = token->record;
        struct token_info info = {
            .serial = record->head.id,
            .buffer = record->buffer,
            .rights = record->rights,
            .flags = record->flags,
            .uid = record->uid,
            .gid = record->gid,
            .pid = (pid_t)record->pid,
            .uses_left = record->uses ? record->uses_left : 0,
            .maker_uid = record->maker_uid,
            .session = record->session,
        };

        if (!may_see(&walk, record->maker_uid) || (args->buffer && record->buffer != args->buffer))
            continue;
        /* rounded up: 0 means never */
        if (record->expires_at != DEADLINE_NEVER)
            info.expires_ms = deadline_left(record->expires_at, now) / NSEC_PER_MSEC + 1;
        if (!item(args->userdata, &info)) {
            *ret_next = walk_again(&walk);
            return 0;
        }
    }
    *ret_next = walk_end(&walk);
    return 0;
}
