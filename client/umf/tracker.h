/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools have at which address of the process.
 *
 * Two sets of ranges: what pools got of their providers, and what was opened of other processes' memory, which a
 * provider may well put where it has something already. Ranges of a set may overlap. They nest where a pool's
 * provider has its memory from another pool, and where several pools opened the same; then the innermost is meant.
 *
 * Whoever looks up does so often, and from many threads (umfFree() begins with it); whoever changes has just asked
 * a provider for memory. So the lock is one that readers hardly share: a reader takes one of several, a writer all.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <memclient/umf/umf/memory_pool.h>

#include "base/list.h"
#include "base/tree.h"

enum tracked_kind { TRACKED_OWN, TRACKED_OPENED };

struct tracked {
    RB_ENTRY(tracked) entry;
    enum tracked_kind kind;
    uint64_t start;
    uint64_t size;     /* as the provider was asked; 0 takes 1 byte here */
    uint64_t sequence; /* of two with the same range the later is the inner one */
    uint64_t reach;    /* the last byte of what is in this subtree */
    umf_memory_pool_handle_t pool;
    struct list in_pool; /* of OWN: in what the pool has */
    void *ipc_data;      /* of OWN: the provider's handle, once there is one; malloc() */
};

/* Looking at it; what is found stays until tracker_unlock_read(). Not to be taken twice. */
void tracker_lock_read(void);
void tracker_unlock_read(void);
/* Changing it. */
void tracker_lock(void);
void tracker_unlock(void);

/* The innermost that holds the address; NULL if there is none. */
struct tracked *tracker_find(enum tracked_kind kind, const void *ptr);
/* The one of this pool that starts just there, the innermost of several. */
struct tracked *tracker_find_base(enum tracked_kind kind, const void *ptr, umf_memory_pool_handle_t pool);

/* Of those with the same range, the next one outwards. */
struct tracked *tracker_next_twin(struct tracked *tracked);

void tracker_insert(struct tracked *tracked);
/* tracker_insert() of what is OWN and new. What it overlaps, other than lying in it, was given back behind our back:
 * that is taken out, and freed. */
void tracker_insert_new(struct tracked *tracked);
void tracker_remove(struct tracked *tracked);
/* Cuts a range; `rest` becomes what is behind the first `size` bytes. */
void tracker_split(struct tracked *tracked, uint64_t size, struct tracked *rest);
/* `high`, which follows `low` and is taken out, becomes a part of it. */
void tracker_merge(struct tracked *low, struct tracked *high);

/* Around a fork. */
void tracker_fork_prepare(void);
void tracker_fork_parent(void);
void tracker_fork_child(void);
