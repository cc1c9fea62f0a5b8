/* SPDX-License-Identifier: Apache-2.0 */
/* See space.h. */
#include "core/space.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/textfile.h"

/* The default of vm.max_map_count, for where that cannot be read. */
#define USUAL_MAP_COUNT 65530
/* One in so many mappings is left for others. */
#define FOR_OTHERS 16

struct space process_space = SPACE_NULL;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

bool space_is_free(struct space *space, uint64_t start, uint64_t size)
{
    const struct interval *next = interval_from(&space->mappings, start);

    return !size || (!space_find(space, start) && (!next || next->start - start >= size));
}

void space_insert(struct space *space, struct mapping *mapping)
{
    mapping->range = (struct interval){.start = mapping->start, .last = mapping_end(mapping) - 1};
    interval_insert(&space->mappings, &mapping->range);
    space->n_mappings++;
}

void space_remove(struct space *space, struct mapping *mapping)
{
    interval_remove(&space->mappings, &mapping->range);
    space->n_mappings--;
}

uint64_t space_mappings_max(void)
{
    static uint64_t most;
    char text[24];

    if (most)
        return most;
    if (textfile_line(text, sizeof(text), "/proc/sys/vm/max_map_count"))
        most = strtoull(text, NULL, 10);
    if (!most)
        most = USUAL_MAP_COUNT;
    return most -= most / FOR_OTHERS;
}

void space_split(struct space *space, struct mapping *mapping, uint64_t at, struct mapping *rest)
{
    uint64_t head = at - mapping->start;

    assert(at > mapping->start && head < mapping->size);
    *rest = *mapping;
    rest->start = at;
    rest->size = mapping->size - head;
    rest->offset = mapping->offset + head;
    mapping->size = head;
    mapping->range.last = at - 1;
    interval_nodes_refresh(&mapping->range);
    space_insert(space, rest);
}

void space_lock(void)
{
    pthread_rwlock_wrlock(&lock);
}

void space_lock_read(void)
{
    pthread_rwlock_rdlock(&lock);
}

void space_unlock(void)
{
    pthread_rwlock_unlock(&lock);
}

void space_fork_child(void)
{
    /* it may count waiters that the child does not have, so it is initialised again */
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_init(&lock, NULL);
}
