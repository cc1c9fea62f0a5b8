/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of events; see event.h. */
#include "core/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/cleanup.h"
#include "core/context.h"

/* Of buffers and names; the broker accepts no more of those that are there. */
#define CHOICES_MAX 80
/* How soon to look for a broker that is away, first and in the end. */
#define PAUSE_FIRST_MS 1
#define PAUSE_LAST_MS  256
/* How long a broker that does not know the session any more may take to begin another one. */
#define BEGIN_MS 100

struct event_choice {
    struct list link;
    uint64_t buffer; /* 0: of the name */
    unsigned mask;
    char name[MEMCLIENT_NAME_SIZE];
};

static void choice_free(struct events *events, struct event_choice *choice)
{
    list_remove(&choice->link);
    events->n_choices--;
    free(choice);
}

void events_init(struct events *events)
{
    *events = (struct events){.epoll = -1, .signal = -1, .timer = -1, .pause_ms = PAUSE_FIRST_MS};
    list_init(&events->choices);
}

static void events_close(struct events *events)
{
    events->epoll = fd_close(events->epoll);
    events->signal = fd_close(events->signal);
    events->timer = fd_close(events->timer);
}

void events_deinit(struct events *events)
{
    list_for_each_entry_safe(choice, &events->choices, struct event_choice, link)
        choice_free(events, choice);
    events_close(events);
}

void events_forget(struct events *events)
{
    unsigned mask = events->mask;

    events_deinit(events);
    events_init(events);
    events->mask = mask;
}

static bool events_are_wanted(const struct events *events)
{
    return events->mask || events->n_choices;
}

/* 0 = not at all. */
static void events_wake_in(struct events *events, unsigned ms)
{
    const struct itimerspec in = {.it_value = {.tv_nsec = (long)(ms * NSEC_PER_MSEC)}};

    if (events->timer >= 0)
        (void)timerfd_settime(events->timer, 0, &in, NULL);
}

static void events_tell(struct events *events)
{
    if (events->signal >= 0)
        (void)eventfd_write(events->signal, 1);
}

/* Tells that events may have been missed. */
static void events_miss(struct events *events)
{
    if (!events_are_wanted(events))
        return;
    events->lost = true;
    events_tell(events);
}

static void choice_remove(struct events *events, uint64_t buffer, const char *name)
{
    list_for_each_entry_safe(choice, &events->choices, struct event_choice, link) {
        if (choice->buffer == buffer && !strcmp(choice->name, name))
            choice_free(events, choice);
    }
}

void event_arrived(void *data, unsigned id, const struct ProtobufCMessage *message)
{
    struct memclient_context *ctx = data;
    struct events *events = &ctx->events;
    struct memclient_event event;

    if (!rpc_event(id, message, &event))
        return;
    pthread_mutex_lock(&ctx->lock);
    if (event.kind == MEMCLIENT_EVENT_DESTROYED)
        choice_remove(events, event.buffer, "");
    if (event.kind == MEMCLIENT_EVENT_LOST) {
        events->lost = true;
    } else if (events->n == EVENTS_KEPT) {
        events->first = (events->first + 1) % EVENTS_KEPT;
        events->ring[(events->first + events->n - 1) % EVENTS_KEPT] = event;
        events->lost = true;
    } else {
        events->ring[(events->first + events->n++) % EVENTS_KEPT] = event;
    }
    events_tell(events);
    pthread_mutex_unlock(&ctx->lock);
}

/* LOST comes first: the others happened after the gap. */
static bool events_take(struct events *events, struct memclient_event *event)
{
    if (events->lost) {
        *event = (struct memclient_event)MEMCLIENT_EVENT_INIT;
        event->kind = MEMCLIENT_EVENT_LOST;
        events->lost = false;
    } else if (events->n) {
        *event = events->ring[events->first];
        events->first = (events->first + 1) % EVENTS_KEPT;
        events->n--;
    } else {
        return false;
    }
    if (!events->n && !events->lost && events->signal >= 0) {
        eventfd_t value;

        (void)eventfd_read(events->signal, &value);
    }
    return true;
}

/* The program is woken after a while, which gets longer. */
static void events_wake_later(struct events *events)
{
    if (!events_are_wanted(events))
        return;
    events_wake_in(events, events->pause_ms);
    events->pause_ms = events->pause_ms < PAUSE_LAST_MS ? 2 * events->pause_ms : PAUSE_LAST_MS;
}

/* The broker does not know the session any more, so there has to be another one, as at any call. */
static void event_begin_again(struct memclient_context *ctx)
{
    struct channel *channel = NULL;
    int r = context_channel(ctx, deadline_after_ms(BEGIN_MS), &channel);

    channel_unref(channel);
    if (!r)
        return;
    pthread_mutex_lock(&ctx->lock);
    events_wake_later(&ctx->events);
    pthread_mutex_unlock(&ctx->lock);
}

/* Nothing has come: looks into the socket, or for another connection if that is lost. */
static bool event_look(struct memclient_context *ctx, struct channel *channel, struct memclient_event *event)
{
    struct events *events = &ctx->events;
    bool found, up;

    channel_poll(channel);
    up = channel_resume(channel);
    pthread_mutex_lock(&ctx->lock);
    if (ctx->channel == channel && channel_is_broken(channel))
        event_disconnected(ctx, channel);
    else if (ctx->channel == channel && !up)
        events_wake_later(events);
    found = events_take(events, event);
    pthread_mutex_unlock(&ctx->lock);
    return found;
}

