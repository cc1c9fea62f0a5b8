/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that come together, and how their memory is had: for an allocation (op_alloc.c), or for the stock
 * (stocking.c).
 *
 * What is in stock has all that it needs, and is only given to its user (stocking.h). What is not is made:
 *
 *     batch_add()      a record; all that is charged is charged, and it has its place
 *     its commit       is run, on the loop or by a worker, as whoever makes it likes
 *     batch_enter()    the memory is the buffer's
 *     batch_commit()   the keeper has it, and so it is LIVE, or in stock
 *
 * Between any two of these the client may go, the broker stop, or memory or descriptors be short. Then batch_cut()
 * gives back whatever there is, be they in stock before or made.
 */
#pragma once

#include <stdint.h>

#include "base/problem.h"
#include "mem/buffer.h"
#include "mem/commit.h"
#include "proto/limits.h"

struct broker;

struct batch {
    struct broker *broker;
    uint32_t most; /* that there may be */
    uint32_t n;
    struct buffer *buffers[MEMORYD_BATCH_MAX];
    int fds[MEMORYD_BATCH_MAX]; /* of each a description for its first user, if that was opened ahead; else -1 */
    struct commit *commits;     /* of each, if they are made; else NULL */
};

void batch_init(struct batch *batch, struct broker *broker, uint32_t most);
/* The buffers are in other hands, or gone. */
void batch_deinit(struct batch *batch);

/* One more that is to be made, and its commit is ready to be run. Outcomes of buffer_new(). */
int batch_add(struct batch *batch, const struct buffer_args *args, struct problem *problem);
/* One more that has its memory. */
void batch_add_ready(struct batch *batch, struct buffer *buffer, int fd);
/* What their commits have made is theirs from now on. So many have their memory then; if that is not all of them, the
 * next one's has the inode number of another buffer, and its commit must be run again. */
uint32_t batch_enter(struct batch *batch);
/* All are LIVE, or in stock. NO_DESCRIPTORS; OP_PENDING if the keeper is gone: then this broker ends at once, it
 * answers nobody any more, and the next one does it from the beginning. */
int batch_commit(struct batch *batch, struct problem *problem);

/* Their commits need not be finished. */
void batch_hurry(struct batch *batch);
/* Only the first n stay. Nobody has seen anything of the others, except for descriptors in an unsent reply. */
void batch_cut(struct batch *batch, uint32_t n);
