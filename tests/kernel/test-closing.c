/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a broker's loop never closes what a client sent, nor a client's socket: the last close of a file may wait,
 * and for a file that a client made it waits for as long as the client likes. Here it is a TCP socket that is
 * set to linger, because every user can make one. A file of a file system in user space does it too, and its
 * wait is not ended by a signal.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

static void wake_up(int signal)
{
    (void)signal;
}

static void let_signals_interrupt(void)
{
    struct sigaction action = {.sa_handler = wake_up};

    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

/* The child has said that it is about to close. It does not get through, until a signal comes. */
static void check_that_it_hangs(struct child *child)
{
    child_hear(child);
    assert_true(stays_quiet(child->channel));
    /* once would do, but it might come a moment before the close */
    assert_true(WAIT_UNTIL(kill(child->pid, SIGUSR1) == 0 && wait_for_events(child->channel, POLLIN, 0) & POLLIN));
    child_hear(child);
    child_finish(child);
}

static void close_what_comes(int channel, void *context)
{
    int fd;

    (void)context;
    let_signals_interrupt();
    fd = fd_receive_one(channel);
    CHECK(fd >= 0);
    hear(channel); /* the sender has closed its own */
    tell(channel);
    close(fd);
    tell(channel);
}

/* Somebody sends a descriptor and goes: now its receiver has the last one. */
static void I8_closing_a_received_descriptor_may_wait_for_its_sender(void **state)
{
    struct child child;
    FD_AUTO int reader = -1;
    int fd;

    child_start(&child, close_what_comes, NULL);
    fd = fd_that_lingers(&reader);
    assert_int_equal(fd_send_one(child.channel, fd), 1);
    close(fd);
    child_tell(&child);
    check_that_it_hangs(&child);
}

static void close_the_connection(int channel, void *context)
{
    int *ends = context;

    let_signals_interrupt();
    close(ends[1]);
    hear(channel); /* something lies unread in ends[0] */
    tell(channel);
    close(ends[0]);
    tell(channel);
}

/* Nobody even received it: a connection that is dropped takes what is queued on it along. */
static void I8_closing_a_connection_with_unread_descriptors_may_wait_too(void **state)
{
    struct child child;
    FD_AUTO int reader = -1;
    int ends[2], fd;

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    child_start(&child, close_the_connection, ends);
    close(ends[0]);
    fd = fd_that_lingers(&reader);
    assert_int_equal(fd_send_one(ends[1], fd), 1);
    close(fd);
    child_tell(&child);
    check_that_it_hangs(&child);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I8_closing_a_received_descriptor_may_wait_for_its_sender),
        cmocka_unit_test(I8_closing_a_connection_with_unread_descriptors_may_wait_too),
    };

    return test_run(tests, NULL, NULL);
}
