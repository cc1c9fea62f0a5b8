/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the broker did not make: what of it may be handed in, what it can do, and what it cannot. */
#include "tests/unit/broker/host.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mem/buffer.h"
#include "mem/name.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (UINT64_C(300) << 10)
#define RW   (RIGHT_READ | RIGHT_WRITE)

static int memory(size_t size)
{
    int fd = memfd_create("elsewhere", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_ok(ftruncate(fd, (off_t)size));
    if (size)
        assert_int_equal(pwrite(fd, "device", 7, 0), 7);
    return fd;
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;

    return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* ---- what may be handed in --------------------------------------------------------------------------------------- */

static void descriptors_of_no_memory_are_refused(void **state)
{
    uint64_t session = host_session(1), buffer;
    _cleanup_close_ int file = memory(SIZE);
    int pair[2];
    const char *path;
    char text[64];

    assert_ok(pipe2(pair, O_CLOEXEC));
    (void)snprintf(text, sizeof(text), "/proc/self/fd/%d", file);
    path = text;
    {
        const struct {
            int fd;
            int status;
        } cases[] = {
            {pair[0], STATUS_NOT_SUPPORTED},
            {pair[1], STATUS_NOT_SUPPORTED},
            {eventfd(0, EFD_CLOEXEC), STATUS_NOT_SUPPORTED},
            {open("/dev/null", O_RDWR | O_CLOEXEC), STATUS_NOT_SUPPORTED},
            {open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), STATUS_NOT_SUPPORTED},
            {open("/proc/self/status", O_RDONLY | O_CLOEXEC), STATUS_NOT_SUPPORTED},
            {open(path, O_PATH | O_CLOEXEC), STATUS_NOT_SUPPORTED},
            {open(path, O_WRONLY | O_CLOEXEC), STATUS_INVALID_ARGUMENT},
            {open(path, O_ACCMODE | O_CLOEXEC), STATUS_INVALID_ARGUMENT}, /* for neither */
            {memory(0), STATUS_SIZE_ZERO},
        };

        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
            assert_true(cases[i].fd >= 0);
            assert_int_equal(host_adopt(session, cases[i].fd, &buffer), cases[i].status);
            assert_true(strlen(host_sentence) > 20);
            close(cases[i].fd);
        }
    }
    assert_int_equal(host_check(session), 0);
}

static void its_own_the_broker_wants_imported(void **state)
{
    uint64_t session = host_session(1), buffer, foreign;
    _cleanup_close_ int fd = -1;

    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    fd = host_export(session, buffer, RW);
    assert_int_equal(host_adopt(session, fd, &foreign), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(host_sentence, "import"));
}

static int say_yes(int fd)
{
    (void)fd;
    return 0;
}

/* No dma-buf can be had everywhere, so a file on a disk plays one. */
static void a_dma_buf_is_taken(void **state)
{
    uint64_t session = host_session(1), buffer;
    _cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), out = -1;
    struct sys_calls with_dma_bufs = sys_kernel;
    off_t size = lseek(fd, 0, SEEK_END);
    int r;

    with_dma_bufs.check_dma_buf = say_yes;
    sys = &with_dma_bufs;
    r = host_adopt(session, fd, &buffer);
    sys = &sys_kernel;
    assert_int_equal(r, 0);
    assert_int_equal(host_opened.size, size);
    assert_int_equal(host_opened.rights, RIGHTS_ALL & ~(uint32_t)RIGHT_WRITE);
    out = host_export(session, buffer, RIGHT_READ);
    assert_true(is_same_file(fd, out));
    assert_int_equal(host_release(session, buffer), 0);
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static void imported_memory_is_charged_as_a_buffer_without_bytes_I5(void **state)
{
    uint64_t session = host_session(1), buffer, again, third;
    _cleanup_close_ int fd = memory(SIZE);
    struct buffer_info info;

    assert_int_equal(host_adopt(session, fd, &buffer), 0);
    assert_int_equal(host_opened.rights, RIGHTS_ALL);
    assert_int_equal(host_opened.size, SIZE);
    assert_int_equal(host_opened.bytes, 0);
    assert_int_equal(host_opened.address, 0);
    assert_true(host_opened.flags & BUFFER_FOREIGN);
    assert_int_equal(host_used(), 0);
    assert_int_equal(host_info(session, buffer, &info), 0);
    assert_string_equal(info.pool, "");
    assert_int_equal(info.n_nodes, 0);
    assert_int_equal(info.state, BUFFER_LIVE);
    assert_int_equal(host_check(session), 0);

    host.limits.user[ACCOUNT_BUFFERS] = 2;
    broker_set_limits(host.broker, &host.limits);
    /* the same memory may be handed in twice, and makes two */
    assert_int_equal(host_adopt(session, fd, &again), 0);
    assert_int_not_equal(again, buffer);
    assert_int_equal(host_adopt(session, fd, &third), STATUS_LIMIT);
    assert_int_equal(host_release(session, again), 0);
    host_settle();
    assert_int_equal(host_adopt(session, fd, &third), 0);
    assert_int_equal(host_check(session), 0);
}

