/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for a while before going to sleep.
 *
 * To wake a thread on another processor takes longer than to serve a small request, in a virtual machine several
 * times as long. Whoever is likely to get something to do in a moment therefore does better to look whether it is
 * there, again and again, than to sleep. But what looks keeps a processor from others, so:
 *
 *   - each time it is for no longer than LOOK_NS, about what a wake-up costs: at worst that is paid twice;
 *   - who looked in vain several times in a row sleeps at once the next times, more and more of them. With both on one
 *     processor, where the kernel likes to put who wakes whom, every look is in vain, and if that were one in a hundred
 *     it would be the 99th percentile of all calls. What is there at the first look proves nothing: it would have been
 *     there for who sleeps;
 *   - who lost its processor to others, not by sleeping, more than once in LOOK_CHECK_NS shares it with too many: it
 *     sleeps at once for a while, longer each time this is found again;
 *   - with one processor, or a quota of less than two, it never pays.
 *
 * A struct look is what one thread knows. All here is decision only: it is told the time, and asks no more than how
 * often the thread lost its processor, by a function that a test replaces. Who looks does this:
 *
 *     if (look_begin(look, clock_now_ns()))
 *         do
 *             if (is_there())
 *                 return look_found(look), ...;
 *         while (look_again(look, clock_now_ns()));
 *     sleep();
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/processors.h"

#define LOOK_NS       (50 * NSEC_PER_USEC)
#define LOOK_CHECK_NS (20 * NSEC_PER_MSEC)

enum {
    LOOK_VAIN = 4,         /* so often in a row, and it is left out once, */
    LOOK_SKIP_DOUBLES = 9, /* then twice and so on: so often that doubles */
    LOOK_SKIP_MAX = 1 << LOOK_SKIP_DOUBLES,
    LOOK_CROWD = 2,        /* so often the processor is lost between two checks; once is an accident */
    LOOK_CROWDS_MAX = 6    /* so often the time to stay away doubles */
};

struct look {
    bool never;
    bool again;      /* this time it was not there at once */
    unsigned vain;   /* times in a row */
    unsigned skip;   /* times to come */
    unsigned crowds; /* found of late */
    uint64_t until;  /* when this time ends */
    uint64_t not_before;
    uint64_t checked; /* when */
    uint64_t lost;    /* the processor, so often until then */
    uint64_t (*count_lost)(void);
};

/* Could the calling thread and whom it waits for be busy at once? */
static inline bool look_may_pay(void)
{
    return processors_usable() > 1;
}

/* How often has the calling thread lost its processor? */
static inline uint64_t look_count_lost(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : (uint64_t)usage.ru_nivcsw;
}

static inline void look_init(struct look *look, bool may, uint64_t (*count_lost)(void))
{
    *look = (struct look){.never = !may, .count_lost = count_lost};
}

/* Are there processors enough? False: no looking until not_before. */
static inline bool look_has_room(struct look *look, uint64_t now)
{
    uint64_t lost = look->count_lost();
    uint64_t n = lost - look->lost;
    /* only time spent with looking tells whom that disturbs */
    bool stale = now - look->checked > 2 * LOOK_CHECK_NS;

    look->lost = lost;
    look->checked = now;
    if (stale)
        return true;
    if (n < LOOK_CROWD) {
        look->crowds -= look->crowds > 0;
        return true;
    }
    look->crowds += look->crowds < LOOK_CROWDS_MAX;
    look->not_before = now + (LOOK_CHECK_NS << look->crowds);
    return false;
}

/* Instead of sleeping: is it worth to look first? */
static inline bool look_begin(struct look *look, uint64_t now)
{
    if (look->never || now < look->not_before)
        return false;
    if (look->skip) {
        look->skip--;
        return false;
    }
    if (now - look->checked >= LOOK_CHECK_NS && !look_has_room(look, now))
        return false;
    look->until = now + LOOK_NS;
    look->again = false;
    return true;
}

/* Nothing was there. Look again, or sleep? */
static inline bool look_again(struct look *look, uint64_t now)
{
    look->again = true;
    if (now < look->until)
        return true;
    look->vain += look->vain < LOOK_VAIN + LOOK_SKIP_DOUBLES;
    if (look->vain >= LOOK_VAIN)
        look->skip = 1U << (look->vain - LOOK_VAIN);
    return false;
}

/* Something was there. */
static inline void look_found(struct look *look)
{
    if (look->again)
        look->vain = 0;
}
