/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: bound, looked up and unbound; and opening by id, for those who own the buffer.
 */
#include "broker/claims.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/state.h"

int op_name_bind(struct op *op, const struct name_args *args)
{
    struct session *session;
    struct name_key key;
    struct hold *hold;
    int r = op_session(op, &session);

    if (!r)
        r = name_parse(args->name, session->record->uid, &key, &op->problem);
    if (!r)
        r = find_hold(op->broker, session, args->buffer, RIGHT_MANAGE, &hold, &op->problem);
    if (r)
        return r;
    if (key.uid != session->record->uid)
        return refuse(&op->problem, STATUS_NO_RIGHT, "names of uid %u are theirs to bind; leave out \"uid:%u/\"",
                      (unsigned)key.uid, (unsigned)key.uid);
    return claim_name(op->broker, session, hold->buffer, args, &key, &op->problem);
}

int op_name_unbind(struct op *op, const char *text)
{
    struct session *session;
    struct name_key key;
    struct buffer *buffer;
    struct name *name;
    int r = op_session(op, &session);

    if (!r)
        r = name_parse(text, session->record->uid, &key, &op->problem);
    if (r)
        return r;
    name = names_find(&op->broker->names, &key);
    if (!name)
        return refuse(&op->problem, STATUS_NO_SUCH_NAME, "no buffer has the name %s", text);
    if (key.uid != session->record->uid && !is_admin(op->broker, session))
        return refuse(&op->problem, STATUS_NO_RIGHT, "the name %s is uid %u's; only they and administrators unbind it",
                      text, (unsigned)key.uid);
    buffer = name->buffer;
    op->buffer = buffer->record->head.id;
    drop_name(op->broker, name, true);
    lifecycle_claim_gone(op->broker, buffer);
    return 0;
}

/* ---- look up ----------------------------------------------------------------------------------------------------- */

static int find_by_name(struct op *op, const struct session *session, const char *text, struct buffer **ret,
                        uint32_t *ret_rights)
{
    struct name_key key;
    struct name *name;
    int r = name_parse(text, session->record->uid, &key, &op->problem);

    if (r)
        return r;
    name = names_find(&op->broker->names, &key);
    if (!name)
        return refuse(&op->problem, STATUS_NO_SUCH_NAME,
                      "no buffer has the name %s; another user's is written uid:N/...", text);
    *ret_rights = name_rights(name, &session->peer, is_admin(op->broker, session));
    *ret = name->buffer;
    if (!*ret_rights)
        return refuse(&op->problem, STATUS_NO_RIGHT, "the name %s grants uid %u nothing; ask uid %u for a token", text,
                      session->record->uid, (unsigned)key.uid);
    return 0;
}

static int find_by_id(struct op *op, const struct session *session, uint64_t id, struct buffer **ret,
                      uint32_t *ret_rights)
{
    struct buffer *buffer = buffers_find(&op->broker->buffers, id);

    if (!buffer || buffer->record->state != BUFFER_LIVE)
        return no_such(op->broker, &op->problem, id, "buffer");
    if (buffer->record->uid != session->record->uid && !is_admin(op->broker, session))
        return refuse(&op->problem, STATUS_NO_RIGHT,
                      "buffer %llu is another user's; only they and administrators open it by its number",
                      (unsigned long long)id);
    *ret = buffer;
    *ret_rights = RIGHTS_ALL;
    return 0;
}

/* A hold that keeps this session out. Those of sessions that have ended keep nobody out. */
static const struct hold *in_the_way(const struct session *session, const struct buffer *buffer, enum hold_kind kind)
{
    for (struct hold *hold = NULL; (hold = buffer_next_hold(buffer, hold));) {
        if (hold->record->kind == HOLD_PLAIN || hold->session == session || client_of(hold->session)->ended)
            continue;
        if (kind == HOLD_EXCLUSIVE || hold->record->kind == HOLD_EXCLUSIVE)
            return hold;
    }
    return NULL;
}

/* A client that may only read must not keep writers out by an exclusive claim. */
static int may_claim(struct op *op, const struct session *session, const struct buffer *buffer, enum hold_kind kind,
                     uint32_t may)
{
    const struct hold *other;

    if (kind == HOLD_PLAIN)
        return 0;
    if (kind == HOLD_EXCLUSIVE && !(may & RIGHT_WRITE))
        return refuse(&op->problem, STATUS_NO_RIGHT,
                      "an exclusive claim needs WRITE, which the name does not grant; claim it shared");
    other = in_the_way(session, buffer, kind);
    if (!other)
        return 0;
    return refuse(&op->problem, STATUS_BUSY,
                  "session %llu of pid %u (%s) has %s claim on buffer %llu; try again when it has let go of it",
                  (unsigned long long)other->record->session, other->session->record->pid,
                  other->session->record->program, other->record->kind == HOLD_EXCLUSIVE ? "an exclusive" : "a shared",
                  (unsigned long long)buffer->record->head.id);
}

static int find_buffer(struct op *op, const struct session *session, const struct lookup_args *args,
                       struct buffer **ret, uint32_t *ret_rights)
{
    return args->name[0] ? find_by_name(op, session, args->name, ret, ret_rights)
                         : find_by_id(op, session, args->id, ret, ret_rights);
}

int op_lookup(struct op *op, const struct lookup_args *args, struct opened *result)
{
    struct session *session;
    struct buffer *buffer = NULL;
    struct opened_item item;
    uint32_t may = 0;
    int r = op_session(op, &session);

    if (!r)
        r = find_buffer(op, session, args, &buffer, &may);
    if (!r && caches_opened(op->broker, session, buffer))
        r = find_buffer(op, session, args, &buffer, &may);
    if (!r)
        r = foreign_is_wanted(buffer, args->foreign, &op->problem);
    if (!r)
        r = may_claim(op, session, buffer, (enum hold_kind)args->claim, may);
    if (!r)
        r = claim_open(op->broker, &(struct claim){session, buffer, may, args->rights}, args->want_fd, &item,
                       &op->problem);
    if (r)
        return r;
    hold_raise_kind(session_hold(session, item.id), (enum hold_kind)args->claim);
    result->n = 1;
    result->items[0] = item;
    result->with_fds = args->want_fd;
    fdset_init(&result->fds);
    return 0;
}
