/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end, and does it still live: credentials that the kernel took at connect(), pidfds
 * of peers, and the end of a connection, which proves nothing about the end of a process. Sessions (I3,
 * I6) lean on all of it.
 */
#include "tests/kernel/meeting.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static struct ucred peer_credentials(int fd)
{
    struct ucred credentials;
    socklen_t size = sizeof(credentials);

    assert_ok(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size));
    return credentials;
}

/* -1 and errno, as the kernel says it. */
static int try_peer_pidfd(int fd)
{
    socklen_t size = sizeof(int);
    int pidfd = -1;

    return getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0 ? -1 : pidfd;
}

static int peer_pidfd(int fd)
{
    int pidfd = try_peer_pidfd(fd);

    if (pidfd < 0 && errno == ENOPROTOOPT)
        test_skip("this kernel has no SO_PEERPIDFD (it came with Linux 6.5)");
    assert_ok(pidfd);
    return pidfd;
}

static int open_pidfd(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    assert_ok(fd);
    return fd;
}

static bool says_dead(int pidfd)
{
    return wait_for_events(pidfd, POLLIN, 0) != 0;
}

/* What /proc/self/fdinfo says of a pidfd: the pid, -1 once it has been reaped. */
static pid_t pidfd_pid(int pidfd)
{
    char path[40], line[80];
    long pid = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "Pid:", 4) == 0)
            pid = strtol(line + 4, NULL, 10);
    fclose(file);
    return (pid_t)pid;
}

static char process_state(pid_t pid)
{
    char path[40], stat[512] = "", *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(stat, sizeof(stat), file));
    fclose(file);
    end = strrchr(stat, ')');
    assert_non_null(end);
    return end[2];
}

/* ---- credentials ------------------------------------------------------------------------------------------------- */

static void connect_and_wait(int channel, void *context)
{
    int fd = connect_to(context, 0);

    CHECK(fd >= 0);
    tell(channel);
    hear(channel);
}

/* The connection of a child that stays until it is killed. */
static int meet_child(struct meeting *meeting, struct child *child)
{
    meet(meeting, 4);
    child_start(child, connect_and_wait, meeting);
    return accept_one(meeting);
}

/* SO_PEERCRED names the process that connected, by the kernel's knowledge: I3. */
static void I3_peer_credentials_are_the_kernels(void **state)
{
    struct meeting meeting;
    struct ucred who;
    struct child child;
    int fd;

    fd = meet_child(&meeting, &child);
    who = peer_credentials(fd);
    assert_int_equal(who.pid, child.pid);
    assert_int_equal(who.uid, geteuid());
    assert_int_equal(who.gid, getegid());
    child_kill(&child);
    close(fd);
    close(meeting.listener);
}

static void connect_then_change_uid(int channel, void *context)
{
    int fd;

    CHECK(setresgid(UID_BROKER, UID_BROKER, UID_BROKER) == 0);
    CHECK(setresuid((uid_t)-1, UID_BROKER, (uid_t)-1) == 0);
    fd = connect_to(context, 0);
    CHECK(fd >= 0);
    CHECK(setresuid((uid_t)-1, 0, (uid_t)-1) == 0);
    CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
    tell(channel);
    hear(channel);
}

/* They are those of the moment of connect(): what the process becomes later does not change them, so a
 * connection handed on hands on the authority of who made it. */
static void I3_peer_credentials_are_those_at_connect(void **state)
{
    struct meeting meeting;
    struct child child;
    int fd;

    test_needs_root();
    meet(&meeting, 4);
    child_start(&child, connect_then_change_uid, &meeting);
    child_hear(&child);
    fd = accept_one(&meeting);
    assert_int_equal(peer_credentials(fd).uid, UID_BROKER);
    child_kill(&child);
    close(fd);
    close(meeting.listener);
}

/* SO_PEERGROUPS gives the supplementary groups, also those at connect(): a token for a gid can be opened by
 * the group's members. */
static void I3_peer_groups_are_the_kernels(void **state)
{
    struct meeting meeting;
    struct child child;
    gid_t theirs[64], ours[64];
    socklen_t size = sizeof(theirs);
    int fd, n = getgroups(64, ours);

    assert_ok(n);
    fd = meet_child(&meeting, &child);
    assert_ok(getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, theirs, &size));
    assert_int_equal(size, (size_t)n * sizeof(gid_t));
    assert_memory_equal(theirs, ours, size);
    child_kill(&child);
    close(fd);
    close(meeting.listener);
}

