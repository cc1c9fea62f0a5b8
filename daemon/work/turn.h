/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that is done in a turn of its user: a small piece of what that user has caused, after which it is another one's
 * turn. daemon/net knows whose turn it is (net/fair_queue.h). What takes longer is done in slices, each in a turn of
 * its own: it looks at the clock, and has itself called again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

/* How long a slice may take, beside the piece of work that it is at: a few small requests. */
#define TURN_SLICE_NS 6000

struct fair_task {
    struct list link;
    void (*run)(struct fair_task *task); /* it is in no queue when it runs, and may free itself */
};

struct net;
struct net_user;

/* All zero but for `run` at first. */
struct user_task {
    struct fair_task task;
    struct net *net;
    struct net_user *user; /* NULL: it is not waiting */
    void (*run)(struct user_task *task);
};

static inline uint64_t slice_begin(void)
{
    return clock_now_ns();
}

static inline bool slice_is_over(uint64_t begin)
{
    return clock_now_ns() - begin >= TURN_SLICE_NS;
}
