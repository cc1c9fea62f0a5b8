/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: all or none, charged exactly, in order of asking where room is short, and nothing left when it fails. */
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/pace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/buffer.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (UINT64_C(64) << 10)
#define MIB_ (UINT64_C(1) << 20)

static struct alloc_spec args;
static struct opened result;

static int alloc(uint64_t session)
{
    int r;

    memset(&result, 0, sizeof(result));
    r = CALL(session, op_alloc, &args, &result);
    return r;
}

static void bad_sizes_each_have_their_own_answer(void **state)
{
    uint64_t session = host_session(1), buffer;
    unsigned fds = fd_count();

    assert_int_equal(host_alloc(session, 0, 0, &buffer), STATUS_SIZE_ZERO);
    assert_int_equal(host_alloc(session, UINT64_MAX, 0, &buffer), STATUS_SIZE_OVERFLOW);
    assert_int_equal(host_alloc(session, UINT64_C(1) << 50, 0, &buffer), STATUS_TOO_BIG);
    args = (struct alloc_spec){.n = 1, .sizes = {SIZE}, .memory.pool = "no-such-pool"};
    assert_int_equal(alloc(session), STATUS_NO_SUCH_POOL);
    args = (struct alloc_spec){.n = 1, .sizes = {SIZE}, .memory = {.n_nodes = 1, .nodes = {63}}};
    assert_int_equal(alloc(session), STATUS_NO_SUCH_NODE);
    assert_int_equal(host_used(), 0);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(fd_count(), fds);
}

static void a_batch_is_all_or_none(void **state)
{
    uint64_t session = host_session(1);
    unsigned fds = fd_count();
    struct fdset opened;

    args = (struct alloc_spec){.n = 3, .sizes = {SIZE, SIZE, HOST_POOL_BYTES}};
    assert_int_equal(alloc(session), STATUS_POOL_FULL);
    assert_int_equal(host_used(), 0);
    assert_int_equal(fd_count(), fds);
    args.sizes[2] = 5;
    args.memory.flags = BUFFER_WANT_FDS;
    assert_int_equal(alloc(session), 0);
    assert_int_equal(result.n, 3);
    host_open_fds(session, &result, &opened);
    assert_int_equal(fdset_count(&opened), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(result.items[i].rights, RIGHTS_ALL);
        assert_int_equal(result.items[i].size, args.sizes[i]);
        assert_true(result.items[i].address >= host.options.arena_base);
        assert_int_equal(pwrite(fdset_get(&opened, i), "x", 1, 0), 1);
    }
    assert_int_not_equal(result.items[0].address, result.items[1].address);
    fdset_deinit(&opened);
    assert_int_equal(host_used(), 2 * SIZE + sysconf(_SC_PAGESIZE));
    assert_int_equal(host_check(session), 0);
    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(fd_count(), fds - 1); /* its pidfd */
}

/* Where there is plenty of room for them: that there is none is no reason to refuse a buffer. */
static void tokens_come_along_where_they_are_wanted(void **state)
{
    static const uint8_t none[MEMORYD_TOKEN_SIZE];
    uint64_t session = host_session(1), other = host_session(2);
    struct open_args open = {.n = 2, .rights = RIGHT_WRITE};
    struct opened opened;

    args = (struct alloc_spec){.n = 1, .sizes = {SIZE}};
    assert_int_equal(alloc(session), 0);
    assert_memory_equal(result.items[0].token, none, sizeof(none));

    args = (struct alloc_spec){.n = 2, .sizes = {SIZE, SIZE}, .memory.flags = BUFFER_WANT_TOKENS};
    assert_int_equal(alloc(session), 0);
    for (unsigned i = 0; i < 2; i++)
        memcpy(open.tokens[i], result.items[i].token, sizeof(open.tokens[i]));
    assert_int_equal(CALL(other, op_open, &open, &opened), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(opened.items[i].status, 0);
        assert_int_equal(opened.items[i].id, result.items[i].id);
        assert_int_equal(opened.items[i].rights, RIGHT_READ | RIGHT_WRITE);
    }

    host.limits.session[ACCOUNT_TOKENS] = 4;
    broker_set_limits(host.broker, &host.limits);
    assert_int_equal(alloc(session), 0);
    assert_memory_not_equal(result.items[0].token, none, sizeof(none));
    assert_memory_equal(result.items[1].token, none, sizeof(none));
    assert_int_equal(host_check(session), 0);
    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_int_equal(CALL(other, op_goodbye), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
}

static void large_ones_are_committed_by_workers(void **state)
{
    uint64_t session = host_session(1), buffer;

    assert_int_equal(host_alloc(session, 20 * MIB_, 0, &buffer), 0);
    assert_int_equal(host_used(), 20 * MIB_);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(host_release(session, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
}

static void the_caller_is_told_which_limit_it_was(void **state)
{
    uint64_t session = host_session(1), buffer;

    host.limits.session[ACCOUNT_BUFFERS] = 2;
    broker_set_limits(host.broker, &host.limits);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), STATUS_LIMIT);
    assert_non_null(strstr(host_sentence, "buffers"));
    assert_int_equal(host_used(), 2 * SIZE);
    host_no_limits(&host.limits);
    host.limits.user[ACCOUNT_BYTES] = 3 * SIZE;
    broker_set_limits(host.broker, &host.limits);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), STATUS_LIMIT);
    assert_non_null(strstr(host_sentence, "bytes"));
    assert_int_equal(host_check(session), 0);
}

