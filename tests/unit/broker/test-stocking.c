/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm stock: it is there for who asks, nobody else's room, nobody's charge, and still there for the next broker.
 *
 * How much there is depends on what was asked for in what time, and it goes when nobody asks for long. So no figure is
 * expected here but what was seen before.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "account/account.h"
#include "base/cleanup.h"
#include "mem/buffer.h"
#include "mem/pool.h"
#include "mem/rights.h"
#include "mem/stock.h"
#include "proto/status.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/keeper.h"
#include "tests/unit/broker/steps.h"

#define SIZE (UINT64_C(64) << 10)
static struct sys_calls faulty;
static pthread_t loop;
static unsigned made; /* by the loop itself */

static int count_memfds(const char *name, unsigned flags)
{
    if (pthread_equal(pthread_self(), loop))
        made++;
    return sys_kernel.memfd_create(name, flags);
}

/* More than before, and nothing is on its way any more. */
static void wait_for_stock(uint64_t before)
{
    assert_true(HOST_UNTIL(host_stock() > before && !work_pending(host.work)));
}

static int take(uint64_t session, uint32_t n, uint64_t size, uint32_t flags, struct opened *ret)
{
    static struct alloc_spec args;

    args = (struct alloc_spec){.n = n, .memory.flags = flags};
    for (uint32_t i = 0; i < n; i++)
        args.sizes[i] = size;
    memset(ret, 0, sizeof(*ret));
    return CALL(session, op_alloc, &args, ret);
}

/* It was opened beforehand. */
static int open_first(uint64_t session, struct opened *opened)
{
    struct fdset fds;
    int beforehand;

    assert_int_equal(fdset_count(&opened->fds), 1);
    beforehand = fdset_get(&opened->fds, 0);
    host_open_fds(session, opened, &fds);
    assert_int_equal(fdset_get(&fds, 0), beforehand);
    return beforehand;
}

/* So often that there is stock of it from now on. What was made for that is given up again. */
static void have_stock(uint64_t session, uint32_t flags)
{
    int64_t end = wait_now_ms() + PATIENCE_MS;
    static struct opened opened;

    while (!host_stock() && wait_now_ms() < end) {
        assert_int_equal(take(session, 1, SIZE, flags, &opened), 0);
        fdset_deinit(&opened.fds);
        assert_int_equal(host_release(session, opened.items[0].id), 0);
        host_turn(0);
    }
    wait_for_stock(SIZE);
    assert_true(HOST_UNTIL(!host_used()));
    made = 0;
}

static int setup_with(struct pool_capacity stock)
{
    host_reset(0);
    host.stock = stock;
    loop = pthread_self();
    faulty = sys_kernel;
    faulty.memfd_create = count_memfds;
    if (!host_no_pidfds)
        sys = &faulty;
    host_start();
    return 0;
}

static int setup(void **state)
{
    return setup_with((struct pool_capacity){.percent = 25});
}

/* However slow the machine is, and however large demand seems: fewer than a batch may have. */
static const struct pool_capacity little = {.bytes = 8 * SIZE};

static int setup_little(void **state)
{
    return setup_with(little);
}

static int setup_nodes(void **state)
{
    host_reset(2);
    host.stock = (struct pool_capacity){.percent = 25};
    host_start();
    return 0;
}

static int teardown(void **state)
{
    (void)host_teardown(state);
    sys = &sys_kernel;
    return 0;
}

/* ---- there ------------------------------------------------------------------------------------------------------- */

static void a_repeated_size_is_allocated_from_stock(void **state)
{
    uint64_t session = host_session(1), before;
    static struct opened opened;
    struct buffer_info info;

    have_stock(session, 0);
    before = host_stock();
    assert_int_equal(take(session, 1, SIZE - 5, 0, &opened), 0);
    assert_int_equal(made, 0);
    assert_int_equal(host_stock(), before - SIZE);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_info(session, opened.items[0].id, &info), 0);
    assert_int_equal(info.size, SIZE - 5);
    assert_int_equal(info.bytes, SIZE);
    assert_int_equal(info.state, BUFFER_LIVE);
    assert_int_equal(info.uid, getuid());
    assert_int_equal(info.charged_uid, getuid());
    assert_int_equal(info.pid, getpid());
    assert_int_equal(info.holds, 1);
    assert_int_equal(info.flags & BUFFER_EXPORTED, 0);
    assert_true(info.address != 0);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(host_release(session, opened.items[0].id), 0);
    assert_true(HOST_UNTIL(!host_used()));
    assert_int_equal(host_check(session), 0);
}

