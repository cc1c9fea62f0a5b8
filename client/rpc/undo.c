/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One case per kind of grant. The requests are posted: nobody waits for their replies, since
 * whoever runs this is waiting for something else.
 */
#include "rpc/undo.h"

#include <string.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "rpc/channel.h"

static void release(struct channel *channel, const Memoryd__V1__Buffers *reply)
{
    Memoryd__V1__ReleaseRequest request = MEMORYD__V1__RELEASE_REQUEST__INIT;
    uint64_t ids[MEMORYD_BATCH_MAX];
    size_t n = 0;

    for (size_t i = 0; i < reply->n_ids && i < MEMORYD_BATCH_MAX; i++)
        if (reply->ids[i])
            ids[n++] = reply->ids[i];
    if (!n)
        return;
    request.n_buffers = n;
    request.buffers = ids;
    channel_post(channel, METHOD_RELEASE, &request.base);
}

static void unreserve(struct channel *channel, const Memoryd__V1__ReserveReply *reply)
{
    Memoryd__V1__UnreserveRequest request = MEMORYD__V1__UNRESERVE_REQUEST__INIT;

    request.reservation = reply->reservation;
    channel_post(channel, METHOD_UNRESERVE, &request.base);
}

static void revoke_tokens(struct channel *channel, const Memoryd__V1__ShareReply *reply)
{
    static const uint8_t none[MEMORYD_TOKEN_SIZE];

    for (size_t i = 0; i + MEMORYD_TOKEN_SIZE <= reply->tokens.len; i += MEMORYD_TOKEN_SIZE) {
        Memoryd__V1__RevokeRequest request = MEMORYD__V1__REVOKE_REQUEST__INIT;

        if (!memcmp(reply->tokens.data + i, none, sizeof(none)))
            continue;
        request.token.data = reply->tokens.data + i;
        request.token.len = MEMORYD_TOKEN_SIZE;
        channel_post(channel, METHOD_REVOKE, &request.base);
    }
}

void undo_reply(struct channel *channel, enum method method, const ProtobufCMessage *reply)
{
    switch (method) {
    case METHOD_ALLOC:
    case METHOD_IMPORT:
    case METHOD_ADOPT:
    case METHOD_OPEN:
    case METHOD_LOOKUP:
        release(channel, (const Memoryd__V1__Buffers *)reply);
        break;
    case METHOD_RESERVE:
        unreserve(channel, (const Memoryd__V1__ReserveReply *)reply);
        break;
    case METHOD_SHARE:
        revoke_tokens(channel, (const Memoryd__V1__ShareReply *)reply);
        break;
    /* these grant nothing */
    case METHOD_HELLO:
    case METHOD_GOODBYE:
    case METHOD_PING:
    case METHOD_SUBSCRIBE:
    case METHOD_RELEASE:
    case METHOD_EXPORT:
    case METHOD_REVOKE:
    case METHOD_PUBLISH:
    case METHOD_DISCARD:
    case METHOD_MOVE:
    case METHOD_DESTROY:
    case METHOD_INFO:
    case METHOD_NAME_BIND:
    case METHOD_NAME_UNBIND:
    case METHOD_UNRESERVE:
    case METHOD_PLACE:
    case METHOD_STATUS:
    case METHOD_CHECK:
    case METHOD_UPGRADE:
    case METHOD_RELOAD:
    case METHOD_LIST_NODES:
    case METHOD_LIST_POOLS:
    case METHOD_LIST_BUFFERS:
    case METHOD_LIST_SESSIONS:
    case METHOD_LIST_RESERVATIONS:
    case METHOD_LIST_NAMES:
    case METHOD_LIST_TOKENS:
    case METHOD_EVENT_PRESSURE:
    case METHOD_EVENT_DISCARDED:
    case METHOD_EVENT_NAME:
    case METHOD_EVENT_SHUTDOWN:
    case METHOD_EVENT_LOST:
        break;
    }
}
