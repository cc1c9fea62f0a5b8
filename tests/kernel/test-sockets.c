/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the wire is SOCK_SEQPACKET and why one function sends and one receives: what the kernel does to
 * message boundaries, to descriptors that travel with them, and to a sender whose peer does not read.
 * The stream facts are here because they are the reasons against the obvious alternative.
 */
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* proto/limits: no frame is larger. */
#define FRAME_MAX (64 * 1024)

static void make_pair(int type, int ends[2])
{
    assert_ok(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends));
}

static void close_pair(int ends[2])
{
    fd_closep(&ends[0]);
    fd_closep(&ends[1]);
}

/* A pipe's read end to send, and its write end to see what became of it: once the read end has been
 * destroyed everywhere, writing fails with EPIPE. */
static int marker(int *watch)
{
    int ends[2];

    assert_ok(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    *watch = ends[1];
    return ends[0];
}

static bool destroyed(int watch)
{
    return wait_for_events(watch, POLLOUT, 0) & POLLERR;
}

/* ---- streams, the reasons against them --------------------------------------------------------------------------- */

/* A read of so many bytes at most gets `size` of them, and so many descriptors. */
static void receive_expecting(int end, size_t most, ssize_t size, size_t fds)
{
    char bytes[16];
    struct fd_received received = fd_receive(end, bytes, most, 4, 0);

    assert_int_equal(received.size, size);
    assert_int_equal(received.n, fds);
    fd_received_close(&received);
}

/* A reader that takes all it can gets message A together with message B's descriptor, and cannot tell
 * whose it is. Reading stops after a message that carries descriptors, never before it. */
static void stream_merges_a_message_with_the_next_ones_fds(void **state)
{
    int ends[2], watch, fd;

    make_pair(SOCK_STREAM, ends);
    fd = marker(&watch);
    assert_int_equal(fd_send(ends[0], "A", 1, NULL, 0, 0), 1);
    assert_int_equal(fd_send(ends[0], "B", 1, &fd, 1, 0), 1);
    assert_int_equal(fd_send(ends[0], "C", 1, NULL, 0, 0), 1);

    receive_expecting(ends[1], 16, 2, 1);
    receive_expecting(ends[1], 16, 1, 0);

    close_pair(ends);
    fd_closep(&fd);
    fd_closep(&watch);
}

/* On a stream the descriptors come with the first piece of a message, however small it is read. */
static void stream_gives_the_fds_with_the_first_byte(void **state)
{
    int ends[2], watch, fd;

    make_pair(SOCK_STREAM, ends);
    fd = marker(&watch);
    assert_int_equal(fd_send(ends[0], "0123", 4, &fd, 1, 0), 4);
    receive_expecting(ends[1], 1, 1, 1);
    receive_expecting(ends[1], 16, 3, 0);

    close_pair(ends);
    fd_closep(&fd);
    fd_closep(&watch);
}

/* A write that a stream takes only in part has already taken all of its descriptors: to send the rest
 * with them again would send them twice. */
static void stream_partial_write_takes_all_the_fds(void **state)
{
    const size_t size = 10 * 1024 * 1024;
    struct fd_received received;
    int ends[2], watch, fd;
    ssize_t sent, got = 0;
    char *bytes = calloc(1, size);

    assert_non_null(bytes);
    make_pair(SOCK_STREAM, ends);
    fd = marker(&watch);
    sent = fd_send(ends[0], bytes, size, &fd, 1, MSG_DONTWAIT);
    assert_in_range(sent, 1, size - 1);
    received = fd_receive(ends[1], bytes, size, 4, MSG_DONTWAIT);
    assert_int_equal(received.n, 1);
    fd_received_close(&received);
    for (got = received.size; got < sent; got += received.size) {
        received = fd_receive(ends[1], bytes, size, 4, MSG_DONTWAIT);
        assert_true(received.size > 0);
        assert_int_equal(received.n, 0);
    }

    free(bytes);
    close_pair(ends);
    fd_closep(&fd);
    fd_closep(&watch);
}

/* An empty send on a stream is nothing at all: descriptors cannot go without a byte. */
static void stream_empty_send_carries_nothing(void **state)
{
    int ends[2], watch, fd;
    struct fd_received received;
    char byte;

    make_pair(SOCK_STREAM, ends);
    fd = marker(&watch);
    assert_int_equal(fd_send(ends[0], "", 0, &fd, 1, 0), 0);
    received = fd_receive(ends[1], &byte, 1, 4, MSG_DONTWAIT);
    assert_int_equal(received.size, -1);
    assert_int_equal(errno, EAGAIN);

    close_pair(ends);
    fd_closep(&fd);
    fd_closep(&watch);
}

/* read, recv and readv destroy the descriptors that came with the bytes. libevent's bufferevents read in
 * this way, so daemon/net has none. */
static void plain_reads_destroy_fds(void **state)
{
    static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};

    for (size_t t = 0; t < 2; t++)
        for (int how = 0; how < 3; how++) {
            int ends[2], watch, fd;
            char byte;
            struct iovec iov = {&byte, 1};

            make_pair(types[t], ends);
            fd = marker(&watch);
            assert_int_equal(fd_send_one(ends[0], fd), 1);
            fd_closep(&fd);
            assert_false(destroyed(watch));
            if (how == 0)
                assert_int_equal(read(ends[1], &byte, 1), 1);
            else if (how == 1)
                assert_int_equal(recv(ends[1], &byte, 1, 0), 1);
            else
                assert_int_equal(readv(ends[1], &iov, 1), 1);
            assert_true(WAIT_UNTIL(destroyed(watch)));
            close_pair(ends);
            fd_closep(&watch);
        }
}

