/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's side of the doors (door.h): one process per user that needs one.
 *
 * The broker gives a door the sockets on which clients show descriptors, and reads what it reports when a client asks
 * for that: the door reports before it answers the client, so nothing need be watched. A door says in memory that it
 * shares with the broker since when it is at something (door.h). One that has slept in that for long hangs: it is
 * killed, and replaced at the next request. It may hang for good, since what its user sent need not ever be closed;
 * so it is never waited for, and when a user has several such doors its requests are refused until one of them ends.
 * A door that is not used for a while ends, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/problem.h"
#include "mem/handle.h"

struct doors;
struct spawner;

struct doors_options {
    struct spawner *spawner; /* which starts them; borrowed */
    uid_t administrator;     /* who always gets a door; so does root */
};

/* 0 or -ENOMEM. */
int doors_new(struct doors **ret, const struct doors_options *options);

/* A socket to the door of this user, for a session. 0 or a status. */
int doors_serve(struct doors *doors, uid_t uid, uint64_t session, int *ret_fd, struct problem *problem);

/* What was shown for the ticket: see rpc_transport.redeem(). 0 or a status. */
int doors_redeem(struct doors *doors, uid_t uid, uint64_t session, uint64_t ticket, bool memory,
                 struct handle_shown *ret, struct problem *problem);

/* Takes a descriptor of this user, which is closed by its door: a connection with the descriptors that wait in it, or
 * memory that nobody else has, which is given back in that moment. */
void doors_end(struct doors *doors, uid_t uid, int fd);
/* How many of these are left here, since no door takes them: of this user, and in *all of everybody. */
unsigned doors_unended(const struct doors *doors, uid_t uid, unsigned *all);

/* To be called every DOORS_TICK_MS while it returns true. */
#define DOORS_TICK_MS 1000
bool doors_tick(struct doors *doors);
