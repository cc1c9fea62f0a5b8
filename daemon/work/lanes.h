/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose job is next. Each user has a lane, in which jobs wait in the order of submission, and lanes take turns: those
 * of users of whom nothing runs first, then the others, so that each user has a job at work beside the others' before
 * anybody has two, and who is alone has all workers. A user may be limited to so many at a time.
 *
 * Spare jobs are nobody's, and are next when no lane has one that may run.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/tree.h"
#include "work/work.h"

struct work_lane {
    RB_ENTRY(work_lane) link;
    struct list in_turn;
    struct list waiting; /* struct work_job */
    uid_t uid;
    unsigned running;
};

RB_HEAD(work_lane_tree, work_lane);

struct lanes {
    struct work_lane_tree users; /* of whom something waits or runs */
    struct list first;           /* in turn: something waits and nothing runs */
    struct list others;          /* in turn: something waits and may run beside what runs */
    struct work_lane shared;     /* of all users for whom there was no memory */
    struct work_lane spare;
    unsigned user_max;
};

enum lanes_wait {
    LANES_NONE,
    LANES_OTHERS, /* a job may run, but only of users who have one running */
    LANES_FIRST,  /* … of a user who has none */
};

void lanes_init(struct lanes *lanes, unsigned user_max);
void lanes_deinit(struct lanes *lanes);

void lanes_add(struct lanes *lanes, uid_t uid, struct work_job *job);
/* Does a job wait that may run? */
bool lanes_have(const struct lanes *lanes);
/* The next of these, or NULL. It runs, until lanes_ended() or lanes_paused(): then it goes on when it is its
 * user's turn again, before what else waits in the lane. */
struct work_job *lanes_next(struct lanes *lanes);
void lanes_ended(struct lanes *lanes, struct work_job *job);
void lanes_paused(struct lanes *lanes, struct work_job *job);
/* Takes out one that waits. */
void lanes_remove(struct lanes *lanes, struct work_job *job);

enum lanes_wait lanes_waiting(const struct lanes *lanes);
