/* SPDX-License-Identifier: Apache-2.0 */
/* SELECT_BUFFERS: the first in an order, of what was asked for and the caller may see, in pages; and sums. */
#include "tests/unit/broker/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "tests/support/test.h"

#define SIZE (UINT64_C(4) << 10)

static struct select_result found;

static int select_of(uint64_t session, const struct select_args *args)
{
    memset(&found, 0, sizeof(found));
    return CALL(session, op_select_buffers, args, &found);
}

static struct buffer_info info_of(uint64_t session, uint64_t id)
{
    struct op op = {.broker = host.broker, .session = session};
    struct buffer_info info;

    assert_true(op_selected(&op, id, 0, &info));
    return info;
}

/* 1, 2, 3 ... pages, the last two of the same size */
static void make(uint64_t session, uint64_t *ids, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(host_alloc(session, (i + 1 < n ? i + 1 : i) * SIZE, 0, &ids[i]), 0);
}

static void the_largest_come_first_and_the_sums_are_of_all(void **state)
{
    uint64_t session = host_session(1), ids[40], bytes = 0;
    const struct select_args args = {.most = 3};

    assert_int_equal(select_of(session, &args), 0);
    assert_int_equal(found.n, 0);
    assert_false(found.more);
    make(session, ids, 40);
    for (unsigned i = 0; i < 40; i++)
        bytes += (i < 39 ? i + 1 : 39) * SIZE;
    assert_int_equal(select_of(session, &args), 0);
    assert_int_equal(found.n, 3);
    assert_true(found.more);
    /* of those of the same size the older one */
    assert_int_equal(found.ids[0], ids[38]);
    assert_int_equal(found.ids[1], ids[39]);
    assert_int_equal(found.ids[2], ids[37]);
    assert_int_equal(found.sums.buffers, 40);
    assert_int_equal(found.sums.bytes, bytes);
    assert_int_equal(found.sums.holds, 40);
    assert_int_equal(info_of(session, found.ids[0]).bytes, 39 * SIZE);
}

static void only_sums(void **state)
{
    uint64_t session = host_session(1), ids[40];
    const struct select_args args = {.most = 0};

    make(session, ids, 40);
    assert_int_equal(select_of(session, &args), 0);
    assert_int_equal(found.n, 0);
    assert_int_equal(found.sums.buffers, 40);
}

/* Pages of 7 give all of them, each once, in the order of `number`. */
static void pages_give_all_in_order(uint64_t session, enum select_order order, unsigned n,
                                    uint64_t (*number)(const struct buffer_info *info), bool rising)
{
    struct select_args args = {.order = order, .most = 7};
    uint64_t seen[64] = {0}, last = 0;
    unsigned total = 0;

    do {
        assert_int_equal(select_of(session, &args), 0);
        assert_int_equal(found.sums.buffers, n);
        for (uint32_t i = 0; i < found.n; i++) {
            struct buffer_info info = info_of(session, found.ids[i]);

            for (unsigned k = 0; k < total; k++)
                assert_true(seen[k] != info.id);
            seen[total++] = info.id;
            args.after_number = number(&info);
            args.after = info.id;
            if (total > 1)
                assert_true(rising ? args.after_number >= last : args.after_number <= last);
            last = args.after_number;
        }
    } while (found.more);
    assert_int_equal(total, n);
}

static uint64_t bytes_of(const struct buffer_info *info)
{
    return info->bytes;
}

static uint64_t holds_of(const struct buffer_info *info)
{
    return info->holds;
}

static uint64_t age_of(const struct buffer_info *info)
{
    return info->created_ms;
}

static void every_order_pages(void **state)
{
    uint64_t session = host_session(1), mate = host_session(2), ids[30];

    make(session, ids, 30);
    for (unsigned i = 0; i < 30; i += 3)
        assert_int_equal(host_lookup(mate, NULL, ids[i], RIGHT_READ, NULL), 0);
    pages_give_all_in_order(session, SELECT_BYTES, 30, bytes_of, false);
    pages_give_all_in_order(session, SELECT_HOLDS, 30, holds_of, false);
    pages_give_all_in_order(session, SELECT_OLDEST, 30, age_of, true);
    pages_give_all_in_order(session, SELECT_NEWEST, 30, age_of, false);
}