static void I4_stock_is_zeros_that_nobody_had(void **state)
{
    static char bytes[SIZE];
    uint64_t session = host_session(1);
    static struct opened opened;
    uint64_t inode;

    have_stock(session, BUFFER_WANT_FDS);
    for (unsigned turn = 0; turn < 2; turn++) {
        _cleanup_close_ int fd = -1;
        struct buffer_info info;

        assert_int_equal(take(session, 1, SIZE, BUFFER_WANT_FDS, &opened), 0);
        assert_int_equal(made, 0);
        fd = open_first(session, &opened);
        assert_int_equal(pread(fd, bytes, SIZE, 0), SIZE);
        for (size_t i = 0; i < SIZE; i++)
            assert_int_equal(bytes[i], 0);
        memset(bytes, 'x', SIZE);
        assert_int_equal(pwrite(fd, bytes, SIZE, 0), SIZE);
        assert_int_equal(host_info(session, opened.items[0].id, &info), 0);
        assert_true(info.flags & BUFFER_EXPORTED);
        assert_true(!turn || inode != info.inode);
        inode = info.inode;
        /* it is known by what left, and ends with it */
        assert_int_equal(host_release(session, opened.items[0].id), 0);
        assert_int_equal(host_used(), SIZE);
        fd = fd_close(fd);
        assert_true(HOST_UNTIL(!host_used()));
    }
    assert_int_equal(host_check(session), 0);
}

static int no_room_for_watches(int inotify, int fd, uint32_t mask)
{
    (void)inotify;
    (void)fd;
    (void)mask;
    errno = ENOSPC;
    return -1;
}

/* It is watched when it leaves, and what was opened of it before is what leaves. */
static void I4_it_comes_back_if_it_could_not_be_watched_before(void **state)
{
    uint64_t session = host_session(1), id;
    _cleanup_close_ int fd = -1;
    static struct opened opened;

    assert_int_equal(take(session, 1, SIZE, BUFFER_WANT_FDS, &opened), 0);
    id = opened.items[0].id;
    fdset_deinit(&opened.fds);
    assert_int_equal(host_release(session, id), 0);
    assert_true(HOST_UNTIL(!host_used()));
    faulty.inotify_add = no_room_for_watches;
    while (!host_stock()) {
        /* who wants a descriptor is refused, and has been heard */
        assert_int_equal(take(session, 1, SIZE, BUFFER_WANT_FDS, &opened), STATUS_LIMIT);
        host_turn(1);
    }
    wait_for_stock(0);
    faulty.inotify_add = sys_kernel.inotify_add;
    made = 0;
    assert_int_equal(take(session, 1, SIZE, BUFFER_WANT_FDS, &opened), 0);
    assert_int_equal(made, 0);
    fd = open_first(session, &opened);
    assert_int_equal(host_release(session, opened.items[0].id), 0);
    assert_int_equal(host_used(), SIZE);
    fd = fd_close(fd);
    assert_true(HOST_UNTIL(!host_used()));
    assert_int_equal(host_check(session), 0);
}

static void of_a_batch_only_what_is_not_there_is_made(void **state)
{
    uint64_t session = host_session(1), before;
    static struct opened opened;
    uint32_t n;

    have_stock(session, 0);
    before = host_stock();
    n = (uint32_t)(before / SIZE) + 1;
    assert_int_equal(take(session, n, SIZE, 0, &opened), 0);
    assert_int_equal(opened.n, n);
    assert_int_equal(made, 1);
    assert_int_equal(host_used(), n * SIZE);
    assert_int_equal(host_check(session), 0);
    for (uint32_t i = 0; i < n; i++) {
        struct buffer_info info;

        assert_int_equal(host_info(session, opened.items[i].id, &info), 0);
        assert_int_equal(info.state, BUFFER_LIVE);
        assert_int_equal(info.charged_uid, getuid());
        assert_int_equal(info.holds, 1);
        assert_int_equal(host_release(session, opened.items[i].id), 0);
    }
    /* there are as many again, and they do for all of a batch */
    wait_for_stock(before - 1);
    assert_true(HOST_UNTIL(!host_used()));
    made = 0;
    assert_int_equal(take(session, n - 1, SIZE, 0, &opened), 0);
    assert_int_equal(made, 0);
    assert_int_equal(host_used(), (n - 1) * SIZE);
    assert_int_equal(host_check(session), 0);
}

