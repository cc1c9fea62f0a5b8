/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session over several connections: what has no reply is sent again as it was, nobody waits beyond his deadline,
 * and nothing that was granted is lost. The broker hangs up at every moment at which it can hurt.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "proto/status.h"
#include "rpc/stubs.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/client/absent.h"
#include "tests/unit/client/caller.h"
#include "tests/unit/client/fake.h"

/* ---- what has no reply ------------------------------------------------------------------------------------------- */

static void same_request(const struct fake_request *a, const struct fake_request *b)
{
    uint8_t first[4096], again[4096];
    size_t n = protobuf_c_message_pack(a->message, first);

    assert_int_equal(a->header.method, b->header.method);
    assert_int_equal(a->header.sequence, b->header.sequence);
    assert_int_equal(a->header.payload_length, b->header.payload_length);
    assert_int_equal(protobuf_c_message_pack(b->message, again), n);
    assert_memory_equal(first, again, n);
}

static void a_request_is_sent_again_until_it_is_answered(void **state)
{
    struct fake_request once, again;
    struct caller c;

    start(&c, ALLOC);
    assert_int_equal(expect(w.broker, METHOD_ALLOC, &once), 1);
    for (unsigned i = 0; i < 3; i++) {
        hang_up();
        welcome_back(0);
        /* the second time it is not even read */
        if (i == 1) {
            assert_true(wait_readable(w.broker));
            continue;
        }
        expect(w.broker, METHOD_ALLOC, &again);
        same_request(&once, &again);
        fake_request_deinit(&again);
    }
    fake_request_deinit(&once);
    fake_buffers(w.broker, METHOD_ALLOC, 1, 77, 1, NULL);
    assert_int_equal(caller_finish(&c), 0);
    assert_int_equal(c.id, 77);
    assert_int_equal(w.lost, 3);
    assert_int_equal(w.resumed, 3);
    call_works();
}

static void a_reply_before_the_end_is_not_asked_for_again(void **state)
{
    struct caller a, b;

    start(&a, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    start(&b, RESERVE);
    /* the second request stays unread, so that the close is an abortive one */
    assert_true(wait_readable(w.broker));
    fake_buffers(w.broker, METHOD_ALLOC, 1, 77, 1, NULL);
    hang_up();
    welcome_back(1);
    assert_int_equal(expect_plain(w.broker, METHOD_RESERVE), 2);
    assert_int_equal(caller_finish(&a), 0);
    fake_refuse(w.broker, METHOD_RESERVE, 2, STATUS_LIMIT, "no more");
    assert_int_equal(caller_finish(&b), -EDQUOT);
}

static void what_is_half_answered_is_half_repeated_in_order(void **state)
{
    struct caller callers[5];

    for (unsigned i = 0; i < 5; i++) {
        start(&callers[i], ALLOC);
        assert_int_equal(expect_plain(w.broker, METHOD_ALLOC), i + 1);
    }
    fake_buffers(w.broker, METHOD_ALLOC, 1, 101, 1, NULL);
    fake_buffers(w.broker, METHOD_ALLOC, 3, 103, 1, NULL);
    hang_up();
    welcome_back(1);
    for (uint64_t sequence = 2; sequence <= 5; sequence += sequence == 2 ? 2 : 1) {
        assert_int_equal(expect_plain(w.broker, METHOD_ALLOC), sequence);
        fake_buffers(w.broker, METHOD_ALLOC, sequence, 100 + sequence, 1, NULL);
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(caller_finish(&callers[i]), 0);
        assert_int_equal(callers[i].id, 101 + i);
    }
}

static void a_request_for_a_broker_that_is_away_waits_for_it(void **state)
{
    struct caller c;

    stop_listening();
    hang_up();
    start(&c, RESERVE);
    assert_true(WAIT_UNTIL(__atomic_load_n(&w.lost, __ATOMIC_RELAXED) == 1));
    listen_there(SOCK_SEQPACKET);
    welcome_back(0);
    assert_int_equal(expect_plain(w.broker, METHOD_RESERVE), 2);
    fake_refuse(w.broker, METHOD_RESERVE, 2, STATUS_LIMIT, "no more");
    assert_int_equal(caller_finish(&c), -EDQUOT);
}

static void a_broker_that_hangs_up_at_hello_is_asked_again(void **state)
{
    struct caller c;

    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(expect_hello(0), 2 + i);
        hang_up();
    }
    /* perhaps before it could say hello */
    answer_connect();
    hang_up();
    welcome_back(0);
    assert_int_equal(expect_plain(w.broker, METHOD_ALLOC), 1);
    fake_buffers(w.broker, METHOD_ALLOC, 1, 77, 1, NULL);
    assert_int_equal(caller_finish(&c), 0);
    /* one connection was lost and one made, whatever was tried between */
    assert_int_equal(w.lost, 1);
    assert_int_equal(w.resumed, 1);
}

