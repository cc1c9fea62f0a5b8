/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all connections share: limits, budgets per user, and the one place where connections end.
 *
 * No client may starve another one (I7). So what a connection takes of shared things is counted here, for its user and
 * for everybody: connections, bytes of replies that wait, and bytes and descriptors that were sent and not yet
 * received. The kernel counts the last against the sending user, which is ours, over all sockets, and refuses to send
 * any once there are as many as we may have open. The budget of all clients is therefore a quarter of that. A user may
 * have its share of it, so that however many users take all that they may, one more finds some.
 *
 * This module hands packets on as bytes and descriptors, and does not know what they mean.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "net/fair_queue.h"
#include "proto/fdset.h"
#include "proto/frame.h"
#include "proto/outgoing.h"

struct connection;
struct net_user;
struct peer;

struct net_limits {
    unsigned connections;       /* of everybody */
    unsigned connections_uid;   /* of one user */
    unsigned crowded;           /* beyond `connections`: accepted so that HELLO can say that there is no room */
    unsigned administrators;    /* more of these, for administrators only */
    uid_t administrator;        /* beside root */
    size_t queued_bytes;        /* of one connection: above it, no more is read from it */
    size_t queued_bytes_uid;    /* of one user: a connection that exceeds it is disconnected; as much more may be sent
                                 and not received */
    unsigned fds_in_flight;     /* of one connection; more wait in the queue */
    unsigned fds_in_flight_uid; /* of one user, and no more than its share */
    unsigned fds_in_flight_all; /* of everybody */
    unsigned unended_uid;       /* of one user: see net_handler.unended; with more, it is turned away */
    unsigned unended_all;       /* of everybody: with more, nobody is accepted */
    unsigned descriptors;       /* that this process may have open */
    unsigned last_descriptors;  /* as many of these are for crowded clients, half of them for administrators */
    uint64_t handshake_ms;      /* how long a connection may stay without connection_established() */
    uint64_t stall_ms;          /* how long a reply may wait for a client that does not read */
};

struct net_share {
    unsigned percent;     /* of what the others leave */
    unsigned connections; /* instead of net_limits.connections_uid */
};

/* Who gets the packets. `userdata` is that of net_new(). */
struct net_handler {
    /* What a user may have of what all users share. NULL: everybody has all that the limits say. */
    struct net_share (*share)(void *userdata, const struct peer *peer);
    /* A client has connected; set its `userdata`. False = no room for it. */
    bool (*opened)(void *userdata, struct connection *connection);
    /* A sound packet. The handler owns what it steals from `fds`. 0, or a negative errno that ends the broker. */
    int (*packet)(void *userdata, struct connection *connection, const struct frame_header *header,
                  const uint8_t *payload, struct fdset *fds);
    /* A packet that is not sound: an enum frame_error. The handler may answer it; the connection closes. */
    void (*refused)(void *userdata, struct connection *connection, int error, const uint8_t *packet, size_t size);
    /*
     * A reply is about to be sent: opens its descriptors into `fds`, which has those of the call before, if that opened
     * some. It may set another payload, which says what there is no more, and which stays valid until the next call. It
     * is called again unless all are open.
     */
    enum outgoing_fds (*open_fds)(void *userdata, struct connection *connection, struct outgoing *reply,
                                  struct fdset *fds);
    /* It is closed, before it was opened or after; the connection is valid during the call only. 0, or a negative errno
     * that ends the broker. */
    int (*closed)(void *userdata, struct connection *connection);
    /* Takes a socket of this user, (uid_t)-1 if unknown, with packets in it that nobody has received. Descriptors may
     * be in them: it is closed where that may hang. */
    void (*end)(void *userdata, uid_t uid, int fd);
    /* How many of these there are that nobody could take yet: of this user, and in *all of everybody. */
    unsigned (*unended)(void *userdata, uid_t uid, unsigned *all);
};

struct net {
    struct event_base *base;
    const struct net_handler *handler;
    void *userdata;
    struct net_limits limits;
    int error; /* negative: the broker cannot go on */

    unsigned n_connections;
    unsigned n_leaving; /* of these, with an end that waits for its turn */
    uint64_t n_packets; /* received so far */
    unsigned fds_in_flight;
    struct net_user *users;  /* hash by uid */
    struct net_user *nobody; /* for what the broker has to do by itself, which takes turns with them; not in the hash */

    struct list connections;
    struct list in_flight; /* connections that have not received all descriptors sent to them */
    struct list waiting;   /* connections whose next packet waits for descriptors, in flight or to open, or memory */
    struct event budget_event;
    unsigned budget_us;      /* until it is due next */
    struct fair_queue queue; /* what is to be done, for whom */
    struct list left;        /* users without a reference, the one that left first first */
    unsigned n_left;

    uint8_t *buffer; /* a packet being received, one byte larger than the largest */
};

/* 0 or a negative errno. `handler` is borrowed. */
int net_new(struct net **ret, struct event_base *base, const struct net_handler *handler, void *userdata,
            const struct net_limits *limits);
/* Closes all connections and informs the handler of each. */
struct net *net_free(struct net *net);
DEFINE_CLEANUP(struct net *, net_free);

/* For new connections and those that are there. */
void net_set_limits(struct net *net, const struct net_limits *limits);

/*
 * A turn: serves users for a moment, each in its turn. The loop calls it after each round of events, so
 * that timers, other descriptors and users who were not waiting yet get their part. Returns whether there is more to
 * do.
 */
bool net_turn(struct net *net);

/* Has it run in a turn of this user; without memory for that, in one of the broker itself. It waits for none yet, and
 * may free itself then, or be submitted again. */
void net_task_submit(struct user_task *task, struct net *net, uid_t uid);
/* Has it run in a turn of the broker itself, unless it waits for one already. */
void net_task_submit_own(struct user_task *task, struct net *net);
/* It need not run any more, if it waits. */
void net_task_cancel(struct user_task *task);

/* Ends the loop with this error: `net->error` is set and the loop breaks. */
void net_fail(struct net *net, int error);
