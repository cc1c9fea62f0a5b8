/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the broker's socket and connecting to it; starting a private broker where that is wanted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct connected {
    int socket;
    char path[108];
    bool private;       /* in the user's own folder: its owner is checked */
    bool may_autostart; /* a broker may be started there if none answers */
    bool autostarted;
};

/*
 * Connects to the socket at `path`, or finds one if that is NULL. `autostart` is one of enum memclient_autostart. The
 * socket in the result is the caller's. 0, or -ENOENT, -ECONNREFUSED, -EACCES, -ENAMETOOLONG, -ETIMEDOUT with a
 * sentence that names the paths tried, or another negative errno of the kernel.
 */
int connect_broker(const char *path, unsigned autostart, uint64_t deadline, struct connected *connected);

/*
 * Tries once to connect. 0, or a negative errno with a sentence. -EAGAIN: the broker's queue is full, and the socket
 * does not wait, or has waited as long as it may; -EINTR: a signal came while it waited. Both can be tried again.
 */
int connect_once(int socket, const char *path, bool private);

/* How long to wait after that many failed attempts: 1 ms to about 200, and different for each process. */
uint64_t connect_pause_ns(unsigned attempt);

/*
 * Runs `memoryd --autostart` and waits until a broker serves. 0, -ENOENT if there is no such program, -ECONNREFUSED if
 * it could not start a broker, -ETIMEDOUT. `paths` is where none answers, for the sentence.
 */
int autostart_broker(const char *paths, uint64_t deadline);
