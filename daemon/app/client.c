/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where net, rpc and broker meet: one struct client joins a connection to what is served on it. The broker knows it as
 * its session's `connection`, and has the processes of its clients watched here.
 */

#include <errno.h>
#include <stdlib.h>

#include "app/app.h"
#include "base/hash.h"
#include "net/connection.h"

struct client {
    struct app *app;
    struct connection *connection;
    struct rpc_client rpc;
};

/* ---- net → rpc --------------------------------------------------------------------------------------------------- */

static struct net_share share_of_peer(void *userdata, const struct peer *peer)
{
    const struct app *app = userdata;
    const struct account_policy *policy =
        account_policy_find(&app->limits, peer->uid, peer->gid, peer->groups, peer->n_groups);
    uint64_t sessions = policy ? policy->user[ACCOUNT_SESSIONS] : ACCOUNT_DEFAULT;

    return (struct net_share){
        .percent = account_policy_share(&app->limits, peer->uid, policy),
        .connections = settings_connections(
            app, sessions != ACCOUNT_DEFAULT ? sessions : app->config->uid_limits[CONFIG_LIMIT_SESSIONS]),
    };
}

static bool on_opened(void *userdata, struct connection *connection)
{
    struct app *app = userdata;
    struct client *client = calloc(1, sizeof(*client));

    if (!client)
        return false;
    client->app = app;
    client->connection = connection;
    rpc_client_init(&client->rpc, &app->rpc, client, &connection->peer, connection->who);
    connection->userdata = client;
    (void)event_del(&app->idle_event);
    return true;
}

static int on_packet(void *userdata, struct connection *connection, const struct frame_header *header,
                     const uint8_t *payload, struct fdset *fds)
{
    struct client *client = connection->userdata;

    return rpc_client_packet(&client->rpc, header, payload, fds);
}

static void on_refused(void *userdata, struct connection *connection, int error, const uint8_t *packet, size_t size)
{
    struct client *client = connection->userdata;

    rpc_client_refused(&client->rpc, error, packet, size);
}

static enum outgoing_fds on_open_fds(void *userdata, struct connection *connection, struct outgoing *reply,
                                     struct fdset *fds)
{
    struct client *client = connection->userdata;

