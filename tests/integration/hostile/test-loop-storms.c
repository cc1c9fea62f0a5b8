/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One user keeps the broker busy in each way that it has, while another one asks, and an administrator wants to get in.
 *
 * How much of the first one's is served between two replies to the other is counted, not timed: a victim sends many
 * STATUS at once, and each reply tells how many requests have been served so far, and how many sessions there are.
 *
 * LISTERS (1000) connections list for LISTERS_SECONDS (1). In make check-long they are nearly as many as a user may
 * have, for longer than the keeper waits for a heartbeat.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

enum {
    DYING = 1000, /* sessions of the process that is killed */
    DEPTH = 4,    /* requests that each of the listers has on its way */
    ASKED = 60,   /* by the victim at once */
};

#define CONFIG "[limits]\nconnections = 8192\nuid_sessions = 4096\n"

static struct broker_process broker;
static pid_t served_by;
static int victim;

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static unsigned n_listers(void)
{
    return setting("LISTERS", 1000);
}

/* ---- the victim -------------------------------------------------------------------------------------------------- */

struct seen {
    uint64_t requests, sessions;
};

/* All of them are there before the first is served. */
static void ask(int fd)
{
    assert_ok(kill(served_by, SIGSTOP));
    for (unsigned i = 0; i < ASKED; i++)
        raw_send(fd, METHOD_STATUS, NULL, 0, NULL, 0);
    assert_ok(kill(served_by, SIGCONT));
}

static void hear_answers(int fd, struct seen *seen)
{
    static struct raw_reply reply;

    for (unsigned i = 0; i < ASKED; i++) {
        Memoryd__V1__StatusReply *status;

        raw_receive(fd, &reply);
        assert_int_equal(reply.status, 0);
        status = memoryd__v1__status_reply__unpack(NULL, (size_t)reply.size - MEMORYD_HEADER_SIZE, reply.payload);
        assert_non_null(status);
        seen[i] = (struct seen){.requests = status->requests, .sessions = status->sessions};
        memoryd__v1__status_reply__free_unpacked(status, NULL);
    }
}

static int setup(void **state)
{
    if (geteuid())
        return 0;
    (void)fd_raise_limit();
    broker_start(&broker, CONFIG, 0);
    served_by = broker_child(&broker);
    victim = raw_client_as(&broker, UID_VICTIM);
    return 0;
}

/* The same broker still serves. */
static int teardown(void **state)
{
    if (geteuid())
        return 0;
    assert_true(raw_is_served(victim));
    close(victim);
    assert_int_equal(broker_child(&broker), served_by);
    broker_stop(&broker);
    return 0;
}

/* ---- attackers --------------------------------------------------------------------------------------------------- */

static void hostile_ask(int fd, uint16_t method)
{
    static uint64_t sequence;
    const struct frame_header header = {.method = method, .sequence = ++sequence};
    uint8_t packet[MEMORYD_HEADER_SIZE];

    frame_encode(packet, FRAME_FROM_CLIENT, &header);
    CHECK(send(fd, packet, sizeof(packet), MSG_NOSIGNAL) == sizeof(packet));
}

static void hostile_hear(int fd)
{
    static uint8_t reply[MEMORYD_FRAME_MAX];

    CHECK(recv(fd, reply, sizeof(reply), 0) > 0);
}

static int hostile_open(void)
{
    int fd = raw_connect_in_child(&broker);

    hostile_ask(fd, METHOD_HELLO);
    hostile_hear(fd);
    return fd;
}

static void have_sessions(int channel, void *context)
{
    become(UID_STRANGER);
    for (unsigned i = 0; i < DYING; i++)
        (void)hostile_open();
    tell(channel);
    hear(channel);
}

/* Each connection always has several requests on their way. */
static void list(int channel, void *context)
{
    struct epoll_event events[64];
    int set = epoll_create1(EPOLL_CLOEXEC);

    become(UID_STRANGER);
    for (unsigned i = 0; i < n_listers(); i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = hostile_open()};

        CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event));
        for (unsigned n = 0; n < DEPTH; n++)
            hostile_ask(event.data.fd, METHOD_LIST_SESSIONS);
    }
    tell(channel);
    for (;;) {
        int n = epoll_wait(set, events, 64, -1);

        for (int i = 0; i < n; i++) {
            hostile_hear(events[i].data.fd);
            hostile_ask(events[i].data.fd, METHOD_LIST_SESSIONS);
        }
    }
}

static void storm(int channel, void *context)
{
    become(UID_STRANGER);
    tell(channel);
    for (;;)
        close(raw_connect_in_child(&broker));
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* While a process's sessions end, the others are served after every few of them. */
static void I7_a_thousand_sessions_end_between_the_replies_of_others(void **state)
{
    static struct seen seen[ASKED];
    struct child child;

    test_needs_root();
    child_start(&child, have_sessions, NULL);
    child_hear(&child);
    assert_ok(kill(served_by, SIGSTOP));
    child_kill(&child);
    ask(victim);
    hear_answers(victim, seen);
    assert_in_range(seen[0].sessions, DYING / 2, DYING + 1);
    for (unsigned i = 1; i < ASKED; i++)
        assert_in_range(seen[i - 1].sessions - seen[i].sessions, 0, DYING / 4);
    /* and all of them do end */
    do {
        ask(victim);
        hear_answers(victim, seen);
    } while (seen[ASKED - 1].sessions > 1);
}

static void I7_listings_without_end_are_served_between_the_replies_of_others(void **state)
{
    static struct seen seen[ASKED];
    int64_t end;
    struct child child;
    uint64_t before;

    test_needs_root();
    child_start(&child, list, NULL);
    child_hear(&child);
    end = wait_now_ms() + 1000 * setting("LISTERS_SECONDS", 1);
    do {
        ask(victim);
        hear_answers(victim, seen);
        for (unsigned i = 1; i < ASKED; i++)
            assert_in_range(seen[i].requests - seen[i - 1].requests, 1, n_listers() / 2);
        before = seen[0].requests;
    } while (wait_now_ms() < end);
    /* they are served as well */
    assert_true(seen[ASKED - 1].requests - before > ASKED);
    assert_int_equal(broker_child(&broker), served_by);
    assert_false(broker_said(&broker, "unresponsive"));
    child_kill(&child);
}

/* However fast a user connects, and whatever it asks for on the connections that it has. */
static void I7_an_administrator_gets_in_during_a_storm(void **state)
{
    static struct seen seen[ASKED];
    struct child listers, connects;

    test_needs_root();
    child_start(&listers, list, NULL);
    child_hear(&listers);
    child_start(&connects, storm, NULL);
    child_hear(&connects);
    for (unsigned i = 0; i < 10; i++) {
        int fd = raw_client(&broker);

        ask(fd);
        hear_answers(fd, seen);
        for (unsigned n = 1; n < ASKED; n++)
            assert_in_range(seen[n].requests - seen[n - 1].requests, 1, n_listers() / 2);
        assert_int_equal(raw_call(fd, METHOD_LIST_SESSIONS, NULL, 0), 0);
        assert_int_equal(raw_call(fd, METHOD_GOODBYE, NULL, 0), 0);
        close(fd);
    }
    child_kill(&connects);
    child_kill(&listers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(I7_a_thousand_sessions_end_between_the_replies_of_others, setup, teardown),
        cmocka_unit_test_setup_teardown(I7_listings_without_end_are_served_between_the_replies_of_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(I7_an_administrator_gets_in_during_a_storm, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
