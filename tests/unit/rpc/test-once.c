/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that comes a second time: what is done, and what the client hears. The broker is a fake (fake.h); the
 * connections are two places in which the transport notes what it is given.
 */
#include "tests/support/test.h"

#include <string.h>

#include "proto/envelope.h"
#include "proto/memoryd.pb-c.h"
#include "proto/release_log.h"
#include "proto/schema.h"
#include "rpc/rpc.h"
#include "tests/support/fd.h"
#include "tests/unit/rpc/fake.h"

static struct rpc rpc;
static struct arena arena;

static struct heard {
    struct rpc_client client;
    unsigned replies;
    struct frame_header header;
    uint8_t payload[MEMORYD_PAYLOAD_MAX];
    size_t size;
    unsigned n_fds;
    unsigned finished;
    bool held;
    bool waits;
    struct outgoing waiting;
    uint8_t waiting_payload[MEMORYD_PAYLOAD_MAX];
    uint8_t waiting_list[sizeof(struct fd_list)];
} first, second;

static void leaves(struct heard *heard, const struct outgoing *reply)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    struct outgoing leaving = *reply;

    if (reply->n_fds && rpc_client_open_fds(&heard->client, &leaving, &fds) != OUTGOING_OPEN)
        return;
    heard->replies++;
    heard->header = leaving.header;
    memcpy(heard->payload, leaving.payload, leaving.size);
    heard->size = leaving.size;
    heard->n_fds = fdset_count(&fds);
}

/* At once, or a copy of it when the test says so. */
static void t_reply(void *connection, const struct outgoing *reply)
{
    struct heard *heard = connection;

    if (!heard->waits) {
        leaves(heard, reply);
        return;
    }
    heard->waiting = *reply;
    heard->waiting.payload = memcpy(heard->waiting_payload, reply->payload, reply->size);
    if (reply->fd_list)
        heard->waiting.fd_list = memcpy(heard->waiting_list, reply->fd_list, reply->fd_list_size);
}

static void t_established(void *connection)
{
    (void)connection;
}

static void t_hold(void *connection, bool held)
{
    ((struct heard *)connection)->held = held;
}

static void t_finish(void *connection)
{
    ((struct heard *)connection)->finished++;
}

static int t_door(void *connection, int *ret_fd, struct problem *problem)
{
    (void)connection;
    (void)ret_fd;
    return refuse(problem, STATUS_LIMIT, "there is no door");
}

static const struct rpc_transport transport = {
    .reply = t_reply, .established = t_established, .hold = t_hold, .finish = t_finish, .door = t_door};

static void packet(struct heard *on, struct frame_header header, const ProtobufCMessage *message)
{
    static uint8_t payload[MEMORYD_PAYLOAD_MAX];
    static struct fdset none;
    size_t size = 0;

    if (message)
        assert_int_equal(envelope_pack(message, payload, sizeof(payload), &size), 0);
    header.payload_length = (uint32_t)size;
    assert_int_equal(rpc_client_packet(&on->client, &header, payload, &none), 0);
}

static void introduce_as(struct heard *to, uint32_t minor)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;

    m.version_max = minor;
    memset(to, 0, sizeof(*to));
    rpc_client_init(&to->client, &rpc, to, NULL, (struct log_client){.uid = 1, .pid = 1});
    packet(to, (struct frame_header){.method = METHOD_HELLO, .sequence = 1}, &m.base);
    assert_int_equal(to->header.status, 0);
    to->replies = 0;
}

static void introduce(struct heard *to)
{
    introduce_as(to, MEMORYD_MINOR_MAX);
}

static int setup(void **state)
{
    fake_reset();
    assert_int_equal(arena_init(&arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES), 0);
    assert_int_equal(rpc_init(&rpc, (struct broker *)&fake, &transport, "1.2.3", ""), 0);
    introduce(&first);
    introduce(&second);
    fake.calls = 0;
    return 0;
}

