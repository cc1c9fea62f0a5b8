/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection, any number of threads: replies find their calls, deadlines hold, what comes late is given
 * back, and a broker that talks nonsense costs the connection and no more.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/align.h"
#include "base/clock.h"
#include "proto/status.h"
#include "rpc/channel.h"
#include "rpc/fail.h"
#include "rpc/interrupt.h"
#include "rpc/stubs.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/client/caller.h"
#include "tests/unit/client/fake.h"

struct world {
    int broker; /* our end */
    struct channel *channel;
    unsigned events; /* atomic */
    unsigned fds;    /* when the world began */
};

static void on_event(void *data, unsigned id, const ProtobufCMessage *message)
{
    struct world *w = data;

    (void)message;
    if (id == METHOD_EVENT_PRESSURE)
        __atomic_add_fetch(&w->events, 1, __ATOMIC_RELAXED);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    int ends[2];

    w->fds = fd_count();
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    w->broker = ends[1];
    assert_int_equal(channel_new(ends[0], &(struct channel_owner){.event = on_event, .data = w}, &w->channel), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    channel_unref(w->channel);
    fd_close(w->broker);
    assert_int_equal(fd_count(), w->fds);
    free(w);
    return 0;
}

static void start(struct world *w, struct caller *c, enum caller_wish what, uint64_t ms)
{
    caller_start(c, w->channel, what, ms);
}

static uint64_t receive(struct world *w, enum method method, struct fake_request *request)
{
    return expect(w->broker, method, request);
}

static uint64_t receive_plain(struct world *w, enum method method)
{
    return expect_plain(w->broker, method);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void replies_may_come_in_any_order(void **state)
{
    struct world *w = *state;
    struct caller callers[4];
    uint64_t sequences[4];

    for (unsigned i = 0; i < 4; i++) {
        start(w, &callers[i], ALLOC, PATIENCE_MS);
        sequences[i] = receive_plain(w, METHOD_ALLOC);
        assert_int_equal(sequences[i], i + 1);
    }
    for (unsigned i = 4; i-- > 0;)
        fake_buffers(w->broker, METHOD_ALLOC, sequences[i], 100 + sequences[i], 1, NULL);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(caller_finish(&callers[i]), 0);
        assert_int_equal(callers[i].id, 100 + sequences[i]);
    }
}

static void a_refusal_has_the_brokers_number_and_sentence(void **state)
{
    struct world *w = *state;
    struct caller c;

    start(w, &c, PING, PATIENCE_MS);
    fake_refuse(w->broker, METHOD_PING, receive_plain(w, METHOD_PING), STATUS_POOL_FULL, "the pool is full");
    assert_int_equal(caller_finish(&c), -ENOMEM);
    assert_int_equal(c.status, STATUS_POOL_FULL);
    assert_string_equal(c.sentence, "the pool is full");

    /* a number of a later version, and no sentence */
    start(w, &c, PING, PATIENCE_MS);
    fake_refuse(w->broker, METHOD_PING, receive_plain(w, METHOD_PING), 9999, "");
    assert_int_equal(caller_finish(&c), -EIO);
    assert_string_not_equal(c.sentence, "");
}

static void requests_acknowledge_what_is_answered_without_a_gap(void **state)
{
    struct world *w = *state;
    struct caller a, b, c;
    struct fake_request request;
    uint64_t first, second;

    start(w, &a, PING, PATIENCE_MS);
    first = receive_plain(w, METHOD_PING);
    start(w, &b, PING, PATIENCE_MS);
    second = receive_plain(w, METHOD_PING);
    fake_reply(w->broker, METHOD_PING, second, NULL, NULL, 0);
    assert_int_equal(caller_finish(&b), 0);

    start(w, &c, PING, PATIENCE_MS);
    receive(w, METHOD_PING, &request);
    assert_int_equal(request.header.acknowledged, first - 1);
    fake_request_deinit(&request);
    fake_reply(w->broker, METHOD_PING, first, NULL, NULL, 0);
    fake_reply(w->broker, METHOD_PING, second + 1, NULL, NULL, 0);
    assert_int_equal(caller_finish(&a), 0);
    assert_int_equal(caller_finish(&c), 0);

    start(w, &c, PING, PATIENCE_MS);
    receive(w, METHOD_PING, &request);
    assert_int_equal(request.header.acknowledged, second + 1);
    fake_request_deinit(&request);
    fake_reply(w->broker, METHOD_PING, second + 2, NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

static void a_call_ends_at_its_deadline_and_others_go_on(void **state)
{
    struct world *w = *state;
    struct caller slow, quick;
    uint64_t sequence;

    start(w, &slow, PING, PATIENCE_MS);
    sequence = receive_plain(w, METHOD_PING);
    start(w, &quick, PING, QUIET_MS);
    receive_plain(w, METHOD_PING);
    assert_int_equal(caller_finish(&quick), -ETIMEDOUT);
    fake_reply(w->broker, METHOD_PING, sequence, NULL, NULL, 0);
    assert_int_equal(caller_finish(&slow), 0);

    /* the leader itself gives up: the one that waits for it leads on */
    start(w, &quick, PING, QUIET_MS);
    receive_plain(w, METHOD_PING);
    start(w, &slow, PING, PATIENCE_MS);
    sequence = receive_plain(w, METHOD_PING);
    assert_int_equal(caller_finish(&quick), -ETIMEDOUT);
    fake_reply(w->broker, METHOD_PING, sequence, NULL, NULL, 0);
    assert_int_equal(caller_finish(&slow), 0);
}

/* Not at once: the wait goes on first. */
static bool interrupt_soon(void *asked)
{
    return ++*(unsigned *)asked > 1;
}

static void a_program_ends_a_wait_and_others_go_on(void **state)
{
    struct world *w = *state;
    struct caller slow;
    uint64_t sequence;
    unsigned asked = 0;

    start(w, &slow, PING, PATIENCE_MS);
    sequence = receive_plain(w, METHOD_PING);
    interrupt_set(interrupt_soon, &asked);
    assert_int_equal(rpc_ping(rpc_route_of(w->channel, DEADLINE_NEVER)), -EINTR);
    assert_int_equal(asked, 2);
    /* the other thread was not asked */
    interrupt_set(NULL, NULL);
    (void)receive_plain(w, METHOD_PING);
    fake_reply(w->broker, METHOD_PING, sequence, NULL, NULL, 0);
    assert_int_equal(caller_finish(&slow), 0);
}

/* Lets a call time out, then answers it while another call is there to receive that. */
static uint64_t time_out(struct world *w, enum caller_wish what, enum method method)
{
    struct caller c;
    uint64_t sequence;

    start(w, &c, what, QUIET_MS);
    sequence = receive_plain(w, method);
    assert_int_equal(caller_finish(&c), -ETIMEDOUT);
    return sequence;
}

static void a_late_buffer_is_released_and_its_descriptor_closed(void **state)
{
    struct world *w = *state;
    uint64_t sequence = time_out(w, ALLOC, METHOD_ALLOC);
    struct fake_request request;
    struct caller c;
    uint64_t ping;
    int pipe_ends[2];
    char byte;

    /* the reading end sees EOF when the late descriptor, the last writing end, is closed */
    assert_ok(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK));
    start(w, &c, PING, PATIENCE_MS);
    ping = receive_plain(w, METHOD_PING);
    fake_buffers(w->broker, METHOD_ALLOC, sequence, 55, 1, &pipe_ends[1]);
    fd_close(pipe_ends[1]);
    receive(w, METHOD_RELEASE, &request);
    assert_int_equal(((Memoryd__V1__ReleaseRequest *)request.message)->n_buffers, 1);
    assert_int_equal(((Memoryd__V1__ReleaseRequest *)request.message)->buffers[0], 55);
    fake_request_deinit(&request);
    assert_true(wait_readable(pipe_ends[0]));
    assert_int_equal(read(pipe_ends[0], &byte, 1), 0);
    fd_close(pipe_ends[0]);

    /* the answer to that is nobody's, and harmless */
    fake_refuse(w->broker, METHOD_RELEASE, ping + 1, STATUS_STALE, "gone");
    fake_reply(w->broker, METHOD_PING, ping, NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

static void a_late_reservation_and_a_late_token_are_given_back(void **state)
{
    struct world *w = *state;
    Memoryd__V1__ReserveReply reserved = MEMORYD__V1__RESERVE_REPLY__INIT;
    Memoryd__V1__ShareReply shared = MEMORYD__V1__SHARE_REPLY__INIT;
    uint64_t reserve = time_out(w, RESERVE, METHOD_RESERVE);
    uint64_t share = time_out(w, SHARE, METHOD_SHARE);
    uint32_t ok = 0;
    uint8_t token[MEMORYD_TOKEN_SIZE];
    struct fake_request request;
    struct caller c;
    uint64_t ping;

    memset(token, 0xab, sizeof(token));
    start(w, &c, PING, PATIENCE_MS);
    ping = receive_plain(w, METHOD_PING);
    reserved.reservation = 66;
    reserved.address = 0x566000000000;
    fake_reply(w->broker, METHOD_RESERVE, reserve, &reserved.base, NULL, 0);
    receive(w, METHOD_UNRESERVE, &request);
    assert_int_equal(((Memoryd__V1__UnreserveRequest *)request.message)->reservation, 66);
    fake_request_deinit(&request);

    shared.n_statuses = 1;
    shared.statuses = &ok;
    shared.tokens.len = sizeof(token);
    shared.tokens.data = token;
    fake_reply(w->broker, METHOD_SHARE, share, &shared.base, NULL, 0);
    receive(w, METHOD_REVOKE, &request);
    assert_memory_equal(((Memoryd__V1__RevokeRequest *)request.message)->token.data, token, sizeof(token));
    fake_request_deinit(&request);
    fake_reply(w->broker, METHOD_PING, ping, NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

/* Whatever this packet is, the waiting call ends with `error` and the connection is of no more use. */
static void breaks(struct world *w, int error)
{
    struct caller c;

    assert_int_equal(rpc_ping(rpc_route_of(w->channel, deadline_after_ms(PATIENCE_MS))), error);
    start(w, &c, PING, PATIENCE_MS);
    assert_int_equal(caller_finish(&c), -ENOTCONN);
}

static void garbage_costs_the_connection(void **state)
{
    struct world *w = *state;

    fake_send(w->broker, "what's this?", 12, NULL, 0);
    breaks(w, -EPROTO);
}

static void a_reply_to_nothing_costs_the_connection(void **state)
{
    struct world *w = *state;

    fake_reply(w->broker, METHOD_PING, 77, NULL, NULL, 0);
    breaks(w, -EPROTO);
}

static void a_reply_of_another_method_costs_the_connection(void **state)
{
    struct world *w = *state;

    fake_reply(w->broker, METHOD_SUBSCRIBE, 1, NULL, NULL, 0);
    breaks(w, -EPROTO);
}

static void a_descriptor_that_nobody_asked_for_costs_the_connection(void **state)
{
    struct world *w = *state;
    int fd = memfd_create("unasked", MFD_CLOEXEC);

    fake_reply(w->broker, METHOD_PING, 1, NULL, &fd, 1);
    fd_close(fd);
    breaks(w, -EPROTO);
}

static void a_reply_with_impossible_numbers_costs_the_connection(void **state)
{
    struct world *w = *state;
    struct caller c;
    uint64_t sequence;

    start(w, &c, ALLOC, PATIENCE_MS);
    sequence = receive_plain(w, METHOD_ALLOC);
    fake_buffers(w->broker, METHOD_ALLOC, sequence, 1, 2, NULL); /* two for one */
    assert_int_equal(caller_finish(&c), -EPROTO);
    assert_true(channel_is_broken(w->channel));
}

/* Lowers the limit of descriptors; false where it is not the kernel's own (valgrind). */
static bool limit_descriptors(rlim_t most)
{
    struct rlimit limit;
    char line[256], wanted[64];
    bool lowered = false;
    FILE *file;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = most;
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    snprintf(wanted, sizeof(wanted), "Max open files            %llu ", (unsigned long long)most);
    file = fopen("/proc/self/limits", "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        lowered |= !strncmp(line, wanted, strlen(wanted));
    fclose(file);
    return lowered;
}

static void a_full_descriptor_table_costs_the_call_which_is_undone(void **state)
{
    struct world *w = *state;
    struct fake_request request;
    struct rlimit limit;
    struct caller c;
    int full[64];
    unsigned n = 0;
    uint64_t sequence;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    if (!limit_descriptors(64)) {
        assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
        test_skip("the limit of descriptors is not the kernel's own here: is this valgrind?");
    }
    start(w, &c, ALLOC, PATIENCE_MS);
    sequence = receive_plain(w, METHOD_ALLOC);
    while (n < 64 && (full[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    fake_buffers(w->broker, METHOD_ALLOC, sequence, 44, 1, &full[0]);
    assert_int_equal(caller_finish(&c), -EMFILE);
    while (n)
        fd_close(full[--n]);
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    assert_false(channel_is_broken(w->channel));
    receive(w, METHOD_RELEASE, &request);
    assert_int_equal(((Memoryd__V1__ReleaseRequest *)request.message)->buffers[0], 44);
    fake_request_deinit(&request);
}

static void a_lost_connection_ends_every_call(void **state)
{
    struct world *w = *state;
    struct caller callers[4];

    for (unsigned i = 0; i < 4; i++) {
        start(w, &callers[i], i % 2 ? PING : ALLOC, PATIENCE_MS);
        receive_plain(w, i % 2 ? METHOD_PING : METHOD_ALLOC);
    }
    w->broker = fd_close(w->broker);
    /* what does no harm may be tried elsewhere */
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(caller_finish(&callers[i]), i % 2 ? -ENOTCONN : -ECONNRESET);
    assert_int_equal(rpc_ping(rpc_route_of(w->channel, DEADLINE_NEVER)), -ENOTCONN);
}

static void a_reply_sent_before_the_end_still_counts(void **state)
{
    struct world *w = *state;
    Memoryd__V1__GoodbyeRequest goodbye = MEMORYD__V1__GOODBYE_REQUEST__INIT;
    struct caller c;
    uint64_t sequence;

    /* a second request stays unread, so that the close is an abortive one */
    start(w, &c, PING, PATIENCE_MS);
    sequence = receive_plain(w, METHOD_PING);
    channel_post(w->channel, METHOD_GOODBYE, &goodbye.base);
    fake_reply(w->broker, METHOD_PING, sequence, NULL, NULL, 0);
    w->broker = fd_close(w->broker);
    assert_int_equal(caller_finish(&c), 0);
}

/* As after a process was stopped for longer than it wanted to wait. */
static void a_reply_that_is_there_counts_although_the_deadline_has_passed(void **state)
{
    struct world *w = *state;

    fake_reply(w->broker, METHOD_PING, 1, NULL, NULL, 0);
    assert_int_equal(rpc_ping(rpc_route_of(w->channel, deadline_after_ms(0))), 0);
    assert_int_equal(rpc_ping(rpc_route_of(w->channel, deadline_after_ms(0))), -ETIMEDOUT);
}

static void a_request_that_cannot_be_sent_ends_at_its_deadline(void **state)
{
    struct world *w = *state;
    struct caller c;
    int r = 0;

    while (r != -ETIMEDOUT || !strstr(fail_sentence(), "did not take"))
        r = rpc_ping(rpc_route_of(w->channel, deadline_after_ms(0)));
    start(w, &c, PING, QUIET_MS);
    assert_int_equal(caller_finish(&c), -ETIMEDOUT);

    /* when the broker reads again, all goes on; the orphans' replies are skipped */
    start(w, &c, PING, PATIENCE_MS);
    for (uint64_t sequence = 1; pthread_tryjoin_np(c.thread, NULL);) {
        struct fake_request request;

        if (wait_for_events(w->broker, POLLIN, 1) <= 0)
            continue;
        assert_true(fake_receive(w->broker, &request));
        assert_int_equal(request.header.sequence, sequence);
        fake_reply(w->broker, METHOD_PING, sequence++, NULL, NULL, 0);
        fake_request_deinit(&request);
    }
    assert_int_equal(c.result, 0);
}

static void events_arrive_beside_replies_and_alone(void **state)
{
    struct world *w = *state;
    Memoryd__V1__PressureEvent event = MEMORYD__V1__PRESSURE_EVENT__INIT;

    event.pool = (char *)"node0";
    fake_reply(w->broker, METHOD_EVENT_PRESSURE, 0, &event.base, NULL, 0);
    fake_reply(w->broker, METHOD_PING, 1, NULL, NULL, 0);
    assert_int_equal(rpc_ping(rpc_route_of(w->channel, deadline_after_ms(PATIENCE_MS))), 0);
    assert_int_equal(w->events, 1);

    fake_reply(w->broker, METHOD_EVENT_PRESSURE, 0, &event.base, NULL, 0);
    fake_reply(w->broker, 0x80ff, 0, NULL, NULL, 0); /* of a later version */
    fake_reply(w->broker, METHOD_EVENT_PRESSURE, 0, &event.base, NULL, 0);
    channel_poll(w->channel);
    assert_int_equal(w->events, 3);
    assert_false(channel_is_broken(w->channel));
}

/* ---- many threads ------------------------------------------------------------------------------------------------ */

#define THREADS 8
#define CALLS   500

static void *call_many(void *data)
{
    struct caller *c = data;

    for (unsigned i = 0; i < CALLS && !c->result; i++) {
        struct rpc_reserved reserved = {0};

        c->result = rpc_reserve(rpc_route_of(c->channel, deadline_after_ms(PATIENCE_MS)), page_size(), 0,
                                (c->id << 32 | i) * page_size(), &reserved);
        if (!c->result && reserved.address != (c->id << 32 | i) * page_size())
            c->result = -EBADE; /* somebody else's reply */
    }
    return NULL;
}

static void answer(struct world *w, struct fake_request *request)
{
    Memoryd__V1__ReserveReply reply = MEMORYD__V1__RESERVE_REPLY__INIT;

    reply.reservation = request->header.sequence;
    reply.address = ((Memoryd__V1__ReserveRequest *)request->message)->address;
    fake_reply(w->broker, METHOD_RESERVE, request->header.sequence, &reply.base, NULL, 0);
    fake_request_deinit(request);
}

static void many_threads_get_each_their_own_replies(void **state)
{
    struct world *w = *state;
    struct caller callers[THREADS];
    struct fake_request held[3];
    unsigned n = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.channel = w->channel, .id = i + 1};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
    }
    /* a few are held back, and answered in reverse; at the end fewer callers than that may be left */
    for (unsigned seen = 0; seen < THREADS * CALLS;) {
        struct pollfd p = {.fd = w->broker, .events = POLLIN};

        if (poll(&p, 1, n ? 20 : PATIENCE_MS) > 0) {
            assert_true(fake_receive(w->broker, &held[n++]));
            seen++;
            if (n < 3)
                continue;
        }
        assert_int_not_equal(n, 0);
        while (n)
            answer(w, &held[--n]);
    }
    while (n)
        answer(w, &held[--n]);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(caller_finish(&callers[i]), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replies_may_come_in_any_order),
        TEST(a_refusal_has_the_brokers_number_and_sentence),
        TEST(requests_acknowledge_what_is_answered_without_a_gap),
        TEST(a_call_ends_at_its_deadline_and_others_go_on),
        TEST(a_program_ends_a_wait_and_others_go_on),
        TEST(a_late_buffer_is_released_and_its_descriptor_closed),
        TEST(a_late_reservation_and_a_late_token_are_given_back),
        TEST(garbage_costs_the_connection),
        TEST(a_reply_to_nothing_costs_the_connection),
        TEST(a_reply_of_another_method_costs_the_connection),
        TEST(a_descriptor_that_nobody_asked_for_costs_the_connection),
        TEST(a_reply_with_impossible_numbers_costs_the_connection),
        TEST(a_full_descriptor_table_costs_the_call_which_is_undone),
        TEST(a_lost_connection_ends_every_call),
        TEST(a_reply_sent_before_the_end_still_counts),
        TEST(a_reply_that_is_there_counts_although_the_deadline_has_passed),
        TEST(a_request_that_cannot_be_sent_ends_at_its_deadline),
        TEST(events_arrive_beside_replies_and_alone),
        TEST(many_threads_get_each_their_own_replies),
    };

    return test_run(tests, NULL, NULL);
}
