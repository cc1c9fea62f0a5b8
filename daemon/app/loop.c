/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sources of the loop besides clients: the broker's clock and watch, finished jobs, signals, the service manager's
 * watchdog, and the end of a private broker that nobody uses.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#include "app/app.h"
#include "base/clock.h"
#include "log/log.h"
#include "net/connection.h"

/* Replies and the last events get this long to leave. */
#define STOP_MS 2000

static struct timeval milliseconds(uint64_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

static void check(struct app *app, int r)
{
    if (r < 0)
        app_fail(app, fatal(r));
}

static void on_tick(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    (void)fd;
    (void)events;
    check(app, broker_tick(app->broker));
}

static void on_watch(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    (void)fd;
    (void)events;
    check(app, broker_watch_ready(app->broker));
}

static void on_work(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    (void)fd;
    (void)events;
    check(app, work_dispatch(app->work));
    broker_commit(app->broker);
}

static void on_watchdog(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    (void)fd;
    (void)events;
    (void)sd_notify(0, "WATCHDOG=1");
    (void)event_add(&app->watchdog_event, &app->watchdog);
}

/* ------------------------------------------------------------------------------------------------- idle, stop */

void loop_arm_idle(struct app *app)
{
    struct timeval tv;

    if (!app->options->autostart || !app->config->idle_exit_ms || app->stopping)
        return;
    tv = milliseconds(app->config->idle_exit_ms);
    (void)event_add(&app->idle_event, &tv);
}

static void on_idle(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    (void)fd;
    (void)events;
    if (app->net->n_connections)
        return; /* the last one to leave sets the clock again */
    if (!broker_is_idle(app->broker)) {
        loop_arm_idle(app);
        return;
    }
    log_notice("nobody has used this private broker for %llu s, it ends",
               (unsigned long long)(app->config->idle_exit_ms / 1000));
    app_stop(app);
}

static void on_stopped(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    (void)fd;
    (void)events;
    (void)event_base_loopbreak(app->base);
}

void app_stop(struct app *app)
{
    struct timeval tv = milliseconds(app->net->n_connections ? STOP_MS : 0);

    if (app->stopping) {
        /* asked twice: at once */
        (void)event_base_loopbreak(app->base);
        return;
    }
    app->stopping = true;
    (void)sd_notify(0, "STOPPING=1");
    app->listener = listener_free(app->listener);
    broker_announce_shutdown(app->broker);
    list_for_each_entry_safe(connection, &app->net->connections, struct connection, in_connections)
        connection_finish(connection);
    (void)event_add(&app->stop_event, &tv);
}

/* ---------------------------------------------------------------------------------------------------- signals */

static void say_mistake(void *userdata, const char *sentence)
{
    (void)userdata;
    log_error("%s", sentence);
}

static void reload(struct app *app)
{
    struct config *config = NULL;
    struct account_limits accounts;
    struct net_limits net;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
                     (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
    if (config_load(&config, app->config->path, say_mistake, NULL)) {
        log_error("the configuration stays as it was");
    } else {
        if (config->n_pools != app->config->n_pools || config->arena_base != app->config->arena_base ||
            config->arena_size != app->config->arena_size || config->simulate_nodes != app->config->simulate_nodes)
            log_warning("pools, arena and topology stay as they are until the next start");
        /* the status reply points at the path */
        free(config->path);
        config->path = steal_ptr(&app->config->path);
        config_free(app->config);
        app->config = config;
        settings_accounts(app, &accounts);
        settings_net(app, &net);
        broker_set_limits(app->broker, &accounts);
        net_set_limits(app->net, &net);
        log_notice("limits and times were read again");
    }
    (void)sd_notify(0, "READY=1");
}

static void on_signal(evutil_socket_t signal, short events, void *userdata)
{
    struct app *app = userdata;

    (void)events;
    if (signal == SIGHUP)
        reload(app);
    else
        app_stop(app);
}

/* What would kill the broker otherwise: a client that is gone, a lease that somebody breaks, a file size limit. */
static void ignore_signals(void)
{
    static const int signals[] = {SIGPIPE, SIGIO, SIGXFSZ};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        (void)sigaction(signals[i], &ignore, NULL);
}

/* ------------------------------------------------------------------------------------------------------ set-up */

static int watch(struct app *app, struct event *event, int fd, short what, event_callback_fn callback)
{
    if (event_assign(event, app->base, fd, what, callback, app) < 0)
        return -EINVAL;
    return what && event_add(event, NULL) < 0 ? -ENOMEM : 0;
}

int loop_init(struct app *app)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    uint64_t usec;
    int r;

    ignore_signals();
    app->base = event_base_new();
    if (!app->base)
        return -ENOMEM;
    (void)watch(app, &app->tick_event, -1, 0, on_tick);
    (void)watch(app, &app->idle_event, -1, 0, on_idle);
    (void)watch(app, &app->stop_event, -1, 0, on_stopped);
    (void)watch(app, &app->watchdog_event, -1, 0, on_watchdog);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        r = watch(app, &app->signal_events[i], signals[i], EV_SIGNAL | EV_PERSIST, on_signal);
        if (r)
            return r;
    }
    r = watch(app, &app->work_event, work_fd(app->work), EV_READ | EV_PERSIST, on_work);
    if (r)
        return r;
    if (sd_watchdog_enabled(0, &usec) > 0 && usec) {
        app->watchdog = milliseconds(usec / 2000);
        (void)event_add(&app->watchdog_event, &app->watchdog);
    }
    return 0;
}

int loop_watch_broker(struct app *app)
{
    return watch(app, &app->watch_event, broker_watch_fd(app->broker), EV_READ | EV_PERSIST, on_watch);
}

void loop_deinit(struct app *app)
{
    if (!app->base)
        return;
    struct event *const events[] = {&app->tick_event,       &app->watch_event,      &app->work_event,
                                    &app->idle_event,       &app->stop_event,       &app->watchdog_event,
                                    &app->signal_events[0], &app->signal_events[1], &app->signal_events[2]};

    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (event_initialized(events[i]))
            (void)event_del(events[i]);
    event_base_free(app->base);
    app->base = NULL;
}
