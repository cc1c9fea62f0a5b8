/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of verbs in progress, and the queues for room. Serving stops at the first of a pool that does not
 * fit, and after so many in one turn; the rest comes in the next.
 */
#include "broker/pending.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

/* in one turn of the loop */
#define SERVE_MAX 16

void pending_init(struct pending *pending)
{
    *pending = (struct pending){.all = LIST_INIT(pending->all)};
}

void pending_begin(struct pending *pending, struct op_state *state, struct op *op,
                   void (*hurry)(struct op_state *state, int status))
{
    assert(!op->state);
    state->op = op;
    state->session = op->session;
    state->hurry = hurry;
    list_init(&state->link);
    list_append(&pending->all, &state->link);
    op->state = state;
}

void pending_end(struct op_state *state, int status)
{
    struct op *op = state->op;

    assert(op->state == state);
    list_remove(&state->link);
    op->state = NULL;
    state->op = NULL;
    op->done(op, status);
}

void pending_hurry(struct pending *pending, uint64_t session, int status)
{
    list_for_each_entry(state, &pending->all, struct op_state, link)
    {
        if (!session || state->session == session)
            state->hurry(state, status);
    }
}

void op_cancel(struct op *op)
{
    if (op->state)
        op->state->hurry(op->state, STATUS_TIMED_OUT);
}

/* ---- room ----------------------------------------------------------------------------------------------- */

static void turn(struct timer *timer)
{
    struct waiters *waiters = container_of(timer, struct waiters, turn);
    unsigned served = 0;

    for (uint32_t pool = 0; pool < waiters->n_pools && waiters->waiting; pool++) {
        struct list *link;

        while ((link = list_first(&waiters->pools[pool]))) {
            struct waiter *waiter = container_of(link, struct waiter, link);

            if (served == SERVE_MAX) {
                waiters_wake(waiters);
                return;
            }
            if (!waiter->ready(waiter))
                break;
            waiters_remove(waiters, waiter);
            waiter->go(waiter);
            served++;
        }
    }
}

int waiters_init(struct waiters *waiters, struct timers *timers, uint32_t n_pools)
{
    struct list *pools = calloc(n_pools ? n_pools : 1, sizeof(*pools));

    if (!pools)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_pools; i++)
        list_init(&pools[i]);
    *waiters = (struct waiters){.timers = timers, .pools = pools, .n_pools = n_pools, .turn = TIMER_INIT(turn)};
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

bool waiters_has(const struct waiters *waiters, uint32_t pool)
{
    return !list_is_empty(&waiters->pools[pool]);
}

static void waiter_expires(struct timer *timer)
{
    struct waiter *waiter = container_of(timer, struct waiter, timer);

    waiters_remove(waiter->waiters, waiter);
    waiter->expired(waiter);
}

void waiters_add(struct waiters *waiters, struct waiter *waiter, uint64_t deadline)
{
    waiter->timer = (struct timer)TIMER_INIT(waiter_expires);
    waiter->waiters = waiters;
    list_init(&waiter->link);
    list_append(&waiters->pools[waiter->pool], &waiter->link);
    waiters->waiting++;
    timer_arm(waiters->timers, &waiter->timer, deadline);
}

void waiters_remove(struct waiters *waiters, struct waiter *waiter)
{
    timer_disarm(waiters->timers, &waiter->timer);
    if (!list_is_linked(&waiter->link))
        return;
    list_remove(&waiter->link);
    waiters->waiting--;
}

void waiters_wake(struct waiters *waiters)
{
    if (waiters->waiting && !timer_is_armed(&waiters->turn))
        timer_arm(waiters->timers, &waiters->turn, 0);
}
