/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscribers are in one list, so sessions that are none cost nothing. Sending to all may take long, so news wait in a
 * ring and are sent in turns of the loop. News that find no room in the ring are replaced by one LOST.
 */
#include "broker/events.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "broker/subscriptions.h"
#include "broker/watchers.h"
#include "mem/pool.h"

/* pools looked at in one turn */
#define POOLS_A_TURN 32
/* subscribers dealt with in one turn */
#define ASKED_A_TURN 8
/* news that wait, the LOST among them */
#define NEWS_MAX 64

struct news {
    uint32_t kind; /* of LOST: all kinds that were lost */
    bool lost;
    bool bound;
    uint32_t level;
    uint64_t buffer;
    uint64_t by_session;
    const struct pool *pool;
    struct name_record name; /* a copy, by which it is decided later who may know of it */
};

static void news_turn(struct timer *timer);

int events_init(struct broker *broker)
{
    list_init(&broker->subscribers);
    list_init(&broker->news_at);
    watchers_init(broker);
    broker->news_turn = (struct timer)TIMER_INIT(news_turn);
    broker->news = calloc(NEWS_MAX, sizeof(*broker->news));
    return broker->news ? 0 : -ENOMEM;
}

void events_deinit(struct broker *broker)
{
    timer_disarm(&broker->timers, &broker->news_turn);
    list_remove(&broker->news_at);
    free(broker->news);
    broker->news = NULL;
}

/* To be filled in. NULL: nobody has subscribed, or the ring is full. */
static struct news *news_add(struct broker *broker, uint32_t kind)
{
    struct news *news;

    if (list_is_empty(&broker->subscribers))
        return NULL;
    if (broker->n_news == NEWS_MAX) {
        broker->news[(broker->first_news + NEWS_MAX - 1) % NEWS_MAX].kind |= kind;
        return NULL;
    }
    news = &broker->news[(broker->first_news + broker->n_news++) % NEWS_MAX];
    *news = (struct news){.kind = kind, .lost = broker->n_news == NEWS_MAX};
    timer_arm(&broker->timers, &broker->news_turn, 0);
    return news->lost ? NULL : news;
}

static bool wants_events(const struct session *session, uint32_t kinds)
{
    return session->connection && !client_of(session)->ended && subscribed_to(session, kinds);
}

static void event_send(struct broker *broker, struct session *session, const struct broker_event *event)
{
    broker->host.event(broker->host.userdata, session->connection, event);
}

static void news_send_name(struct broker *broker, struct session *session, struct news *news)
{
    const struct name name = {.record = &news->name};
    char text[NAME_TEXT_SIZE];

    if (!subscribed_to_name(session, &news->name) || !name_rights(&name, &session->peer, is_admin(broker, session)))
        return;
    name_text(&name, session->record->uid, text);
    event_send(
        broker, session,
        &(struct broker_event){.kind = EVENT_NAME, .name = text, .bound = news->bound, .buffer = news->name.buffer});
}

static void news_send_discarded(struct broker *broker, struct session *session, const struct news *news)
{
    const struct buffer *buffer = buffers_find(&broker->buffers, news->buffer);

    if (buffer && session->record->head.id != news->by_session && may_see_buffer(broker, session, buffer) &&
        subscribed_to_buffer(session, EVENT_DISCARDED, news->buffer))
        event_send(broker, session, &(struct broker_event){.kind = EVENT_DISCARDED, .buffer = news->buffer});
}

static void news_send(struct broker *broker, struct session *session, struct news *news)
{
    if (!wants_events(session, news->kind))
        return;
    if (news->lost)
        event_send(broker, session, &(struct broker_event){.kind = EVENT_LOST});
    else if (news->kind == EVENT_NAME)
        news_send_name(broker, session, news);
    else if (news->kind == EVENT_PRESSURE)
        event_send(broker, session,
                   &(struct broker_event){.kind = EVENT_PRESSURE, .pool = news->pool->name, .level = news->level});
    else
        news_send_discarded(broker, session, news);
}

/* A mark in the list of subscribers stands behind those who have got the first of the news, so that others may come and
 * go. */
static void news_turn(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, news_turn);

    for (unsigned i = 0; i < ASKED_A_TURN && broker->n_news; i++) {
        struct list *next;

        if (!list_is_linked(&broker->news_at))
            list_prepend(&broker->subscribers, &broker->news_at);
        next = broker->news_at.next;
        list_remove(&broker->news_at);
        if (next == &broker->subscribers) {
            broker->first_news = (broker->first_news + 1) % NEWS_MAX;
            broker->n_news--;
            continue;
        }
        list_prepend(next, &broker->news_at);
        news_send(broker, container_of(next, struct client, subscribed)->session, &broker->news[broker->first_news]);
    }
    if (broker->n_news)
        timer_arm(&broker->timers, timer, 0);
}

void event_name(struct broker *broker, const struct name *name, bool bound)
{
    struct news *news = news_add(broker, EVENT_NAME);

    if (!news)
        return;
    news->name = *name->record;
    news->bound = bound;
}

void event_discarded(struct broker *broker, const struct buffer *buffer, uint64_t by_session)
{
    struct news *news = news_add(broker, EVENT_DISCARDED);

    if (!news)
        return;
    news->buffer = buffer->record->head.id;
    news->by_session = by_session;
}

/* Sent at once: there are no more turns, and news that wait are dropped. */
void event_shutdown(struct broker *broker)
{
    list_remove(&broker->news_at);
    broker->n_news = 0;
    list_for_each_entry(client, &broker->subscribers, struct client, subscribed) {
        if (wants_events(client->session, EVENT_SHUTDOWN))
            event_send(broker, client->session, &(struct broker_event){.kind = EVENT_SHUTDOWN});
    }
}

/* ---- pressure ---------------------------------------------------------------------------------------------------- */

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

bool pressure_look(struct broker *broker)
{
    uint32_t n = pools_count(broker->options.pools);
    bool changed = false;

    for (unsigned i = 0; i < POOLS_A_TURN && broker->pressure_at < n; i++, broker->pressure_at++) {
        const struct pool *pool = pools_get(broker->options.pools, broker->pressure_at);
        uint64_t capacity = pool_capacity(pool), available = pool_available(pool);
        uint8_t *level = &broker->pressure[broker->pressure_at];
        struct news *news;
        unsigned now = pressure_level(*level, capacity > available ? capacity - available : 0, capacity);

        if (now == *level)
            continue;
        *level = (uint8_t)now;
        changed = true;
        news = news_add(broker, EVENT_PRESSURE);
        if (news) {
            news->pool = pool;
            news->level = now;
        }
    }
    if (broker->pressure_at < n)
        timer_arm(&broker->timers, &broker->pressure_turn, 0);
    else if (broker->pressure_again)
        pressure_changed(broker);
    return changed;
}
