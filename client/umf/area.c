/* SPDX-License-Identifier: Apache-2.0 */
/* A tree by address behind one lock, which is never held while the kernel or the broker is asked for anything. */
#include "umf/area.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/steal.h"
#include "umf/shared.h"

RB_HEAD(area_tree, area);

static int compare(const struct area *a, const struct area *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

TREE_GENERATE(area_tree, area, entry, compare)

static struct area_tree areas = RB_INITIALIZER(0);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t end_of(const struct area *area)
{
    return area->start + area->length;
}

/* The first that ends behind the address. */
static struct area *first_behind(uint64_t address)
{
    struct area key = {.start = address};
    struct area *found = RB_NFIND(area_tree, &areas, &key);
    struct area *before = found ? RB_PREV(area_tree, NULL, found) : RB_MAX(area_tree, &areas);

    return before && end_of(before) > address ? before : found;
}

/* ---- taking out ------------------------------------------------------------------------------------------ */

/* Cutting a range out of a tree makes at most two areas more. */
struct spares {
    struct area *area[2];
};

static int spares_get(struct spares *spares)
{
    spares->area[0] = calloc(1, sizeof(struct area));
    spares->area[1] = calloc(1, sizeof(struct area));
    if (spares->area[0] && spares->area[1])
        return 0;
    free(spares->area[0]);
    free(spares->area[1]);
    return -ENOMEM;
}

static void spares_put(struct spares *spares)
{
    free(spares->area[0]);
    free(spares->area[1]);
}

/* A part of an area as one by itself, not in the tree. */
static struct area *part_of(const struct area *area, uint64_t start, uint64_t end, struct spares *spares)
{
    struct area *part = steal_ptr(&spares->area[spares->area[0] ? 0 : 1]);

    *part = *area;
    part->start = start;
    part->length = end - start;
    part->offset = area->offset + (start - area->start);
    if (part->buffer)
        shared_buffer_ref(part->buffer);
    return part;
}

/* The part of an area that lies in [start, end), out of the tree. */
static struct area *cut(struct area *area, uint64_t start, uint64_t end, struct spares *spares)
{
    uint64_t last = end_of(area);
    struct area *part;

    if (start < area->start)
        start = area->start;
    if (end > last)
        end = last;
    if (start == area->start && end == last) {
        RB_REMOVE(area_tree, &areas, area);
        return area;
    }
    part = part_of(area, start, end, spares);
    if (end == last) {
        area->length = start - area->start;
    } else if (start == area->start) {
        /* its place in the tree stays the same */
        area->offset += end - start;
        area->start = end;
        area->length = last - end;
    } else {
        struct area *rest = part_of(area, end, last, spares);

        area->length = start - area->start;
        RB_INSERT(area_tree, &areas, rest);
    }
    return part;
}

/* What must be true of the areas of a range that has no gap. */
enum demand { ANY_KIND, ALLOCATED, ONE_BUFFER };

static bool is_whole(const void *owner, uint64_t start, uint64_t end, enum demand demand)
{
    struct area *area = first_behind(start);
    const struct area *first = area;

    while (area && area->start <= start && area->owner == owner) {
        if ((demand != ANY_KIND && area->kind != AREA_ALLOCATED) ||
            (demand == ONE_BUFFER && area->buffer != first->buffer))
            return false;
        start = end_of(area);
        if (start >= end)
            return true;
        area = RB_NEXT(area_tree, NULL, area);
    }
    return false;
}

/* With the lock; owner NULL = whoever has whatever there. */
static struct area *take(const void *owner, uint64_t start, uint64_t end, struct spares *spares)
{
    struct area *taken = NULL, *next;

    for (struct area *area = first_behind(start); area && area->start < end; area = next) {
        next = RB_NEXT(area_tree, NULL, area);
        if (owner && (area->owner != owner || area->kind != AREA_ALLOCATED))
            continue;
        area = cut(area, start, end, spares);
        area->next = taken;
        taken = area;
    }
    return taken;
}

int area_take(const void *owner, uint64_t start, uint64_t length, bool whole, struct area **taken)
{
    uint64_t end = start + length;
    struct spares spares;
    int r;

    *taken = NULL;
    if (end < start)
        return 0;
    r = spares_get(&spares);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    if (!whole || is_whole(owner, start, end, ALLOCATED))
        *taken = take(owner, start, end, &spares);
    pthread_mutex_unlock(&lock);
    spares_put(&spares);
    return 0;
}

struct area *area_take_opened(const void *owner, uint64_t start)
{
    struct area key = {.start = start}, *area;

    pthread_mutex_lock(&lock);
    area = RB_FIND(area_tree, &areas, &key);
    if (area && area->owner == owner && area->kind == AREA_OPENED) {
        RB_REMOVE(area_tree, &areas, area);
        area->next = NULL;
    } else {
        area = NULL;
    }
    pthread_mutex_unlock(&lock);
    return area;
}

struct area *area_take_all(const void *owner)
{
    struct area *taken = NULL, *area, *next;

    pthread_mutex_lock(&lock);
    for (area = RB_MIN(area_tree, &areas); area; area = next) {
        next = RB_NEXT(area_tree, NULL, area);
        if (area->owner != owner)
            continue;
        RB_REMOVE(area_tree, &areas, area);
        area->next = taken;
        taken = area;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

void area_put_back(struct area *taken)
{
    pthread_mutex_lock(&lock);
    for (; taken; taken = taken->next)
        RB_INSERT(area_tree, &areas, taken);
    pthread_mutex_unlock(&lock);
}

/* ---- adding and finding ---------------------------------------------------------------------------------- */

static void forget(struct area *stale)
{
    while (stale) {
        struct area *next = stale->next;

        if (stale->buffer)
            shared_buffer_unref(stale->buffer);
        free(stale);
        stale = next;
    }
}

int area_add(const struct area *area)
{
    struct area *new = malloc(sizeof(*new)), *stale;
    struct spares spares;

    if (!new)
        return -ENOMEM;
    if (spares_get(&spares)) {
        free(new);
        return -ENOMEM;
    }
    *new = *area;
    pthread_mutex_lock(&lock);
    stale = take(NULL, area->start, end_of(area), &spares);
    RB_INSERT(area_tree, &areas, new);
    pthread_mutex_unlock(&lock);
    spares_put(&spares);
    forget(stale);
    return 0;
}

bool area_find(const void *owner, const void *address, struct area *copy)
{
    const struct area *area;
    bool found;

    pthread_mutex_lock(&lock);
    area = first_behind((uintptr_t)address);
    found = area && area->start <= (uintptr_t)address && (!owner || area->owner == owner);
    if (found) {
        *copy = *area;
        if (copy->buffer)
            shared_buffer_ref(copy->buffer);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool has(const void *owner, uint64_t start, uint64_t length, enum demand demand)
{
    bool whole;

    if (start + length < start)
        return false;
    pthread_mutex_lock(&lock);
    whole = is_whole(owner, start, start + length, demand);
    pthread_mutex_unlock(&lock);
    return whole;
}

bool area_covers(const void *owner, uint64_t start, uint64_t length)
{
    return has(owner, start, length, ANY_KIND);
}

bool area_is_one(const void *owner, uint64_t start, uint64_t length)
{
    return has(owner, start, length, ONE_BUFFER);
}

/* ---- around a fork --------------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void fork_child(void)
{
    pthread_mutex_unlock(&lock);
    /* made anew: it may count waiters that the child does not have */
    (void)pthread_mutex_init(&lock, NULL);
}

__attribute__((__constructor__)) static void loaded(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}
