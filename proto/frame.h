/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixed header of a packet.
 *
 * The kernel keeps packets apart and descriptors with their packet, so the header need not delimit anything. It says
 * which message follows and to which request it belongs, without decoding it, and is compared with what the kernel
 * delivered: a packet whose header has another length or number of descriptors was damaged or made to confuse, and its
 * sender is not served.
 *
 *     offset  size
 *          0     4  magic: "MEMD"
 *          4     2  version: 1
 *          6     2  header length: 32, or 40 with `answered` (a later one may be longer, up to 64; the rest is skipped)
 *          8     4  payload length
 *         12     2  number of descriptors
 *         14     2  method
 *         16     8  sequence: of the request; 0 in an event, never in a request
 *         24     8  in a request: the sequence up to which the client needs no reply again
 *         24     4  from the broker: the status, 0 in an event
 *         28     4  from the broker: zero
 *         32     8  in a request, if the header is so long: one more sequence, beyond that, whose reply has arrived
 *
 * All numbers are little-endian. The first 24 bytes mean the same in every version, so that a packet of a version that
 * we do not speak can be answered (frame_peek()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/* Who sent it: the bytes after the first 24 differ. */
enum frame_side {
    FRAME_FROM_CLIENT,
    FRAME_FROM_BROKER,
};

/*
 * What can be wrong with a packet: X(name, text). The text is for logs, and for the sentence that a client gets before
 * its connection closes.
 */
#define FRAME_ERRORS(X)                                                               \
    X(SHORT, "a packet shorter than a header")                                        \
    X(DESCRIPTORS, "descriptors, which are taken at the door only (protocol 1.4)")    \
    X(LONG, "a packet longer than 65536 bytes")                                       \
    X(MAGIC, "a packet that does not begin with MEMD")                                \
    X(VERSION, "a packet of another protocol version")                                \
    X(HEADER_LENGTH, "a header length below 32, above 64 or beyond the packet")       \
    X(PAYLOAD_LENGTH, "a payload length that is not that of the packet")              \
    X(TOO_MANY_FDS, "more than 64 descriptors")                                       \
    X(FD_COUNT, "a number of descriptors other than came with the packet")            \
    X(METHOD, "method 0")                                                             \
    X(SEQUENCE, "a request with sequence 0")                                          \
    X(ACKNOWLEDGED, "a request that acknowledges a reply that cannot have been sent") \
    X(ANSWERED, "a request that acknowledges a reply twice, or before it was sent")   \
    X(STATUS, "an event with a status")                                               \
    X(RESERVED, "reserved bytes that are not zero")

enum frame_error {
    _FRAME_E_SUCCESS,
#define X(name, text) FRAME_E_##name,
    FRAME_ERRORS(X)
#undef X
};

struct frame_header {
    uint16_t method;
    uint16_t fd_count;
    uint32_t payload_length;
    uint64_t sequence;
    uint64_t acknowledged; /* from a client */
    uint64_t answered;     /* from a client, or 0 */
    uint32_t status;       /* from the broker */
};

/*
 * Writes the header and returns its length: MEMORYD_HEADER_SIZE bytes, or MEMORYD_HEADER_LONG with `answered`. The
 * numbers are our own, so they are within the limits.
 */
size_t frame_encode(uint8_t *bytes, enum frame_side side, const struct frame_header *header);

/* For a packet whose descriptors could not be received: their number is not compared. */
#define FRAME_FDS_UNKNOWN (~0u)

/*
 * Checks a packet of `size` bytes that came with `n_fds` descriptors from `side`, and sets its header and its payload,
 * which lies in the packet and is header->payload_length long. 0, or an enum frame_error; then nothing is written.
 */
int frame_decode(const void *packet, size_t size, unsigned n_fds, enum frame_side side, struct frame_header *header,
                 const uint8_t **payload);

/*
 * Reads what is the same in every version: enough to answer a packet that frame_decode() refused with FRAME_E_VERSION.
 * False: it is not a packet of this protocol.
 */
bool frame_peek(const void *packet, size_t size, uint16_t *version, uint16_t *method, uint64_t *sequence);

/* The text of an enum frame_error. */
const char *frame_error_text(int error);
