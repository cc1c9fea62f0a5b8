/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request is executed once, however often it arrives.
 *
 * A request that changes something has a record from its beginning (session/kept.h). While it is pending the record
 * leads to its op; afterwards it has the reply. Both are looked up by session and sequence whenever they are needed,
 * and nobody keeps a pointer to them, since a session may end at any time.
 *
 * Poison: a request over which two brokers have died is not executed a third time. The ledger says which requests the
 * loop and the workers of a dead broker were executing.
 *
 * A client that kills one broker may well kill the next a moment later. A slow request of somebody else would be
 * interrupted both times and be blamed for it. So where a broker had requests of several users at work, none of them is
 * blamed; each is suspected, and refused only after very many such deaths, lest brokers die forever. When they are
 * repeated they begin one after the other, not before their broker has lived for a while, so that the one that kills
 * brokers is soon found alone.
 */
#include "broker/dedup.h"

#include "base/clock.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "log/log.h"
#include "proto/status.h"

#define DEATHS_MAX     2
#define SUSPICIONS_MAX 16
#define RETRY_DELAY_MS 100
#define RETRIES_MAX    8 /* one after the other; further ones begin with the last */

static struct kept *dedup_find(struct broker *broker, uint64_t id, uint64_t sequence)
{
    struct session *session = sequence ? find_session(broker, id) : NULL;

    return session ? session_kept(session, sequence) : NULL;
}

bool op_acknowledge(struct broker *broker, uint64_t id, uint64_t acknowledged, uint64_t answered)
{
    struct session *session = find_session(broker, id);

    if (!session)
        return false;
    kept_acknowledge(session, acknowledged, answered);
    return !list_is_empty(&session->kept);
}

static int refuse_poison(const struct session *session, const struct kept *kept, struct problem *problem)
{
    struct log_client who = {session->record->uid, (pid_t)session->record->pid};

    log_client(LOG_LEVEL_ERROR, who, "request %llu (method %u) is refused: %u brokers died over it",
               (unsigned long long)kept->record->sequence, kept->record->method,
               (unsigned)kept->record->deaths + kept->record->suspicions);
    return refuse(problem, STATUS_REFUSED,
                  "the broker died %s while it did this; it was not tried again, and what became of it is unknown: see "
                  "what there is, and try something else",
                  kept->record->deaths < DEATHS_MAX ? "many times" : "twice");
}

static int begin_known(const struct session *session, const struct kept *kept, struct op **ret_running,
                       struct problem *problem)
{
    if (record_is_live(&kept->record->head))
        return OP_ANSWERED;
    if (kept->running) {
        *ret_running = kept->running;
        return OP_RUNNING;
    }
    return kept->record->deaths < DEATHS_MAX && kept->record->suspicions < SUSPICIONS_MAX
               ? OP_REPLAY
               : refuse_poison(session, kept, problem);
}

int op_begin(struct broker *broker, const struct op_request *request, struct op **ret_running, struct problem *problem)
{
    struct session *session = find_session(broker, request->session);
    struct kept *kept;

    /* the operation will say so */
    if (!session)
        return 0;
    kept = session_kept(session, request->sequence);
    if (kept)
        return begin_known(session, kept, ret_running, problem);
    if (!request->recorded)
        return 0;
    if (request->sequence <= session->record->acknowledged)
        return OP_FORGOTTEN;
    return kept_new(session, request->sequence, request->method, &kept, problem);
}

void dedup_pending(struct op *op)
{
    struct kept *kept = dedup_find(op->broker, op->session, op->sequence);

    if (kept)
        kept->running = op;
}

void dedup_working(struct op *op)
{
    struct kept *kept = dedup_find(op->broker, op->session, op->sequence);

    if (kept)
        kept_set_working(kept, true);
}

void dedup_work(struct op_state *state, void (*submit)(struct op_state *state))
{
    struct broker *broker = state->op->broker;
    const struct kept *kept = dedup_find(broker, state->op->session, state->op->sequence);
    uint64_t at;

    if (!kept || !(kept->record->deaths | kept->record->suspicions)) {
        submit(state);
        return;
    }
    broker->n_retries += broker->n_retries < RETRIES_MAX;
    at = deadline_at(broker->started, broker->n_retries * RETRY_DELAY_MS * NSEC_PER_MSEC);
    if (deadline_passed(at, clock_now_ns()))
        submit(state);
    else
        pending_call_at(state, at, submit);
}

void dedup_rests(struct op_state *state)
{
    struct kept *kept = dedup_find(state->op->broker, state->session, state->op->sequence);

    if (kept)
        kept_set_working(kept, false);
}

void reply_store(struct broker *broker, uint64_t session, uint64_t sequence, const struct op_reply *reply,
                 const void *message)
{
    struct kept *kept = dedup_find(broker, session, sequence);

    if (kept)
        kept_finish(kept, reply->status, message, reply->size, reply->n_fds);
}

void reply_load(struct broker *broker, uint64_t session, uint64_t sequence, struct op_reply *ret, void *message)
{
    struct kept *kept = dedup_find(broker, session, sequence);

    *ret = (struct op_reply){.status = kept->record->status, .size = kept->record->size, .n_fds = kept->record->n_fds};
    kept_read(kept, message);
}

void op_executing(struct broker *broker, uint64_t session, uint64_t sequence, uint16_t method)
{
    ledger_executing_begin(ledger_executing(broker->ledger), session ? session : LEDGER_NO_SESSION, sequence, method);
}

void op_executed(struct broker *broker)
{
    ledger_executing_end(ledger_executing(broker->ledger));
}
