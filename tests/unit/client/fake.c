/* SPDX-License-Identifier: Apache-2.0 */
/* See fake.h. Nothing here asserts by cmocka: it also runs in threads and children. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/client/fake.h"

#include "proto/schema.h"
#include "proto/sockio.h"
#include "tests/support/wait.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

bool fake_receive(int socket, struct fake_request *request)
{
    static __thread uint8_t packet[MEMORYD_FRAME_MAX];
    const uint8_t *payload;
    size_t n;
    int r;

    fdset_init(&request->fds);
    request->message = NULL;
    do {
        if (!wait_readable(socket))
            return false;
        r = sockio_recv(socket, packet, sizeof(packet), &n, &request->fds);
    } while (r == SOCKIO_E_AGAIN || r == SOCKIO_E_RESET);
    if (r == SOCKIO_E_EOF)
        return false;
    must(!r);
    must(!frame_decode(packet, n, fdset_count(&request->fds), FRAME_FROM_CLIENT, &request->header, &payload));
    must(schema_method(request->header.method));
    request->message = protobuf_c_message_unpack(schema_method(request->header.method)->request, NULL,
                                                 request->header.payload_length, payload);
    must(request->message);
    return true;
}

void fake_request_deinit(struct fake_request *request)
{
    if (request->message)
        protobuf_c_message_free_unpacked(request->message, NULL);
    fdset_deinit(&request->fds);
}

void fake_send(int socket, const void *bytes, size_t n, const int *fds, unsigned n_fds)
{
    struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};
    int r;

    do
        r = sockio_send(socket, &iov, 1, fds, n_fds);
    while (r == SOCKIO_E_AGAIN && wait_for_events(socket, POLLOUT, PATIENCE_MS));
    must(!r || r == SOCKIO_E_GONE);
}

static void send_message(int socket, enum method method, uint64_t sequence, unsigned status,
                         const ProtobufCMessage *message, const int *fds, unsigned n_fds)
{
    uint8_t packet[MEMORYD_FRAME_MAX];
    size_t n = message ? protobuf_c_message_get_packed_size(message) : 0;

    must(n <= MEMORYD_PAYLOAD_MAX);
    if (message)
        protobuf_c_message_pack(message, packet + MEMORYD_HEADER_SIZE);
    frame_encode(packet, FRAME_FROM_BROKER,
                 &(struct frame_header){.method = (uint16_t)method,
                                        .fd_count = (uint16_t)n_fds,
                                        .payload_length = (uint32_t)n,
                                        .sequence = sequence,
                                        .status = status});
    fake_send(socket, packet, MEMORYD_HEADER_SIZE + n, fds, n_fds);
}

void fake_reply(int socket, enum method method, uint64_t sequence, const ProtobufCMessage *message, const int *fds,
                unsigned n_fds)
{
    send_message(socket, method, sequence, 0, message, fds, n_fds);
}

void fake_refuse(int socket, enum method method, uint64_t sequence, unsigned status, const char *sentence)
{
    Memoryd__V1__Problem problem = MEMORYD__V1__PROBLEM__INIT;

    problem.sentence = (char *)sentence;
    send_message(socket, method, sequence, status, &problem.base, NULL, 0);
}

unsigned fake_nodes;

void fake_greet_with(int socket, uint64_t sequence, uint64_t session, unsigned version, int release_log)
{
    Memoryd__V1__HelloReply hello = MEMORYD__V1__HELLO_REPLY__INIT;
    uint8_t secret[MEMORYD_SECRET_SIZE];

    memset(secret, (int)session, sizeof(secret));
    hello.version = version;
    hello.session = session;
    hello.secret.data = secret;
    hello.secret.len = sizeof(secret);
    hello.broker = 7;
    hello.arena_base = 0x566000000000;
    hello.arena_size = UINT64_C(1) << 37;
    hello.base_page = (uint64_t)sysconf(_SC_PAGESIZE);
    hello.broker_uid = geteuid();
    hello.nodes = fake_nodes;
    fake_reply(socket, METHOD_HELLO, sequence, &hello.base, &release_log, release_log >= 0);
}

void fake_greet(int socket, uint64_t sequence, uint64_t session, unsigned version)
{
    fake_greet_with(socket, sequence, session, version, -1);
}

void fake_welcome(int socket, const struct fake_request *request, uint64_t session)
{
    fake_greet(socket, request->header.sequence, session, MEMORYD_MINOR_MAX);
}

void fake_buffers(int socket, enum method method, uint64_t sequence, uint64_t id, unsigned n, const int *fds)
{
    Memoryd__V1__Buffers b = MEMORYD__V1__BUFFERS__INIT;
    uint32_t zeros[MEMORYD_BATCH_MAX] = {0}, rights[MEMORYD_BATCH_MAX];
    uint64_t ids[MEMORYD_BATCH_MAX], pages[MEMORYD_BATCH_MAX], none[MEMORYD_BATCH_MAX] = {0};

    for (unsigned i = 0; i < n; i++) {
        ids[i] = id + i;
        rights[i] = 15;
        pages[i] = (uint64_t)sysconf(_SC_PAGESIZE);
    }
    b.n_statuses = b.n_ids = b.n_rights = b.n_sizes = b.n_bytes = b.n_granules = b.n_addresses = b.n_flags = n;
    b.statuses = b.flags = zeros;
    b.ids = ids;
    b.rights = rights;
    b.sizes = b.bytes = b.granules = pages;
    b.addresses = none;
    fake_reply(socket, method, sequence, &b.base, fds, fds ? n : 0);
}
