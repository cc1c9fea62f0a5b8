/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session over several connections, against a broker that the test plays: how requests are counted, and what
 * becomes of events.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memclient/memclient.h>

#include "proto/status.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/client/fake.h"

static struct world {
    char path[108];
    int listening;
    int broker; /* our end of the present connection */
    struct memclient_context *ctx;
    unsigned fds;
} w;

/* What the client does while the test answers. */
struct doing {
    pthread_t thread;
    int (*what)(void);
    int result;
};

static void *run(void *data)
{
    struct doing *doing = data;

    doing->result = doing->what();
    return NULL;
}

static void begin(struct doing *doing, int (*what)(void))
{
    doing->what = what;
    assert_int_equal(pthread_create(&doing->thread, NULL, run, doing), 0);
}

static int end(struct doing *doing)
{
    assert_int_equal(pthread_join(doing->thread, NULL), 0);
    return doing->result;
}

static int open_it(void)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;

    options.socket = w.path;
    return memclient_context_open(&options, &w.ctx);
}

static int ping(void)
{
    return memclient_broker_ping(w.ctx);
}

static int reserve(void)
{
    struct memclient_reservation *res;

    return memclient_reserve(w.ctx, 1 << 20, NULL, &res);
}

static int subscribe(void)
{
    return memclient_event_subscribe(w.ctx, MEMCLIENT_EVENT_NAME);
}

static int subscribe_to_buffer(void)
{
    return memclient_event_subscribe_buffer(w.ctx, 7, MEMCLIENT_EVENT_HELD);
}

static int close_it(void)
{
    memclient_context_close(w.ctx);
    return 0;
}

static void answer_connect(void)
{
    assert_true(wait_readable(w.listening));
    w.broker = accept4(w.listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(w.broker >= 0);
}

/* The next request, which must be of this method; gives its sequence. */
static uint64_t receive(enum method method, uint64_t *session)
{
    struct fake_request request;
    uint64_t sequence;

    assert_true(fake_receive(w.broker, &request));
    assert_int_equal(request.header.method, method);
    assert_true(request.header.acknowledged < request.header.sequence);
    if (method == METHOD_HELLO)
        *session = ((const Memoryd__V1__HelloRequest *)request.message)->session;
    sequence = request.header.sequence;
    fake_request_deinit(&request);
    return sequence;
}

static void welcome(uint64_t sequence, uint64_t session)
{
    fake_welcome(w.broker, &(struct fake_request){.header = {.sequence = sequence}}, session);
}

static uint64_t answer(enum method method)
{
    uint64_t sequence = receive(method, NULL);

    fake_reply(w.broker, method, sequence, NULL, NULL, 0);
    return sequence;
}

static void hang_up(void)
{
    assert_ok(close(w.broker));
    w.broker = -1;
}

static void listen_there(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)unlink(w.path);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", w.path);
    w.listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(w.listening >= 0);
    assert_ok(bind(w.listening, (const struct sockaddr *)&address, sizeof(address)));
    assert_ok(listen(w.listening, 1));
}

static int setup(void **state)
{
    const char *folder = getenv("TMPDIR");
    struct doing opening;
    uint64_t session;

    w = (struct world){.fds = fd_count()};
    snprintf(w.path, sizeof(w.path), "%.80s/session.%d", folder ? folder : "/tmp", getpid());
    listen_there();
    begin(&opening, open_it);
    answer_connect();
    assert_int_equal(receive(METHOD_HELLO, &session), 1);
    assert_int_equal(session, 0);
    welcome(1, 5);
    assert_int_equal(end(&opening), 0);
    return 0;
}

static int teardown(void **state)
{
    struct doing closing;

    begin(&closing, close_it);
    if (w.broker >= 0) {
        answer(METHOD_GOODBYE);
        hang_up();
    }
    end(&closing);
    assert_ok(close(w.listening));
    assert_ok(unlink(w.path));
    assert_int_equal(fd_count(), w.fds);
    return 0;
}

