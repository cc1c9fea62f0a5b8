/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header, byte by byte; frame.h has the layout. Shifts work on every machine and at every alignment, and the
 * compiler turns them into single moves.
 */
#include "proto/frame.h"

#include <assert.h>
#include <string.h>

static const uint8_t magic[4] = {'M', 'E', 'M', 'D'};

enum {
    OFFSET_MAGIC = 0,
    OFFSET_VERSION = 4,
    OFFSET_HEADER_LENGTH = 6,
    OFFSET_PAYLOAD_LENGTH = 8,
    OFFSET_FD_COUNT = 12,
    OFFSET_METHOD = 14,
    OFFSET_SEQUENCE = 16,
    OFFSET_ACKNOWLEDGED = 24,
    OFFSET_STATUS = 24,
    OFFSET_RESERVED = 28,
    OFFSET_ANSWERED = 32,
};

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, (uint16_t)v);
    put16(p + 2, (uint16_t)(v >> 16));
}

static void put64(uint8_t *p, uint64_t v)
{
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

size_t frame_encode(uint8_t *bytes, enum frame_side side, const struct frame_header *header)
{
    size_t length = header->answered ? MEMORYD_HEADER_LONG : MEMORYD_HEADER_SIZE;

    assert(header->payload_length <= MEMORYD_FRAME_MAX - length);
    assert(header->fd_count <= MEMORYD_FDS_MAX);
    assert(header->method);

    memcpy(bytes + OFFSET_MAGIC, magic, sizeof(magic));
    put16(bytes + OFFSET_VERSION, MEMORYD_VERSION);
    put16(bytes + OFFSET_HEADER_LENGTH, (uint16_t)length);
    put32(bytes + OFFSET_PAYLOAD_LENGTH, header->payload_length);
    put16(bytes + OFFSET_FD_COUNT, header->fd_count);
    put16(bytes + OFFSET_METHOD, header->method);
    put64(bytes + OFFSET_SEQUENCE, header->sequence);
    switch (side) {
    case FRAME_FROM_CLIENT:
        assert(header->sequence && header->acknowledged < header->sequence);
        put64(bytes + OFFSET_ACKNOWLEDGED, header->acknowledged);
        if (header->answered) {
            assert(header->answered > header->acknowledged && header->answered < header->sequence);
            put64(bytes + OFFSET_ANSWERED, header->answered);
        }
        break;
    case FRAME_FROM_BROKER:
        assert((header->sequence || !header->status) && !header->answered);
        put32(bytes + OFFSET_STATUS, header->status);
        put32(bytes + OFFSET_RESERVED, 0);
        break;
    }
    return length;
}

int frame_decode(const void *packet, size_t size, unsigned n_fds, enum frame_side side, struct frame_header *header,
                 const uint8_t **payload)
{
    const uint8_t *p = packet;
    struct frame_header h = {.method = 0};
    uint16_t header_length;

    if (size > MEMORYD_FRAME_MAX)
        return FRAME_E_LONG;
    if (size < MEMORYD_HEADER_SIZE)
        return FRAME_E_SHORT;
    if (memcmp(p + OFFSET_MAGIC, magic, sizeof(magic)))
        return FRAME_E_MAGIC;
    if (get16(p + OFFSET_VERSION) != MEMORYD_VERSION)
        return FRAME_E_VERSION;
    header_length = get16(p + OFFSET_HEADER_LENGTH);
    if (header_length < MEMORYD_HEADER_SIZE || header_length > MEMORYD_HEADER_MAX || header_length > size)
        return FRAME_E_HEADER_LENGTH;
    h.payload_length = get32(p + OFFSET_PAYLOAD_LENGTH);
    if (h.payload_length != size - header_length)
        return FRAME_E_PAYLOAD_LENGTH;
    h.fd_count = get16(p + OFFSET_FD_COUNT);
    if (h.fd_count > MEMORYD_FDS_MAX)
        return FRAME_E_TOO_MANY_FDS;
    if (h.fd_count != n_fds && n_fds != FRAME_FDS_UNKNOWN)
        return FRAME_E_FD_COUNT;
    h.method = get16(p + OFFSET_METHOD);
    if (!h.method)
        return FRAME_E_METHOD;
    h.sequence = get64(p + OFFSET_SEQUENCE);

    switch (side) {
    case FRAME_FROM_CLIENT:
        h.acknowledged = get64(p + OFFSET_ACKNOWLEDGED);
        if (!h.sequence)
            return FRAME_E_SEQUENCE;
        if (h.acknowledged >= h.sequence)
            return FRAME_E_ACKNOWLEDGED;
        if (header_length >= MEMORYD_HEADER_LONG)
            h.answered = get64(p + OFFSET_ANSWERED);
        if (h.answered && (h.answered <= h.acknowledged || h.answered >= h.sequence))
            return FRAME_E_ANSWERED;
        break;
    case FRAME_FROM_BROKER:
        h.status = get32(p + OFFSET_STATUS);
        if (!h.sequence && h.status)
            return FRAME_E_STATUS;
        if (get32(p + OFFSET_RESERVED))
            return FRAME_E_RESERVED;
        break;
    }

    *header = h;
    *payload = p + header_length;
    return 0;
}

bool frame_peek(const void *packet, size_t size, uint16_t *version, uint16_t *method, uint64_t *sequence)
{
    const uint8_t *p = packet;

    if (size < OFFSET_ACKNOWLEDGED || memcmp(p + OFFSET_MAGIC, magic, sizeof(magic)))
        return false;
    *version = get16(p + OFFSET_VERSION);
    *method = get16(p + OFFSET_METHOD);
    *sequence = get64(p + OFFSET_SEQUENCE);
    return true;
}

const char *frame_error_text(int error)
{
    static const char *const texts[] = {[_FRAME_E_SUCCESS] = "a sound packet",
#define X(name, text) [FRAME_E_##name] = text,
                                        FRAME_ERRORS(X)
#undef X
    };

    return (size_t)error < sizeof(texts) / sizeof(texts[0]) ? texts[error] : "an unknown error";
}
