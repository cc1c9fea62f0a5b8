/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of slabs. An entry changes hands by a swap of its word: FREE, BUSY with the member that makes or gives
 * back the slab, LIVE. What a member was busy with when it died is finished by who sweeps it.
 *
 * Slabs of a heap with a name are kept by names of their own. Else they live as long as a member holds them, which each
 * does that has had a block of them; tokens that keep them would do so when all members have died, too.
 */
#pragma once

#include "heap/heap.h"

/*
 * With `sweep`: maps slabs that others have added, and unmaps those that are gone, that number first. 0: all that there
 * are are mapped.
 *     -EAGAIN   too many entries lead to no slab, so not all were looked at
 */
int directory_refresh(struct memclient_heap *heap, unsigned first);
/* The same, wherever it stopped the last time. */
int directory_refresh_all(struct memclient_heap *heap);

/* Adds a slab of that class. */
int directory_add(struct memclient_heap *heap, unsigned class);

/* Gives back slabs of which every block is free, but `keep` of each class. */
void directory_trim(struct memclient_heap *heap, unsigned keep);

/* With the locks of those members: ends what they were busy with. False: not all of it. */
bool directory_sweep(struct memclient_heap *heap, const bool *members);

/* With `sweep`: unbinds the names of all slabs that are below that one; those that are added from now on get none. */
int directory_destroy(struct memclient_heap *heap, const char *name);
