/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's socket: packets in, packets out, and both bounded.
 *
 * In: libevent only notes that a connection has something to read; it is read in its user's turn (fair_queue.h), one
 * packet at a time, until nothing is left. Not while a client has as many requests without a reply as it may have, or
 * leaves its replies unread: what is not read stays in the kernel, at the client's cost. The kernel tells of each
 * arrival once (EV_ET), since connections that wait for their turn would be found anew in each turn of the loop
 * otherwise, and one user has thousands. So only a read that finds nothing shows that a connection is read to the end.
 * It comes after the reply was sent, when the client has its answer already. Requests that arrived together are served
 * together, and their replies wake the client once.
 *
 * Out: a reply is sent at once if the socket takes it; otherwise it waits in the outbox, and its descriptors are opened
 * when it leaves. A client that lets a reply wait too long is disconnected; its session lives on, and it may come back.
 * Events are hints: a newer one replaces an older one of the same key, and few of them wait at a time.
 *
 * Whatever else there is to do for a connection is done in a turn of its user, too: to find out who has connected, to
 * send what waits, and to free it. Everybody else only marks it for that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "base/list.h"
#include "log/log.h"
#include "net/fair_queue.h"
#include "net/net.h"
#include "proto/frame.h"
#include "proto/outgoing.h"
#include "sys/peer.h"

/* Packets of one connection that are read before it is the turn of another one of its user. */
#define CONNECTION_BURST 16
/* How many events may wait for a client to read. */
#define CONNECTION_EVENTS_MAX 8

struct connection {
    struct net *net;
    struct net_user *user;
    int fd;
    struct fair_task task;
    struct peer peer; /* without its process until it is identified; empty once a session has taken it */
    struct log_client who;
    const char *crowded; /* why there was no room for it when it came; or NULL */
    void *userdata;      /* the handler's */

    struct list in_connections;
    struct list unidentified_link;
    struct list in_flight_link;
    struct list waiting_link;
    struct list unread_link;

    struct event read_event;
    struct event write_event;
    struct event deadline_event; /* of the handshake, then of a reply that nobody reads */

    struct list outbox;
    struct fdset *opening; /* descriptors of its first packet, the others being opened in further turns; or NULL */
    size_t queued;         /* bytes in the outbox */
    unsigned n_events;     /* events among them */
    unsigned unanswered;   /* requests without a reply yet */
    unsigned fds_in_flight;
    uint64_t fds_sent_at; /* when descriptors were last sent */
    size_t unread;        /* what it has not received takes so much of the kernel's memory at most */
    uint64_t unread_at;   /* when that was last seen to get less */
    unsigned burst;       /* packets read in a row */

    bool peeks; /* it may bring descriptors, which the kernel refuses for the others: see read_one() */
    bool identified;
    bool arrived;  /* something has; descriptors in flight may have been received */
    bool readable; /* there may be something to read */
    bool writable; /* what waits may be sent */
    bool overdue;  /* the deadline has passed */
    bool held;     /* nothing is read: a request is at work that the next one has to wait for */
    bool established;
    bool finishing; /* close when the outbox is empty */
    bool closing;
    bool leaving;      /* it has been closed, by whomever, and is not freed yet */
    bool write_closed; /* its client has gone, and left packets to be read */
};

/* The client has said HELLO: the deadline of the handshake ends. */
void connection_established(struct connection *connection);

/* Why there is still no room for it, or NULL: others may have gone since it came. */
const char *connection_crowded(struct connection *connection);

/* Nothing is read from it while it is held, whatever has arrived. */
void connection_hold(struct connection *connection, bool held);

/* Sends the reply to one request, or a copy of it later. The handler is asked for its descriptors when it leaves. */
void connection_reply(struct connection *connection, const struct outgoing *reply);

/* Sends an event or lets it wait, instead of an unread one with the same key. False: too many wait. */
bool connection_event(struct connection *connection, const struct frame_header *header, const void *payload,
                      size_t size, uint64_t key);
/* Drops the events that wait. */
void connection_drop_events(struct connection *connection);

/* Closes it when everything is sent; nothing is read any more. */
void connection_finish(struct connection *connection);

/* Marks it for closing and logs why; nothing is read or sent any more. */
void connection_close(struct connection *connection, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For listings: how many descriptors are on their way to it? */
unsigned connection_fds_in_flight(struct connection *connection);
