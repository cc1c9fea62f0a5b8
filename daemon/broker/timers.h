/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: an ordered tree, and one timer of the host for the earliest.
 *
 * A timer is embedded in what it is about, so arming it cannot fail. Work that is too long for one turn of the loop is
 * a timer too: it does a slice, arms itself for "now" and runs again in the next turn, after what the loop has to do
 * for clients. So everything that the broker does of its own accord is found in one place.
 *
 * A timer of a ledger's record (a token's expiry) is found by kind and id instead, and a record has at most one of each
 * kind.
 */
#pragma once

#include "base/tree.h"
#include <stdbool.h>
#include <stdint.h>

struct timer;

typedef void timer_fn(struct timer *timer);

struct timer {
    RB_ENTRY(timer) link;
    uint64_t at; /* deadline of base/clock.h; DEADLINE_NEVER = not armed */
    uint64_t order;
    timer_fn *fn;
};

RB_HEAD(timer_tree, timer);

struct record_timer;

RB_HEAD(record_timer_tree, record_timer);

struct timers {
    struct timer_tree tree;
    struct record_timer_tree records;
    uint64_t order;
    uint64_t announced; /* what the host was told last */
    /* The next timer is due at this time, which is earlier than the one announced last. May be NULL. */
    void (*announce)(void *userdata, uint64_t at);
    void *userdata;
};

#define TIMERS_INIT(fn, data) ((struct timers){.announced = UINT64_MAX, .announce = (fn), .userdata = (data)})
#define TIMER_INIT(f)         ((struct timer){.at = UINT64_MAX, .fn = (f)})

/* Frees the timers of records; the owners of embedded timers disarm them. */
void timers_deinit(struct timers *timers);

/* Replaces the time that it was armed for. DEADLINE_NEVER disarms. */
void timer_arm(struct timers *timers, struct timer *timer, uint64_t at);
void timer_disarm(struct timers *timers, struct timer *timer);

static inline bool timer_is_armed(const struct timer *timer)
{
    return timer->at != UINT64_MAX;
}

/* DEADLINE_NEVER if there is nothing to wait for. */
uint64_t timers_next(const struct timers *timers);

/* Calls each timer that was due when it began, the earliest first. There is a limit: the rest, and what is armed
 * meanwhile, runs next time. */
void timers_run(struct timers *timers, uint64_t now);

/* ---- by kind and id of a record ---------------------------------------------------------------------------------- */

typedef void record_timer_fn(void *userdata, uint64_t id);

/* Replaces the time of this kind and id. 0 or -ENOMEM. */
int timers_set_record(struct timers *timers, unsigned kind, uint64_t id, uint64_t at, record_timer_fn *fn,
                      void *userdata);
/* Harmless if there is none. */
void timers_clear_record(struct timers *timers, unsigned kind, uint64_t id);
