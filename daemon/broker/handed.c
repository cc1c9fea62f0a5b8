/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that the keeper hands over to a broker that starts: options.inherited, sorted by id.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "broker/recover.h"
#include "broker/state.h"

static int compare_ids(const void *a, const void *b)
{
    const struct inherited_fd *x = a, *y = b;

    return x->key.id < y->key.id ? -1 : x->key.id > y->key.id;
}

void handed_sort(struct broker_options *options)
{
    if (options->n_inherited)
        qsort(options->inherited, options->n_inherited, sizeof(*options->inherited), compare_ids);
}

/* Few have the same id: only kinds of which there is one have 0. */
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

/* ---- what belongs to nothing ------------------------------------------------------------------------------------- */

/* Memory that belongs to nothing. The keeper closes its copy, and then a worker closes ours, since it may be a lot. It
 * is not emptied: nobody knows whose it is. */
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

static void handed_spare_quarantined(struct broker *broker, const struct table *table, enum keeper_kind kind)
{
    const struct record *record;
    uint64_t cursor = 0;

    while ((record = table_next_quarantined(table, &cursor))) {
        struct inherited_fd *inherited = handed_find(broker, kind, record->id);

        if (inherited)
            inherited->quarantined = true;
    }
}

void handed_drop_rest(struct broker *broker)
{
    handed_spare_quarantined(broker, &broker->buffers.table, KEEPER_BUFFER);
    handed_spare_quarantined(broker, &broker->sessions.table, KEEPER_SESSION);
    handed_spare_quarantined(broker, &broker->sessions.table, KEEPER_RELEASE_LOG);
    for (size_t i = 0; i < broker->options.n_inherited; i++) {
        struct inherited_fd *inherited = &broker->options.inherited[i];
        bool ours = inherited->key.kind == KEEPER_BUFFER || inherited->key.kind == KEEPER_SESSION ||
                    inherited->key.kind == KEEPER_RELEASE_LOG;

        if (inherited->fd >= 0 && ours && !inherited->quarantined)
            handed_drop(broker, inherited);
    }
}
