/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory this machine has: nodes, sizes, distances, kinds of pages.
 *
 * It is read once at start and never changes afterwards, so workers may read it, too; only the number of huge pages
 * that the administrator allows is read again each time. A node has a `number`, by which clients and configuration
 * call it, and a `physical` one, which is the kernel's. They differ only where nodes are simulated: then several
 * numbers stand for one real node.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define TOPOLOGY_NODES_MAX 64 /* numbers are below this; nodes beyond it are left alone */
#define TOPOLOGY_HUGE_MAX  8

struct topology_node {
    uint32_t number;
    uint32_t physical;
    uint64_t total; /* its memory; 0 if it has none, or none that this process may use */
    bool has_cpus;
    cpu_set_t processors;                   /* of the first CPU_SETSIZE; none where that is unknown */
    uint32_t distances[TOPOLOGY_NODES_MAX]; /* by number; 0 where there is no such node */
};

struct topology {
    bool simulated;
    bool one_node; /* all pages are on one real node, wherever they are asked for */
    uint64_t base_page;
    uint64_t thp_size; /* 0 if shared memory gets no transparent huge pages here */
    uint32_t n_nodes;
    struct topology_node nodes[TOPOLOGY_NODES_MAX]; /* in ascending order of number */
    uint32_t n_huge;
    uint64_t huge_sizes[TOPOLOGY_HUGE_MAX]; /* of hugetlb, ascending; set aside or not */
    uint64_t default_huge;                  /* 0 if the kernel has no hugetlb */
};

/* simulate_nodes: 0 or 1 = the machine as it is, else that many nodes on one. 0 or a negative errno. */
int topology_load(struct topology *ret, uint32_t simulate_nodes);

/* NULL if there is no such node. */
const struct topology_node *topology_node(const struct topology *topology, uint32_t number);

/* The processors of a node, by its physical number. */
const cpu_set_t *topology_processors(const struct topology *topology, uint32_t physical);

/*
 * How many huge pages of that size the node can have now, in use or not: those that are set aside there, and an equal
 * part of those that the kernel may make on demand (nr_overcommit_hugepages).
 */
uint64_t topology_huge_pages(const struct topology *topology, uint32_t number, uint64_t size);
