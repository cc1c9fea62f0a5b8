/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses for chunks, with room behind them: chunks are mapped behind each other, from the bottom up, and taken out
 * from the top.
 *
 * Locks of the device are the range's and not the chunks', which other ranges may show as well: each range that locks
 * has holdings of its own of what it shows.
 */
#pragma once

#include "nbla/lease.h"
#include "nbla/physical.h"

struct range {
    struct memclient *ctx;
    struct memclient_reservation *reservation; /* NULL: each chunk is at its home */
    struct lease *lease;  /* that it is part of, or NULL */
    bool is_wanted;       /* there, also over what others have mapped; else addresses of its own, to grow in, do */
    bool had_home;        /* a chunk may have had its home in it */
    uint64_t base;
    uint64_t used;        /* bytes of what is mapped */
    uint64_t size;        /* of the reservation, or the part */
    struct chunks chunks; /* that are mapped, in order */
    bool locked;
    struct holding *holdings; /* of the first n_holdings of them, once it was locked */
    size_t n_holdings;
};

/* Finds a place for the chunks, which all have memory, and `total` bytes, and maps them. The range is empty. */
int range_bind(struct range *range, struct memclient *ctx, const struct chunks *chunks, uint64_t total);
/* Maps chunks behind those: 1, or 0 if there is no place for them. On failure nothing has changed. */
int range_append(struct range *range, nbla_physical_memory *const *p, size_t n, uint64_t total);
/* Unmaps all, and gives the addresses back; the range is empty. */
void range_unbind(struct range *range);

/* As nbla_memory_lock_device() and so on, until it is unbound. What is appended is locked as well. */
void range_lock(struct range *range);
void range_unlock(struct range *range);
nbla_device_memory_state range_state(struct range *range);