/* ---- pidfds ------------------------------------------------------------------------------------------------------ */

/* SO_PEERPIDFD is the connecting process itself, alive until it ends, however it ends. */
static void I3_peer_pidfd_is_the_connected_process(void **state)
{
    struct meeting meeting;
    struct child child;
    int fd, pidfd;

    fd = meet_child(&meeting, &child);
    pidfd = peer_pidfd(fd);
    assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC); /* born so: nobody asked */
    assert_int_equal(pidfd_pid(pidfd), child.pid);
    assert_true(stays_quiet(pidfd));
    child_kill(&child);
    assert_true(wait_readable(pidfd));
    assert_int_equal(pidfd_pid(pidfd), -1);
    close(pidfd);
    close(fd);
    close(meeting.listener);
}

static void connect_and_die(int channel, void *context)
{
    CHECK(connect_to(context, 0) >= 0);
    kill(getpid(), SIGKILL);
}

/* A process with just this number; -1 when somebody else has it. */
static pid_t fork_as(pid_t pid)
{
    struct clone_args args = {
        .exit_signal = SIGCHLD,
        .set_tid = (uintptr_t)&pid,
        .set_tid_size = 1,
    };
    long child = syscall(SYS_clone3, &args, sizeof(args));

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return (pid_t)child;
}

/* A peer that was dead and reaped before anybody asked, even before accept(), and whose number another
 * process has by now: the kernel gives a pidfd that says so at once, or refuses. It never gives the other
 * process, as SO_PEERCRED's number would. The broker takes either as "dead". */
static void I3_a_peer_dead_before_accept_is_dead_or_refused(void **state)
{
    struct meeting meeting;
    struct child child;
    pid_t number, impostor;
    int fd, pidfd;

    fd = meet_child(&meeting, &child);
    close(peer_pidfd(fd)); /* or skip */
    child_kill(&child);
    close(fd);

    child_start(&child, connect_and_die, &meeting);
    number = child.pid;
    child_wait(&child);
    impostor = fork_as(number);
    if (impostor < 0) /* needs root, or the number is taken already */
        print_message("no impostor: %s\n", strerror(errno));
    fd = accept_one(&meeting);
    assert_int_equal(peer_credentials(fd).pid, number);
    pidfd = try_peer_pidfd(fd);
    if (pidfd >= 0) {
        assert_true(says_dead(pidfd));
        close(pidfd);
        print_message("of a reaped peer the kernel gives a pidfd, readable\n");
    } else {
        print_message("of a reaped peer the kernel gives none: %s\n", strerror(errno));
        assert_true(errno == ESRCH || errno == EINVAL || errno == ENODATA);
    }
    if (impostor > 0) {
        kill(impostor, SIGKILL);
        waitpid(impostor, NULL, 0);
    }
    close(fd);
    close(meeting.listener);
}

/* A zombie is dead to its pidfd: a parent that forgets to reap a client keeps nothing alive in the broker,
 * though /proc and kill(pid, 0) still show the process. */
static void I6_a_zombie_is_dead_to_its_pidfd(void **state)
{
    struct meeting meeting;
    struct child child;
    int fd, pidfd;

    fd = meet_child(&meeting, &child);
    pidfd = open_pidfd(child.pid);
    assert_false(says_dead(pidfd));
    child_kill_unreaped(&child);
    assert_true(wait_readable(pidfd));
    assert_int_equal(process_state(child.pid), 'Z');
    assert_int_equal(kill(child.pid, 0), 0);
    assert_int_equal(peer_credentials(fd).pid, child.pid);
    child_kill(&child);
    close(pidfd);
    close(fd);
    close(meeting.listener);
}

static void *outlive_the_main_thread(void *argument)
{
    int *channel = argument;

    hear(*channel);
    tell(*channel);
    hear(*channel);
    _exit(EXIT_SUCCESS);
}

static void end_the_main_thread_only(int channel, void *context)
{
    static int kept;
    pthread_t thread;

    kept = channel;
    CHECK(pthread_create(&thread, NULL, outlive_the_main_thread, &kept) == 0);
    pthread_exit(NULL);
}

