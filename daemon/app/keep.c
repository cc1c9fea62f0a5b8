/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The process that is started: it gets a listening socket, and becomes the keeper.
 *
 * There are three ways to get one. A new one is made, with a lock beside it. A service manager passes its own, or what
 * an earlier start left in its store. Or an fd stash is inherited from the program that this process was before. In the
 * latter two cases everything that was held comes with it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "base/cleanup.h"
#include "keeper/fd_stash.h"
#include "keeper/keeper.h"
#include "keeper/service.h"
#include "log/log.h"
#include "sandbox/sandbox.h"

struct keep {
    const struct app_options *options;
    struct keeper keeper;
    struct socket_path socket_path;
    int ready; /* --autostart: the starter waits at its other end */
};

static int keep_failed(const char *what, int r)
{
    log_error("%s: %s", what, strerror(-r));
    return EXIT_FAILED;
}

/* The result of a socket_path function as an exit status, after the problem was logged. */
static int keep_path_status(int r, const struct problem *problem)
{
    if (!r)
        return EXIT_OK;
    log_error("%s", r < 0 ? strerror(-r) : problem->sentence);
    return r == SOCKET_PATH_E_RUNNING ? EXIT_RUNNING : EXIT_FAILED;
}

static int copy_into(struct store *store, enum keeper_kind kind, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    return copy < 0 ? -errno : store_take_in(store, kind, 0, copy);
}

/* Makes a socket of our own: locks its path, goes into the background with --autostart, and listens. */
static int make_place(struct keep *keep)
{
    const struct app_options *options = keep->options;
    _cleanup_free_ char *path = place_socket(options);
    struct problem problem = PROBLEM_NULL;
    int status = EXIT_OK;
    int fd;
    int r;

    if (!path)
        return EXIT_USAGE;
    r = socket_path_lock(&keep->socket_path, path, &problem);
    if (r == SOCKET_PATH_E_RUNNING && options->autostart) {
        keep->keeper.over = true;
        return place_wait_for_winner(path);
    }
    if (r)
        return keep_path_status(r, &problem);
    if (options->autostart && !place_daemonise(&keep->socket_path, &keep->ready, &status)) {
        keep->keeper.over = true;
        return status;
    }
    /* we have no business in the starter's folder, unless --config is relative to it */
    if (options->autostart && (!options->config || *options->config == '/') && chdir("/") < 0)
        log_debug("cannot change to /: %s", strerror(errno));
    r = socket_path_listen(&keep->socket_path, place_is_private(options, path), &fd, &problem);
    if (r)
        return keep_path_status(r, &problem);
    (void)store_take_in(&keep->keeper.store, KEEPER_LISTENER, 0, fd);
    r = copy_into(&keep->keeper.store, KEEPER_LOCK, keep->socket_path.lock_fd);
    return r ? keep_failed("cannot keep the lock", r) : EXIT_OK;
}

/* Takes over the socket of an earlier process. Its lock came with it, unless all processes were killed at once. */
static int adopt_place(struct keep *keep)
{
    struct store *store = &keep->keeper.store;
    _cleanup_free_ char *path = place_of(store_get(store, KEEPER_KEY(KEEPER_LISTENER, 0)));
    int lock = store_get(store, KEEPER_KEY(KEEPER_LOCK, 0));
    struct problem problem = PROBLEM_NULL;
    int r;

    if (!path)
        return keep_failed("cannot find out where to listen", -ENOENT);
    if (lock >= 0) {
        r = socket_path_adopt(&keep->socket_path, path, lock);
        return r ? keep_failed("cannot take over the socket of an earlier process", r) : EXIT_OK;
    }
    r = socket_path_lock(&keep->socket_path, path, &problem);
    if (r)
        return keep_path_status(r, &problem);
    keep->socket_path.bound = true;
    r = copy_into(store, KEEPER_LOCK, keep->socket_path.lock_fd);
    return r ? keep_failed("cannot keep the lock", r) : EXIT_OK;
}

