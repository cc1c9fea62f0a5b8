/* SPDX-License-Identifier: Apache-2.0 */
/* See fair_queue.h. */
#include "net/fair_queue.h"

void fair_queue_init(struct fair_queue *queue, uint64_t (*now)(void))
{
    list_init(&queue->flows);
    queue->period = 1;
    queue->runs = NULL;
    queue->now = now;
}

void fair_flow_init(struct fair_flow *flow)
{
    list_init(&flow->link);
    list_init(&flow->tasks);
    flow->credit = 0;
    flow->period = 0;
}

void fair_flow_remove(struct fair_queue *queue, struct fair_flow *flow)
{
    list_remove(&flow->link);
    if (queue->runs == flow)
        queue->runs = NULL;
}

void fair_task_init(struct fair_task *task, void (*run)(struct fair_task *task))
{
    list_init(&task->link);
    task->run = run;
}

/* A flow that begins has its first quantum; one that was here before in this busy period has no more than its debt. */
static void flow_begin(struct fair_queue *queue, struct fair_flow *flow)
{
    if (flow->period != queue->period || flow->credit > 0)
        flow->credit = 0;
    if (!flow->credit)
        flow->credit = FAIR_QUANTUM_NS;
    flow->period = queue->period;
    list_append(&queue->flows, &flow->link);
}

void fair_queue_add(struct fair_queue *queue, struct fair_flow *flow, struct fair_task *task)
{
    if (list_is_linked(&task->link))
        return;
    list_append(&flow->tasks, &task->link);
    if (!list_is_linked(&flow->link))
        flow_begin(queue, flow);
}

void fair_queue_put_first(struct fair_flow *flow, struct fair_task *task)
{
    list_remove(&task->link);
    list_prepend(&flow->tasks, &task->link);
}

void fair_queue_remove(struct fair_flow *flow, struct fair_task *task)
{
    list_remove(&task->link);
    if (list_is_empty(&flow->tasks))
        list_remove(&flow->link);
}

/* The flow whose turn it is. Each round lessens a debt, so it is found soon. */
static struct fair_flow *queue_turn(struct fair_queue *queue)
{
    for (;;) {
        struct fair_flow *flow = container_of(list_first(&queue->flows), struct fair_flow, link);

        if (flow->credit > 0)
            return flow;
        flow->credit += FAIR_QUANTUM_NS;
        list_remove(&flow->link);
        list_append(&queue->flows, &flow->link);
    }
}

static void flow_charge(struct fair_flow *flow, uint64_t ns)
{
    flow->credit -= ns < FAIR_DEBT_MAX_NS + FAIR_QUANTUM_NS ? (int64_t)ns : FAIR_DEBT_MAX_NS + FAIR_QUANTUM_NS;
    if (flow->credit < -FAIR_DEBT_MAX_NS)
        flow->credit = -FAIR_DEBT_MAX_NS;
    if (list_is_empty(&flow->tasks))
        list_remove(&flow->link);
}

bool fair_queue_run(struct fair_queue *queue, uint64_t ns)
{
    uint64_t begin, before, now;

    if (fair_queue_is_empty(queue))
        return false;
    begin = now = queue->now();
    do {
        struct fair_flow *flow = queue_turn(queue);
        struct fair_task *task = container_of(list_pop(&flow->tasks), struct fair_task, link);

        before = now;
        queue->runs = flow;
        task->run(task);
        now = queue->now();
        if (queue->runs)
            flow_charge(flow, now - before);
        queue->runs = NULL;
    } while (!fair_queue_is_empty(queue) && now - begin < ns);
    if (!fair_queue_is_empty(queue))
        return true;
    queue->period++;
    return false;
}
