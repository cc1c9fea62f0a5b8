/* SPDX-License-Identifier: Apache-2.0 */
/* Writing through the descriptors' offsets, as protobuf-c itself does; fill.h says what for. */
#include "tests/unit/proto/fill.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    if (!p)
        abort();
    return p;
}

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(int);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    }
    abort();
}

static void fill_value(void *at, const ProtobufCFieldDescriptor *field, const struct filling *filling)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
        memcpy(at, &(uint32_t){(uint32_t)filling->number}, 4);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
        memcpy(at, &filling->number, 8);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = filling->number != 0;
        break;
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumDescriptor *e = field->descriptor;

        *(int *)at = filling->number ? e->values[e->n_values - 1].value : 0;
        break;
    }
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = allocate(filling->text + 1, 1);
        memset(*(char **)at, 'n', filling->text);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        if (filling->bytes) {
            ((ProtobufCBinaryData *)at)->len = filling->bytes;
            ((ProtobufCBinaryData *)at)->data = allocate(filling->bytes, 1);
            memset(((ProtobufCBinaryData *)at)->data, 0xb5, filling->bytes);
        }
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = fill(field->descriptor, filling);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        abort(); /* the protocol has none */
    }
}

ProtobufCMessage *fill(const ProtobufCMessageDescriptor *descriptor, const struct filling *filling)
{
    ProtobufCMessage *message = allocate(1, descriptor->sizeof_message);
    uint8_t *base = (uint8_t *)message;

    descriptor->message_init(message);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        uint8_t *at = base + field->offset;

        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = field->type == PROTOBUF_C_TYPE_MESSAGE ? filling->rows : filling->repeated;
            size_t size = size_of(field->type);
            uint8_t *values = n ? allocate(n, size) : NULL;

            for (size_t j = 0; j < n; j++)
                fill_value(values + j * size, field, filling);
            memcpy(base + field->quantifier_offset, &n, sizeof(n));
            memcpy(at, &values, sizeof(values));
        } else {
            fill_value(at, field, filling);
        }
    }
    return message;
}
