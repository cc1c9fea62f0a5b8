/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers are in the order of their times and, where these are equal, of arming, so that slices of work take turns.
 */
#include "broker/timers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"

/*
 * Timers run in one turn of the loop: a client that lets many expire at once must not keep the others waiting. Each may
 * close a small buffer, or ask the kernel about some.
 */
#define RUN_MAX 4

struct record_timer {
    struct timer timer;
    RB_ENTRY(record_timer) link;
    struct timers *timers;
    unsigned kind;
    uint64_t id;
    record_timer_fn *fn;
    void *userdata;
};

static int timer_compare(struct timer *a, struct timer *b)
{
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int record_compare(struct record_timer *a, struct record_timer *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

TREE_GENERATE(timer_tree, timer, link, timer_compare)
TREE_GENERATE(record_timer_tree, record_timer, link, record_compare)

static void timers_announce(struct timers *timers, uint64_t at)
{
    if (at >= timers->announced)
        return;
    timers->announced = at;
    if (timers->announce)
        timers->announce(timers->userdata, at);
}

void timer_disarm(struct timers *timers, struct timer *timer)
{
    if (!timer_is_armed(timer))
        return;
    RB_REMOVE(timer_tree, &timers->tree, timer);
    timer->at = DEADLINE_NEVER;
}

void timer_arm(struct timers *timers, struct timer *timer, uint64_t at)
{
    timer_disarm(timers, timer);
    if (at == DEADLINE_NEVER)
        return;
    timer->at = at;
    timer->order = timers->order++;
    RB_INSERT(timer_tree, &timers->tree, timer);
    timers_announce(timers, at);
}

uint64_t timers_next(const struct timers *timers)
{
    struct timer *first = RB_MIN(timer_tree, (struct timer_tree *)&timers->tree);

    return first ? first->at : DEADLINE_NEVER;
}

void timers_run(struct timers *timers, uint64_t now)
{
    uint64_t end = timers->order;
    unsigned run = 0;
    struct timer *timer;

    /* Announcements wait until it is known what is left. */
    timers->announced = 0;

    /* Timers that are armed meanwhile are ordered behind `end`, but may be due before others: they are passed over. */
    for (timer = RB_MIN(timer_tree, &timers->tree); timer && timer->at <= now && run < RUN_MAX;) {
        if (timer->order >= end) {
            timer = RB_NEXT(timer_tree, &timers->tree, timer);
            continue;
        }
        timer_disarm(timers, timer);
        timer->fn(timer);
        run++;
        timer = RB_MIN(timer_tree, &timers->tree);
    }
    timers->announced = DEADLINE_NEVER;
    timers_announce(timers, timers_next(timers));
}

static struct record_timer *record_timer_find(const struct timers *timers, unsigned kind, uint64_t id)
{
    struct record_timer key = {.kind = kind, .id = id};

    return RB_FIND(record_timer_tree, (struct record_timer_tree *)&timers->records, &key);
}

static void record_timer_free(struct record_timer *record)
{
    struct timers *timers = record->timers;

    timer_disarm(timers, &record->timer);
    RB_REMOVE(record_timer_tree, &timers->records, record);
    free(record);
}

static void record_timer_fires(struct timer *timer)
{
    struct record_timer *record = container_of(timer, struct record_timer, timer);
    record_timer_fn *fn = record->fn;
    void *userdata = record->userdata;
    uint64_t id = record->id;

    record_timer_free(record);
    fn(userdata, id);
}

int timers_set_record(struct timers *timers, unsigned kind, uint64_t id, uint64_t at, record_timer_fn *fn,
                      void *userdata)
{
    struct record_timer *record = record_timer_find(timers, kind, id);

    if (at == DEADLINE_NEVER) {
        if (record)
            record_timer_free(record);
        return 0;
    }
    if (!record) {
        record = calloc(1, sizeof(*record));
        if (!record)
            return -ENOMEM;
        record->timer = (struct timer)TIMER_INIT(record_timer_fires);
        record->timers = timers;
        record->kind = kind;
        record->id = id;
        RB_INSERT(record_timer_tree, &timers->records, record);
    }
    record->fn = fn;
    record->userdata = userdata;
    timer_arm(timers, &record->timer, at);
    return 0;
}

void timers_clear_record(struct timers *timers, unsigned kind, uint64_t id)
{
    struct record_timer *record = record_timer_find(timers, kind, id);

    if (record)
        record_timer_free(record);
}

void timers_deinit(struct timers *timers)
{
    struct record_timer *record;

    while ((record = RB_MIN(record_timer_tree, &timers->records)))
        record_timer_free(record);
}