static uint64_t n_of(uint64_t session, struct select_args args)
{
    assert_int_equal(select_of(session, &args), 0);
    return found.sums.buffers;
}

static void what_was_asked_for_is_chosen(void **state)
{
    uint64_t admin = host_session(1), session = host_session_of(2, getpid(), 7001), ids[10], more;
    struct select_args args = {.pool = "nowhere"};
    _cleanup_close_ int fd = -1;
    char pool[MEMORYD_POOL_NAME_MAX + 1];

    make(session, ids, 10);
    assert_int_equal(host_alloc(admin, SIZE, 0, &more), 0);
    assert_int_equal(n_of(admin, (struct select_args){.most = 0}), 11);
    assert_int_equal(n_of(admin, (struct select_args){.only_uid = true, .uid = 7001}), 10);
    assert_int_equal(n_of(admin, (struct select_args){.only_uid = true, .uid = 7002}), 0);
    assert_int_equal(n_of(admin, (struct select_args){.pid = (uint32_t)getpid()}), 11);
    assert_int_equal(n_of(admin, (struct select_args){.pid = (uint32_t)getpid() + 1}), 0);
    assert_int_equal(n_of(admin, (struct select_args){.session = session}), 10);
    assert_int_equal(n_of(admin, (struct select_args){.session = admin}), 1);
    assert_int_equal(n_of(admin, (struct select_args){.session = 12345678}), 0);
    assert_int_equal(select_of(admin, &args), STATUS_NO_SUCH_POOL);
    memcpy(pool, info_of(admin, more).pool, sizeof(pool));
    memcpy(args.pool, pool, sizeof(pool));
    assert_int_equal(select_of(admin, &args), 0);
    assert_int_equal(found.sums.buffers, 11);

    fd = host_export(session, ids[4], RIGHT_READ);
    assert_true(fd >= 0);
    assert_int_equal(n_of(admin, (struct select_args){.only_detached = true}), 0);
    assert_int_equal(host_release(session, ids[4]), 0);
    host_settle();
    assert_int_equal(n_of(admin, (struct select_args){.only_detached = true, .most = 1}), 1);
    assert_int_equal(found.ids[0], ids[4]);
    assert_int_equal(n_of(admin, (struct select_args){.most = 0}), 11);
    assert_int_equal(found.sums.detached, 1);
    assert_int_equal(found.sums.detached_bytes, 5 * SIZE);
}

/* Neither rows nor sums tell of what a listing would not show. */
static void what_is_another_users_is_neither_listed_nor_counted(void **state)
{
    uint64_t admin = host_session(1), session = host_session_of(2, getpid(), 7001),
             stranger = host_session_of(3, getpid(), 7002), ids[10];
    struct op op = {.broker = host.broker, .session = stranger};
    struct buffer_info info;

    make(session, ids, 10);
    assert_int_equal(n_of(admin, (struct select_args){.most = 5}), 10);
    assert_int_equal(n_of(stranger, (struct select_args){.most = 5}), 0);
    assert_int_equal(found.sums.bytes, 0);
    assert_int_equal(n_of(stranger, (struct select_args){.only_uid = true, .uid = 7001}), 0);
    assert_int_equal(n_of(stranger, (struct select_args){.session = session}), 0);
    assert_false(op_selected(&op, ids[0], 0, &info));
}

static void share_with(uint64_t from, uint64_t to, uint64_t buffer)
{
    const struct share_args terms = {.rights = RIGHT_READ};
    struct open_args open = {.n = 1};
    struct opened opened;

    assert_int_equal(host_share(from, buffer, &terms, open.tokens[0]), 0);
    assert_int_equal(CALL(to, op_open, &open, &opened), 0);
}

