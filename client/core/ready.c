/* SPDX-License-Identifier: Apache-2.0 */
/* What is ready is in the handle, and all handles that have one are in a list of the context; see ready.h. */
#include "core/ready.h"

#include <string.h>

#include "core/buffer.h"

/* As likely as can be; so likely that tokens are asked for; how much more so when a buffer is shared. */
#define HABIT_MAX    6
#define HABIT_TOKENS 2
#define HABIT_SHARED 2

bool ready_wanted(struct memclient *ctx)
{
    bool wanted;

    pthread_mutex_lock(&ctx->lock);
    if (ctx->sharing_habit)
        ctx->sharing_habit--;
    wanted = ctx->sharing_habit >= HABIT_TOKENS && ctx->n_ready < READY_MAX;
    pthread_mutex_unlock(&ctx->lock);
    return wanted;
}

void ready_put(struct memclient_buffer *buf, const struct memclient_token *token)
{
    static const struct memclient_token none;
    struct memclient *ctx = buf->ctx;

    pthread_mutex_lock(&ctx->lock);
    buf->is_unshared = true;
    if (memcmp(token, &none, sizeof(none)) && buf->generation == ctx->generation && !ctx->closed) {
        buf->ready = *token;
        list_append(&ctx->ready, &buf->in_ready);
        ctx->n_ready++;
    }
    pthread_mutex_unlock(&ctx->lock);
}

void ready_forget(struct memclient_buffer *buf)
{
    if (!list_is_linked(&buf->in_ready))
        return;
    list_remove(&buf->in_ready);
    buf->ctx->n_ready--;
    explicit_bzero(&buf->ready, sizeof(buf->ready));
}

void ready_forget_all(struct memclient *ctx)
{
    struct list *link;

    while ((link = list_first(&ctx->ready)))
        ready_forget(container_of(link, struct memclient_buffer, in_ready));
}

void ready_forget_id(struct memclient *ctx, uint64_t id)
{
    struct memclient_buffer *buf;

    pthread_mutex_lock(&ctx->lock);
    HASH_FIND(hh, ctx->buffers, &id, sizeof(id), buf);
    if (buf)
        ready_forget(buf);
    pthread_mutex_unlock(&ctx->lock);
}

bool ready_take(struct memclient_buffer *buf, struct memclient_token *token)
{
    struct memclient *ctx = buf->ctx;
    bool is_ready;

    pthread_mutex_lock(&ctx->lock);
    if (buf->is_unshared)
        ctx->sharing_habit = ctx->sharing_habit + HABIT_SHARED < HABIT_MAX ? ctx->sharing_habit + HABIT_SHARED
                                                                           : HABIT_MAX;
    buf->is_unshared = false;
    is_ready = !ctx->closed && list_is_linked(&buf->in_ready);
    if (is_ready) {
        *token = buf->ready;
        ready_forget(buf);
    }
    pthread_mutex_unlock(&ctx->lock);
    return is_ready;
}

bool ready_revoke_all(struct memclient *ctx, uint64_t deadline)
{
    struct memclient_token tokens[READY_MAX];
    struct fail_saved saved;
    unsigned n = 0;

    pthread_mutex_lock(&ctx->lock);
    list_for_each_entry(buf, &ctx->ready, struct memclient_buffer, in_ready)
        if (n < READY_MAX)
            tokens[n++] = buf->ready;
    ready_forget_all(ctx);
    pthread_mutex_unlock(&ctx->lock);
    fail_save(&saved, 0);
    for (unsigned i = 0; i < n; i++)
        (void)CONTEXT_CALL(ctx, deadline, channel, rpc_revoke(channel, &tokens[i], 0, 0, deadline));
    (void)fail_restore(&saved);
    explicit_bzero(tokens, sizeof(tokens));
    return n;
}
