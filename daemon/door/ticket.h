/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: what was shown at a door and not yet asked for by IMPORT or ADOPT.
 *
 * A ticket is for the session on whose socket the descriptor was shown, and for one request. It is short-lived, since a
 * client asks at once: the inode that it names could be another file's one day, and memory to adopt is kept open by it.
 * There are a bounded number, fewer of those that keep memory open, and the oldest one gives way. Closing memory that
 * nobody else has may take long, so that is left to the owner of the tickets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "mem/handle.h"

struct door_message;

struct tickets {
    unsigned n;
    unsigned n_memory;                            /* of these */
    struct list list;                             /* from the oldest */
    void (*end)(struct tickets *tickets, int fd); /* takes a descriptor that nobody asked for */
};

void tickets_init(struct tickets *tickets, void (*end)(struct tickets *tickets, int fd));
void tickets_deinit(struct tickets *tickets);
/* Takes the descriptor. Without memory the ticket is as good as too old. */
void tickets_add(struct tickets *tickets, const struct door_message *message, int fd);
/* Drops those that are too old. */
void tickets_expire(struct tickets *tickets);
/* False: there is none. Else it is gone, and its descriptor is the caller's. */
bool tickets_take(struct tickets *tickets, uint64_t session, uint64_t ticket, bool memory, struct handle_shown *ret);
