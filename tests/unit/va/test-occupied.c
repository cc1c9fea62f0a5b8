/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that are kept out of the arena, compared with a model that knows each page. */
#include <stdlib.h>

#include "base/align.h"
#include "proto/status.h"
#include "tests/support/test.h"
#include "va/reservation.h"

#define BASE     UINT64_C(0x400000000000)
#define N_PAGES  128
#define N_EACH   24
#define SESSIONS 4

static struct ledger *ledger;
static struct accounts accounts;
static struct account *account;
static struct arena arena;
static struct reservations reservations;
static struct list in_session[SESSIONS];

static int setup(void **state)
{
    assert_int_equal(ledger_new(&ledger, BASE, N_PAGES * page_size()), 0);
    accounts_init(&accounts, NULL);
    assert_int_equal(account_new_session(&accounts, 1000, &account, NULL), 0);
    va_arena_init(&arena, BASE, N_PAGES * page_size(), page_size());
    reservations_init(&reservations, ledger, &arena);
    for (unsigned i = 0; i < SESSIONS; i++)
        list_init(&in_session[i]);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(account_used(account, ACCOUNT_RESERVATIONS), 0);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 0);
    assert_int_equal(arena.used, 0);
    reservations_deinit(&reservations);
    va_arena_deinit(&arena);
    account = account_unref(account);
    accounts_deinit(&accounts);
    ledger = ledger_free(ledger);
    return 0;
}

static uint64_t at(uint64_t page)
{
    return BASE + page * page_size();
}

static int make(unsigned session, uint64_t page, uint64_t pages, bool occupied, struct reservation **ret)
{
    const struct reservation_record wanted = {
        .session = session, .address = at(page), .size = pages * page_size(), .occupied = occupied};
    int r = reservation_new(&reservations, &wanted, 0, account, ret, NULL);

    if (!r) {
        list_append(&in_session[session], &(*ret)->in_session);
        record_commit(&reservations.table, *ret);
    }
    return r;
}

static struct reservation *occupy(unsigned session, uint64_t page, uint64_t pages)
{
    struct reservation *reservation = NULL;

    assert_int_equal(make(session, page, pages, true, &reservation), 0);
    return reservation;
}

/* At this page, or refused: NULL. */
static struct reservation *reserve(uint64_t page, uint64_t pages)
{
    struct reservation *reservation = NULL;
    int r = make(1, page, pages, false, &reservation);

    assert_true(!r || r == STATUS_ADDRESS_TAKEN);
    return reservation;
}

static void the_next_who_told_it_takes_it_I9(void **state)
{
    struct reservation *a, *b;

    occupied_begin(&reservations);
    a = occupy(1, 4, 8);
    b = occupy(2, 8, 8);
    assert_null(reserve(0, 5));
    assert_int_equal(arena.used, 12 * page_size());
    assert_null(reservation_release(a));
    assert_int_equal(arena.used, 8 * page_size());
    assert_null(reserve(8, 1));
    assert_non_null(a = reserve(0, 8));
    assert_null(reservation_release(a));
    assert_null(reservation_release(b));
}

/* It is as good at cutting the arena into pieces as any other. */
static void what_it_wastes_is_charged(void **state)
{
    struct reservation *a, *b;

    occupied_begin(&reservations);
    a = occupy(1, 4, 1);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 5 * page_size());
    b = occupy(2, 2, 2);
    assert_int_equal(account_used(account, ACCOUNT_ADDRESSES), 7 * page_size());
    assert_null(reservation_release(b));
    assert_null(reservation_release(a));
}

static void what_was_taken_is_kept_out_when_it_ends_I9(void **state)
{
    struct reservation *real, *told;

    occupied_begin(&reservations);
    real = reserve(4, 8);
    told = occupy(2, 0, 8);
    assert_int_equal(arena.used, 12 * page_size());
    assert_null(reservation_release(real));
    assert_int_equal(arena.used, 8 * page_size());
    assert_null(reserve(7, 1));
    assert_null(reservation_release(told));
}

static void it_counts_against_the_limits_I7(void **state)
{
    struct reservation *told, *none = NULL;

    accounts.limits.user[ACCOUNT_ADDRESSES] = 8 * page_size();
    occupied_begin(&reservations);
    told = occupy(2, 0, 6);
    assert_int_equal(make(3, 6, 3, true, &none), STATUS_LIMIT);
    assert_null(none);
    assert_int_equal(arena.used, 6 * page_size());
    assert_null(reservation_release(told));
}

static void it_is_found_by_session_and_range(void **state)
{
    struct reservation *a = occupy(1, 0, 100), *b = occupy(2, 10, 10), *c = occupy(3, 40, 10);

    assert_ptr_equal(reservations_find_occupied(&reservations, 2, at(19), 1), b);
    assert_null(reservations_find_occupied(&reservations, 2, at(20), 50 * page_size()));
    assert_null(reservations_find_occupied(&reservations, 2, at(0), 10 * page_size()));
    assert_ptr_equal(reservations_find_occupied(&reservations, 3, at(0), 41 * page_size()), c);
    assert_ptr_equal(reservations_find_occupied(&reservations, 1, at(99), 1), a);
    assert_null(reservations_find_occupied(&reservations, 4, at(0), N_PAGES * page_size()));
    assert_null(reservation_release(a));
    assert_null(reservation_release(b));
    assert_null(reservation_release(c));
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static bool covers(const struct reservation *reservation, uint64_t page)
{
    return reservation && at(page) - reservation->record->address < reservation->record->size &&
           at(page) >= reservation->record->address;
}

static bool is_free(uint64_t page)
{
    uint64_t start, size;

    return arena_next_free(&arena, at(page), at(page + 1), &start, &size);
}

static void each_page_that_anybody_has_is_taken_and_no_other_I9(void **state)
{
    struct reservation *real[N_EACH] = {NULL}, *told[N_EACH] = {NULL};

    srandom(1);
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = (unsigned)random() % N_EACH;
        uint64_t pages = 1 + (uint64_t)random() % 12, page = (uint64_t)random() % (N_PAGES - pages);

        /* as after another broker: first all of them, then it begins */
        if (round == 50)
            occupied_begin(&reservations);
        if (random() % 2) {
            real[i] = real[i] ? reservation_release(real[i]) : round < 50 ? NULL : reserve(page, pages);
        } else {
            told[i] = told[i] ? reservation_release(told[i]) : occupy(i % SESSIONS, page, pages);
        }
        for (uint64_t p = 0; p < N_PAGES && round >= 50; p++) {
            bool taken = false;

            for (unsigned k = 0; k < N_EACH && !taken; k++)
                taken = covers(real[k], p) || covers(told[k], p);
            assert_int_equal(is_free(p), !taken);
        }
    }
    for (unsigned i = 0; i < N_EACH; i++) {
        if (real[i])
            assert_null(reservation_release(real[i]));
        if (told[i])
            assert_null(reservation_release(told[i]));
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_next_who_told_it_takes_it_I9),           T(what_it_wastes_is_charged),
        T(what_was_taken_is_kept_out_when_it_ends_I9), T(it_counts_against_the_limits_I7),
        T(it_is_found_by_session_and_range),           T(each_page_that_anybody_has_is_taken_and_no_other_I9),
    };

    return test_run(tests, NULL, NULL);
}
