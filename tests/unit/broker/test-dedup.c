/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that come again, at a real broker: what it makes of a sequence that it has seen, which requests it would
 * blame if it died, and what becomes of one that other brokers died over.
 */
#include "tests/support/test.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker/state.h"
#include "proto/methods.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"

#define PAGE UINT64_C(4096)

static struct op *running;
static struct problem problem;

static int begin(uint64_t session, uint64_t sequence, uint16_t method, bool recorded)
{
    struct op_request request = {.session = session, .sequence = sequence, .method = method, .recorded = recorded};

    running = NULL;
    problem = (struct problem)PROBLEM_NULL;
    return op_begin(host.broker, &request, &running, &problem);
}

static void keep(uint64_t session, uint64_t sequence, uint32_t status)
{
    reply_store(host.broker, session, sequence, &(struct op_reply){.status = status, .size = 5}, "reply");
    broker_commit(host.broker);
}

static struct kept *kept(uint64_t session, uint64_t sequence)
{
    return session_kept(sessions_find(&host.broker->sessions, session), sequence);
}

/* As a former broker would have left it. */
static void died_over(uint64_t session, uint64_t sequence, uint16_t method, uint8_t deaths)
{
    struct kept *new;

    assert_int_equal(kept_new(sessions_find(&host.broker->sessions, session), sequence, method, &new, NULL), 0);
    record_fresh(new)->deaths = deaths;
    broker_commit(host.broker);
}

static void a_request_is_new_then_kept_then_forgotten(void **state)
{
    uint64_t session = host_session(1);
    struct op_reply reply;
    char message[MEMORYD_PAYLOAD_MAX];

    assert_int_equal(begin(session, 5, METHOD_RESERVE, true), 0);
    keep(session, 5, STATUS_NAME_EXISTS);
    assert_int_equal(begin(session, 5, METHOD_RESERVE, true), OP_ANSWERED);
    reply_load(host.broker, session, 5, &reply, message);
    assert_int_equal(reply.status, STATUS_NAME_EXISTS);
    assert_int_equal(reply.size, 5);
    assert_memory_equal(message, "reply", 5);
    assert_true(op_acknowledge(host.broker, session, 4, 0));
    assert_false(op_acknowledge(host.broker, session, 4, 5));
    assert_false(op_acknowledge(host.broker, session, 7, 0));
    assert_int_equal(begin(session, 7, METHOD_RESERVE, true), OP_FORGOTTEN);
    assert_int_equal(begin(session, 7, METHOD_STATUS, false), 0);
    assert_int_equal(begin(session, 8, METHOD_RESERVE, true), 0);
}

static void sequences_are_of_a_session(void **state)
{
    uint64_t one = host_session(1), other = host_session(2);

    assert_int_equal(begin(one, 5, METHOD_RESERVE, true), 0);
    keep(one, 5, 0);
    assert_int_equal(begin(other, 5, METHOD_RESERVE, true), 0);
    /* of none that lives: the operation says so */
    assert_int_equal(begin(one + 1000, 5, METHOD_RESERVE, true), 0);
    reply_store(host.broker, one + 1000, 5, &(struct op_reply){.status = 0}, "");
}

static void so_many_and_no_more(void **state)
{
    uint64_t session = host_session(1);

    for (uint64_t i = 1; i <= MEMORYD_UNACKNOWLEDGED_MAX; i++)
        assert_int_equal(begin(session, i, METHOD_RESERVE, true), 0);
    assert_int_equal(begin(session, 100, METHOD_RESERVE, true), STATUS_LIMIT);
    assert_true(problem.sentence[0]);
    /* it left nothing */
    keep(session, 100, STATUS_LIMIT);
    assert_null(kept(session, 100));
}

static void they_end_with_their_session(void **state)
{
    uint64_t session = host_session(1);
    struct sessions *sessions = &host.broker->sessions;

    for (uint64_t i = 1; i <= MEMORYD_UNACKNOWLEDGED_MAX; i++) {
        static const char message[5000];

        assert_int_equal(begin(session, i, METHOD_RESERVE, true), 0);
        reply_store(host.broker, session, i, &(struct op_reply){.size = sizeof(message)}, message);
    }
    assert_int_equal(CALL(session, op_goodbye), 0);
    host_settle();
    assert_int_equal(table_count(&sessions->kept), 0);
    assert_int_equal(table_count(&sessions->kept_more), 0);
}

