/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that could not end at once: those that a worker does, and those that wait for room in a pool.
 *
 * Whoever starts one embeds a struct op_state in what the operation needs meanwhile and calls pending_begin(); it ends
 * by pending_end(), which tells the caller. In between the caller may want it to end early, its session may end, and
 * the broker may stop: then it is cancelled, and ends soon with cancel_status, from the loop and never from inside the
 * call.
 *
 * Room is waited for pool by pool, and within a pool user by user. A user's requests are served in the order of
 * asking, none before an older one, so that his many small ones do not keep a large one waiting. Users take turns, and
 * one whose oldest does not fit keeps nobody else waiting: else a request for all of a pool would close it to all who
 * wait (I7). The bound of the wait is the caller's.
 *
 * A request may wait only for memory that is on its way back (reclaim.h): as long as that may still do, and no longer,
 * so there is no bound of the caller's. A user's requests that wait *for reclaim* are a queue of their own, else one
 * would stay behind an older one that waits for something else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/tree.h"
#include "broker/operations.h"
#include "broker/timers.h"

struct op_state {
    RB_ENTRY(op_state) link; /* all that are in progress */
    struct pending *pending;
    struct op *op;
    uint64_t session; /* when it began */
    int cancel_status; /* not 0: it was cancelled, with this */
    void (*cancel)(struct op_state *state); /* it is now; NULL: it looks at the status every now and then */
    struct timer timer;
    void (*later)(struct op_state *state); /* what the timer is for */
};

RB_HEAD(op_state_tree, op_state);

struct pending {
    struct op_state_tree tree; /* by session */
    struct timers *timers;
};

void pending_init(struct pending *pending, struct timers *timers);

static inline bool pending_is_empty(const struct pending *pending)
{
    return RB_EMPTY(&pending->tree);
}

void pending_begin(struct pending *pending, struct op_state *state, struct op *op,
                   void (*cancel)(struct op_state *state));
/* Calls `later` at this time, from the loop, unless the operation has ended by then. */
void pending_call_at(struct op_state *state, uint64_t at, void (*later)(struct op_state *state));
/* In progress no more, then op->done(). The state may be freed by then or afterwards, as its owner likes. */
void pending_end(struct op_state *state, int status);

/* All of them: the first after NULL; NULL after the last. */
struct op_state *pending_next(struct pending *pending, struct op_state *state);
/* Cancels all of a session that has ended. */
void pending_cancel(struct pending *pending, uint64_t session);

/* ---- room ----------------------------------------------------------------------------------------------- */

struct waiters;

struct waiter {
    struct waiters *waiters;
    struct list in_turn; /* of its pool: the oldest of its user */
    struct list younger; /* of that one: those behind it; of the others: in there */
    struct timer timer;  /* the caller's bound */
    uint32_t pool;
    uid_t uid;
    bool for_reclaim;
    bool (*ready)(struct waiter *waiter);   /* there may be room: try; true = it need not wait any more */
    void (*go)(struct waiter *waiter);      /* it was ready, and is in no queue now */
    void (*expired)(struct waiter *waiter); /* its time is over, and it is in no queue now */
};

struct waiters {
    struct timers *timers;
    struct list *pools; /* for each the oldest waiter of each user, in the order of their turns */
    uint32_t n_pools;
    uint32_t waiting;
    bool trying; /* whether there is room: what is given back then was taken only for that */
    struct timer turn;
};

/* 0 or -ENOMEM. */
int waiters_init(struct waiters *waiters, struct timers *timers, uint32_t n_pools);
void waiters_deinit(struct waiters *waiters);

void waiter_init(struct waiter *waiter, uint32_t pool, uid_t uid);
/* Does this user wait for this pool already? Then what would wait must queue behind that. */
bool waiters_has(const struct waiters *waiters, uint32_t pool, uid_t uid);
/* Until `deadline`. */
void waiters_add(struct waiters *waiters, struct waiter *waiter, uint64_t deadline);
/* Harmless if it waits no more. */
void waiters_remove(struct waiters *waiters, struct waiter *waiter);
/* Something was given back: they are served in a turn of the loop of their own. */
void waiters_wake(struct waiters *waiters);
