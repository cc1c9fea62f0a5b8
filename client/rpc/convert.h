/* SPDX-License-Identifier: Apache-2.0 */
/* What several stubs have in common: making requests, calling, and turning messages into plain structs. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/utf8.h"
#include "proto/memoryd.pb-c.h"
#include "rpc/channel.h"
#include "rpc/stubs.h"

struct memclient_buffer_info;

/*
 * A request in the caller's block. `Name` and `name` are the two ways in which protoc-c spells it; the rest are
 * members, as `.member = value`. Those that are not given are zero, which is the default of each.
 */
#define REQUEST(Name, name, ...)                                                                                  \
    (&(Memoryd__V1__##Name##Request){.base = PROTOBUF_C_MESSAGE_INIT(&memoryd__v1__##name##_request__descriptor), \
                                     __VA_ARGS__}                                                                 \
          .base)

/*
 * channel_call() with the route's connection; and once more with a new one, if the session of the first one was lost,
 * and nothing can have been done in it.
 */
int call_request(struct rpc_route route, const struct channel_request *request);

/* The same without descriptors; decode() makes the result of the reply. */
static inline int call_reply(struct rpc_route route, enum method method, const ProtobufCMessage *message,
                             channel_decode *decode, void *result)
{
    const struct channel_request request = {.method = method, .message = message, .decode = decode, .result = result};

    return call_request(route, &request);
}

/* The same for a method whose reply only says that it was done. */
static inline int call_done(struct rpc_route route, enum method method, const ProtobufCMessage *message)
{
    return call_reply(route, method, message, NULL, NULL);
}

/* Copies a string; one that is too long is cut between characters. */
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

/*
 * HELLO (hello.c). The request points into its arguments. `resume`: the session to resume, or NULL for a new one.
 * `release_log`: the broker is asked for the session's.
 */
void hello_request(Memoryd__V1__HelloRequest *request, const char *program, const struct rpc_session *resume,
                   bool release_log);
/* A channel_decode() of a struct rpc_session. */
int hello_decode(void *session, const ProtobufCMessage *reply, struct fdset *fds);
