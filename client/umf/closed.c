/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See closed.h. There are few closed areas, so they are in a list, which area_mutex guards. An area is taken out of the
 * list before the library is called for it, since the library has locks that a fork takes in another order.
 */
#include "umf/closed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "umf/area.h"
#include "umf/mutex.h"
#include "umf/shared.h"

struct closed {
    struct list link;
    struct area area;
};

static struct list all = LIST_INIT(all); /* the oldest first */

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static struct closed *closed_of(struct list *link)
{
    return link ? container_of(link, struct closed, link) : NULL;
}

static struct closed *take_oldest(void)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);

    return closed_of(list_pop(&all));
}

static void closed_put_back(struct closed *closed, bool is_oldest)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);

    if (is_oldest)
        list_prepend(&all, &closed->link);
    else
        list_append(&all, &closed->link);
}

/* What to look for; 0 and NULL match anything. */
struct wanted {
    const void *owner;
    uint64_t buffer;
    const void *handle; /* SHARED_HANDLE_SIZE bytes */
};

static bool is_wanted(const struct closed *closed, const struct wanted *wanted)
{
    return (!wanted->owner || closed->area.owner == wanted->owner) &&
           (!wanted->buffer || memclient_buffer_id(closed->area.buffer->handle) == wanted->buffer) &&
           (!wanted->handle || !memcmp(closed->area.buffer->opened_by, wanted->handle, SHARED_HANDLE_SIZE));
}

/* Takes out the youngest match. */
static struct closed *take_wanted(const struct wanted *wanted)
{
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&area_mutex);

    for (struct list *link = all.prev; link != &all; link = link->prev)
        if (is_wanted(closed_of(link), wanted)) {
            list_remove(link);
            return closed_of(link);
        }
    return NULL;
}

/* ---- what is in it ----------------------------------------------------------------------------------------------- */

static struct memclient_buffer *closed_buffer(const struct closed *closed)
{
    return closed->area.buffer->handle;
}

/* If the broker has taken the memory, only the mapping is left to release. */
static void closed_release(struct closed *closed)
{
    (void)memclient_cache_take(closed_buffer(closed));
    shared_buffer_release(&closed->area);
    free(closed);
}

/* The broker takes the oldest first. */
static void closed_release_lost(void)
{
    struct closed *closed;

    while ((closed = take_oldest())) {
        if (!memclient_cache_is_lost(closed_buffer(closed))) {
            closed_put_back(closed, true);
            return;
        }
        closed_release(closed);
    }
}

bool closed_put(const struct area *area)
{
    struct closed *closed, *oldest;
    int r;

    closed_release_lost();
    if (__atomic_load_n(&area->buffer->refs, __ATOMIC_RELAXED) > 1)
        return false;
    closed = malloc(sizeof(*closed));
    if (!closed)
        return false;
    list_init(&closed->link);
    closed->area = *area;
    while ((r = memclient_cache_put(area->buffer->handle)) == -ENOSPC && (oldest = take_oldest()))
        closed_release(oldest);
    if (r) {
        free(closed);
        return false;
    }
    closed_put_back(closed, false);
    return true;
}

bool closed_take(const void *owner, const void *handle, struct area *area)
{
    const struct wanted wanted = {.owner = owner, .handle = handle};
    struct closed *closed;

    while ((closed = take_wanted(&wanted))) {
        if (memclient_cache_take(closed_buffer(closed))) {
            closed_release(closed);
            continue;
        }
        *area = closed->area;
        free(closed);
        return true;
    }
    closed_release_lost();
    return false;
}

static void closed_release_wanted(const struct wanted *wanted)
{
    struct closed *closed;

    while ((closed = take_wanted(wanted)))
        closed_release(closed);
}

void closed_release_all(const void *owner)
{
    closed_release_wanted(&(struct wanted){.owner = owner});
}

void closed_release_buffer(uint64_t id)
{
    closed_release_wanted(&(struct wanted){.buffer = id});
}
