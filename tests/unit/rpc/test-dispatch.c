/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a packet to an operation and back: what reaches the broker, and what a client hears of each outcome. The broker
 * is a fake (fake.h), the transport notes what it is given.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/envelope.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "rpc/rpc.h"
#include "rpc/validate.h"
#include "tests/support/fd.h"
#include "tests/unit/rpc/fake.h"

static struct rpc rpc;
static struct rpc_client client;

static struct {
    unsigned replies;
    struct frame_header header;
    uint8_t payload[MEMORYD_PAYLOAD_MAX];
    size_t size;
    unsigned n_fds;
    unsigned established;
    unsigned finished;
    bool held;
    unsigned ended; /* descriptors */
    bool events_full;
    unsigned dropped;
    int failed;
} heard;

static struct arena arena;

static void note(const struct frame_header *header, const void *payload, size_t size)
{
    heard.replies++;
    heard.header = *header;
    memcpy(heard.payload, payload, size);
    heard.size = size;
}

/* As a socket with room for it. */
static void t_reply(void *connection, const struct outgoing *reply)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    struct outgoing leaving = *reply;

    assert_ptr_equal(connection, &heard);
    if (reply->n_fds)
        assert_int_equal(rpc_client_open_fds(&client, &leaving, &fds), OUTGOING_OPEN);
    note(&leaving.header, leaving.payload, leaving.size);
    heard.n_fds = fdset_count(&fds);
}

static bool t_event(void *connection, const struct frame_header *header, const void *payload, size_t size, uint64_t key)
{
    if (heard.events_full && !heard.dropped)
        return false;
    note(header, payload, size);
    return true;
}

static void t_drop_events(void *connection)
{
    heard.dropped++;
}

static void t_established(void *connection)
{
    heard.established++;
}

static void t_hold(void *connection, bool held)
{
    heard.held = held;
}

static void t_finish(void *connection)
{
    heard.finished++;
}

static void t_fail(void *connection, int error)
{
    heard.failed = error;
}

/* What the transport knows nothing of. */
#define STALE_TICKET 99

static int t_door(void *connection, int *ret_fd, struct problem *problem)
{
    *ret_fd = memfd_create("door", MFD_CLOEXEC);
    return 0;
}

static int t_redeem(void *connection, uint64_t ticket, bool memory, struct handle_shown *ret, struct problem *problem)
{
    if (ticket == STALE_TICKET)
        return refuse(problem, STATUS_TICKET_STALE, "stale");
    *ret = (struct handle_shown){.fd = memory ? memfd_create("shown", MFD_CLOEXEC) : -1};
    return 0;
}

static void t_end(void *connection, int fd)
{
    heard.ended++;
    close(fd);
}

static const struct rpc_transport transport = {t_reply,  t_event, t_drop_events, t_established, t_hold,
                                               t_finish, t_door,  t_redeem,      t_end,         t_fail};

static int setup(void **state)
{
    struct log_client who = {.uid = 1, .pid = 1};

    fake_reset();
    memset(&heard, 0, sizeof(heard));
    assert_int_equal(arena_init(&arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES), 0);
    assert_int_equal(rpc_init(&rpc, (struct broker *)&fake, &transport, "1.2.3", "/etc/x.conf"), 0);
    rpc_client_init(&client, &rpc, &heard, NULL, who);
    return 0;
}

static int teardown(void **state)
{
    rpc_deinit(&rpc);
    arena_deinit(&arena);
    return 0;
}

static int send_bytes(uint16_t method, const void *payload, size_t size, struct fdset *fds)
{
    static struct fdset none;
    static uint64_t sequence;
    struct frame_header header = {.method = method, .payload_length = (uint32_t)size, .sequence = ++sequence};
    unsigned before = heard.replies;
    int r = rpc_client_packet(&client, &header, payload, fds ? fds : &none);

    if (heard.replies > before) {
        assert_int_equal(heard.header.method, method);
        assert_int_equal(heard.header.sequence, sequence);
    }
    return r;
}

