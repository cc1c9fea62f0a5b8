/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one does with the bare kernel: the floors of the rows, and the processes that they need.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Another process, and the line to it: a pair of SEQPACKET sockets. */
struct peer {
    int line;
    pid_t pid;
};

/* Runs `body` in a process that ends with it, or with this one. */
void peer_start(struct peer *peer, void (*body)(int line, void *context), void *context);
/* Its line ends, and the process thereby. */
void peer_end(struct peer *peer);
/* SIGKILL, and it is gone. */
void peer_kill(struct peer *peer);

/* One byte. False, or the process ends: the line has ended. */
int line_hear(int line);
void line_tell(int line);

/* The loader would only say so, and go on, if it had no such library. NULL: there is nothing to preload. */
bool raw_can_preload(const char *library);

/* For peer_start(): sends back every packet. */
void raw_echo(int line, void *context);

/* A memory file as one makes it who wants it to be safe: committed and sealed. `flags`: MFD_HUGETLB, or 0. */
int raw_memfd(size_t size, unsigned flags);
/* A mapping of it to read and write. */
char *raw_map(int fd, size_t size);
/* One byte into each page of so many bytes. */
void raw_touch(char *bytes, size_t size, size_t page);

/* Any number of descriptors, with as many messages as that takes, of one byte each. */
void raw_send_fds(int line, const int *fds, size_t n);
void raw_receive_fds(int line, int *fds, size_t n);
