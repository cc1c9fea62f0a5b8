/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder know of each other, and nobody else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/problem.h"
#include "net/connection.h"
#include "net/fair_queue.h"
#include "net/net.h"
#include "sys/peer.h"

struct net_user {
    uid_t uid;
    struct fair_flow flow;                  /* what is to be done for it */
    unsigned refs;                          /* its connections, and tasks of others */
    unsigned share;                         /* of what all users share, in percent */
    char why_crowded[PROBLEM_SENTENCE_MAX]; /* of its last connection beyond that */
    unsigned connections_most;
    unsigned connections;
    struct list unidentified; /* of these, the one that has waited longest for its first turn first */
    unsigned n_unidentified;
    unsigned fds_in_flight;
    size_t queued;
    size_t unread;         /* of all connections */
    struct list unread_by; /* those, the one first that was not looked at for longest */
    struct list in_left;
    UT_hash_handle hh;
};

/* ---- net.c ------------------------------------------------------------------------------------------------------- */

/*
 * The user's counters, which are made on demand. They live until the last reference has gone, and then as long as
 * others are served, though not for very many: whoever connects and leaves again and again is not a new user each time.
 * NULL: no memory.
 */
struct net_user *net_user_get(struct net *net, uid_t uid);
struct net_user *net_user_unref(struct net *net, struct net_user *user);

/* Closes the socket of a client, of user (uid_t)-1 if unknown, without waiting for descriptors in packets that nobody
 * has received. `peeks`: there may be some. */
void net_close_socket(struct net *net, uid_t uid, int fd, bool peeks);

/* Has the connection's next packet tried again soon: descriptors in flight may have arrived, others been closed, or the
 * kernel may have memory for it. It keeps its place among those who wait until it is sent. */
void net_wait_for_budget(struct net *net, struct connection *connection);
/* One that waited has sent something: others may be able to as well. */
void net_budget_helped(struct net *net);

/* ---- connection.c ------------------------------------------------------------------------------------------------ */

/* Takes the socket and the peer on success; which process it is is found out in its first turn. NULL if there is no
 * memory. */
struct connection *connection_new(struct net *net, int fd, struct peer *peer, struct net_user *user, bool peeks);
struct connection *connection_free(struct connection *connection);

/* Has its client closed this socket? */
bool socket_is_left(int fd);
/* Looks at the one of the user's connections that has waited longest for its first turn, or to be looked at, and ends
 * it if it has left. */
void user_end_left(struct net_user *user);

/* Has it served in its turn, if there is anything to do. */
void connection_schedule(struct connection *connection);
/* Forgets that the deadline before has passed, if its turn has not come yet. */
void connection_arm_deadline(struct connection *connection, uint64_t ms);
void connection_disarm_deadline(struct connection *connection);

/* ---- outbox.c ---------------------------------------------------------------------------------------------------- */

/* Is there room for what it has not received and for the next packet that waits? */
bool connection_has_room(struct connection *connection);
/* Tries to send what waits. */
void connection_flush(struct connection *connection);
/* Counts what it has still not received, as the kernel says. Has it received all descriptors? Then they are no longer
 * counted. */
bool connection_settle(struct connection *connection);

/* Drops the packets that wait. */
void outbox_clear(struct connection *connection);
/* What was sent is no longer counted as in flight. */
void outbox_delivered(struct connection *connection);
/* Does a reply wait, not only events? */
bool outbox_has_reply(const struct connection *connection);