/* More than the loop makes itself: what is in stock waits until workers have made the rest. */
static void begin_large_batch(struct call *call, uint64_t session, struct opened *ret)
{
    static struct alloc_spec args;

    args = (struct alloc_spec){.n = MEMORYD_BATCH_MAX};
    for (uint32_t i = 0; i < args.n; i++)
        args.sizes[i] = SIZE;
    call_init(call, session);
    memset(ret, 0, sizeof(*ret));
    assert_int_equal(op_alloc(&call->op, &args, ret), OP_PENDING);
    while (!list_is_empty(&host.turns))
        host_take_turns();
}

static void what_waits_for_the_rest_of_its_batch_is_still_in_stock(void **state)
{
    uint64_t session = host_session(1), before, id;
    static struct opened opened;
    static struct call call;

    have_stock(session, 0);
    before = host_stock();
    begin_large_batch(&call, session, &opened);
    assert_int_equal(host_stock(), before);
    assert_int_equal(host_used(), MEMORYD_BATCH_MAX * SIZE - before);
    /* and nobody else gets it */
    assert_int_equal(host_alloc(session, SIZE, 0, &id), 0);
    assert_int_equal(made, 1);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(call_finish(&call, OP_PENDING), 0);
    assert_int_equal(opened.n, MEMORYD_BATCH_MAX);
    assert_int_equal(host_used(), (MEMORYD_BATCH_MAX + 1) * SIZE);
    for (uint32_t i = 0; i < opened.n; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_int_not_equal(opened.items[i].id, opened.items[k].id);
    assert_int_equal(host_check(session), 0);
}

/* Who has it promised pays from then on: nobody takes it from under him who may have no more than that. */
static void I5_who_waits_for_the_rest_of_his_batch_pays_for_all(void **state)
{
    uint64_t session = host_session(1), id;
    static struct opened opened;
    static struct call call;

    have_stock(session, 0);
    host.limits.user[ACCOUNT_BUFFERS] = MEMORYD_BATCH_MAX;
    broker_set_limits(host.broker, &host.limits);
    begin_large_batch(&call, session, &opened);
    assert_int_equal(account_used(host_account(session), ACCOUNT_BUFFERS), MEMORYD_BATCH_MAX);
    assert_int_equal(account_used(host_account(session), ACCOUNT_BYTES), MEMORYD_BATCH_MAX * SIZE);
    assert_int_equal(host_alloc(session, SIZE, 0, &id), STATUS_LIMIT);
    assert_int_equal(call_finish(&call, OP_PENDING), 0);
    assert_int_equal(opened.n, MEMORYD_BATCH_MAX);
    assert_int_equal(account_used(host_account(session), ACCOUNT_BUFFERS), MEMORYD_BATCH_MAX);
    assert_int_equal(host_check(session), 0);
}

static void it_comes_back_from_a_batch_that_is_given_up(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), before;
    static struct opened opened;
    static struct call call;

    have_stock(session, 0);
    before = host_stock();
    begin_large_batch(&call, other, &opened);
    assert_int_equal(CALL(other, op_goodbye), 0);
    assert_int_not_equal(call_finish(&call, OP_PENDING), 0);
    assert_true(HOST_UNTIL(!host_used()));
    wait_for_stock(before - 1);
    assert_int_equal(host_check(session), 0);
    made = 0;
    assert_int_equal(take(session, (uint32_t)(before / SIZE), SIZE, 0, &opened), 0);
    assert_int_equal(made, 0);
    assert_int_equal(host_check(session), 0);
}

/* He finds no room, but were what is in stock given back there would be. */
static void begin_to_wait_for_stock(struct call *call, uint64_t session, struct opened *ret)
{
    static struct alloc_spec args;

    args = (struct alloc_spec){.n = 1, .sizes = {HOST_POOL_BYTES - MEMORYD_BATCH_MAX * SIZE + SIZE}};
    call_init(call, session);
    memset(ret, 0, sizeof(*ret));
    assert_int_equal(op_alloc(&call->op, &args, ret), OP_PENDING);
}

