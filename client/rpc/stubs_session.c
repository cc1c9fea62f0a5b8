/* SPDX-License-Identifier: Apache-2.0 */
/* How all stubs call; the stubs of the session itself; events. */
#include "rpc/stubs.h"

#include <errno.h>

#include "base/cleanup.h"
#include "rpc/channel.h"
#include "rpc/convert.h"

/* ---- where to ---------------------------------------------------------------------------------------------------- */

static int connect_there(void *of, uint64_t deadline, struct channel **channel)
{
    *channel = channel_ref(of);
    return 0;
}

struct rpc_route rpc_route_of(struct channel *channel, uint64_t deadline)
{
    return (struct rpc_route){.connect = connect_there, .of = channel, .deadline = deadline};
}

int call_request(struct rpc_route route, const struct channel_request *request)
{
    int r = 0;

    for (unsigned n = 0; n < 2; n++) {
        _cleanup_(channel_unrefp) struct channel *channel = NULL;

        r = route.connect(route.of, route.deadline, &channel);
        if (!r && request->changes)
            channel_cache_changes(channel, request->changes);
        if (!r)
            r = channel_call(channel, request, route.deadline);
        if (!r && request->answered_by)
            *request->answered_by = steal_ptr(&channel);
        if (r != -ENOTCONN)
            break;
    }
    return r;
}

/* ---- the session ------------------------------------------------------------------------------------------------- */

int rpc_hello(struct rpc_route route, const char *program, bool administrator, struct rpc_occupied *occupied,
              struct rpc_session *session)
{
    Memoryd__V1__HelloRequest request;

    hello_request(&request, program, NULL, true);
    request.administrator = administrator;
    request.n_occupied_brokers = request.n_occupied_addresses = request.n_occupied_sizes = occupied->n;
    request.occupied_brokers = occupied->brokers;
    request.occupied_addresses = occupied->addresses;
    request.occupied_sizes = occupied->sizes;
    return call_reply(route, METHOD_HELLO, &request.base, hello_decode, session);
}

int rpc_goodbye(struct rpc_route route)
{
    return call_done(route, METHOD_GOODBYE, REQUEST(Goodbye, goodbye));
}

int rpc_ping(struct rpc_route route)
{
    return call_done(route, METHOD_PING, REQUEST(Ping, ping));
}

int rpc_subscribe(struct rpc_route route, uint32_t mask)
{
    return call_done(route, METHOD_SUBSCRIBE, REQUEST(Subscribe, subscribe, .mask = mask));
}

int rpc_subscribe_to(struct rpc_route route, uint32_t mask, uint64_t buffer, const char *name)
{
    return call_done(route, METHOD_SUBSCRIBE_TO,
                     REQUEST(SubscribeTo, subscribe_to, .mask = mask, .buffer = buffer,
                             .name = (char *)(uintptr_t)(name ? name : "")));
}

void rpc_subscribe_again(struct channel *channel, uint32_t mask, uint64_t buffer, const char *name)
{
    channel_post(channel, METHOD_SUBSCRIBE_TO,
                 REQUEST(SubscribeTo, subscribe_to, .mask = mask, .buffer = buffer,
                         .name = (char *)(uintptr_t)(name ? name : "")));
}

static void event_of_buffer(const Memoryd__V1__BufferEvent *e, struct memclient_event *event)
{
    event->kind = (unsigned)e->kind;
    event->buffer = e->buffer;
    event->session = e->session;
    event->uid = e->uid;
    event->pid = (int32_t)e->pid;
}

static void event_of_death(const Memoryd__V1__DeathEvent *e, struct memclient_event *event)
{
    event->kind = MEMCLIENT_EVENT_DEATH;
    event->session = e->session;
    event->uid = e->uid;
    event->pid = (int32_t)e->pid;
    event->end = (unsigned)e->end;
    event->exit_status = (int)e->status;
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
    case METHOD_EVENT_BUFFER:
        event_of_buffer((const Memoryd__V1__BufferEvent *)message, event);
        return true;
    case METHOD_EVENT_DEATH:
        event_of_death((const Memoryd__V1__DeathEvent *)message, event);
        return true;
    case METHOD_EVENT_HISTORY:
        event->kind = MEMCLIENT_EVENT_HISTORY;
        return true;
    case METHOD_EVENT_LOST:
        event->kind = MEMCLIENT_EVENT_LOST;
        return true;
    }
    return false;
}
