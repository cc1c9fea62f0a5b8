/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are sent again: refusals, acknowledgements, descriptors of what has changed meanwhile, waiting for room
 * over the end of connections and brokers, and requests that brokers die of.
 */
#include "tests/integration/once.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "proto/status.h"
#include "tests/support/wait.h"

static void a_refusal_is_the_same_again(void **state)
{
    Memoryd__V1__NameUnbindRequest m = MEMORYD__V1__NAME_UNBIND_REQUEST__INIT;

    allocate();
    m.name = NAME;
    wire_request(&wire, &request, METHOD_NAME_UNBIND, &m.base);
    first = *wire_call(&wire, &request);
    assert_int_equal(first.status, STATUS_NO_SUCH_NAME);
    wire_lose(&wire);
    wire_resume(&wire);
    /* though it would not be refused any more */
    wire.acknowledged = 1;
    bind_name();
    wire.acknowledged = request.sequence - 1;
    again();
    assert_int_equal(names(), 1);
}

static void acknowledged_replies_are_forgotten(void **state)
{
    make_reserve(&request);
    first = *wire_call(&wire, &request);
    assert_int_equal(first.status, 0);
    wire.acknowledged = request.sequence;
    (void)wire_do(&wire, METHOD_PING, NULL, STATUS_OK);
    /* to ask for it again is a breach */
    assert_int_equal(wire_call(&wire, &request)->status, STATUS_PROTOCOL);
    assert_false(wire_receive(&wire, &first));
    wire_lose(&wire);
    wire_resume(&wire);
    assert_int_equal(reservations(), 1);
}

/* A client that has forgotten what it asked may repeat with nothing; of what was never done that does nothing. */
static void an_empty_message_does_nothing(void **state)
{
    size_t n;
    const struct schema_method *methods = schema_methods(&n);

    allocate();
    bind_name();
    for (size_t i = 0; i < n; i++) {
        if (methods[i].repeat != REPEAT_RECORDED)
            continue;
        wire_request(&wire, &request, methods[i].id, NULL);
        first = *wire_call(&wire, &request);
        if (!first.status)
            fail_msg("%s succeeds without a message", methods[i].name);
        again();
        wire.acknowledged = request.sequence;
    }
    assert_int_equal(buffers(), 1);
    assert_int_equal(names(), 1);
    assert_int_equal(tokens(), 0);
    assert_int_equal(reservations(), 0);
    assert_int_equal(claims(), 1);
}

static void so_many_may_be_without_acknowledgement(void **state)
{
    static struct wire_packet more;

    wire.acknowledged = 1;
    for (unsigned i = 0; i < MEMORYD_UNACKNOWLEDGED_MAX; i++) {
        make_reserve(&request);
        assert_int_equal(wire_call(&wire, &request)->status, STATUS_OK);
    }
    make_reserve(&more);
    assert_int_equal(wire_call(&wire, &more)->status, STATUS_LIMIT);
    /* harmless ones do not count */
    wire_request(&wire, &request, METHOD_STATUS, NULL);
    assert_int_equal(wire_call(&wire, &request)->status, STATUS_OK);
    /* and one in whose header another one is answered takes its place */
    wire.answered = 10;
    make_reserve(&more);
    assert_int_equal(wire_call(&wire, &more)->status, STATUS_OK);
    wire.answered = 0;
    assert_int_equal(reservations(), MEMORYD_UNACKNOWLEDGED_MAX + 1);
}

/* As wire_do(), and nothing is acknowledged. */
static const void *do_besides(uint16_t method, const ProtobufCMessage *message)
{
    static struct wire_packet packet, reply;

    wire_request(&wire, &packet, method, message);
    reply = *wire_call(&wire, &packet);
    wire_close_fds(&reply);
    assert_int_equal(reply.status, STATUS_OK);
    return wire_message(&reply);
}

