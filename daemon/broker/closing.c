/* SPDX-License-Identifier: Apache-2.0 */
/* See closing.h. */
#include "broker/closing.h"

#include <assert.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/steal.h"
#include "broker/check.h"
#include "broker/events.h"
#include "broker/internal.h"
#include "broker/life.h"
#include "mem/commit.h"
#include "mem/handle.h"

/* What waits for memory does not wait for all of a large one to be given back. */
#define GIVE_BACK_SLICE (UINT64_C(64) << 20)

struct closing {
    struct keeper_drop drop;
    struct memory_job job;
    struct broker *broker;
    struct buffer *buffer; /* it stays as long as its userdata is this */
};

/* T is closed. If a descriptor ever left, the inode may be there still, by means that nobody sees. */
static void closed(struct broker *broker, struct buffer *buffer)
{
    buffer->userdata = NULL;
    if (buffer->record->watch < 0)
        life_ended(broker, buffer);
}

static void closing_done(struct memory_job *job)
{
    struct closing *closing = container_of(job, struct closing, job);

    closed(closing->broker, closing->buffer);
    free(closing);
}

static void slice_done(struct memory_job *job);

/* One slice of it, behind what else waits to be given back, or the rest. */
static void give_back(struct closing *closing)
{
    const struct buffer_record *record = closing->buffer->record;
    struct memory_job *job = &closing->job;

    if (!job->discard || record->plan || record->bytes <= GIVE_BACK_SLICE) {
        job->done = closing_done;
        memory_job_end(&closing->broker->jobs, job);
        return;
    }
    job->offset = record->bytes - GIVE_BACK_SLICE;
    job->length = GIVE_BACK_SLICE;
    job->done = slice_done;
    memory_job_discard(&closing->broker->jobs, job);
}

static void slice_done(struct memory_job *job)
{
    struct closing *closing = container_of(job, struct closing, job);
    struct broker *broker = closing->broker;

    if (job->status) {
        /* a published one, or of huge pages: it goes with its inode */
        job->discard = false;
    } else {
        check_crediting(broker, CHECK_BUFFER, closing->buffer);
        buffer_lower(&broker->buffers, closing->buffer, GIVE_BACK_SLICE);
        check_charged(broker, CHECK_BUFFER, closing->buffer);
        waiters_wake(&broker->waiters);
        pressure_changed(broker);
    }
    give_back(closing);
}

/* The keeper has closed its copy. */
static void closing_dropped(struct keeper_drop *drop)
{
    struct closing *closing = container_of(drop, struct closing, drop);

    closing->job.fd = steal_fd(&closing->buffer->fd);
    give_back(closing);
}

/* Here and now. If its pages are gone already, it does not matter that the keeper closes a moment later. */
static void close_now(struct broker *broker, struct buffer *buffer)
{
    keeper_drop(broker->options.keeper, KEEPER_BUFFER, buffer->record->head.id);
    buffer->fd = fd_close(buffer->fd);
    closed(broker, buffer);
}

static void start_closing(struct broker *broker, struct buffer *buffer)
{
    bool exported = buffer->record->flags & BUFFER_EXPORTED;
    bool foreign = buffer_is_foreign(buffer); /* its pages stay, and it may take its driver long to close it */
    bool small = !foreign && buffer->record->bytes <= COMMIT_INLINE_MAX;
    struct closing *closing = NULL;

    if (!small)
        closing = calloc(1, sizeof(*closing));
    if (!closing && !foreign && (!exported || !broker->no_leases) && !handle_discard(buffer->fd, 0, 0, NULL, NULL)) {
        /* so little that it takes no longer than asking a worker, or no memory to ask with */
        close_now(broker, buffer);
        return;
    }
    if (!closing && broker->options.keeper)
        closing = calloc(1, sizeof(*closing));
    if (!closing) {
        close_now(broker, buffer);
        return;
    }
    closing->broker = broker;
    closing->buffer = buffer;
    closing->job.discard = exported && !broker->no_leases;
    closing->drop.done = closing_dropped;
    buffer->userdata = closing;
    keeper_drop_then(broker->options.keeper, KEEPER_BUFFER, buffer->record->head.id, &closing->drop);
}

void closing_add(struct broker *broker, struct buffer *buffer)
{
    assert(!buffer->userdata);
    buffer->userdata = broker->closing;
    broker->closing = buffer;
}

void closing_run(struct broker *broker)
{
    while (broker->closing) {
        struct buffer *buffer = broker->closing;

        broker->closing = buffer->userdata;
        buffer->userdata = NULL;
        start_closing(broker, buffer);
    }
}