/* Takes what the program held that this process was before. */
static int take_fd_stash(struct keep *keep)
{
    struct store *store = &keep->keeper.store;

    for (int i = 0; i < 2; i++) {
        int r = fd_stash_drain(keep->options->fd_stash[i], store_take_in, store);

        if (r)
            return keep_failed("cannot take over what was held", r);
    }
    for (int i = 0; i < 2; i++) {
        if (service_has_store())
            (void)store_take_in(store, KEEPER_FD_STASH, (uint64_t)i, keep->options->fd_stash[i]);
        else
            (void)fd_close(keep->options->fd_stash[i]);
    }
    if (store_get(store, KEEPER_KEY(KEEPER_LISTENER, 0)) < 0)
        return keep_failed("cannot take over what was held: there is no listening socket in it", -ENOENT);
    return EXIT_OK;
}

/* The service manager stores it when the first broker serves. */
static int ensure_fd_stash(struct store *store)
{
    int ends[2];
    int r;

    if (!service_has_store() || store_get(store, KEEPER_KEY(KEEPER_FD_STASH, 1)) >= 0)
        return EXIT_OK;
    r = fd_stash_new(ends);
    if (r)
        return keep_failed("cannot make a socket pair", r);
    (void)store_take_in(store, KEEPER_FD_STASH, 0, ends[0]);
    (void)store_take_in(store, KEEPER_FD_STASH, 1, ends[1]);
    return EXIT_OK;
}

static int find_place(struct keep *keep)
{
    const struct app_options *options = keep->options;
    struct store *store = &keep->keeper.store;
    bool activated = false;
    int status = EXIT_OK;

    if (options->fd_stash[0] >= 0)
        status = take_fd_stash(keep);
    else if (!options->autostart)
        status = place_activated(store, !options->socket, &activated);
    if (status)
        return status;
    keep->keeper.inherited = options->fd_stash[0] >= 0 || store_get(store, KEEPER_KEY(KEEPER_LEDGER, 0)) >= 0;
    if (store_get(store, KEEPER_KEY(KEEPER_LISTENER, 0)) < 0)
        status = make_place(keep);
    else if (!activated && (options->fd_stash[0] < 0 || store_get(store, KEEPER_KEY(KEEPER_LOCK, 0)) >= 0))
        status = adopt_place(keep);
    keep->keeper.own_listener = keep->socket_path.lock_fd >= 0;
    return status || keep->keeper.over ? status : ensure_fd_stash(store);
}

/* The keeper holds what all users have. */
static void keep_hide(struct keep *keep)
{
    _cleanup_free_ char *path = place_of(store_get(&keep->keeper.store, KEEPER_KEY(KEEPER_LISTENER, 0)));

    if (!place_is_private(keep->options, path))
        sandbox_hide();
}

static void on_served(void *userdata)
{
    struct keep *keep = userdata;

    if (keep->ready >= 0)
        place_send_ready(steal_fd(&keep->ready));
}

int app_keep(const struct app_options *options)
{
    struct keep keep = {.options = options, .socket_path = SOCKET_PATH_NULL, .ready = -1};
    int status;
    int r;

    if (options->autostart)
        place_shed_inheritance();
    r = sandbox_enter(SANDBOX_KEEPER);
    if (r)
        log_warning("the keeper has no sandbox: %s", strerror(-r));
    r = keeper_init(&keep.keeper, settings_raise_nofile(), options->argv);
    keep.keeper.served = on_served;
    keep.keeper.userdata = &keep;
    status = r ? keep_failed("cannot set up the keeper", r) : find_place(&keep);
    if (keep.keeper.inherited)
        log_notice("%zu descriptors of an earlier run were taken over", keep.keeper.store.n);
    if (!status)
        keep_hide(&keep);
    if (!status && !keep.keeper.over)
        status = keeper_run(&keep.keeper);
    /* the next keeper needs the files of socket and lock */
    if (keep.keeper.kept)
        socket_path_forget(&keep.socket_path);
    else
        metrics_unlink(store_get(&keep.keeper.store, KEEPER_KEY(KEEPER_METRICS, 1)));
    keep.ready = fd_close(keep.ready);
    keeper_deinit(&keep.keeper);
    socket_path_deinit(&keep.socket_path);
    return status;
}
