/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools have at which address of the process.
 *
 * Two sets of ranges: what pools got of their providers, and what was opened of other processes' memory, which a
 * provider may well put where it has something already. Within a set ranges do not overlap in part; but they nest,
 * where a pool's provider has its memory from another pool, and then the innermost is meant.
 *
 * Whoever looks up does so often, and from many threads (umfFree() begins with it); whoever changes has just asked
 * a provider for memory. So the lock is one that readers hardly share: a reader takes one of several, a writer all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/umf/memory_pool.h>

#include "base/tree.h"

enum tracked_kind { TRACKED_OWN, TRACKED_OPENED };

struct tracked {
    RB_ENTRY(tracked) entry;
    struct tracked *outer; /* the innermost that this one lies in, of the same set; or NULL */
    enum tracked_kind kind;
    uint64_t start;
    size_t size;   /* as the provider was asked; 0 takes 1 byte here */
    uint64_t sequence; /* of two with the same range the later is the inner one */
    umf_memory_pool_handle_t pool;
    void *ipc_data; /* of OWN: the provider's handle, once there is one; malloc() */
};

/* Looking at it; what is found stays until tracker_unlock(). */
void tracker_lock_read(void);
void tracker_unlock_read(void);
/* Changing it. */
void tracker_lock(void);
void tracker_unlock(void);

/* The innermost that holds the address; NULL if there is none. */
struct tracked *tracker_find(enum tracked_kind kind, const void *ptr);
/* The one that starts just there, the innermost of several of this pool. */
struct tracked *tracker_find_base(enum tracked_kind kind, const void *ptr, umf_memory_pool_handle_t pool);
/* Does it overlap something of its set in part, or enclose it? */
bool tracker_collides(const struct tracked *tracked);
/*
 * With the lock for changing. What is OWN, and collides, was given back behind our back: it is taken out, and freed.
 * What is OPENED must not collide.
 */
void tracker_insert(struct tracked *tracked);
void tracker_remove(struct tracked *tracked);
/* Cuts a range; `rest`, which gets start, size and pool, becomes what is behind the first `size` bytes. */
void tracker_split(struct tracked *tracked, size_t size, struct tracked *rest);
/* `high`, which follows `low` and is taken out, becomes a part of it. */
void tracker_merge(struct tracked *low, struct tracked *high);
/* Takes out all that a pool has of its own, and chains it by `outer`. */
struct tracked *tracker_take_pool(umf_memory_pool_handle_t pool);

/* Around a fork. */
void tracker_fork_prepare(void);
void tracker_fork_parent(void);
void tracker_fork_child(void);