static void a_name_comes_with_it_or_nothing_does(void **state)
{
    uint64_t session = host_session(1);

    args = (struct alloc_spec){.n = 1, .sizes = {SIZE}, .name = {.name = "x/y"}};
    assert_int_equal(alloc(session), 0);
    assert_int_equal(alloc(session), STATUS_NAME_EXISTS);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_lookup(session, "x/y", 0, 0, NULL), 0);
    assert_int_equal(host_opened.id, result.n ? result.items[0].id : host_opened.id);
    assert_int_equal(CALL(session, op_destroy, host_opened.id, false), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(session), 0);
}

static void an_address_is_had_or_refused(void **state)
{
    uint64_t session = host_session(1), wish = host.options.arena_base + (UINT64_C(1) << 30), buffer;

    args = (struct alloc_spec){.n = 1, .sizes = {SIZE}, .memory.address = wish};
    assert_int_equal(alloc(session), 0);
    assert_int_equal(result.items[0].address, wish);
    buffer = result.items[0].id;
    assert_int_equal(alloc(session), STATUS_ADDRESS_TAKEN);
    args.memory.address = 0;
    args.memory.alignment = 2 * MIB_;
    assert_int_equal(alloc(session), 0);
    assert_int_equal(result.items[0].address % (2 * MIB_), 0);
    args.memory.alignment = 0;
    args.memory.flags = BUFFER_NO_ADDRESS;
    assert_int_equal(alloc(session), 0);
    assert_int_equal(result.items[0].address, 0);
    /* the range is free when the buffer has ended */
    assert_int_equal(host_release(session, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 2 * SIZE));
    args = (struct alloc_spec){.n = 1, .sizes = {SIZE}, .memory.address = wish};
    assert_int_equal(alloc(session), 0);
    assert_int_equal(host_check(session), 0);
}

