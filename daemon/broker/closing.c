/* SPDX-License-Identifier: Apache-2.0 */
/* See closing.h. */
#include "broker/closing.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/events.h"
#include "broker/export.h"
#include "broker/state.h"
#include "mem/commit.h"
#include "mem/handle.h"

/* Neither those who wait for memory nor the next broker wait until all of a large one is given back. */
#define GIVE_BACK_SLICE (UINT64_C(64) << 20)

struct closing {
    struct keeper_drop drop;
    struct memory_job job;
    struct broker *broker;
    struct buffer *buffer; /* stays as long as its exit is this */
    struct timer late;     /* somebody keeps the kernel waiting */
    bool is_stuck;         /* … and is counted for that */
    uint64_t left;         /* bytes that may have pages: the first ones */
};

void closing_ended(struct broker *broker, struct buffer *buffer)
{
    buffer_free(&broker->buffers, buffer);
    waiters_wake(&broker->waiters);
    pressure_changed(broker);
}

/* T is closed. If a descriptor ever left, somebody may still have the inode by means that nobody sees. */
static void closing_complete(struct broker *broker, struct buffer *buffer)
{
    buffer->exit_phase = BUFFER_EXIT_NONE;
    if (buffer->record->watch < 0)
        closing_ended(broker, buffer);
}

/*
 * It is emptied, but caches of clients may have it mapped until they look. All is credited but one granule, which
 * stands for it until then.
 */
static void closing_credit_cached(struct broker *broker, struct buffer *buffer)
{
    uint64_t granule = buffer_granule(buffer);

    if (!(buffer->record->flags & BUFFER_WAS_CACHED) || buffer->record->watch < 0 || buffer->record->plan)
        return;
    if (buffer->record->bytes > granule)
        buffer_lower(&broker->buffers, buffer, buffer->record->bytes - granule);
    buffer_set_reclaiming(&broker->buffers, buffer, false);
    waiters_wake(&broker->waiters);
    pressure_changed(broker);
}

/* On the loop. Its pages are gone, or few, so it does not matter that the keeper closes its copy a moment later. */
static void closing_close_now(struct broker *broker, struct buffer *buffer)
{
    keeper_drop(broker->options.keeper, KEEPER_BUFFER, buffer->record->head.id);
    buffer->fd = fd_close(buffer->fd);
    closing_complete(broker, buffer);
}

/* ---- as it is: its pages go with its inode ----------------------------------------------------------------------- */

static void closing_done(struct job *job)
{
    struct closing *closing = container_of(job, struct closing, job.job);

    closing_complete(closing->broker, closing->buffer);
    free(closing);
}

/* The keeper has closed its copy. */
static void closing_dropped(struct keeper_drop *drop)
{
    struct closing *closing = container_of(drop, struct closing, drop);

    closing->job.fd = steal_fd(&closing->buffer->fd);
    closing->job.task = MEMORY_CLOSE;
    closing->job.job.done = closing_done;
    memory_job_submit(&closing->broker->jobs, &closing->job);
}

static void closing_close_whole(struct closing *closing)
{
    struct broker *broker = closing->broker;
    struct buffer *buffer = closing->buffer;

    /* if this broker ends meanwhile, the watch tells the next one when the memory is back */
    if (!buffer_is_foreign(buffer))
        (void)buffer_watch(broker, buffer, NULL);
    closing->drop.done = closing_dropped;
    keeper_drop_then(broker->options.keeper, KEEPER_BUFFER, buffer->record->head.id, &closing->drop);
}

/* ---- slice by slice ---------------------------------------------------------------------------------------------- */

/* How long others may count on memory that somebody still has open. */
#define LATE_MS 1000

/* The account of the user who pays for it: it is charged until it is back. */
static struct account *closing_payer(const struct closing *closing)
{
    return account_user(closing->buffer->charge.account);
}

/* Nobody waits for this memory any more (reclaim.h). */
static void closing_promise_nothing(struct closing *closing)
{
    struct broker *broker = closing->broker;

    buffer_set_reclaiming(&broker->buffers, closing->buffer, false);
    waiters_wake(&broker->waiters);
    pressure_changed(broker);
}

static void closing_late(struct timer *timer)
{
    struct closing *closing = container_of(timer, struct closing, late);

    closing->is_stuck = true;
    closing_payer(closing)->stuck++;
    closing_promise_nothing(closing);
}

/* It may hang. Whose memory hangs already, of theirs nobody waits for more. */
static void closing_may_hang(struct closing *closing)
{
    if (closing_payer(closing)->stuck)
        closing_promise_nothing(closing);
    else
        timer_arm(&closing->broker->timers, &closing->late, deadline_after_ms(LATE_MS));
}

