/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door: an expendable process, in which the descriptors of one user's clients end.
 *
 * Closing the last descriptor of a file may wait for as long as its maker likes, uninterruptibly: a file system in user
 * space need not answer. Then the process that has it neither goes on nor ends. So the broker, which must do both,
 * never receives a descriptor from a client. Clients show theirs to the door, which looks at it, tells the broker what
 * it is, and closes it. Of a buffer, device and inode are all that the broker needs; memory to adopt is passed on,
 * since the door has seen that it is a memfd or a dma-buf, whose close waits for nobody.
 *
 * A door that hangs is replaced by another one (doors.h). It has nothing that could be lost.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* What it tells without a message, since from one moment to the next it may tell nothing any more. */
struct door_state {
    _Atomic uint64_t busy_since; /* by the monotonic clock; 0: it waits for something to do */
};

/* Serves until the broker or the link to it ends. An exit status. */
int door_run(int link, pid_t broker, struct door_state *state);
