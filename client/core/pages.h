/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel is told of the process's pages: to reserve, unmap, and withhold them from children.
 *
 * Nothing here knows a context or a buffer. What a page has to be follows from the index (core/space.h), which callers
 * have changed already, and still have locked for changes.
 */
#pragma once

#include <stdint.h>

#include "core/space.h"

/* The mapping's access as mmap() has it. */
int map_prot(unsigned access);

/* mmap() of inaccessible pages, at the address or, without MAP_FIXED, where the kernel likes. */
void *pages_map_inaccessible(uint64_t start, uint64_t size, int flags);
/* The same with MAP_FIXED or MAP_FIXED_NOREPLACE. -1 and errno, or 0. */
int pages_reserve(uint64_t start, uint64_t size, int flags);
/* There are reservations from now on, whose pages can be unmapped even at the kernel's limit of mappings. */
void pages_keep_spare(void);
/* Unmaps the pages of a reservation, except where something is mapped in it. */
void pages_unreserve(uint64_t start, uint64_t size);
/* Unmaps pages that no mapping shows any more; those in a reservation are reserved again. */
int pages_unmap(uint64_t start, uint64_t size);
/* Withholds from children the pages that no mapping for children shows. -1 and errno, or 0. */
int pages_dontfork(uint64_t start, uint64_t size);
