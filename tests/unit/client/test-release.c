/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process gives back that never calls again: it is in the release log before it is sent, and sent without
 * waiting for anything. The broker hangs up at every moment at which it can hurt.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proto/status.h"
#include "rpc/stubs.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/client/absent.h"
#include "tests/unit/client/caller.h"
#include "tests/unit/client/fake.h"

static void give_back(uint64_t id)
{
    rpc_give_back(w.channel, 1, &id, false, deadline_after_ms(PATIENCE_MS));
}

/* The sequence of what is in the log behind this one; 0: nothing. */
static uint64_t next_in_log(uint64_t sequence)
{
    const void *packet;
    size_t size;

    return release_log_next(w.releases, &sequence, &packet, &size) ? sequence : 0;
}

/* The broker waits for nothing that the client does. */
static void I4_giving_back_connects_and_waits_for_nothing(void **state)
{
    uint64_t hello, sent;

    (void)state;
    give_back(5);
    sent = expect_plain(w.broker, METHOD_RELEASE);
    assert_int_equal(next_in_log(0), sent);
    /* it is in nobody's hands but the log's */
    hang_up();
    give_back(6);
    hello = expect_hello(0);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sent);
    sent = next_in_log(sent);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sent);
    give_back(7);
    sent = next_in_log(sent);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sent);
    /* that broker dies as well: what is in the log is sent again, as it was */
    hang_up();
    give_back(8);
    hello = expect_hello(0);
    for (uint64_t i = next_in_log(0); i; i = next_in_log(i))
        assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), i);
    fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
    for (uint64_t i = next_in_log(0); i; i = next_in_log(i))
        fake_reply(w.broker, METHOD_RELEASE, i, NULL, NULL, 0);
    call_works();
    /* what is answered leaves the log */
    assert_int_equal(next_in_log(0), 0);
}

static void what_is_sent_behind_a_hello_that_is_refused_is_sent_again(void **state)
{
    static const unsigned statuses[] = {STATUS_SHUTTING_DOWN, STATUS_LIMIT};
    uint64_t hello, sent = 0;
    struct caller c;

    (void)state;
    hang_up();
    give_back(5);
    hello = expect_hello(0);
    sent = expect_plain(w.broker, METHOD_RELEASE);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        fake_refuse(w.broker, METHOD_HELLO, hello, statuses[i], "in a moment");
        fake_refuse(w.broker, METHOD_RELEASE, sent, STATUS_NO_SESSION, "the first message must be HELLO");
        if (!i)
            start(&c, PING);
        assert_false(fake_receive(w.broker, &(struct fake_request){.message = NULL}));
        hang_up();
        hello = expect_hello(0);
        assert_int_equal(next_in_log(0), sent);
        if (!i)
            continue;
        fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
        assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sent);
    }
    fake_reply(w.broker, METHOD_RELEASE, sent, NULL, NULL, 0);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
    assert_int_equal(next_in_log(0), 0);
}

/* More than the log has room for: those are waited with a little, and then left for the next call. */
static void a_broker_that_stays_away_holds_nobody_up_for_good(void **state)
{
    struct caller c;
    unsigned n = 0;

    (void)state;
    stop_listening();
    hang_up();
    for (uint64_t id = 1; id <= 200; id++)
        give_back(id);
    for (uint64_t i = next_in_log(0); i; i = next_in_log(i))
        n++;
    assert_in_range(n, RELEASE_LOG_CELLS / 2, MEMORYD_UNACKNOWLEDGED_MAX);
    listen_there(SOCK_SEQPACKET);
    start(&c, PING);
    welcome_back(0);
    for (n = 0; n < 200;) {
        struct fake_request request;

        assert_true(fake_receive(w.broker, &request));
        n += request.header.method == METHOD_RELEASE;
        fake_reply(w.broker, request.header.method, request.header.sequence, NULL, NULL, 0);
        fake_request_deinit(&request);
        if (request.header.method == METHOD_PING && !caller_finish(&c))
            start(&c, PING);
    }
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

static void write_into_the_log(int channel, void *context)
{
    (void)channel;
    (void)context;
    w.channel->release_log->zero = 1;
}

/* It would give back what the parent has. */
static void the_child_of_a_fork_has_no_part_in_the_log(void **state)
{
    (void)state;
    assert_int_equal(child_signal(write_into_the_log, NULL), SIGSEGV);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_with_log, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(I4_giving_back_connects_and_waits_for_nothing),
        TEST(what_is_sent_behind_a_hello_that_is_refused_is_sent_again),
        TEST(a_broker_that_stays_away_holds_nobody_up_for_good),
        TEST(the_child_of_a_fork_has_no_part_in_the_log),
    };

    return test_run(tests, NULL, NULL);
}
