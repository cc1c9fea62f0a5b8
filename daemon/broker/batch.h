/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that come together, and how their memory is had: for an allocation (op_alloc.c), or for the stock
 * (stocking.c).
 *
 *     batch_add_stock()   it is in stock, and so it stays until all of the batch are there, earmarked for its user
 *     batch_fill()        the others are to be made: each is planned, and has a record and all that it is charged for
 *     its commit          is run then, on the loop or by a worker, as whoever makes it likes
 *     batch_enter()       the memory is the buffer's
 *     batch_commit()      the keeper has it, and so it is LIVE, or in stock; and those from stock are LIVE, too
 *
 * Between any two of these the client may go, the broker stop, or memory or descriptors be short. Then batch_cut()
 * gives back whatever there is: to the stock what was in stock, and its memory what was made. Should the broker die,
 * the next one does the same.
 */
#pragma once

#include <stdint.h>

#include "base/problem.h"
#include "mem/buffer.h"
#include "mem/commit.h"
#include "proto/limits.h"

struct alloc_spec;
struct broker;

struct batch {
    struct broker *broker;
    uint32_t most; /* that there may be */
    uint32_t n;
    uint32_t n_stock; /* the first so many are from stock, the others are made */
    struct buffer *buffers[MEMORYD_BATCH_MAX];
    int fds[MEMORYD_BATCH_MAX]; /* of each a description for its first user, if one was opened beforehand; else -1 */
    struct commit *commits;     /* of each that is made; NULL if none is */
    uint32_t node;              /* that the latest one of these was planned for */
};

void batch_init(struct batch *batch, struct broker *broker, uint32_t most);
/* The buffers are in other hands, or gone. */
void batch_deinit(struct batch *batch);

/* Those from stock come first. Outcomes of buffer_earmark(). */
int batch_add_stock(struct batch *batch, struct buffer *buffer, int fd, const struct memory_spec *spec,
                    struct account *account, struct problem *problem);
/* Its commit is ready to be run. Without an owner (NULL) it is for the stock. Outcomes of buffer_new(). */
int batch_add(struct batch *batch, const struct plan *plan, const struct memory_spec *spec,
              const struct buffer_owner *owner, struct problem *problem);
/* Adds all that are still missing. Outcomes of pool_plan() and buffer_new(). */
int batch_fill(struct batch *batch, struct pool *pool, const struct alloc_spec *spec,
               const struct buffer_owner *owner, struct problem *problem);
/* What their commits have made is theirs from now on. So many have their memory then; if that is not all of them, the
 * next one's has the inode number of another buffer, and its commit must be run again. */
uint32_t batch_enter(struct batch *batch);
/* All are LIVE, those from stock as this owner's; or, without one (NULL, and no spec), in stock. NO_DESCRIPTORS;
 * OP_PENDING if the keeper is gone: then this broker ends at once, it answers nobody any more, and the next one does it
 * from the beginning. */
int batch_commit(struct batch *batch, const struct alloc_spec *spec, const struct buffer_owner *owner,
                 struct problem *problem);

/* Their commits need not be finished. */
void batch_cancel(struct batch *batch);
/* Only the first n stay. Nobody has seen anything of the others, except for descriptors in an unsent reply. */
void batch_cut(struct batch *batch, uint32_t n);
