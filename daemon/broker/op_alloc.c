/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation: charged, placed, committed, recorded and held, or nothing at all.
 *
 * A request goes through the steps below, and only alloc_run() leads from one to the next. A step that cannot end now,
 * since a worker commits or room is waited for, or that takes longer than a slice, returns OP_PENDING, and alloc_run()
 * is called again when it can end, or in the next turn of its user.
 * Meanwhile the client may go. Every way out is at the end of alloc_run(), which gives back whatever there is.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/probe.h"
#include "broker/batch.h"
#include "broker/caches.h"
#include "broker/claims.h"
#include "broker/dedup.h"
#include "broker/events.h"
#include "broker/export.h"
#include "broker/lookup.h"
#include "broker/reclaim.h"
#include "broker/report.h"
#include "broker/sessions.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "mem/pool.h"
#include "proto/methods.h"

/* A memfd with the inode number of another buffer is made again, so often at most. */
#define ATTEMPTS_MAX 3
/* A wait that the caller did not ask for is reported if it took so long. */
#define WAIT_REPORTED_MS 100

enum alloc_step {
    ALLOC_CHOOSE,  /* the next of the pools that would do */
    ALLOC_RESERVE, /* all buffers: from stock, or planned, charged and recorded as intents */
    ALLOC_COMMIT,  /* makes their memory */
    ALLOC_ENTER,   /* gives it to them, and indexes it */
    ALLOC_WATCH,   /* those of which descriptors are to leave */
    ALLOC_HOLD,    /* gives it to the keeper */
    ALLOC_GRANT,   /* makes them LIVE; holds, descriptors, tokens and a name: all in one change */
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
    uid_t uid;            /* whose request it is */
    uint64_t begin;       /* of the slice */

    enum alloc_step step;
    int wait_status; /* of the attempt that ended the wait */
    struct pool_choice choice;
    uint32_t chosen;
    struct pool *pool; /* the chosen one */
    uint64_t caches;   /* the ticket for what clients have cached */
    bool drained;      /* all stock, and all that was cached, was given back for it once */
    unsigned attempts;
    uint64_t waits_since;          /* in ns; 0: it has not waited yet */
    struct shortage shortage;      /* of that moment, */
    struct report_holders holders; /* and theirs */
    uint32_t watched;              /* the first ones of the batch */
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

static bool alloc_slice_is_over(const struct alloc *alloc)
{
    return alloc->spec->n > 1 && slice_is_over(alloc->begin);
}

static void alloc_turn(struct op_state *state);

/* The step goes on, or the next one begins, in the next turn of its user. */
static int alloc_next_turn(struct alloc *alloc)
{
    alloc_begin_pending(alloc);
    pending_call_in_turn(&alloc->state, alloc->uid, alloc_turn);
    return OP_PENDING;
}

/* Each fits into the pool, so that the sum does not overflow. */
static uint64_t alloc_bytes(const struct alloc *alloc)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < alloc->spec->n; i++)
        bytes += alloc->spec->sizes[i];
    return bytes;
}

