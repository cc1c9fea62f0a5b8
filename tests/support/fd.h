/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors: counting them (a leak is a wrong count), opening another description of the same file,
 * and passing them over a socket exactly as a test wants it, wrong ways included. The project's own
 * sender and receiver refuse to do wrong, so they are no help here.
 */
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <sys/types.h>

/* More than the kernel takes in one message (253). */
#define FD_PASS_MAX 260

/* Open descriptors of this process, the one used for counting not counted. */
unsigned fd_count(void);

/* Lets this process have as many descriptors as it may, and returns how many these are. */
unsigned long fd_raise_limit(void);

/* A new open file description of the file behind fd; -1 and errno. CLOEXEC. */
int fd_reopen(int fd, int flags);

/*
 * A TCP socket whose last close waits for an hour: it lingers, and *reader, its other end, does not read. Ends with the
 * reader. Skips the test where there is no TCP.
 */
int fd_that_lingers(int *reader);

/* For teardown by the cleanup attribute; by hand it is fd_closep(). */
#define FD_AUTO _cleanup_close_

/* sendmsg with SCM_RIGHTS (no control data at all when n is 0) and MSG_NOSIGNAL. */
ssize_t fd_send(int socket, const void *bytes, size_t size, const int *fds, unsigned n, int flags);
ssize_t fd_send_one(int socket, int fd);

struct fd_received {
    ssize_t size; /* what recvmsg returned; errno is left as it was */
    int flags;    /* MSG_TRUNC, MSG_CTRUNC */
    unsigned n;
    int fds[FD_PASS_MAX]; /* CLOEXEC, the caller's to close */
};

/* recvmsg with room for `room` descriptors. */
struct fd_received fd_receive(int socket, void *bytes, size_t size, unsigned room, int flags);
void fd_received_close(struct fd_received *received);

/* One descriptor in one byte's message, waiting with patience; -1 if something else came. */
int fd_receive_one(int socket);
