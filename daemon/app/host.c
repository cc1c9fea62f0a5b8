/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the broker asks of its host: to watch processes, to be called at a time, to reach its clients.
 */

#include <errno.h>
#include <stdlib.h>

#include "app/app.h"
#include "base/hash.h"

struct process_watch {
    struct app *app;
    uint64_t session;
    struct event event;
    UT_hash_handle hh;
};

static void on_exited(evutil_socket_t fd, short events, void *userdata)
{
    struct process_watch *watch = userdata;
    struct app *app = watch->app;
    int r;

    (void)fd;
    (void)events;
    /* the broker unwatches it, which frees it */
    r = broker_session_exited(app->broker, watch->session);
    if (r < 0)
        app_fail(app, r);
}

static int host_watch_process(void *userdata, uint64_t session, int pidfd)
{
    struct app *app = userdata;
    struct process_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return -ENOMEM;
    watch->app = app;
    watch->session = session;
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
    free(watch);
}

static void host_schedule(void *userdata, uint64_t in_ms)
{
    struct app *app = userdata;
    /* a day is as good as for ever: the broker says again what it wants then */
    uint64_t ms = in_ms > 86400000 ? 86400000 : in_ms;

    if (event_add(&app->tick_event, &(struct timeval){.tv_sec = (time_t)(ms / 1000),
                                                      .tv_usec = (suseconds_t)(ms % 1000) * 1000}) < 0)
        app_fail(app, -ENOMEM);
}

static void host_reload(void *userdata, struct reload_result *result)
{
    configuration_reload(userdata, result);
}

static int host_check_config(void *userdata, struct problem *problem)
{
    return configuration_check(userdata, problem);
}

void host_init(struct app *app)
{
    app->host = (struct broker_host){
        .userdata = app,
        .event = client_host_event,
        .disconnect = client_host_disconnect,
        .watch_process = host_watch_process,
        .unwatch_process = host_unwatch_process,
        .schedule = host_schedule,
        .connection_info = client_host_info,
        .reload = host_reload,
        .check_config = host_check_config,
    };
}
