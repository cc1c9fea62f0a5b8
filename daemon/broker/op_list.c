/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings and INFO: what the caller may see of the broker's objects. A listing walks over the records, a bounded
 * number in each call. The kinds differ in one function, which takes a step of the walk and makes a row of what is
 * there.
 *
 * A cursor on the wire is one more than the walk's own, which begins at 0. So 0 is "the beginning" in a request and
 * "that was all" in a reply.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "base/clock.h"
#include "broker/lookup.h"
#include "broker/op_list.h"
#include "broker/report.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "mem/pool.h"
#include "proto/methods.h"
#include "proto/status.h"

static_assert(TOPOLOGY_NODES_MAX <= MEMORYD_NODES_MAX, "a node's distances fit into a row");

/* Records that one call looks at: of those that the caller may not see, a page has none. */
#define LIST_LOOKS 64

/* How old what LIST_POOLS tells of huge pages may be: to ask the kernel takes as long as many rows. */
#define LIST_POOLS_AGE_NS (10 * NSEC_PER_MSEC)

struct walk {
    struct broker *broker;
    struct session *session; /* the caller's */
    bool all;                /* an administrator's */
    uint64_t buffer;         /* only what is about this one; 0 = everything */
    bool of_user;            /* only what applies to `uid` */
    uid_t uid;
    uint64_t cursor;
    unsigned budget;
};

/* The result of a step: a row; something that the caller may not see or did not ask for; the end of the walk (its
 * cursor is 0) or of its budget. */
enum walk_step { WALK_ROW, WALK_SKIPPED, WALK_ENDED };

/* Makes the row at the cursor, and moves that on. */
typedef enum walk_step walk_fn(struct walk *walk, union list_row *row);

static bool may_see(const struct walk *walk, uid_t uid)
{
    return walk->all || uid == walk->session->record->uid;
}

