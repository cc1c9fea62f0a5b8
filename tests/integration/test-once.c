/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every request that changes something happens exactly once: its connection is lost at one moment or another, its
 * client comes back and sends it again, and hears what it would have heard; and it was done once.
 *
 * There is a case for each recorded row of the table of methods; a new row without one fails.
 */
#include "tests/integration/once.h"
#include "tests/support/test.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/door.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

/* What the cases make for themselves. */
static int fd = -1;
static uint64_t reservation, moved_to;
static uint8_t token[MEMORYD_TOKEN_SIZE];

static int begin(void **state)
{
    reservation = 0;
    return once_start_with("[topology]\nsimulate_nodes = 2\n[pools]\ncapacity = 64M\n");
}

static int end(void **state)
{
    fd = fd_close(fd);
    return once_stop(state);
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

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

static void reserve(void)
{
    Memoryd__V1__ReserveRequest m = MEMORYD__V1__RESERVE_REQUEST__INIT;

    m.size = UINT64_C(1) << 20;
    reservation = ((const Memoryd__V1__ReserveReply *)wire_do(&wire, METHOD_RESERVE, &m.base, STATUS_OK))->reservation;
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

/* ---- measures: what there is when all is over -------------------------------------------------------------------- */

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

static uint64_t on_node(void)
{
    Memoryd__V1__BufferInfo m = info();

    return m.n_nodes == 1 ? m.nodes[0] : UINT64_MAX;
}

static uint64_t is_moved(void)
{
    return on_node() == moved_to;
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

/* ---- the cases --------------------------------------------------------------------------------------------------- */

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

/* Shows `fd` at the door; the socket is not used again. */
static uint64_t shown(enum door_kind kind)
{
    uint8_t ask[MEMORYD_DOOR_REQUEST], told[DOOR_ANSWER_MAX];
    struct door_answer answer;
    struct wire_packet door, *reply;
    ssize_t n;

    wire_request(&wire, &door, METHOD_DOOR, NULL);
    reply = wire_call(&wire, &door);
    assert_int_equal(reply->status, STATUS_OK);
    door_request_encode(ask, kind);
    assert_int_equal(fd_send(reply->fds[0], ask, sizeof(ask), &fd, 1, 0), sizeof(ask));
    assert_true(wait_readable(reply->fds[0]));
    n = recv(reply->fds[0], told, sizeof(told), 0);
    assert_true(n > 0 && door_answer_decode(told, (size_t)n, &answer));
    assert_int_equal(answer.status, STATUS_OK);
    wire_close_fds(reply);
    return answer.ticket;
}

static void ask_import(struct wire_packet *packet)
{
    Memoryd__V1__ImportRequest m = MEMORYD__V1__IMPORT_REQUEST__INIT;
    uint64_t ticket = shown(DOOR_IMPORT);

    m.n_tickets = 1;
    m.tickets = &ticket;
    wire_request(&wire, packet, METHOD_IMPORT, &m.base);
}

static void make_import(struct wire_packet *packet)
{
    allocate();
    export();
    ask_import(packet);
}

static void ask_adopt(struct wire_packet *packet)
{
    Memoryd__V1__AdoptRequest m = MEMORYD__V1__ADOPT_REQUEST__INIT;

    m.ticket = shown(DOOR_ADOPT);
    wire_request(&wire, packet, METHOD_ADOPT, &m.base);
}

static void make_adopt(struct wire_packet *packet)
{
    fd = memfd_create("elsewhere", MFD_CLOEXEC);
    assert_ok(fd);
    assert_ok(ftruncate(fd, SIZE));
    ask_adopt(packet);
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

static void make_move(struct wire_packet *packet)
{
    Memoryd__V1__MoveRequest m = MEMORYD__V1__MOVE_REQUEST__INIT;

    allocate();
    m.buffer = buffer;
    m.node = !on_node();
    moved_to = m.node;
    wire_request(&wire, packet, METHOD_MOVE, &m.base);
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
    {METHOD_ADOPT, make_adopt, buffers, 1, 0},
    {METHOD_OPEN, make_open, claims, 2, 1},
    {METHOD_LOOKUP, make_lookup, claims, 2, 1},
    {METHOD_SHARE, make_share, tokens, 1, 0},
    {METHOD_REVOKE, make_revoke, tokens, 0, 0},
    {METHOD_PUBLISH, make_publish, is_published, 1, 0},
    {METHOD_DISCARD, make_discard, is_as_written, 1, 0},
    {METHOD_MOVE, make_move, is_moved, 1, 0},
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

/* ---- the ways of a loss ------------------------------------------------------------------------------------------ */

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
    if (first.status == STATUS_TICKET_STALE) {
        /* it was not done, and the broker that knew the ticket has gone: this is another request */
        (method == METHOD_IMPORT ? ask_import : ask_adopt)(&request);
        first = *wire_call(&wire, &request);
    }
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
            assert_int_equal(end(state), 0);
            assert_int_equal(begin(state), 0);
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
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat, grants) repeat(NAME, name)
MEMORYD_METHODS(X)
#undef REPEAT_RECORDED

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
#define REPEAT_RECORDED(NAME, name) TEST(once_##name),
        MEMORYD_METHODS(X)};

    return test_run(tests, NULL, once_cleanup);
}