static void call(uint16_t method, const ProtobufCMessage *message)
{
    static uint8_t payload[MEMORYD_PAYLOAD_MAX];
    unsigned before = heard.replies;
    size_t size;

    assert_int_equal(envelope_pack(message, payload, sizeof(payload), &size), 0);
    assert_int_equal(send_bytes(method, payload, size, NULL), 0);
    if (!fake.pend)
        assert_int_equal(heard.replies, before + 1);
}

static void *reply_as(const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message;

    if (heard.header.status)
        fail_msg("refused with %s", status_name(heard.header.status));
    assert_int_equal(envelope_unpack(descriptor, heard.payload, heard.size, &arena, &message), 0);
    return message;
}

static const char *sentence(void)
{
    ProtobufCMessage *message;

    assert_int_equal(envelope_unpack(&memoryd__v1__problem__descriptor, heard.payload, heard.size, &arena, &message),
                     0);
    return ((Memoryd__V1__Problem *)message)->sentence;
}

static void hello(void)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;

    m.version_max = MEMORYD_MINOR_MAX;
    m.program = (char *)"test";
    call(METHOD_HELLO, &m.base);
    assert_int_equal(heard.header.status, 0);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void hello_opens_a_session(void **state)
{
    Memoryd__V1__HelloReply *reply;

    hello();
    reply = reply_as(&memoryd__v1__hello_reply__descriptor);
    assert_true(reply->session && reply->session == client.session);
    assert_int_equal(reply->secret.len, 16);
    assert_int_equal(reply->broker, 77);
    assert_int_equal(heard.established, 1);
    assert_ptr_equal(fake.connection, &heard);
}

static void nothing_works_before_hello(void **state)
{
    size_t n;
    const struct schema_method *methods = schema_methods(&n);

    for (size_t i = 0; i < n; i++) {
        if (methods[i].session != SESSION_NEEDED)
            continue;
        assert_int_equal(send_bytes(methods[i].id, NULL, 0, NULL), 0);
        assert_int_equal(heard.header.status, STATUS_NO_SESSION);
    }
    assert_int_equal(fake.calls, 0);
    assert_int_equal(heard.finished, 0);
}

static void versions_must_meet(void **state)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;

    m.version_min = 98;
    m.version_max = 99;
    call(METHOD_HELLO, &m.base);
    assert_int_equal(heard.header.status, STATUS_VERSION);
    assert_non_null(strstr(sentence(), "1.98 to 1.99"));
    assert_int_equal(fake.calls, 0);
    hello(); /* it may try again */
}

static void the_version_is_the_highest_that_both_speak(void **state)
{
    static const uint32_t theirs[] = {0, MEMORYD_MINOR_MAX, 99};

    for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++) {
        Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;
        Memoryd__V1__HelloReply *reply;

        if (i) {
            teardown(state);
            setup(state);
        }
        m.version_max = theirs[i];
        call(METHOD_HELLO, &m.base);
        reply = reply_as(&memoryd__v1__hello_reply__descriptor);
        assert_int_equal(reply->version, theirs[i] < MEMORYD_MINOR_MAX ? theirs[i] : MEMORYD_MINOR_MAX);
    }
}

