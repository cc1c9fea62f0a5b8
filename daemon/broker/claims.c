/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See claims.h. Each function calls the one of the object's module, and does what has to happen beside it.
 */
#include "broker/claims.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/batch.h"
#include "broker/events.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/oom.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "mem/handle.h"
#include "proto/status.h"

int claim_hold(struct broker *broker, struct session *session, struct buffer *buffer, uint32_t rights,
               struct hold **ret, struct problem *problem)
{
    int r = hold_ref(session, buffer, rights, ret, problem);

    if (r)
        return r;
    record_commit(&broker->sessions.holds, *ret);
    if ((*ret)->record->refs == 1) {
        event_hold(broker, EVENT_HELD, *ret);
        oom_begin(broker, session);
    }
    return 0;
}

/* A descriptor can be read, whatever else it is for. */
static int claim_export(struct broker *broker, const struct hold *hold, struct problem *problem)
{
    struct buffer *buffer = hold->buffer;
    uint32_t rights = hold->record->rights;

    if (!(rights & RIGHT_READ))
        return refuse(problem, STATUS_NO_RIGHT,
                      "a descriptor of buffer %llu takes READ, which is not granted; open it without one",
                      (unsigned long long)buffer->record->head.id);
    return hold_export(broker, hold, rights & RIGHT_WRITE && !buffer_is_sealed(buffer), problem);
}

int claim_open(struct broker *broker, const struct claim *claim, bool with_fd, struct opened_item *ret,
               struct problem *problem)
{
    struct buffer *buffer = claim->buffer;
    uint32_t may = claim->may, rights = rights_complete(claim->rights);
    bool is_published = buffer_is_sealed(buffer);
    bool is_read_only = is_published || (buffer_is_foreign(buffer) && !handle_is_writable(buffer->fd));
    struct hold *hold;
    int r;

    if (!rights_cover(may, rights))
        return refuse(problem, STATUS_NO_RIGHT,
                      "not all of these rights are granted; ask for fewer, or for a token that grants them");
    if (is_published && rights & RIGHT_WRITE)
        return refuse(problem, STATUS_PUBLISHED, "buffer %llu is published: nobody may write it; ask for READ",
                      (unsigned long long)buffer->record->head.id);
    if (is_read_only && rights & RIGHT_WRITE)
        return refuse(problem, STATUS_NO_RIGHT, "buffer %llu was handed in open for reading only; ask for READ",
                      (unsigned long long)buffer->record->head.id);
    if (!rights)
        rights = may & ~(is_read_only ? (uint32_t)RIGHT_WRITE : 0);
    r = claim_hold(broker, claim->session, buffer, rights, &hold, problem);
    if (r)
        return r;
    if (with_fd) {
        r = claim_export(broker, hold, problem);
        if (r) {
            if (hold->record->refs == 1)
                event_hold(broker, EVENT_LEFT, hold);
            hold_release(hold);
            return r;
        }
    }
    opened_fill(ret, hold);
    return 0;
}

/* ---- of what was allocated --------------------------------------------------------------------------------------- */

/* A descriptor is to leave, unless `fds` is NULL: the description that was opened beforehand, if there is one, and if
 * all before it have theirs. */
static int claim_one(struct session *session, struct batch *batch, uint32_t i, struct opened_item *ret,
                     struct fdset *fds, struct problem *problem)
{
    struct hold *hold;
    int r = claim_hold(batch->broker, session, batch->buffers[i], RIGHTS_ALL, &hold, problem);

    if (!r && fds)
        r = hold_export(batch->broker, hold, true, problem);
    if (r)
        return r;
    if (fds && batch->fds[i] >= 0 && fdset_count(fds) == i)
        (void)fdset_push(fds, steal_fd(&batch->fds[i]));
    batch->fds[i] = fd_close(batch->fds[i]);
    if (session->release_log >= 0)
        buffer_add_flags(&batch->broker->buffers, batch->buffers[i], BUFFER_IN_HAND);
    opened_fill(ret, hold);
    return 0;
}

/*
 * The token that SHARE without any terms would make: READ and WRITE for every bearer. None is made, and the bytes are
 * zero, where the user is near the limit of tokens, which other sessions may need. 0 or a negative errno.
 */
static int claim_plain_token(struct broker *broker, struct session *session, struct buffer *buffer,
                             uint8_t wire[static MEMORYD_TOKEN_SIZE])
{
    const struct token_args args = {
        .buffer = buffer,
        .account = session->account,
        .session = session->record->head.id,
        .in_session = &session->tokens,
        .maker_uid = session->record->uid,
        .rights = RIGHT_READ | RIGHT_WRITE,
        .expires_at = DEADLINE_NEVER,
    };
    struct problem problem = PROBLEM_NULL;
    struct token *token;
    int r;

    memset(wire, 0, MEMORYD_TOKEN_SIZE);
    if (!account_has_plenty(session->account, ACCOUNT_TOKENS))
        return 0;
    r = claim_token(broker, &args, &token, &problem);
    if (!r)
        token_write(token, wire);
    return r < 0 ? r : 0;
}

