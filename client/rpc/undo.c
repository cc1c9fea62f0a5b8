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

static void undo_holds(struct channel *channel, const Memoryd__V1__Buffers *reply)
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

static void undo_range(struct channel *channel, const Memoryd__V1__ReserveReply *reply)
{
    Memoryd__V1__UnreserveRequest request = MEMORYD__V1__UNRESERVE_REQUEST__INIT;

    request.reservation = reply->reservation;
    channel_post(channel, METHOD_UNRESERVE, &request.base);
}

static void undo_tokens(struct channel *channel, const Memoryd__V1__ShareReply *reply)
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

void undo_reply(struct channel *channel, enum method_grants grants, const ProtobufCMessage *reply)
{
    switch (grants) {
    case GRANTS_NOTHING:
        break;
    case GRANTS_HOLDS:
        undo_holds(channel, (const Memoryd__V1__Buffers *)reply);
        break;
    case GRANTS_RANGE:
        undo_range(channel, (const Memoryd__V1__ReserveReply *)reply);
        break;
    case GRANTS_TOKENS:
        undo_tokens(channel, (const Memoryd__V1__ShareReply *)reply);
        break;
    }
}
