/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that a facade keeps, with their mappings, though its program has given them back: the client's side of
 * proto/hold_cache.h. The facade keeps the handle, and knows what it would use it for; here it is decided whether it
 * may, and who has it in the end. Each is in a slot of the session's until it is taken back or let go of, or another
 * thread opens the same buffer.
 *
 * Only a buffer that nobody else of this process uses is put there, and none whose memory others may have by other ways
 * than a hold: by a descriptor that was exported, by a fork since it was opened, or by a token or a lasting name that
 * was given away. A fork that comes later does not copy what is cached.
 *
 * A process caches 64 buffers and 64 MiB at most, or as many MiB as MEMORYD_CACHE says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/hold_cache.h"

struct memclient;
struct memclient_buffer;

/* A context's, under its lock. */
struct hold_cache_owners {
    struct memclient_buffer *owners[HOLD_CACHE_SLOTS];
};

/* A handle's, under its context's lock. */
struct cached_hold {
    int slot;         /* or -1 */
    bool lost;        /* it was put there, and is the facade's no more */
    bool let_out;     /* others may have it by other ways than a hold */
    bool withheld;    /* its mappings are not for children, as long as it is cached */
    unsigned forks;   /* of this process, before it was opened */
    uint32_t changes; /* what the broker had told before it was opened */
};

/* A buffer has come by a request before which the broker had told this. With the context's lock, here and below. */
void hold_cache_opened(struct memclient_buffer *buf, uint32_t changes);
/* It was open already, and another user of it has come. */
void hold_cache_used(struct memclient_buffer *buf);
/* The last reference goes. */
void hold_cache_leave(struct memclient_buffer *buf);
/* The session is another one, or has ended. */
void hold_cache_forget_all(struct memclient *ctx);

/* Others may have it from now on. Without a lock; `descriptor`: one that the program has. */
void hold_cache_let_out(struct memclient_buffer *buf, bool descriptor);

/* See memclient_cache_put() and so on. */
int hold_cache_put(struct memclient_buffer *buf);
int hold_cache_take(struct memclient_buffer *buf);
bool hold_cache_is_lost(struct memclient_buffer *buf);

/* With all locks: before a fork, and after it in both processes. */
void hold_cache_fork_prepare(struct memclient *ctx);
void hold_cache_forked(void);