static int teardown(void **state)
{
    rpc_deinit(&rpc);
    arena_deinit(&arena);
    return 0;
}

#define HEADER(m, s) ((struct frame_header){.method = METHOD_##m, .sequence = (s)})

static void same_reply(void)
{
    assert_int_equal(second.header.method, first.header.method);
    assert_int_equal(second.header.sequence, first.header.sequence);
    assert_int_equal(second.header.status, first.header.status);
    assert_int_equal(second.size, first.size);
    assert_memory_equal(second.payload, first.payload, first.size);
    assert_int_equal(second.n_fds, first.n_fds);
}

static void alloc(struct heard *on, uint64_t sequence)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint64_t sizes[] = {1, 2};

    m.sizes = sizes;
    m.n_sizes = 2;
    packet(on, HEADER(ALLOC, sequence), &m.base);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void a_repeated_request_is_answered_and_not_executed_again(void **state)
{
    Memoryd__V1__ReserveRequest m = MEMORYD__V1__RESERVE_REQUEST__INIT;

    m.size = 4096;
    packet(&first, HEADER(RESERVE, 2), &m.base);
    assert_int_equal(rpc_client_lost(&first.client), 0);
    /* without its message, and other rubbish */
    packet(&second, HEADER(RESERVE, 2), NULL);
    assert_int_equal(fake.calls, 1);
    assert_int_equal(second.replies, 1);
    same_reply();
}

static void a_refusal_is_kept_too(void **state)
{
    Memoryd__V1__DestroyRequest m = MEMORYD__V1__DESTROY_REQUEST__INIT;

    m.buffer = 7;
    fake.status = STATUS_STALE;
    fake.sentence = "buffer 7 has ended";
    packet(&first, HEADER(DESTROY, 2), &m.base);
    fake.status = 0;
    packet(&second, HEADER(DESTROY, 2), NULL);
    assert_int_equal(fake.calls, 1);
    assert_int_equal(second.header.status, STATUS_STALE);
    same_reply();
}

static const Memoryd__V1__Buffers *buffers_of(const struct heard *heard)
{
    ProtobufCMessage *message;

    assert_int_equal(envelope_unpack(&memoryd__v1__buffers__descriptor, heard->payload, heard->size, &arena, &message),
                     0);
    return (const Memoryd__V1__Buffers *)message;
}

static void descriptors_come_anew(void **state)
{
    unsigned open_before = fd_count();

    fake.with_fds = true;
    alloc(&first, 2);
    assert_int_equal(first.n_fds, 2);
    assert_int_equal(fake.openings, 1);
    memset(&fake.export, 0, sizeof(fake.export));
    alloc(&second, 2);
    assert_int_equal(second.n_fds, 2);
    assert_int_equal(fake.openings, 2);
    assert_int_equal(fake.list.items[0].buffer, 100);
    assert_int_equal(fake.list.items[1].buffer, 101);
    assert_string_equal(fake.operation, "export");
    assert_int_equal(fake.export.buffers.id[0], 101); /* the last one of both */
    assert_int_equal(fake.export.rights[0], MEMORYD__V1__RIGHT__RIGHT_READ | MEMORYD__V1__RIGHT__RIGHT_WRITE);
    same_reply();
    assert_int_equal(fd_count(), open_before);
}

static void what_cannot_be_exported_any_more_has_its_status(void **state)
{
    const Memoryd__V1__Buffers *buffers;

    fake.with_fds = true;
    alloc(&first, 2);
    fake.status = STATUS_LIMIT;
    fake.sentence = "no more watches";
    alloc(&second, 2);
    assert_int_equal(second.header.status, 0);
    assert_int_equal(second.n_fds, 0);
    buffers = buffers_of(&second);
    assert_int_equal(buffers->n_statuses, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(buffers->statuses[i], STATUS_LIMIT);
        assert_int_equal(buffers->ids[i], 0);
        assert_int_equal(buffers->rights[i], 0);
    }
    assert_string_equal(buffers->sentence, "no more watches");
}

