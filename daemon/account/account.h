/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each user and each session has, and the most that they may have (I7).
 *
 * Whatever costs something embeds a `struct charge`. Making the charge is where a limit is met, and undoing it
 * cannot fail and may be done twice, so the sum is exact if every object undoes its own charges when it ends (I5);
 * nothing else changes the figures.
 *
 * A charge of bytes is a buffer's, and one of addresses is a reservation's: it counts that buffer or reservation, too.
 *
 * A charge whose object is certain to be gone soon is *returning*: still charged in full, but whoever waits for room
 * may count on it.
 *
 * An account is of a user, or of a session and then a part of its user's: what is charged to it counts for both.
 * It exists as long as something is charged to it or somebody holds a reference. So a session may end while what
 * it made lives on; the account that it leaves behind goes with the last charge.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/problem.h"
#include "base/tree.h"

/* X(NAME, key, what): the keys in [limits] are uid_<key> and session_<key>; same order as in the configuration */
#define ACCOUNT_SLOTS_TABLE(X)                                                                               \
    X(BYTES, bytes, "bytes of memory")                                                                       \
    X(BUFFERS, buffers, "buffers")                                                                           \
    X(TOKENS, tokens, "tokens")                                                                              \
    X(RESERVATIONS, reservations, "reservations")                                                            \
    X(ADDRESSES, addresses, "bytes of reserved addresses")                                                   \
    X(SESSIONS, sessions, "sessions")                                                                        \
    X(NAMES, names, "names")                                                                                 \
    X(QUEUED_BYTES, queued_bytes, "bytes of replies not yet read")                                           \
    X(FDS_IN_FLIGHT, fds_in_flight, "descriptors not yet received")

enum account_slot {
#define X(NAME, key, what) ACCOUNT_##NAME,
    ACCOUNT_SLOTS_TABLE(X)
#undef X
    ACCOUNT_SLOTS
};

#define ACCOUNT_NO_LIMIT UINT64_MAX
/* One charge cannot be larger; more than that is over every limit. */
#define CHARGE_MAX ((UINT64_C(1) << 56) - 1)

struct account_limits {
    uint64_t user[ACCOUNT_SLOTS];
    uint64_t session[ACCOUNT_SLOTS]; /* that of SESSIONS is not used */
    bool by_descriptors;             /* user[BUFFERS] is what the limit of open files has room for */
};

struct accounts;

struct account {
    struct accounts *accounts;
    struct account *parent; /* of a session's account: the user's */
    uid_t uid;
    uint64_t refs; /* references and charges */
    uint64_t used[ACCOUNT_SLOTS];
    uint64_t returning[ACCOUNT_SLOTS]; /* of those */
    RB_ENTRY(account) by_uid; /* of a user's */
};

RB_HEAD(account_tree, account);

struct accounts {
    struct account_limits limits;
    struct account_tree users;
    uint64_t count; /* of both kinds */
};

/* No limits at all if NULL. */
void accounts_init(struct accounts *accounts, const struct account_limits *limits);
/* All must be gone. */
void accounts_deinit(struct accounts *accounts);
/* For charges to come; what is over a new limit stays. */
void accounts_set_limits(struct accounts *accounts, const struct account_limits *limits);

/* The account of a user, with one more reference. 0 or NO_MEMORY. */
int account_of_user(struct accounts *accounts, uid_t uid, struct account **ret, struct problem *problem);
/* An account for a new session of this user, with one reference. 0 or NO_MEMORY. */
int account_new_session(struct accounts *accounts, uid_t uid, struct account **ret, struct problem *problem);
/* Borrowed; NULL if the user has nothing. */
struct account *account_find(const struct accounts *accounts, uid_t uid);
struct account *account_ref(struct account *account);
struct account *account_unref(struct account *account);
DEFINE_CLEANUP(struct account *, account_unref);

/* The user's own account: itself, or its parent. */
static inline struct account *account_user(struct account *account)
{
    return account->parent ? account->parent : account;
}

/* What could be charged once all is back that is returning; ACCOUNT_NO_LIMIT if there is no limit. */
uint64_t account_left(const struct account *account, enum account_slot slot);

/* Is at least half of what it and its user may have of this free? */
bool account_has_plenty(const struct account *account, enum account_slot slot);

/* The users' accounts in ascending order, for checks and listings: from the first with at least this uid. */
struct account *account_next(const struct accounts *accounts, uid_t from);

/* Keeps its account alive. */
struct charge {
    struct account *account; /* NULL: nothing is charged */
    uint64_t amount : 56;
    uint64_t slot : 7;
    uint64_t returning : 1;
};

#define CHARGE_NULL ((struct charge){.account = NULL})

/* All of it, or LIMIT with a sentence that names the limit, its value and its key. The charge must be CHARGE_NULL. */
int charge_init(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount,
                struct problem *problem);
/* Likewise, but up to so much beyond the user's limit. */
int charge_init_beyond(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount,
                       uint64_t beyond, struct problem *problem);
/* For what exists already, from a record of it: over the limit if need be. */
void charge_restore(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount);
/* CHARGE_NULL afterwards. Harmless on CHARGE_NULL. */
void charge_deinit(struct charge *charge);
/* It will be undone as soon as that can be done. */
void charge_return(struct charge *charge);
/* What is left of it will not be. */
void charge_unreturn(struct charge *charge);
/* So much less of it; what it counts besides stays one. */
void charge_lower(struct charge *charge, uint64_t by);
/* To somebody else, over his limit if need be (I5). */
void charge_move(struct charge *charge, struct account *to);

/* ---- audits --------------------------------------------------------------------------------------------- */

/*
 * Who adds up what things cost while they come, change and go (I5). Whoever changes that of one says so, before (what
 * it has cost so far is taken off) and after.
 */
struct audit {
    void (*changes)(void *userdata, const void *object, int sign); /* NULL: nobody adds up */
    void *userdata;
};

static inline void audit_before(const struct audit *audit, const void *object)
{
    if (audit->changes)
        audit->changes(audit->userdata, object, -1);
}

static inline void audit_after(const struct audit *audit, const void *object)
{
    if (audit->changes)
        audit->changes(audit->userdata, object, 1);
}
