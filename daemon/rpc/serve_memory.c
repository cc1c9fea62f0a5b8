/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is done to a buffer (PUBLISH, DISCARD, MOVE, DESTROY, INFO) and to addresses (RESERVE, UNRESERVE, PLACE).
 */

#include "rpc/request.h"
#include "rpc/serve.h"

int serve_publish(const struct call *call, const Memoryd__V1__PublishRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct request *request = request_new(call, sizeof(*request), request_done, NULL);

    if (!request)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
    return request_go(request, op_publish(&request->op, m->buffer, m->future_only));
}

int serve_discard(const struct call *call, const Memoryd__V1__DiscardRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct request *request = request_new(call, sizeof(*request), request_done, NULL);

    if (!request)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
    return request_go(request, op_discard(&request->op, m->buffer, m->offset, m->length));
}

int serve_move(const struct call *call, const Memoryd__V1__MoveRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct request *request = request_new(call, sizeof(*request), request_done, NULL);

    if (!request)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
    return request_go(request, op_move(&request->op, m->buffer, m->node));
}

int serve_destroy(const struct call *call, const Memoryd__V1__DestroyRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct request *request = request_new(call, sizeof(*request), request_done, NULL);

    if (!request)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
    return request_go(request, op_destroy(&request->op, m->buffer, m->force));
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
    struct problem problem = PROBLEM_NULL;
    struct info_request *info = request_new(call, sizeof(*info), answer_info, NULL);

    if (!info)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
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
    struct problem problem = PROBLEM_NULL;
    struct reserve_request *reserve = request_new(call, sizeof(*reserve), answer_reserve, NULL);

    if (!reserve)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
    return request_go(&reserve->request, op_reserve(&reserve->request.op, m->size, m->alignment, m->address,
                                                    &reserve->id, &reserve->address));
}

int serve_unreserve(const struct call *call, const Memoryd__V1__UnreserveRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct request *request = request_new(call, sizeof(*request), request_done, NULL);

    if (!request)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
    return request_go(request, op_unreserve(&request->op, m->reservation));
}

int serve_place(const struct call *call, const Memoryd__V1__PlaceRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct request *request = request_new(call, sizeof(*request), request_done, NULL);

    if (!request)
        return call_refuse(call, STATUS_NO_MEMORY, &problem);
    return request_go(request, op_place(&request->op, m->buffer, m->reservation, m->offset));
}
