/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each user and each session has, and the most that they may have (I7).
 *
 * Whatever costs something embeds a `struct charge`. Limits are checked when the charge is made; undoing it cannot fail
 * and may be done twice. The sum is exact if every object undoes its own charges when it ends (I5), since nothing else
 * changes the figures.
 *
 * A charge of bytes also counts its buffer, and a charge of addresses its reservation. Each charge of a thing with a
 * record counts what the record and its object cost the broker, too, as metadata.
 *
 * Of what all users share there is a *total*, and no user may have more than its *share*: so many percent of what the
 * others leave of the total. With 50 % the first one may have a half, the next one half of the rest, and so on: however
 * many users take what they can, there is something left for one more. Since the sum of each slot over all users is
 * kept, this takes a comparison. It holds for what memory pools give out as well: what a user has of each, called a
 * *place* here, is counted in its account.
 *
 * A charge whose object is certain to be gone soon is *reclaiming*: it is still charged in full, but whoever waits for
 * room may count on it.
 *
 * An account belongs to a user, or to a session; what is charged to a session's account counts for its user's too.
 * It exists as long as something is charged to it or somebody has a reference. So a session may end while what it
 * made lives on, and the account that it leaves behind goes with the last charge.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/problem.h"
#include "base/share.h"
#include "base/tree.h"

/* ---- tallies ----------------------------------------------------------------------------------------------------- */

/* How an amount is charged. The later the state, the sooner the amount can be had by somebody else. */
enum tally_state {
    TALLY_NONE, /* it is not charged */
    TALLY_USED,
    TALLY_RECLAIMING, /* in use, and certain to be free soon */
    TALLY_STOCK,      /* made ahead, and given back when somebody needs the room */
    TALLY_STATES
};

/* What is charged altogether in each state; the element of TALLY_NONE stays 0. */
struct tally {
    uint64_t in[TALLY_STATES];
};

/* An amount that was charged in one state is charged in the other from now on. */
static inline void tally_shift(struct tally *tally, enum tally_state from, enum tally_state to, uint64_t amount)
{
    assert(from == TALLY_NONE || tally->in[from] >= amount);
    assert(to == TALLY_NONE || tally->in[to] <= UINT64_MAX - amount);
    if (from != TALLY_NONE)
        tally->in[from] -= amount;
    if (to != TALLY_NONE)
        tally->in[to] += amount;
}

/* What is charged in this state and those before it. */
static inline uint64_t tally_sum(const struct tally *tally, enum tally_state last)
{
    uint64_t sum = 0;

    for (unsigned state = TALLY_USED; state <= (unsigned)last; state++)
        sum += tally->in[state];
    return sum;
}

/* All but stock. */
static inline uint64_t tally_used(const struct tally *tally)
{
    return tally_sum(tally, TALLY_RECLAIMING);
}

/* ---- accounts ---------------------------------------------------------------------------------------------------- */

/* X(NAME, key, what): the keys in [limits] are uid_<key> and session_<key>; same order as in the configuration */
#define ACCOUNT_SLOTS_TABLE(X)                                      \
    X(BYTES, bytes, "bytes of memory")                              \
    X(BUFFERS, buffers, "buffers")                                  \
    X(TOKENS, tokens, "tokens")                                     \
    X(RESERVATIONS, reservations, "reservations")                   \
    X(ADDRESSES, addresses, "bytes of reserved addresses")          \
    X(SESSIONS, sessions, "sessions")                               \
    X(NAMES, names, "names")                                        \
    X(QUEUED_BYTES, queued_bytes, "bytes of replies not yet read")  \
    X(FDS_IN_FLIGHT, fds_in_flight, "descriptors not yet received") \
    X(METADATA, metadata, "bytes of the broker's own records")

enum account_slot {
#define X(NAME, key, what) ACCOUNT_##NAME,
    ACCOUNT_SLOTS_TABLE(X)
#undef X
        ACCOUNT_SLOTS
};

