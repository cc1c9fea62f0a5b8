/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker as a whole: made, driven by its host, and taken down.
 */
#include "broker/broker.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/probe.h"
#include "broker/check.h"
#include "broker/closing.h"
#include "broker/dedup.h"
#include "broker/events.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/recover.h"
#include "broker/report.h"
#include "broker/sessions.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "broker/survey.h"
#include "history/counters.h"
#include "log/log.h"

static void broker_announce_deadline(void *userdata, uint64_t at)
{
    struct broker *broker = userdata;
    uint64_t left = deadline_left(at, clock_now_ns());

    broker->host.schedule(broker->host.userdata, left / NSEC_PER_MSEC + (left % NSEC_PER_MSEC != 0));
}

static void pressure_turn(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, pressure_turn);

    if (pressure_look(broker))
        stocking_look(broker);
}

/* What may not fail. */
static void broker_init(struct broker *broker, const struct broker_options *options)
{
    broker->options = *options;
    broker->host = *options->host;
    broker->limits = *options->limits;
    broker->started = clock_now_ns();
    broker->timers = (struct timers)TIMERS_INIT(broker_announce_deadline, broker);
    broker->jobs.work = options->work;
    broker->watch = (struct watch)WATCH_NULL;
    broker->ending_turn = (struct timer)TIMER_INIT(sessions_take_apart);
    broker->pressure_turn = (struct timer)TIMER_INIT(pressure_turn);
    broker->overflow_turn = (struct timer)TIMER_INIT(lifecycle_overflow_turn);
    caches_init(&broker->caches);
    pending_init(&broker->pending, &broker->timers, &broker->host);
    list_init(&broker->upgrades);
    list_init(&broker->moves);
    list_init(&broker->ending);
    list_init(&broker->gone);
    list_init(&broker->lingering);
    deaths_prepare(&broker->deaths);
}

/* The instance of the broker before, with its watches, or a new one. */
static int find_watch(struct broker *broker)
{
    int *fd = handed_fd(broker, KEEPER_WATCH, 0);
    int r;

    if (fd && watch_adopt(&broker->watch, *fd)) {
        *fd = -1;
        return 0;
    }
    broker->watch_is_new = true;
    r = watch_init(&broker->watch);
    return r ? r : keeper_hold(broker->options.keeper, KEEPER_WATCH, 0, broker->watch.fd);
}

/* For what lists and waits for pools: retired ones are among them. */
static int init_pools(struct broker *broker)
{
    uint32_t n_pools = pools_count(broker->options.pools);

    broker->pressure = calloc(n_pools ? n_pools : 1, 1);
    return broker->pressure ? waiters_init(&broker->waiters, &broker->timers, n_pools) : -ENOMEM;
}

/* What each record costs that a charge is for. */
static void count_metadata(struct broker *broker)
{
    struct accounts *accounts = &broker->accounts;

    accounts_set_metadata(accounts, ACCOUNT_BYTES, table_entry_bytes(&broker->buffers.table));
    accounts_set_metadata(accounts, ACCOUNT_TOKENS, table_entry_bytes(&broker->tokens.table));
    accounts_set_metadata(accounts, ACCOUNT_NAMES, table_entry_bytes(&broker->names.table));
    accounts_set_metadata(accounts, ACCOUNT_ADDRESSES, table_entry_bytes(&broker->reservations.table));
    accounts_set_metadata(accounts, ACCOUNT_SESSIONS,
                          table_entry_bytes(&broker->sessions.table) + sizeof(struct account));
}

int broker_new(struct broker **ret, const struct broker_options *options)
{
    struct broker *broker = calloc(1, sizeof(*broker));
    int r;

    if (!broker)
        return fatal(-ENOMEM);
    PROBE(recovery_begin, options->n_inherited);
    broker_init(broker, options);
    r = events_init(broker);
    if (!r)
        r = recover_ledger(broker);
    if (!r)
        r = report_init(broker);
    if (!r)
        r = deaths_init(broker);
    if (!r)
        r = find_watch(broker);
    if (r) {
        (void)survey_end(broker->options.survey);
        watch_deinit(&broker->watch);
        deaths_deinit(broker);
        report_deinit(broker);
        ledger_free(broker->ledger);
        events_deinit(broker);
        free(broker);
        return r < 0 ? fatal(r) : r;
    }
    accounts_init(&broker->accounts, &broker->limits);
    accounts_set_places(&broker->accounts, pools_places(options->pools));
    reservations_init(&broker->reservations, broker->ledger, &broker->arena);
    buffers_init(&broker->buffers, broker->ledger, options->pools, &broker->arena, &broker->reservations);
    tokens_init(&broker->tokens, broker->ledger);
    names_init(&broker->names, broker->ledger);
    sessions_init(&broker->sessions, broker->ledger, &broker->accounts);
    count_metadata(broker);
    check_init(broker);
    r = recover_records(broker);
    if (!r)
        r = init_pools(broker);
    if (!r)
        r = stocking_init(broker);
    if (!r)
        r = recover_lifecycles(broker);
    if (r)
        return fatal(r);
    broker_commit(broker);
    PROBE(recovery_end, table_count(&broker->sessions.table), table_count(&broker->buffers.table),
          broker->buffers.bytes);
    *ret = broker;
    return 0;
}

