/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of pools from the inside: shared by pools.c, which makes and finds them, and pool.c, which
 * charges them.
 */
#pragma once

#include "mem/pool.h"

struct pools {
    const struct topology *topology;
    /* purse 0: base pages and THP; 1 + i: hugetlb pages of topology->huge_sizes[i]. By node number. */
    struct budget budgets[1 + TOPOLOGY_HUGE_MAX][TOPOLOGY_NODES_MAX];
    uint32_t n_pools;
    struct pool pools[];
};

/* "4k", "2m", "1g" */
struct size_text {
    char text[24];
};

struct size_text size_text(uint64_t bytes);
