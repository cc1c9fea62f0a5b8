/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two trees. Both are ordered by their start; since what is in one does not overlap, the one that could hold an
 * address is the last that starts at or before it.
 */
#include "hsa/place.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/vmem.h"

RB_HEAD(place_tree, place);

static int place_compare(const struct place *a, const struct place *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

TREE_GENERATE(place_tree, place, entry, place_compare)

static struct place_tree places = RB_INITIALIZER(0);
static struct place_tree reservations = RB_INITIALIZER(0);
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

void places_lock(void)
{
    pthread_rwlock_wrlock(&lock);
}

void places_lock_read(void)
{
    pthread_rwlock_rdlock(&lock);
}

void places_unlock(void)
{
    pthread_rwlock_unlock(&lock);
}

void places_fork_child(void)
{
    /* given up, and made anew: it may count waiters that the child does not have */
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_init(&lock, NULL);
}

void place_init(struct place *place, enum place_kind kind, const void *start, uint64_t size, uint64_t bytes)
{
    *place = (struct place){.kind = kind, .busy = true, .start = (uintptr_t)start, .size = size, .bytes = bytes};
    list_init(&place->callbacks);
}

/* The last that starts at or before the address. */
static struct place *tree_last_before(struct place_tree *tree, uint64_t address)
{
    struct place key = {.start = address};
    struct place *found = RB_NFIND(place_tree, tree, &key);

    if (found && found->start == address)
        return found;
    return found ? RB_PREV(place_tree, NULL, found) : RB_MAX(place_tree, tree);
}

struct place *place_find(const void *address)
{
    struct place *place = tree_last_before(&places, (uintptr_t)address);

    return place && !place->busy && (uintptr_t)address - place->start < place->size ? place : NULL;
}

struct place *place_find_base(const void *address)
{
    struct place *place = place_find(address);

    return place && place->start == (uintptr_t)address ? place : NULL;
}

static struct place *tree_first(struct place_tree *tree, uint64_t address)
{
    struct place *place = tree_last_before(tree, address);

    if (!place)
        return RB_MIN(place_tree, tree);
    return address - place->start < place->bytes ? place : RB_NEXT(place_tree, NULL, place);
}

static bool tree_is_free(struct place_tree *tree, uint64_t start, uint64_t bytes)
{
    const struct place *place = tree_first(tree, start);

    return !place || (place->start > start && place->start - start >= bytes);
}

struct place *place_first(uint64_t address)
{
    return tree_first(&places, address);
}

struct place *place_next(struct place *place)
{
    return RB_NEXT(place_tree, NULL, place);
}

bool place_is_free(uint64_t start, uint64_t bytes)
{
    return tree_is_free(&places, start, bytes);
}

bool place_is_unclaimed(uint64_t start, uint64_t bytes)
{
    for (struct place *place = place_first(start); place && place->start < start + bytes; place = place_next(place))
        if (place->kind != PLACE_LOCKED)
            return false;
    return true;
}

/* Memory that was registered and is still known there was unmapped without a word. */
static void tree_drop_registered(uint64_t start, uint64_t bytes)
{
    struct place *place, *next;

    for (place = place_first(start); place && place->start < start + bytes; place = next) {
        next = place_next(place);
        if (place->kind != PLACE_LOCKED)
            continue;
        RB_REMOVE(place_tree, &places, place);
        free(place_locked(place));
    }
}

void place_insert(struct place *place)
{
    struct place *there;

    if (place->kind != PLACE_LOCKED)
        tree_drop_registered(place->start, place->bytes);
    there = RB_INSERT(place_tree, place->kind == PLACE_RESERVATION ? &reservations : &places, place);
    assert(!there);
    (void)there;
}

void place_remove(struct place *place)
{
    RB_REMOVE(place_tree, place->kind == PLACE_RESERVATION ? &reservations : &places, place);
}

struct memclient_buffer *place_buffer(struct place *place, uint64_t *offset)
{
    *offset = 0;
    switch (place->kind) {
    case PLACE_ALLOCATION:
        return place_allocation(place)->buffer;
    case PLACE_ATTACHMENT:
        return place_attachment(place)->buffer;
    case PLACE_MAPPING:
        *offset = place_mapping(place)->offset;
        return place_mapping(place)->handle->buffer;
    case PLACE_LOCKED:
    case PLACE_RESERVATION:
        break;
    }
    return NULL;
}

struct place *reservation_find(const void *address)
{
    struct place *place = tree_last_before(&reservations, (uintptr_t)address);

    return place && !place->busy && (uintptr_t)address - place->start < place->bytes ? place : NULL;
}

struct place *reservation_around(uint64_t start, uint64_t bytes)
{
    struct place *place = reservation_find((const void *)(uintptr_t)start);

    return place && bytes <= place->bytes - (start - place->start) ? place : NULL;
}

bool reservation_is_none(uint64_t start, uint64_t bytes)
{
    return tree_is_free(&reservations, start, bytes);
}

struct place *places_pop(void)
{
    struct place *place = RB_MIN(place_tree, &places);

    if (!place)
        place = RB_MIN(place_tree, &reservations);
    if (place)
        place_remove(place);
    return place;
}