/* A broker packed it, and then the ledger was damaged. */
static void a_kept_reply_with_too_few_columns_is_refused(void **state)
{
    Memoryd__V1__Buffers damaged = MEMORYD__V1__BUFFERS__INIT;
    uint32_t statuses[MEMORYD_BATCH_MAX + 1] = {0};
    size_t size;

    fake.with_fds = true;
    damaged.statuses = statuses;
    for (unsigned i = 0; i < 2; i++) {
        alloc(&first, 2 + i);
        damaged.n_statuses = i ? MEMORYD_BATCH_MAX + 1 : 2;
        assert_int_equal(envelope_pack(&damaged.base, fake.kept[i].message, sizeof(fake.kept[i].message), &size), 0);
        fake.kept[i].reply.size = (uint32_t)size;
        alloc(&second, 2 + i);
        assert_int_equal(second.header.status, STATUS_REFUSED);
        assert_int_equal(second.n_fds, 0);
    }
}

/* ---- what is done, and is not over ------------------------------------------------------------------------------- */

static void release(struct heard *on, uint64_t sequence)
{
    Memoryd__V1__ReleaseRequest m = MEMORYD__V1__RELEASE_REQUEST__INIT;
    uint64_t ids[] = {7, 8};

    m.buffers = ids;
    m.n_buffers = 2;
    packet(on, HEADER(RELEASE, sequence), &m.base);
}

/* Its reply is kept with its effects, and leaves when what follows from these is done; nothing is read before that. */
static void a_reply_is_kept_before_what_follows_is_done(void **state)
{
    fake.settle = true;
    release(&first, 2);
    assert_true(fake.kept[0].done);
    assert_int_equal(first.replies, 0);
    assert_true(first.held);
    fake_end(0);
    assert_int_equal(first.replies, 1);
    assert_int_equal(first.header.status, 0);
    assert_int_equal(first.size, fake.kept[0].reply.size);
    assert_memory_equal(first.payload, fake.kept[0].message, first.size);
    assert_false(first.held);
}

static void a_repeat_is_answered_before_what_follows_is_done(void **state)
{
    fake.settle = true;
    release(&first, 2);
    assert_int_equal(rpc_client_lost(&first.client), 0);
    fake.settle = false;
    release(&second, 2);
    assert_int_equal(fake.calls, 1);
    assert_int_equal(second.replies, 1);
    assert_int_equal(second.header.status, 0);
    assert_false(second.held);
    fake_end(0);
    assert_int_equal(first.replies, 0);
    assert_int_equal(second.replies, 1);
}

/* As when the next broker reads a release log. */
static void what_nobody_waits_for_settles_too(void **state)
{
    introduce_as(&first, 0);
    fake.settle = true;
    release(&first, 2);
    assert_false(fake.kept[0].done);
    assert_int_equal(rpc_client_lost(&first.client), 0);
    fake_end(0);
    assert_int_equal(first.replies, 0);
}

/* ---- replies that wait ------------------------------------------------------------------------------------------- */

static void a_reply_that_waits_has_nothing_open(void **state)
{
    unsigned open_before = fd_count();

    fake.with_fds = true;
    fake.n_opened = 1;
    first.waits = true;
    alloc(&first, 2);
    assert_int_equal(fake.openings, 0);
    assert_int_equal(fd_count(), open_before);
    packet(&first, HEADER(PING, 3), NULL); /* another reply is made meanwhile */
    alloc(&first, 4);
    leaves(&first, &first.waiting);
    assert_int_equal(first.header.sequence, 4);
    assert_int_equal(first.n_fds, 2);
    assert_int_equal(fake.list.session, first.client.session);
    assert_int_equal(fd_count(), open_before);
}

