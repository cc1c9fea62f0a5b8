/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages whoever does not ask for any gets, on a machine of two nodes that is made up. */
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem/buffer.h"
#include "mem/pool.h"
#include "proto/status.h"
#include "sys/sys.h"

/* What is free now, for nobody in particular. */
#define NOW ((struct pool_view){.taken = TALLY_STOCK})

#define PAGE UINT64_C(4096)
#define MB   (UINT64_C(1) << 20)
#define GB   (UINT64_C(1) << 30)

static struct topology machine;
static struct sys_calls calls;
static uint64_t set_aside[2][2]; /* of node, of 2 MiB and 1 GiB */
static uint64_t overcommit[2];

static int fake_huge_pages(int physical_node, uint64_t size, enum sys_huge what, uint64_t *ret)
{
    unsigned large = size == GB;

    *ret = 0;
    if (what == SYS_HUGE_OVERCOMMIT)
        *ret = physical_node < 0 ? overcommit[large] : 0;
    else if (what == SYS_HUGE_ALL && physical_node >= 0)
        *ret = set_aside[physical_node][large];
    return 0;
}

static int setup(void **state)
{
    machine = (struct topology){
        .base_page = PAGE, .n_nodes = 2, .n_huge = 2, .huge_sizes = {2 * MB, GB}, .default_huge = 2 * MB};
    for (uint32_t i = 0; i < 2; i++)
        machine.nodes[i] = (struct topology_node){
            .number = i, .physical = i, .total = 64 * GB, .has_cpus = true, .distances = {i ? 20 : 10, i ? 10 : 20}};
    memset(set_aside, 0, sizeof(set_aside));
    memset(overcommit, 0, sizeof(overcommit));
    calls = sys_kernel;
    calls.huge_pages = fake_huge_pages;
    sys = &calls;
    return 0;
}

static int teardown(void **state)
{
    sys = &sys_kernel;
    return 0;
}

static struct pools *make(bool base_pages)
{
    struct pools_config config = {.base_pages = base_pages};
    struct problem problem = PROBLEM_NULL;
    struct pools *pools = NULL;

    if (pools_new(&pools, &machine, &config, &problem))
        fail_msg("%s", problem.sentence);
    return pools;
}

/* The names of the pools in their order, with a blank between. */
static const char *choose_many(struct pools *pools, struct memory_spec request, uint32_t n, const uint64_t *sizes)
{
    static char names[256];
    struct pool_choice choice;
    struct problem problem = PROBLEM_NULL;
    size_t at = 0;

    if (pools_choose(pools, &request, n, sizes, &choice, &problem))
        fail_msg("%s", problem.sentence);
    for (uint32_t i = 0; i < choice.n; i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? " " : "", choice.pools[i]->name);
    return names;
}

static const char *choose(struct pools *pools, struct memory_spec request, uint64_t size)
{
    return choose_many(pools, request, 1, &size);
}

static void the_size_decides(void **state)
{
    const uint64_t mixed[] = {64 * MB, 3 * PAGE};
    const uint64_t large[] = {64 * MB, 8 * MB};
    struct pools *pools;

    for (unsigned node = 0; node < 2; node++) {
        set_aside[node][0] = 1024;
        set_aside[node][1] = 4;
    }
    pools = make(false);
    assert_string_equal(choose(pools, (struct memory_spec){0}, PAGE), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 2 * MB), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 4 * MB), "all-2m all-4k");
    /* what is wasted decides, not whether anything is */
    assert_string_equal(choose(pools, (struct memory_spec){0}, 5 * MB), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 16 * MB - PAGE), "all-2m all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 64 * MB + 1), "all-2m all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, GB), "all-1g all-2m all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, GB + 200 * MB), "all-2m all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, UINT64_MAX), "all-4k");
    /* a batch has one kind */
    assert_string_equal(choose_many(pools, (struct memory_spec){0}, 2, mixed), "all-4k");
    assert_string_equal(choose_many(pools, (struct memory_spec){0}, 2, large), "all-2m all-4k");
    pools_free(pools);

    pools = make(true);
    assert_string_equal(choose(pools, (struct memory_spec){0}, GB), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){.pages = PAGES_HUGETLB}, PAGE), "all-2m");
    pools_free(pools);
}

