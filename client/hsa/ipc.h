/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process: attached by its IPC handle, which is a token of the broker, or mapped by a shareable
 * handle as an "interop buffer".
 *
 * Memory that is attached again, by the same handle or by another one of the same memory, has the same address;
 * attaching and detaching count. It shares existing mappings of the process, except those that HSA made itself: then it
 * is mapped elsewhere, since an address is only one thing to HSA. An interop buffer is mapped anew each time.
 */
#pragma once

#include "base/hash.h"
#include "hsa/address_map.h"
#include "hsa/topology.h"

struct attachment {
    struct address_range range;
    struct memclient_buffer *buffer; /* counted */
    bool is_described;               /* `pool` is valid; it is requested on first use */
    const struct pool *pool;         /* the standard pool of the agent that has the first page, or NULL */
    uint64_t allowed;                /* set of agents */
    bool interop;                    /* mapped by a shareable handle; the members below are unused */
    uint64_t refs;                   /* by attaching, less detaching */
    uint64_t maps;                   /* of the native mapping: one for each token, at least */
    struct memclient_token token;    /* that opened it: its IPC handle */
    UT_hash_handle hh;               /* by token */
};

static inline struct attachment *range_attachment(struct address_range *range)
{
    return range && range->kind == RANGE_ATTACHMENT ? container_of(range, struct attachment, range) : NULL;
}

/* Empties the table of tokens. The attachments themselves are in the address map. */
void attachments_forget(void);

/* The status for r, a failure to open a token. */
hsa_status_t ipc_status(int r);
