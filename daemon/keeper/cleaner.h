/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cleaner: a process that shares its broker's table of descriptors, and empties it when that broker dies.
 *
 * A process that is killed closes nothing before its last thread has ended, and a thread that hangs in the kernel may
 * never end. Without a cleaner its clients would not learn of its death, and memory would not come back: all of them
 * still had a descriptor at the other end. Nobody can take descriptors out of a table from outside; but a process that
 * was made with CLONE_FILES is inside, and is not killed with the broker.
 *
 * It shuts down the clients' connections first. When no thread of the broker is at work any more it takes the pages of
 * what was still being made, and shuts down the link, which tells the keeper that the next broker may start. Then it
 * closes all that is memory. What clients sent it never touches: that is what hangs. It leaves it in the table and
 * ends, which may hang, too, and harms nobody then.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* The keeper sends it if a broker hangs; the kernel sends it when the broker's first thread ends. */
#define CLEANER_SIGNAL SIGUSR1

/* In the broker, before it has threads and memory: a fork of it, with a copy of what it has mapped until then. `most` =
 * how many descriptors it is about to get. Its pid or a negative errno. */
pid_t cleaner_start(int link, size_t most);
/* The broker lives on without it, before it executes another program. */
void cleaner_stop(pid_t pid);
