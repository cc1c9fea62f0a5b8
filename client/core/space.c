/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of mappings, ordered by their start. They may overlap: each knows how far its subtree reaches, so that
 * subtrees that end before an address are passed by.
 */
#include "core/space.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/textfile.h"

/* Where it cannot be read. */
#define USUAL_MAP_COUNT 65530
/* This part of all mappings. */
#define FOR_OTHERS 16

static int compare_mappings(const struct mapping *a, const struct mapping *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

/* libbsd's static form wants a macro of the BSDs that glibc does not have */
#define TREE static __attribute__((__unused__))

/* Sums up from there to the root. */
static void mapping_augment(struct mapping *mapping)
{
    for (; mapping; mapping = RB_PARENT(mapping, entry)) {
        const struct mapping *left = RB_LEFT(mapping, entry), *right = RB_RIGHT(mapping, entry);

        mapping->reach = mapping_end(mapping);
        if (left && left->reach > mapping->reach)
            mapping->reach = left->reach;
        if (right && right->reach > mapping->reach)
            mapping->reach = right->reach;
    }
}

#undef RB_AUGMENT
#define RB_AUGMENT(mapping) mapping_augment(mapping)
RB_GENERATE_INTERNAL(mapping_tree, mapping, entry, compare_mappings, TREE)

struct space process_space = SPACE_NULL;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

struct mapping *space_next(struct mapping *mapping)
{
    return RB_NEXT(mapping_tree, NULL, mapping);
}

struct mapping *space_first(struct space *space, uint64_t address)
{
    struct mapping *at = RB_ROOT(&space->mappings);

    while (at && at->reach > address) {
        struct mapping *left = RB_LEFT(at, entry);

        if (left && left->reach > address)
            at = left;
        else if (mapping_end(at) > address)
            return at;
        else
            at = RB_RIGHT(at, entry);
    }
    return NULL;
}

/* In this part of the tree, or `best`. */
static struct mapping *mapping_furthest(struct mapping *top, uint64_t address, struct mapping *best)
{
    if (!top || top->reach <= address || (best && top->reach <= mapping_end(best)))
        return best;
    best = mapping_furthest(RB_LEFT(top, entry), address, best);
    if (top->start > address)
        return best;
    if (mapping_end(top) > address && (!best || mapping_end(top) > mapping_end(best)))
        best = top;
    return mapping_furthest(RB_RIGHT(top, entry), address, best);
}

struct mapping *space_find(struct space *space, uint64_t address)
{
    return mapping_furthest(RB_ROOT(&space->mappings), address, NULL);
}

bool space_is_free(struct space *space, uint64_t start, uint64_t size)
{
    struct mapping *found = space_first(space, start);

    return !found || !size || (found->start > start && found->start - start >= size);
}

/* Appends those of this part of the tree; the end of the chain is returned. */
static struct mapping **mappings_collect(struct mapping *top, uint64_t start, uint64_t end, struct mapping **chain)
{
    if (!top || top->reach <= start)
        return chain;
    chain = mappings_collect(RB_LEFT(top, entry), start, end, chain);
    if (top->start >= end)
        return chain;
    if (mapping_end(top) > start) {
        *chain = top;
        chain = &top->found;
    }
    return mappings_collect(RB_RIGHT(top, entry), start, end, chain);
}

struct mapping *space_overlapping(struct space *space, uint64_t start, uint64_t size)
{
    struct mapping *first = NULL;

    *mappings_collect(RB_ROOT(&space->mappings), start, start + size, &first) = NULL;
    return first;
}

void space_insert(struct space *space, struct mapping *mapping)
{
    struct mapping *there;

    mapping->serial = ++space->serials;
    there = RB_INSERT(mapping_tree, &space->mappings, mapping);
    assert(!there);
    (void)there;
    mapping_augment(mapping);
    space->n_mappings++;
}

void space_remove(struct space *space, struct mapping *mapping)
{
    RB_REMOVE(mapping_tree, &space->mappings, mapping);
    space->n_mappings--;
}

uint64_t space_mappings_max(void)
{
    static uint64_t most;
    char text[24];

    if (most)
        return most;
    if (textfile_line(text, sizeof(text), "/proc/sys/vm/max_map_count"))
        most = strtoull(text, NULL, 10);
    if (!most)
        most = USUAL_MAP_COUNT;
    return most -= most / FOR_OTHERS;
}

void space_split(struct space *space, struct mapping *mapping, uint64_t at, struct mapping *rest)
{
    uint64_t head = at - mapping->start;

    assert(at > mapping->start && head < mapping->size);
    *rest = *mapping;
    rest->start = at;
    rest->size = mapping->size - head;
    rest->offset = mapping->offset + head;
    mapping->size = head;
    mapping_augment(mapping);
    space_insert(space, rest);
}

void space_lock(void)
{
    pthread_rwlock_wrlock(&lock);
}

void space_lock_read(void)
{
    pthread_rwlock_rdlock(&lock);
}

void space_unlock(void)
{
    pthread_rwlock_unlock(&lock);
}

void space_fork_child(void)
{
    /* given up, and made anew: it may count waiters that the child does not have */
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_init(&lock, NULL);
}
