/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that a facade keeps, with their mappings, though its program has freed them: the client's side of
 * proto/hold_cache.h. The facade keeps the handle, and knows what to use it for; this file decides whether it may, and
 * who gets the buffer in the end. A cached buffer is in a slot of the session until it is taken back or let go of, or
 * another thread opens it.
 *
 * A buffer is cached only if nobody else in this process uses it, and nobody can have its memory without a hold: by an
 * exported descriptor, by a fork since it was opened, or by a token or a lasting name that was given away. A later fork
 * does not copy what is cached.
 *
 * A process caches 64 buffers and 64 MiB at most, or as many MiB as MEMORYD_CACHE says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/hold_cache.h"

struct memclient_context;
struct memclient_buffer;

/* Of a context, under its lock. */
struct hold_cache_owners {
    struct memclient_buffer *owners[HOLD_CACHE_SLOTS];
};

/* Of a handle, under its context's lock. */
struct cached_hold {
    int slot;         /* or -1 */
    bool lost;        /* it was cached, and the facade does not have it any more */
    bool let_out;     /* others may have it without a hold */
    bool withheld;    /* its mappings are withheld from children while it is cached */
    unsigned forks;   /* of this process before it was opened */
    uint32_t changes; /* what the broker had told before it was opened */
};

/* With the context's lock, here and below. The buffer came by a request before which the broker had told `changes`. */
void hold_cache_opened(struct memclient_buffer *buf, uint32_t changes);
/* The buffer was open already, and has another user now. */
void hold_cache_used(struct memclient_buffer *buf);
/* The last reference is dropped. */
void hold_cache_leave(struct memclient_buffer *buf);
/* The session has ended, or is another one. */
void hold_cache_forget_all(struct memclient_context *ctx);

/* Without a lock: others may have the buffer from now on. `descriptor`: by one that the program has. */
void hold_cache_let_out(struct memclient_buffer *buf, bool descriptor);

/* As memclient_cache_put(), _take() and _is_lost(). */
int hold_cache_put(struct memclient_buffer *buf);
int hold_cache_take(struct memclient_buffer *buf);
bool hold_cache_is_lost(struct memclient_buffer *buf);

/* With all locks, before a fork and after it in both processes. */
void hold_cache_fork_prepare(struct memclient_context *ctx);
void hold_cache_forked(void);