static void hello_tells_ranges_that_make_sense(void **state)
{
    uint32_t brokers[MEMORYD_OCCUPIED_MAX + 1] = {1};
    uint64_t addresses[MEMORYD_OCCUPIED_MAX + 1], sizes[MEMORYD_OCCUPIED_MAX + 1];
    static const struct {
        size_t n_brokers, n_addresses, n_sizes;
        uint64_t address, size;
        int status;
    } cases[] = {
        {65, 65, 65, 4096, 4096, STATUS_INVALID_ARGUMENT},
        {1, 1, 0, 4096, 4096, STATUS_INVALID_ARGUMENT},
        {0, 1, 1, 4096, 4096, STATUS_INVALID_ARGUMENT},
        {1, 1, 1, 4096, 0, STATUS_INVALID_ARGUMENT},
        {1, 1, 1, 4096, UINT64_MAX, STATUS_INVALID_ARGUMENT},
        {1, 1, 1, UINT64_MAX - 4095, 4096, STATUS_INVALID_ARGUMENT},
        {64, 64, 64, 4096, 8192, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;

        for (size_t k = 0; k <= MEMORYD_OCCUPIED_MAX; k++) {
            addresses[k] = cases[i].address;
            sizes[k] = cases[i].size;
        }
        m.n_occupied_brokers = cases[i].n_brokers;
        m.n_occupied_addresses = cases[i].n_addresses;
        m.n_occupied_sizes = cases[i].n_sizes;
        m.occupied_brokers = brokers;
        m.occupied_addresses = addresses;
        m.occupied_sizes = sizes;
        call(METHOD_HELLO, &m.base);
        assert_int_equal(heard.header.status, cases[i].status);
    }
}

static void an_unknown_method_is_refused_and_the_client_goes_on(void **state)
{
    hello();
    assert_int_equal(send_bytes(999, "anything", 8, NULL), 0);
    assert_int_equal(heard.header.status, STATUS_NO_SUCH_METHOD);
    assert_int_equal(send_bytes(METHOD_EVENT_LOST, NULL, 0, NULL), 0);
    assert_int_equal(heard.header.status, STATUS_NO_SUCH_METHOD);
    assert_int_equal(heard.finished, 0);
    assert_int_equal(send_bytes(METHOD_PING, NULL, 0, NULL), 0);
    assert_int_equal(heard.header.status, 0);
}

static void I8_malformed_ends_the_connection_and_nothing_else(void **state)
{
    struct fdset fds = FDSET_NULL;

    hello();
    assert_int_equal(send_bytes(METHOD_ALLOC, "\xff\xff\xff", 3, NULL), 0);
    assert_int_equal(heard.header.status, STATUS_PROTOCOL);
    assert_int_equal(heard.finished, 1);
    fdset_push(&fds, memfd_create("x", MFD_CLOEXEC));
    assert_int_equal(send_bytes(METHOD_PING, NULL, 0, &fds), 0);
    assert_int_equal(heard.header.status, STATUS_PROTOCOL);
    assert_int_equal(fdset_count(&fds), 1); /* the caller's to close */
    fdset_deinit(&fds);
    assert_int_equal(fake.calls, 1);
}

static void a_second_hello_is_a_breach(void **state)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;

    hello();
    call(METHOD_HELLO, &m.base);
    assert_int_equal(heard.header.status, STATUS_PROTOCOL);
    assert_int_equal(heard.finished, 1);
}

