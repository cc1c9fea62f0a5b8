/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every outcome of receiving and sending, met with a real socket pair, and that none of them leaves
 * a descriptor open that nobody owns.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/sockio.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"

struct pair {
    int us;   /* the side that sockio is used on */
    int peer; /* the side where tests/support does what it likes */
    unsigned fds;
};

static int setup(void **state)
{
    static struct pair pair;
    int ends[2];

    pair.fds = fd_count();
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    pair.us = ends[0];
    pair.peer = ends[1];
    *state = &pair;
    return 0;
}

/* Whatever the test did, it leaves as many descriptors as it found. */
static int teardown(void **state)
{
    struct pair *pair = *state;

    pair->us = fd_close(pair->us);
    pair->peer = fd_close(pair->peer);
    return fd_count() == pair->fds ? 0 : -1;
}

static int new_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_ok(fd);
    return fd;
}

/* Sends a packet of one byte with n descriptors, all of the same file. */
static void peer_sends_fds(struct pair *pair, unsigned n)
{
    FD_AUTO int fd = new_fd();
    int fds[FD_PASS_MAX];

    for (unsigned i = 0; i < n; i++)
        fds[i] = fd;
    assert_int_equal(fd_send(pair->peer, "x", 1, fds, n, 0), 1);
}

static int receive(int socket, void *buffer, size_t size, size_t *length, struct fdset *fds)
{
    unsigned before = fd_count();
    size_t untouched = 0x5555;
    int r;

    *length = untouched;
    r = sockio_recv(socket, buffer, size, length, fds);
    if (r) {
        assert_int_equal(*length, untouched);
        assert_int_equal(fdset_count(fds), 0);
        assert_int_equal(fd_count(), before);
    } else {
        assert_int_equal(fd_count(), before + fdset_count(fds));
    }
    return r;
}

/* For the tests that only want to know how it ends. */
static int receive_nothing(struct pair *pair)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    char buffer[16];
    size_t length;

    return receive(pair->us, buffer, sizeof(buffer), &length, &fds);
}

static int send_text(int socket, const char *text, const int *fds, unsigned n_fds)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};

    return sockio_send(socket, &iov, 1, fds, n_fds);
}

/* ---- receiving ------------------------------------------------------------------------------------------------------
 */

static void test_packets_and_their_fds(void **state)
{
    struct pair *pair = *state;
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    char buffer[16];
    size_t length;

    assert_int_equal(fd_send(pair->peer, "first", 5, NULL, 0, 0), 5);
    peer_sends_fds(pair, 2);
    assert_int_equal(fd_send(pair->peer, "third", 5, NULL, 0, 0), 5);

    assert_int_equal(receive(pair->us, buffer, sizeof(buffer), &length, &fds), 0);
    assert_int_equal(length, 5);
    assert_memory_equal(buffer, "first", 5);
    assert_int_equal(fdset_count(&fds), 0);

    assert_int_equal(receive(pair->us, buffer, sizeof(buffer), &length, &fds), 0);
    assert_int_equal(length, 1);
    assert_int_equal(fdset_count(&fds), 2);
    for (unsigned i = 0; i < 2; i++)
        assert_true(fcntl(fdset_get(&fds, i), F_GETFD) & FD_CLOEXEC);
    fdset_deinit(&fds);

    assert_int_equal(receive(pair->us, buffer, sizeof(buffer), &length, &fds), 0);
    assert_memory_equal(buffer, "third", 5);
    assert_int_equal(fdset_count(&fds), 0);
}

static void test_a_packet_as_large_as_the_buffer(void **state)
{
    struct pair *pair = *state;
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    char buffer[4];
    size_t length;

    assert_int_equal(fd_send(pair->peer, "abcd", 4, NULL, 0, 0), 4);
    assert_int_equal(receive(pair->us, buffer, sizeof(buffer), &length, &fds), 0);
    assert_int_equal(length, 4);
}

