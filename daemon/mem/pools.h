/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of pools from the inside: shared by pools.c, which makes and finds them, and pool.c, which
 * charges them.
 */
#pragma once

#include "ledger/table.h"
#include "mem/pool.h"

/* Of retired pools whose pages this machine has no more. */
#define BUDGET_INDEX_NONE (1 + TOPOLOGY_HUGE_MAX)

struct pools {
    const struct topology *topology;
    /* budget_index 0: base pages and THP; 1 + i: hugetlb pages of topology->huge_sizes[i]. By node number. */
    struct budget budgets[BUDGET_INDEX_NONE + 1][TOPOLOGY_NODES_MAX];
    struct table records;
    struct pool **by_number; /* of n_numbers; NULL without a ledger */
    uint32_t n_numbers;
    struct pool **retired;
    uint32_t n_retired;
    uint32_t n_pools;   /* the others */
    uint32_t n_places;  /* see account_place() */
    bool pages_by_size; /* for a caller that names none */
    uint64_t refreshed; /* when it was last asked how many huge pages there may be */
    struct pool pools[];
};

/* "4k", "2m", "1g" */
struct size_text {
    char text[24];
};

struct size_text size_text(uint64_t bytes);

uint64_t percent_of(uint64_t bytes, uint32_t percent);

/* 0 is a size that hugetlb does not have; else the index of its budgets. */
uint32_t budget_index_of_huge(const struct topology *topology, uint64_t size);
