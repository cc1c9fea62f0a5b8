/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker taken apart. The program never does that: its process ends, and the next broker goes on. But only what is
 * taken apart shows that every sum comes back to zero, and that nothing leaks.
 */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "broker/closing.h"
#include "broker/events.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/report.h"
#include "broker/sessions.h"
#include "broker/state.h"
#include "broker/stocking.h"
#include "tests/unit/broker/host.h"

/* Jobs call back into the broker. */
static void wait_for_jobs(struct broker *broker)
{
    while (broker->jobs.running) {
        struct pollfd p = {.fd = work_fd(broker->options.work), .events = POLLIN};

        (void)poll(&p, 1, -1);
        if (work_dispatch(broker->options.work) < 0)
            break;
        broker_commit(broker);
    }
}

/* What is pending ends with its session. */
static void end_sessions(struct broker *broker)
{
    unsigned budget = UINT32_MAX;
    struct session *session;
    uint64_t cursor = 0;

    while ((session = table_next(&broker->sessions.table, &cursor, &budget)))
        if (!client_of(session)->ended)
            session_end(broker, session, HISTORY_END_GOODBYE);
    while (!pending_is_empty(&broker->pending)) {
        timers_run(&broker->timers, clock_now_ns());
        host_take_turns();
        wait_for_jobs(broker);
    }
}

/* All memory ends, whoever has it open: contents stay with them. */
static void end_buffers(struct broker *broker)
{
    unsigned budget = UINT32_MAX;
    struct buffer *buffer;
    uint64_t cursor = 0;

    while ((buffer = table_next(&broker->buffers.table, &cursor, &budget)))
        if (buffer->record->state == BUFFER_LIVE)
            lifecycle_destroy(broker, buffer);
    broker_commit(broker);
    wait_for_jobs(broker);
    stocking_deinit(broker);
    cursor = 0;
    while ((buffer = table_next(&broker->buffers.table, &cursor, &budget))) {
        if (buffer->record->watch >= 0)
            buffer_set_watch(&broker->buffers, buffer, -1);
        lifecycle_abandon(broker, buffer);
        buffer_free(&broker->buffers, buffer);
    }
}

static void end_rest(struct broker *broker)
{
    struct reservation *reservation;
    unsigned budget = UINT32_MAX;
    uint64_t cursor = 0;

    while ((reservation = table_next(&broker->reservations.table, &cursor, &budget)))
        reservation_free(reservation);
    while (!list_is_empty(&broker->ending))
        timers_run(&broker->timers, clock_now_ns());
    tokens_forget_ended(&broker->tokens);
    sessions_forget(broker);
    wait_for_jobs(broker);
}

void host_take_apart(struct broker *broker)
{
    stocking_stop(broker);
    end_sessions(broker);
    end_buffers(broker);
    end_rest(broker);
    if (broker->live_watches) {
        free(broker->live_watches->wds);
        free(broker->live_watches);
    }
    timer_disarm(&broker->timers, &broker->ending_turn);
    caches_deinit(broker);
    timer_disarm(&broker->timers, &broker->pressure_turn);
    timer_disarm(&broker->timers, &broker->overflow_turn);
    events_deinit(broker);
    waiters_deinit(&broker->waiters);
    timers_deinit(&broker->timers);
    sessions_deinit(&broker->sessions);
    names_deinit(&broker->names);
    tokens_deinit(&broker->tokens);
    buffers_deinit(&broker->buffers);
    reservations_deinit(&broker->reservations);
    pools_forget(broker->options.pools);
    va_arena_deinit(&broker->arena);
    accounts_deinit(&broker->accounts);
    watch_deinit(&broker->watch);
    deaths_deinit(broker);
    report_deinit(broker);
    ledger_free(broker->ledger);
    free(broker->pressure);
    free(broker);
}

struct account *host_account(uint64_t session)
{
    return sessions_find(&host.broker->sessions, session)->account;
}
