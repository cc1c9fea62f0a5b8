/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor is promised by an operation, and opened when the reply leaves. What may happen in between. */
#include "tests/unit/broker/host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mem/buffer.h"
#include "mem/rights.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE UINT64_C(8192)
#define N    3

static uint64_t session, ids[N];
static struct fd_list list;
static struct statuses opened;
static struct fdset fds;

static int setup(void **state)
{
    host_setup(state);
    session = host_session(1);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(host_alloc(session, SIZE, BUFFER_PUBLISHABLE, &ids[i]), 0);
    return 0;
}

static int teardown(void **state)
{
    sys = &sys_kernel;
    fdset_deinit(&fds);
    return host_teardown(state);
}

/* All of them. */
static void promise(uint32_t rights)
{
    struct export_args args = {.buffers = {.n = N}};
    struct statuses result = {.n = 0};

    fd_list_init(&list, session);
    for (unsigned i = 0; i < N; i++) {
        args.buffers.id[i] = ids[i];
        args.rights[i] = rights;
        fd_list_add(&list, ids[i], rights);
    }
    assert_int_equal(CALL(session, op_export, &args, &result), 0);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(result.status[i], 0);
}

static int open_all(void)
{
    static struct call call;
    int r;

    call_init(&call, session);
    fdset_init(&fds);
    do
        r = op_open_fds(&call.op, &list, NULL, &opened, &fds);
    while (r == OP_PENDING);
    host_sentence = call.op.problem.sentence;
    return r;
}

static void a_promise_opens_nothing(void **state)
{
    unsigned before = fd_count();

    promise(RIGHT_READ);
    assert_int_equal(fd_count(), before);
    assert_int_equal(open_all(), 0);
    assert_int_equal(fdset_count(&fds), N);
    assert_int_equal(fd_count(), before + N);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(fcntl(fdset_get(&fds, i), F_GETFL) & O_ACCMODE, O_RDONLY);
}

/* Nobody has ever had it, so it ends at once; and those around it are not confused. */
static void I4_what_is_released_before_it_leaves_ends(void **state)
{
    promise(RIGHT_READ | RIGHT_WRITE);
    assert_int_equal(host_release(session, ids[1]), 0);
    assert_true(HOST_UNTIL(host_used() == 2 * SIZE));
    assert_int_equal(open_all(), 0);
    assert_int_equal(opened.status[0], 0);
    assert_int_equal(opened.status[1], STATUS_STALE);
    assert_int_equal(opened.status[2], 0);
    assert_non_null(strstr(host_sentence, "has ended"));
    assert_int_equal(fdset_count(&fds), 2);
    assert_int_equal(pwrite(fdset_get(&fds, 1), "x", 1, 0), 1);
    assert_int_equal(host_check(session), 0);
}

/* A name keeps it. But the session has no right to it any more. */
static void what_the_session_lost_does_not_leave(void **state)
{
    promise(RIGHT_READ);
    assert_int_equal(host_bind(session, ids[0], "kept", 0, 0), 0);
    assert_int_equal(host_release(session, ids[0]), 0);
    assert_int_equal(open_all(), 0);
    assert_int_equal(opened.status[0], STATUS_NO_RIGHT);
    assert_int_equal(fdset_count(&fds), N - 1);
}

static void nothing_leaves_for_a_session_that_has_ended(void **state)
{
    uint64_t other = host_session(2);

    promise(RIGHT_READ);
    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_int_equal(open_all(), 0);
    assert_int_equal(fdset_count(&fds), 0);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(opened.status[i], STATUS_STALE);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(other), 0);
}

static void what_is_published_meanwhile_leaves_for_reading(void **state)
{
    promise(RIGHT_READ | RIGHT_WRITE);
    assert_int_equal(CALL(session, op_publish, ids[2], false), 0);
    assert_int_equal(open_all(), 0);
    assert_int_equal(fdset_count(&fds), N);
    assert_int_equal(fcntl(fdset_get(&fds, 1), F_GETFL) & O_ACCMODE, O_RDWR);
    assert_int_equal(fcntl(fdset_get(&fds, 2), F_GETFL) & O_ACCMODE, O_RDONLY);
}

static int reopens, reopen_errno;

static int reopen_two(int fd, int flags)
{
    if (++reopens <= 2)
        return sys_kernel.reopen(fd, flags);
    errno = reopen_errno;
    return -1;
}

