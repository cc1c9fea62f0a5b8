/* SPDX-License-Identifier: Apache-2.0 */
/* A program ends its wait at the broker's door, and for another thread that has its turn there. */
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fileid.h"
#include "rpc/channel.h"
#include "rpc/door.h"
#include "rpc/interrupt.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"

struct world {
    int broker, door; /* our ends */
    struct channel *channel;
    unsigned asked;
};

/* Not at once: the wait goes on first. */
static bool interrupt_soon(void *asked)
{
    return ++*(unsigned *)asked > 1;
}

/* The channel has a door from before. */
static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    int ends[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    w->broker = ends[1];
    assert_int_equal(channel_new(ends[0], &(struct channel_owner){.data = w}, &w->channel), 0);
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
    w->door = ends[1];
    w->channel->door.socket = ends[0];
    w->channel->door.id = file_id_of(ends[0]);
    interrupt_set(interrupt_soon, &w->asked);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    interrupt_set(NULL, NULL);
    channel_unref(w->channel);
    close(w->broker);
    close(w->door);
    free(w);
    return 0;
}

static int show(struct world *w)
{
    FD_AUTO int fd = memfd_new(page_size(), 0);
    uint64_t ticket;

    return door_show(w->channel, fd, DOOR_IMPORT, DEADLINE_NEVER, &ticket);
}

static void at_a_door_that_does_not_answer(void **state)
{
    struct world *w = *state;
    char packet[64];

    w->asked = 1;
    assert_int_equal(show(w), -EINTR);
    assert_int_equal(w->asked, 2);
    assert_true(recv(w->door, packet, sizeof(packet), MSG_DONTWAIT) > 0);
    /* no other door was asked for, and what this one answers too late goes nowhere */
    assert_true(recv(w->broker, packet, sizeof(packet), MSG_DONTWAIT) < 0 && errno == EAGAIN);
    assert_int_equal(w->channel->door.socket, -1);
    assert_false(w->channel->door.busy);
}

static void while_another_thread_has_its_turn(void **state)
{
    struct world *w = *state;

    w->channel->door.busy = true;
    assert_int_equal(show(w), -EINTR);
    assert_int_equal(w->asked, 2);
    assert_true(w->channel->door.busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_a_door_that_does_not_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(while_another_thread_has_its_turn, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
