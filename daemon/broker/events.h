/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: hints for sessions that have subscribed. Few are kept here, and not for long: soon each is sent to those who
 * subscribed and may know of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mem/buffer.h"
#include "mem/name.h"

/* The numbers of EventKind. */
enum {
    EVENT_PRESSURE = 1,
    EVENT_DISCARDED = 2,
    EVENT_NAME = 4,
    EVENT_SHUTDOWN = 8,
    EVENT_LOST = 16,
    EVENT_HELD = 32, /* from here on: subscriptions.h */
    EVENT_LEFT = 64,
    EVENT_DIED = 128,
    EVENT_DEATH = 256,
    EVENT_PUBLISHED = 512,
    EVENT_MOVED = 1024,
    EVENT_DESTROYED = 2048,
    EVENT_HISTORY = 4096,
};

struct broker;

/* 0 or -ENOMEM. */
int events_init(struct broker *broker);
void events_deinit(struct broker *broker);

void event_name(struct broker *broker, const struct name *name, bool bound);
/* For all who may see it but the session that did it. */
void event_discarded(struct broker *broker, const struct buffer *buffer, uint64_t by_session);
void event_shutdown(struct broker *broker);

/* Pools have more or less room than before: looks at them in a turn of its own. */
void pressure_changed(struct broker *broker);
/* That turn. Has the level of any pool changed? */
bool pressure_look(struct broker *broker);
/* 0, 1 (from 85 % on) or 2 (from 95 % on). It falls again 5 % lower. */
unsigned pressure_level(unsigned before, uint64_t used, uint64_t capacity);
