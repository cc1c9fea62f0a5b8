/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and connecting them. One thread connects, without a lock; the others wait for it until their deadlines. */
#include "core/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "core/buffer.h"
#include "core/token_cache.h"
#include "rpc/connect.h"
#include "rpc/interrupt.h"

#define DEADLINE_DEFAULT_MS 30000

struct list contexts = LIST_INIT(contexts);
pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

int context_new(const struct memclient_context_options *options, struct memclient_context **ctxp)
{
    const char *program = options->program ? options->program : program_invocation_short_name;
    size_t n = strlen(program);
    struct memclient_context *ctx;

    ctx = calloc(1, sizeof(*ctx));
    if (!ctx)
        goto no_memory;
    if (options->socket) {
        ctx->wanted_path = strdup(options->socket);
        if (!ctx->wanted_path)
            goto no_memory;
    }
    if (n > MEMORYD_PROGRAM_MAX)
        n = utf8_cut(program, MEMORYD_PROGRAM_MAX);
    if (utf8_is_text(program, n))
        memcpy(ctx->program, program, n);
    ctx->refs = 1;
    ctx->deadline_ms = options->deadline_ms ? options->deadline_ms : DEADLINE_DEFAULT_MS;
    ctx->autostart = options->autostart;
    ctx->administrator = options->administrator;
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_cond_init(&ctx->connected, NULL);
    list_init(&ctx->fds);
    list_init(&ctx->kept_fds);
    list_init(&ctx->reservations);
    token_cache_init(&ctx->tokens);
    events_init(&ctx->events);
    pthread_mutex_lock(&contexts_lock);
    list_append(&contexts, &ctx->in_contexts);
    pthread_mutex_unlock(&contexts_lock);
    *ctxp = ctx;
    return 0;

no_memory:
    free(ctx);
    return fail_with(ENOMEM, "no memory for a context");
}

struct memclient_context *context_ref(struct memclient_context *ctx)
{
    __atomic_add_fetch(&ctx->refs, 1, __ATOMIC_RELAXED);
    return ctx;
}

struct memclient_context *context_unref(struct memclient_context *ctx)
{
    if (!ctx || __atomic_sub_fetch(&ctx->refs, 1, __ATOMIC_ACQ_REL))
        return NULL;
    pthread_mutex_lock(&contexts_lock);
    list_remove(&ctx->in_contexts);
    pthread_mutex_unlock(&contexts_lock);
    channel_unref(ctx->channel);
    channel_unref(ctx->inherited);
    events_deinit(&ctx->events);
    pthread_cond_destroy(&ctx->connected);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx->wanted_path);
    explicit_bzero(&ctx->session, sizeof(ctx->session));
    free(ctx);
    return NULL;
}

