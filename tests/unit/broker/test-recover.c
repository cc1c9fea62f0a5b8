/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker finds of the one before: everything that was done, nothing else, and the sums exact.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "broker/state.h"
#include "keeper/link.h"
#include "ledger/ledger.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "proto/status.h"
#include "sys/peer.h"
#include "sys/sys.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/keeper.h"
#include "tests/unit/broker/steps.h"
#include "tests/unit/mem/nodes.h"

static void do_nothing(void)
{
    host_settle();
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void all_of_it_is_there_after_each_step_I5(void **state)
{
    for (unsigned n = 0; n <= n_steps; n++) {
        (void)steps_set_up(NULL);
        shared->n_steps = n;
        generation_run(steps_do);
        /* twice: what was recovered is as good as what was made */
        generation_run(do_nothing);
        generation_adopt();
        assert_int_equal(host_status, 0);
        steps_assert_same();
        generation_finish();
    }
}

static void what_was_not_committed_is_not_there(void **state)
{
    for (unsigned n = 0; n < n_steps; n++) {
        if (steps[n].by_worker)
            continue;
        (void)steps_set_up(NULL);
        shared->n_steps = n;
        generation_run(steps_do_and_die_in_the_next);
        generation_adopt();
        assert_int_equal(host_status, 0);
        steps_assert_same();
        generation_finish();
    }
}

/* As it was told before, except since when it is held, which is not in the ledger. */
static void assert_same_buffer(const struct buffer_info *now, const struct buffer_info *before)
{
    struct buffer_info expected = *before;

    for (uint32_t i = 0; i < before->n_holders; i++)
        assert_int_not_equal(before->holder_since_ms[i], 0);
    memset(expected.holder_since_ms, 0, sizeof(expected.holder_since_ms));
    assert_memory_equal(now, &expected, sizeof(expected));
}

static void each_thing_is_what_it_was(void **state)
{
    struct peer peer = PEER_NULL;
    struct hello_args hello = {.connection = &peer, .program = "test", .resume = 0, .peer = &peer};
    struct hello_result result;
    struct buffer_info info;
    struct call call;

    steps_run_full();
    generation_adopt();
    assert_int_equal(host_status, 0);
    hello.resume = shared->sessions[0];
    memcpy(hello.secret, shared->secret, sizeof(hello.secret));
    assert_int_equal(peer_init_pid(&peer, getpid()), 0);
    peer.uid = getuid();
    call_init(&call, 0);
    assert_int_equal(call_finish(&call, op_hello(&call.op, &hello, &result)), 0);
    peer_deinit(&peer);
    assert_int_equal(result.session, shared->sessions[0]);
    for (unsigned i = 0; i < STEPS_BUFFERS; i++) {
        assert_int_equal(host_info(shared->sessions[0], shared->buffers[i], &info), 0);
        assert_same_buffer(&info, &shared->infos[i]);
    }
    assert_int_equal(host_lookup(shared->sessions[0], "a/keep", 0, 0, NULL), 0);
    assert_int_equal(host_opened.id, shared->buffers[0]);
    assert_int_equal(host_lookup(shared->sessions[0], "a/for", 0, 0, NULL), 0);
    assert_int_equal(host_opened.id, shared->buffers[1]);
    /* one of three uses was used up before */
    assert_int_equal(host_open(shared->sessions[1], shared->token, RIGHT_READ, NULL), 0);
    assert_int_equal(host_open(shared->sessions[1], shared->token, RIGHT_READ, NULL), 0);
    assert_int_equal(host_open(shared->sessions[1], shared->token, RIGHT_READ, NULL), STATUS_TOKEN_EXHAUSTED);
    assert_int_equal(host_alloc(shared->sessions[0], 4096, BUFFER_NO_ADDRESS, &info.id), 0);
    assert_int_equal(CALL(shared->sessions[0], op_place, info.id, shared->reservation, HOME_OFFSET),
                     STATUS_ADDRESS_TAKEN);
    assert_int_equal(CALL(shared->sessions[0], op_publish, shared->buffers[2], false), STATUS_PUBLISHED);
    /* it subscribed to that */
    host.n_events = 0;
    assert_int_equal(CALL(shared->sessions[0], op_name_unbind, "a/keep"), 0);
    assert_true(HOST_UNTIL(host.n_events == 1));
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

/* No such name is made any more, but one may be in the ledger of a broker that made it. */
static const char old_name[] = "\u202egnp.exe";

static void bind_an_old_name(void)
{
    struct name_args name = {.policy = 0};

    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    assert_int_equal(host_alloc(shared->sessions[0], 4096, 0, &shared->buffers[0]), 0);
    name.buffer = shared->buffers[0];
    memcpy(name.name, old_name, sizeof(old_name));
    assert_int_equal(CALL(shared->sessions[0], op_name_bind, &name), 0);
    broker_commit(host.broker);
}

static unsigned n_tokens(void)
{
    unsigned n = 0, budget = UINT32_MAX;
    uint64_t cursor = 0;

    while (table_next(&host.broker->tokens.table, &cursor, &budget))
        n++;
    return n;
}

#define MANY_TOKENS 500

static void make_many_tokens(void)
{
    const struct share_args terms = {.rights = RIGHT_READ, .expiry_ms = 1};

    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    assert_int_equal(host_alloc(shared->sessions[0], 4096, 0, &shared->buffers[0]), 0);
    for (unsigned i = 0; i < MANY_TOKENS; i++)
        assert_int_equal(host_share(shared->sessions[0], shared->buffers[0], &terms, shared->token), 0);
    broker_commit(host.broker);
}

/* Whoever waits for the next broker does not wait for the timers of all tokens, and they come all the same. */
static void I7_tokens_have_their_timers_later(void **state)
{
    generation_run(make_many_tokens);
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_in_range(n_tokens(), MANY_TOKENS / 2, MANY_TOKENS);
    assert_in_range(host.broker->timers.order, 0, MANY_TOKENS / 4);
    usleep(5000); /* the last one expires */
    assert_int_equal(host_open(shared->sessions[0], shared->token, RIGHT_READ, NULL), STATUS_TOKEN_EXHAUSTED);
    assert_true(HOST_UNTIL(!n_tokens()));
    generation_finish();
}

static void an_old_name_goes_on_working(void **state)
{
    generation_run(bind_an_old_name);
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(host_lookup(shared->sessions[0], old_name, 0, 0, NULL), 0);
    assert_int_equal(host_opened.id, shared->buffers[0]);
    assert_int_equal(CALL(shared->sessions[0], op_name_unbind, old_name), 0);
    assert_int_equal(host_lookup(shared->sessions[0], old_name, 0, 0, NULL), STATUS_NO_SUCH_NAME);
    generation_finish();
}

/* ---- on its way -------------------------------------------------------------------------------------------------- */

static void for_ever(unsigned moves)
{
    (void)moves;
    for (;;)
        (void)pause();
}

/* To a node that is played to be a real one, and the broker dies before it is there. */
static void begin_a_move(void)
{
    static const struct alloc_spec args = {
        .n = 1, .sizes = {1 << 20}, .memory = {.n_nodes = 1, .placement = PLACEMENT_BIND}};
    static struct opened result;
    static struct call call;

    nodes_begin(host.topology);
    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    assert_int_equal(CALL(shared->sessions[0], op_alloc, &args, &result), 0);
    shared->buffers[0] = result.items[0].id;
    nodes.moving = for_ever;
    call_init(&call, shared->sessions[0]);
    assert_int_equal(op_move(&call.op, shared->buffers[0], 1), OP_PENDING);
    assert_int_equal(host_used(), 2 << 20);
    broker_commit(host.broker);
}

static void what_was_on_its_way_is_charged_where_it_was_I5(void **state)
{
    struct buffer_info info;
    uint64_t observer;

    generation_run(begin_a_move);
    generation_adopt();
    assert_int_equal(host_status, 0);
    observer = host_session_of(9, keeper_test, getuid());
    assert_int_equal(host_info(shared->sessions[0], shared->buffers[0], &info), 0);
    assert_int_equal(info.nodes[0], 0);
    assert_int_equal(info.node_bytes[0], 1 << 20);
    /* its pages may be anywhere */
    assert_false(info.flags & BUFFER_VERIFIED);
    assert_int_equal(host_used(), 1 << 20);
    assert_int_equal(tally_used(&pools_node_budget(host.pools, 1)->bytes), 0);
    assert_int_equal(host_check(observer), 0);
    /* asked for again, it goes */
    assert_int_equal(CALL(shared->sessions[0], op_move, shared->buffers[0], 1), 0);
    assert_int_equal(tally_used(&pools_node_budget(host.pools, 1)->bytes), 1 << 20);
    assert_int_equal(host_check(observer), 0);
    generation_finish();
}

/* ---- on its way back --------------------------------------------------------------------------------------------- */

#define LARGE_BYTES (UINT64_C(256) << 20)
#define SLICE_BYTES (UINT64_C(64) << 20)

static struct sys_calls calls;
static atomic_uint slices_taken;
static struct alloc_spec large = {.n = 1, .sizes = {LARGE_BYTES}};
static bool large_is_exported;

/* The kernel takes one slice back, and is at the next for as long as this broker lives. */
static int take_one_slice(int fd, int mode, off_t offset, off_t length)
{
    if (mode & FALLOC_FL_PUNCH_HOLE && atomic_fetch_add(&slices_taken, 1))
        for_ever(0);
    return sys_kernel.fallocate(fd, mode, offset, length);
}

static void begin_to_give_back(void)
{
    static struct opened result;

    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    assert_int_equal(CALL(shared->sessions[0], op_alloc, &large, &result), 0);
    shared->buffers[0] = result.items[0].id;
    if (large_is_exported)
        (void)fd_close(host_export(shared->sessions[0], shared->buffers[0], RIGHT_READ));
    calls = sys_kernel;
    calls.fallocate = take_one_slice;
    sys = &calls;
    assert_int_equal(host_release(shared->sessions[0], shared->buffers[0]), 0);
    assert_true(HOST_UNTIL(atomic_load(&slices_taken) == 2));
}

static uint64_t bytes_of(int fd)
{
    struct stat st;

    assert_ok(fstat(fd, &st));
    return (uint64_t)st.st_blocks * 512;
}

static void give_back_over_a_death(uint64_t charged)
{
    const struct inherited_fd *inherited;
    uint64_t observer;
    int fd;

    host.pool_bytes = HOST_LARGE_BYTES;
    generation_run(begin_to_give_back);
    /* nobody who dies closes the last of it */
    inherited = kept_find(KEEPER_BUFFER, shared->buffers[0]);
    assert_non_null(inherited);
    fd = dup(inherited->fd);
    assert_ok(fd);
    assert_int_equal(bytes_of(fd), LARGE_BYTES - SLICE_BYTES);
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_int_equal(host_used(), charged);
    observer = host_session_of(9, keeper_test, getuid());
    assert_int_equal(host_check(observer), 0);
    assert_true(HOST_UNTIL(bytes_of(fd) == 0));
    (void)fd_close(fd);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(observer), 0);
    generation_finish();
}

static void what_was_on_its_way_back_comes_back_by_the_next_one_I4_I5(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        (void)steps_set_up(NULL);
        large_is_exported = i;
        give_back_over_a_death(LARGE_BYTES - SLICE_BYTES);
    }
}

