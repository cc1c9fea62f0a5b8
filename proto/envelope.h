/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the payload of a packet to a protobuf-c message, and back.
 *
 * protobuf-c trusts its input in ways that a broker cannot: it takes any number of unknown fields, cuts strings at a
 * NUL, accepts bytes that are not text, and allocates before it knows whether the rest is sound. So the payload is
 * first checked against the schema, without allocating; only a sound one is decoded, into a bounded arena.
 *
 * The rpc modules know which message belongs to which method, and validate its values.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/arena.h"
#include "proto/limits.h"

/* X(name, text) */
#define ENVELOPE_ERRORS(X)                                                            \
    X(MALFORMED, "a payload that is not the message its header announces")            \
    X(NOT_TEXT, "a string that is not UTF-8, or has a NUL in it")                     \
    X(UNKNOWN_FIELDS, "more than 16 unknown fields in one message")                   \
    X(TOO_COSTLY, "a message that takes more memory to decode than any sensible one") \
    X(TOO_LONG, "a message that does not fit into the packet")

enum envelope_error {
    _ENVELOPE_E_SUCCESS,
#define X(name, text) ENVELOPE_E_##name,
    ENVELOPE_ERRORS(X)
#undef X
};

/*
 * Decodes n bytes into the arena, which is reset first: the message lives until the arena's next use, and nobody frees
 * it. 0, or an enum envelope_error other than TOO_LONG; then *message is untouched.
 *
 * NOT_TEXT means that a user gave the client a bad name: answer it. The others mean that the client does not speak the
 * protocol.
 */
int envelope_unpack(const ProtobufCMessageDescriptor *descriptor, const void *payload, size_t n, struct arena *arena,
                    ProtobufCMessage **message);

/* Encodes into `buffer` and sets the length. 0, or ENVELOPE_E_TOO_LONG; then nothing is written. */
int envelope_pack(const ProtobufCMessage *message, void *buffer, size_t size, size_t *n);

/* The text of an enum envelope_error. */
const char *envelope_error_text(int error);
