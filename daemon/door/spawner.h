/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spawner: the process that starts the doors, since a broker in its sandbox may start none.
 *
 * It is a fork of the broker from before that receives anything, so a door, which is a fork of the spawner, begins
 * without the broker's descriptors and memory. A door is the broker's child all the same: the broker kills it and
 * learns of its end, and the kernel kills it when the broker ends. From the broker the spawner hears nothing but that a
 * door is wanted.
 *
 * Nothing here waits: the broker's loop has sent a door its first messages before there is a process to read them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "door/door.h"

struct spawner {
    pid_t pid; /* 0: there is none */
    int link;
    char *states; /* of the doors, a page each, which all these processes share; NULL: there are none */
};

#define SPAWNER_NULL ((struct spawner){.link = -1})

/* Before there are threads. `keeper` is the broker's link, of which no other process may have a copy. 0 or a negative
 * errno. */
int spawner_start(struct spawner *spawner, int keeper);
/* Has a door started that talks to this socket, which stays the caller's. 0, -EAGAIN, or -ESRCH: there is no spawner.
 * spawner_hear() tells the rest. */
int spawner_ask(struct spawner *spawner, unsigned slot, int socket);
/* What became of the next of these: its pid, or a negative errno. False: nothing yet, or ever without a spawner. */
bool spawner_hear(struct spawner *spawner, unsigned *slot, pid_t *pid);
void spawner_stop(struct spawner *spawner);

/* Doors at a time, and what the one in a slot says of itself. */
#define SPAWNER_SLOTS 134
struct door_state *spawner_state(const struct spawner *spawner, unsigned slot);
