/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sources of the loop besides clients: the broker's clock and watch, finished jobs, the keeper, and the end of a
 * private broker that nobody uses. Signals go to the keeper, which sends what they mean.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "base/clock.h"
#include "broker/operations.h"
#include "log/log.h"
#include "net/connection.h"
#include "sys/schedule.h"

/* Replies and the last events have this long to be sent. */
#define STOP_MS 2000

/* The loop is soon done with what it woke up for, so it goes before threads that compute. */
#define SLICE_NS UINT64_C(100000)

void app_fail(struct app *app, int error)
{
    if (!app->error)
        app->error = error;
    (void)event_base_loopbreak(app->base);
}

struct timeval loop_timeval(uint64_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

static void loop_check(struct app *app, int r)
{
    if (r < 0)
        app_fail(app, fatal(r));
}

/*
 * What the broker does later, or is told by the kernel, is mostly a consequence of what users did: sessions end, tokens
 * expire, events go to subscribers, caches are emptied for who finds no room. There may be any amount of it, so all of
 * it takes turns with users, as if it were one more.
 */
static void loop_tick(struct user_task *task)
{
    struct app *app = container_of(task, struct app, tick_task);

    loop_check(app, broker_tick(app->broker));
}

static void on_tick(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    net_task_submit_own(&app->tick_task, app->net);
}

static void loop_read_watch(struct user_task *task)
{
    struct app *app = container_of(task, struct app, watch_task);

    loop_check(app, broker_watch_ready(app->broker));
}

static void on_watch(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    net_task_submit_own(&app->watch_task, app->net);
}

/* A few at a time, and little for each. */
static void on_deaths(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    broker_deaths_ready(app->broker);
}

/* What a worker has done is entered, recorded and answered in a turn of its user: many buffers may have come of it. */
struct ended_job {
    struct user_task task;
    struct app *app;
    struct work_job *job;
};

static void loop_end_job(struct app *app, struct work_job *job)
{
    work_job_end(app->work, job);
    broker_commit(app->broker);
}

static void ended_job_turn(struct user_task *task)
{
    struct ended_job *ended = container_of(task, struct ended_job, task);
    struct ended_job had = *ended;

    free(ended);
    loop_end_job(had.app, had.job);
}

static void on_ended(void *userdata, struct work_job *job)
{
    struct app *app = userdata;
    struct ended_job *ended = calloc(1, sizeof(*ended));

    if (!ended) {
        loop_end_job(app, job);
        return;
    }
    *ended = (struct ended_job){.task.run = ended_job_turn, .app = app, .job = job};
    if (job->uid == WORK_UNOWNED)
        net_task_submit_own(&ended->task, app->net);
    else
        net_task_submit(&ended->task, app->net, job->uid);
}

static void on_work(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    loop_check(app, work_dispatch(app->work));
}

static void loop_count(const struct app *app, uint64_t figures[static KEEPER_FIGURES])
{
    struct broker_holdings held;
    struct pools_sums sums;

    memset(figures, 0, KEEPER_FIGURES * sizeof(*figures));
    broker_holdings(app->broker, &held);
    broker_sum_pools(app->broker, &sums);
    figures[FIGURE_BUFFERS] = held.buffers;
    figures[FIGURE_CLIENTS] = held.sessions;
    figures[FIGURE_POOLS] = sums.pools;
    figures[FIGURE_CAPACITY] = sums.capacity;
    figures[FIGURE_USED] = sums.used;
}

static void on_heartbeat(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    uint64_t figures[KEEPER_FIGURES];

    loop_count(app, figures);
    keeper_link_heartbeat(app->keeper, figures);
    log_tick();
}

/* ---- doors ------------------------------------------------------------------------------------------------------- */

void loop_arm_doors(struct app *app)
{
    struct timeval tv = loop_timeval(DOORS_TICK_MS);

    if (!event_pending(&app->doors_event, EV_TIMEOUT, NULL))
        (void)event_add(&app->doors_event, &tv);
}

static void on_doors(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    if (doors_tick(app->doors))
        loop_arm_doors(app);
}

/* ---- idle, stop -------------------------------------------------------------------------------------------------- */

void loop_arm_idle(struct app *app)
{
    struct timeval tv;

    if (!app->options->autostart || !app->config->idle_exit_ms || app->stopping)
        return;
    tv = loop_timeval(app->config->idle_exit_ms);
    (void)event_add(&app->idle_event, &tv);
}

static void on_idle(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    if (app->net->n_connections)
        return; /* the last client to leave arms the timer again */
    if (!broker_is_idle(app->broker)) {
        loop_arm_idle(app);
        return;
    }
    log_notice("this private broker has been idle for %llu s and exits",
               (unsigned long long)(app->config->idle_exit_ms / 1000));
    app->for_good = true;
    app_stop(app);
}

static void on_stopped(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    (void)event_base_loopbreak(app->base);
}

void app_stop(struct app *app)
{
    struct timeval tv = loop_timeval(app->net->n_connections ? STOP_MS : 0);

    if (app->stopping) {
        /* the last client has left, so there is nothing to wait for */
        (void)event_base_loopbreak(app->base);
        return;
    }
    app->stopping = true;
    app->listener = listener_free(app->listener);
    broker_announce_shutdown(app->broker);
    list_for_each_entry_safe(connection, &app->net->connections, struct connection, in_connections)
        connection_finish(connection);
    (void)event_add(&app->stop_event, &tv);
}

/* ---- the keeper -------------------------------------------------------------------------------------------------- */

static const char *loop_stop_outcome(enum keeper_stop how)
{
    switch (how) {
    case KEEPER_STOP_NEXT:
        break;
    case KEEPER_STOP_STORED:
        return "the service manager keeps what this broker holds, across a stop if FileDescriptorStorePreserve=yes";
    case KEEPER_STOP_RESTART:
        return "this service manager (systemd before 254) keeps what this broker holds across a restart only; with a "
               "stop it is lost, except what is mapped";
    case KEEPER_STOP_LOST:
        return "nobody keeps what this broker holds: it is lost, except what is mapped";
    }
    return "whether anybody keeps what this broker holds is unknown";
}

static void loop_log_holdings(const struct app *app, enum keeper_stop how)
{
    enum log_level level = how == KEEPER_STOP_STORED ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARNING;
    struct broker_holdings has;

    broker_holdings(app->broker, &has);
    if (has.buffers || has.names)
        log_line(level, "%s: %llu buffer%s with %llu bytes, %llu name%s, %llu session%s", loop_stop_outcome(how),
                 (unsigned long long)has.buffers, log_plural(has.buffers), (unsigned long long)has.bytes,
                 (unsigned long long)has.names, log_plural(has.names), (unsigned long long)has.sessions,
                 log_plural(has.sessions));
}

static void on_stop(void *userdata, enum keeper_stop how)
{
    bool for_good = how != KEEPER_STOP_NEXT;
    struct app *app = userdata;

    if (for_good && !app->for_good)
        loop_log_holdings(app, how);
    app->for_good = app->for_good || for_good;
    broker_upgrade_decided(app->broker, for_good ? ESHUTDOWN : 0, NULL);
    /* a second time only changes whether it is for good */
    if (!app->stopping)
        app_stop(app);
}

static void on_upgrade_refused(void *userdata, int error)
{
    struct app *app = userdata;
    char mistake[CONFIGURATION_SENTENCE_MAX];

    broker_upgrade_decided(app->broker, error,
                           error == KEEPER_REFUSED_CONFIG ? configuration_mistake(app, mistake) : NULL);
}

static void on_reload(void *userdata)
{
    struct app *app = userdata;
    struct reload_result result;

    configuration_reload(app, &result);
    keeper_link_send(app->keeper, PACKET_RELOADED);
}

static void on_orphaned(void *userdata)
{
    struct app *app = userdata;

    app->orphaned = true;
    (void)event_base_loopbreak(app->base);
}

int loop_ask_keeper(struct app *app)
{
    static const struct keeper_link_events events = {
        .stop = on_stop,
        .upgrade_refused = on_upgrade_refused,
        .reload = on_reload,
        .orphaned = on_orphaned,
    };

    return keeper_link_dispatch(app->keeper, &events, app);
}

static void on_keeper(evutil_socket_t fd, short events, void *userdata)
{
    struct app *app = userdata;

    loop_check(app, loop_ask_keeper(app));
}

/* They would kill the broker: a client that is gone, a lease that somebody breaks, a file size limit. */
static void ignore_signals(void)
{
    static const int signals[] = {SIGPIPE, SIGIO, SIGXFSZ};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        (void)sigaction(signals[i], &ignore, NULL);
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

static int loop_watch(struct app *app, struct event *event, int fd, short what, event_callback_fn callback)
{
    if (event_assign(event, app->base, fd, what, callback, app) < 0)
        return -EINVAL;
    return what && event_add(event, NULL) < 0 ? -ENOMEM : 0;
}

void loop_set_spin(struct app *app)
{
    spin_init(&app->spin, app->config->spin && spin_may_pay(), spin_count_preempted);
}

int loop_init(struct app *app)
{
    static const struct timeval heartbeat = {.tv_sec = 1};
    static const struct sys_schedule prompt = {.policy = SCHED_OTHER, .slice = SLICE_NS};
    int r;

    ignore_signals();
    (void)sys_schedule_self(&prompt);
    work_set_ended(app->work, on_ended, app);
    app->tick_task.run = loop_tick;
    app->watch_task.run = loop_read_watch;
    app->base = event_base_new();
    if (!app->base)
        return -ENOMEM;
    (void)loop_watch(app, &app->tick_event, -1, 0, on_tick);
    (void)loop_watch(app, &app->idle_event, -1, 0, on_idle);
    (void)loop_watch(app, &app->doors_event, -1, 0, on_doors);
    (void)loop_watch(app, &app->stop_event, -1, 0, on_stopped);
    if (event_assign(&app->heartbeat_event, app->base, -1, EV_PERSIST, on_heartbeat, app) < 0 ||
        event_add(&app->heartbeat_event, &heartbeat) < 0)
        return -ENOMEM;
    loop_set_spin(app);
    r = loop_watch(app, &app->keeper_event, keeper_link_fd(app->keeper), EV_READ | EV_PERSIST, on_keeper);
    if (r)
        return r;
    return loop_watch(app, &app->work_event, work_fd(app->work), EV_READ | EV_PERSIST, on_work);
}

int loop_watch_broker(struct app *app)
{
    int r = loop_watch(app, &app->deaths_event, broker_deaths_fd(app->broker), EV_READ | EV_PERSIST, on_deaths);

    return r ? r : loop_watch(app, &app->watch_event, broker_watch_fd(app->broker), EV_READ | EV_PERSIST, on_watch);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/*
 * First whatever there is news of, which is little for each: most of it only notes what is to be done. Then that is
 * done for a moment, for each user in turn. While more is left, the loop does not sleep.
 */
static bool loop_turn(struct app *app, int how)
{
    if (app->busy)
        how = EVLOOP_NONBLOCK;
    if (event_base_loop(app->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY | how) < 0)
        app_fail(app, -EIO);
    if (!event_base_got_break(app->base))
        app->busy = net_turn(app->net);
    return !app->error && !event_base_got_break(app->base);
}

/* Turns that do not sleep, until one has served a client or it is time to sleep. */
static bool loop_spin(struct app *app)
{
    uint64_t before = app->net->n_packets;

    do {
        if (!loop_turn(app, EVLOOP_NONBLOCK))
            return false;
        if (app->net->n_packets != before) {
            spin_found(&app->spin);
            break;
        }
    } while (spin_again(&app->spin, clock_now_ns()));
    return true;
}

/* A client that was answered is likely to ask again, so the loop spins; not while a worker may need this processor. */
void loop_run(struct app *app)
{
    uint64_t before;
    bool served = false;
    bool goes_on;

    do {
        before = app->net->n_packets;
        if (served && !app->stopping && !work_is_busy(app->work) && spin_begin(&app->spin, clock_now_ns()))
            goes_on = loop_spin(app);
        else
            goes_on = loop_turn(app, 0);
        served = app->net->n_packets != before;
    } while (goes_on);
}
