/* SPDX-License-Identifier: Apache-2.0 */
/* See span.h. */
#include "core/span.h"

#include <memclient/memclient.h>

unsigned span_level(unsigned access)
{
    return access & MEMCLIENT_WRITE ? 2 : access & MEMCLIENT_READ ? 1 : 0;
}

void sweep_begin(struct sweep *sweep, struct space *space, uint64_t start, uint64_t size)
{
    *sweep = (struct sweep){
        .next = space_overlapping(space, start, size),
        .at = start,
        .end = start + size,
    };
}

static void sweep_extend(struct sweep *sweep, enum span_property property, bool has, uint64_t end)
{
    if (has && end > sweep->until[property])
        sweep->until[property] = end;
}

static void sweep_enter(struct sweep *sweep, const struct mapping *m)
{
    uint64_t end = m->start + m->size;

    sweep_extend(sweep, SPAN_MAPPED, true, end);
    sweep_extend(sweep, SPAN_READ, span_level(m->access) >= 1, end);
    sweep_extend(sweep, SPAN_WRITTEN, span_level(m->access) == 2, end);
    sweep_extend(sweep, SPAN_WRITABLE, m->writable, end);
    sweep_extend(sweep, SPAN_FOR_CHILDREN, !m->dont_copy, end);
    sweep_extend(sweep, SPAN_STAYS_SHARED, !m->own_in_child, end);
}

bool sweep_next(struct sweep *sweep, struct span *span)
{
    uint64_t at = sweep->at, end = sweep->end;
    const uint64_t *until = sweep->until;

    if (at >= end)
        return false;
    for (; sweep->next && sweep->next->start <= at; sweep->next = mapping_found_next(sweep->next))
        sweep_enter(sweep, sweep->next);
    if (sweep->next && sweep->next->start < end)
        end = sweep->next->start;
    for (unsigned i = 0; i < SPAN_PROPERTIES; i++)
        if (until[i] > at && until[i] < end)
            end = until[i];
    *span = (struct span){
        .start = at,
        .size = end - at,
        .mapped = until[SPAN_MAPPED] > at,
        .access = until[SPAN_WRITTEN] > at ? MEMCLIENT_READ | MEMCLIENT_WRITE
                  : until[SPAN_READ] > at  ? MEMCLIENT_READ
                                           : MEMCLIENT_NO_ACCESS,
        .writable = until[SPAN_WRITABLE] > at,
        .for_children = until[SPAN_FOR_CHILDREN] > at,
        .stays_shared = until[SPAN_STAYS_SHARED] > at,
    };
    sweep->at = end;
    return true;
}
