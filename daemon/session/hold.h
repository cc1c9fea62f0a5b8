/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: one session's counted claim on a buffer, with rights.
 *
 * There is at most one for a session and a buffer; opening it again adds a claim and rights to it. It is found
 * by the session and the buffer's id at once, which is how nearly every verb finds its buffer, and from the
 * buffer in the order of age.
 *
 * A hold may be of a kind, shared or exclusive, by which sessions keep each other out. It is a property of the hold
 * with all its claims, and ends with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/problem.h"
#include "base/tree.h"
#include "ledger/table.h"
#include "mem/buffer.h"
#include "session/session.h"

/* Claim on the wire. */
enum hold_kind {
    HOLD_PLAIN = 0,
    HOLD_SHARED = 1,
    HOLD_EXCLUSIVE = 2,
};

struct hold {
    OBJECT_UNINDEXED(struct hold_record);
    struct session *session;
    struct buffer *buffer;
    RB_ENTRY(hold) in_session;
    struct list in_buffer;
};

/*
 * One more claim of the session on the buffer, with these rights in addition. A new hold is INTENT until its
 * record is committed. LIMIT (the number of claims), NO_MEMORY.
 */
int hold_ref(struct session *session, struct buffer *buffer, uint32_t rights, struct hold **ret,
               struct problem *problem);
/* Of this kind from now on, or of a stronger one if it was. Whether others let it is the caller's question. */
void hold_raise_kind(struct hold *hold, enum hold_kind kind);
/* Makes one of its record again (table.h); either may be NULL if it is gone. When all are there, put those of each
 * buffer into their order: 0 or -ENOMEM. */
enum table_verdict hold_recover(struct hold *hold, struct session *session, struct buffer *buffer, const char **why);
int holds_recovered(struct sessions *sessions);
/* One claim less. Ends the hold with the last; returns NULL then, else the hold. Rights stay as they are. */
struct hold *hold_release(struct hold *hold);
/* With all its claims. NULL is fine. */
struct hold *hold_free(struct hold *hold);
DEFINE_CLEANUP(struct hold *, hold_free);

/* NULL if the session does not hold it. INTENT ones are found too: the session itself is making them. */
struct hold *session_hold(const struct session *session, uint64_t buffer);
/* The session's holds in the order of the buffers' ids: the first whose buffer is at least this. */
struct hold *session_next_hold(const struct session *session, uint64_t from);
/* The one that the buffer has longest; NULL if there is none. */
struct hold *buffer_oldest_hold(const struct buffer *buffer);
