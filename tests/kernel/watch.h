/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify on memfds, as tests want it: put a watch on whatever a descriptor refers to, and say which
 * events came. daemon/sys does the same for the broker.
 */
#pragma once

#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static inline int watch_instance(void)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    assert_ok(fd);
    return fd;
}

static inline int watch_add(int instance, int fd, uint32_t mask)
{
    char path[40];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return inotify_add_watch(instance, path, mask);
}

/* All events that are there now, or'ed together; their number too if asked for. 0 if there are none. */
static inline uint32_t watch_take(int instance, unsigned *count)
{
    union {
        struct inotify_event align;
        char bytes[16384];
    } buffer;
    uint32_t seen = 0;
    unsigned n = 0;
    ssize_t size;

    while ((size = read(instance, buffer.bytes, sizeof(buffer.bytes))) > 0)
        for (ssize_t at = 0; at < size;) {
            struct inotify_event event;

            memcpy(&event, buffer.bytes + at, sizeof(event));
            at += (ssize_t)(sizeof(event) + event.len);
            seen |= event.mask;
            n++;
        }
    if (count != NULL)
        *count = n;
    return seen;
}

/* Waits for the first event, then takes all. */
static inline uint32_t watch_wait(int instance)
{
    wait_readable(instance);
    return watch_take(instance, NULL);
}
