/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One user connects nine hundred times before another one connects once: how many of the first one's are let in
 * and greeted before the other is? And what becomes of those beyond what a user may have?
 *
 * Nothing is timed: the broker is stopped while they connect. Each socket is in an epoll set, where sockets are in the
 * order in which they became readable: that is the order in which the broker answered.
 *
 * And one that connects and leaves, without end: has the broker ever many more descriptors than that user?
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/methods.h"
#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

enum { STORM = 900, LEAVING = 20000, AT_A_TIME = 64, LEFT_MAX = 1000 };

static struct broker_process broker;
static int storm[STORM];

static int setup(void **state)
{
    (void)fd_raise_limit();
    return 0;
}

static int connect_as(uid_t uid, int set, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
    int fd = raw_connect_as(&broker, uid);

    raw_send(fd, METHOD_HELLO, NULL, 0, NULL, 0);
    assert_ok(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    return fd;
}

static void I7_who_connects_does_not_wait_until_a_storm_is_over(void **state)
{
    static struct epoll_event events[STORM + 1];
    unsigned before = 0;
    pid_t served_by;
    int set, victim;

    test_needs_root();
    broker_start(&broker, NULL, 0);
    served_by = broker_child(&broker);
    assert_ok(set = epoll_create1(EPOLL_CLOEXEC));
    assert_ok(kill(served_by, SIGSTOP));
    for (unsigned i = 0; i < STORM; i++)
        storm[i] = connect_as(UID_STRANGER, set, i);
    victim = connect_as(UID_VICTIM, set, STORM);
    assert_ok(kill(served_by, SIGCONT));
    for (int i = 0; i < STORM; i++)
        assert_true(wait_readable(storm[i]));
    assert_true(wait_readable(victim));
    assert_int_equal(epoll_wait(set, events, STORM + 1, 0), STORM + 1);
    while (events[before].data.u32 < STORM)
        before++;
    assert_in_range(before, 0, STORM / 2);
    assert_int_equal(broker_child(&broker), served_by);
    for (int i = 0; i < STORM; i++)
        close(storm[i]);
    close(victim);
    close(set);
    broker_stop(&broker);
}

/* They are sent away without being looked at, and neither they nor those let in keep others out. */
static void I7_a_user_has_no_more_connections_than_its_part(void **state)
{
    unsigned ended = 0;
    int set, victim;

    test_needs_root();
    broker_start(&broker, "[limits]\nuid_sessions = 100\n", 0);
    assert_ok(set = epoll_create1(EPOLL_CLOEXEC));
    assert_ok(kill(broker_child(&broker), SIGSTOP));
    for (unsigned i = 0; i < STORM; i++)
        storm[i] = connect_as(UID_STRANGER, set, i);
    victim = connect_as(UID_VICTIM, set, STORM);
    assert_ok(kill(broker_child(&broker), SIGCONT));
    for (int i = 0; i < STORM; i++) {
        assert_true(wait_readable(storm[i]));
        ended += wait_for_events(storm[i], POLLIN, 0) & POLLHUP ? 1 : 0;
    }
    assert_true(wait_readable(victim));
    assert_false(wait_for_events(victim, POLLIN, 0) & POLLHUP);
    assert_in_range(ended, STORM - 200, STORM - 100);
    for (int i = 0; i < STORM; i++)
        close(storm[i]);
    close(victim);
    close(set);
    broker_stop(&broker);
}

/* ---- who connects and leaves ------------------------------------------------------------------------------------- */

struct leaver {
    unsigned at_a_time; /* so many sockets are open, and the one that was opened first is closed for the next */
    unsigned long n;    /* so many times it has connected */
};

static void connect_and_leave(int channel, void *context)
{
    volatile struct leaver *leaver = context;
    int sockets[AT_A_TIME];

    become(UID_STRANGER);
    for (unsigned i = 0; i < leaver->at_a_time; i++)
        sockets[i] = raw_connect_in_child(&broker);
    tell(channel);
    for (unsigned i = 0;; i = (i + 1) % leaver->at_a_time) {
        close(sockets[i]);
        sockets[i] = raw_connect_in_child(&broker);
        leaver->n++;
    }
}

/* Others are let in and served meanwhile, and when it is over nothing is left of it. */
static void leave(unsigned at_a_time)
{
    volatile struct leaver *leaver =
        mmap(NULL, sizeof(*leaver), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned before, served = 0, most = 0, n;
    int64_t end = wait_now_ms() + PATIENCE_MS;
    struct child child;
    pid_t served_by;

    assert_true(leaver != MAP_FAILED);
    leaver->at_a_time = at_a_time;
    broker_start(&broker, "[limits]\nconnections = 8192\nuid_sessions = 4096\n", 0);
    served_by = broker_child(&broker);
    before = broker_count_fds(served_by);
    child_start(&child, connect_and_leave, (void *)leaver);
    child_hear(&child);
    while ((leaver->n < LEAVING || served < 20) && wait_now_ms() < end) {
        int victim = raw_client_as(&broker, UID_VICTIM);

        assert_true(raw_is_served(victim));
        assert_int_equal(raw_call(victim, METHOD_GOODBYE, NULL, 0), 0);
        close(victim);
        served++;
        n = broker_count_fds(served_by);
        most = n > most ? n : most;
    }
    assert_true(leaver->n >= LEAVING);
    assert_in_range(most, before, before + LEFT_MAX);
    child_kill(&child);
    assert_true(WAIT_UNTIL(broker_count_fds(served_by) <= before));
    assert_int_equal(broker_child(&broker), served_by);
    broker_stop(&broker);
    munmap((void *)leaver, sizeof(*leaver));
}

static void I7_who_connects_and_leaves_takes_few_descriptors(void **state)
{
    test_needs_root();
    leave(1);
}

static void I7_who_connects_and_leaves_later_takes_few_descriptors(void **state)
{
    test_needs_root();
    leave(AT_A_TIME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_who_connects_does_not_wait_until_a_storm_is_over),
        cmocka_unit_test(I7_a_user_has_no_more_connections_than_its_part),
        cmocka_unit_test(I7_who_connects_and_leaves_takes_few_descriptors),
        cmocka_unit_test(I7_who_connects_and_leaves_later_takes_few_descriptors),
    };

    return test_run(tests, setup, NULL);
}
