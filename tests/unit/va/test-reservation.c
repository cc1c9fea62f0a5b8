/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations: what they cost, and who keeps them. */
#include <string.h>

#include "base/align.h"
#include "proto/status.h"
#include "tests/support/test.h"
#include "va/reservation.h"

#define BASE UINT64_C(0x400000000000)

static struct ledger *ledger;
static struct accounts accounts;
static struct account *account;
static struct arena arena;
static struct reservations reservations;
static struct list in_session = LIST_INIT(in_session);

static int setup(void **state)
{
    assert_int_equal(ledger_new(&ledger, BASE, 16 * page_size()), 0);
    accounts_init(&accounts, NULL);
    accounts.limits.session[ACCOUNT_RESERVATIONS] = 2;
    accounts.limits.user[ACCOUNT_ADDRESSES] = 12 * page_size();
    assert_int_equal(account_new_session(&accounts, 1000, &account, NULL), 0);
    va_arena_init(&arena, BASE, 16 * page_size(), page_size());
    reservations_init(&reservations, ledger, &arena);
    return 0;
}

static int teardown(void **state)
{
    assert_true(list_is_empty(&in_session));
    reservations_deinit(&reservations);
    va_arena_deinit(&arena);
    account = account_unref(account);
    accounts_deinit(&accounts);
    ledger = ledger_free(ledger);
    return 0;
}

static int make(uint64_t pages, struct reservation **ret)
{
    const struct reservation_record wanted = {.session = 77, .size = pages * page_size()};
    int r = reservation_new(&reservations, &wanted, 0, account, ret, NULL);

    if (!r)
        list_append(&in_session, &(*ret)->in_session);
    return r;
}

static void test_made_whole_or_not_at_all(void **state)
{
    struct reservation *a, *b, *none = NULL;

    assert_int_equal(make(17, &none), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(account_used(account, ACCOUNT_RESERVATIONS), 0);
    assert_int_equal(make(8, &a), 0);
    assert_int_equal(a->record->address, BASE);
    assert_int_equal(a->record->size, 8 * page_size());
    assert_int_equal(a->record->session, 77);
    assert_int_equal(a->record->uid, 1000);
    /* being made, nobody finds it by its id */
    assert_null(reservations_find(&reservations, a->record->head.id));
    record_commit(&reservations.table, a);
    assert_ptr_equal(reservations_find(&reservations, a->record->head.id), a);
    /* there is room in the arena, but not for him alone */
    assert_int_equal(make(8, &none), STATUS_LIMIT);
    assert_int_equal(arena.used, 8 * page_size());
    assert_int_equal(make(4, &b), 0);
    assert_int_equal(make(1, &none), STATUS_LIMIT);
    assert_null(none);
    assert_int_equal(table_count(&reservations.table), 2);
    assert_null(reservation_release(a));
    assert_null(reservation_free(b));
    assert_int_equal(arena.used, 0);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 0);
}

/* `offset` and `size` in pages */
static int place(struct reservation *reservation, struct arena_extent *extent, uint64_t offset, uint64_t size)
{
    return reservation_place(reservation, extent, offset * page_size(), size * page_size(), page_size(), NULL);
}

/* I9: an address stays the buffer's as long as a buffer is placed there, session or not. */
static void test_I9_kept_by_buffers_after_the_session(void **state)
{
    struct arena_extent one = ARENA_EXTENT_NULL, two = ARENA_EXTENT_NULL;
    struct reservation *reservation;
    uint64_t id, cursor = 0;
    unsigned budget = 10;

    assert_int_equal(make(4, &reservation), 0);
    record_commit(&reservations.table, reservation);
    id = reservation->record->head.id;
    assert_int_equal(place(reservation, &one, 0, 1), 0);
    assert_int_equal(place(reservation, &two, 3, 1), 0);
    assert_ptr_equal(reservation_unplace(reservation, &one), reservation);
    assert_ptr_equal(reservation_release(reservation), reservation);
    assert_true(list_is_empty(&in_session));
    assert_int_equal(reservation->record->session, 0);
    assert_int_equal(arena.used, 4 * page_size());
    assert_int_equal(account_used(account, ACCOUNT_RESERVATIONS), 1);
    assert_ptr_equal(table_next(&reservations.table, &cursor, &budget), reservation);
    assert_null(reservation_unplace(reservation, &two));
    assert_null(reservations_find(&reservations, id));
    assert_int_equal(arena.used, 0);
    assert_int_equal(account_used(account, ACCOUNT_RESERVATIONS), 0);
}

