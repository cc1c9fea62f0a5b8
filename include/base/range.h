/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Half-open ranges of uint64_t: [start, start + size), of addresses and of offsets in a buffer.
 *
 * All questions are answered by subtraction after a comparison, never by adding start and size, so that a range near
 * UINT64_MAX gives the right answer, and so do numbers that a peer chose.
 *
 * An empty range contains nothing, overlaps nothing, and lies in bounds up to
 * and including the end.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t start;
    uint64_t size;
};

/* One past the last; only for ranges that do not end beyond UINT64_MAX. */
static inline uint64_t range_end(struct range range)
{
    assert(range.size <= UINT64_MAX - range.start);
    return range.start + range.size;
}

/* Does [offset, offset + size) lie within [0, limit)? */
static inline bool range_in_bounds(uint64_t offset, uint64_t size, uint64_t limit)
{
    return offset <= limit && size <= limit - offset;
}

static inline bool range_contains(struct range range, uint64_t point)
{
    return point >= range.start && point - range.start < range.size;
}

/* Does `outer` hold all of `inner`? */
static inline bool range_encloses(struct range outer, struct range inner)
{
    return inner.start >= outer.start && range_in_bounds(inner.start - outer.start, inner.size, outer.size);
}

static inline bool range_overlaps(struct range a, struct range b)
{
    if (!a.size || !b.size)
        return false;
    return a.start <= b.start ? b.start - a.start < a.size : a.start - b.start < b.size;
}
