/* SPDX-License-Identifier: Apache-2.0 */
/* See sessions.h. */
#include "broker/sessions.h"

#include <errno.h>

#include "base/clock.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "log/log.h"
#include "mem/handle.h"

/* a close is surely complete so long after its event */
#define CLOSE_MS 50

void session_end(struct broker *broker, struct session *session)
{
    struct client *client = client_of(session);
    uint64_t id = session->record->head.id;
    void *connection = session->connection;

    if (client->ended)
        return;
    client->ended = true;
    record_change(&broker->sessions.table, session)->ended = 1;
    /* both sides forget each other at once, so that neither keeps what the other has freed */
    if (connection) {
        session_detach(session);
        broker->host.disconnect(broker->host.userdata, connection);
    }
    list_remove(&client->subscribed);
    list_remove(&client->lingering);
    list_append(&broker->ending, &client->in_ending);
    timers_clear_record(&broker->timers, TIME_GRACE, id);
    if (session->peer.pidfd >= 0)
        broker->host.unwatch_process(broker->host.userdata, id);
    pending_cancel(&broker->pending, id);
    timer_arm(&broker->timers, &broker->ending_turn, 0);
}

/* Its grace is over. While anything that it holds is open or mapped somewhere, that may be by its process. */
static void grace_is_over(void *userdata, uint64_t id)
{
    struct broker *broker = userdata;
    struct session *session = find_session(broker, id);
    struct client *client;
    struct hold *hold;

    if (!session || session->connection)
        return;
    client = client_of(session);
    /* a process that cannot come back now, stopped or in a debugger, has as long again */
    if (process_pauses((pid_t)session->record->pid) &&
        !timers_set_record(&broker->timers, TIME_GRACE, id, deadline_after_ms(broker->options.grace_ms), grace_is_over,
                           broker))
        return;
    for (unsigned i = 0; i < SLICE; i++) {
        bool sole = true;

        hold = session_next_hold(session, client->scanned);
        if (!hold) {
            log_client(LOG_LEVEL_INFO, (struct log_client){session->record->uid, (pid_t)session->record->pid},
                       "session %llu of pid %u ends: no connection, and nothing of it is in use",
                       (unsigned long long)id, session->record->pid);
            session_end(broker, session);
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
    if (timers_set_record(&broker->timers, TIME_GRACE, id, 0, grace_is_over, broker))
        session_end(broker, session);
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
