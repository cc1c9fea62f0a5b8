/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session over several connections: what has no reply is sent again as it was, what is answered is acknowledged,
 * nobody waits beyond his deadline, and nothing that was granted is lost. The test plays the broker, which hangs up at
 * every moment at which it can hurt.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/align.h"
#include "base/clock.h"
#include "proto/status.h"
#include "rpc/channel.h"
#include "rpc/connect.h"
#include "rpc/fail.h"
#include "rpc/stubs.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/client/caller.h"
#include "tests/unit/client/fake.h"

#define SESSION 5

static struct world {
    struct connected at;
    int listening;
    int broker; /* our end of the present connection */
    struct channel *channel;
    unsigned lost, resumed; /* how often the owner was told; atomic */
    unsigned fds;           /* when the world began */
} w;

static void on_lost(void *data, struct channel *channel)
{
    (void)data;
    (void)channel;
    __atomic_add_fetch(&w.lost, 1, __ATOMIC_RELAXED);
}

static void on_resumed(void *data, struct channel *channel)
{
    (void)data;
    (void)channel;
    __atomic_add_fetch(&w.resumed, 1, __ATOMIC_RELAXED);
}

static void listen_there(int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)unlink(w.at.path);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", w.at.path);
    w.listening = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    assert_true(w.listening >= 0);
    assert_ok(bind(w.listening, (const struct sockaddr *)&address, sizeof(address)));
    assert_ok(listen(w.listening, 4));
}

static void answer_connect(void)
{
    assert_true(wait_readable(w.listening));
    w.broker = accept4(w.listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(w.broker >= 0);
}

static int setup_version(unsigned version)
{
    struct rpc_session session = {.version = version, .session = SESSION, .broker = 7};
    const struct channel_owner owner = {.lost = on_lost, .resumed = on_resumed};
    const char *folder = getenv("TMPDIR");

    w = (struct world){.fds = fd_count(), .at = {.socket = -1}};
    snprintf(w.at.path, sizeof(w.at.path), "%.80s/resume.%d", folder ? folder : "/tmp", getpid());
    memset(session.secret, SESSION, sizeof(session.secret));
    listen_there(SOCK_SEQPACKET);
    w.at.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect_once(w.at.socket, w.at.path, false), 0);
    answer_connect();
    assert_int_equal(channel_new(w.at.socket, &owner, &w.channel), 0);
    assert_int_equal(channel_may_resume(w.channel, &w.at, "test", &session), 0);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_version(MEMORYD_MINOR_MAX);
}

static int setup_old_broker(void **state)
{
    (void)state;
    return setup_version(0);
}

static int teardown(void **state)
{
    (void)state;
    channel_unref(w.channel);
    w.broker = fd_close(w.broker);
    w.listening = fd_close(w.listening);
    (void)unlink(w.at.path);
    assert_int_equal(fd_count(), w.fds);
    return 0;
}

static void hang_up(void)
{
    w.broker = fd_close(w.broker);
}

static void stop_listening(void)
{
    w.listening = fd_close(w.listening);
    assert_ok(unlink(w.at.path));
}

/* A new connection, and HELLO of the session on it; its sequence. */
static uint64_t expect_hello(uint64_t acknowledged)
{
    const Memoryd__V1__HelloRequest *hello;
    struct fake_request request;
    uint64_t sequence;

    answer_connect();
    sequence = expect(w.broker, METHOD_HELLO, &request);
    hello = (const Memoryd__V1__HelloRequest *)request.message;
    assert_int_equal(hello->session, SESSION);
    assert_int_equal(hello->secret.len, MEMORYD_SECRET_SIZE);
    assert_int_equal(hello->secret.data[0], SESSION);
    assert_string_equal(hello->program, "test");
    assert_int_equal(request.header.acknowledged, acknowledged);
    assert_int_equal(request.header.answered, 0);
    fake_request_deinit(&request);
    return sequence;
}

