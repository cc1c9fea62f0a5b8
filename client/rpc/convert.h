/* SPDX-License-Identifier: Apache-2.0 */
/* Small steps that several stubs take: calls without a result, and from messages to plain structs. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/utf8.h"
#include "proto/memoryd.pb-c.h"
#include "rpc/channel.h"
#include "rpc/stubs.h"

struct memclient_buffer_info;

/*
 * channel_call() with a connection that the route gives; and once more with a new one, if the session of the former
 * turned out to be lost, and nothing can have been done in it.
 */
int call_request(struct rpc_route route, const struct channel_request *request);

/* The same without descriptors; decode() makes the result of the reply. */
static inline int call_reply(struct rpc_route route, enum method method, const ProtobufCMessage *message,
                            channel_decode *decode, void *result)
{
    const struct channel_request request = {.method = method, .message = message, .decode = decode, .result = result};

    return call_request(route, &request);
}

/* And for a method whose reply says no more than that it was done. */
static inline int call_done(struct rpc_route route, enum method method, const ProtobufCMessage *message)
{
    return call_reply(route, method, message, NULL, NULL);
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
