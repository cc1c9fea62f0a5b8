/* SPDX-License-Identifier: Apache-2.0 */
/* Releasing at the end of the scope, and handing on before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

struct thing {
    int order;
};

static int released[8];
static int n_released;

static struct thing *thing_free(struct thing *thing)
{
    released[n_released++] = thing->order;
    errno = EXDEV;
    return NULL;
}

DEFINE_CLEANUP(struct thing *, thing_free);

static int open_null(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_released_in_reverse_order(void **state)
{
    struct thing a = {1}, b = {2};

    n_released = 0;
    errno = ENOENT;
    {
        _cleanup_(thing_freep) struct thing *first = &a;
        _cleanup_(thing_freep) struct thing *second = &b;
        _cleanup_(thing_freep) struct thing *none = NULL;

        (void)first;
        (void)second;
        (void)none;
    }
    assert_int_equal(errno, ENOENT);
    assert_int_equal(n_released, 2);
    assert_int_equal(released[0], 2);
    assert_int_equal(released[1], 1);
}

static struct thing *hand_on(struct thing *thing)
{
    _cleanup_(thing_freep) struct thing *mine = thing;

    return steal_ptr(&mine);
}

static void test_stolen_is_not_released(void **state)
{
    struct thing a = {1};

    n_released = 0;
    assert_ptr_equal(hand_on(&a), &a);
    assert_int_equal(n_released, 0);
}

static void test_fd_is_closed_at_the_end(void **state)
{
    int kept = -1, gone;

    errno = ENOENT;
    {
        _cleanup_close_ int a = open_null();
        _cleanup_close_ int b = open_null();
        _cleanup_close_ int none = -1;

        (void)none;
        gone = a;
        kept = steal_fd(&b);
        assert_int_equal(b, -1);
        errno = ENOENT;
    }
    assert_int_equal(errno, ENOENT);
    assert_false(is_open(gone));
    assert_true(is_open(kept));
    kept = fd_close(kept);
    assert_int_equal(kept, -1);
}

static void test_fd_close_keeps_errno(void **state)
{
    int fd = open_null();

    assert_int_equal(fd_close(fd), -1);
    errno = EMLINK;
    /* already closed: close() itself fails with EBADF */
    assert_int_equal(fd_close(fd), -1);
    assert_int_equal(errno, EMLINK);
    assert_int_equal(fd_close(-1), -1);
    assert_int_equal(errno, EMLINK);
}

static void test_free_and_fclose(void **state)
{
    int fd = -1;

    {
        _cleanup_free_ char *text = strdup("released");
        _cleanup_free_ void *none = NULL;
        _cleanup_fclose_ FILE *file = fopen("/dev/null", "re");

        assert_non_null(text);
        assert_non_null(file);
        (void)none;
        fd = fileno(file);
        assert_true(is_open(fd));
    }
    assert_false(is_open(fd));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_released_in_reverse_order), cmocka_unit_test(test_stolen_is_not_released),
        cmocka_unit_test(test_fd_is_closed_at_the_end),   cmocka_unit_test(test_fd_close_keeps_errno),
        cmocka_unit_test(test_free_and_fclose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
