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
#include <sys/resource.h>
#include <unistd.h>

#include "proto/methods.h"
#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"

#define UID_VICTIM 61003

enum { HOSTILE = 1000, VICTIMS = 8, REQUESTS = 4 };

static struct broker_process broker;
static int hostile[HOSTILE];
static int victims[VICTIMS];

/* What the kernel says of a connection is who made it. */
static int connect_as(uid_t uid)
{
    int fd;

    assert_ok(seteuid(uid));
    fd = raw_connect(&broker);
    assert_ok(seteuid(0));
    return fd;
}

static void greet(int fd)
{
    assert_int_equal(raw_call(fd, METHOD_HELLO, NULL, 0), 0);
}

static int setup(void **state)
{
    struct rlimit limit;

    if (geteuid())
        return 0;
    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    broker_start(&broker, NULL, 0);
    for (int i = 0; i < HOSTILE; i++)
        greet(hostile[i] = connect_as(UID_STRANGER));
    for (int i = 0; i < VICTIMS; i++)
        greet(victims[i] = connect_as(UID_VICTIM));
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
    fd = connect_as(UID_VICTIM);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_a_thousand_connections_that_call_are_one_user),
        cmocka_unit_test(I7_a_thousand_connections_that_list_are_one_user),
        cmocka_unit_test(I7_a_new_client_does_not_wait_for_a_thousand_connections),
    };

    return test_run(tests, setup, teardown);
}