/* Allocated with a descriptor for writing, and published before the reply is asked for again. */
static void a_repeated_reply_of_a_published_buffer_is_for_reading(void **state)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__PublishRequest publish = MEMORYD__V1__PUBLISH_REQUEST__INIT;
    struct wire_packet *reply;
    uint64_t size = SIZE;

    m.sizes = &size;
    m.n_sizes = 1;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__PUBLISHABLE | MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    wire_request(&wire, &request, METHOD_ALLOC, &m.base);
    first = *wire_call(&wire, &request);
    assert_int_equal(fcntl(first.fds[0], F_GETFL) & O_ACCMODE, O_RDWR);
    publish.buffer = ((const Memoryd__V1__Buffers *)wire_message(&first))->ids[0];
    (void)do_besides(METHOD_PUBLISH, &publish.base);
    reply = wire_call(&wire, &request);
    same_as_first(reply);
    assert_int_equal(fcntl(reply->fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
    wire_close_fds(reply);
    wire_close_fds(&first);
}

static void a_repeated_reply_of_a_gone_buffer_has_a_status(void **state)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__ReleaseRequest release = MEMORYD__V1__RELEASE_REQUEST__INIT;
    uint8_t tokens[2][MEMORYD_TOKEN_SIZE], none[MEMORYD_TOKEN_SIZE] = {0};
    const Memoryd__V1__Buffers *said;
    uint64_t size[] = {SIZE, SIZE};
    struct wire_packet *reply;
    struct stat a, b;

    m.sizes = size;
    m.n_sizes = 2;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS | MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS;
    wire_request(&wire, &request, METHOD_ALLOC, &m.base);
    first = *wire_call(&wire, &request);
    assert_int_equal(first.n_fds, 2);
    said = wire_message(&first);
    assert_int_equal(said->tokens.len, sizeof(tokens));
    memcpy(tokens, said->tokens.data, sizeof(tokens));
    assert_memory_not_equal(tokens[0], tokens[1], sizeof(tokens[0]));
    buffer = ((const Memoryd__V1__Buffers *)wire_message(&first))->ids[0];
    release.buffers = &buffer;
    release.n_buffers = 1;
    (void)do_besides(METHOD_RELEASE, &release.base);
    reply = wire_call(&wire, &request);
    assert_int_equal(reply->status, STATUS_OK);
    said = wire_message(reply);
    assert_true(said->statuses[0] && !said->ids[0] && !said->rights[0] && !said->bytes[0] && !said->addresses[0]);
    assert_true(!said->statuses[1] && said->ids[1]);
    assert_int_equal(said->tokens.len, sizeof(tokens));
    assert_memory_equal(said->tokens.data, none, sizeof(none));
    assert_memory_equal(said->tokens.data + sizeof(none), tokens[1], sizeof(tokens[1]));
    assert_true(said->sentence[0]);
    assert_int_equal(reply->n_fds, 1);
    assert_ok(fstat(reply->fds[0], &a));
    assert_ok(fstat(first.fds[1], &b));
    assert_int_equal(a.st_ino, b.st_ino);
    wire_close_fds(reply);
    wire_close_fds(&first);
}

/* As clients of version 1.2 did: buffers for later, and word of those that they had taken, which is a field no more. */
static void make_ahead(void)
{
    static const uint8_t taken[] = {14 << 3 | 2, 3, 1, 0x96, 0x01}; /* packed: 1, 150 */
    uint64_t size[] = {SIZE, SIZE};
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;

    m.sizes = size;
    m.n_sizes = 2;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS | MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS |
              MEMORYD__V1__ALLOC_REQUEST__FLAG__AHEAD;
    wire_request(&wire, &request, METHOD_ALLOC, &m.base);
    memcpy(request.payload + request.size, taken, sizeof(taken));
    request.size += sizeof(taken);
}

static void nothing_is_had_ahead(void **state)
{
    const Memoryd__V1__Buffers *said;

    allocate();
    for (unsigned i = 0; i < 3; i++) {
        make_ahead();
        first = *wire_call(&wire, &request);
        assert_int_equal(first.status, STATUS_OK);
        assert_int_equal(first.n_fds, 0);
        said = wire_message(&first);
        assert_int_equal(said->n_statuses + said->n_ids + said->n_rights + said->n_flags + said->tokens.len, 0);
        again();
        if (i == 1)
            connection_is_lost();
        else
            broker_dies();
        again();
        wire.acknowledged = request.sequence;
        assert_int_equal(buffers(), 1);
        assert_int_equal(tokens(), 0);
    }
    /* and what it has is left alone */
    assert_int_equal(claims(), 1);
}

