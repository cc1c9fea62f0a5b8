/* SPDX-License-Identifier: Apache-2.0 */
/* A token is kept in its handle, and the handles that have one are in a list of the context; see token_cache.h. */
#include "core/token_cache.h"

#include <string.h>

#include "core/buffer.h"

/* The most; from when on tokens are asked for; and what sharing a buffer adds. */
#define HABIT_MAX    6
#define HABIT_TOKENS 2
#define HABIT_SHARED 2

void token_cache_init(struct token_cache *cache)
{
    list_init(&cache->list);
}

void cached_token_init(struct cached_token *token)
{
    list_init(&token->link);
}

bool token_cache_is_wanted(struct memclient_context *ctx, const struct alloc_spec *spec)
{
    bool soon = spec->options.flags & MEMCLIENT_ALLOC_SHARED_SOON;
    struct token_cache *cache = &ctx->tokens;
    bool wanted;

    if (spec->n != 1)
        return false;
    pthread_mutex_lock(&ctx->lock);
    if (cache->sharing_habit)
        cache->sharing_habit--;
    wanted = (soon || cache->sharing_habit >= HABIT_TOKENS) && cache->n < TOKEN_CACHE_MAX;
    pthread_mutex_unlock(&ctx->lock);
    return wanted;
}

void token_cache_allocated(struct memclient_buffer *buf, const struct rpc_opened_item *item)
{
    static const struct memclient_token none;
    struct memclient_context *ctx = buf->ctx;

    pthread_mutex_lock(&ctx->lock);
    buf->token.is_unshared = true;
    if (memcmp(&item->token, &none, sizeof(none)) && buf->generation == ctx->generation && !ctx->closed) {
        buf->token.token = item->token;
        list_append(&ctx->tokens.list, &buf->token.link);
        ctx->tokens.n++;
    }
    pthread_mutex_unlock(&ctx->lock);
}

void token_cache_forget(struct memclient_buffer *buf)
{
    if (!list_is_linked(&buf->token.link))
        return;
    list_remove(&buf->token.link);
    buf->ctx->tokens.n--;
    explicit_bzero(&buf->token.token, sizeof(buf->token.token));
}

void token_cache_forget_all(struct memclient_context *ctx)
{
    struct list *link;

    while ((link = list_first(&ctx->tokens.list)))
        token_cache_forget(container_of(link, struct memclient_buffer, token.link));
}

void token_cache_forget_id(struct memclient_context *ctx, uint64_t id)
{
    struct memclient_buffer *buf;

    pthread_mutex_lock(&ctx->lock);
    HASH_FIND(hh, ctx->buffers, &id, sizeof(id), buf);
    if (buf)
        token_cache_forget(buf);
    pthread_mutex_unlock(&ctx->lock);
}

bool token_cache_take(struct memclient_buffer *buf, struct memclient_token *token)
{
    struct memclient_context *ctx = buf->ctx;
    struct token_cache *cache = &ctx->tokens;
    bool found;

    pthread_mutex_lock(&ctx->lock);
    if (buf->token.is_unshared)
        cache->sharing_habit =
            cache->sharing_habit + HABIT_SHARED < HABIT_MAX ? cache->sharing_habit + HABIT_SHARED : HABIT_MAX;
    buf->token.is_unshared = false;
    found = !ctx->closed && list_is_linked(&buf->token.link);
    if (found) {
        *token = buf->token.token;
        token_cache_forget(buf);
    }
    pthread_mutex_unlock(&ctx->lock);
    return found;
}

bool token_cache_revoke_all(struct memclient_context *ctx, uint64_t deadline)
{
    struct memclient_token tokens[TOKEN_CACHE_MAX];
    struct fail_saved saved = fail_save(0);
    unsigned n = 0;

    pthread_mutex_lock(&ctx->lock);
    list_for_each_entry(buf, &ctx->tokens.list, struct memclient_buffer, token.link)
        if (n < TOKEN_CACHE_MAX)
            tokens[n++] = buf->token.token;
    token_cache_forget_all(ctx);
    pthread_mutex_unlock(&ctx->lock);
    for (unsigned i = 0; i < n; i++)
        (void)rpc_revoke(context_route_by(ctx, deadline), &tokens[i], 0, 0);
    (void)fail_restore(&saved);
    explicit_bzero(tokens, sizeof(tokens));
    return n;
}
