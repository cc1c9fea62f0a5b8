/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events to a client. Each has a key: a newer event about the same thing replaces an unread one. If too many different
 * ones wait, all are dropped, and one LOST says that the client has to look for itself.
 */

#include <string.h>

#include "broker/broker.h"
#include "proto/envelope.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "rpc/rpc.h"

#define EVENTS_OF_HOLDS \
    (MEMORYD__V1__EVENT_KIND__EVENT_HELD | MEMORYD__V1__EVENT_KIND__EVENT_LEFT | MEMORYD__V1__EVENT_KIND__EVENT_DIED)

/* FNV-1a: it only distinguishes events, and a collision costs a hint. */
static uint64_t key_of(uint32_t kind, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t key = UINT64_C(0xcbf29ce484222325) ^ kind;

    for (size_t i = 0; i < size; i++)
        key = (key ^ bytes[i]) * UINT64_C(0x100000001b3);
    return key;
}

static bool send_event(struct rpc_client *client, uint16_t method, const ProtobufCMessage *message, uint64_t key)
{
    struct rpc *rpc = client->rpc;
    struct frame_header header = {.method = method};
    size_t size;

    if (envelope_pack(message, rpc->out, MEMORYD_PAYLOAD_MAX, &size))
        return true;
    return rpc->transport->event(client->connection, &header, rpc->out, size, key);
}

/* About the same thing is also how somebody holds a buffer: whether it came, left or died. */
static uint64_t key_of_holder(const struct broker_event *event)
{
    const uint32_t of_holds = EVENTS_OF_HOLDS;
    const uint64_t about[] = {event->buffer, event->session};

    return key_of(event->kind & of_holds ? of_holds : event->kind, about, sizeof(about));
}

static bool send_queued(struct rpc_client *client, const struct broker_event *event)
{
    Memoryd__V1__BufferEvent buffer = MEMORYD__V1__BUFFER_EVENT__INIT;
    Memoryd__V1__DeathEvent death = MEMORYD__V1__DEATH_EVENT__INIT;
    Memoryd__V1__HistoryEvent history = MEMORYD__V1__HISTORY_EVENT__INIT;

    if (event->kind == MEMORYD__V1__EVENT_KIND__EVENT_HISTORY)
        return send_event(client, METHOD_EVENT_HISTORY, &history.base, key_of(event->kind, NULL, 0));
    if (event->kind == MEMORYD__V1__EVENT_KIND__EVENT_DEATH) {
        death.session = event->session;
        death.uid = event->uid;
        death.pid = (uint32_t)event->pid;
        death.end = (Memoryd__V1__HistoryEntry__End)event->end;
        death.status = event->status;
        return send_event(client, METHOD_EVENT_DEATH, &death.base, key_of_holder(event));
    }
    buffer.kind = (Memoryd__V1__EventKind)event->kind;
    buffer.buffer = event->buffer;
    buffer.session = event->session;
    buffer.uid = event->uid;
    buffer.pid = (uint32_t)event->pid;
    return send_event(client, METHOD_EVENT_BUFFER, &buffer.base, key_of_holder(event));
}

static bool send_kind(struct rpc_client *client, const struct broker_event *event)
{
    Memoryd__V1__PressureEvent pressure = MEMORYD__V1__PRESSURE_EVENT__INIT;
    Memoryd__V1__DiscardedEvent discarded = MEMORYD__V1__DISCARDED_EVENT__INIT;
    Memoryd__V1__NameEvent name = MEMORYD__V1__NAME_EVENT__INIT;
    Memoryd__V1__ShutdownEvent shutdown = MEMORYD__V1__SHUTDOWN_EVENT__INIT;

    if (event->kind == MEMORYD__V1__EVENT_KIND__EVENT_PRESSURE) {
        pressure.pool = (char *)(uintptr_t)event->pool;
        pressure.level = event->level;
        return send_event(client, METHOD_EVENT_PRESSURE, &pressure.base,
                          key_of(event->kind, event->pool, strlen(event->pool)));
    }
    if (event->kind == MEMORYD__V1__EVENT_KIND__EVENT_DISCARDED) {
        discarded.buffer = event->buffer;
        return send_event(client, METHOD_EVENT_DISCARDED, &discarded.base,
                          key_of(event->kind, &event->buffer, sizeof(event->buffer)));
    }
    if (event->kind == MEMORYD__V1__EVENT_KIND__EVENT_NAME) {
        name.name = (char *)(uintptr_t)event->name;
        name.bound = event->bound;
        name.buffer = event->buffer;
        return send_event(client, METHOD_EVENT_NAME, &name.base, key_of(event->kind, event->name, strlen(event->name)));
    }
    if (event->kind == MEMORYD__V1__EVENT_KIND__EVENT_SHUTDOWN)
        return send_event(client, METHOD_EVENT_SHUTDOWN, &shutdown.base, key_of(event->kind, NULL, 0));
    return event->kind != MEMORYD__V1__EVENT_KIND__EVENT_LOST && send_queued(client, event);
}

void rpc_client_event(struct rpc_client *client, const struct broker_event *event)
{
    Memoryd__V1__LostEvent lost = MEMORYD__V1__LOST_EVENT__INIT;

    if (send_kind(client, event))
        return;
    client->rpc->transport->drop_events(client->connection);
    (void)send_event(client, METHOD_EVENT_LOST, &lost.base, key_of(MEMORYD__V1__EVENT_KIND__EVENT_LOST, NULL, 0));
}