static void text_that_is_none_is_refused_only(void **state)
{
    hello();
    assert_int_equal(send_bytes(METHOD_NAME_UNBIND, "\x0a\x02\xc3\x28", 4, NULL), 0);
    assert_int_equal(heard.header.status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(heard.finished, 0);
}

static void a_refusal_has_its_sentence(void **state)
{
    Memoryd__V1__InfoRequest m = MEMORYD__V1__INFO_REQUEST__INIT;

    hello();
    m.buffer = 5;
    fake.status = STATUS_STALE;
    call(METHOD_INFO, &m.base);
    assert_int_equal(heard.header.status, STATUS_STALE);
    assert_string_equal(sentence(), status_text(STATUS_STALE));
    fake.sentence = "buffer 5 ended\n at \xc3";
    call(METHOD_INFO, &m.base);
    assert_string_equal(sentence(), "buffer 5 ended\\x0a at ");
    assert_int_equal(rpc.refused, 2);
    assert_int_equal(fake.counted, 2);
    assert_int_equal(fake.replied, 3);
}

static void a_fatal_error_goes_up(void **state)
{
    hello();
    fake.status = -EIO;
    assert_int_equal(send_bytes(METHOD_GOODBYE, NULL, 0, NULL), -EIO);
}

static void alloc_carries_everything(void **state)
{
    uint64_t sizes[2] = {1, 2};
    uint32_t nodes[2] = {3, 1};
    uint32_t weights[2] = {5, 6};
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__Buffers *reply;

    hello();
    m.pool = (char *)"fast";
    m.n_sizes = m.n_nodes = m.n_weights = 2;
    m.sizes = sizes;
    m.nodes = nodes;
    m.weights = weights;
    m.placement = MEMORYD__V1__PLACEMENT__PLACEMENT_SPLIT;
    m.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    m.wait_ms = 9;
    fake.with_fds = true;
    call(METHOD_ALLOC, &m.base);
    assert_string_equal(fake.alloc.memory.pool, "fast");
    assert_int_equal(fake.alloc.n, 2);
    assert_int_equal(fake.alloc.sizes[1], 2);
    assert_int_equal(fake.alloc.memory.nodes[0], 3);
    assert_int_equal(fake.alloc.memory.weights[1], 6);
    assert_int_equal(fake.alloc.wait_ms, 9);
    reply = reply_as(&memoryd__v1__buffers__descriptor);
    assert_int_equal(reply->n_ids, 2);
    assert_int_equal(reply->ids[1], 101);
    assert_int_equal(reply->n_flags, 2);
    assert_int_equal(heard.n_fds, 2);
}

static void a_name_may_come_with_one_buffer(void **state)
{
    uint64_t sizes[2] = {1, 2};
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;

    hello();
    name.name = (char *)"a/b";
    name.others = MEMORYD__V1__RIGHT__RIGHT_WRITE;
    m.sizes = sizes;
    m.n_sizes = 1;
    m.name = &name;
    call(METHOD_ALLOC, &m.base);
    assert_int_equal(heard.header.status, 0);
    assert_string_equal(fake.alloc.name.name, "a/b");
    assert_int_equal(fake.alloc.name.other_rights, 3); /* WRITE implies READ */
    m.n_sizes = 2;
    call(METHOD_ALLOC, &m.base);
    assert_int_equal(heard.header.status, STATUS_INVALID_ARGUMENT);
}

static void failed_items_have_zeros(void **state)
{
    uint64_t ids[2] = {1, 2};
    uint64_t ticket = 7;
    Memoryd__V1__ImportRequest import = MEMORYD__V1__IMPORT_REQUEST__INIT;
    Memoryd__V1__ShareRequest m = MEMORYD__V1__SHARE_REQUEST__INIT;
    Memoryd__V1__ShareReply *shared;
    Memoryd__V1__Buffers *imported;
    unsigned open_before = fd_count();

    hello();
    m.buffers = ids;
    m.n_buffers = 2;
    m.rights = 1;
    call(METHOD_SHARE, &m.base);
    shared = reply_as(&memoryd__v1__share_reply__descriptor);
    assert_int_equal(shared->tokens.len, 64);
    assert_int_equal(shared->tokens.data[0], 0);
    assert_int_equal(shared->tokens.data[32], 0xaa);
    import.n_tickets = 1;
    import.tickets = &ticket;
    call(METHOD_IMPORT, &import.base);
    imported = reply_as(&memoryd__v1__buffers__descriptor);
    assert_int_equal(imported->statuses[0], STATUS_FD_FOREIGN);
    assert_int_equal(imported->ids[0], 0);
    assert_int_equal(fd_count(), open_before);
}

static void what_was_shown_at_the_door_is_known_by_its_ticket(void **state)
{
    Memoryd__V1__ImportRequest import = MEMORYD__V1__IMPORT_REQUEST__INIT;
    Memoryd__V1__AdoptRequest adopt = MEMORYD__V1__ADOPT_REQUEST__INIT;
    uint64_t tickets[2] = {7, STALE_TICKET};
    unsigned open_before = fd_count();

    hello();
    call(METHOD_IMPORT, &import.base);
    assert_int_equal(heard.header.status, STATUS_INVALID_ARGUMENT);
    import.n_tickets = 2;
    import.tickets = tickets;
    call(METHOD_IMPORT, &import.base);
    assert_int_equal(heard.header.status, STATUS_TICKET_STALE);
    adopt.ticket = STALE_TICKET;
    call(METHOD_ADOPT, &adopt.base);
    assert_int_equal(heard.header.status, STATUS_TICKET_STALE);
    assert_int_equal(fake.imported, 0);
    adopt.ticket = 7;
    call(METHOD_ADOPT, &adopt.base);
    assert_int_equal(heard.header.status, STATUS_OK);
    assert_int_equal(fake.imported, 1);
    assert_int_equal(heard.ended, 0);
    assert_int_equal(fd_count(), open_before);
}

/* It may be the last one that has it. */
static void memory_that_is_not_adopted_ends_elsewhere(void **state)
{
    Memoryd__V1__AdoptRequest adopt = MEMORYD__V1__ADOPT_REQUEST__INIT;
    unsigned open_before = fd_count();

    hello();
    fake.status = STATUS_LIMIT;
    adopt.ticket = 7;
    call(METHOD_ADOPT, &adopt.base);
    assert_int_equal(heard.header.status, STATUS_LIMIT);
    assert_int_equal(fake.imported, 1);
    assert_int_equal(heard.ended, 1);
    assert_int_equal(fd_count(), open_before);
}

static void every_listing_fits_and_goes_on_where_it_stopped(void **state)
{
    static const uint16_t methods[] = {METHOD_LIST_NODES,        METHOD_LIST_POOLS,   METHOD_LIST_BUFFERS,
                                       METHOD_LIST_SESSIONS,     METHOD_LIST_NAMES,   METHOD_LIST_TOKENS,
                                       METHOD_LIST_RESERVATIONS, METHOD_LIST_HISTORY, METHOD_LIST_LIMITS};

    hello();
    fake.n_records = 500;
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
        Memoryd__V1__ListRequest m = MEMORYD__V1__LIST_REQUEST__INIT;
        uint64_t rows = 0;

        do {
            const ProtobufCMessageDescriptor *descriptor = schema_method(methods[i])->reply;
            ProtobufCMessage *reply;
            size_t n;

            call(methods[i], &m.base);
            assert_true(heard.size <= MEMORYD_PAYLOAD_MAX);
            reply = reply_as(descriptor);
            /* the rows are the first field of each reply, and `next` is found by its name */
            n = 0;
            memcpy(&n, (char *)reply + descriptor->fields[0].quantifier_offset, sizeof(n));
            rows += n;
            memcpy(&m.cursor,
                   (char *)reply + protobuf_c_message_descriptor_get_field_by_name(descriptor, "next")->offset,
                   sizeof(m.cursor));
            assert_true(rows <= 500);
        } while (m.cursor);
        assert_int_equal(rows, 500);
    }
}

