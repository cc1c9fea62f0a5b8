/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's memory nodes and what each is good at, as the kernel tells it: sizes, and from the firmware's HMAT how
 * fast a node is, seen from the processors that are nearest to it. Of other processors the kernel says nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
