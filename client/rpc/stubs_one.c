/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs of one buffer, its tokens, and ranges of the arena. */
#include "rpc/stubs.h"

#include <errno.h>

#include "base/align.h"
#include "proto/status.h"
#include "rpc/channel.h"
#include "rpc/convert.h"

static int decode_info(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    convert_buffer_info((const Memoryd__V1__BufferInfo *)reply, result);
    return 0;
}

int rpc_info(struct rpc_route route, uint64_t id, struct memclient_buffer_info *info)
{
    return call_reply(route, METHOD_INFO, REQUEST(Info, info, .buffer = id), decode_info, info);
}

int rpc_publish(struct rpc_route route, uint64_t id, bool future_only)
{
    return call_done(route, METHOD_PUBLISH, REQUEST(Publish, publish, .buffer = id, .future_only = future_only));
}

int rpc_discard(struct rpc_route route, uint64_t id, uint64_t offset, uint64_t length)
{
    return call_done(route, METHOD_DISCARD,
                     REQUEST(Discard, discard, .buffer = id, .offset = offset, .length = length));
}

int rpc_move(struct rpc_route route, uint64_t id, uint32_t node)
{
    return call_done(route, METHOD_MOVE, REQUEST(Move, move, .buffer = id, .node = node));
}

int rpc_destroy(struct rpc_route route, uint64_t id, bool force)
{
    return call_done(route, METHOD_DESTROY, REQUEST(Destroy, destroy, .buffer = id, .force = force));
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int decode_shared(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__ShareReply *r = (const Memoryd__V1__ShareReply *)reply;
    struct rpc_shared *shared = result;

    if (r->n_statuses != shared->n || r->tokens.len != shared->n * sizeof(shared->tokens[0]))
        return -EPROTO;
    memcpy(shared->statuses, r->statuses, r->n_statuses * sizeof(*r->statuses));
    memcpy(shared->tokens, r->tokens.data, r->tokens.len);
    COPY_TEXT(shared->sentence, r->sentence);
    return 0;
}

int rpc_share(struct rpc_route route, unsigned n, const uint64_t *ids, const struct memclient_share_options *options,
              struct rpc_shared *shared)
{
    shared->n = n;
    return call_reply(route, METHOD_SHARE,
                      REQUEST(Share, share, .n_buffers = n, .buffers = (uint64_t *)ids, .rights = options->rights,
                              .flags = options->flags, .uses = options->uses, .expiry_ms = options->expiry_ms,
                              .uid = options->uid, .gid = options->gid, .pid = (uint32_t)options->pid),
                      decode_shared, shared);
}

int rpc_revoke(struct rpc_route route, const struct memclient_token *token, uint64_t serial, uint64_t buffer)
{
    const ProtobufCBinaryData bytes = {.data = (uint8_t *)token, .len = token ? sizeof(token->bytes) : 0};

    return call_done(route, METHOD_REVOKE, REQUEST(Revoke, revoke, .token = bytes, .serial = serial, .buffer = buffer));
}

/* ---- the arena --------------------------------------------------------------------------------------------------- */

static int decode_reserved(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__ReserveReply *r = (const Memoryd__V1__ReserveReply *)reply;
    struct rpc_reserved *reserved = result;

    if (!r->reservation || !r->address || !is_page_aligned(r->address))
        return -EPROTO;
    reserved->reservation = r->reservation;
    reserved->address = r->address;
    return 0;
}

int rpc_reserve(struct rpc_route route, uint64_t size, uint64_t alignment, uint64_t address,
                struct rpc_reserved *reserved)
{
    _cleanup_(channel_unrefp) struct channel *channel = NULL;
    const struct channel_request request = {
        .method = METHOD_RESERVE,
        .message = REQUEST(Reserve, reserve, .size = size, .alignment = alignment, .address = address),
        .decode = decode_reserved,
        .result = reserved,
        .answered_by = &channel,
    };
    int r = call_request(route, &request);

    if (!r)
        reserved->generation = channel->generation;
    return r;
}

int rpc_unreserve(struct rpc_route route, uint64_t reservation)
{
    return call_done(route, METHOD_UNRESERVE, REQUEST(Unreserve, unreserve, .reservation = reservation));
}

int rpc_place(struct rpc_route route, uint64_t id, uint64_t reservation, uint64_t offset)
{
    return call_done(route, METHOD_PLACE,
                     REQUEST(Place, place, .buffer = id, .reservation = reservation, .offset = offset));
}
