/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our providers have at which address of the process: allocations or what is left of them, and memory that was
 * opened. Whole pages. No two allocations overlap, so a provider frees nothing that is not its own, whatever it is told
 * to. What was opened overlaps where it is of the same buffer: each opening has an area.
 *
 * An allocation that was split is one area still: only freeing a part of it makes two.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/tree.h"

struct shared_buffer;

enum area_kind { AREA_ALLOCATED, AREA_OPENED };

struct area {
    RB_ENTRY(area) entry;
    uint64_t serial;   /* tells apart those with one start */
    uint64_t reach;    /* where what reaches furthest in this subtree ends */
    struct area *next; /* in a chain of areas that were taken out */
    const void *owner; /* the provider */
    enum area_kind kind;
    uint64_t start;
    uint64_t length;
    struct shared_buffer *buffer; /* what is mapped there, counted; NULL = private memory */
    uint64_t offset;              /* of `start`, in the buffer */
};

/* Notes a copy of it, with its count of the buffer. What is noted there already was unmapped behind our back, and is
 * forgotten. -ENOMEM. */
int area_add(const struct area *area);

/*
 * Takes out what the owner has allocated within the range; `whole`: all of it, or nothing if there is a gap. The chain
 * goes to *taken, its areas are free()'d by the caller, who has their counts of buffers. NULL: there was nothing.
 * -ENOMEM: and nothing was done.
 */
int area_take(const void *owner, uint64_t start, uint64_t length, bool whole, struct area **taken);
/* What the owner opened at just this address, of several the shortest; or NULL. */
struct area *area_take_opened(const void *owner, uint64_t start);
/* All that the owner has. */
struct area *area_take_all(const void *owner);
/* A chain goes back where it was. */
void area_put_back(struct area *taken);

/* A copy of the owner's area (NULL: of anybody's) around the address; its buffer is counted up. */
bool area_find(const void *owner, const void *address, struct area *copy);
/* Has anybody allocated any of it? */
bool area_is_allocated(uint64_t start, uint64_t length);
/* Does the owner have all of the range, allocated or opened? */
bool area_covers(const void *owner, uint64_t start, uint64_t length);
/* Has it allocated the range as one? */
bool area_is_one(const void *owner, uint64_t start, uint64_t length);
