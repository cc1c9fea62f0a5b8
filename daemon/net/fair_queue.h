/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn is it? Users take turns, and so do the tasks of each user.
 *
 * A task is a small piece of work that a user caused: one packet of a connection, the end of a connection, the end of a
 * process. The tasks of a user are a flow, in order of arrival. It is always the turn of the flow that has used least
 * (start-time fair queueing). So a user with thousands of connections has the same part of the loop as one with a
 * single connection, who asks for dear things is served less often than who asks for cheap ones, and who asks for less
 * than its part does not wait for who always asks for more, but for the one task that runs.
 *
 * A flow that was away has not saved up what it did not use: it starts a little before the others, with what a few
 * requests cost. What it has used too much is remembered as long as the queue is busy, but not without end.
 *
 * What a task uses is processor time. To ask for that takes longer than to look at the clock, so only a task that seems
 * dear by the clock is looked at closer: perhaps another process had the processor meanwhile, such as the client whose
 * reply the task sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/tree.h"
#include "work/turn.h"

/* What a flow that comes back may use before others: a few small requests. */
#define FAIR_AHEAD_NS 10000
/* What a flow may have used more than others, as far as that is remembered: twice what the dearest request costs. No
 * more, since interrupts and the host of a virtual machine take time that looks like ours. */
#define FAIR_BEHIND_NS 500000
/* Until then a task is cheap. */
#define FAIR_CHEAP_NS 4000

struct fair_clocks {
    uint64_t (*now)(void);
    uint64_t (*used)(void); /* processor time of this thread */
    /* Sleeps until this task has something to do, or for so long: has it? NULL: nobody is waited for. */
    bool (*await)(struct fair_task *task, uint64_t ns);
};

RB_HEAD(fair_flows, fair_flow);

struct slice {
    struct fair_flow *holder; /* or NULL */
    uint64_t begun_at;
    unsigned served; /* tasks of the holder */
};

struct fair_queue {
    struct fair_flows flows; /* with tasks, by what they have used */
    uint64_t level;          /* what the flow whose turn it is has used */
    uint64_t most;           /* what any flow has used */
    uint64_t clock;          /* when the last task ended */
    struct fair_flow *runs;  /* that of the task that runs, unless it was removed meanwhile */
    struct slice slice;      /* slice.h */
    unsigned n_heavy;        /* flows with tasks that wait while another one has a slice, */
    uint64_t heavy_at;       /* and when one of those was served last */
    const struct fair_clocks *clocks;
    bool shared;          /* in this busy period there was more than one flow, */
    bool looked;          /* and the processor time was asked for: */
    uint64_t looked_at;   /* when, */
    uint64_t looked_used; /* and what the thread had used until then */
};

struct fair_flow {
    RB_ENTRY(fair_flow) entry;
    struct list tasks;
    uint64_t used;   /* ns, divided by the weight */
    unsigned weight; /* so many parts are its own */
    bool waiting;    /* it is in the queue */
    bool shared;     /* it has the tasks of many users */

    /* for slice.c */
    bool heavy;                       /* is it counted in the queue's n_heavy? */
    uint64_t load;                    /* ns that it has used of late */
    uint64_t left_at;                 /* when it had no tasks any more */
    uint64_t epoch;                   /* of what it has used */
    unsigned sources, sources_before; /* in this epoch, and in the one before */
    struct fair_task *look;           /* its task that only looks whether there is more; or NULL */
    unsigned hits, misses;            /* in a row: it asked again in time, or did not */
    unsigned cut;                     /* slices that were over too early, in a row */
    uint64_t not_before;              /* it is waited for again */
};

void fair_queue_init(struct fair_queue *queue, const struct fair_clocks *clocks);
void fair_flow_init(struct fair_flow *flow);
/* The flow is about to be freed; it has no tasks. */
void fair_flow_remove(struct fair_queue *queue, struct fair_flow *flow);
void fair_task_init(struct fair_task *task, void (*run)(struct fair_task *task));

/* Adds a task to its flow, unless it is there already. */
void fair_queue_add(struct fair_queue *queue, struct fair_flow *flow, struct fair_task *task);
/* Moves a task that is in its flow to the front: it goes on when it is the flow's turn. */
void fair_queue_put_first(struct fair_flow *flow, struct fair_task *task);
/* The flow has no part in the queue any more if this was its last task. */
void fair_queue_remove(struct fair_queue *queue, struct fair_flow *flow, struct fair_task *task);

/* Of a task that runs: when it is in the queue again, it is only to look whether its user has asked for more. All that
 * there was is answered. */
void fair_flow_answered(struct fair_flow *flow, struct fair_task *look);

/* Runs tasks for about so long, one at least if there is any. Returns whether there are more. */
bool fair_queue_run(struct fair_queue *queue, uint64_t ns);

/* Of those with tasks, the flow that has used least, or the one that is not heavy; NULL: there is none. */
struct fair_flow *fair_queue_first(struct fair_queue *queue, bool heavy);
/* It has used so much. */
void fair_flow_charge(struct fair_queue *queue, struct fair_flow *flow, uint64_t ns);

static inline bool fair_queue_is_empty(const struct fair_queue *queue)
{
    return RB_EMPTY(&queue->flows);
}