static void a_listing_gives_no_more_than_wanted(void **state)
{
    Memoryd__V1__ListRequest m = MEMORYD__V1__LIST_REQUEST__INIT;
    Memoryd__V1__TokensReply *reply;

    hello();
    m.most = 2;
    call(METHOD_LIST_TOKENS, &m.base);
    reply = reply_as(&memoryd__v1__tokens_reply__descriptor);
    assert_int_equal(reply->n_tokens, 2);
    assert_int_equal(reply->next, 3);
}

static const Memoryd__V1__BuffersReply *selection(Memoryd__V1__SelectRequest *m)
{
    call(METHOD_SELECT_BUFFERS, &m->base);
    assert_int_equal(heard.header.status, 0);
    assert_true(heard.size <= MEMORYD_PAYLOAD_MAX);
    return (const Memoryd__V1__BuffersReply *)reply_as(&memoryd__v1__buffers_reply__descriptor);
}

static void a_selection_pages_and_leaves_out_what_has_ended(void **state)
{
    Memoryd__V1__SelectRequest m = MEMORYD__V1__SELECT_REQUEST__INIT;
    const Memoryd__V1__BuffersReply *reply;
    uint64_t rows = 0;

    hello();
    fake.n_records = 50;
    fake.ended = 16;
    m.most = 16;
    m.order = MEMORYD__V1__SELECT_REQUEST__ORDER__OLDEST;
    m.flags = MEMORYD__V1__SELECT_REQUEST__FLAG__ONLY_UID;
    m.uid = 0;
    m.pool = (char *)(uintptr_t) "node0";
    do {
        reply = selection(&m);
        rows += reply->n_buffers;
        assert_true(rows <= 50);
        assert_int_equal(reply->sums->buffers, 50);
        assert_int_equal(reply->sums->holds, 3);
        if (reply->next)
            assert_int_equal(reply->next, reply->buffers[reply->n_buffers - 1]->id);
        m.after = reply->next == 15 ? 16 : reply->next;
    } while (m.after);
    assert_int_equal(rows, 49);
    assert_int_equal(fake.select.order, SELECT_OLDEST);
    assert_true(fake.select.only_uid);
    assert_string_equal(fake.select.pool, "node0");

    /* answered later, too */
    fake.pend = true;
    m.after = 0;
    call(METHOD_SELECT_BUFFERS, &m.base);
    fake_end(0);
    reply = (const Memoryd__V1__BuffersReply *)reply_as(&memoryd__v1__buffers_reply__descriptor);
    assert_int_equal(reply->n_buffers, 15);
}