static void I9_placed_buffers_keep_their_range(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), reservation, address, again, buffer, second, id;
    struct buffer_info info;

    assert_int_equal(CALL(session, op_reserve, 4 * SIZE, 0, 0, &reservation, &address), 0);
    assert_int_equal(CALL(session, op_reserve, 4 * SIZE, 0, address, &id, &again), STATUS_ADDRESS_TAKEN);
    assert_int_equal(host_alloc(session, SIZE, BUFFER_NO_ADDRESS, &buffer), 0);
    assert_int_equal(CALL(session, op_place, buffer, reservation, 4 * SIZE), STATUS_SIZE_OVERFLOW);
    assert_int_equal(CALL(session, op_place, buffer, reservation, 1), STATUS_INVALID_ARGUMENT);
    assert_int_equal(CALL(other, op_place, buffer, reservation, 0), STATUS_NO_RIGHT);
    assert_int_equal(CALL(session, op_place, buffer, reservation, SIZE), 0);
    assert_int_equal(CALL(session, op_place, buffer, reservation, SIZE), STATUS_BUSY);
    /* no other buffer has its home there, not even in part */
    assert_int_equal(host_alloc(session, 2 * SIZE, BUFFER_NO_ADDRESS, &second), 0);
    assert_int_equal(CALL(session, op_place, second, reservation, 0), STATUS_ADDRESS_TAKEN);
    assert_int_equal(CALL(session, op_place, second, reservation, SIZE), STATUS_ADDRESS_TAKEN);
    assert_int_equal(CALL(session, op_place, second, reservation, 2 * SIZE), 0);
    assert_int_equal(host_release(session, second), 0);
    assert_int_equal(host_info(session, buffer, &info), 0);
    assert_int_equal(info.address, address + SIZE);
    assert_int_equal(CALL(other, op_unreserve, reservation), STATUS_NO_RIGHT);
    assert_int_equal(CALL(session, op_unreserve, reservation), 0);
    /* the buffer is still there, so is its range */
    assert_int_equal(CALL(other, op_reserve, SIZE, 0, address + SIZE, &id, &again), STATUS_ADDRESS_TAKEN);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(host_release(session, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(CALL(other, op_reserve, 4 * SIZE, 0, address, &id, &again), 0);
    assert_int_equal(CALL(session, op_unreserve, reservation), STATUS_STALE);
    assert_int_equal(host_check(session), 0);
}

/* ---- waiting for room -------------------------------------------------------------------------------------------- */

struct waiting {
    struct call call;
    struct alloc_spec args;
    struct opened result;
};

static int begin(struct waiting *waiting, uint64_t session, uint64_t size, uint64_t wait_ms)
{
    call_init(&waiting->call, session);
    waiting->args = (struct alloc_spec){.n = 1, .sizes = {size}, .wait_ms = wait_ms};
    return op_alloc(&waiting->call.op, &waiting->args, &waiting->result);
}

static void room_is_had_in_the_order_of_asking(void **state)
{
    static struct waiting large, small, last;
    uint64_t session = host_session(1), first, buffer;

    memset(&large, 0, sizeof(large));
    memset(&small, 0, sizeof(small));
    memset(&last, 0, sizeof(last));
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES - SIZE, 0, &first), 0);
    assert_int_equal(begin(&large, session, 32 * MIB_, 60000), OP_PENDING);
    /* there is room for it, but another one waits */
    assert_int_equal(begin(&small, session, SIZE, 60000), OP_PENDING);
    assert_int_equal(begin(&last, session, HOST_POOL_BYTES, 50), OP_PENDING);
    host_turn(5);
    assert_false(large.call.ended);
    assert_false(small.call.ended);
    /* who does not wait takes what is there */
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), STATUS_POOL_FULL);
    assert_true(HOST_UNTIL(last.call.ended));
    assert_int_equal(last.call.status, STATUS_TIMED_OUT);
    assert_int_equal(host_release(session, first), 0);
    assert_true(HOST_UNTIL(large.call.ended && small.call.ended));
    assert_int_equal(large.call.status, 0);
    assert_int_equal(small.call.status, 0);
    assert_int_equal(host_used(), 32 * MIB_ + 2 * SIZE);
    assert_int_equal(host_check(session), 0);
}

static void I7_a_user_who_waits_keeps_no_other_one_waiting(void **state)
{
    static struct waiting all, other, more, none;
    uint64_t mine = host_session_of(1, getpid(), 1001), his = host_session_of(2, getpid(), 1002), first, second;
    uint64_t admin = host_session(3);

    memset(&all, 0, sizeof(all));
    memset(&other, 0, sizeof(other));
    memset(&more, 0, sizeof(more));
    memset(&none, 0, sizeof(none));
    assert_int_equal(host_alloc(his, SIZE, 0, &first), 0);
    assert_int_equal(begin(&all, mine, HOST_POOL_BYTES, UINT64_MAX), OP_PENDING);
    /* there is room for the other user, and then there is none for anybody */
    assert_int_equal(begin(&other, his, SIZE, 60000), 0);
    assert_int_equal(host_alloc(his, HOST_POOL_BYTES - 2 * SIZE, 0, &second), 0);
    assert_int_equal(begin(&more, his, SIZE, 60000), OP_PENDING);
    assert_int_equal(begin(&none, mine, SIZE, 60000), OP_PENDING);
    assert_int_equal(host_release(his, first), 0);
    assert_true(HOST_UNTIL(more.call.ended));
    assert_int_equal(more.call.status, 0);
    assert_false(all.call.ended || none.call.ended);
    /* when the oldest goes, the next of its user has its turn */
    op_cancel(&all.call.op);
    assert_true(HOST_UNTIL(all.call.ended));
    assert_false(none.call.ended);
    assert_int_equal(host_release(his, second), 0);
    assert_true(HOST_UNTIL(none.call.ended));
    assert_int_equal(none.call.status, 0);
    assert_int_equal(host_check(admin), 0);
}

