/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: the range of addresses that means the same in every process (I9).
 *
 * No memory is behind it: it is an interval of numbers in which extents are taken and given back. The lowest place
 * that fits is taken, so that the arena stays compact. Extents are embedded in what they belong to (a reservation, a
 * buffer) and are the nodes of one balanced tree by address. The free ranges are the gaps before them. Each node knows
 * the largest gap below it, so that a gap is found on one way down the tree. Giving back needs no memory and cannot
 * fail.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "base/tree.h"

struct arena_extent {
    RB_ENTRY(arena_extent) link;
    uint64_t start;  /* 0: nothing is taken */
    uint64_t gap;    /* free bytes before it */
    uint64_t widest; /* the largest gap of it and what is below it in the tree */
};

#define ARENA_EXTENT_NULL ((struct arena_extent){.start = 0})

RB_HEAD(arena_tree, arena_extent);

struct arena {
    /* Is called when a range is free again, and may take it at once. May be NULL. */
    void (*given)(void *userdata, uint64_t start, uint64_t size);
    void *userdata;
    uint64_t base;
    uint64_t size;
    uint64_t page; /* everything is a multiple of it */
    uint64_t used;
    uint64_t count;
    struct arena_tree tree;
    struct arena_extent end; /* stands where the arena ends */
};

/* base > 0 and size > 0, multiples of the page (a power of two), and their sum is no overflow: the configuration
 * has been checked. */
void va_arena_init(struct arena *arena, uint64_t base, uint64_t size, uint64_t page);
/* Nothing may be taken any more. */
void va_arena_deinit(struct arena *arena);

/*
 * Takes `size` bytes (a multiple of the page) at a multiple of `alignment` (a power of two, or 0 = the page): at
 * `address` and nowhere else, or anywhere if that is 0. The extent must be ARENA_EXTENT_NULL and stay where it is.
 * SIZE_ZERO, SIZE_OVERFLOW, INVALID_ARGUMENT, ADDRESS_TAKEN, NO_ADDRESS_SPACE (also for an address outside).
 */
int arena_take(struct arena *arena, struct arena_extent *extent, uint64_t size, uint64_t alignment, uint64_t address,
               struct problem *problem);
/* The extent is ARENA_EXTENT_NULL afterwards, and may be so before. */
void arena_give(struct arena *arena, struct arena_extent *extent);

static inline bool arena_extent_is_taken(const struct arena_extent *extent)
{
    return extent->start;
}

/* The extent must be taken. O(log n). */
uint64_t arena_extent_size(struct arena_extent *extent);

/*
 * The smaller one of the free ranges on both sides of an extent. Taken there, the extent makes the largest free range
 * smaller by its size and this at most; at the end of a free range it is 0. O(log n).
 */
uint64_t arena_extent_waste(struct arena_extent *extent);
/* The same of a range before it is taken, all of which is free; 0 if it is not. O(log n). */
uint64_t arena_waste_at(const struct arena *arena, uint64_t start, uint64_t size);

/* The first free part of this range, which is within the arena; false if all of it is taken. O(log n). */
bool arena_next_free(const struct arena *arena, uint64_t start, uint64_t end, uint64_t *ret_start, uint64_t *ret_size);

/* The largest range that is free now. */
uint64_t arena_widest(const struct arena *arena);
