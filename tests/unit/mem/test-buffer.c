/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: what they take and give back, how they are found, and how much the broker pays for one. */
#include "tests/support/test.h"

#include <fcntl.h>

#include "base/cleanup.h"
#include "tests/support/fd.h"
#include "tests/unit/mem/state.h"

static int set_memory(struct buffer *buffer, int fd, dev_t device, ino_t inode, bool verified)
{
    const struct handle_identity identity = {.dev = device, .ino = inode};

    return buffer_set_memory(&s.buffers, buffer, fd, &identity, 0, verified);
}

static int open_null(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_ok(fd);
    return fd;
}

static void test_takes_and_gives_back(void **state)
{
    struct buffer *buffer = NULL;
    struct plan plan;
    int fd;

    assert_int_equal(state_buffer_new(5000, false, NULL, &buffer, NULL), 0);
    assert_int_equal(buffer->record->size, 5000);
    assert_int_equal(buffer->record->bytes, 8192);
    assert_int_equal(buffer->record->state, BUFFER_COMMITTING);
    assert_int_equal(buffer->record->address, STATE_BASE);
    assert_int_equal(buffer->record->uid, 1000);
    assert_int_equal(buffer->record->charged_uid, 1000);
    assert_int_equal(buffer->record->pid, 4711);
    assert_int_equal(buffer->record->charged_session, 99);
    assert_int_equal(buffer_granule(buffer), STATE_PAGE);
    assert_ptr_equal(buffer_pool(&s.buffers, buffer), s.pool);
    assert_int_equal(account_used(s.account, ACCOUNT_BYTES), 8192);
    assert_int_equal(account_used(s.account, ACCOUNT_BUFFERS), 1);
    assert_int_equal(tally_used(&s.pool->bytes), 8192);
    assert_int_equal(s.arena.used, 8192);
    assert_int_equal(s.buffers.bytes, 8192);
    buffer_plan(&s.buffers, buffer, &plan);
    assert_int_equal(plan.brief.bytes, 8192);
    assert_int_equal(plan.brief.n_nodes, 1);
    /* nobody finds it before it is committed */
    assert_null(buffers_find(&s.buffers, buffer->record->head.id));
    fd = open_null();
    assert_int_equal(set_memory(buffer, fd, 1, 42, true), 0);
    assert_null(buffers_by_inode(&s.buffers, 1, 42));
    buffer_commit(&s.buffers, buffer);
    assert_ptr_equal(buffers_find(&s.buffers, buffer->record->head.id), buffer);
    assert_int_equal(buffer_flags(buffer), BUFFER_VERIFIED);
    assert_false(buffer_is_kept(buffer));
    assert_null(buffer_free(&s.buffers, buffer));
    /* T was the buffer's */
    assert_errno(fcntl(fd, F_GETFD), EBADF);
    assert_int_equal(account_used(s.account, ACCOUNT_BYTES), 0);
    assert_int_equal(s.arena.used, 0);
}

static void test_I5_failure_takes_nothing(void **state)
{
    struct memory_spec taken = {.address = STATE_BASE};
    struct buffer *buffer = NULL, *none = NULL;
    struct problem problem = PROBLEM_NULL;

    assert_int_equal(state_buffer_new(4096, false, &taken, &buffer, NULL), 0);
    /* the last thing that is taken is the address: all the rest was there already */
    assert_int_equal(state_buffer_new(4096, true, &taken, &none, &problem), STATUS_ADDRESS_TAKEN);
    s.accounts.limits.session[ACCOUNT_BUFFERS] = 1;
    assert_int_equal(state_buffer_new(4096, false, NULL, &none, &problem), STATUS_LIMIT);
    s.accounts.limits.session[ACCOUNT_BUFFERS] = 2;
    s.accounts.limits.user[ACCOUNT_BYTES] = 8191;
    assert_int_equal(state_buffer_new(4096, true, NULL, &none, &problem), STATUS_LIMIT);
    assert_null(none);
    assert_int_equal(table_count(&s.buffers.table), 1);
    assert_int_equal(table_count(&s.buffers.plans), 0);
    assert_int_equal(account_used(s.account, ACCOUNT_BYTES), 4096);
    assert_int_equal(account_used(s.account, ACCOUNT_BUFFERS), 1);
    assert_int_equal(tally_used(&s.pool->bytes), 4096);
    assert_int_equal(s.buffers.bytes, 4096);
    buffer_free(&s.buffers, buffer);
}

