/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory with an address that blocks have parts of: a buffer of the broker, or a part of one, mapped. Counted: each
 * block has a count, whether it was divided from another or not, and the last gives it back.
 */
#pragma once

#include "nbla/lock_fd.h"

struct segment {
    unsigned refs;
    struct lock_fd lock_fd;
    char *base;
    uint64_t offset; /* of base, in the buffer */
    uint64_t length;
};

/*
 * Maps the bytes [offset, offset + length) of the buffer, which it takes over on success: at home, or wherever there is
 * room; with `wanted`, so that the first of them is there.
 */
int segment_map(struct memclient_buffer *buffer, bool opened, uint64_t offset, uint64_t length, void *wanted,
                struct segment **segment);
struct segment *segment_ref(struct segment *segment);
/* Accepts NULL. */
void segment_unref(struct segment *segment);

/* Where the address is in the buffer. */
static inline uint64_t segment_offset(const struct segment *segment, const void *address)
{
    return segment->offset + (uint64_t)((const char *)address - segment->base);
}
