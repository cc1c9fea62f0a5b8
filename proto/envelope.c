/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a payload against its schema before it is decoded; envelope.h says why.
 *
 * The wire format in short: a message is a sequence of fields, each a tag (field number and wire type) and a value. A
 * value is a varint, four or eight bytes, or a length and as many bytes, which are a string, bytes, packed numbers or
 * another message.
 */
#include "proto/envelope.h"

#include <assert.h>
#include <stdbool.h>

#include "base/utf8.h"

struct cursor {
    const uint8_t *p;
    size_t left;
};

static bool read_varint(struct cursor *c, unsigned most, uint64_t *value)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < most && i < c->left; i++) {
        v |= (uint64_t)(c->p[i] & 0x7f) << (7 * i);
        if (!(c->p[i] & 0x80)) {
            c->p += i + 1;
            c->left -= i + 1;
            *value = v;
            return true;
        }
    }
    return false;
}

/* Takes n bytes from the front. */
static bool read_bytes(struct cursor *c, uint64_t n, struct cursor *bytes)
{
    if (n > c->left)
        return false;
    *bytes = (struct cursor){.p = c->p, .left = (size_t)n};
    c->p += n;
    c->left -= (size_t)n;
    return true;
}

static ProtobufCWireType wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    }
    return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
}

/* Are these the bytes of complete numbers of that wire type? */
static bool packed_is_sound(ProtobufCWireType type, struct cursor c)
{
    uint64_t ignored;

    switch (type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        while (c.left)
            if (!read_varint(&c, 10, &ignored))
                return false;
        return true;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        return c.left % 4 == 0;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        return c.left % 8 == 0;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        break;
    }
    return false;
}

/* The recursion is as deep as the schema, which a test keeps finite. */
static int scan_message(const ProtobufCMessageDescriptor *descriptor, struct cursor c)
{
    unsigned unknown = 0;

    while (c.left) {
        const ProtobufCFieldDescriptor *field;
        struct cursor value = {.left = 0};
        uint64_t tag, number;
        int r;

        if (!read_varint(&c, 5, &tag) || tag > UINT32_MAX || !(tag >> 3))
            return ENVELOPE_E_MALFORMED;
        switch (tag & 7) {
        case PROTOBUF_C_WIRE_TYPE_VARINT:
            if (!read_varint(&c, 10, &number))
                return ENVELOPE_E_MALFORMED;
            break;
        case PROTOBUF_C_WIRE_TYPE_64BIT:
            if (!read_bytes(&c, 8, &value))
                return ENVELOPE_E_MALFORMED;
            break;
        case PROTOBUF_C_WIRE_TYPE_32BIT:
            if (!read_bytes(&c, 4, &value))
                return ENVELOPE_E_MALFORMED;
            break;
        case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
            if (!read_varint(&c, 5, &number) || !read_bytes(&c, number, &value))
                return ENVELOPE_E_MALFORMED;
            break;
        default: /* groups, and two types without a meaning */
            return ENVELOPE_E_MALFORMED;
        }

        field = protobuf_c_message_descriptor_get_field(descriptor, (unsigned)(tag >> 3));
        if (!field) {
            if (++unknown > MEMORYD_UNKNOWN_FIELDS_MAX)
                return ENVELOPE_E_UNKNOWN_FIELDS;
            continue;
        }
        if ((tag & 7) != (uint64_t)wire_type_of(field->type)) {
            /* repeated numbers may be packed, whatever the schema says */
            if (field->label != PROTOBUF_C_LABEL_REPEATED || (tag & 7) != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED ||
                !packed_is_sound(wire_type_of(field->type), value))
                return ENVELOPE_E_MALFORMED;
            continue;
        }
        if (field->type == PROTOBUF_C_TYPE_STRING && !utf8_is_text((const char *)value.p, value.left))
            return ENVELOPE_E_NOT_TEXT;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            r = scan_message(field->descriptor, value);
            if (r)
                return r;
        }
    }
    return 0;
}

int envelope_unpack(const ProtobufCMessageDescriptor *descriptor, const void *payload, size_t n, struct arena *arena,
                    ProtobufCMessage **messagep)
{
    ProtobufCMessage *message;
    int r;

    r = scan_message(descriptor, (struct cursor){.p = payload, .left = n});
    if (r)
        return r;
    arena_reset(arena);
    message = protobuf_c_message_unpack(descriptor, &arena->allocator, n, payload);
    if (!message)
        return arena->exhausted ? ENVELOPE_E_TOO_COSTLY : ENVELOPE_E_MALFORMED;
    *messagep = message;
    return 0;
}

int envelope_pack(const ProtobufCMessage *message, void *buffer, size_t size, size_t *n)
{
    size_t needed = protobuf_c_message_get_packed_size(message);
    size_t written;

    if (needed > size)
        return ENVELOPE_E_TOO_LONG;
    written = protobuf_c_message_pack(message, buffer);
    assert(written == needed);
    *n = written;
    return 0;
}

const char *envelope_error_text(int error)
{
    static const char *const texts[] = {[_ENVELOPE_E_SUCCESS] = "a sound message",
#define X(name, text) [ENVELOPE_E_##name] = text,
                                        ENVELOPE_ERRORS(X)
#undef X
    };

    return (size_t)error < sizeof(texts) / sizeof(texts[0]) ? texts[error] : "an unknown error";
}
