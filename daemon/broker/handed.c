/* SPDX-License-Identifier: Apache-2.0 */
/* See handed.h. */
#include "broker/handed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/state.h"

/* By id, a byte of all ids at a time, from the lowest on: of many that takes a tenth of the time of comparing them. */
int handed_sort(struct broker_options *options)
{
    size_t n = options->n_inherited;
    _cleanup_free_ struct inherited_fd *spare = calloc(n + 1, sizeof(*spare));
    struct inherited_fd *from = options->inherited, *to = spare;
    uint64_t ids = 0;

    if (!spare)
        return fatal(-ENOMEM);
    for (size_t i = 0; i < n; i++)
        ids |= from[i].key.id;
    for (unsigned shift = 0; shift < 64 && ids >> shift; shift += 8) {
        size_t at[257] = {0};
        struct inherited_fd *sorted = to;

        for (size_t i = 0; i < n; i++)
            at[(from[i].key.id >> shift & 255) + 1]++;
        for (unsigned byte = 0; byte < 256; byte++)
            at[byte + 1] += at[byte];
        for (size_t i = 0; i < n; i++)
            to[at[from[i].key.id >> shift & 255]++] = from[i];
        to = from;
        from = sorted;
    }
    if (from == spare)
        memcpy(options->inherited, spare, n * sizeof(*spare));
    return 0;
}

/* Few have the same id: those of which there is one only have 0. */
struct inherited_fd *handed_find(struct broker *broker, enum keeper_kind kind, uint64_t id)
{
    struct inherited_fd *fds = broker->options.inherited;
    size_t low = 0, high = broker->options.n_inherited;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (fds[middle].key.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < broker->options.n_inherited && fds[low].key.id == id; low++)
        if (fds[low].key.kind == (uint32_t)kind)
            return &fds[low];
    return NULL;
}

int *handed_fd(struct broker *broker, enum keeper_kind kind, uint64_t id)
{
    struct inherited_fd *inherited = handed_find(broker, kind, id);

    return inherited ? &inherited->fd : NULL;
}

/* ---- what belongs to nothing ----------------------------------------------------------------------------- */

/* Memory that belongs to nothing, which may be a lot: the keeper closes its copy, and then a worker ours. It is not
 * emptied: whose it is nobody knows. */
struct leftover {
    struct keeper_drop drop;
    struct memory_job job;
    struct broker *broker;
};

static void leftover_closed(struct job *job)
{
    free(container_of(job, struct leftover, job.job));
}

static void leftover_dropped(struct keeper_drop *drop)
{
    struct leftover *leftover = container_of(drop, struct leftover, drop);

    memory_job_submit(&leftover->broker->jobs, &leftover->job);
}

static void handed_drop(struct broker *broker, struct inherited_fd *inherited)
{
    struct leftover *leftover = inherited->key.kind == KEEPER_BUFFER ? calloc(1, sizeof(*leftover)) : NULL;

    if (!leftover) {
        keeper_drop(broker->options.keeper, (enum keeper_kind)inherited->key.kind, inherited->key.id);
        inherited->fd = fd_close(inherited->fd);
        return;
    }
    leftover->broker = broker;
    leftover->job.fd = steal_fd(&inherited->fd);
    leftover->job.task = MEMORY_CLOSE;
    leftover->job.job.done = leftover_closed;
    leftover->drop.done = leftover_dropped;
    keeper_drop_then(broker->options.keeper, KEEPER_BUFFER, inherited->key.id, &leftover->drop);
}

/* Those of quarantined records are put aside first, so that the rest is what belongs to nothing. */
static void sort_out(struct broker *broker, const struct table *table, enum keeper_kind kind, int *aside)
{
    const struct record *record;
    uint64_t cursor = 0;

    while ((record = table_next_quarantined(table, &cursor))) {
        struct inherited_fd *inherited = handed_find(broker, kind, record->id);

        if (inherited && inherited->fd >= 0)
            aside[inherited - broker->options.inherited] = steal_fd(&inherited->fd);
    }
}

int handed_drop_rest(struct broker *broker)
{
    struct broker_options *options = &broker->options;
    _cleanup_free_ int *aside = calloc(options->n_inherited + 1, sizeof(*aside));

    if (!aside)
        return fatal(-ENOMEM);
    for (size_t i = 0; i < options->n_inherited; i++)
        aside[i] = -1;
    sort_out(broker, &broker->buffers.table, KEEPER_BUFFER, aside);
    sort_out(broker, &broker->sessions.table, KEEPER_SESSION, aside);
    sort_out(broker, &broker->sessions.table, KEEPER_RELEASE_LOG, aside);
    for (size_t i = 0; i < options->n_inherited; i++) {
        struct inherited_fd *inherited = &options->inherited[i];
        bool ours = inherited->key.kind == KEEPER_BUFFER || inherited->key.kind == KEEPER_SESSION ||
                    inherited->key.kind == KEEPER_RELEASE_LOG;

        if (inherited->fd >= 0 && ours)
            handed_drop(broker, inherited);
        if (aside[i] >= 0)
            inherited->fd = aside[i];
    }
    return 0;
}