static void transparent_ones_come_behind_those_that_are_set_aside(void **state)
{
    struct pools *pools;

    machine.thp_size = 2 * MB;
    set_aside[0][0] = 8;
    pools = make(false);
    assert_string_equal(choose(pools, (struct memory_spec){0}, 2 * MB - PAGE), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 2 * MB), "all-thp");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 5 * MB), "all-thp");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 8 * MB), "node0-2m all-thp");
    assert_string_equal(choose(pools, (struct memory_spec){0}, 18 * MB), "all-thp");
    /* parts round the nodes are smaller than such a page, or made of them */
    assert_string_equal(choose(pools, (struct memory_spec){.placement = PLACEMENT_INTERLEAVE}, 8 * MB), "all-4k");
    assert_string_equal(
        choose(pools, (struct memory_spec){.placement = PLACEMENT_INTERLEAVE, .part_size = 4 * MB}, 8 * MB), "all-thp");
    assert_string_equal(choose(pools, (struct memory_spec){.placement = PLACEMENT_SPLIT}, 8 * MB), "all-thp");
    pools_free(pools);
}

static void what_was_asked_for_is_had(void **state)
{
    struct pools *pools;

    set_aside[0][0] = 64;
    pools = make(false);
    assert_string_equal(choose(pools, (struct memory_spec){.pages = PAGES_BASE}, 8 * MB), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){.pool = "node0-4k"}, 8 * MB), "node0-4k");
    assert_string_equal(choose(pools, (struct memory_spec){.page_size = PAGE}, 8 * MB), "all-4k");
    /* the node before the page */
    assert_string_equal(choose(pools, (struct memory_spec){.n_nodes = 1, .nodes = {1}}, 8 * MB), "node1-4k");
    for (enum placement placement = PLACEMENT_BIND; placement <= PLACEMENT_LOCAL; placement++)
        if (placement != PLACEMENT_BIND)
            assert_string_equal(
                choose(pools, (struct memory_spec){.n_nodes = 1, .nodes = {1}, .placement = placement}, 8 * MB),
                "all-4k");
    /* parts and places that a huge page cannot have */
    assert_string_equal(choose(pools, (struct memory_spec){.flags = BUFFER_NO_ADDRESS}, 8 * MB), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){.address = GB + PAGE}, 8 * MB), "all-4k");
    assert_string_equal(choose(pools, (struct memory_spec){.address = GB}, 8 * MB), "node0-2m all-4k");
    pools_free(pools);
}

static void a_preferred_node_that_is_full_gives_ordinary_pages(void **state)
{
    const struct memory_spec local = {.n_nodes = 1, .nodes = {0}, .placement = PLACEMENT_LOCAL};
    struct memory_spec either = {.n_nodes = 2, .nodes = {0, 1}, .placement = PLACEMENT_BIND};
    struct problem problem = PROBLEM_NULL;
    struct pools *pools;
    struct plan plan;
    struct pool *pool;

    set_aside[0][0] = 8;
    set_aside[1][0] = 8;
    pools = make(false);
    assert_string_equal(choose(pools, local, 8 * MB), "all-2m all-4k");
    pool = pools_by_name(pools, "node0-2m");
    assert_int_equal(pool_plan(pool, &(struct memory_spec){0}, 10 * MB, NOW, &plan, &problem), 0);
    assert_int_equal(pool_charge(pool, &plan, NULL, TALLY_USED, &problem), 0);
    assert_string_equal(choose(pools, local, 8 * MB), "all-4k");
    assert_string_equal(choose(pools, local, 6 * MB), "all-2m all-4k");
    /* of several that will do the nearest */
    assert_string_equal(choose(pools, either, 8 * MB), "all-4k");
    either.caller_node = 1 + 1;
    assert_string_equal(choose(pools, either, 8 * MB), "all-2m all-4k");
    pool_shift(pool, &plan, NULL, TALLY_USED, TALLY_NONE);
    assert_string_equal(choose(pools, local, 8 * MB), "all-2m all-4k");
    pools_free(pools);
}

