/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is told, and in which order: for subscriptions.c, which says what each session has subscribed to.
 *
 * An event is not compared with each subscription. Those to one buffer are found by its id. Of those to everything,
 * most are of users to whom the buffer belongs, or of administrators: such a user is told once, in a ring that all its
 * sessions read, each in turns of that user. A session of another user sees only what it holds, and is looked
 * for where its user holds the buffer at all. So an event costs a comparison for each user that has subscribed, however
 * many sessions that has, and one for each that it concerns by itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/tree.h"
#include "broker/broker.h"
#include "broker/subscriptions.h"
#include "work/turn.h"

/* Events that wait for one subscriber, … */
#define QUEUE_MAX 32
/* … and that a user's sessions have in common: as many as a request may cause, which may be about 64 buffers. */
#define RING_MAX 64

/* One that waits. */
struct queued_event {
    uint64_t number; /* in the order in which they happened */
    uint64_t except; /* the session that did it is not told */
    struct broker_event event;
};

/* A subscription to one buffer. */
struct watched_buffer {
    RB_ENTRY(watched_buffer) link;
    uint64_t id;
    uint32_t kinds;
    struct subscriptions *of;
};

/* The sessions of a user that have subscribed. */
struct subscribed_user {
    struct list in_all;
    struct broker *broker;
    uid_t uid;
    struct list sessions; /* struct subscriptions, the one to be told next first */
    unsigned n;
    unsigned n_idle; /* the last ones of them that were looked at have all there is */
    uint32_t kinds;  /* that any of them wants of all that their user may see */
    struct user_task turn;
    uint64_t n_ring;  /* so many were ever put into the ring: the last RING_MAX of them are there */
    uint64_t n_read;  /* the most that any session has of them */
    uint32_t dropped; /* kinds that may have been dropped before all had them */
    struct queued_event ring[RING_MAX];
};

/* What a session has subscribed to, and what waits for it. */
struct subscriptions {
    struct session *session;
    struct subscribed_user *user;
    struct list in_user;
    uint32_t kinds; /* of any of them */
    uint32_t all;   /* of all that its user may see */
    uint32_t n_buffers;
    uint32_t n_names;
    struct watched_buffer buffers[SUBSCRIPTION_BUFFERS_MAX];
    struct subscribed_name *names[SUBSCRIPTION_NAMES_MAX];
    uint64_t n_read; /* so many of its user's ring */
    bool lost;       /* there was no room, before those in the queue */
    unsigned first;
    unsigned n_queued;
    struct queued_event queue[QUEUE_MAX];
};

void watchers_init(struct broker *broker);

/* A new session that subscribes. False: no memory. */
bool watchers_add(struct broker *broker, struct subscriptions *one);
void watchers_remove(struct subscriptions *one);
/* Its subscriptions have changed. */
void watchers_changed(struct subscriptions *one);
/* How many sessions of this user have subscribed? */
unsigned watchers_of(const struct broker *broker, uid_t uid);

/* The ith of its subscriptions to buffers. */
void watched_buffer_add(struct broker *broker, struct subscriptions *one, uint64_t id);
void watched_buffer_remove(struct broker *broker, struct subscriptions *one, uint32_t i);
