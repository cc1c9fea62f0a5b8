/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses that may overlap, embedded in the objects that have them: a tree in order of their starts. Each
 * node knows how far the ranges below it reach, so that a search passes by those that end before an address. The caller
 * needs a lock for each call. range_index.h is for ranges that do not overlap, and is searched without a lock.
 *
 * Ranges of one start are in order of their ranks, which the caller gives them, and then of insertion.
 */
#pragma once

#include <stdint.h>

#include "base/tree.h"

struct interval {
    RB_ENTRY(interval) link;
    uint64_t start, last; /* the first byte and the last */
    uint64_t max_last;    /* of all that is at and below it in the tree */
    const void *owner;    /* which lookups may ask for */
    uint64_t rank;
    uint64_t serial;        /* of the insertion */
    struct interval *found; /* the next one that interval_overlapping() found */
};

RB_HEAD(interval_nodes, interval);

/* All zeros: nothing is in it. */
struct interval_tree {
    struct interval_nodes nodes;
    uint64_t serials;
};

static inline int interval_compare(const struct interval *a, const struct interval *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static inline void interval_augment(struct interval *interval)
{
    const struct interval *left = RB_LEFT(interval, link), *right = RB_RIGHT(interval, link);

    interval->max_last = interval->last;
    if (left && left->max_last > interval->max_last)
        interval->max_last = left->max_last;
    if (right && right->max_last > interval->max_last)
        interval->max_last = right->max_last;
}

#undef RB_AUGMENT
#define RB_AUGMENT(interval) interval_augment(interval)
TREE_GENERATE(interval_nodes, interval, link, interval_compare)
#undef RB_AUGMENT
#define RB_AUGMENT(element) \
    do {                    \
    } while (0) /* as libbsd has it, for other trees */

TREE_UNUSED void interval_insert(struct interval_tree *tree, struct interval *interval)
{
    interval->serial = ++tree->serials;
    (void)RB_INSERT(interval_nodes, &tree->nodes, interval);
    interval_nodes_refresh(interval);
}

TREE_UNUSED void interval_remove(struct interval_tree *tree, struct interval *interval)
{
    interval_nodes_remove_summed(&tree->nodes, interval);
}

/* The first in order that starts at the address or after it; NULL: none. */
TREE_UNUSED struct interval *interval_from(struct interval_tree *tree, uint64_t address)
{
    struct interval first = {.start = address};

    return RB_NFIND(interval_nodes, &tree->nodes, &first);
}

/* The first in order that starts just there; NULL: none. */
static inline struct interval *interval_at(struct interval_tree *tree, uint64_t start)
{
    struct interval *first = interval_from(tree, start);

    return first && first->start == start ? first : NULL;
}

/* The neighbours in order; NULL: none. */
static inline struct interval *interval_next(struct interval *interval)
{
    return RB_NEXT(interval_nodes, NULL, interval);
}

static inline struct interval *interval_previous(struct interval *interval)
{
    return RB_PREV(interval_nodes, NULL, interval);
}

static inline bool interval_is_of(const struct interval *interval, const void *owner)
{
    return !owner || interval->owner == owner;
}

/* The same in a part of the tree. Recursion is as deep as the tree, here and below. */
TREE_UNUSED struct interval *interval_innermost_below(struct interval *top, uint64_t address, const void *owner)
{
    struct interval *found;

    for (; top && top->max_last >= address; top = RB_LEFT(top, link)) {
        if (top->start > address)
            continue;
        found = interval_innermost_below(RB_RIGHT(top, link), address, owner);
        if (found)
            return found;
        if (top->last >= address && interval_is_of(top, owner))
            return top;
    }
    return NULL;
}

/* The last in order that holds the address, of this owner, or of any if that is NULL; NULL: none. */
static inline struct interval *interval_innermost(const struct interval_tree *tree, uint64_t address, const void *owner)
{
    return interval_innermost_below(RB_ROOT(&tree->nodes), address, owner);
}

/* The same in a part of the tree, or `best`. */
TREE_UNUSED struct interval *interval_furthest_below(struct interval *top, uint64_t address, const void *owner,
                                                     struct interval *best)
{
    if (!top || top->max_last < address || (best && top->max_last <= best->last))
        return best;
    best = interval_furthest_below(RB_LEFT(top, link), address, owner, best);
    if (top->start > address)
        return best;
    if (top->last >= address && (!best || top->last > best->last) && interval_is_of(top, owner))
        best = top;
    return interval_furthest_below(RB_RIGHT(top, link), address, owner, best);
}

/* The one that holds the address and reaches furthest, of this owner, or of any if that is NULL; NULL: none. */
static inline struct interval *interval_furthest(const struct interval_tree *tree, uint64_t address, const void *owner)
{
    return interval_furthest_below(RB_ROOT(&tree->nodes), address, owner, NULL);
}

/* Appends those in a part of the tree, and returns the end of the chain. */
TREE_UNUSED struct interval **interval_collect(struct interval *top, uint64_t start, uint64_t last,
                                               struct interval **chain)
{
    if (!top || top->max_last < start)
        return chain;
    chain = interval_collect(RB_LEFT(top, link), start, last, chain);
    if (top->start > last)
        return chain;
    if (top->last >= start) {
        *chain = top;
        chain = &top->found;
    }
    return interval_collect(RB_RIGHT(top, link), start, last, chain);
}

/* All that hold one of these bytes, in order, chained by `found`. */
TREE_UNUSED struct interval *interval_overlapping(const struct interval_tree *tree, uint64_t start, uint64_t last)
{
    struct interval *first = NULL;

    *interval_collect(RB_ROOT(&tree->nodes), start, last, &first) = NULL;
    return first;
}
