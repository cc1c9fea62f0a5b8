/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See report.h. Nothing here is on the way of a request that succeeds at once.
 */
#include "broker/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/lookup.h"
#include "broker/recover.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "history/counters.h"
#include "log/log.h"
#include "mem/pool.h"
#include "proto/methods.h"

/* ---- its memory -------------------------------------------------------------------------------------------------- */

/* Of the share of the broker's own user; everybody is told. The last broker has left a mark if it ended in order. */
static void report_start(struct broker *broker, enum history_end last)
{
    const struct history_record entry = {
        .kind = HISTORY_STARTED,
        .uid = broker->options.uid,
        .pid = (uint32_t)getpid(),
        .most_uid = (uint32_t)-1,
        .end = last,
    };

    (void)history_add(broker->history, &entry);
}

static int report_init_history(struct broker *broker, enum history_end last)
{
    int *fd = handed_fd(broker, KEEPER_HISTORY, 0);
    int r = fd ? history_adopt(&broker->history, *fd) : HISTORY_E_FORMAT;

    if (!r) {
        *fd = -1;
        report_start(broker, last);
    }
    if (r <= 0)
        return r;
    if (fd)
        log_notice("what is known of refusals and ends before this start is in another form; a new history begins");
    r = history_new(&broker->history);
    return r ? r : keeper_hold(broker->options.keeper, KEEPER_HISTORY, 0, history_fd(broker->history));
}

/* `ret`: how the last broker ended; HISTORY_END_NONE: its counters do not say so. */
static int report_init_counters(struct broker *broker, enum history_end *ret)
{
    int *fd = handed_fd(broker, KEEPER_COUNTERS, 0);
    int r = fd ? counters_adopt(&broker->counters, *fd) : HISTORY_E_FORMAT;

    if (!r) {
        *fd = -1;
        *ret = counters_start(broker->counters);
    }
    if (r <= 0)
        return r;
    if (fd)
        log_notice("the counters of before this start are in another form; they begin at 0");
    r = counters_new(&broker->counters);
    return r ? r : keeper_hold(broker->options.keeper, KEEPER_COUNTERS, 0, broker->counters->fd);
}

int report_init(struct broker *broker)
{
    enum history_end last = HISTORY_END_NONE;
    int r = report_init_counters(broker, &last);

    return r ? r : report_init_history(broker, last);
}

void report_deinit(struct broker *broker)
{
    broker->history = history_free(broker->history);
    broker->counters = counters_free(broker->counters);
}

/* ---- who has how much -------------------------------------------------------------------------------------------- */

/* What the user of an account has of what there is too little of. */
struct report_subject {
    const struct pool *pool; /* NULL: of the slot */
    enum account_slot slot;
};

static uint64_t report_has(const struct report_subject *subject, const struct account *account)
{
    return subject->pool ? pool_used_by(subject->pool, account) : account_used(account, subject->slot);
}

void report_find_holders(const struct broker *broker, uint32_t uid, const struct shortage *shortage,
                         struct report_holders *ret)
{
    struct report_subject subject = {.slot = ACCOUNT_SLOTS};

    *ret = (struct report_holders){.most_uid = (uint32_t)-1};
    if (shortage->resource)
        subject.slot = account_slot_of(shortage->resource);
    if (shortage->pool)
        subject.pool = pools_by_name(broker->options.pools, shortage->pool);
    if (!subject.pool && subject.slot == ACCOUNT_SLOTS)
        return;
    for (const struct account *account = account_next(&broker->accounts, 0); account;
         account = account->uid == (uid_t)-1 ? NULL : account_next(&broker->accounts, account->uid + 1)) {
        uint64_t has = report_has(&subject, account);

        if (account->uid == uid)
            ret->mine = has;
        if (has <= ret->most)
            continue;
        ret->most = has;
        ret->most_uid = account->uid;
    }
}

/* The numbers of a shortage, and whose they are. */
static void report_shortage(const struct shortage *shortage, const struct report_holders *holders,
                            struct history_record *entry)
{
    entry->wanted = shortage->wanted;
    entry->used = shortage->used;
    entry->limit = shortage->limit;
    entry->waited_ms = shortage->waited_ms;
    entry->mine = holders->mine;
    entry->most = holders->most;
    entry->most_uid = holders->most_uid;
    if (shortage->resource)
        (void)snprintf(entry->resource, sizeof(entry->resource), "%s", shortage->resource);
    if (shortage->pool)
        (void)snprintf(entry->pool, sizeof(entry->pool), "%s", shortage->pool);
}

/* The index of its record. */
static uint32_t report_add(struct broker *broker, const struct history_record *entry)
{
    event_history(broker, entry->uid, false);
    return history_add(broker->history, entry);
}

static void report_who(const struct session *session, struct history_record *entry)
{
    const struct session_record *record = session->record;

    entry->session = record->head.id;
    entry->uid = record->uid;
    entry->pid = record->pid;
    memcpy(entry->program, record->program, sizeof(entry->program));
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

void op_refused(struct broker *broker, const struct op_refusal *refusal)
{
    const struct session *session = refusal->session ? sessions_find(&broker->sessions, refusal->session) : NULL;
    struct report_holders holders;
    struct history_record entry = {
        .kind = HISTORY_REFUSED,
        .uid = refusal->uid,
        .pid = (uint32_t)refusal->pid,
        .method = refusal->method,
        .status = refusal->status,
    };

    if (session)
        report_who(session, &entry);
    (void)snprintf(entry.sentence, sizeof(entry.sentence), "%s", refusal->sentence);
    report_find_holders(broker, entry.uid, refusal->shortage, &holders);
    report_shortage(refusal->shortage, &holders, &entry);
    (void)report_add(broker, &entry);
}

void op_refusal_counted(struct broker *broker, uint32_t status)
{
    counters_refusal(broker->counters, status);
}

void op_replied(struct broker *broker, uint16_t method, uint64_t ns)
{
    counters_reply(broker->counters, method, ns);
}

void op_noted(struct broker *broker, uint64_t session, const struct op_note *note)
{
    const struct session *who = sessions_find(&broker->sessions, session);
    struct history_record entry = {
        .kind = HISTORY_DONE,
        .method = note->method,
        .buffer = note->buffer,
        .most_uid = (uint32_t)-1,
    };

    if (!who)
        return;
    report_who(who, &entry);
    if (note->name)
        (void)snprintf(entry.sentence, sizeof(entry.sentence), "%s", note->name);
    (void)report_add(broker, &entry);
}

void report_wait(struct broker *broker, const struct session *session, const struct shortage *shortage,
                 const struct report_holders *holders)
{
    struct history_record entry = {.kind = HISTORY_WAITED, .method = METHOD_ALLOC};

    report_who(session, &entry);
    report_shortage(shortage, holders, &entry);
    (void)report_add(broker, &entry);
    counters_wait(broker->counters, shortage->waited_ms);
}

uint32_t report_session_ended(struct broker *broker, const struct session *session, enum history_end end)
{
    struct history_record entry = {
        .kind = HISTORY_ENDED,
        .end = end,
        .most_uid = (uint32_t)-1,
        .began_ms = session->record->created_ms,
        .bytes = account_used(session->account, ACCOUNT_BYTES),
        .holds = session->n_holds,
    };

    report_who(session, &entry);
    /* one that died is counted when it is known how */
    if (end != HISTORY_END_DIED)
        counters_end(broker->counters, end);
    return report_add(broker, &entry);
}
