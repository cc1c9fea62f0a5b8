/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to buffers that exist: given up, exported, imported, published, discarded, destroyed.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/claims.h"
#include "broker/dedup.h"
#include "broker/events.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "mem/handle.h"
#include "sys/sys.h"

/* ---- release ----------------------------------------------------------------------------------------------------- */

/*
 * What a session holds it gives up at once, and all of it in one change with the reply. What follows takes longer: of
 * each buffer that nobody holds any more the kernel is asked who has it, and its memory is given back. That is done in
 * slices, before the reply is sent. If the broker dies meanwhile, the next one finds buffers that nothing keeps.
 */
struct release {
    struct op_state state;
    struct broker *broker;
    uid_t uid; /* whose request it is */
    uint32_t at;
    struct ids left; /* buffers that the session held and does not any more */
};

/* So few are looked at in the turn of the request itself. */
#define RELEASE_AT_ONCE 2

static void release_settle_one(struct broker *broker, uint64_t id)
{
    struct buffer *buffer = buffers_find(&broker->buffers, id);

    if (buffer)
        lifecycle_claim_gone(broker, buffer);
}

static void release_turn(struct op_state *state)
{
    struct release *release = container_of(state, struct release, state);
    uint64_t begin = slice_begin();

    do {
        release_settle_one(release->broker, release->left.id[release->at++]);
        broker_commit(release->broker);
    } while (release->at < release->left.n && !slice_is_over(begin));
    if (release->at < release->left.n) {
        pending_call_in_turn(state, release->uid, release_turn);
        return;
    }
    pending_end(state, 0);
    free(release);
}

static int release_settle(struct op *op, const struct session *session, const struct ids *left)
{
    struct release *release = left->n > RELEASE_AT_ONCE && !op->unasked ? malloc(sizeof(*release)) : NULL;

    if (!release) { /* also without memory all of them are looked at now */
        for (uint32_t i = 0; i < left->n; i++)
            release_settle_one(op->broker, left->id[i]);
        return 0;
    }
    *release = (struct release){.broker = op->broker, .uid = session->record->uid, .left = *left};
    pending_begin(&op->broker->pending, &release->state, op, NULL);
    pending_call_in_turn(&release->state, release->uid, release_turn);
    return OP_SETTLING;
}

static int release_one(struct broker *broker, struct session *session, uint64_t id, struct ids *left,
                       struct problem *problem)
{
    struct hold *hold;
    int r = find_hold(broker, session, id, 0, &hold, problem);

    /* whether it held the buffer once, or never, it has no claim now */
    if (r)
        return r == STATUS_NO_RIGHT ? STATUS_STALE : r;
    if (hold->record->refs == 1) {
        event_hold(broker, EVENT_LEFT, hold);
        caches_hold_ends(broker, hold);
    }
    if (!hold_release(hold))
        left->id[left->n++] = id;
    return 0;
}

int op_release(struct op *op, const struct ids *buffers, struct statuses *result)
{
    struct session *session;
    struct ids left = {.n = 0};
    int r = op_session(op, &session);

    if (r)
        return r;
    result->n = buffers->n;
    for (uint32_t i = 0; i < buffers->n; i++) {
        struct problem problem = PROBLEM_NULL;

        result->status[i] = release_one(op->broker, session, buffers->id[i], &left, &problem);
        if (result->status[i])
            item_failed(&op->problem, &problem, i);
    }
    return release_settle(op, session, &left);
}

/* ---- shareable handles ------------------------------------------------------------------------------------------- */

static int export_one(struct broker *broker, const struct hold *hold, bool writable, struct problem *problem)
{
    if (writable && buffer_is_sealed(hold->buffer))
        return refuse(problem, STATUS_PUBLISHED, "buffer %llu is published: nobody may write it; ask for READ",
                      (unsigned long long)hold->buffer->record->head.id);
    return hold_export(broker, hold, writable, problem);
}

int op_export(struct op *op, const struct export_args *args, struct statuses *result)
{
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    result->n = args->buffers.n;
    for (uint32_t i = 0; i < args->buffers.n; i++) {
        struct problem problem = PROBLEM_NULL;
        uint32_t rights = rights_complete(args->rights[i]) | RIGHT_READ;
        struct hold *hold;

        r = find_hold(op->broker, session, args->buffers.id[i], rights, &hold, &problem);
        if (!r)
            r = export_one(op->broker, hold, rights & RIGHT_WRITE, &problem);
        if (r)
            item_failed(&op->problem, &problem, i);
        result->status[i] = r;
    }
    return 0;
}

