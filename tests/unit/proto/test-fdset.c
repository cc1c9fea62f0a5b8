/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns a descriptor, and when it is closed. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "proto/fdset.h"
#include "tests/support/fd.h"

static int new_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_ok(fd);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_deinit_closes_all(void **state)
{
    unsigned before = fd_count();
    struct fdset set = FDSET_NULL;

    fdset_deinit(&set);
    for (int i = 0; i < MEMORYD_FDS_MAX; i++)
        assert_int_equal(fdset_push(&set, new_fd()), 0);
    assert_int_equal(fd_count(), before + MEMORYD_FDS_MAX);
    errno = ENOENT;
    fdset_deinit(&set);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(fdset_count(&set), 0);
    assert_int_equal(fd_count(), before);
    fdset_deinit(&set);
}

static void test_full_takes_nothing(void **state)
{
    _cleanup_fdset_ struct fdset set = FDSET_NULL;
    _cleanup_close_ int one_more = new_fd();

    for (int i = 0; i < MEMORYD_FDS_MAX; i++)
        assert_int_equal(fdset_push(&set, new_fd()), 0);
    assert_int_equal(fdset_push(&set, one_more), FDSET_E_FULL);
    assert_int_equal(fdset_count(&set), MEMORYD_FDS_MAX);
    fdset_deinit(&set);
    assert_true(is_open(one_more));
}

static void test_steal_leaves_a_gap(void **state)
{
    struct fdset set = FDSET_NULL;
    _cleanup_close_ int stolen = -1;
    int fds[3];

    for (int i = 0; i < 3; i++) {
        fds[i] = new_fd();
        assert_int_equal(fdset_push(&set, fds[i]), 0);
    }
    stolen = fdset_steal(&set, 1);
    assert_int_equal(stolen, fds[1]);
    assert_int_equal(fdset_steal(&set, 1), -1);
    assert_int_equal(fdset_get(&set, 1), -1);
    /* the neighbours keep their places */
    assert_int_equal(fdset_count(&set), 3);
    assert_int_equal(fdset_get(&set, 0), fds[0]);
    assert_int_equal(fdset_get(&set, 2), fds[2]);
    fdset_deinit(&set);
    assert_true(is_open(stolen));
    assert_false(is_open(fds[0]));
    assert_false(is_open(fds[2]));
}

static void test_beyond_the_end(void **state)
{
    _cleanup_fdset_ struct fdset set = FDSET_NULL;
    volatile unsigned full = MEMORYD_FDS_MAX; /* gcc with a sanitizer sees the number, but not the check */

    assert_int_equal(fdset_get(&set, 0), -1);
    assert_int_equal(fdset_steal(&set, 0), -1);
    assert_int_equal(fdset_push(&set, new_fd()), 0);
    assert_int_equal(fdset_get(&set, 1), -1);
    assert_int_equal(fdset_steal(&set, full), -1);
    assert_int_equal(fdset_steal(&set, UINT32_MAX), -1);
}

static void test_move(void **state)
{
    struct fdset from = FDSET_NULL, to = FDSET_NULL;
    int a = new_fd(), b = new_fd();

    assert_int_equal(fdset_push(&from, a), 0);
    assert_int_equal(fdset_push(&from, b), 0);
    fdset_move(&to, &from);
    assert_int_equal(fdset_count(&from), 0);
    fdset_deinit(&from);
    assert_true(is_open(a) && is_open(b));
    assert_int_equal(fdset_get(&to, 1), b);
    fdset_deinit(&to);
    assert_false(is_open(a) || is_open(b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deinit_closes_all),
        cmocka_unit_test(test_full_takes_nothing),
        cmocka_unit_test(test_steal_leaves_a_gap),
        cmocka_unit_test(test_beyond_the_end),
        cmocka_unit_test(test_move),
    };

    return test_run(tests, NULL, NULL);
}
