/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors are opened here, when a reply leaves (export.h). Nothing changes but the table of descriptors: what a
 * buffer's first descriptor needs, its watch and its flag, is recorded since the operation.
 */
#include <string.h>

#include "broker/lookup.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "mem/handle.h"
#include "proto/status.h"
#include "work/turn.h"

static int fds_open_buffer(struct broker *broker, struct session *session, const struct fd_item *item, int *ret_fd,
                           struct problem *problem)
{
    uint32_t rights = RIGHT_READ | (item->rights & RIGHT_WRITE);
    const struct buffer *buffer;
    struct hold *hold;
    bool writable;
    int r = find_hold(broker, session, item->buffer, rights, &hold, problem);

    if (r)
        return r;
    buffer = hold->buffer;
    if (buffer_is_foreign(buffer))
        return handle_duplicate(buffer->fd, ret_fd, problem);
    if (buffer->record->watch < 0)
        return refuse(problem, STATUS_BUSY, "buffer %llu is not watched any more; ask for a descriptor of it again",
                      (unsigned long long)item->buffer);
    writable = rights & RIGHT_WRITE && !buffer_is_sealed(buffer);
    return handle_reopen(buffer->fd, writable, ret_fd, problem);
}

static int fds_open_log(const struct session *session, int *ret_fd, struct problem *problem)
{
    if (session->release_log < 0)
        return refuse(problem, STATUS_STALE, "the session has no release log any more");
    return handle_reopen(session->release_log, true, ret_fd, problem);
}

/* The session has it, and the kernel does not open it. */
static bool fds_may_come_later(int status)
{
    return status == STATUS_NO_DESCRIPTORS || status == STATUS_NO_MEMORY || status == STATUS_NOT_SUPPORTED;
}

int op_open_fds(struct op *op, const struct fd_list *list, struct fdset *opened, struct statuses *result,
                struct fdset *fds)
{
    struct session *session = NULL;
    int ended = op_session(op, &session);
    const uint32_t open = fdset_count(fds);
    uint64_t begin = slice_begin();

    result->n = list->n;
    memset(result->status, 0, open * sizeof(result->status[0]));
    for (uint32_t i = open; i < list->n; i++) {
        struct problem problem = PROBLEM_NULL;
        int fd = opened && !ended ? fdset_steal(opened, i) : -1;
        int r = ended;

        /* the next call knows of those that are open, and not of any that could not be */
        if (fd < 0 && i > open && fdset_count(fds) == i && slice_is_over(begin))
            return OP_PENDING;
        if (!r && fd < 0)
            r = list->release_log ? fds_open_log(session, &fd, &problem)
                                  : fds_open_buffer(op->broker, session, &list->items[i], &fd, &problem);
        if (fds_may_come_later(r)) {
            stocking_look(op->broker); /* stock has some, and gives way */
            op->problem = problem;
            fdset_deinit(fds);
            return r;
        }
        if (r)
            item_failed(&op->problem, &problem, i);
        else
            (void)fdset_push(fds, fd);
        result->status[i] = r;
    }
    return 0;
}
