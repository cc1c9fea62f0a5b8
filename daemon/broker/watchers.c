/* SPDX-License-Identifier: Apache-2.0 */
/* See watchers.h. */
#include "broker/watchers.h"

#include <stdlib.h>

#include "broker/lookup.h"
#include "broker/state.h"

static int watched_buffer_compare(const struct watched_buffer *a, const struct watched_buffer *b)
{
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (uintptr_t)a->of < (uintptr_t)b->of ? -1 : a->of != b->of;
}

TREE_GENERATE(watched_buffers, watched_buffer, link, watched_buffer_compare)

static void subscribed_user_turn(struct user_task *task);

void watchers_init(struct broker *broker)
{
    list_init(&broker->watchers.users);
    RB_INIT(&broker->watchers.buffers);
}

/* ---- who has subscribed ------------------------------------------------------------------------------------------ */

static struct subscribed_user *subscribed_user_find(const struct broker *broker, uid_t uid)
{
    list_for_each_entry(user, &broker->watchers.users, struct subscribed_user, in_all)
        if (user->uid == uid)
            return user;
    return NULL;
}

static struct subscribed_user *subscribed_user_new(struct broker *broker, uid_t uid)
{
    struct subscribed_user *user = calloc(1, sizeof(*user));

    if (!user)
        return NULL;
    user->broker = broker;
    user->uid = uid;
    user->turn.run = subscribed_user_turn;
    list_init(&user->sessions);
    list_init(&user->in_all);
    list_append(&broker->watchers.users, &user->in_all);
    return user;
}

static void subscribed_user_free(struct subscribed_user *user)
{
    struct broker_host *host = &user->broker->host;

    if (user->turn.user)
        host->give_up_turn(host->userdata, &user->turn);
    list_remove(&user->in_all);
    free(user);
}

unsigned watchers_of(const struct broker *broker, uid_t uid)
{
    const struct subscribed_user *user = subscribed_user_find(broker, uid);

    return user ? user->n : 0;
}

bool watchers_add(struct broker *broker, struct subscriptions *one)
{
    uid_t uid = one->session->record->uid;
    struct subscribed_user *user = subscribed_user_find(broker, uid);

    if (!user)
        user = subscribed_user_new(broker, uid);
    if (!user)
        return false;
    one->user = user;
    one->n_read = user->n_read = user->n_ring;
    list_init(&one->in_user);
    list_append(&user->sessions, &one->in_user);
    user->n++;
    return true;
}

void watchers_changed(struct subscriptions *one)
{
    struct subscribed_user *user = one->user;

    one->all = one->session->record->subscribed | (one->kinds & (EVENT_DEATH | EVENT_HISTORY));
    user->kinds = 0;
    list_for_each_entry(each, &user->sessions, struct subscriptions, in_user)
        user->kinds |= each->all;
}

void watchers_remove(struct subscriptions *one)
{
    struct subscribed_user *user = one->user;

    for (uint32_t i = one->n_buffers; i--;)
        watched_buffer_remove(user->broker, one, i);
    list_remove(&one->in_user);
    /* it may have been one of the idle ones */
    user->n_idle = 0;
    if (!--user->n)
        subscribed_user_free(user);
}

void watched_buffer_add(struct broker *broker, struct subscriptions *one, uint64_t id)
{
    struct watched_buffer *watched = &one->buffers[one->n_buffers++];

    *watched = (struct watched_buffer){.id = id, .of = one};
    RB_INSERT(watched_buffers, &broker->watchers.buffers, watched);
}

/* The last one takes its place. */
void watched_buffer_remove(struct broker *broker, struct subscriptions *one, uint32_t i)
{
    struct watched_buffers *all = &broker->watchers.buffers;
    struct watched_buffer *last = &one->buffers[--one->n_buffers];

    RB_REMOVE(watched_buffers, all, &one->buffers[i]);
    if (last == &one->buffers[i])
        return;
    RB_REMOVE(watched_buffers, all, last);
    one->buffers[i] = *last;
    RB_INSERT(watched_buffers, all, &one->buffers[i]);
}

/* ---- what waits -------------------------------------------------------------------------------------------------- */

/* About the same thing? How somebody holds a buffer is one thing. */
static bool is_same(const struct broker_event *a, const struct broker_event *b)
{
    const uint32_t of_holds = EVENT_HELD | EVENT_LEFT | EVENT_DIED;

    return a->buffer == b->buffer && a->session == b->session &&
           (a->kind == b->kind || (a->kind & of_holds && b->kind & of_holds));
}

static void subscribed_user_wake(struct subscribed_user *user)
{
    struct broker_host *host = &user->broker->host;

    user->n_idle = 0;
    if (!user->turn.user)
        host->take_turn(host->userdata, &user->turn, user->uid);
}

