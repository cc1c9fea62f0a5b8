/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time that only goes forward, and deadlines.
 *
 * A deadline is an absolute time of CLOCK_MONOTONIC in nanoseconds. A bounded wait is passed down as one deadline
 * rather than as a time-out, so that three waits in a row share one bound instead of having one each. DEADLINE_NEVER
 * compares greater than every time, so "no bound" is a special case only here, for poll() and for conditions.
 */
#pragma once

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC  UINT64_C(1000000000)
#define MSEC_PER_SEC  UINT64_C(1000)

#define DEADLINE_NEVER UINT64_MAX

static inline uint64_t clock_now_ns(void)
{
    struct timespec ts;
    int r = clock_gettime(CLOCK_MONOTONIC, &ts);

    assert(r == 0);
    (void)r;
    return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Since 1970; it may jump. For people to read: nothing is decided by it. */
static inline uint64_t clock_wall_ms(void)
{
    struct timespec ts;
    int r = clock_gettime(CLOCK_REALTIME, &ts);

    assert(r == 0);
    (void)r;
    return (uint64_t)ts.tv_sec * MSEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_MSEC;
}

static inline uint64_t clock_now_us(void)
{
    return clock_now_ns() / NSEC_PER_USEC;
}

/* The time `ns` after `now`; DEADLINE_NEVER if that is too large a number. */
static inline uint64_t deadline_at(uint64_t now, uint64_t ns)
{
    return ns >= DEADLINE_NEVER - now ? DEADLINE_NEVER : now + ns;
}

static inline uint64_t deadline_after_ns(uint64_t ns)
{
    return deadline_at(clock_now_ns(), ns);
}

/* A number of milliseconds that ns cannot express is never, like UINT64_MAX. */
static inline uint64_t deadline_at_ms(uint64_t now, uint64_t ms)
{
    return ms > UINT64_MAX / NSEC_PER_MSEC ? DEADLINE_NEVER : deadline_at(now, ms * NSEC_PER_MSEC);
}

static inline uint64_t deadline_after_ms(uint64_t ms)
{
    return deadline_at_ms(clock_now_ns(), ms);
}

/* The time left at `now`: 0 if the deadline has passed, UINT64_MAX if there is none. */
static inline uint64_t deadline_left(uint64_t deadline, uint64_t now)
{
    if (deadline == DEADLINE_NEVER)
        return UINT64_MAX;
    return deadline > now ? deadline - now : 0;
}

static inline bool deadline_passed(uint64_t deadline, uint64_t now)
{
    return !deadline_left(deadline, now);
}

/* poll()'s argument at `now`: -1 without a bound, 0 if it has passed, else rounded up, lest poll() return too early. */
static inline int deadline_poll_ms(uint64_t deadline, uint64_t now)
{
    uint64_t left = deadline_left(deadline, now);
    uint64_t ms;

    if (deadline == DEADLINE_NEVER)
        return -1;
    ms = left / NSEC_PER_MSEC + (left % NSEC_PER_MSEC ? 1 : 0);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

/* Waits on the condition, whatever its own clock is: 0, or ETIMEDOUT when the deadline has passed. */
static inline int deadline_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline)
{
    struct timespec ts = {.tv_sec = (time_t)(deadline / NSEC_PER_SEC), .tv_nsec = (long)(deadline % NSEC_PER_SEC)};

    if (deadline == DEADLINE_NEVER)
        return pthread_cond_wait(cond, lock);
    return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &ts);
}
