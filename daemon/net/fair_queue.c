/* SPDX-License-Identifier: Apache-2.0 */
/* See fair_queue.h. */
#include "net/fair_queue.h"

#include "base/cleanup.h"

static int flow_compare(const struct fair_flow *a, const struct fair_flow *b)
{
    if (a->used != b->used)
        return a->used < b->used ? -1 : 1;
    return a < b ? -1 : a > b;
}

TREE_GENERATE(fair_flows, fair_flow, entry, flow_compare)

void fair_queue_init(struct fair_queue *queue, const struct fair_clocks *clocks)
{
    *queue = (struct fair_queue){.level = FAIR_AHEAD_NS, .most = FAIR_AHEAD_NS, .clocks = clocks};
}

void fair_flow_init(struct fair_flow *flow)
{
    *flow = (struct fair_flow){0};
    list_init(&flow->tasks);
}

static void flow_wait(struct fair_queue *queue, struct fair_flow *flow)
{
    RB_INSERT(fair_flows, &queue->flows, flow);
    flow->waiting = true;
}

static void flow_leave(struct fair_queue *queue, struct fair_flow *flow)
{
    if (flow->waiting)
        RB_REMOVE(fair_flows, &queue->flows, flow);
    flow->waiting = false;
}

void fair_flow_remove(struct fair_queue *queue, struct fair_flow *flow)
{
    flow_leave(queue, flow);
    if (queue->runs == flow)
        queue->runs = NULL;
    if (queue->pays == flow)
        queue->pays = NULL;
}

void fair_task_init(struct fair_task *task, void (*run)(struct fair_task *task))
{
    *task = (struct fair_task){.run = run};
    list_init(&task->link);
}

/* It was away. */
static void flow_return(const struct fair_queue *queue, struct fair_flow *flow)
{
    if (flow->used < queue->level - FAIR_AHEAD_NS)
        flow->used = queue->level - FAIR_AHEAD_NS;
}

static void flow_begin(struct fair_queue *queue, struct fair_flow *flow)
{
    flow_return(queue, flow);
    if (queue->runs || !fair_queue_is_empty(queue))
        queue->shared = true;
    flow_wait(queue, flow);
}

void fair_queue_add(struct fair_queue *queue, struct fair_flow *flow, struct fair_task *task)
{
    if (list_is_linked(&task->link))
        return;
    list_append(&flow->tasks, &task->link);
    if (!flow->waiting && queue->runs != flow)
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
    if (list_is_empty(&flow->tasks))
        flow_leave(queue, flow);
}

/*
 * What a task cost that took so long by the clock: less, if the thread did not have the processor all the time since
 * the last look. For the first one of a busy period there is none, and nothing to compare with: it counts as cheap.
 */
static uint64_t queue_cost(struct fair_queue *queue, uint64_t ns)
{
    uint64_t used, passed, away;

    if (ns <= FAIR_CHEAP_NS || !queue->shared)
        return ns;
    used = queue->clocks->used();
    passed = queue->clock - queue->looked_at;
    away = queue->looked ? passed - (used - queue->looked_used) : ns;
    queue->looked = true;
    queue->looked_at = queue->clock;
    queue->looked_used = used;
    return away + FAIR_CHEAP_NS < ns ? ns - away : FAIR_CHEAP_NS;
}

static void flow_charge(struct fair_queue *queue, struct fair_flow *flow, uint64_t ns)
{
    const uint64_t most = queue->level + FAIR_BEHIND_NS;

    flow->used += ns;
    if (flow->used > most)
        flow->used = most;
    if (flow->used > queue->most)
        queue->most = flow->used;
}

/* Its place among those that wait is another one afterwards. */
static void flow_charge_other(struct fair_queue *queue, struct fair_flow *flow, uint64_t ns)
{
    bool waiting = flow->waiting;

    flow_leave(queue, flow);
    flow_return(queue, flow);
    flow_charge(queue, flow, ns);
    if (waiting)
        flow_wait(queue, flow);
}

static bool flow_has_several(const struct fair_flow *flow)
{
    return flow->tasks.next != flow->tasks.prev;
}

static void queue_serve(struct fair_queue *queue, struct fair_flow *flow)
{
    struct fair_task *task = container_of(list_pop(&flow->tasks), struct fair_task, link);
    uint64_t before = queue->clock, cost;
    struct fair_flow *other;

    flow_leave(queue, flow);
    if (flow->used > queue->level)
        queue->level = flow->used;
    queue->runs = flow;
    queue->is_request = false;
    task->run(task);
    queue->clock = queue->clocks->now();
    flow = steal_ptr(&queue->runs);
    other = steal_ptr(&queue->pays);
    if (!flow && !other)
        return;
    cost = queue_cost(queue, queue->clock - before);
    if (other && other != flow)
        flow_charge_other(queue, other, cost / 2);
    if (!flow)
        return;
    flow_charge(queue, flow, queue->is_request && !flow_has_several(flow) ? cost / 2 : cost);
    if (!list_is_empty(&flow->tasks))
        flow_wait(queue, flow);
}

void fair_queue_note_request(struct fair_queue *queue)
{
    queue->is_request = true;
}

void fair_queue_charge(struct fair_queue *queue, struct fair_flow *flow)
{
    queue->pays = flow;
}

bool fair_queue_run(struct fair_queue *queue, uint64_t ns)
{
    uint64_t begin;

    if (fair_queue_is_empty(queue))
        return false;
    begin = queue->clock = queue->clocks->now();
    do
        queue_serve(queue, RB_MIN(fair_flows, &queue->flows));
    while (!fair_queue_is_empty(queue) && queue->clock - begin < ns);
    if (!fair_queue_is_empty(queue))
        return true;
    /* nobody waits, so nobody owes anything */
    queue->level = queue->most;
    queue->shared = queue->looked = false;
    return false;
}