/* It is credited whole. */
static void so_does_what_lies_on_several_nodes_I4_I5(void **state)
{
    host.nodes = 2;
    large.memory.n_nodes = 2;
    large.memory.nodes[1] = 1;
    large.memory.placement = PLACEMENT_INTERLEAVE;
    give_back_over_a_death(LARGE_BYTES);
}

/* ---- what others may have ---------------------------------------------------------------------------------------- */

#define LET_OUT_BYTES (UINT64_C(64) << 10)

static void let_out(void)
{
    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    assert_int_equal(host_alloc(shared->sessions[0], LET_OUT_BYTES, 0, &shared->buffers[0]), 0);
    (void)fd_close(host_export(shared->sessions[0], shared->buffers[0], RIGHT_READ));
}

static void end_without_knowing(void)
{
    calls = sys_kernel;
    calls.set_lease = host_no_lease;
    sys = &calls;
    assert_int_equal(host_release(shared->sessions[0], shared->buffers[0]), 0);
}

/* An older broker noted nothing of it. */
static void forget_the_doubt(void)
{
    struct buffer_record *record = kept_record(RECORD_BUFFER, 0);

    assert_int_equal(record->head.id, shared->buffers[0]);
    assert_true(record->detached_ms != 0);
    record->detached_ms = 0;
    kept_unmap();
}

