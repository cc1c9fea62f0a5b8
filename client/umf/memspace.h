/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's memory nodes and what each is good at, as the kernel tells it: sizes, and from the firmware's HMAT how
 * fast a node is, seen from the processors that are nearest to it. Of other processors the kernel says nothing.
 *
 * A memspace is a list of nodes, and a policy says how memory is spread over them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/umf/umf/memspace.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#define NODE_NUMBERS 1024 /* as many as kernels can have */

struct node_set {
    uint64_t words[NODE_NUMBERS / 64];
};

struct node {
    unsigned number;
    uint64_t bytes;          /* of memory */
    uint64_t bandwidth;      /* MiB/s, of reading and writing together; 0 = not told */
    uint64_t latency;        /* ns; 0 = not told */
    struct node_set nearest; /* nodes with the processors for which it has these */
};

struct nodes {
    size_t n;
    struct node nodes[];
};

/*
 * The nodes that have memory and that this process may use, by number; at least one. For tests: the machine is the one
 * whose files are below `root`; "" is this one. NULL if there is no memory for it. To be freed.
 */
struct nodes *nodes_load(const char *root);

static inline bool node_set_has(const struct node_set *set, unsigned number)
{
    return set->words[number / 64] >> number % 64 & 1;
}

/* Numbers of nodes, in order; a memspace that a program has made may have one of them twice. */
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
