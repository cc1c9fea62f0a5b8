/* SPDX-License-Identifier: Apache-2.0 */
/* See fair_queue.h. */
#include "net/fair_queue.h"

void fair_queue_init(struct fair_queue *queue, uint64_t (*now)(void))
{
    list_init(&queue->back);
    list_init(&queue->flows);
    queue->clock = now();
    queue->period = 1;
    queue->runs = NULL;
    queue->now = now;
}

void fair_flow_init(struct fair_flow *flow)
{
    list_init(&flow->link);
    list_init(&flow->tasks);
    flow->credit = 0;
    flow->left = 0;
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

static void flow_begin(struct fair_queue *queue, struct fair_flow *flow)
{
    uint64_t away = queue->clock - flow->left;

    if (flow->period != queue->period || away >= FAIR_QUANTUM_NS + FAIR_DEBT_MAX_NS)
        flow->credit = FAIR_QUANTUM_NS;
    else if ((flow->credit += (int64_t)away) > FAIR_QUANTUM_NS)
        flow->credit = FAIR_QUANTUM_NS;
    list_append(flow->credit > 0 ? &queue->back : &queue->flows, &flow->link);
}

static void flow_check_idle(struct fair_queue *queue, struct fair_flow *flow)
{
    if (!list_is_empty(&flow->tasks) || !list_is_linked(&flow->link))
        return;
    list_remove(&flow->link);
    flow->left = queue->clock;
    flow->period = queue->period;
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

void fair_queue_remove(struct fair_queue *queue, struct fair_flow *flow, struct fair_task *task)
{
    list_remove(&task->link);
    flow_check_idle(queue, flow);
}

/* Of those that are always there: whose turn it is. Each round lessens a debt, so it is found soon. */
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

static void flow_charge(struct fair_queue *queue, struct fair_flow *flow, uint64_t ns)
{
    const uint64_t most = FAIR_DEBT_MAX_NS + FAIR_QUANTUM_NS;

    flow->credit -= (int64_t)(ns < most ? ns : most);
    if (flow->credit < -FAIR_DEBT_MAX_NS)
        flow->credit = -FAIR_DEBT_MAX_NS;
    flow_check_idle(queue, flow);
}

static void queue_serve(struct fair_queue *queue, struct fair_flow *flow)
{
    struct fair_task *task = container_of(list_pop(&flow->tasks), struct fair_task, link);
    uint64_t before = queue->clock;

    queue->runs = flow;
    task->run(task);
    queue->clock = queue->now();
    if (queue->runs)
        flow_charge(queue, flow, queue->clock - before);
    queue->runs = NULL;
}

/* False: none of them is left. */
static bool queue_serve_back(struct fair_queue *queue)
{
    struct list *link = list_first(&queue->back);
    struct fair_flow *flow;

    if (!link)
        return false;
    flow = container_of(link, struct fair_flow, link);
    if (flow->credit > 0) {
        queue_serve(queue, flow);
        return true;
    }
    list_remove(link);
    list_append(&queue->flows, link);
    return true;
}

bool fair_queue_run(struct fair_queue *queue, uint64_t ns)
{
    uint64_t begin;
    bool others = false;

    if (fair_queue_is_empty(queue))
        return false;
    begin = queue->clock = queue->now();
    do {
        if (queue_serve_back(queue))
            continue;
        queue_serve(queue, queue_turn(queue));
        others = true;
    } while (!fair_queue_is_empty(queue) && queue->clock - begin < ns);
    if (!others && !list_is_empty(&queue->flows))
        queue_serve(queue, queue_turn(queue));
    if (!fair_queue_is_empty(queue))
        return true;
    queue->period++;
    return false;
}
