/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of any type with something in every field, made from the schema alone, so that a test or
 * a seed covers a new message without knowing it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

struct filling {
    uint64_t number; /* of every number, cut to its width; enumerations get their last value */
    size_t repeated; /* how many of each repeated number or string */
    size_t rows;     /* how many of each repeated message */
    size_t text;     /* the length of strings */
    size_t bytes;    /* and of byte fields */
};

/* protobuf_c_message_free_unpacked(message, NULL) frees it. */
ProtobufCMessage *fill(const ProtobufCMessageDescriptor *descriptor, const struct filling *filling);
