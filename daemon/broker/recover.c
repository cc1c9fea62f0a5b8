/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another broker left: its ledger, and the descriptors that the keeper hands over.
 *
 * The ledger's last change is undone if it is incomplete. Then, table by table, each record becomes an object again,
 * which is done by its own module; this file knows which record belongs to which. A damaged record stays as it is, in
 * quarantine: its descriptor stays with the keeper, and nobody finds it. A record that refers to something that is gone
 * is dropped. So only lack of memory is fatal here, and another attempt may have more.
 *
 * Until the broker serves, a buffer costs two system calls, most of which another thread makes (survey.h), and inserts
 * into some trees. What takes longer is done in slices of the loop: the timers of tokens are armed and, as after an
 * overflow of the watch, buffers that end are probed, which shows what ended while no broker ran.
 */
#include "broker/recover.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/claims.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "broker/survey.h"
#include "log/log.h"

/* Tokens in a turn of the loop whose timers are armed. */
#define TIMERS_SLICE 64
/* When it is tried again without memory. */
#define NO_MEMORY_MS 100

/* ---- the ledger -------------------------------------------------------------------------------------------------- */

/* Keeps it under a key of its own, so that it can be looked at one day. */
static int set_aside(struct broker *broker, struct inherited_fd *inherited)
{
    uint64_t id = 1;
    int r;

    while (handed_find(broker, KEEPER_LEDGER, id))
        id++;
    log_error("the ledger is damaged: a new one begins, and all that the damaged one knew of is lost");
    r = keeper_hold(broker->options.keeper, KEEPER_LEDGER, id, inherited->fd);
    if (r)
        return r;
    inherited->key.id = id;
    return handed_sort(&broker->options);
}

static bool has_addresses(struct ledger *ledger, enum record_kind kind)
{
    const uint32_t size = ledger_record_size(kind);
    uint32_t extent = 0;

    while ((extent = ledger_next_extent(ledger, kind, extent))) {
        const char *at = ledger_extent(ledger, extent++);

        for (const char *end = at + LEDGER_EXTENT_SIZE; (size_t)(end - at) >= size; at += size) {
            const struct record *record = (const struct record *)(const void *)at;

            if (record->state != RECORD_FREE &&
                (kind == RECORD_RESERVATION || ((const struct buffer_record *)(const void *)record)->address))
                return true;
        }
    }
    return false;
}

/* The configured one, unless there are addresses in another one already. */
static void choose_arena(struct broker *broker)
{
    const struct ledger_header *header = ledger_header(broker->ledger);
    const struct broker_options *options = &broker->options;
    uint64_t page = options->topology->base_page, base = header->arena_base, size = header->arena_size, end;
    bool sound = base && size && is_aligned(base | size, page) && checked_add_u64(base, size, &end);
    bool same = base == options->arena_base && size == options->arena_size;

    if (!same && sound &&
        (has_addresses(broker->ledger, RECORD_RESERVATION) || has_addresses(broker->ledger, RECORD_BUFFER))) {
        log_warning("the arena stays at 0x%llx, with 0x%llx bytes, while there are addresses in it; the configured one "
                    "is used once there are none at a start",
                    (unsigned long long)base, (unsigned long long)size);
    } else if (!same) {
        base = options->arena_base;
        size = options->arena_size;
        ledger_set_arena(broker->ledger, base, size);
    }
    va_arena_init(&broker->arena, base, size, page);
}

