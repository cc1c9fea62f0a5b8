/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: made whole or not at all, ended by whoever lets go last.
 */
#include "va/reservation.h"

#include <assert.h>

#include "base/align.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/range.h"
#include "proto/status.h"

void reservations_init(struct reservations *reservations, struct ledger *ledger, struct arena *arena)
{
    *reservations =
        (struct reservations){.arena = arena, .occupied = RB_INITIALIZER(NULL), .wastes = RB_INITIALIZER(NULL)};
    table_init(&reservations->table, ledger, RECORD_RESERVATION, sizeof(struct reservation), true);
}

void reservations_deinit(struct reservations *reservations)
{
    table_deinit(&reservations->table);
}

/* By its record, once that says where it is. */
static void reservation_enter(struct reservation *reservation)
{
    const struct reservation_record *record = reservation->record;

    if (record->occupied)
        occupied_insert(reservation);
    else
        va_arena_init(&reservation->places, record->address, record->size, reservation->reservations->arena->page);
}

/* One that is occupied takes its parts later. */
static int reservation_take(struct reservation *reservation, const struct reservation_record *wanted,
                            uint64_t alignment, uint64_t *ret_waste, struct problem *problem)
{
    struct arena *arena = reservation->reservations->arena;
    int r;

    if (wanted->occupied) {
        *ret_waste = arena_waste_at(arena, wanted->address, wanted->size);
        return 0;
    }
    r = arena_take(arena, &reservation->extent, wanted->size, alignment, wanted->address, problem);
    if (!r)
        *ret_waste = arena_extent_waste(&reservation->extent);
    return r;
}

int reservation_new(struct reservations *reservations, const struct reservation_record *wanted, uint64_t alignment,
                    struct account *account, struct reservation **ret, struct problem *problem)
{
    _cleanup_(reservation_freep) struct reservation *reservation = NULL;
    struct reservation_record *record;
    uint64_t waste = 0;
    void *object;
    int r = table_alloc(&reservations->table, &object, problem);

    if (r)
        return r;
    reservation = object;
    reservation->reservations = reservations;
    list_init(&reservation->in_session);
    r = reservation_take(reservation, wanted, alignment, &waste, problem);
    if (!r)
        r = waste_charge_with(&reservation->charge, account, wanted->size, waste, problem);
    if (r)
        return r;
    record = record_fresh(reservation);
    record->session = wanted->session;
    record->address = wanted->occupied ? wanted->address : reservation->extent.start;
    record->size = wanted->size;
    record->uid = account->uid;
    record->occupied = wanted->occupied;
    record->waste = waste_note(waste) & 63;
    reservation_enter(reservation);
    audit_after(&reservations->table, reservation);
    *ret = steal_ptr(&reservation);
    return 0;
}

static bool is_in_arena(const struct reservation_record *record, const struct arena *arena)
{
    return record->size && record->address >= arena->base &&
           range_in_bounds(record->address - arena->base, record->size, arena->size) &&
           is_aligned(record->address | record->size, arena->page);
}

enum table_verdict reservation_recover(struct reservations *reservations, struct reservation *reservation,
                                       struct account *account, struct list *in_session, const char **why)
{
    const struct reservation_record *record = reservation->record;
    struct reservation_record *writable;

    if (record->occupied) {
        if (!in_session)
            return TABLE_DROP;
        *why = "its addresses are none, or outside the arena";
        if (!is_in_arena(record, reservations->arena))
            return TABLE_QUARANTINE;
    } else {
        *why = "its addresses are another one's, or outside the arena";
        if (!record->address ||
            arena_take(reservations->arena, &reservation->extent, record->size, 0, record->address, NULL))
            return TABLE_QUARANTINE;
    }
    reservation->reservations = reservations;
    list_init(&reservation->in_session);
    charge_restore(&reservation->charge, account, ACCOUNT_ADDRESSES, record->size);
    reservation_enter(reservation);
    writable = record_change(&reservations->table, reservation);
    writable->buffers = 0;
    if (in_session)
        list_append(in_session, &reservation->in_session);
    else
        writable->session = 0;
    return TABLE_KEEP;
}

void reservation_recovered(struct reservation *reservation)
{
    if (!reservation->record->buffers && !list_is_linked(&reservation->in_session))
        reservation_free(reservation);
    else if (!reservation->record->occupied)
        charge_raise(&reservation->charge,
                     waste_within(arena_extent_waste(&reservation->extent), reservation->record->waste));
}

struct reservation *reservation_free(struct reservation *reservation)
{
    struct reservations *reservations;

    if (!reservation)
        return NULL;
    reservations = reservation->reservations;
    if (reservation->charge.account)
        audit_before(&reservations->table, reservation);
    list_remove(&reservation->in_session);
    if (reservation->record->occupied)
        occupied_remove(reservation);
    arena_give(reservations->arena, &reservation->extent);
    charge_deinit(&reservation->charge);
    table_free(&reservations->table, reservation);
    return NULL;
}

struct reservation *reservations_find(const struct reservations *reservations, uint64_t id)
{
    struct reservation *reservation = table_find(&reservations->table, id);

    return reservation && record_is_live(&reservation->record->head) ? reservation : NULL;
}

int reservation_place(struct reservation *reservation, struct arena_extent *place, uint64_t offset, uint64_t size,
                      uint64_t alignment, struct problem *problem)
{
    uint64_t address;
    int r;

    if (reservation->record->occupied)
        return refuse(problem, STATUS_INVALID_ARGUMENT,
                      "the reservation is of addresses that another broker gave; reserve them anew");
    if (!checked_add_u64(reservation->record->address, offset, &address))
        return refuse(problem, STATUS_SIZE_OVERFLOW, "the offset is beyond all addresses");
    r = arena_take(&reservation->places, place, size, alignment, address, problem);
    if (!r)
        record_change(&reservation->reservations->table, reservation)->buffers++;
    return r;
}

struct reservation *reservation_unplace(struct reservation *reservation, struct arena_extent *place)
{
    assert(reservation->record->buffers);
    arena_give(&reservation->places, place);
    record_change(&reservation->reservations->table, reservation)->buffers--;
    if (reservation->record->buffers || list_is_linked(&reservation->in_session))
        return reservation;
    return reservation_free(reservation);
}

struct reservation *reservation_release(struct reservation *reservation)
{
    list_remove(&reservation->in_session);
    record_change(&reservation->reservations->table, reservation)->session = 0;
    return reservation->record->buffers ? reservation : reservation_free(reservation);
}
