/* SPDX-License-Identifier: Apache-2.0 */
/* See subscriptions.h. */
#include "broker/subscriptions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "proto/status.h"
#include "work/turn.h"

/* events that wait for one subscriber */
#define QUEUE_MAX 32

struct subscribed_name {
    uid_t uid;
    char path[MEMORYD_NAME_MAX + 1];
};

struct subscriptions {
    struct session *session;
    struct list in_all;
    struct list in_waiting;
    uint32_t kinds; /* of any of them */
    uint32_t n_buffers;
    uint32_t n_names;
    struct {
        uint64_t id;
        uint32_t kinds;
    } buffers[SUBSCRIPTION_BUFFERS_MAX];
    struct subscribed_name *names[SUBSCRIPTION_NAMES_MAX];
    bool lost; /* there was no room, before those in the queue */
    unsigned first;
    unsigned n_queued;
    struct broker_event queue[QUEUE_MAX];
};

static void subscriptions_turn(struct timer *timer);

void subscriptions_init(struct broker *broker)
{
    list_init(&broker->subscriptions);
    list_init(&broker->told_next);
    broker->told_turn = (struct timer)TIMER_INIT(subscriptions_turn);
}

/* ---- what a session has subscribed to ---------------------------------------------------------------------------- */

static unsigned subscriptions_of(const struct broker *broker, uid_t uid)
{
    unsigned n = 0;

    list_for_each_entry(one, &broker->subscriptions, struct subscriptions, in_all)
        n += one->session->record->uid == uid;
    return n;
}

/* What they cost the session, more or less than before. `problem` is NULL where that cannot be refused. */
static int subscriptions_charge(struct session *session, uint64_t bytes, struct problem *problem)
{
    struct table *table = &session->sessions->table;
    int r = 0;

    audit_before(table, session);
    if (problem)
        r = account_charge_metadata(session->account, bytes, problem);
    else
        account_restore_metadata(session->account, bytes);
    if (!r)
        session->subscription_bytes += bytes;
    audit_after(table, session);
    return r;
}

static void subscriptions_uncharge(struct session *session, uint64_t bytes)
{
    struct table *table = &session->sessions->table;

    audit_before(table, session);
    account_lower_metadata(session->account, bytes);
    session->subscription_bytes -= bytes;
    audit_after(table, session);
}

static int subscriptions_new(struct broker *broker, struct session *session, struct problem *problem)
{
    struct subscriptions *made;
    int r = 0;

    if (problem && subscriptions_of(broker, session->record->uid) >= SUBSCRIPTIONS_USER_MAX)
        return refuse(problem, STATUS_LIMIT,
                      "%d sessions of uid %u have subscribed to events of buffers, and no more may; subscribe in fewer "
                      "processes",
                      SUBSCRIPTIONS_USER_MAX, session->record->uid);
    made = calloc(1, sizeof(*made));
    if (!made)
        return problem ? refuse(problem, STATUS_NO_MEMORY, "the broker has no memory for a subscription") : -ENOMEM;
    r = subscriptions_charge(session, sizeof(*made), problem);
    if (r) {
        free(made);
        return r;
    }
    made->session = session;
    list_init(&made->in_waiting);
    list_init(&made->in_all);
    list_append(&broker->subscriptions, &made->in_all);
    client_of(session)->subscriptions = made;
    return 0;
}

static void subscriptions_free(struct subscriptions *old)
{
    list_remove(&old->in_all);
    list_remove(&old->in_waiting);
    for (uint32_t i = 0; i < old->n_names; i++)
        free(old->names[i]);
    free(old);
}

void subscriptions_deinit(struct broker *broker)
{
    timer_disarm(&broker->timers, &broker->told_turn);
    list_for_each_entry_safe(one, &broker->subscriptions, struct subscriptions, in_all) {
        client_of(one->session)->subscriptions = NULL;
        subscriptions_free(one);
    }
}

void subscribe_end(struct broker *broker, struct session *session)
{
    struct client *client = client_of(session);

    list_remove(&client->subscribed);
    if (!client->subscriptions)
        return;
    subscriptions_free(client->subscriptions);
    client->subscriptions = NULL;
    subscriptions_uncharge(session, session->subscription_bytes);
}