static void a_session_that_goes_on_goes_on_counting(void **state)
{
    struct doing pinging;
    uint64_t session = 0;

    begin(&pinging, ping);
    assert_int_equal(answer(METHOD_PING), 2);
    assert_int_equal(end(&pinging), 0);
    hang_up();

    /* the HELLO that gets no answer has had its number, too */
    begin(&pinging, ping);
    answer_connect();
    assert_int_equal(receive(METHOD_HELLO, &session), 3);
    assert_int_equal(session, 5);
    hang_up();
    answer_connect();
    assert_int_equal(receive(METHOD_HELLO, &session), 4);
    assert_int_equal(session, 5);
    welcome(4, 5);
    assert_int_equal(receive(METHOD_PING, NULL), 5);
    hang_up();

    /* and what was sent is sent again under its own */
    answer_connect();
    assert_int_equal(receive(METHOD_HELLO, &session), 6);
    welcome(6, 5);
    assert_int_equal(answer(METHOD_PING), 5);
    assert_int_equal(end(&pinging), 0);
}

static void a_session_that_the_broker_does_not_know_is_followed_by_another(void **state)
{
    struct doing pinging;
    uint64_t session = 0;

    hang_up();
    begin(&pinging, ping);
    answer_connect();
    assert_int_equal(receive(METHOD_HELLO, &session), 2);
    assert_int_equal(session, 5);
    fake_refuse(w.broker, METHOD_HELLO, 2, STATUS_STALE, "that was long ago");

    /* what was not sent can be done there; this one counts from the start */
    {
        int former = w.broker;

        answer_connect();
        assert_ok(close(former));
    }
    assert_int_equal(receive(METHOD_HELLO, &session), 1);
    assert_int_equal(session, 0);
    welcome(1, 9);
    assert_int_equal(answer(METHOD_PING), 2);
    assert_int_equal(end(&pinging), 0);
}

/* What is harmless can be done there even if it was sent; of anything else nobody can tell any more. */
static void a_request_of_a_session_that_is_gone_is_tried_again_if_it_is_harmless(void **state)
{
    struct doing doing;
    uint64_t session = 0;

    for (unsigned i = 0; i < 2; i++) {
        uint64_t hello;
        int former;

        begin(&doing, i ? reserve : ping);
        receive(i ? METHOD_RESERVE : METHOD_PING, NULL);
        hang_up();
        answer_connect();
        hello = receive(METHOD_HELLO, &session);
        assert_int_equal(session, 5 + i);
        fake_refuse(w.broker, METHOD_HELLO, hello, STATUS_STALE, "that was long ago");
        if (i)
            break;
        former = w.broker;
        answer_connect();
        assert_ok(close(former));
        welcome(receive(METHOD_HELLO, &session), 6);
        answer(METHOD_PING);
        assert_int_equal(end(&doing), 0);
    }
    assert_int_equal(end(&doing), -ECONNRESET);
    hang_up();
}

/* ---- tokens that come with buffers ------------------------------------------------------------------------------- */

static struct memclient_buffer *made;
static struct memclient_token token;

static int alloc(void)
{
    return memclient_alloc(w.ctx, 1, NULL, &made);
}

static int share(void)
{
    return memclient_share(made, NULL, &token);
}

/* The next request, which must be an ALLOC: does it want a token? */
static bool wants_token(uint64_t *sequence)
{
    struct fake_request request;
    bool wants;

    assert_true(fake_receive(w.broker, &request));
    assert_int_equal(request.header.method, METHOD_ALLOC);
    wants = ((const Memoryd__V1__AllocRequest *)request.message)->flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS;
    *sequence = request.header.sequence;
    fake_request_deinit(&request);
    return wants;
}

static void answer_share(void)
{
    Memoryd__V1__ShareReply reply = MEMORYD__V1__SHARE_REPLY__INIT;
    uint8_t bytes[MEMORYD_TOKEN_SIZE] = {1};
    uint32_t status = 0;

    reply.n_statuses = 1;
    reply.statuses = &status;
    reply.tokens.data = bytes;
    reply.tokens.len = sizeof(bytes);
    fake_reply(w.broker, METHOD_SHARE, receive(METHOD_SHARE, NULL), &reply.base, NULL, 0);
}

