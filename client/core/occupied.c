/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a context has of brokers that are lost. Mappings and reservations stay when a broker is gone for good, and the
 * next one is told of them, so that it gives no address that cannot be used here. If there are more than can be told,
 * ranges that lie next to each other are told as one, with what is between them.
 */
#include <stdlib.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "core/map.h"

struct stretch {
    uint64_t start;
    uint64_t end;
    uint32_t broker;
};

struct stretches {
    struct stretch *items;
    size_t n;
    size_t room;
};

static void stretches_add(struct stretches *all, uint64_t start, uint64_t size, uint32_t broker)
{
    if (all->n < all->room)
        all->items[all->n++] = (struct stretch){start, start + size, broker};
}

static void stretches_count_all(struct memclient_context *ctx, struct stretches *all)
{
    all->room = process_space.n_mappings;
    list_for_each_entry(res, &ctx->reservations, struct memclient_reservation, in_context)
        all->room++;
}

static void stretches_add_all(struct memclient_context *ctx, struct stretches *all)
{
    for (struct mapping *m = space_first(&process_space); m; m = space_next(m))
        if (m->buffer->ctx == ctx)
            stretches_add(all, m->start, m->size, m->buffer->broker);
    list_for_each_entry(res, &ctx->reservations, struct memclient_reservation, in_context) {
        if (res->id)
            stretches_add(all, res->start, res->size, res->broker);
    }
}

/* Nothing is allocated under the locks: that may need them. */
static void stretches_with_locks(struct memclient_context *ctx, struct stretches *all,
                                 void (*fn)(struct memclient_context *, struct stretches *))
{
    space_lock_read();
    pthread_mutex_lock(&ctx->lock);
    fn(ctx, all);
    pthread_mutex_unlock(&ctx->lock);
    space_unlock();
}

static int stretch_by_start(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* Bytes between two neighbours, 0 where they overlap. Ranges of different brokers stay apart. */
static uint64_t stretch_gap_before(const struct stretch *stretch, const struct stretch *next)
{
    if (stretch->broker != next->broker)
        return UINT64_MAX;
    return next->start > stretch->end ? next->start - stretch->end : 0;
}

/* Neighbours with a gap of no more than that between them become one. */
static void stretches_join(struct stretches *all, uint64_t gap)
{
    size_t n = 0;

    for (size_t i = 1; i < all->n; i++) {
        struct stretch *last = &all->items[n], *next = &all->items[i];

        if (stretch_gap_before(last, next) > gap)
            all->items[++n] = *next;
        else if (next->end > last->end)
            last->end = next->end;
    }
    all->n = all->n ? n + 1 : 0;
}

void context_occupied(struct memclient_context *ctx, struct rpc_occupied *occupied)
{
    _cleanup_free_ struct stretch *items = NULL;
    struct stretches all = {.n = 0};

    occupied->n = 0;
    stretches_with_locks(ctx, &all, stretches_count_all);
    if (!all.room)
        return;
    /* what another thread adds now, the next HELLO tells */
    all.items = items = calloc(all.room, sizeof(*items));
    if (!items)
        return;
    stretches_with_locks(ctx, &all, stretches_add_all);
    if (!all.n)
        return;
    qsort(all.items, all.n, sizeof(*all.items), stretch_by_start);
    stretches_join(&all, 0);
    for (uint64_t gap = page_size(); all.n > MEMORYD_OCCUPIED_MAX && gap; gap *= 2)
        stretches_join(&all, gap);
    for (; occupied->n < all.n && occupied->n < MEMORYD_OCCUPIED_MAX; occupied->n++) {
        const struct stretch *stretch = &all.items[occupied->n];

        occupied->brokers[occupied->n] = stretch->broker;
        occupied->addresses[occupied->n] = stretch->start;
        occupied->sizes[occupied->n] = stretch->end - stretch->start;
    }
}
