/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools opened of other processes' memory, by address; owned.h has what is their own.
 *
 * A provider may well put it where it has something already, so ranges may overlap. They nest where several pools
 * opened the same; then the innermost is meant.
 *
 * Whoever looks up does so often, and from many threads; whoever changes has just asked a provider. So the lock is one
 * that readers hardly share: a reader takes one of several, a writer all.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <memclient/umf/umf/memory_pool.h>

#include "base/tree.h"

struct tracked {
    RB_ENTRY(tracked) entry;
    uint64_t start;
    uint64_t size;     /* as its handle says; 0 takes 1 byte here */
    uint64_t sequence; /* of two with the same range the later is the inner one */
    uint64_t reach;    /* the last byte of what is in this subtree */
    umf_memory_pool_handle_t pool;
};

/* Looking at it; what is found stays until tracker_unlock_read(). Not to be taken twice. */
void tracker_lock_read(void);
void tracker_unlock_read(void);
/* Changing it. */
void tracker_lock(void);
void tracker_unlock(void);

/* The innermost that holds the address; NULL if there is none. */
struct tracked *tracker_find(const void *ptr);
/* Of those with the same range, the next one outwards. */
struct tracked *tracker_next_twin(struct tracked *tracked);

void tracker_insert(struct tracked *tracked);
void tracker_remove(struct tracked *tracked);

/* Around a fork. */
void tracker_fork_prepare(void);
void tracker_fork_parent(void);
void tracker_fork_child(void);
