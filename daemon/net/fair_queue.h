/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn is it? Users take turns, and so do the tasks of each user.
 *
 * A task is a small piece of work that a user caused: one packet of a connection, the end of a connection, the end of a
 * process. The tasks of a user are a flow, in order of arrival. Flows share the loop by deficit round robin: a flow
 * whose turn it is runs tasks until it has used its quantum of time, and what it used too much is taken off its next
 * turns. So a user with thousands of connections has the same part of the loop as one with a single connection, and who
 * asks for dear things is served less often than who asks for cheap ones.
 *
 * Who has little to do should not wait for who has much: a flow that was away is served before those that are always
 * there, as long as it has credit left, which comes back while it is away. One of the others is served all the same in
 * each turn of the loop.
 *
 * Time is what passes on the clock, so a task during which another process had the processor looks dear. A debt is
 * therefore limited, and ends with the busy period, when no user has anything to do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* What a flow may use before it is another one's turn: about three small requests. */
#define FAIR_QUANTUM_NS  10000
#define FAIR_DEBT_MAX_NS (20 * FAIR_QUANTUM_NS)

struct fair_queue {
    struct list back;       /* flows that were away, and are served first */
    struct list flows;      /* the others with tasks; whose turn it is, first */
    uint64_t clock;         /* when the last task ended */
    uint64_t period;        /* number of the busy period */
    struct fair_flow *runs; /* that of the task that runs, unless it was removed meanwhile */
    uint64_t (*now)(void);
};

struct fair_flow {
    struct list link;
    struct list tasks;
    int64_t credit;  /* ns; negative: a debt */
    uint64_t left;   /* when it had nothing to do any more, */
    uint64_t period; /* and in which busy period */
};

struct fair_task {
    struct list link;
    void (*run)(struct fair_task *task); /* it is in no queue when it runs, and may free itself */
};

void fair_queue_init(struct fair_queue *queue, uint64_t (*now)(void));
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

/* Runs tasks for about so long, one at least if there is any, and one of those who are always there. Returns whether
 * there are more. */
bool fair_queue_run(struct fair_queue *queue, uint64_t ns);

static inline bool fair_queue_is_empty(const struct fair_queue *queue)
{
    return list_is_empty(&queue->back) && list_is_empty(&queue->flows);
}
