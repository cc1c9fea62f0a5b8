/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end, asked of this kernel and of an older one that has no SO_PEERPIDFD. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/peer.h"
#include "sys/sys.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static struct sys_calls faulty;
static int fail_name;
static int fail_errno;

static int faulty_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (name == fail_name) {
        errno = fail_errno;
        return -1;
    }
    return sys_kernel.getsockopt(fd, level, name, value, size);
}

/* As before Linux 6.9. */
static int no_inode(int pidfd, uint64_t *ret)
{
    errno = EOPNOTSUPP;
    return -1;
}

static void fault(int name, int error)
{
    faulty = sys_kernel;
    faulty.getsockopt = faulty_getsockopt;
    fail_name = name;
    fail_errno = error;
    sys = &faulty;
}

static int restore(void **state)
{
    sys = &sys_kernel;
    return 0;
}

/* An autobound name, so that nothing is left in a folder. */
static int listen_somewhere(struct sockaddr_un *address, socklen_t *size)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_ok(fd);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    assert_ok(bind(fd, (struct sockaddr *)address, sizeof(sa_family_t)));
    *size = sizeof(*address);
    assert_ok(getsockname(fd, (struct sockaddr *)address, size));
    assert_ok(listen(fd, 4));
    return fd;
}

struct client {
    struct sockaddr_un address;
    socklen_t size;
    bool other_user;
};

static void connect_and_wait(int channel, void *context)
{
    const struct client *client = context;
    const gid_t groups[] = {71001, 71002, 71003};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (client->other_user) {
        CHECK(setgroups(3, groups) == 0);
        CHECK(setresgid(61777, 61777, 61777) == 0);
        CHECK(setresuid(UID_STRANGER, UID_STRANGER, UID_STRANGER) == 0);
    }
    CHECK(connect(fd, (const struct sockaddr *)&client->address, client->size) == 0);
    tell(channel);
    hear(channel);
}

static void *thread_waits(void *argument)
{
    __atomic_store_n((pid_t *)argument, gettid(), __ATOMIC_SEQ_CST);
    pause();
    return NULL;
}

static void needs_pidfd(void)
{
    int fd = sys->pidfd_open(getpid(), 0);

    if (fd < 0 && errno == ENOSYS)
        test_skip("no pidfd_open here: is this valgrind?");
    close(fd);
}

static void check_peer(bool other_user)
{
    struct client client = {.other_user = other_user};
    FD_AUTO int listener = listen_somewhere(&client.address, &client.size);
    unsigned fds;
    struct peer peer = PEER_NULL;
    struct peer by_number = PEER_NULL;
    struct child child;
    FD_AUTO int fd = -1;

    needs_pidfd();
    child_start(&child, connect_and_wait, &client);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_ok(fd);
    child_hear(&child);

    assert_int_equal(peer_init_socket(&peer, fd), 0);
    assert_int_equal(peer.pid, child.pid);
    assert_int_equal(peer.uid, other_user ? UID_STRANGER : getuid());
    assert_int_equal(peer.gid, other_user ? 61777 : getgid());
    if (other_user) {
        assert_int_equal(peer.n_groups, 3);
        assert_true(peer_in_group(&peer, 71002));
        assert_true(peer_in_group(&peer, 61777));
        assert_false(peer_in_group(&peer, 71004));
    }
    assert_true(peer.identity > 0);
    assert_false(peer_is_dead(peer.pidfd));
    assert_int_equal(peer_init_pid(&by_number, child.pid), 0);
    assert_true(peer_same_process(&peer, &by_number));
    peer_deinit(&by_number);
    assert_int_equal(peer_init_pid(&by_number, getpid()), 0);
    assert_false(peer_same_process(&peer, &by_number));
    peer_deinit(&by_number);

    child_tell(&child);
    child_finish(&child);
    assert_true(WAIT_UNTIL(peer_is_dead(peer.pidfd)));
    fds = fd_count();
    peer_deinit(&peer);
    peer_deinit(&peer);
    assert_int_equal(fd_count(), fds - 1);
}

static void I3_identity_is_the_kernels(void **state)
{
    check_peer(false);
}

static void I3_identity_of_another_user(void **state)
{
    test_needs_root();
    check_peer(true);
}

static void I3_identity_on_an_older_kernel(void **state)
{
    fault(SO_PEERPIDFD, ENOPROTOOPT);
    check_peer(false);
    faulty.pidfd_inode = no_inode;
    check_peer(false);
}

static void needs_inodes(void)
{
    FD_AUTO int fd = sys->pidfd_open(getpid(), 0);
    uint64_t inode;

    if (fd < 0 || sys->pidfd_inode(fd, &inode) < 0)
        test_skip("pidfds have no inodes of their own here");
}

static void wait_only(int channel, void *context)
{
    tell(channel);
    hear(channel);
}

/* Its memory, which /proc needs to show the process, could end in our hands. */
static void I8_who_connects_is_known_without_its_proc(void **state)
{
    needs_inodes();
    fault(-1, 0);
    faulty.proc = "/nowhere";
    check_peer(false);
}

