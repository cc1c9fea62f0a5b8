/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that are made together, for an allocation (op_alloc.c) or for the stock (stocking.c).
 *
 *     batch_add_stock()   earmarks a buffer that is in stock. It stays there until the batch is complete
 *     batch_fill()        plans the others, charges them and gives each a record
 *     (their commits)     are run by the caller, on the loop or by a worker
 *     batch_enter()       gives each buffer the memory that its commit has made
 *     batch_hold()        gives the memory to the keeper
 *     batch_commit()      makes all of them LIVE or, if made for that, stock
 *
 * Between any two of these the client may go, or memory or descriptors may be short. Then batch_cut() puts back what
 * was in stock, and gives the memory back that was made. If the broker dies, the next one does the same.
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
    uint32_t most; /* the size of the batch when it is complete */
    uint32_t n;
    uint32_t n_stock; /* the first ones are from stock, the others are made */
    struct buffer *buffers[MEMORYD_BATCH_MAX];
    int fds[MEMORYD_BATCH_MAX]; /* a description for the first user, if one was opened beforehand; else -1 */
    struct commit *commits;     /* one for each that is made; NULL if none is */
    uint32_t node;              /* where the latest of these was planned */
};

void batch_init(struct batch *batch, struct broker *broker, uint32_t most);
/* Frees the commits. The buffers belong to others by now, or are gone. */
void batch_deinit(struct batch *batch);

/* Those from stock come first. Outcomes of buffer_earmark(). */
int batch_add_stock(struct batch *batch, struct buffer *buffer, int fd, const struct memory_spec *spec,
                    struct account *account, struct problem *problem);
/* Its commit is ready to be run. Without an owner (NULL) it is for the stock. Outcomes of buffer_new(). */
int batch_add(struct batch *batch, const struct plan *plan, const struct memory_spec *spec,
              const struct buffer_owner *owner, struct problem *problem);
/* Adds all that are still missing. Outcomes of pool_plan() and buffer_new(); or OP_PENDING: the slice that has begun
 * then (0: none) is over, and some are missing still. */
int batch_fill(struct batch *batch, struct pool *pool, const struct alloc_spec *spec, const struct buffer_owner *owner,
               uint64_t begin, struct problem *problem);
/* Returns how many buffers have their memory now. If that is not all of them, the memory of the next one has the inode
 * number of another buffer, and its commit must be run again. */
uint32_t batch_enter(struct batch *batch);
/* NO_DESCRIPTORS. OP_PENDING if the keeper is gone: this broker ends at once and answers nobody any more, and the next
 * one begins anew. */
int batch_hold(struct batch *batch, struct problem *problem);
/* All become LIVE, and this owner's; or stock, without an owner (NULL, and no spec). */
void batch_commit(struct batch *batch, const struct alloc_spec *spec, const struct buffer_owner *owner);

/* Tells commits that run to give up. */
void batch_cancel(struct batch *batch);
/* Gives back all but the first n. Nobody has seen those, except for descriptors in an unsent reply. */
void batch_cut(struct batch *batch, uint32_t n);
