/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs and large allocations that were freed, and that the next allocation of their size gets: the library keeps them
 * for this heap, and the broker may take them for others at any time (memclient_cache_put()).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <memclient/memclient.h>
#include <memclient/umf/umf/memory_provider.h>

#include "base/list.h"
#include "opencl/free_queue.h"

/* One that was freed. */
struct cached_slab {
    struct queued_free queued; /* on its way to the provider */
    struct list link;         /* or in the cache */
    umf_memory_provider_handle_t memoryd;
    struct memclient_buffer *buffer; /* the allocation's, while it is in the cache */
    void *ptr;
    size_t size;
};

struct cached_slabs {
    pthread_mutex_t lock;
    struct list slabs; /* the oldest first */
};

void cached_init(struct cached_slabs *cached);
void cached_deinit(struct cached_slabs *cached);

/* Puts it there if it may be; others may have to go for that, by the free queue. False: it may not. */
bool cached_put(struct cached_slabs *cached, struct cached_slab *slab);
/* One of this size, at a multiple of the alignment, is in use again, and its record freed. NULL: there is none. */
void *cached_take(struct cached_slabs *cached, size_t size, size_t alignment);
/* All of it goes back, without waiting. False: there was nothing. */
bool cached_return_all(struct cached_slabs *cached);
