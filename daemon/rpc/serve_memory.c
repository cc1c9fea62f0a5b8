/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is done to a buffer (PUBLISH, DISCARD, MOVE, DESTROY, INFO) and to addresses (RESERVE, UNRESERVE, PLACE).
 */

#include "rpc/request.h"
#include "rpc/serve.h"

int serve_publish(const struct call *call, const Memoryd__V1__PublishRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_publish(&request->op, m->buffer, m->future_only)) : 0;
}

int serve_discard(const struct call *call, const Memoryd__V1__DiscardRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_discard(&request->op, m->buffer, m->offset, m->length)) : 0;
}

int serve_move(const struct call *call, const Memoryd__V1__MoveRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_move(&request->op, m->buffer, m->node)) : 0;
}

int serve_destroy(const struct call *call, const Memoryd__V1__DestroyRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_destroy(&request->op, m->buffer, m->force)) : 0;
}

struct info_request {
    struct request request;
    struct buffer_info result;
};

static void answer_info(struct request *request)
{
    Memoryd__V1__BufferInfo reply;

    buffer_info_message(&reply, &((struct info_request *)request)->result);
    request_reply(request, &reply.base, NULL);
}

int serve_info(const struct call *call, const Memoryd__V1__InfoRequest *m)
{
    struct info_request *info = request_begin(call, sizeof(*info), answer_info, NULL);

    if (!info)
        return 0;
    return request_go(&info->request, op_info(&info->request.op, m->buffer, &info->result));
}

struct reserve_request {
    struct request request;
    uint64_t id;
    uint64_t address;
};

static void answer_reserve(struct request *request)
{
    struct reserve_request *reserve = (struct reserve_request *)request;
    Memoryd__V1__ReserveReply reply = MEMORYD__V1__RESERVE_REPLY__INIT;

    reply.reservation = reserve->id;
    reply.address = reserve->address;
    request_reply(request, &reply.base, NULL);
}

int serve_reserve(const struct call *call, const Memoryd__V1__ReserveRequest *m)
{
    struct reserve_request *reserve = request_begin(call, sizeof(*reserve), answer_reserve, NULL);

    if (!reserve)
        return 0;
    return request_go(&reserve->request, op_reserve(&reserve->request.op, m->size, m->alignment, m->address,
                                                    &reserve->id, &reserve->address));
}

int serve_unreserve(const struct call *call, const Memoryd__V1__UnreserveRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_unreserve(&request->op, m->reservation)) : 0;
}

int serve_place(const struct call *call, const Memoryd__V1__PlaceRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_place(&request->op, m->buffer, m->reservation, m->offset)) : 0;
}
