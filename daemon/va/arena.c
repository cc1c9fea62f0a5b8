/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena's tree. A node is a taken extent with the free gap before it, and an extent without bytes stands at
 * the end, so that every free byte is in somebody's gap. Taking splits a gap, giving joins two.
 *
 * A gap that is `alignment - page` larger than wanted fits wherever it begins, and the lowest such gap is found on
 * one way down. Where there is none, smaller gaps may still happen to be aligned. They are tried in order, but only
 * TRIED_GAPS of them: an arena that full is no reason to keep everybody waiting.
 */
#include "va/arena.h"

#include <assert.h>
#include <inttypes.h>

#include "base/align.h"
#include "base/checked.h"
#include "proto/status.h"

#define TRIED_GAPS 4096

static int compare_starts(const struct arena_extent *a, const struct arena_extent *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

static uint64_t widest_of(const struct arena_extent *extent)
{
    return extent ? extent->widest : 0;
}

static void arena_augment(struct arena_extent *extent)
{
    uint64_t left = widest_of(RB_LEFT(extent, link)), right = widest_of(RB_RIGHT(extent, link));

    extent->widest = extent->gap;
    if (extent->widest < left)
        extent->widest = left;
    if (extent->widest < right)
        extent->widest = right;
}

#undef RB_AUGMENT
#define RB_AUGMENT(extent) arena_augment(extent)
TREE_GENERATE(arena_tree, arena_extent, link, compare_starts)

void va_arena_init(struct arena *arena, uint64_t base, uint64_t size, uint64_t page)
{
    assert(base && size && is_power_of_two(page));
    assert(is_aligned(base, page) && is_aligned(size, page) && size <= UINT64_MAX - base);
    *arena = (struct arena){.base = base, .size = size, .page = page};
    RB_INIT(&arena->tree);
    arena->end = (struct arena_extent){.start = base + size, .gap = size, .widest = size};
    RB_INSERT(arena_tree, &arena->tree, &arena->end);
}

void va_arena_deinit(struct arena *arena)
{
    assert(!arena->count && !arena->used);
    *arena = (struct arena){.base = 0};
}

uint64_t arena_widest(const struct arena *arena)
{
    return RB_ROOT(&arena->tree)->widest;
}

/* Where `size` bytes would lie in the gap before this one; false if they do not fit. */
static bool gap_fits(const struct arena_extent *extent, uint64_t size, uint64_t alignment, uint64_t *ret)
{
    uint64_t start = extent->start - extent->gap, aligned;

    if (!checked_align_up_u64(start, alignment, &aligned) || aligned - start > extent->gap ||
        size > extent->gap - (aligned - start))
        return false;
    *ret = aligned;
    return true;
}

/* The lowest one with a gap of at least `size` before it, of this one and those below it; NULL if there is none. */
static struct arena_extent *lowest_gap(struct arena_extent *extent, uint64_t size)
{
    if (widest_of(extent) < size)
        return NULL;
    for (;;) {
        if (widest_of(RB_LEFT(extent, link)) >= size)
            extent = RB_LEFT(extent, link);
        else if (extent->gap >= size)
            return extent;
        else
            extent = RB_RIGHT(extent, link);
    }
}

/* The next one behind `extent` with such a gap. */
static struct arena_extent *next_gap(struct arena_extent *extent, uint64_t size)
{
    struct arena_extent *found = lowest_gap(RB_RIGHT(extent, link), size);

    while (!found) {
        struct arena_extent *child = extent;

        extent = RB_PARENT(extent, link);
        if (!extent)
            return NULL;
        /* the search that comes from its right has seen it */
        if (RB_LEFT(extent, link) == child)
            found = extent->gap >= size ? extent : lowest_gap(RB_RIGHT(extent, link), size);
    }
    return found;
}

static int find_anywhere(const struct arena *arena, uint64_t size, uint64_t alignment, uint64_t *ret_start,
                         struct arena_extent **ret_next, struct problem *problem)
{
    struct arena_extent *extent = NULL;
    uint64_t enough;
    unsigned tried = 0;

    if (checked_add_u64(size, alignment - arena->page, &enough))
        extent = lowest_gap(RB_ROOT(&arena->tree), enough);
    if (!extent) {
        extent = lowest_gap(RB_ROOT(&arena->tree), size);
        while (extent && !gap_fits(extent, size, alignment, ret_start) && tried++ < TRIED_GAPS)
            extent = next_gap(extent, size);
    }
    if (!extent || !gap_fits(extent, size, alignment, ret_start))
        return refuse(problem, STATUS_NO_ADDRESS_SPACE,
                      "no free range of %" PRIu64 " bytes aligned to %" PRIu64 " is left in the arena of %" PRIu64
                      " bytes; the largest free one has %" PRIu64,
                      size, alignment, arena->size, arena_widest(arena));
    *ret_next = extent;
    return 0;
}

/* The first extent that starts behind `address`: it is in its gap, or in the extent before it. */
static struct arena_extent *first_behind(const struct arena *arena, uint64_t address)
{
    struct arena_extent *found = NULL;

    for (struct arena_extent *extent = RB_ROOT(&arena->tree); extent;) {
        if (extent->start > address) {
            found = extent;
            extent = RB_LEFT(extent, link);
        } else {
            extent = RB_RIGHT(extent, link);
        }
    }
    return found;
}

static int find_at(const struct arena *arena, uint64_t size, uint64_t alignment, uint64_t address,
                   struct arena_extent **ret_next, struct problem *problem)
{
    struct arena_extent *next;

    if (!is_aligned(address, alignment))
        return refuse(problem, STATUS_INVALID_ARGUMENT,
                      "the wanted address 0x%" PRIx64 " is no multiple of the alignment %" PRIu64, address, alignment);
    if (address < arena->base || address - arena->base > arena->size || size > arena->size - (address - arena->base))
        return refuse(problem, STATUS_NO_ADDRESS_SPACE,
                      "%" PRIu64 " bytes at 0x%" PRIx64 " are not within the arena, 0x%" PRIx64 " to 0x%" PRIx64, size,
                      address, arena->base, arena->base + arena->size);
    /* size > 0, so the address is below the end and an extent is behind it */
    next = first_behind(arena, address);
    if (address < next->start - next->gap || size > next->start - address)
        return refuse(problem, STATUS_ADDRESS_TAKEN,
                      "part of the %" PRIu64 " bytes at 0x%" PRIx64 " is taken; ask for another address, or for none",
                      size, address);
    *ret_next = next;
    return 0;
}

int arena_take(struct arena *arena, struct arena_extent *extent, uint64_t size, uint64_t alignment, uint64_t address,
               struct problem *problem)
{
    struct arena_extent *next = NULL;
    uint64_t start = address;
    int r;

    assert(!arena_extent_is_taken(extent));
    if (!size)
        return refuse(problem, STATUS_SIZE_ZERO, "a range of 0 bytes; ask for at least %" PRIu64, arena->page);
    if (size & (arena->page - 1))
        return refuse(problem, STATUS_INVALID_ARGUMENT,
                      "a range of %" PRIu64 " bytes is no multiple of the page, %" PRIu64, size, arena->page);
    if (alignment && !is_power_of_two(alignment))
        return refuse(problem, STATUS_INVALID_ARGUMENT, "the alignment %" PRIu64 " is no power of two", alignment);
    if (alignment < arena->page)
        alignment = arena->page;
    if (address && size > UINT64_MAX - address)
        return refuse(problem, STATUS_SIZE_OVERFLOW, "%" PRIu64 " bytes at 0x%" PRIx64 " end beyond all addresses",
                      size, address);

    if (address)
        r = find_at(arena, size, alignment, address, &next, problem);
    else
        r = find_anywhere(arena, size, alignment, &start, &next, problem);
    if (r)
        return r;

    extent->start = start;
    extent->gap = start - (next->start - next->gap);
    extent->widest = extent->gap;
    next->gap = next->start - start - size;
    arena_tree_insert_before(&arena->tree, extent, next);
    /* of two neighbours one is below the other */
    arena_tree_refresh(RB_RIGHT(extent, link) ? next : extent);
    arena->used += size;
    arena->count++;
    return 0;
}

void arena_give(struct arena *arena, struct arena_extent *extent)
{
    struct arena_extent *next;
    uint64_t start = extent->start, size;

    if (!arena_extent_is_taken(extent))
        return;
    assert(extent != &arena->end);
    size = arena_extent_size(extent);
    next = RB_NEXT(arena_tree, &arena->tree, extent);

    next->gap += extent->gap + size;
    arena_tree_remove_summed(&arena->tree, extent);
    arena_tree_refresh(next);
    arena->used -= size;
    arena->count--;
    *extent = (struct arena_extent)ARENA_EXTENT_NULL;
    if (arena->given)
        arena->given(arena->userdata, start, size);
}

uint64_t arena_extent_size(struct arena_extent *extent)
{
    struct arena_extent *next;

    assert(arena_extent_is_taken(extent));
    next = RB_NEXT(arena_tree, NULL, extent);
    /* not of the end */
    assert(next);
    return next->start - next->gap - extent->start;
}

uint64_t arena_extent_waste(struct arena_extent *extent)
{
    const struct arena_extent *next;

    assert(arena_extent_is_taken(extent));
    if (!extent->gap)
        return 0;
    next = RB_NEXT(arena_tree, NULL, extent);
    assert(next);
    return extent->gap < next->gap ? extent->gap : next->gap;
}

uint64_t arena_waste_at(const struct arena *arena, uint64_t start, uint64_t size)
{
    const struct arena_extent *next = first_behind(arena, start);
    uint64_t gap = next->start - next->gap, behind;

    if (start < gap || size > next->start - start)
        return 0;
    behind = next->start - start - size;
    return start - gap < behind ? start - gap : behind;
}

bool arena_next_free(const struct arena *arena, uint64_t start, uint64_t end, uint64_t *ret_start, uint64_t *ret_size)
{
    assert(start >= arena->base && start <= end && end - arena->base <= arena->size);
    while (start < end) {
        struct arena_extent *next = first_behind(arena, start);
        uint64_t gap = next->start - next->gap;
        uint64_t stop = next->start < end ? next->start : end;

        if (start < gap)
            start = gap;
        if (start < stop) {
            *ret_start = start;
            *ret_size = stop - start;
            return true;
        }
        start = next->start;
    }
    return false;
}
