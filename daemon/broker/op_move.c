/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a buffer to another node. See op_move.h. */
#include "broker/op_move.h"

#include "broker/check.h"
#include "broker/events.h"

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

int op_move(struct op *op, uint64_t id, uint32_t node)
{
    struct broker *broker = op->broker;
    struct session *session;
    struct buffer *buffer;
    struct hold *hold;
    struct pool_room room = {.node = node};
    struct plan from;
    int r = op_session(op, &session);

    if (!r)
        r = find_hold(broker, session, id, RIGHT_MANAGE, &hold, &op->problem);
    if (r)
        return r;
    buffer = hold->buffer;
    r = may_move(op, buffer);
    if (!r)
        r = choose_pool(op, buffer, node, &room.pool);
    if (r)
        return r;
    if (is_there(buffer, node))
        return 0;
    buffer_plan(&broker->buffers, buffer, &from);
    room.on_node = from.brief.bytes - bytes_on(&from, node);
    room.in_pool = room.pool == buffer_pool(&broker->buffers, buffer) ? 0 : from.brief.bytes;
    r = pool_keep_room(&room, &op->problem);
    if (r)
        return r;
    if (!broker->options.topology->one_node)
        return depart(op, buffer, &room, &from);
    arrive(broker, buffer, &room, buffer->record->huge_bytes);
    return 0;
}
