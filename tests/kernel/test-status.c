/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process ended is told by its pidfd, to any user, once its parent has reaped it, and the pidfd hangs up just
 * then: deaths.c waits for that and asks. From Linux 6.15 on; before, nobody is told, and this is skipped.
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pidfd.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

static void wait_to_be_killed(int channel, void *context)
{
    (void)context;
    hear(channel);
}

static void setup_zombie(struct child *child, int *ret_pidfd)
{
    child_start(child, wait_to_be_killed, NULL);
    *ret_pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    assert_true(*ret_pidfd >= 0);
    child_kill_unreaped(child);
}

static void reap(struct child *child)
{
    int status;

    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->channel);
}

static uint64_t ask(int pidfd, int *ret_status)
{
    struct pidfd_end end = {.mask = PIDFD_END_STATUS};

    if (ioctl(pidfd, PIDFD_END_REQUEST, &end) < 0)
        return 0;
    *ret_status = end.status;
    return end.mask & PIDFD_END_STATUS;
}

static void ask_as_somebody_else(int channel, void *context)
{
    int status = 0;

    (void)channel;
    become(UID_STRANGER);
    CHECK(ask(*(int *)context, &status));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void the_status_is_told_when_it_is_reaped(void **state)
{
    struct child child;
    int pidfd, status = 0;

    if (!child_ends_are_told())
        test_skip("this kernel tells nobody how a process ended; 6.15 does");
    setup_zombie(&child, &pidfd);
    assert_false(ask(pidfd, &status));
    reap(&child);
    assert_true(ask(pidfd, &status));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (test_has_root())
        child_run(ask_as_somebody_else, &pidfd);
    close(pidfd);
}

/* Also where somebody else has the same description, and where nothing else is waited for. */
static void it_hangs_up_when_it_is_reaped(void **state)
{
    struct epoll_event event = {.events = 0};
    struct child child;
    int pidfd, epoll = epoll_create1(EPOLL_CLOEXEC), copy;

    if (!child_ends_are_told())
        test_skip("this kernel tells nobody how a process ended; 6.15 does");
    setup_zombie(&child, &pidfd);
    copy = dup(pidfd);
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, pidfd, &event), 0);
    assert_int_equal(epoll_wait(epoll, &event, 1, QUIET_MS), 0);
    reap(&child);
    assert_int_equal(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1);
    assert_true(event.events & EPOLLHUP);
    close(copy);
    close(pidfd);
    close(epoll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_is_told_when_it_is_reaped),
        cmocka_unit_test(it_hangs_up_when_it_is_reaped),
    };

    return test_run(tests, NULL, NULL);
}