static void what_was_opened_beforehand_leaves_at_once(void **state)
{
    unsigned open_before = fd_count();

    fake.with_fds = true;
    fake.n_opened = 2;
    alloc(&first, 2);
    assert_int_equal(first.n_fds, 2);
    assert_int_equal(fd_count(), open_before);
}

static void what_has_gone_meanwhile_has_its_status(void **state)
{
    Memoryd__V1__ExportRequest m = MEMORYD__V1__EXPORT_REQUEST__INIT;
    uint64_t ids[] = {7, 8, 9};
    uint32_t rights[] = {1, 1, 1};
    const Memoryd__V1__Buffers *buffers;
    const Memoryd__V1__Statuses *statuses;
    ProtobufCMessage *message;

    fake.with_fds = true;
    fake.open_status = STATUS_STALE;
    fake.open_fails_at = 1;
    first.waits = true;
    alloc(&first, 2);
    leaves(&first, &first.waiting);
    assert_int_equal(first.header.status, 0);
    assert_int_equal(first.n_fds, 1);
    buffers = buffers_of(&first);
    assert_int_equal(buffers->statuses[0], 0);
    assert_int_equal(buffers->ids[0], 100);
    assert_int_equal(buffers->statuses[1], STATUS_STALE);
    assert_int_equal(buffers->ids[1], 0);
    assert_string_equal(buffers->sentence, "buffer 101 has ended");

    m.buffers = ids;
    m.rights = rights;
    m.n_buffers = m.n_rights = 3;
    packet(&first, HEADER(EXPORT, 3), &m.base);
    leaves(&first, &first.waiting);
    assert_int_equal(first.n_fds, 2);
    assert_int_equal(envelope_unpack(&memoryd__v1__statuses__descriptor, first.payload, first.size, &arena, &message),
                     0);
    statuses = (const Memoryd__V1__Statuses *)message;
    assert_int_equal(statuses->n_statuses, 3);
    assert_int_equal(statuses->statuses[0], 0);
    assert_int_equal(statuses->statuses[1], STATUS_STALE);
    assert_int_equal(statuses->statuses[2], 0);
    assert_string_equal(statuses->sentence, "buffer 8 has ended");
}

static void without_descriptors_a_reply_waits(void **state)
{
    fake.with_fds = true;
    fake.open_status = STATUS_NO_DESCRIPTORS;
    first.waits = true;
    alloc(&first, 2);
    leaves(&first, &first.waiting);
    assert_int_equal(first.replies, 0);
    fake.open_status = 0;
    leaves(&first, &first.waiting);
    assert_int_equal(first.replies, 1);
    assert_int_equal(first.n_fds, 2);
}

/* A client can do without its release log, and shall not wait for it. */
static void HELLO_does_not_wait_for_descriptors(void **state)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;

    m.release_log = true;
    memset(&second, 0, sizeof(second));
    rpc_client_init(&second.client, &rpc, &second, NULL, (struct log_client){.uid = 1, .pid = 1});
    fake.open_status = STATUS_NO_DESCRIPTORS;
    packet(&second, HEADER(HELLO, 1), &m.base);
    assert_true(fake.list.release_log);
    assert_int_equal(second.replies, 1);
    assert_int_equal(second.header.status, 0);
    assert_int_equal(second.n_fds, 0);
}

static void one_that_is_running_is_answered_where_it_was_asked_again(void **state)
{
    fake.pend = true;
    alloc(&first, 2);
    assert_int_equal(rpc_client_lost(&first.client), 0);
    assert_int_equal(fake.cancelled, 0);
    alloc(&second, 2);
    assert_int_equal(fake.calls, 1);
    assert_int_equal(second.replies, 0);
    fake_end(0);
    assert_int_equal(first.replies, 0);
    assert_int_equal(second.replies, 1);
    assert_int_equal(second.header.sequence, 2);
}

