/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts: sums, limits and the sentence when one is met. See the header for the rules.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "account/account.h"
#include "base/checked.h"
#include "proto/status.h"

static const struct {
    const char *key;
    const char *what;
    const char *unit; /* behind further numbers, of what is counted in bytes */
} slots[ACCOUNT_SLOTS] = {
#define X(NAME, key, what)                                                                                            \
    {#key, what,                                                                                                      \
     ACCOUNT_##NAME == ACCOUNT_BYTES || ACCOUNT_##NAME == ACCOUNT_ADDRESSES || ACCOUNT_##NAME == ACCOUNT_QUEUED_BYTES \
         ? " bytes"                                                                                                   \
         : ""},
    ACCOUNT_SLOTS_TABLE(X)
#undef X
};

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

void accounts_set_limits(struct accounts *accounts, const struct account_limits *limits)
{
    if (limits) {
        accounts->limits = *limits;
        return;
    }
    for (unsigned i = 0; i < ACCOUNT_SLOTS; i++) {
        accounts->limits.user[i] = ACCOUNT_NO_LIMIT;
        accounts->limits.session[i] = ACCOUNT_NO_LIMIT;
    }
}

static int account_new(struct accounts *accounts, uid_t uid, struct account **ret, struct problem *problem)
{
    struct account *account = calloc(1, sizeof(*account));

    if (!account)
        return refuse(problem, STATUS_NO_MEMORY, "the broker has no memory for another account; try again later");
    account->accounts = accounts;
    account->uid = uid;
    account->refs = 1;
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
    r = account_new(accounts, uid, &account, problem);
    if (r)
        return r;
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
    r = account_new(accounts, uid, &account, problem);
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

    if (!account->parent)
        return limits->user[slot];
    return slot == ACCOUNT_SESSIONS ? ACCOUNT_NO_LIMIT : limits->session[slot];
}

static uint64_t left_of(const struct account *account, enum account_slot slot)
{
    uint64_t limit = limit_of(account, slot), stays = tally_sum(&account->tallies[slot], TALLY_USED);

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
        if (account_used(account, slot) > limit_of(account, slot) / 2)
            return false;
    return true;
}

static int check_limit(const struct account *account, enum account_slot slot, uint64_t amount, uint64_t beyond,
                       struct problem *problem)
{
    const char *scope = account->parent ? "session" : "uid", *unit = slots[slot].unit;
    uint64_t limit = limit_of(account, slot), used = account_used(account, slot), sum;

    if (account->parent)
        beyond = 0;
    if (amount <= CHARGE_MAX && checked_add_u64(used, amount, &sum) && (sum <= limit || sum - limit <= beyond))
        return 0;
    if (limit == ACCOUNT_NO_LIMIT)
        return refuse(problem, STATUS_LIMIT, "%" PRIu64 " %s more are beyond what can be counted", amount,
                      slots[slot].what);
    if (account->parent)
        return refuse(problem, STATUS_LIMIT,
                      "this session has %" PRIu64 " %s and asks for %" PRIu64 "%s more, but may have %" PRIu64
                      "%s; give some back, or raise %s_%s in [limits]",
                      used, slots[slot].what, amount, unit, limit, unit, scope, slots[slot].key);
    if (slot == ACCOUNT_BUFFERS && account->accounts->limits.by_descriptors)
        return refuse(problem, STATUS_LIMIT,
                      "user %u has %" PRIu64 " buffers and asks for %" PRIu64 " more, but may have %" PRIu64
                      ", since each takes a descriptor of the broker; give some back, raise its LimitNOFILE "
                      "(ulimit -Hn), or put small ones into slabs, as UMF pools do",
                      (unsigned)account->uid, used, amount, limit);
    return refuse(problem, STATUS_LIMIT,
                  "user %u has %" PRIu64 " %s and asks for %" PRIu64 "%s more, but may have %" PRIu64
                  "%s; give some back, or raise %s_%s in [limits]",
                  (unsigned)account->uid, used, slots[slot].what, amount, unit, limit, unit, scope, slots[slot].key);
}

/* Limits do not bound what is restored or moved here, but then it was charged elsewhere before, and all charges of a
 * slot together are far from what 64 bits can count: they are of memory that exists. */
void charge_shift(struct charge *charge, enum tally_state to)
{
    enum account_slot slot = (enum account_slot)charge->slot, one = counts_one_of(slot);
    enum tally_state from = (enum tally_state)charge->state;

    assert(charge->account);
    for (struct account *a = charge->account; a; a = a->parent) {
        tally_shift(&a->tallies[slot], from, to, charge->amount);
        if (one != ACCOUNT_SLOTS)
            tally_shift(&a->tallies[one], from, to, 1);
    }
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
    enum account_slot one = counts_one_of(slot);
    int r = 0;

    assert(!charge->account);
    for (const struct account *a = account; a && !r && one != ACCOUNT_SLOTS; a = a->parent)
        r = check_limit(a, one, 1, 0, problem);
    for (const struct account *a = account; a && !r; a = a->parent)
        r = check_limit(a, slot, amount, beyond, problem);
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

void charge_lower(struct charge *charge, uint64_t by)
{
    assert(charge->account && charge->amount >= by);
    for (struct account *a = charge->account; a; a = a->parent)
        tally_shift(&a->tallies[charge->slot], (enum tally_state)charge->state, TALLY_NONE, by);
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