static void test_plan_of_several_nodes_is_kept(void **state)
{
    struct buffer *buffer = NULL;
    struct plan plan;

    assert_int_equal(state_buffer_new(10 * STATE_PAGE, true, NULL, &buffer, NULL), 0);
    assert_int_equal(table_count(&s.buffers.plans), 1);
    buffer_commit(&s.buffers, buffer);
    buffer_plan(&s.buffers, buffer, &plan);
    assert_int_equal(plan.brief.placement, PLACEMENT_SPLIT);
    assert_int_equal(plan.brief.n_nodes, 2);
    assert_int_equal(plan.nodes.node[0], 0);
    assert_int_equal(plan.nodes.node[1], 1);
    assert_int_equal(plan.nodes.bytes[0] + plan.nodes.bytes[1], 10 * STATE_PAGE);
    assert_int_equal(tally_used(&pools_node_budget(s.pools, 0)->bytes), plan.nodes.bytes[0]);
    assert_int_equal(tally_used(&pools_node_budget(s.pools, 1)->bytes), plan.nodes.bytes[1]);
    buffer_free(&s.buffers, buffer);
    assert_int_equal(table_count(&s.buffers.plans), 0);
}

static void test_no_address_when_not_wanted(void **state)
{
    struct memory_spec args = {.flags = BUFFER_NO_ADDRESS | BUFFER_PUBLISHABLE | BUFFER_WANT_FDS};
    const struct reservation_record wanted = {.session = 99, .size = 8 * STATE_PAGE};
    struct buffer *buffer = NULL;
    struct reservation *reservation;
    uint64_t id;

    assert_int_equal(state_buffer_new(STATE_PAGE, false, &args, &buffer, NULL), 0);
    buffer_commit(&s.buffers, buffer);
    assert_int_equal(buffer->record->address, 0);
    assert_int_equal(s.arena.used, 0);
    /* what a request wants of its reply is no property of the buffer */
    assert_int_equal(buffer_flags(buffer), BUFFER_NO_ADDRESS | BUFFER_PUBLISHABLE);

    /* it is placed; its home outlives the session's reservation, and goes with the buffer */
    assert_int_equal(reservation_new(&s.reservations, &wanted, 0, s.account, &reservation, NULL), 0);
    list_append(&s.in_session, &reservation->in_session);
    record_commit(&s.reservations.table, reservation);
    id = reservation->record->head.id;
    assert_int_equal(buffer_place(&s.buffers, buffer, reservation, 3 * STATE_PAGE, NULL), 0);
    assert_int_equal(buffer->record->address, reservation->record->address + 3 * STATE_PAGE);
    assert_ptr_equal(reservation_release(reservation), reservation);
    buffer_free(&s.buffers, buffer);
    assert_null(reservations_find(&s.reservations, id));
    assert_int_equal(s.arena.used, 0);
}

static void test_alignment_of_the_home(void **state)
{
    struct memory_spec args = {.alignment = UINT64_C(1) << 21};
    struct buffer *a = state_live_buffer(), *b = NULL;

    assert_int_equal(state_buffer_new(STATE_PAGE, false, &args, &b, NULL), 0);
    assert_int_equal(b->record->address, STATE_BASE + (UINT64_C(1) << 21));
    buffer_free(&s.buffers, b);
    buffer_free(&s.buffers, a);
}