/* ---- sequenced packets ------------------------------------------------------------------------------------------- */

/* One packet is one message with its own descriptors, in every mixture. The whole of proto/ leans on it. */
static void seqpacket_keeps_messages_and_their_fds_apart(void **state)
{
    static const unsigned counts[] = {0, 1, 0, 3, 64, 0, 2};
    struct fd_received received;
    int ends[2], fds[64];
    char bytes[64];

    make_pair(SOCK_SEQPACKET, ends);
    for (size_t i = 0; i < 64; i++)
        fds[i] = ends[0];
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        assert_int_equal(fd_send(ends[0], bytes, i + 1, fds, counts[i], 0), i + 1);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        received = fd_receive(ends[1], bytes, sizeof(bytes), 64, 0);
        assert_int_equal(received.size, i + 1);
        assert_int_equal(received.n, counts[i]);
        assert_int_equal(received.flags & (MSG_TRUNC | MSG_CTRUNC), 0);
        fd_received_close(&received);
    }
    close_pair(ends);
}

/* A packet larger than the reader's buffer is cut, flagged, and the rest is gone: the receive buffer must
 * hold the largest frame, and MSG_TRUNC ends the peer. */
static void seqpacket_cuts_what_does_not_fit(void **state)
{
    struct fd_received received;
    char bytes[8];
    int ends[2];

    make_pair(SOCK_SEQPACKET, ends);
    assert_int_equal(fd_send(ends[0], "0123456789", 10, NULL, 0, 0), 10);
    assert_int_equal(fd_send(ends[0], "next", 4, NULL, 0, 0), 4);
    received = fd_receive(ends[1], bytes, sizeof(bytes), 0, 0);
    assert_int_equal(received.size, 8);
    assert_true(received.flags & MSG_TRUNC);
    received = fd_receive(ends[1], bytes, sizeof(bytes), 0, 0);
    assert_int_equal(received.size, 4);
    assert_memory_equal(bytes, "next", 4);
    close_pair(ends);
}

/* The largest frame with the most descriptors fits into a socket as it is made, without SO_SNDBUF; what
 * is larger than the send buffer is refused whole. */
static void seqpacket_takes_a_whole_frame_and_refuses_a_monster(void **state)
{
    const size_t monster = 64 * 1024 * 1024;
    struct fd_received received;
    char *bytes = calloc(1, monster);
    int ends[2], fds[64];

    assert_non_null(bytes);
    make_pair(SOCK_SEQPACKET, ends);
    for (size_t i = 0; i < 64; i++)
        fds[i] = ends[0];
    assert_int_equal(fd_send(ends[0], bytes, FRAME_MAX, fds, 64, MSG_DONTWAIT), FRAME_MAX);
    received = fd_receive(ends[1], bytes, FRAME_MAX, 64, 0);
    assert_int_equal(received.size, FRAME_MAX);
    assert_int_equal(received.n, 64);
    fd_received_close(&received);
    assert_errno(fd_send(ends[0], bytes, monster, NULL, 0, MSG_DONTWAIT), EMSGSIZE);
    free(bytes);
    close_pair(ends);
}

