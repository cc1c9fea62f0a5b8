/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing what may wait, on real files: the ends of pipes tell whether the other end is closed, and a socket that
 * lingers inside an unread packet is a close that does not return until its reader goes.
 */
#include "tests/support/test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "net/closer.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

static struct closers *closers;

static int setup(void **state)
{
    return closers_new(&closers, 1024);
}

static int teardown(void **state)
{
    closers = closers_free(closers);
    return 0;
}

/* A connection with a packet that nobody has received; its close takes until *reader is closed. */
static int connection_that_hangs(int *reader)
{
    FD_AUTO int lingers = fd_that_lingers(reader);
    int ends[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    assert_int_equal(fd_send_one(ends[1], lingers), 1);
    close(ends[1]);
    return ends[0];
}

/* The end to give away, and in *watched the one that tells of its close. */
static int watched_end(int *watched)
{
    int ends[2];

    assert_ok(pipe(ends));
    *watched = ends[0];
    return ends[1];
}

static bool is_closed(int watched)
{
    return wait_for_events(watched, POLLIN, 0) & POLLHUP;
}

static void descriptors_put_in_are_closed(void **state)
{
    struct closer *user = closers_get(closers, 1000);
    int watched[20];

    for (unsigned round = 0; round < 3; round++) {
        struct fdset fds = {.closer = closer_fds(user)};

        for (int i = 0; i < 20; i++)
            assert_int_equal(fdset_push(&fds, watched_end(&watched[i])), 0);
        fdset_deinit(&fds);
        assert_true(WAIT_UNTIL(!closer_pending(user)));
        assert_int_equal(closers_pending(closers), 0);
        for (int i = 0; i < 20; i++) {
            assert_true(is_closed(watched[i]));
            close(watched[i]);
        }
    }
    closer_unref(user);
}

static void I7_one_users_close_that_hangs_keeps_no_other_user_waiting(void **state)
{
    struct closer *bad = closers_get(closers, 1000), *good = closers_get(closers, 1001);
    FD_AUTO int reader = -1, behind = -1, other = -1, nobodys = -1;

    closer_close(bad, connection_that_hangs(&reader));
    closer_close(bad, watched_end(&behind));
    closer_close(good, watched_end(&other));
    closer_close(closers_nobody(closers), watched_end(&nobodys));
    assert_true(WAIT_UNTIL(!closer_pending(good) && !closer_pending(closers_nobody(closers))));
    assert_true(is_closed(other));
    assert_true(is_closed(nobodys));

    /* all the while it hangs, and what the same user sent hangs behind it */
    assert_true(stays_quiet(behind));
    assert_int_equal(closer_pending(bad), 2);
    assert_int_equal(closers_pending(closers), 2);

    reader = fd_close(reader);
    assert_true(WAIT_UNTIL(!closer_pending(bad)));
    assert_true(is_closed(behind));
    closer_unref(bad);
    closer_unref(good);
}

static void a_user_who_comes_back_finds_what_he_left(void **state)
{
    struct closer *user = closers_get(closers, 1000);
    FD_AUTO int reader = -1;

    closer_close(user, connection_that_hangs(&reader));
    closer_unref(user);
    /* others come, for whom room is made */
    for (uid_t uid = 2000; uid < 2010; uid++)
        closer_unref(closers_get(closers, uid));
    user = closers_get(closers, 1000);
    assert_int_equal(closer_pending(user), 1);
    closer_unref(user);
    reader = fd_close(reader);
    assert_true(WAIT_UNTIL(!closers_pending(closers)));
}

static void the_end_closes_what_is_left(void **state)
{
    struct closer *user = closers_get(closers, 1000);
    FD_AUTO int watched = -1;

    closer_close(user, watched_end(&watched));
    closer_unref(user);
    closers = closers_free(closers);
    assert_true(is_closed(watched));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(descriptors_put_in_are_closed),
        TEST(I7_one_users_close_that_hangs_keeps_no_other_user_waiting),
        TEST(a_user_who_comes_back_finds_what_he_left),
        TEST(the_end_closes_what_is_left),
    };

    return test_run(tests, NULL, NULL);
}
