/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is done to a buffer (PUBLISH, DISCARD, MOVE, DESTROY) and to addresses (RESERVE, UNRESERVE, PLACE).
 */

#include "rpc/request.h"

int serve_publish(struct request *request, const Memoryd__V1__PublishRequest *m)
{
    request_note(request, m->buffer, NULL);
    return op_publish(&request->op, m->buffer, m->future_only);
}

int serve_discard(struct request *request, const Memoryd__V1__DiscardRequest *m)
{
    request_note(request, m->buffer, NULL);
    return op_discard(&request->op, m->buffer, m->offset, m->length);
}

int serve_move(struct request *request, const Memoryd__V1__MoveRequest *m)
{
    request_note(request, m->buffer, NULL);
    return op_move(&request->op, m->buffer, m->node);
}

int serve_destroy(struct request *request, const Memoryd__V1__DestroyRequest *m)
{
    request_note(request, m->buffer, NULL);
    return op_destroy(&request->op, m->buffer, m->force);
}

int serve_reserve(struct request *request, const Memoryd__V1__ReserveRequest *m)
{
    return op_reserve(&request->op, m->size, m->alignment, m->address, &request->result.ReserveReply.id,
                      &request->result.ReserveReply.address);
}

void answer_ReserveReply(struct request *request)
{
    Memoryd__V1__ReserveReply reply = MEMORYD__V1__RESERVE_REPLY__INIT;

    reply.reservation = request->result.ReserveReply.id;
    reply.address = request->result.ReserveReply.address;
    reply_message(&request->call, &reply.base);
}

int serve_unreserve(struct request *request, const Memoryd__V1__UnreserveRequest *m)
{
    return op_unreserve(&request->op, m->reservation);
}

int serve_place(struct request *request, const Memoryd__V1__PlaceRequest *m)
{
    return op_place(&request->op, m->buffer, m->reservation, m->offset);
}
