/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeping: what dead members had is taken back. Everything here is with `sweep`, and with the lock of the member that
 * is swept, which nobody gets while that one lives.
 *
 * The order is what makes it right. The member's entry is marked first, then every word is looked at: whoever gives it
 * a block meanwhile either sees the mark and takes the block back, or has written the word before it is looked at. The
 * entry is free only when no word bears the number any more. A sweeper that dies leaves the mark, and no lock.
 */
#pragma once

#include "heap/heap.h"

/* Of numbers, whose locks are held. */
struct sweep_dead {
    unsigned n;
    bool is[HEAP_MEMBERS + 1];
};

/* Has another member or reader with this number died? With its lock. */
bool sweep_is_dead(struct memclient_heap *heap, unsigned number);

/* True: no block bears any of these numbers, and their entries are free. */
bool sweep_numbers(struct memclient_heap *heap, const struct sweep_dead *dead);

/* The same for one. */
bool sweep_number(struct memclient_heap *heap, unsigned number);

/* All that have died, and what readers have freed. The number of them. */
unsigned sweep_all(struct memclient_heap *heap);
