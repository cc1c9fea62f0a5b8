/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The broker's start and end. Each part is built by one function, which logs why that fails.
 */

#include "app/app.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/cleaner.h"
#include "log/log.h"
#include "net/connection.h"
#include "sandbox/sandbox.h"
#include "sys/sys.h"

static int build_broker(struct app *app)
{
    struct account_limits none;
    struct broker_options options = {
        .topology = &app->topology,
        .pools = app->pools,
        .work = app->work,
        .threads = settings_commit_threads(app->config),
        .limits = &app->limits,
        .host = &app->host,
        .grace_ms = app->config->grace_ms,
        .groups_root = "",
        .uid = geteuid(),
        .refuse_overflow_uid = settings_refuse_overflow_uid(app),
        .keeper = app->keeper,
        .inherited = app->inherited.fds,
        .n_inherited = app->inherited.n_fds,
        .survey = app->inherited.survey,
    };
    const struct doors_options doors = {
        .spawner = &app->spawner,
        .administrator = geteuid(),
    };
    struct net_limits net;
    int r;

    settings_accounts(app, &none);
    settings_net(app, &net);
    settings_arena(app, &options.arena_base, &options.arena_size);
    client_host_init(app);
    r = broker_new(&app->broker, &options);
    if (r == BROKER_E_LEDGER)
        return EXIT_LEDGER;
    if (!r)
        r = loop_watch_broker(app);
    if (!r)
        r = rpc_init(&app->rpc, app->broker, &client_rpc_transport, PACKAGE_VERSION, "");
    if (!r) {
        app->rpc_ready = true;
        configuration_show(app);
        app->rpc.keeper_pid = keeper_pid(app->keeper);
    }
    if (!r)
        r = rpc_replay_releases(&app->rpc);
    if (!r)
        r = doors_new(&app->doors, &doors);
    if (!r)
        r = net_new(&app->net, app->base, &client_net_handler, app, &net);
    if (r)
        log_error("cannot make the broker: %s", strerror(r < 0 ? -r : EINVAL));
    return r ? EXIT_FAILED : EXIT_OK;
}

static int build_loop(struct app *app)
{
    unsigned threads = settings_threads(app->config);
    int r = work_new(&app->work, threads);

    if (!r)
        r = loop_init(app);
    if (r)
        log_error("cannot make threads and loop: %s", strerror(r < 0 ? -r : EINVAL));
    return r ? EXIT_FAILED : EXIT_OK;
}

/* Last, so that no client is accepted in vain. The socket itself stays: new clients wait in it while a broker ends and
 * the next one starts. */
static int build_listener(struct app *app)
{
    int fd = fcntl(app->inherited.listener, F_DUPFD_CLOEXEC, 0);
    int r = fd < 0 ? -errno : listener_new(&app->listener, app->net, fd);

    if (!r)
        return EXIT_OK;
    log_error("cannot accept clients: %s", strerror(-r));
    (void)fd_close(fd);
    return EXIT_FAILED;
}

/* ---- what the log says of a start -------------------------------------------------------------------------------- */

static void app_log_pool(const struct pool *pool)
{
    static const char *const pages[] = {"any", "base", "transparent huge", "reserved huge"};
    char nodes[128] = "";
    size_t length = 0;

    for (uint32_t i = 0; i < pool->n_nodes && length < sizeof(nodes) - 16; i++)
        length += (size_t)snprintf(nodes + length, sizeof(nodes) - length, "%s%u", i ? "," : "", pool->nodes[i]);
    log_notice("pool %s: node%s %s, %s pages of %llu KiB, capacity %llu MiB, stock up to %llu MiB%s", pool->name,
               log_plural(pool->n_nodes), nodes, pages[pool->pages], (unsigned long long)pool->page_size >> 10,
               (unsigned long long)pool_capacity(pool) >> 20, (unsigned long long)pool_most_stock(pool) >> 20,
               pool->retired ? "; not configured any more, nothing is made there" : "");
}

static void app_log_recovered(const struct app *app)
{
    struct broker_holdings held;

    broker_holdings(app->broker, &held);
    if (held.buffers || held.sessions || held.names)
        log_notice("recovered: %llu buffer%s (%llu of them detached), %llu bytes, %llu session%s, %llu name%s",
                   (unsigned long long)held.buffers, log_plural(held.buffers), (unsigned long long)held.detached,
                   (unsigned long long)held.bytes, (unsigned long long)held.sessions, log_plural(held.sessions),
                   (unsigned long long)held.names, log_plural(held.names));
}

