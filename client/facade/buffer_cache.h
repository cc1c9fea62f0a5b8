/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that a program has freed or closed, and may soon want again. They stay mapped. The library has them in its
 * cache (memclient_cache_put()), from which the broker may take them for others at any time, the oldest first. Here is
 * which ones there are, so that the right one is found again, and the oldest makes room.
 *
 * The lock is its user's, who takes it around a fork if a child uses the cache. It is never held during a call of the
 * library, which has locks that a fork takes in another order, nor while anything is released.
 *
 * client/nbla/spare.c has no use for it: its buffers are alike, and many at a time are allocated and released by one
 * request each.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include <memclient/memclient.h>

#include "base/list.h"

struct cached_buffer {
    struct list link; /* in the cache */
    struct memclient_buffer *buffer;
};

struct buffer_cache {
    pthread_mutex_t *lock;
    struct list buffers; /* the oldest first */
    /* Releases one that is no longer cached, with its record. If the broker has taken the memory, only the mapping is
     * left to release. */
    void (*release)(struct cached_buffer *cached);
};

/* Is it what is wanted? With the lock. */
typedef bool buffer_cache_match(const struct cached_buffer *cached, const void *wanted);

/* Caches it, and releases others if there is no room. False: it cannot be cached, and is still the caller's. */
bool buffer_cache_put(struct buffer_cache *cache, struct cached_buffer *cached);
/* The youngest match, whose pages are warm in the processor's caches, as it was put. NULL: there is none. */
struct cached_buffer *buffer_cache_take(struct buffer_cache *cache, buffer_cache_match *match, const void *wanted);
/* Releases all matches. False: there were none. */
bool buffer_cache_drain(struct buffer_cache *cache, buffer_cache_match *match, const void *wanted);
