/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OS provider's parts: os.c has the operations and anonymous memory, os_numa.c the nodes; shared memory is in
 * shared.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/memclient.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "umf/shared.h"

struct os {
    struct shared shared;
    umf_memory_visibility_t visibility;
    int protection; /* for mmap() */
    umf_numa_mode_t mode;
    unsigned *nodes;
    unsigned n_nodes;
    uint64_t part_size; /* as it was given */
    umf_numa_split_partition_t *partitions; /* of SPLIT: one for each node if none were given */
    unsigned n_partitions;
    uint64_t allocated; /* bytes so far, for what comes next in INTERLEAVE */
};

/* Finds out whether the machine tells of its nodes. A negative errno. */
int os_numa_discover(void);
/* Binds the pages of an allocation that begins `before` bytes behind the provider's first. A negative errno. */
int os_numa_bind(const struct os *os, void *ptr, uint64_t length, uint64_t before);

/* The same for the broker: which it is asked for. */
#define OS_REQUEST_NODES 64
struct os_request {
    struct memclient_alloc_options options;
    uint32_t nodes[OS_REQUEST_NODES];
    uint32_t weights[OS_REQUEST_NODES];
};
int os_numa_request(const struct os *os, uint64_t before, struct os_request *request);
/*
 * After the broker had no such nodes: a request for those of them that it has, then for any node. True if there is one:
 * if nodes are not the provider's, but the thread's, whose policy knows nothing of the broker.
 */
bool os_numa_request_fewer(const struct os *os, struct os_request *request);

/* ---- the kernel ------------------------------------------------------------------------------------------ */

/* The calls of the OS provider: a table, so that tests can let them fail. */
struct os_calls {
    void *(*mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t length);
    int (*madvise)(void *address, size_t length, int advice);
    long (*mbind)(void *address, unsigned long length, int mode, const unsigned long *nodes, unsigned long max,
                  unsigned flags);
    long (*get_mempolicy)(int *mode, unsigned long *nodes, unsigned long max, void *address, unsigned long flags);
};

extern const struct os_calls *os_calls;
