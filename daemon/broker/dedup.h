/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request is executed once, however often it arrives. This is what operations report; what rpc/ calls is in
 * operations.h.
 */
#pragma once

struct op;
struct op_state;

/* The operation is pending: a repeat of its request waits for it. */
void dedup_pending(struct op *op);
/* A worker begins with it. If the broker dies meanwhile, this request is among those that may have caused it. */
void dedup_working(struct op *op);
/* Calls submit(): at once or, if a broker has died over the request, when this broker has lived for a moment. */
void dedup_work(struct op_state *state, void (*submit)(struct op_state *state));

/* This broker ends in order while the operation is pending: the next one does not count that as a death. */
void dedup_rests(struct op_state *state);
