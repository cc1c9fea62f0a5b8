/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See occupied.h. The ranges may overlap, so they are in a tree by start in which each node knows the largest end at
 * and below it.
 */
#include "va/occupied.h"

#include <stdlib.h>

#include "va/reservation.h"

/* The most parts that a range takes at a time. A client that reports a range in which many others have something gets
 * no more. */
#define PARTS_MAX 64

struct part {
    struct list in_reservation;
    struct arena_extent extent;
};

static uint64_t end_of(const struct reservation *reservation)
{
    return reservation->record->address + reservation->record->size;
}

static int occupied_compare(const struct reservation *a, const struct reservation *b)
{
    if (a->record->address != b->record->address)
        return a->record->address < b->record->address ? -1 : 1;
    return a->record->head.id < b->record->head.id ? -1 : a->record->head.id > b->record->head.id;
}

static void occupied_augment(struct reservation *reservation)
{
    const struct reservation *below[] = {RB_LEFT(reservation, by_start), RB_RIGHT(reservation, by_start)};

    reservation->max_end = end_of(reservation);
    for (unsigned i = 0; i < 2; i++)
        if (below[i] && below[i]->max_end > reservation->max_end)
            reservation->max_end = below[i]->max_end;
}

#undef RB_AUGMENT
#define RB_AUGMENT(reservation) occupied_augment(reservation)
TREE_GENERATE(occupied_tree, reservation, by_start, occupied_compare)

/* Without memory for it a part stays free, as if nobody had reported it. */
static void take_free(struct reservation *reservation, uint64_t start, uint64_t end)
{
    struct arena *arena = reservation->reservations->arena;
    uint64_t size;

    for (unsigned i = 0; i < PARTS_MAX && arena_next_free(arena, start, end, &start, &size); i++) {
        struct part *part = calloc(1, sizeof(*part));

        if (!part)
            return;
        if (arena_take(arena, &part->extent, size, 0, start, NULL)) {
            free(part);
            return;
        }
        list_append(&reservation->parts, &part->in_reservation);
        start += size;
    }
}

/* The first of those at and below this node that overlap the range takes it. */
static void take_below(struct reservation *reservation, uint64_t start, uint64_t end)
{
    uint64_t from, size;

    if (!reservation || reservation->max_end <= start)
        return;
    take_below(RB_LEFT(reservation, by_start), start, end);
    if (reservation->record->address >= end ||
        !arena_next_free(reservation->reservations->arena, start, end, &from, &size))
        return;
    if (end_of(reservation) > start)
        take_free(reservation, reservation->record->address > start ? reservation->record->address : start,
                  end_of(reservation) < end ? end_of(reservation) : end);
    take_below(RB_RIGHT(reservation, by_start), start, end);
}

static struct reservation *find_below(struct reservation *reservation, uint64_t session, uint64_t start, uint64_t end)
{
    struct reservation *found;

    if (!reservation || reservation->max_end <= start)
        return NULL;
    found = find_below(RB_LEFT(reservation, by_start), session, start, end);
    if (found || reservation->record->address >= end)
        return found;
    if (reservation->record->session == session && end_of(reservation) > start)
        return reservation;
    return find_below(RB_RIGHT(reservation, by_start), session, start, end);
}

struct reservation *reservations_find_occupied(const struct reservations *reservations, uint64_t session,
                                               uint64_t start, uint64_t size)
{
    return find_below(RB_ROOT(&reservations->occupied), session, start, start + size);
}

static void occupied_given(void *userdata, uint64_t start, uint64_t size)
{
    const struct reservations *reservations = userdata;

    take_below(RB_ROOT(&reservations->occupied), start, start + size);
}

void occupied_insert(struct reservation *reservation)
{
    struct reservations *reservations = reservation->reservations;

    list_init(&reservation->parts);
    reservation->max_end = end_of(reservation);
    RB_INSERT(occupied_tree, &reservations->occupied, reservation);
    occupied_tree_refresh(reservation);
    if (reservations->arena->given)
        take_free(reservation, reservation->record->address, end_of(reservation));
}

void occupied_remove(struct reservation *reservation)
{
    struct reservations *reservations = reservation->reservations;
    struct list *link;

    occupied_tree_remove_summed(&reservations->occupied, reservation);
    while ((link = list_pop(&reservation->parts))) {
        struct part *part = container_of(link, struct part, in_reservation);

        arena_give(reservations->arena, &part->extent);
        free(part);
    }
}

void occupied_begin(struct reservations *reservations)
{
    struct reservation *reservation;

    reservations->arena->given = occupied_given;
    reservations->arena->userdata = reservations;
    RB_FOREACH(reservation, occupied_tree, &reservations->occupied) {
        const struct reservation_record *record = reservation->record;

        charge_raise(&reservation->charge,
                     waste_within(arena_waste_at(reservations->arena, record->address, record->size), record->waste));
        take_free(reservation, record->address, end_of(reservation));
    }
}