static void test_I9_no_two_buffers_in_one_place(void **state)
{
    struct arena_extent one = ARENA_EXTENT_NULL, two = ARENA_EXTENT_NULL;
    struct reservation *reservation;

    assert_int_equal(make(4, &reservation), 0);
    assert_int_equal(place(reservation, &one, 1, 2), 0);
    assert_int_equal(one.start, reservation->record->address + page_size());
    assert_int_equal(place(reservation, &two, 1, 2), STATUS_ADDRESS_TAKEN);
    assert_int_equal(place(reservation, &two, 0, 2), STATUS_ADDRESS_TAKEN);
    assert_int_equal(place(reservation, &two, 2, 1), STATUS_ADDRESS_TAKEN);
    assert_int_equal(place(reservation, &two, 3, 2), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(place(reservation, &two, UINT64_MAX / page_size(), 1), STATUS_SIZE_OVERFLOW);
    assert_int_equal(reservation->record->buffers, 1);
    assert_int_equal(place(reservation, &two, 3, 1), 0);
    assert_ptr_equal(reservation_unplace(reservation, &one), reservation);
    assert_int_equal(place(reservation, &one, 0, 3), 0);
    assert_ptr_equal(reservation_unplace(reservation, &one), reservation);
    assert_ptr_equal(reservation_unplace(reservation, &two), reservation);
    assert_null(reservation_release(reservation));
}

static void test_kept_by_the_session_after_buffers(void **state)
{
    struct arena_extent one = ARENA_EXTENT_NULL;
    struct reservation *reservation;

    assert_int_equal(make(4, &reservation), 0);
    assert_int_equal(place(reservation, &one, 0, 1), 0);
    assert_ptr_equal(reservation_unplace(reservation, &one), reservation);
    assert_null(reservation_release(reservation));
}

/* What a wanted address wastes is charged as if it had been reserved, and refused like an address that is not there. */
static void test_waste_is_charged(void **state)
{
    struct reservation_record wanted = {.session = 77, .size = page_size(), .address = BASE + 8 * page_size()};
    struct reservation *a, *b = NULL;

    assert_int_equal(reservation_new(&reservations, &wanted, 0, account, &a, NULL), 0);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 8 * page_size());
    wanted.address = BASE + 4 * page_size();
    assert_int_equal(reservation_new(&reservations, &wanted, 0, account, &b, NULL), 0);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 12 * page_size());
    reservation_free(b);
    wanted.address = BASE + 3 * page_size();
    wanted.size = 2 * page_size();
    assert_int_equal(reservation_new(&reservations, &wanted, 0, account, &b, NULL), STATUS_NO_ADDRESS_SPACE);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 8 * page_size());
    wanted.address = BASE;
    wanted.size = 4 * page_size();
    assert_int_equal(reservation_new(&reservations, &wanted, 0, account, &b, NULL), 0);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 12 * page_size());
    reservation_free(b);
    reservation_free(a);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 0);
}

/* No more after another broker than before, and no more than what is wasted then. */
static void test_waste_is_noted(void **state)
{
    assert_int_equal(waste_note(0), 0);
    assert_int_equal(waste_within(4096, waste_note(0)), 0);
    for (unsigned bit = 12; bit < 48; bit++) {
        uint64_t waste = (UINT64_C(1) << bit) + 4096;

        assert_in_range(waste_note(waste), 13, 63);
        assert_int_equal(waste_within(waste, waste_note(waste)), waste);
        assert_int_equal(waste_within(4096, waste_note(waste)), 4096);
        assert_true(waste_within(UINT64_MAX, waste_note(waste)) < 2 * waste);
    }
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_made_whole_or_not_at_all),
        T(test_I9_kept_by_buffers_after_the_session),
        T(test_I9_no_two_buffers_in_one_place),
        T(test_kept_by_the_session_after_buffers),
        T(test_waste_is_charged),
        T(test_waste_is_noted),
    };

    return test_run(tests, NULL, NULL);
}
