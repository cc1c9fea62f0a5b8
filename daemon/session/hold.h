/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: one session's counted references to a buffer, with rights.
 *
 * A session has at most one hold on a buffer; opening the buffer again adds a reference and rights to it. A hold is
 * found by the session and the buffer's id, which is how nearly every operation finds its buffer, and from the buffer
 * in the order of age or by its user: others' sessions may hold the buffer by thousands, and nobody waits while they
 * are walked over (I7).
 *
 * A hold may be of a kind, shared or exclusive, by which sessions keep each other out. The kind is a property of the
 * hold with all its references, and ends with it.
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
    uint64_t since_ms; /* wall clock; 0: it began before this broker did, which the ledger has no room to say */
    RB_ENTRY(hold) in_session;
    RB_ENTRY(hold) in_buffer; /* by user */
    struct hold *oldest;      /* of those below it in that tree, and itself */
};

/*
 * One more reference of the session to the buffer, with these rights in addition. A new hold is INTENT until its
 * record is committed. LIMIT (the number of references, or the records of a user), NO_MEMORY.
 */
int hold_ref(struct session *session, struct buffer *buffer, uint32_t rights, struct hold **ret,
             struct problem *problem);
/* Makes it of this kind, unless it is of a stronger one. The caller has checked whether other holds permit it. */
void hold_raise_kind(struct hold *hold, enum hold_kind kind);
/* Makes a hold of its record again (table.h); session and buffer are NULL if they are gone. */
enum table_verdict hold_recover(struct hold *hold, struct session *session, struct buffer *buffer, const char **why);
/* One reference less. The last one ends the hold; returns NULL then. Rights stay as they are. */
struct hold *hold_release(struct hold *hold);
/* Ends it with all its references. NULL is fine. */
struct hold *hold_free(struct hold *hold);
DEFINE_CLEANUP(struct hold *, hold_free);

/* NULL if the session does not hold the buffer. An INTENT hold is found too: the session itself is making it. */
struct hold *session_hold(const struct session *session, uint64_t buffer);
/* The session's holds in the order of the buffers' ids: the first whose buffer is at least this. */
struct hold *session_next_hold(const struct session *session, uint64_t from);
/* The one that the buffer has longest; NULL if there is none. */
struct hold *buffer_oldest_hold(const struct buffer *buffer);
/* Walks all of a buffer, user by user: the first after NULL, and NULL after the last. */
struct hold *buffer_next_hold(const struct buffer *buffer, struct hold *hold);
/* The same for those of one user's sessions. */
struct hold *buffer_next_hold_of(const struct buffer *buffer, uid_t uid, struct hold *hold);
