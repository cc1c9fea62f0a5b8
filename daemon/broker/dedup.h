/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request once, however often it comes: what operations say of themselves. Their caller's part is in operations.h.
 */
#pragma once

struct op;
struct op_state;

/* It is pending: who sends it again waits for this one. */
void dedup_pending(struct op *op);
/* A worker begins with it: should the broker die meanwhile, this is one of those that it may have died of. */
void dedup_working(struct op *op);
/* Has it submit its job: at once or, if a broker died over it, when this one has lived for a moment. */
void dedup_work(struct op_state *state, void (*submit)(struct op_state *state));

/* This broker is to end while it is pending: the next one does not count that as a death. */
void dedup_rests(struct op_state *state);
