/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: made whole or not at all, ended by whoever lets go last.
 */
#include "va/reservation.h"

#include <assert.h>

#include "base/steal.h"

void reservations_init(struct reservations *reservations, struct ledger *ledger, struct arena *arena)
{
    *reservations = (struct reservations){.arena = arena};
    table_init(&reservations->table, ledger, RECORD_RESERVATION, sizeof(struct reservation), true);
}

void reservations_deinit(struct reservations *reservations)
{
    table_deinit(&reservations->table);
}

int reservation_new(struct reservations *reservations, uint64_t session, struct account *account,
                    struct list *in_session, uint64_t size, uint64_t alignment, uint64_t wish,
                    struct reservation **ret, struct problem *problem)
{
    _cleanup_(reservation_freep) struct reservation *reservation = NULL;
    void *object;
    int r;

    r = table_alloc(&reservations->table, &object, problem);
    if (r)
        return r;
    reservation = object;
    reservation->reservations = reservations;
    list_init(&reservation->in_session);
    r = charge_init(&reservation->charge, account, ACCOUNT_RESERVATIONS, 1, problem);
    if (r)
        return r;
    r = arena_take(reservations->arena, &reservation->extent, size, alignment, wish, problem);
    if (r)
        return r;
    r = charge_init(&reservation->addresses, account, ACCOUNT_ADDRESSES, size, problem);
    if (r)
        return r;
    reservation->record->session = session;
    reservation->record->address = reservation->extent.start;
    reservation->record->size = size;
    reservation->record->uid = account->uid;
    list_append(in_session, &reservation->in_session);
    *ret = steal_ptr(&reservation);
    return 0;
}

struct reservation *reservation_free(struct reservation *reservation)
{
    struct reservations *reservations;

    if (!reservation)
        return NULL;
    reservations = reservation->reservations;
    list_remove(&reservation->in_session);
    arena_give(reservations->arena, &reservation->extent);
    charge_deinit(&reservation->addresses);
    charge_deinit(&reservation->charge);
    table_free(&reservations->table, reservation);
    return NULL;
}

struct reservation *reservations_find(const struct reservations *reservations, uint64_t id)
{
    struct reservation *reservation = table_find(&reservations->table, id);

    return reservation && record_is_live(&reservation->record->head) ? reservation : NULL;
}

struct reservation *reservations_next(const struct reservations *reservations, uint64_t *cursor, unsigned *budget)
{
    return table_next(&reservations->table, cursor, budget);
}

void reservation_place(struct reservation *reservation)
{
    reservation->record->buffers++;
}

struct reservation *reservation_unplace(struct reservation *reservation)
{
    assert(reservation->record->buffers);
    reservation->record->buffers--;
    if (reservation->record->buffers || list_is_linked(&reservation->in_session))
        return reservation;
    return reservation_free(reservation);
}

struct reservation *reservation_release(struct reservation *reservation)
{
    list_remove(&reservation->in_session);
    reservation->record->session = 0;
    return reservation->record->buffers ? reservation : reservation_free(reservation);
}
