/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two trees by address behind one lock, which is never held while the kernel or the broker is asked for anything.
 * Allocations do not overlap. What was opened may: of that each area knows how far its subtree reaches, so that
 * subtrees that end before an address are passed by.
 */
#include "umf/area.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/steal.h"
#include "umf/shared.h"

RB_HEAD(area_tree, area);

static int compare(const struct area *a, const struct area *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static uint64_t end_of(const struct area *area)
{
    return area->start + area->length;
}

/* Sums up from there to the root. */
static void augment(struct area *area)
{
    for (; area; area = RB_PARENT(area, entry)) {
        const struct area *left = RB_LEFT(area, entry), *right = RB_RIGHT(area, entry);

        area->reach = end_of(area);
        if (left && left->reach > area->reach)
            area->reach = left->reach;
        if (right && right->reach > area->reach)
            area->reach = right->reach;
    }
}

#undef RB_AUGMENT
#define RB_AUGMENT(area) augment(area)
TREE_GENERATE(area_tree, area, entry, compare)

static struct area_tree areas = RB_INITIALIZER(0), opened = RB_INITIALIZER(0);
static uint64_t serials;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void insert(struct area *area)
{
    area->serial = ++serials;
    RB_INSERT(area_tree, area->kind == AREA_OPENED ? &opened : &areas, area);
    augment(area);
}

/*
 * In this part of what was opened: the owner's (NULL: anybody's) that holds the address and reaches furthest, or
 * `best`.
 */
static struct area *furthest(struct area *top, const void *owner, uint64_t address, struct area *best)
{
    if (!top || top->reach <= address || (best && top->reach <= end_of(best)))
        return best;
    best = furthest(RB_LEFT(top, entry), owner, address, best);
    if (top->start > address)
        return best;
    if (end_of(top) > address && (!owner || top->owner == owner) && (!best || end_of(top) > end_of(best)))
        best = top;
    return furthest(RB_RIGHT(top, entry), owner, address, best);
}

static struct area *find_opened(const void *owner, uint64_t address)
{
    return furthest(RB_ROOT(&opened), owner, address, NULL);
}

/* The first allocation that ends behind the address. */
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
        insert(rest);
    }
    return part;
}

/* What must be true of the areas of a range that has no gap. */
enum demand { ALLOCATED, ONE_BUFFER };

static bool is_whole(const void *owner, uint64_t start, uint64_t end, enum demand demand)
{
    struct area *area = first_behind(start);
    const struct area *first = area;

    while (area && area->start <= start && area->owner == owner) {
        if (demand == ONE_BUFFER && area->buffer != first->buffer)
            return false;
        start = end_of(area);
        if (start >= end)
            return true;
        area = RB_NEXT(area_tree, NULL, area);
    }
    return false;
}

/* Has the owner opened all of the range? */
static bool is_opened(const void *owner, uint64_t start, uint64_t end)
{
    const struct area *area;

    while (start < end && (area = find_opened(owner, start)))
        start = end_of(area);
    return start >= end;
}

/* With the lock, of allocations; owner NULL = whoever has whatever there. */
static struct area *take(const void *owner, uint64_t start, uint64_t end, struct spares *spares)
{
    struct area *taken = NULL, *next;

    for (struct area *area = first_behind(start); area && area->start < end; area = next) {
        next = RB_NEXT(area_tree, NULL, area);
        if (owner && area->owner != owner)
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
    struct area key = {.start = start}, *shortest = NULL;

    pthread_mutex_lock(&lock);
    for (struct area *area = RB_NFIND(area_tree, &opened, &key); area && area->start == start;
         area = RB_NEXT(area_tree, NULL, area))
        if (area->owner == owner && (!shortest || area->length < shortest->length))
            shortest = area;
    if (shortest) {
        RB_REMOVE(area_tree, &opened, shortest);
        shortest->next = NULL;
    }
    pthread_mutex_unlock(&lock);
    return shortest;
}

/* With the lock. */
static struct area *take_owned(struct area_tree *tree, const void *owner, struct area *taken)
{
    struct area *area, *next;

    for (area = RB_MIN(area_tree, tree); area; area = next) {
        next = RB_NEXT(area_tree, NULL, area);
        if (area->owner != owner)
            continue;
        RB_REMOVE(area_tree, tree, area);
        area->next = taken;
        taken = area;
    }
    return taken;
}

struct area *area_take_all(const void *owner)
{
    struct area *taken;

    pthread_mutex_lock(&lock);
    taken = take_owned(&opened, owner, take_owned(&areas, owner, NULL));
    pthread_mutex_unlock(&lock);
    return taken;
}

void area_put_back(struct area *taken)
{
    pthread_mutex_lock(&lock);
    for (; taken; taken = taken->next)
        insert(taken);
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

/* Of one buffer, at one place? */
static bool is_same(const struct area *a, const struct area *b)
{
    return a->buffer && b->buffer && a->start - a->offset == b->start - b->offset &&
           memclient_buffer_id(a->buffer->handle) == memclient_buffer_id(b->buffer->handle);
}

/* Puts into the chain what was opened, in this part of the tree, where something else is now. */
static struct area *find_stale(struct area *top, const struct area *by, struct area *chain)
{
    if (!top || top->reach <= by->start)
        return chain;
    chain = find_stale(RB_LEFT(top, entry), by, chain);
    if (top->start >= end_of(by))
        return chain;
    if (end_of(top) > by->start && !(by->kind == AREA_OPENED && is_same(top, by))) {
        top->next = chain;
        chain = top;
    }
    return find_stale(RB_RIGHT(top, entry), by, chain);
}

/* With the lock: takes that out. */
static struct area *take_stale(const struct area *by, struct area *chain)
{
    struct area *stale = find_stale(RB_ROOT(&opened), by, chain);

    for (struct area *area = stale; area != chain; area = area->next)
        RB_REMOVE(area_tree, &opened, area);
    return stale;
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
    stale = take_stale(area, take(NULL, area->start, end_of(area), &spares));
    insert(new);
    pthread_mutex_unlock(&lock);
    spares_put(&spares);
    forget(stale);
    return 0;
}

bool area_find(const void *owner, const void *address, struct area *copy)
{
    const struct area *area;

    pthread_mutex_lock(&lock);
    area = first_behind((uintptr_t)address);
    if (!area || area->start > (uintptr_t)address || (owner && area->owner != owner))
        area = find_opened(owner, (uintptr_t)address);
    if (area) {
        *copy = *area;
        if (copy->buffer)
            shared_buffer_ref(copy->buffer);
    }
    pthread_mutex_unlock(&lock);
    return area;
}

bool area_is_allocated(uint64_t start, uint64_t length)
{
    const struct area *area;
    bool is;

    pthread_mutex_lock(&lock);
    area = first_behind(start);
    is = area && area->start < start + length;
    pthread_mutex_unlock(&lock);
    return is;
}

bool area_covers(const void *owner, uint64_t start, uint64_t length)
{
    bool is;

    if (start + length < start)
        return false;
    pthread_mutex_lock(&lock);
    is = is_whole(owner, start, start + length, ALLOCATED) || is_opened(owner, start, start + length);
    pthread_mutex_unlock(&lock);
    return is;
}

bool area_is_one(const void *owner, uint64_t start, uint64_t length)
{
    bool is;

    if (start + length < start)
        return false;
    pthread_mutex_lock(&lock);
    is = is_whole(owner, start, start + length, ONE_BUFFER);
    pthread_mutex_unlock(&lock);
    return is;
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
