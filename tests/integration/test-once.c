/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every request that changes something happens exactly once: its connection is lost at one moment or another, its
 * client comes back and sends it again, and hears what it would have heard; and it was done once.
 *
 * There is a case for each recorded row of the table of methods; a new row without one fails.
 */
#include "tests/integration/wire.h"
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

#define SIZE UINT64_C(8192)
#define NAME ((char *)"once/more")

static struct broker_process broker;
static struct wire wire;

/* What the cases make for themselves. */
static uint64_t buffer;
static int fd = -1;
static uint64_t reservation;
static uint8_t token[MEMORYD_TOKEN_SIZE];

static int start(void **state)
{
    (void)state;
    buffer = reservation = 0;
    broker_start(&broker, "[pools]\ncapacity = 64M\n", 0);
    wire_open(&wire, &broker);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fd = fd_close(fd);
    wire_close(&wire);
    broker_stop(&broker);
    return 0;
}

/* ---- what there is ---------------------------------------------------------------------------------------- */

static void allocate(void)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint64_t size = SIZE;

    m.sizes = &size;
    m.n_sizes = 1;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__PUBLISHABLE | MEMORYD__V1__ALLOC_REQUEST__FLAG__NO_ADDRESS;
    buffer = ((const Memoryd__V1__Buffers *)wire_do(&wire, METHOD_ALLOC, &m.base, STATUS_OK))->ids[0];
}

static void export(void)
{
    static struct wire_packet packet;
    Memoryd__V1__ExportRequest m = MEMORYD__V1__EXPORT_REQUEST__INIT;
    uint32_t rights = MEMORYD__V1__RIGHT__RIGHT_READ | MEMORYD__V1__RIGHT__RIGHT_WRITE;
    struct wire_packet *reply;

    m.buffers = &buffer;
    m.rights = &rights;
    m.n_buffers = m.n_rights = 1;
    wire_request(&wire, &packet, METHOD_EXPORT, &m.base);
    reply = wire_call(&wire, &packet);
    assert_int_equal(reply->n_fds, 1);
    fd = reply->fds[0];
}

static void lookup(void)
{
    Memoryd__V1__LookupRequest m = MEMORYD__V1__LOOKUP_REQUEST__INIT;

    m.id = buffer;
    (void)wire_do(&wire, METHOD_LOOKUP, &m.base, STATUS_OK);
}

static void share(void)
{
    Memoryd__V1__ShareRequest m = MEMORYD__V1__SHARE_REQUEST__INIT;

    m.buffers = &buffer;
    m.n_buffers = 1;
    m.rights = MEMORYD__V1__RIGHT__RIGHT_READ;
    memcpy(token, ((const Memoryd__V1__ShareReply *)wire_do(&wire, METHOD_SHARE, &m.base, STATUS_OK))->tokens.data,
           sizeof(token));
}

static void bind_name(void)
{
    Memoryd__V1__NameBindRequest m = MEMORYD__V1__NAME_BIND_REQUEST__INIT;

    m.name = NAME;
    m.buffer = buffer;
    (void)wire_do(&wire, METHOD_NAME_BIND, &m.base, STATUS_OK);
}

static void reserve(void)
{
    Memoryd__V1__ReserveRequest m = MEMORYD__V1__RESERVE_REQUEST__INIT;

    m.size = UINT64_C(1) << 20;
    reservation =
        ((const Memoryd__V1__ReserveReply *)wire_do(&wire, METHOD_RESERVE, &m.base, STATUS_OK))->reservation;
}

static bool all_are(uint8_t byte)
{
    static uint8_t bytes[SIZE];

    assert_int_equal(pread(fd, bytes, SIZE, 0), SIZE);
    for (size_t i = 0; i < SIZE; i++)
        if (bytes[i] != byte)
            return false;
    return true;
}

static void write_all(uint8_t byte)
{
    static uint8_t bytes[SIZE];

    memset(bytes, byte, SIZE);
    assert_int_equal(pwrite(fd, bytes, SIZE, 0), SIZE);
}

/* ---- measures: what there is when all is over --------------------------------------------------------------- */

static Memoryd__V1__StatusReply status(void)
{
    return *(const Memoryd__V1__StatusReply *)wire_do(&wire, METHOD_STATUS, NULL, STATUS_OK);
}

static uint64_t buffers(void)
{
    Memoryd__V1__StatusReply now = status();

    return now.buffers + now.buffers_detached;
}

static uint64_t names(void)
{
    return status().names;
}

static uint64_t tokens(void)
{
    return status().tokens;
}

static uint64_t reservations(void)
{
    return status().reservations;
}