/*
 * Finds the buffer of a descriptor. Only what the kernel says counts, as a door has seen it a moment ago: of the files
 * of this broker's user no other has this inode, which is new for each buffer.
 */
static int import_identify(struct broker *broker, const struct handle_shown *shown, struct buffer **ret,
                           struct problem *problem)
{
    const struct handle_identity *identity = &shown->identity;
    struct buffer *buffer = buffers_by_inode(&broker->buffers, identity->dev, identity->ino);

    /* one that is not watched has never left the broker */
    if (!buffer || buffer->record->watch < 0 || identity->size != buffer->record->bytes)
        return refuse(problem, STATUS_FD_FOREIGN,
                      "the descriptor is of a memory file that is no buffer of this broker; of another broker's?");
    if (buffer_is_unproven(buffer))
        return refuse(problem, STATUS_FD_FOREIGN,
                      "buffer %llu has ended: this kernel does not say who has such pages, so only a name, a keeping "
                      "token or another process that holds it would have kept it",
                      (unsigned long long)buffer->record->head.id);
    if (buffer->record->state == BUFFER_ENDING)
        return refuse(problem, STATUS_FD_FOREIGN, "buffer %llu has ended and its contents are gone",
                      (unsigned long long)buffer->record->head.id);
    *ret = buffer;
    return 0;
}

int op_import(struct op *op, const struct handle_shown *shown, uint32_t n, struct opened *result)
{
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    result->n = n;
    result->with_fds = false;
    fdset_init(&result->fds);
    for (uint32_t i = 0; i < result->n; i++) {
        struct problem problem = PROBLEM_NULL;
        struct buffer *buffer = NULL;
        struct hold *hold;

        r = import_identify(op->broker, &shown[i], &buffer, &problem);
        if (!r)
            r = lifecycle_may_revive(op->broker, buffer, &problem);
        if (!r)
            r = claim_hold(op->broker, session, buffer,
                           RIGHT_READ | RIGHT_SHARE | (shown[i].writable ? (uint32_t)RIGHT_WRITE : 0), &hold, &problem);
        if (r) {
            item_failed(&op->problem, &problem, i);
            result->items[i] = (struct opened_item){.status = r};
        } else {
            lifecycle_revived(op->broker, buffer);
            /* others may have the descriptor, too, whatever the holders say */
            buffer_remove_flags(&op->broker->buffers, buffer, BUFFER_IN_HAND);
            opened_fill(&result->items[i], hold);
        }
    }
    return 0;
}

/* ---- slow work on one buffer ------------------------------------------------------------------------------------- */

/*
 * The worker has T; the pin keeps it open, and the buffer there, until the work is done. That may take as long as
 * another process likes, so one that is cancelled is soon given up: its operation ends, and it goes on without.
 */
struct buffer_work {
    struct op_state state;
    struct memory_job job;
    struct broker *broker;
    struct buffer *buffer;
    int (*ended)(struct buffer_work *work); /* before the buffer is unpinned: the status to end with; NULL: the job's */
};

/* A worker that is not kept waiting notices a cancel flag before that. */
#define GIVE_UP_MS 1000

static void buffer_work_give_up(struct op_state *state)
{
    struct buffer_work *work = container_of(state, struct buffer_work, state);
    bool was_submitted = work->job.job.jobs;
    int status = refuse(&state->op->problem, state->cancel_status,
                        was_submitted ? "it was cancelled, but another process that may write to the buffer keeps the "
                                        "kernel waiting, and it may still be done when that is over"
                                      : "it was cancelled before it began");

    pending_end(state, status);
    if (was_submitted)
        return;
    lifecycle_unpin(work->broker, work->buffer);
    free(work);
}

static void buffer_work_cancel(struct op_state *state)
{
    struct buffer_work *work = container_of(state, struct buffer_work, state);

    atomic_store(&work->job.cancel, true);
    if (!job_withdraw(&work->job.job))
        pending_call_at(state, work->job.job.jobs ? deadline_after_ms(GIVE_UP_MS) : 0, buffer_work_give_up);
}

