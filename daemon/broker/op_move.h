/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on their way to another node.
 *
 * While it lasts, a move is charged twice: the buffer where it was, and room for it where it goes. The record names the
 * old place until all pages are seen in the new one; then record and charge change in one step, together with the
 * reply. A broker that dies meanwhile leaves a buffer that is charged where it was, and not VERIFIED, since its pages
 * may be on either node. The repeat of the request moves it again.
 */
#pragma once

#include "broker/jobs.h"
#include "broker/pending.h"
#include "mem/migrate.h"
#include "mem/pool.h"

enum move_step {
    MOVE_CHOOSE,  /* the pool, and how much room it takes there */
    MOVE_RESERVE, /* that room */
    MOVE_MIGRATE, /* the pages, by a worker */
    MOVE_RECORD,  /* where they are */
    MOVE_DONE,
};

struct move {
    struct op_state state;
    struct waiter waiter;
    struct memory_job job;
    struct migration migration;
    struct pool_demand room;
    struct list link; /* in broker->moves, while pages are on their way */
    struct broker *broker;
    struct op *op;
    uint64_t id;
    struct buffer *buffer; /* pinned while pages are on their way */
    enum move_step step;
    bool was_verified;
};
