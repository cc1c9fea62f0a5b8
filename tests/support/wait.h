/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting with an end. No test waits for ever, and none sleeps a fixed time to let something happen: it
 * waits until the thing is seen, or fails after a patience that only a broken program uses up.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/*
 * How long something that should happen at once may take, on a busy machine: workers that make or give back much memory
 * let everybody else go first. It is half of what run-test gives the whole test ($TEST_TIMEOUT, which sanitizers and
 * virtual machines lengthen), so that a test fails by itself and says at what, and never more than five minutes.
 */
#define PATIENCE_MS wait_patience_ms()

static inline int wait_patience_ms(void)
{
    const char *limit = getenv("TEST_TIMEOUT");
    long seconds = limit ? strtol(limit, NULL, 10) / 2 : 60;

    return seconds < 300 ? (int)seconds * 1000 : 300000;
}

/* How long a test watches that something does NOT happen. Such a check is one-sided: slowness can only
 * hide a fault, never invent one. */
#define QUIET_MS 50

static inline int64_t wait_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void wait_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Evaluates the expression until it is true; false if it still is not after the patience. */
#define WAIT_UNTIL(expression)                                            \
    __extension__({                                                       \
        int64_t wait_end_ = wait_now_ms() + PATIENCE_MS;                  \
        bool wait_true_;                                                  \
        while (!(wait_true_ = (expression)) && wait_now_ms() < wait_end_) \
            wait_a_moment();                                              \
        wait_true_;                                                       \
    })

/* poll() one descriptor; returns revents, 0 when the time is up. Interrupted waits go on. */
static inline int wait_for_events(int fd, int events, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = (short)events};
    int64_t end = wait_now_ms() + timeout_ms;
    int n;

    do {
        int64_t left = end - wait_now_ms();
        n = poll(&p, 1, left > 0 ? (int)left : 0);
    } while (n < 0 && wait_now_ms() < end);
    return n > 0 ? p.revents : 0;
}

static inline bool wait_readable(int fd)
{
    return wait_for_events(fd, POLLIN, PATIENCE_MS) & (POLLIN | POLLHUP);
}

static inline bool stays_quiet(int fd)
{
    return wait_for_events(fd, POLLIN, QUIET_MS) == 0;
}