/* The broker learns of a lost connection when it likes. */
static void one_that_is_running_moves_from_a_connection_that_is_not_yet_lost(void **state)
{
    fake.pend = true;
    alloc(&first, 2);
    alloc(&second, 2);
    assert_int_equal(rpc_client_lost(&first.client), 0);
    fake_end(0);
    assert_int_equal(first.replies, 0);
    assert_int_equal(second.replies, 1);
}

static void one_that_ends_without_a_client_is_answered_later(void **state)
{
    unsigned open_before = fd_count();

    fake.pend = true;
    fake.with_fds = true;
    fake.n_opened = 2;
    alloc(&first, 2);
    assert_int_equal(rpc_client_lost(&first.client), 0);
    fake_end(0);
    assert_int_equal(fd_count(), open_before);
    fake.pend = false;
    alloc(&second, 2);
    assert_int_equal(second.replies, 1);
    assert_int_equal(second.header.status, 0);
    assert_int_equal(second.n_fds, 2);
}

static void one_sequence_twice_on_one_connection_is_a_breach(void **state)
{
    fake.pend = true;
    alloc(&first, 2);
    alloc(&first, 2);
    assert_int_equal(first.replies, 1);
    assert_int_equal(first.header.status, STATUS_PROTOCOL);
    assert_int_equal(first.finished, 1);
    /* and the first of them is not harmed */
    assert_int_equal(rpc_client_lost(&first.client), 0);
    fake_end(0);
    fake.pend = false;
    alloc(&second, 2);
    assert_int_equal(second.header.status, 0);
    assert_int_equal(fake.calls, 1);
}

static void acknowledged_replies_are_forgotten(void **state)
{
    alloc(&first, 2);
    alloc(&first, 3);
    packet(&first, (struct frame_header){.method = METHOD_PING, .sequence = 4, .acknowledged = 2}, NULL);
    assert_int_equal(fake.kept[0].sequence, 0);
    assert_int_equal(fake.kept[1].sequence, 3);
    /* a resume says it, too */
    memset(&second, 0, sizeof(second));
    introduce(&second);
    fake.begin = OP_FORGOTTEN;
    alloc(&second, 2);
    assert_int_equal(second.header.status, STATUS_PROTOCOL);
    assert_int_equal(second.finished, 1);
}

static void one_beyond_is_acknowledged_by_recorded_requests(void **state)
{
    Memoryd__V1__ReserveRequest m = MEMORYD__V1__RESERVE_REQUEST__INIT;

    m.size = 4096;
    alloc(&first, 2);
    alloc(&first, 3);
    packet(&first, (struct frame_header){.method = METHOD_RESERVE, .sequence = 4, .answered = 3}, &m.base);
    assert_int_equal(fake.kept[0].sequence, 2);
    assert_int_equal(fake.kept[1].sequence, 4);
}

static void a_resume_acknowledges(void **state)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;

    alloc(&first, 2);
    memset(&second, 0, sizeof(second));
    rpc_client_init(&second.client, &rpc, &second, NULL, (struct log_client){.uid = 1, .pid = 1});
    packet(&second, (struct frame_header){.method = METHOD_HELLO, .sequence = 3, .acknowledged = 2}, &m.base);
    assert_int_equal(second.header.status, 0);
    assert_int_equal(fake.kept[0].sequence, 0);
}

static void one_too_many_is_refused_and_not_kept(void **state)
{
    for (uint64_t sequence = 2; sequence < 6; sequence++)
        alloc(&first, sequence);
    assert_int_equal(first.header.status, 0);
    alloc(&first, 6);
    assert_int_equal(first.header.status, STATUS_LIMIT);
    assert_int_equal(first.finished, 0);
    assert_int_equal(fake.calls, 4);
    packet(&first, (struct frame_header){.method = METHOD_PING, .sequence = 7, .acknowledged = 5}, NULL);
    assert_int_equal(first.header.status, 0);
    alloc(&first, 8);
    assert_int_equal(first.header.status, 0);
}