/* The slot of this key, or ACCOUNT_SLOTS. */
enum account_slot account_slot_of(const char *key);

#define ACCOUNT_NO_LIMIT UINT64_MAX
/* In a policy: as for everybody. */
#define ACCOUNT_DEFAULT (UINT64_MAX - 1)
/* One charge cannot be larger; more than that is over every limit. */
#define CHARGE_MAX ((UINT64_C(1) << 56) - 1)

/* What is configured for one user, or for each member of a group. */
struct account_policy {
    bool is_group;
    uint32_t id;                  /* uid or gid */
    uint64_t user[ACCOUNT_SLOTS]; /* or ACCOUNT_DEFAULT */
    unsigned share;               /* in percent; 0 = as for everybody */
};

struct account_limits {
    uint64_t user[ACCOUNT_SLOTS];
    uint64_t session[ACCOUNT_SLOTS]; /* that of SESSIONS is not used */
    uint64_t total[ACCOUNT_SLOTS];   /* of all users; 0 = none, and no shares of it */
    unsigned share;                  /* of each user, in percent; 0 = SHARE_ALL */
    uid_t administrator;             /* as root, bound by no share and no total */
    bool by_descriptors;             /* user[BUFFERS] is what the limit of open files allows */
    const struct account_policy *policies;
    size_t n_policies;
};

struct accounts;

struct account {
    struct accounts *accounts;
    struct account *parent; /* of a session's account: the user's */
    uid_t uid;
    uint64_t refs;  /* references and charges */
    uint32_t stuck; /* of a user's: buffers that are not given back, since somebody keeps the kernel waiting */
    struct tally tallies[ACCOUNT_SLOTS];
    /* of a user's */
    RB_ENTRY(account) by_uid;
    const struct account_policy *policy; /* NULL: none, it is like everybody */
    gid_t group;                         /* the one whose policy it is, or was; (gid_t)-1 = none */
    struct tally *places;                /* what it has of each place, in bytes: see account_place() */
};

RB_HEAD(account_tree, account);

struct accounts {
    struct account_limits limits;
    struct account_tree users;
    uint64_t count;                   /* of both kinds */
    struct tally sums[ACCOUNT_SLOTS]; /* of all users */
    uint64_t metadata[ACCOUNT_SLOTS]; /* what a record of a charge of this slot costs */
    uint32_t n_places;                /* of each user's account */
};

/* No limits at all if NULL. Those of the struct that are pointed to are borrowed until there are others. */
void accounts_init(struct accounts *accounts, const struct account_limits *limits);
/* All must be gone. */
void accounts_deinit(struct accounts *accounts);
/* They hold for charges to come; what is over a new limit stays. */
void accounts_set_limits(struct accounts *accounts, const struct account_limits *limits);
/* Both before there is any account: what a record costs that a charge of this slot is for, and how many places there
 * are. */
void accounts_set_metadata(struct accounts *accounts, enum account_slot slot, uint64_t bytes);
void accounts_set_places(struct accounts *accounts, uint32_t n);

/* The policy of a user with these groups: its own, or else that of the first of its groups that has one, or NULL. */
const struct account_policy *account_policy_find(const struct account_limits *limits, uid_t uid, gid_t group,
                                                 const gid_t *groups, size_t n_groups);
/* The share of everybody with this policy, in percent. */
unsigned account_policy_share(const struct account_limits *limits, uid_t uid, const struct account_policy *policy);
/* The user of this account, or of its session, is a member of these groups. */
void account_set_groups(struct account *account, gid_t group, const gid_t *groups, size_t n_groups);

