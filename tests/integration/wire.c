/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h. */
#include "tests/integration/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/envelope.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

static bool try_to_connect(struct wire *wire)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_ok(fd);
    memcpy(address.sun_path, wire->broker->socket, strlen(wire->broker->socket) + 1);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return false;
    }
    wire->fd = fd;
    return true;
}

/* A broker that is being replaced may close the connection before it has read anything. */
static bool try_to_introduce(struct wire *wire)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;
    const Memoryd__V1__HelloReply *hello;
    static struct wire_packet packet, reply;

    m.version_max = MEMORYD_MINOR_MAX;
    m.session = wire->session;
    if (wire->session)
        m.secret = (ProtobufCBinaryData){.len = sizeof(wire->secret), .data = wire->secret};
    if (!try_to_connect(wire))
        return false;
    wire_request(wire, &packet, METHOD_HELLO, &m.base);
    wire_send(wire, &packet);
    if (!wire_receive(wire, &reply)) {
        wire_lose(wire);
        return false;
    }
    assert_int_equal(reply.status, STATUS_OK);
    hello = wire_message(&reply);
    wire->session = hello->session;
    memcpy(wire->secret, hello->secret.data, sizeof(wire->secret));
    return true;
}

void wire_open(struct wire *wire, const struct broker_process *broker)
{
    *wire = (struct wire){.broker = broker, .fd = -1};
    assert_true(try_to_introduce(wire));
}

void wire_open_as(struct wire *wire, const struct broker_process *broker, uid_t uid)
{
    uid_t own = geteuid();

    assert_ok(seteuid(uid));
    wire_open(wire, broker);
    assert_ok(seteuid(own));
}

void wire_lose(struct wire *wire)
{
    wire->fd = fd_close(wire->fd);
}

void wire_resume(struct wire *wire)
{
    assert_true(WAIT_UNTIL(try_to_introduce(wire)));
}

void wire_close(struct wire *wire)
{
    (void)wire_do(wire, METHOD_GOODBYE, NULL, STATUS_OK);
    wire_lose(wire);
}

void wire_request(struct wire *wire, struct wire_packet *packet, uint16_t method, const ProtobufCMessage *message)
{
    packet->method = method;
    packet->sequence = ++wire->sequence;
    packet->size = packet->n_fds = 0;
    if (message)
        assert_int_equal(envelope_pack(message, packet->payload, sizeof(packet->payload), &packet->size), 0);
}

void wire_send(const struct wire *wire, const struct wire_packet *packet)
{
    static uint8_t bytes[MEMORYD_FRAME_MAX + MEMORYD_HEADER_LONG];
    struct frame_header header = {
        .method = packet->method,
        .fd_count = (uint16_t)packet->n_fds,
        .payload_length = (uint32_t)packet->size,
        .sequence = packet->sequence,
        .acknowledged = wire->acknowledged < packet->sequence ? wire->acknowledged : packet->sequence - 1,
        .answered = wire->answered < packet->sequence ? wire->answered : 0,
    };
    size_t size = frame_encode(bytes, FRAME_FROM_CLIENT, &header);

    memcpy(bytes + size, packet->payload, packet->size);
    /* who has gone on the other side is learnt by receiving */
    if (fd_send(wire->fd, bytes, size + packet->size, packet->fds, packet->n_fds, 0) < 0)
        assert_true(errno == EPIPE || errno == ECONNRESET);
}

bool wire_receive(const struct wire *wire, struct wire_packet *reply)
{
    static uint8_t bytes[MEMORYD_FRAME_MAX];
    struct fd_received received;
    struct frame_header header;
    const uint8_t *payload;

    assert_true(wait_readable(wire->fd));
    /* before its last packets comes that it left ours unread */
    do
        received = fd_receive(wire->fd, bytes, sizeof(bytes), MEMORYD_FDS_MAX, MSG_DONTWAIT);
    while (received.size < 0 && errno == ECONNRESET);
    if (received.size <= 0)
        return false;
    assert_int_equal(frame_decode(bytes, (size_t)received.size, received.n, FRAME_FROM_BROKER, &header, &payload), 0);
    reply->method = header.method;
    reply->sequence = header.sequence;
    reply->status = header.status;
    reply->size = header.payload_length;
    memcpy(reply->payload, payload, reply->size);
    reply->n_fds = received.n;
    memcpy(reply->fds, received.fds, received.n * sizeof(received.fds[0]));
    return true;
}

void wire_close_fds(struct wire_packet *packet)
{
    for (unsigned i = 0; i < packet->n_fds; i++)
        fd_close(packet->fds[i]);
    packet->n_fds = 0;
}

struct wire_packet *wire_call(const struct wire *wire, const struct wire_packet *packet)
{
    static struct wire_packet reply;

    wire_send(wire, packet);
    assert_true(wire_receive(wire, &reply));
    assert_int_equal(reply.sequence, packet->sequence);
    assert_int_equal(reply.method, packet->method);
    return &reply;
}

const void *wire_message(const struct wire_packet *reply)
{
    static struct arena arena;
    ProtobufCMessage *message;
    const ProtobufCMessageDescriptor *descriptor =
        reply->status ? &memoryd__v1__problem__descriptor : schema_method(reply->method)->reply;

    arena_deinit(&arena);
    assert_int_equal(arena_init(&arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES), 0);
    assert_int_equal(envelope_unpack(descriptor, reply->payload, reply->size, &arena, &message), 0);
    return message;
}

const void *wire_do(struct wire *wire, uint16_t method, const ProtobufCMessage *message, uint32_t status)
{
    static struct wire_packet packet;
    struct wire_packet *reply;

    wire_request(wire, &packet, method, message);
    reply = wire_call(wire, &packet);
    wire_close_fds(reply);
    if (reply->status != status)
        fail_msg("method %u: %s instead of %s", method, status_name(reply->status), status_name(status));
    /* all before it have been received, too */
    if (wire->acknowledged < packet.sequence)
        wire->acknowledged = packet.sequence;
    return wire_message(reply);
}
