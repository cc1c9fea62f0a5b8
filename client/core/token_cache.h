/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that come with the buffers, for programs that share what they allocate: one call instead of two.
 *
 * Whether this is such a program is seen by what it does: an allocation makes it a little less likely, the first token
 * of a buffer that was allocated here more so. While it is likely, what is allocated brings the token along that
 * memclient_share() without any terms would make, and this then takes it and makes no call. Each is given out once;
 * what is not given out ends with its buffer. Who knows it says so with the allocation. At most TOKEN_CACHE_MAX wait in
 * a context, and where a limit of tokens is reached they make room.
 *
 * They are of a session: another one, and the child of a fork, has none of them.
 *
 * Nothing but token_cache.c looks at what a context and a handle keep of this. Without it memclient_share() would ask
 * the broker each time, and nothing else would change: for each buffer that is handed over and freed again, a program
 * and its peer would make five requests instead of four.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "base/list.h"
#include "rpc/stubs.h"

#define TOKEN_CACHE_MAX 64

struct channel;

/* A context's, under its lock. */
struct token_cache {
    struct list list; /* those that nobody has got yet, TOKEN_CACHE_MAX at most */
    unsigned n;
    unsigned sharing_habit; /* how likely it is that what is allocated will be shared */
};

/* A handle's, under its context's lock. */
struct cached_token {
    struct list link; /* in the context's, while there is one */
    struct memclient_token token;
    bool is_unshared; /* the buffer was allocated here by itself, and nobody has asked for a token of it yet */
};

void token_cache_init(struct token_cache *cache);
void cached_token_init(struct cached_token *token);

/* Something is about to be allocated: should it come with a token? */
bool token_cache_is_wanted(struct memclient *ctx, const struct alloc_spec *spec);
/* Of one that was allocated, the handle is told; without the lock. */
void token_cache_allocated(struct memclient_buffer *buf, const struct rpc_opened_item *item);

/* A token of the buffer without any terms is asked for: false if there is none. */
bool token_cache_take(struct memclient_buffer *buf, struct memclient_token *token);

/* It is not to be given out any more; with the context's lock. */
void token_cache_forget(struct memclient_buffer *buf);
void token_cache_forget_all(struct memclient *ctx);

/* The same, without the lock, of a buffer that is being ended or whose tokens are being revoked. */
void token_cache_forget_id(struct memclient *ctx, uint64_t id);

/* Revokes all that wait, to make room for others. False if none did. */
bool token_cache_revoke_all(struct memclient *ctx, uint64_t deadline);