/* An empty packet and the end of the connection look the same to the reader, hence no empty frames. */
static void seqpacket_empty_packet_looks_like_the_end(void **state)
{
    struct fd_received received;
    int ends[2];
    char byte;

    make_pair(SOCK_SEQPACKET, ends);
    assert_int_equal(fd_send(ends[0], "", 0, NULL, 0, 0), 0);
    received = fd_receive(ends[1], &byte, 1, 4, 0);
    assert_int_equal(received.size, 0);
    fd_closep(&ends[0]);
    received = fd_receive(ends[1], &byte, 1, 4, 0);
    assert_int_equal(received.size, 0);
    close_pair(ends);
}

/* Too little room for the descriptors: some arrive and stay open, MSG_CTRUNC says that more were sent.
 * proto/sockio closes those and drops the peer. */
static void too_little_control_room_leaves_some_fds_open(void **state)
{
    struct fd_received received;
    int ends[2], watch, fd, fds[8];
    unsigned before;
    char byte;

    make_pair(SOCK_SEQPACKET, ends);
    fd = marker(&watch);
    for (size_t i = 0; i < 8; i++)
        fds[i] = fd;
    assert_int_equal(fd_send(ends[0], "x", 1, fds, 8, 0), 1);
    before = fd_count();
    received = fd_receive(ends[1], &byte, 1, 3, 0);
    assert_int_equal(received.size, 1);
    assert_true(received.flags & MSG_CTRUNC);
    assert_in_range(received.n, 3, 4); /* alignment may leave room for one more */
    assert_int_equal(fd_count(), before + received.n);
    fd_received_close(&received);
    fd_closep(&fd);
    assert_true(WAIT_UNTIL(destroyed(watch))); /* what did not arrive is gone, not kept */
    fd_closep(&watch);
    close_pair(ends);
}

static void receive_with_three_free_slots(int channel, void *context)
{
    struct fd_received received;
    struct rlimit limit;
    char byte;
    int next;

    do /* until there is no free number below */
        CHECK((next = dup(channel)) >= 0);
    while (next < channel);
    close(next);
    limit.rlim_cur = limit.rlim_max = (rlim_t)next + 3;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(wait_readable(channel));
    received = fd_receive(channel, &byte, 1, 8, 0);
    CHECK(received.size == 1);
    CHECK(received.n == 3);
    CHECK(received.flags & MSG_CTRUNC);
}

/* A receiver without free descriptors gets the same as one without room: some, flagged. */
static void too_few_free_slots_leave_some_fds_open(void **state)
{
    struct child child;
    int fds[8];

    child_start(&child, receive_with_three_free_slots, NULL);
    for (size_t i = 0; i < 8; i++)
        fds[i] = child.channel;
    assert_int_equal(fd_send(child.channel, "x", 1, fds, 8, 0), 1);
    child_finish(&child);
}

/* 253 descriptors go in one message, 254 do not. The protocol's 64 leaves room. */
static void at_most_253_fds_in_a_message(void **state)
{
    struct fd_received received;
    int ends[2], fds[254];
    char byte;

    make_pair(SOCK_SEQPACKET, ends);
    for (size_t i = 0; i < 254; i++)
        fds[i] = ends[0];
    assert_int_equal(fd_send(ends[0], "x", 1, fds, 253, 0), 1);
    received = fd_receive(ends[1], &byte, 1, 253, 0);
    assert_int_equal(received.n, 253);
    fd_received_close(&received);
    assert_errno(fd_send(ends[0], "x", 1, fds, 254, 0), EINVAL);
    close_pair(ends);
}

/* ---- a peer that does not read ----------------------------------------------------------------------------------- */

/* A peer that reads nothing stops its sender after a number of packets, not of bytes: small ones cost
 * what the kernel spends on each. EPOLLOUT comes once most is drained, not after one read. Both decide
 * net/outbox. */