static void test_the_most_fds(void **state)
{
    struct pair *pair = *state;
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    char byte;
    size_t length;

    peer_sends_fds(pair, MEMORYD_FDS_MAX);
    assert_int_equal(receive(pair->us, &byte, 1, &length, &fds), 0);
    assert_int_equal(fdset_count(&fds), MEMORYD_FDS_MAX);
}

static void test_nothing_there(void **state)
{
    assert_int_equal(receive_nothing(*state), SOCKIO_E_AGAIN);
}

static void test_too_many_fds(void **state)
{
    struct pair *pair = *state;

    peer_sends_fds(pair, MEMORYD_FDS_MAX + 1);
    peer_sends_fds(pair, 253);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_TOO_MANY_FDS);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_TOO_MANY_FDS);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_AGAIN);
}

static void test_truncated(void **state)
{
    struct pair *pair = *state;
    FD_AUTO int fd = new_fd();
    char seventeen[17] = {0};

    assert_int_equal(fd_send(pair->peer, seventeen, sizeof(seventeen), NULL, 0, 0), 17);
    assert_int_equal(fd_send(pair->peer, seventeen, sizeof(seventeen), &fd, 1, 0), 17);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_TRUNCATED);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_TRUNCATED);
    /* the rest of a packet never comes as another packet */
    assert_int_equal(receive_nothing(pair), SOCKIO_E_AGAIN);
}

static void test_end(void **state)
{
    struct pair *pair = *state;

    peer_sends_fds(pair, 1);
    pair->peer = fd_close(pair->peer);
    assert_int_equal(receive_nothing(pair), 0);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_EOF);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_EOF);
}

static void test_empty_packets_look_like_the_end(void **state)
{
    struct pair *pair = *state;
    FD_AUTO int fd = new_fd();

    assert_int_equal(fd_send(pair->peer, "", 0, NULL, 0, 0), 0);
    assert_int_equal(fd_send(pair->peer, "", 0, &fd, 1, 0), 0);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_EOF);
    /* and its descriptor is closed */
    assert_int_equal(receive_nothing(pair), SOCKIO_E_EOF);
}

static void test_reset_comes_before_the_last_packets(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(send_text(pair->us, "never read", NULL, 0), 0);
    peer_sends_fds(pair, 1);
    pair->peer = fd_close(pair->peer);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_RESET);
    assert_int_equal(receive_nothing(pair), 0);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_EOF);
}

/* Lowers the limit of open files, or skips: under a tool that only pretends to, the kernel goes on
 * as before. */
