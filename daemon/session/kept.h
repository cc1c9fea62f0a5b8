/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept replies: the answer to each request of a session that changes something, until the client says that it has
 * arrived. A request that comes a second time, because its connection or its broker was lost, is recognized by its
 * sequence and gets the answer that it would have got the first time.
 *
 * The record exists (INTENT) from the moment that the request begins, and its reply enters it in the same change as the
 * request's effects (ledger.h): there is never one without the other. A record that is INTENT while nobody works on
 * its request belongs to a broker that died over it.
 *
 * A session has at most MEMORYD_UNACKNOWLEDGED_MAX of them, and a reply is shorter than a packet, so they take at most
 * 4 MiB for a session; real ones take a few kilobytes each. They end with their session.
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
    void *running;          /* the caller's: what this process does for the request, or NULL */
};

void kept_init(struct sessions *sessions);
void kept_deinit(struct sessions *sessions);

/* INTENT, as long as there is no reply. The session has none of this sequence. LIMIT, NO_MEMORY. */
int kept_new(struct session *session, uint64_t sequence, uint16_t method, struct kept **ret, struct problem *problem);
struct kept *kept_free(struct kept *kept);
/* What it takes with its pieces. It is charged as metadata, over the limit if need be: what gives something back is
 * recorded, too. */
uint64_t kept_cost(const struct sessions *sessions, const struct kept *kept);

/* NULL if there is none. */
struct kept *session_kept(const struct session *session, uint64_t sequence);

/* A worker is at it from now on, so that a broker that dies meanwhile died over it too; or it is left in order. */
void kept_set_working(struct kept *kept, bool working);

/*
 * Keeps this reply, which has so many descriptors, and makes the record LIVE. A reply that is acknowledged already is
 * not kept. Without memory for it a repeat gets NO_MEMORY without a message, and the request stays done.
 */
void kept_finish(struct kept *kept, uint32_t status, const void *payload, size_t size, unsigned n_fds);

/* Copies the message of a LIVE record: kept->record->size bytes. */
void kept_read(const struct kept *kept, void *buffer);

/*
 * No reply up to `cumulative` is needed again, nor that to `one` (0: no other). The record of a request at work stays
 * until that ends.
 */
void kept_acknowledge(struct session *session, uint64_t cumulative, uint64_t one);

/*
 * Takes over the replies of another broker, once the sessions are recovered. Each request that it was at work on has
 * one more dead broker, and so has the request that its loop was at, which gets a record if it had none. 0 or a
 * negative errno.
 */
int kept_recover(struct sessions *sessions, struct ledger *ledger);
