/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine of two nodes, as far as one file's pages are concerned: where they are is kept here, by what the kernel
 * was told of them through `sys`; their contents are real. Some pages stay where they are, as those do that somebody
 * else uses; a node may run out of memory. One thread at a time. On top of faults.h, so that calls may fail as well.
 */
#pragma once

#include <linux/mempolicy.h>
#include <string.h>
#include <unistd.h>

#include "sys/numa.h"
#include "tests/unit/mem/faults.h"

#define NODES_PAGES_MAX (1U << 16)

static struct {
    uint8_t policy[NODES_PAGES_MAX];
    uint8_t where[NODES_PAGES_MAX];
    /* the file's latest mapping */
    char *map;
    size_t length;
    size_t first;
    size_t stuck;   /* one page that is not moved; SIZE_MAX = none */
    unsigned moves; /* times that the kernel was asked to move something */
    void (*moving)(unsigned moves);
    uint64_t available[2];
} nodes;

static inline size_t nodes_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static inline void *nodes_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    void *map = faulty_mmap(address, length, protection, flags, fd, offset);

    if (map != MAP_FAILED && fd >= 0) {
        nodes.map = map;
        nodes.length = length;
        nodes.first = (size_t)offset / nodes_page();
    }
    return map;
}

static inline long nodes_mbind(void *address, size_t length, int mode, const unsigned long *mask, unsigned flags)
{
    uint8_t node = mask[0] == 2;
    size_t first = nodes.first + (size_t)((char *)address - nodes.map) / nodes_page();

    (void)mode;
    if (fault_now(FAULT_mbind))
        return -1;
    memset(nodes.policy + first, node, length / nodes_page());
    if (!(flags & MPOL_MF_MOVE))
        return 0;
    if (nodes.moving)
        nodes.moving(nodes.moves);
    nodes.moves++;
    for (size_t i = first; i < first + length / nodes_page(); i++)
        if (i != nodes.stuck)
            nodes.where[i] = node;
    return 0;
}

/* New pages go where the policy says. */
static inline int nodes_fallocate(int fd, int mode, off_t offset, off_t length)
{
    size_t first = (size_t)offset / nodes_page(), n = (size_t)length / nodes_page();
    int r = faulty_fallocate(fd, mode, offset, length);

    if (!r && first + n <= NODES_PAGES_MAX)
        memcpy(nodes.where + first, nodes.policy + first, n);
    return r;
}

static inline ssize_t nodes_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    size_t first = (size_t)offset / nodes_page(), n = size / nodes_page();
    ssize_t r = faulty_pwrite(fd, bytes, size, offset);

    if (r > 0 && first + n <= NODES_PAGES_MAX)
        memcpy(nodes.where + first, nodes.policy + first, n);
    return r;
}

static inline long nodes_page_nodes(unsigned long count, void **pages, int *status)
{
    if (fault_now(FAULT_page_nodes))
        return -1;
    for (unsigned long i = 0; i < count; i++)
        status[i] = nodes.where[nodes.first + (size_t)((char *)pages[i] - nodes.map) / nodes_page()];
    return 0;
}

static inline uint64_t nodes_available(int physical_node)
{
    return physical_node < 0 ? nodes.available[0] + nodes.available[1] : nodes.available[physical_node];
}

/* The n-th call of a kind fails besides; FAULT_KINDS = none. */
static inline void nodes_set(enum fault kind, unsigned nth, int error)
{
    fault_set(kind, nth, error);
    faulty.mmap = nodes_mmap;
    faulty.mbind = nodes_mbind;
    faulty.fallocate = nodes_fallocate;
    faulty.pwrite = nodes_pwrite;
    faulty.page_nodes = nodes_page_nodes;
    faulty.available = nodes_available;
}

static inline void nodes_begin(struct topology *topology)
{
    memset(&nodes, 0, sizeof(nodes));
    nodes.stuck = SIZE_MAX;
    nodes.available[0] = nodes.available[1] = UINT64_C(1) << 40;
    topology->one_node = false;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        topology->nodes[i].physical = i & 1;
    nodes_set(FAULT_KINDS, 0, 0);
}

/* Of the first so many bytes. */
static inline size_t nodes_count(size_t bytes, unsigned node)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes / nodes_page(); i++)
        n += nodes.where[i] == node && nodes.policy[i] == node;
    return n;
}
