/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn is it? Users take turns, and so do the tasks of each user.
 *
 * A task is a small piece of work that a user caused: one packet of a connection, the end of a connection, the end of a
 * process. The tasks of a user are a flow, in order of arrival. It is always the turn of the flow that has used least
 * (start-time fair queueing). So a user with thousands of connections has no more of the loop than one with a single
 * connection, who asks for dear things is served less often than who asks for cheap ones, and who asks for less than
 * its part does not wait for who always asks for more, but for the one task that runs.
 *
 * A flow pays half for a request that leaves it no more than one other task. Who waits for each answer cannot ask
 * again before it has that, and until then the loop is the others' in any case; who has more to do has that done
 * meanwhile. So the former waits for one of the latter's tasks at most, where it would wait for two as soon as they are
 * cheaper than its own.
 *
 * Somebody else may have caused a task, too, who then pays half of it: those who connect have one flow together, since
 * who it was is known only afterwards.
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
};

RB_HEAD(fair_flows, fair_flow);

struct fair_queue {
    struct fair_flows flows; /* with tasks, by what they have used */
    uint64_t level;          /* what the flow whose turn it is has used */
    uint64_t most;           /* what any flow has used */
    uint64_t clock;          /* when the last task ended */
    struct fair_flow *runs;  /* that of the task that runs, unless it was removed meanwhile */
    struct fair_flow *pays;  /* another one that pays for that task, too; or NULL */
    bool is_request;         /* it is a request of a client */
    const struct fair_clocks *clocks;
    bool shared;          /* in this busy period there was more than one flow, */
    bool looked;          /* and the processor time was asked for: */
    uint64_t looked_at;   /* when, */
    uint64_t looked_used; /* and what the thread had used until then */
};

struct fair_flow {
    RB_ENTRY(fair_flow) entry;
    struct list tasks;
    uint64_t used; /* ns */
    bool waiting;  /* it is in the queue */
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

/* The task that runs serves a request: its client may wait for the answer before it asks again. */
void fair_queue_note_request(struct fair_queue *queue);
/* This flow pays for the task that runs, beside the task's own: its user has caused it. */
void fair_queue_charge(struct fair_queue *queue, struct fair_flow *flow);

/* Runs tasks for about so long, one at least if there is any. Returns whether there are more. */
bool fair_queue_run(struct fair_queue *queue, uint64_t ns);

static inline bool fair_queue_is_empty(const struct fair_queue *queue)
{
    return RB_EMPTY(&queue->flows);
}
