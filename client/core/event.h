/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that the program has not taken yet, and the descriptor that tells that there are some.
 *
 * Events arrive between replies, in whichever thread receives, so they are kept in a short ring. When that is full,
 * LOST takes the place of the oldest. The descriptor is an epoll of two: the socket, for what nobody has received yet,
 * and an eventfd, for what somebody has. It is made when it is first asked for. The socket of a lost connection would
 * poll readable forever, so it is taken out, and LOST is told: what happens until there is another connection is
 * missed. A program that only waits for the descriptor makes no call that would connect again; so a timer, which is in
 * the epoll too, wakes it now and then meanwhile, and event_next() takes a step each time.
 *
 * The broker forgets what was subscribed to of single buffers and names when it dies, so that is kept here and
 * subscribed to again.
 */
#pragma once

#include <stdbool.h>

#include <memclient/memclient.h>

#include "base/list.h"

#define EVENTS_KEPT 32

struct events {
    struct memclient_event ring[EVENTS_KEPT];
    unsigned first;
    unsigned n;
    bool lost;
    bool connected;      /* there is a connection by which they come */
    unsigned mask;       /* what is subscribed to of everything, … */
    struct list choices; /* … and of single buffers and names: struct event_choice */
    unsigned n_choices;
    int epoll;  /* or -1 */
    int signal; /* the eventfd, or -1 */
    int timer;  /* the timerfd, or -1 */
    unsigned pause_ms;
};

void events_init(struct events *events);
void events_deinit(struct events *events);
/* In the child of a fork: descriptors, events and what was subscribed to one by one stay the parent's. */
void events_forget(struct events *events);

struct channel;
struct ProtobufCMessage;

/* These take the context; memclient.h says what they do. */
void event_arrived(void *ctx, unsigned id, const struct ProtobufCMessage *message);
int event_subscribe(struct memclient_context *ctx, unsigned mask);
/* `name` is NULL for a buffer. */
int event_subscribe_to(struct memclient_context *ctx, uint64_t buffer, const char *name, unsigned mask);
/* Without the lock, by who connects: names are subscribed to again, and buffers forgotten, since ids are others. */
void event_new_session(struct memclient_context *ctx, struct channel *channel);
int event_descriptor(struct memclient_context *ctx, int *fd);
int event_next(struct memclient_context *ctx, struct memclient_event *event);
/* With the context's lock: there is a connection, the first or another, or it was lost, which may be told twice. */
void event_connected(struct memclient_context *ctx, struct channel *channel, bool is_another);
void event_disconnected(struct memclient_context *ctx, struct channel *channel);
/* The same for a struct channel_owner, without the lock. */
void event_link_lost(void *ctx, struct channel *channel);
void event_link_resumed(void *ctx, struct channel *channel);
