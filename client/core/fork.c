/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a child made by fork() finds of the library.
 *
 * All locks are taken around the fork, so that the child gets everything between two changes, whatever other threads
 * were doing. It closes its copies of the connections (their sessions are the parent's), forgets the threads that it
 * does not have, and counts up the generation, so that the next call opens a session of its own.
 */
#include <pthread.h>

#include "core/context.h"
#include "core/hold_cache.h"
#include "core/map.h"
#include "core/pages.h"
#include "core/span.h"
#include "core/token_cache.h"

static void fork_prepare(void)
{
    pthread_mutex_lock(&contexts_lock);
    space_lock();
    list_for_each_entry(ctx, &contexts, struct memclient_context, in_contexts) {
        pthread_mutex_lock(&ctx->lock);
        if (ctx->channel)
            pthread_mutex_lock(&ctx->channel->lock);
        if (ctx->pending_channel)
            pthread_mutex_lock(&ctx->pending_channel->lock);
        hold_cache_fork_prepare(ctx);
    }
}

static void fork_in_parent(void)
{
    hold_cache_forked();
    list_for_each_entry(ctx, &contexts, struct memclient_context, in_contexts) {
        if (ctx->pending_channel)
            pthread_mutex_unlock(&ctx->pending_channel->lock);
        if (ctx->channel)
            pthread_mutex_unlock(&ctx->channel->lock);
        pthread_mutex_unlock(&ctx->lock);
    }
    space_unlock();
    pthread_mutex_unlock(&contexts_lock);
}

/* Closes the parent's channel, and keeps it, since threads that the child does not have had references to it. */
static void fork_inherit(struct memclient_context *ctx, struct channel *channel)
{
    if (!channel)
        return;
    channel_fork_child(channel);
    channel->inherited = ctx->inherited;
    ctx->inherited = channel;
}

/* With the locks still held: takes the mappings whose pages the child did not get out of its index. */
static struct mapping *fork_forget_uncopied(void)
{
    struct mapping *taken = NULL;

    for (struct mapping *m = space_first(&process_space), *next; m; m = next) {
        next = space_next(m);
        if (!m->dont_copy)
            continue;
        space_remove(&process_space, m);
        list_remove(&m->in_buffer);
        m->taken = taken;
        taken = m;
    }
    /* a gap that they leave in a reservation is reserved again; a page that another mapping shows as well is there */
    for (struct mapping *m = taken; m; m = m->taken) {
        struct sweep sweep;
        struct span span;

        sweep_begin(&sweep, &process_space, m->start, m->size);
        while (sweep_next(&sweep, &span))
            if (!span.mapped)
                (void)pages_unmap(span.start, span.size);
    }
    return taken;
}

static void fork_in_child(void)
{
    struct mapping *taken = fork_forget_uncopied();

    hold_cache_forked();
    map_own_in_child();
    list_for_each_entry(ctx, &contexts, struct memclient_context, in_contexts) {
        fork_inherit(ctx, ctx->channel);
        fork_inherit(ctx, ctx->pending_channel);
        ctx->channel = NULL;
        ctx->pending_channel = NULL;
        ctx->connecting = false;
        ctx->generation++;
        token_cache_forget_all(ctx);
        hold_cache_forget_all(ctx);
        ctx->session.session = 0;
        ctx->events.n = 0;
        ctx->events.lost = false;
        ctx->events.connected = false;
        events_forget(&ctx->events);
        pthread_cond_init(&ctx->connected, NULL);
        pthread_mutex_unlock(&ctx->lock);
        pthread_mutex_init(&ctx->lock, NULL);
    }
    space_fork_child();
    pthread_mutex_unlock(&contexts_lock);
    pthread_mutex_init(&contexts_lock, NULL);
    map_drop_taken(taken);
}

static void fork_do_register(void)
{
    pthread_atfork(fork_prepare, fork_in_parent, fork_in_child);
}

void context_register_fork(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fork_do_register);
}