/* Its subscriptions, or its record, have changed. */
static void subscriptions_settle(struct broker *broker, struct session *session)
{
    struct client *client = client_of(session);
    struct subscriptions *one = client->subscriptions;
    uint32_t kinds = session->record->subscribed;

    for (uint32_t i = 0; one && i < one->n_buffers; i++)
        kinds |= one->buffers[i].kinds;
    if (one && one->n_names)
        kinds |= EVENT_NAME;
    if (one)
        one->kinds = kinds;
    if (one && !one->n_buffers && !one->n_names && !(kinds & EVENTS_QUEUED))
        subscribe_end(broker, session);
    list_remove(&client->subscribed);
    if (kinds)
        list_append(&broker->subscribers, &client->subscribed);
}

static int subscriptions_need(struct broker *broker, struct session *session, struct problem *problem)
{
    return client_of(session)->subscriptions ? 0 : subscriptions_new(broker, session, problem);
}

/* Before a subscription to one thing is changed. NULL: there are none, and none is wanted. */
static int subscriptions_change(struct broker *broker, struct session *session, uint32_t kinds,
                                struct subscriptions **ret, struct problem *problem)
{
    int r = kinds ? subscriptions_need(broker, session, problem) : 0;

    *ret = client_of(session)->subscriptions;
    return r;
}

int subscribe_all(struct broker *broker, struct session *session, uint32_t kinds, struct problem *problem)
{
    int r = kinds & EVENTS_QUEUED ? subscriptions_need(broker, session, problem) : 0;

    if (r)
        return r;
    record_change(&broker->sessions.table, session)->subscribed = kinds;
    subscriptions_settle(broker, session);
    return 0;
}

int subscribe_restore(struct broker *broker, struct session *session)
{
    int r = session->record->subscribed & EVENTS_QUEUED ? subscriptions_need(broker, session, NULL) : 0;

    if (!r)
        subscriptions_settle(broker, session);
    return r;
}

static uint32_t find_buffer(const struct subscriptions *one, uint64_t id)
{
    uint32_t i = 0;

    while (i < one->n_buffers && one->buffers[i].id != id)
        i++;
    return i;
}

static void remove_buffer(struct subscriptions *one, uint32_t i)
{
    one->buffers[i] = one->buffers[--one->n_buffers];
}

/* They are kept until there is no room, since what is queued of them is still to be told. */
static void remove_ended_buffers(const struct broker *broker, struct subscriptions *one)
{
    for (uint32_t i = one->n_buffers; i--;) {
        const struct buffer *buffer = buffers_find(&broker->buffers, one->buffers[i].id);

        if (!buffer || buffer->record->state != BUFFER_LIVE)
            remove_buffer(one, i);
    }
}

static int add_buffer(const struct broker *broker, struct subscriptions *one, uint64_t id, struct problem *problem)
{
    if (one->n_buffers == SUBSCRIPTION_BUFFERS_MAX)
        remove_ended_buffers(broker, one);
    if (one->n_buffers == SUBSCRIPTION_BUFFERS_MAX)
        return refuse(problem, STATUS_LIMIT,
                      "a session may subscribe to %d buffers one by one; end some, or subscribe to all",
                      SUBSCRIPTION_BUFFERS_MAX);
    one->buffers[one->n_buffers++].id = id;
    return 0;
}

int subscribe_buffer(struct broker *broker, struct session *session, uint64_t buffer, uint32_t kinds,
                     struct problem *problem)
{
    struct subscriptions *one;
    uint32_t i;
    int r = subscriptions_change(broker, session, kinds, &one, problem);

    if (r || !one)
        return r;
    i = find_buffer(one, buffer);
    if (kinds && i == one->n_buffers) {
        r = add_buffer(broker, one, buffer, problem);
        i = one->n_buffers - 1;
    }
    if (kinds && !r)
        one->buffers[i].kinds = kinds;
    else if (!kinds && i < one->n_buffers)
        remove_buffer(one, i);
    subscriptions_settle(broker, session);
    return r;
}