static void a_selection_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        uint32_t order, most, flags, uid;
    } bad[] = {{4, 1, 0, 0}, {UINT32_MAX, 1, 0, 0}, {0, 17, 0, 0}, {0, UINT32_MAX, 0, 0}, {0, 1, 4, 0}, {0, 1, 0, 7}};
    char pool[MEMORYD_POOL_NAME_MAX + 2];
    Memoryd__V1__SelectRequest m = MEMORYD__V1__SELECT_REQUEST__INIT;
    unsigned before;

    hello();
    before = fake.calls;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        m.order = (Memoryd__V1__SelectRequest__Order)bad[i].order;
        m.most = bad[i].most;
        m.flags = bad[i].flags;
        m.uid = bad[i].uid;
        call(METHOD_SELECT_BUFFERS, &m.base);
        assert_int_equal(heard.header.status, STATUS_INVALID_ARGUMENT);
    }
    memoryd__v1__select_request__init(&m);
    memset(pool, 'p', sizeof(pool) - 1);
    pool[sizeof(pool) - 1] = '\0';
    m.pool = pool;
    call(METHOD_SELECT_BUFFERS, &m.base);
    assert_int_equal(heard.header.status, STATUS_NO_SUCH_POOL);
    m.pool = (char *)(uintptr_t) "a\033b";
    call(METHOD_SELECT_BUFFERS, &m.base);
    assert_int_equal(heard.header.status, STATUS_NO_SUCH_POOL);
    assert_int_equal(fake.calls, before);
}

static void what_binds_a_name_is_noted_with_it(void **state)
{
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;
    Memoryd__V1__NameUnbindRequest unbind = MEMORYD__V1__NAME_UNBIND_REQUEST__INIT;
    Memoryd__V1__AllocRequest alloc = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint64_t size = 1;

    hello();
    alloc.n_sizes = 1;
    alloc.sizes = &size;
    call(METHOD_ALLOC, &alloc.base);
    assert_int_equal(fake.noted, 0);
    name.name = (char *)(uintptr_t) "a/new";
    alloc.name = &name;
    call(METHOD_ALLOC, &alloc.base);
    assert_int_equal(fake.noted, METHOD_ALLOC);
    assert_string_equal(fake.noted_name, "a/new");
    name.name = (char *)(uintptr_t) "a/bound";
    name.buffer = 5;
    call(METHOD_NAME_BIND, &name.base);
    assert_int_equal(fake.noted, METHOD_NAME_BIND);
    assert_int_equal(fake.noted_buffer, 5);
    assert_string_equal(fake.noted_name, "a/bound");
    unbind.name = (char *)(uintptr_t) "a/gone";
    call(METHOD_NAME_UNBIND, &unbind.base);
    assert_int_equal(fake.noted, METHOD_NAME_UNBIND);
    assert_string_equal(fake.noted_name, "a/gone");
}

static void pending_verbs_are_answered_later(void **state)
{
    Memoryd__V1__PublishRequest m = MEMORYD__V1__PUBLISH_REQUEST__INIT;
    unsigned before;

    hello();
    before = heard.replies;
    m.buffer = 5;
    fake.pend = true;
    call(METHOD_PUBLISH, &m.base);
    assert_int_equal(heard.replies, before);
    assert_int_equal(fake.noted, 0);
    fake_end(0);
    assert_int_equal(heard.replies, before + 1);
    assert_int_equal(fake.noted, METHOD_PUBLISH);
    assert_int_equal(fake.noted_buffer, 5);
    assert_int_equal(heard.header.method, METHOD_PUBLISH);
    assert_int_equal(heard.header.status, 0);
    call(METHOD_PUBLISH, &m.base);
    fake_end(STATUS_BUSY);
    assert_int_equal(heard.header.status, STATUS_BUSY);
}