static void limit_open_files(unsigned most)
{
    char line[256], wanted[64];
    struct rlimit limit;
    bool lowered = false;
    FILE *file;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    snprintf(wanted, sizeof(wanted), "Max open files            %u ", most);
    file = fopen("/proc/self/limits", "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof(line), file))
        lowered |= !strncmp(line, wanted, strlen(wanted));
    fclose(file);
    if (!lowered)
        child_skip("the limit of open files is not the kernel's own here (valgrind)");
}

/* With room for only some of the descriptors, or none, the kernel installs what it can and flags
 * the message. */
static void lose_fds(int channel, void *context)
{
    enum { LIMIT = 256 };
    struct pair *pair = context;
    int own[LIMIT], sent[MEMORYD_FDS_MAX];
    struct fdset fds = FDSET_NULL;
    unsigned n = 0;
    size_t length;
    char byte;

    (void)channel;
    limit_open_files(LIMIT);
    while ((own[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    CHECK(errno == EMFILE && n >= MEMORYD_FDS_MAX);
    for (unsigned i = 0; i < MEMORYD_FDS_MAX; i++)
        sent[i] = own[0];

    /* with each round one more is free, up to one too few */
    for (unsigned room = 0; room < MEMORYD_FDS_MAX; room++) {
        CHECK(fd_send(pair->peer, "x", 1, sent, MEMORYD_FDS_MAX, 0) == 1);
        CHECK(fd_send(pair->peer, "y", 1, NULL, 0, 0) == 1);
        CHECK(sockio_recv(pair->us, &byte, 1, &length, &fds) == SOCKIO_E_FDS_LOST);
        CHECK(fdset_count(&fds) == 0);
        /* just as many are free as before */
        for (unsigned i = 0; i < room; i++)
            CHECK((own[n + i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
        CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 && errno == EMFILE);
        for (unsigned i = 0; i < room; i++)
            CHECK(close(own[n + i]) == 0);
        /* the next packet is whole */
        CHECK(sockio_recv(pair->us, &byte, 1, &length, &fds) == 0);
        CHECK(length == 1 && byte == 'y');
        CHECK(close(own[--n]) == 0);
    }
}

static void test_lost_fds_leave_none_open(void **state)
{
    child_run(lose_fds, *state);
}

static void test_receiving_on_what_is_no_socket(void **state)
{
    struct pair pair = {.us = new_fd()};

    assert_int_equal(receive_nothing(&pair), -ENOTSOCK);
    pair.us = fd_close(pair.us);
    assert_int_equal(receive_nothing(&pair), -EBADF);
}

/* ---- sending --------------------------------------------------------------------------------------------------------
 */

static void test_a_packet_of_pieces(void **state)
{
    struct pair *pair = *state;
    struct iovec iov[2] = {{.iov_base = (char[]){"header"}, .iov_len = 6},
                           {.iov_base = (char[]){"payload"}, .iov_len = 7}};
    FD_AUTO int fd = memfd_create("test-sockio", MFD_CLOEXEC);
    struct fd_received received;
    struct stat sent, got;
    char buffer[32];

    assert_ok(fd);
    assert_int_equal(sockio_send(pair->us, iov, 2, &fd, 1), 0);
    received = fd_receive(pair->peer, buffer, sizeof(buffer), 4, MSG_DONTWAIT);
    assert_int_equal(received.size, 13);
    assert_memory_equal(buffer, "headerpayload", 13);
    assert_int_equal(received.n, 1);
    assert_ok(fstat(fd, &sent));
    assert_ok(fstat(received.fds[0], &got));
    assert_true(sent.st_ino == got.st_ino);
    fd_received_close(&received);

    iov[1].iov_len = 0;
    assert_int_equal(sockio_send(pair->us, iov, 2, NULL, 0), 0);
    received = fd_receive(pair->peer, buffer, sizeof(buffer), 4, MSG_DONTWAIT);
    assert_int_equal(received.size, 6);
    assert_int_equal(received.n, 0);
}

static void test_fds_are_borrowed(void **state)
{
    struct pair *pair = *state;
    struct fd_received received;
    int fds[MEMORYD_FDS_MAX];
    char byte;

    for (unsigned i = 0; i < MEMORYD_FDS_MAX; i++)
        fds[i] = new_fd();
    assert_int_equal(send_text(pair->us, "x", fds, MEMORYD_FDS_MAX), 0);
    for (unsigned i = 0; i < MEMORYD_FDS_MAX; i++)
        assert_int_equal(close(fds[i]), 0);
    /* sent means that the sender's own are not needed any more */
    received = fd_receive(pair->peer, &byte, 1, FD_PASS_MAX, MSG_DONTWAIT);
    assert_int_equal(received.n, MEMORYD_FDS_MAX);
    fd_received_close(&received);
}

static void test_a_peer_that_does_not_read(void **state)
{
    struct pair *pair = *state;
    FD_AUTO int fd = new_fd();
    unsigned sent = 0, taken = 0;
    struct fd_received received;
    char byte;
    int r;

    while (!(r = send_text(pair->us, "x", &fd, 1)))
        assert_true(++sent < 100000);
    assert_int_equal(r, SOCKIO_E_AGAIN);
    assert_true(sent > 0);
    /* still open, and still ours */
    assert_true(fcntl(fd, F_GETFD) >= 0);

    while ((received = fd_receive(pair->peer, &byte, 1, 1, MSG_DONTWAIT)).size == 1) {
        assert_int_equal(received.n, 1);
        fd_received_close(&received);
        taken++;
    }
    /* the one that would have blocked was not sent in part */
    assert_int_equal(taken, sent);
    assert_int_equal(send_text(pair->us, "x", &fd, 1), 0);
}

static void test_too_big(void **state)
{
    struct pair *pair = *state;
    static char big[1 << 20];
    struct iovec iov = {.iov_base = big, .iov_len = sizeof(big)};
    FD_AUTO int fd = new_fd();
    int size = 8192;

    assert_ok(setsockopt(pair->us, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
    assert_int_equal(sockio_send(pair->us, &iov, 1, &fd, 1), SOCKIO_E_TOO_BIG);
    assert_int_equal(send_text(pair->us, "small", NULL, 0), 0);
}

static void test_nobody_reads_any_more(void **state)
{
    struct pair *pair = *state;
    FD_AUTO int fd = new_fd();
    struct sigaction action = {.sa_handler = SIG_DFL}, before;

    /* whatever this kernel does for this kind of socket, no signal comes */
    assert_ok(sigaction(SIGPIPE, &action, &before));
    pair->peer = fd_close(pair->peer);
    assert_int_equal(send_text(pair->us, "x", &fd, 1), SOCKIO_E_GONE);
    assert_int_equal(send_text(pair->us, "x", NULL, 0), SOCKIO_E_GONE);
    assert_ok(sigaction(SIGPIPE, &before, NULL));
}

static void test_half_closed(void **state)
{
    struct pair *pair = *state;

    assert_ok(shutdown(pair->peer, SHUT_RD));
    assert_int_equal(send_text(pair->us, "x", NULL, 0), SOCKIO_E_GONE);
    /* the other way is still open */
    peer_sends_fds(pair, 0);
    assert_int_equal(receive_nothing(pair), 0);
}

/* As a user without privileges: the kernel counts what no peer has read yet. */
static void fill_the_user_up(int channel, void *context)
{
    struct pair *pair = context;
    struct fd_received received;
    int fds[MEMORYD_FDS_MAX];
    unsigned sent = 0;
    char byte;
    int fd, r;

    (void)channel;
    if (geteuid() == 0)
        become(UID_STRANGER);
    limit_open_files(64);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    for (unsigned i = 0; i < MEMORYD_FDS_MAX; i++)
        fds[i] = fd;
    while (!(r = send_text(pair->us, "x", fds, 30)))
        CHECK(++sent < 1000);
    if (r == SOCKIO_E_AGAIN)
        child_skip("this user may have any number of descriptors in flight (CAP_SYS_RESOURCE)");
    CHECK(r == SOCKIO_E_TOO_MANY_IN_FLIGHT);
    /* a packet without descriptors goes through: behind the others, in order */
    CHECK(send_text(pair->us, "y", NULL, 0) == 0);
    /* one read makes room again */
    received = fd_receive(pair->peer, &byte, 1, 30, MSG_DONTWAIT);
    CHECK(received.n == 30);
    fd_received_close(&received);
    CHECK(send_text(pair->us, "x", fds, 1) == 0);
}

static void test_too_many_in_flight(void **state)
{
    child_run(fill_the_user_up, *state);
}

static void test_sending_on_what_is_no_socket(void **state)
{
    FD_AUTO int fd = new_fd();

    assert_int_equal(send_text(fd, "x", NULL, 0), -ENOTSOCK);
    assert_int_equal(send_text(-1, "x", NULL, 0), -EBADF);
}

static void test_sending_what_is_no_fd(void **state)
{
    struct pair *pair = *state;
    int closed = new_fd();

    (void)fd_close(closed);
    assert_int_equal(send_text(pair->us, "x", &closed, 1), -EBADF);
    pair->peer = fd_close(pair->peer);
    assert_int_equal(receive_nothing(pair), SOCKIO_E_EOF);
}

/* ---- the rest -------------------------------------------------------------------------------------------------------
 */

static void what_is_unread_is_known(void **state)
{
    struct pair *pair = *state;
    FD_AUTO int fd = new_fd();
    size_t both, unread = 1;
    struct fd_received received;
    char byte;

    assert_int_equal(sockio_unread(pair->us, &unread), 0);
    assert_int_equal(unread, 0);
    assert_int_equal(send_text(pair->us, "x", &fd, 1), 0);
    assert_int_equal(send_text(pair->us, "x", NULL, 0), 0);
    assert_int_equal(sockio_unread(pair->us, &both), 0);
    received = fd_receive(pair->peer, &byte, 1, 1, MSG_DONTWAIT);
    fd_received_close(&received);
    assert_int_equal(sockio_unread(pair->us, &unread), 0);
    assert_in_range(unread, 1, both - 1);
    (void)fd_receive(pair->peer, &byte, 1, 1, MSG_DONTWAIT);
    assert_int_equal(sockio_unread(pair->us, &unread), 0);
    assert_int_equal(unread, 0);
    assert_int_equal(sockio_unread(-1, &unread), -EBADF);
    assert_int_equal(unread, 0);
}

static void no_packet_takes_more_memory_than_is_said(void **state)
{
    static char bytes[MEMORYD_FRAME_MAX];
    struct pair *pair = *state;
    size_t unread;

    for (size_t size = 1; size <= sizeof(bytes); size += 1 + size / 16) {
        const struct iovec iov = {.iov_base = bytes, .iov_len = size};

        assert_int_equal(sockio_send(pair->us, &iov, 1, NULL, 0), 0);
        assert_int_equal(sockio_unread(pair->us, &unread), 0);
        assert_in_range(unread, size, sockio_unread_max(size));
        assert_int_equal(recv(pair->peer, bytes, sizeof(bytes), MSG_DONTWAIT), size);
    }
}

/* A packet that is left keeps its descriptors open until the socket goes. */
static void test_spent(void **state)
{
    enum { NOTHING, PACKET, EMPTY, EMPTY_WITH_FD, CASES };

    for (unsigned i = 0; i < 2 * CASES; i++) {
        bool gone = i >= CASES;
        FD_AUTO int fd = new_fd();
        FD_AUTO int peer = -1;
        FD_AUTO int us = -1;
        int ends[2];

        assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
        us = ends[0];
        peer = ends[1];
        if (i % CASES == PACKET)
            assert_int_equal(fd_send(peer, "x", 1, &fd, 1, 0), 1);
        else if (i % CASES)
            assert_int_equal(fd_send(peer, "", 0, &fd, i % CASES == EMPTY_WITH_FD, 0), 0);
        if (gone)
            peer = fd_close(peer);
        assert_int_equal(sockio_is_spent(us), i % CASES == NOTHING);
        if (!gone)
            assert_int_equal(fd_send(peer, "x", 1, NULL, 0, 0), -1);
    }
    /* what we did not say in vain */
    {
        int ends[2];

        assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
        assert_int_equal(send_text(ends[0], "unread", NULL, 0), 0);
        assert_int_equal(fd_close(ends[1]), -1);
        assert_true(sockio_is_spent(ends[0]));
        assert_int_equal(fd_close(ends[0]), -1);
    }
}

static void test_what_is_a_socket(void **state)
{
    struct pair *pair = *state;
    FD_AUTO int file = new_fd();
    FD_AUTO int path = open("/", O_PATH | O_CLOEXEC);

    assert_ok(path);
    errno = ENOENT;
    assert_false(sockio_is_socket(file) || sockio_is_socket(path));
    assert_int_equal(errno, ENOENT);
    assert_true(sockio_is_socket(pair->peer));
}

/* A server looks first, and never receives what a peer can make it close for ever. */
static void test_peek(void **state)
{
    struct pair *pair = *state;
    FD_AUTO int fd = new_fd();
    unsigned before = fd_count();
    char bytes[8];
    size_t length = 0;

    assert_int_equal(sockio_peek(pair->us, bytes, sizeof(bytes), &length), SOCKIO_E_AGAIN);
    assert_int_equal(fd_send(pair->peer, "plain", 5, NULL, 0, 0), 5);
    assert_int_equal(fd_send(pair->peer, "brings", 6, &fd, 1, 0), 6);
    assert_int_equal(fd_send(pair->peer, "", 0, &fd, 1, 0), 0);
    assert_int_equal(sockio_peek(pair->us, bytes, sizeof(bytes), &length), 0);
    assert_int_equal(recv(pair->us, bytes, sizeof(bytes), 0), 5);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(sockio_peek(pair->us, bytes, sizeof(bytes), &length), SOCKIO_E_FDS_LOST);
    assert_int_equal(length, 6);
    assert_memory_equal(bytes, "brings", 6);
    assert_int_equal(recv(pair->us, bytes, sizeof(bytes), 0), 6);
    assert_int_equal(sockio_peek(pair->us, bytes, sizeof(bytes), &length), SOCKIO_E_FDS_LOST);
    assert_int_equal(length, 0);
    assert_int_equal(recv(pair->us, bytes, sizeof(bytes), 0), 0);
    pair->peer = fd_close(pair->peer);
    assert_int_equal(sockio_peek(pair->us, bytes, sizeof(bytes), &length), 0);
    assert_int_equal(fd_count(), before - 1);
}

#define with_pair(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void waiting_ends_with_a_packet_an_end_or_its_time(void **state)
{
    FD_AUTO int ours = -1;
    struct fdset fds = FDSET_NULL;
    char buffer[8];
    size_t size;
    int ends[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
    ours = ends[0];
    assert_int_equal(sockio_set_wait(ours, 1), 0);
    assert_int_equal(sockio_recv_wait(ours, buffer, sizeof(buffer), &size, &fds), SOCKIO_E_AGAIN);
    assert_int_equal(send(ends[1], "abc", 3, MSG_NOSIGNAL), 3);
    assert_int_equal(sockio_recv_wait(ours, buffer, sizeof(buffer), &size, &fds), 0);
    assert_int_equal(size, 3);
    /* the other one still does not wait */
    assert_int_equal(sockio_recv(ours, buffer, sizeof(buffer), &size, &fds), SOCKIO_E_AGAIN);
    close(ends[1]);
    assert_int_equal(sockio_recv_wait(ours, buffer, sizeof(buffer), &size, &fds), SOCKIO_E_EOF);
    assert_int_equal(sockio_set_wait(-1, 1), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_pair(test_packets_and_their_fds),
        with_pair(test_a_packet_as_large_as_the_buffer),
        with_pair(test_the_most_fds),
        with_pair(test_nothing_there),
        with_pair(test_too_many_fds),
        with_pair(test_truncated),
        with_pair(test_end),
        with_pair(test_empty_packets_look_like_the_end),
        with_pair(test_reset_comes_before_the_last_packets),
        with_pair(test_lost_fds_leave_none_open),
        with_pair(test_receiving_on_what_is_no_socket),
        with_pair(test_a_packet_of_pieces),
        with_pair(test_fds_are_borrowed),
        with_pair(test_a_peer_that_does_not_read),
        with_pair(test_too_big),
        with_pair(test_nobody_reads_any_more),
        with_pair(test_half_closed),
        with_pair(test_too_many_in_flight),
        with_pair(test_sending_on_what_is_no_socket),
        with_pair(test_sending_what_is_no_fd),
        with_pair(what_is_unread_is_known),
        with_pair(no_packet_takes_more_memory_than_is_said),
        cmocka_unit_test(test_spent),
        with_pair(test_what_is_a_socket),
        with_pair(test_peek),
        cmocka_unit_test(waiting_ends_with_a_packet_an_end_or_its_time),
    };

    return test_run(tests, NULL, NULL);
}
