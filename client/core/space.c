/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two trees. Both are ordered by their start; since ranges of one tree do not overlap, the one
 * that could hold an address is the last that starts at or before it.
 */
#include "core/space.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/range.h"

/* Where it cannot be read. */
#define USUAL_MAP_COUNT 65530
/* This part of all mappings. */
#define FOR_OTHERS 16

static int compare_mappings(const struct mapping *a, const struct mapping *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

static int compare_reserved(const struct reserved_range *a, const struct reserved_range *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

/* libbsd's static form wants a macro of the BSDs that glibc does not have */
#define TREE static __attribute__((__unused__))

RB_GENERATE_INTERNAL(mapping_tree, mapping, entry, compare_mappings, TREE)
RB_GENERATE_INTERNAL(reserved_tree, reserved_range, entry, compare_reserved, TREE)

struct space process_space = SPACE_NULL;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static struct range range_of(const struct mapping *mapping)
{
    return (struct range){.start = mapping->start, .size = mapping->size};
}

struct mapping *space_next(struct mapping *mapping)
{
    return RB_NEXT(mapping_tree, NULL, mapping);
}

struct mapping *space_first(struct space *space, uint64_t address)
{
    struct mapping key = {.start = address};
    struct mapping *found = RB_NFIND(mapping_tree, &space->mappings, &key);
    struct mapping *before;

    if (found && found->start == address)
        return found;
    before = found ? RB_PREV(mapping_tree, NULL, found)
                   : RB_MAX(mapping_tree, &space->mappings);
    return before && range_contains(range_of(before), address) ? before : found;
}

struct mapping *space_find(struct space *space, uint64_t address)
{
    struct mapping *found = space_first(space, address);

    return found && range_contains(range_of(found), address) ? found : NULL;
}

bool space_is_free(struct space *space, uint64_t start, uint64_t size)
{
    struct mapping *found = space_first(space, start);

    return !found || !range_overlaps(range_of(found), (struct range){start, size});
}

bool space_is_covered(struct space *space, uint64_t start, uint64_t size)
{
    struct mapping *m = space_find(space, start);
    uint64_t at = start;

    if (!m || !size || size > UINT64_MAX - start)
        return false;
    for (; m && m->start <= at; m = space_next(m)) {
        at = range_end(range_of(m));
        if (at - start >= size)
            return true;
    }
    return false;
}

void space_insert(struct space *space, struct mapping *mapping)
{
    struct mapping *there = RB_INSERT(mapping_tree, &space->mappings, mapping);

    assert(!there);
    (void)there;
    space->n_mappings++;
}

void space_remove(struct space *space, struct mapping *mapping)
{
    RB_REMOVE(mapping_tree, &space->mappings, mapping);
    space->n_mappings--;
}

uint64_t space_mappings_max(void)
{
    static uint64_t most;
    char text[24];
    ssize_t n;
    int fd;

    if (most)
        return most;
    fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    (void)fd_close(fd);
    text[n > 0 ? n : 0] = '\0';
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
    space_insert(space, rest);
}

struct reserved_range *space_reserved_find(struct space *space, uint64_t address)
{
    struct reserved_range key = {.start = address};
    struct reserved_range *found = RB_NFIND(reserved_tree, &space->reserved, &key);

    if (!found || found->start != address)
        found = found ? RB_PREV(reserved_tree, NULL, found)
                      : RB_MAX(reserved_tree, &space->reserved);
    return found && address - found->start < found->size && address >= found->start ? found : NULL;
}

bool space_reserved_overlaps(struct space *space, uint64_t start, uint64_t size)
{
    struct reserved_range key = {.start = start};
    struct reserved_range *behind = RB_NFIND(reserved_tree, &space->reserved, &key);

    return space_reserved_find(space, start) || (behind && behind->start - start < size);
}

void space_reserved_insert(struct space *space, struct reserved_range *range)
{
    struct reserved_range *there = RB_INSERT(reserved_tree, &space->reserved, range);

    assert(!there);
    (void)there;
}

void space_reserved_remove(struct space *space, struct reserved_range *range)
{
    RB_REMOVE(reserved_tree, &space->reserved, range);
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
    /* given up, and made anew: it may count waiters that the child does not have */
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_init(&lock, NULL);
}