static void it_is_carried_to_those_who_accept_it(void **state)
{
    const struct share_args terms = {.rights = RW};
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int fd = memory(SIZE), out = -1;
    uint8_t token[32];
    char text[7];

    assert_int_equal(host_adopt(maker, fd, &buffer), 0);
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_bind(maker, buffer, "gpu/frame", NAME_KEEP, 0), 0);
    assert_int_equal(host_open(other, token, 0, &out), STATUS_NOT_SUPPORTED);
    assert_int_equal(host_lookup(other, "gpu/frame", 0, 0, &out), STATUS_NOT_SUPPORTED);
    assert_int_equal(host_lookup(other, NULL, buffer, 0, &out), STATUS_NOT_SUPPORTED);
    assert_int_equal(out, -1);

    host_accepts_foreign = true;
    assert_int_equal(host_open(other, token, 0, &out), 0);
    assert_int_equal(host_opened.id, buffer);
    assert_true(is_same_file(fd, out));
    assert_int_equal(fcntl(out, F_GETFD), FD_CLOEXEC);
    assert_int_equal(pread(out, text, 7, 0), 7);
    assert_string_equal(text, "device");
    close(out);
    assert_int_equal(host_lookup(other, "gpu/frame", 0, 0, &out), 0);
    assert_true(is_same_file(fd, out));
    assert_int_equal(host_check(maker), 0);
}

/* I2: what the kernel cannot narrow is not handed out as if it were narrow. */
static void nobody_gets_more_or_less_than_was_handed_in(void **state)
{
    const struct share_args reading = {.rights = RIGHT_READ};
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int fd = memory(SIZE), narrow = -1;
    uint8_t token[32];
    char path[32];
    int out = -1;

    host_accepts_foreign = true;
    assert_int_equal(host_adopt(maker, fd, &buffer), 0);
    assert_int_equal(host_share(maker, buffer, &reading, token), 0);
    assert_int_equal(host_open(other, token, 0, &out), STATUS_NO_RIGHT);
    assert_int_equal(host_export(maker, buffer, RIGHT_READ), -1);
    assert_int_equal(host_status, STATUS_NO_RIGHT);
    assert_int_equal(host_release(maker, buffer), 0);

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    narrow = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(host_adopt(maker, narrow, &buffer), 0);
    assert_int_equal(host_opened.rights, RIGHTS_ALL & ~(uint32_t)RIGHT_WRITE);
    assert_int_equal(host_share(maker, buffer, &reading, token), 0);
    assert_int_equal(host_open(other, token, 0, &out), 0);
    assert_errno(write(out, "x", 1), EBADF);
    close(out);
    /* its owner may have all rights by its number, and gets those that there are */
    assert_int_equal(host_lookup(other, NULL, buffer, RW, &out), STATUS_NO_RIGHT);
    assert_int_equal(host_lookup(other, NULL, buffer, 0, &out), 0);
    assert_false(host_opened.rights & RIGHT_WRITE);
    close(out);
    assert_int_equal(host_check(maker), 0);
}

static void what_is_done_to_memory_is_not_done_to_it(void **state)
{
    uint64_t session = host_session(1), buffer, reservation, address;
    _cleanup_close_ int fd = memory(SIZE);

    assert_int_equal(host_adopt(session, fd, &buffer), 0);
    assert_int_equal(CALL(session, op_reserve, 1 << 20, 0, 0, &reservation, &address), 0);
    assert_int_equal(CALL(session, op_publish, buffer, false), STATUS_NOT_SUPPORTED);
    assert_int_equal(CALL(session, op_publish, buffer, true), STATUS_NOT_SUPPORTED);
    assert_int_equal(CALL(session, op_discard, buffer, 0, 0), STATUS_NOT_SUPPORTED);
    assert_int_equal(CALL(session, op_move, buffer, 0), STATUS_NOT_SUPPORTED);
    assert_int_equal(CALL(session, op_place, buffer, reservation, 0), STATUS_NOT_SUPPORTED);
    assert_int_equal(host_import(session, fd, NULL), STATUS_FD_FOREIGN);
    assert_int_equal(host_check(session), 0);
}