static void a_stalled_reader_stops_the_sender_until_it_drains(void **state)
{
    int small[2], large[2], n_small = 0, n_large = 0, taken = 0;
    char bytes[8192] = {0};

    make_pair(SOCK_SEQPACKET, small);
    make_pair(SOCK_SEQPACKET, large);
    while (send(small[0], bytes, 1, MSG_DONTWAIT) == 1)
        n_small++;
    assert_int_equal(errno, EAGAIN);
    while (send(large[0], bytes, sizeof(bytes), MSG_DONTWAIT) == sizeof(bytes))
        n_large++;
    assert_int_equal(errno, EAGAIN);
    assert_true(n_small > n_large);
    assert_true(n_small < 8192 * n_large / 16); /* by bytes alone it would be 8192 times as many */

    assert_int_equal(wait_for_events(small[0], POLLOUT, 0), 0);
    assert_int_equal(recv(small[1], bytes, 1, 0), 1);
    assert_int_equal(wait_for_events(small[0], POLLOUT, 0), 0);
    while (wait_for_events(small[0], POLLOUT, 0) == 0) {
        assert_int_equal(recv(small[1], bytes, 1, MSG_DONTWAIT), 1);
        taken++;
    }
    assert_true(taken > n_small / 2);
    close_pair(small);
    close_pair(large);
}

/* epoll tells a writer, edge by edge, when its peer has drained: the outbox needs no timer. */
static void epoll_tells_when_the_peer_has_drained(void **state)
{
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
    int ends[2], epoll = epoll_create1(EPOLL_CLOEXEC);
    char byte = 0;

    make_pair(SOCK_SEQPACKET, ends);
    assert_ok(epoll);
    assert_ok(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    assert_int_equal(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1);
    while (send(ends[0], &byte, 1, MSG_DONTWAIT) == 1)
        ;
    assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
    while (recv(ends[1], &byte, 1, MSG_DONTWAIT) == 1)
        ;
    assert_int_equal(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1);
    assert_true(event.events & EPOLLOUT);
    close(epoll);
    close_pair(ends);
}

/* SIOCOUTQ says whether the peer has taken what was sent. So net/outbox keeps charging descriptors until
 * they have really left. */
static void siocoutq_tells_what_the_peer_has_not_taken(void **state)
{
    static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};

    for (size_t t = 0; t < 2; t++) {
        int ends[2], queued = -1;
        char byte;

        make_pair(types[t], ends);
        assert_ok(ioctl(ends[0], SIOCOUTQ, &queued));
        assert_int_equal(queued, 0);
        assert_int_equal(fd_send_one(ends[0], ends[0]), 1);
        assert_ok(ioctl(ends[0], SIOCOUTQ, &queued));
        assert_true(queued > 0);
        assert_int_equal(recv(ends[1], &byte, 1, 0), 1);
        assert_ok(ioctl(ends[0], SIOCOUTQ, &queued));
        assert_int_equal(queued, 0);
        close_pair(ends);
    }
}

static void fill_the_budget_of_descriptors(int channel, void *context)
{
    struct rlimit limit = {128, 128};
    struct fd_received received;
    int first[2], second[2], fds[16];
    unsigned sent = 0;
    char byte;

    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (geteuid() == 0)
        become(UID_STRANGER);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, first) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, second) == 0);
    for (size_t i = 0; i < 16; i++)
        fds[i] = channel;
    while (fd_send(first[0], "x", 1, fds, 16, MSG_DONTWAIT) == 1)
        sent += 16;
    CHECK(errno == ETOOMANYREFS);
    CHECK(sent <= 128 + 32);

    /* another socket, to a peer that reads: refused as well, at once, even without MSG_DONTWAIT */
    CHECK_ERRNO(fd_send(second[0], "x", 1, fds, 1, 0), ETOOMANYREFS);
    CHECK(fd_send(second[0], "x", 1, NULL, 0, 0) == 1); /* bytes still go */

    for (int i = 0; i < 3; i++) {
        received = fd_receive(first[1], &byte, 1, 16, 0);
        CHECK(received.n == 16);
        fd_received_close(&received);
    }
    CHECK(fd_send(second[0], "x", 1, fds, 1, 0) == 1);
}

/* Descriptors in flight are counted by the sending user, not by the socket, against RLIMIT_NOFILE: one
 * client that does not read would stop descriptors to all the others. Hence the budget in I7. */
static void I7_fds_in_flight_are_limited_per_sending_user(void **state)
{
    child_run(fill_the_budget_of_descriptors, NULL);
}

