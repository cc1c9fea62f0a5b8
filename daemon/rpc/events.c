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
    return false;
}

void rpc_client_event(struct rpc_client *client, const struct broker_event *event)
{
    Memoryd__V1__LostEvent lost = MEMORYD__V1__LOST_EVENT__INIT;

    if (send_kind(client, event))
        return;
    client->rpc->transport->drop_events(client->connection);
    (void)send_event(client, METHOD_EVENT_LOST, &lost.base, key_of(MEMORYD__V1__EVENT_KIND__EVENT_LOST, NULL, 0));
}
