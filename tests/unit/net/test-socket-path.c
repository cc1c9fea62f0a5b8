/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket file: made, taken over when stale, and left alone when it is in use, no socket, or somebody else's.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/socket_path.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"

static char folder[160];
static char path[200];
static char lock_path[210];
static struct problem problem;

static int setup(void **state)
{
    snprintf(folder, sizeof(folder), "%s/place", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    snprintf(path, sizeof(path), "%s/s", folder);
    snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
    problem = (struct problem)PROBLEM_NULL;
    return 0;
}

static int teardown(void **state)
{
    unlink(path);
    unlink(lock_path);
    rmdir(folder);
    return 0;
}

/* lock and listen: the outcome of both */
static int take(struct socket_path *where, int *fd)
{
    int r = socket_path_lock(where, path, &problem);

    return r ? r : socket_path_listen(where, true, fd, &problem);
}

static void the_socket_is_made_with_its_folder_and_removed_at_the_end(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;
    FD_AUTO int fd = -1;
    struct stat st;
    mode_t mask = umask(0);

    umask(mask);
    assert_int_equal(take(&where, &fd), 0);
    assert_ok(stat(path, &st));
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true(socket_path_answers(path));
    assert_int_equal(umask(mask), mask);
    socket_path_deinit(&where);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(lock_path, F_OK), -1);
}

static void everybody_may_connect_to_the_system_broker(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;
    FD_AUTO int fd = -1;
    struct stat st;

    assert_int_equal(socket_path_lock(&where, path, &problem), 0);
    assert_int_equal(socket_path_listen(&where, false, &fd, &problem), 0);
    assert_ok(stat(path, &st));
    assert_int_equal(st.st_mode & 07777, 0666);
    socket_path_deinit(&where);
}

static void one_broker_wins(void **state)
{
    struct socket_path first = SOCKET_PATH_NULL;
    struct socket_path second = SOCKET_PATH_NULL;
    FD_AUTO int fd = -1;

    assert_int_equal(take(&first, &fd), 0);
    assert_int_equal(socket_path_lock(&second, path, &problem), SOCKET_PATH_E_RUNNING);
    assert_non_null(strstr(problem.sentence, "already running"));
    assert_true(socket_path_answers(path));
    socket_path_deinit(&second);
    assert_true(socket_path_answers(path));
    socket_path_deinit(&first);
}

static int bind_there(const char *where)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, where, strlen(where) + 1);
    assert_ok(bind(fd, (struct sockaddr *)&address, sizeof(address)));
    return fd;
}

static void a_stale_socket_is_replaced(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;
    FD_AUTO int fd = -1;

    assert_ok(mkdir(folder, 0755));
    close(bind_there(path));
    assert_false(socket_path_answers(path));
    assert_int_equal(take(&where, &fd), 0);
    assert_true(socket_path_answers(path));
    socket_path_deinit(&where);
}

static void a_socket_that_answers_is_left_alone(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;
    FD_AUTO int fd = -1;
    FD_AUTO int other = -1;

    assert_ok(mkdir(folder, 0755));
    other = bind_there(path);
    assert_ok(listen(other, 1));
    assert_int_equal(take(&where, &fd), SOCKET_PATH_E_RUNNING);
    socket_path_deinit(&where);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;
    FD_AUTO int fd = -1;

    assert_ok(mkdir(folder, 0755));
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(take(&where, &fd), SOCKET_PATH_E_REFUSED);
    assert_non_null(strstr(problem.sentence, "is not a socket"));
    socket_path_deinit(&where);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_socket_of_another_user_is_left_alone(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;
    FD_AUTO int fd = -1;

    test_needs_root();
    assert_ok(mkdir(folder, 0755));
    close(bind_there(path));
    assert_ok(chown(path, UID_STRANGER, (gid_t)-1));
    assert_int_equal(take(&where, &fd), SOCKET_PATH_E_REFUSED);
    assert_non_null(strstr(problem.sentence, "not ours to replace"));
    socket_path_deinit(&where);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_folder_that_others_may_change_is_refused(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;

    assert_ok(mkdir(folder, 0755));
    assert_ok(chmod(folder, 0777));
    assert_int_equal(socket_path_lock(&where, path, &problem), SOCKET_PATH_E_REFUSED);
    assert_non_null(strstr(problem.sentence, "chmod go-w"));
    assert_ok(chmod(folder, 01777));
    assert_int_equal(socket_path_lock(&where, path, &problem), 0);
    socket_path_deinit(&where);
}

static void impossible_paths_are_refused_with_a_reason(void **state)
{
    struct socket_path where = SOCKET_PATH_NULL;
    char longest[300];

    memset(longest, 'a', sizeof(longest) - 1);
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(socket_path_lock(&where, longest, &problem), SOCKET_PATH_E_REFUSED);
    assert_non_null(strstr(problem.sentence, "299 bytes"));
    assert_int_equal(socket_path_lock(&where, "s", &problem), SOCKET_PATH_E_REFUSED);
    assert_int_equal(socket_path_lock(&where, "", &problem), SOCKET_PATH_E_REFUSED);
    assert_int_equal(socket_path_lock(&where, "/nonexistent/a/b", &problem), SOCKET_PATH_E_REFUSED);
    assert_int_equal(socket_path_lock(&where, "/dev/null/s", &problem), SOCKET_PATH_E_REFUSED);
    /* a lock file that is a link could make us lock, or make, anybody's file */
    assert_ok(mkdir(folder, 0755));
    assert_ok(symlink("/dev/null", lock_path));
    assert_int_equal(socket_path_lock(&where, path, &problem), SOCKET_PATH_E_REFUSED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_socket_is_made_with_its_folder_and_removed_at_the_end),
        TEST(everybody_may_connect_to_the_system_broker),
        TEST(one_broker_wins),
        TEST(a_stale_socket_is_replaced),
        TEST(a_socket_that_answers_is_left_alone),
        TEST(a_file_that_is_no_socket_is_left_alone),
        TEST(a_socket_of_another_user_is_left_alone),
        TEST(a_folder_that_others_may_change_is_refused),
        TEST(impossible_paths_are_refused_with_a_reason),
    };

    return test_run(tests, NULL, NULL);
}
