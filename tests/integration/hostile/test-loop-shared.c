/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One user has thousands of connections with requests in them, another one has a few: how much of the first one's is
 * served before the second one has what it asked for?
 *
 * Nothing is timed. The broker is stopped while everybody sends, the hostile user first. Each socket is in an epoll
 * set, where sockets are in the order in which they became readable: that is the order in which the broker answered.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

enum { HOSTILE = 1000, VICTIMS = 8, REQUESTS = 4, CALLERS = 64 };

static struct broker_process broker;
static int hostile[HOSTILE];
static int victims[VICTIMS];

static int setup(void **state)
{
    if (geteuid())
        return 0;
    (void)fd_raise_limit();
    broker_start(&broker, NULL, 0);
    for (int i = 0; i < HOSTILE; i++)
        hostile[i] = raw_client_as(&broker, UID_STRANGER);
    for (int i = 0; i < VICTIMS; i++)
        victims[i] = raw_client_as(&broker, UID_VICTIM);
    return 0;
}

static int teardown(void **state)
{
    if (geteuid())
        return 0;
    for (int i = 0; i < HOSTILE; i++)
        close(hostile[i]);
    for (int i = 0; i < VICTIMS; i++)
        close(victims[i]);
    broker_stop(&broker);
    return 0;
}

