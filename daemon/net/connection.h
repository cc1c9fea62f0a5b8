/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One client's socket: packets in, packets out, and never more of either than it may have.
 *
 * In: a bounded number of packets per wake-up, and none while as many requests as a client may have are without
 * reply, or while its replies pile up unread. What is not read stays in the kernel, at the client's cost. Requests that
 * came together are served together: the replies to them wake the client once. To ask for one that is not there is a
 * system call in vain, so that is done where there was one lately, or the last one said that it is one of several.
 *
 * Out: a reply is sent at once if the socket takes it and waits in the outbox otherwise, with its descriptors.
 * A client that lets a reply wait too long is disconnected; its session lives on and it may come back. Events are
 * hints: a newer one of the same key takes the older one's place, and there is a small bound on them.
 *
 * Nothing but net.c frees a connection, at the end of a turn of the loop; everywhere else it is only marked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "base/list.h"
#include "log/log.h"
#include "net/net.h"
#include "proto/fdset.h"
#include "proto/frame.h"
#include "sys/peer.h"

/* Packets handed up per wake-up, so that a flood from one client is a turn like everybody's. */
#define CONNECTION_PACKETS_PER_TURN 16
/* So many turns a client that was found to send several at once is believed to do so, */
#define CONNECTION_BURSTS 8
/* and so often one that was not is looked at for it. */
#define CONNECTION_LONE_TURNS 16
/* Events that wait for a client to read. */
#define CONNECTION_EVENTS_MAX 8

struct connection {
    struct net *net;
    struct net_user *user;
    int fd;
    struct peer peer; /* empty once a session has taken it over */
    struct log_client who;
    const char *crowded; /* why it was let in only to be told that there is no room, or NULL */
    void *userdata; /* the handler's */

    struct list in_connections;
    struct list in_flight_link;
    struct list waiting_link;
    struct list closing_link;

    struct event read_event;
    struct event write_event;
    struct event deadline_event; /* handshake first, stall afterwards */

    struct list outbox;
    size_t queued;         /* bytes in the outbox */
    unsigned n_events;     /* events among them */
    unsigned unanswered;   /* requests handed up without a reply yet */
    unsigned fds_in_flight;
    uint64_t fds_sent_at;  /* when descriptors were last sent */
    unsigned bursts;       /* turns for which it is still believed to send several at once */
    unsigned lone_turns;   /* those in which it was not */

    bool reading;
    bool established;
    bool finishing; /* close when the outbox is empty */
    bool closing;
    bool write_closed; /* its client has gone, and left packets to be read */
};

/* The client has introduced itself: the handshake's deadline is off. */
void connection_established(struct connection *connection);

/*
 * Sends the reply to one request, or lets it wait. Payload length and number of descriptors are put into the header
 * here. The descriptors are taken; what is left in `fds` (the connection is closing) stays the caller's.
 */
void connection_reply(struct connection *connection, const struct frame_header *header, const void *payload,
                      size_t size, struct fdset *fds);

/* Sends an event or lets it wait, in the place of an unread one with the same key. False: too many wait. */
bool connection_event(struct connection *connection, const struct frame_header *header, const void *payload,
                      size_t size, uint64_t key);
/* Forgets the events that wait. */
void connection_drop_events(struct connection *connection);

/* Closes when everything is sent; nothing is read any more. */
void connection_finish(struct connection *connection);

/* Marks it for closing now, and says why; nothing is read or sent any more. */
void connection_close(struct connection *connection, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For listings: how many descriptors are on their way to it? */
unsigned connection_fds_in_flight(struct connection *connection);
