/* SPDX-License-Identifier: Apache-2.0 */
/* A process that lets another one know that it dies. */

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "keeper/pulse.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

/* Hands its pulse over, and closes the pipe that it had before. */
static void live(int channel, void *context)
{
    const int *others = context;
    int fd = pulse_start();

    CHECK(fd >= 0);
    CHECK(fd_send_one(channel, fd) > 0);
    CHECK(close(fd) == 0 && close(others[1]) == 0);
    tell(channel);
    for (;;)
        pause();
}

static bool hangs_up(int fd)
{
    return wait_for_events(fd, POLLIN, 0) & POLLHUP;
}

static void it_stops_when_the_process_dies(void **state)
{
    struct child child;
    int others[2];
    FD_AUTO int fd = -1;

    (void)state;
#if !HAVE_CLOSE_RANGE
    test_skip("this system has no close_range()");
#endif
    assert_ok(pipe2(others, O_CLOEXEC));
    child_start(&child, live, others);
    fd = fd_receive_one(child.channel);
    assert_ok(fd);
    child_hear(&child);
    close(others[1]);
    /* the thread has nothing else open */
    assert_true(hangs_up(others[0]));
    assert_false(hangs_up(fd));
    child_kill(&child);
    assert_true(WAIT_UNTIL(hangs_up(fd)));
    close(others[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_stops_when_the_process_dies),
    };

    return test_run(tests, NULL, NULL);
}
