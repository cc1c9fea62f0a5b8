/* SPDX-License-Identifier: Apache-2.0 */
/* See batch.h. */
#include "broker/batch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/events.h"
#include "broker/lifecycle.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "proto/status.h"
#include "work/turn.h"

static_assert(MEMORYD_BATCH_MAX <= KEEPER_BATCH_MAX, "a batch is one packet");

void batch_init(struct batch *batch, struct broker *broker, uint32_t most)
{
    assert(most <= MEMORYD_BATCH_MAX);
    batch->broker = broker;
    batch->most = most;
    batch->n = 0;
    batch->n_stock = 0;
    batch->commits = NULL;
    batch->node = 0;
}

void batch_deinit(struct batch *batch)
{
    free(batch->commits);
    batch->commits = NULL;
}

/* ---- coming ------------------------------------------------------------------------------------------------------ */

int batch_add_stock(struct batch *batch, struct buffer *buffer, int fd, const struct memory_spec *spec,
                    struct account *account, struct problem *problem)
{
    int r;

    assert(batch->n < batch->most && batch->n == batch->n_stock);
    r = buffer_earmark(&batch->broker->buffers, buffer, spec, account, problem);
    if (r)
        return r;
    batch->buffers[batch->n] = buffer;
    batch->fds[batch->n] = fd;
    batch->n_stock = ++batch->n;
    return 0;
}

static void batch_prepare(struct batch *batch, const struct plan *plan, const struct memory_spec *spec, bool is_stock)
{
    const struct broker *broker = batch->broker;
    const struct pool *pool = plan->pool;
    struct commit *commit = &batch->commits[batch->n];

    commit_init(commit);
    commit->plan = *plan;
    commit->topology = broker->options.topology;
    commit->pages = pool->pages;
    commit->page_size = pool->page_size;
    commit->lazy = pool->committer != COMMITTER_BROKER;
    commit->threads = is_stock ? 0 : broker->options.threads; /* stock has time */
    commit->clear = is_stock;
    commit->publishable = spec->flags & BUFFER_PUBLISHABLE;
    (void)snprintf(commit->label, sizeof(commit->label), "memoryd-%llu",
                   (unsigned long long)batch->buffers[batch->n]->record->head.id);
}

int batch_add(struct batch *batch, const struct plan *plan, const struct memory_spec *spec,
              const struct buffer_owner *owner, struct problem *problem)
{
    struct buffer **buffer = &batch->buffers[batch->n];
    int r;

    assert(batch->n < batch->most);
    if (!batch->commits)
        batch->commits = calloc(batch->most, sizeof(*batch->commits));
    if (!batch->commits)
        return refuse(problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    r = buffer_new(&batch->broker->buffers, plan, spec, owner, buffer, problem);
    if (r)
        return r;
    if ((*buffer)->record->flags & BUFFER_CLIENT_CHARGED)
        ledger_need(batch->broker->ledger, LEDGER_CLIENT_CHARGED);
    batch_prepare(batch, plan, spec, !owner);
    batch->fds[batch->n++] = -1;
    return 0;
}

int batch_fill(struct batch *batch, struct pool *pool, const struct alloc_spec *spec, const struct buffer_owner *owner,
               uint64_t begin, struct problem *problem)
{
    int r = 0;

    for (uint32_t first = batch->n; !r && batch->n < spec->n;) {
        const struct pool_view view = {.taken = TALLY_RECLAIMING, .payer = owner->account};
        struct plan plan;

        if (begin && batch->n > first && slice_is_over(begin))
            return OP_PENDING;
        /* stock on the nearest node gives way, rather than that the buffer goes to another one */
        r = pool_plan(pool, &spec->memory, spec->sizes[batch->n], view, &plan, problem);
        if (r)
            break;
        batch->node = plan.brief.node;
        r = batch_add(batch, &plan, &spec->memory, owner, problem);
    }
    return r;
}

/* False: the buffer has no memory, and its commit is as if it had not been run. */
static bool batch_enter_one(struct batch *batch, uint32_t i)
{
    struct commit *commit = &batch->commits[i];

    if (buffer_set_memory(&batch->broker->buffers, batch->buffers[i], commit->fd, &commit->identity, commit->huge_bytes,
                          commit->verified)) {
        commit_deinit(commit);
        return false;
    }
    (void)steal_fd(&commit->fd);
    return true;
}

uint32_t batch_enter(struct batch *batch)
{
    uint32_t i = 0;

    while (i < batch->n && (batch->buffers[i]->fd >= 0 || batch_enter_one(batch, i)))
        i++;
    return i;
}

/* The next broker must find the memory of all that is LIVE or in stock. */
int batch_hold(struct batch *batch, struct problem *problem)
{
    uint32_t n = batch->n - batch->n_stock;
    uint64_t ids[MEMORYD_BATCH_MAX];
    int fds[MEMORYD_BATCH_MAX], r;

    for (uint32_t i = 0; i < n; i++) {
        const struct buffer *buffer = batch->buffers[batch->n_stock + i];

        ids[i] = buffer->record->head.id;
        fds[i] = buffer->fd;
    }
    r = keeper_hold_many(batch->broker->options.keeper, KEEPER_BUFFER, n, ids, fds);
    if (r == -EPIPE)
        return OP_PENDING;
    if (r < 0)
        return refuse(problem, STATUS_NO_DESCRIPTORS,
                      "the keeper cannot hold the memory, so that a crash would lose it (%s); try again in a moment",
                      strerrordesc_np(-r));
    return 0;
}

void batch_commit(struct batch *batch, const struct alloc_spec *spec, const struct buffer_owner *owner)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        if (i < batch->n_stock)
            buffer_take(&batch->broker->buffers, batch->buffers[i], spec->sizes[i], owner);
        else
            buffer_commit(&batch->broker->buffers, batch->buffers[i]);
    }
    if (batch->n_stock) {
        /* waiters that count on what is in stock may do so no longer */
        waiters_wake(&batch->broker->waiters);
        pressure_changed(batch->broker);
    }
}

/* ---- going ------------------------------------------------------------------------------------------------------- */

void batch_cancel(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->n && batch->commits; i++)
        atomic_store(&batch->commits[i].cancel, true);
}

static void batch_drop(struct batch *batch, uint32_t i)
{
    struct broker *broker = batch->broker;
    struct buffer *buffer = batch->buffers[i];

    if (buffer->record->state == BUFFER_STOCK) {
        buffer_unearmark(&broker->buffers, buffer);
        stocking_put(broker, buffer, steal_fd(&batch->fds[i]));
        return;
    }
    batch->fds[i] = fd_close(batch->fds[i]);
    /* as memory of the buffer it is closed by a worker, if it is large */
    if (buffer->fd < 0 && batch->commits[i].fd >= 0)
        (void)batch_enter_one(batch, i);
    if (buffer->record->state == BUFFER_LIVE)
        lifecycle_claim_gone(broker, buffer);
    else
        lifecycle_abort(broker, buffer);
}

void batch_cut(struct batch *batch, uint32_t n)
{
    while (batch->n > n)
        batch_drop(batch, --batch->n);
    if (batch->n_stock > n)
        batch->n_stock = n;
    if (!batch->n)
        batch_deinit(batch);
}
