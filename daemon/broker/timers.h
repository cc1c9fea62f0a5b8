/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must happen at some time: an ordered tree, and one timer of the host's for the earliest.
 *
 * A timer is embedded in what it is about, so arming it cannot fail. Work that is too long for one turn of the
 * loop is a timer too: it does a slice, arms itself for "now" and comes again in the next turn, after what the
 * loop has to do for clients. So everything that the broker does of its own accord is found in one place.
 *
 * What is about a record of the ledger (a token's expiry) is remembered by kind and id instead, because records
 * move; there is at most one time for each.
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
    /* The next is due at this time, earlier than what was said last. May be NULL. */
    void (*announce)(void *userdata, uint64_t at);
    void *userdata;
};

#define TIMERS_INIT(fn, data) ((struct timers){.announced = UINT64_MAX, .announce = (fn), .userdata = (data)})
#define TIMER_INIT(f) ((struct timer){.at = UINT64_MAX, .fn = (f)})

/* Frees the times of records; embedded timers are disarmed by those who own them. */
void timers_deinit(struct timers *timers);

/* Instead of the time it was armed for, if it was. DEADLINE_NEVER disarms. */
void timer_arm(struct timers *timers, struct timer *timer, uint64_t at);
void timer_disarm(struct timers *timers, struct timer *timer);

static inline bool timer_is_armed(const struct timer *timer)
{
    return timer->at != UINT64_MAX;
}

/* DEADLINE_NEVER if there is nothing to wait for. */
uint64_t timers_next(const struct timers *timers);

/* Calls, once each, those that were due when it began, the earliest first and only so many: the rest, and what is armed
 * meanwhile, comes next time. */
void timers_run(struct timers *timers, uint64_t now);

/* ---- by kind and id of a record ------------------------------------------------------------------------- */

typedef void record_timer_fn(void *userdata, uint64_t id);

/* Instead of the former time of this kind and id. 0 or -ENOMEM. */
int timers_set_record(struct timers *timers, unsigned kind, uint64_t id, uint64_t at, record_timer_fn *fn,
                      void *userdata);
/* Harmless if there is none. */
void timers_clear_record(struct timers *timers, unsigned kind, uint64_t id);