/* What was sent before has been read, and begun. */
static void all_has_arrived(void)
{
    static struct wire_packet ping;

    wire_request(&wire, &ping, METHOD_PING, NULL);
    assert_int_equal(wire_call(&wire, &ping)->status, STATUS_OK);
}

static void three_brokers_die(void)
{
    for (unsigned i = 0; i < 3; i++) {
        broker_dies();
        wire_send(&wire, &request);
        all_has_arrived();
    }
    broker_dies();
}

/* The pool is full, the request waits; its connection is lost; then there is room. */
static void one_that_waits_is_answered_after(void (*loss)(void))
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__ReleaseRequest release = MEMORYD__V1__RELEASE_REQUEST__INIT;
    static struct wire_packet reply, releasing;
    uint64_t size = UINT64_C(48) << 20;

    m.sizes = &size;
    m.n_sizes = 1;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    m.wait_ms = PATIENCE_MS;
    wire_request(&wire, &request, METHOD_ALLOC, &m.base);
    reply = *wire_call(&wire, &request);
    assert_int_equal(reply.status, STATUS_OK);
    buffer = ((const Memoryd__V1__Buffers *)wire_message(&reply))->ids[0];
    wire_close_fds(&reply);
    wire.acknowledged = request.sequence;
    wire_request(&wire, &request, METHOD_ALLOC, &m.base);
    wire_send(&wire, &request);
    all_has_arrived();
    loss();
    wire_send(&wire, &request);
    assert_true(stays_quiet(wire.fd));

    release.buffers = &buffer;
    release.n_buffers = 1;
    wire_request(&wire, &releasing, METHOD_RELEASE, &release.base);
    wire_send(&wire, &releasing);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(wire_receive(&wire, &reply));
        assert_int_equal(reply.status, STATUS_OK);
        if (reply.sequence == request.sequence)
            first = reply;
        else
            assert_int_equal(reply.sequence, releasing.sequence);
    }
    assert_int_equal(first.sequence, request.sequence);
    assert_int_equal(first.n_fds, 1);
    again();
    wire_close_fds(&first);
    assert_true(WAIT_UNTIL(buffers() == 1));
}

static void one_that_waits_is_answered_on_the_new_connection(void **state)
{
    one_that_waits_is_answered_after(connection_is_lost);
}

static void one_that_waits_is_answered_by_the_next_broker(void **state)
{
    one_that_waits_is_answered_after(broker_dies);
}

/* Waiting is no work: however many brokers end meanwhile, it is not for this request. */
static void one_that_waits_outlives_many_brokers(void **state)
{
    one_that_waits_is_answered_after(three_brokers_die);
}

/* ---- poison ------------------------------------------------------------------------------------------------------ */

/* What a broker died over the next one begins after 100 ms. */
#define RESTED_US 150000

/*
 * Two brokers die at work on one request: the third one refuses it. Whether they were at work on it when they were
 * killed is a matter of luck, so it is tried until they were.
 */
static bool two_brokers_died_over_it(void)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    static struct wire_packet ping;
    uint64_t size = UINT64_C(512) << 20;

    m.sizes = &size;
    m.n_sizes = 1;
    wire_request(&wire, &request, METHOD_ALLOC, &m.base);
    wire.acknowledged = request.sequence - 1;
    for (unsigned i = 0; i < 2; i++) {
        wire_send(&wire, &request);
        wire_request(&wire, &ping, METHOD_PING, NULL);
        wire_send(&wire, &ping);
        /* now it is at work, if it is not done; the second time it rests first */
        assert_true(wire_receive(&wire, &first));
        if (i)
            usleep(RESTED_US);
        broker_dies();
    }
    first = *wire_call(&wire, &request);
    return first.status == STATUS_REFUSED;
}

/* Sends the request to a broker that is killed before a system call that it would make for it. */
static void broker_dies_before(unsigned long number)
{
    struct __ptrace_syscall_info call = {.op = PTRACE_SYSCALL_INFO_NONE};
    pid_t pid = broker_child(&broker);
    int status;

    if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD) < 0)
        test_skip("a process may not trace another one here");
    assert_ok(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
    wire_send(&wire, &request);
    do {
        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(call), &call) > 0);
        if (call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr == number)
            break;
        assert_ok(ptrace(PTRACE_SYSCALL, pid, NULL, NULL));
    } while (true);
    assert_ok(kill(pid, SIGKILL));
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    assert_true(WIFSIGNALED(status));
    wire_lose(&wire);
    wire_resume(&wire);
}

