/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listening socket and connections to it, for the tests about peers.
 */
#pragma once

#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* An abstract address of our own: no file to leave behind. */
static inline int listen_somewhere(struct sockaddr_un *address, socklen_t *size, int backlog)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_ok(fd);
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    assert_ok(bind(fd, (const struct sockaddr *)address, sizeof(address->sun_family))); /* autobind */
    *size = sizeof(*address);
    assert_ok(getsockname(fd, (struct sockaddr *)address, size));
    assert_ok(listen(fd, backlog));
    return fd;
}

struct meeting {
    struct sockaddr_un address;
    socklen_t size;
    int listener;
};

static inline int connect_to(const struct meeting *meeting, int flags)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    int error;

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&meeting->address, meeting->size) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static inline void meet(struct meeting *meeting, int backlog)
{
    meeting->listener = listen_somewhere(&meeting->address, &meeting->size, backlog);
}

static inline int accept_one(const struct meeting *meeting)
{
    int fd;

    assert_true(wait_readable(meeting->listener));
    fd = accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_ok(fd);
    return fd;
}