/* What is recorded of it, by this program or one that knew start times only. */
static void I3_who_was_known_before_is_known_again(void **state)
{
    struct peer new = PEER_NULL, old = PEER_NULL, again = PEER_NULL;
    const struct peer *records[] = {&new, &old};
    struct child child;

    needs_inodes();
    child_start(&child, wait_only, NULL);
    child_hear(&child);
    assert_int_equal(peer_init_pid(&new, child.pid), 0);
    fault(-1, 0);
    faulty.pidfd_inode = no_inode;
    assert_int_equal(peer_init_pid(&old, child.pid), 0);
    restore(NULL);
    assert_true(old.identity && old.identity != new.identity);
    for (unsigned i = 0; i < 4; i++) {
        const struct peer *record = records[i % 2];
        int pidfd = i < 2 ? -1 : fcntl(new.pidfd, F_DUPFD_CLOEXEC, 0);

        assert_true(peer_is_process(&new, record->pid, record->identity));
        assert_false(peer_is_process(&new, record->pid, record->identity + 1));
        assert_false(peer_is_process(&new, record->pid + 1, record->identity));
        assert_int_equal(peer_init_again(&again, 1, 2, record->pid, record->identity, &pidfd), 0);
        assert_int_equal(pidfd, -1);
        assert_true(peer_same_process(&again, &new));
        assert_int_equal(again.uid, 1);
        assert_int_equal(again.gid, 2);
        peer_deinit(&again);
        assert_int_equal(peer_init_again(&again, 1, 2, record->pid, record->identity + 1, &pidfd), PEER_GONE);
    }
    child_kill_unreaped(&child);
    assert_int_equal(peer_init_again(&again, 1, 2, new.pid, new.identity, &(int){-1}), PEER_GONE);
    assert_false(peer_is_process(&new, old.pid, old.identity));
    child_kill(&child);
    peer_deinit(&new);
    peer_deinit(&old);
}

static void thread_tells(int channel, void *context)
{
    pthread_t thread;
    pid_t tid = 0;

    CHECK(pthread_create(&thread, NULL, thread_waits, &tid) == 0);
    while (!__atomic_load_n(&tid, __ATOMIC_SEQ_CST))
        wait_a_moment();
    CHECK(send(channel, &tid, sizeof(tid), 0) == sizeof(tid));
    hear(channel);
    _exit(EXIT_SUCCESS);
}

/* A number is used again, by a thread of a living process as well. */
static void a_thread_is_no_process(void **state)
{
    struct peer peer = PEER_NULL;
    struct child child;
    pid_t tid;
    int r;

    needs_pidfd();
    child_start(&child, thread_tells, NULL);
    assert_int_equal(recv(child.channel, &tid, sizeof(tid), 0), sizeof(tid));
    r = peer_init_pid(&peer, tid);
    assert_true(r == PEER_GONE || r == PEER_UNKNOWN); /* newer and older kernels */
    child_tell(&child);
    child_finish(&child);
}

/* Everybody whose groups are not mapped has it, whatever they are. */
static void I3_the_overflow_group_is_nobodys(void **state)
{
    gid_t groups[] = {71001, 65534};
    const struct peer peer = {.gid = 65534, .groups = groups, .n_groups = 2};

    assert_true(peer_in_group(&peer, 71001));
    assert_false(peer_in_group(&peer, 65534));
    assert_true(peer_is_overflow_uid(65534));
    assert_false(peer_is_overflow_uid(60001));
}

static const char *cgroup_of(const char *text)
{
    static char path[64];
    char copy[512];

    snprintf(copy, sizeof(copy), "%s", text);
    return peer_cgroup_of(copy, path, sizeof(path)) ? path : "";
}

static void the_control_group_is_that_of_version_2(void **state)
{
    assert_string_equal(cgroup_of("0::/a/b\n"), "/a/b");
    assert_string_equal(cgroup_of("0::/a:b:c\n"), "/a:b:c");
    assert_string_equal(cgroup_of("9:name=systemd:/s\n4:memory:/m\n0::/a\n"), "/a");
    /* version 1 alone */
    assert_string_equal(cgroup_of("9:name=systemd:/s\n4:memory:/m\n"), "/s");
    assert_string_equal(cgroup_of("4:memory:/m\n"), "");
    /* a path may look like a line */
    assert_string_equal(cgroup_of("4:memory:/m:name=systemd:/forged\n9:name=systemd:/s\n"), "/s");
    assert_string_equal(cgroup_of("4:memory:/m:name=systemd:/forged\n"), "");
    /* outside of our namespace; and cut short */
    assert_string_equal(cgroup_of("9:name=systemd:/s\n0::/../other\n"), "");
    assert_string_equal(cgroup_of("0::/0123456789012345678901234567890123456789012345678901234567890123\n"), "");
    assert_string_equal(cgroup_of(""), "");
}