static void watch(int set, int fd, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    assert_ok(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

/* How many of the hostile user's connections were answered before the last of the victim's was? */
static unsigned count_answered_before_victim(int set)
{
    static struct epoll_event events[HOSTILE + VICTIMS];
    unsigned before = 0;
    unsigned left = VICTIMS;
    int n;

    n = epoll_wait(set, events, HOSTILE + VICTIMS, 0);
    assert_int_equal(n, HOSTILE + VICTIMS);
    for (int i = 0; left; i++)
        if (events[i].data.u32 < HOSTILE)
            before++;
        else
            left--;
    return before;
}

static void take_replies(int fd, unsigned n)
{
    static struct raw_reply reply;

    while (n--) {
        raw_receive(fd, &reply);
        assert_true(reply.size > 0);
    }
}

/* The hostile user's requests are there before the victim's. */
static unsigned race(uint16_t method)
{
    pid_t served_by = broker_child(&broker);
    int set = epoll_create1(EPOLL_CLOEXEC);
    unsigned before;

    assert_ok(set);
    assert_ok(kill(served_by, SIGSTOP));
    for (int i = 0; i < HOSTILE; i++) {
        for (int n = 0; n < REQUESTS; n++)
            raw_send(hostile[i], method, NULL, 0, NULL, 0);
        watch(set, hostile[i], (uint32_t)i);
    }
    for (int i = 0; i < VICTIMS; i++) {
        raw_send(victims[i], METHOD_PING, NULL, 0, NULL, 0);
        watch(set, victims[i], HOSTILE + (uint32_t)i);
    }
    assert_ok(kill(served_by, SIGCONT));
    for (int i = 0; i < HOSTILE; i++)
        assert_true(wait_readable(hostile[i]));
    for (int i = 0; i < VICTIMS; i++)
        assert_true(wait_readable(victims[i]));
    before = count_answered_before_victim(set);
    close(set);
    for (int i = 0; i < HOSTILE; i++)
        take_replies(hostile[i], REQUESTS);
    for (int i = 0; i < VICTIMS; i++)
        take_replies(victims[i], 1);
    assert_int_equal(broker_child(&broker), served_by);
    return before;
}

static void I7_a_thousand_connections_that_call_are_one_user(void **state)
{
    test_needs_root();
    assert_in_range(race(METHOD_PING), 0, HOSTILE / 4);
}

static void I7_a_thousand_connections_that_list_are_one_user(void **state)
{
    test_needs_root();
    assert_in_range(race(METHOD_LIST_SESSIONS), 0, HOSTILE / 4);
}

/* Who connects is let in and greeted while another user's requests are waiting. */
static void I7_a_new_client_does_not_wait_for_a_thousand_connections(void **state)
{
    pid_t served_by;
    unsigned unanswered = 0;
    int fd;

    test_needs_root();
    served_by = broker_child(&broker);
    assert_ok(kill(served_by, SIGSTOP));
    for (int i = 0; i < HOSTILE; i++)
        for (int n = 0; n < REQUESTS; n++)
            raw_send(hostile[i], METHOD_LIST_SESSIONS, NULL, 0, NULL, 0);
    fd = raw_connect_as(&broker, UID_VICTIM);
    raw_send(fd, METHOD_HELLO, NULL, 0, NULL, 0);
    assert_ok(kill(served_by, SIGCONT));
    take_replies(fd, 1);
    for (int i = 0; i < HOSTILE; i++)
        unanswered += !(wait_for_events(hostile[i], POLLIN, 0) & POLLIN);
    assert_in_range(unanswered, HOSTILE / 4, HOSTILE);
    close(fd);
    for (int i = 0; i < HOSTILE; i++)
        take_replies(hostile[i], REQUESTS);
}

/* Whoever lists a thousand sessions of its own asks again and again, and others are served in between. */
static void I7_a_page_of_a_listing_is_short(void **state)
{
    static struct raw_reply reply;
    Memoryd__V1__SessionsReply *page;

    test_needs_root();
    raw_send(hostile[0], METHOD_LIST_SESSIONS, NULL, 0, NULL, 0);
    raw_receive(hostile[0], &reply);
    assert_int_equal(reply.status, 0);
    page = memoryd__v1__sessions_reply__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
    assert_non_null(page);
    assert_in_range(page->n_sessions, 1, 16);
    assert_int_not_equal(page->next, 0);
    memoryd__v1__sessions_reply__free_unpacked(page, NULL);
}

/* Nor does it take longer to find out that there is nothing for the caller. */
static void I7_others_sessions_are_passed_over_a_few_at_a_time(void **state)
{
    static struct raw_reply reply;
    Memoryd__V1__SessionsReply *page;
    Memoryd__V1__ListRequest request = MEMORYD__V1__LIST_REQUEST__INIT;
    uint8_t payload[32];
    unsigned calls = 0, found = 0;

    test_needs_root();
    do {
        size_t size = memoryd__v1__list_request__pack(&request, payload);

        raw_send(victims[0], METHOD_LIST_SESSIONS, payload, size, NULL, 0);
        raw_receive(victims[0], &reply);
        assert_int_equal(reply.status, 0);
        page = memoryd__v1__sessions_reply__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
        assert_non_null(page);
        request.cursor = page->next;
        found += (unsigned)page->n_sessions;
        calls++;
        memoryd__v1__sessions_reply__free_unpacked(page, NULL);
    } while (request.cursor);
    assert_int_equal(found, VICTIMS);
    assert_in_range(calls, HOSTILE / 64, HOSTILE);
}

static void bind_a_name(int fd)
{
    Memoryd__V1__AllocRequest request = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    uint64_t size = 1;
    uint8_t payload[64];

    name.name = (char *)"news";
    name.others = MEMORYD__V1__RIGHT__RIGHT_READ;
    request.sizes = &size;
    request.n_sizes = 1;
    request.name = &name;
    raw_send(fd, METHOD_ALLOC, payload, memoryd__v1__alloc_request__pack(&request, payload), NULL, 0);
}

/*
 * What the broker does later because of a user's request takes turns with other users' requests: here it tells a
 * thousand subscribers of a name.
 */
static void I7_a_thousand_subscribers_do_not_keep_others_waiting(void **state)
{
    static struct epoll_event events[HOSTILE + CALLERS];
    const uint8_t names[] = {0x08, 0x04}; /* mask: EVENT_NAME */
    int callers[CALLERS], set = epoll_create1(EPOLL_CLOEXEC);
    unsigned told = 0, left = CALLERS;
    pid_t served_by;

    test_needs_root();
    assert_ok(set);
    served_by = broker_child(&broker);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = raw_client_as(&broker, UID_VICTIM);
        watch(set, callers[i], HOSTILE);
    }
    for (int i = 1; i < HOSTILE; i++) {
        assert_int_equal(raw_call(hostile[i], METHOD_SUBSCRIBE, names, sizeof(names)), 0);
        watch(set, hostile[i], (uint32_t)i);
    }
    assert_ok(kill(served_by, SIGSTOP));
    bind_a_name(hostile[0]);
    for (int i = 0; i < CALLERS; i++)
        raw_send(callers[i], METHOD_PING, NULL, 0, NULL, 0);
    assert_ok(kill(served_by, SIGCONT));
    for (int i = 0; i < CALLERS; i++)
        assert_true(wait_readable(callers[i]));
    for (int i = 1; i < HOSTILE; i++)
        assert_true(wait_readable(hostile[i]));
    assert_int_equal(epoll_wait(set, events, HOSTILE + CALLERS, 0), HOSTILE - 1 + CALLERS);
    for (int i = 0; left; i++)
        if (events[i].data.u32 < HOSTILE)
            told++;
        else
            left--;
    print_message("%u subscribers were told before the last of %d other calls was answered\n", told, CALLERS);
    assert_in_range(told, 0, HOSTILE / 2);
    for (int i = 0; i < CALLERS; i++)
        close(callers[i]);
    close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_a_thousand_connections_that_call_are_one_user),
        cmocka_unit_test(I7_a_thousand_connections_that_list_are_one_user),
        cmocka_unit_test(I7_a_page_of_a_listing_is_short),
        cmocka_unit_test(I7_others_sessions_are_passed_over_a_few_at_a_time),
        cmocka_unit_test(I7_a_new_client_does_not_wait_for_a_thousand_connections),
        cmocka_unit_test(I7_a_thousand_subscribers_do_not_keep_others_waiting),
    };

    return test_run(tests, setup, teardown);
}