static void app_announce(const struct app *app, const char *path)
{
    const char *config = app->config->path;

    log_notice("configuration: %s%s", config ? config : "no file, the defaults",
               app->config_stale ? ", as it was before the mistakes in it" : "");
    for (uint32_t i = 0; i < pools_count(app->pools); i++)
        app_log_pool(pools_get(app->pools, i));
    app_log_recovered(app);
    log_notice("memoryd " PACKAGE_VERSION " is listening on %s", path ? path : "the socket it was given");
    if (app->options->autostart)
        place_leave_terminal();
    keeper_link_send(app->keeper, PACKET_READY);
}

static int app_build(struct app *app)
{
    int status = configuration_start(app);

    if (!status)
        status = build_loop(app);
    if (!status)
        status = build_broker(app);
    if (!status)
        status = build_listener(app);
    if (!status)
        metrics_serve(app);
    return status;
}

/* Nothing is changed any more. A client that got no last reply learns of the end now, not when the process is gone. */
static void app_leave(struct app *app)
{
    list_for_each_entry(connection, &app->net->connections, struct connection, in_connections)
        (void)shutdown(connection->fd, SHUT_RDWR);
    keeper_link_send(app->keeper, PACKET_LEFT);
}

static int app_run(struct app *app)
{
    loop_arm_idle(app);
    loop_run(app);
    if (!app->error)
        app->error = app->net->error;
    /* an error may be the first sign of a lost keeper */
    if (app->error)
        (void)loop_ask_keeper(app);
    if (app->orphaned || !app->error)
        broker_leave(app->broker);
    if (app->orphaned)
        return inherited_leave(app);
    if (app->error)
        log_error("shutting down after an error: %s", strerror(-app->error));
    else
        log_notice("shutting down");
    if (!app->error)
        app_leave(app);
    return app->error ? EXIT_FAILED : EXIT_OK;
}

/* Takes what the keeper hands over. An exit status. */
static int join_keeper(struct app *app)
{
    int r = keeper_link_new(&app->keeper, app->options->broker);

    app->cleaner = -ENOSYS;
    if (!r)
        r = inherited_receive(app);
    if (r == -EPIPE)
        return inherited_leave(app);
    if (r)
        log_error("cannot take over what the keeper holds: %s", strerror(-r));
    else if (app->cleaner >= 0)
        keeper_link_tell_cleaner(app->keeper, app->cleaner);
    else
        log_error("cannot start the cleaner: %s; should this broker hang when it dies, its clients would wait for it",
                  strerror(-app->cleaner));
    return r ? EXIT_FAILED : EXIT_OK;
}

/* Before threads start, which inherit it, and before anything is read that a client sent. Without a store of
 * descriptors this process becomes the keeper if that dies. */
static void app_enter_sandbox(const struct app *app)
{
    int r = sandbox_enter(app->inherited.fd_stash[0] >= 0 ? SANDBOX_BROKER : SANDBOX_LONE_BROKER);

    if (r)
        log_warning("the broker serves without a sandbox of its own: %s", strerror(-r));
}

int app_serve(const struct app_options *options)
{
    /* static, and never taken apart, not even when the start fails: what it holds is not its own */
    static struct app app;
    _cleanup_free_ char *path = NULL;
    int status;
    int r;

    app.options = options;
    /* a later broker of a private keeper, whose starter is gone */
    if (options->autostart && place_has_no_terminal())
        log_to_journal();
    app.nofile = settings_raise_nofile();
    sys_set_fd_end(settings_buffer_fds(&app));
    r = spawner_start(&app.spawner, options->broker);
    if (r)
        log_error("nothing can be imported or adopted: the process that starts doors cannot be started: %s",
                  strerror(-r));
    status = join_keeper(&app);
    if (status)
        return status;
    path = place_of(app.inherited.listener);
    app.private = place_is_private(options, path);
    metrics_listen(&app);
    app_enter_sandbox(&app);
    status = app_build(&app);
    if (status)
        return status;
    if (!app.config_stale)
        configuration_hand_on(&app);
    app_announce(&app, path);
    return app_run(&app);
}
