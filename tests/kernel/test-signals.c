/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that a client can cause in the broker (I8). Each of these kills a process that has not said that
 * it ignores it; ignored, it becomes an errno or nothing.
 */
#include "tests/kernel/kinds.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* ---- SIGXFSZ ----------------------------------------------------------------------------------------------------- */

static void outgrow_the_file_limit(int channel, void *context)
{
    struct rlimit limit = {4 * page_size(), 4 * page_size()};
    int fd = memfd_create("large", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    if (context != NULL)
        signal(SIGXFSZ, SIG_IGN);
    CHECK_ERRNO(ftruncate(fd, (off_t)(8 * page_size())), EFBIG);
    CHECK_ERRNO(fallocate(fd, 0, 0, (off_t)(8 * page_size())), EFBIG);
}

/* A memfd is a file to RLIMIT_FSIZE: sizing a large buffer under a limit kills. The unit file lifts the
 * limit, the broker ignores the signal and reports EFBIG. */
static void I8_sigxfsz_kills_unless_ignored(void **state)
{
    int ignored = 1;

    assert_int_equal(child_signal(outgrow_the_file_limit, NULL), SIGXFSZ);
    assert_int_equal(child_signal(outgrow_the_file_limit, &ignored), 0);
}

/* ---- SIGPIPE ----------------------------------------------------------------------------------------------------- */

struct writing {
    int type, flags;
};

static void write_to_the_gone(int channel, void *context)
{
    const struct writing *writing = context;
    int ends[2];

    CHECK(socketpair(AF_UNIX, writing->type | SOCK_CLOEXEC, 0, ends) == 0);
    close(ends[1]);
    CHECK_ERRNO(send(ends[0], "x", 1, writing->flags), EPIPE);
}

/* Writing to who is gone kills, by a stream or a pipe (a log that nobody reads any more), unless each send
 * says MSG_NOSIGNAL. A SEQPACKET socket only says EPIPE; the one sender says MSG_NOSIGNAL all the same. */
static void I8_sigpipe_kills_unless_nosignal(void **state)
{
    struct writing writing = {SOCK_STREAM, 0};

    assert_int_equal(child_signal(write_to_the_gone, &writing), SIGPIPE);
    writing.flags = MSG_NOSIGNAL;
    assert_int_equal(child_signal(write_to_the_gone, &writing), 0);
    writing.type = SOCK_SEQPACKET;
    assert_int_equal(child_signal(write_to_the_gone, &writing), 0);
    writing.flags = 0;
    assert_int_equal(child_signal(write_to_the_gone, &writing), 0);
}

/* ---- SIGIO ------------------------------------------------------------------------------------------------------- */

struct leased {
    int fd;
    int opener[2]; /* channel of the process that opens */
    bool ignore;
};

static void hold_a_lease(int channel, void *context)
{
    const struct leased *leased = context;

    if (leased->ignore)
        signal(SIGIO, SIG_IGN);
    CHECK(fcntl(leased->fd, F_SETLEASE, F_WRLCK) == 0);
    tell(leased->opener[0]);
    hear(leased->opener[0]);
    CHECK(fcntl(leased->fd, F_GETLEASE) != F_WRLCK); /* on the way to be broken */
    CHECK(fcntl(leased->fd, F_SETLEASE, F_UNLCK) == 0);
    tell(leased->opener[0]);
}

static void open_what_is_leased(int channel, void *context)
{
    const struct leased *leased = context;

    hear(leased->opener[1]);
    CHECK_ERRNO(fd_reopen(leased->fd, O_RDONLY | O_NONBLOCK), EWOULDBLOCK);
    if (!leased->ignore)
        return;
    tell(leased->opener[1]);
    CHECK(fd_reopen(leased->fd, O_RDONLY) >= 0); /* waits */
    hear(leased->opener[1]);
}

static int signal_of_lease_holder(bool ignore)
{
    struct leased leased = {.fd = kind_buffer(kind_shmem()), .ignore = ignore};
    struct child opener;
    int result;

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, leased.opener));
    child_start(&opener, open_what_is_leased, &leased);
    result = child_signal(hold_a_lease, &leased);
    child_finish(&opener);
    close(leased.opener[0]);
    close(leased.opener[1]);
    close(leased.fd);
    return result;
}

/* The broker takes a lease for a moment to ask who else has a buffer. Who opens the inode in this moment
 * (a process of the same uid, or root, by re-opening a descriptor) causes SIGIO, which kills unless
 * ignored; and gets EWOULDBLOCK, or waits until the lease is given up. */
static void I8_sigio_of_a_lease_kills_unless_ignored(void **state)
{
    assert_int_equal(signal_of_lease_holder(false), SIGIO);
    assert_int_equal(signal_of_lease_holder(true), 0);
}

static void take_a_lease_and_die(int channel, void *context)
{
    const int *fd = context;

    CHECK(fcntl(*fd, F_SETLEASE, F_WRLCK) == 0);
    kill(getpid(), SIGKILL);
}

/* A lease belongs to the description: if its taker dies while another process has the description too, it
 * stays, and openers would wait for it. Whoever has the description can give it up, and a broker that
 * takes over descriptions does so. */
static void a_lease_outlives_its_taker_on_a_shared_description(void **state)
{
    int fd = kind_buffer(kind_shmem());
    struct child child;

    child_start(&child, take_a_lease_and_die, &fd);
    child_wait(&child);
    assert_int_equal(fcntl(fd, F_GETLEASE), F_WRLCK);
    assert_ok(fcntl(fd, F_SETLEASE, F_UNLCK));
    assert_int_equal(fcntl(fd, F_GETLEASE), F_UNLCK);
    close(fd_reopen(fd, O_RDONLY));
    close(fd);
}

static void ask_often(int channel, void *context)
{
    const int *fd = context;

    signal(SIGIO, SIG_IGN);
    tell(channel);
    for (int i = 0; i < 20000; i++) {
        if (fcntl(*fd, F_SETLEASE, F_WRLCK) == 0)
            CHECK(fcntl(*fd, F_SETLEASE, F_UNLCK) == 0);
        else
            CHECK(errno == EAGAIN);
    }
}

static void open_often(int channel, void *context)
{
    const int *fd = context;

    for (;;) {
        int other = fd_reopen(*fd, O_RDONLY | O_NONBLOCK);

        if (other >= 0)
            close(other);
        else
            CHECK(errno == EWOULDBLOCK);
    }
}

/* However often somebody opens it meanwhile, asking goes on and ends. */
static void I8_an_opening_loop_does_not_stop_the_asking(void **state)
{
    int fd = kind_buffer(kind_shmem());
    struct child asker, opener;

    child_start(&opener, open_often, &fd);
    child_start(&asker, ask_often, &fd);
    child_hear(&asker);
    child_finish(&asker);
    child_kill(&opener);
    assert_true(WAIT_UNTIL(fcntl(fd, F_SETLEASE, F_WRLCK) == 0));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I8_sigxfsz_kills_unless_ignored),
        cmocka_unit_test(I8_sigpipe_kills_unless_nosignal),
        cmocka_unit_test(I8_sigio_of_a_lease_kills_unless_ignored),
        cmocka_unit_test(a_lease_outlives_its_taker_on_a_shared_description),
        cmocka_unit_test(I8_an_opening_loop_does_not_stop_the_asking),
    };

    return test_run(tests, NULL, NULL);
}