/* Of this session on the buffer: as often as it can be released, and then there are none any more. */
static uint64_t claims(void)
{
    Memoryd__V1__ReleaseRequest m = MEMORYD__V1__RELEASE_REQUEST__INIT;

    m.buffers = &buffer;
    m.n_buffers = 1;
    for (uint64_t n = 0;; n++)
        if (((const Memoryd__V1__Statuses *)wire_do(&wire, METHOD_RELEASE, &m.base, STATUS_OK))->statuses[0])
            return n;
}

static Memoryd__V1__BufferInfo info(void)
{
    Memoryd__V1__InfoRequest m = MEMORYD__V1__INFO_REQUEST__INIT;

    m.buffer = buffer;
    return *(const Memoryd__V1__BufferInfo *)wire_do(&wire, METHOD_INFO, &m.base, STATUS_OK);
}

static uint64_t is_published(void)
{
    return (info().flags & MEMORYD__V1__BUFFER_INFO__FLAG__PUBLISHED) != 0;
}

static uint64_t has_address(void)
{
    return info().address != 0;
}

/* Done again, it would have taken what was written behind the first time. */
static uint64_t is_as_written(void)
{
    return all_are(2);
}

/* ---- the cases ---------------------------------------------------------------------------------------------- */

static void make_alloc(struct wire_packet *packet)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    uint64_t size = SIZE;

    name.name = NAME;
    m.sizes = &size;
    m.n_sizes = 1;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    m.name = &name;
    wire_request(&wire, packet, METHOD_ALLOC, &m.base);
}

static void make_release(struct wire_packet *packet)
{
    Memoryd__V1__ReleaseRequest m = MEMORYD__V1__RELEASE_REQUEST__INIT;

    allocate();
    lookup();
    lookup();
    m.buffers = &buffer;
    m.n_buffers = 1;
    wire_request(&wire, packet, METHOD_RELEASE, &m.base);
}

static void make_import(struct wire_packet *packet)
{
    allocate();
    export();
    wire_request(&wire, packet, METHOD_IMPORT, NULL);
    packet->fds[packet->n_fds++] = fd;
}

static void make_open(struct wire_packet *packet)
{
    Memoryd__V1__OpenRequest m = MEMORYD__V1__OPEN_REQUEST__INIT;

    allocate();
    share();
    m.tokens = (ProtobufCBinaryData){.len = sizeof(token), .data = token};
    m.want_fds = true;
    wire_request(&wire, packet, METHOD_OPEN, &m.base);
}

static void make_lookup(struct wire_packet *packet)
{
    Memoryd__V1__LookupRequest m = MEMORYD__V1__LOOKUP_REQUEST__INIT;

    allocate();
    bind_name();
    m.name = NAME;
    m.want_fd = true;
    wire_request(&wire, packet, METHOD_LOOKUP, &m.base);
}

static void make_share(struct wire_packet *packet)
{
    Memoryd__V1__ShareRequest m = MEMORYD__V1__SHARE_REQUEST__INIT;

    allocate();
    m.buffers = &buffer;
    m.n_buffers = 1;
    m.rights = MEMORYD__V1__RIGHT__RIGHT_READ;
    wire_request(&wire, packet, METHOD_SHARE, &m.base);
}

static void make_revoke(struct wire_packet *packet)
{
    Memoryd__V1__RevokeRequest m = MEMORYD__V1__REVOKE_REQUEST__INIT;

    allocate();
    share();
    m.token = (ProtobufCBinaryData){.len = sizeof(token), .data = token};
    wire_request(&wire, packet, METHOD_REVOKE, &m.base);
}

static void make_publish(struct wire_packet *packet)
{
    Memoryd__V1__PublishRequest m = MEMORYD__V1__PUBLISH_REQUEST__INIT;

    allocate();
    m.buffer = buffer;
    wire_request(&wire, packet, METHOD_PUBLISH, &m.base);
}

static void make_discard(struct wire_packet *packet)
{
    Memoryd__V1__DiscardRequest m = MEMORYD__V1__DISCARD_REQUEST__INIT;

    allocate();
    export();
    write_all(1);
    m.buffer = buffer;
    wire_request(&wire, packet, METHOD_DISCARD, &m.base);
}

static void make_destroy(struct wire_packet *packet)
{
    Memoryd__V1__DestroyRequest m = MEMORYD__V1__DESTROY_REQUEST__INIT;

    allocate();
    bind_name();
    m.buffer = buffer;
    wire_request(&wire, packet, METHOD_DESTROY, &m.base);
}

