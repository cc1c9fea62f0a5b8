/* SPDX-License-Identifier: Apache-2.0 */
/* See export.h. */
#include "broker/export.h"

#include "broker/lookup.h"
#include "broker/state.h"
#include "mem/handle.h"
#include "proto/status.h"

void opened_fill(struct opened_item *item, const struct hold *hold)
{
    const struct buffer_record *record = hold->buffer->record;

    *item = (struct opened_item){
        .rights = hold->record->rights,
        .flags = buffer_flags(hold->buffer),
        .id = record->head.id,
        .size = record->size,
        .bytes = record->bytes,
        .granule = buffer_granule(hold->buffer),
        .address = record->address,
    };
}

int buffer_watch(struct broker *broker, struct buffer *buffer, struct problem *problem)
{
    int wd, r;

    if (buffer->record->watch >= 0)
        return 0;
    r = watch_add(&broker->watch, buffer->fd, &wd, problem);
    if (r)
        return r;
    buffer_set_watch(&broker->buffers, buffer, wd);
    if (wd > broker->newest_watch)
        broker->newest_watch = wd;
    return 0;
}

int foreign_is_wanted(const struct buffer *buffer, bool wanted, struct problem *problem)
{
    if (!buffer_is_foreign(buffer) || wanted)
        return 0;
    return refuse(problem, STATUS_NOT_SUPPORTED,
                  "buffer %llu is foreign: unsealed memory that the broker did not make; say that you accept such",
                  (unsigned long long)buffer->record->head.id);
}

int find_own_memory(struct op *op, uint64_t buffer, uint32_t rights, struct hold **ret)
{
    struct session *session;
    struct hold *hold;
    int r = op_session(op, &session);

    if (!r)
        r = find_hold(op->broker, session, buffer, rights, &hold, &op->problem);
    if (!r && buffer_is_foreign(hold->buffer))
        r = refuse(&op->problem, STATUS_NOT_SUPPORTED,
                   "buffer %llu is foreign: its memory is not the broker's to seal, empty, move or place; ask who made "
                   "it",
                   (unsigned long long)buffer);
    if (!r)
        *ret = hold;
    return r;
}

/* NO_RIGHT if its descriptor is open with other access. */
static int foreign_check_access(const struct buffer *buffer, bool writable, struct problem *problem)
{
    bool is_writable = handle_is_writable(buffer->fd);

    if (writable == is_writable)
        return 0;
    return refuse(
        problem, STATUS_NO_RIGHT,
        "buffer %llu is foreign: its descriptor is open for %s, and nobody can be given another; ask for that",
        (unsigned long long)buffer->record->head.id, is_writable ? "reading and writing" : "reading only");
}

/* Who touches a page first pays for it, if only to read it: nobody is to pay so for memory of somebody else. */
int buffer_check_committed(const struct buffer *buffer, struct problem *problem)
{
    const struct buffer_record *record = buffer->record;
    struct handle_identity identity = {0};

    if (!(record->flags & BUFFER_CLIENT_CHARGED))
        return 0;
    if (!handle_identity(buffer->fd, &identity) && identity.allocated >= record->bytes)
        return 0;
    return refuse(
        problem, STATUS_BUSY,
        "buffer %llu has pages for %llu of its %llu bytes: whoever allocated it, and pays for them, is to allocate "
        "all before others may have it (charge = client); try again in a moment",
        (unsigned long long)record->head.id, (unsigned long long)identity.allocated, (unsigned long long)record->bytes);
}

int hold_export(struct broker *broker, const struct hold *hold, bool writable, struct problem *problem)
{
    struct buffer *buffer = hold->buffer;
    int r = 0;

    if (buffer_is_foreign(buffer))
        return foreign_check_access(buffer, writable, problem);
    if (buffer->record->charged_session != hold->session->record->head.id)
        r = buffer_check_committed(buffer, problem);
    if (!r)
        r = buffer_watch(broker, buffer, problem);
    if (!r)
        buffer_add_flags(&broker->buffers, buffer, BUFFER_EXPORTED);
    return r;
}