/* What is tried for a batch and given back again is no news for those who wait. */
static void a_batch_that_waits_keeps_the_loop_quiet(void **state)
{
    static struct waiting batch;
    uint64_t session = host_session(1), first, second;

    memset(&batch, 0, sizeof(batch));
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES / 2, 0, &first), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &second), 0);
    call_init(&batch.call, session);
    batch.args = (struct alloc_spec){.n = 2, .sizes = {SIZE, HOST_POOL_BYTES / 2}, .wait_ms = UINT64_MAX};
    assert_int_equal(op_alloc(&batch.call.op, &batch.args, &batch.result), OP_PENDING);
    assert_int_equal(host_release(session, second), 0);
    host_settle();
    assert_false(batch.call.ended);
    assert_int_equal(host_release(session, first), 0);
    assert_true(HOST_UNTIL(batch.call.ended));
    assert_int_equal(batch.call.status, 0);
}

/* Memory comes back in slices, and who needs no more than one does not wait for the rest. */
static void who_waits_is_served_while_a_large_one_is_given_back(void **state)
{
    static struct waiting waiting;
    uint64_t session = host_session(1), large;
    int fd;

    memset(&waiting, 0, sizeof(waiting));
    assert_int_equal(host_alloc(session, HOST_LARGE_BYTES, 0, &large), 0);
    fd = host_export(session, large, RIGHT_READ);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(begin(&waiting, session, SIZE, UINT64_MAX), OP_PENDING);
    assert_int_equal(host_release(session, large), 0);
    assert_true(HOST_UNTIL(waiting.call.ended));
    assert_int_equal(waiting.call.status, 0);
    assert_true(host_used() > HOST_LARGE_BYTES / 4);
    assert_int_equal(host_check(session), 0);
    assert_true(HOST_UNTIL(host_used() == SIZE));
    assert_int_equal(host_check(session), 0);
}

/* Of several buffers, one fits now, and they do not. */
static void a_wait_in_vain_says_how_much_all_of_them_were(void **state)
{
    static struct waiting batch;
    uint64_t session = host_session(1), first;

    memset(&batch, 0, sizeof(batch));
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES / 2, 0, &first), 0);
    call_init(&batch.call, session);
    batch.args = (struct alloc_spec){.n = 2, .sizes = {SIZE, HOST_POOL_BYTES / 2}, .wait_ms = 20};
    assert_int_equal(op_alloc(&batch.call.op, &batch.args, &batch.result), OP_PENDING);
    assert_true(HOST_UNTIL(batch.call.ended));
    assert_int_equal(batch.call.status, STATUS_TIMED_OUT);
    assert_int_equal(batch.call.op.problem.shortage.wanted, HOST_POOL_BYTES / 2 + SIZE);
    assert_int_equal(batch.call.op.problem.shortage.used, HOST_POOL_BYTES / 2);
}

/* Before its turn came again, so that no pool is chosen yet. */
static void one_that_is_given_up_at_once_is_refused(void **state)
{
    static struct waiting batch;
    uint64_t session = host_session(1);

    memset(&batch, 0, sizeof(batch));
    call_init(&batch.call, session);
    batch.args = (struct alloc_spec){.n = 2, .sizes = {SIZE, SIZE}};
    pace_ns = TURN_SLICE_NS;
    assert_int_equal(op_alloc(&batch.call.op, &batch.args, &batch.result), OP_PENDING);
    pace_ns = 0;
    op_cancel(&batch.call.op);
    assert_true(HOST_UNTIL(batch.call.ended));
    assert_int_equal(batch.call.status, STATUS_TIMED_OUT);
    assert_int_equal(host_used(), 0);
    assert_int_equal(host_check(session), 0);
}

static void waiting_ends_when_the_caller_goes(void **state)
{
    static struct waiting a, b;
    uint64_t session = host_session(1), other = host_session(2), first;

    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES, 0, &first), 0);
    assert_int_equal(begin(&a, other, SIZE, UINT64_MAX), OP_PENDING);
    assert_int_equal(begin(&b, session, SIZE, UINT64_MAX), OP_PENDING);
    op_cancel(&b.call.op);
    assert_false(b.call.ended);
    assert_true(HOST_UNTIL(b.call.ended));
    assert_int_equal(b.call.status, STATUS_TIMED_OUT);
    assert_int_equal(CALL(other, op_goodbye), 0);
    assert_true(HOST_UNTIL(a.call.ended));
    assert_int_not_equal(a.call.status, 0);
    assert_int_equal(host_check(session), 0);
}

