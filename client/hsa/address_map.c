/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address map is two trees, both ordered by start. The ranges of one tree do not overlap, so the only one that can
 * contain an address is the last that starts at or before it.
 */
#include "hsa/address_map.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/vmem.h"

RB_HEAD(address_tree, address_range);

static int address_compare(const struct address_range *a, const struct address_range *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

TREE_GENERATE(address_tree, address_range, entry, address_compare)

static struct address_tree ranges = RB_INITIALIZER(0);
static struct address_tree reservations = RB_INITIALIZER(0);
static pthread_rwlock_t address_lock = PTHREAD_RWLOCK_INITIALIZER;

void address_map_lock(void)
{
    pthread_rwlock_wrlock(&address_lock);
}

void address_map_lock_read(void)
{
    pthread_rwlock_rdlock(&address_lock);
}

void address_map_unlock(void)
{
    pthread_rwlock_unlock(&address_lock);
}

void address_map_fork_child(void)
{
    /* made anew after the unlock: it may count waiters that the child does not have */
    pthread_rwlock_unlock(&address_lock);
    pthread_rwlock_init(&address_lock, NULL);
}

void address_range_init(struct address_range *range, enum address_range_kind kind, const void *start, uint64_t size,
                        uint64_t bytes)
{
    *range = (struct address_range){.kind = kind, .start = (uintptr_t)start, .size = size, .bytes = bytes};
    list_init(&range->callbacks);
}

/* The last range that starts at or before the address. */
static struct address_range *tree_last_before(struct address_tree *tree, uint64_t address)
{
    struct address_range key = {.start = address};
    struct address_range *found = RB_NFIND(address_tree, tree, &key);

    if (found && found->start == address)
        return found;
    return found ? RB_PREV(address_tree, NULL, found) : RB_MAX(address_tree, tree);
}

struct address_range *address_map_find(const void *address)
{
    struct address_range *range = tree_last_before(&ranges, (uintptr_t)address);

    return range && !range->busy && (uintptr_t)address - range->start < range->size ? range : NULL;
}

struct address_range *address_map_find_base(const void *address)
{
    struct address_range *range = address_map_find(address);

    return range && range->start == (uintptr_t)address ? range : NULL;
}

static struct address_range *tree_first(struct address_tree *tree, uint64_t address)
{
    struct address_range *range = tree_last_before(tree, address);

    if (!range)
        return RB_MIN(address_tree, tree);
    return address - range->start < range->bytes ? range : RB_NEXT(address_tree, NULL, range);
}

static bool tree_is_free(struct address_tree *tree, uint64_t start, uint64_t bytes)
{
    const struct address_range *range = tree_first(tree, start);

    return !range || (range->start > start && range->start - start >= bytes);
}

struct address_range *address_map_first(uint64_t address)
{
    return tree_first(&ranges, address);
}

struct address_range *address_map_next(struct address_range *range)
{
    return RB_NEXT(address_tree, NULL, range);
}

bool address_map_is_free(uint64_t start, uint64_t bytes)
{
    return tree_is_free(&ranges, start, bytes);
}

bool address_map_is_only_locked(uint64_t start, uint64_t bytes)
{
    for (struct address_range *range = address_map_first(start); range && range->start < start + bytes;
         range = address_map_next(range))
        if (range->kind != RANGE_LOCKED)
            return false;
    return true;
}

/* Registered memory that is still known here was unmapped without being deregistered. */
static void tree_drop_registered(uint64_t start, uint64_t bytes)
{
    struct address_range *range, *next;

    for (range = address_map_first(start); range && range->start < start + bytes; range = next) {
        next = address_map_next(range);
        if (range->kind != RANGE_LOCKED)
            continue;
        RB_REMOVE(address_tree, &ranges, range);
        free(range_locked(range));
    }
}

void address_map_insert(struct address_range *range)
{
    struct address_range *there;

    if (range->kind != RANGE_LOCKED)
        tree_drop_registered(range->start, range->bytes);
    there = RB_INSERT(address_tree, range->kind == RANGE_RESERVATION ? &reservations : &ranges, range);
    assert(!there);
    (void)there;
}

void address_map_remove(struct address_range *range)
{
    RB_REMOVE(address_tree, range->kind == RANGE_RESERVATION ? &reservations : &ranges, range);
}

struct memclient_buffer *address_range_buffer(struct address_range *range, uint64_t *offset)
{
    *offset = 0;
    switch (range->kind) {
    case RANGE_ALLOCATION:
        return range_allocation(range)->buffer;
    case RANGE_ATTACHMENT:
        return range_attachment(range)->buffer;
    case RANGE_MAPPING:
        *offset = range_mapping(range)->offset;
        return range_mapping(range)->handle->buffer;
    case RANGE_LOCKED:
    case RANGE_RESERVATION:
        break;
    }
    return NULL;
}

struct address_range *reservation_find(const void *address)
{
    struct address_range *range = tree_last_before(&reservations, (uintptr_t)address);

    return range && !range->busy && (uintptr_t)address - range->start < range->bytes ? range : NULL;
}

struct address_range *reservation_around(uint64_t start, uint64_t bytes)
{
    struct address_range *range = reservation_find((const void *)(uintptr_t)start);

    return range && bytes <= range->bytes - (start - range->start) ? range : NULL;
}

bool reservation_is_none(uint64_t start, uint64_t bytes)
{
    return tree_is_free(&reservations, start, bytes);
}

struct address_range *address_map_pop(void)
{
    struct address_range *range = RB_MIN(address_tree, &ranges);

    if (!range)
        range = RB_MIN(address_tree, &reservations);
    if (range)
        address_map_remove(range);
    return range;
}
