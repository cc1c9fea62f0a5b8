/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What outlives a broker: taken from the keeper at the start, and left for another keeper when that one is gone.
 *
 * A broker cannot go on without a keeper: what it holds would be lost with it. Where a service manager gave the keeper
 * a store, everything goes into the fd stash there, and the manager starts the next keeper, which takes it out. Where
 * there is none, this process itself becomes the keeper.
 */

#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "base/cleanup.h"
#include "broker/survey.h"
#include "keeper/cleaner.h"
#include "keeper/fd_stash.h"
#include "keeper/start.h"
#include "log/log.h"

static int *inherited_slot(struct inherited *inherited, enum keeper_kind kind, uint64_t id)
{
    switch ((unsigned)kind) {
    case KEEPER_LISTENER:
        return &inherited->listener;
    case KEEPER_LOCK:
        return &inherited->lock;
    case KEEPER_PROGRAM:
        return &inherited->program;
    case KEEPER_CONFIG:
        return &inherited->config;
    case KEEPER_FD_STASH:
        return id < 2 ? &inherited->fd_stash[id] : NULL;
    case KEEPER_METRICS:
        return id < 2 ? &inherited->metrics[id] : NULL;
    default:
        return NULL;
    }
}

static void inherited_count(void *userdata, size_t n)
{
    struct inherited *inherited = userdata;
    struct app *app = container_of(inherited, struct app, inherited);

    app->cleaner = cleaner_start(app->options->broker, n);
    inherited->survey = survey_begin(n);
}

static int inherited_take(void *userdata, enum keeper_kind kind, uint64_t id, int fd)
{
    struct inherited *inherited = userdata;
    int *place = inherited_slot(inherited, kind, id);
    size_t n = inherited->n_fds;

    if (place) {
        *place = fd;
        return 0;
    }
    /* the array doubles whenever it is full, that is, at each power of two */
    if (!(n & (n - 1))) {
        struct inherited_fd *fds = reallocarray(inherited->fds, n ? 2 * n : 1, sizeof(*fds));

        if (!fds) {
            (void)fd_close(fd);
            return fatal(-ENOMEM);
        }
        inherited->fds = fds;
    }
    inherited->fds[inherited->n_fds++] =
        (struct inherited_fd){.key = KEEPER_KEY(kind, id), .fd = fd, .nth = (uint32_t)n};
    survey_add(inherited->survey, kind == KEEPER_BUFFER ? fd : -1);
    return 0;
}

int inherited_receive(struct app *app)
{
    struct inherited *inherited = &app->inherited;
    int r;

    *inherited = (struct inherited){
        .listener = -1, .lock = -1, .program = -1, .config = -1, .metrics = {-1, -1}, .fd_stash = {-1, -1}};
    r = keeper_link_receive(app->keeper, inherited_count, inherited_take, inherited);
    if (!r && inherited->listener < 0) {
        log_error("the keeper has no listening socket");
        r = -ENOENT;
    }
    return r;
}

/* ---- without a keeper -------------------------------------------------------------------------------------------- */

static int inherited_enumerate(void *userdata, keeper_take_fn *give, void *to)
{
    const struct app *app = userdata;
    const struct inherited *inherited = &app->inherited;
    int r = give(to, KEEPER_LISTENER, 0, inherited->listener);

    if (!r && inherited->lock >= 0)
        r = give(to, KEEPER_LOCK, 0, inherited->lock);
    if (!r && inherited->program >= 0)
        r = give(to, KEEPER_PROGRAM, 0, inherited->program);
    if (!r && inherited->config >= 0)
        r = give(to, KEEPER_CONFIG, 0, inherited->config);
    for (uint64_t i = 0; !r && i < 2; i++)
        if (inherited->metrics[i] >= 0)
            r = give(to, KEEPER_METRICS, i, inherited->metrics[i]);
    if (!r && app->broker)
        r = broker_enumerate(app->broker, give, to);
    /* what the broker did not take */
    for (size_t i = 0; !r && i < inherited->n_fds; i++)
        if (inherited->fds[i].fd >= 0)
            r = give(to, (enum keeper_kind)inherited->fds[i].key.kind, inherited->fds[i].key.id, inherited->fds[i].fd);
    return r;
}

int inherited_leave(struct app *app)
{
    bool stored = app->inherited.fd_stash[0] >= 0;
    int fd_stash[2] = {app->inherited.fd_stash[0], app->inherited.fd_stash[1]};
    struct start start;
    int r;

    if (app->for_good && !stored)
        return EXIT_OK; /* all was to be lost */
    r = stored ? 0 : fd_stash_new(fd_stash);
    /* as in keeper_end() */
    if (stored)
        app->inherited.metrics[0] = fd_close(app->inherited.metrics[0]);
    if (!r)
        r = fd_stash_fill(fd_stash[0], inherited_enumerate, app);
    if (!r && stored) {
        log_notice("the keeper is gone; everything is kept for the next one, and this broker exits");
        return EXIT_OK;
    }
    if (!r) {
        log_notice("the keeper is gone; this broker takes its place");
        r = start_init(&start, app->options->argv);
        /* this process lives on, with a table of its own */
        cleaner_stop(app->cleaner);
        spawner_stop(&app->spawner);
    }
    if (!r)
        r = start_keeper(&start, -1, fd_stash);
    log_error("the keeper is gone, and what the broker held is lost: %s", strerror(-r));
    return EXIT_FAILED;
}