static void the_dead_are_gone(void **state)
{
    struct client client = {.other_user = false};
    FD_AUTO int listener = listen_somewhere(&client.address, &client.size);
    unsigned fds;
    struct peer peer = PEER_NULL;
    struct child child;
    FD_AUTO int fd = -1;

    needs_pidfd();
    child_start(&child, connect_and_wait, &client);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_ok(fd);
    child_hear(&child);
    child_kill_unreaped(&child);
    fds = fd_count();
    assert_int_equal(peer_init_socket(&peer, fd), PEER_GONE);
    fault(SO_PEERPIDFD, ENOPROTOOPT);
    assert_int_equal(peer_init_socket(&peer, fd), PEER_GONE);
    restore(NULL);
    child_kill(&child);
    assert_int_equal(peer_init_socket(&peer, fd), PEER_GONE);
    fault(SO_PEERPIDFD, ENOPROTOOPT);
    assert_int_equal(peer_init_socket(&peer, fd), PEER_GONE);
    assert_int_equal(peer.pidfd, -1);
    assert_int_equal(peer_init_pid(&peer, child.pid), PEER_GONE);
    assert_int_equal(peer_init_pid(&peer, 0), PEER_GONE);
    assert_int_equal(peer_init_pid(&peer, -1), PEER_GONE);
    assert_true(fd_count() <= fds);
}

static void strange_sockets_have_no_peer(void **state)
{
    struct peer peer = PEER_NULL;
    FD_AUTO int unconnected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    FD_AUTO int internet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int pair[2];

    assert_int_equal(peer_init_socket(&peer, unconnected), PEER_UNKNOWN);
    assert_int_equal(peer_init_socket(&peer, internet), PEER_UNKNOWN);
    assert_ok(pipe2(pair, O_CLOEXEC));
    assert_int_equal(peer_init_socket(&peer, pair[0]), PEER_UNKNOWN);
    close(pair[0]);
    close(pair[1]);
    assert_int_equal(peer.pid, -1);
}

static void failures_leave_nothing_open(void **state)
{
    static const int names[] = {SO_PEERCRED, SO_PEERPIDFD, SO_PEERGROUPS};
    static const struct {
        int error;
        int outcome;
    } faults[] = {
        {EMFILE, PEER_NO_ROOM}, {ENOMEM, PEER_NO_ROOM}, {ESRCH, PEER_GONE}, {EOPNOTSUPP, PEER_UNKNOWN}, {EIO, -EIO},
    };
    struct peer peer = PEER_NULL;
    unsigned fds;
    int pair[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    fds = fd_count();
    for (size_t n = 0; n < 3; n++)
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
            fault(names[n], faults[i].error);
            assert_int_equal(peer_init_socket(&peer, pair[0]), faults[i].outcome);
            assert_int_equal(peer.pidfd, -1);
            assert_int_equal(fd_count(), fds);
        }
    restore(NULL);
    assert_int_equal(peer_init_socket(&peer, pair[0]), 0);
    assert_int_equal(peer.pid, getpid());
    peer_deinit(&peer);
    assert_int_equal(fd_count(), fds);
    close(pair[0]);
    close(pair[1]);
}

static unsigned n_asked;
static unsigned n_gone; /* how often the process is not found */

static int status_after_reaping(int pidfd, int *ret)
{
    if (n_asked++ < n_gone) {
        errno = ESRCH;
        return -1;
    }
    *ret = 3 << 8; /* exit status 3 */
    return 0;
}

static void a_process_that_is_reaped_meanwhile_is_asked_again(void **state)
{
    int status;

    faulty = sys_kernel;
    faulty.pidfd_status = status_after_reaping;
    sys = &faulty;
    n_asked = 0;
    n_gone = 1;
    assert_int_equal(peer_end(-1, &status), PEER_END_EXITED);
    assert_int_equal(status, 3);
    assert_int_equal(n_asked, 2);
    /* but not forever */
    n_asked = 0;
    n_gone = 100;
    assert_int_equal(peer_end(-1, &status), PEER_END_UNKNOWN);
    assert_int_equal(status, 0);
    assert_int_equal(n_asked, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I3_identity_is_the_kernels),
        cmocka_unit_test(I3_identity_of_another_user),
        cmocka_unit_test_teardown(I3_identity_on_an_older_kernel, restore),
        cmocka_unit_test_teardown(I8_who_connects_is_known_without_its_proc, restore),
        cmocka_unit_test_teardown(I3_who_was_known_before_is_known_again, restore),
        cmocka_unit_test(a_thread_is_no_process),
        cmocka_unit_test(I3_the_overflow_group_is_nobodys),
        cmocka_unit_test(the_control_group_is_that_of_version_2),
        cmocka_unit_test_teardown(the_dead_are_gone, restore),
        cmocka_unit_test(strange_sockets_have_no_peer),
        cmocka_unit_test_teardown(failures_leave_nothing_open, restore),
        cmocka_unit_test_teardown(a_process_that_is_reaped_meanwhile_is_asked_again, restore),
    };

    return test_run(tests, NULL, NULL);
}
