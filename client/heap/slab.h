/* SPDX-License-Identifier: Apache-2.0 */
/* The slabs that are mapped here: finding, mapping and unmapping them. Nothing here looks into the directory. */
#pragma once

#include "heap/heap.h"

/* What a buffer should be. */
struct slab_spec {
    unsigned number;
    uint32_t incarnation;
    unsigned class; /* HEAP_CLASSES: what its head says */
    bool fresh;     /* its head is not written yet */
};

/*
 * Maps a buffer as a slab. It stays the caller's on failure.
 *     -EBADMSG   it is none
 */
int slab_map(struct memclient_heap *heap, struct memclient_buffer *buf, const struct slab_spec *spec,
             struct slab **slab);

/* Enters what was mapped, so that all threads use it. On failure it is the caller's. */
int slab_enter(struct memclient_heap *heap, struct slab *slab);

/* Unmaps what was not entered, or what nobody uses any more because the heap is closed. */
void slab_free(struct memclient_heap *heap, struct slab *slab);

/* With `sweep`: takes a slab out and unmaps it, once no thread uses it. If this process has a block of it, it stays. */
void slab_drop(struct memclient_heap *heap, struct slab *slab);

/* With a cache locked: the slab of an address, or NULL. */
struct slab *slab_find(struct memclient_heap *heap, struct heap_cache *cache, uint64_t address);
