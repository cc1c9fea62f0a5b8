/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How what is held outlives the keeper: everything goes into an fd stash. The service manager has it in its store, or
 * the program that takes our place inherits it.
 */

#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "keeper/fd_stash.h"
#include "keeper/keeper.h"
#include "keeper/service.h"
#include "log/log.h"

static int enumerate_store(void *userdata, keeper_take_fn *give, void *to)
{
    const struct store *store = userdata;
    const struct store_slot *slot;
    size_t position = 0;
    int r = 0;

    while (!r && (slot = store_next(store, &position)))
        if (slot->key.kind != KEEPER_FD_STASH)
            r = give(to, (enum keeper_kind)slot->key.kind, slot->key.id, slot->fd);
    return r;
}

/* Holds this program, for a next one that cannot read what we leave; not if the previous one runs, because this one
 * cannot either. What was held so far is the caller's, or -1. */
static int keep_this_program(struct keeper *keeper)
{
    int fd = keeper->runs_previous ? -1 : open(START_THIS_PROGRAM, O_PATH | O_CLOEXEC);

    return fd < 0 ? -1 : store_put(&keeper->store, KEEPER_KEY(KEEPER_PROGRAM, 0), fd);
}

void keeper_end(struct keeper *keeper, int status)
{
    int outer = store_get(&keeper->store, KEEPER_KEY(KEEPER_FD_STASH, 0));
    int r;

    keeper->over = true;
    keeper->status = status;
    keeper_reap(keeper);
    if (outer < 0 || !service_has_store())
        return;
    (void)fd_close(keep_this_program(keeper));
    /* the next start is passed it again; were it in the store as well, its unit could not bind that address anew */
    (void)fd_close(store_remove(&keeper->store, KEEPER_KEY(KEEPER_METRICS, 0)));
    r = fd_stash_fill(outer, enumerate_store, &keeper->store);
    if (r)
        log_error("not everything can be kept for the next start: %s", strerror(-r));
    else
        log_notice("the service manager keeps %zu descriptors%s", keeper->store.n,
                   service_at_stop() == KEEPER_STOP_RESTART ? ", for a restart" : "");
    keeper->kept = true;
}

void keeper_upgrade(struct keeper *keeper)
{
    const int stored[2] = {store_get(&keeper->store, KEEPER_KEY(KEEPER_FD_STASH, 0)),
                           store_get(&keeper->store, KEEPER_KEY(KEEPER_FD_STASH, 1))};
    int fresh[2] = {-1, -1};
    /* the stash in the service manager's store, which the next program needs, too; else a new one */
    const int *fd_stash = stored[0] >= 0 && stored[1] >= 0 ? stored : fresh;
    int r = fd_stash == fresh ? fd_stash_new(fresh) : 0;

    keeper_reap(keeper);
    if (!r) {
        int before = keep_this_program(keeper);

        r = fd_stash_fill(fd_stash[0], enumerate_store, &keeper->store);
        if (!r)
            r = start_keeper(&keeper->start, keeper->program, fd_stash);
        /* all of it is in the store as well */
        (void)fd_stash_drain(fd_stash[1], store_take_in, &keeper->store);
        if (before >= 0)
            (void)store_take_in(&keeper->store, KEEPER_PROGRAM, 0, before);
        else if (!keeper->runs_previous)
            (void)fd_close(store_remove(&keeper->store, KEEPER_KEY(KEEPER_PROGRAM, 0)));
    }
    log_error("no upgrade to %s: %s; the running program is unchanged", keeper->start.path, strerror(-r));
    (void)fd_close(fresh[0]);
    (void)fd_close(fresh[1]);
}
