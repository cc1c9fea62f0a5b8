/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts: sums, limits and the sentence when one is met. See the header for the rules.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "base/checked.h"
#include "proto/status.h"

static const struct {
    const char *key;
    const char *what;
    const char *unit; /* behind further numbers, of what is counted in bytes */
} slots[ACCOUNT_SLOTS] = {
#define X(NAME, key, what)                                                                \
    {#key, what,                                                                          \
     ACCOUNT_##NAME == ACCOUNT_BYTES || ACCOUNT_##NAME == ACCOUNT_ADDRESSES ||            \
             ACCOUNT_##NAME == ACCOUNT_QUEUED_BYTES || ACCOUNT_##NAME == ACCOUNT_METADATA \
         ? " bytes"                                                                       \
         : ""},
    ACCOUNT_SLOTS_TABLE(X)
#undef X
};

enum account_slot account_slot_of(const char *key)
{
    unsigned slot = 0;

    while (slot < ACCOUNT_SLOTS && strcmp(slots[slot].key, key) != 0)
        slot++;
    return (enum account_slot)slot;
}

/* What a charge of this slot counts one of besides; ACCOUNT_SLOTS = nothing. */
static enum account_slot counts_one_of(enum account_slot slot)
{
    if (slot == ACCOUNT_BYTES)
        return ACCOUNT_BUFFERS;
    return slot == ACCOUNT_ADDRESSES ? ACCOUNT_RESERVATIONS : ACCOUNT_SLOTS;
}

