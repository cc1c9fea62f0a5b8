/* SPDX-License-Identifier: Apache-2.0 */
/* See subscriptions.h. */
#include "broker/subscriptions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "broker/watchers.h"
#include "proto/status.h"

/* What one costs: with all that its user's sessions share, since it may be the only one. */
#define SUBSCRIPTIONS_BYTES (sizeof(struct subscriptions) + sizeof(struct subscribed_user))

struct subscribed_name {
    uid_t uid;
    char path[MEMORYD_NAME_MAX + 1];
};

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

static int subscriptions_no_memory(struct problem *problem)
{
    return problem ? refuse(problem, STATUS_NO_MEMORY, "the broker has no memory for a subscription") : -ENOMEM;
}

static int subscriptions_new(struct broker *broker, struct session *session, struct problem *problem)
{
    struct subscriptions *made;
    int r = 0;

    if (problem && watchers_of(broker, session->record->uid) >= SUBSCRIPTIONS_USER_MAX)
        return refuse(problem, STATUS_LIMIT,
                      "%d sessions of uid %u have subscribed to events of buffers, and no more may; subscribe in fewer "
                      "processes",
                      SUBSCRIPTIONS_USER_MAX, session->record->uid);
    made = calloc(1, sizeof(*made));
    if (!made)
        return subscriptions_no_memory(problem);
    r = subscriptions_charge(session, SUBSCRIPTIONS_BYTES, problem);
    if (r) {
        free(made);
        return r;
    }
    made->session = session;
    if (!watchers_add(broker, made)) {
        subscriptions_uncharge(session, SUBSCRIPTIONS_BYTES);
        free(made);
        return subscriptions_no_memory(problem);
    }
    client_of(session)->subscriptions = made;
    return 0;
}

static void subscriptions_free(struct subscriptions *old)
{
    watchers_remove(old);
    for (uint32_t i = 0; i < old->n_names; i++)
        free(old->names[i]);
    free(old);
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
    if (one) {
        one->kinds = kinds;
        watchers_changed(one);
    }
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

/* They are kept until there is no room, since what is queued of them is still to be told. */
static void remove_ended_buffers(struct broker *broker, struct subscriptions *one)
{
    for (uint32_t i = one->n_buffers; i--;) {
        const struct buffer *buffer = buffers_find(&broker->buffers, one->buffers[i].id);

        if (!buffer || buffer->record->state != BUFFER_LIVE)
            watched_buffer_remove(broker, one, i);
    }
}

static int add_buffer(struct broker *broker, struct subscriptions *one, uint64_t id, struct problem *problem)
{
    if (one->n_buffers == SUBSCRIPTION_BUFFERS_MAX)
        remove_ended_buffers(broker, one);
    if (one->n_buffers == SUBSCRIPTION_BUFFERS_MAX)
        return refuse(problem, STATUS_LIMIT,
                      "a session may subscribe to %d buffers one by one; end some, or subscribe to all",
                      SUBSCRIPTION_BUFFERS_MAX);
    watched_buffer_add(broker, one, id);
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
        watched_buffer_remove(broker, one, i);
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