static void test_found_by_inode_and_watch(void **state)
{
    enum { N = 200 };
    struct buffer *buffers[N];
    int fd = open_null();

    for (int i = 0; i < N; i++) {
        buffers[i] = state_live_buffer();
        /* the same inode number on two devices is two inodes */
        assert_int_equal(set_memory(buffers[i], open_null(), 1 + (dev_t)i % 2, 1 + (ino_t)i / 2, false), 0);
        buffer_set_watch(&s.buffers, buffers[i], 1000 - i);
    }
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(buffers_by_inode(&s.buffers, 1 + (dev_t)i % 2, 1 + (ino_t)i / 2), buffers[i]);
        assert_ptr_equal(buffers_by_watch(&s.buffers, 1000 - i), buffers[i]);
    }
    assert_null(buffers_by_inode(&s.buffers, 3, 1));
    assert_null(buffers_by_inode(&s.buffers, 1 | (dev_t)1 << 32, 1));
    assert_null(buffers_by_inode(&s.buffers, 1, N));
    assert_null(buffers_by_watch(&s.buffers, -1));
    assert_null(buffers_by_watch(&s.buffers, 1));

    /* a watch that ended, and one whose number came again */
    buffer_set_watch(&s.buffers, buffers[0], -1);
    assert_null(buffers_by_watch(&s.buffers, 1000));
    buffer_set_watch(&s.buffers, buffers[1], 998);
    assert_ptr_equal(buffers_by_watch(&s.buffers, 998), buffers[1]);
    assert_int_equal(buffers[2]->record->watch, -1);

    for (int i = 0; i < N; i += 2)
        buffer_free(&s.buffers, buffers[i]);
    /* the inode that is there already: nothing is taken over */
    buffers[0] = state_live_buffer();
    assert_int_equal(set_memory(buffers[0], fd, 2, 1, false), STATUS_BUSY);
    assert_int_equal(buffers[0]->fd, -1);
    assert_ptr_equal(buffers_by_inode(&s.buffers, 2, 1), buffers[1]);
    assert_int_equal(set_memory(buffers[0], fd, 1, 1, false), 0);
    buffer_free(&s.buffers, buffers[0]);
    for (int i = 1; i < N; i += 2)
        buffer_free(&s.buffers, buffers[i]);
}

static void test_states(void **state)
{
    struct buffer *buffer = state_live_buffer();

    assert_int_equal(buffer->record->state, BUFFER_LIVE);
    buffer_set_state(&s.buffers, buffer, BUFFER_DETACHED);
    assert_int_equal(s.buffers.n_detached, 1);
    assert_int_not_equal(buffer->record->detached_ms, 0);
    buffer_set_state(&s.buffers, buffer, BUFFER_ENDING);
    assert_int_equal(s.buffers.n_detached, 0);
    assert_int_equal(s.buffers.n_ending, 1);
    buffer_set_state(&s.buffers, buffer, BUFFER_DETACHED);
    buffer_set_state(&s.buffers, buffer, BUFFER_LIVE);
    assert_int_equal(s.buffers.n_detached, 0);
    assert_int_equal(buffer->record->detached_ms, 0);
    buffer_set_state(&s.buffers, buffer, BUFFER_ENDING);
    buffer_free(&s.buffers, buffer);
    assert_int_equal(s.buffers.n_detached, 0);
    assert_int_equal(s.buffers.n_ending, 0);
}

/* I5: the whole of a buffer's charge moves, over the limit. */
static void test_I5_charge_goes_to_another_user(void **state)
{
    struct buffer *buffer = state_live_buffer();
    struct account *other;

    assert_int_equal(account_of_user(&s.accounts, 2000, &other, NULL), 0);
    s.accounts.limits.user[ACCOUNT_BYTES] = 1;
    buffer_charge_to(&s.buffers, buffer, other, 0);
    assert_int_equal(buffer->record->charged_uid, 2000);
    assert_int_equal(buffer->record->uid, 1000);
    assert_int_equal(account_used(s.account, ACCOUNT_BYTES) + account_used(s.account, ACCOUNT_BUFFERS), 0);
    assert_int_equal(account_used(other, ACCOUNT_BYTES), STATE_PAGE);
    assert_int_equal(account_used(other, ACCOUNT_BUFFERS), 1);
    buffer_free(&s.buffers, buffer);
    assert_int_equal(account_used(other, ACCOUNT_BYTES), 0);
    account_unref(other);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, state_setup, state_teardown)
    const struct CMUnitTest tests[] = {
        T(test_takes_and_gives_back),
        T(test_I5_failure_takes_nothing),
        T(test_plan_of_several_nodes_is_kept),
        T(test_no_address_when_not_wanted),
        T(test_alignment_of_the_home),
        T(test_found_by_inode_and_watch),
        T(test_states),
        T(test_I5_charge_goes_to_another_user),
    };

    return test_run(tests, NULL, NULL);
}
