/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations in progress, and the queues for room. Serving stops after so many in one turn; the rest comes in
 * the next. A user's queue is a chain of its waiters, whose oldest stands for it in its pool.
 */
#include "broker/pending.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "broker/broker.h"
#include "broker/dedup.h"

/* waiters served in one turn of the loop */
#define SERVE_MAX 2

static int compare_sessions(const struct op_state *a, const struct op_state *b)
{
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    return (uintptr_t)a < (uintptr_t)b ? -1 : a != b;
}

TREE_GENERATE(op_state_tree, op_state, link, compare_sessions)

void pending_init(struct pending *pending, struct timers *timers, const struct broker_host *host)
{
    *pending = (struct pending){.tree = RB_INITIALIZER(&pending->tree), .timers = timers, .host = host};
}

static void op_state_due(struct timer *timer)
{
    struct op_state *state = container_of(timer, struct op_state, timer);

    state->later(state);
}

static void op_state_turn(struct user_task *turn)
{
    struct op_state *state = container_of(turn, struct op_state, turn);

    state->later(state);
}

void pending_begin(struct pending *pending, struct op_state *state, struct op *op,
                   void (*cancel)(struct op_state *state))
{
    assert(!op->state);
    state->op = op;
    state->session = op->session;
    state->cancel = cancel;
    state->pending = pending;
    state->timer = (struct timer)TIMER_INIT(op_state_due);
    state->turn = (struct user_task){.run = op_state_turn};
    RB_INSERT(op_state_tree, &pending->tree, state);
    op->state = state;
    dedup_pending(op);
}

void pending_call_at(struct op_state *state, uint64_t at, void (*later)(struct op_state *state))
{
    state->later = later;
    timer_arm(state->pending->timers, &state->timer, at);
}

void pending_call_in_turn(struct op_state *state, uid_t uid, void (*later)(struct op_state *state))
{
    const struct broker_host *host = state->pending->host;

    state->later = later;
    host->take_turn(host->userdata, &state->turn, uid);
}

void pending_end(struct op_state *state, int status)
{
    struct op *op = state->op;

    assert(op->state == state);
    timer_disarm(state->pending->timers, &state->timer);
    if (state->turn.user)
        state->pending->host->give_up_turn(state->pending->host->userdata, &state->turn);
    RB_REMOVE(op_state_tree, &state->pending->tree, state);
    op->state = NULL;
    state->op = NULL;
    op->done(op, status);
}

struct op_state *pending_next(struct pending *pending, struct op_state *state)
{
    return state ? RB_NEXT(op_state_tree, &pending->tree, state) : RB_MIN(op_state_tree, &pending->tree);
}

/* The first of this session or, if it has none, of a later one. */
static struct op_state *first_of(struct pending *pending, uint64_t session)
{
    struct op_state *first = NULL;

    for (struct op_state *state = RB_ROOT(&pending->tree); state;) {
        if (state->session >= session) {
            first = state;
            state = RB_LEFT(state, link);
        } else {
            state = RB_RIGHT(state, link);
        }
    }
    return first;
}

uint32_t pending_count(struct pending *pending, uint64_t session)
{
    struct op_state *state = first_of(pending, session);
    uint32_t n = 0;

    for (; state && state->session == session; state = pending_next(pending, state))
        n++;
    return n;
}

static void op_state_cancel(struct op_state *state, int status)
{
    if (state->cancel_status)
        return;
    state->cancel_status = status;
    if (state->cancel)
        state->cancel(state);
}

void pending_cancel(struct pending *pending, uint64_t session)
{
    struct op_state *state = first_of(pending, session);

    for (; state && state->session == session; state = pending_next(pending, state))
        op_state_cancel(state, STATUS_STALE);
}