static void welcome_back(uint64_t acknowledged)
{
    fake_greet(w.broker, expect_hello(acknowledged), SESSION, MEMORYD_MINOR_MAX);
}

static void start(struct caller *c, enum caller_wish what)
{
    caller_start(c, w.channel, what, PATIENCE_MS);
}

/* A call that gets its turn and its reply. */
static void call_works(void)
{
    struct caller c;

    start(&c, PING);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    assert_int_equal(caller_finish(&c), 0);
}

/* ---- what has no reply ------------------------------------------------------------------------------------------ */

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

    (void)state;
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

    (void)state;
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

    (void)state;
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

    (void)state;
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

    (void)state;
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

    (void)state;
    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    fake_refuse(w.broker, METHOD_HELLO, expect_hello(0), STATUS_SHUTTING_DOWN, "in a moment");
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

    (void)state;
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

/* ---- who gave up ------------------------------------------------------------------------------------------------ */

static void a_late_grant_is_asked_for_again_and_undone(void **state)
{
    FD_AUTO int fd = memfd_create("imported", MFD_CLOEXEC);
    struct fake_request once, again;
    struct caller c;

    (void)state;
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

    (void)state;
    stop_listening();
    caller_start(&sent, w.channel, ALLOC, 4 * QUIET_MS);
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

    (void)state;
    hang_up();
    caller_start(&hasty, w.channel, ALLOC, 2 * QUIET_MS);
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

    (void)state;
    stop_listening();
    start(&sent, RELEASE);
    expect_plain(w.broker, METHOD_RELEASE);
    hang_up();
    assert_int_equal(caller_finish(&sent), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(rpc_release(w.channel, 2 + i, 1, deadline_after_ms(PATIENCE_MS)), 0);
    assert_int_equal(rpc_unreserve(w.channel, 3, deadline_after_ms(PATIENCE_MS)), 0);

    /* it is sent with whatever is next; no more at a time than may be without acknowledgement */
    listen_there(SOCK_SEQPACKET);
    start(&unsent, PING);
    welcome_back(0);
    assert_int_equal(expect_plain(w.broker, METHOD_RELEASE), 1);
    fake_reply(w.broker, METHOD_PING, expect_plain(w.broker, METHOD_PING), NULL, NULL, 0);
    for (unsigned i = 0; i < MEMORYD_UNACKNOWLEDGED_MAX - 1; i++)
        fake_reply(w.broker, METHOD_RELEASE, expect_plain(w.broker, METHOD_RELEASE), NULL, NULL, 0);
    assert_true(stays_quiet(w.broker));
    assert_int_equal(caller_finish(&unsent), 0);
    start(&unsent, PING);
    for (unsigned i = MEMORYD_UNACKNOWLEDGED_MAX - 1; i < 101;) {
        struct fake_request request;

        assert_true(fake_receive(w.broker, &request));
        i += request.header.method != METHOD_PING;
        fake_reply(w.broker, request.header.method, request.header.sequence, NULL, NULL, 0);
        fake_request_deinit(&request);
    }
    assert_int_equal(caller_finish(&unsent), 0);
}

/* ---- acknowledging ---------------------------------------------------------------------------------------------- */

/* What a broker keeps: the recorded requests that are not acknowledged. */
struct kept {
    uint64_t sequences[MEMORYD_UNACKNOWLEDGED_MAX];
    unsigned n;
};

/* As a broker does it with each request's header. False for a repeat. */
static bool keep(struct kept *kept, const struct frame_header *header)
{
    unsigned n = 0;

    for (unsigned i = 0; i < kept->n; i++)
        if (kept->sequences[i] > header->acknowledged && kept->sequences[i] != header->answered)
            kept->sequences[n++] = kept->sequences[i];
    kept->n = n;
    for (unsigned i = 0; i < n; i++)
        if (kept->sequences[i] == header->sequence)
            return false;
    assert_true(n < MEMORYD_UNACKNOWLEDGED_MAX);
    kept->sequences[kept->n++] = header->sequence;
    return true;
}

#define MANY 1000

static void *reserve_many(void *data)
{
    struct caller *c = data;

    for (unsigned i = 0; i < MANY && !c->result; i++) {
        struct rpc_reserved reserved;

        c->result = rpc_reserve(c->channel, page_size(), 0, 0, deadline_after_ms(PATIENCE_MS), &reserved);
    }
    return NULL;
}

static void reserved(uint64_t sequence)
{
    Memoryd__V1__ReserveReply reply = MEMORYD__V1__RESERVE_REPLY__INIT;

    reply.reservation = sequence;
    reply.address = 0x566000000000;
    fake_reply(w.broker, METHOD_RESERVE, sequence, &reply.base, NULL, 0);
}

/* The broker goes with requests that it has not seen, or has done and not answered. */
static void a_slow_request_holds_nobody_up_and_acknowledgements_do_not_get_lost(void **state)
{
    struct caller slow, many = {.channel = w.channel};
    struct kept kept = {.n = 0};
    struct fake_request request;
    unsigned done = 0, seen = 0;

    (void)state;
    start(&slow, ALLOC);
    expect(w.broker, METHOD_ALLOC, &request);
    keep(&kept, &request.header);
    fake_request_deinit(&request);
    assert_int_equal(pthread_create(&many.thread, NULL, reserve_many, &many), 0);
    while (done < MANY) {
        bool repeated;

        assert_true(fake_receive(w.broker, &request));
        seen++;
        if (seen % 7 == 0 && seen < 300) {
            fake_request_deinit(&request);
            hang_up();
            fake_greet(w.broker, expect_hello(0), SESSION, MEMORYD_MINOR_MAX);
            continue;
        }
        repeated = !keep(&kept, &request.header);
        if (request.header.method == METHOD_ALLOC) {
            assert_true(repeated && request.header.sequence == 1);
        } else if (seen % 11 == 0 && seen < 300) {
            hang_up();
            fake_greet(w.broker, expect_hello(0), SESSION, MEMORYD_MINOR_MAX);
        } else {
            reserved(request.header.sequence);
            done++;
        }
        fake_request_deinit(&request);
    }
    assert_int_equal(caller_finish(&many), 0);
    fake_buffers(w.broker, METHOD_ALLOC, 1, 77, 1, NULL);
    assert_int_equal(caller_finish(&slow), 0);
    /* the next one acknowledges them all */
    start(&slow, ALLOC);
    expect(w.broker, METHOD_ALLOC, &request);
    assert_int_equal(request.header.acknowledged, request.header.sequence - 1);
    assert_int_equal(request.header.answered, 0);
    fake_buffers(w.broker, METHOD_ALLOC, request.header.sequence, 78, 1, NULL);
    fake_request_deinit(&request);
    assert_int_equal(caller_finish(&slow), 0);
}

static void who_comes_to_a_full_window_waits_for_room(void **state)
{
    enum { FULL = MEMORYD_UNACKNOWLEDGED_MAX };
    struct caller callers[FULL], late, in_vain;
    struct fake_request request;

    (void)state;
    for (unsigned i = 0; i < FULL; i++) {
        start(&callers[i], RESERVE);
        assert_int_equal(expect_plain(w.broker, METHOD_RESERVE), i + 1);
    }
    caller_start(&in_vain, w.channel, RESERVE, QUIET_MS);
    assert_int_equal(caller_finish(&in_vain), -ETIMEDOUT);
    start(&late, RESERVE);
    assert_true(stays_quiet(w.broker));
    call_works(); /* harmless ones need no room */

    /* one that is answered, and acknowledged by the one that takes its place */
    reserved(33);
    expect(w.broker, METHOD_RESERVE, &request);
    assert_int_equal(request.header.sequence, FULL + 2);
    assert_int_equal(request.header.acknowledged, 0);
    assert_int_equal(request.header.answered, 33);
    fake_request_deinit(&request);

    /* it says so again on the next connection, where everybody still waits */
    hang_up();
    welcome_back(0);
    for (uint64_t sequence = 1; sequence <= FULL + 2; sequence++) {
        if (sequence == 33 || sequence == FULL + 1)
            continue;
        expect(w.broker, METHOD_RESERVE, &request);
        assert_int_equal(request.header.sequence, sequence);
        assert_int_equal(request.header.answered, sequence == FULL + 2 ? 33 : 0);
        fake_request_deinit(&request);
        reserved(sequence);
    }
    for (unsigned i = 0; i < FULL; i++)
        assert_int_equal(caller_finish(&callers[i]), 0);
    assert_int_equal(caller_finish(&late), 0);
}

/* ---- what cannot go on ------------------------------------------------------------------------------------------ */

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
        assert_int_equal(rpc_ping(w.channel, DEADLINE_NEVER), -ENOTCONN);
    }
}

