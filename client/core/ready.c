/* SPDX-License-Identifier: Apache-2.0 */
/* What is ready is in the handle, and all handles that have one are in a list of the context; see ready.h. */
#include "core/ready.h"

#include <string.h>

#include "core/buffer.h"

/* As likely as can be; so likely that tokens are asked for; how much more so when a buffer is shared. */
#define HABIT_MAX    6
#define HABIT_TOKENS 2
#define HABIT_SHARED 2

void ready_init(struct ready *ready)
{
    list_init(&ready->tokens);
}

void ready_token_init(struct ready_token *token)
{
    list_init(&token->link);
}

bool ready_is_wanted(struct memclient *ctx, const struct alloc_spec *spec)
{
    bool soon = spec->options.flags & MEMCLIENT_SHARED_SOON;
    struct ready *ready = &ctx->ready;
    bool wanted;

    if (spec->n != 1)
        return false;
    pthread_mutex_lock(&ctx->lock);
    if (ready->sharing_habit)
        ready->sharing_habit--;
    wanted = (soon || ready->sharing_habit >= HABIT_TOKENS) && ready->n < READY_MAX;
    pthread_mutex_unlock(&ctx->lock);
    return wanted;
}

void ready_allocated(struct memclient_buffer *buf, const struct rpc_opened_item *item)
{
    static const struct memclient_token none;
    struct memclient *ctx = buf->ctx;

    pthread_mutex_lock(&ctx->lock);
    buf->ready.is_unshared = true;
    if (memcmp(&item->token, &none, sizeof(none)) && buf->generation == ctx->generation && !ctx->closed) {
        buf->ready.token = item->token;
        list_append(&ctx->ready.tokens, &buf->ready.link);
        ctx->ready.n++;
    }
    pthread_mutex_unlock(&ctx->lock);
}

void ready_forget(struct memclient_buffer *buf)
{
    if (!list_is_linked(&buf->ready.link))
        return;
    list_remove(&buf->ready.link);
    buf->ctx->ready.n--;
    explicit_bzero(&buf->ready.token, sizeof(buf->ready.token));
}

void ready_forget_all(struct memclient *ctx)
{
    struct list *link;

    while ((link = list_first(&ctx->ready.tokens)))
        ready_forget(container_of(link, struct memclient_buffer, ready.link));
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
    struct ready *ready = &ctx->ready;
    bool is_ready;

    pthread_mutex_lock(&ctx->lock);
    if (buf->ready.is_unshared)
        ready->sharing_habit = ready->sharing_habit + HABIT_SHARED < HABIT_MAX ? ready->sharing_habit + HABIT_SHARED
                                                                               : HABIT_MAX;
    buf->ready.is_unshared = false;
    is_ready = !ctx->closed && list_is_linked(&buf->ready.link);
    if (is_ready) {
        *token = buf->ready.token;
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
    list_for_each_entry(buf, &ctx->ready.tokens, struct memclient_buffer, ready.link)
        if (n < READY_MAX)
            tokens[n++] = buf->ready.token;
    ready_forget_all(ctx);
    pthread_mutex_unlock(&ctx->lock);
    fail_save(&saved, 0);
    for (unsigned i = 0; i < n; i++)
        (void)rpc_revoke(context_route_by(ctx, deadline), &tokens[i], 0, 0);
    (void)fail_restore(&saved);
    explicit_bzero(tokens, sizeof(tokens));
    return n;
}
