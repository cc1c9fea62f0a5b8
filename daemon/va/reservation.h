/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: ranges of the arena that belong to a session, and then to the buffers placed in them.
 *
 * A reservation lives while its session keeps it or a buffer is placed in it; so an address stays the buffer's
 * when its maker is gone. It is charged to whoever made it until it ends, and so are its addresses: they cost
 * nothing, so that nothing else would keep one user from taking all of them. Inside, it is a small arena of its own,
 * so that two buffers never have the same home.
 */
#pragma once

#include <stdint.h>

#include "account/account.h"
#include "base/list.h"
#include "base/problem.h"
#include "ledger/table.h"
#include "va/arena.h"
#include "va/occupied.h"
#include "va/waste.h"

struct reservations {
    struct table table;
    struct arena *arena; /* borrowed */
    struct occupied_tree occupied;
    struct waste_tree wastes; /* what the homes of buffers waste */
};

struct reservation {
    OBJECT(struct reservation_record);
    struct reservations *reservations;
    struct arena_extent extent;
    struct list in_session; /* linked while the session keeps it */
    struct charge charge;   /* of its addresses, and those that it wastes */
    struct arena places;    /* its range: what is taken of it by buffers */
    /* of a range that is occupied, instead of `extent` and `places`: occupied.c */
    RB_ENTRY(reservation) by_start;
    uint64_t max_end;
    struct list parts; /* of the arena, that were free */
};

void reservations_init(struct reservations *reservations, struct ledger *ledger, struct arena *arena);
void reservations_deinit(struct reservations *reservations);

/*
 * INTENT; commit its record when the rest is done, and enter it into the session's list. `wanted` says of which session
 * it is, how large and where (address 0: anywhere, at a multiple of `alignment`), and whether that range, of pages
 * within the arena, is occupied in the session's process. Outcomes of arena_take(), LIMIT, NO_MEMORY.
 */
int reservation_new(struct reservations *reservations, const struct reservation_record *wanted, uint64_t alignment,
                    struct account *account, struct reservation **ret, struct problem *problem);
/* A range that the session's process occupies and that overlaps this one, or NULL. */
struct reservation *reservations_find_occupied(const struct reservations *reservations, uint64_t session,
                                               uint64_t start, uint64_t size);
/* Makes a reservation of its record again (table.h), without the buffers in it: they are placed in it afterwards, and
 * then reservation_recovered() ends it if nobody keeps it, or charges what it wastes. `in_session` is NULL if its
 * session is gone. */
enum table_verdict reservation_recover(struct reservations *reservations, struct reservation *reservation,
                                       struct account *account, struct list *in_session, const char **why);
void reservation_recovered(struct reservation *reservation);
/* Ends it however many buffers are in it, if it is half-built or the broker ends. NULL is fine. */
struct reservation *reservation_free(struct reservation *reservation);
DEFINE_CLEANUP(struct reservation *, reservation_free);

/* LIVE; NULL if there is none. */
struct reservation *reservations_find(const struct reservations *reservations, uint64_t id);

/* Places a buffer `offset` bytes behind its start. Outcomes of arena_take(). */
int reservation_place(struct reservation *reservation, struct arena_extent *place, uint64_t offset, uint64_t size,
                      uint64_t alignment, struct problem *problem);
/* Takes the buffer out again. Ends the reservation if its session does not keep it either; returns NULL then. */
struct reservation *reservation_unplace(struct reservation *reservation, struct arena_extent *place);
/* The session keeps it no longer. Ends it if no buffer is in it; returns NULL then. */
struct reservation *reservation_release(struct reservation *reservation);
