/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs that are about one buffer, its tokens, or a range of the arena. */
#include "rpc/stubs.h"

#include <errno.h>

#include "base/align.h"
#include "proto/status.h"
#include "rpc/channel.h"
#include "rpc/convert.h"

static int take_info(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    (void)fds;
    convert_buffer_info((const Memoryd__V1__BufferInfo *)reply, result);
    return 0;
}

int rpc_info(struct channel *channel, uint64_t id, uint64_t deadline,
             struct memclient_buffer_info *info)
{
    Memoryd__V1__InfoRequest request = MEMORYD__V1__INFO_REQUEST__INIT;

    request.buffer = id;
    return call_take(channel, METHOD_INFO, &request.base, take_info, info, deadline);
}

int rpc_publish(struct channel *channel, uint64_t id, bool future_only, uint64_t deadline)
{
    Memoryd__V1__PublishRequest request = MEMORYD__V1__PUBLISH_REQUEST__INIT;

    request.buffer = id;
    request.future_only = future_only;
    return call_done(channel, METHOD_PUBLISH, &request.base, deadline);
}

int rpc_discard(struct channel *channel, uint64_t id, uint64_t offset, uint64_t length,
                uint64_t deadline)
{
    Memoryd__V1__DiscardRequest request = MEMORYD__V1__DISCARD_REQUEST__INIT;

    request.buffer = id;
    request.offset = offset;
    request.length = length;
    return call_done(channel, METHOD_DISCARD, &request.base, deadline);
}

int rpc_move(struct channel *channel, uint64_t id, uint32_t node, uint64_t deadline)
{
    Memoryd__V1__MoveRequest request = MEMORYD__V1__MOVE_REQUEST__INIT;

    request.buffer = id;
    request.node = node;
    return call_done(channel, METHOD_MOVE, &request.base, deadline);
}

int rpc_destroy(struct channel *channel, uint64_t id, bool force, uint64_t deadline)
{
    Memoryd__V1__DestroyRequest request = MEMORYD__V1__DESTROY_REQUEST__INIT;

    request.buffer = id;
    request.force = force;
    return call_done(channel, METHOD_DESTROY, &request.base, deadline);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static int take_shared(void *result, const ProtobufCMessage *reply, struct fdset *fds)
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

int rpc_share(struct channel *channel, unsigned n, const uint64_t *ids,
              const struct memclient_share_options *options, uint64_t deadline,
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
    return call_take(channel, METHOD_SHARE, &request.base, take_shared, shared, deadline);
}

int rpc_revoke(struct channel *channel, const struct memclient_token *token, uint64_t serial,
               uint64_t buffer, uint64_t deadline)
{
    Memoryd__V1__RevokeRequest request = MEMORYD__V1__REVOKE_REQUEST__INIT;

    if (token) {
        request.token.data = (uint8_t *)token->bytes;
        request.token.len = sizeof(token->bytes);
    }
    request.serial = serial;
    request.buffer = buffer;
    return call_done(channel, METHOD_REVOKE, &request.base, deadline);
}

/* ---- the arena ------------------------------------------------------------------------------ */

static int take_reserved(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__ReserveReply *r = (const Memoryd__V1__ReserveReply *)reply;
    struct rpc_reserved *reserved = result;

    (void)fds;
    if (!r->reservation || !r->address || !is_page_aligned(r->address))
        return -EPROTO;
    *reserved = (struct rpc_reserved){.reservation = r->reservation, .address = r->address};
    return 0;
}

int rpc_reserve(struct channel *channel, uint64_t size, uint64_t alignment, uint64_t address,
                uint64_t deadline, struct rpc_reserved *reserved)
{
    Memoryd__V1__ReserveRequest request = MEMORYD__V1__RESERVE_REQUEST__INIT;

    request.size = size;
    request.alignment = alignment;
    request.address = address;
    return call_take(channel, METHOD_RESERVE, &request.base, take_reserved, reserved, deadline);
}

int rpc_unreserve(struct channel *channel, uint64_t reservation, uint64_t deadline)
{
    Memoryd__V1__UnreserveRequest request = MEMORYD__V1__UNRESERVE_REQUEST__INIT;

    request.reservation = reservation;
    return call_done(channel, METHOD_UNRESERVE, &request.base, deadline);
}

int rpc_place(struct channel *channel, uint64_t id, uint64_t reservation, uint64_t offset,
              uint64_t deadline)
{
    Memoryd__V1__PlaceRequest request = MEMORYD__V1__PLACE_REQUEST__INIT;

    request.buffer = id;
    request.reservation = reservation;
    request.offset = offset;
    return call_done(channel, METHOD_PLACE, &request.base, deadline);
}
