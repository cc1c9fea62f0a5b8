/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pages of a range are, by all mappings that show them.
 *
 * Where mappings overlap, a page allows what any of them wants, and children get it if any of them is for children. A
 * sweep goes over a range from start to end, in spans over which all of that is the same. It takes the lock for changes
 * of the space, and does not survive a change of mappings.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/space.h"

struct span {
    uint64_t start;
    uint64_t size;
    bool mapped;       /* by any; else the rest is false */
    unsigned access;   /* the most that a mapping wants */
    bool writable;     /* certainly by a descriptor open for writing */
    bool for_children; /* some mapping is not withheld from them */
    bool stays_shared; /* some mapping does not become a copy in them */
};

/* For each property the sweep knows where the mappings that have it, and began already, end. */
enum span_property {
    SPAN_MAPPED,
    SPAN_READ,
    SPAN_WRITTEN,
    SPAN_WRITABLE,
    SPAN_FOR_CHILDREN,
    SPAN_STAYS_SHARED,
    SPAN_PROPERTIES
};

struct sweep {
    const struct mapping *next; /* by mapping_found_next() */
    uint64_t at;
    uint64_t end;
    uint64_t until[SPAN_PROPERTIES];
};

void sweep_begin(struct sweep *sweep, struct space *space, uint64_t start, uint64_t size);
/* False at the end. */
bool sweep_next(struct sweep *sweep, struct span *span);

/* How much an access allows: 0 = nothing, 1 = reading, 2 = writing as well. */
unsigned span_level(unsigned access);