static int alloc_refuse_cancelled(struct alloc *alloc)
{
    uint64_t bytes;

    if (alloc->state.cancel_status != STATUS_TIMED_OUT)
        return refuse(alloc_problem(alloc), STATUS_STALE, "session %llu has ended meanwhile",
                      (unsigned long long)alloc->op->session);
    if (alloc->batch.n)
        return refuse(alloc_problem(alloc), STATUS_TIMED_OUT,
                      "the request was given up while its memory was being committed");
    if (!alloc->pool)
        return refuse(alloc_problem(alloc), STATUS_TIMED_OUT, "the request was given up before its turn came");
    bytes = alloc_bytes(alloc);
    /* as it is now, as is who has it */
    return refuse(alloc_problem(alloc),
                  problem_short_of(alloc_problem(alloc), STATUS_TIMED_OUT, pool_shortage(alloc->pool, bytes)),
                  "pool %s had no room for %llu bytes within %llu ms; wait longer, or free something",
                  alloc->pool->name, (unsigned long long)bytes, (unsigned long long)alloc->spec->wait_ms);
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

static uint64_t alloc_waited_ms(const struct alloc *alloc)
{
    return alloc->waits_since ? (clock_now_ns() - alloc->waits_since) / NSEC_PER_MSEC : 0;
}

static int alloc_wait(struct alloc *alloc)
{
    if (!alloc->waits_since) {
        alloc->waits_since = clock_now_ns();
        alloc->shortage = alloc_problem(alloc)->shortage;
        if (!alloc->shortage.resource)
            alloc->shortage = pool_shortage(alloc->pool, alloc->spec->sizes[0]);
        report_find_holders(alloc->broker, alloc->uid, &alloc->shortage, &alloc->holders);
        PROBE(wait_begin, alloc->op->session, alloc->op->sequence, alloc->uid, &alloc->pool->name[0],
              alloc->shortage.wanted);
    }
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

/* All buffers, or none, or OP_PENDING: the slice is over. Those from stock stay there so far, and the others have no
 * memory yet, but all are charged. */
static int alloc_acquire(struct alloc *alloc, struct session *session, uint64_t begin)
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
        r = batch_fill(batch, alloc->pool, spec, &owner, begin, alloc_problem(alloc));
    if (r == OP_PENDING)
        return r;
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
    int r = alloc_acquire(alloc, session, alloc->begin);

    if (r == OP_PENDING)
        return alloc_next_turn(alloc);
    return r ? alloc_no_room(alloc, session, r) : 0;
}

static void alloc_submit(struct op_state *state)
{
    struct alloc *alloc = container_of(state, struct alloc, state);

    commit_job_submit(&alloc->broker->jobs, &alloc->job);
}

/* Small ones on the loop, in slices, large ones by a worker. */
static int alloc_commit(struct alloc *alloc)
{
    struct commit_job *job = &alloc->job;

    job->status = 0;
    if (commit_job_is_small(job)) {
        if (!commit_job_run_slice(job, alloc->begin) && job->at < job->n)
            return alloc_next_turn(alloc);
        alloc->step = ALLOC_ENTER; /* at once, if all are from stock */
        return 0;
    }
    alloc->step = ALLOC_ENTER;
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
    alloc->step = ALLOC_WATCH;
    entered = batch_enter(&alloc->batch);
    if (entered == alloc->batch.n)
        return 0;
    if (++alloc->attempts == ATTEMPTS_MAX)
        return refuse(alloc_problem(alloc), STATUS_NO_MEMORY, "the kernel gave one inode number twice; try again");
    alloc_commit_next(alloc, entered, 1);
    return 0;
}

/* All that takes the kernel's time for each of them is done before they are granted, which is one change. */
static int alloc_watch(struct alloc *alloc)
{
    struct batch *batch = &alloc->batch;
    int r = 0;

    for (uint32_t first = alloc->watched;
         alloc->spec->memory.flags & BUFFER_WANT_FDS && alloc->watched < batch->n && !r; alloc->watched++) {
        if (alloc->watched > first && alloc_slice_is_over(alloc))
            return alloc_next_turn(alloc);
        r = buffer_watch(alloc->broker, batch->buffers[alloc->watched], alloc_problem(alloc));
    }
    alloc->step = ALLOC_HOLD;
    return r;
}

static int alloc_hold(struct alloc *alloc)
{
    int r = batch_hold(&alloc->batch, alloc_problem(alloc));

    alloc->step = ALLOC_GRANT;
    if (r == OP_PENDING) { /* this broker ends at once, and answers nobody */
        batch_cut(&alloc->batch, 0);
        alloc_begin_pending(alloc);
    }
    return r;
}

/* A short wait for memory that was on its way back is none that anybody would ask about. */
static void alloc_report_wait(struct alloc *alloc, const struct session *session)
{
    alloc->shortage.waited_ms = alloc_waited_ms(alloc);
    if (alloc->spec->wait_ms || alloc->shortage.waited_ms >= WAIT_REPORTED_MS)
        report_wait(alloc->broker, session, &alloc->shortage, &alloc->holders);
}

/* From now on they are buffers like others, and end like others if something fails. */
static int alloc_grant(struct alloc *alloc, struct session *session)
{
    const struct buffer_owner owner = owner_of(session);

    batch_commit(&alloc->batch, alloc->spec, &owner);
    alloc->step = ALLOC_DONE;
    alloc->op->buffer = alloc->batch.buffers[0]->record->head.id;
    return claim_batch(session, &alloc->batch, alloc->spec, &alloc->name, alloc->result, alloc_problem(alloc));
}

/* 0 or a status when it has ended, else OP_PENDING. */
static int alloc_run(struct alloc *alloc)
{
    struct session *session = find_session(alloc->broker, alloc->op->session);
    int r = alloc->state.cancel_status || !session ? alloc_refuse_cancelled(alloc) : alloc->wait_status;

    alloc->begin = slice_begin();
    while (!r && alloc->step != ALLOC_DONE) {
        if (alloc_slice_is_over(alloc)) {
            r = alloc_next_turn(alloc);
            break;
        }
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
        case ALLOC_WATCH:
            r = alloc_watch(alloc);
            break;
        case ALLOC_HOLD:
            r = alloc_hold(alloc);
            break;
        case ALLOC_GRANT:
            r = alloc_grant(alloc, session);
            break;
        case ALLOC_DONE:
            break;
        }
    }
    if (r != OP_PENDING && alloc->waits_since)
        PROBE(wait_end, alloc->op->session, alloc->op->sequence, alloc->uid, &alloc->pool->name[0], r);
    if (!r && alloc->waits_since)
        alloc_report_wait(alloc, session);
    if (r && r != OP_PENDING) {
        alloc_problem(alloc)->shortage.waited_ms = alloc_waited_ms(alloc);
        batch_cut(&alloc->batch, 0);
    }
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
    r = alloc_acquire(alloc, session, 0);
    if (alloc_may_wait(alloc, session, r))
        return false;
    if (r == STATUS_POOL_FULL && alloc->spec->wait_ms)
        alloc->state.cancel_status = STATUS_TIMED_OUT;
    alloc->wait_status = r;
    return true;
}

/* On the loop. */
static void alloc_execute(struct alloc *alloc)
{
    struct broker *broker = alloc->broker;
    int r;

    op_executing(broker, alloc->op->session, alloc->op->sequence, METHOD_ALLOC);
    r = alloc_run(alloc);
    op_executed(broker);
    alloc_end(alloc, r);
}

static void alloc_turn(struct op_state *state)
{
    struct alloc *alloc = container_of(state, struct alloc, state);
    struct broker *broker = alloc->broker;

    alloc_execute(alloc);
    broker_commit(broker);
}

static void alloc_wait_ended(struct waiter *waiter)
{
    alloc_execute(container_of(waiter, struct alloc, waiter));
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
    alloc->uid = session->record->uid;
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