/* So often that a token would be wanted with the next one. */
static void share_what_is_allocated(void)
{
    struct doing doing;

    for (uint64_t i = 0; i < 3; i++) {
        uint64_t sequence;

        begin(&doing, alloc);
        (void)wants_token(&sequence);
        fake_buffers(w.broker, METHOD_ALLOC, sequence, 100 + i, 1, NULL);
        assert_int_equal(end(&doing), 0);
        begin(&doing, share);
        answer_share();
        assert_int_equal(end(&doing), 0);
        memclient_buffer_unref(made);
        answer(METHOD_RELEASE);
    }
}

/* An older broker refuses what it does not know: it is not asked, and if it comes while one asks, then not again. */
static void tokens_are_wanted_only_of_brokers_that_know_of_them(void **state)
{
    uint64_t session = 0, sequence = 0, hello;
    struct doing doing;

    share_what_is_allocated();
    begin(&doing, alloc);
    assert_true(wants_token(&sequence));
    hang_up();
    answer_connect();
    hello = receive(METHOD_HELLO, &session);
    fake_greet(w.broker, hello, session, 1);
    assert_true(wants_token(&sequence));
    fake_refuse(w.broker, METHOD_ALLOC, sequence, STATUS_INVALID_ARGUMENT, "bits without a meaning");
    assert_false(wants_token(&sequence));
    fake_buffers(w.broker, METHOD_ALLOC, sequence, 200, 1, NULL);
    assert_int_equal(end(&doing), 0);
    memclient_buffer_unref(made);
    answer(METHOD_RELEASE);

    share_what_is_allocated();
    begin(&doing, alloc);
    assert_false(wants_token(&sequence));
    fake_buffers(w.broker, METHOD_ALLOC, sequence, 201, 1, NULL);
    assert_int_equal(end(&doing), 0);
    memclient_buffer_unref(made);
    answer(METHOD_RELEASE);
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static int wait_for_name(void)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    int fd, r = memclient_event_fd(w.ctx, &fd);

    while (!r && event.kind != MEMCLIENT_EVENT_NAME) {
        if (memclient_event_next(w.ctx, &event) == -EAGAIN && !wait_readable(fd))
            r = -ETIMEDOUT;
    }
    return r;
}

/* The program makes no call but for events. What it has chosen of single buffers the next broker does not know. */
static void waiting_for_events_connects_again(void **state)
{
    struct doing doing;
    uint64_t session = 0;

    begin(&doing, subscribe);
    answer(METHOD_SUBSCRIBE);
    assert_int_equal(end(&doing), 0);
    begin(&doing, subscribe_to_buffer);
    answer(METHOD_SUBSCRIBE_TO);
    assert_int_equal(end(&doing), 0);
    begin(&doing, wait_for_name);
    hang_up();
    answer_connect();
    welcome(receive(METHOD_HELLO, &session), 5);
    assert_int_equal(session, 5);
    answer(METHOD_SUBSCRIBE_TO);
    {
        Memoryd__V1__NameEvent bound = MEMORYD__V1__NAME_EVENT__INIT;

        bound.name = (char *)"a";
        fake_reply(w.broker, METHOD_EVENT_NAME, 0, &bound.base, NULL, 0);
    }
    assert_int_equal(end(&doing), 0);
}