    return rpc_client_open_fds(&client->rpc, reply, fds);
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

static void on_end(void *userdata, uid_t uid, int fd)
{
    struct app *app = userdata;

    doors_end(app->doors, uid, fd);
    loop_arm_doors(app);
}

static unsigned on_unended(void *userdata, uid_t uid, unsigned *all)
{
    return doors_unended(((struct app *)userdata)->doors, uid, all);
}

const struct net_handler client_net_handler = {
    .share = share_of_peer,
    .opened = on_opened,
    .packet = on_packet,
    .refused = on_refused,
    .open_fds = on_open_fds,
    .closed = on_closed,
    .end = on_end,
    .unended = on_unended,
};

/* ---- rpc → net --------------------------------------------------------------------------------------------------- */

static void transport_reply(void *connection, const struct outgoing *reply)
{
    connection_reply(((struct client *)connection)->connection, reply);
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

static void transport_hold(void *connection, bool held)
{
    connection_hold(((struct client *)connection)->connection, held);
}

static void transport_finish(void *connection)
{
    connection_finish(((struct client *)connection)->connection);
}

static void transport_fail(void *connection, int error)
{
    app_fail(((struct client *)connection)->app, error);
}

static int transport_door(void *connection, int *ret_fd, struct problem *problem)
{
    struct client *client = connection;

    loop_arm_doors(client->app);
    return doors_serve(client->app->doors, client->connection->who.uid, client->rpc.session, ret_fd, problem);
}

static int transport_redeem(void *connection, uint64_t ticket, bool memory, struct handle_shown *ret,
                            struct problem *problem)
{
    struct client *client = connection;

    return doors_redeem(client->app->doors, client->connection->who.uid, client->rpc.session, ticket, memory, ret,
                        problem);
}

static void transport_end(void *connection, int fd)
{
    const struct client *client = connection;

    on_end(client->app, client->connection->who.uid, fd);
}

const struct rpc_transport client_rpc_transport = {
    .reply = transport_reply,
    .event = transport_event,
    .drop_events = transport_drop_events,
    .established = transport_established,
    .hold = transport_hold,
    .finish = transport_finish,
    .fail = transport_fail,
    .door = transport_door,
    .redeem = transport_redeem,
    .end = transport_end,
};

/* ---- broker → host ----------------------------------------------------------------------------------------------- */

static void host_event(void *userdata, void *connection, const struct broker_event *event)
{
    rpc_client_event(&((struct client *)connection)->rpc, event);
}

static void host_disconnect(void *userdata, void *connection)
{
    rpc_client_disconnect(&((struct client *)connection)->rpc);
}

static void host_connection_info(void *userdata, void *connection, struct connection_info *ret)
{
    struct client *client = connection;
    size_t queued = client->connection->queued;

    ret->fds_in_flight = connection_fds_in_flight(client->connection);
    ret->queued_bytes = queued > UINT32_MAX ? UINT32_MAX : (uint32_t)queued;
    ret->requests = client->rpc.n_requests;
}

struct process_watch {
    struct app *app;
    uint64_t session;
    uid_t uid;
    struct event event;
    struct user_task task;
    UT_hash_handle hh;
};

static void process_exited(struct user_task *task)
{
    struct process_watch *watch = container_of(task, struct process_watch, task);
    struct app *app = watch->app;
    int r;

    app->n_exits--;
    /* the broker unwatches it, which frees it */
    r = broker_session_exited(app->broker, watch->session);
    if (r < 0)
        app_fail(app, r);
}

/* One process may have thousands of sessions. */
static void on_exited(evutil_socket_t fd, short events, void *userdata)
{
    struct process_watch *watch = userdata;

    watch->app->n_exits++;
    net_task_submit(&watch->task, watch->app->net, watch->uid);
}

static int host_watch_process(void *userdata, uint64_t session, uid_t uid, int pidfd)
{
    struct app *app = userdata;
    struct process_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return -ENOMEM;
    watch->app = app;
    watch->session = session;
    watch->uid = uid;
    watch->task.run = process_exited;
    /* once is enough: a process dies once */
    if (event_assign(&watch->event, app->base, pidfd, EV_READ, on_exited, watch) < 0 ||
        event_add(&watch->event, NULL) < 0) {
        free(watch);
        return -ENOMEM;
    }
    HASH_ADD(hh, app->processes, session, sizeof(watch->session), watch);
    if (!watch->hh.tbl) {
        (void)event_del(&watch->event);
        free(watch);
        return -ENOMEM;
    }
    return 0;
}

static void host_unwatch_process(void *userdata, uint64_t session)
{
    struct app *app = userdata;
    struct process_watch *watch;

    HASH_FIND(hh, app->processes, &session, sizeof(session), watch);
    if (!watch)
        return;
    HASH_DEL(app->processes, watch);
    (void)event_del(&watch->event);
    if (watch->task.user)
        app->n_exits--;
    net_task_cancel(&watch->task);
    free(watch);
}

static void host_schedule(void *userdata, uint64_t in_ms)
{
    struct app *app = userdata;
    /* a day is as good as forever: the broker says again then when it wants to be called */
    struct timeval tv = loop_timeval(in_ms > 86400000 ? 86400000 : in_ms);

    if (event_add(&app->tick_event, &tv) < 0)
        app_fail(app, -ENOMEM);
}

static const char *host_crowded(void *userdata, void *connection)
{
    return connection_crowded(((struct client *)connection)->connection);
}

static bool host_is_left(void *userdata)
{
    const struct app *app = userdata;

    return app->net->n_leaving || app->n_exits;
}

static void host_take_turn(void *userdata, struct user_task *task, uid_t uid)
{
    net_task_submit(task, ((struct app *)userdata)->net, uid);
}

static void host_give_up_turn(void *userdata, struct user_task *task)
{
    net_task_cancel(task);
}

void client_host_init(struct app *app)
{
    app->host = (struct broker_host){
        .userdata = app,
        .event = host_event,
        .disconnect = host_disconnect,
        .watch_process = host_watch_process,
        .unwatch_process = host_unwatch_process,
        .schedule = host_schedule,
        .crowded = host_crowded,
        .is_left = host_is_left,
        .take_turn = host_take_turn,
        .give_up_turn = host_give_up_turn,
        .connection_info = host_connection_info,
        .reload = configuration_reload,
        .check_config = configuration_check,
    };
}