static void another_broker_with_another_session_ends_every_call(void **state)
{
    struct caller c;

    (void)state;
    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    fake_greet(w.broker, expect_hello(0), SESSION + 1, MEMORYD_MINOR_MAX);
    assert_int_equal(caller_finish(&c), -ECONNRESET);
    assert_true(channel_is_broken(w.channel));
}

static void a_connection_that_cannot_be_made_fails_at_once(void **state)
{
    struct caller c;

    (void)state;
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

    (void)state;
    start(&c, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    hang_up();
    fake_refuse(w.broker, METHOD_HELLO, expect_hello(0), STATUS_VERSION, "upgrade");
    assert_int_equal(caller_finish(&c), -EPROTONOSUPPORT);
    assert_int_equal(c.status, STATUS_VERSION);
    assert_string_equal(c.sentence, "upgrade");
}

static void nonsense_costs_the_calls_but_not_the_session(void **state)
{
    struct caller c;

    (void)state;
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

    (void)state;
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

    (void)state;
    start(&alloc, ALLOC);
    expect_plain(w.broker, METHOD_ALLOC);
    start(&ping, PING);
    expect_plain(w.broker, METHOD_PING);
    hang_up();
    assert_int_equal(caller_finish(&alloc), -ECONNRESET);
    fake_greet(w.broker, expect_hello(1), SESSION, 0);
    assert_int_equal(expect_plain(w.broker, METHOD_PING), 2);
    fake_reply(w.broker, METHOD_PING, 2, NULL, NULL, 0);
    assert_int_equal(caller_finish(&ping), 0);
}

static void a_channel_that_is_broken_while_it_reconnects_lets_all_go(void **state)
{
    struct caller c;

    (void)state;
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
        TEST(the_descriptors_of_an_import_are_sent_again),
        TEST(a_late_grant_is_asked_for_again_and_undone),
        TEST(a_broker_that_does_not_come_back_is_waited_for_until_the_deadline),
        TEST(the_next_leader_goes_on_where_the_former_gave_up),
        TEST(giving_back_does_not_wait_for_a_broker_that_is_away),
        TEST(a_slow_request_holds_nobody_up_and_acknowledgements_do_not_get_lost),
        TEST(who_comes_to_a_full_window_waits_for_room),
        TEST(a_session_that_is_not_known_any_more_ends_every_call),
        TEST(another_broker_with_another_session_ends_every_call),
        TEST(a_connection_that_cannot_be_made_fails_at_once),
        TEST(another_version_fails_with_the_brokers_sentence),
        TEST(nonsense_costs_the_calls_but_not_the_session),
        TEST(nonsense_at_hello_costs_the_calls_but_not_the_session),
        cmocka_unit_test_setup_teardown(an_old_broker_is_asked_again_only_what_is_harmless, setup_old_broker,
                                        teardown),
        TEST(a_channel_that_is_broken_while_it_reconnects_lets_all_go),
    };

    return test_run(tests, NULL, NULL);
}
