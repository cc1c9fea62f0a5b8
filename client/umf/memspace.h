/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's memory nodes and how good each is, as the kernel reports it: its size, and its speed from the
 * firmware's HMAT, as the nearest processors see it. The kernel reports nothing for other processors.
 *
 * A memspace is a list of nodes. A policy says how memory is spread over them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/umf/umf/memspace.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#define NODE_NUMBERS 1024 /* the most that any kernel has */

struct node_set {
    uint64_t words[NODE_NUMBERS / 64];
};

struct node {
    unsigned number;
    uint64_t bytes;          /* of memory */
    uint64_t bandwidth;      /* MiB/s, reading plus writing; 0: unknown */
    uint64_t latency;        /* ns; 0: unknown */
    struct node_set nearest; /* the nodes of the processors that have this speed */
};

struct nodes {
    size_t n;
    struct node nodes[];
};

/* Returns the nodes that have memory and that this process may use, by number; at least one. Free it. NULL: no memory.
 * Tests pass a folder with another machine's files as `root`; "" is this machine. */
struct nodes *nodes_load(const char *root);

static inline bool node_set_has(const struct node_set *set, unsigned number)
{
    return set->words[number / 64] >> number % 64 & 1;
}

/* The numbers are in order. Two may be equal in a memspace that a program has made. */
struct umf_memspace_t {
    bool predefined;
    bool everywhere; /* all of the host, so nothing needs to be bound unless there is a policy */
    unsigned n;
    unsigned nodes[];
};

/* How memory is spread over the nodes of a memspace. It is read when a provider is made. */
struct umf_mempolicy_t {
    umf_mempolicy_membind_t bind;
    size_t part_size;                       /* of INTERLEAVE */
    umf_numa_split_partition_t *partitions; /* of SPLIT; a copy */
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
 * Makes a predefined memspace of these nodes. Free it. NULL: the kernel does not report what it needs, or there is no
 * memory.
 *
 * The fastest nodes are those that are the fastest for some processor. Memory that is bound to all of them comes from
 * the one nearest to the processor that touches it.
 */
struct umf_memspace_t *memspace_new(enum memspace_kind kind, const struct nodes *nodes);
