/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process gives back that never calls again: it is in the release log before it is sent, and sent without
 * waiting for anything. The broker hangs up at every moment at which it can hurt.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "proto/hold_cache.h"
#include "proto/status.h"
#include "rpc/stubs.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/client/absent.h"
#include "tests/unit/client/caller.h"
#include "tests/unit/client/fake.h"

static void give_back(uint64_t id)
{
    rpc_release(rpc_route_of(w.channel, deadline_after_ms(PATIENCE_MS)), 1, &id, false);
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
        assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sent);
    }
    fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
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

/* HELLO has no answer yet; the program has closed the socket, and opened one of its own that has the number now. */
static void nothing_is_sent_behind_hello_on_a_descriptor_of_the_program(void **state)
{
    uint64_t sent;
    int own[2], number;

    hang_up();
    give_back(5);
    (void)expect_hello(0);
    sent = expect_plain(w.broker, METHOD_RELEASE);
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own));
    number = w.channel->socket;
    assert_int_equal(dup3(own[0], number, O_CLOEXEC), number);
    own[0] = fd_close(own[0]);
    give_back(6);
    assert_int_equal(recv(own[1], &(char){0}, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    own[1] = fd_close(own[1]);
    hang_up();
    (void)expect_hello(0);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sent);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), next_in_log(sent));
    /* it is the program's, and stays open */
    assert_ok(close(number));
}

/* Who waits for the answer to HELLO has time; who gives back meanwhile never calls again. */
static void what_is_given_back_while_another_thread_connects_is_sent(void **state)
{
    uint64_t hello, sent;
    struct caller c;

    hang_up();
    start(&c, PING);
    hello = expect_hello(0);
    give_back(5);
    sent = next_in_log(0);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), sent);
    fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
    fake_reply(w.broker, METHOD_RELEASE, sent, NULL, NULL, 0);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

/* The same before there is a connection; and that thread does not wait for the answer. */
static void who_gives_up_connecting_sends_what_was_given_back(void **state)
{
    struct caller c;

    stop_listening();
    hang_up();
    caller_start(&c, w.channel, PING, 300);
    assert_true(WAIT_UNTIL(__atomic_load_n(&w.lost, __ATOMIC_RELAXED)));
    give_back(5);
    listen_there(SOCK_SEQPACKET);
    (void)expect_hello(0);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), next_in_log(0));
    assert_int_equal(caller_finish(&c), -ETIMEDOUT);
}

static void *give_back_many(void *data)
{
    (void)data;
    for (uint64_t id = 1; id <= 500; id++)
        give_back(id);
    return NULL;
}

/* Then the broker is there again, and all is given back with no other call, though it was away for so long. */
static void more_than_the_log_holds_is_given_back_long_after_the_loss(void **state)
{
    pthread_t thread;
    uint64_t hello;

    stop_listening();
    hang_up();
    give_back(1000);
    w.channel->since = 1;
    listen_there(SOCK_SEQPACKET);
    assert_int_equal(pthread_create(&thread, NULL, give_back_many, NULL), 0);
    hello = expect_hello(0);
    fake_greet(w.broker, hello, SESSION, MEMORYD_MINOR_MAX);
    for (unsigned n = 0; n < 501; n++)
        fake_reply(w.broker, METHOD_RELEASE, expect_plain(w.broker, METHOD_RELEASE), NULL, NULL, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    call_works();
    assert_int_equal(next_in_log(0), 0);
}

/* Nobody accepts; each of them must not wait for that again. */
static void a_full_queue_holds_nobody_up_for_good(void **state)
{
    int waiting[5];

    w.listening = fd_close(w.listening);
    listen_there(SOCK_SEQPACKET);
    for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++) {
        waiting[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(connect_once(waiting[i], w.at.path, false), 0);
    }
    hang_up();
    for (uint64_t id = 1; id <= 1000; id++)
        give_back(id);
    for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++)
        waiting[i] = fd_close(waiting[i]);
}

