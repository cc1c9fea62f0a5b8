/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A physical memory, or chunk, is a buffer of the broker without an address, or an opened part of one.
 */
#pragma once

#include "nbla/device.h"
#include "nbla/lock_fd.h"

struct nbla_physical_memory {
    unsigned refs;
    struct memclient_context *ctx;
    struct device *device; /* NULL: the chunk was opened */
    size_t bytes;
    struct lock_fd lock_fd; /* without a buffer until it has memory */
    uint64_t offset;        /* in the buffer; 0 of those made here */
    uint64_t wanted;        /* the address to bind it at; 0 = any */
    bool shared;            /* other processes may know it */
};

/* An opened chunk, with a reference to the buffer of its own. NULL: it has failed. */
nbla_physical_memory *physical_new_opened(struct memclient_buffer *buffer, uint64_t offset, uint64_t length,
                                          void *wanted);
/* Allocates its memory if it has none, to be shared, or mapped later. */
int physical_alloc(nbla_physical_memory *p);
/* The address that an opened chunk has where it was made, or 0. */
uint64_t physical_home(const nbla_physical_memory *p);

/* References to chunks, in order. */
struct chunks {
    nbla_physical_memory **at;
    size_t n;
};

int chunks_append(struct chunks *chunks, nbla_physical_memory *const *p, size_t n);
/* Drops all but the first n. */
void chunks_cut(struct chunks *chunks, size_t n);
void chunks_clear(struct chunks *chunks);
/* Allocates memory for those of n chunks that have none, or that of the parent of a fork, to be mapped next. */
int chunks_alloc(nbla_physical_memory *const *p, size_t n);
