/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this library has mapped where in the process's address space.
 *
 * There are two ordered sets of ranges: mappings, which may overlap (base/interval.h), and reservations, which do not
 * overlap each other, and in which mappings may lie (base/range_index.h). The sets are plain data. A function that
 * changes the address space changes them as well under space_lock(), so that one is never seen without the other.
 *
 * Mappings overlap where the same bytes of one buffer were mapped several times at the same address, by any handles.
 * The pages are there once: they come with the first of these mappings, go with the last, and meanwhile allow what any
 * of them wants (core/span.h).
 *
 * A mapping is split where a part of it is unmapped or gets other access. Parts are never joined again: they would have
 * to be compared at every change, to save a few bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/interval.h"
#include "base/list.h"
#include "base/range_index.h"

struct memclient_buffer;
struct memclient_reservation;

struct mapping {
    struct interval range; /* of start and size, as the index has it */
    uint64_t start;
    uint64_t size;
    struct memclient_buffer *buffer; /* counted by the caller of space_insert() */
    uint64_t offset;                 /* in the buffer, of `start` */
    unsigned access;                 /* MEMCLIENT_READ, with WRITE, or MEMCLIENT_NO_ACCESS */
    unsigned former;                 /* the same, while a change may have to be taken back */
    bool writable;                   /* may be made writable: the handle could write when it was made */
    bool by_writer;                  /* some of its pages are by a descriptor for writing, which may be another's */
    bool at_home;                    /* the caller gave no address */
    bool dont_copy;                  /* not for children */
    bool own_in_child;               /* children get a copy of their own */
    bool is_copy;                    /* such a copy: not all of it is the buffer's pages */
    struct list in_buffer;           /* among the buffer's mappings; linked by the caller of space_insert() */
    struct mapping *taken;           /* the next one of a change, or of those to be dropped */
};

static inline uint64_t mapping_end(const struct mapping *mapping)
{
    return mapping->start + mapping->size;
}

/* NULL for NULL. */
static inline struct mapping *mapping_of(struct interval *range)
{
    return range ? container_of(range, struct mapping, range) : NULL;
}

/* The next one that space_overlapping() found, or NULL. */
static inline struct mapping *mapping_found_next(const struct mapping *mapping)
{
    return mapping_of(mapping->range.found);
}

struct space {
    struct interval_tree mappings;
    struct range_index reserved; /* to struct memclient_reservation */
    uint64_t n_mappings;
};

#define SPACE_NULL ((struct space){.n_mappings = 0})

/* The mapping that holds the address, of several the one that reaches furthest; or NULL. */
static inline struct mapping *space_find(struct space *space, uint64_t address)
{
    return mapping_of(interval_furthest(&space->mappings, address, NULL));
}

/* The first of all mappings, in order of their starts; or NULL. */
static inline struct mapping *space_first(struct space *space)
{
    return mapping_of(interval_from(&space->mappings, 0));
}

static inline struct mapping *space_next(struct mapping *mapping)
{
    return mapping_of(interval_next(&mapping->range));
}

/* Is nothing mapped in the range? */
bool space_is_free(struct space *space, uint64_t start, uint64_t size);
/* With the lock for changes: all mappings that overlap the range, by start, linked for mapping_found_next(). */
static inline struct mapping *space_overlapping(struct space *space, uint64_t start, uint64_t size)
{
    return mapping_of(interval_overlapping(&space->mappings, start, start + size - 1));
}

/*
 * With the lock: how many mappings of buffers a process may have. A part of what the kernel allows is left for its
 * heap, threads and libraries, few of which can cope with being refused one.
 */
uint64_t space_mappings_max(void);
/* The mappings that it overlaps must show the same bytes. */
void space_insert(struct space *space, struct mapping *mapping);
void space_remove(struct space *space, struct mapping *mapping);
/* Cuts inside a mapping: `rest` becomes the part from `at` on, and is inserted. */
void space_split(struct space *space, struct mapping *mapping, uint64_t at, struct mapping *rest);

/* Does any reservation overlap the range? */
static inline bool space_is_reserved(struct space *space, uint64_t start, uint64_t size)
{
    struct range_entry first;

    return range_index_next(&space->reserved, start, &first) && (first.start <= start || first.start - start < size);
}

/* The process's own, and its lock. */
extern struct space process_space;
void space_lock(void);      /* to change it */
void space_lock_read(void); /* to read it */
void space_unlock(void);
void space_fork_child(void); /* gives it up, in a child */
