/* SPDX-License-Identifier: Apache-2.0 */
/* See cached.h. The lock is never held over a call of the broker, nor while anything is given back. */
#include "opencl/cached.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

void cached_init(struct cached_slabs *cached)
{
    pthread_mutex_init(&cached->lock, NULL);
    list_init(&cached->slabs);
}

void cached_deinit(struct cached_slabs *cached)
{
    pthread_mutex_destroy(&cached->lock);
}

static struct cached_slab *slab_of(struct list *link)
{
    return container_of(link, struct cached_slab, link);
}

static void return_slabs(struct list *slabs)
{
    struct list *link;

    while ((link = list_pop(slabs))) {
        struct cached_slab *slab = slab_of(link);

        /* if it is lost, its mapping is left to be given back */
        (void)memclient_cache_take(slab->buffer);
        free_queue_put(&slab->queued);
    }
}

/* The allocation's whole buffer, mapped as it was allocated; or NULL. */
static struct memclient_buffer *buffer_of(const struct cached_slab *slab)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    if (memclient_query_address(slab->ptr, &info) || info.address != slab->ptr || info.offset ||
        info.length < slab->size || info.access != (MEMCLIENT_READ | MEMCLIENT_WRITE))
        return NULL;
    return info.buffer;
}

/* With the lock: those that the broker has taken, into the list. */
static void find_lost(struct cached_slabs *cached, struct list *lost)
{
    list_for_each_entry_safe(slab, &cached->slabs, struct cached_slab, link)
    {
        if (memclient_cache_is_lost(slab->buffer)) {
            list_remove(&slab->link);
            list_append(lost, &slab->link);
        }
    }
}

bool cached_put(struct cached_slabs *cached, struct cached_slab *slab)
{
    struct list leaving = LIST_INIT(leaving), *oldest;
    int r;

    slab->buffer = buffer_of(slab);
    if (!slab->buffer)
        return false;
    pthread_mutex_lock(&cached->lock);
    find_lost(cached, &leaving);
    while ((r = memclient_cache_put(slab->buffer)) == -ENOSPC && (oldest = list_pop(&cached->slabs))) {
        list_append(&leaving, oldest);
        (void)memclient_cache_take(slab_of(oldest)->buffer);
    }
    if (!r)
        list_append(&cached->slabs, &slab->link);
    pthread_mutex_unlock(&cached->lock);
    return_slabs(&leaving);
    return !r;
}

/* With the lock: the youngest that fits, whose pages the processor knows best. */
static struct cached_slab *find_fitting(struct cached_slabs *cached, size_t size, size_t alignment)
{
    for (struct list *link = cached->slabs.prev; link != &cached->slabs; link = link->prev) {
        struct cached_slab *slab = slab_of(link);

        if (slab->size == size && (uintptr_t)slab->ptr % (alignment ? alignment : 1) == 0)
            return slab;
    }
    return NULL;
}

void *cached_take(struct cached_slabs *cached, size_t size, size_t alignment)
{
    struct list lost = LIST_INIT(lost);
    struct cached_slab *slab;
    void *ptr = NULL;

    pthread_mutex_lock(&cached->lock);
    while (!ptr && (slab = find_fitting(cached, size, alignment))) {
        list_remove(&slab->link);
        if (memclient_cache_take(slab->buffer)) {
            list_append(&lost, &slab->link);
            continue;
        }
        ptr = slab->ptr;
        free(slab);
    }
    pthread_mutex_unlock(&cached->lock);
    return_slabs(&lost);
    return ptr;
}

bool cached_return_all(struct cached_slabs *cached)
{
    struct list all = LIST_INIT(all);
    bool is_any;

    pthread_mutex_lock(&cached->lock);
    list_splice(&all, &cached->slabs);
    pthread_mutex_unlock(&cached->lock);
    is_any = !list_is_empty(&all);
    return_slabs(&all);
    return is_any;
}