static void a_broker_that_is_not_ready_is_asked_again(void **state)
{
    struct caller c;
    uint64_t hello;

    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    hello = expect_hello(0);
    fake_refuse(w.broker, METHOD_HELLO, hello, STATUS_SHUTTING_DOWN, "in a moment");
    assert_false(fake_receive(w.broker, &(struct fake_request){.message = NULL}));
    hang_up();
    welcome_back(0);
    fake_buffers(w.broker, METHOD_ALLOC, expect_plain(w.broker, METHOD_ALLOC), 77, 1, NULL);
    assert_int_equal(caller_finish(&c), 0);
}

static void the_descriptors_of_an_import_are_sent_again(void **state)
{
    FD_AUTO int fd = memfd_create("imported", MFD_CLOEXEC);
    struct stat wanted, sent;
    struct caller c;

    assert_ok(fstat(fd, &wanted));
    caller_start_import(&c, w.channel, fd, PATIENCE_MS);
    for (unsigned i = 0; i < 2; i++) {
        struct fake_request request;

        assert_int_equal(expect(w.broker, METHOD_IMPORT, &request), 1);
        assert_int_equal(fdset_count(&request.fds), 1);
        assert_ok(fstat(request.fds.fds[0], &sent));
        assert_int_equal(sent.st_ino, wanted.st_ino);
        fake_request_deinit(&request);
        if (i)
            break;
        hang_up();
        welcome_back(0);
    }
    fake_buffers(w.broker, METHOD_IMPORT, 1, 9, 1, NULL);
    assert_int_equal(caller_finish(&c), 0);
    assert_int_equal(c.id, 9);
}

/* ---- where the caller is ----------------------------------------------------------------------------------------- */

/* What the broker of now is told of the caller's node. */
static uint32_t node_that_is_told(void)
{
    struct fake_request request;
    uint64_t sequence;
    struct caller c;
    uint32_t node;

    start(&c, ALLOC);
    sequence = expect(w.broker, METHOD_ALLOC, &request);
    node = ((const Memoryd__V1__AllocRequest *)request.message)->caller_node;
    fake_request_deinit(&request);
    fake_buffers(w.broker, METHOD_ALLOC, sequence, 77, 1, NULL);
    assert_int_equal(caller_finish(&c), 0);
    return node;
}

