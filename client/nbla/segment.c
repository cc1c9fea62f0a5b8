/* SPDX-License-Identifier: Apache-2.0 */
/* See segment.h. */
#include "nbla/segment.h"

#include <stdlib.h>

#include "base/align.h"
#include "nbla/error.h"

struct segment *segment_ref(struct segment *segment)
{
    __atomic_fetch_add(&segment->refs, 1, __ATOMIC_RELAXED);
    return segment;
}

void segment_unref(struct segment *segment)
{
    if (!segment || __atomic_sub_fetch(&segment->refs, 1, __ATOMIC_ACQ_REL))
        return;
    (void)memclient_unmap(memclient_buffer_context(segment->lock_fd.buffer), segment->base, segment->length);
    lock_fd_deinit(&segment->lock_fd);
    free(segment);
}

/* Blocks that were opened may share pages: the native library has those once, as long as any of them. */
static int segment_place(struct segment *segment, struct memclient_buffer *buffer, bool opened, uint64_t at)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    uint64_t home = (uintptr_t)memclient_buffer_address(buffer);
    void *base;
    int r;

    options.offset = segment->offset;
    options.length = segment->length;
    if (!at) {
        options.flags = MEMCLIENT_MAP_ANYWHERE;
    } else if (!home || at != home + segment->offset) {
        options.flags = MEMCLIENT_MAP_UNRESERVED;
        options.address = (void *)(uintptr_t)at;
    }
    if (!opened)
        options.flags |= MEMCLIENT_MAP_OWN_IN_CHILD;
    r = memclient_map(buffer, &options, &base);
    if (!r)
        segment->base = base;
    return r;
}

int segment_map(struct memclient_buffer *buffer, bool opened, uint64_t offset, uint64_t length, void *wanted,
                struct segment **ret)
{
    uint64_t granule = memclient_buffer_granule(buffer), at = 0;
    struct segment *segment;
    int r;

    if (wanted) {
        at = (uintptr_t)wanted - offset % granule;
        if (at % granule)
            return fail(NBLA_ERROR_VALUE, "%p is not where offset %llu can be: pages have %llu bytes", wanted,
                        (unsigned long long)offset, (unsigned long long)granule);
    }
    segment = calloc(1, sizeof(*segment));
    if (!segment)
        return fail(NBLA_ERROR_MEMORY, "no memory for an object");
    segment->refs = 1;
    segment->offset = align_down(offset, granule);
    segment->length = align_up(offset + length, granule) - segment->offset;
    r = segment_place(segment, buffer, opened, at);
    if (r) {
        free(segment);
        return fail_native(r);
    }
    lock_fd_init(&segment->lock_fd, buffer, opened);
    *ret = segment;
    return 0;
}
