/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doors (daemon/door/door.h) as their clients meet them, and as /proc shows their processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/door.h"
#include "tests/integration/wire.h"

/* How many this broker has. All are noted; of them doors_living() have not ended. */
unsigned doors_count(pid_t broker);
unsigned doors_living(void);
/* The i-th that was noted. */
pid_t doors_seen(unsigned i);
void doors_forget(void);

/* A socket to the door of this user, or -1 and the status. */
int doors_ask(struct wire *wire, uint32_t *status);
void doors_show(int door, enum door_kind kind, int fd);
/* False: the door has closed the socket. */
bool doors_hear(int door, struct door_answer *answer);
/* Shows it to a door that does not hang. A status. */
uint32_t doors_show_and_hear(struct wire *wire, enum door_kind kind, int fd, uint64_t *ticket);
