/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs that are about one buffer, its tokens, or a range of the arena. */
#include "rpc/stubs.h"

#include <errno.h>

#include "base/align.h"
#include "proto/status.h"
#include "rpc/channel.h"
#include "rpc/convert.h"

static int decode_info(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    (void)fds;
    convert_buffer_info((const Memoryd__V1__BufferInfo *)reply, result);
    return 0;
}

int rpc_info(struct rpc_route route, uint64_t id,
             struct memclient_buffer_info *info)
{
    Memoryd__V1__InfoRequest request = MEMORYD__V1__INFO_REQUEST__INIT;

    request.buffer = id;
    return call_reply(route, METHOD_INFO, &request.base, decode_info, info);
}

int rpc_publish(struct rpc_route route, uint64_t id, bool future_only)
{
    Memoryd__V1__PublishRequest request = MEMORYD__V1__PUBLISH_REQUEST__INIT;

    request.buffer = id;
    request.future_only = future_only;
    return call_done(route, METHOD_PUBLISH, &request.base);
}

int rpc_discard(struct rpc_route route, uint64_t id, uint64_t offset, uint64_t length)
{
    Memoryd__V1__DiscardRequest request = MEMORYD__V1__DISCARD_REQUEST__INIT;

    request.buffer = id;
    request.offset = offset;
    request.length = length;
    return call_done(route, METHOD_DISCARD, &request.base);
}

int rpc_move(struct rpc_route route, uint64_t id, uint32_t node)
{
    Memoryd__V1__MoveRequest request = MEMORYD__V1__MOVE_REQUEST__INIT;

    request.buffer = id;
    request.node = node;
    return call_done(route, METHOD_MOVE, &request.base);
}

int rpc_destroy(struct rpc_route route, uint64_t id, bool force)
{
    Memoryd__V1__DestroyRequest request = MEMORYD__V1__DESTROY_REQUEST__INIT;

    request.buffer = id;
    request.force = force;
    return call_done(route, METHOD_DESTROY, &request.base);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static int decode_shared(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__ShareReply *r = (const Memoryd__V1__ShareReply *)reply;
    struct rpc_shared *shared = result;

    (void)fds;
    if (r->n_statuses != shared->n || r->tokens.len != shared->n * sizeof(shared->tokens[0]))
        return -EPROTO;
    for (unsigned i = 0; i < shared->n; i++)
        shared->statuses[i] = r->statuses[i];
    memcpy(shared->tokens, r->tokens.data, r->tokens.len);
    COPY_TEXT(shared->sentence, r->sentence);
    return 0;
}

int rpc_share(struct rpc_route route, unsigned n, const uint64_t *ids,
              const struct memclient_share_options *options,
              struct rpc_shared *shared)
{
    Memoryd__V1__ShareRequest request = MEMORYD__V1__SHARE_REQUEST__INIT;

    shared->n = n;
    request.n_buffers = n;
    request.buffers = (uint64_t *)ids;
    request.rights = options->rights;
    request.flags = options->flags;
    request.uses = options->uses;
    request.expiry_ms = options->expiry_ms;
    request.uid = options->uid;
    request.gid = options->gid;
    request.pid = (uint32_t)options->pid;
    return call_reply(route, METHOD_SHARE, &request.base, decode_shared, shared);
}

int rpc_revoke(struct rpc_route route, const struct memclient_token *token, uint64_t serial,
               uint64_t buffer)
{
    Memoryd__V1__RevokeRequest request = MEMORYD__V1__REVOKE_REQUEST__INIT;

    if (token) {
        request.token.data = (uint8_t *)token->bytes;
        request.token.len = sizeof(token->bytes);
    }
    request.serial = serial;
    request.buffer = buffer;
    return call_done(route, METHOD_REVOKE, &request.base);
}

/* ---- the arena ------------------------------------------------------------------------------ */

static int decode_reserved(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__ReserveReply *r = (const Memoryd__V1__ReserveReply *)reply;
    struct rpc_reserved *reserved = result;

    (void)fds;
    if (!r->reservation || !r->address || !is_page_aligned(r->address))
        return -EPROTO;
    reserved->reservation = r->reservation;
    reserved->address = r->address;
    return 0;
}

int rpc_reserve(struct rpc_route route, uint64_t size, uint64_t alignment, uint64_t address,
                struct rpc_reserved *reserved)
{
    Memoryd__V1__ReserveRequest message = MEMORYD__V1__RESERVE_REQUEST__INIT;
    _cleanup_(channel_unrefp) struct channel *channel = NULL;
    const struct channel_request request = {
        .method = METHOD_RESERVE,
        .message = &message.base,
        .decode = decode_reserved,
        .result = reserved,
        .answered_by = &channel,
    };
    int r;

    message.size = size;
    message.alignment = alignment;
    message.address = address;
    r = call_request(route, &request);
    if (!r)
        reserved->generation = channel->generation;
    return r;
}

int rpc_unreserve(struct rpc_route route, uint64_t reservation)
{
    Memoryd__V1__UnreserveRequest request = MEMORYD__V1__UNRESERVE_REQUEST__INIT;

    request.reservation = reservation;
    return call_done(route, METHOD_UNRESERVE, &request.base);
}

int rpc_place(struct rpc_route route, uint64_t id, uint64_t reservation, uint64_t offset)
{
    Memoryd__V1__PlaceRequest request = MEMORYD__V1__PLACE_REQUEST__INIT;

    request.buffer = id;
    request.reservation = reservation;
    request.offset = offset;
    return call_done(route, METHOD_PLACE, &request.base);
}
