/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches of hints: blocks that are probably free, so that threads neither search for one nor meet in one cache line.
 *
 * There are twice as many caches as processors. A thread uses the one that its address leads to, or the next if another
 * thread is in it; so it needs no memory of its own, nothing is done when it ends, and it waits for nobody. Since hints
 * are no more than that, whatever is forgotten with a cache is found again in the words.
 *
 * A thread that has locked a cache may use every slab that it finds: a slab is unmapped only after each cache was
 * locked once since it was taken out.
 */
#pragma once

#include "heap/heap.h"

int cache_init(struct memclient_heap *heap);
void cache_deinit(struct memclient_heap *heap);

struct heap_cache *cache_lock(struct memclient_heap *heap);

static inline void cache_unlock(struct heap_cache *cache)
{
    __atomic_store_n(&cache->locked, false, __ATOMIC_RELEASE);
}

/*
 * With the cache locked: takes some hints of that class from the slabs' bitmaps. `left` counts down what was looked at.
 * False: there are none, or that was enough.
 */
bool cache_refill(struct memclient_heap *heap, struct heap_cache *cache, unsigned class, uint64_t *left);

/* With the cache locked: a block that was freed. */
void cache_put(struct heap_cache *cache, struct slab *slab, uint64_t index);

/* Makes the bitmaps of a class from the words. False: no block is free. */
bool cache_rebuild(struct memclient_heap *heap, unsigned class);

/* Takes a slab out of all caches, each of which is locked for that. */
void cache_forget_slab(struct memclient_heap *heap, const struct slab *slab);

/* In the child of a fork: empties and unlocks all. */
void cache_fork_child(struct memclient_heap *heap);

/* Blocks of these 64 are free: sets hints. */
static inline void cache_note_free(struct slab *slab, uint64_t word, uint64_t mask)
{
    (void)__atomic_and_fetch(&slab->hints[word], ~mask, __ATOMIC_RELAXED);
}