/* What cannot have been done may be tried in another session. */
static bool has_unsent(void)
{
    bool has;

    pthread_mutex_lock(&w.channel->lock);
    has = !list_is_empty(&w.channel->unsent[REPEAT_RECORDED]);
    pthread_mutex_unlock(&w.channel->lock);
    return has;
}

static void only_what_gives_back_is_sent_before_the_answer_to_hello(void **state)
{
    struct caller c;
    uint64_t hello;

    hang_up();
    give_back(5);
    hello = expect_hello(0);
    (void)expect_plain(w.broker, METHOD_RELEASE);
    start(&c, RESERVE);
    assert_true(WAIT_UNTIL(has_unsent()));
    give_back(6);
    (void)expect_plain(w.broker, METHOD_RELEASE);
    fake_refuse(w.broker, METHOD_HELLO, hello, STATUS_STALE, "the session has ended");
    assert_int_equal(caller_finish(&c), -ENOTCONN);
}

/* The socket was the last descriptor that this process may have. */
static void a_log_that_cannot_be_received_costs_no_session(void **state)
{
    struct rlimit limit, full;
    struct fake_request request;
    struct caller c;
    uint64_t hello;
    int log = memfd_create("releases", MFD_CLOEXEC);

    assert_true(log >= 0);
    hang_up();
    start(&c, PING);
    answer_connect();
    assert_true(fake_receive(w.broker, &request));
    assert_true(((const Memoryd__V1__HelloRequest *)request.message)->release_log);
    hello = request.header.sequence;
    fake_request_deinit(&request);
    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    full = limit;
    full.rlim_cur = (rlim_t)dup(log);
    assert_ok(close((int)full.rlim_cur));
    assert_ok(setrlimit(RLIMIT_NOFILE, &full));
    fake_greet_with(w.broker, hello, SESSION, MEMORYD_MINOR_MAX, log);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    assert_ok(close(log));
}

/* The broker has told things meanwhile, and nobody saw what was let out: of what comes late it is the log alone. */
static void a_log_that_comes_late_has_no_cache(void **state)
{
    struct fake_request request;
    struct caller c;
    uint64_t hello;
    int log = memfd_create("releases", MFD_CLOEXEC);

    assert_true(log >= 0);
    assert_ok(ftruncate(log, SESSION_MEMORY_SIZE));
    hang_up();
    start(&c, PING);
    answer_connect();
    assert_true(fake_receive(w.broker, &request));
    hello = request.header.sequence;
    fake_request_deinit(&request);
    fake_greet_with(w.broker, hello, SESSION, MEMORYD_MINOR_MAX, log);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
    assert_non_null(w.channel->release_log);
    assert_null(w.channel->cache);
    assert_ok(close(log));
}

/* I1: the broker has not allocated the page. */
static void I1_the_log_is_there_before_it_is_needed(void **state)
{
    struct stat st;

    assert_ok(fstat(w.log, &st));
    assert_int_equal(st.st_blocks * 512, RELEASE_LOG_SIZE);
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
    assert_int_equal(child_signal(write_into_the_log, NULL), SIGSEGV);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_with_log, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(I4_giving_back_connects_and_waits_for_nothing),
        TEST(what_is_sent_behind_a_hello_that_is_refused_is_sent_again),
        TEST(a_broker_that_stays_away_holds_nobody_up_for_good),
        TEST(nothing_is_sent_behind_hello_on_a_descriptor_of_the_program),
        TEST(what_is_given_back_while_another_thread_connects_is_sent),
        TEST(who_gives_up_connecting_sends_what_was_given_back),
        TEST(more_than_the_log_holds_is_given_back_long_after_the_loss),
        TEST(a_full_queue_holds_nobody_up_for_good),
        TEST(only_what_gives_back_is_sent_before_the_answer_to_hello),
        cmocka_unit_test_setup_teardown(a_log_that_cannot_be_received_costs_no_session, setup, teardown),
        cmocka_unit_test_setup_teardown(a_log_that_comes_late_has_no_cache, setup, teardown),
        TEST(I1_the_log_is_there_before_it_is_needed),
        TEST(the_child_of_a_fork_has_no_part_in_the_log),
    };

    return test_run(tests, NULL, NULL);
}
