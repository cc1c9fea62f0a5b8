/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where metrics are served: on a socket that a service manager passes, and on one that the configuration asks for.
 *
 * The keeper holds both, so that who scrapes waits in the socket's queue while a broker ends and the next one starts.
 * The configuration's is made by the first broker that finds it there, before it enters its sandbox, in which it has no
 * network. Where that fails, the log says so, and everything else is served.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "base/cleanup.h"
#include "config/listen.h"
#include "log/log.h"

#define BACKLOG 16

static bool is_at(int fd, const union config_address *address, size_t size)
{
    union config_address bound;
    socklen_t bound_size = sizeof(bound);

    memset(&bound, 0, sizeof(bound));
    return !getsockname(fd, &bound.any, &bound_size) && !memcmp(&bound, address, size);
}

/* Nobody is there any more, and it is ours to replace. */
static void remove_stale(const struct sockaddr_un *address)
{
    struct stat st;
    _cleanup_close_ int fd = -1;

    if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
        return;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno == ECONNREFUSED)
        (void)unlink(address->sun_path);
}

/* A descriptor or a negative errno. */
static int listen_at(const union config_address *address, size_t size)
{
    const int on = 1;
    _cleanup_close_ int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask;
    int r;

    if (fd < 0)
        return -errno;
    if (address->any.sa_family == AF_UNIX)
        remove_stale(&address->un);
    else
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* the file is made with its mode: between bind() and a chmod() anybody could connect */
    mask = umask(0177);
    r = bind(fd, &address->any, (socklen_t)size) < 0 ? -errno : 0;
    (void)umask(mask);
    if (r || listen(fd, BACKLOG) < 0)
        return r ? r : -errno;
    return steal_fd(&fd);
}

/* Gives up the socket of another configuration. */
static void metrics_drop(struct app *app)
{
    if (app->inherited.metrics[1] < 0)
        return;
    metrics_unlink(app->inherited.metrics[1]);
    keeper_drop(app->keeper, KEEPER_METRICS, 1);
    app->inherited.metrics[1] = fd_close(app->inherited.metrics[1]);
}

void metrics_listen(struct app *app)
{
    _cleanup_free_ char *text = configuration_metrics(app);
    union config_address address;
    size_t size = 0;
    int fd, r;

    if (!text)
        return;
    if (!*text) {
        metrics_drop(app);
        return;
    }
    if (!config_address(text, &address, &size))
        return;
    if (app->inherited.metrics[1] >= 0 && is_at(app->inherited.metrics[1], &address, size))
        return;
    metrics_drop(app);
    fd = listen_at(&address, size);
    r = fd < 0 ? fd : keeper_hold(app->keeper, KEEPER_METRICS, 1, fd);
    if (r) {
        log_error("no metrics are served at %s ([metrics] listen): %s", text, strerror(-r));
        (void)fd_close(fd);
        return;
    }
    log_notice("metrics are served at %s", text);
    app->inherited.metrics[1] = fd;
}

void metrics_unlink(int listener)
{
    _cleanup_free_ char *path = listener < 0 ? NULL : place_of(listener);

    if (path && *path == '/')
        (void)unlink(path);
}

/* ---- what observe/ asks for -------------------------------------------------------------------------------------- */

static void host_figures(void *userdata, struct broker_figures *ret)
{
    broker_figures(((struct app *)userdata)->broker, ret);
}

static void host_take_turn(void *userdata, struct user_task *task, uid_t uid)
{
    struct app *app = userdata;

    if (uid == (uid_t)-1)
        net_task_submit_own(task, app->net);
    else
        net_task_submit(task, app->net, uid);
}

static bool host_is_administrator(void *userdata, uid_t uid)
{
    return !uid || uid == geteuid();
}

void metrics_serve(struct app *app)
{
    app->observe_host = (struct observe_host){
        .userdata = app,
        .figures = host_figures,
        .take_turn = host_take_turn,
        .is_administrator = host_is_administrator,
    };
    for (int i = 0; i < 2; i++) {
        int fd = app->inherited.metrics[i] < 0 ? -1 : fcntl(app->inherited.metrics[i], F_DUPFD_CLOEXEC, 0);
        struct observe *observe;
        int r = fd < 0 ? 0 : observe_new(&observe, app->base, fd, &app->observe_host);

        if (!r)
            continue;
        log_error("no metrics can be served: %s", strerror(-r));
        (void)fd_close(fd);
    }
}
