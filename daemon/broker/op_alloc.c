/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation: charged, placed, committed, recorded and held, or nothing at all.
 *
 * A request goes through the steps below, and only alloc_run() leads from one to the next. A step that cannot end now,
 * since a worker commits or room is waited for, returns OP_PENDING, and alloc_run() is called again when it can end.
 * Meanwhile the client may go. Every way out is at the end of alloc_run(), which gives back whatever there is.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "broker/batch.h"
#include "broker/caches.h"
#include "broker/claims.h"
#include "broker/dedup.h"
#include "broker/events.h"
#include "broker/lookup.h"
#include "broker/reclaim.h"
#include "broker/sessions.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "mem/pool.h"
#include "proto/methods.h"

/* A memfd with the inode number of another buffer is made again, so often at most. */
#define ATTEMPTS_MAX 3

enum alloc_step {
    ALLOC_CHOOSE,  /* the next of the pools that would do */
    ALLOC_RESERVE, /* all buffers: from stock, or planned, charged and recorded as intents */
    ALLOC_COMMIT,  /* makes their memory */
    ALLOC_ENTER,   /* gives it to them, and indexes it */
    ALLOC_RECORD,  /* gives it to the keeper, and makes them LIVE */
    ALLOC_GRANT,   /* holds, descriptors, tokens and a name */
    ALLOC_DONE,
};

struct alloc {
    struct op_state state;
    struct waiter waiter;
    struct commit_job job;
    struct broker *broker;
    struct op *op;
    const struct alloc_spec *spec;
    struct opened *result;
    struct name_key name; /* of the spec, if it has one */

    enum alloc_step step;
    int wait_status; /* of the attempt that ended the wait */
    struct pool_choice choice;
    uint32_t chosen;
    struct pool *pool; /* the chosen one */
    uint64_t caches;   /* the ticket for what clients have cached */
    bool drained;      /* all stock, and all that was cached, was given back for it once */
    unsigned attempts;
    struct batch batch;
};

static struct problem *alloc_problem(struct alloc *alloc)
{
    return &alloc->op->problem;
}

static void alloc_resume(struct op_state *state);

static void alloc_cancel(struct op_state *state)
{
    struct alloc *alloc = container_of(state, struct alloc, state);

    if (alloc->batch.n) {
        batch_cancel(&alloc->batch);
        (void)job_withdraw(&alloc->job.job);
    } else {
        waiters_remove(&alloc->broker->waiters, &alloc->waiter);
        pending_call_at(state, 0, alloc_resume);
    }
}

static void alloc_begin_pending(struct alloc *alloc)
{
    if (!alloc->state.op)
        pending_begin(&alloc->broker->pending, &alloc->state, alloc->op, alloc_cancel);
}

static int alloc_refuse_cancelled(struct alloc *alloc)
{
    if (alloc->state.cancel_status != STATUS_TIMED_OUT)
        return refuse(alloc_problem(alloc), STATUS_STALE, "session %llu has ended meanwhile",
                      (unsigned long long)alloc->op->session);
    if (alloc->batch.n)
        return refuse(alloc_problem(alloc), STATUS_TIMED_OUT,
                      "the request was given up while its memory was being committed");
    return refuse(alloc_problem(alloc), STATUS_TIMED_OUT,
                  "pool %s had no room within %llu ms; wait longer, or free something", alloc->pool->name,
                  (unsigned long long)alloc->spec->wait_ms);
}

/* ---- waiting for room -------------------------------------------------------------------------------------------- */

/* For as long as the caller wants, or as memory on its way back may be enough. */
static bool alloc_may_wait(struct alloc *alloc, const struct session *session, int status)
{
    if (reclaim_caches(alloc->broker, &alloc->caches, status, session->record->uid))
        return true;
    if (status == STATUS_POOL_FULL && !alloc->waiter.for_reclaim)
        return true;
    return (status == STATUS_POOL_FULL || status == STATUS_LIMIT) &&
           reclaim_may_serve(alloc->pool, session->account, alloc->spec);
}

static int alloc_wait(struct alloc *alloc)
{
    *alloc_problem(alloc) = (struct problem)PROBLEM_NULL;
    alloc_begin_pending(alloc);
    waiters_add(&alloc->broker->waiters, &alloc->waiter,
                alloc->waiter.for_reclaim ? DEADLINE_NEVER : deadline_after_ms(alloc->spec->wait_ms));
    return OP_PENDING;
}

