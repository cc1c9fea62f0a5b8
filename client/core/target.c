/* SPDX-License-Identifier: Apache-2.0 */
/* See target.h. */
#include "core/target.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/range.h"
#include "core/map.h"

/* With the space's lock: is nothing of ours mapped there but the same bytes? */
static bool target_is_only_this(const struct memclient_buffer *buf, const struct map_request *request, uint64_t address)
{
    if (request->flags & MEMCLIENT_MAP_ALONE)
        return space_is_free(&process_space, address, request->length);
    for (const struct mapping *m = space_overlapping(&process_space, address, request->length); m;
         m = mapping_found_next(m))
        if (!mapping_is_of(m, buf) || m->start - m->offset != address - request->offset)
            return false;
    return true;
}

static int target_refuse(uint64_t start, uint64_t size)
{
    return fail_with(EADDRINUSE, "0x%llx-0x%llx: something is mapped there already", ULL(start), ULL(start + size));
}

int target_flags(const struct memclient_buffer *buf, const struct map_request *request, const struct span *gap,
                 int *flags)
{
    struct range_entry range;
    bool reserved = range_index_find(&process_space.reserved, gap->start, &range);

    /* the broker, which gives homes, knows nothing of a private range, so the home is in it by accident */
    if (!request->address && reserved && !((const struct memclient_reservation *)range.value)->id)
        return fail_with(EADDRINUSE, "0x%llx, the home of buffer #%llu: this process has reserved that for itself",
                         ULL(gap->start), ULL(buf->id));
    *flags = MAP_FIXED_NOREPLACE;
    if (request->flags & MEMCLIENT_MAP_UNRESERVED)
        return space_is_reserved(&process_space, gap->start, gap->size) ? target_refuse(gap->start, gap->size) : 0;
    if (reserved && range_encloses((struct range){range.start, range.size}, (struct range){gap->start, gap->size}))
        *flags = MAP_FIXED;
    else if (request->address)
        return fail_with(EADDRNOTAVAIL, "0x%llx-0x%llx is not inside one reservation of this process", ULL(gap->start),
                         ULL(gap->start + gap->size));
    return 0;
}

int target_find(const struct memclient_buffer *buf, const struct map_request *request, struct target *target)
{
    uint64_t home = buffer_address(buf);
    uint64_t address = request->address;
    struct sweep sweep;
    struct span span;
    int r = 0;

    if (!address) {
        if (request->flags & MEMCLIENT_MAP_NOT_HOME || (!home && request->flags & MEMCLIENT_MAP_ANYWHERE)) {
            *target = (struct target){0};
            return 0;
        }
        if (!home)
            return fail_with(EADDRNOTAVAIL, "buffer #%llu has no home address: map it into a reservation, or anywhere",
                             ULL(buf->id));
        address = home + request->offset;
    }
    if (!target_is_only_this(buf, request, address))
        return target_refuse(address, request->length);
    *target = (struct target){.address = address};
    sweep_begin(&sweep, &process_space, address, request->length);
    while (!r && sweep_next(&sweep, &span))
        if (!span.mapped)
            r = target_flags(buf, request, &span, &target->flags);
    return r;
}
