/* SPDX-License-Identifier: Apache-2.0 */
/* See closed.h. */
#include "umf/closed.h"

#include <stdlib.h>
#include <string.h>

#include "facade/buffer_cache.h"
#include "umf/area.h"
#include "umf/shared.h"

struct closed {
    struct cached_buffer cached;
    struct area area;
};

static void closed_release(struct cached_buffer *cached)
{
    struct closed *closed = container_of(cached, struct closed, cached);

    shared_buffer_release(&closed->area);
    free(closed);
}

static struct buffer_cache cache = {
    .lock = &area_mutex, .buffers = LIST_INIT(cache.buffers), .release = closed_release};

/* What to look for; 0 and NULL match anything. */
struct wanted {
    const void *owner;
    uint64_t buffer;
    const void *handle; /* SHARED_HANDLE_SIZE bytes */
};

static bool closed_is_wanted(const struct cached_buffer *cached, const void *context)
{
    const struct area *area = &container_of((struct cached_buffer *)cached, struct closed, cached)->area;
    const struct wanted *wanted = context;

    return (!wanted->owner || area->owner == wanted->owner) &&
           (!wanted->buffer || memclient_buffer_id(area->buffer->handle) == wanted->buffer) &&
           (!wanted->handle || !memcmp(area->buffer->opened_by, wanted->handle, SHARED_HANDLE_SIZE));
}

bool closed_put(const struct area *area)
{
    struct closed *closed;

    if (__atomic_load_n(&area->buffer->refs, __ATOMIC_RELAXED) > 1)
        return false;
    closed = malloc(sizeof(*closed));
    if (!closed)
        return false;
    *closed = (struct closed){.cached.buffer = area->buffer->handle, .area = *area};
    if (buffer_cache_put(&cache, &closed->cached))
        return true;
    free(closed);
    return false;
}

bool closed_take(const void *owner, const void *handle, struct area *area)
{
    const struct wanted wanted = {.owner = owner, .handle = handle};
    struct cached_buffer *cached = buffer_cache_take(&cache, closed_is_wanted, &wanted);
    struct closed *closed;

    if (!cached)
        return false;
    closed = container_of(cached, struct closed, cached);
    *area = closed->area;
    free(closed);
    return true;
}

void closed_release_all(const void *owner)
{
    (void)buffer_cache_drain(&cache, closed_is_wanted, &(struct wanted){.owner = owner});
}

void closed_release_buffer(uint64_t id)
{
    (void)buffer_cache_drain(&cache, closed_is_wanted, &(struct wanted){.buffer = id});
}
