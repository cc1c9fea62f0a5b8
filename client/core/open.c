/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing contexts, and what becomes of them when dlclose() unloads the library.
 *
 * A program does not close the default context, so dlclose() does, and likewise closes every other one that has no
 * buffer or reservation left. The memory of those that have stays mapped as it is: only their descriptors are closed,
 * and the broker ends the session, after its grace time, when the last of the memory is unmapped. At the end of the
 * process nothing is done: other threads may still run, and the kernel does it all.
 *
 * dlclose() and exit() both call destructors, in different orders. exit() begins with what atexit() was given, and runs
 * destructors last. dlclose() runs ours first, and only then the compiler's, which runs what this library gave
 * atexit().
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/map.h"

/* Closing waits so long for the broker, and no longer. */
#define GOODBYE_MS 1000

/* ---- closing ----------------------------------------------------------------------------------------------------- */

void context_close(struct memclient_context *ctx)
{
    struct channel *channel;

    pthread_mutex_lock(&ctx->lock);
    ctx->closed = true; /* so that nothing below releases holds one by one */
    channel = steal_ptr(&ctx->channel);
    buffer_drop_fds(ctx);
    token_cache_forget_all(ctx);
    hold_cache_forget_all(ctx);
    pthread_mutex_unlock(&ctx->lock);
    map_drop_context(ctx);
    if (channel && !channel_is_broken(channel)) {
        (void)rpc_goodbye(rpc_route_of(channel, deadline_after_ms(GOODBYE_MS)));
        channel_break(channel, ESHUTDOWN, "the context was closed");
    }
    channel_unref(channel);
    context_unref(ctx);
}

static bool context_is_empty(const struct memclient_context *ctx)
{
    return __atomic_load_n(&ctx->refs, __ATOMIC_ACQUIRE) == 1 && list_is_empty(&ctx->reservations);
}

/* Closes the context's descriptors and nothing else. The broker is told nothing. */
static void context_abandon(struct memclient_context *ctx)
{
    struct channel *channel;

    pthread_mutex_lock(&ctx->lock);
    ctx->closed = true;
    channel = steal_ptr(&ctx->channel);
    buffer_drop_fds(ctx);
    events_deinit(&ctx->events);
    pthread_mutex_unlock(&ctx->lock);
    if (channel)
        channel_break(channel, ESHUTDOWN, "the context was closed");
    channel_unref(channel);
}

/* ---- dlclose() --------------------------------------------------------------------------------------------------- */

static bool exiting;

static void unload_note_exit(void)
{
    exiting = true;
}

static void unload_do_register(void)
{
    exiting = atexit(unload_note_exit) != 0;
}

static void unload_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, unload_do_register);
}

/* No other thread is inside, since its code is about to go as well. So no lock is held, and closing takes its own. */
__attribute__((__destructor__)) static void unload_run(void)
{
    if (exiting)
        return;
    list_for_each_entry_safe(ctx, &contexts, struct memclient_context, in_contexts) {
        if (context_is_empty(ctx))
            context_close(ctx);
        else
            context_abandon(ctx);
    }
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int context_open(const struct memclient_context_options *options, struct memclient_context **ctxp)
{
    struct memclient_context *ctx;
    struct channel *channel;
    int r;

    context_register_fork();
    unload_register();
    r = context_new(options, &ctx);
    if (r)
        return r;
    r = context_channel(ctx, context_deadline(ctx), &channel);
    if (r) {
        context_unref(ctx);
        return r;
    }
    channel_unref(channel);
    *ctxp = ctx;
    return 0;
}

/* Two threads may open it at the same time. One wins, and the other's context is closed again. */
int context_default(struct memclient_context **ctxp)
{
    static const struct memclient_context_options defaults = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    static struct memclient_context *the_default;
    struct memclient_context *ctx = __atomic_load_n(&the_default, __ATOMIC_ACQUIRE);
    struct memclient_context *none = NULL;
    int r;

    if (!ctx) {
        r = context_open(&defaults, &ctx);
        if (r)
            return r;
        ctx->is_default = true;
        if (!__atomic_compare_exchange_n(&the_default, &none, ctx, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            context_close(ctx);
            ctx = none;
        }
    }
    *ctxp = ctx;
    return 0;
}