/* A pidfd speaks of the whole process: the end of one thread, be it the first, is not the end. */
static void I6_the_end_of_one_thread_is_not_the_end(void **state)
{
    struct child child;
    int pidfd;

    child_start(&child, end_the_main_thread_only, NULL);
    pidfd = open_pidfd(child.pid);
    assert_true(WAIT_UNTIL(process_state(child.pid) == 'Z')); /* the first thread is gone */
    assert_true(stays_quiet(pidfd));
    child_tell(&child);
    child_hear(&child); /* and the other lives */
    assert_false(says_dead(pidfd));
    child_tell(&child);
    assert_true(wait_readable(pidfd));
    child_finish(&child);
    close(pidfd);
}

static void exec_when_told(int channel, void *context)
{
    hear(channel);
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    child_give_up("exec /bin/sleep", __FILE__, __LINE__);
}

/* exec is no end either: the connection closes (CLOEXEC), the process goes on and so does its session. */
static void I6_exec_is_not_the_end(void **state)
{
    struct child child;
    int pidfd;
    char byte;

    child_start(&child, exec_when_told, NULL);
    pidfd = open_pidfd(child.pid);
    child_tell(&child);
    assert_true(WAIT_UNTIL(wait_for_events(child.channel, POLLIN, 0) & POLLHUP));
    assert_int_equal(recv(child.channel, &byte, 1, 0), 0);
    assert_true(stays_quiet(pidfd));
    child_kill(&child);
    assert_true(says_dead(pidfd));
    close(pidfd);
}

/* ---- the end of a connection proves nothing ---------------------------------------------------------------------- */

struct nest {
    int grandchild_channel[2];
};

static void fork_and_wait(int channel, void *context)
{
    struct nest *nest = context;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) { /* keeps the inherited connection open, until its own channel closes */
        char byte;

        close(nest->grandchild_channel[0]);
        (void)!recv(nest->grandchild_channel[1], &byte, 1, 0);
        _exit(EXIT_SUCCESS);
    }
    tell(channel);
    hear(channel);
}

/* The connection of a killed process stays open while a child that it forked holds it: no EOF, but the
 * pidfd reports the death. EOF is not needed for I6. */
static void I6_a_forked_child_hides_eof_but_not_from_the_pidfd(void **state)
{
    struct nest nest;
    struct child child;
    char byte;
    int pidfd, fd;

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, nest.grandchild_channel));
    child_start(&child, fork_and_wait, &nest);
    close(nest.grandchild_channel[1]);
    fd = child.channel;
    child.channel = -1;
    assert_true(wait_readable(fd));
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    pidfd = open_pidfd(child.pid);
    child_kill(&child);
    assert_true(wait_readable(pidfd));
    assert_true(stays_quiet(fd));
    close(nest.grandchild_channel[0]); /* the grandchild ends */
    assert_true(wait_readable(fd));
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(pidfd);
    close(fd);
}

static void close_everything_and_live(int channel, void *context)
{
    const int *keep = context;

    hear(channel);
    for (int fd = 3; fd < 1024; fd++) /* what closefrom(3) of a daemonizing library does */
        if (fd != *keep)
            close(fd);
    hear(*keep);
}

/* And a living process that closes every descriptor it does not know gives EOF: EOF is not enough. */
static void I6_closing_everything_fakes_eof_but_not_to_the_pidfd(void **state)
{
    struct child child;
    int ends[2], pidfd;
    char byte;

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    child_start(&child, close_everything_and_live, &ends[1]);
    pidfd = open_pidfd(child.pid);
    child_tell(&child);
    assert_true(WAIT_UNTIL(recv(child.channel, &byte, 1, MSG_DONTWAIT) == 0));
    assert_true(stays_quiet(pidfd));
    assert_int_equal(send(ends[0], "", 1, 0), 1);
    assert_true(wait_readable(pidfd));
    child_finish(&child);
    close(pidfd);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I3_peer_credentials_are_the_kernels),
        cmocka_unit_test(I3_peer_credentials_are_those_at_connect),
        cmocka_unit_test(I3_peer_groups_are_the_kernels),
        cmocka_unit_test(I3_peer_pidfd_is_the_connected_process),
        cmocka_unit_test(I3_a_peer_dead_before_accept_is_dead_or_refused),
        cmocka_unit_test(I6_a_zombie_is_dead_to_its_pidfd),
        cmocka_unit_test(I6_the_end_of_one_thread_is_not_the_end),
        cmocka_unit_test(I6_exec_is_not_the_end),
        cmocka_unit_test(I6_a_forked_child_hides_eof_but_not_from_the_pidfd),
        cmocka_unit_test(I6_closing_everything_fakes_eof_but_not_to_the_pidfd),
    };

    return test_run(tests, NULL, NULL);
}
