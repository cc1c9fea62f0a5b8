/* SPDX-License-Identifier: Apache-2.0 */
/* See quarantine.h. One lock for all of them: they are for finding mistakes, not for speed. */
#include "opencl/quarantine.h"

#include <pthread.h>

#include "opencl/table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void quarantine_init(struct quarantine *quarantine, uint64_t most)
{
    list_init(&quarantine->entries);
    quarantine->bytes = 0;
    quarantine->most = most;
}

void quarantine_put(struct quarantine *quarantine, struct entry *entry)
{
    pthread_mutex_lock(&lock);
    list_append(&quarantine->entries, &entry->waiting);
    quarantine->bytes += entry->size;
    pthread_mutex_unlock(&lock);
}

struct entry *quarantine_take(struct quarantine *quarantine, uint64_t most)
{
    struct entry *entry = NULL;

    pthread_mutex_lock(&lock);
    if (quarantine->bytes > most) {
        entry = container_of(list_pop(&quarantine->entries), struct entry, waiting);
        quarantine->bytes -= entry->size;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

void quarantine_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void quarantine_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

void quarantine_in_child(void)
{
    pthread_mutex_unlock(&lock);
}
