/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: who has left is not counted. A user's process has nearly all sessions that there may be, with buffers that take a
 * while to give back, and is killed; at that very moment another user asks for as many sessions as it may have then.
 *
 * Nothing is timed: the broker is stopped while they come and go, and finds all of it at once.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "tests/integration/broker.h"
#include "tests/support/child.h"

/* The greedy one has all but a few; the other one's share is half of all when that one is gone. */
enum { ALL = 64, TAKEN = 60, WANTED = ALL / 2, HELD = 32 };

#define CONFIG "[limits]\nconnections = 64\n[user 61002]\nshare = 100%\n"

static struct broker_process broker;

static int setup(void **state)
{
    if (!geteuid())
        broker_start(&broker, CONFIG, 0);
    return 0;
}

static int teardown(void **state)
{
    if (!geteuid())
        broker_stop(&broker);
    return 0;
}

static void take_sessions(int channel, void *context)
{
    Memoryd__V1__AllocRequest request = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint64_t sizes[HELD];
    uint8_t payload[1024];
    size_t size;

    for (unsigned i = 0; i < HELD; i++)
        sizes[i] = 4096;
    request.sizes = sizes;
    request.n_sizes = HELD;
    size = memoryd__v1__alloc_request__pack(&request, payload);
    become(UID_STRANGER);
    for (unsigned i = 0; i < TAKEN; i++) {
        int fd = raw_connect(&broker);

        CHECK(!raw_call(fd, METHOD_HELLO, NULL, 0));
        CHECK(!raw_call(fd, METHOD_ALLOC, payload, size));
    }
    tell(channel);
    hear(channel);
}

/* Once the greedy one has gone: how many of the sessions that the other one asks for are refused? */
static unsigned count_refused(struct child *greedy)
{
    static struct raw_reply reply;
    pid_t served_by = broker_child(&broker);
    unsigned refused = 0;
    int fds[WANTED];

    assert_ok(kill(served_by, SIGSTOP));
    child_kill(greedy);
    for (unsigned i = 0; i < WANTED; i++) {
        fds[i] = raw_connect_as(&broker, UID_VICTIM);
        raw_send(fds[i], METHOD_HELLO, NULL, 0, NULL, 0);
    }
    assert_ok(kill(served_by, SIGCONT));
    for (unsigned i = 0; i < WANTED; i++) {
        raw_receive(fds[i], &reply);
        refused += reply.size <= 0 || reply.status;
    }
    for (unsigned i = 0; i < WANTED; i++)
        close(fds[i]);
    assert_int_equal(broker_child(&broker), served_by);
    return refused;
}

static void I7_who_has_left_is_not_counted(void **state)
{
    struct child greedy;

    test_needs_root();
    child_start(&greedy, take_sessions, NULL);
    child_hear(&greedy);
    assert_int_equal(count_refused(&greedy), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I7_who_has_left_is_not_counted),
    };

    return test_run(tests, setup, teardown);
}
