/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices: waiting a moment for who asks again at once, before work that others always have.
 *
 * A user that waits for each reply has nothing in the queue when it was answered, so that it would be the turn of
 * somebody else after each of its requests. If that one always has more to do, each request of the first waits for a
 * task of the other one, which may take ten times as long, although it has used least; and the processor is taken from
 * neither before a task or a call of the kernel ends. So the loop does as schedulers of disks do (anticipatory
 * scheduling: S. Iyer and P. Druschel, 2001; the idle slices of Linux' CFQ): it waits some us for the next request of
 * the user it has answered, and serves that first, for as many requests as a slice has. What the user has used
 * meanwhile, and waiting for it counts as use, the others get before its next slice. Over time everybody has the same
 * part of the loop as without; but of the requests of who waits for its replies, one in a slice waits for others,
 * instead of each.
 *
 * Only heavy flows are kept waiting: those that have had tasks without a pause for some time, or, if they have many
 * sources (connections; or all who connect), used a good part of the loop. All others, which ask for little or come
 * now and then, are served as before, when it is their turn; two users who call and wait do not wait for each other's
 * pauses. Nobody is waited for who has not come back in time of late. And a slice that is over before it has served
 * enough requests is not worth what the others wait, nor what its own last request waits: that user gets none for some
 * time.
 */
#pragma once

#include "net/fair_queue.h"

/* How long the next request is waited for: what it takes to wake a process, and a little. */
#define SLICE_WAIT_NS 30000
/* So many tasks of its holder, of which the first waits for others: fewer than one in a hundred. With fewer than the
 * least, it is not worth it. */
#define SLICE_TASKS  256
#define SLICE_FEWEST 128
/* It takes no longer, however few those were. */
#define SLICE_MOST_NS 4000000
/* How often the loop looks meanwhile who else has come. */
#define SLICE_TURN_NS 100000
/* After so many requests in time in a row, one that is late changes nothing. */
#define SLICE_HITS 8
/* How long a user is not waited for, at first, and how often that is doubled; after a slice with few requests it begins
 * with more. */
#define SLICE_AWAY_NS 1000000
#define SLICE_DOUBLES 7
#define SLICE_CUT     3
/* A flow is heavy that has used so much since it had no tasks. If it has many sources, so much of late: what it has
 * used is forgotten in this time without tasks. So many sources in what it uses in an epoch are many. */
#define SLICE_HEAVY_NS 100000
#define SLICE_MANY_NS  30000
#define SLICE_LATE_NS  2000000
#define SLICE_SOURCES  4
#define SLICE_EPOCH_NS 250000
/* A heavy flow that had no tasks for less than this is about to have some again. */
#define SLICE_LULL_NS 2000000

/* Whose turn is it? The queue is not empty; NULL: it is now, since the only one has not asked again. */
struct fair_flow *slice_next(struct fair_queue *queue);
/* The flow has been served: is its user to be waited for? */
void slice_offer(struct fair_queue *queue, struct fair_flow *flow);
/* How long a turn is that would be so long without a slice. */
uint64_t slice_turn_ns(const struct fair_queue *queue, uint64_t ns);

/* Is it a flow that waits while another one has a slice? */
bool slice_waits_for(const struct fair_flow *flow);
/* What a flow does. */
void slice_flow_returned(struct fair_queue *queue, struct fair_flow *flow);
void slice_flow_runs(struct fair_flow *flow, struct fair_task *task);
void slice_flow_ran(struct fair_flow *flow, uint64_t ns);
void slice_flow_left(const struct fair_queue *queue, struct fair_flow *flow);