static void refused_after_two_deaths(void)
{
    const Memoryd__V1__Problem *said;

    /* in the middle of its turn, where it would watch the buffer */
    broker_dies_before(SYS_inotify_add_watch);
    broker_dies_before(SYS_inotify_add_watch);
    first = *wire_call(&wire, &request);
    assert_int_equal(first.status, STATUS_REFUSED);
    said = wire_message(&first);
    assert_non_null(strstr(said->sentence, "died twice"));
    again();
}

static void a_request_that_kills_brokers_is_not_tried_a_third_time(void **state)
{
    Memoryd__V1__LookupRequest lookup = MEMORYD__V1__LOOKUP_REQUEST__INIT;
    Memoryd__V1__ExportRequest export = MEMORYD__V1__EXPORT_REQUEST__INIT;
    uint32_t rights = MEMORYD__V1__RIGHT__RIGHT_READ;

    allocate();
    lookup.id = buffer;
    lookup.want_fd = true;
    wire_request(&wire, &request, METHOD_LOOKUP, &lookup.base);
    refused_after_two_deaths();
    /* neither is a harmless one */
    export.buffers = &buffer;
    export.rights = &rights;
    export.n_buffers = export.n_rights = 1;
    wire_request(&wire, &request, METHOD_EXPORT, &export.base);
    refused_after_two_deaths();
    /* others are served, and it left nothing */
    (void)wire_do(&wire, METHOD_EXPORT, &export.base, STATUS_OK);
    assert_int_equal(claims(), 1);
}

/* The request is done by then, and its reply kept; only the descriptor is opened as it leaves. */
static void a_reply_whose_descriptor_was_not_opened_any_more_is_repeated(void **state)
{
    Memoryd__V1__LookupRequest lookup = MEMORYD__V1__LOOKUP_REQUEST__INIT;
    struct wire_packet *reply;

    allocate();
    lookup.id = buffer;
    lookup.want_fd = true;
    wire_request(&wire, &request, METHOD_LOOKUP, &lookup.base);
    broker_dies_before(SYS_openat);
    reply = wire_call(&wire, &request);
    assert_int_equal(reply->status, STATUS_OK);
    assert_int_equal(reply->n_fds, 1);
    wire_close_fds(reply);
    assert_int_equal(claims(), 2);
}

static void a_request_that_two_brokers_died_over_is_not_tried_again(void **state)
{
    const Memoryd__V1__Problem *said;
    bool refused = false;

    assert_int_equal(once_stop(state), 0);
    broker_start(&broker, "[pools]\ncapacity = 8G\n", 0);
    wire_open(&wire, &broker);
    for (unsigned i = 0; i < 4 && !refused; i++)
        refused = WAIT_UNTIL(two_brokers_died_over_it());
    assert_true(refused);
    said = wire_message(&first);
    assert_non_null(strstr(said->sentence, "died twice"));
    again();
    assert_true(broker_said(&broker, "is refused: 2 brokers died over it"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, once_start, once_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_refusal_is_the_same_again),
        TEST(acknowledged_replies_are_forgotten),
        TEST(an_empty_message_does_nothing),
        TEST(so_many_may_be_without_acknowledgement),
        TEST(a_repeated_reply_of_a_published_buffer_is_for_reading),
        TEST(a_repeated_reply_of_a_gone_buffer_has_a_status),
        TEST(nothing_is_had_ahead),
        TEST(one_that_waits_is_answered_on_the_new_connection),
        TEST(one_that_waits_is_answered_by_the_next_broker),
        TEST(one_that_waits_outlives_many_brokers),
        TEST(a_request_that_kills_brokers_is_not_tried_a_third_time),
        TEST(a_reply_whose_descriptor_was_not_opened_any_more_is_repeated),
        TEST(a_request_that_two_brokers_died_over_is_not_tried_again),
    };

    return test_run(tests, NULL, once_cleanup);
}