static void those_of_a_farther_node_are_not_worth_it(void **state)
{
    const struct memory_spec requests[] = {
        {.placement = PLACEMENT_POOL},
        {.placement = PLACEMENT_LOCAL},
        {.placement = PLACEMENT_BIND, .n_nodes = 2, .nodes = {1, 0}},
        {.placement = PLACEMENT_PREFERRED, .n_nodes = 2, .nodes = {1, 0}},
    };
    struct pools *pools;
    struct plan plan;
    struct pool *near;

    set_aside[0][0] = 4;
    set_aside[1][0] = 64;
    pools = make(false);
    near = pools_by_name(pools, "node0-4k");
    for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct memory_spec request = requests[i];

        request.caller_node = 1 + 0;
        assert_string_equal(choose(pools, request, 16 * MB), "all-4k");
        assert_string_equal(choose(pools, request, 8 * MB), "all-2m all-4k");
        request.caller_node = 1 + 1;
        assert_string_equal(choose(pools, request, 16 * MB), "all-2m all-4k");
        /* unless ordinary ones are no nearer */
        request.caller_node = 1 + 0;
        assert_int_equal(pool_plan(near, &(struct memory_spec){0}, 32 * GB, NOW, &plan, NULL), 0);
        assert_int_equal(pool_charge(near, &plan, NULL, TALLY_USED, NULL), 0);
        assert_string_equal(choose(pools, request, 16 * MB), "all-2m all-4k");
        assert_string_equal(choose(pools, request, 8 * MB), "all-2m all-4k");
        pool_shift(near, &plan, NULL, TALLY_USED, TALLY_NONE);
    }
    pools_free(pools);
}

/* Each node has a part of them, and no more is promised than there can be. */
static void those_made_on_demand_count(void **state)
{
    struct pools *pools;

    set_aside[0][0] = 3;
    overcommit[0] = 9;
    pools = make(false);
    assert_int_equal(pool_capacity(pools_by_name(pools, "node0-2m")), 8 * 2 * MB);
    assert_int_equal(pool_capacity(pools_by_name(pools, "node1-2m")), 4 * 2 * MB);
    assert_int_equal(pool_capacity(pools_by_name(pools, "all-2m")), 12 * 2 * MB);
    assert_null(pools_by_name(pools, "node0-1g"));
    assert_string_equal(choose(pools, (struct memory_spec){0}, 16 * MB), "all-2m all-4k");
    /* the administrator may think again */
    overcommit[0] = 0;
    pools_refresh(pools, 0);
    assert_int_equal(pool_capacity(pools_by_name(pools, "all-2m")), 3 * 2 * MB);
    assert_string_equal(choose(pools, (struct memory_spec){0}, 16 * MB), "all-4k");
    pools_free(pools);
}

static void mistakes_are_told_as_before(void **state)
{
    const uint64_t size = 8 * MB;
    struct problem problem = PROBLEM_NULL;
    struct pool_choice choice;
    struct pools *pools;

    set_aside[0][0] = 64;
    pools = make(false);
    assert_int_equal(pools_choose(pools, &(struct memory_spec){.pool = "none"}, 1, &size, &choice, &problem),
                     STATUS_NO_SUCH_POOL);
    assert_int_equal(pools_choose(pools, &(struct memory_spec){.n_nodes = 1, .nodes = {9}}, 1, &size, &choice, NULL),
                     STATUS_NO_SUCH_NODE);
    assert_true(strlen(problem.sentence) > 10);
    pools_free(pools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_size_decides, setup),
        cmocka_unit_test_setup(transparent_ones_come_behind_those_that_are_set_aside, setup),
        cmocka_unit_test_setup(what_was_asked_for_is_had, setup),
        cmocka_unit_test_setup(a_preferred_node_that_is_full_gives_ordinary_pages, setup),
        cmocka_unit_test_setup(those_of_a_farther_node_are_not_worth_it, setup),
        cmocka_unit_test_setup(those_made_on_demand_count, setup),
        cmocka_unit_test_setup(mistakes_are_told_as_before, setup),
    };

    return cmocka_run_group_tests(tests, NULL, teardown);
}
