/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a buffer to another node. See op_move.h. */
#include "broker/op_move.h"

#include <stdlib.h>

#include "base/clock.h"
#include "broker/check.h"
#include "broker/events.h"
#include "broker/export.h"
#include "broker/lookup.h"
#include "broker/once.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "proto/methods.h"

/* Where it stays, if it has that node: else the pool of such pages that the machine made there. */
static int choose_pool(struct op *op, const struct buffer *buffer, uint32_t node, struct pool **ret)
{
    struct pool *own = buffer_pool(&op->broker->buffers, buffer);
    const struct pool_request request = {
        .n_nodes = 1, .nodes = &node, .pages = own->pages, .placement = PLACEMENT_BIND};

    if (own->retired || !pool_has_node(own, node))
        return pools_find(op->broker->options.pools, &request, ret, &op->problem);
    *ret = own;
    return 0;
}

static uint64_t bytes_on(const struct plan *plan, uint32_t node)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        if (plan->nodes.node[i] == node)
            bytes += plan->nodes.bytes[i];
    return bytes;
}

/* All on that node, and bound to it. */
static struct plan plan_for(const struct plan *from, uint32_t node)
{
    const struct plan_brief brief = {
        .bytes = from->brief.bytes, .n_nodes = 1, .node = node, .placement = PLACEMENT_BIND, .strict = true};
    struct plan plan;

    plan_unpack(&plan, &brief, NULL);
    return plan;
}

/* One that is there by its record alone, since a move of it failed or was not finished, is moved once more. */
static bool is_there(const struct buffer *buffer, uint32_t node)
{
    const struct buffer_record *record = buffer->record;

    return record->n_nodes == 1 && record->node == node && record->placement == PLACEMENT_BIND &&
           record->flags & BUFFER_VERIFIED;
}

static bool is_moving(const struct broker *broker, const struct buffer *buffer)
{
    list_for_each_entry(move, &broker->moves, struct move, link)
    {
        if (move->work.buffer == buffer)
            return true;
    }
    return false;
}

/* The pages are there: from one charge to the other. */
static void arrive(struct broker *broker, struct buffer *buffer, const struct pool_room *room, uint64_t huge_bytes)
{
    check_crediting(broker, CHECK_BUFFER, buffer);
    pool_give_room(room);
    buffer_set_node(&broker->buffers, buffer, room->pool, room->node, huge_bytes);
    buffer_set_verified(&broker->buffers, buffer, true);
    check_charged(broker, CHECK_BUFFER, buffer);
    waiters_wake(&broker->waiters);
    pressure_changed(broker);
}

static int refuse_in_use(const struct move *move, struct op *op)
{
    char who[PROBLEM_SENTENCE_MAX];

    name_holders(move->work.buffer, 0, op->session, who);
    return refuse(&op->problem, STATUS_BUSY,
                  "it stays: another process has some of its pages mapped, or uses them; who else holds it: %s", who);
}

static int moved(struct buffer_work *work)
{
    struct move *move = container_of(work, struct move, work);
    struct broker *broker = work->broker;

    list_remove(&move->link);
    if (!work->job.status) {
        arrive(broker, work->buffer, &move->room, move->migration.to.huge_bytes);
        return 0;
    }
    pool_give_room(&move->room);
    waiters_wake(&broker->waiters);
    pressure_changed(broker);
    if (move->was_verified && !move->migration.displaced)
        buffer_set_verified(&broker->buffers, work->buffer, true);
    return work->job.status == STATUS_BUSY ? refuse_in_use(move, work->state.op) : work->job.status;
}

static void submit(struct op_state *state)
{
    struct buffer_work *work = container_of(state, struct buffer_work, state);

    memory_job_move(&work->broker->jobs, &work->job);
}

/* The room is kept. As long as the pages are on their way nobody has seen where they are. */
static int depart(struct op *op, struct buffer *buffer, const struct pool_room *room, const struct plan *from)
{
    struct broker *broker = op->broker;
    struct buffer_work *work;
    struct move *move;
    int r = buffer_work_begin(op, buffer, sizeof(*move), moved, &work);

    if (r != OP_PENDING) {
        pool_give_room(room);
        return r;
    }
    move = container_of(work, struct move, work);
    move->room = *room;
    move->was_verified = buffer->record->flags & BUFFER_VERIFIED;
    buffer_set_verified(&broker->buffers, buffer, false);
    list_append(&broker->moves, &move->link);
    commit_init(&move->migration.to);
    move->migration.to.topology = broker->options.topology;
    move->migration.to.plan = plan_for(from, room->node);
    move->migration.to.pages = room->pool->pages;
    move->migration.to.page_size = room->pool->page_size;
    move->migration.from = *from;
    move->migration.cancel = &work->job.cancel;
    work->job.migration = &move->migration;
    pressure_changed(broker);
    once_work(&work->state, submit);
    return OP_PENDING;
}

