/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: allocating, freeing, giving, taking. Each is one swap of the block's word; layout.h has the states. */
#pragma once

#include <string.h>

#include "heap/heap.h"

static inline unsigned block_slab(const struct memclient_block *block)
{
    return (unsigned)(block->position >> 48);
}

/* As much of it as fits. */
static inline uint32_t block_incarnation(const struct memclient_block *block)
{
    return (uint32_t)(block->position >> 32) & 0xffff;
}

static inline uint64_t block_index(const struct memclient_block *block)
{
    return block->position & UINT32_MAX;
}

/* Slabs, blocks and generations have the same numbers in all heaps, so what names a block has a part of its heap's id
 * as well: another heap finds a generation there that no block has. */
static inline uint64_t block_generation(const struct memclient_heap *heap, uint64_t generation)
{
    uint64_t id;

    memcpy(&id, heap->geometry.id, sizeof(id));
    return generation ^ id;
}

static inline struct memclient_block block_make(const struct memclient_heap *heap, const struct slab *slab,
                                                uint64_t index, uint64_t generation)
{
    return (struct memclient_block){
        .position = (uint64_t)slab->number << 48 | (uint64_t)(slab->incarnation & 0xffff) << 32 | index,
        .generation = block_generation(heap, generation),
    };
}

/* A block of that class: 1 and its address, or 0 if no hint leads to one. */
int block_alloc(struct memclient_heap *heap, unsigned class, void **address);

int block_free(struct memclient_heap *heap, uint64_t address);

/* What the block has that begins there, in bytes. */
int block_size(struct memclient_heap *heap, uint64_t address, uint64_t *bytes);

/* `token` may be NULL. */
int block_give(struct memclient_heap *heap, uint64_t address, uint64_t to, struct memclient_block *block,
               struct memclient_token *token);

/* What giving it will make of it. */
int block_prepare(struct memclient_heap *heap, uint64_t address, struct memclient_block *block);

/* 1: the slab is not mapped here, or it is a former one of that number. */
int block_take(struct memclient_heap *heap, const struct memclient_block *block, void **address);

/* Why this member may not free or give a block with that word. */
int block_refuse(const struct memclient_heap *heap, uint64_t word);