static struct queued_event *ring_at(struct subscribed_user *user, uint64_t i)
{
    return &user->ring[i % RING_MAX];
}

/* Whose turn is to come was so a moment ago. */
static bool subscribed_user_is_connected(const struct subscribed_user *user)
{
    if (user->turn.user)
        return true;
    list_for_each_entry(one, &user->sessions, struct subscriptions, in_user)
        if (one->session->connection)
            return true;
    return false;
}

/* For all sessions of this user. One about the same thing that none of them has read is replaced. */
static void ring_add(struct subscribed_user *user, const struct queued_event *event)
{
    uint64_t i = user->n_ring > RING_MAX ? user->n_ring - RING_MAX : 0;

    if (!subscribed_user_is_connected(user))
        return;
    for (i = i > user->n_read ? i : user->n_read; i < user->n_ring; i++) {
        struct queued_event *other = ring_at(user, i);

        if (other->except != event->except || !is_same(&other->event, &event->event))
            continue;
        *other = *event;
        return;
    }
    if (user->n_ring >= RING_MAX)
        user->dropped |= ring_at(user, user->n_ring)->event.kind;
    *ring_at(user, user->n_ring++) = *event;
    subscribed_user_wake(user);
}

static struct queued_event *queued(struct subscriptions *one, unsigned i)
{
    return &one->queue[(one->first + i) % QUEUE_MAX];
}

static void queue_remove(struct subscriptions *one, const struct broker_event *event)
{
    unsigned i = 0;

    while (i < one->n_queued && !is_same(&queued(one, i)->event, event))
        i++;
    if (i == one->n_queued)
        return;
    for (one->n_queued--; i < one->n_queued; i++)
        *queued(one, i) = *queued(one, i + 1);
}

