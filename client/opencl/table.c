/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. Imports may overlap any entry. Of two that start together, the ordinal says which is newer. */
#include "opencl/table.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct interval_tree entries;
static atomic_uint generation;

static struct entry *entry_of(struct interval *range)
{
    return container_of(range, struct entry, range);
}

void table_add(struct entry *entry, const void *owner)
{
    pthread_mutex_lock(&lock);
    entry->range = (struct interval){.start = entry->start, .last = entry->start + entry->size - 1, .owner = owner};
    entry->generation = table_generation();
    interval_insert(&entries, &entry->range);
    pthread_mutex_unlock(&lock);
}

bool table_find(const void *ptr, const void *owner, struct entry *ret)
{
    struct interval *found;

    pthread_mutex_lock(&lock);
    found = interval_innermost(&entries, (uintptr_t)ptr, owner);
    if (found)
        *ret = *entry_of(found);
    pthread_mutex_unlock(&lock);
    return found;
}

size_t table_left(const void *ptr)
{
    const struct interval *furthest;
    size_t left;

    pthread_mutex_lock(&lock);
    furthest = interval_furthest(&entries, (uintptr_t)ptr, NULL);
    left = furthest ? furthest->last - (uintptr_t)ptr + 1 : 0;
    pthread_mutex_unlock(&lock);
    return left;
}

struct entry *table_take(const void *ptr, const struct memclient_svm *svm, const void *owner)
{
    struct interval *range, *newest = NULL;

    pthread_mutex_lock(&lock);
    range = interval_at(&entries, (uintptr_t)ptr);
    for (; range && range->start == (uintptr_t)ptr; range = interval_next(range))
        if (entry_of(range)->svm == svm && range->owner == owner)
            newest = range;
    if (newest)
        interval_remove(&entries, newest);
    pthread_mutex_unlock(&lock);
    return newest ? entry_of(newest) : NULL;
}

void table_take_all(const struct memclient_svm *svm, struct list *list)
{
    struct interval *next;

    pthread_mutex_lock(&lock);
    for (struct interval *range = interval_from(&entries, 0); range; range = next) {
        next = interval_next(range);
        if (entry_of(range)->svm != svm)
            continue;
        interval_remove(&entries, range);
        list_append(list, &entry_of(range)->waiting);
    }
    pthread_mutex_unlock(&lock);
}

void quarantine_put(struct quarantine *quarantine, struct entry *entry)
{
    pthread_mutex_lock(&lock);
    list_append(&quarantine->entries, &entry->waiting);
    quarantine->bytes += entry->size;
    pthread_mutex_unlock(&lock);
}

struct entry *quarantine_take(struct quarantine *quarantine, uint64_t max_bytes)
{
    struct entry *entry = NULL;

    pthread_mutex_lock(&lock);
    if (quarantine->bytes > max_bytes) {
        entry = container_of(list_pop(&quarantine->entries), struct entry, waiting);
        quarantine->bytes -= entry->size;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

unsigned table_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
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
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}
