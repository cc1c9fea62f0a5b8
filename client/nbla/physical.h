/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memories, chunks: a buffer of the broker without an address, or an opened part of one; and lists of them.
 */
#pragma once

#include "nbla/device.h"
#include "nbla/lock_fd.h"

struct nbla_physical_memory {
    unsigned refs;
    struct memclient *ctx;
    struct device *device; /* NULL: it was opened */
    size_t bytes;
    struct lock_fd lock_fd; /* without a buffer until it has memory */
    uint64_t offset;        /* in the buffer; 0 of those made here */
    uint64_t wanted;        /* the address to bind it at, 0 = none */
    bool shared;            /* others may know of it */
};

/* An opened chunk, with a reference to the buffer of its own. NULL: it has failed. */
nbla_physical_memory *physical_new_opened(struct memclient_buffer *buffer, uint64_t offset, uint64_t length,
                                          void *wanted);
/* Gives it memory, if it has none, for being passed on or mapped later. */
int physical_alloc(nbla_physical_memory *p);
/* The address that an opened chunk has where it was made, or 0. */
uint64_t physical_home(const nbla_physical_memory *p);

/* Counted chunks, in order. */
struct chunks {
    nbla_physical_memory **at;
    size_t n;
};

int chunks_append(struct chunks *chunks, nbla_physical_memory *const *p, size_t n);
/* Takes out all but the first n. */
void chunks_cut(struct chunks *chunks, size_t n);
void chunks_clear(struct chunks *chunks);
/* Gives memory to those of n that have none, or their parent's, together, for being mapped next. */
int chunks_alloc(nbla_physical_memory *const *p, size_t n);
