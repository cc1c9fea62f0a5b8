/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a mapping goes, and what may be there already: the same bytes of the same buffer, whose pages it then shares,
 * and apart from these a reservation, or nothing.
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

/* Where to map, and mmap()'s flags about what is there. */
struct target {
    uint64_t address; /* 0 = anywhere */
    int flags;
};

/* With the space's lock. */
int target_find(const struct memclient_buffer *buf, const struct map_request *request, struct target *target);
/* With the space's lock: the flags for a part of it where nothing of ours is mapped. */
int target_flags(const struct memclient_buffer *buf, const struct map_request *request, const struct span *gap,
                 int *flags);