static void what_was_for_a_client_that_is_gone_is_given_back(void **state)
{
    static struct waiting big;
    uint64_t session = host_session(1), other = host_session(2);

    memset(&big, 0, sizeof(big));
    assert_int_equal(begin(&big, other, 32 * MIB_, 0), OP_PENDING);
    assert_int_equal(host_used(), 32 * MIB_);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(CALL(other, op_goodbye), 0);
    assert_true(HOST_UNTIL(big.call.ended));
    assert_int_not_equal(big.call.status, 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(session), 0);
}

static void a_broker_that_stops_ends_what_is_pending(void **state)
{
    static struct waiting wait, work;
    uint64_t session, first;

    memset(&wait, 0, sizeof(wait));
    memset(&work, 0, sizeof(work));
    assert_int_equal(host_setup(state), 0);
    session = host_session(1);
    assert_int_equal(host_alloc(session, 32 * MIB_, 0, &first), 0);
    assert_int_equal(begin(&work, session, 32 * MIB_, 0), OP_PENDING);
    assert_int_equal(begin(&wait, session, SIZE, 60000), OP_PENDING);
    host_stop();
    assert_true(wait.call.ended);
    assert_int_equal(wait.call.status, STATUS_STALE);
    assert_true(work.call.ended);
    assert_int_not_equal(work.call.status, 0);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static struct sys_calls faulty;
static atomic_int fail_in; /* the how manieth call fails; workers make some of them */
static atomic_int fail_errno;

static bool fails(void)
{
    int n = fail_in;

    while (n > 0 && !atomic_compare_exchange_weak(&fail_in, &n, n - 1))
        ;
    if (n != 1)
        return false;
    errno = fail_errno;
    return true;
}

static int faulty_memfd_create(const char *name, unsigned flags)
{
    return fails() ? -1 : sys_kernel.memfd_create(name, flags);
}

static int faulty_ftruncate(int fd, off_t size)
{
    return fails() ? -1 : sys_kernel.ftruncate(fd, size);
}

static int faulty_fallocate(int fd, int mode, off_t offset, off_t length)
{
    return fails() ? -1 : sys_kernel.fallocate(fd, mode, offset, length);
}

static ssize_t faulty_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return fails() ? -1 : sys_kernel.pwrite(fd, bytes, size, offset);
}

static int faulty_reopen(int fd, int flags)
{
    return fails() ? -1 : sys_kernel.reopen(fd, flags);
}

static int faulty_add_seals(int fd, int seals)
{
    return fails() ? -1 : sys_kernel.add_seals(fd, seals);
}

static int faulty_inotify_add(int inotify, int fd, uint32_t mask)
{
    return fails() ? -1 : sys_kernel.inotify_add(inotify, fd, mask);
}

static int faulty_fstat(int fd, struct stat *st)
{
    return fails() ? -1 : sys_kernel.fstat(fd, st);
}

static void faults_leave_nothing_behind(void **state)
{
    static const int errors[] = {ENOSPC, ENOMEM, EMFILE};
    uint64_t session = host_session(1);
    unsigned fds = fd_count(), failures = 0;

    faulty = sys_kernel;
    faulty.memfd_create = faulty_memfd_create;
    faulty.ftruncate = faulty_ftruncate;
    faulty.fallocate = faulty_fallocate;
    faulty.pwrite = faulty_pwrite;
    faulty.reopen = faulty_reopen;
    faulty.add_seals = faulty_add_seals;
    faulty.inotify_add = faulty_inotify_add;
    faulty.fstat = faulty_fstat;
    sys = &faulty;
    for (unsigned large = 0; large < 2; large++) {
        for (int nth = 1;; nth++) {
            int r;

            fail_in = nth;
            fail_errno = errors[nth % 3];
            args = (struct alloc_spec){
                .n = 2, .sizes = {SIZE, large ? MIB_ : 1}, .memory.flags = BUFFER_WANT_FDS, .name = {.name = ""}};
            r = alloc(session);
            fdset_deinit(&result.fds);
            if (!r) {
                struct ids ids = {.n = 2, .id = {result.items[0].id, result.items[1].id}};
                struct statuses statuses = {.n = 0};

                assert_int_equal(CALL(session, op_release, &ids, &statuses), 0);
            } else {
                failures++;
            }
            if (fail_in > 0) {
                fail_in = 0;
                host_settle();
                break;
            }
            host_settle();
            assert_int_equal(host_used(), 0);
            assert_int_equal(fd_count(), fds);
            assert_int_equal(host_check(session), 0);
        }
    }
    sys = &sys_kernel;
    assert_true(failures > 10);
    assert_int_equal(host_used(), 0);
    assert_int_equal(fd_count(), fds);
}

