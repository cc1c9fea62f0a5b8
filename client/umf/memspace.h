/* SPDX-License-Identifier: Apache-2.0 */
/* A memspace: numbers of nodes, in order, without doubles only if whoever made it took care. */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/memspace.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "umf/nodes.h"

struct umf_memspace_t {
    bool predefined;
    bool everywhere; /* all of the host: without a policy there is nothing to say about where */
    unsigned n;
    unsigned nodes[];
};

/* A policy: how memory is spread over the nodes of a memspace. It is only looked at when a provider is made. */
struct umf_mempolicy_t {
    umf_mempolicy_membind_t bind;
    size_t part_size;                       /* of INTERLEAVE */
    umf_numa_split_partition_t *partitions; /* of SPLIT, ours */
    unsigned n_partitions;
};

enum memspace_kind {
    MEMSPACE_HOST_ALL,
    MEMSPACE_HIGHEST_CAPACITY,
    MEMSPACE_HIGHEST_BANDWIDTH,
    MEMSPACE_LOWEST_LATENCY,
    MEMSPACE_KINDS
};

/*
 * A predefined one of these nodes; to be freed. NULL if the kernel does not tell what is asked, or there is no memory
 * for it.
 *
 * The fastest nodes are those that are the fastest for some processors: what is bound to all of them comes, on each
 * processor, from the one nearest to it.
 */
struct umf_memspace_t *memspace_new(enum memspace_kind kind, const struct nodes *nodes);
