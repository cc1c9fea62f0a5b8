/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a buffer leaves the broker: as a row of a reply, and as a descriptor.
 *
 * A descriptor leaves in two steps. The operation checks the rights and has the buffer watched (hold_export()), all
 * of which is recorded before its reply can leave. The descriptor itself is opened when the reply is sent, by
 * op_open_fds(), which asks again whether the session still holds the buffer, and changes nothing. In between the
 * buffer counts as one that somebody may have (I4).
 */
#pragma once

#include <stdbool.h>

#include "base/problem.h"
#include "broker/operations.h"
#include "mem/buffer.h"
#include "session/hold.h"

/* One row of Buffers. */
void opened_fill(struct opened_item *item, const struct hold *hold);
/* Watches it, if it is not yet: before a descriptor leaves (I4). LIMIT, NO_MEMORY, NOT_SUPPORTED. */
int buffer_watch(struct broker *broker, struct buffer *buffer, struct problem *problem);
/* Are all pages of a buffer allocated by now that its client pays for? Of others they always are. 0 or BUSY. */
int buffer_check_committed(const struct buffer *buffer, struct problem *problem);
/* A descriptor is to leave for who holds the buffer: notes that, and watches it. NO_RIGHT: it is foreign, and open with
 * other access; BUSY: see above, unless it is the payer's; outcomes of buffer_watch(). */
int hold_export(struct broker *broker, const struct hold *hold, bool writable, struct problem *problem);

/* Refuses a foreign buffer, unless the caller has said that it accepts such. 0 or NOT_SUPPORTED. */
int foreign_is_wanted(const struct buffer *buffer, bool wanted, struct problem *problem);
/* The hold by which the caller does something to memory that the broker made: outcomes of op_session() and find_hold(),
 * or NOT_SUPPORTED. */
int find_own_memory(struct op *op, uint64_t buffer, uint32_t rights, struct hold **ret);
