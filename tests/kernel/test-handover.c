/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a killed process leaves behind in sockets: replies and descriptors that it had sent are not lost. The
 * client's reading after a disconnect follows from it, and the keeper and its fd stash lean on it.
 */
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void send_three_and_die(int channel, void *context)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    CHECK(wait_readable(channel)); /* our message is there, and stays unread */
    for (int i = 0; i < 3; i++)
        CHECK(fd_send_one(channel, fd) == 1);
    kill(getpid(), SIGKILL);
}

/* A peer that died with unread messages of ours is reported first (ECONNRESET), and only then come the
 * messages that it had sent. The keeper and the client library read on until 0. */
static void what_a_dead_peer_sent_lies_behind_econnreset(void **state)
{
    struct fd_received received;
    struct child child;
    char byte;
    int n = 0;

    child_start(&child, send_three_and_die, NULL);
    child_tell(&child);
    assert_true(WAIT_UNTIL(wait_for_events(child.channel, POLLIN, 0) & POLLHUP));
    received = fd_receive(child.channel, &byte, 1, 4, 0);
    assert_int_equal(received.size, -1);
    assert_int_equal(errno, ECONNRESET);
    while ((received = fd_receive(child.channel, &byte, 1, 4, 0)).size == 1) {
        assert_int_equal(received.n, 1);
        fd_received_close(&received);
        n++;
    }
    assert_int_equal(received.size, 0);
    assert_int_equal(n, 3);
    child_kill(&child);
}

static void send_marked_memfds_and_die(int channel, void *context)
{
    const unsigned *n = context;

    for (unsigned i = 0; i < *n; i++) {
        int fd = memfd_create("marked", MFD_CLOEXEC);

        CHECK(fd >= 0);
        CHECK(pwrite(fd, &i, sizeof(i), 0) == sizeof(i));
        CHECK(fd_send_one(channel, fd) == 1);
        close(fd);
    }
    kill(getpid(), SIGKILL);
}

/* Takes what is queued; every descriptor must be the next in order. Returns how many there were. */
static unsigned take_marked(int socket)
{
    struct fd_received received;
    unsigned n = 0, mark;
    char byte;

    while ((received = fd_receive(socket, &byte, 1, 4, MSG_DONTWAIT)).size == 1) {
        assert_int_equal(received.n, 1);
        assert_int_equal(pread(received.fds[0], &mark, sizeof(mark), 0), sizeof(mark));
        assert_int_equal(mark, n);
        fd_received_close(&received);
        n++;
    }
    assert_int_equal(received.size, 0);
    return n;
}

/* Once sendmsg has returned, the descriptor is safe, though its sender is killed in the next instant and
 * nobody has read it yet. Every reply leans on it, and the keeper of a later version. */
static void a_sent_fd_outlives_its_killed_sender(void **state)
{
    for (unsigned n = 1; n <= 20; n++) {
        struct child child;
        siginfo_t info;

        child_start(&child, send_marked_memfds_and_die, &n);
        assert_ok(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT));
        assert_int_equal(take_marked(child.channel), n);
        child_kill(&child);
    }
}

static void send_marked_memfds_and_count(int channel, void *context)
{
    _Atomic unsigned *counter = context;

    for (unsigned i = 0;; i++) {
        int fd = memfd_create("marked", MFD_CLOEXEC);

        CHECK(fd >= 0);
        CHECK(pwrite(fd, &i, sizeof(i), 0) == sizeof(i));
        CHECK(fd_send_one(channel, fd) == 1);
        atomic_store(counter, i + 1);
        close(fd);
    }
}

/* The same with the kill at any moment: whatever sendmsg acknowledged arrives, and at most the one
 * message more that it had no time to acknowledge. */
static void a_kill_while_sending_loses_nothing_acknowledged(void **state)
{
    _Atomic unsigned *counter = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_mapped(counter);
    for (unsigned round = 0; round < 60; round++) {
        struct child child;
        unsigned arrived;

        atomic_store(counter, 0);
        child_start(&child, send_marked_memfds_and_count, counter);
        assert_true(WAIT_UNTIL(atomic_load(counter) > round));
        child_kill_unreaped(&child);
        arrived = take_marked(child.channel);
        assert_in_range(arrived, atomic_load(counter), atomic_load(counter) + 1);
        child_kill(&child);
    }
    munmap(counter, page_size());
}

static void push_and_exit(int channel, void *context)
{
    const int *fd_stash = context;
    int fds[200];
    unsigned n = 0;

    for (unsigned i = 0; i < 200; i++) {
        fds[n++] = memfd_create("carried", MFD_CLOEXEC);
        CHECK(fds[n - 1] >= 0);
        CHECK(pwrite(fds[n - 1], &i, sizeof(i), 0) == sizeof(i));
    }
    CHECK(fd_send(fd_stash[0], "x", 1, fds, n, MSG_DONTWAIT) == 1);
}

/* A socket pair of which somebody holds both ends carries descriptors through the death of everybody who
 * had them: the fd stash, by which buffers outlive a restart. */
static void both_ends_of_a_pair_carry_fds_over_a_death(void **state)
{
    struct fd_received received;
    int fd_stash[2];
    char byte;

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd_stash));
    child_run(push_and_exit, fd_stash);
    received = fd_receive(fd_stash[1], &byte, 1, 253, MSG_DONTWAIT);
    assert_int_equal(received.n, 200);
    for (unsigned i = 0; i < 200; i++) {
        unsigned mark = ~0U;

        assert_int_equal(pread(received.fds[i], &mark, sizeof(mark), 0), sizeof(mark));
        assert_int_equal(mark, i);
    }
    fd_received_close(&received);
    close(fd_stash[0]);
    close(fd_stash[1]);
}

/* A reply that the broker sent before it died is still there behind the ECONNRESET that a later, unread
 * request causes. The client library must not reconnect before it has read on until 0. */
static void a_reply_lies_behind_econnreset(void **state)
{
    int ends[2];
    char bytes[8];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    assert_int_equal(send(ends[1], "reply", 5, MSG_NOSIGNAL), 5);
    assert_int_equal(send(ends[0], "request", 7, MSG_NOSIGNAL), 7);
    close(ends[1]);
    assert_errno(recv(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT), ECONNRESET);
    assert_int_equal(recv(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT), 5);
    assert_memory_equal(bytes, "reply", 5);
    assert_int_equal(recv(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_lies_behind_econnreset),
        cmocka_unit_test(what_a_dead_peer_sent_lies_behind_econnreset),
        cmocka_unit_test(a_sent_fd_outlives_its_killed_sender),
        cmocka_unit_test(a_kill_while_sending_loses_nothing_acknowledged),
        cmocka_unit_test(both_ends_of_a_pair_carry_fds_over_a_death),
    };

    return test_run(tests, NULL, NULL);
}