static void make_name_bind(struct wire_packet *packet)
{
    Memoryd__V1__NameBindRequest m = MEMORYD__V1__NAME_BIND_REQUEST__INIT;

    allocate();
    m.name = NAME;
    m.buffer = buffer;
    wire_request(&wire, packet, METHOD_NAME_BIND, &m.base);
}

static void make_name_unbind(struct wire_packet *packet)
{
    Memoryd__V1__NameUnbindRequest m = MEMORYD__V1__NAME_UNBIND_REQUEST__INIT;

    allocate();
    bind_name();
    m.name = NAME;
    wire_request(&wire, packet, METHOD_NAME_UNBIND, &m.base);
}

static void make_reserve(struct wire_packet *packet)
{
    Memoryd__V1__ReserveRequest m = MEMORYD__V1__RESERVE_REQUEST__INIT;

    m.size = UINT64_C(1) << 20;
    wire_request(&wire, packet, METHOD_RESERVE, &m.base);
}

static void make_unreserve(struct wire_packet *packet)
{
    Memoryd__V1__UnreserveRequest m = MEMORYD__V1__UNRESERVE_REQUEST__INIT;

    reserve();
    m.reservation = reservation;
    wire_request(&wire, packet, METHOD_UNRESERVE, &m.base);
}

static void make_place(struct wire_packet *packet)
{
    Memoryd__V1__PlaceRequest m = MEMORYD__V1__PLACE_REQUEST__INIT;

    allocate();
    reserve();
    m.buffer = buffer;
    m.reservation = reservation;
    wire_request(&wire, packet, METHOD_PLACE, &m.base);
}

static const struct once_case {
    uint16_t method;
    void (*make)(struct wire_packet *packet);
    uint64_t (*measure)(void);
    uint64_t measured; /* when it was done once */
    unsigned n_fds;
} cases[] = {
    {METHOD_ALLOC, make_alloc, buffers, 1, 1},
    {METHOD_RELEASE, make_release, claims, 2, 0},
    {METHOD_IMPORT, make_import, claims, 2, 0},
    {METHOD_OPEN, make_open, claims, 2, 1},
    {METHOD_LOOKUP, make_lookup, claims, 2, 1},
    {METHOD_SHARE, make_share, tokens, 1, 0},
    {METHOD_REVOKE, make_revoke, tokens, 0, 0},
    {METHOD_PUBLISH, make_publish, is_published, 1, 0},
    {METHOD_DISCARD, make_discard, is_as_written, 1, 0},
    {METHOD_DESTROY, make_destroy, buffers, 0, 0},
    {METHOD_NAME_BIND, make_name_bind, names, 1, 0},
    {METHOD_NAME_UNBIND, make_name_unbind, names, 0, 0},
    {METHOD_RESERVE, make_reserve, reservations, 1, 0},
    {METHOD_UNRESERVE, make_unreserve, reservations, 0, 0},
    {METHOD_PLACE, make_place, has_address, 1, 0},
};

static const struct once_case *case_of(uint16_t method)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (cases[i].method == method)
            return &cases[i];
    fail_msg("method %u is recorded and has no case here", method);
    return NULL;
}

/* ---- the ways of a loss ------------------------------------------------------------------------------------- */

static struct wire_packet request, first;

static void same_as_first(const struct wire_packet *reply)
{
    assert_int_equal(reply->status, first.status);
    assert_int_equal(reply->size, first.size);
    assert_memory_equal(reply->payload, first.payload, first.size);
    assert_int_equal(reply->n_fds, first.n_fds);
    for (unsigned i = 0; i < reply->n_fds; i++) {
        struct stat a, b;

        assert_ok(fstat(reply->fds[i], &a));
        assert_ok(fstat(first.fds[i], &b));
        assert_int_equal(a.st_ino, b.st_ino);
        assert_int_equal(a.st_dev, b.st_dev);
    }
}

/* The request is sent again, which says the same each time. */
static void again(void)
{
    struct wire_packet *reply = wire_call(&wire, &request);

    same_as_first(reply);
    wire_close_fds(reply);
}

/* By who has forgotten what it asked. */
static void again_and_empty(void)
{
    static struct wire_packet empty;
    struct wire_packet *reply;

    empty = (struct wire_packet){.method = request.method, .sequence = request.sequence};
    reply = wire_call(&wire, &empty);
    same_as_first(reply);
    wire_close_fds(reply);
}

static void reply_is_read_and_thrown_away(void)
{
    first = *wire_call(&wire, &request);
    wire_lose(&wire);
    wire_resume(&wire);
}

static void connection_is_lost_right_after_sending(void)
{
    wire_send(&wire, &request);
    wire_lose(&wire);
    wire_resume(&wire);
    first = *wire_call(&wire, &request);
}

