/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of memory that is to be released to the broker, so that no free waits for that: programs free in any thread,
 * the workers of an OpenCL driver included. One thread empties the queue. It starts with the first entry.
 */
#pragma once

#include "base/list.h"

struct queued_free {
    struct list link;
    /* Releases the memory, and frees the record. */
    void (*release)(struct queued_free *queued);
};

/* Makes no call to the broker, unless the thread cannot be started. */
void free_queue_put(struct queued_free *queued);
/* Releases all that is in the queue now, and waits until it is released. */
void free_queue_flush(void);

void free_queue_before_fork(void);
void free_queue_in_parent(void);
/* Forgets the queue: its memory is the parent's to release. */
void free_queue_in_child(void);
