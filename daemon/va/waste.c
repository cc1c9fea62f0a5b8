/* SPDX-License-Identifier: Apache-2.0 */
/* See waste.h. */
#include "va/waste.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proto/status.h"

struct waste {
    RB_ENTRY(waste) link;
    const struct arena_extent *home;
    struct charge charge;
};

static int waste_compare(const struct waste *a, const struct waste *b)
{
    return (uintptr_t)a->home < (uintptr_t)b->home ? -1 : (uintptr_t)a->home > (uintptr_t)b->home;
}

TREE_GENERATE(waste_tree, waste, link, waste_compare)

unsigned waste_note(uint64_t waste)
{
    return waste ? 64 - (unsigned)__builtin_clzll(waste) : 0;
}

uint64_t waste_within(uint64_t waste, unsigned note)
{
    uint64_t most = (UINT64_C(1) << note) - 1;

    return waste < most ? waste : most;
}

int waste_charge_with(struct charge *charge, struct account *account, uint64_t size, uint64_t waste,
                      struct problem *problem)
{
    int r = charge_init(charge, account, ACCOUNT_ADDRESSES, size + waste, problem);

    if (r != STATUS_LIMIT || !waste)
        return r;
    return refuse(problem, STATUS_NO_ADDRESS_SPACE,
                  "at such an address or alignment user %u would spoil %" PRIu64
                  " free bytes beside it for others; ask "
                  "for none, or for less alignment, or configure [user %u] share = 100%%",
                  (unsigned)account->uid, waste, (unsigned)account->uid);
}

int waste_charge_home(struct waste_tree *wastes, struct arena_extent *home, uint64_t bytes, struct account *account,
                      struct problem *problem)
{
    uint64_t wasted = arena_extent_waste(home);
    struct waste *waste;
    int r;

    if (wasted <= bytes)
        return 0;
    waste = calloc(1, sizeof(*waste));
    if (!waste)
        return refuse(problem, STATUS_NO_MEMORY, "the broker has no memory for another address; try again later");
    waste->home = home;
    r = waste_charge_with(&waste->charge, account, 0, wasted, problem);
    if (r)
        free(waste);
    else
        RB_INSERT(waste_tree, wastes, waste);
    return r;
}

void waste_restore_home(struct waste_tree *wastes, struct arena_extent *home, unsigned note, struct account *account)
{
    uint64_t wasted = waste_within(arena_extent_waste(home), note);
    struct waste *waste = wasted ? calloc(1, sizeof(*waste)) : NULL;

    if (!waste)
        return;
    waste->home = home;
    charge_restore(&waste->charge, account, ACCOUNT_ADDRESSES, wasted);
    RB_INSERT(waste_tree, wastes, waste);
}

static struct waste *waste_find(const struct waste_tree *wastes, const struct arena_extent *home)
{
    struct waste key = {.home = home};

    return RB_FIND(waste_tree, (struct waste_tree *)wastes, &key);
}

void waste_credit_home(struct waste_tree *wastes, const struct arena_extent *home)
{
    struct waste *waste = waste_find(wastes, home);

    if (!waste)
        return;
    RB_REMOVE(waste_tree, wastes, waste);
    charge_deinit(&waste->charge);
    free(waste);
}

const struct charge *waste_of_home(const struct waste_tree *wastes, const struct arena_extent *home)
{
    const struct waste *waste = waste_find(wastes, home);

    return waste ? &waste->charge : NULL;
}