static void an_old_client_is_served_as_before(void **state)
{
    introduce_as(&first, 0);
    fake.pend = true;
    alloc(&first, 2);
    assert_int_equal(fake.kept[0].sequence, 0);
    assert_int_equal(rpc_client_lost(&first.client), 0);
    assert_int_equal(fake.cancelled, 1);
    fake_end(STATUS_TIMED_OUT);
    assert_int_equal(first.replies, 0);
}

static void a_broker_that_died_over_it_is_told_of(void **state)
{
    fake.begin = OP_REPLAY;
    alloc(&first, 2);
    assert_true(fake.replay);
    assert_int_equal(first.header.status, 0);
    assert_int_equal(fake.kept[0].sequence, 2);
    assert_true(fake.kept[0].done);
}

static void a_request_in_execution_is_recorded(void **state)
{
    alloc(&first, 2);
    assert_int_equal(fake.was_executing, 2);
    assert_int_equal(fake.executing, 0);
    packet(&first, HEADER(STATUS, 9), NULL);
    assert_int_equal(fake.was_executing, 9);
    assert_int_equal(fake.executing, 0);
}

static void harmless_requests_are_not_kept(void **state)
{
    packet(&first, HEADER(STATUS, 2), NULL);
    packet(&second, HEADER(STATUS, 2), NULL);
    assert_int_equal(fake.calls, 2);
    assert_int_equal(fake.kept[0].sequence, 0);
}

/* Every row of the table: a recorded one is begun and kept, whatever becomes of it, and the others are not. */
static void the_table_says_what_is_kept(void **state)
{
    size_t n;
    const struct schema_method *methods = schema_methods(&n);

    for (size_t i = 0; i < n; i++) {
        uint64_t sequence = 100 + i;

        if (methods[i].id == METHOD_HELLO || methods[i].id == METHOD_GOODBYE)
            continue;
        memset(fake.kept, 0, sizeof(fake.kept));
        packet(&first, (struct frame_header){.method = methods[i].id, .sequence = sequence}, NULL);
        assert_int_equal(fake.kept[0].sequence == sequence, methods[i].repeat == REPEAT_RECORDED);
        if (methods[i].repeat == REPEAT_RECORDED) {
            assert_true(fake.kept[0].done);
            assert_int_equal(fake.kept[0].reply.status, first.header.status);
        }
    }
}

/* ---- what another broker did not read ---------------------------------------------------------------------------- */

/* A request with one id, or without a message, in the log of one of the sessions. */
static void note(unsigned i, struct frame_header header, uint64_t id)
{
    Memoryd__V1__ReleaseRequest m = MEMORYD__V1__RELEASE_REQUEST__INIT;
    uint8_t bytes[MEMORYD_HEADER_LONG], payload[64];
    struct iovec iov[2] = {{.iov_base = bytes}, {.iov_base = payload}};

    m.n_buffers = id != 0;
    m.buffers = &id;
    assert_int_equal(envelope_pack(&m.base, payload, sizeof(payload), &iov[1].iov_len), 0);
    header.payload_length = (uint32_t)iov[1].iov_len;
    iov[0].iov_len = frame_encode(bytes, FRAME_FROM_CLIENT, &header);
    assert_int_not_equal(release_log_put(&fake.releases[i].log, iov), 0);
}

static void what_is_in_a_release_log_is_done_once_and_kept(void **state)
{
    fake.n_releases = 2;
    fake.releases[0].session = first.client.session;
    fake.releases[1].session = second.client.session;
    note(0, HEADER(RELEASE, 8), 77);
    note(1, HEADER(UNRESERVE, 9), 0);
    assert_int_equal(rpc_replay_releases(&rpc), 0);
    assert_int_equal(fake.released.n, 1);
    assert_int_equal(fake.released.id[0], 77);
    assert_int_equal(fake.kept[0].sequence, 8);
    assert_true(fake.kept[0].done);
    /* nobody is told */
    assert_int_equal(first.replies + second.replies, 0);
    assert_int_equal(first.finished + second.finished, 0);

    /* the next broker finds it again; and the client repeats it */
    fake.calls = 0;
    assert_int_equal(rpc_replay_releases(&rpc), 0);
    packet(&first, HEADER(RELEASE, 8), NULL);
    assert_int_equal(fake.calls, 0);
    assert_int_equal(first.replies, 1);
    assert_int_equal(first.header.status, 0);
}

