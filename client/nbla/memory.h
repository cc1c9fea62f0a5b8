/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class: bytes, links, the lock, the list of chunks, and the checks that nnabla makes before it calls the derived
 * class. What a kind of memory does is a table of operations, for the library's kinds and for programs' own.
 *
 * A link never dangles: a memory knows all links that lead to it, and clears them when it is destroyed. A merged block
 * keeps its links, as in nnabla, and may live long with them.
 */
#pragma once

#include <memclient/nbla.h>

#include "base/list.h"
#include "nbla/physical.h"

struct link {
    nbla_memory *to; /* or NULL */
    struct list in;  /* of to->links */
};

struct nbla_memory {
    const struct nbla_memory_ops *ops;
    void *priv;
    nbla_memory_type type;
    char *device_id;
    size_t bytes;
    int64_t requested; /* negative = bytes */
    void *pointer;
    bool locked;
    struct link next;
    struct link prev;
    struct list links; /* that lead here */
    struct chunks chunks;
};

/*
 * Opens memory of type normal: the part [offset, offset + length) of the buffer, of which it takes a reference on
 * success; with `wanted`, there.
 */
int normal_open(struct memclient_buffer *buffer, uint64_t offset, uint64_t length, void *wanted, nbla_memory **memory);

/* An operation, or NULL, also where the table is that of an older version, which ends before it. */
#define memory_op(memory, name) \
    (offsetof(struct nbla_memory_ops, name) < (memory)->ops->size ? (memory)->ops->name : NULL)
