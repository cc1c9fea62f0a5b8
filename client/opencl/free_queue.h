/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory goes back to the broker by a queue, so that no free waits for it: programs free from wherever they like, an
 * OpenCL driver's workers included. One thread empties the queue; it starts with the first entry.
 */
#pragma once

#include "base/list.h"

struct queued_free {
    struct list link;
    /* Gives it back, and frees it. */
    void (*release)(struct queued_free *queued);
};

/* Never blocks on a call to the broker, unless no thread can be started. */
void free_queue_put(struct queued_free *queued);
/* Releases all that is in the queue now; it may wait for the broker. */
void free_queue_flush(void);

void free_queue_before_fork(void);
void free_queue_in_parent(void);
/* What is in the queue is the parent's to release. */
void free_queue_in_child(void);
