/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Homes of buffers that were allocated without one. A buffer's home is its fixed address, the same in every process. It
 * becomes where the buffer is mapped first in a reservation or, if the program asks later, where it is mapped longest.
 */
#include <errno.h>

#include "base/range.h"
#include "core/map.h"
#include "proto/status.h"

/* A possible home: the reservation, and the offset in it. */
struct address_candidate {
    uint64_t home;
    uint64_t reservation; /* 0 = none fits */
    uint64_t offset;
    unsigned generation;
};

/* With the space's lock: the reservation of the buffer's session that would hold all of it. */
static struct address_candidate candidate_at(const struct memclient_buffer *buf, uint64_t home)
{
    const struct memclient_reservation *res;
    struct range_entry range;

    if (!range_index_find(&process_space.reserved, home, &range) ||
        !range_encloses((struct range){range.start, range.size}, (struct range){home, buf->bytes}))
        return (struct address_candidate){0};
    res = range.value;
    return (struct address_candidate){
        .home = home,
        .reservation = res->ctx == buf->ctx ? res->id : 0,
        .offset = home - range.start,
        .generation = res->generation,
    };
}

static bool home_may_be_made(const struct memclient_buffer *buf)
{
    return !buffer_address(buf) && buffer_rights(buf) & MEMCLIENT_MANAGE;
}

/* It is no failure if the buffer or another has got a home meanwhile, or the range does not fit or is gone. */
static int home_make(struct memclient_buffer *buf, const struct address_candidate *candidate, uint64_t deadline)
{
    _cleanup_(channel_unrefp) struct channel *channel = NULL;
    int r;

    if (!candidate->reservation)
        return 0;
    r = buffer_channel(buf, deadline, &channel);
    if (r)
        return r;
    /* the reservation ended with its session */
    if (channel->generation != candidate->generation)
        return 0;
    r = rpc_place(rpc_route_of(channel, deadline), buf->id, candidate->reservation, candidate->offset);
    if (!r)
        buffer_set_address(buf, candidate->home);
    if (r == -ENOTCONN)
        return 0;
    switch (r ? fail_status() : STATUS_OK) {
    case STATUS_BUSY:
    case STATUS_ADDRESS_TAKEN:
    case STATUS_NO_RIGHT:
    case STATUS_INVALID_ARGUMENT:
    case STATUS_PUBLISHED:
        return 0;
    }
    return r;
}

int map_make_home_by(struct memclient_buffer *buf, uint64_t address, uint64_t offset, uint64_t length,
                     uint64_t deadline)
{
    struct address_candidate candidate = {0};

    if (offset > address || !home_may_be_made(buf))
        return 0;
    space_lock_read();
    if (space_is_free(&process_space, address, length))
        candidate = candidate_at(buf, address - offset);
    space_unlock();
    return home_make(buf, &candidate, deadline);
}

int map_make_home(struct memclient_buffer *buf)
{
    struct address_candidate candidate = {0};
    int r;

    if (home_may_be_made(buf)) {
        space_lock_read();
        /* the oldest mapping comes last */
        list_for_each_entry(mapping, &buf->mappings, struct mapping, in_buffer) {
            struct address_candidate here = candidate_at(buf, mapping->start - mapping->offset);

            if (here.reservation && !mapping->is_copy)
                candidate = here;
        }
        space_unlock();
    }
    r = home_make(buf, &candidate, context_deadline(buf->ctx));
    if (r || buffer_address(buf))
        return r;
    return fail_with(EADDRNOTAVAIL,
                     "buffer #%llu can have no home: it needs MANAGE and a mapping in a reservation of this session "
                     "that holds all of it, where no other buffer has its home",
                     ULL(buf->id));
}
