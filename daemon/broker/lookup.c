/* SPDX-License-Identifier: Apache-2.0 */
/* See lookup.h. */
#include "broker/lookup.h"

#include <stdio.h>

#include "broker/state.h"
#include "mem/rights.h"
#include "proto/status.h"

struct session *find_session(const struct broker *broker, uint64_t id)
{
    struct session *session = sessions_find(&broker->sessions, id);

    return session && !client_of(session)->ended ? session : NULL;
}

int op_session(struct op *op, struct session **ret)
{
    struct broker *broker = op->broker;
    struct session *session;

    if (!op->session)
        return refuse(&op->problem, STATUS_NO_SESSION, "the first message must be HELLO");
    session = find_session(broker, op->session);
    if (!session)
        return refuse(&op->problem, STATUS_STALE, "session %llu has ended; begin a new one",
                      (unsigned long long)op->session);
    *ret = session;
    return 0;
}

bool is_admin_uid(const struct broker *broker, uid_t uid)
{
    return uid == 0 || uid == broker->options.uid;
}

bool is_admin(const struct broker *broker, const struct session *session)
{
    return is_admin_uid(broker, session->record->uid);
}

bool user_may_see_buffer(const struct broker *broker, uid_t uid, const struct buffer *buffer)
{
    return is_admin_uid(broker, uid) || buffer->record->uid == uid || buffer->record->charged_uid == uid;
}

bool may_see_buffer(const struct broker *broker, const struct session *session, const struct buffer *buffer)
{
    return user_may_see_buffer(broker, session->record->uid, buffer) || session_hold(session, buffer->record->head.id);
}

int op_may_see(struct op *op, const struct session *session, const struct buffer *buffer)
{
    if (may_see_buffer(op->broker, session, buffer))
        return 0;
    return refuse(&op->problem, STATUS_NO_RIGHT, "buffer %llu is another user's, and session %llu does not hold it",
                  (unsigned long long)buffer->record->head.id, (unsigned long long)op->session);
}

bool may_see_sharing(const struct broker *broker, const struct session *session, const struct buffer *buffer)
{
    const struct hold *hold = session_hold(session, buffer->record->head.id);

    return user_may_see_buffer(broker, session->record->uid, buffer) || (hold && hold->record->rights & RIGHT_MANAGE);
}

int no_such(struct broker *broker, struct problem *problem, uint64_t id, const char *what)
{
    if (ledger_id_was_given(broker->ledger, id))
        return refuse(problem, STATUS_STALE, "%s %llu has ended, or the id was another thing's; ids are not used again",
                      what, (unsigned long long)id);
    return refuse(problem, STATUS_NO_SUCH_ID, "there never was a %s %llu", what, (unsigned long long)id);
}

int find_hold(struct broker *broker, struct session *session, uint64_t buffer, uint32_t rights, struct hold **ret,
              struct problem *problem)
{
    struct hold *hold = session_hold(session, buffer);
    const struct buffer *found;
    uint32_t missing;

    if (!hold) {
        found = buffers_find(&broker->buffers, buffer);
        if (!found || found->record->state != BUFFER_LIVE)
            return no_such(broker, problem, buffer, "buffer");
        return refuse(problem, STATUS_NO_RIGHT,
                      "session %llu does not hold buffer %llu; open it by a token, a name or a descriptor first",
                      (unsigned long long)session->record->head.id, (unsigned long long)buffer);
    }
    missing = rights & ~hold->record->rights;
    if (missing)
        return refuse(problem, STATUS_NO_RIGHT,
                      "the hold on buffer %llu lacks%s%s%s%s; open it with a token or name that grants that",
                      (unsigned long long)buffer, missing & RIGHT_READ ? " READ" : "",
                      missing & RIGHT_WRITE ? " WRITE" : "", missing & RIGHT_SHARE ? " SHARE" : "",
                      missing & RIGHT_MANAGE ? " MANAGE" : "");
    *ret = hold;
    return 0;
}

void name_holders(const struct buffer *buffer, struct holders which, char *who, size_t size)
{
    static const char others[] = " and others";
    size_t length = 0, room = size - sizeof(others) + 1;

    (void)snprintf(who, size, "nobody the broker knows of");
    for (struct hold *hold = NULL; (hold = buffer_next_hold(buffer, hold));) {
        const struct session_record *session = hold->session->record;
        uint32_t rights = hold->record->rights;
        int n;

        if ((rights & which.with) != which.with || rights & which.without || session->head.id == which.except)
            continue;
        n = snprintf(who + length, room - length, "%ssession %llu (pid %u, %s)", length ? ", " : "",
                     (unsigned long long)session->head.id, session->pid, session->program);
        if (n < 0 || (size_t)n >= room - length) {
            memcpy(who + length, others, sizeof(others));
            return;
        }
        length += (size_t)n;
    }
}

void item_failed(struct problem *all, const struct problem *one, uint32_t item)
{
    if (all->sentence[0])
        return;
    *all = *one;
    all->item = item;
}
