/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree, ordered by where ranges start; of those that start at one address the larger comes first, so that
 * an inner range always comes behind the outer one. The innermost that holds an address is then the last one that holds
 * it. Each node knows how far its subtree reaches, so subtrees that end before the address are passed by.
 */
#include "umf/tracker.h"

#include <assert.h>
#include <pthread.h>

static int compare(const struct tracked *a, const struct tracked *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* The last byte. */
static uint64_t end_of(const struct tracked *tracked)
{
    return tracked->start + (tracked->size ? tracked->size - 1 : 0);
}

static void augment(struct tracked *tracked)
{
    const struct tracked *left, *right;

    for (; tracked; tracked = RB_PARENT(tracked, entry)) {
        left = RB_LEFT(tracked, entry);
        right = RB_RIGHT(tracked, entry);
        tracked->reach = end_of(tracked);
        if (left && left->reach > tracked->reach)
            tracked->reach = left->reach;
        if (right && right->reach > tracked->reach)
            tracked->reach = right->reach;
    }
}

RB_HEAD(tracked_tree, tracked);
#undef RB_AUGMENT
#define RB_AUGMENT(tracked) augment(tracked)
TREE_GENERATE(tracked_tree, tracked, entry, compare)

static struct tracked_tree tree = RB_INITIALIZER(0);
static uint64_t sequence;

/* ---- the lock -------------------------------------------------------------------------------------------- */

#define LOCKS 16

/* Writers go first: there are few of them, and readers never stop coming. */
static struct {
    pthread_rwlock_t lock;
} __attribute__((__aligned__(128))) locks[LOCKS] = {
    [0 ... LOCKS - 1] = {PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP},
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

/* Given up, and then made anew: they count waiters, and have an owner, that the child does not have. */
void tracker_fork_child(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

    tracker_unlock();
    for (unsigned i = 0; i < LOCKS; i++)
        locks[i].lock = fresh;
}

/* ---- finding --------------------------------------------------------------------------------------------- */

static bool holds(const struct tracked *tracked, uint64_t address)
{
    return address >= tracked->start && address <= end_of(tracked);
}

/* The last in order that holds the address, of a subtree; recursion is as deep as the tree. */
static struct tracked *last_that_holds(struct tracked *tracked, uint64_t address)
{
    struct tracked *found;

    while (tracked && tracked->reach >= address) {
        if (tracked->start <= address) {
            found = last_that_holds(RB_RIGHT(tracked, entry), address);
            if (found)
                return found;
            if (holds(tracked, address))
                return tracked;
        }
        tracked = RB_LEFT(tracked, entry);
    }
    return NULL;
}

struct tracked *tracker_find(const void *ptr)
{
    return last_that_holds(RB_ROOT(&tree), (uintptr_t)ptr);
}

struct tracked *tracker_next_twin(struct tracked *tracked)
{
    struct tracked *other = RB_PREV(tracked_tree, NULL, tracked);

    return other && other->start == tracked->start && other->size == tracked->size ? other : NULL;
}

/* ---- changing -------------------------------------------------------------------------------------------- */

void tracker_insert(struct tracked *tracked)
{
    struct tracked *there;

    tracked->sequence = ++sequence;
    RB_LEFT(tracked, entry) = RB_RIGHT(tracked, entry) = NULL;
    tracked->reach = end_of(tracked);
    there = RB_INSERT(tracked_tree, &tree, tracked);
    assert(!there);
    (void)there;
}

void tracker_remove(struct tracked *tracked)
{
    RB_REMOVE(tracked_tree, &tree, tracked);
}