static bool is_about(const struct walk *walk, uint64_t buffer)
{
    return !walk->buffer || walk->buffer == buffer;
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

/* The next of `n` things that have indexes, and no records. */
static bool walk_index(struct walk *walk, uint64_t n, uint64_t *ret_index)
{
    if (walk->cursor >= n) {
        walk->cursor = 0;
        return false;
    }
    *ret_index = walk->cursor++;
    return true;
}

static enum walk_step list_node(struct walk *walk, union list_row *row)
{
    const struct topology *topology = walk->broker->options.topology;
    const struct topology_node *node;
    const struct budget *budget;
    uint64_t index;

    if (!walk_index(walk, topology->n_nodes, &index))
        return WALK_ENDED;
    node = &topology->nodes[index];
    budget = pools_node_budget(walk->broker->options.pools, node->number);
    row->node = (struct node_info){
        .node = node->number,
        .physical = node->physical,
        .total = node->total,
        .capacity = budget ? budget->capacity : 0,
        .used = budget ? tally_used(&budget->bytes) : 0,
        .has_cpus = node->has_cpus,
    };
    for (uint32_t to = 0; to < TOPOLOGY_NODES_MAX; to++) {
        row->node.distances[to] = node->distances[to];
        if (node->distances[to])
            row->node.n_distances = to + 1;
    }
    return WALK_ROW;
}

/* The largest buffer that could be had, if need be after waiting for memory on its way back. */
static uint64_t pool_available_to(struct pool *pool, const struct session *session)
{
    uint64_t mine = account_left(session->account, ACCOUNT_BYTES), largest = pool_largest_soon(pool, session->account);

    if (pool->retired || allow_check(&pool->allow, pool->name, &session->peer, NULL))
        return 0;
    return mine < largest ? align_down(mine, pool->granule) : largest;
}

static enum walk_step list_pool(struct walk *walk, union list_row *row)
{
    struct pools *pools = walk->broker->options.pools;
    struct pool_info *info = &row->pool;
    struct pool *pool;
    uint64_t index;

    if (!walk_index(walk, pools_count(pools), &index))
        return WALK_ENDED;
    pool = pools_get(pools, (uint32_t)index);
    *info = (struct pool_info){
        .n_nodes = pool->n_nodes,
        .pages = pool->pages,
        .page_size = pool->page_size,
        .granule = pool->granule,
        .placement = pool->placement,
        .part_size = pool->part_size,
        .n_weights = pool->n_weights,
        .lazy = pool->committer == COMMITTER_NONE,
        .client_charged = pool->committer != COMMITTER_BROKER,
        .declared = pool->declared,
        .capacity = pool_capacity(pool),
        .used = tally_used(&pool->bytes),
        .available = pool_available_to(pool, walk->session),
        .buffers = tally_used(&pool->buffers),
        .stock = pool->bytes.in[TALLY_STOCK],
        .stock_buffers = pool->buffers.in[TALLY_STOCK],
        .stock_ready = stocking_ready(walk->broker, pool),
    };
    memcpy(info->name, pool->name, sizeof(pool->name));
    memcpy(info->allow, pool->allow.text, sizeof(pool->allow.text));
    memcpy(info->nodes, pool->nodes, pool->n_nodes * sizeof(*info->nodes));
    memcpy(info->weights, pool->weights, pool->n_weights * sizeof(*info->weights));
    return WALK_ROW;
}

/* ---- buffers and sessions ---------------------------------------------------------------------------------------- */

static void fill_holder(const struct hold *hold, struct buffer_info *info)
{
    info->holders[info->n_holders] = hold->record->session;
    info->holder_rights[info->n_holders] = hold->record->rights;
    info->holder_cached[info->n_holders] = caches_have(hold);
    info->holder_since_ms[info->n_holders] = hold->since_ms;
    info->holder_claims[info->n_holders++] = hold->record->kind;
}

static void fill_all_holders(const struct buffer *buffer, struct buffer_info *info)
{
    struct hold *hold = NULL;

    while (info->n_holders < MEMORYD_HOLDERS_MAX && (hold = buffer_next_hold(buffer, hold)))
        fill_holder(hold, info);
}

static void fill_holders_of(uid_t uid, const struct buffer *buffer, struct buffer_info *info)
{
    struct hold *hold = NULL;

    while (info->n_holders < MEMORYD_HOLDERS_MAX && (hold = buffer_next_hold_of(buffer, uid, hold)))
        fill_holder(hold, info);
}

/* The first that the session may know: it is of its user, or grants it something. */
static void fill_name(const struct broker *broker, const struct session *session, const struct buffer *buffer,
                      struct buffer_info *info)
{
    list_for_each_entry(name, &buffer->names, struct name, in_buffer) {
        char text[NAME_TEXT_SIZE];

        if (!name_rights(name, &session->peer, is_admin(broker, session)))
            continue;
        name_text(name, session->record->uid, text);
        (void)snprintf(info->name, sizeof(info->name), "%s", text);
        return;
    }
}

void list_fill_buffer(struct broker *broker, const struct session *session, const struct buffer *buffer,
                      struct buffer_info *info)
{
    const struct buffer_record *record = buffer->record;
    const struct pool *pool = buffer_pool(&broker->buffers, buffer);
    struct plan plan = {.brief = {.n_nodes = 0}};

    if (pool)
        buffer_plan(&broker->buffers, buffer, &plan);
    *info = (struct buffer_info){
        .id = record->head.id,
        .state = record->state,
        .flags = buffer_flags(buffer),
        .size = record->size,
        .bytes = record->bytes,
        .pages = record->pages,
        .page_size = pool ? pool->page_size : 0,
        .placement = record->placement,
        .n_nodes = plan.brief.n_nodes,
        .huge_bytes = record->huge_bytes,
        .uid = record->uid,
        .charged_uid = record->charged_uid,
        .pid = (pid_t)record->pid,
        .inode = record->inode,
        .address = record->address,
        .created_ms = record->created_ms,
        .detached_ms = record->detached_ms,
        .holds = buffer->n_holds,
        .names = buffer->n_names,
        .tokens = buffer->n_tokens,
        .seals = buffer_seals(buffer),
    };
    if (pool)
        memcpy(info->pool, pool->name, sizeof(pool->name));
    for (uint32_t i = 0; i < plan.brief.n_nodes; i++) {
        info->nodes[i] = plan.nodes.node[i];
        info->node_bytes[i] = plan.nodes.bytes[i];
    }
    if (may_see_sharing(broker, session, buffer))
        fill_all_holders(buffer, info);
    else
        fill_holders_of(session->record->uid, buffer, info);
    fill_name(broker, session, buffer, info);
}

void list_fill_holder(struct broker *broker, const struct session *session, const struct buffer *buffer,
                      uint64_t holder, struct buffer_info *info)
{
    const struct session *one = sessions_find(&broker->sessions, holder);
    const struct hold *hold = one ? session_hold(one, buffer->record->head.id) : NULL;

    if (!hold || (one->record->uid != session->record->uid && !may_see_sharing(broker, session, buffer)))
        return;
    for (uint32_t i = 0; i < info->n_holders; i++)
        if (info->holders[i] == holder)
            return;
    if (info->n_holders == MEMORYD_HOLDERS_MAX)
        info->n_holders--;
    fill_holder(hold, info);
}

int op_info(struct op *op, uint64_t id, struct buffer_info *result)
{
    struct session *session;
    struct buffer *buffer;
    int r = op_session(op, &session);

    if (r)
        return r;
    buffer = buffers_find(&op->broker->buffers, id);
    if (!buffer)
        return no_such(op->broker, &op->problem, id, "buffer");
    r = op_may_see(op, session, buffer);
    if (!r)
        list_fill_buffer(op->broker, session, buffer, result);
    return r;
}

static enum walk_step list_buffer(struct walk *walk, union list_row *row)
{
    struct buffer *buffer = table_next(&walk->broker->buffers.table, &walk->cursor, &walk->budget);

    if (!buffer)
        return WALK_ENDED;
    if (!is_about(walk, buffer->record->head.id) || buffer_is_unowned(buffer) ||
        !may_see_buffer(walk->broker, walk->session, buffer))
        return WALK_SKIPPED;
    list_fill_buffer(walk->broker, walk->session, buffer, &row->buffer);
    return WALK_ROW;
}

static enum walk_step list_session(struct walk *walk, union list_row *row)
{
    struct broker *broker = walk->broker;
    struct session *session = table_next(&broker->sessions.table, &walk->cursor, &walk->budget);
    struct session_info *info = &row->session;
    const struct session_record *record;

    if (!session)
        return WALK_ENDED;
    record = session->record;
    if (!may_see(walk, record->uid) || (walk->buffer && !session_hold(session, walk->buffer)))
        return WALK_SKIPPED;
    *info = (struct session_info){
        .id = record->head.id,
        .uid = record->uid,
        .gid = record->gid,
        .pid = (pid_t)record->pid,
        .connected = session->connection,
        .created_ms = record->created_ms,
        .bytes = account_used(session->account, ACCOUNT_BYTES),
        .holds = session->n_holds,
        .tokens = (uint32_t)account_used(session->account, ACCOUNT_TOKENS),
        .reservations = (uint32_t)account_used(session->account, ACCOUNT_RESERVATIONS),
        .waiting = pending_count(&broker->pending, record->head.id),
    };
    memcpy(info->program, record->program, sizeof(info->program));
    if (session->connection) {
        struct connection_info connection;

        broker->host.connection_info(broker->host.userdata, session->connection, &connection);
        info->fds_in_flight = connection.fds_in_flight;
        info->queued_bytes = connection.queued_bytes;
        info->requests = connection.requests;
    }
    return WALK_ROW;
}

/* ---- reservations, names, tokens --------------------------------------------------------------------------------- */

static enum walk_step list_reservation(struct walk *walk, union list_row *row)
{
    const struct reservation *reservation = table_next(&walk->broker->reservations.table, &walk->cursor, &walk->budget);
    const struct reservation_record *record;

    if (!reservation)
        return WALK_ENDED;
    record = reservation->record;
    if (!may_see(walk, record->uid))
        return WALK_SKIPPED;
    row->reservation = (struct reservation_info){
        .id = record->head.id,
        .session = record->session,
        .address = record->address,
        .size = record->size,
        .buffers = record->buffers,
        .uid = record->uid,
    };
    return WALK_ROW;
}

static enum walk_step list_name(struct walk *walk, union list_row *row)
{
    const struct name *name = table_next(&walk->broker->names.table, &walk->cursor, &walk->budget);
    const struct name_record *record;

    if (!name)
        return WALK_ENDED;
    record = name->record;
    if (!may_see(walk, record->uid) || !is_about(walk, record->buffer))
        return WALK_SKIPPED;
    row->name = (struct name_info){
        .uid = record->uid,
        .buffer = record->buffer,
        .policy = record->policy,
        .keep_ms = record->keep_ms,
        .group = record->group_rights,
        .gid = record->gid,
        .others = record->other_rights,
        .session = record->session,
    };
    memcpy(row->name.name, record->path, sizeof(row->name.name));
    return WALK_ROW;
}

static enum walk_step list_token(struct walk *walk, union list_row *row)
{
    const struct token *token = table_next(&walk->broker->tokens.table, &walk->cursor, &walk->budget);
    const struct token_record *record;

    if (!token)
        return WALK_ENDED;
    record = token->record;
    if (!may_see(walk, record->maker_uid) || !is_about(walk, record->buffer))
        return WALK_SKIPPED;
    row->token = (struct token_info){
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
    /* rounded up: 0 means never */
    if (record->expires_at != DEADLINE_NEVER)
        row->token.expires_ms = deadline_left(record->expires_at, clock_now_ns()) / NSEC_PER_MSEC + 1;
    return WALK_ROW;
}

/* ---- the history, and limits ------------------------------------------------------------------------------------- */

static const char *method_name(uint32_t method)
{
    switch ((enum method)method) {
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat, grants) \
    case METHOD_##NAME:                                                                   \
        return #name;
        MEMORYD_METHODS(X)
#undef X
#define X(id, NAME, name, message) case METHOD_EVENT_##NAME:
        MEMORYD_EVENTS(X)
#undef X
        break;
    }
    return "";
}

static enum walk_step list_history_entry(struct walk *walk, union list_row *row)
{
    const struct history_record *record = history_next(walk->broker->history, &walk->cursor, &walk->budget);
    struct history_entry_info *info = &row->history_entry;

    if (!record)
        return WALK_ENDED;
    if (!may_see(walk, record->uid) && record->kind != HISTORY_STARTED)
        return WALK_SKIPPED;
    *info = (struct history_entry_info){
        .serial = record->serial,
        .kind = record->kind,
        .at_ms = record->last_ms,
        .first_ms = record->first_ms,
        .count = record->count,
        .uid = record->uid,
        .pid = (pid_t)record->pid,
        .session = record->session,
        .wanted = record->wanted,
        .used = record->used,
        .limit = record->limit,
        .mine = record->mine,
        .most_uid = (uid_t)-1,
        .waited_ms = record->waited_ms,
        .end = record->end,
        .exit_status = record->kind == HISTORY_ENDED ? record->status : 0,
        .began_ms = record->began_ms,
        .bytes = record->bytes,
        .holds = record->holds,
        .buffer = record->buffer,
    };
    if (may_see(walk, record->most_uid)) {
        info->most_uid = record->most_uid;
        info->most = record->most;
    }
    (void)snprintf(info->method, sizeof(info->method), "%s", method_name(record->method));
    if (record->kind == HISTORY_REFUSED)
        (void)snprintf(info->status, sizeof(info->status), "%s", status_name(record->status));
    memcpy(info->program, record->program, sizeof(record->program));
    memcpy(info->sentence, record->sentence, sizeof(record->sentence));
    memcpy(info->resource, record->resource, sizeof(record->resource));
    memcpy(info->pool, record->pool, sizeof(record->pool));
    return WALK_ROW;
}

static void fill_pool_limit(const struct account *account, struct pool *pool, struct limit_info *info)
{
    info->limit = pool_capacity(pool);
    info->used = pool_used_by(pool, account);
    info->available = pool_available_soon(pool, account);
    memcpy(info->resource, "bytes", sizeof("bytes"));
    memcpy(info->pool, pool->name, sizeof(pool->name));
}

static void fill_limit(const struct account *account, enum account_slot slot, struct limit_info *info)
{
    info->limit = account_limit(account, slot);
    info->used = account_used(account, slot);
    info->available = account_left(account, slot);
    info->session_limit = account_session_limit(account, slot);
    (void)snprintf(info->resource, sizeof(info->resource), "%s", account_slot_key(slot));
    (void)account_limit_key(account, slot, info->key);
}

/* What the connections of a user have is counted elsewhere. */
static bool is_counted_by_connections(enum account_slot slot)
{
    return slot == ACCOUNT_QUEUED_BYTES || slot == ACCOUNT_FDS_IN_FLIGHT;
}

/* The limits have indexes, and the pools come after them. */
static enum walk_step list_limit_of(const struct walk *walk, const struct account *account, uint64_t index,
                                    struct limit_info *info)
{
    *info = (struct limit_info){
        .uid = account->uid,
        .session_limit = ACCOUNT_NO_LIMIT,
        .share = account_share(account),
    };
    if (index >= ACCOUNT_SLOTS)
        fill_pool_limit(account, pools_get(walk->broker->options.pools, (uint32_t)(index - ACCOUNT_SLOTS)), info);
    else if (is_counted_by_connections((enum account_slot)index))
        return WALK_SKIPPED;
    else
        fill_limit(account, (enum account_slot)index, info);
    return WALK_ROW;
}

/* One who has nothing gets an account for as long as a row takes. */
static enum walk_step list_limit_of_user(struct walk *walk, union list_row *row)
{
    _cleanup_(account_unrefp) struct account *account = NULL;
    uint64_t index;

    if (!walk_index(walk, ACCOUNT_SLOTS + pools_count(walk->broker->options.pools), &index))
        return WALK_ENDED;
    if (account_of_user(&walk->broker->accounts, walk->uid, &account, NULL)) {
        walk->cursor = 0;
        return WALK_ENDED;
    }
    return list_limit_of(walk, account, index, &row->limit);
}

/* The walk is over users, and in each over the limits and then the pools. */
#define LIMITS_SHIFT 16

static enum walk_step list_limit(struct walk *walk, union list_row *row)
{
    uint64_t uid = walk->cursor >> LIMITS_SHIFT, index = walk->cursor & ((1 << LIMITS_SHIFT) - 1);
    uid_t from = walk->all ? (uid_t)uid : walk->session->record->uid;
    const struct account *account = uid <= UINT32_MAX ? account_next(&walk->broker->accounts, from) : NULL;

    if (walk->of_user)
        return list_limit_of_user(walk, row);
    if (account && account->uid != uid)
        index = 0;
    if (!account || (!walk->all && (account->uid != from || uid > from))) {
        walk->cursor = 0;
        return WALK_ENDED;
    }
    if (index >= ACCOUNT_SLOTS + pools_count(walk->broker->options.pools)) {
        walk->cursor = ((uint64_t)account->uid + 1) << LIMITS_SHIFT;
        return WALK_SKIPPED;
    }
    walk->cursor = ((uint64_t)account->uid << LIMITS_SHIFT) + index + 1;
    return list_limit_of(walk, account, index, &row->limit);
}

/* ---- running them ------------------------------------------------------------------------------------------------ */

int op_list(struct op *op, enum list_kind kind, const struct list_args *args, uint64_t *ret_next,
            bool (*item)(void *userdata, const union list_row *row))
{
    static walk_fn *const steps[] = {
#define X(NAME, name, row, Row, Reply) [LIST_##NAME] = list_##row,
        MEMORYD_LISTINGS(X)
#undef X
    };
    struct walk walk = {.broker = op->broker, .buffer = args->buffer, .budget = LIST_LOOKS};
    enum walk_step step;
    union list_row row;
    int r;

    r = op_session(op, &walk.session);
    if (r)
        return r;
    walk.all = is_admin(op->broker, walk.session);
    walk.of_user = args->of_user;
    walk.uid = args->uid;
    if (kind == LIST_LIMITS && walk.of_user && !may_see(&walk, walk.uid))
        return refuse(&op->problem, STATUS_NO_RIGHT,
                      "what uid %u may have is their own to ask about, and root's and the broker's user's",
                      (unsigned)walk.uid);
    walk.cursor = args->cursor ? args->cursor - 1 : 0;
    if (kind == LIST_POOLS)
        pools_refresh(op->broker->options.pools, LIST_POOLS_AGE_NS);
    do {
        uint64_t before = walk.cursor;

        step = steps[kind](&walk, &row);
        if (step == WALK_ROW && !item(args->userdata, &row)) {
            *ret_next = before + 1;
            return 0;
        }
    } while (step != WALK_ENDED);
    *ret_next = walk.cursor ? walk.cursor + 1 : 0;
    return 0;
}