static bool alloc_has_other_pools(const struct alloc *alloc)
{
    return alloc->chosen + 1 < alloc->choice.n;
}

/* The refusal by the pool before is forgotten: that pool was better, not needed. */
static int alloc_try_next_pool(struct alloc *alloc)
{
    *alloc_problem(alloc) = (struct problem)PROBLEM_NULL;
    alloc->chosen++;
    alloc->step = ALLOC_CHOOSE;
    return 0;
}

/* The pool refused with this status. Only for the last one it is worth waiting. */
static int alloc_no_room(struct alloc *alloc, const struct session *session, int status)
{
    if (alloc_has_other_pools(alloc))
        return alloc_try_next_pool(alloc);
    return alloc_may_wait(alloc, session, status) ? alloc_wait(alloc) : status;
}

/* ---- the steps: 0, and alloc->step is the next; OP_PENDING; or the status to end with ---------------------------- */

/* A request that would be refused for another reason than room need not wait to learn that. */
static int alloc_check_sizes(struct alloc *alloc, const struct session *session)
{
    const struct pool_view view = {.taken = TALLY_STOCK, .payer = session->account};

    for (uint32_t i = 0; i < alloc->spec->n; i++) {
        struct plan plan;
        int r = pool_plan(alloc->pool, &alloc->spec->memory, alloc->spec->sizes[i], view, &plan, alloc_problem(alloc));

        if (r && r != STATUS_POOL_FULL) {
            alloc_problem(alloc)->item = i;
            return r;
        }
    }
    return STATUS_POOL_FULL;
}

/* Nobody overtakes requests of the same user that wait already. */
static int alloc_choose(struct alloc *alloc, struct session *session)
{
    bool would_wait = alloc_has_other_pools(alloc) || alloc->spec->wait_ms;

    alloc->pool = alloc->choice.pools[alloc->chosen];
    alloc->step = ALLOC_RESERVE;
    if (!would_wait || !waiters_has(&alloc->broker->waiters, alloc->pool->index, session->record->uid))
        return 0;
    return alloc_no_room(alloc, session, alloc_check_sizes(alloc, session));
}

/* These of the batch get their memory next. */
static void alloc_commit_next(struct alloc *alloc, uint32_t first, uint32_t n)
{
    alloc->job.commits = n ? &alloc->batch.commits[first] : NULL;
    alloc->job.n = n;
    alloc->job.at = 0;
    alloc->step = ALLOC_COMMIT;
}

/* All buffers, or none. Those from stock stay there so far, and the others have no memory yet. */
static int alloc_acquire(struct alloc *alloc, struct session *session)
{
    const struct alloc_spec *spec = alloc->spec;
    const struct buffer_owner owner = owner_of(session);
    struct batch *batch = &alloc->batch;
    int r = 0;

    if (spec->name.name[0] && names_find(&alloc->broker->names, &alloc->name))
        return refuse(alloc_problem(alloc), STATUS_NAME_EXISTS, "the name %s is bound already; unbind it first",
                      spec->name.name);
    /* once: a request that waits for room gets what there is then */
    if (!alloc->state.op)
        r = stocking_take(batch, alloc->pool, spec, &owner, alloc_problem(alloc));
    if (!r)
        r = batch_fill(batch, alloc->pool, spec, &owner, alloc_problem(alloc));
    if (!r) {
        alloc_commit_next(alloc, batch->n_stock, batch->n - batch->n_stock);
        pressure_changed(alloc->broker);
        return 0;
    }
    alloc_problem(alloc)->item = batch->n;
    batch_cut(batch, 0);
    if (r == STATUS_POOL_FULL)
        stocking_shrink(alloc->broker, alloc->pool, batch->node, reclaim_bytes(alloc->pool, session->account, spec));
    return r;
}

static int alloc_reserve(struct alloc *alloc, struct session *session)
{
    int r = alloc_acquire(alloc, session);

    return r ? alloc_no_room(alloc, session, r) : 0;
}

