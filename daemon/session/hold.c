/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: linked into a session's tree and a buffer's tree from the first moment to the last.
 */
#include "session/hold.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "log/log.h"
#include "mem/rights.h"
#include "proto/status.h"

/* The promise of mem/buffer.h. */
static_assert(sizeof(struct buffer_record) + sizeof(struct buffer) + sizeof(struct hold_record) + sizeof(struct hold) <=
                  520,
              "a buffer with a hold takes at most 520 bytes");

static int compare_buffers(const struct hold *a, const struct hold *b)
{
    return a->record->buffer < b->record->buffer ? -1 : a->record->buffer > b->record->buffer;
}

/* Those of one user in the order of their sessions, which have one each. */
static int compare_users(const struct hold *a, const struct hold *b)
{
    const struct session_record *x = a->session->record, *y = b->session->record;

    if (x->uid != y->uid)
        return x->uid < y->uid ? -1 : 1;
    return x->head.id < y->head.id ? -1 : x->head.id > y->head.id;
}

static struct hold *older_of(struct hold *a, struct hold *b)
{
    return !b || a->record->head.id < b->record->head.id ? a : b;
}

static struct hold *oldest_below(const struct hold *hold)
{
    return hold ? hold->oldest : NULL;
}

static void hold_augment(struct hold *hold)
{
    hold->oldest = older_of(hold, oldest_below(RB_LEFT(hold, in_buffer)));
    hold->oldest = older_of(hold->oldest, oldest_below(RB_RIGHT(hold, in_buffer)));
}

TREE_GENERATE(hold_tree, hold, in_session, compare_buffers)
#undef RB_AUGMENT
#define RB_AUGMENT(hold) hold_augment(hold)
TREE_GENERATE(buffer_hold_tree, hold, in_buffer, compare_users)

static void enter_buffer(struct hold *hold, struct buffer *buffer)
{
    hold->buffer = buffer;
    RB_INSERT(buffer_hold_tree, &buffer->holds, hold);
    buffer_hold_tree_refresh(hold);
    buffer->n_holds++;
}

int hold_ref(struct session *session, struct buffer *buffer, uint32_t rights, struct hold **ret,
             struct problem *problem)
{
    struct hold *hold = session_hold(session, buffer->record->head.id);
    struct hold_record *record;
    void *object;
    int r;

    if (hold) {
        if (hold->record->refs == UINT32_MAX)
            return refuse(problem, STATUS_LIMIT, "this session has opened the buffer %u times; release some first",
                          hold->record->refs);
        record = record_change(&session->sessions->holds, hold);
        record->refs++;
        record->rights |= (uint16_t)rights;
        *ret = hold;
        return 0;
    }
    r = table_alloc(&session->sessions->holds, &object, problem);
    if (r)
        return r;
    hold = object;
    hold->session = session;
    r = account_charge_metadata(session->account, table_entry_bytes(&session->sessions->holds), problem);
    if (r) {
        table_free(&session->sessions->holds, hold);
        return r;
    }
    record = record_fresh(hold);
    record->session = session->record->head.id;
    record->buffer = buffer->record->head.id;
    record->rights = (uint16_t)rights;
    record->refs = 1;
    hold->since_ms = clock_wall_ms();
    RB_INSERT(hold_tree, &session->holds, hold);
    session->n_holds++;
    enter_buffer(hold, buffer);
    audit_after(&session->sessions->holds, hold);
    *ret = hold;
    return 0;
}

void hold_raise_kind(struct hold *hold, enum hold_kind kind)
{
    if (kind > hold->record->kind)
        record_change(&hold->session->sessions->holds, hold)->kind = (uint16_t)kind;
}

enum table_verdict hold_recover(struct hold *hold, struct session *session, struct buffer *buffer, const char **why)
{
    const struct hold_record *record = hold->record;

    if (!record->refs || record->rights & ~RIGHTS_ALL || record->kind > HOLD_EXCLUSIVE) {
        *why = "it grants what there is not";
        return TABLE_QUARANTINE;
    }
    if (!session || !buffer || buffer->record->state != BUFFER_LIVE) {
        log_warning("session %llu holds buffer %llu no more: one of them is gone", (unsigned long long)record->session,
                    (unsigned long long)record->buffer);
        return TABLE_DROP;
    }
    if (RB_INSERT(hold_tree, &session->holds, hold)) {
        *why = "the session has another hold on that buffer";
        return TABLE_QUARANTINE;
    }
    hold->session = session;
    account_restore_metadata(session->account, table_entry_bytes(&session->sessions->holds));
    session->n_holds++;
    enter_buffer(hold, buffer);
    return TABLE_KEEP;
}

struct hold *hold_release(struct hold *hold)
{
    assert(hold->record->refs);
    return --record_change(&hold->session->sessions->holds, hold)->refs ? hold : hold_free(hold);
}

struct hold *hold_free(struct hold *hold)
{
    if (!hold)
        return NULL;
    RB_REMOVE(hold_tree, &hold->session->holds, hold);
    hold->session->n_holds--;
    buffer_hold_tree_remove_summed(&hold->buffer->holds, hold);
    hold->buffer->n_holds--;
    audit_before(&hold->session->sessions->holds, hold);
    account_lower_metadata(hold->session->account, table_entry_bytes(&hold->session->sessions->holds));
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
    return oldest_below(RB_ROOT(&buffer->holds));
}

struct hold *buffer_next_hold(const struct buffer *buffer, struct hold *hold)
{
    return hold ? RB_NEXT(buffer_hold_tree, &buffer->holds, hold)
                : RB_MIN(buffer_hold_tree, (struct buffer_hold_tree *)&buffer->holds);
}

static struct hold *buffer_first_hold_of(const struct buffer *buffer, uid_t uid)
{
    struct hold *found = NULL;

    for (struct hold *hold = RB_ROOT(&buffer->holds); hold;) {
        if (hold->session->record->uid >= uid) {
            found = hold;
            hold = RB_LEFT(hold, in_buffer);
        } else {
            hold = RB_RIGHT(hold, in_buffer);
        }
    }
    return found;
}

struct hold *buffer_next_hold_of(const struct buffer *buffer, uid_t uid, struct hold *hold)
{
    hold = hold ? buffer_next_hold(buffer, hold) : buffer_first_hold_of(buffer, uid);
    return hold && hold->session->record->uid == uid ? hold : NULL;
}