static void next_broker(unsigned nodes)
{
    struct caller c;
    uint64_t hello;

    hang_up();
    start(&c, PING);
    answer_connect();
    hello = expect_plain(w.broker, METHOD_HELLO);
    fake_nodes = nodes;
    fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
    fake_nodes = 0;
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

/* A broker that does not say how many it has would not understand. */
static void the_callers_node_is_told_where_there_are_several(void **state)
{
    assert_int_equal(node_that_is_told(), 0);
    next_broker(2);
    assert_int_not_equal(node_that_is_told(), 0);
    next_broker(1);
    assert_int_equal(node_that_is_told(), 0);
    next_broker(2);
    assert_int_not_equal(node_that_is_told(), 0);
    next_broker(0);
    assert_int_equal(node_that_is_told(), 0);
}

/* ---- who gave up ------------------------------------------------------------------------------------------------- */

/* Time enough to lose the connection and to begin another one, on a busy machine too; then it is over. */
#define LONG_MS (40 * QUIET_MS)

static void a_late_grant_is_asked_for_again_and_undone(void **state)
{
    FD_AUTO int fd = memfd_create("imported", MFD_CLOEXEC);
    struct fake_request once, again;
    struct caller c;

    caller_start(&c, w.channel, ALLOC, QUIET_MS);
    expect(w.broker, METHOD_ALLOC, &once);
    assert_int_equal(caller_finish(&c), -ETIMEDOUT);
    caller_start_import(&c, w.channel, fd, QUIET_MS);
    expect_plain(w.broker, METHOD_IMPORT);
    assert_int_equal(caller_finish(&c), -ETIMEDOUT);
    caller_start(&c, w.channel, PING, QUIET_MS);
    expect_plain(w.broker, METHOD_PING);
    assert_int_equal(caller_finish(&c), -ETIMEDOUT);
    hang_up();

    start(&c, PING);
    welcome_back(0);
    expect(w.broker, METHOD_ALLOC, &again);
    same_request(&once, &again);
    fake_request_deinit(&once);
    fake_request_deinit(&again);
    /* whose descriptors may be others by now; the one that was pinged is not again */
    assert_int_equal(expect(w.broker, METHOD_IMPORT, &again), 2);
    assert_int_equal(fdset_count(&again.fds), 0);
    fake_request_deinit(&again);
    assert_int_equal(expect_plain(w.broker, METHOD_PING), 5);

    fake_buffers(w.broker, METHOD_ALLOC, 1, 55, 1, NULL);
    expect(w.broker, METHOD_RELEASE, &again);
    assert_int_equal(((const Memoryd__V1__ReleaseRequest *)again.message)->buffers[0], 55);
    fake_request_deinit(&again);
    fake_refuse(w.broker, METHOD_IMPORT, 2, STATUS_INVALID_ARGUMENT, "no descriptor");
    fake_reply(w.broker, METHOD_PING, 5, NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

static void a_broker_that_does_not_come_back_is_waited_for_until_the_deadline(void **state)
{
    struct caller sent, unsent;

    stop_listening();
    caller_start(&sent, w.channel, ALLOC, LONG_MS);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    caller_start(&unsent, w.channel, RESERVE, QUIET_MS);
    assert_int_equal(caller_finish(&sent), -ETIMEDOUT);
    assert_int_equal(caller_finish(&unsent), -ETIMEDOUT);
    assert_non_null(strstr(sent.sentence, w.at.path));
    assert_non_null(strstr(unsent.sentence, "did not come back"));

    /* what was never sent is not sent later */
    listen_there(SOCK_SEQPACKET);
    start(&sent, PING);
    welcome_back(0);
    assert_int_equal(expect_plain(w.broker, METHOD_ALLOC), 1);
    assert_int_equal(expect_plain(w.broker, METHOD_PING), 3);
    fake_reply(w.broker, METHOD_PING, 3, NULL, NULL, 0);
    assert_int_equal(caller_finish(&sent), 0);
}

static void the_next_leader_goes_on_where_the_former_gave_up(void **state)
{
    struct caller hasty, patient;
    uint64_t hello;

    hang_up();
    caller_start(&hasty, w.channel, ALLOC, LONG_MS);
    hello = expect_hello(0);
    start(&patient, ALLOC);
    assert_int_equal(caller_finish(&hasty), -ETIMEDOUT);
    assert_non_null(strstr(hasty.sentence, "did not take the session up"));
    /* the same connection still waits for the same answer */
    assert_true(stays_quiet(w.listening));
    fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
    fake_buffers(w.broker, METHOD_ALLOC, expect_plain(w.broker, METHOD_ALLOC), 77, 1, NULL);
    assert_int_equal(caller_finish(&patient), 0);
}

static void giving_back_does_not_wait_for_a_broker_that_is_away(void **state)
{
    struct caller sent, unsent;

    stop_listening();
    start(&sent, RELEASE);
    expect_plain(w.broker, METHOD_RELEASE);
    hang_up();
    assert_int_equal(caller_finish(&sent), 0);
    for (uint64_t id = 2; id < 102; id++)
        rpc_release(rpc_route_of(w.channel, deadline_after_ms(PATIENCE_MS)), 1, &id, id % 2);
    assert_int_equal(rpc_unreserve(rpc_route_of(w.channel, deadline_after_ms(PATIENCE_MS)), 3), 0);

    /* it is sent before whatever is next; no more at a time than may be without acknowledgement */
    listen_there(SOCK_SEQPACKET);
    start(&unsent, PING);
    welcome_back(0);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), 1);
    for (unsigned i = 0; i < MEMORYD_UNACKNOWLEDGED_MAX - 1; i++)
        fake_reply(w.broker, METHOD_RELEASE, expect_plain(w.broker, METHOD_RELEASE), NULL, NULL, 0);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&unsent), 0);
    start(&unsent, PING);
    for (unsigned i = MEMORYD_UNACKNOWLEDGED_MAX - 1; i < 102; i++) {
        struct fake_request request;

        assert_true(fake_receive(w.broker, &request));
        fake_reply(w.broker, request.header.method, request.header.sequence, NULL, NULL, 0);
        fake_request_deinit(&request);
    }
    assert_int_equal(caller_finish(&unsent), 0);
}

/* ---- what cannot go on ------------------------------------------------------------------------------------------- */

static void a_session_that_is_not_known_any_more_ends_every_call(void **state)
{
    static const unsigned statuses[] = {STATUS_STALE, STATUS_SESSION_REJECTED, STATUS_NO_SUCH_ID};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        struct caller sent, unsent;
        uint64_t hello;

        if (i) {
            teardown(state);
            setup(state);
        }
        start(&sent, ALLOC);
        expect_plain(w.broker, METHOD_ALLOC);
        hang_up();
        hello = expect_hello(0);
        start(&unsent, ALLOC);
        fake_refuse(w.broker, METHOD_HELLO, hello, statuses[i], "never heard of it");
        assert_int_equal(caller_finish(&sent), -ECONNRESET);
        assert_int_equal(caller_finish(&unsent), -ENOTCONN);
        assert_true(channel_is_broken(w.channel));
        assert_int_equal(rpc_ping(rpc_route_of(w.channel, DEADLINE_NEVER)), -ENOTCONN);
    }
}