static void who_waits_for_it_is_told_when_a_batch_has_taken_it(void **state)
{
    uint64_t session = host_session(1), other = host_session(2);
    static struct opened opened, large;
    static struct call call, waiting;

    have_stock(session, 0);
    begin_large_batch(&call, session, &opened);
    begin_to_wait_for_stock(&waiting, other, &large);
    assert_int_equal(call_finish(&call, OP_PENDING), 0);
    assert_int_equal(call_finish(&waiting, OP_PENDING), STATUS_POOL_FULL);
    assert_int_equal(host_used(), MEMORYD_BATCH_MAX * SIZE);
    assert_int_equal(host_check(session), 0);
}

static void who_waits_for_it_gets_it_from_a_batch_that_is_given_up(void **state)
{
    uint64_t session = host_session(1), other = host_session(2);
    static struct opened opened, large;
    static struct call call, waiting;

    have_stock(session, 0);
    begin_large_batch(&call, session, &opened);
    begin_to_wait_for_stock(&waiting, other, &large);
    op_cancel(&call.op);
    assert_int_equal(call_finish(&call, OP_PENDING), STATUS_TIMED_OUT);
    assert_int_equal(call_finish(&waiting, OP_PENDING), 0);
    assert_true(HOST_UNTIL(host_used() == HOST_POOL_BYTES - MEMORYD_BATCH_MAX * SIZE + SIZE));
    assert_int_equal(host_check(other), 0);
}

static void stock_of_other_properties_is_not_taken(void **state)
{
    uint64_t session = host_session(1), id;

    have_stock(session, 0);
    assert_int_equal(host_alloc(session, SIZE, BUFFER_PUBLISHABLE, &id), 0);
    assert_int_equal(host_alloc(session, SIZE + 1, 0, &id), 0);
    assert_int_equal(made, 2);
    /* where it is to lie does not matter to it */
    assert_int_equal(host_alloc(session, SIZE, BUFFER_NO_ADDRESS, &id), 0);
    assert_int_equal(made, 2);
}

static bool see_buffer(void *userdata, const union list_row *row)
{
    (void)row;
    ++*(unsigned *)userdata;
    return true;
}

static void I5_stock_belongs_to_nobody(void **state)
{
    uint64_t session = host_session(1), next, before;
    struct list_args args = {.userdata = NULL};
    struct status_info status;
    struct buffer_info info;
    unsigned seen = 0;

    have_stock(session, 0);
    args.userdata = &seen;
    assert_int_equal(CALL(session, op_list, LIST_BUFFERS, &args, &next, see_buffer), 0);
    assert_int_equal(seen, 0);
    assert_int_equal(CALL(session, op_status, &status), 0);
    assert_int_equal(status.buffers, 0);
    assert_int_equal(status.buffers_detached, 0);
    assert_int_equal(status.bytes, 0);
    assert_int_equal(account_used(host_account(session), ACCOUNT_BUFFERS), 0);
    before = host_stock();
    for (uint64_t id = 1; id < 100; id++) {
        assert_int_not_equal(host_info(session, id, &info), 0);
        assert_int_not_equal(CALL(session, op_destroy, id, true), 0);
        assert_int_not_equal(host_lookup(session, NULL, id, 0, NULL), 0);
    }
    assert_int_equal(host_stock(), before);
    assert_int_equal(host_check(session), 0);
    assert_int_equal(CALL(session, op_goodbye), 0);
    host_settle();
    assert_true(broker_is_idle(host.broker));
}

static void whoever_takes_it_pays(void **state)
{
    uint64_t session = host_session(1), before, id;

    have_stock(session, 0);
    before = host_stock();
    host.limits.user[ACCOUNT_BYTES] = SIZE - 1;
    broker_set_limits(host.broker, &host.limits);
    assert_int_equal(host_alloc(session, SIZE, 0, &id), STATUS_LIMIT);
    assert_int_equal(host_stock(), before);
    assert_int_equal(host_used(), 0);
    assert_int_equal(host_check(session), 0);
    host_no_limits(&host.limits);
    broker_set_limits(host.broker, &host.limits);
    assert_int_equal(host_alloc(session, SIZE, 0, &id), 0);
    assert_int_equal(made, 0);
}