int recover_ledger(struct broker *broker)
{
    struct broker_options *options = &broker->options;
    struct inherited_fd *inherited;
    int r = handed_sort(options);

    if (r)
        return r;
    inherited = handed_find(broker, KEEPER_LEDGER, 0);
    if (inherited) {
        r = ledger_adopt(&broker->ledger, inherited->fd);
        if (!r)
            inherited->fd = -1;
        else if (r == LEDGER_E_FORMAT)
            return BROKER_E_LEDGER;
        else if (r < 0 || (r = set_aside(broker, inherited)))
            return r;
    }
    if (!broker->ledger) {
        r = ledger_new(&broker->ledger, options->arena_base, options->arena_size);
        if (!r)
            r = keeper_hold(options->keeper, KEEPER_LEDGER, 0, ledger_fd(broker->ledger));
        if (r)
            return r;
    }
    choose_arena(broker);
    return 0;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

struct recovery {
    struct broker *broker;
    struct buffer *buffer; /* the one recovered or found last */
    int error;             /* of a step that may not fail */
};

static struct session *session_of(const struct recovery *recovery, uint64_t id)
{
    return id ? sessions_find(&recovery->broker->sessions, id) : NULL;
}

/* The account of the session, if that is there and this user's, or else the user's. With a reference; NULL without
 * memory. */
static struct account *payer_of(struct recovery *recovery, uint64_t id, uid_t uid, struct session **ret_session)
{
    struct session *session = session_of(recovery, id);
    struct account *account;

    *ret_session = session && session->record->uid == uid ? session : NULL;
    if (*ret_session)
        return account_ref(session->account);
    if (!account_of_user(&recovery->broker->accounts, uid, &account, NULL))
        return account;
    recovery->error = fatal(-ENOMEM);
    return NULL;
}

/* What belongs to buffers was mostly made in their order, so the search begins at the one found last. */
static struct buffer *buffer_of(struct recovery *recovery, uint64_t id)
{
    struct buffer *buffer = buffers_find_near(&recovery->broker->buffers, recovery->buffer, id);

    if (buffer)
        recovery->buffer = buffer;
    return buffer;
}

static enum table_verdict recover_session(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct broker *broker = recovery->broker;
    struct session *session = object;
    enum table_verdict verdict = TABLE_DROP;
    int r = session_recover(&broker->sessions, session, handed_fd(broker, KEEPER_SESSION, session->record->head.id),
                            &verdict, why);

    if (r)
        recovery->error = r;
    return verdict;
}

static enum table_verdict recover_reservation(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct reservation *reservation = object;
    struct session *session;
    _cleanup_(account_unrefp) struct account *account =
        payer_of(recovery, reservation->record->session, reservation->record->uid, &session);

    if (!account)
        return TABLE_KEEP;
    return reservation_recover(&recovery->broker->reservations, reservation, account,
                               session ? &session->reservations : NULL, why);
}

static enum table_verdict recover_buffer(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct broker *broker = recovery->broker;
    struct buffer *buffer = object;
    const struct buffer_record *record = buffer->record;
    struct inherited_fd *inherited = handed_find(broker, KEEPER_BUFFER, record->head.id);
    bool unowned = buffer_is_unowned(buffer);
    struct session *session = NULL;
    _cleanup_(account_unrefp) struct account *account =
        unowned ? NULL : payer_of(recovery, record->charged_session, record->charged_uid, &session);
    struct buffer_found found = {
        .account = account,
        .session = session ? record->charged_session : 0,
        .fd = inherited ? &inherited->fd : NULL,
        .probe = inherited ? survey_seen(broker->options.survey, inherited->nth) : NULL,
        .owner = broker->options.uid,
        .near = recovery->buffer,
    };
    enum table_verdict verdict;

    if (!account && !unowned)
        return TABLE_KEEP;
    verdict = buffer_recover(&broker->buffers, buffer, &found, why);
    if (verdict == TABLE_KEEP)
        recovery->buffer = buffer;
    return verdict;
}

static enum table_verdict recover_hold(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct hold *hold = object;

    return hold_recover(hold, session_of(recovery, hold->record->session), buffer_of(recovery, hold->record->buffer),
                        why);
}

static enum table_verdict recover_token(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct token *token = object;
    struct session *session;
    _cleanup_(account_unrefp) struct account *account =
        payer_of(recovery, token->record->session, token->record->maker_uid, &session);

    if (!account)
        return TABLE_KEEP;
    return token_recover(&recovery->broker->tokens, token, buffer_of(recovery, token->record->buffer), account,
                         session ? &session->tokens : NULL, why);
}

static enum table_verdict recover_name(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct name *name = object;
    struct session *session;
    _cleanup_(account_unrefp) struct account *account =
        payer_of(recovery, name->record->session, name->record->uid, &session);

    if (!account)
        return TABLE_KEEP;
    return name_recover(&recovery->broker->names, name, buffer_of(recovery, name->record->buffer), account,
                        session ? &session->names : NULL, why);
}

int recover_records(struct broker *broker)
{
    /* in the order in which they refer to each other */
    const struct {
        struct table *table;
        table_recover_fn *fn;
    } steps[] = {
        {&broker->sessions.table, recover_session}, {&broker->reservations.table, recover_reservation},
        {&broker->buffers.table, recover_buffer},   {&broker->sessions.holds, recover_hold},
        {&broker->tokens.table, recover_token},     {&broker->names.table, recover_name},
    };
    struct recovery recovery = {.broker = broker};
    int r = pools_recover(broker->options.pools, broker->ledger);

    if (!r)
        r = table_recover(&broker->buffers.plans, NULL, NULL);
    for (size_t i = 0; !r && i < sizeof(steps) / sizeof(*steps); i++) {
        r = table_recover(steps[i].table, steps[i].fn, &recovery);
        if (!r)
            r = recovery.error;
    }
    broker->options.survey = survey_end(broker->options.survey);
    if (!r)
        r = tokens_recover_ended(&broker->tokens);
    if (!r)
        r = kept_recover(&broker->sessions, broker->ledger);
    if (r)
        return r;
    buffers_recovered(&broker->buffers);
    pools_recovered(broker->options.pools);
    return 0;
}

/* ---- quarantine -------------------------------------------------------------------------------------------------- */

uint64_t quarantined_records(const struct broker *broker)
{
    const struct table *const tables[] = {
        &broker->sessions.table, &broker->sessions.holds, &broker->sessions.kept,      &broker->sessions.kept_more,
        &broker->buffers.table,  &broker->buffers.plans,  &broker->reservations.table, &broker->tokens.table,
        &broker->tokens.ended,   &broker->names.table,
    };
    uint64_t n = pools_quarantined(broker->options.pools);

    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
        n += tables[i]->n_quarantined;
    return n;
}

/* ---- lives ------------------------------------------------------------------------------------------------------- */

/* What was exported must be watched. It is not if the inotify instance is new, or if two records have one number. */
static void watch_again(struct broker *broker)
{
    unsigned budget = UINT32_MAX;
    struct buffer *buffer;
    uint64_t cursor = 0;

    if (broker->watch_is_new)
        while ((buffer = table_next(&broker->buffers.table, &cursor, &budget)))
            buffer_set_watch(&broker->buffers, buffer, -1);
    budget = UINT32_MAX;
    while ((buffer = table_next(&broker->buffers.table, &cursor, &budget))) {
        struct problem problem = PROBLEM_NULL;

        if (buffer->record->flags & BUFFER_EXPORTED && buffer->fd >= 0 && buffer_watch(broker, buffer, &problem))
            log_error("buffer %llu is not watched any more: %s", (unsigned long long)buffer->record->head.id,
                      problem.sentence);
        if (buffer->record->watch > broker->newest_watch)
            broker->newest_watch = buffer->record->watch;
    }
}

static int restore_sessions(struct broker *broker)
{
    unsigned budget = UINT32_MAX;
    struct session *session;
    uint64_t cursor = 0;
    int r = 0;

    while (!r && (session = table_next(&broker->sessions.table, &cursor, &budget)))
        r = session_restore(broker, session);
    return r;
}

/*
 * A user may have a million tokens, and to arm as many timers takes longer than all the rest. Nobody waits for it: what
 * has expired opens nothing any more, timer or not.
 */
static void token_timers_turn(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, token_timers_turn);
    unsigned budget = TIMERS_SLICE;
    uint64_t before = broker->token_timers_cursor;
    struct token *token;

    while ((token = table_next(&broker->tokens.table, &broker->token_timers_cursor, &budget))) {
        if (token_arm_timer(broker, token)) {
            broker->token_timers_cursor = before;
            timer_arm(&broker->timers, timer, deadline_after_ms(NO_MEMORY_MS));
            return;
        }
        before = broker->token_timers_cursor;
    }
    if (broker->token_timers_cursor)
        timer_arm(&broker->timers, timer, 0);
}

