/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A HELLO that takes several turns: who may go between them, and what is left then.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "broker/state.h"
#include "proto/status.h"
#include "sys/peer.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/keeper.h"
#include "tests/unit/broker/steps.h"

static struct peer peer;
static struct call call;
static struct hello_args args;
static struct hello_result result;

/* The session is open, and nobody knows of it. */
static void begin_hello(pid_t pid)
{
    args = (struct hello_args){.connection = (void *)7, .program = "test", .release_log = true, .peer = &peer};
    memset(&result, 0, sizeof(result));
    peer = (struct peer)PEER_NULL;
    assert_int_equal(peer_init_pid(&peer, pid), 0);
    peer.uid = getuid();
    call_init(&call, 0);
    assert_int_equal(op_hello(&call.op, &args, &result), OP_PENDING);
    broker_commit(host.broker);
    /* one that waits for room is still to be let in */
    if (call.op.session)
        peer_deinit(&peer);
}

static const struct session *session_begun(void)
{
    return sessions_find(&host.broker->sessions, call.op.session);
}

static void I7_it_is_done_in_turns(void **state)
{
    unsigned turns = 0;

    begin_hello(getpid());
    for (; !call.ended; turns++) {
        assert_int_equal(session_begun()->release_log >= 0, turns);
        assert_int_not_equal(session_begun()->record->lost_at, 0);
        assert_false(list_is_empty(&host.turns));
        host_take_turns();
    }
    assert_int_equal(call.status, 0);
    assert_int_equal(turns, 2);
    assert_true(result.release_log);
    assert_int_equal(result.session, call.op.session);
    assert_int_equal(session_begun()->record->lost_at, 0);
    assert_int_equal(CALL(result.session, op_goodbye), 0);
    host_settle();
}

/* Its connection goes, after so many of the turns: no session is left, and nobody looks at the connection again. */
static void goes_after(unsigned turns)
{
    uint64_t session;

    begin_hello(getpid());
    for (unsigned i = 0; i < turns; i++)
        host_take_turns();
    session = call.op.session;
    op_cancel(&call.op);
    assert_null(session_begun()->connection);
    assert_true(HOST_UNTIL(call.ended));
    assert_int_not_equal(call.status, 0);
    assert_true(HOST_UNTIL(!table_find(&host.broker->sessions.table, session)));
    assert_int_equal(host.n_disconnected, 0);
    assert_true(pending_is_empty(&host.broker->pending));
}

static void who_goes_meanwhile_leaves_no_session(void **state)
{
    goes_after(0);
    goes_after(1);
}

static void whose_process_ends_meanwhile_is_told_so(void **state)
{
    for (unsigned turns = 0; turns < 2; turns++) {
        host.n_disconnected = 0;
        begin_hello(getpid());
        for (unsigned i = 0; i < turns; i++)
            host_take_turns();
        assert_int_equal(broker_session_exited(host.broker, call.op.session), 0);
        assert_int_equal(host.n_disconnected, 1);
        assert_true(HOST_UNTIL(call.ended));
        assert_int_equal(call.status, STATUS_STALE);
        assert_true(HOST_UNTIL(!table_find(&host.broker->sessions.table, call.op.session)));
        assert_true(pending_is_empty(&host.broker->pending));
    }
}

/* Its session was opened after the request had begun, and ends before that is answered. */
static void whose_process_ends_after_waiting_for_room_is_told_so(void **state)
{
    uint64_t before = host_session(1);

    host.limits.user[ACCOUNT_SESSIONS] = 1;
    broker_set_limits(host.broker, &host.limits);
    assert_int_equal(CALL(before, op_goodbye), 0);
    begin_hello(getpid());
    assert_int_equal(call.op.session, 0);
    assert_true(HOST_UNTIL(call.op.session));
    peer_deinit(&peer);
    assert_false(call.ended);
    assert_int_equal(broker_session_exited(host.broker, call.op.session), 0);
    assert_true(HOST_UNTIL(call.ended));
    assert_int_equal(call.status, STATUS_STALE);
    assert_true(pending_is_empty(&host.broker->pending));
}

/* ---- the next broker --------------------------------------------------------------------------------------------- */

static unsigned turns_before;

static void die_in_the_middle(void)
{
    begin_hello(keeper_test);
    for (unsigned i = 0; i < turns_before; i++)
        host_take_turns();
    shared->sessions[0] = call.op.session;
}

/* Its client never heard of it, and begins another one. */
static void I6_what_the_broker_told_nobody_ends_with_the_next(void **state)
{
    for (turns_before = 0; turns_before < 2; turns_before++) {
        (void)steps_set_up(NULL);
        host.grace_ms = 20;
        generation_run(die_in_the_middle);
        generation_adopt();
        assert_int_equal(host_status, 0);
        assert_non_null(sessions_find(&host.broker->sessions, shared->sessions[0]));
        assert_true(HOST_UNTIL(!table_find(&host.broker->sessions.table, shared->sessions[0])));
        generation_finish();
    }
}

#define hello(function) cmocka_unit_test_setup_teardown(function, host_setup, host_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        hello(I7_it_is_done_in_turns),
        hello(who_goes_meanwhile_leaves_no_session),
        hello(whose_process_ends_meanwhile_is_told_so),
        hello(whose_process_ends_after_waiting_for_room_is_told_so),
        cmocka_unit_test_setup_teardown(I6_what_the_broker_told_nobody_ends_with_the_next, steps_set_up,
                                        steps_tear_down),
    };

    return test_run(tests, NULL, NULL);
}