/* ---- in nobody's way --------------------------------------------------------------------------------------------- */

static void the_last_byte_is_had(void **state)
{
    uint64_t session = host_session(1), rest = HOST_POOL_BYTES - SIZE, id, last;

    have_stock(session, 0);
    assert_int_equal(host_alloc(session, rest, 0, &id), 0);
    assert_int_equal(host_alloc(session, SIZE - 4096, 0, &last), 0);
    assert_int_equal(host_alloc(session, 4096, 0, &last), 0);
    assert_int_equal(host_used(), HOST_POOL_BYTES);
    assert_int_equal(host_stock(), 0);
    assert_int_equal(host_alloc(session, 1, 0, &last), STATUS_POOL_FULL);
    assert_int_equal(host_check(session), 0);
}

static void none_is_kept_in_a_pool_that_is_nearly_full(void **state)
{
    uint64_t session = host_session(1), id;

    have_stock(session, 0);
    assert_int_equal(host_alloc(session, HOST_POOL_BYTES / 100 * 86, 0, &id), 0);
    assert_true(HOST_UNTIL(!host_stock()));
    assert_int_equal(host_check(session), 0);
}

static unsigned failing;

static ssize_t fails_at_first(int fd, const void *bytes, size_t size, off_t offset)
{
    if (failing && pthread_equal(pthread_self(), loop)) {
        failing--;
        errno = ENOMEM;
        return -1;
    }
    return sys_kernel.pwrite(fd, bytes, size, offset);
}

/* The room is there, and the memory is not. */
static void stock_is_drained_before_an_alloc_is_refused(void **state)
{
    uint64_t session = host_session(1), id;

    if (host_no_pidfds)
        test_skip("the test's own calls of the kernel take the place of those that are missing here");
    have_stock(session, 0);
    faulty.pwrite = fails_at_first;
    failing = 1;
    assert_int_equal(host_alloc(session, 2 * SIZE, 0, &id), 0);
    assert_int_equal(host_stock(), 0);
    failing = 1;
    assert_int_equal(host_alloc(session, 2 * SIZE, 0, &id), STATUS_NO_MEMORY);
    failing = 0;
    assert_int_equal(host_check(session), 0);
}

/* And with a batch that has some of it. */
/* ---- and where --------------------------------------------------------------------------------------------------- */

/* For a caller on this node; where it is. */
static uint32_t take_near(uint64_t session, uint32_t node, uint64_t size, uint64_t *ret)
{
    static struct alloc_spec args;
    static struct opened opened;
    struct buffer_info info;

    args = (struct alloc_spec){.n = 1, .sizes = {size}, .memory.caller_node = 1 + node};
    memset(&opened, 0, sizeof(opened));
    assert_int_equal(CALL(session, op_alloc, &args, &opened), 0);
    *ret = opened.items[0].id;
    assert_int_equal(host_info(session, *ret, &info), 0);
    assert_int_equal(info.n_nodes, 1);
    return info.nodes[0];
}

static void have_stock_near(uint64_t session, uint32_t node)
{
    int64_t end = wait_now_ms() + PATIENCE_MS;
    uint64_t id;

    while (!host_stock() && wait_now_ms() < end) {
        assert_int_equal(take_near(session, node, SIZE, &id), node);
        assert_int_equal(host_release(session, id), 0);
        host_turn(0);
    }
    wait_for_stock(SIZE);
    assert_true(HOST_UNTIL(!host_used()));
    assert_true(pools_node_budget(host.pools, node)->bytes.in[TALLY_STOCK]);
    assert_false(pools_node_budget(host.pools, !node)->bytes.in[TALLY_STOCK]);
}

static void stock_of_another_node_is_not_taken(void **state)
{
    uint64_t session = host_session(1), before, id;

    for (uint32_t node = 0; node < 2; node++) {
        have_stock_near(session, node);
        before = host_stock();
        assert_int_equal(take_near(session, !node, SIZE, &id), !node);
        assert_int_equal(host_stock(), before);
        assert_int_equal(host_release(session, id), 0);
        /* and who is there gets it */
        assert_int_equal(take_near(session, node, SIZE, &id), node);
        assert_int_equal(host_stock(), before - SIZE);
        assert_int_equal(host_release(session, id), 0);
        assert_true(HOST_UNTIL(!host_used()));
        /* all of it goes, for the other node's turn */
        assert_int_equal(take_near(session, node, HOST_POOL_BYTES, &id), node);
        assert_int_equal(host_release(session, id), 0);
        assert_true(HOST_UNTIL(!host_used() && !host_stock() && !work_pending(host.work)));
    }
    assert_int_equal(host_check(session), 0);
}

