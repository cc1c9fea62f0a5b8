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

/* Gives up the buffer's home, if it has one, and ends the home's reservation if nothing else keeps that. */
void buffer_leave_home(struct buffers *buffers, struct buffer *buffer);

/* Moves the buffer's bytes, as its record says them now, from one state of its pool's tally to another. */
void buffer_shift(struct buffers *buffers, const struct buffer *buffer, enum tally_state from, enum tally_state to);

/* Counts a buffer whose state has begun (by 1) or ended (by -1). Buffers that belong to nobody are counted as stock
 * instead, whatever their state. */
void buffer_count_state(struct buffers *buffers, const struct buffer_record *record, int by);

/* Enter the buffer into the tree of inodes or of watches. NULL, or the buffer that has this inode or watch already.
 * `near` is a buffer in that tree, or NULL; next to it the place is found sooner. */
struct buffer *buffer_index_inode(struct buffers *buffers, struct buffer *buffer, struct buffer *near);
struct buffer *buffer_index_watch(struct buffers *buffers, struct buffer *buffer, struct buffer *near);
void buffer_unindex_inode(struct buffers *buffers, struct buffer *buffer);
