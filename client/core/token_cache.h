/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that come with the buffers, for programs that share what they allocate: one call instead of two.
 *
 * The library guesses from what a program does: an allocation makes sharing a little less likely, the first token of a
 * buffer that was allocated here makes it more likely. While it is likely, an allocation brings the token along that
 * memclient_share() without terms would make; that then returns it and makes no call. A program that knows says so with
 * the allocation (MEMCLIENT_ALLOC_SHARED_SOON). Each token is given out once; one that is not ends with its buffer. A
 * context keeps TOKEN_CACHE_MAX at most, and revokes them where a limit of tokens is reached.
 *
 * They belong to a session: another one, and the child of a fork, has none of them.
 *
 * Only token_cache.c touches what a context and a handle keep of this. Without it memclient_share() would ask the
 * broker each time, and nothing else would change: for each buffer that is handed over and freed again, a program and
 * its peer would make five requests instead of four.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "base/list.h"
#include "rpc/stubs.h"

#define TOKEN_CACHE_MAX 64

struct channel;

/* Of a context, under its lock. */
struct token_cache {
    struct list list; /* handles with a token, TOKEN_CACHE_MAX at most */
    unsigned n;
    unsigned sharing_habit; /* how likely it is that what is allocated will be shared */
};

/* Of a handle, under its context's lock. */
struct cached_token {
    struct list link; /* in the context's, while there is one */
    struct memclient_token token;
    bool is_unshared; /* the buffer was allocated here by itself, and nobody has asked for a token of it yet */
};

void token_cache_init(struct token_cache *cache);
void cached_token_init(struct cached_token *token);

/* Should this allocation bring a token along? */
bool token_cache_is_wanted(struct memclient_context *ctx, const struct alloc_spec *spec);
/* Without the lock: the buffer was allocated, with a token or without. */
void token_cache_allocated(struct memclient_buffer *buf, const struct rpc_opened_item *item);

/* A token without terms is asked for. False if none is cached. */
bool token_cache_take(struct memclient_buffer *buf, struct memclient_token *token);

/* With the context's lock: the token is not given out any more. */
void token_cache_forget(struct memclient_buffer *buf);
void token_cache_forget_all(struct memclient_context *ctx);

/* The same, without the lock, for a buffer that is destroyed or whose tokens are revoked. */
void token_cache_forget_id(struct memclient_context *ctx, uint64_t id);

/* Revokes all cached tokens, to make room for others. False if there were none. */
bool token_cache_revoke_all(struct memclient_context *ctx, uint64_t deadline);