/* There would be room at once on the other node. */
static void stock_is_drained_before_an_alloc_goes_to_another_node(void **state)
{
    uint64_t session = host_session(1), id;

    for (uint32_t node = 0; node < 2; node++) {
        have_stock_near(session, node);
        assert_int_equal(take_near(session, node, HOST_POOL_BYTES, &id), node);
        assert_int_equal(pools_node_budget(host.pools, node)->bytes.in[TALLY_STOCK], 0);
        assert_int_equal(host_check(session), 0);
        assert_int_equal(host_release(session, id), 0);
        assert_true(HOST_UNTIL(!host_used() && !host_stock() && !work_pending(host.work)));
    }
}

/* ---- and refused ------------------------------------------------------------------------------------------------- */

static void stock_is_drained_before_a_batch_is_refused(void **state)
{
    static struct opened opened;
    uint64_t session = host_session(1);
    uint32_t n;

    if (host_no_pidfds)
        test_skip("the test's own calls of the kernel take the place of those that are missing here");
    have_stock(session, 0);
    n = (uint32_t)(host_stock() / SIZE) + 1;
    faulty.pwrite = fails_at_first;
    failing = 1;
    assert_int_equal(take(session, n, SIZE, 0, &opened), 0);
    assert_int_equal(failing, 0);
    assert_int_equal(opened.n, n);
    assert_true(HOST_UNTIL(!host_stock()));
    assert_int_equal(host_used(), n * SIZE);
    assert_int_equal(host_check(session), 0);
}

static uint64_t hardly_any(int node)
{
    (void)node;
    return UINT64_C(1) << 20;
}

static void stock_is_drained_when_the_machine_is_short_of_memory(void **state)
{
    uint64_t session = host_session(1);

    if (host_no_pidfds)
        test_skip("the test's own calls of the kernel take the place of those that are missing here");
    have_stock(session, 0);
    faulty.available = hardly_any;
    assert_true(HOST_UNTIL(!host_stock()));
    assert_int_equal(host_check(session), 0);
}

/* ---- after a broker's death -------------------------------------------------------------------------------------- */

static int generations_setup(void **state)
{
    (void)steps_set_up(state);
    loop = pthread_self();
    faulty = sys_kernel;
    faulty.memfd_create = count_memfds;
    host.nodes = 0;
    host.stock = (struct pool_capacity){.percent = 25};
    return 0;
}

static void make_stock_and_die(void)
{
    shared->observer = host_session_of(9, keeper_test, getuid());
    have_stock(shared->observer, 0);
    shared->used = host_stock();
}

static void the_next_broker_has_it(void **state)
{
    uint64_t id;

    generation_run(make_stock_and_die);
    sys = &faulty;
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(host_stock(), shared->used);
    assert_int_equal(host_check(shared->observer), 0);
    made = 0;
    assert_int_equal(host_alloc(shared->observer, SIZE, 0, &id), 0);
    assert_int_equal(made, 0);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
    sys = &sys_kernel;
}

static void take_and_die(void)
{
    uint64_t id;

    make_stock_and_die();
    assert_int_equal(host_alloc(shared->observer, SIZE, 0, &id), 0);
    shared->used = host_stock();
    host.no_commit = true;
    assert_int_equal(host_alloc(shared->observer, SIZE, 0, &id), 0);
}

