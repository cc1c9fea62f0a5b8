/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process, attached by its IPC handle: a token of the broker's.
 *
 * Attached again it lies at the same address, which is counted; each detach counts down.
 */
#pragma once

#include "hsa/place.h"
#include "hsa/topology.h"

struct attachment {
    struct place place;
    struct memclient_buffer *buffer; /* counted */
    const struct pool *pool;         /* the standard one of the node that has its first page */
    uint64_t refs;                   /* attached so often */
    uint64_t allowed;                /* agents by index */
    struct memclient_token token;    /* by which it was opened: its IPC handle */
};

static inline struct attachment *place_attachment(struct place *place)
{
    return container_of(place, struct attachment, place);
}
