/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of 32 bytes, a request that does nothing, sent to a broker or to a bare echo in the same way: so many on
 * their way at a time, by one thread. What differs is who answers.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Sends n and receives their answers, `depth` of them on the way as long as there are so many. */
void stream_run(int line, unsigned depth, unsigned n);

/* A connection to the broker with a session, which ends with it. */
int stream_connect(void);

/* One process that echoes on n lines, as a broker's loop would; lines[i] gets the other end. It ends with this one. */
pid_t stream_start_echo(int *lines, size_t n);