static void I5_what_was_taken_without_a_commit_is_still_in_stock(void **state)
{
    generation_run(take_and_die);
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(host_stock(), shared->used);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

static void begin_batch_and_die(void)
{
    static struct opened opened;
    static struct call call;

    make_stock_and_die();
    begin_large_batch(&call, shared->observer, &opened);
    broker_commit(host.broker);
}

static void what_waited_for_the_rest_of_its_batch_is_still_in_stock(void **state)
{
    host.stock = little;
    generation_run(begin_batch_and_die);
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(host_stock(), shared->used);
    assert_int_equal(host_used(), 0);
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

static void a_broker_without_stock_gives_it_back(void **state)
{
    generation_run(make_stock_and_die);
    host.stock = (struct pool_capacity){.percent = 0};
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_true(HOST_UNTIL(!host_stock()));
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

static void missing_stock_is_forgotten(void **state)
{
    struct status_info status;

    generation_run(make_stock_and_die);
    for (unsigned i = 0, dropped = 0; dropped < 2; i++) {
        const struct buffer_record *record = kept_record(RECORD_BUFFER, i);

        assert_non_null(record);
        if (record->state == BUFFER_STOCK) {
            kept_drop(KEEPER_BUFFER, record->head.id);
            dropped++;
        }
    }
    kept_unmap();
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(host_stock(), shared->used - 2 * SIZE);
    assert_int_equal(CALL(shared->observer, op_status, &status), 0);
    assert_int_equal(status.quarantined, 0);
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

static void a_record_that_is_somebodys_and_in_stock_is_left_alone(void **state)
{
    struct buffer_record *record = NULL;
    struct status_info status;

    generation_run(make_stock_and_die);
    for (unsigned i = 0; !record || record->state != BUFFER_STOCK; i++)
        assert_non_null(record = kept_record(RECORD_BUFFER, i));
    record->charged_uid = 0;
    kept_unmap();
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(CALL(shared->observer, op_status, &status), 0);
    assert_int_equal(status.quarantined, 1);
    assert_int_equal(host_stock(), shared->used - SIZE);
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

/* Workers that are told nothing else make stock only when a processor has nothing else to do. */
static void have_patient_workers(void)
{
    const struct sched_param none = {.sched_priority = 0};

    assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
}

int main(void)
{
#define TEST(function)             cmocka_unit_test_setup_teardown(function, setup, teardown)
#define TEST_LITTLE(function)      cmocka_unit_test_setup_teardown(function, setup_little, teardown)
#define TEST_NODES(function)       cmocka_unit_test_setup_teardown(function, setup_nodes, teardown)
#define TEST_OVER_DEATHS(function) cmocka_unit_test_setup_teardown(function, generations_setup, steps_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_repeated_size_is_allocated_from_stock),
        TEST(I4_stock_is_zeros_that_nobody_had),
        TEST(I4_it_comes_back_if_it_could_not_be_watched_before),
        TEST_LITTLE(of_a_batch_only_what_is_not_there_is_made),
        TEST_LITTLE(what_waits_for_the_rest_of_its_batch_is_still_in_stock),
        TEST_LITTLE(I5_who_waits_for_the_rest_of_his_batch_pays_for_all),
        TEST_LITTLE(it_comes_back_from_a_batch_that_is_given_up),
        TEST_LITTLE(who_waits_for_it_is_told_when_a_batch_has_taken_it),
        TEST_LITTLE(who_waits_for_it_gets_it_from_a_batch_that_is_given_up),
        TEST(stock_of_other_properties_is_not_taken),
        TEST(I5_stock_belongs_to_nobody),
        TEST(whoever_takes_it_pays),
        TEST(the_last_byte_is_had),
        TEST(none_is_kept_in_a_pool_that_is_nearly_full),
        TEST(stock_is_drained_before_an_alloc_is_refused),
        TEST_LITTLE(stock_is_drained_before_a_batch_is_refused),
        TEST_NODES(stock_of_another_node_is_not_taken),
        TEST_NODES(stock_is_drained_before_an_alloc_goes_to_another_node),
        TEST(stock_is_drained_when_the_machine_is_short_of_memory),
        TEST_OVER_DEATHS(the_next_broker_has_it),
        TEST_OVER_DEATHS(I5_what_was_taken_without_a_commit_is_still_in_stock),
        TEST_OVER_DEATHS(what_waited_for_the_rest_of_its_batch_is_still_in_stock),
        TEST_OVER_DEATHS(a_broker_without_stock_gives_it_back),
        TEST_OVER_DEATHS(missing_stock_is_forgotten),
        TEST_OVER_DEATHS(a_record_that_is_somebodys_and_in_stock_is_left_alone),
    };

    have_patient_workers();
    return test_run(tests, NULL, NULL);
}
