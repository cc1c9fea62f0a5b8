/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the request to the pages, on a machine that really has several nodes: every page is on the node that
 * its budget is charged for. Elsewhere it is skipped; tests/vm has machines for it.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mem/commit.h"
#include "mem/pool.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/settings.h"

/* What is free now, for nobody in particular. */
#define NOW ((struct pool_view){.taken = TALLY_STOCK})

static struct topology machine;
static uint32_t node[TOPOLOGY_NODES_MAX]; /* those with memory */
static uint32_t n_nodes;

static int setup(void **state)
{
    n_nodes = 0;
    if (topology_load(&machine, 0) < 0)
        return -1;
    for (uint32_t i = 0; i < machine.n_nodes; i++)
        if (machine.nodes[i].total)
            node[n_nodes++] = machine.nodes[i].number;
    return 0;
}

static void needs_nodes(void)
{
    if (n_nodes < 2)
        test_skip("this machine has one NUMA node");
}

static struct pools *all_pools(void)
{
    struct pools *pools = NULL;
    struct problem problem = PROBLEM_NULL;

    if (pools_new(&pools, &machine, &(struct pools_config){0}, &problem))
        fail_msg("%s", problem.sentence);
    return pools;
}

/* Plans, charges, commits; then every page must be where plan_node_of() says. */
static void allocate_and_look(struct pools *pools, struct memory_spec request, uint64_t size)
{
    struct problem problem = PROBLEM_NULL;
    struct pool *pool = NULL;
    struct commit c;
    char *map;

    commit_init(&c);
    if (pools_find(pools, &request, &pool, &problem) || pool_plan(pool, &request, size, NOW, &c.plan, &problem) ||
        pool_charge(pool, &c.plan, NULL, TALLY_USED, &problem))
        fail_msg("%s", problem.sentence);
    c.topology = &machine;
    c.pages = pool->pages;
    c.page_size = pool->page_size;
    if (commit_run(&c))
        fail_msg("%s", c.problem.sentence);
    assert_int_equal(c.verified, c.plan.brief.strict);
    assert_int_equal(memfd_allocated(c.fd), c.plan.brief.bytes);
    map = map_shared(c.fd, c.plan.brief.bytes, PROT_READ);
    assert_mapped(map);
    for (uint64_t at = 0; at < c.plan.brief.bytes; at += pool->granule) {
        volatile char touched = map[at];

        (void)touched;
        assert_int_equal(page_node(map + at), topology_node(&machine, plan_node_of(&c.plan, at, NULL))->physical);
    }
    munmap(map, c.plan.brief.bytes);
    commit_deinit(&c);
    pool_shift(pool, &c.plan, NULL, TALLY_USED, TALLY_NONE);
    assert_int_equal(tally_used(&pool->bytes), 0);
}

/* The same, on the first n nodes that have memory. */
static struct memory_spec on_first(uint32_t n, struct memory_spec spec)
{
    spec.n_nodes = n;
    memcpy(spec.nodes, node, n * sizeof(*node));
    return spec;
}

static void every_way(enum pages pages, uint64_t size, uint64_t part)
{
    struct pools *pools = all_pools();

    for (uint32_t i = 0; i < n_nodes; i++) {
        allocate_and_look(pools, (struct memory_spec){.pages = pages, .n_nodes = 1, .nodes = {node[i]}}, size);
        allocate_and_look(
            pools, (struct memory_spec){.pages = pages, .n_nodes = 1, .nodes = {node[i]}, .placement = PLACEMENT_LOCAL},
            size);
        allocate_and_look(
            pools,
            (struct memory_spec){.pages = pages, .n_nodes = 1, .nodes = {node[i]}, .placement = PLACEMENT_PREFERRED},
            size);
    }
    allocate_and_look(pools, (struct memory_spec){.pages = pages}, size);
    allocate_and_look(pools, on_first(n_nodes, (struct memory_spec){.pages = pages, .placement = PLACEMENT_BIND}),
                      size);
    allocate_and_look(
        pools,
        on_first(n_nodes, (struct memory_spec){.pages = pages, .placement = PLACEMENT_INTERLEAVE, .part_size = part}),
        size);
    allocate_and_look(
        pools,
        on_first(2,
                 (struct memory_spec){.pages = pages, .placement = PLACEMENT_SPLIT, .n_weights = 2, .weights = {1, 2}}),
        size);
    pools_free(pools);
}

static void base_pages_are_where_they_are_charged(void **state)
{
    needs_nodes();
    every_way(PAGES_BASE, 9 * MIB + 1, 64 * KIB);
}

static void thp_are_where_they_are_charged(void **state)
{
    needs_nodes();
    settings_shmem_thp();
    assert_int_equal(topology_load(&machine, 0), 0);
    every_way(PAGES_THP, 5 * thp_size() + 1, thp_size());
}

static void huge_pages_are_where_they_are_charged(void **state)
{
    size_t huge = huge_page_size();

    needs_nodes();
    for (uint32_t i = 0; i < n_nodes; i++)
        settings_huge_pages_on_node(huge, 8, (int)node[i]);
    every_way(PAGES_HUGETLB, 5 * huge - 1, huge);
}

/* A buffer larger than what any node's budget has is spread; where it is bound, that is verified. */
static void a_buffer_too_large_for_one_node_is_spread(void **state)
{
    struct pools *pools;
    uint64_t most = 0;

    needs_nodes();
    pools = all_pools();
    for (uint32_t i = 0; i < n_nodes; i++)
        if (pools_node_budget(pools, node[i])->capacity > most)
            most = pools_node_budget(pools, node[i])->capacity;
    if (most > 2 * GIB)
        test_skip("this machine has too much memory to fill a node");
    allocate_and_look(pools, on_first(n_nodes, (struct memory_spec){.placement = PLACEMENT_BIND}), most + MIB);
    pools_free(pools);
}

/* I1: a node that is used up is a refusal; nobody is killed for it, this process least of all. */
static void I1_a_full_node_refuses(void **state)
{
    const struct topology_node *full;
    unsigned fds = fd_count();
    struct commit c;

    needs_nodes();
    full = topology_node(&machine, node[n_nodes - 1]);
    if (full->total > 4 * GIB)
        test_skip("this machine has too much memory to fill a node");
    commit_init(&c);
    c.topology = &machine;
    c.pages = PAGES_BASE;
    c.page_size = page_size();
    plan_unpack(&c.plan,
                &(struct plan_brief){.bytes = full->total / page_size() * page_size(),
                                     .n_nodes = 1,
                                     .node = full->number,
                                     .strict = true,
                                     .placement = PLACEMENT_BIND},
                NULL);
    assert_int_equal(commit_run(&c), STATUS_NO_MEMORY);
    assert_int_equal(fd_count(), fds);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, settings_release)
    const struct CMUnitTest tests[] = {
        TEST(base_pages_are_where_they_are_charged),
        TEST(thp_are_where_they_are_charged),
        TEST(huge_pages_are_where_they_are_charged),
        TEST(a_buffer_too_large_for_one_node_is_spread),
        TEST(I1_a_full_node_refuses),
    };

    return test_run(tests, NULL, NULL);
}