static bool is_name(const struct subscribed_name *name, uid_t uid, const char *path, size_t length)
{
    return name->uid == uid && strlen(name->path) == length && !memcmp(name->path, path, length);
}

static uint32_t find_name(const struct subscriptions *one, uid_t uid, const char *path, size_t length)
{
    uint32_t i = 0;

    while (i < one->n_names && !is_name(one->names[i], uid, path, length))
        i++;
    return i;
}

static int add_name(struct subscriptions *one, const struct name_key *key, struct problem *problem)
{
    struct subscribed_name *name;
    int r;

    if (one->n_names == SUBSCRIPTION_NAMES_MAX)
        return refuse(problem, STATUS_LIMIT,
                      "a session may subscribe to %d names one by one; end some, or subscribe to all",
                      SUBSCRIPTION_NAMES_MAX);
    name = calloc(1, sizeof(*name));
    if (!name)
        return refuse(problem, STATUS_NO_MEMORY, "the broker has no memory for a subscription");
    r = subscriptions_charge(one->session, sizeof(*name), problem);
    if (r) {
        free(name);
        return r;
    }
    name->uid = key->uid;
    memcpy(name->path, key->path, key->length);
    one->names[one->n_names++] = name;
    return 0;
}

static void remove_name(struct subscriptions *one, uint32_t i)
{
    free(one->names[i]);
    one->names[i] = one->names[--one->n_names];
    subscriptions_uncharge(one->session, sizeof(**one->names));
}

int subscribe_name(struct broker *broker, struct session *session, const struct name_key *key, uint32_t kinds,
                   struct problem *problem)
{
    struct subscriptions *one;
    uint32_t i;
    int r = subscriptions_change(broker, session, kinds, &one, problem);

    if (r || !one)
        return r;
    i = find_name(one, key->uid, key->path, key->length);
    if (kinds && i == one->n_names)
        r = add_name(one, key, problem);
    else if (!kinds && i < one->n_names)
        remove_name(one, i);
    subscriptions_settle(broker, session);
    return r;
}

bool subscribed_to(const struct session *session, uint32_t kinds)
{
    const struct subscriptions *one = client_of(session)->subscriptions;

    return (one ? one->kinds : session->record->subscribed) & kinds;
}

bool subscribed_to_buffer(const struct session *session, uint32_t kind, uint64_t buffer)
{
    const struct subscriptions *one = client_of(session)->subscriptions;
    uint32_t i;

    if (session->record->subscribed & kind)
        return true;
    if (!one)
        return false;
    i = find_buffer(one, buffer);
    return i < one->n_buffers && one->buffers[i].kinds & kind;
}

