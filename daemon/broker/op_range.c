/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: ranges of the arena for a session, and buffers placed in them (I9).
 */
#include "broker/sessions.h"

#include "base/align.h"
#include "base/range.h"
#include "broker/export.h"
#include "broker/lookup.h"
#include "broker/state.h"

static void range_occupy(struct broker *broker, struct session *session, uint64_t start, uint64_t end)
{
    const struct reservation_record wanted = {
        .session = session->record->head.id, .address = start, .size = end - start, .occupied = 1};
    struct reservation *reservation;

    if (start >= end || reservation_new(&broker->reservations, &wanted, 0, session->account, &reservation, NULL))
        return;
    list_append(&session->reservations, &reservation->in_session);
    record_commit(&broker->reservations.table, reservation);
}

void session_occupies(struct broker *broker, struct session *session, const struct hello_args *args)
{
    const struct arena *arena = &broker->arena;
    uint64_t arena_end = arena->base + arena->size;

    for (unsigned i = 0; i < args->n_occupied; i++) {
        uint64_t start = args->occupied[i].start, end = range_end(args->occupied[i]);

        /* what this broker gave belongs to a buffer or a reservation that is there */
        if (args->occupied_by[i] != ledger_broker_id(broker->ledger))
            range_occupy(broker, session, start > arena->base ? align_down(start, arena->page) : arena->base,
                         end < arena_end ? align_up(end, arena->page) : arena_end);
    }
}

void session_vacates(struct broker *broker, struct session *session, uint64_t start, uint64_t size)
{
    const struct arena *arena = &broker->arena;
    struct reservation *reservation;
    uint64_t end;

    if (start < arena->base || !range_in_bounds(start - arena->base, size, arena->size))
        return;
    end = align_up(start + size, arena->page);
    start = align_down(start, arena->page);
    while ((reservation =
                reservations_find_occupied(&broker->reservations, session->record->head.id, start, end - start))) {
        uint64_t from = reservation->record->address, to = from + reservation->record->size;

        reservation_release(reservation);
        range_occupy(broker, session, from, start);
        range_occupy(broker, session, end, to);
    }
}

int op_reserve(struct op *op, uint64_t size, uint64_t alignment, uint64_t address, uint64_t *ret_id,
               uint64_t *ret_address)
{
    const struct reservation_record wanted = {.session = op->session, .address = address, .size = size};
    struct reservation *reservation;
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    session_vacates(op->broker, session, address, address ? size : 0);
    r = reservation_new(&op->broker->reservations, &wanted, alignment, session->account, &reservation, &op->problem);
    if (r)
        return r;
    list_append(&session->reservations, &reservation->in_session);
    record_commit(&op->broker->reservations.table, reservation);
    *ret_id = reservation->record->head.id;
    *ret_address = reservation->record->address;
    return 0;
}

static int find_own_range(struct op *op, uint64_t id, struct reservation **ret)
{
    struct reservation *reservation = reservations_find(&op->broker->reservations, id);

    if (!reservation || !reservation->record->session)
        return no_such(op->broker, &op->problem, id, "reservation");
    if (reservation->record->session != op->session)
        return refuse(&op->problem, STATUS_NO_RIGHT, "reservation %llu is session %llu's", (unsigned long long)id,
                      (unsigned long long)reservation->record->session);
    *ret = reservation;
    return 0;
}

int op_unreserve(struct op *op, uint64_t id)
{
    struct reservation *reservation;
    struct session *session;
    int r = op_session(op, &session);

    if (!r)
        r = find_own_range(op, id, &reservation);
    if (r)
        return r;
    reservation_release(reservation);
    return 0;
}

int op_place(struct op *op, uint64_t id, uint64_t where, uint64_t offset)
{
    struct reservation *reservation;
    struct buffer *buffer;
    struct hold *hold;
    int r = find_own_memory(op, id, RIGHT_MANAGE, &hold);

    if (!r)
        r = find_own_range(op, where, &reservation);
    if (r)
        return r;
    buffer = hold->buffer;
    if (buffer->record->address)
        return refuse(&op->problem, STATUS_BUSY, "buffer %llu has its home at %#llx already", (unsigned long long)id,
                      (unsigned long long)buffer->record->address);
    if (!range_in_bounds(offset, buffer->record->bytes, reservation->record->size))
        return refuse(&op->problem, STATUS_SIZE_OVERFLOW,
                      "the buffer's %llu bytes at offset %llu go beyond the reservation's %llu",
                      (unsigned long long)buffer->record->bytes, (unsigned long long)offset,
                      (unsigned long long)reservation->record->size);
    if ((reservation->record->address + offset) & (buffer_granule(buffer) - 1))
        return refuse(&op->problem, STATUS_INVALID_ARGUMENT, "the place must be a multiple of the granule, %llu",
                      (unsigned long long)buffer_granule(buffer));
    return buffer_place(&op->broker->buffers, buffer, reservation, offset, &op->problem);
}
