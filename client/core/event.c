/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of events; see event.h. */
#include "core/event.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "core/context.h"

void events_init(struct events *events)
{
    *events = (struct events){.epoll = -1, .signal = -1};
}

void events_deinit(struct events *events)
{
    events->epoll = fd_close(events->epoll);
    events->signal = fd_close(events->signal);
}

static void events_tell(struct events *events)
{
    if (events->signal >= 0)
        (void)eventfd_write(events->signal, 1);
}

void event_arrived(void *data, unsigned id, const struct ProtobufCMessage *message)
{
    struct memclient_context *ctx = data;
    struct events *events = &ctx->events;
    struct memclient_event event;

    if (!rpc_event(id, message, &event))
        return;
    pthread_mutex_lock(&ctx->lock);
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

int event_next(struct memclient_context *ctx, struct memclient_event *event)
{
    struct channel *channel = NULL;
    bool found;

    pthread_mutex_lock(&ctx->lock);
    found = events_take(&ctx->events, event);
    if (!found && ctx->channel)
        channel = channel_ref(ctx->channel);
    pthread_mutex_unlock(&ctx->lock);
    if (found)
        return 0;
    if (channel) {
        channel_poll(channel);
        pthread_mutex_lock(&ctx->lock);
        if (ctx->channel == channel && channel_is_broken(channel))
            event_disconnected(ctx, channel);
        found = events_take(&ctx->events, event);
        pthread_mutex_unlock(&ctx->lock);
        channel_unref(channel);
    }
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
        if (events->epoll < 0 || events->signal < 0) {
            r = fail_errno("a descriptor for events");
            events_deinit(events);
        } else {
            events_watch(events, events->signal);
            if (events->connected)
                events_watch(events, ctx->channel->socket);
        }
    }
    if (!r)
        *fd = events->epoll;
    pthread_mutex_unlock(&ctx->lock);
    return r;
}

/* Tells that events may have been missed. */
static void events_miss(struct events *events)
{
    if (!events->mask)
        return;
    events->lost = true;
    events_tell(events);
}

void event_connected(struct memclient_context *ctx, struct channel *channel, bool is_another)
{
    struct events *events = &ctx->events;

    events->connected = true;
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
    events_miss(events);
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
}