static void I8_nothing_else_is_served_from_a_release_log(void **state)
{
    size_t n;
    const struct schema_method *methods = schema_methods(&n);

    fake.n_releases = 1;
    fake.releases[0].session = first.client.session;
    for (size_t i = 0; i < n; i++) {
        if (methods[i].id == METHOD_RELEASE || methods[i].id == METHOD_UNRESERVE)
            continue;
        memset(&fake.releases[0].log, 0, sizeof(fake.releases[0].log));
        note(0, (struct frame_header){.method = methods[i].id, .sequence = 5}, 0);
        assert_int_equal(rpc_replay_releases(&rpc), 0);
    }
    note(0, (struct frame_header){.method = 9999, .sequence = 6}, 0);
    note(0, (struct frame_header){.method = METHOD_RELEASE, .fd_count = 1, .sequence = 7}, 1);
    assert_int_equal(rpc_replay_releases(&rpc), 0);
    assert_int_equal(fake.calls, 0);

    /* a message that is none ends nothing but itself, and what is behind it is served */
    memset(&fake.releases[0].log, 0, sizeof(fake.releases[0].log));
    note(0, HEADER(RELEASE, 20), 1);
    note(0, HEADER(RELEASE, 21), 2);
    memset(fake.releases[0].log.cells[0] + MEMORYD_HEADER_SIZE, 0xff, 3);
    assert_int_equal(rpc_replay_releases(&rpc), 0);
    assert_int_equal(fake.calls, 1);
    assert_int_equal(fake.released.id[0], 2);
    assert_int_equal(first.finished, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_repeated_request_is_answered_and_not_executed_again),
        TEST(a_refusal_is_kept_too),
        TEST(descriptors_come_anew),
        TEST(what_cannot_be_exported_any_more_has_its_status),
        TEST(a_kept_reply_with_too_few_columns_is_refused),
        TEST(a_reply_is_kept_before_what_follows_is_done),
        TEST(a_repeat_is_answered_before_what_follows_is_done),
        TEST(what_nobody_waits_for_settles_too),
        TEST(a_reply_that_waits_has_nothing_open),
        TEST(what_was_opened_beforehand_leaves_at_once),
        TEST(what_has_gone_meanwhile_has_its_status),
        TEST(without_descriptors_a_reply_waits),
        TEST(HELLO_does_not_wait_for_descriptors),
        TEST(one_that_is_running_is_answered_where_it_was_asked_again),
        TEST(one_that_is_running_moves_from_a_connection_that_is_not_yet_lost),
        TEST(one_that_ends_without_a_client_is_answered_later),
        TEST(one_sequence_twice_on_one_connection_is_a_breach),
        TEST(acknowledged_replies_are_forgotten),
        TEST(one_beyond_is_acknowledged_by_recorded_requests),
        TEST(a_resume_acknowledges),
        TEST(one_too_many_is_refused_and_not_kept),
        TEST(an_old_client_is_served_as_before),
        TEST(a_broker_that_died_over_it_is_told_of),
        TEST(a_request_in_execution_is_recorded),
        TEST(harmless_requests_are_not_kept),
        TEST(the_table_says_what_is_kept),
        TEST(what_is_in_a_release_log_is_done_once_and_kept),
        TEST(I8_nothing_else_is_served_from_a_release_log),
    };

    return test_run(tests, NULL, NULL);
}
