/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OS provider: os.c has its operations and anonymous memory, os_numa.c its nodes. shared.c has its shared memory.
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
    uint64_t part_size;                     /* as given */
    umf_numa_split_partition_t *partitions; /* of SPLIT; one for each node by default */
    unsigned n_partitions;
    uint64_t allocated; /* bytes so far, which say where INTERLEAVE goes on */
};

/* Checks that the kernel tells about nodes. A negative errno. */
int os_numa_discover(void);
/* Binds the pages of an allocation at `before` bytes from the provider's first. A negative errno. */
int os_numa_bind(const struct os *os, void *ptr, uint64_t length, uint64_t before);

/* The same for memory of the broker: the request to make. */
#define OS_REQUEST_NODES 64
struct os_request {
    struct memclient_alloc_options options;
    uint32_t nodes[OS_REQUEST_NODES];
    uint32_t weights[OS_REQUEST_NODES];
};
int os_numa_request(const struct os *os, uint64_t before, struct os_request *request);
/* Changes a request whose nodes the broker does not have: to those of them that it has, or else to any node. False: the
 * nodes are the provider's own, so they must not change. A thread's policy knows nothing of the broker. */
bool os_numa_request_fewer(const struct os *os, struct os_request *request);

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

/* The kernel's calls, in a table, so that tests can replace them. */
struct os_calls {
    void *(*mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t length);
    int (*madvise)(void *address, size_t length, int advice);
    long (*mbind)(void *address, unsigned long length, int mode, const unsigned long *nodes, unsigned long max,
                  unsigned flags);
    long (*get_mempolicy)(int *mode, unsigned long *nodes, unsigned long max, void *address, unsigned long flags);
};

extern const struct os_calls *os_calls;
