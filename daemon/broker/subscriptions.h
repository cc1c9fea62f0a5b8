/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is told what becomes of buffers: of one, or of all that a session may see.
 *
 * What may be told, and with whose name, is decided when it happens, by the rules of INFO and of the listings; later
 * the buffer may be gone. It waits until a turn of the user who is told (watchers.h), so that nothing is told that is
 * not committed, and no request waits for the sockets of others. While it waits a newer event replaces an older one
 * about the same thing, and if there is no room a LOST stands for what is dropped: a user who causes much fills the
 * queues of those only who may see it. Where nobody has subscribed, an event costs a comparison.
 *
 * A subscription to everything is part of the session's record. One to a buffer or a name is not: the client makes it
 * again when it resumes the session with another broker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/problem.h"
#include "base/tree.h"
#include "broker/events.h"
#include "session/hold.h"
#include "session/session.h"

/* The kinds that wait in queues of their own. */
#define EVENTS_QUEUED                                                                                       \
    (EVENT_HELD | EVENT_LEFT | EVENT_DIED | EVENT_DEATH | EVENT_PUBLISHED | EVENT_MOVED | EVENT_DESTROYED | \
     EVENT_HISTORY)

/* What a session may subscribe to one by one. */
#define SUBSCRIPTION_BUFFERS_MAX 64
#define SUBSCRIPTION_NAMES_MAX   16
/* Sessions of a user that may have such subscriptions: what becomes of a buffer may concern all of them. */
#define SUBSCRIPTIONS_USER_MAX 64

struct broker;
struct broker_event;
struct watched_buffer;

RB_HEAD(watched_buffers, watched_buffer);

/* Of all who have subscribed: watchers.h. */
struct watchers {
    struct list users; /* struct subscribed_user */
    struct watched_buffers buffers;
    uint64_t n_events;
    uint64_t n_compared; /* users and sessions with which events were compared */
};

struct subscriptions; /* of one session: struct client's */

/* To everything: EventKind bits, which replace those before. 0; LIMIT, NO_MEMORY. */
int subscribe_all(struct broker *broker, struct session *session, uint32_t kinds, struct problem *problem);
/* The same after a start, for what the record says. 0 or -ENOMEM. */
int subscribe_restore(struct broker *broker, struct session *session);
/* To a buffer that the session may see, or to a name; 0 = no more. 0; LIMIT, NO_MEMORY. */
int subscribe_buffer(struct broker *broker, struct session *session, uint64_t buffer, uint32_t kinds,
                     struct problem *problem);
int subscribe_name(struct broker *broker, struct session *session, const struct name_key *key, uint32_t kinds,
                   struct problem *problem);
/* To nothing any more: the session has ended. */
void subscribe_end(struct broker *broker, struct session *session);

/* Any of these kinds, of anything? */
bool subscribed_to(const struct session *session, uint32_t kinds);
/* This kind, of everything or of this buffer? */
bool subscribed_to_buffer(const struct session *session, uint32_t kind, uint64_t buffer);
/* EVENT_NAME, of everything, of this name or of its buffer? */
bool subscribed_to_name(const struct session *session, const struct name_record *name);

/* EVENT_HELD of a new hold; EVENT_LEFT or EVENT_DIED of one that ends in a moment. */
void event_hold(struct broker *broker, uint32_t kind, const struct hold *hold);
/* EVENT_PUBLISHED, EVENT_MOVED or EVENT_DESTROYED; `by_session` is not told of it. */
void event_buffer(struct broker *broker, uint32_t kind, const struct buffer *buffer, uint64_t by_session);
/* It is known how the process of a session died, or known that it will not be. */
void event_death(struct broker *broker, const struct broker_event *death);
/* The history has something new that this user may see, or everybody. */
void event_history(struct broker *broker, uid_t uid, bool everybody);