static int restore_timers(struct broker *broker)
{
    unsigned budget = UINT32_MAX;
    uint64_t cursor = 0;
    struct name *name;
    int r = 0;

    broker->token_timers_turn = (struct timer)TIMER_INIT(token_timers_turn);
    timer_arm(&broker->timers, &broker->token_timers_turn, 0);
    while (!r && (name = table_next(&broker->names.table, &cursor, &budget))) {
        if (name->record->session && !list_is_linked(&name->in_session))
            name_outlives(broker, name);
        else
            r = name_arm_timer(broker, name);
    }
    return r ? fatal(r) : 0;
}

int recover_lifecycles(struct broker *broker)
{
    struct reservation *reservation;
    unsigned budget = UINT32_MAX;
    struct buffer *buffer;
    uint64_t cursor = 0;
    int r;

    deaths_recover(broker);
    r = restore_sessions(broker);
    if (!r)
        r = restore_timers(broker);
    if (r)
        return r;
    handed_drop_rest(broker);
    watch_again(broker);
    while ((reservation = table_next(&broker->reservations.table, &cursor, &budget)))
        reservation_recovered(reservation);
    occupied_begin(&broker->reservations);
    budget = UINT32_MAX;
    while ((buffer = table_next(&broker->buffers.table, &cursor, &budget))) {
        buffer_recover_waste(&broker->buffers, buffer);
        lifecycle_restore(broker, buffer);
    }
    stocking_restore(broker);
    caches_restore(broker);
    broker->watches_proven = ledger_header(broker->ledger)->starts == 1;
    if (!broker->watches_proven)
        lifecycle_rescan(broker);
    return 0;
}
