/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A range is addresses for chunks, with room behind them. Chunks are mapped behind each other, from the bottom up, and
 * unmapped from the top.
 *
 * A device lock belongs to the range, not to its chunks, which other ranges may show as well: a range that locks has a
 * lock_fd of its own for each chunk that it shows.
 */
#pragma once

#include "nbla/lease.h"
#include "nbla/physical.h"

struct range {
    struct memclient_context *ctx;
    struct memclient_reservation *reservation; /* NULL: each chunk is at its home */
    struct lease *lease;                       /* that it is part of, or NULL */
    bool is_wanted; /* just there, even if other users of the process have it mapped; else anywhere, to grow */
    bool had_home;  /* a chunk may have had its home in it */
    uint64_t base;
    uint64_t used;        /* bytes that are mapped */
    uint64_t size;        /* of the reservation, or the part */
    struct chunks chunks; /* that are mapped, in order */
    bool locked;
    struct lock_fd *lock_fds; /* of the first n_lock_fds chunks, once the range was locked */
    size_t n_lock_fds;
};

/* Maps the chunks, which all have memory, `total` bytes together, in addresses that it finds. The range is empty. */
int range_bind(struct range *range, struct memclient_context *ctx, const struct chunks *chunks, uint64_t total);
/* Maps chunks behind those: 1, or 0 if there is no room for them. On failure nothing has changed. */
int range_append(struct range *range, nbla_physical_memory *const *p, size_t n, uint64_t total);
/* Unmaps all chunks and releases the addresses. The range is empty then. */
void range_unbind(struct range *range);

/* Like nbla_memory_lock_device() and so on, until the range is unbound. Chunks that are appended are locked as well. */
void range_lock(struct range *range);
void range_unlock(struct range *range);
nbla_device_memory_state range_state(struct range *range);