void op_cancel(struct op *op)
{
    if (op->state)
        op_state_cancel(op->state, STATUS_TIMED_OUT);
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

static struct waiter *oldest_of(const struct waiters *waiters, uint32_t pool, uid_t uid, bool for_reclaim)
{
    list_for_each_entry(waiter, &waiters->pools[pool], struct waiter, in_turn) {
        if (waiter->uid == uid && waiter->for_reclaim == for_reclaim)
            return waiter;
    }
    return NULL;
}

/* Each user of the pool has one turn. False: there was no time for all of them. */
static bool serve_pool(struct waiters *waiters, uint32_t pool, unsigned *served)
{
    struct list round = LIST_INIT(round);
    struct list *link;

    list_splice(&round, &waiters->pools[pool]);
    while (*served < SERVE_MAX && (link = list_pop(&round))) {
        struct waiter *waiter = container_of(link, struct waiter, in_turn);
        bool ready;

        list_append(&waiters->pools[pool], link);
        waiters->trying = true;
        ready = waiter->ready(waiter);
        waiters->trying = false;
        if (!ready)
            continue;
        waiters_remove(waiters, waiter);
        waiter->go(waiter);
        ++*served;
    }
    /* users who had no turn come first in the next round */
    list_splice(&round, &waiters->pools[pool]);
    list_splice(&waiters->pools[pool], &round);
    return *served < SERVE_MAX;
}

/* As long as one is served there may be room for more. */
static void waiters_turn(struct timer *timer)
{
    struct waiters *waiters = container_of(timer, struct waiters, turn);
    unsigned served = 0;

    for (uint32_t pool = 0; pool < waiters->n_pools && waiters->waiting; pool++)
        if (!serve_pool(waiters, pool, &served))
            break;
    if (served)
        waiters_wake(waiters);
}

int waiters_init(struct waiters *waiters, struct timers *timers, uint32_t n_pools)
{
    struct list *pools = calloc(n_pools ? n_pools : 1, sizeof(*pools));

    if (!pools)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_pools; i++)
        list_init(&pools[i]);
    *waiters = (struct waiters){.timers = timers, .pools = pools, .n_pools = n_pools, .turn = TIMER_INIT(waiters_turn)};
    return 0;
}

void waiters_deinit(struct waiters *waiters)
{
    if (!waiters->pools)
        return;
    assert(!waiters->waiting);
    timer_disarm(waiters->timers, &waiters->turn);
    free(waiters->pools);
    waiters->pools = NULL;
}

bool waiters_has(const struct waiters *waiters, uint32_t pool, uid_t uid)
{
    return oldest_of(waiters, pool, uid, false) || oldest_of(waiters, pool, uid, true);
}

static void waiter_expires(struct timer *timer)
{
    struct waiter *waiter = container_of(timer, struct waiter, timer);

    waiters_remove(waiter->waiters, waiter);
    waiter->expired(waiter);
}

void waiter_init(struct waiter *waiter, uint32_t pool, uid_t uid)
{
    *waiter = (struct waiter){.pool = pool, .uid = uid, .timer = TIMER_INIT(waiter_expires)};
    list_init(&waiter->in_turn);
    list_init(&waiter->younger);
}

void waiters_add(struct waiters *waiters, struct waiter *waiter, uint64_t deadline)
{
    struct waiter *oldest = oldest_of(waiters, waiter->pool, waiter->uid, waiter->for_reclaim);

    waiter->waiters = waiters;
    if (oldest)
        list_append(&oldest->younger, &waiter->younger);
    else
        list_append(&waiters->pools[waiter->pool], &waiter->in_turn);
    waiters->waiting++;
    timer_arm(waiters->timers, &waiter->timer, deadline);
}

void waiters_remove(struct waiters *waiters, struct waiter *waiter)
{
    struct list *next = waiter->younger.next;

    timer_disarm(waiters->timers, &waiter->timer);
    if (!list_is_linked(&waiter->in_turn) && !list_is_linked(&waiter->younger))
        return;
    /* of the oldest, the next one takes the place in the list of the pool */
    if (list_is_linked(&waiter->in_turn) && list_is_linked(&waiter->younger))
        list_append(&waiter->in_turn, &container_of(next, struct waiter, younger)->in_turn);
    list_remove(&waiter->in_turn);
    list_remove(&waiter->younger);
    waiters->waiting--;
}

void waiters_wake(struct waiters *waiters)
{
    if (waiters->waiting && !waiters->trying && !timer_is_armed(&waiters->turn))
        timer_arm(waiters->timers, &waiters->turn, 0);
}
