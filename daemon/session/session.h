/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: who a client is, by the kernel's word (I3), and everything that is there because of it.
 *
 * A session may outlive its connection and be resumed by the same process with its secret; a forked child that knows
 * the secret is another process. The session owns its pidfd. The broker decides when it ends (I6) and what becomes of
 * what it holds: session_free() wants its lists empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "account/account.h"
#include "base/list.h"
#include "base/problem.h"
#include "base/tree.h"
#include "ledger/table.h"
#include "proto/limits.h"
#include "sys/peer.h"

struct hold;
RB_HEAD(hold_tree, hold);

struct sessions {
    struct table table;
    struct table holds;
    struct table kept; /* kept.h */
    struct table kept_more;
    struct accounts *accounts; /* borrowed */
};

struct session {
    OBJECT(struct session_record);
    struct sessions *sessions;
    struct peer peer;        /* owned: pidfd, groups */
    struct account *account; /* a reference: what this session costs, within its user's */
    struct charge charge;    /* of the session itself */
    int release_log;         /* owned: proto/release_log.h, hold_cache.h; -1: the client has not asked for one */
    void *connection;        /* NULL while it has none */
    void *userdata;          /* the broker's own */
    struct hold_tree holds;  /* by buffer; hold.h */
    uint32_t n_holds;
    struct list tokens;          /* struct token's in_session */
    struct list names;           /* struct name's in_session */
    struct list reservations;    /* struct reservation's in_session */
    struct list kept;            /* struct kept's in_session, by sequence */
    uint64_t subscription_bytes; /* of the broker's metadata, for what it has subscribed to */
    uint32_t n_kept;             /* that count against MEMORYD_UNACKNOWLEDGED_MAX */
};

void sessions_init(struct sessions *sessions, struct ledger *ledger, struct accounts *accounts);
void sessions_deinit(struct sessions *sessions);

/* INTENT; commit its record when the rest is done. Takes over what `peer` owns on success. `program` has at most
 * MEMORYD_PROGRAM_MAX bytes. The session may be one of so many `beyond` its user's limit, and has no connection yet.
 * LIMIT, NO_MEMORY, or a negative errno. */
int session_new(struct sessions *sessions, struct peer *peer, const char *program, unsigned beyond,
                struct session **ret, struct problem *problem);
/* Makes a session of its record again (table.h). `pidfd` is what is left of its process, or NULL; it is taken if it is
 * of that process. A session whose process has ended has no pidfd afterwards. 0 and a verdict, or a negative errno. */
int session_recover(struct sessions *sessions, struct session *session, int *pidfd, enum table_verdict *ret,
                    const char **why);
/* Its lists must be empty. */
struct session *session_free(struct session *session);
DEFINE_CLEANUP(struct session *, session_free);

/* May this process go on with it? 0 or SESSION_REJECTED. */
int session_may_resume(const struct session *session, const uint8_t secret[static MEMORYD_SECRET_SIZE],
                       const struct peer *peer, struct problem *problem);
/* Gives the session this connection and the groups of `peer`, which gets the former ones and loses its pidfd, since the
 * session has one. */
void session_attach(struct session *session, void *connection, struct peer *peer);
/* Takes its connection away. */
void session_detach(struct session *session);

/* Makes its release log, which it must not have yet, and its hold cache (cache.h) in the same memory. The client
 * allocates the pages, since it may keep them for longer than the session exists, and nobody is charged for them. 0 or
 * a negative errno, which is not fatal: a session can do without. */
int session_make_release_log(struct session *session);

/* LIVE; NULL if there is none. */
struct session *sessions_find(const struct sessions *sessions, uint64_t id);
