/* SPDX-License-Identifier: Apache-2.0 */
/* See watch.h. */

#include "mem/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/status.h"
#include "sys/sys.h"

/* Adding to a mask that is the same leaves an existing watch as it is. */
#define MASK (IN_CLOSE | IN_MASK_ADD)

/* Events are 16 bytes: inotify gives names only for what lies in a watched directory. Each may close a small buffer. */
#define EVENTS_AT_ONCE 16

int watch_init(struct watch *watch)
{
    int fd = sys->inotify_init();

    if (fd < 0)
        return -errno;
    watch->fd = fd;
    return 0;
}

bool watch_adopt(struct watch *watch, int fd)
{
    static const char inotify[] = "anon_inode:inotify";
    char path[40], target[sizeof(inotify)];
    ssize_t length;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    length = readlink(path, target, sizeof(target));
    if (length != (ssize_t)sizeof(inotify) - 1 || memcmp(target, inotify, (size_t)length) != 0)
        return false;
    watch->fd = fd;
    return true;
}

void watch_deinit(struct watch *watch)
{
    watch->fd = fd_close(watch->fd);
}

int watch_add(struct watch *watch, int fd, int *ret_wd, struct problem *problem)
{
    int wd = sys->inotify_add(watch->fd, fd, MASK);

    if (wd >= 0) {
        *ret_wd = wd;
        return 0;
    }
    switch (errno) {
    case ENOSPC:
        return refuse(problem, STATUS_LIMIT,
                      "memoryd may watch no more buffers; release something, or raise "
                      "fs.inotify.max_user_watches");
    case ENOMEM:
        return refuse(problem, STATUS_NO_MEMORY, "the kernel had no memory for another watch");
    default:
        return refuse(problem, STATUS_NOT_SUPPORTED, "the kernel does not watch this buffer: %s", strerror(errno));
    }
}

void watch_remove(struct watch *watch, int wd)
{
    (void)sys->inotify_remove(watch->fd, wd);
}

int watch_read(struct watch *watch, watch_fn *fn, void *userdata)
{
    struct inotify_event events[EVENTS_AT_ONCE];
    const char *at = (const char *)events;
    ssize_t left;

    do
        left = sys->read(watch->fd, events, sizeof(events));
    while (left < 0 && errno == EINTR);
    if (left < 0)
        return errno == EAGAIN ? 0 : -errno;
    while ((size_t)left >= sizeof(events[0])) {
        struct inotify_event event;
        size_t size;

        memcpy(&event, at, sizeof(event));
        size = sizeof(event) + event.len;
        if (event.mask & IN_Q_OVERFLOW)
            fn(userdata, -1, WATCH_OVERFLOW);
        else if (event.mask & IN_IGNORED)
            fn(userdata, event.wd, WATCH_GONE);
        else if (event.mask & IN_CLOSE)
            fn(userdata, event.wd, WATCH_CLOSED);
        at += size;
        left -= (ssize_t)size;
    }
    return 0;
}