/* The broker dies when it has noted the end, before the keeper is told to close it. */
static void leave_alone_over_a_death(bool noted)
{
    const struct inherited_fd *inherited;
    uint64_t observer;
    char *p;
    int fd;

    generation_run(let_out);
    inherited = kept_find(KEEPER_BUFFER, shared->buffers[0]);
    assert_non_null(inherited);
    fd = dup(inherited->fd);
    p = map_shared(fd, LET_OUT_BYTES, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    *p = 'x';
    generation_run(end_without_knowing);
    kept_hold(KEEPER_BUFFER, shared->buffers[0], fd);
    if (!noted)
        forget_the_doubt();
    calls = sys_kernel;
    calls.set_lease = host_no_lease;
    sys = &calls;
    generation_adopt();
    assert_int_equal(host_status, 0);
    host_settle();
    assert_int_equal(*p, 'x');
    assert_int_equal(host_used(), LET_OUT_BYTES);
    observer = host_session_of(9, keeper_test, getuid());
    assert_int_equal(host_check(observer), 0);
    assert_ok(munmap(p, LET_OUT_BYTES));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(observer), 0);
    sys = &sys_kernel;
    generation_finish();
}

static void I4_the_next_broker_leaves_alone_what_others_may_have(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        (void)steps_set_up(NULL);
        leave_alone_over_a_death(i);
    }
}

