/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process: attached by its IPC handle, which is a token of the broker's, or mapped by a shareable
 * handle as an "interop buffer".
 *
 * Attached again, by the same handle or another one of the same memory, it lies at the same address, which is counted;
 * each detach counts down. It shares the pages with whatever else of the process has them mapped there, but for HSA's
 * own: what HSA has made or mapped itself is attached elsewhere, since an address is only one thing to HSA. An interop
 * buffer is mapped anew each time.
 */
#pragma once

#include "base/hash.h"
#include "hsa/address_map.h"
#include "hsa/topology.h"

struct attachment {
    struct address_range range;
    struct memclient_buffer *buffer; /* counted */
    bool is_described;               /* by `pool`, which is asked for when it is first needed */
    const struct pool *pool;         /* the standard one of the agent that has its first page, or NULL */
    uint64_t allowed;                /* agents by index */
    bool interop;                    /* mapped by a shareable handle; it has none of what follows */
    uint64_t refs;                   /* attached so often */
    uint64_t maps;                   /* mapped so often: once for each token, at least */
    struct memclient_token token;    /* by which it was opened: its IPC handle */
    UT_hash_handle hh;               /* by token */
};

static inline struct attachment *range_attachment(struct address_range *range)
{
    return range && range->kind == RANGE_ATTACHMENT ? container_of(range, struct attachment, range) : NULL;
}

/* Empties the hash of tokens. The attachments themselves are in the address map. */
void attachments_forget(void);

/* What a failure to open a token is called. */
hsa_status_t ipc_status(int r);
