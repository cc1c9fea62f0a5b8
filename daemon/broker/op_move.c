/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving a buffer to another node: see op_move.h.
 *
 * As in op_alloc.c, only move_run() leads from one step to the next. A request whose room is on its way back waits for
 * that, keeps nothing meanwhile, and begins anew then.
 */
#include "broker/op_move.h"

#include <stdlib.h>

#include "base/clock.h"
#include "broker/dedup.h"
#include "broker/events.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "broker/stocking.h"
#include "proto/methods.h"

/* ---- from where, to where ---------------------------------------------------------------------------------------- */

/* The pool that it is in, if that has the node; else the node's own pool of such pages. */
static int move_choose_pool(struct op *op, const struct buffer *buffer, uint32_t node, struct pool **ret)
{
    struct pool *own = buffer_pool(&op->broker->buffers, buffer);
    const struct memory_spec spec = {.n_nodes = 1, .nodes = {node}, .pages = own->pages, .placement = PLACEMENT_BIND};

    if (own->retired || !pool_has_node(own, node))
        return pools_find(op->broker->options.pools, &spec, ret, &op->problem);
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

/* All bytes on that node, and bound to it. */
static struct plan move_plan(const struct plan *from, uint32_t node)
{
    const struct plan_brief brief = {
        .bytes = from->brief.bytes, .n_nodes = 1, .node = node, .placement = PLACEMENT_BIND, .strict = true};
    struct plan plan;

    plan_unpack(&plan, &brief, NULL);
    return plan;
}

/* A buffer that is there by its record only, since a move failed or was interrupted, is moved once more. */
static bool is_there(const struct buffer *buffer, uint32_t node)
{
    const struct buffer_record *record = buffer->record;

    return record->n_nodes == 1 && record->node == node && record->placement == PLACEMENT_BIND &&
           record->flags & BUFFER_VERIFIED;
}

static bool is_moving(const struct broker *broker, const struct buffer *buffer)
{
    list_for_each_entry(move, &broker->moves, struct move, link) {
        if (move->buffer == buffer)
            return true;
    }
    return false;
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
    /* the way there would allocate what is missing, for the broker's own group to pay */
    return buffer_check_committed(buffer, &op->problem);
}

/* ---- the steps: 0, and move->step is the next; OP_PENDING; or the status to end with ----------------------------- */

static void move_resume(struct op_state *state);

static void move_cancel(struct op_state *state)
{
    struct move *move = container_of(state, struct move, state);

    if (list_is_linked(&move->link)) {
        atomic_store(&move->job.cancel, true);
        (void)job_withdraw(&move->job.job);
    } else {
        waiters_remove(&move->broker->waiters, &move->waiter);
        pending_call_at(state, 0, move_resume);
    }
}

static void move_begin_pending(struct move *move)
{
    if (!move->state.op)
        pending_begin(&move->broker->pending, &move->state, move->op, move_cancel);
}

/* Finds what is to be moved, from where, and the room that it needs. */
static int move_choose(struct move *move)
{
    struct broker *broker = move->broker;
    struct op *op = move->op;
    struct hold *hold;
    int r = find_own_memory(op, move->id, RIGHT_MANAGE, &hold);

    if (!r)
        r = may_move(op, hold->buffer);
    if (!r)
        r = move_choose_pool(op, hold->buffer, move->room.node, &move->room.pool);
    if (r)
        return r;
    move->buffer = hold->buffer;
    move->step = is_there(hold->buffer, move->room.node) ? MOVE_DONE : MOVE_RESERVE;
    buffer_plan(&broker->buffers, hold->buffer, &move->migration.from);
    move->room.on_node = move->migration.from.brief.bytes - bytes_on(&move->migration.from, move->room.node);
    move->room.in_pool =
        move->room.pool == buffer_pool(&broker->buffers, hold->buffer) ? 0 : move->migration.from.brief.bytes;
    move->room.payer = account_user(hold->buffer->charge.account);
    move->waiter.pool = move->room.pool->index;
    move->waiter.uid = hold->session->record->uid;
    move->job.job.uid = hold->session->record->uid;
    return 0;
}

static int move_reserve(struct move *move)
{
    const struct pool_demand *room = &move->room;
    int r = pool_reserve(room, &move->op->problem);

    if (!r)
        (void)account_ref(room->payer);
    move->step = move->broker->options.topology->one_node ? MOVE_RECORD : MOVE_MIGRATE;
    if (!r || !pool_can_reserve_soon(room))
        return r;
    stocking_shrink(move->broker, room->pool, room->node,
                    room->on_node > room->in_pool ? room->on_node : room->in_pool);
    if (!pool_can_reserve_soon(room))
        return r;
    move->step = MOVE_CHOOSE;
    move_begin_pending(move);
    waiters_add(&move->broker->waiters, &move->waiter, DEADLINE_NEVER);
    return OP_PENDING;
}

static void move_submit(struct op_state *state)
{
    struct move *move = container_of(state, struct move, state);

    memory_job_submit(&move->broker->jobs, &move->job);
}

/* Until the move has ended nobody knows where the pages are: the buffer is not VERIFIED. */
static int move_migrate(struct move *move)
{
    struct migration *migration = &move->migration;
    struct broker *broker = move->broker;
    struct buffer *buffer = move->buffer;

    move->was_verified = buffer->record->flags & BUFFER_VERIFIED;
    buffer_remove_flags(&broker->buffers, buffer, BUFFER_VERIFIED);
    list_append(&broker->moves, &move->link);
    lifecycle_pin(buffer);
    commit_init(&migration->to);
    migration->to.topology = broker->options.topology;
    migration->to.plan = move_plan(&migration->from, move->room.node);
    migration->to.pages = move->room.pool->pages;
    migration->to.page_size = move->room.pool->page_size;
    migration->cancel = &move->job.cancel;
    move->job.fd = buffer->fd;
    move->job.migration = migration;
    pressure_changed(broker);
    move->step = MOVE_RECORD;
    move_begin_pending(move);
    dedup_work(&move->state, move_submit);
    return OP_PENDING;
}

static int move_refuse(struct move *move, int status)
{
    struct problem *problem = &move->op->problem;
    char who[PROBLEM_SENTENCE_MAX];

    if (status != STATUS_BUSY) {
        *problem = move->job.problem;
        return status;
    }
    name_holders(move->buffer, (struct holders){.except = move->op->session}, who, sizeof(who));
    return refuse(problem, STATUS_BUSY,
                  "it stays: another process has some of its pages mapped, or uses them; who else holds it: %s", who);
}

/* If the pages are there, their charge moves, too; else the room is given back. */
static int move_record(struct move *move)
{
    struct broker *broker = move->broker;
    struct buffer *buffer = move->buffer;
    const struct pool_demand *room = &move->room;
    bool migrated = list_is_linked(&move->link);
    int r = move->job.status;

    list_remove(&move->link);
    pool_unreserve(room);
    account_unref(room->payer);
    if (!r)
        buffer_set_node(&broker->buffers, buffer, room->pool, room->node,
                        migrated ? move->migration.to.huge_bytes : buffer->record->huge_bytes);
    if (!r || (move->was_verified && !move->migration.displaced))
        buffer_add_flags(&broker->buffers, buffer, BUFFER_VERIFIED);
    if (!r)
        event_buffer(broker, EVENT_MOVED, buffer, move->op->session);
    waiters_wake(&broker->waiters);
    pressure_changed(broker);
    if (r)
        r = move_refuse(move, r);
    if (migrated)
        lifecycle_unpin(broker, buffer);
    move->step = MOVE_DONE;
    return r;
}

/* 0 or a status when it has ended, else OP_PENDING. */
static int move_run(struct move *move)
{
    int r = 0;

    /* later the worker decides, since pages are on their way */
    if (move->state.cancel_status && move->step == MOVE_CHOOSE)
        r = refuse(&move->op->problem, move->state.cancel_status, "moving was cancelled before it began");
    while (!r && move->step != MOVE_DONE) {
        switch (move->step) {
        case MOVE_CHOOSE:
            r = move_choose(move);
            break;
        case MOVE_RESERVE:
            r = move_reserve(move);
            break;
        case MOVE_MIGRATE:
            r = move_migrate(move);
            break;
        case MOVE_RECORD:
            r = move_record(move);
            break;
        case MOVE_DONE:
            break;
        }
    }
    return r;
}

/* ---- resumed by the loop ----------------------------------------------------------------------------------------- */

static void move_end(struct move *move, int r)
{
    if (r == OP_PENDING)
        return;
    pending_end(&move->state, r);
    free(move);
}

static void move_resume(struct op_state *state)
{
    struct move *move = container_of(state, struct move, state);

    move_end(move, move_run(move));
}

static void move_migrated(struct job *job)
{
    move_resume(&container_of(job, struct move, job.job)->state);
}

static bool move_retry(struct waiter *waiter)
{
    struct move *move = container_of(waiter, struct move, waiter);
    int r = move_choose(move);
    bool is_done = r || move->step == MOVE_DONE;

    move->step = MOVE_CHOOSE;
    return is_done || !pool_can_reserve_soon(&move->room);
}

static void move_wait_ended(struct waiter *waiter)
{
    struct move *move = container_of(waiter, struct move, waiter);
    struct op *op = move->op;
    int r;

    op->problem = (struct problem)PROBLEM_NULL;
    op_executing(op->broker, op->session, op->sequence, METHOD_MOVE);
    r = move_run(move);
    op_executed(op->broker);
    move_end(move, r);
}

int op_move(struct op *op, uint64_t id, uint32_t node)
{
    struct move *move = calloc(1, sizeof(*move));
    int r;

    if (!move)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    move->broker = op->broker;
    move->op = op;
    move->id = id;
    move->room.node = node;
    move->job.task = MEMORY_MOVE;
    move->job.job.op = op;
    move->job.job.done = move_migrated;
    waiter_init(&move->waiter, 0, 0);
    move->waiter.for_reclaim = true;
    move->waiter.ready = move_retry;
    move->waiter.go = move_wait_ended;
    list_init(&move->link);
    r = move_run(move);
    if (r != OP_PENDING)
        free(move);
    return r;
}
