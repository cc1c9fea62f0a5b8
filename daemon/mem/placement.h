/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of a buffer go to which node.
 *
 * A plan depends only on the request and on what is free in each node's budget. It says how many bytes each node is
 * charged with and where each offset lies; commit.c makes it true. There are two shapes: contiguous parts, one a node,
 * in the order of the plan's nodes; or parts of `part_size` going round the nodes (PLACEMENT_INTERLEAVE).
 *
 * A record of fixed size keeps `struct plan_brief`; the table of nodes beside it is needed only for several nodes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "sys/numa.h"

/* The numbers of Pages and Placement on the wire. */
enum pages {
    PAGES_ANY = 0,
    PAGES_BASE = 1,
    PAGES_THP = 2,
    PAGES_HUGETLB = 3,
};

enum placement {
    PLACEMENT_POOL = 0,
    PLACEMENT_BIND = 1,
    PLACEMENT_PREFERRED = 2,
    PLACEMENT_INTERLEAVE = 3,
    PLACEMENT_SPLIT = 4,
    PLACEMENT_LOCAL = 5,
};

/* Who allocates all pages of a buffer, and has its control group pay for them. The ledger's numbers. */
enum committer {
    COMMITTER_BROKER = 0, /* before anybody sees it */
    COMMITTER_NONE = 1,   /* lazy: who touches a page first allocates it */
    COMMITTER_CLIENT = 2, /* who it is allocated for, before anybody else sees it */
};

/* More would cost the kernel a policy object each, and the commit a few system calls. */
#define PLAN_PARTS_MAX 16384

struct plan_brief {
    uint64_t bytes;
    uint64_t part_size; /* of INTERLEAVE, else 0 */
    uint32_t n_nodes;
    uint32_t node; /* the first one */
    uint8_t placement;
    uint8_t strict; /* on these nodes or not at all */
};

struct plan_nodes {
    uint64_t bytes[TOPOLOGY_NODES_MAX]; /* of node[i], in the plan's order */
    uint8_t node[TOPOLOGY_NODES_MAX];
};

struct pool;

struct plan {
    struct pool *pool; /* whose memory it is; NULL: of none (foreign) */
    uint64_t size;     /* that was asked for: brief.bytes is that, rounded up */
    struct plan_brief brief;
    struct plan_nodes nodes; /* the first brief.n_nodes entries */
};

struct plan_request {
    uint64_t bytes;                       /* > 0, a multiple of the granule */
    uint64_t granule;                     /* a power of two */
    enum placement placement;             /* not PLACEMENT_POOL */
    uint32_t n_nodes;                     /* > 0, different ones */
    uint32_t nodes[TOPOLOGY_NODES_MAX];   /* in order of preference, which pool.c makes: the nearest first */
    uint64_t part_size;                   /* 0 = the granule, or what PLAN_PARTS_MAX makes of it */
    uint32_t weights[TOPOLOGY_NODES_MAX]; /* of SPLIT, one per node; all 0 = equal ones */
};

/*
 * `available` has what each node, by number, may still give.
 *     BIND, PREFERRED, LOCAL   whole on the first that has enough; if none has, on one after the other
 *     INTERLEAVE  part 0 on the first node, part 1 on the second, ...
 *     SPLIT       contiguous parts in the order of the nodes, as large as the weights say
 * 0; POOL_FULL if it does not fit; INVALID_ARGUMENT for parts or weights that make no sense.
 */
int plan_make(struct plan *ret, const struct plan_request *request, const uint64_t available[static TOPOLOGY_NODES_MAX],
              struct problem *problem);

/* The node of the byte at `offset`, and in *ret_run, if wanted, how many bytes from there on it
 * has. */
uint32_t plan_node_of(const struct plan *plan, uint64_t offset, uint64_t *ret_run);

/* From what a record keeps; `nodes` is not looked at if there is only one. */
void plan_unpack(struct plan *ret, const struct plan_brief *brief, const struct plan_nodes *nodes);