static void closing_hangs_no_more(struct closing *closing)
{
    timer_disarm(&closing->broker->timers, &closing->late);
    if (closing->is_stuck)
        closing_payer(closing)->stuck--;
    closing->is_stuck = false;
}

static void closing_slice_done(struct job *done);

/* A client that has it in a cache may also have it open, and may be writing to it. */
static bool closing_others_have(const struct buffer *buffer)
{
    return buffer->record->flags & BUFFER_WAS_CACHED && buffer->record->watch >= 0;
}

/* Empties one slice, behind what else waits to be given back. */
static void closing_empty_slice(struct closing *closing)
{
    uint64_t granule = buffer_granule(closing->buffer);
    uint64_t slice = GIVE_BACK_SLICE > granule ? GIVE_BACK_SLICE : granule;
    struct memory_job *job = &closing->job;

    job->fd = closing->buffer->fd;
    job->length = closing->left < slice ? closing->left : slice;
    job->offset = closing->left - job->length;
    job->task = closing_others_have(closing->buffer) ? MEMORY_DISCARD : MEMORY_EMPTY;
    job->job.done = closing_slice_done;
    if (job->task == MEMORY_DISCARD)
        closing_may_hang(closing);
    memory_job_submit(&closing->broker->jobs, job);
}

/* What lies on several nodes, and what was stock, is credited when all of it is back. */
static void closing_credit_slice(struct closing *closing)
{
    struct broker *broker = closing->broker;

    if (closing->buffer->record->plan || buffer_is_unowned(closing->buffer))
        return;
    buffer_lower(&broker->buffers, closing->buffer, closing->job.length);
    waiters_wake(&broker->waiters);
    pressure_changed(broker);
}

static void closing_slice_done(struct job *done)
{
    struct closing *closing = container_of(done, struct closing, job.job);
    struct memory_job *job = &closing->job;

    closing_hangs_no_more(closing);
    if (job->status) {
        closing_close_whole(closing); /* published */
        return;
    }
    closing->left -= job->length;
    if (closing->left) {
        closing_credit_slice(closing);
        closing_empty_slice(closing);
    } else {
        closing_credit_cached(closing->broker, closing->buffer);
        closing_close_now(closing->broker, closing->buffer);
        free(closing);
    }
}

/* ---- which of them ----------------------------------------------------------------------------------------------- */

static void closing_start(struct broker *broker, struct buffer *buffer)
{
    const struct buffer_record *record = buffer->record;
    /* not the pages of a foreign one, nor those that others may have */
    bool may_empty = !buffer_is_foreign(buffer) && !buffer_is_unproven(buffer);
    bool emptied = false;
    struct closing *closing = NULL;

    /* it takes no longer than asking a worker, if nobody can keep the kernel waiting */
    if (may_empty && record->bytes <= COMMIT_INLINE_MAX && !closing_others_have(buffer)) {
        may_empty = false;
        emptied = !handle_discard(buffer->fd, 0, 0, NULL, NULL);
    }
    if (!emptied)
        closing = calloc(1, sizeof(*closing));
    if (!closing) {
        closing_close_now(broker, buffer);
        return;
    }
    closing->broker = broker;
    closing->buffer = buffer;
    closing->left = record->bytes;
    closing->late = (struct timer)TIMER_INIT(closing_late);
    closing->job.job.uid = record->charged_uid; /* WORK_UNOWNED of stock */
    buffer->exit_phase = BUFFER_EXIT_CLOSING;
    buffer->exit.closing = closing;
    if (may_empty)
        closing_empty_slice(closing);
    else
        closing_close_whole(closing);
}

/* Nobody needs T any more, and nobody is working on it. */
static bool closing_may_start(const struct buffer *buffer)
{
    return buffer->record->state == BUFFER_ENDING && buffer->fd >= 0 && !buffer->pins &&
           buffer->exit_phase == BUFFER_EXIT_NONE;
}

void closing_request(struct broker *broker, struct buffer *buffer)
{
    if (!closing_may_start(buffer))
        return;
    buffer->exit_phase = BUFFER_EXIT_QUEUED;
    buffer->exit.next = broker->closing;
    broker->closing = buffer;
}

bool closing_awaits_inode(const struct buffer *buffer)
{
    return buffer->record->state == BUFFER_ENDING && buffer->fd < 0 && buffer->exit_phase == BUFFER_EXIT_NONE;
}

void closing_run(struct broker *broker)
{
    while (broker->closing) {
        struct buffer *buffer = broker->closing;

        broker->closing = buffer->exit.next;
        buffer->exit_phase = BUFFER_EXIT_NONE;
        closing_start(broker, buffer);
    }
}
