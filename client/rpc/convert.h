/* SPDX-License-Identifier: Apache-2.0 */
/* Small steps that several stubs take: calls without a result, and from messages to plain structs. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/utf8.h"
#include "proto/memoryd.pb-c.h"
#include "rpc/channel.h"

struct memclient_buffer_info;

/* A request without descriptors, of whose reply take() makes the result. */
static inline int call_take(struct channel *channel, enum method method, const ProtobufCMessage *message,
                            channel_take *take, void *result, uint64_t deadline)
{
    const struct channel_request request = {.method = method, .message = message, .take = take, .result = result};

    return channel_call(channel, &request, deadline);
}

/* The same for a method whose reply says no more than that it was done. */
static inline int call_done(struct channel *channel, enum method method, const ProtobufCMessage *message,
                            uint64_t deadline)
{
    return call_take(channel, method, message, NULL, NULL, deadline);
}

/* A string into an array of its own; one that is too long is cut between characters. */
static inline void copy_text(char *to, size_t size, const char *from)
{
    size_t n = strlen(from);

    if (n >= size)
        n = utf8_cut(from, size - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

#define COPY_TEXT(array, from) copy_text((array), sizeof(array), (from))

void convert_buffer_info(const Memoryd__V1__BufferInfo *message, struct memclient_buffer_info *info);