static void alloc_submit(struct op_state *state)
{
    struct alloc *alloc = container_of(state, struct alloc, state);

    commit_job_submit(&alloc->broker->jobs, &alloc->job);
}

/* Small ones on the loop, large ones by a worker. */
static int alloc_commit(struct alloc *alloc)
{
    struct commit_job *job = &alloc->job;

    alloc->step = ALLOC_ENTER;
    job->status = 0;
    if (!job->n)
        return 0; /* all are from stock */
    if (commit_job_is_small(job)) {
        (void)commit_job_run(job);
        return 0;
    }
    alloc_begin_pending(alloc);
    dedup_work(&alloc->state, alloc_submit);
    return OP_PENDING;
}

/* The pool has room, but others have the memory or the descriptors. If these are stock or cached, they are given back,
 * once, and it is worth another attempt. */
static bool alloc_may_drain(struct alloc *alloc)
{
    int status = alloc->job.status;

    if (alloc->drained || (status != STATUS_NO_MEMORY && status != STATUS_NO_DESCRIPTORS))
        return false;
    alloc->drained = reclaim_all(alloc->broker, &alloc->caches);
    return alloc->drained;
}

static int alloc_commit_failed(struct alloc *alloc)
{
    struct batch *batch = &alloc->batch;
    struct commit_job *job = &alloc->job;

    if (alloc_has_other_pools(alloc)) {
        batch_cut(batch, 0);
        return alloc_try_next_pool(alloc);
    }
    if (alloc_may_drain(alloc)) {
        batch_cut(batch, 0);
        alloc->waiter.for_reclaim = true;
        return alloc_wait(alloc);
    }
    *alloc_problem(alloc) = job->commits[job->failed].problem;
    alloc_problem(alloc)->item = (uint32_t)(job->commits - batch->commits) + job->failed;
    return job->status;
}

static int alloc_enter(struct alloc *alloc)
{
    uint32_t entered;

    if (alloc->job.status)
        return alloc_commit_failed(alloc);
    alloc->step = ALLOC_RECORD;
    entered = batch_enter(&alloc->batch);
    if (entered == alloc->batch.n)
        return 0;
    if (++alloc->attempts == ATTEMPTS_MAX)
        return refuse(alloc_problem(alloc), STATUS_NO_MEMORY, "the kernel gave one inode number twice; try again");
    alloc_commit_next(alloc, entered, 1);
    return 0;
}

/* From now on they are buffers like others, and end like others if something fails. */
static int alloc_record(struct alloc *alloc, struct session *session)
{
    const struct buffer_owner owner = owner_of(session);
    struct batch *batch = &alloc->batch;
    int r = batch_commit(batch, alloc->spec, &owner, alloc_problem(alloc));

    alloc->step = ALLOC_GRANT;
    if (r == OP_PENDING) { /* this broker ends at once, and answers nobody */
        batch_cut(batch, 0);
        alloc_begin_pending(alloc);
    }
    return r;
}

static int alloc_grant(struct alloc *alloc, struct session *session)
{
    alloc->step = ALLOC_DONE;
    return claim_batch(session, &alloc->batch, alloc->spec, &alloc->name, alloc->result, alloc_problem(alloc));
}

/* 0 or a status when it has ended, else OP_PENDING. */
static int alloc_run(struct alloc *alloc)
{
    struct session *session = find_session(alloc->broker, alloc->op->session);
    int r = alloc->state.cancel_status || !session ? alloc_refuse_cancelled(alloc) : alloc->wait_status;

    while (!r && alloc->step != ALLOC_DONE) {
        switch (alloc->step) {
        case ALLOC_CHOOSE:
            r = alloc_choose(alloc, session);
            break;
        case ALLOC_RESERVE:
            r = alloc_reserve(alloc, session);
            break;
        case ALLOC_COMMIT:
            r = alloc_commit(alloc);
            break;
        case ALLOC_ENTER:
            r = alloc_enter(alloc);
            break;
        case ALLOC_RECORD:
            r = alloc_record(alloc, session);
            break;
        case ALLOC_GRANT:
            r = alloc_grant(alloc, session);
            break;
        case ALLOC_DONE:
            break;
        }
    }
    if (r && r != OP_PENDING)
        batch_cut(&alloc->batch, 0);
    return r;
}

/* ---- resumed by the loop ----------------------------------------------------------------------------------------- */

