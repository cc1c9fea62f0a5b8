/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: linked into a session's tree and a buffer's list from the first moment to the last.
 */
#include "session/hold.h"

#include <assert.h>

#include "proto/status.h"

static int compare_buffers(const struct hold *a, const struct hold *b)
{
    return a->record->buffer < b->record->buffer ? -1 : a->record->buffer > b->record->buffer;
}

TREE_GENERATE(hold_tree, hold, in_session, compare_buffers)

int hold_claim(struct session *session, struct buffer *buffer, uint32_t rights, struct hold **ret,
               struct problem *problem)
{
    struct hold *hold = session_hold(session, buffer->record->head.id);
    struct hold_record *record;
    void *object;
    int r;

    if (hold) {
        if (hold->record->claims == UINT32_MAX)
            return refuse(problem, STATUS_LIMIT, "this session has opened the buffer %u times; release some first",
                          hold->record->claims);
        record = record_change(&session->sessions->holds, hold);
        record->claims++;
        record->rights |= (uint16_t)rights;
        *ret = hold;
        return 0;
    }
    r = table_alloc(&session->sessions->holds, &object, problem);
    if (r)
        return r;
    hold = object;
    hold->session = session;
    hold->buffer = buffer;
    record = record_fresh(hold);
    record->session = session->record->head.id;
    record->buffer = buffer->record->head.id;
    record->rights = (uint16_t)rights;
    record->claims = 1;
    RB_INSERT(hold_tree, &session->holds, hold);
    session->n_holds++;
    list_append(&buffer->holds, &hold->in_buffer);
    buffer->n_holds++;
    *ret = hold;
    return 0;
}

void hold_claim_kind(struct hold *hold, enum hold_kind kind)
{
    if (kind > hold->record->kind)
        record_change(&hold->session->sessions->holds, hold)->kind = (uint16_t)kind;
}

struct hold *hold_release(struct hold *hold)
{
    assert(hold->record->claims);
    return --record_change(&hold->session->sessions->holds, hold)->claims ? hold : hold_free(hold);
}

struct hold *hold_free(struct hold *hold)
{
    if (!hold)
        return NULL;
    RB_REMOVE(hold_tree, &hold->session->holds, hold);
    hold->session->n_holds--;
    list_remove(&hold->in_buffer);
    hold->buffer->n_holds--;
    table_free(&hold->session->sessions->holds, hold);
    return NULL;
}

struct hold *session_next_hold(const struct session *session, uint64_t from)
{
    struct hold *found = NULL;

    for (struct hold *hold = RB_ROOT(&session->holds); hold;) {
        if (hold->record->buffer >= from) {
            found = hold;
            hold = RB_LEFT(hold, in_session);
        } else {
            hold = RB_RIGHT(hold, in_session);
        }
    }
    return found;
}

struct hold *session_hold(const struct session *session, uint64_t buffer)
{
    struct hold *hold = session_next_hold(session, buffer);

    return hold && hold->record->buffer == buffer ? hold : NULL;
}

struct hold *buffer_oldest_hold(const struct buffer *buffer)
{
    struct list *first = list_first(&buffer->holds);

    return first ? container_of(first, struct hold, in_buffer) : NULL;
}
