/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept replies: what each request of a session that changes something was answered, until the client says that the
 * answer has arrived. So a request that comes a second time, because its connection or its broker was lost, is
 * recognised by its sequence and hears what it would have heard the first time.
 *
 * The record is there (INTENT) from the moment that the request is begun, and its reply is put into it in the same
 * change as the request's effects (ledger.h): there is never one without the other. One that is INTENT and not at
 * work is of a broker that died over it.
 *
 * A session has at most MEMORYD_UNACKNOWLEDGED_MAX of them, and a reply is shorter than a packet, so they take at most
 * 4 MiB of a session; those of real requests take a few kilobytes each. They end with their session.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/problem.h"
#include "ledger/table.h"
#include "proto/limits.h"
#include "session/session.h"

struct kept {
    OBJECT_UNINDEXED(struct kept_record);
    struct session *session;
    struct list in_session; /* by sequence */
    void *running;          /* the caller's: what is going on for it in this process, or NULL */
};

void kept_init(struct sessions *sessions);
void kept_deinit(struct sessions *sessions);

/* INTENT, as long as there is no reply. The session has none of this sequence. LIMIT, NO_MEMORY. */
int kept_new(struct session *session, uint64_t sequence, uint16_t method, struct kept **ret, struct problem *problem);
struct kept *kept_free(struct kept *kept);

/* NULL if there is none. */
struct kept *session_kept(const struct session *session, uint64_t sequence);

/* A worker is at it from now on, so that a broker that dies meanwhile died over it too; or it is left in order. */
void kept_set_working(struct kept *kept, bool working);

/*
 * LIVE: this was the reply, with so many descriptors. What is acknowledged already is not kept. If there is no memory
 * to keep it in, a repeat will hear NO_MEMORY, without a message: that it was done stays true.
 */
void kept_finish(struct kept *kept, uint32_t status, const void *payload, size_t size, unsigned n_fds);

/* The message of one that is LIVE, kept->record->size bytes. */
void kept_read(const struct kept *kept, void *buffer);

/*
 * No reply up to `cumulative` is needed again, nor that to `one` (0: no other). What is still at work stays until it
 * ends.
 */
void kept_acknowledge(struct session *session, uint64_t cumulative, uint64_t one);

/*
 * After those of the sessions: takes over the replies of another broker. Each request that it was at work on has died
 * with one broker more; also the one that its loop was at, which gets a record if it had none. 0 or a negative errno.
 */
int kept_recover(struct sessions *sessions, struct ledger *ledger);
