/* SPDX-License-Identifier: Apache-2.0 */
/* What buffer.c and buffer_recover.c share, and nobody else uses. */
#pragma once

#include "mem/buffer.h"

/* What is beside a plan's record. */
struct plan_object {
    OBJECT(struct plan_record);
    bool found; /* by its buffer, after another broker */
};

/* The object of a record: nothing hangs on it, and it has no memory. */
void buffer_init(struct buffer *buffer);

/* Gives up its home, if it has one, and ends the reservation that the home is in if nothing else keeps that. */
void buffer_leave_home(struct buffers *buffers, struct buffer *buffer);

/* Charges it to its pool in another state, by what its record says now. */
void buffer_shift(struct buffers *buffers, const struct buffer *buffer, enum tally_state from, enum tally_state to);

/* Its state has begun, by 1, or ended, by -1. Not for nobody's, which are counted as stock whatever their state. */
void buffer_count_state(struct buffers *buffers, enum buffer_state state, int by);

/* Into the trees, by what its record says: NULL, or the one that has this inode or watch already. Sooner if it is a
 * neighbour there of `near`, which is in that tree, or NULL. */
struct buffer *buffer_index_inode(struct buffers *buffers, struct buffer *buffer, struct buffer *near);
struct buffer *buffer_index_watch(struct buffers *buffers, struct buffer *buffer, struct buffer *near);
void buffer_unindex_inode(struct buffers *buffers, struct buffer *buffer);
