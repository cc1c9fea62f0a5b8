/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that could not end at once: workers do a part of them, or they wait for room in a pool.
 *
 * Such an operation embeds a struct op_state in what it needs meanwhile. pending_begin() starts it, and pending_end()
 * ends it and tells the caller. In between the caller may give it up, or its session may end: then it is cancelled, and
 * ends soon with cancel_status, from the loop and never from inside the call.
 *
 * Each pool has queues for room, one for each user. A user's requests are served in order, so that many small ones do
 * not keep a large one waiting. Users take turns, and a request that does not fit keeps no other user waiting: else a
 * request for all of a pool would close it to everybody (I7). The caller sets the longest wait.
 *
 * A request may also wait for memory that is on its way back (reclaim.h), for as long as that may be enough; the caller
 * sets no limit to that. A user's requests that wait *for reclaim* have a queue of their own, else one would stay
 * behind an older one that waits for something else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/tree.h"
#include "broker/operations.h"
#include "broker/timers.h"
#include "work/turn.h"

struct broker_host;

struct op_state {
    RB_ENTRY(op_state) link; /* in the tree of all that are in progress */
    struct pending *pending;
    struct op *op;
    uint64_t session;                       /* that it began in */
    int cancel_status;                      /* not 0: it was cancelled, and ends with this */
    void (*cancel)(struct op_state *state); /* called then; NULL: it looks at cancel_status now and then */
    struct timer timer;
    struct user_task turn;
    void (*later)(struct op_state *state); /* what the timer or the turn is for */
};

RB_HEAD(op_state_tree, op_state);

struct pending {
    struct op_state_tree tree; /* by session */
    struct timers *timers;
    const struct broker_host *host;
};

void pending_init(struct pending *pending, struct timers *timers, const struct broker_host *host);

static inline bool pending_is_empty(const struct pending *pending)
{
    return RB_EMPTY(&pending->tree);
}

void pending_begin(struct pending *pending, struct op_state *state, struct op *op,
                   void (*cancel)(struct op_state *state));
/* Calls `later` at this time, from the loop, unless the operation has ended by then. */
void pending_call_at(struct op_state *state, uint64_t at, void (*later)(struct op_state *state));
/* Likewise in the next turn of this user, for an operation that is done in slices (work/turn.h). */
void pending_call_in_turn(struct op_state *state, uid_t uid, void (*later)(struct op_state *state));
/* Takes it out of the tree and calls op->done(). Its owner may free the state there or afterwards. */
void pending_end(struct op_state *state, int status);

/* Walks all of them: the first after NULL, and NULL after the last. */
struct op_state *pending_next(struct pending *pending, struct op_state *state);
/* Those of a session; not many, since a client may have only so many requests without an answer. */
uint32_t pending_count(struct pending *pending, uint64_t session);
/* Cancels all operations of a session that has ended. */
void pending_cancel(struct pending *pending, uint64_t session);

/* ---- room -------------------------------------------------------------------------------------------------------- */

struct waiters;

struct waiter {
    struct waiters *waiters;
    struct list in_turn; /* in the list of its pool, if it is the oldest of its user */
    struct list younger; /* the ring of the user's waiters in that pool, in order of age */
    struct timer timer;  /* ends the wait */
    uint32_t pool;
    uid_t uid;
    bool for_reclaim;
    bool (*ready)(struct waiter *waiter);   /* there may be room. True: it need not wait any more */
    void (*go)(struct waiter *waiter);      /* after that, when it is in no queue any more */
    void (*expired)(struct waiter *waiter); /* its time is over; it is in no queue any more */
};

struct waiters {
    struct timers *timers;
    struct list *pools; /* of each pool: the oldest waiter of each user, in the order of their turns */
    uint32_t n_pools;
    uint32_t waiting;
    bool trying; /* a waiter takes and gives back now to see whether there is room: nobody is to be woken for that */
    struct timer turn;
};

/* 0 or -ENOMEM. */
int waiters_init(struct waiters *waiters, struct timers *timers, uint32_t n_pools);
void waiters_deinit(struct waiters *waiters);

void waiter_init(struct waiter *waiter, uint32_t pool, uid_t uid);
/* Does this user wait for this pool already? Then another request of theirs must queue. */
bool waiters_has(const struct waiters *waiters, uint32_t pool, uid_t uid);
/* Waits until `deadline` at most. */
void waiters_add(struct waiters *waiters, struct waiter *waiter, uint64_t deadline);
/* Harmless if it waits no more. */
void waiters_remove(struct waiters *waiters, struct waiter *waiter);
/* Something was given back: waiters are served in a turn of the loop of its own. */
void waiters_wake(struct waiters *waiters);