int claim_batch(struct session *session, struct batch *batch, const struct alloc_spec *spec,
                const struct name_key *name, struct opened *ret, struct problem *problem)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    struct fdset *wanted = spec->memory.flags & BUFFER_WANT_FDS ? &fds : NULL;
    int r = 0;

    for (uint32_t i = 0; i < batch->n && !r; i++) {
        r = claim_one(session, batch, i, &ret->items[i], wanted, problem);
        if (r)
            problem->item = i;
    }
    for (uint32_t i = 0; i < batch->n && spec->memory.flags & BUFFER_WANT_TOKENS && !r; i++)
        r = claim_plain_token(batch->broker, session, batch->buffers[i], ret->items[i].token);
    if (!r && spec->name.name[0])
        r = claim_name(batch->broker, session, batch->buffers[0], &spec->name, name, problem);
    if (r) {
        for (uint32_t i = 0; i < batch->n; i++)
            hold_free(session_hold(session, batch->buffers[i]->record->head.id));
        return r;
    }
    ret->n = batch->n;
    ret->with_fds = wanted;
    fdset_init(&ret->fds);
    fdset_move(&ret->fds, &fds);
    return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

int claim_name(struct broker *broker, struct session *session, struct buffer *buffer, const struct name_args *args,
               const struct name_key *key, struct problem *problem)
{
    const struct name_new_args new = {
        .key = *key,
        .buffer = buffer,
        .account = session->account,
        .session = session->record->head.id,
        .in_session = &session->names,
        .policy = args->policy,
        .keep_ms = args->keep_ms,
        .group_rights = rights_complete(args->group_rights),
        .gid = args->gid,
        .other_rights = rights_complete(args->other_rights),
    };
    struct name *name;
    int r;

    /* they are walked over, and end with the buffer in one turn */
    if (buffer->n_names >= MEMORYD_BUFFER_NAMES_MAX)
        return refuse(
            problem, STATUS_LIMIT,
            "buffer %llu has %u names, and none may have more; unbind one, or give the name to another buffer",
            (unsigned long long)buffer->record->head.id, buffer->n_names);
    r = name_new(&broker->names, &new, &name, problem);
    if (r)
        return r;
    record_commit(&broker->names.table, name);
    event_name(broker, name, true);
    return 0;
}

void drop_name(struct broker *broker, struct name *name, bool told)
{
    timers_clear_record(&broker->timers, TIME_NAME, name->record->head.id);
    if (told)
        event_name(broker, name, false);
    name_free(name);
}

static void name_time_is_over(void *userdata, uint64_t id)
{
    struct broker *broker = userdata;
    struct name *name = names_find_id(&broker->names, id);
    struct buffer *buffer;

    if (!name)
        return;
    buffer = name->buffer;
    drop_name(broker, name, true);
    lifecycle_claim_gone(broker, buffer);
}

int name_arm_timer(struct broker *broker, struct name *name)
{
    const struct name_record *record = name->record;

    if (record->session || record->policy != NAME_KEEP_FOR)
        return 0;
    return timers_set_record(&broker->timers, TIME_NAME, record->head.id, record->ends_at, name_time_is_over, broker);
}

void name_outlives(struct broker *broker, struct name *name)
{
    uint64_t id = name->record->head.id;

    name_leave_session(name);
    switch ((enum name_policy)name->record->policy) {
    case NAME_KEEP:
        return;
    case NAME_FREE:
        name_time_is_over(broker, id);
        return;
    case NAME_KEEP_FOR:
        record_change(&broker->names.table, name)->ends_at = deadline_after_ms(name->record->keep_ms);
        /* without memory for a timer it is kept no longer */
        if (name_arm_timer(broker, name))
            name_time_is_over(broker, id);
        return;
    }
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static void token_time_is_over(void *userdata, uint64_t serial)
{
    struct broker *broker = userdata;
    struct token *token = tokens_find(&broker->tokens, serial);
    struct buffer *buffer;

    if (!token)
        return;
    buffer = token->buffer;
    drop_token(broker, token, STATUS_TOKEN_EXHAUSTED);
    lifecycle_claim_gone(broker, buffer);
}

int token_arm_timer(struct broker *broker, struct token *token)
{
    return timers_set_record(&broker->timers, TIME_TOKEN, token->record->head.id, token->record->expires_at,
                             token_time_is_over, broker);
}

int claim_token(struct broker *broker, const struct token_args *args, struct token **ret, struct problem *problem)
{
    int r = token_new(&broker->tokens, args, ret, problem);

    if (r)
        return r;
    if (token_arm_timer(broker, *ret)) {
        *ret = token_free(*ret);
        return refuse(problem, STATUS_NO_MEMORY, "the broker has no memory to remember more; try again later");
    }
    record_commit(&broker->tokens.table, *ret);
    return 0;
}

void drop_token(struct broker *broker, struct token *token, int status)
{
    timers_clear_record(&broker->timers, TIME_TOKEN, token->record->head.id);
    if (status)
        token_end(token, status);
    else
        token_free(token);
}
