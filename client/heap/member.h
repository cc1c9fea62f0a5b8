/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming a member, and no longer being one. */
#pragma once

#include "heap/heap.h"

/* Gets a number, as one who can write. */
int member_join(struct memclient_heap *heap);

/* In a child that has the heap from its parent: joins, if it is no member yet. */
int member_join_again(struct memclient_heap *heap);

/* Frees what it had, and its number. */
void member_leave(struct memclient_heap *heap);

/* Sweeps those that have died, and trims: `keep` free slabs of each class stay. failed_calls_max: FAILED_CALLS_MAX or
 * its like. */
void member_sweep_others(struct memclient_heap *heap, unsigned keep, unsigned failed_calls_max);