static void buffer_work_submit(struct op_state *state)
{
    struct buffer_work *work = container_of(state, struct buffer_work, state);

    memory_job_submit(&work->broker->jobs, &work->job);
}

static void buffer_work_done(struct job *job)
{
    struct buffer_work *work = container_of(job, struct buffer_work, job.job);
    struct op *op = work->state.op; /* NULL: it was given up */
    int r = work->ended ? work->ended(work) : work->job.status;

    if (r && op && !op->problem.sentence[0])
        op->problem = work->job.problem;
    lifecycle_unpin(work->broker, work->buffer);
    if (op)
        pending_end(&work->state, r);
    free(work);
}

/* `how` has what differs from job to job. OP_PENDING or NO_MEMORY. */
static int buffer_work_begin(struct op *op, struct buffer *buffer, const struct memory_job *how,
                             int (*ended)(struct buffer_work *work))
{
    struct buffer_work *work = calloc(1, sizeof(*work));

    if (!work)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    work->broker = op->broker;
    work->buffer = buffer;
    work->ended = ended;
    work->job = *how;
    work->job.fd = buffer->fd;
    work->job.job.op = op;
    work->job.job.uid = find_session(op->broker, op->session)->record->uid;
    work->job.job.done = buffer_work_done;
    lifecycle_pin(buffer);
    pending_begin(&op->broker->pending, &work->state, op, buffer_work_cancel);
    dedup_work(&work->state, buffer_work_submit);
    return OP_PENDING;
}

/* ---- publish ----------------------------------------------------------------------------------------------------- */

/* The kernel says that somebody stands against the seal, but not who. A reader can pin pages as well as a writer. */
static void publish_name_suspects(const struct buffer *buffer, int status, struct problem *problem)
{
    char writers[PROBLEM_SENTENCE_MAX / 3], readers[PROBLEM_SENTENCE_MAX / 3];

    name_holders(buffer, (struct holders){.with = RIGHT_WRITE}, writers, sizeof(writers));
    name_holders(buffer, (struct holders){.without = RIGHT_WRITE}, readers, sizeof(readers));
    if (status == STATUS_BUSY)
        problem_set(problem,
                    "it is mapped for writing, or its pages are pinned; who may write it: %s; who may read it: %s",
                    writers, readers);
    else
        problem_set(problem, "somebody who can write it has forbidden to seal it (F_SEAL_SEAL); who may write it: %s",
                    writers);
}

static int publish_done(struct buffer_work *work)
{
    const struct buffer *buffer = work->buffer;
    struct op *op = work->state.op;
    int status = work->job.status;

    if (op && (status == STATUS_BUSY || (status == STATUS_NOT_SUPPORTED && buffer_seals(buffer) & F_SEAL_SEAL)))
        publish_name_suspects(buffer, status, &op->problem);
    if (!status) {
        buffer_add_flags(&work->broker->buffers, work->buffer,
                         buffer_flags(buffer) & (BUFFER_PUBLISHED | BUFFER_PUBLISHED_FUTURE_ONLY));
        event_buffer(work->broker, EVENT_PUBLISHED, buffer, work->state.session);
    }
    return status;
}

int op_publish(struct op *op, uint64_t id, bool future_only)
{
    struct hold *hold;
    int r = find_own_memory(op, id, RIGHT_MANAGE, &hold);

    if (r)
        return r;
    if (hold->buffer->record->flags & BUFFER_PUBLISHED && op->replay)
        return 0; /* the broker that died got as far as the seal */
    if (hold->buffer->record->flags & BUFFER_PUBLISHED)
        return refuse(&op->problem, STATUS_PUBLISHED, "buffer %llu is published already", (unsigned long long)id);
    if (!(hold->buffer->record->flags & BUFFER_PUBLISHABLE))
        return refuse(&op->problem, STATUS_NOT_SUPPORTED,
                      "buffer %llu was not made to be published; allocate it with PUBLISHABLE", (unsigned long long)id);
    return buffer_work_begin(op, hold->buffer, &(struct memory_job){.task = MEMORY_PUBLISH, .future_only = future_only},
                             publish_done);
}

/* ---- discard ----------------------------------------------------------------------------------------------------- */

