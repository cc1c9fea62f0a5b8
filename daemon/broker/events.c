/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who subscribed is in one list, so those who did not cost nothing.
 */
#include "broker/events.h"

#include "base/list.h"
#include "mem/pool.h"

/* pools looked at in one turn */
#define POOLS_A_TURN 32

static bool wants(const struct session *session, uint32_t kind)
{
    return session->connection && !client_of(session)->ended && session->record->subscribed & kind;
}

static void tell(struct broker *broker, struct session *session, const struct broker_event *event)
{
    broker->host.event(broker->host.userdata, session->connection, event);
}

void event_name(struct broker *broker, const struct name *name, bool bound)
{
    if (broker->stopping)
        return;
    list_for_each_entry(client, &broker->subscribers, struct client, subscribed)
    {
        struct session *session = client->session;
        char text[NAME_TEXT_SIZE];

        if (!wants(session, EVENT_NAME) ||
            !name_rights(name, &session->peer, is_admin(broker, session)))
            continue;
        name_text(name, session->record->uid, text);
        tell(broker, session,
             &(struct broker_event){
                 .kind = EVENT_NAME, .name = text, .bound = bound, .buffer = name->record->buffer});
    }
}

void event_discarded(struct broker *broker, const struct buffer *buffer, uint64_t by_session)
{
    list_for_each_entry(hold, &buffer->holds, struct hold, in_buffer)
    {
        if (hold->record->session == by_session || !wants(hold->session, EVENT_DISCARDED))
            continue;
        tell(broker, hold->session,
             &(struct broker_event){.kind = EVENT_DISCARDED, .buffer = buffer->record->head.id});
    }
}

void event_shutdown(struct broker *broker)
{
    list_for_each_entry(client, &broker->subscribers, struct client, subscribed)
    {
        if (wants(client->session, EVENT_SHUTDOWN))
            tell(broker, client->session, &(struct broker_event){.kind = EVENT_SHUTDOWN});
    }
}

/* ---- pressure ------------------------------------------------------------------------------------------- */

unsigned pressure_level(unsigned before, uint64_t used, uint64_t capacity)
{
    /* percent, rounded down; the numbers are bytes of one machine, so this does not overflow */
    uint64_t percent = capacity ? (uint64_t)((unsigned __int128)used * 100 / capacity) : 0;

    if (percent >= 95 || (before == 2 && percent >= 90))
        return 2;
    if (percent >= 85 || (before >= 1 && percent >= 80))
        return 1;
    return 0;
}

void pressure_changed(struct broker *broker)
{
    if (timer_is_armed(&broker->pressure_turn)) {
        broker->pressure_again = true;
        return;
    }
    broker->pressure_at = 0;
    broker->pressure_again = false;
    timer_arm(&broker->timers, &broker->pressure_turn, 0);
}

void pressure_turn(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, pressure_turn);
    uint32_t n = pools_count(broker->options.pools);

    for (unsigned i = 0; i < POOLS_A_TURN && broker->pressure_at < n; i++, broker->pressure_at++) {
        const struct pool *pool = pools_get(broker->options.pools, broker->pressure_at);
        uint64_t capacity = pool_capacity(pool), available = pool_available(pool);
        uint8_t *level = &broker->pressure[broker->pressure_at];
        unsigned now = pressure_level(*level, capacity > available ? capacity - available : 0, capacity);

        if (now == *level)
            continue;
        *level = (uint8_t)now;
        list_for_each_entry(client, &broker->subscribers, struct client, subscribed)
        {
            if (wants(client->session, EVENT_PRESSURE))
                tell(broker, client->session,
                     &(struct broker_event){.kind = EVENT_PRESSURE, .pool = pool->name, .level = now});
        }
    }
    if (broker->pressure_at < n)
        timer_arm(&broker->timers, timer, 0);
    else if (broker->pressure_again)
        pressure_changed(broker);
}