static int may_move(struct op *op, const struct buffer *buffer)
{
    unsigned long long id = buffer->record->head.id;

    if (buffer->record->pages == PAGES_HUGETLB)
        return refuse(&op->problem, STATUS_NOT_SUPPORTED,
                      "buffer %llu is of huge pages of the system, which stay where they are; copy it", id);
    if (buffer->record->flags & BUFFER_LAZY)
        return refuse(&op->problem, STATUS_NOT_SUPPORTED,
                      "buffer %llu is of a lazy pool: its pages are where they are touched; copy it", id);
    if (is_moving(op->broker, buffer))
        return refuse(&op->problem, STATUS_BUSY, "buffer %llu is being moved already; wait for that", id);
    return 0;
}

/* ---- waiting for room ----------------------------------------------------------------------------------- */

/* For what is on its way back to the node, as allocation does; nothing is kept meanwhile, and then all begins anew. */
struct move_wait {
    struct op_state state;
    struct waiter waiter;
    struct timer ending; /* for what was hurried */
    struct broker *broker;
    uint64_t buffer;
    uint32_t node;
    int hurried; /* the status to end with */
};

/* What is to be moved, from where, and the room that it needs; NULL if it is there already. */
static int prepare(struct op *op, uint64_t id, uint32_t node, struct buffer **ret, struct plan *from,
                   struct pool_room *room)
{
    struct broker *broker = op->broker;
    struct session *session;
    struct hold *hold;
    int r = op_session(op, &session);

    if (!r)
        r = find_hold(broker, session, id, RIGHT_MANAGE, &hold, &op->problem);
    if (!r)
        r = foreign_cannot(hold->buffer, &op->problem);
    if (!r)
        r = may_move(op, hold->buffer);
    *room = (struct pool_room){.node = node};
    if (!r)
        r = choose_pool(op, hold->buffer, node, &room->pool);
    if (r)
        return r;
    *ret = is_there(hold->buffer, node) ? NULL : hold->buffer;
    buffer_plan(&broker->buffers, hold->buffer, from);
    room->on_node = from->brief.bytes - bytes_on(from, node);
    room->in_pool = room->pool == buffer_pool(&broker->buffers, hold->buffer) ? 0 : from->brief.bytes;
    return 0;
}

static bool need_not_wait(struct waiter *waiter)
{
    struct move_wait *wait = container_of(waiter, struct move_wait, waiter);
    struct pool_room room;
    struct buffer *buffer;
    struct plan from;

    return prepare(wait->state.op, wait->buffer, wait->node, &buffer, &from, &room) || !buffer ||
           !pool_room_returns(&room);
}

static void begin_anew(struct waiter *waiter)
{
    struct move_wait *wait = container_of(waiter, struct move_wait, waiter);
    struct op *op = pending_leave(&wait->state);
    uint64_t buffer = wait->buffer;
    uint32_t node = wait->node;
    int r;

    free(wait);
    op->problem = (struct problem)PROBLEM_NULL;
    op_executing(op->broker, op->session, op->sequence, METHOD_MOVE);
    r = op_move(op, buffer, node);
    op_executing(op->broker, 0, 0, 0);
    if (r != OP_PENDING)
        op->done(op, r);
}

static void ending_turn(struct timer *timer)
{
    struct move_wait *wait = container_of(timer, struct move_wait, ending);
    int r = refuse(&wait->state.op->problem, wait->hurried, "moving was cancelled before it began");

    pending_end(&wait->state, r);
    free(wait);
}

static void hurry(struct op_state *state, int status)
{
    struct move_wait *wait = container_of(state, struct move_wait, state);

    if (wait->hurried)
        return;
    wait->hurried = status;
    waiters_remove(&wait->broker->waiters, &wait->waiter);
    timer_arm(&wait->broker->timers, &wait->ending, 0);
}

static int wait_for_room(struct op *op, uint64_t buffer, const struct pool_room *room)
{
    struct session *session = find_session(op->broker, op->session);
    struct move_wait *wait = calloc(1, sizeof(*wait));

    if (!wait)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    wait->broker = op->broker;
    wait->buffer = buffer;
    wait->node = room->node;
    wait->ending = (struct timer)TIMER_INIT(ending_turn);
    waiter_init(&wait->waiter, room->pool->index, session->record->uid);
    wait->waiter.hoping = true;
    wait->waiter.ready = need_not_wait;
    wait->waiter.go = begin_anew;
    pending_begin(&op->broker->pending, &wait->state, op, hurry);
    waiters_add(&op->broker->waiters, &wait->waiter, DEADLINE_NEVER);
    return OP_PENDING;
}

/* ---- the verb ------------------------------------------------------------------------------------------- */

int op_move(struct op *op, uint64_t id, uint32_t node)
{
    struct broker *broker = op->broker;
    struct pool_room room;
    struct buffer *buffer;
    struct plan from;
    int r = prepare(op, id, node, &buffer, &from, &room);

    if (r || !buffer)
        return r;
    r = pool_keep_room(&room, &op->problem);
    if (r && pool_room_returns(&room))
        stocking_give_way(broker, room.pool, room.node, room.on_node > room.in_pool ? room.on_node : room.in_pool);
    if (r)
        return pool_room_returns(&room) ? wait_for_room(op, id, &room) : r;
    if (!broker->options.topology->one_node)
        return depart(op, buffer, &room, &from);
    arrive(broker, buffer, &room, buffer->record->huge_bytes);
    return 0;
}