int event_next(struct memclient_context *ctx, struct memclient_event *event)
{
    struct channel *channel = NULL;
    bool found, begins;

    pthread_mutex_lock(&ctx->lock);
    found = events_take(&ctx->events, event);
    /* only for who waits for the descriptor: it makes no call that would do it */
    begins = !found && !ctx->closed && ctx->events.epoll >= 0 && events_are_wanted(&ctx->events) &&
             (!ctx->channel || channel_is_broken(ctx->channel));
    if (!found && !begins && ctx->channel)
        channel = channel_ref(ctx->channel);
    pthread_mutex_unlock(&ctx->lock);
    if (begins)
        event_begin_again(ctx);
    else if (channel)
        found = event_look(ctx, channel, event);
    channel_unref(channel);
    return found ? 0 : fail_with(EAGAIN, "no event has happened");
}

int event_subscribe(struct memclient_context *ctx, unsigned mask)
{
    int r = rpc_subscribe(context_route(ctx), mask);

    if (r)
        return r;
    pthread_mutex_lock(&ctx->lock);
    ctx->events.mask = mask;
    pthread_mutex_unlock(&ctx->lock);
    return 0;
}

int event_subscribe_to(struct memclient_context *ctx, uint64_t buffer, const char *name, unsigned mask)
{
    struct events *events = &ctx->events;
    struct event_choice *choice = calloc(1, sizeof(*choice));
    int r;

    if (!choice)
        return fail_with(ENOMEM, "no memory for a subscription");
    choice->buffer = buffer;
    choice->mask = mask;
    if (name)
        memcpy(choice->name, name, strlen(name) + 1);
    r = rpc_subscribe_to(context_route(ctx), mask, buffer, name);
    if (r) {
        free(choice);
        return r;
    }
    pthread_mutex_lock(&ctx->lock);
    choice_remove(events, buffer, choice->name);
    list_append(&events->choices, &choice->link);
    events->n_choices++;
    if (!mask)
        choice_free(events, choice);
    else if (events->n_choices > CHOICES_MAX)
        choice_free(events, container_of(list_first(&events->choices), struct event_choice, link));
    pthread_mutex_unlock(&ctx->lock);
    return 0;
}

/* The one at this place. */
static bool event_choice_at(struct memclient_context *ctx, unsigned i, struct event_choice *ret)
{
    bool found = false;

    pthread_mutex_lock(&ctx->lock);
    list_for_each_entry(choice, &ctx->events.choices, struct event_choice, link) {
        if (!i--) {
            *ret = *choice;
            found = true;
            break;
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    return found;
}

static void event_subscribe_again(struct memclient_context *ctx, struct channel *channel)
{
    struct event_choice choice;

    for (unsigned i = 0; event_choice_at(ctx, i, &choice); i++)
        rpc_subscribe_again(channel, choice.mask, choice.buffer, choice.buffer ? NULL : choice.name);
}

void event_new_session(struct memclient_context *ctx, struct channel *channel)
{
    pthread_mutex_lock(&ctx->lock);
    list_for_each_entry_safe(choice, &ctx->events.choices, struct event_choice, link) {
        if (!choice->buffer)
            continue;
        /* while it counts: nobody would be told otherwise who has chosen buffers only */
        events_miss(&ctx->events);
        choice_free(&ctx->events, choice);
    }
    pthread_mutex_unlock(&ctx->lock);
    event_subscribe_again(ctx, channel);
}

static void events_watch(struct events *events, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    (void)epoll_ctl(events->epoll, EPOLL_CTL_ADD, fd, &event);
}

int event_descriptor(struct memclient_context *ctx, int *fd)
{
    _cleanup_(channel_unrefp) struct channel *channel = NULL;
    struct events *events = &ctx->events;
    int r;

    r = context_channel(ctx, context_deadline(ctx), &channel);
    if (r)
        return r;
    pthread_mutex_lock(&ctx->lock);
    if (events->epoll < 0) {
        events->epoll = epoll_create1(EPOLL_CLOEXEC);
        events->signal = eventfd(events->n || events->lost, EFD_CLOEXEC | EFD_NONBLOCK);
        events->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (events->epoll < 0 || events->signal < 0 || events->timer < 0) {
            r = fail_errno("a descriptor for events");
            events_close(events);
        } else {
            events_watch(events, events->signal);
            events_watch(events, events->timer);
            if (events->connected)
                events_watch(events, ctx->channel->socket);
        }
    }
    if (!r)
        *fd = events->epoll;
    pthread_mutex_unlock(&ctx->lock);
    return r;
}

void event_connected(struct memclient_context *ctx, struct channel *channel, bool is_another)
{
    struct events *events = &ctx->events;

    events->connected = true;
    events_wake_in(events, 0);
    if (events->epoll >= 0)
        events_watch(events, channel->socket);
    if (is_another)
        events_miss(events);
}

void event_disconnected(struct memclient_context *ctx, struct channel *channel)
{
    struct events *events = &ctx->events;

    if (!events->connected)
        return;
    events->connected = false;
    if (events->epoll >= 0)
        (void)epoll_ctl(events->epoll, EPOLL_CTL_DEL, channel->socket, NULL);
    events->pause_ms = PAUSE_FIRST_MS;
    events_miss(events);
    /* the program may make no other call */
    events_wake_later(events);
}

void event_link_lost(void *data, struct channel *channel)
{
    struct memclient_context *ctx = data;

    pthread_mutex_lock(&ctx->lock);
    if (ctx->channel == channel)
        event_disconnected(ctx, channel);
    pthread_mutex_unlock(&ctx->lock);
}

void event_link_resumed(void *data, struct channel *channel)
{
    struct memclient_context *ctx = data;

    pthread_mutex_lock(&ctx->lock);
    if (ctx->channel == channel)
        event_connected(ctx, channel, true);
    pthread_mutex_unlock(&ctx->lock);
    event_subscribe_again(ctx, channel);
}
