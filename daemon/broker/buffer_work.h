/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation whose slow part is done with one buffer by a worker.
 *
 * The worker has T; the pin keeps it open, and the buffer there, until the work is done.
 */
#pragma once

#include "broker/jobs.h"
#include "broker/pending.h"
#include "mem/buffer.h"

struct buffer_work {
    struct op_state state;
    struct memory_job job;
    struct broker *broker;
    struct buffer *buffer;
    /* on the loop, before the buffer is unpinned: the status to end with */
    int (*ended)(struct buffer_work *work);
};

/*
 * OP_PENDING: *ret is freed when the operation has ended. The caller fills in the job and says dedup_work(). Else
 * NO_MEMORY.
 */
int buffer_work_begin(struct op *op, struct buffer *buffer, int (*ended)(struct buffer_work *work),
                      struct buffer_work **ret);

/* "session 12 (pid 345, cam), ..." as far as they fit: those but `except` that hold it with all these rights. */
void name_holders(const struct buffer *buffer, uint32_t rights, uint64_t except, char who[PROBLEM_SENTENCE_MAX]);