uint64_t context_deadline(const struct memclient_context *ctx)
{
    return deadline_after_ms(ctx->deadline_ms);
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

/* So often in a row may a connection be lost before HELLO is answered. */
#define HELLOS_MAX 8

/* Makes one connection. */
static int context_say_hello(struct memclient_context *ctx, uint64_t deadline, struct connected *connected,
                             struct rpc_session *session)
{
    const struct channel_owner owner = {
        .event = event_arrived,
        .lost = event_link_lost,
        .resumed = event_link_resumed,
        .data = ctx,
    };
    struct rpc_occupied occupied;
    struct channel *channel;
    int r;

    r = connect_broker(ctx->wanted_path, ctx->autostart, deadline, connected);
    if (r)
        return r;
    r = channel_new(connected->socket, &owner, &channel);
    if (r) {
        fd_close(connected->socket);
        return r;
    }
    pthread_mutex_lock(&ctx->lock);
    ctx->pending_channel = channel;
    pthread_mutex_unlock(&ctx->lock);
    context_occupied(ctx, &occupied);
    r = rpc_hello(rpc_route_of(channel, deadline), ctx->program, ctx->administrator, &occupied, session);
    return r ? r : channel_may_resume(channel, connected, ctx->program, session);
}

/* It was sent and not answered, or not even sent. */
static bool context_is_lost(int r)
{
    return r == -ECONNRESET || r == -ENOTCONN;
}

static void context_drop_pending(struct memclient_context *ctx)
{
    struct channel *channel;

    pthread_mutex_lock(&ctx->lock);
    channel = steal_ptr(&ctx->pending_channel);
    if (channel)
        channel_break(channel, ECONNRESET, "the session could not be opened");
    pthread_mutex_unlock(&ctx->lock);
    channel_unref(channel);
}

/* Without the lock, by the one thread that set `connecting`. */
static int context_connect_now(struct memclient_context *ctx, uint64_t deadline, struct connected *connected,
                               struct rpc_session *session)
{
    int r;

    for (unsigned n = 1;; n++) {
        r = context_say_hello(ctx, deadline, connected, session);
        if (!context_is_lost(r) || n == HELLOS_MAX || deadline_passed(deadline, clock_now_ns()))
            return r;
        context_drop_pending(ctx);
    }
}

/* With the lock, which it gives up meanwhile. */
static int context_connect_locked(struct memclient_context *ctx, uint64_t deadline)
{
    struct rpc_session session;
    struct connected connected = {.socket = -1};
    struct channel *channel;
    unsigned mask = ctx->events.mask;
    bool is_another = ctx->session.session;
    int r;

    ctx->connecting = true;
    pthread_mutex_unlock(&ctx->lock);
    r = context_connect_now(ctx, deadline, &connected, &session);
    if (!r && mask)
        r = rpc_subscribe(rpc_route_of(ctx->pending_channel, deadline), mask);
    if (!r)
        event_new_session(ctx, ctx->pending_channel);
    pthread_mutex_lock(&ctx->lock);
    channel = steal_ptr(&ctx->pending_channel);
    ctx->connecting = false;
    if (!r) {
        channel->generation = ++ctx->generation;
        token_cache_forget_all(ctx);
        hold_cache_forget_all(ctx);
        ctx->session = session;
        memcpy(ctx->path, connected.path, sizeof(ctx->path));
        ctx->autostarted |= connected.autostarted;
        ctx->channel = channel;
        event_connected(ctx, channel, is_another);
    } else if (channel) {
        channel_break(channel, ECONNRESET, "the session could not be opened");
    }
    pthread_cond_broadcast(&ctx->connected);
    if (r) {
        struct fail_saved saved = fail_save(r);

        channel_unref(channel);
        r = fail_restore(&saved);
        if (context_is_lost(r))
            r = fail_with(ECONNRESET, "the broker at %s closed the connection before saying hello", connected.path);
    }
    explicit_bzero(&session, sizeof(session));
    return r;
}

/* With the lock, which is not held while the program is asked. 0: another turn. */
static int context_wait_on(struct memclient_context *ctx, uint64_t deadline)
{
    bool wanted;

    if (deadline_passed(deadline, clock_now_ns()))
        return fail_with(ETIMEDOUT, "no connection to the broker in time");
    pthread_mutex_unlock(&ctx->lock);
    wanted = interrupt_is_wanted();
    pthread_mutex_lock(&ctx->lock);
    return wanted ? interrupt_fail() : 0;
}

int context_channel(void *context, uint64_t deadline, struct channel **channel)
{
    struct memclient_context *ctx = context;
    int r = 0;

    pthread_mutex_lock(&ctx->lock);
    for (;;) {
        if (ctx->closed) {
            r = fail_with(ESHUTDOWN, "the context was closed");
            break;
        }
        if (ctx->channel && !channel_is_broken(ctx->channel)) {
            *channel = channel_ref(ctx->channel);
            break;
        }
        if (ctx->channel) {
            event_disconnected(ctx, ctx->channel);
            ctx->channel = channel_unref(ctx->channel);
        }
        if (!ctx->connecting) {
            r = context_connect_locked(ctx, deadline);
            if (r)
                break;
        } else if (deadline_cond_wait(&ctx->connected, &ctx->lock, interrupt_deadline(deadline)) == ETIMEDOUT) {
            r = context_wait_on(ctx, deadline);
            if (r)
                break;
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    return r;
}