/* Who waits for events does not run in circles until there is a broker again. */
static void a_lost_connection_is_told_once(void **state)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct doing doing;
    uint64_t session;
    int fd = -1;

    begin(&doing, subscribe);
    answer(METHOD_SUBSCRIBE);
    assert_int_equal(end(&doing), 0);
    assert_int_equal(memclient_event_fd(w.ctx, &fd), 0);
    assert_false(is_readable(fd));

    hang_up();
    assert_true(wait_readable(fd));
    assert_int_equal(memclient_event_next(w.ctx, &event), 0);
    assert_int_equal(event.kind, MEMCLIENT_EVENT_LOST);
    assert_false(is_readable(fd));
    assert_int_equal(memclient_event_next(w.ctx, &event), -EAGAIN);

    /* on the next connection they come again; what happened in between is missed, resumed or not */
    begin(&doing, ping);
    answer_connect();
    welcome(receive(METHOD_HELLO, &session), 5);
    answer(METHOD_PING);
    assert_int_equal(end(&doing), 0);
    assert_true(is_readable(fd));
    assert_int_equal(memclient_event_next(w.ctx, &event), 0);
    assert_int_equal(event.kind, MEMCLIENT_EVENT_LOST);
    assert_int_equal(memclient_event_next(w.ctx, &event), -EAGAIN);
    assert_false(is_readable(fd));
    {
        Memoryd__V1__NameEvent bound = MEMORYD__V1__NAME_EVENT__INIT;

        bound.name = (char *)"a";
        bound.bound = true;
        fake_reply(w.broker, METHOD_EVENT_NAME, 0, &bound.base, NULL, 0);
    }
    assert_true(wait_readable(fd));
    assert_int_equal(memclient_event_next(w.ctx, &event), 0);
    assert_int_equal(event.kind, MEMCLIENT_EVENT_NAME);
}

/* The same if it is a call that finds out. */
static void a_call_that_meets_a_lost_connection_leaves_no_noise(void **state)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct doing doing;
    uint64_t session;
    int fd = -1;

    assert_int_equal(memclient_event_fd(w.ctx, &fd), 0);
    begin(&doing, ping);
    assert_int_equal(receive(METHOD_PING, NULL), 2);
    hang_up();
    answer_connect();
    welcome(receive(METHOD_HELLO, &session), 5);
    answer(METHOD_PING);
    assert_int_equal(end(&doing), 0);
    assert_false(is_readable(fd));
    /* who subscribed to nothing has missed nothing */
    assert_int_equal(memclient_event_next(w.ctx, &event), -EAGAIN);
}

static unsigned count_sockets(void)
{
    unsigned n = 0;

    for (int fd = 3; fd < 1024; fd++) {
        int type;
        socklen_t size = sizeof(type);

        n += !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    }
    return n;
}

/* The child has nothing of the connection that its parent is making, and nothing of its locks. */
static void a_fork_while_the_connection_is_made_anew_harms_nobody(void **state)
{
    struct doing pinging;
    uint64_t session;

    child_need_malloc();
    hang_up();
    assert_ok(close(w.listening));
    begin(&pinging, ping);
    for (unsigned i = 0; i < 100; i++) {
        pid_t pid = fork();
        int status;

        if (!pid) {
            bool clean = !count_sockets();

            memclient_context_close(w.ctx);
            _exit(!clean);
        }
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    listen_there();
    answer_connect();
    welcome(receive(METHOD_HELLO, &session), 5);
    assert_int_equal(session, 5);
    answer(METHOD_PING);
    assert_int_equal(end(&pinging), 0);
}

/* Its own time is short, whatever the context's deadline is. */
static void closing_does_not_wait_for_a_broker_that_is_away(void **state)
{
    hang_up();
    assert_ok(close(w.listening));
    memclient_context_close(w.ctx);
    listen_there();
    /* in time for teardown, which closes one */
    w.ctx = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_session_that_goes_on_goes_on_counting, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_that_the_broker_does_not_know_is_followed_by_another, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_request_of_a_session_that_is_gone_is_tried_again_if_it_is_harmless, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_fork_while_the_connection_is_made_anew_harms_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_does_not_wait_for_a_broker_that_is_away, setup, teardown),
        cmocka_unit_test_setup_teardown(tokens_are_wanted_only_of_brokers_that_know_of_them, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_connection_is_told_once, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_for_events_connects_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_meets_a_lost_connection_leaves_no_noise, setup, teardown),
    };

    return test_run(tests, NULL, NULL);
}