static void I7_a_pending_verb_of_a_vanished_client_leaks_nothing(void **state)
{
    uint64_t size = 1;
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    unsigned open_before = fd_count();
    unsigned before;

    hello();
    m.sizes = &size;
    m.n_sizes = 1;
    fake.pend = true;
    fake.with_fds = true;
    fake.n_opened = 1;
    before = heard.replies;
    call(METHOD_ALLOC, &m.base);
    assert_int_equal(rpc_client_lost(&client), 0);
    assert_int_equal(fake.cancelled, 0); /* it goes on, for the case that it is asked for again */
    assert_int_equal(fake.lost, 1);
    assert_int_equal(fd_count(), open_before + 1);
    fake_end(0);
    assert_int_equal(heard.replies, before);
    assert_int_equal(fd_count(), open_before);
}

static void unrecorded_requests_are_cancelled_with_their_connection(void **state)
{
    unsigned before;

    hello();
    fake.pend = true;
    before = heard.replies;
    assert_int_equal(send_bytes(METHOD_CHECK, NULL, 0, NULL), 0);
    assert_int_equal(rpc_client_lost(&client), 0);
    assert_int_equal(fake.cancelled, 1);
    fake_end(STATUS_TIMED_OUT);
    assert_int_equal(heard.replies, before);
}

static void goodbye_is_answered_before_the_end(void **state)
{
    hello();
    assert_int_equal(send_bytes(METHOD_GOODBYE, NULL, 0, NULL), 0);
    assert_int_equal(heard.header.status, 0);
    assert_int_equal(heard.finished, 1);
    assert_int_equal(client.session, 0);
    assert_int_equal(rpc_client_lost(&client), 0);
    assert_int_equal(fake.lost, 0);
}

static void unsound_packets_hear_why(void **state)
{
    uint8_t packet[MEMORYD_HEADER_SIZE];
    struct frame_header header = {.method = METHOD_HELLO, .sequence = 3};

    frame_encode(packet, FRAME_FROM_CLIENT, &header);
    packet[4] = 9;
    rpc_client_refused(&client, FRAME_E_VERSION, packet, sizeof(packet));
    assert_int_equal(heard.header.status, STATUS_VERSION);
    assert_int_equal(heard.header.sequence, 3);
    assert_non_null(strstr(sentence(), "version 9"));
    packet[4] = 1;
    rpc_client_refused(&client, FRAME_E_PAYLOAD_LENGTH, packet, sizeof(packet));
    assert_int_equal(heard.header.status, STATUS_PROTOCOL);
    heard.replies = 0;
    /* no reply can have method 0 */
    memset(packet + 14, 0, 2);
    rpc_client_refused(&client, FRAME_E_METHOD, packet, sizeof(packet));
    rpc_client_refused(&client, FRAME_E_MAGIC, (const uint8_t *)"GET / HTTP/1.1\r\n\r\n and more so that it is long",
                       46);
    assert_int_equal(heard.replies, 0);
}

static void events_arrive_or_are_replaced_by_lost(void **state)
{
    struct broker_event event = {
        .kind = MEMORYD__V1__EVENT_KIND__EVENT_NAME, .name = "a/b", .bound = true, .buffer = 7};
    ProtobufCMessage *message;

    hello();
    rpc_client_event(&client, &event);
    assert_int_equal(heard.header.method, METHOD_EVENT_NAME);
    assert_int_equal(heard.header.sequence, 0);
    assert_int_equal(envelope_unpack(&memoryd__v1__name_event__descriptor, heard.payload, heard.size, &arena, &message),
                     0);
    assert_string_equal(((Memoryd__V1__NameEvent *)message)->name, "a/b");
    heard.events_full = true;
    event = (struct broker_event){.kind = MEMORYD__V1__EVENT_KIND__EVENT_PRESSURE, .pool = "p"};
    rpc_client_event(&client, &event);
    assert_int_equal(heard.header.method, METHOD_EVENT_LOST);
    assert_int_equal(heard.dropped, 1);
}

