/* SPDX-License-Identifier: Apache-2.0 */
/* See buffer_work.h. */
#include "broker/buffer_work.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/dedup.h"
#include "broker/lifecycle.h"
#include "broker/state.h"

static void buffer_work_cancel(struct op_state *state)
{
    atomic_store(&container_of(state, struct buffer_work, state)->job.cancel, true);
}

static void begins(struct memory_job *job)
{
    dedup_working(container_of(job, struct buffer_work, job)->state.op);
}

static void done(struct memory_job *job)
{
    struct buffer_work *work = container_of(job, struct buffer_work, job);
    int r = work->ended(work);

    if (r && !work->state.op->problem.sentence[0])
        work->state.op->problem = work->job.problem;
    lifecycle_unpin(work->broker, work->buffer);
    pending_end(&work->state, r);
    free(work);
}

int buffer_work_begin(struct op *op, struct buffer *buffer, int (*ended)(struct buffer_work *work),
                      struct buffer_work **ret)
{
    struct buffer_work *work = calloc(1, sizeof(*work));

    if (!work)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory for one more request");
    work->broker = op->broker;
    work->buffer = buffer;
    work->ended = ended;
    work->job.fd = buffer->fd;
    work->job.buffer = buffer->record->head.id;
    work->job.begins = begins;
    work->job.done = done;
    lifecycle_pin(buffer);
    pending_begin(&op->broker->pending, &work->state, op, buffer_work_cancel);
    *ret = work;
    return OP_PENDING;
}

void name_holders(const struct buffer *buffer, uint32_t rights, uint64_t except, char who[PROBLEM_SENTENCE_MAX])
{
    size_t length = 0;

    who[0] = '\0';
    list_for_each_entry(hold, &buffer->holds, struct hold, in_buffer)
    {
        const struct session_record *session = hold->session->record;
        int n;

        if ((hold->record->rights & rights) != rights || session->head.id == except)
            continue;
        n = snprintf(who + length, PROBLEM_SENTENCE_MAX - length, "%ssession %llu (pid %u, %s)", length ? ", " : "",
                     (unsigned long long)session->head.id, session->pid, session->program);
        if (n < 0 || (size_t)n >= PROBLEM_SENTENCE_MAX - length - 64) {
            who[length] = '\0';
            break;
        }
        length += (size_t)n;
    }
    if (!length)
        (void)snprintf(who, PROBLEM_SENTENCE_MAX, "nobody the broker knows of");
}
