/* SPDX-License-Identifier: Apache-2.0 */
/* See sessions.h. */
#include "broker/sessions.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/probe.h"
#include "broker/lookup.h"
#include "broker/report.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "log/log.h"
#include "mem/handle.h"

/* a close is surely complete so long after its event */
#define CLOSE_MS 50

void session_end(struct broker *broker, struct session *session, enum history_end how)
{
    struct client *client = client_of(session);
    uint64_t id = session->record->head.id;
    void *connection = session->connection;
    uint32_t reported;

    if (client->ended)
        return;
    PROBE(session_end, id, session->record->uid, session->record->pid, how, session->n_holds);
    reported = report_session_ended(broker, session, how);
    client->ended = true;
    record_change(&broker->sessions.table, session)->ended = 1;
    /* both sides forget each other at once, so that neither keeps what the other has freed */
    if (connection) {
        session_detach(session);
        broker->host.disconnect(broker->host.userdata, connection);
    }
    client->died = how == HISTORY_END_DIED;
    subscribe_end(broker, session);
    list_remove(&client->lingering);
    list_append(&broker->ending, &client->in_ending);
    timers_clear_record(&broker->timers, TIME_GRACE, id);
    if (session->peer.pidfd >= 0)
        broker->host.unwatch_process(broker->host.userdata, id);
    if (how == HISTORY_END_DIED)
        death_begin(broker, session, reported);
    pending_cancel(&broker->pending, id);
    timer_arm(&broker->timers, &broker->ending_turn, 0);
}

/* Holds of a session about which the kernel is asked in one turn. */
#define GRACE_SLICE 16

static void grace_is_over(void *userdata, uint64_t id);

/* While anything that it holds is open or mapped somewhere, that may be by its process. */
static void grace_scan(void *userdata, uint64_t id)
{
    struct broker *broker = userdata;
    struct session *session = find_session(broker, id);
    struct client *client;
    struct hold *hold;

    if (!session || session->connection)
        return;
    client = client_of(session);
    for (unsigned i = 0; i < GRACE_SLICE; i++) {
        bool sole = true;

        hold = session_next_hold(session, client->scanned);
        if (!hold) {
            log_client(LOG_LEVEL_INFO, (struct log_client){session->record->uid, (pid_t)session->record->pid},
                       "session %llu of pid %u ends: no connection, and nothing of it is in use",
                       (unsigned long long)id, session->record->pid);
            session_end(broker, session, HISTORY_END_SILENT);
            return;
        }
        /* what never left the broker is in use by nobody; what the kernel does not answer about is in use */
        if (buffer_is_foreign(hold->buffer) ||
            (hold->buffer->record->watch >= 0 && handle_sole(hold->buffer->fd, &sole, NULL)))
            sole = false;
        if (!sole) {
            client->in_use = hold->record->buffer;
            list_remove(&client->lingering);
            list_append(&broker->lingering, &client->lingering);
            return;
        }
        client->scanned = hold->record->buffer + 1;
    }
    if (timers_set_record(&broker->timers, TIME_GRACE, id, 0, grace_scan, broker))
        session_end(broker, session, HISTORY_END_SILENT);
}

struct grace_look {
    struct process_job job;
    struct broker *broker;
    uint64_t session;
    uint64_t lost_at; /* its connection */
};

/* A process that cannot come back now, stopped or in a debugger, has as long again. */
static void grace_looked(struct job *job)
{
    struct grace_look *look = container_of(job, struct grace_look, job.job);
    struct broker *broker = look->broker;
    struct session *session = find_session(broker, look->session);
    uint64_t again = deadline_after_ms(broker->options.grace_ms);

    if (session)
        client_of(session)->looked_at = false;
    if (session && session->record->lost_at != look->lost_at) /* meanwhile it was here again */
        again = deadline_at_ms(session->record->lost_at, broker->options.grace_ms);
    else
        again = look->job.pauses ? again : 0;
    if (session && !session->connection &&
        (!again || timers_set_record(&broker->timers, TIME_GRACE, look->session, again, grace_is_over, broker)))
        grace_scan(broker, look->session);
    free(look);
}

/*
 * A worker looks at the process: whoever does may have to wait for it, if not take its memory apart in its stead. Its
 * session stays meanwhile.
 */
static void grace_is_over(void *userdata, uint64_t id)
{
    struct broker *broker = userdata;
    struct session *session = find_session(broker, id);
    struct grace_look *look;

    if (!session || session->connection || client_of(session)->looked_at)
        return;
    look = calloc(1, sizeof(*look));
    if (!look) {
        grace_scan(broker, id);
        return;
    }
    client_of(session)->looked_at = true;
    look->broker = broker;
    look->session = id;
    look->lost_at = session->record->lost_at;
    look->job.pid = (pid_t)session->record->pid;
    look->job.job.uid = session->record->uid;
    look->job.job.done = grace_looked;
    process_job_submit(&broker->jobs, &look->job);
}

void sessions_stop_lingering(struct broker *broker, uint64_t buffer)
{
    list_for_each_entry_safe(client, &broker->lingering, struct client, lingering) {
        if (buffer && client->in_use != buffer)
            continue;
        client->scanned = 0;
        /* not at once: the kernel reports a close a moment before it is done. Without memory for a timer it lingers
         * until the next event */
        if (!timers_set_record(&broker->timers, TIME_GRACE, client->session->record->head.id,
                               deadline_after_ms(CLOSE_MS), grace_is_over, broker))
            list_remove(&client->lingering);
    }
}

int session_begin_grace(struct broker *broker, struct session *session)
{
    const struct session_record *record = session->record;

    client_of(session)->scanned = 0;
    if (timers_set_record(&broker->timers, TIME_GRACE, record->head.id,
                          deadline_at_ms(record->lost_at, broker->options.grace_ms), grace_is_over, broker))
        return fatal(-ENOMEM);
    return 0;
}