static void another_broker_with_another_session_ends_every_call(void **state)
{
    struct caller c;
    uint64_t hello;

    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    hello = expect_hello(0);
    fake_greet(w.broker, hello, SESSION + 1, MEMORYD_MINOR_MAX);
    assert_int_equal(caller_finish(&c), -ECONNRESET);
    assert_true(channel_is_broken(w.channel));
}

static void a_connection_that_cannot_be_made_fails_at_once(void **state)
{
    struct caller c;

    stop_listening();
    listen_there(SOCK_STREAM);
    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    assert_int_equal(caller_finish(&c), -EPROTOTYPE);
    assert_non_null(strstr(c.sentence, w.at.path));

    /* it is not the session's end */
    stop_listening();
    listen_there(SOCK_SEQPACKET);
    start(&c, PING);
    welcome_back(0);
    assert_int_equal(expect_plain(w.broker, METHOD_ALLOC), 1);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

static void another_version_fails_with_the_brokers_sentence(void **state)
{
    struct caller c;
    uint64_t hello;

    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    hello = expect_hello(0);
    fake_refuse(w.broker, METHOD_HELLO, hello, STATUS_VERSION, "upgrade");
    assert_int_equal(caller_finish(&c), -EPROTONOSUPPORT);
    assert_int_equal(c.status, STATUS_VERSION);
    assert_string_equal(c.sentence, "upgrade");
}

static void nonsense_costs_the_calls_but_not_the_session(void **state)
{
    struct caller c;

    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    fake_send(w.broker, "what's this?", 12, NULL, 0);
    assert_int_equal(caller_finish(&c), -EPROTO);
    hang_up();
    start(&c, PING);
    welcome_back(1);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

static void nonsense_at_hello_costs_the_calls_but_not_the_session(void **state)
{
    struct caller c;

    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    expect_hello(0);
    fake_send(w.broker, "what's this?", 12, NULL, 0);
    assert_int_equal(caller_finish(&c), -EPROTO);
    hang_up();
    start(&c, PING);
    welcome_back(2);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

static void an_old_broker_is_asked_again_only_what_is_harmless(void **state)
{
    struct caller alloc, ping;
    uint64_t hello;

    start(&alloc, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    start(&ping, PING);
    expect_plain(w.broker, METHOD_PING);
    hang_up();
    assert_int_equal(caller_finish(&alloc), -ECONNRESET);
    hello = expect_hello(1);
    fake_greet(w.broker, hello, SESSION, 0);
    assert_int_equal(expect_plain(w.broker, METHOD_PING), 2);
    fake_reply(w.broker, METHOD_PING, 2, NULL, NULL, 0);
    assert_int_equal(caller_finish(&ping), 0);
}

static void a_channel_that_is_broken_while_it_reconnects_lets_all_go(void **state)
{
    struct caller c;

    stop_listening();
    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    assert_true(WAIT_UNTIL(__atomic_load_n(&w.lost, __ATOMIC_RELAXED) == 1));
    channel_break(w.channel, ESHUTDOWN, "that's all");
    assert_int_equal(caller_finish(&c), -ESHUTDOWN);
    assert_string_equal(c.sentence, "that's all");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_sent_again_until_it_is_answered),
        TEST(a_reply_before_the_end_is_not_asked_for_again),
        TEST(what_is_half_answered_is_half_repeated_in_order),
        TEST(a_request_for_a_broker_that_is_away_waits_for_it),
        TEST(a_broker_that_hangs_up_at_hello_is_asked_again),
        TEST(a_broker_that_is_not_ready_is_asked_again),
        cmocka_unit_test_setup_teardown(the_descriptors_of_an_import_are_sent_again, setup_before_doors, teardown),
        TEST(the_callers_node_is_told_where_there_are_several),
        cmocka_unit_test_setup_teardown(a_late_grant_is_asked_for_again_and_undone, setup_before_doors, teardown),
        TEST(a_broker_that_does_not_come_back_is_waited_for_until_the_deadline),
        TEST(the_next_leader_goes_on_where_the_former_gave_up),
        TEST(giving_back_does_not_wait_for_a_broker_that_is_away),
        TEST(a_session_that_is_not_known_any_more_ends_every_call),
        TEST(another_broker_with_another_session_ends_every_call),
        TEST(a_connection_that_cannot_be_made_fails_at_once),
        TEST(another_version_fails_with_the_brokers_sentence),
        TEST(nonsense_costs_the_calls_but_not_the_session),
        TEST(nonsense_at_hello_costs_the_calls_but_not_the_session),
        cmocka_unit_test_setup_teardown(an_old_broker_is_asked_again_only_what_is_harmless, setup_old_broker, teardown),
        TEST(a_channel_that_is_broken_while_it_reconnects_lets_all_go),
    };

    return test_run(tests, NULL, NULL);
}
