/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel is told of the process's pages: reserved, withdrawn, given up, kept from children.
 *
 * Nothing here knows a context or a buffer. What a page has to be follows from the index (core/space.h), which its
 * callers have locked for changes and have changed already.
 */
#pragma once

#include <stdint.h>

#include "core/space.h"

/* The mapping's access as mmap() has it. */
int map_prot(unsigned access);

/* As mmap(): pages to which no access is possible, at the address or, without MAP_FIXED, where the kernel likes. */
void *map_inaccessible(uint64_t start, uint64_t size, int flags);
/* The same with MAP_FIXED or MAP_FIXED_NOREPLACE. -1 and errno, or 0. */
int map_reserve_pages(uint64_t start, uint64_t size, int flags);
/* There are reservations from now on: pages can be withdrawn in them even at the kernel's limit of mappings. */
void map_keep_spare(void);
/* Unmaps what a reservation had, but for what is mapped in it. */
void map_give_up_pages(uint64_t start, uint64_t size);
/* Pages that no mapping shows any more go; those in a reservation are reserved as before. */
int map_take_pages(uint64_t start, uint64_t size);
/* What only such mappings show as are not for children is not for them. -1 and errno, or 0. */
int map_withhold_pages(uint64_t start, uint64_t size);
