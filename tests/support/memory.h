/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests want to know about memory: page sizes, what the kernel says is allocated, and on which node.
 * Numbers are read from the kernel each time, never assumed.
 */
#pragma once

#include "base/align.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Younger than some C libraries that we build with; the kernel's numbers. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

/* The size is fixed and nobody may change the set of seals: what every buffer has. */
#define SEALS_BUFFER (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Options of memclient_reserve(). */
#define RESERVE_WITH(...) (&(struct memclient_reserve_options){sizeof(struct memclient_reserve_options), __VA_ARGS__})
/* ... for this process only */
#define RESERVE_PRIVATE(...) RESERVE_WITH(.flags = MEMCLIENT_RESERVE_PRIVATE, __VA_ARGS__)

/* The default huge page of hugetlb; 0 if this kernel has none. */
size_t huge_page_size(void);

/* The size of a transparent huge page; 0 if this kernel has none. */
size_t thp_size(void);

/* A memfd of that size, sealable and CLOEXEC; `flags` adds MFD_HUGETLB and the like. Fails the test. */
int memfd_new(size_t size, unsigned flags);

/* Bytes of the file for which pages are allocated. */
size_t memfd_allocated(int fd);

/* fallocate(2) that gives the pages of a range back. */
int memfd_punch(int fd, size_t offset, size_t size);

/* A shared mapping wherever the kernel likes, MAP_FAILED on failure. */
void *map_shared(int fd, size_t size, int protection);

/* A new memfd, as memfd_new() makes it, and a mapping of it to read and write. Fails the test. */
char *memfd_mapped(size_t size, unsigned flags, int *fd);

/* The same where transparent huge pages can be, and asked for; with their settings, see settings.h. */
char *memfd_mapped_thp(size_t size, int *fd);

/* A shared mapping at a multiple of the alignment. Fails the test. */
char *map_aligned(int fd, size_t size, size_t alignment);

/* MADV_POPULATE_WRITE. Skips where the kernel has none, fails the test if it cannot. */
void map_populate(char *map, size_t size);

/* Mappings of this process with this in the names of their files. Fails the test. */
size_t maps_named(const char *what);

/* A value of /proc/meminfo in KiB; -1 if there is no such line. */
long meminfo_kib(const char *key);

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

#define NODES_MAX 64

/* The nodes with memory, as a bit mask. */
unsigned long nodes_with_memory(void);

/* The nodes with a CPU, as a bit mask. */
unsigned long nodes_with_cpu(void);

/* The node of the page mapped at address (it must have been faulted in); negative errno. */
int page_node(const void *address);

/* How many pages of the range, counted at that step, lie on each node; reads every page first. */
void pages_by_node(const void *address, size_t size, size_t step, size_t counts[NODES_MAX]);