/* For one session. */
static void queue_add(struct subscriptions *one, const struct queued_event *event)
{
    if (!one->session->connection)
        return;
    queue_remove(one, &event->event);
    if (one->n_queued == QUEUE_MAX) {
        one->n_queued = 0;
        one->lost = true;
    }
    *queued(one, one->n_queued++) = *event;
    subscribed_user_wake(one->user);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* What waits in the ring for this session: NULL if nothing does. */
static const struct queued_event *ring_next(struct subscriptions *one)
{
    struct subscribed_user *user = one->user;

    if (user->n_ring - one->n_read > RING_MAX) {
        one->lost = one->lost || one->all & user->dropped;
        one->n_read = user->n_ring - RING_MAX;
    }
    for (; one->n_read < user->n_ring; one->n_read++) {
        const struct queued_event *next = ring_at(user, one->n_read);

        if (one->all & next->event.kind && one->session->record->head.id != next->except)
            return next;
    }
    return NULL;
}

static void ring_was_read(struct subscriptions *one)
{
    if (one->n_read > one->user->n_read)
        one->user->n_read = one->n_read;
}

/* Takes what waits longest for it. False: nothing does. */
static bool watcher_next(struct subscriptions *one, struct broker_event *ret)
{
    const struct queued_event *common = ring_next(one);
    const struct queued_event *own = one->n_queued ? queued(one, 0) : NULL;

    if (one->lost) {
        one->lost = false;
        *ret = (struct broker_event){.kind = EVENT_LOST};
    } else if (common && (!own || common->number < own->number)) {
        *ret = common->event;
        one->n_read++;
    } else if (own) {
        *ret = own->event;
        one->first = (one->first + 1) % QUEUE_MAX;
        one->n_queued--;
    }
    ring_was_read(one);
    return ret->kind;
}

static bool watcher_tell(struct broker *broker, struct subscriptions *one)
{
    struct broker_event event = {.kind = 0};

    if (!watcher_next(one, &event))
        return false;
    if (one->session->connection && (event.kind == EVENT_LOST || one->kinds & event.kind))
        broker->host.event(broker->host.userdata, one->session->connection, &event);
    return true;
}

/* One event each, in turn, for a slice. */
static void subscribed_user_turn(struct user_task *task)
{
    struct subscribed_user *user = container_of(task, struct subscribed_user, turn);
    uint64_t begin = slice_begin();

    while (user->n_idle < user->n) {
        struct list *link = list_pop(&user->sessions);

        list_append(&user->sessions, link);
        if (watcher_tell(user->broker, container_of(link, struct subscriptions, in_user)))
            user->n_idle = 0;
        else
            user->n_idle++;
        if (slice_is_over(begin))
            break;
    }
    if (user->n_idle < user->n)
        user->broker->host.take_turn(user->broker->host.userdata, task, user->uid);
    else
        user->dropped = 0;
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

/* An event of a buffer. */
struct happening {
    struct broker *broker;
    const struct buffer *buffer;
    const struct hold *hold; /* of which it is, or NULL */
    struct queued_event queued;
};

/* Of others' holds it is only told that there are more or fewer, to whom INFO would not name them either. */
static struct queued_event happening_as_seen(const struct happening *happening, uid_t uid, bool sees_sharing)
{
    struct queued_event seen = happening->queued;
    const struct session_record *holder;
    bool known;

    if (!happening->hold)
        return seen;
    holder = happening->hold->session->record;
    known = is_admin_uid(happening->broker, uid) || holder->uid == uid;
    if (known || sees_sharing)
        seen.event.session = holder->head.id;
    if (known) {
        seen.event.uid = holder->uid;
        seen.event.pid = (pid_t)holder->pid;
    }
    return seen;
}

/* To one session, if it may see the buffer, whether that is its user's or it holds it. */
static void happening_tell_one(const struct happening *happening, struct subscriptions *one)
{
    struct broker *broker = happening->broker;
    const struct session *session = one->session;
    struct queued_event event;

    broker->watchers.n_compared++;
    if (session->record->head.id == happening->queued.except || !may_see_buffer(broker, session, happening->buffer))
        return;
    event = happening_as_seen(happening, session->record->uid, may_see_sharing(broker, session, happening->buffer));
    queue_add(one, &event);
}

/* To those who have subscribed to this buffer, unless it is to everything as well. */
static void happening_tell_watchers(const struct happening *happening)
{
    const uint32_t kind = happening->queued.event.kind;
    struct watched_buffer key = {.id = happening->queued.event.buffer};
    struct watched_buffer *watched = RB_NFIND(watched_buffers, &happening->broker->watchers.buffers, &key);

    for (; watched && watched->id == key.id; watched = RB_NEXT(watched_buffers, NULL, watched))
        if (watched->kinds & kind && !(watched->of->all & kind))
            happening_tell_one(happening, watched->of);
}

/* To those of a user's sessions that hold it, though it is another user's. */
static void happening_tell_holders(const struct happening *happening, struct subscribed_user *user)
{
    if (!buffer_next_hold_of(happening->buffer, user->uid, NULL))
        return;
    list_for_each_entry(one, &user->sessions, struct subscriptions, in_user)
        if (one->all & happening->queued.event.kind)
            happening_tell_one(happening, one);
}

static void happening_tell(struct happening *happening)
{
    struct broker *broker = happening->broker;

    happening->queued.number = broker->watchers.n_events++;
    happening_tell_watchers(happening);
    list_for_each_entry(user, &broker->watchers.users, struct subscribed_user, in_all) {
        broker->watchers.n_compared++;
        if (!(user->kinds & happening->queued.event.kind))
            continue;
        if (user_may_see_buffer(broker, user->uid, happening->buffer)) {
            struct queued_event event = happening_as_seen(happening, user->uid, true);

            ring_add(user, &event);
        } else {
            happening_tell_holders(happening, user);
        }
    }
}

void event_hold(struct broker *broker, uint32_t kind, const struct hold *hold)
{
    struct happening happening = {
        .broker = broker,
        .buffer = hold->buffer,
        .hold = hold,
        .queued = {.except = hold->record->session,
                   .event = {.kind = kind, .buffer = hold->record->buffer, .uid = (uid_t)-1}},
    };

    if (!list_is_empty(&broker->watchers.users))
        happening_tell(&happening);
}

void event_buffer(struct broker *broker, uint32_t kind, const struct buffer *buffer, uint64_t by_session)
{
    struct happening happening = {
        .broker = broker,
        .buffer = buffer,
        .queued = {.except = by_session, .event = {.kind = kind, .buffer = buffer->record->head.id, .uid = (uid_t)-1}},
    };

    if (!list_is_empty(&broker->watchers.users))
        happening_tell(&happening);
}

/* To users, whatever they hold: to this one, to administrators, or to everybody. */
static void event_tell_users(struct broker *broker, const struct broker_event *event, uid_t uid, bool everybody)
{
    const struct queued_event queued_event = {.number = broker->watchers.n_events++, .event = *event};

    list_for_each_entry(user, &broker->watchers.users, struct subscribed_user, in_all)
        if (user->kinds & event->kind && (everybody || user->uid == uid || is_admin_uid(broker, user->uid)))
            ring_add(user, &queued_event);
}

void event_death(struct broker *broker, const struct broker_event *death)
{
    event_tell_users(broker, death, death->uid, false);
}

void event_history(struct broker *broker, uid_t uid, bool everybody)
{
    const struct broker_event event = {.kind = EVENT_HISTORY, .uid = (uid_t)-1};

    event_tell_users(broker, &event, uid, everybody);
}
