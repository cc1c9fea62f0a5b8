/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end, and does it still live: credentials that the kernel took at connect(), pidfds
 * of peers, and the end of a connection, which proves nothing about the end of a process. Sessions (I3,
 * I6) lean on all of it. And what becomes of connections when the one who listens dies.
 */
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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* An abstract address of our own: no file to leave behind. */
static int listen_somewhere(struct sockaddr_un *address, socklen_t *size, int backlog)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_ok(fd);
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    assert_ok(bind(fd, (const struct sockaddr *)address, sizeof(address->sun_family))); /* autobind */
    *size = sizeof(*address);
    assert_ok(getsockname(fd, (struct sockaddr *)address, size));
    assert_ok(listen(fd, backlog));
    return fd;
}

struct meeting {
    struct sockaddr_un address;
    socklen_t size;
    int listener;
};

static int connect_to(const struct meeting *meeting, int flags)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    int error;

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&meeting->address, meeting->size) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void meet(struct meeting *meeting, int backlog)
{
    meeting->listener = listen_somewhere(&meeting->address, &meeting->size, backlog);
}

static int accept_one(const struct meeting *meeting)
{
    int fd;

    assert_true(wait_readable(meeting->listener));
    fd = accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_ok(fd);
    return fd;
}

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

/* ---- credentials ------------------------------------------------------------------------------------ */

static void connect_and_wait(int channel, void *context)
{
    int fd = connect_to(context, 0);

    CHECK(fd >= 0);
    tell(channel);
    hear(channel);
}

/* SO_PEERCRED names the process that connected, by the kernel's knowledge: I3. */
static void I3_peer_credentials_are_the_kernels(void **state)
{
    struct meeting meeting;
    struct ucred who;
    struct child child;
    int fd;

    meet(&meeting, 4);
    child_start(&child, connect_and_wait, &meeting);
    fd = accept_one(&meeting);
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

/* ---- pidfds ----------------------------------------------------------------------------------------- */

/* SO_PEERPIDFD is the connecting process itself, alive until it ends, however it ends. */
static void I3_peer_pidfd_is_the_connected_process(void **state)
{
    struct meeting meeting;
    struct child child;
    int fd, pidfd;

    meet(&meeting, 4);
    child_start(&child, connect_and_wait, &meeting);
    fd = accept_one(&meeting);
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

    meet(&meeting, 4);
    child_start(&child, connect_and_wait, &meeting);
    fd = accept_one(&meeting);
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

    meet(&meeting, 4);
    child_start(&child, connect_and_wait, &meeting);
    fd = accept_one(&meeting);
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

/* ---- the end of a connection proves nothing --------------------------------------------------------- */

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

/* ---- the queue of the one who listens --------------------------------------------------------------- */

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
    struct timeval timeout = { .tv_usec = 20000 };
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
        cmocka_unit_test(I3_peer_credentials_are_the_kernels),
        cmocka_unit_test(I3_peer_credentials_are_those_at_connect),
        cmocka_unit_test(I3_peer_pidfd_is_the_connected_process),
        cmocka_unit_test(I3_a_peer_dead_before_accept_is_dead_or_refused),
        cmocka_unit_test(I6_a_zombie_is_dead_to_its_pidfd),
        cmocka_unit_test(I6_the_end_of_one_thread_is_not_the_end),
        cmocka_unit_test(I6_exec_is_not_the_end),
        cmocka_unit_test(I6_a_forked_child_hides_eof_but_not_from_the_pidfd),
        cmocka_unit_test(I6_closing_everything_fakes_eof_but_not_to_the_pidfd),
        cmocka_unit_test(a_full_listen_queue_cannot_be_polled_for),
        cmocka_unit_test(a_blocking_connect_is_bounded_by_the_send_timeout),
        cmocka_unit_test(a_queued_connection_survives_the_death_of_the_acceptor),
        cmocka_unit_test(a_reply_lies_behind_econnreset),
    };

    return test_run(tests, NULL, NULL);
}