static void alloc_free(struct alloc *alloc)
{
    batch_deinit(&alloc->batch);
    free(alloc);
}

static void alloc_end(struct alloc *alloc, int r)
{
    if (r == OP_PENDING)
        return;
    pending_end(&alloc->state, r);
    alloc_free(alloc);
}

static void alloc_resume(struct op_state *state)
{
    struct alloc *alloc = container_of(state, struct alloc, state);

    alloc_end(alloc, alloc_run(alloc));
}

static void alloc_committed(struct job *job)
{
    alloc_resume(&container_of(job, struct alloc, job.job)->state);
}

static bool alloc_retry(struct waiter *waiter)
{
    struct alloc *alloc = container_of(waiter, struct alloc, waiter);
    struct session *session = find_session(alloc->broker, alloc->op->session);
    int r;

    if (!session)
        return true;
    if (!caches_are_taken(alloc->broker, alloc->caches))
        return false;
    *alloc_problem(alloc) = (struct problem)PROBLEM_NULL;
    r = alloc_acquire(alloc, session);
    if (alloc_may_wait(alloc, session, r))
        return false;
    if (r == STATUS_POOL_FULL && alloc->spec->wait_ms)
        alloc->state.cancel_status = STATUS_TIMED_OUT;
    alloc->wait_status = r;
    return true;
}

static void alloc_wait_ended(struct waiter *waiter)
{
    struct alloc *alloc = container_of(waiter, struct alloc, waiter);
    int r;

    op_executing(alloc->broker, alloc->op->session, alloc->op->sequence, METHOD_ALLOC);
    r = alloc_run(alloc);
    op_executed(alloc->broker);
    alloc_end(alloc, r);
}

static void alloc_wait_expired(struct waiter *waiter)
{
    struct alloc *alloc = container_of(waiter, struct alloc, waiter);
    struct session *session = find_session(alloc->broker, alloc->op->session);

    if (session && reclaim_may_serve(alloc->pool, session->account, alloc->spec)) {
        waiter->for_reclaim = true;
        waiters_add(&alloc->broker->waiters, waiter, DEADLINE_NEVER);
        return;
    }
    alloc->state.cancel_status = STATUS_TIMED_OUT;
    alloc_resume(&alloc->state);
}

/* ---- the operation ----------------------------------------------------------------------------------------------- */

static int alloc_check_allowed(const struct pool *pool, const struct session *session, struct problem *problem)
{
    return allow_check(&pool->allow, pool->name, &session->peer, problem);
}

int op_alloc(struct op *op, const struct alloc_spec *spec, struct opened *result)
{
    struct broker *broker = op->broker;
    struct name_key name = {0};
    struct session *session;
    struct pool_choice choice;
    struct alloc *alloc;
    int r = op_session(op, &session);

    if (!r && spec->name.name[0])
        r = name_parse(spec->name.name, session->record->uid, &name, &op->problem);
    if (!r)
        r = pools_choose(broker->options.pools, &spec->memory, spec->n, spec->sizes, &choice, &op->problem);
    /* more than one choice there is of pools that are for everybody */
    if (!r)
        r = alloc_check_allowed(choice.pools[choice.n - 1], session, &op->problem);
    if (r)
        return r;
    session_vacates(broker, session, spec->memory.address, spec->memory.address ? spec->sizes[0] : 0);
    alloc = calloc(1, sizeof(*alloc));
    if (!alloc)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    alloc->broker = broker;
    alloc->op = op;
    alloc->spec = spec;
    alloc->result = result;
    alloc->name = name;
    alloc->choice = choice;
    alloc->job.job.op = op;
    alloc->job.job.done = alloc_committed;
    alloc->job.job.uid = session->record->uid;
    waiter_init(&alloc->waiter, choice.pools[choice.n - 1]->index, session->record->uid);
    alloc->waiter.for_reclaim = !spec->wait_ms;
    alloc->waiter.ready = alloc_retry;
    alloc->waiter.go = alloc_wait_ended;
    alloc->waiter.expired = alloc_wait_expired;
    batch_init(&alloc->batch, broker, spec->n);

    r = alloc_run(alloc);
    if (r != OP_PENDING)
        alloc_free(alloc);
    return r;
}
