/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's socket: packets in, packets out, and both bounded.
 *
 * In: the loop reads a bounded number of packets per wake-up, and none while a client has as many requests without a
 * reply as it may have, or leaves its replies unread. What is not read stays in the kernel, at the client's cost.
 * Requests that arrive together are served together, and their replies wake the client once. A read that finds nothing
 * is a wasted system call, so a second packet is read only if the client sent several lately, or if the first one says
 * that it is one of several.
 *
 * Out: a reply is sent at once if the socket takes it; otherwise it waits in the outbox, and its descriptors are opened
 * when it leaves. A client that lets a reply wait too long is disconnected; its session lives on, and it may come back.
 * Events are hints: a newer one replaces an older one of the same key, and few of them wait at a time.
 *
 * Only net.c frees a connection, at the end of a turn of the loop; everybody else marks it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "base/list.h"
#include "log/log.h"
#include "net/net.h"
#include "proto/frame.h"
#include "proto/outgoing.h"
#include "sys/peer.h"

/* Packets per wake-up: a client that floods the broker gets a turn like any other. */
#define CONNECTION_PACKETS_PER_TURN 16
/* For how many turns a client that sent several packets at once is expected to do so again, */
#define CONNECTION_BURSTS 8
/* and in which of its other turns a second packet is read all the same. */
#define CONNECTION_LONE_TURNS 16
/* How many events may wait for a client to read. */
#define CONNECTION_EVENTS_MAX 8

struct connection {
    struct net *net;
    struct net_user *user;
    int fd;
    struct peer peer; /* empty once a session has taken it */
    struct log_client who;
    const char *crowded; /* why HELLO refuses it: there is no room; or NULL */
    void *userdata;      /* the handler's */

    struct list in_connections;
    struct list in_flight_link;
    struct list waiting_link;
    struct list closing_link;

    struct event read_event;
    struct event write_event;
    struct event deadline_event; /* of the handshake, then of a reply that nobody reads */

    struct list outbox;
    size_t queued;       /* bytes in the outbox */
    unsigned n_events;   /* events among them */
    unsigned unanswered; /* requests without a reply yet */
    unsigned fds_in_flight;
    uint64_t fds_sent_at; /* when descriptors were last sent */
    unsigned bursts;      /* for how many more turns several packets are expected */
    unsigned lone_turns;  /* turns in which only one was expected */

    bool reading;
    bool established;
    bool finishing; /* close when the outbox is empty */
    bool closing;
    bool write_closed; /* its client has gone, and left packets to be read */
};

/* The client has said HELLO: the deadline of the handshake ends. */
void connection_established(struct connection *connection);

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
