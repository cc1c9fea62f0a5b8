/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet as either side receives it: header, method, message.
 *
 * The input is one byte of bits, one for the number of descriptors that came with it, and the
 * packet. Bit 0: it comes from the broker. Bit 1: correct what the header says about the packet, so
 * that what lies behind it is reached. What is accepted must be stable: said again and read again
 * it is the same.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* The header in the packet is the one that we would have written, up to what a longer one has
 * behind. */
static void check_header(const uint8_t *packet, enum frame_side side, const struct frame_header *header)
{
    static const size_t header_length_at = 6;
    uint8_t again[MEMORYD_HEADER_LONG];
    size_t n = frame_encode(again, side, header);

    memcpy(again + header_length_at, packet + header_length_at, 2);
    require(!memcmp(again, packet, n));
}

static void check_message(const ProtobufCMessageDescriptor *descriptor, const uint8_t *payload, size_t n)
{
    static struct arena arena = ARENA_NULL;
    static uint8_t once[2 * MEMORYD_FRAME_MAX], twice[2 * MEMORYD_FRAME_MAX];
    ProtobufCMessage *message;
    size_t n_once, n_twice;

    if (!arena.block)
        require(!arena_init(&arena, MEMORYD_ARENA_BYTES, MEMORYD_ARENA_PIECES));
    if (envelope_unpack(descriptor, payload, n, &arena, &message))
        return;
    require(arena.used <= arena.size && arena.pieces <= arena.pieces_max);
    /* numbers of the wrong width take more room when they are written properly */
    if (envelope_pack(message, once, sizeof(once), &n_once))
        return;
    /* which may be too costly only because it has become longer */
    if (envelope_unpack(descriptor, once, n_once, &arena, &message))
        return;
    require(!envelope_pack(message, twice, sizeof(twice), &n_twice));
    require(n_once == n_twice && !memcmp(once, twice, n_once));
}

static void correct_header(uint8_t *packet, size_t size, unsigned n_fds)
{
    bool is_long = packet[6] == MEMORYD_HEADER_LONG && size >= MEMORYD_HEADER_LONG;
    uint8_t length = is_long ? MEMORYD_HEADER_LONG : MEMORYD_HEADER_SIZE;
    const uint8_t start[8] = {'M', 'E', 'M', 'D', MEMORYD_VERSION, 0, length};
    size_t payload_length = size - length;

    memcpy(packet, start, sizeof(start));
    for (unsigned i = 0; i < 4; i++)
        packet[8 + i] = (uint8_t)(payload_length >> 8 * i);
    packet[12] = (uint8_t)n_fds;
    packet[13] = 0;
}

static void check_packet(const uint8_t *packet, size_t size, unsigned n_fds, enum frame_side side)
{
    const ProtobufCMessageDescriptor *descriptor = NULL;
    const struct schema_method *method;
    struct frame_header header;
    const uint8_t *payload;
    uint16_t version, number;
    uint64_t sequence;

    (void)frame_peek(packet, size, &version, &number, &sequence);
    if (frame_decode(packet, size, n_fds, side, &header, &payload))
        return;
    require(payload >= packet + MEMORYD_HEADER_SIZE && payload + header.payload_length == packet + size);
    check_header(packet, side, &header);

    method = schema_method(header.method);
    if (!header.sequence)
        descriptor = schema_event(header.method) ? schema_event(header.method)->message : NULL;
    else if (method && side == FRAME_FROM_CLIENT)
        descriptor = method->request;
    else if (method)
        descriptor = header.status ? &memoryd__v1__problem__descriptor : method->reply;
    if (descriptor)
        check_message(descriptor, payload, header.payload_length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum frame_side side;
    uint8_t *packet;

    if (size < 2)
        return 0;
    side = data[0] & 1 ? FRAME_FROM_BROKER : FRAME_FROM_CLIENT;
    size -= 2;
    /* an allocation of just this size, so that a sanitizer sees a byte read too many */
    packet = malloc(size ? size : 1);
    require(packet != NULL);
    memcpy(packet, data + 2, size);
    if (data[0] & 2 && size >= MEMORYD_HEADER_SIZE)
        correct_header(packet, size, data[1]);
    check_packet(packet, size, data[1], side);
    free(packet);
    return 0;
}
