/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where net, rpc and broker meet: one struct client joins a connection to what is served on it. The broker knows it as
 * its session's `connection`.
 */

#include <stdlib.h>

#include "app/app.h"
#include "net/connection.h"

struct client {
    struct app *app;
    struct connection *connection;
    struct rpc_client rpc;
};

/* ---------------------------------------------------------------------------------------------------- net → rpc */

static bool on_opened(void *userdata, struct connection *connection)
{
    struct app *app = userdata;
    struct client *client = calloc(1, sizeof(*client));

    if (!client)
        return false;
    client->app = app;
    client->connection = connection;
    rpc_client_init(&client->rpc, &app->rpc, client, &connection->peer, connection->who);
    client->rpc.crowded = connection->crowded;
    connection->userdata = client;
    (void)event_del(&app->idle_event);
    return true;
}

static int on_packet(void *userdata, struct connection *connection, const struct frame_header *header,
                     const uint8_t *payload, struct fdset *fds)
{
    struct client *client = connection->userdata;

    (void)userdata;
    return rpc_client_packet(&client->rpc, header, payload, fds);
}

static void on_refused(void *userdata, struct connection *connection, int error, const uint8_t *packet, size_t size)
{
    struct client *client = connection->userdata;

    (void)userdata;
    rpc_client_refused(&client->rpc, error, packet, size);
}

static int on_closed(void *userdata, struct connection *connection)
{
    struct app *app = userdata;
    struct client *client = connection->userdata;
    int r = 0;

    if (client) {
        r = rpc_client_lost(&client->rpc);
        free(client);
    }
    loop_arm_idle(app);
    /* the last one to leave is all that the end waits for */
    if (app->stopping && app->net->n_connections == 1)
        app_stop(app);
    return r;
}

const struct net_handler client_net_handler = {
    .opened = on_opened,
    .packet = on_packet,
    .refused = on_refused,
    .closed = on_closed,
};

/* ---------------------------------------------------------------------------------------------------- rpc → net */

static void transport_reply(void *connection, const struct frame_header *header, const void *payload, size_t size,
                            struct fdset *fds)
{
    connection_reply(((struct client *)connection)->connection, header, payload, size, fds);
}

static bool transport_event(void *connection, const struct frame_header *header, const void *payload, size_t size,
                            uint64_t key)
{
    return connection_event(((struct client *)connection)->connection, header, payload, size, key);
}

static void transport_drop_events(void *connection)
{
    connection_drop_events(((struct client *)connection)->connection);
}

static void transport_established(void *connection)
{
    connection_established(((struct client *)connection)->connection);
}

static void transport_finish(void *connection)
{
    connection_finish(((struct client *)connection)->connection);
}

static void transport_fail(void *connection, int error)
{
    app_fail(((struct client *)connection)->app, error);
}

const struct rpc_transport client_rpc_transport = {
    .reply = transport_reply,
    .event = transport_event,
    .drop_events = transport_drop_events,
    .established = transport_established,
    .finish = transport_finish,
    .fail = transport_fail,
};

/* -------------------------------------------------------------------------------------------- broker → rpc, net */

void client_host_event(void *userdata, void *connection, const struct broker_event *event)
{
    struct client *client = connection;

    (void)userdata;
    rpc_client_event(&client->rpc, event);
}

void client_host_disconnect(void *userdata, void *connection)
{
    struct client *client = connection;

    (void)userdata;
    rpc_client_disconnect(&client->rpc);
}

void client_host_info(void *userdata, void *connection, uint32_t *fds_in_flight, uint32_t *queued_bytes)
{
    struct client *client = connection;
    size_t queued = client->connection->queued;

    (void)userdata;
    *fds_in_flight = connection_fds_in_flight(client->connection);
    *queued_bytes = queued > UINT32_MAX ? UINT32_MAX : (uint32_t)queued;
}