static void status_tells_what_only_rpc_knows(void **state)
{
    Memoryd__V1__StatusReply *reply;

    hello();
    assert_int_equal(send_bytes(METHOD_STATUS, NULL, 0, NULL), 0);
    reply = reply_as(&memoryd__v1__status_reply__descriptor);
    assert_string_equal(reply->version, "1.2.3");
    assert_string_equal(reply->config, "/etc/x.conf");
    assert_int_equal(reply->broker_pid, getpid());
    assert_int_equal(reply->requests, 1);
}

/* What is left out is counted, and what is in a file may be no text. */
static void a_reload_tells_its_lines(void **state)
{
    Memoryd__V1__ReloadRequest m = MEMORYD__V1__RELOAD_REQUEST__INIT;
    Memoryd__V1__ReloadReply *reply;

    hello();
    fake.reload = (struct reload_result){.path = "/etc/x", .n_lines = 3, .n_of = {1, 2, 0}};
    fake.reload.lines[0] = (struct reload_line){RELOAD_RESTART, "[pools] stock"};
    fake.reload.lines[1] = (struct reload_line){RELOAD_APPLIED, "[session] grace"};
    fake.reload.lines[2] = (struct reload_line){RELOAD_RESTART, "[arena] half"};
    call(METHOD_RELOAD, &m.base);
    assert_string_equal(fake.operation, "reload");
    reply = reply_as(&memoryd__v1__reload_reply__descriptor);
    assert_string_equal(reply->config, "/etc/x");
    assert_int_equal(reply->n_applied, 1);
    assert_string_equal(reply->applied[0], "[session] grace");
    assert_int_equal(reply->n_restart, 2);
    assert_string_equal(reply->restart[0], "[pools] stock");
    assert_string_equal(reply->restart[1], "[arena] half");
    assert_int_equal(reply->n_mistakes, 0);

    fake.reload = (struct reload_result){.path = "/etc/x", .n_lines = RELOAD_LINES_MAX, .n_of = {0, 0, 60}};
    for (unsigned i = 0; i < RELOAD_LINES_MAX; i++)
        fake.reload.lines[i] = (struct reload_line){RELOAD_MISTAKE, "/etc/x:1: \xff\n"};
    call(METHOD_RELOAD, &m.base);
    reply = reply_as(&memoryd__v1__reload_reply__descriptor);
    assert_int_equal(reply->n_mistakes, RELOAD_LINES_MAX);
    assert_string_equal(reply->mistakes[0], "/etc/x:1: \\xff\\x0a");
    assert_string_equal(reply->mistakes[RELOAD_LINES_MAX - 1], "and 13 more");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hello_opens_a_session),
        TEST(nothing_works_before_hello),
        TEST(versions_must_meet),
        TEST(the_version_is_the_highest_that_both_speak),
        TEST(hello_tells_ranges_that_make_sense),
        TEST(an_unknown_method_is_refused_and_the_client_goes_on),
        TEST(I8_malformed_ends_the_connection_and_nothing_else),
        TEST(a_second_hello_is_a_breach),
        TEST(text_that_is_none_is_refused_only),
        TEST(a_refusal_has_its_sentence),
        TEST(a_fatal_error_goes_up),
        TEST(alloc_carries_everything),
        TEST(a_name_may_come_with_one_buffer),
        TEST(failed_items_have_zeros),
        TEST(what_was_shown_at_the_door_is_known_by_its_ticket),
        TEST(memory_that_is_not_adopted_ends_elsewhere),
        TEST(every_listing_fits_and_goes_on_where_it_stopped),
        TEST(a_listing_gives_no_more_than_wanted),
        TEST(a_selection_pages_and_leaves_out_what_has_ended),
        TEST(a_selection_that_makes_no_sense_is_refused),
        TEST(what_binds_a_name_is_noted_with_it),
        TEST(pending_verbs_are_answered_later),
        TEST(I7_a_pending_verb_of_a_vanished_client_leaks_nothing),
        TEST(unrecorded_requests_are_cancelled_with_their_connection),
        TEST(goodbye_is_answered_before_the_end),
        TEST(unsound_packets_hear_why),
        TEST(events_arrive_or_are_replaced_by_lost),
        TEST(status_tells_what_only_rpc_knows),
        TEST(a_reload_tells_its_lines),
    };

    return test_run(tests, NULL, NULL);
}
