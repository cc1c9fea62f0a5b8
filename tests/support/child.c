/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/child.h"

#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pidfd.h"

/* Dies with the test program. The kernel forgets this when the process changes its uid. In a namespace of processes
 * that the test program has made and is not in, it has no number. */
static void die_with(pid_t parent)
{
    pid_t now;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    now = getppid();
    if (now && now != parent)
        _exit(EXIT_FAILURE);
}

void child_start(struct child *child, child_body *body, void *context)
{
    pid_t parent = getpid();
    int ends[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    fflush(NULL);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        die_with(parent);
        close(ends[0]);
        body(ends[1], context);
        fflush(NULL);
        _exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    child->channel = ends[0];
}

static void let_go(struct child *child)
{
    if (child->channel >= 0)
        close(child->channel);
    child->channel = -1;
    child->pid = -1;
}

int child_wait(struct child *child)
{
    int status = 0;

    if (!WAIT_UNTIL(waitpid(child->pid, &status, WNOHANG) == child->pid)) {
        child_kill(child);
        fail_msg("the child did not end in time");
    }
    let_go(child);
    return status;
}

void child_finish(struct child *child)
{
    int status = child_wait(child);

    if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED)
        test_skip("the child could not try it");
    if (WIFSIGNALED(status))
        fail_msg("the child was killed by signal %d", WTERMSIG(status));
    assert_int_equal(status, 0);
}

void child_kill(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    let_go(child);
}

void child_kill_unreaped(struct child *child)
{
    siginfo_t info;

    kill(child->pid, SIGKILL);
    assert_ok(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT));
}

void child_run(child_body *body, void *context)
{
    struct child child;

    child_start(&child, body, context);
    child_finish(&child);
}

void child_need_malloc(void)
{
    if (TEST_ASAN || TEST_TSAN)
        test_skip("the sanitizer's malloc() may wait for ever in the child, for a thread that the child does not have");
}

struct bare {
    child_body *body;
    void *context;
};

/* A sanitizer catches SIGSEGV and SIGBUS to print a report; here the signal itself is the answer. */
static void with_default_handlers(int channel, void *context)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGPIPE, SIGIO, SIGXFSZ};
    const struct bare *bare = context;

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_DFL);
    bare->body(channel, bare->context);
}

int child_signal(child_body *body, void *context)
{
    struct bare bare = {.body = body, .context = context};
    struct child child;
    int status;

    child_start(&child, with_default_handlers, &bare);
    status = child_wait(&child);
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    assert_int_equal(status, 0);
    return 0;
}

void child_tell(struct child *child)
{
    assert_int_equal(send(child->channel, "", 1, MSG_NOSIGNAL), 1);
}

void child_hear(struct child *child)
{
    char byte;

    assert_true(wait_readable(child->channel));
    if (recv(child->channel, &byte, 1, 0) != 1) {
        child_finish(child); /* it ended early: its own failure says more */
        fail_msg("the child ended before its turn");
    }
}

void become(uid_t uid)
{
    pid_t parent = getppid();

    CHECK(setgroups(0, NULL) == 0);
    CHECK(setresgid(uid, uid, uid) == 0);
    CHECK(setresuid(uid, uid, uid) == 0);
    die_with(parent);
}

void tell(int channel)
{
    CHECK(send(channel, "", 1, MSG_NOSIGNAL) == 1);
}

void hear(int channel)
{
    char byte;

    CHECK(wait_readable(channel));
    if (recv(channel, &byte, 1, 0) != 1)
        _exit(EXIT_FAILURE); /* the parent gave up on the test, and has said why */
}

_Noreturn void child_give_up(const char *what, const char *file, int line)
{
    int error = errno;

    fprintf(stderr, "%s:%d: in the child (uid %u): false: %s (errno: %s)\n", file, line, (unsigned)getuid(), what,
            strerror(error));
    _exit(EXIT_FAILURE);
}

void child_check_errno(bool failed, int wanted, const char *what, const char *file, int line)
{
    int error = errno;

    if (failed && error == wanted)
        return;
    fprintf(stderr, "%s:%d: in the child (uid %u): %s: %s, not %s\n", file, line, (unsigned)getuid(), what,
            failed ? strerror(error) : "succeeded", strerror(wanted));
    _exit(EXIT_FAILURE);
}

_Noreturn void child_skip(const char *reason)
{
    fprintf(stderr, "%s\n", reason);
    _exit(TEST_SKIPPED);
}

pid_t youngest_child_of(pid_t parent)
{
    char text[256];
    pid_t child = 0;
    long number;
    ssize_t n;
    int fd;

    (void)snprintf(text, sizeof(text), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text, *end; (number = strtol(at, &end, 10)) > 0; at = end)
        child = (pid_t)number;
    return child;
}

void child_use_up_memory(void)
{
    const struct rlimit none = {0};
    void *volatile got; /* or a compiler would leave out what nobody uses */

    if (TEST_ASAN || TEST_TSAN || TEST_MSAN || test_under_valgrind())
        child_skip("it runs under a tool that needs memory itself");
    /* in sizes that go down, so that no hole is left */
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    for (size_t size = (size_t)1 << 20; size >= 16; size /= 2)
        do
            got = malloc(size);
        while (got);
}

bool child_ends_are_told(void)
{
    struct pidfd_end end = {.mask = PIDFD_END_STATUS};
    pid_t pid = fork();
    int pidfd, r;

    if (!pid)
        _exit(0);
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    r = ioctl(pidfd, PIDFD_END_REQUEST, &end);
    close(pidfd);
    return r == 0 && end.mask & PIDFD_END_STATUS;
}
