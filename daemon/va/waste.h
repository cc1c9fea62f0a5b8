/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What wanted addresses and alignments waste of the arena, and who is charged for it.
 *
 * A page here and there cuts the arena into pieces that are of no use to others, and costs hardly any addresses. So
 * whoever takes an extent is charged for its *waste*, too: the smaller one of the free ranges on both sides of it
 * (arena_extent_waste()). By its size and that, at most, it makes the largest free range smaller; so what is not
 * charged is there in one piece, but for what was given back between others. An extent at the end of a free range, as
 * all are for which nothing is wanted, wastes nothing.
 *
 * A reservation's charge has its waste in it. A buffer's home has a charge of its own here, if it wastes more than the
 * buffer has memory: that takes room only where it is needed.
 *
 * A record has room for the magnitude of it only. After another broker an extent is charged for what it wastes as it
 * lies then, but for no more than that: what others have given back beside it meanwhile is not its user's doing.
 */
#pragma once

#include "account/account.h"
#include "base/problem.h"
#include "base/tree.h"
#include "va/arena.h"

struct waste;
RB_HEAD(waste_tree, waste);

/* The magnitude of a waste, 6 bits, for a record; of the present one what is not more than noted. */
unsigned waste_note(uint64_t waste);
uint64_t waste_within(uint64_t waste, unsigned note);

/* Charges the size of a range and what it wastes. LIMIT, or NO_ADDRESS_SPACE if it wastes any: another place may do. */
int waste_charge_with(struct charge *charge, struct account *account, uint64_t size, uint64_t waste,
                      struct problem *problem);

/* Charges what a home wastes, if that is more than its memory. NO_ADDRESS_SPACE, NO_MEMORY. */
int waste_charge_home(struct waste_tree *wastes, struct arena_extent *home, uint64_t bytes, struct account *account,
                      struct problem *problem);
/* The same after another broker, which noted that: over the limit if need be, and not at all without memory. */
void waste_restore_home(struct waste_tree *wastes, struct arena_extent *home, unsigned note, struct account *account);
/* Before it is given back; it need not be charged. */
void waste_credit_home(struct waste_tree *wastes, const struct arena_extent *home);
/* What is charged for it, or NULL. */
const struct charge *waste_of_home(const struct waste_tree *wastes, const struct arena_extent *home);
