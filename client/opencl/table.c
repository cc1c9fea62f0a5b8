/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See table.h. An ordered tree, so that an address inside finds what it is in. Imports may start where others do: then
 * the ordinal tells them apart.
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

static RB_HEAD(entries, entry) entries = RB_INITIALIZER(&entries);
TREE_GENERATE(entries, entry, by_address, compare)

void table_add(struct entry *entry)
{
    pthread_mutex_lock(&lock);
    entry->ordinal = ++ordinals;
    entry->life = table_life();
    RB_INSERT(entries, &entries, entry);
    pthread_mutex_unlock(&lock);
}

/* The first that starts there or behind. */
static struct entry *first_from(uintptr_t start)
{
    struct entry key = {.start = start};

    return RB_NFIND(entries, &entries, &key);
}

bool table_find(const void *ptr, struct entry *ret)
{
    uintptr_t address = (uintptr_t)ptr;
    struct entry *behind, *entry;
    bool found;

    pthread_mutex_lock(&lock);
    behind = address < UINTPTR_MAX ? first_from(address + 1) : NULL;
    entry = behind ? RB_PREV(entries, &entries, behind) : RB_MAX(entries, &entries);
    found = entry && address - entry->start < entry->size;
    if (found)
        *ret = *entry;
    pthread_mutex_unlock(&lock);
    return found;
}

struct entry *table_take(const void *ptr, const struct memclient_svm *svm, const void *owner)
{
    uintptr_t start = (uintptr_t)ptr;
    struct entry *entry;

    pthread_mutex_lock(&lock);
    entry = first_from(start);
    while (entry && entry->start == start && (entry->svm != svm || entry->owner != owner))
        entry = RB_NEXT(entries, &entries, entry);
    if (entry && entry->start == start)
        RB_REMOVE(entries, &entries, entry);
    else
        entry = NULL;
    pthread_mutex_unlock(&lock);
    return entry;
}

struct entry *table_take_any(const struct memclient_svm *svm)
{
    struct entry *entry;

    pthread_mutex_lock(&lock);
    RB_FOREACH(entry, entries, &entries)
        if (entry->svm == svm)
            break;
    if (entry)
        RB_REMOVE(entries, &entries, entry);
    pthread_mutex_unlock(&lock);
    return entry;
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
