/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sets are trees, ordered by where ranges start; of those that start at one address the larger comes first, so that
 * an inner range always comes behind the outer one. The last that starts at or before an address, or one that it lies
 * in, is the innermost that holds it, since what nests is all that may overlap.
 */
#include "umf/tracker.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

RB_HEAD(tracked_tree, tracked);

static int compare(const struct tracked *a, const struct tracked *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

TREE_GENERATE(tracked_tree, tracked, entry, compare)

static struct tracked_tree trees[] = {
    [TRACKED_OWN] = RB_INITIALIZER(0),
    [TRACKED_OPENED] = RB_INITIALIZER(0),
};
static uint64_t sequence;

/* ---- the lock -------------------------------------------------------------------------------------------- */

#define LOCKS 8

static struct {
    pthread_rwlock_t lock;
} __attribute__((__aligned__(128))) locks[LOCKS] = {
    [0 ... LOCKS - 1] = {PTHREAD_RWLOCK_INITIALIZER},
};

/* A thread's own one of them. */
static pthread_rwlock_t *reader_lock(void)
{
    static unsigned threads;
    static __thread unsigned mine; /* 0 = none yet */

    if (!mine)
        mine = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % LOCKS + 1;
    return &locks[mine - 1].lock;
}

void tracker_lock_read(void)
{
    pthread_rwlock_rdlock(reader_lock());
}

void tracker_unlock_read(void)
{
    pthread_rwlock_unlock(reader_lock());
}

void tracker_lock(void)
{
    for (unsigned i = 0; i < LOCKS; i++)
        pthread_rwlock_wrlock(&locks[i].lock);
}

void tracker_unlock(void)
{
    for (unsigned i = LOCKS; i--;)
        pthread_rwlock_unlock(&locks[i].lock);
}

void tracker_fork_prepare(void)
{
    tracker_lock();
}

void tracker_fork_parent(void)
{
    tracker_unlock();
}

void tracker_fork_child(void)
{
    tracker_unlock();
    /* made anew: they may count waiters that the child does not have */
    for (unsigned i = 0; i < LOCKS; i++)
        (void)pthread_rwlock_init(&locks[i].lock, NULL);
}

/* ---- finding --------------------------------------------------------------------------------------------- */

static size_t span(const struct tracked *tracked)
{
    return tracked->size ? tracked->size : 1;
}

static bool holds(const struct tracked *tracked, uint64_t address)
{
    return address - tracked->start < span(tracked) && address >= tracked->start;
}

/* The last that starts at or before the address. */
static struct tracked *last_before(enum tracked_kind kind, uint64_t address)
{
    struct tracked key = {.start = address, .sequence = UINT64_MAX};
    struct tracked *found = RB_NFIND(tracked_tree, &trees[kind], &key);

    /* the key has the smallest size and the last sequence, so it comes behind all that start with it */
    return found ? RB_PREV(tracked_tree, NULL, found) : RB_MAX(tracked_tree, &trees[kind]);
}

static struct tracked *find(enum tracked_kind kind, uint64_t address)
{
    struct tracked *tracked = last_before(kind, address);

    while (tracked && !holds(tracked, address))
        tracked = tracked->outer;
    return tracked;
}

struct tracked *tracker_find(enum tracked_kind kind, const void *ptr)
{
    return find(kind, (uintptr_t)ptr);
}

struct tracked *tracker_find_base(enum tracked_kind kind, const void *ptr, umf_memory_pool_handle_t pool)
{
    struct tracked *tracked = find(kind, (uintptr_t)ptr);

    while (tracked && !(tracked->start == (uintptr_t)ptr && tracked->pool == pool))
        tracked = tracked->outer;
    return tracked;
}

/* ---- changing -------------------------------------------------------------------------------------------- */

static void tracked_free(struct tracked *tracked)
{
    tracker_remove(tracked);
    free(tracked->ipc_data);
    free(tracked);
}

/* Of what begins inside of a range, the first; NULL if nothing does. */
static struct tracked *first_inside(enum tracked_kind kind, uint64_t start, size_t size)
{
    struct tracked *before = last_before(kind, start);
    struct tracked *next = before ? RB_NEXT(tracked_tree, NULL, before) : RB_MIN(tracked_tree, &trees[kind]);

    return next && next->start - start < size ? next : NULL;
}

static void insert_as_it_is(struct tracked *tracked)
{
    struct tracked *there = RB_INSERT(tracked_tree, &trees[tracked->kind], tracked);

    assert(!there);
    (void)there;
}

static bool encloses(const struct tracked *outer, const struct tracked *inner)
{
    return holds(outer, inner->start) && span(inner) <= span(outer) - (inner->start - outer->start);
}

/* What is there and can be there no more if this one is; NULL if it can. */
static struct tracked *collision(const struct tracked *tracked)
{
    struct tracked *there = first_inside(tracked->kind, tracked->start, span(tracked));

    if (!there)
        there = find(tracked->kind, tracked->start);
    return there && !encloses(there, tracked) ? there : NULL;
}

bool tracker_collides(const struct tracked *tracked)
{
    return collision(tracked);
}

void tracker_insert(struct tracked *tracked)
{
    struct tracked *there;

    while ((there = collision(tracked)))
        tracked_free(there);
    tracked->sequence = ++sequence;
    tracked->outer = find(tracked->kind, tracked->start);
    insert_as_it_is(tracked);
}

/* What lies in `from`, at or behind an address, lies in `to` from now on. */
static void move_inner(struct tracked *from, uint64_t start, struct tracked *to)
{
    struct tracked *inner = RB_NEXT(tracked_tree, NULL, from);

    for (; inner && holds(from, inner->start); inner = RB_NEXT(tracked_tree, NULL, inner))
        if (inner->outer == from && inner->start >= start)
            inner->outer = to;
}

void tracker_remove(struct tracked *tracked)
{
    move_inner(tracked, tracked->start, tracked->outer);
    RB_REMOVE(tracked_tree, &trees[tracked->kind], tracked);
}

/* A size has a part in the order, so it is changed outside of the tree. */
static void resize(struct tracked *tracked, size_t size)
{
    RB_REMOVE(tracked_tree, &trees[tracked->kind], tracked);
    tracked->size = size;
    insert_as_it_is(tracked);
}

void tracker_split(struct tracked *tracked, size_t size, struct tracked *rest)
{
    *rest = (struct tracked){
        .outer = tracked->outer,
        .kind = tracked->kind,
        .start = tracked->start + size,
        .size = tracked->size - size,
        .sequence = tracked->sequence,
        .pool = tracked->pool,
    };
    move_inner(tracked, rest->start, rest);
    resize(tracked, size);
    insert_as_it_is(rest);
}

void tracker_merge(struct tracked *low, struct tracked *high)
{
    size_t size = low->size + high->size;

    move_inner(high, high->start, low);
    RB_REMOVE(tracked_tree, &trees[high->kind], high);
    resize(low, size);
}

struct tracked *tracker_take_pool(umf_memory_pool_handle_t pool)
{
    struct tracked *taken = NULL, *next;

    for (struct tracked *tracked = RB_MIN(tracked_tree, &trees[TRACKED_OWN]); tracked; tracked = next) {
        next = RB_NEXT(tracked_tree, NULL, tracked);
        if (tracked->pool != pool)
            continue;
        tracker_remove(tracked);
        tracked->outer = taken;
        taken = tracked;
    }
    return taken;
}
