/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What connection.c and outbox.c, the two halves of a connection, know of each other.
 */

#include <stdbool.h>
#include <stdint.h>

struct connection;

/* Frees what waits, its descriptors with it. */
void outbox_clear(struct connection *connection);
/* What was sent is no longer counted as on its way. */
void outbox_fds_delivered(struct connection *connection);
/* Does a reply wait, not only events? */
bool outbox_has_reply(const struct connection *connection);

void connection_update_reading(struct connection *connection);
void connection_arm_deadline(struct connection *connection, uint64_t ms);
void connection_disarm_deadline(struct connection *connection);
