/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spinning for a while before going to sleep.
 *
 * To wake a thread on another processor takes longer than to serve a small request, in a virtual machine several times
 * as long. A thread that will probably have something to do in a moment therefore does better to check again and again
 * than to sleep. But a thread that spins keeps a processor from others, so:
 *
 *   - It spins for SPIN_NS at most, about what a wake-up costs: at worst that is paid twice.
 *   - After several failures in a row it sleeps at once the next times, more and more of them. Where the kernel puts
 *     both threads on one processor, as it likes to, every attempt fails, and if that were one call in a hundred it
 *     would be the 99th percentile of all calls. What is there at the first check proves nothing: a thread that sleeps
 *     would have found it, too.
 *   - If others took the processor from it more than once in SPIN_CHECK_NS, too many share it. The thread then sleeps
 *     at once for a while, longer each time this is found again.
 *   - With one processor, or a quota of less than two, it never spins.
 *
 * A struct spin is what one thread knows. Everything here only decides: it is told the time, and asks how often the
 * thread was preempted by a function that a test replaces. A thread that spins does this:
 *
 *     if (spin_begin(spin, clock_now_ns()))
 *         do
 *             if (is_there())
 *                 return spin_found(spin), ...;
 *         while (spin_again(spin, clock_now_ns()));
 *     sleep();
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/processors.h"

#define SPIN_NS       (50 * NSEC_PER_USEC)
#define SPIN_CHECK_NS (20 * NSEC_PER_MSEC)

enum {
    SPIN_FAILURES = 4,     /* after so many in a row one attempt is skipped, */
    SPIN_SKIP_DOUBLES = 9, /* then two, four and so on: so often the number doubles */
    SPIN_SKIP_MAX = 1 << SPIN_SKIP_DOUBLES,
    SPIN_CROWD = 2,     /* preemptions between two checks that show a crowd; one is an accident */
    SPIN_CROWDS_MAX = 6 /* so often the time without spinning doubles */
};

struct spin {
    bool never;
    bool again;        /* the first check of this attempt failed */
    unsigned failures; /* in a row */
    unsigned skip;     /* attempts still to be skipped */
    unsigned crowds;   /* found of late */
    uint64_t until;    /* when this attempt ends */
    uint64_t not_before;
    uint64_t checked;   /* when preemptions were counted last */
    uint64_t preempted; /* so often until then */
    uint64_t (*count_preempted)(void);
};

/* Can the calling thread and the one that it waits for run at the same time? */
static inline bool spin_may_pay(void)
{
    return processors_usable() > 1;
}

/* How often was the calling thread preempted? */
static inline uint64_t spin_count_preempted(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : (uint64_t)usage.ru_nivcsw;
}

static inline void spin_init(struct spin *spin, bool may, uint64_t (*count_preempted)(void))
{
    *spin = (struct spin){.never = !may, .count_preempted = count_preempted};
}

/* Are there processors enough? If not, the thread does not spin until not_before. */
static inline bool spin_has_processors(struct spin *spin, uint64_t now)
{
    uint64_t preempted = spin->count_preempted();
    uint64_t n = preempted - spin->preempted;
    /* only time that was spent spinning tells whether it disturbs others */
    bool stale = now - spin->checked > 2 * SPIN_CHECK_NS;

    spin->preempted = preempted;
    spin->checked = now;
    if (stale)
        return true;
    if (n < SPIN_CROWD) {
        spin->crowds -= spin->crowds > 0;
        return true;
    }
    spin->crowds += spin->crowds < SPIN_CROWDS_MAX;
    spin->not_before = now + (SPIN_CHECK_NS << spin->crowds);
    return false;
}

/* Should the thread spin before it sleeps? */
static inline bool spin_begin(struct spin *spin, uint64_t now)
{
    if (spin->never || now < spin->not_before)
        return false;
    if (spin->skip) {
        spin->skip--;
        return false;
    }
    if (now - spin->checked >= SPIN_CHECK_NS && !spin_has_processors(spin, now))
        return false;
    spin->until = now + SPIN_NS;
    spin->again = false;
    return true;
}

/* Nothing was there: should the thread check again, or sleep? */
static inline bool spin_again(struct spin *spin, uint64_t now)
{
    spin->again = true;
    if (now < spin->until)
        return true;
    spin->failures += spin->failures < SPIN_FAILURES + SPIN_SKIP_DOUBLES;
    if (spin->failures >= SPIN_FAILURES)
        spin->skip = 1U << (spin->failures - SPIN_FAILURES);
    return false;
}

/* Something was there. */
static inline void spin_found(struct spin *spin)
{
    if (spin->again)
        spin->failures = 0;
}