/* ---- how it ends ------------------------------------------------------------------------------------------------- */

/* A lease on it is given if nobody else has any of its descriptions. */
static bool is_sole(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return false;
    assert_ok(fcntl(fd, F_SETLEASE, F_UNLCK));
    return true;
}

static void it_ends_with_its_last_claim_and_its_contents_stay(void **state)
{
    const struct share_args keeping = {.rights = RW, .flags = TOKEN_KEEPING, .uses = 1};
    uint64_t maker = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int fd = memory(SIZE), mine = -1;
    struct buffer_info info;
    uint8_t token[32];
    char path[32], text[7];
    int out;

    host_accepts_foreign = true;
    /* the first description of a memfd counts as none when leases are asked for */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    mine = open(path, O_RDWR | O_CLOEXEC);
    out = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(host_adopt(maker, out, &buffer), 0);
    close(out);
    fd = fd_close(fd);
    assert_int_equal(host_share(maker, buffer, &keeping, token), 0);
    assert_int_equal(CALL(maker, op_goodbye), 0);
    host_settle();
    assert_false(is_sole(mine));
    assert_int_equal(host_open(other, token, 0, &out), 0);
    assert_int_equal(host_release(other, buffer), 0);
    /* whoever has it open does not keep it, nor is kept from it */
    assert_true(HOST_UNTIL(host_info(other, buffer, &info) == STATUS_STALE));
    assert_false(is_sole(mine));
    close(out);
    assert_true(HOST_UNTIL(is_sole(mine)));
    assert_int_equal(pread(mine, text, 7, 0), 7);
    assert_string_equal(text, "device");
    assert_int_equal(host_check(other), 0);
}

static void an_administrator_ends_it(void **state)
{
    uint64_t session = host_session(1), buffer;
    _cleanup_close_ int fd = memory(SIZE);
    struct buffer_info info;

    for (int force = 0; force < 2; force++) {
        assert_int_equal(host_adopt(session, fd, &buffer), 0);
        assert_int_equal(CALL(session, op_destroy, buffer, force), 0);
        assert_true(HOST_UNTIL(host_info(session, buffer, &info) == STATUS_STALE));
    }
    assert_int_equal(memfd_allocated(fd), page_size());
    assert_int_equal(host_check(session), 0);
}

/* I6: whether its process still uses it nobody can say, so no time takes it. */
static void no_grace_ends_a_session_that_holds_one(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), buffer;
    _cleanup_close_ int fd = memory(SIZE);
    struct buffer_info info;

    assert_int_equal(host_adopt(session, fd, &buffer), 0);
    assert_int_equal(broker_connection_lost(host.broker, session, (void *)(uintptr_t)1), 0);
    for (int64_t end = wait_now_ms() + 3 * (int64_t)host.grace_ms; wait_now_ms() < end;)
        host_turn(5);
    assert_int_equal(host_info(other, buffer, &info), 0);
    assert_int_equal(CALL(other, op_destroy, buffer, false), 0);
    assert_true(HOST_UNTIL(host_info(other, buffer, &info) == STATUS_STALE));
    assert_int_equal(host_check(other), 0);
}

static int setup(void **state)
{
    host_accepts_foreign = false;
    return host_setup(state);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, host_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(descriptors_of_no_memory_are_refused),
        TEST(its_own_the_broker_wants_imported),
        TEST(a_dma_buf_is_taken),
        TEST(imported_memory_is_charged_as_a_buffer_without_bytes_I5),
        TEST(it_is_carried_to_those_who_accept_it),
        TEST(nobody_gets_more_or_less_than_was_handed_in),
        TEST(what_is_done_to_memory_is_not_done_to_it),
        TEST(it_ends_with_its_last_claim_and_its_contents_stay),
        TEST(an_administrator_ends_it),
        TEST(no_grace_ends_a_session_that_holds_one),
    };

    return cmocka_run_group_tests_name("foreign", tests, NULL, NULL);
}
