/* SPDX-License-Identifier: Apache-2.0 */
/* See buffer_cache.h. */
#include "facade/buffer_cache.h"

#include <errno.h>

static struct cached_buffer *buffer_cache_of(struct list *link)
{
    return link ? container_of(link, struct cached_buffer, link) : NULL;
}

static struct cached_buffer *buffer_cache_pop_oldest(struct buffer_cache *cache)
{
    struct cached_buffer *oldest;

    pthread_mutex_lock(cache->lock);
    oldest = buffer_cache_of(list_pop(&cache->buffers));
    pthread_mutex_unlock(cache->lock);
    return oldest;
}

static struct cached_buffer *buffer_cache_pop_match(struct buffer_cache *cache, buffer_cache_match *match,
                                                    const void *wanted)
{
    struct cached_buffer *found = NULL;

    pthread_mutex_lock(cache->lock);
    for (struct list *link = cache->buffers.prev; link != &cache->buffers && !found; link = link->prev)
        if (match(buffer_cache_of(link), wanted))
            found = buffer_cache_of(link);
    if (found)
        list_remove(&found->link);
    pthread_mutex_unlock(cache->lock);
    return found;
}

static void buffer_cache_release(struct buffer_cache *cache, struct cached_buffer *cached)
{
    (void)memclient_cache_take(cached->buffer);
    cache->release(cached);
}

/* Those that the broker has taken are the oldest. */
static void buffer_cache_release_lost(struct buffer_cache *cache)
{
    struct cached_buffer *oldest;

    while ((oldest = buffer_cache_pop_oldest(cache)) && memclient_cache_is_lost(oldest->buffer))
        buffer_cache_release(cache, oldest);
    if (!oldest)
        return;
    pthread_mutex_lock(cache->lock);
    list_prepend(&cache->buffers, &oldest->link);
    pthread_mutex_unlock(cache->lock);
}

bool buffer_cache_put(struct buffer_cache *cache, struct cached_buffer *cached)
{
    struct cached_buffer *oldest;
    int r;

    buffer_cache_release_lost(cache);
    while ((r = memclient_cache_put(cached->buffer)) == -ENOSPC && (oldest = buffer_cache_pop_oldest(cache)))
        buffer_cache_release(cache, oldest);
    if (r)
        return false;
    list_init(&cached->link);
    pthread_mutex_lock(cache->lock);
    list_append(&cache->buffers, &cached->link);
    pthread_mutex_unlock(cache->lock);
    return true;
}

struct cached_buffer *buffer_cache_take(struct buffer_cache *cache, buffer_cache_match *match, const void *wanted)
{
    struct cached_buffer *cached;

    while ((cached = buffer_cache_pop_match(cache, match, wanted))) {
        if (!memclient_cache_take(cached->buffer))
            return cached;
        cache->release(cached);
    }
    buffer_cache_release_lost(cache);
    return NULL;
}

bool buffer_cache_drain(struct buffer_cache *cache, buffer_cache_match *match, const void *wanted)
{
    struct cached_buffer *cached;
    bool is_any = false;

    while ((cached = buffer_cache_pop_match(cache, match, wanted))) {
        buffer_cache_release(cache, cached);
        is_any = true;
    }
    return is_any;
}