/* ---- another configuration --------------------------------------------------------------------------------------- */

static void buffers_outlive_their_pool_in_the_configuration(void **state)
{
    uint32_t retired = 0, usable = 0;

    steps_run_full();
    host.nodes = 2;
    generation_adopt();
    assert_int_equal(host_status, 0);
    steps_assert_same();
    for (uint32_t i = 0; i < pools_count(host.pools); i++) {
        struct pool *pool = pools_get(host.pools, i);

        retired += pool->retired;
        usable += !pool->retired;
        if (pool->retired) {
            assert_true(tally_used(&pool->buffers) > 0);
            assert_ptr_not_equal(pools_by_name(host.pools, pool->name), pool);
        }
    }
    assert_true(retired > 0 && usable > 0);
    generation_finish();
}

static void an_arena_with_addresses_in_it_stays(void **state)
{
    struct status_info status;
    uint64_t used;

    steps_run_full();
    host.arena_base = UINT64_C(0x466000000000);
    generation_adopt();
    assert_int_equal(host_status, 0);
    steps_look(&status, &used);
    assert_int_equal(status.arena_base, shared->status.arena_base);
    steps_assert_same();
    generation_finish();

    /* a session alone has none */
    (void)steps_set_up(NULL);
    shared->n_steps = 1;
    generation_run(steps_do);
    host.arena_base = UINT64_C(0x466000000000);
    generation_adopt();
    assert_int_equal(host_status, 0);
    steps_look(&status, &used);
    assert_int_equal(status.arena_base, UINT64_C(0x466000000000));
    generation_finish();
}

/* ---- no keeper any more ------------------------------------------------------------------------------------------ */

/* The next broker does it: this one, which ends at once, gives no answer that would be an error. */
static void nothing_begins_that_a_crash_would_lose(void **state)
{
    static const struct alloc_spec args = {.n = 1, .sizes = {4096}};
    static struct opened result;
    static struct call call;
    uint64_t session;
    int ends[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    assert_int_equal(keeper_link_new(&host.keeper, ends[1]), 0);
    host_start();
    session = host_session(1);
    (void)fd_close(ends[0]);
    call_init(&call, session);
    assert_int_equal(op_alloc(&call.op, &args, &result), OP_PENDING);
    host_settle();
    assert_false(call.ended);
    assert_int_equal(host_used(), 0);
    assert_int_equal(CALL(session, op_goodbye), 0);
    host_stop();
    host.keeper = keeper_link_free(host.keeper);
}

/* ---- buffers ahead, which brokers made once ---------------------------------------------------------------------- */

#define AHEAD_SIZE UINT64_C(65536)

static void allocate_two(void)
{
    static struct alloc_spec args = {
        .n = 2, .sizes = {AHEAD_SIZE, AHEAD_SIZE}, .memory.flags = BUFFER_WANT_FDS | BUFFER_WANT_TOKENS};
    static struct opened result;

    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    assert_int_equal(CALL(shared->sessions[0], op_alloc, &args, &result), 0);
    fdset_deinit(&result.fds);
    for (unsigned i = 0; i < 2; i++)
        shared->buffers[i] = result.items[i].id;
    memcpy(shared->token, result.items[1].token, sizeof(shared->token));
}

static void as_they_were_made_ahead(void)
{
    struct buffer_record *record;

    for (unsigned i = 0; (record = kept_record(RECORD_BUFFER, i)) != NULL; i++)
        record->flags |= BUFFER_AHEAD;
    kept_header()->features |= LEDGER_AHEAD;
    kept_header_written();
    kept_unmap();
}

/* A program that took one of them locked this byte, by its own description, and said nothing. */
static int take_by_a_lock(uint64_t buffer)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = INT64_C(1) << 62, .l_len = 1};
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", kept_find(KEEPER_BUFFER, buffer)->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_ok(fd);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return fd;
}