static int compare_uids(const struct account *a, const struct account *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

TREE_GENERATE(account_tree, account, by_uid, compare_uids)

void accounts_init(struct accounts *accounts, const struct account_limits *limits)
{
    *accounts = (struct accounts){.count = 0};
    RB_INIT(&accounts->users);
    accounts_set_limits(accounts, limits);
}

void accounts_deinit(struct accounts *accounts)
{
    assert(!accounts->count);
    assert(RB_EMPTY(&accounts->users));
    (void)accounts;
}

static const struct account_policy *policy_of(const struct account_limits *limits, bool is_group, uint32_t id)
{
    for (size_t i = 0; i < limits->n_policies; i++)
        if (limits->policies[i].is_group == is_group && limits->policies[i].id == id)
            return &limits->policies[i];
    return NULL;
}

static const struct account_policy *policy_of_groups(const struct account_limits *limits, gid_t group,
                                                     const gid_t *groups, size_t n_groups)
{
    const struct account_policy *policy = policy_of(limits, true, group);

    for (size_t i = 0; !policy && i < n_groups; i++)
        policy = policy_of(limits, true, groups[i]);
    return policy;
}

const struct account_policy *account_policy_find(const struct account_limits *limits, uid_t uid, gid_t group,
                                                 const gid_t *groups, size_t n_groups)
{
    const struct account_policy *own = policy_of(limits, false, uid);

    return own ? own : policy_of_groups(limits, group, groups, n_groups);
}

static bool is_administrator(const struct account_limits *limits, uid_t uid)
{
    return !uid || uid == limits->administrator;
}

unsigned account_policy_share(const struct account_limits *limits, uid_t uid, const struct account_policy *policy)
{
    if (policy && policy->share)
        return policy->share;
    return limits->share && !is_administrator(limits, uid) ? limits->share : SHARE_ALL;
}

/* A group's policy that is configured only now takes effect when the user connects next: its groups are not kept. */
static void account_set_policy(struct account *account)
{
    account->policy = account_policy_find(&account->accounts->limits, account->uid, account->group, NULL, 0);
}

void account_set_groups(struct account *account, gid_t group, const gid_t *groups, size_t n_groups)
{
    struct account *user = account_user(account);
    const struct account_policy *policy = policy_of_groups(&user->accounts->limits, group, groups, n_groups);

    user->group = policy ? (gid_t)policy->id : (gid_t)-1;
    account_set_policy(user);
}

void accounts_set_limits(struct accounts *accounts, const struct account_limits *limits)
{
    struct account *user;

    accounts->limits = limits ? *limits : (struct account_limits){.share = SHARE_ALL};
    for (unsigned i = 0; !limits && i < ACCOUNT_SLOTS; i++) {
        accounts->limits.user[i] = ACCOUNT_NO_LIMIT;
        accounts->limits.session[i] = ACCOUNT_NO_LIMIT;
    }
    RB_FOREACH(user, account_tree, &accounts->users)
        account_set_policy(user);
}

void accounts_set_metadata(struct accounts *accounts, enum account_slot slot, uint64_t bytes)
{
    assert(!accounts->count);
    accounts->metadata[slot] = bytes;
}

void accounts_set_places(struct accounts *accounts, uint32_t n)
{
    assert(!accounts->count);
    accounts->n_places = n;
}

static int account_new(struct accounts *accounts, uid_t uid, bool is_user, struct account **ret,
                       struct problem *problem)
{
    size_t n_places = is_user ? accounts->n_places : 0;
    struct account *account = calloc(1, sizeof(*account) + n_places * sizeof(*account->places));

    if (!account)
        return refuse(problem, STATUS_NO_MEMORY, "the broker has no memory for another account; try again later");
    account->accounts = accounts;
    account->uid = uid;
    account->refs = 1;
    account->group = (gid_t)-1;
    account->places = is_user ? (struct tally *)(void *)(account + 1) : NULL;
    accounts->count++;
    *ret = account;
    return 0;
}

struct account *account_find(const struct accounts *accounts, uid_t uid)
{
    struct account key = {.uid = uid};

    return RB_FIND(account_tree, (struct account_tree *)&accounts->users, &key);
}

struct account *account_next(const struct accounts *accounts, uid_t from)
{
    struct account key = {.uid = from};

    return RB_NFIND(account_tree, (struct account_tree *)&accounts->users, &key);
}

int account_of_user(struct accounts *accounts, uid_t uid, struct account **ret, struct problem *problem)
{
    struct account *account = account_find(accounts, uid);
    int r;

    if (account) {
        *ret = account_ref(account);
        return 0;
    }
    r = account_new(accounts, uid, true, &account, problem);
    if (r)
        return r;
    account_set_policy(account);
    RB_INSERT(account_tree, &accounts->users, account);
    *ret = account;
    return 0;
}

int account_new_session(struct accounts *accounts, uid_t uid, struct account **ret, struct problem *problem)
{
    _cleanup_(account_unrefp) struct account *user = NULL;
    struct account *account = NULL;
    int r;

    r = account_of_user(accounts, uid, &user, problem);
    if (r)
        return r;
    r = account_new(accounts, uid, false, &account, problem);
    if (r)
        return r;
    account->parent = account_ref(user);
    *ret = account;
    return 0;
}

struct account *account_ref(struct account *account)
{
    assert(account->refs);
    account->refs++;
    return account;
}

struct account *account_unref(struct account *account)
{
    struct account *parent;

    if (!account)
        return NULL;
    assert(account->refs);
    if (--account->refs)
        return NULL;
    for (unsigned i = 0; i < ACCOUNT_SLOTS; i++)
        assert(!account_used(account, (enum account_slot)i));
    for (uint32_t i = 0; account->places && i < account->accounts->n_places; i++)
        assert(!tally_sum(&account->places[i], TALLY_STOCK));
    parent = account->parent;
    if (!parent)
        RB_REMOVE(account_tree, &account->accounts->users, account);
    account->accounts->count--;
    free(account);
    return account_unref(parent);
}

static uint64_t limit_of(const struct account *account, enum account_slot slot)
{
    const struct account_limits *limits = &account->accounts->limits;

    if (account->parent)
        return account_session_limit(account, slot);
    if (account->policy && account->policy->user[slot] != ACCOUNT_DEFAULT)
        return account->policy->user[slot];
    return limits->user[slot];
}

unsigned account_share(const struct account *account)
{
    const struct account *user = account->parent ? account->parent : account;

    return account_policy_share(&user->accounts->limits, user->uid, user->policy);
}

/* What a user may have of the total, others having what they have in states up to `last`. */
static uint64_t most_of_total(const struct account *user, enum account_slot slot, enum tally_state last)
{
    const struct accounts *accounts = user->accounts;
    uint64_t total = accounts->limits.total[slot];

    if (user->parent || !total || is_administrator(&accounts->limits, user->uid))
        return ACCOUNT_NO_LIMIT;
    return share_of(total, tally_sum(&accounts->sums[slot], last) - tally_sum(&user->tallies[slot], last),
                    account_share(user));
}

static uint64_t left_of(const struct account *account, enum account_slot slot)
{
    uint64_t limit = limit_of(account, slot), stays = tally_sum(&account->tallies[slot], TALLY_USED);
    uint64_t most = most_of_total(account, slot, TALLY_USED);

    limit = most < limit ? most : limit;
    if (limit == ACCOUNT_NO_LIMIT)
        return ACCOUNT_NO_LIMIT;
    return stays < limit ? limit - stays : 0;
}

uint64_t account_left(const struct account *account, enum account_slot slot)
{
    uint64_t left = left_of(account, slot), parents;

    if (!account->parent)
        return left;
    parents = left_of(account->parent, slot);
    return left < parents ? left : parents;
}

bool account_has_plenty(const struct account *account, enum account_slot slot)
{
    for (; account; account = account->parent)
        if (account_used(account, slot) > limit_of(account, slot) / 2 ||
            account_used(account, slot) > most_of_total(account, slot, TALLY_RECLAIMING) / 2)
            return false;
    return true;
}

uint64_t account_limit(const struct account *account, enum account_slot slot)
{
    return limit_of(account_user((struct account *)account), slot);
}

uint64_t account_session_limit(const struct account *account, enum account_slot slot)
{
    return slot == ACCOUNT_SESSIONS ? ACCOUNT_NO_LIMIT : account->accounts->limits.session[slot];
}

const char *account_slot_key(enum account_slot slot)
{
    return slots[slot].key;
}

const char *account_limit_key(const struct account *account, enum account_slot slot, char text[static ACCOUNT_KEY_SIZE])
{
    const struct account_policy *policy = account->policy;

    if (!account->parent && policy && policy->user[slot] != ACCOUNT_DEFAULT)
        (void)snprintf(text, ACCOUNT_KEY_SIZE, "%s in [%s %u]", slots[slot].key, policy->is_group ? "group" : "user",
                       policy->id);
    else
        (void)snprintf(text, ACCOUNT_KEY_SIZE, "%s_%s in [limits]", account->parent ? "session" : "uid",
                       slots[slot].key);
    return text;
}

static int refuse_limit(const struct account *account, enum account_slot slot, uint64_t amount, uint64_t limit,
                        struct problem *problem)
{
    uint64_t used = account_used(account, slot);
    const char *unit = slots[slot].unit;
    char key[ACCOUNT_KEY_SIZE], who[32] = "this session";

    if (limit == ACCOUNT_NO_LIMIT)
        return refuse(problem, STATUS_LIMIT, "%" PRIu64 " %s more are beyond what can be counted", amount,
                      slots[slot].what);
    if (!account->parent)
        (void)snprintf(who, sizeof(who), "user %u", (unsigned)account->uid);
    if (!account->parent && slot == ACCOUNT_BUFFERS && account->accounts->limits.by_descriptors && !account->policy)
        return refuse(problem, STATUS_LIMIT,
                      "user %u has %" PRIu64 " buffers and asks for %" PRIu64 " more, but may have %" PRIu64
                      ", since each takes a descriptor of the broker; give some back, raise its LimitNOFILE "
                      "(ulimit -Hn), or put small ones into slabs, as UMF pools do",
                      (unsigned)account->uid, used, amount, limit);
    return refuse(problem, STATUS_LIMIT,
                  "%s has %" PRIu64 " %s and asks for %" PRIu64 "%s more, but may have %" PRIu64
                  "%s; give some back, or raise %s",
                  who, used, slots[slot].what, amount, unit, limit, unit, account_limit_key(account, slot, key));
}

int account_refuse_share(const struct account *account, const char *what, const char *unit, uint64_t has,
                         uint64_t wants, uint64_t most, struct problem *problem)
{
    unsigned share = account_share(account);

    if (share == SHARE_ALL)
        return refuse(problem, STATUS_LIMIT,
                      "user %u has %" PRIu64 " %s and asks for %" PRIu64 "%s more, but the others leave %" PRIu64
                      "%s; give some back, or wait until they do",
                      (unsigned)account->uid, has, what, wants, unit, most, unit);
    return refuse(problem, STATUS_LIMIT,
                  "user %u has %" PRIu64 " %s and asks for %" PRIu64 "%s more, but may have %" PRIu64
                  "%s, %u%% of what the others leave; give some back, or configure [user %u] share = 100%%",
                  (unsigned)account->uid, has, what, wants, unit, most, unit, share, (unsigned)account->uid);
}

static int check_limit(const struct account *account, enum account_slot slot, uint64_t amount, uint64_t beyond,
                       struct problem *problem)
{
    uint64_t limit = limit_of(account, slot), used = account_used(account, slot), sum, most;

    if (account->parent)
        beyond = 0;
    if (amount > CHARGE_MAX || !checked_add_u64(used, amount, &sum) || (sum > limit && sum - limit > beyond))
        return problem_short_of(problem, refuse_limit(account, slot, amount, limit, problem),
                                (struct shortage){NULL, slots[slot].key, amount, used, limit, 0});
    most = most_of_total(account, slot, TALLY_RECLAIMING);
    if (sum > most)
        return problem_short_of(
            problem, account_refuse_share(account, slots[slot].what, slots[slot].unit, used, amount, most, problem),
            (struct shortage){NULL, slots[slot].key, amount, used, most, 0});
    return 0;
}

/* Limits do not bound what is restored or moved here, but then it was charged elsewhere before, and all charges of a
 * slot together are far from what 64 bits can count: they are of memory that exists. */
static void account_shift(struct account *account, enum account_slot slot, enum tally_state from, enum tally_state to,
                          uint64_t amount)
{
    for (; account; account = account->parent) {
        tally_shift(&account->tallies[slot], from, to, amount);
        if (!account->parent)
            tally_shift(&account->accounts->sums[slot], from, to, amount);
    }
}

void charge_shift(struct charge *charge, enum tally_state to)
{
    struct account *account = charge->account;
    enum account_slot slot = (enum account_slot)charge->slot, one = counts_one_of(slot);
    enum tally_state from = (enum tally_state)charge->state;

    assert(account);
    account_shift(account, slot, from, to, charge->amount);
    if (one != ACCOUNT_SLOTS)
        account_shift(account, one, from, to, 1);
    if (account->accounts->metadata[slot])
        account_shift(account, ACCOUNT_METADATA, from, to, account->accounts->metadata[slot]);
    charge->state = to & 3;
}

int charge_init(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount,
                struct problem *problem)
{
    return charge_init_beyond(charge, account, slot, amount, 0, problem);
}

int charge_init_beyond(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount,
                       uint64_t beyond, struct problem *problem)
{
    uint64_t metadata = account->accounts->metadata[slot];
    enum account_slot one = counts_one_of(slot);
    int r = 0;

    assert(!charge->account);
    for (const struct account *a = account; a && !r && one != ACCOUNT_SLOTS; a = a->parent)
        r = check_limit(a, one, 1, 0, problem);
    for (const struct account *a = account; a && !r; a = a->parent)
        r = check_limit(a, slot, amount, beyond, problem);
    for (const struct account *a = account; a && !r && metadata; a = a->parent)
        r = check_limit(a, ACCOUNT_METADATA, metadata, beyond ? metadata : 0, problem);
    if (r)
        return r;
    charge_restore(charge, account, slot, amount);
    return 0;
}

void charge_restore(struct charge *charge, struct account *account, enum account_slot slot, uint64_t amount)
{
    assert(!charge->account);
    *charge = (struct charge){.account = account_ref(account), .amount = amount & CHARGE_MAX, .slot = slot & 0x3f};
    charge_shift(charge, TALLY_USED);
}

void charge_raise(struct charge *charge, uint64_t by)
{
    assert(charge->account && by <= CHARGE_MAX - charge->amount);
    account_shift(charge->account, (enum account_slot)charge->slot, TALLY_NONE, (enum tally_state)charge->state, by);
    charge->amount += by & CHARGE_MAX;
}

void charge_lower(struct charge *charge, uint64_t by)
{
    assert(charge->account && charge->amount >= by);
    account_shift(charge->account, (enum account_slot)charge->slot, (enum tally_state)charge->state, TALLY_NONE, by);
    charge->amount -= by & CHARGE_MAX;
}

void charge_deinit(struct charge *charge)
{
    if (!charge->account)
        return;
    charge_shift(charge, TALLY_NONE);
    account_unref(charge->account);
    *charge = (struct charge)CHARGE_NULL;
}

void charge_move(struct charge *charge, struct account *to)
{
    struct charge moved = CHARGE_NULL;

    assert(charge->account);
    /* before the old one goes: `to` may live by this charge alone */
    charge_restore(&moved, to, (enum account_slot)charge->slot, charge->amount);
    charge_shift(&moved, (enum tally_state)charge->state);
    charge_deinit(charge);
    *charge = moved;
}

int account_charge_metadata(struct account *account, uint64_t bytes, struct problem *problem)
{
    int r = 0;

    for (const struct account *a = account; a && !r; a = a->parent)
        r = check_limit(a, ACCOUNT_METADATA, bytes, 0, problem);
    if (!r)
        account_restore_metadata(account, bytes);
    return r;
}

void account_restore_metadata(struct account *account, uint64_t bytes)
{
    account_shift(account, ACCOUNT_METADATA, TALLY_NONE, TALLY_USED, bytes);
}

void account_lower_metadata(struct account *account, uint64_t bytes)
{
    account_shift(account, ACCOUNT_METADATA, TALLY_USED, TALLY_NONE, bytes);
}