/* ---- an inode number that another buffer has --------------------------------------------------------------------- */

static ino_t same_inode;
static unsigned same_times;

static int repeating_fstat(int fd, struct stat *st)
{
    int r = sys_kernel.fstat(fd, st);

    if (!r && same_times) {
        same_times--;
        st->st_ino = same_inode;
    }
    return r;
}

static void an_inode_number_that_is_taken_is_not_used(void **state)
{
    uint64_t session = host_session(1), first, second;
    struct buffer_info a, b;
    unsigned fds;

    assert_int_equal(host_alloc(session, SIZE, 0, &first), 0);
    assert_int_equal(host_info(session, first, &a), 0);
    faulty = sys_kernel;
    faulty.fstat = repeating_fstat;
    sys = &faulty;
    same_inode = a.inode;
    same_times = 1;
    assert_int_equal(host_alloc(session, SIZE, 0, &second), 0);
    assert_int_equal(same_times, 0);
    assert_int_equal(host_info(session, second, &b), 0);
    assert_int_not_equal(a.inode, b.inode);
    same_times = 1;
    assert_int_equal(host_alloc(session, 2 * MIB_, 0, &second), 0);
    fds = fd_count();
    /* a kernel that does so for ever is refused */
    same_times = 100;
    assert_int_equal(host_alloc(session, SIZE, 0, &second), STATUS_NO_MEMORY);
    same_times = 0;
    sys = &sys_kernel;
    host_settle();
    assert_int_equal(fd_count(), fds);
    assert_int_equal(host_used(), 2 * SIZE + 2 * MIB_);
    assert_int_equal(host_check(session), 0);
}

static void pressure_is_told_once(void **state)
{
    uint64_t session = host_session(1), a, b, c;

    assert_int_equal(CALL(session, op_subscribe, 1), 0);
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES * 8 / 10, 0, &a), 0);
    host_settle();
    assert_int_equal(host.n_events, 0);
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES / 16, 0, &b), 0);
    host_settle();
    assert_true(host.n_events > 0);
    for (unsigned i = 0; i < host.n_events; i++)
        assert_int_equal(host.events[i].event.level, 1);
    host.n_events = 0;
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES / 8, 0, &c), 0);
    host_settle();
    assert_true(host.n_events > 0);
    assert_int_equal(host.events[0].event.level, 2);
    host.n_events = 0;
    assert_int_equal(host_release(session, a), 0);
    host_settle();
    assert_true(host.n_events > 0);
    assert_int_equal(host.events[0].event.level, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)
        TEST(bad_sizes_each_have_their_own_answer),
        TEST(a_batch_is_all_or_none),
        TEST(tokens_come_along_where_they_are_wanted),
        TEST(large_ones_are_committed_by_workers),
        TEST(the_caller_is_told_which_limit_it_was),
        TEST(a_name_comes_with_it_or_nothing_does),
        TEST(an_address_is_had_or_refused),
        TEST(I9_placed_buffers_keep_their_range),
        TEST(room_is_had_in_the_order_of_asking),
        TEST(I7_a_user_who_waits_keeps_no_other_one_waiting),
        TEST(a_batch_that_waits_keeps_the_loop_quiet),
        TEST(a_wait_in_vain_says_how_much_all_of_them_were),
        TEST(one_that_is_given_up_at_once_is_refused),
        TEST(waiting_ends_when_the_caller_goes),
        cmocka_unit_test_setup_teardown(who_waits_is_served_while_a_large_one_is_given_back, host_setup_large,
                                        host_teardown),
        TEST(what_was_for_a_client_that_is_gone_is_given_back),
        TEST(faults_leave_nothing_behind),
        TEST(an_inode_number_that_is_taken_is_not_used),
        TEST(pressure_is_told_once),
#undef TEST
        cmocka_unit_test(a_broker_that_stops_ends_what_is_pending),
    };

    return test_run(tests, NULL, NULL);
}