/* ---- descriptors that nobody wants ------------------------------------------------------------------------------- */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static int listen_as(struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const char *folder = getenv("TMPDIR");

    assert_ok(fd);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "%.80s/rights.%d", folder ? folder : "/tmp", getpid());
    (void)unlink(address->sun_path);
    assert_ok(bind(fd, (const struct sockaddr *)address, sizeof(*address)));
    assert_ok(listen(fd, 4));
    return fd;
}

static int connect_to(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_ok(fd);
    assert_ok(connect(fd, (const struct sockaddr *)address, sizeof(*address)));
    return fd;
}

static int passes_rights(int fd)
{
    int on = -1;
    socklen_t size = sizeof(on);

    assert_ok(getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, &size));
    return on;
}

/* The broker never receives a descriptor of a client: it says so on the listening socket, before it accepts. Whoever
 * connected before that may still send some, until the option is set on the accepted socket as well. */
static void a_listening_socket_refuses_descriptors_for_all_that_it_accepts(void **state)
{
    struct sockaddr_un address;
    FD_AUTO int listening = listen_as(&address);
    FD_AUTO int early = connect_to(&address);
    FD_AUTO int late = -1;
    FD_AUTO int of_early = -1;
    FD_AUTO int of_late = -1;
    const int off = 0;

    if (setsockopt(listening, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) < 0)
        test_skip("this kernel lets everybody send descriptors to everybody (before 6.16)");
    late = connect_to(&address);
    assert_true(fd_send_one(early, STDOUT_FILENO) > 0);
    assert_errno((int)fd_send_one(late, STDOUT_FILENO), EPERM);
    of_early = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    of_late = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(passes_rights(of_early), 1);
    assert_int_equal(passes_rights(of_late), 0);
    assert_ok(setsockopt(of_early, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)));
    assert_errno((int)fd_send_one(early, STDOUT_FILENO), EPERM);
    /* packets without any are as ever, and those to the client too */
    assert_int_equal(send(late, "x", 1, 0), 1);
    assert_true(fd_send_one(of_late, STDOUT_FILENO) > 0);
    (void)unlink(address.sun_path);
}

/* Where the kernel refuses none, the broker looks first: without room for descriptors it learns that they are there,
 * and has them not even for a moment. */
static void looking_without_room_finds_descriptors_and_receives_none(void **state)
{
    int ends[2], watch, fd;
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    unsigned before;

    make_pair(SOCK_SEQPACKET, ends);
    fd = marker(&watch);
    assert_true(fd_send_one(ends[0], fd) > 0);
    fd_closep(&fd);
    before = fd_count();
    for (unsigned i = 0; i < 2; i++) {
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

        assert_int_equal(recvmsg(ends[1], &message, MSG_PEEK | MSG_DONTWAIT), 1);
        assert_true(message.msg_flags & MSG_CTRUNC);
        assert_int_equal(fd_count(), before);
        assert_false(destroyed(watch));
    }
    close_pair(ends);
    assert_true(destroyed(watch));
    close(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listening_socket_refuses_descriptors_for_all_that_it_accepts),
        cmocka_unit_test(looking_without_room_finds_descriptors_and_receives_none),
        cmocka_unit_test(stream_merges_a_message_with_the_next_ones_fds),
        cmocka_unit_test(stream_gives_the_fds_with_the_first_byte),
        cmocka_unit_test(stream_partial_write_takes_all_the_fds),
        cmocka_unit_test(stream_empty_send_carries_nothing),
        cmocka_unit_test(plain_reads_destroy_fds),
        cmocka_unit_test(seqpacket_keeps_messages_and_their_fds_apart),
        cmocka_unit_test(seqpacket_cuts_what_does_not_fit),
        cmocka_unit_test(seqpacket_takes_a_whole_frame_and_refuses_a_monster),
        cmocka_unit_test(seqpacket_empty_packet_looks_like_the_end),
        cmocka_unit_test(too_little_control_room_leaves_some_fds_open),
        cmocka_unit_test(too_few_free_slots_leave_some_fds_open),
        cmocka_unit_test(at_most_253_fds_in_a_message),
        cmocka_unit_test(a_stalled_reader_stops_the_sender_until_it_drains),
        cmocka_unit_test(epoll_tells_when_the_peer_has_drained),
        cmocka_unit_test(siocoutq_tells_what_the_peer_has_not_taken),
        cmocka_unit_test(I7_fds_in_flight_are_limited_per_sending_user),
    };

    return test_run(tests, NULL, NULL);
}
