/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of the one who listens: full, or without descriptors left to accept with, or left behind by an
 * acceptor that died. Both net/listener and the client's way of connecting follow from it.
 */
#include "tests/kernel/meeting.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"

#include <sys/resource.h>

/* When the listen queue is full a non-blocking connect() says EAGAIN, and no poll tells when there is
 * room again: the client library backs off with jitter. A queued connection can already be written to. */
static void a_full_listen_queue_cannot_be_polled_for(void **state)
{
    struct meeting meeting;
    int fds[64], waiting;
    unsigned n = 0;

    meet(&meeting, 4);
    while (n < 64 && (fds[n] = connect_to(&meeting, SOCK_NONBLOCK)) >= 0) {
        assert_int_equal(send(fds[n], "hello", 5, MSG_NOSIGNAL), 5);
        n++;
    }
    assert_in_range(n, 4, 6);
    assert_int_equal(errno, EAGAIN);

    waiting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_ok(waiting);
    assert_errno(connect(waiting, (const struct sockaddr *)&meeting.address, meeting.size), EAGAIN);
    /* poll answers at once, with nothing that depends on the queue: before and after there is room */
    assert_true(wait_for_events(waiting, POLLIN, 0) & POLLHUP);
    close(accept_one(&meeting));
    assert_true(wait_for_events(waiting, POLLIN, 0) & POLLHUP);
    assert_ok(connect(waiting, (const struct sockaddr *)&meeting.address, meeting.size));

    close(waiting);
    while (n > 0)
        close(fds[--n]);
    close(meeting.listener);
}

/* A blocking connect() waits for room, SO_SNDTIMEO bounds it. */
static void a_blocking_connect_is_bounded_by_the_send_timeout(void **state)
{
    struct timeval timeout = {.tv_usec = 20000};
    struct meeting meeting;
    int fds[64], waiting;
    unsigned n = 0;

    meet(&meeting, 1);
    while (n < 64 && (fds[n] = connect_to(&meeting, SOCK_NONBLOCK)) >= 0)
        n++;
    waiting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_ok(waiting);
    assert_ok(setsockopt(waiting, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)));
    assert_errno(connect(waiting, (const struct sockaddr *)&meeting.address, meeting.size), EAGAIN);
    close(waiting);
    while (n > 0)
        close(fds[--n]);
    close(meeting.listener);
}

static void accept_one_and_die(int channel, void *context)
{
    const struct meeting *meeting = context;

    CHECK(wait_readable(meeting->listener));
    CHECK(accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC) >= 0);
    tell(channel);
    hear(channel);
}

/* A listening socket that somebody else keeps survives the death of the process that accepts: who was
 * accepted sees the end, who is still queued notices nothing. A restarted broker takes over the queue. */
static void a_queued_connection_survives_the_death_of_the_acceptor(void **state)
{
    struct meeting meeting;
    struct child child;
    int accepted, queued, again;
    char byte;

    meet(&meeting, 4);
    accepted = connect_to(&meeting, 0);
    assert_ok(accepted);
    assert_int_equal(send(accepted, "1", 1, MSG_NOSIGNAL), 1);
    child_start(&child, accept_one_and_die, &meeting);
    child_hear(&child);
    queued = connect_to(&meeting, 0);
    assert_ok(queued);
    assert_int_equal(send(queued, "2", 1, MSG_NOSIGNAL), 1);
    child_kill(&child);

    assert_errno(recv(accepted, &byte, 1, MSG_DONTWAIT), ECONNRESET); /* its "1" was never read */
    assert_int_equal(recv(accepted, &byte, 1, MSG_DONTWAIT), 0);
    assert_errno(recv(queued, &byte, 1, MSG_DONTWAIT), EAGAIN);
    again = accept_one(&meeting);
    assert_int_equal(recv(again, &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(byte, '2');
    close(again);
    close(accepted);
    close(queued);
    close(meeting.listener);
}

static void accept_without_descriptors(int channel, void *context)
{
    const struct meeting *meeting = context;
    struct rlimit limit;
    int spare, fd;

    do /* until there is no free number below */
        CHECK((spare = dup(channel)) >= 0);
    while (spare < channel);
    limit.rlim_cur = limit.rlim_max = (rlim_t)spare + 1;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(wait_readable(meeting->listener));
    CHECK_ERRNO(accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC), EMFILE);
    CHECK(wait_for_events(meeting->listener, POLLIN, 0) & POLLIN);
    close(spare);
    fd = accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(send(fd, "welcome", 7, MSG_NOSIGNAL) == 7);
}

/* accept() without a free descriptor fails and leaves the connection in the queue, so the listener stays
 * readable: a loop that only goes on would spin. With a spare descriptor given up, it can be accepted. */
static void accept_without_descriptors_leaves_the_queue_readable(void **state)
{
    struct meeting meeting;
    char bytes[8];
    int fd;

    meet(&meeting, 4);
    fd = connect_to(&meeting, 0);
    assert_ok(fd);
    child_run(accept_without_descriptors, &meeting);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 7);
    close(fd);
    close(meeting.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_listen_queue_cannot_be_polled_for),
        cmocka_unit_test(a_blocking_connect_is_bounded_by_the_send_timeout),
        cmocka_unit_test(a_queued_connection_survives_the_death_of_the_acceptor),
        cmocka_unit_test(accept_without_descriptors_leaves_the_queue_readable),
    };

    return test_run(tests, NULL, NULL);
}