/* The broker learns of the new connection first. */
static void old_connection_is_still_there(void)
{
    int old = wire.fd;

    wire_send(&wire, &request);
    wire_resume(&wire);
    first = *wire_call(&wire, &request);
    assert_ok(close(old));
}

/* SIGKILL; another one goes on. */
static void broker_dies(void)
{
    pid_t pid = broker_child(&broker);

    assert_ok(kill(pid, SIGKILL));
    assert_true(WAIT_UNTIL(broker_child(&broker) != pid));
    wire_lose(&wire);
    wire_resume(&wire);
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

static void broker_dies_after_the_reply(void)
{
    first = *wire_call(&wire, &request);
    broker_dies();
}

static void broker_dies_right_after_sending(void)
{
    wire_send(&wire, &request);
    broker_dies();
    first = *wire_call(&wire, &request);
}

static void once(uint16_t method, void (*way)(void))
{
    const struct once_case *this = case_of(method);

    this->make(&request);
    wire.acknowledged = request.sequence - 1;
    way();
    if (first.status)
        fail_msg("method %u: %s", method, status_name(first.status));
    assert_int_equal(first.n_fds, this->n_fds);
    if (method == METHOD_DISCARD) {
        assert_true(all_are(0));
        write_all(2);
    }
    again();
    wire_lose(&wire);
    wire_resume(&wire);
    again_and_empty();
    wire_close_fds(&first);
    assert_true(WAIT_UNTIL(this->measure() == this->measured));
}

static void once_in_all_ways(uint16_t method, void **state)
{
    void (*const ways[])(void) = {reply_is_read_and_thrown_away, connection_is_lost_right_after_sending,
                                  old_connection_is_still_there, broker_dies_after_the_reply,
                                  broker_dies_right_after_sending};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (i) {
            assert_int_equal(stop(state), 0);
            assert_int_equal(start(state), 0);
        }
        once(method, ways[i]);
    }
}

#define REPEAT_RECORDED(NAME, name)             \
    static void once_##name(void **state)       \
    {                                           \
        once_in_all_ways(METHOD_##NAME, state); \
    }
#define REPEAT_HARMLESS(NAME, name)
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat) repeat(NAME, name)
MEMORYD_METHODS(X)
#undef REPEAT_RECORDED

/* ---- besides ------------------------------------------------------------------------------------------------ */

static void a_refusal_is_the_same_again(void **state)
{
    Memoryd__V1__NameUnbindRequest m = MEMORYD__V1__NAME_UNBIND_REQUEST__INIT;

    (void)state;
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

static void what_was_acknowledged_is_forgotten(void **state)
{
    (void)state;
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

static void so_many_may_be_without_acknowledgement(void **state)
{
    static struct wire_packet more;

    (void)state;
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

static void connection_is_lost(void)
{
    wire_lose(&wire);
    wire_resume(&wire);
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
    (void)state;
    one_that_waits_is_answered_after(connection_is_lost);
}

static void one_that_waits_is_answered_by_the_next_broker(void **state)
{
    (void)state;
    one_that_waits_is_answered_after(broker_dies);
}

/* Waiting is no work: however many brokers end meanwhile, it is not for this request. */
static void one_that_waits_outlives_many_brokers(void **state)
{
    (void)state;
    one_that_waits_is_answered_after(three_brokers_die);
}

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
        /* now it is at work, if it is not done */
        assert_true(wire_receive(&wire, &first));
        broker_dies();
    }
    first = *wire_call(&wire, &request);
    return first.status == STATUS_REFUSED;
}

static void what_two_brokers_died_over_is_not_tried_again(void **state)
{
    const Memoryd__V1__Problem *said;

    assert_int_equal(stop(state), 0);
    broker_start(&broker, "[pools]\ncapacity = 8G\n", 0);
    wire_open(&wire, &broker);
    assert_true(WAIT_UNTIL(two_brokers_died_over_it()));
    said = wire_message(&first);
    assert_non_null(strstr(said->sentence, "died twice"));
    again();
    assert_true(broker_said(&broker, "is refused: 2 brokers died over it"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
#define REPEAT_RECORDED(NAME, name) TEST(once_##name),
        MEMORYD_METHODS(X)
        TEST(a_refusal_is_the_same_again),
        TEST(what_was_acknowledged_is_forgotten),
        TEST(so_many_may_be_without_acknowledgement),
        TEST(what_two_brokers_died_over_is_not_tried_again),
        TEST(one_that_waits_is_answered_on_the_new_connection),
        TEST(one_that_waits_is_answered_by_the_next_broker),
        TEST(one_that_waits_outlives_many_brokers),
    };

    return test_run(tests, NULL, NULL);
}
