/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: who is told what. They are hints, so few are kept here and not for long: soon they go to the connections of
 * those who subscribed and may know of it, or nowhere.
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
};

struct broker;

/* 0 or -ENOMEM. */
int events_init(struct broker *broker);
void events_deinit(struct broker *broker);

void event_name(struct broker *broker, const struct name *name, bool bound);
/* To all who hold it but the one who did it. */
void event_discarded(struct broker *broker, const struct buffer *buffer, uint64_t by_session);
void event_shutdown(struct broker *broker);

/* Pools have more or less room than before: look, in a turn of its own. */
void pressure_changed(struct broker *broker);
/* That turn: has the level of any pool changed? */
bool pressure_look(struct broker *broker);
/* 0, 1 (above 85 %) or 2 (above 95 %); it falls only 5 % below. */
unsigned pressure_level(unsigned before, uint64_t used, uint64_t capacity);