bool subscribed_to_name(const struct session *session, const struct name_record *name)
{
    const struct subscriptions *one = client_of(session)->subscriptions;

    return subscribed_to_buffer(session, EVENT_NAME, name->buffer) ||
           (one && find_name(one, name->uid, name->path, name->length) < one->n_names);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

/* About the same thing? How somebody holds a buffer is one thing. */
static bool is_same(const struct broker_event *a, const struct broker_event *b)
{
    const uint32_t of_holds = EVENT_HELD | EVENT_LEFT | EVENT_DIED;

    return a->buffer == b->buffer && a->session == b->session &&
           (a->kind == b->kind || (a->kind & of_holds && b->kind & of_holds));
}

static struct broker_event *queued(struct subscriptions *one, unsigned i)
{
    return &one->queue[(one->first + i) % QUEUE_MAX];
}

static void queue_remove(struct subscriptions *one, const struct broker_event *event)
{
    unsigned i = 0;

    while (i < one->n_queued && !is_same(queued(one, i), event))
        i++;
    if (i == one->n_queued)
        return;
    for (one->n_queued--; i < one->n_queued; i++)
        *queued(one, i) = *queued(one, i + 1);
}

static void queue_add(struct broker *broker, struct subscriptions *one, const struct broker_event *event)
{
    if (!one->session->connection)
        return;
    queue_remove(one, event);
    if (one->n_queued == QUEUE_MAX) {
        one->n_queued = 0;
        one->lost = true;
    }
    *queued(one, one->n_queued++) = *event;
    if (list_is_linked(&one->in_waiting))
        return;
    list_append(&broker->told_next, &one->in_waiting);
    timer_arm(&broker->timers, &broker->told_turn, 0);
}

static void subscription_send(struct broker *broker, const struct subscriptions *one, const struct broker_event *event)
{
    if (one->session->connection)
        broker->host.event(broker->host.userdata, one->session->connection, event);
}

/* What waits longest for it. Returns whether more does. */
static bool queue_tell_next(struct broker *broker, struct subscriptions *one)
{
    static const struct broker_event lost = {.kind = EVENT_LOST};

    if (one->lost) {
        one->lost = false;
        subscription_send(broker, one, &lost);
    } else {
        const struct broker_event *event = queued(one, 0);

        if (one->kinds & event->kind)
            subscription_send(broker, one, event);
        one->first = (one->first + 1) % QUEUE_MAX;
        one->n_queued--;
    }
    return one->n_queued;
}

/* One event each, in turn, for a slice. */
static void subscriptions_turn(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, told_turn);
    uint64_t begin = slice_begin();
    struct list *link;

    while ((link = list_pop(&broker->told_next))) {
        if (queue_tell_next(broker, container_of(link, struct subscriptions, in_waiting)))
            list_append(&broker->told_next, link);
        if (slice_is_over(begin))
            break;
    }
    if (!list_is_empty(&broker->told_next))
        timer_arm(&broker->timers, timer, 0);
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

/* What it is about, for whom. Of others' holds it is only told that there are more or fewer, to whom INFO would not
 * name them either. */
static struct broker_event hold_as_seen_by(const struct broker *broker, const struct session *session, uint32_t kind,
                                           const struct hold *hold)
{
    const struct session_record *holder = hold->session->record;
    struct broker_event event = {.kind = kind, .buffer = hold->record->buffer, .uid = (uid_t)-1};
    bool known = is_admin(broker, session) || holder->uid == session->record->uid;

    if (known || may_see_sharing(broker, session, hold->buffer))
        event.session = holder->head.id;
    if (known) {
        event.uid = holder->uid;
        event.pid = (pid_t)holder->pid;
    }
    return event;
}

void event_hold(struct broker *broker, uint32_t kind, const struct hold *hold)
{
    list_for_each_entry(one, &broker->subscriptions, struct subscriptions, in_all) {
        struct broker_event event;

        if (!(one->kinds & kind) || one->session == hold->session ||
            !subscribed_to_buffer(one->session, kind, hold->record->buffer) ||
            !may_see_buffer(broker, one->session, hold->buffer))
            continue;
        event = hold_as_seen_by(broker, one->session, kind, hold);
        queue_add(broker, one, &event);
    }
}

void event_buffer(struct broker *broker, uint32_t kind, const struct buffer *buffer, uint64_t by_session)
{
    const struct broker_event event = {.kind = kind, .buffer = buffer->record->head.id, .uid = (uid_t)-1};

    list_for_each_entry(one, &broker->subscriptions, struct subscriptions, in_all) {
        if (one->kinds & kind && one->session->record->head.id != by_session &&
            subscribed_to_buffer(one->session, kind, event.buffer) && may_see_buffer(broker, one->session, buffer))
            queue_add(broker, one, &event);
    }
}

void event_death(struct broker *broker, const struct broker_event *death)
{
    list_for_each_entry(one, &broker->subscriptions, struct subscriptions, in_all) {
        if (one->kinds & EVENT_DEATH && (one->session->record->uid == death->uid || is_admin(broker, one->session)))
            queue_add(broker, one, death);
    }
}

void event_history(struct broker *broker, uid_t uid, bool everybody)
{
    const struct broker_event event = {.kind = EVENT_HISTORY, .uid = (uid_t)-1};

    list_for_each_entry(one, &broker->subscriptions, struct subscriptions, in_all) {
        if (one->kinds & EVENT_HISTORY &&
            (everybody || one->session->record->uid == uid || is_admin(broker, one->session)))
            queue_add(broker, one, &event);
    }
}
