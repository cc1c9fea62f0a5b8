/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs: the session itself, and events. */
#include "rpc/stubs.h"

#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/hello.h"

int rpc_hello(struct channel *channel, const char *program, bool administrator, struct rpc_occupied *occupied,
              uint64_t deadline, struct rpc_session *session)
{
    Memoryd__V1__HelloRequest request;

    hello_request(&request, program, NULL, true);
    request.administrator = administrator;
    request.n_occupied_brokers = request.n_occupied_addresses = request.n_occupied_sizes = occupied->n;
    request.occupied_brokers = occupied->brokers;
    request.occupied_addresses = occupied->addresses;
    request.occupied_sizes = occupied->sizes;
    return call_take(channel, METHOD_HELLO, &request.base, hello_take, session, deadline);
}

int rpc_goodbye(struct channel *channel, uint64_t deadline)
{
    Memoryd__V1__GoodbyeRequest request = MEMORYD__V1__GOODBYE_REQUEST__INIT;

    return call_done(channel, METHOD_GOODBYE, &request.base, deadline);
}

int rpc_ping(struct channel *channel, uint64_t deadline)
{
    Memoryd__V1__PingRequest request = MEMORYD__V1__PING_REQUEST__INIT;

    return call_done(channel, METHOD_PING, &request.base, deadline);
}

int rpc_subscribe(struct channel *channel, uint32_t mask, uint64_t deadline)
{
    Memoryd__V1__SubscribeRequest request = MEMORYD__V1__SUBSCRIBE_REQUEST__INIT;

    request.mask = mask;
    return call_done(channel, METHOD_SUBSCRIBE, &request.base, deadline);
}

bool rpc_event(unsigned id, const struct ProtobufCMessage *message, struct memclient_event *event)
{
    *event = (struct memclient_event)MEMCLIENT_EVENT_INIT;
    switch (id) {
    case METHOD_EVENT_PRESSURE: {
        const Memoryd__V1__PressureEvent *e = (const Memoryd__V1__PressureEvent *)message;

        event->kind = MEMCLIENT_EVENT_PRESSURE;
        event->level = e->level;
        COPY_TEXT(event->pool, e->pool);
        return true;
    }
    case METHOD_EVENT_DISCARDED:
        event->kind = MEMCLIENT_EVENT_DISCARDED;
        event->buffer = ((const Memoryd__V1__DiscardedEvent *)message)->buffer;
        return true;
    case METHOD_EVENT_NAME: {
        const Memoryd__V1__NameEvent *e = (const Memoryd__V1__NameEvent *)message;

        event->kind = MEMCLIENT_EVENT_NAME;
        event->buffer = e->buffer;
        event->bound = e->bound;
        COPY_TEXT(event->name, e->name);
        return true;
    }
    case METHOD_EVENT_SHUTDOWN:
        event->kind = MEMCLIENT_EVENT_SHUTDOWN;
        return true;
    case METHOD_EVENT_LOST:
        event->kind = MEMCLIENT_EVENT_LOST;
        return true;
    }
    return false;
}