int broker_enumerate(const struct broker *broker, keeper_take_fn *give, void *to)
{
    int r = give(to, KEEPER_LEDGER, 0, ledger_fd(broker->ledger));
    unsigned budget = UINT32_MAX;
    struct session *session;
    struct buffer *buffer;
    uint64_t cursor = 0;

    if (!r)
        r = give(to, KEEPER_WATCH, 0, broker->watch.fd);
    if (!r)
        r = give(to, KEEPER_HISTORY, 0, history_fd(broker->history));
    if (!r)
        r = give(to, KEEPER_COUNTERS, 0, broker->counters->fd);
    if (!r)
        r = deaths_enumerate(broker, give, to);
    while (!r && (buffer = table_next(&broker->buffers.table, &cursor, &budget)))
        if (buffer->fd >= 0)
            r = give(to, KEEPER_BUFFER, buffer->record->head.id, buffer->fd);
    cursor = 0;
    budget = UINT32_MAX;
    while (!r && (session = table_next(&broker->sessions.table, &cursor, &budget))) {
        if (session->peer.pidfd >= 0)
            r = give(to, KEEPER_SESSION, session->record->head.id, session->peer.pidfd);
        if (!r && session->release_log >= 0)
            r = give(to, KEEPER_RELEASE_LOG, session->record->head.id, session->release_log);
    }
    return r;
}

void broker_commit(struct broker *broker)
{
    while (ledger_is_changed(broker->ledger) || broker->closing) {
        ledger_commit(broker->ledger);
        caches_committed(broker);
        sessions_forget(broker);
        closing_run(broker);
    }
}

int broker_tick(struct broker *broker)
{
    timers_run(&broker->timers, clock_now_ns());
    broker_commit(broker);
    return 0;
}

int broker_watch_fd(struct broker *broker)
{
    return broker->watch.fd;
}

int broker_watch_ready(struct broker *broker)
{
    int r = watch_read(&broker->watch, lifecycle_watch_event, broker);

    broker_commit(broker);
    return r < 0 ? fatal(r) : 0;
}

int broker_session_exited(struct broker *broker, uint64_t id)
{
    struct session *session = sessions_find(&broker->sessions, id);

    if (session)
        session_end(broker, session, HISTORY_END_DIED);
    broker_commit(broker);
    return 0;
}

int broker_connection_lost(struct broker *broker, uint64_t id, void *connection)
{
    struct session *session = sessions_find(&broker->sessions, id);

    /* News of a connection that another one has replaced come late, and say nothing. */
    if (!session || session->connection != connection)
        return 0;
    /* went with this broker: for the next one it was not lost */
    if (broker->leaving) {
        session->connection = NULL;
        return 0;
    }
    session_detach(session);
    broker_commit(broker);
    if (client_of(session)->ended)
        return 0;
    return session_begin_grace(broker, session);
}

void broker_leave(struct broker *broker)
{
    for (struct op_state *state = NULL; (state = pending_next(&broker->pending, state));)
        dedup_rests(state);
    broker_commit(broker);
    counters_leave(broker->counters);
}

bool broker_next_release_log(struct broker *broker, uint64_t *cursor, struct broker_release_log *ret)
{
    unsigned budget = UINT32_MAX;
    struct session *session;

    while ((session = table_next(&broker->sessions.table, cursor, &budget))) {
        const struct session_record *record = session->record;

        if (session->release_log < 0 || client_of(session)->ended)
            continue;
        if (pread(session->release_log, &ret->log, sizeof(ret->log), 0) != (ssize_t)sizeof(ret->log)) {
            log_error("the release log of session %llu cannot be read", (unsigned long long)record->head.id);
            continue;
        }
        ret->session = record->head.id;
        ret->who = (struct log_client){record->uid, (pid_t)record->pid};
        return true;
    }
    return false;
}

bool broker_is_idle(const struct broker *broker)
{
    return !table_count(&broker->sessions.table) && table_count(&broker->buffers.table) == broker->buffers.n_stock;
}

void broker_holdings(const struct broker *broker, struct broker_holdings *ret)
{
    *ret = (struct broker_holdings){
        .buffers = table_count(&broker->buffers.table) - broker->buffers.n_stock,
        .detached = broker->buffers.n_detached,
        .bytes = broker->buffers.bytes,
        .names = table_count(&broker->names.table),
        .sessions = table_count(&broker->sessions.table),
    };
}

/* Declared pools are parts of those of the nodes, as are pools of several nodes and of transparent huge pages. */
static bool pool_has_its_own(const struct pool *pool)
{
    return !pool->declared && pool->n_nodes == 1 && pool->pages != PAGES_THP;
}

void broker_sum_pools(const struct broker *broker, struct pools_sums *ret)
{
    struct pools *pools = broker->options.pools;

    *ret = (struct pools_sums){.pools = 0};
    for (uint32_t i = 0; i < pools_count(pools); i++) {
        const struct pool *pool = pools_get(pools, i);

        if (pool->retired)
            continue;
        ret->pools++;
        if (pool_has_its_own(pool)) {
            uint64_t capacity = pool_capacity(pool);

            ret->capacity += capacity;
            ret->used += capacity - pool_available(pool);
        }
    }
}

void broker_announce_shutdown(struct broker *broker)
{
    broker->leaving = true;
    event_shutdown(broker);
}

void broker_set_limits(struct broker *broker, const struct account_limits *limits)
{
    broker->limits = *limits;
    accounts_set_limits(&broker->accounts, limits);
}

void broker_set_grace(struct broker *broker, uint64_t grace_ms)
{
    broker->options.grace_ms = grace_ms;
}

void broker_refuse_overflow_uid(struct broker *broker, bool refuse)
{
    broker->options.refuse_overflow_uid = refuse;
}