/* The account of a user, with one more reference. 0 or NO_MEMORY. */
int account_of_user(struct accounts *accounts, uid_t uid, struct account **ret, struct problem *problem);
/* An account for a new session of this user, with one reference. 0 or NO_MEMORY. */
int account_new_session(struct accounts *accounts, uid_t uid, struct account **ret, struct problem *problem);
/* Borrowed; NULL if the user has nothing. */
struct account *account_find(const struct accounts *accounts, uid_t uid);
struct account *account_ref(struct account *account);
struct account *account_unref(struct account *account);
DEFINE_CLEANUP(struct account *, account_unref);

static inline uint64_t account_used(const struct account *account, enum account_slot slot)
{
    return tally_used(&account->tallies[slot]);
}

/* What could be charged once all is free that is reclaiming; ACCOUNT_NO_LIMIT if there is no limit. */
uint64_t account_left(const struct account *account, enum account_slot slot);

/* Is at least half of what the account and its user may have of this free? */
bool account_has_plenty(const struct account *account, enum account_slot slot);

/* What its user may have, whatever the others leave. */
uint64_t account_limit(const struct account *account, enum account_slot slot);
uint64_t account_session_limit(const struct account *account, enum account_slot slot);
/* What to change in the configuration for that: "uid_tokens in [limits]", or "tokens in [user 1000]". */
#define ACCOUNT_KEY_SIZE 64
const char *account_limit_key(const struct account *account, enum account_slot slot,
                              char text[static ACCOUNT_KEY_SIZE]);
/* "tokens" */
const char *account_slot_key(enum account_slot slot);

static inline struct account *account_user(struct account *account)
{
    return account->parent ? account->parent : account;
}

/* In percent. */
unsigned account_share(const struct account *account);
/* What the account's user has of a place; NULL if it is none. */
static inline struct tally *account_place(const struct account *account, uint32_t place)
{
    const struct account *user = account->parent ? account->parent : account;

    return place < user->accounts->n_places ? &user->places[place] : NULL;
}

/* LIMIT, for a user that asks for more than its share: `what` it has `has` of already, and may have `most` of. The
 * unit, like " bytes" or "", follows the other numbers. */
int account_refuse_share(const struct account *account, const char *what, const char *unit, uint64_t has,
                         uint64_t wants, uint64_t most, struct problem *problem);

/* The user's account with the lowest uid from `from` on; NULL if there is none. */
struct account *account_next(const struct accounts *accounts, uid_t from);

/* ---- charges ----------------------------------------------------------------------------------------------------- */

/* Keeps its account alive. */
struct charge {
    struct account *account; /* NULL: nothing is charged */
    uint64_t amount : 56;
    uint64_t slot : 6;
    uint64_t state : 2; /* enum tally_state */
};

#define CHARGE_NULL ((struct charge){.account = NULL})

/* Charges all of it, or is LIMIT with a sentence that names the limit, its value and its key. The charge must be
 * CHARGE_NULL. */
int charge_init(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount,
                struct problem *problem);
/* The same, but up to so much beyond the user's limit. */
int charge_init_beyond(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount,
                       uint64_t beyond, struct problem *problem);
/* Charges what exists already by its record, over the limit if need be. */
void charge_restore(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount);
/* The charge is CHARGE_NULL afterwards, and may be so before. */
void charge_deinit(struct charge *charge);
/* All of it is in this state from now on: USED or RECLAIMING. */
void charge_shift(struct charge *charge, enum tally_state to);
/* Charges so much more, over the limit if need be. */
void charge_raise(struct charge *charge, uint64_t by);
/* Charges so much less; the buffer or reservation that it counts stays one. */
void charge_lower(struct charge *charge, uint64_t by);
/* Another account pays from now on, over its limit if need be (I5). */
void charge_move(struct charge *charge, struct account *to);

/* Metadata of what does not outlive the session of the account, and so needs no charge of its own. LIMIT. */
int account_charge_metadata(struct account *account, uint64_t bytes, struct problem *problem);
/* Over the limit if need be. */
void account_restore_metadata(struct account *account, uint64_t bytes);
void account_lower_metadata(struct account *account, uint64_t bytes);