static int discard_done(struct buffer_work *work)
{
    if (!work->job.status)
        event_discarded(work->broker, work->buffer, work->state.session);
    return work->job.status;
}

int op_discard(struct op *op, uint64_t id, uint64_t offset, uint64_t length)
{
    const struct buffer_record *record;
    struct hold *hold;
    uint64_t end;
    int r = find_own_memory(op, id, RIGHT_WRITE | RIGHT_MANAGE, &hold);

    if (r)
        return r;
    record = hold->buffer->record;
    if (record->flags & BUFFER_PUBLISHED)
        return refuse(&op->problem, STATUS_PUBLISHED, "buffer %llu is published: its contents stay",
                      (unsigned long long)id);
    if (record->pages == PAGES_HUGETLB)
        return refuse(&op->problem, STATUS_NOT_SUPPORTED,
                      "huge pages of the system cannot be discarded and had again for sure; write zeros instead");
    if ((offset | length) & (buffer_granule(hold->buffer) - 1))
        return refuse(&op->problem, STATUS_INVALID_ARGUMENT, "offset and length must be multiples of %llu",
                      (unsigned long long)buffer_granule(hold->buffer));
    if (offset >= record->bytes || !checked_add_u64(offset, length, &end) || end > record->bytes)
        return refuse(&op->problem, STATUS_SIZE_OVERFLOW, "the range goes beyond the buffer's %llu bytes",
                      (unsigned long long)record->bytes);
    return buffer_work_begin(op, hold->buffer,
                             &(struct memory_job){.task = MEMORY_DISCARD, .offset = offset, .length = length},
                             discard_done);
}

/* ---- destroy ----------------------------------------------------------------------------------------------------- */

static int may_destroy(struct op *op, const struct session *session, const struct buffer *buffer, bool force)
{
    struct hold *hold = session_hold(session, buffer->record->head.id);

    if (is_admin(op->broker, session))
        return 0;
    if (force)
        return refuse(&op->problem, STATUS_NOT_ADMIN,
                      "only root and uid %u may take memory from those who have it mapped",
                      (unsigned)op->broker->options.uid);
    if (buffer->record->uid != session->record->uid)
        return refuse(&op->problem, STATUS_NO_RIGHT,
                      "buffer %llu is another user's; only they, root and uid %u may end it",
                      (unsigned long long)buffer->record->head.id, (unsigned)op->broker->options.uid);
    if (hold && !(hold->record->rights & RIGHT_MANAGE))
        return refuse(&op->problem, STATUS_NO_RIGHT, "the hold on buffer %llu lacks MANAGE",
                      (unsigned long long)buffer->record->head.id);
    return 0;
}

/* Nothing keeps it any more, but somebody has it, or may have it. */
static int destroy_contents(struct op *op, struct buffer *buffer)
{
    if (buffer_is_sealed(buffer))
        return refuse(&op->problem, STATUS_PUBLISHED,
                      "buffer %llu has ended, but it is published and the kernel lets nobody empty it; it goes with "
                      "the last who has it mapped",
                      (unsigned long long)buffer->record->head.id);
    return buffer_work_begin(op, buffer, &(struct memory_job){.task = MEMORY_DISCARD}, NULL);
}

int op_destroy(struct op *op, uint64_t id, bool force)
{
    struct broker *broker = op->broker;
    struct session *session;
    struct buffer *buffer;
    int r = op_session(op, &session);

    if (r)
        return r;
    buffer = buffers_find(&broker->buffers, id);
    if (!buffer || buffer->record->state == BUFFER_ENDING) {
        if (op->replay && ledger_id_was_given(broker->ledger, id))
            return 0; /* the broker that died got as far as that */
        return no_such(broker, &op->problem, id, "buffer");
    }
    r = may_destroy(op, session, buffer, force);
    if (r)
        return r;
    if (buffer->record->state == BUFFER_DETACHED && !force)
        return refuse(&op->problem, STATUS_STALE,
                      "buffer %llu has ended, but somebody has it open or mapped; an administrator may use force",
                      (unsigned long long)id);
    /* T is needed if it is to be emptied */
    lifecycle_pin(buffer);
    lifecycle_destroy(broker, buffer);
    r = force && buffer->record->detached_ms ? destroy_contents(op, buffer) : 0;
    lifecycle_unpin(broker, buffer);
    return r;
}
