/* SPDX-License-Identifier: Apache-2.0 */
/* See slice.h. */
#include "net/slice.h"

/* ---- heavy flows ------------------------------------------------------------------------------------------------- */

/* It has tasks, or will have in a moment. */
static bool queue_has_heavy(const struct fair_queue *queue)
{
    return queue->n_heavy || (queue->heavy_at && queue->clock - queue->heavy_at < SLICE_LULL_NS);
}

static bool flow_is_of_many(const struct fair_flow *flow)
{
    return flow->shared || flow->sources >= SLICE_SOURCES || flow->sources_before >= SLICE_SOURCES;
}

bool slice_waits_for(const struct fair_flow *flow)
{
    return flow->load >= (flow_is_of_many(flow) ? SLICE_MANY_NS : SLICE_HEAVY_NS);
}

/* One that has a single source has waited for a reply. */
void slice_flow_returned(struct fair_queue *queue, struct fair_flow *flow)
{
    uint64_t away = queue->clocks->now() - flow->left_at;

    if (!flow_is_of_many(flow) || away >= SLICE_LATE_NS)
        flow->load = 0;
    else
        flow->load -= flow->load * away / SLICE_LATE_NS;
}

void slice_flow_runs(struct fair_flow *flow, struct fair_task *task)
{
    uint64_t epoch = flow->used / SLICE_EPOCH_NS + 1;

    /* it had nothing else, and may have asked again before anybody looked */
    if (flow->look == task && list_is_empty(&flow->tasks) && !flow_is_of_many(flow))
        flow->load = 0;
    flow->look = NULL;
    if (flow->epoch != epoch) {
        flow->epoch = epoch;
        flow->sources_before = flow->sources;
        flow->sources = 0;
    }
    flow->sources += task->is_source && task->seen != epoch;
    task->seen = epoch;
}

void slice_flow_ran(struct fair_flow *flow, uint64_t ns)
{
    flow->load += ns;
    if (flow->load > SLICE_LATE_NS)
        flow->load = SLICE_LATE_NS;
}

void slice_flow_left(const struct fair_queue *queue, struct fair_flow *flow)
{
    flow->left_at = queue->clock;
}

/* ---- who is waited for ------------------------------------------------------------------------------------------- */

/* Is all that is to be done for it to look whether there is more? */
static bool flow_only_looks(const struct fair_flow *flow)
{
    return flow->waiting && flow->look && flow->tasks.next == &flow->look->link &&
           flow->tasks.prev == &flow->look->link;
}

/* It is not waited for, for longer each time in a row. */
static void flow_shun(const struct fair_queue *queue, struct fair_flow *flow, unsigned *times)
{
    flow->not_before = queue->clock + ((uint64_t)SLICE_AWAY_NS << *times);
    *times += *times < SLICE_DOUBLES;
}

static bool flow_await(struct fair_queue *queue, struct fair_flow *flow)
{
    struct fair_task *look = flow->look;
    uint64_t before = queue->clock, took;
    bool found;

    fair_queue_remove(queue, flow, look);
    found = queue->clocks->await(look, SLICE_WAIT_NS);
    queue->clock = queue->clocks->now();
    took = queue->clock - before;
    fair_flow_charge(queue, flow, took < SLICE_WAIT_NS ? took : SLICE_WAIT_NS);
    if (found) {
        fair_queue_add(queue, flow, look);
        if (++flow->hits >= SLICE_HITS)
            flow->misses = 0;
    } else {
        if (flow->hits < SLICE_HITS)
            flow_shun(queue, flow, &flow->misses);
        flow->hits = 0;
    }
    return found;
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

void slice_offer(struct fair_queue *queue, struct fair_flow *flow)
{
    if (queue->slice.holder || !queue_has_heavy(queue) || !queue->clocks->await)
        return;
    if (flow->heavy || !flow_only_looks(flow) || queue->clock < flow->not_before)
        return;
    queue->slice = (struct slice){.holder = flow, .begun_at = queue->clock};
}

uint64_t slice_turn_ns(const struct fair_queue *queue, uint64_t ns)
{
    return queue->slice.holder && ns < SLICE_TURN_NS ? SLICE_TURN_NS : ns;
}

static void slice_end_if_over(struct fair_queue *queue)
{
    struct fair_flow *holder = queue->slice.holder;
    bool late = queue->clock - queue->slice.begun_at >= SLICE_MOST_NS;

    if (!late && queue->slice.served < SLICE_TASKS && queue_has_heavy(queue) && !holder->heavy)
        return;
    if (queue->slice.served >= SLICE_FEWEST)
        holder->cut = SLICE_CUT;
    else if (late)
        flow_shun(queue, holder, &holder->cut);
    queue->slice.holder = NULL;
}

struct fair_flow *slice_next(struct fair_queue *queue)
{
    struct fair_flow *first, *holder;

    if (queue->slice.holder)
        slice_end_if_over(queue);
    holder = queue->slice.holder;
    first = fair_queue_first(queue, !holder);
    if (!holder || (first && first != holder))
        return first;
    if (holder->waiting && (!flow_only_looks(holder) || flow_await(queue, holder))) {
        queue->slice.served++;
        return holder;
    }
    queue->slice.holder = NULL;
    return fair_queue_first(queue, true);
}
