/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs that could not end at once: those that a worker does, and those that wait for room in a pool.
 *
 * Whoever starts one embeds a struct op_state in what the verb needs meanwhile and calls pending_begin(); it
 * ends by pending_end(), which tells the caller. In between the caller may want it to end early, its session may
 * end, and the broker may stop: all three call `hurry`, which makes the verb end soon, from the loop and never
 * from inside the call.
 *
 * Room is waited for in the order of asking, pool by pool: who came first is served first, and nobody of the same
 * pool is served before him, so that many small requests do not keep a large one waiting beyond its own bound,
 * nor the other way round. The bound is the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "broker/timers.h"
#include "broker/verbs.h"

struct op_state {
    struct list link; /* all that are in progress */
    struct op *op;
    uint64_t session; /* when it began */
    void (*hurry)(struct op_state *state, int status);
};

struct pending {
    struct list all;
    bool stopping;
};

void pending_init(struct pending *pending);

static inline bool pending_is_empty(const struct pending *pending)
{
    return list_is_empty(&pending->all);
}

void pending_begin(struct pending *pending, struct op_state *state, struct op *op,
                   void (*hurry)(struct op_state *state, int status));
/* Out of all lists, then op->done(). The state may be freed by then or afterwards, as its owner likes. */
void pending_end(struct op_state *state, int status);

/* All of a session's, or of everybody with session 0. */
void pending_hurry(struct pending *pending, uint64_t session, int status);

/* ---- room ----------------------------------------------------------------------------------------------- */

struct waiters;

struct waiter {
    struct waiters *waiters;
    struct list link;
    struct timer timer; /* the caller's bound */
    uint32_t pool;
    bool (*ready)(struct waiter *waiter);   /* there may be room: try; true = it need not wait any more */
    void (*go)(struct waiter *waiter);      /* it was ready, and is in no queue now */
    void (*expired)(struct waiter *waiter); /* its time is over, and it is in no queue now */
};

struct waiters {
    struct timers *timers;
    struct list *pools; /* a queue for each */
    uint32_t n_pools;
    uint32_t waiting;
    struct timer turn;
};

/* 0 or -ENOMEM. */
int waiters_init(struct waiters *waiters, struct timers *timers, uint32_t n_pools);
void waiters_deinit(struct waiters *waiters);

/* Does anybody wait for this pool? Then who would wait must queue behind him. */
bool waiters_has(const struct waiters *waiters, uint32_t pool);
/* Until `deadline`. */
void waiters_add(struct waiters *waiters, struct waiter *waiter, uint64_t deadline);
/* Harmless if it waits no more. */
void waiters_remove(struct waiters *waiters, struct waiter *waiter);
/* Something was given back: they are served in a turn of the loop of their own. */
void waiters_wake(struct waiters *waiters);