static void one_that_waits_for_room_is_running_and_not_working(void **state)
{
    static struct alloc_spec args = {.n = 1, .sizes = {HOST_POOL_BYTES}};
    static struct opened result;
    static struct call call;
    uint64_t session = host_session(1), buffer;

    assert_int_equal(host_alloc(session, HOST_POOL_BYTES, 0, &buffer), 0);
    assert_int_equal(begin(session, 5, METHOD_ALLOC, true), 0);
    args.wait_ms = PATIENCE_MS;
    call_init(&call, session);
    call.op.sequence = 5;
    assert_int_equal(op_alloc(&call.op, &args, &result), OP_PENDING);
    broker_commit(host.broker);
    assert_int_equal(begin(session, 5, METHOD_ALLOC, true), OP_RUNNING);
    assert_ptr_equal(running, &call.op);
    assert_int_equal(kept(session, 5)->record->working, 0);
    /* who says that it has the reply is wrong, and does no harm */
    assert_true(op_acknowledge(host.broker, session, 5, 0));
    assert_int_equal(begin(session, 5, METHOD_ALLOC, true), OP_RUNNING);

    assert_int_equal(host_release(session, buffer), 0);
    assert_true(HOST_UNTIL(call.ended || kept(session, 5)->record->working));
    assert_true(HOST_UNTIL(call.ended));
    assert_int_equal(call.status, 0);
    assert_int_equal(ledger_executing(host.broker->ledger)->session, 0);
    keep(session, 5, 0);
    assert_null(kept(session, 5));
}

static void one_that_a_worker_does_is_working(void **state)
{
    static struct call call;
    uint64_t session = host_session(1), buffer;

    assert_int_equal(host_alloc(session, PAGE, BUFFER_PUBLISHABLE, &buffer), 0);
    assert_int_equal(begin(session, 5, METHOD_PUBLISH, true), 0);
    call_init(&call, session);
    call.op.sequence = 5;
    assert_int_equal(op_publish(&call.op, buffer, false), OP_PENDING);
    broker_commit(host.broker);
    assert_int_equal(kept(session, 5)->record->working, 1);
    /* a broker that leaves in order did not die of it */
    broker_leave(host.broker);
    assert_int_equal(kept(session, 5)->record->working, 0);
    assert_int_equal(call_finish(&call, OP_PENDING), 0);
    keep(session, 5, 0);
    assert_int_equal(kept(session, 5)->record->working, 0);
}

/* It is not to blame for what happens while others are done: two of a user at a time. */
static void one_that_waits_for_a_worker_is_not(void **state)
{
    static struct call calls[3];
    uint64_t session = host_session(1), buffer;

    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(host_alloc(session, PAGE, BUFFER_PUBLISHABLE, &buffer), 0);
        assert_int_equal(begin(session, 5 + i, METHOD_PUBLISH, true), 0);
        call_init(&calls[i], session);
        calls[i].op.sequence = 5 + i;
        assert_int_equal(op_publish(&calls[i].op, buffer, false), OP_PENDING);
    }
    broker_commit(host.broker);
    assert_int_equal(kept(session, 5)->record->working, 1);
    assert_int_equal(kept(session, 6)->record->working, 1);
    assert_int_equal(kept(session, 7)->record->working, 0);
    assert_int_equal(call_finish(&calls[0], OP_PENDING), 0);
    keep(session, 5, 0);
    /* its turn has come */
    assert_int_equal(kept(session, 7)->record->working, 1);
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(call_finish(&calls[i], OP_PENDING), 0);
        keep(session, 5 + i, 0);
    }
    assert_int_equal(kept(session, 7)->record->working, 0);
}

static void what_one_broker_died_over_is_tried_again(void **state)
{
    uint64_t session = host_session(1);

    died_over(session, 5, METHOD_PUBLISH, 1);
    assert_int_equal(begin(session, 5, METHOD_PUBLISH, true), OP_REPLAY);
    keep(session, 5, 0);
    assert_int_equal(begin(session, 5, METHOD_PUBLISH, true), OP_ANSWERED);
    /* one that waited for room when it died */
    died_over(session, 6, METHOD_ALLOC, 0);
    assert_int_equal(begin(session, 6, METHOD_ALLOC, true), OP_REPLAY);
}

