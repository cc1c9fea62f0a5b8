/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a mapping is to be, and what may be there already: the same bytes of the same buffer, whose pages it then
 * shares, and for the rest a reservation, or nothing.
 */
#pragma once

#include <stdint.h>

#include "core/buffer.h"
#include "core/span.h"

/* A request with its defaults filled in. */
struct map_request {
    uint64_t offset;
    uint64_t length;
    uint64_t address; /* 0 = home or anywhere */
    unsigned access;
    unsigned flags;
};

/* Where to map, and how mmap() is to treat what is there. */
struct target {
    uint64_t address; /* 0 = anywhere */
    int flags;
};

/* With the space's lock. */
int target_find(const struct memclient_buffer *buf, const struct map_request *request, struct target *target);
/* With the space's lock: for a part of it that nothing of ours is mapped at. */
int target_flags(const struct memclient_buffer *buf, const struct map_request *request, const struct span *gap,
                 int *flags);
