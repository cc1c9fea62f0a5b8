/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See table.h. An ordered tree, so that an address inside finds what it is in. Imports may overlap anything: each node
 * knows how far what is below it reaches, and where two start together, the ordinal tells them apart.
 */
#include "opencl/table.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t ordinals;
static atomic_uint life;

static int compare(const struct entry *a, const struct entry *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

static uintptr_t end_of(const struct entry *entry)
{
    return entry->start + entry->size;
}

/* Sums up from there to the root. */
static void augment(struct entry *entry)
{
    for (; entry; entry = RB_PARENT(entry, by_address)) {
        const struct entry *left = RB_LEFT(entry, by_address), *right = RB_RIGHT(entry, by_address);

        entry->reach = end_of(entry);
        if (left && left->reach > entry->reach)
            entry->reach = left->reach;
        if (right && right->reach > entry->reach)
            entry->reach = right->reach;
    }
}

static RB_HEAD(entries, entry) entries = RB_INITIALIZER(&entries);
#undef RB_AUGMENT
#define RB_AUGMENT(entry) augment(entry)
TREE_GENERATE(entries, entry, by_address, compare)

void table_add(struct entry *entry)
{
    pthread_mutex_lock(&lock);
    entry->ordinal = ++ordinals;
    entry->life = table_life();
    RB_INSERT(entries, &entries, entry);
    augment(entry);
    pthread_mutex_unlock(&lock);
}

/* The last in this part of the tree that the address is in. */
static const struct entry *last_with(const struct entry *top, uintptr_t address, const void *owner)
{
    const struct entry *found;

    if (!top || top->reach <= address)
        return NULL;
    if (top->start <= address) {
        found = last_with(RB_RIGHT(top, by_address), address, owner);
        if (found)
            return found;
        if (address < end_of(top) && (!owner || top->owner == owner))
            return top;
    }
    return last_with(RB_LEFT(top, by_address), address, owner);
}

bool table_find(const void *ptr, const void *owner, struct entry *ret)
{
    const struct entry *found;

    pthread_mutex_lock(&lock);
    found = last_with(RB_ROOT(&entries), (uintptr_t)ptr, owner);
    if (found)
        *ret = *found;
    pthread_mutex_unlock(&lock);
    return found;
}

size_t table_left(const void *ptr)
{
    uintptr_t address = (uintptr_t)ptr, reach = address;
    const struct entry *left, *at;

    pthread_mutex_lock(&lock);
    for (at = RB_ROOT(&entries); at;) {
        if (at->start > address) {
            at = RB_LEFT(at, by_address);
            continue;
        }
        /* all that is to the left starts before it */
        left = RB_LEFT(at, by_address);
        if (left && left->reach > reach)
            reach = left->reach;
        if (end_of(at) > reach)
            reach = end_of(at);
        at = RB_RIGHT(at, by_address);
    }
    pthread_mutex_unlock(&lock);
    return reach - address;
}

struct entry *table_take(const void *ptr, const struct memclient_svm *svm, const void *owner)
{
    struct entry beyond = {.start = (uintptr_t)ptr, .ordinal = UINT64_MAX};
    struct entry *entry;

    pthread_mutex_lock(&lock);
    entry = RB_NFIND(entries, &entries, &beyond);
    entry = entry ? RB_PREV(entries, &entries, entry) : RB_MAX(entries, &entries);
    while (entry && entry->start == beyond.start && (entry->svm != svm || entry->owner != owner))
        entry = RB_PREV(entries, &entries, entry);
    if (entry && entry->start == beyond.start)
        RB_REMOVE(entries, &entries, entry);
    else
        entry = NULL;
    pthread_mutex_unlock(&lock);
    return entry;
}

void table_take_all(const struct memclient_svm *svm, struct list *list)
{
    struct entry *entry, *next;

    pthread_mutex_lock(&lock);
    RB_FOREACH_SAFE(entry, entries, &entries, next)
        if (entry->svm == svm) {
            RB_REMOVE(entries, &entries, entry);
            list_append(list, &entry->waiting);
        }
    pthread_mutex_unlock(&lock);
}

unsigned table_life(void)
{
    return atomic_load_explicit(&life, memory_order_relaxed);
}

void table_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void table_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

void table_in_child(void)
{
    atomic_fetch_add_explicit(&life, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}