/* A second kill in the same burst must not find it at work again. */
static void what_a_broker_died_over_rests_first(void **state)
{
    static struct call call;
    uint64_t session = host_session(1), buffer;

    assert_int_equal(host_alloc(session, PAGE, BUFFER_PUBLISHABLE, &buffer), 0);
    died_over(session, 5, METHOD_PUBLISH, 1);
    assert_int_equal(begin(session, 5, METHOD_PUBLISH, true), OP_REPLAY);
    host.broker->started = clock_now_ns();
    call_init(&call, session);
    call.op.sequence = 5;
    assert_int_equal(op_publish(&call.op, buffer, false), OP_PENDING);
    broker_commit(host.broker);
    assert_int_equal(kept(session, 5)->record->working, 0);
    assert_int_equal(begin(session, 5, METHOD_PUBLISH, true), OP_RUNNING);
    assert_true(HOST_UNTIL(kept(session, 5)->record->working));
    assert_int_equal(call_finish(&call, OP_PENDING), 0);
    keep(session, 5, 0);
}

/* Brokers that died had other users' requests at work, too. */
static void what_is_only_suspected_is_tried_for_long(void **state)
{
    uint64_t session = host_session(1);
    struct kept *new;

    for (uint8_t suspicions = 15; suspicions <= 16; suspicions++) {
        assert_int_equal(
            kept_new(sessions_find(&host.broker->sessions, session), suspicions, METHOD_PUBLISH, &new, NULL), 0);
        record_fresh(new)->suspicions = suspicions;
        record_fresh(new)->deaths = 1;
        broker_commit(host.broker);
    }
    assert_int_equal(begin(session, 15, METHOD_PUBLISH, true), OP_REPLAY);
    assert_int_equal(begin(session, 16, METHOD_PUBLISH, true), STATUS_REFUSED);
    keep(session, 15, 0);
    keep(session, 16, STATUS_REFUSED);
}

static void what_two_brokers_died_over_is_not(void **state)
{
    uint64_t session = host_session(1);

    died_over(session, 5, METHOD_PUBLISH, 2);
    assert_int_equal(begin(session, 5, METHOD_PUBLISH, true), STATUS_REFUSED);
    assert_non_null(strstr(problem.sentence, "died"));
    keep(session, 5, STATUS_REFUSED);
    assert_int_equal(begin(session, 5, METHOD_PUBLISH, true), OP_ANSWERED);
    /* nor if it is harmless otherwise */
    died_over(session, 6, METHOD_LIST_BUFFERS, 1);
    assert_int_equal(begin(session, 6, METHOD_LIST_BUFFERS, false), OP_REPLAY);
    died_over(session, 7, METHOD_LIST_BUFFERS, 2);
    assert_int_equal(begin(session, 7, METHOD_LIST_BUFFERS, false), STATUS_REFUSED);
}

static int again(uint64_t session, uint64_t buffer, int (*operation)(struct op *op, uint64_t buffer, bool flag))
{
    static struct call call;

    call_init(&call, session);
    call.op.replay = true;
    return call_finish(&call, operation(&call.op, buffer, false));
}

/* The broker died after the effect and before the reply. */
static void done_again_is_done(void **state)
{
    uint64_t session = host_session(1), buffer;

    assert_int_equal(host_alloc(session, PAGE, BUFFER_PUBLISHABLE, &buffer), 0);
    assert_int_equal(CALL(session, op_publish, buffer, false), 0);
    assert_int_equal(CALL(session, op_publish, buffer, false), STATUS_PUBLISHED);
    assert_int_equal(again(session, buffer, op_publish), 0);
    assert_int_equal(CALL(session, op_destroy, buffer, false), 0);
    host_settle();
    assert_int_equal(CALL(session, op_destroy, buffer, false), STATUS_STALE);
    assert_int_equal(again(session, buffer, op_destroy), 0);
    /* what never was is not gone either */
    assert_int_equal(again(session, buffer + 1000000, op_destroy), STATUS_NO_SUCH_ID);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_new_then_kept_then_forgotten),
        TEST(sequences_are_of_a_session),
        TEST(so_many_and_no_more),
        TEST(they_end_with_their_session),
        TEST(one_that_waits_for_room_is_running_and_not_working),
        TEST(one_that_a_worker_does_is_working),
        TEST(one_that_waits_for_a_worker_is_not),
        TEST(what_one_broker_died_over_is_tried_again),
        TEST(what_a_broker_died_over_rests_first),
        TEST(what_is_only_suspected_is_tried_for_long),
        TEST(what_two_brokers_died_over_is_not),
        TEST(done_again_is_done),
    };

    return test_run(tests, NULL, NULL);
}
