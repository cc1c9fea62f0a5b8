/* SPDX-License-Identifier: Apache-2.0 */
/* See lanes.h. */
#include "work/lanes.h"

#include <stdlib.h>

static int compare_lanes(const struct work_lane *a, const struct work_lane *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

TREE_GENERATE(work_lane_tree, work_lane, link, compare_lanes)

static void lane_init(struct work_lane *lane, uid_t uid)
{
    *lane = (struct work_lane){.uid = uid};
    list_init(&lane->in_turn);
    list_init(&lane->waiting);
}

void lanes_init(struct lanes *lanes, unsigned user_max)
{
    *lanes = (struct lanes){.users = RB_INITIALIZER(&lanes->users), .user_max = user_max};
    list_init(&lanes->first);
    list_init(&lanes->others);
    lane_init(&lanes->shared, 0);
    lane_init(&lanes->spare, 0);
}

void lanes_deinit(struct lanes *lanes)
{
    struct work_lane *lane;

    while ((lane = RB_MIN(work_lane_tree, &lanes->users))) {
        RB_REMOVE(work_lane_tree, &lanes->users, lane);
        free(lane);
    }
}

static struct work_lane *lane_of(struct lanes *lanes, uid_t uid)
{
    struct work_lane key = {.uid = uid};
    struct work_lane *lane = RB_FIND(work_lane_tree, &lanes->users, &key);

    if (lane)
        return lane;
    lane = malloc(sizeof(*lane));
    if (!lane)
        return &lanes->shared;
    lane_init(lane, uid);
    (void)RB_INSERT(work_lane_tree, &lanes->users, lane);
    return lane;
}

/* The turn that it has by now, at the end of those like it; no lane without use stays. */
static void lane_settle(struct lanes *lanes, struct work_lane *lane)
{
    if (lane == &lanes->spare)
        return;
    list_remove(&lane->in_turn);
    if (list_is_empty(&lane->waiting)) {
        if (!lane->running && lane != &lanes->shared) {
            RB_REMOVE(work_lane_tree, &lanes->users, lane);
            free(lane);
        }
    } else if (!lane->running) {
        list_append(&lanes->first, &lane->in_turn);
    } else if (lane->running < lanes->user_max) {
        list_append(&lanes->others, &lane->in_turn);
    }
}

void lanes_add(struct lanes *lanes, uid_t uid, struct work_job *job)
{
    struct work_lane *lane = job->spare ? &lanes->spare : lane_of(lanes, uid);
    bool is_first = list_is_empty(&lane->waiting);

    job->lane = lane;
    list_append(&lane->waiting, &job->link);
    if (is_first)
        lane_settle(lanes, lane);
}

bool lanes_have(const struct lanes *lanes)
{
    return lanes_waiting(lanes) != LANES_NONE || !list_is_empty(&lanes->spare.waiting);
}

struct work_job *lanes_next(struct lanes *lanes)
{
    struct list *turn = list_first(&lanes->first);
    struct work_lane *lane;
    struct list *link;

    if (!turn)
        turn = list_first(&lanes->others);
    lane = turn ? container_of(turn, struct work_lane, in_turn) : &lanes->spare;
    link = list_pop(&lane->waiting);
    if (!link)
        return NULL;
    lane->running++;
    lane_settle(lanes, lane);
    return container_of(link, struct work_job, link);
}

void lanes_ended(struct lanes *lanes, struct work_job *job)
{
    job->lane->running--;
    lane_settle(lanes, job->lane);
    job->lane = NULL;
}

void lanes_paused(struct lanes *lanes, struct work_job *job)
{
    job->lane->running--;
    list_prepend(&job->lane->waiting, &job->link);
    lane_settle(lanes, job->lane);
}

void lanes_remove(struct lanes *lanes, struct work_job *job)
{
    list_remove(&job->link);
    if (list_is_empty(&job->lane->waiting))
        lane_settle(lanes, job->lane);
    job->lane = NULL;
}

enum lanes_wait lanes_waiting(const struct lanes *lanes)
{
    if (!list_is_empty(&lanes->first))
        return LANES_FIRST;
    return list_is_empty(&lanes->others) ? LANES_NONE : LANES_OTHERS;
}