static bool add_buffer(void *userdata, const union list_row *row)
{
    const struct buffer_info *info = &row->buffer;

    assert_int_equal(info->flags & BUFFER_AHEAD, 0);
    assert_int_equal(info->holds, 1);
    assert_int_equal(info->tokens, 1);
    *(uint64_t *)userdata += info->bytes;
    return true;
}

static bool look_at_session(void *userdata, const union list_row *row)
{
    if (row->session.id == shared->sessions[0])
        *(struct session_info *)userdata = row->session;
    return true;
}

/* All that anybody is shown says so, and the sums agree. */
static void assert_two_are_shown(void)
{
    struct session_info session = {.id = 0};
    uint64_t bytes = 0, next;
    struct list_args list_buffers = {.userdata = &bytes}, list_sessions = {.userdata = &session};

    steps_look(&shared->status, &shared->used);
    assert_int_equal(shared->status.buffers, 2);
    assert_int_equal(shared->status.bytes, 2 * AHEAD_SIZE);
    assert_int_equal(shared->status.tokens, 2);
    assert_int_equal(shared->status.quarantined, 0);
    assert_int_equal(shared->used, 2 * AHEAD_SIZE);
    assert_int_equal(CALL(shared->observer, op_list, LIST_BUFFERS, &list_buffers, &next, add_buffer), 0);
    assert_int_equal(bytes, 2 * AHEAD_SIZE);
    assert_int_equal(CALL(shared->observer, op_list, LIST_SESSIONS, &list_sessions, &next, look_at_session), 0);
    assert_int_equal(session.holds, 2);
    assert_int_equal(session.bytes, 2 * AHEAD_SIZE);
    assert_int_equal(session.tokens, 2);
    assert_int_equal(host_check(shared->observer), 0);
}

static void look_at_two(void)
{
    shared->observer = host_session_of(9, keeper_test, getuid());
    assert_two_are_shown();
}

/* Taken or not, they are their session's like any other: of the next broker, and of all that follow. */
static void what_was_ahead_is_its_sessions_I5(void **state)
{
    const struct buffer_record *record;
    int fd;

    generation_run(allocate_two);
    as_they_were_made_ahead();
    fd = take_by_a_lock(shared->buffers[0]);
    generation_run(look_at_two);
    for (unsigned i = 0; (record = kept_record(RECORD_BUFFER, i)) != NULL; i++)
        assert_int_equal(record->flags & BUFFER_AHEAD, 0);
    kept_unmap();
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_two_are_shown();
    /* whoever was given the token has its use of it */
    assert_int_equal(host_open(shared->observer, shared->token, RIGHT_READ, NULL), 0);
    assert_int_equal(host_opened.id, shared->buffers[1]);
    assert_int_equal(host_release(shared->observer, shared->buffers[1]), 0);
    close(fd);
    assert_int_equal(host_release(shared->sessions[0], shared->buffers[0]), 0);
    assert_int_equal(CALL(shared->sessions[0], op_goodbye), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

#define recovers(function) cmocka_unit_test_setup_teardown(function, steps_set_up, steps_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        recovers(all_of_it_is_there_after_each_step_I5),
        recovers(what_was_not_committed_is_not_there),
        recovers(each_thing_is_what_it_was),
        recovers(I7_tokens_have_their_timers_later),
        recovers(an_old_name_goes_on_working),
        recovers(what_was_on_its_way_is_charged_where_it_was_I5),
        recovers(I4_the_next_broker_leaves_alone_what_others_may_have),
        recovers(what_was_on_its_way_back_comes_back_by_the_next_one_I4_I5),
        recovers(so_does_what_lies_on_several_nodes_I4_I5),
        recovers(buffers_outlive_their_pool_in_the_configuration),
        recovers(an_arena_with_addresses_in_it_stays),
        recovers(what_was_ahead_is_its_sessions_I5),
        recovers(nothing_begins_that_a_crash_would_lose),
    };

    return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
