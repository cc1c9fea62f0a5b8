/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses for chunks, with room behind them: chunks are mapped behind each other, from the bottom up, and taken out
 * from the top.
 */
#pragma once

#include "nbla/physical.h"

struct range {
    struct memclient *ctx;
    struct memclient_reservation *reservation; /* NULL: each chunk is at its home */
    uint64_t base;
    uint64_t used;        /* bytes of what is mapped */
    uint64_t size;        /* of the reservation */
    struct chunks chunks; /* that are mapped, in order */
};

/* Finds a place for the chunks, which all have memory, and `total` bytes, and maps them. The range is empty. */
int range_bind(struct range *range, struct memclient *ctx, const struct chunks *chunks, uint64_t total);
/* Maps chunks behind those: 1, or 0 if there is no place for them. On failure nothing has changed. */
int range_append(struct range *range, nbla_physical_memory *const *p, size_t n, uint64_t total);
/* Unmaps all, and gives the addresses back; the range is empty. */
void range_unbind(struct range *range);
