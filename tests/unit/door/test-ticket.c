/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/test.h"

#include <time.h>

#include "base/clock.h"
#include "door/message.h"
#include "door/ticket.h"
#include "tests/unit/door/later.h"

#define TICKETS_MAX 1024
#define MEMORY_MAX  128
#define TICKET_SEC  10

/* Descriptors that nobody has: nothing here touches them. */
#define SOME_FD 1000000

static unsigned ended;
static int last_ended;

static void on_end(struct tickets *tickets, int fd)
{
    ended++;
    last_ended = fd;
}

static int setup(void **state)
{
    static struct tickets tickets;

    later = 0;
    ended = 0;
    tickets_init(&tickets, on_end);
    *state = &tickets;
    return 0;
}

static int teardown(void **state)
{
    tickets_deinit(*state);
    return 0;
}

static void add(struct tickets *tickets, uint64_t session, uint64_t number, int memory)
{
    const struct door_message message = {
        .type = DOOR_SHOWN, .session = session, .ticket = number, .memory = memory >= 0, .shown.identity.ino = number};

    tickets_add(tickets, &message, memory);
}

static void a_ticket_is_taken_once_by_whom_it_is_for(void **state)
{
    struct tickets *tickets = *state;
    struct handle_shown shown;

    add(tickets, 1, 70, -1);
    add(tickets, 1, 71, SOME_FD);
    assert_false(tickets_take(tickets, 2, 70, false, &shown));
    assert_false(tickets_take(tickets, 1, 70, true, &shown));
    assert_false(tickets_take(tickets, 1, 71, false, &shown));
    assert_false(tickets_take(tickets, 1, 72, false, &shown));
    assert_true(tickets_take(tickets, 1, 70, false, &shown));
    assert_int_equal(shown.identity.ino, 70);
    assert_int_equal(shown.fd, -1);
    assert_true(tickets_take(tickets, 1, 71, true, &shown));
    assert_int_equal(shown.fd, SOME_FD);
    assert_false(tickets_take(tickets, 1, 70, false, &shown));
    assert_false(tickets_take(tickets, 1, 71, true, &shown));
    assert_int_equal(tickets->n, 0);
    assert_int_equal(ended, 0);
}

static void a_ticket_is_for_a_short_time(void **state)
{
    struct tickets *tickets = *state;
    struct handle_shown shown;

    add(tickets, 1, 70, SOME_FD);
    later = TICKET_SEC - 2;
    add(tickets, 1, 71, -1);
    tickets_expire(tickets);
    assert_int_equal(tickets->n, 2);
    later = TICKET_SEC + 1;
    tickets_expire(tickets);
    assert_int_equal(ended, 1);
    assert_false(tickets_take(tickets, 1, 70, true, &shown));
    assert_true(tickets_take(tickets, 1, 71, false, &shown));
}

static void I7_the_oldest_gives_way(void **state)
{
    struct tickets *tickets = *state;
    struct handle_shown shown;

    for (unsigned n = 1; n <= TICKETS_MAX + 5; n++)
        add(tickets, 1, n, -1);
    assert_int_equal(tickets->n, TICKETS_MAX);
    assert_false(tickets_take(tickets, 1, 5, false, &shown));
    assert_true(tickets_take(tickets, 1, 6, false, &shown));
    assert_true(tickets_take(tickets, 1, TICKETS_MAX + 5, false, &shown));
}

static void I7_memory_is_kept_open_by_few(void **state)
{
    struct tickets *tickets = *state;
    struct handle_shown shown;

    add(tickets, 1, 9999, -1);
    for (int n = 1; n <= MEMORY_MAX + 5; n++)
        add(tickets, 1, (uint64_t)n, SOME_FD + n);
    assert_int_equal(ended, 5);
    assert_int_equal(last_ended, SOME_FD + 5);
    assert_true(tickets_take(tickets, 1, 9999, false, &shown));
    tickets_deinit(tickets);
    assert_int_equal(ended, MEMORY_MAX + 5);
    assert_int_equal(tickets->n, 0);
}

/* What says that it brings memory and does not, or the other way round, is none. */
static void a_wrong_message_makes_no_ticket(void **state)
{
    struct tickets *tickets = *state;
    const struct door_message lacks = {.type = DOOR_SHOWN, .memory = true}, brings = {.type = DOOR_SHOWN};

    tickets_add(tickets, &lacks, -1);
    tickets_add(tickets, &brings, SOME_FD);
    assert_int_equal(tickets->n, 0);
    assert_int_equal(ended, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_ticket_is_taken_once_by_whom_it_is_for),
        TEST(a_ticket_is_for_a_short_time),
        TEST(I7_the_oldest_gives_way),
        TEST(I7_memory_is_kept_open_by_few),
        TEST(a_wrong_message_makes_no_ticket),
    };

    return test_run(tests, NULL, NULL);
}