/* The session has them: they are not lost because the kernel opens none now. */
static void all_or_none_are_open(void **state)
{
    static const struct {
        int error;
        int status;
    } faults[] = {{EMFILE, STATUS_NO_DESCRIPTORS},
                  {ENFILE, STATUS_NO_DESCRIPTORS},
                  {ENOMEM, STATUS_NO_MEMORY},
                  {EACCES, STATUS_NOT_SUPPORTED}};
    struct sys_calls faulty = sys_kernel;
    unsigned before = fd_count();

    promise(RIGHT_READ);
    faulty.reopen = reopen_two;
    sys = &faulty;
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        reopens = 0;
        reopen_errno = faults[i].error;
        assert_int_equal(open_all(), faults[i].status);
        assert_int_equal(fdset_count(&fds), 0);
        assert_int_equal(fd_count(), before);
    }
    sys = &sys_kernel;
    assert_int_equal(open_all(), 0);
    assert_int_equal(fdset_count(&fds), N);
}

/* A descriptor can be read, so it takes the right to read. */
static void I2_no_descriptor_without_READ(void **state)
{
    uint64_t other = host_session(2);
    uint8_t token[MEMORYD_TOKEN_SIZE];
    int fd = -1;

    assert_int_equal(host_share(session, ids[0], &(struct share_args){.rights = RIGHT_READ | RIGHT_SHARE}, token), 0);
    assert_int_equal(host_open(other, token, RIGHT_SHARE, &fd), STATUS_NO_RIGHT);
    assert_int_equal(fd, -1);
    assert_int_equal(host_open(other, token, RIGHT_SHARE, NULL), 0);
    /* whatever a list says */
    session = other;
    fd_list_init(&list, other);
    fd_list_add(&list, ids[0], RIGHT_SHARE);
    assert_int_equal(open_all(), 0);
    assert_int_equal(opened.status[0], STATUS_NO_RIGHT);
}

/* The broker allocates nothing of it. The payer gets a descriptor to do that by. Others would pay for touching it. */
static void I1_others_get_nothing_that_its_payer_has_not_allocated(void **state)
{
    uint64_t other = host_session(2), id;
    uint8_t token[MEMORYD_TOKEN_SIZE];
    int fd = -1;

    for (uint32_t i = 0; i < pools_count(host.pools); i++)
        pools_get(host.pools, i)->committer = COMMITTER_CLIENT;
    assert_int_equal(host_alloc(session, SIZE, 0, &id), 0);
    fd_list_init(&list, session);
    fd_list_add(&list, id, RIGHT_READ | RIGHT_WRITE);
    assert_int_equal(
        CALL(session, op_export, &(struct export_args){.buffers = {1, {id}}, .rights = {RIGHT_WRITE}}, &opened), 0);
    assert_int_equal(opened.status[0], 0);
    assert_int_equal(open_all(), 0);
    assert_int_equal(memfd_allocated(fdset_get(&fds, 0)), 0);
    assert_int_equal(host_share(session, id, &(struct share_args){.rights = RIGHT_READ}, token), 0);
    for (uint64_t done = 0; done < SIZE; done += SIZE / 2) {
        assert_int_equal(host_open(other, token, RIGHT_READ, &fd), STATUS_BUSY);
        assert_int_equal(fd, -1);
        assert_ok(fallocate(fdset_get(&fds, 0), 0, (off_t)done, SIZE / 2));
    }
    assert_int_equal(host_open(other, token, RIGHT_READ, &fd), 0);
    close(fd);
    /* the others of this broker are not concerned */
    assert_int_equal(host_share(session, ids[0], &(struct share_args){.rights = RIGHT_READ}, token), 0);
    assert_int_equal(host_open(other, token, RIGHT_READ, &fd), 0);
    close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_promise_opens_nothing),
        TEST(I4_what_is_released_before_it_leaves_ends),
        TEST(what_the_session_lost_does_not_leave),
        TEST(nothing_leaves_for_a_session_that_has_ended),
        TEST(what_is_published_meanwhile_leaves_for_reading),
        TEST(all_or_none_are_open),
        TEST(I2_no_descriptor_without_READ),
        TEST(I1_others_get_nothing_that_its_payer_has_not_allocated),
    };

    return test_run(tests, NULL, NULL);
}