static void who_was_given_a_buffer_sees_it_and_not_who_else_has_it(void **state)
{
    uint64_t session = host_session_of(2, getpid(), 7001), stranger = host_session_of(3, getpid(), 7002), ids[10];

    make(session, ids, 10);
    share_with(session, stranger, ids[3]);
    assert_int_equal(n_of(stranger, (struct select_args){.most = 5}), 1);
    assert_int_equal(found.ids[0], ids[3]);
    assert_int_equal(n_of(stranger, (struct select_args){.session = stranger}), 1);
    assert_int_equal(n_of(stranger, (struct select_args){.session = session}), 0);
    assert_int_equal(n_of(session, (struct select_args){.session = stranger}), 0);
}

struct asked {
    struct call call;
    struct select_result result;
};

/* Others are served between its slices, what ends meanwhile is not in it, and its session may end, too. */
/* However many others hold it. */
static void the_session_that_was_asked_for_is_among_the_holders(void **state)
{
    enum { N = MEMORYD_HOLDERS_MAX + 4 };
    const struct share_args terms = {.rights = RIGHT_READ};
    uint64_t owner = host_session(1), sessions[N], buffer;
    struct op op = {.broker = host.broker, .session = owner};
    struct buffer_info info;
    uint8_t token[32];

    assert_int_equal(host_alloc(owner, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(owner, buffer, &terms, token), 0);
    for (unsigned i = 0; i < N; i++) {
        sessions[i] = host_session(2 + i);
        assert_int_equal(host_open(sessions[i], token, RIGHT_READ, NULL), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        unsigned n = 0;

        assert_true(op_selected(&op, buffer, sessions[i], &info));
        assert_int_equal(info.n_holders, MEMORYD_HOLDERS_MAX);
        for (unsigned j = 0; j < info.n_holders; j++)
            n += info.holders[j] == sessions[i] && info.holder_rights[j] == RIGHT_READ && info.holder_since_ms[j];
        assert_int_equal(n, 1);
    }
    assert_int_equal(info.holds, N + 1);
    /* of one that does not hold it there is nothing to tell */
    assert_true(op_selected(&op, buffer, sessions[0] + 100000, &info));
    assert_int_equal(info.n_holders, MEMORYD_HOLDERS_MAX);
}

static void I7_many_are_looked_at_in_slices(void **state)
{
    enum { N = 6000 };
    static uint64_t ids[N];
    static struct asked asked, given_up;
    const struct select_args args = {.most = MEMORYD_SELECT_MAX};
    uint64_t session = host_session(1), other = host_session(2);
    struct op op = {.broker = host.broker, .session = session};
    struct buffer_info info;
    unsigned turns = 0;

    for (unsigned i = 0; i < N; i++)
        assert_int_equal(host_alloc(session, SIZE, 0, &ids[i]), 0);
    call_init(&asked.call, session);
    call_init(&given_up.call, other);
    assert_int_equal(op_select_buffers(&asked.call.op, &args, &asked.result), OP_PENDING);
    assert_int_equal(op_select_buffers(&given_up.call.op, &args, &given_up.result), OP_PENDING);
    assert_int_equal(host_release(session, ids[0]), 0);
    assert_int_equal(CALL(other, op_goodbye), 0);
    while (!asked.call.ended || !given_up.call.ended) {
        host_turn(0);
        assert_true(turns++ < 1000000);
    }
    assert_int_equal(asked.call.status, 0);
    assert_int_equal(asked.result.n, MEMORYD_SELECT_MAX);
    assert_true(asked.result.sums.buffers == N || asked.result.sums.buffers == N - 1);
    assert_int_equal(given_up.call.status, STATUS_STALE);
    host_settle();
    assert_false(op_selected(&op, ids[0], 0, &info));
    assert_true(op_selected(&op, ids[1], 0, &info));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)
        TEST(the_largest_come_first_and_the_sums_are_of_all),
        TEST(only_sums),
        TEST(every_order_pages),
        TEST(what_was_asked_for_is_chosen),
        TEST(what_is_another_users_is_neither_listed_nor_counted),
        TEST(who_was_given_a_buffer_sees_it_and_not_who_else_has_it),
        TEST(the_session_that_was_asked_for_is_among_the_holders),
        TEST(I7_many_are_looked_at_in_slices),
#undef TEST
    };

    return test_run(tests, NULL, NULL);
}
