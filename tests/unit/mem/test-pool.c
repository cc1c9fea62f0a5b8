/* SPDX-License-Identifier: Apache-2.0 */
/* Pools over a machine that is made up: two nodes with CPUs, one without, one without memory. */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "mem/pool.h"
#include "proto/status.h"

/* What is free now, for nobody in particular. */
#define NOW ((struct pool_view){.taken = TALLY_STOCK})

#define PAGE UINT64_C(4096)
#define MB   (UINT64_C(1) << 20)

static struct topology machine;

static int setup(void **state)
{
    static const uint64_t totals[] = {1024 * MB, 2048 * MB, 512 * MB, 0};

    machine = (struct topology){.base_page = PAGE, .thp_size = 2 * MB, .n_nodes = 4};
    for (uint32_t i = 0; i < 4; i++) {
        machine.nodes[i] = (struct topology_node){.number = i, .physical = i, .total = totals[i], .has_cpus = i != 2};
        for (uint32_t k = 0; k < 4; k++)
            machine.nodes[i].distances[k] = i == k ? 10 : 20 + 5 * (i > k ? i - k : k - i);
    }
    return 0;
}

static struct pools *make(const struct pools_config *config)
{
    struct problem problem = PROBLEM_NULL;
    struct pools *pools = NULL;

    if (pools_new(&pools, &machine, config, &problem))
        fail_msg("%s", problem.sentence);
    return pools;
}

static struct pool *find(struct pools *pools, struct memory_spec request)
{
    struct problem problem = PROBLEM_NULL;
    struct pool *pool = NULL;

    if (pools_find(pools, &request, &pool, &problem))
        fail_msg("%s", problem.sentence);
    return pool;
}

static int find_fails(struct pools *pools, struct memory_spec request, const char *word)
{
    struct problem problem = PROBLEM_NULL;
    struct pool *pool = NULL;
    int r = pools_find(pools, &request, &pool, &problem);

    assert_null(pool);
    if (!strstr(problem.sentence, word))
        fail_msg("\"%s\" does not say \"%s\"", problem.sentence, word);
    return r;
}

static void every_node_has_its_pools(void **state)
{
    struct pools *pools = make(&(struct pools_config){0});

    assert_non_null(pools_by_name(pools, "node0-4k"));
    assert_non_null(pools_by_name(pools, "node2-4k"));
    assert_non_null(pools_by_name(pools, "node1-thp"));
    assert_non_null(pools_by_name(pools, "all-4k"));
    assert_non_null(pools_by_name(pools, "all-thp"));
    assert_null(pools_by_name(pools, "node3-4k"));
    assert_null(pools_by_name(pools, "node0-2m"));
    assert_int_equal(pools_count(pools), 8);
    for (uint32_t i = 0; i < pools_count(pools); i++) {
        assert_int_equal(pools_get(pools, i)->index, i);
        assert_ptr_equal(pools_by_name(pools, pools_get(pools, i)->name), pools_get(pools, i));
    }
    assert_null(pools_get(pools, 8));
    /* half of each node, base pages and THP together */
    assert_int_equal(pool_capacity(pools_by_name(pools, "node0-4k")), 512 * MB);
    assert_int_equal(pool_capacity(pools_by_name(pools, "all-thp")), 1792 * MB);
    pools_free(pools);
}

static void capacity_is_configured(void **state)
{
    struct pools *pools = make(&(struct pools_config){.capacity = {.percent = 80}});
    struct pools *none = NULL;
    struct pools_config much = {.capacity = {.percent = 101}};

    assert_int_equal(pools_node_budget(pools, 0)->capacity, 1024 * MB / 100 * 80 / PAGE * PAGE);
    pools_free(pools);
    pools = make(&(struct pools_config){.capacity = {.bytes = 1000 * MB}});
    assert_int_equal(pools_node_budget(pools, 0)->capacity, 1000 * MB);
    assert_int_equal(pools_node_budget(pools, 2)->capacity, 512 * MB);
    pools_free(pools);
    assert_int_equal(pools_new(&none, &machine, &much, NULL), STATUS_INVALID_ARGUMENT);
    assert_null(none);
}

static void a_request_finds_its_pool(void **state)
{
    struct pools *pools = make(&(struct pools_config){0});

    assert_string_equal(find(pools, (struct memory_spec){0})->name, "all-4k");
    assert_string_equal(find(pools, (struct memory_spec){.n_nodes = 1, .nodes = {1}})->name, "node1-4k");
    assert_string_equal(find(pools, (struct memory_spec){.n_nodes = 2, .nodes = {1, 0}})->name, "all-4k");
    assert_string_equal(
        find(pools, (struct memory_spec){.n_nodes = 1, .nodes = {1}, .placement = PLACEMENT_PREFERRED})->name,
        "all-4k");
    assert_string_equal(
        find(pools, (struct memory_spec){.n_nodes = 1, .nodes = {3}, .placement = PLACEMENT_LOCAL})->name, "all-4k");
    assert_string_equal(find(pools, (struct memory_spec){.pages = PAGES_THP})->name, "all-thp");
    assert_string_equal(find(pools, (struct memory_spec){.pool = "node0-thp"})->name, "node0-thp");
    assert_string_equal(find(pools, (struct memory_spec){.page_size = PAGE})->name, "all-4k");

    assert_int_equal(find_fails(pools, (struct memory_spec){.pool = "node7-4k"}, "node7-4k"), STATUS_NO_SUCH_POOL);
    assert_int_equal(find_fails(pools, (struct memory_spec){.n_nodes = 1, .nodes = {3}}, "no memory"),
                     STATUS_NO_SUCH_NODE);
    assert_int_equal(find_fails(pools, (struct memory_spec){.n_nodes = 1, .nodes = {9}}, "node 9"),
                     STATUS_NO_SUCH_NODE);
    assert_int_equal(find_fails(pools, (struct memory_spec){.pages = PAGES_HUGETLB}, "no pages"), STATUS_NO_SUCH_POOL);
    assert_int_equal(find_fails(pools, (struct memory_spec){.page_size = 12345}, "12345"), STATUS_NO_SUCH_POOL);
    assert_int_equal(find_fails(pools, (struct memory_spec){.pool = "node0-4k", .pages = PAGES_THP}, "kind"),
                     STATUS_INVALID_ARGUMENT);
    pools_free(pools);

    machine.thp_size = 0;
    pools = make(&(struct pools_config){0});
    assert_int_equal(find_fails(pools, (struct memory_spec){.pages = PAGES_THP}, "shmem_enabled"), STATUS_NO_SUCH_POOL);
    pools_free(pools);
}

static int plan_fails(struct pool *pool, struct memory_spec request, uint64_t size)
{
    struct problem problem = PROBLEM_NULL;
    struct plan plan;
    int r = pool_plan(pool, &request, size, NOW, &plan, &problem);

    assert_true(r > 0);
    assert_true(strlen(problem.sentence) > 10);
    return r;
}

static void sizes_have_their_own_errors(void **state)
{
    struct pools *pools = make(&(struct pools_config){0});
    struct pool *pool = pools_by_name(pools, "node0-4k");
    struct pool *all = pools_by_name(pools, "all-4k");
    struct plan plan;

    assert_int_equal(plan_fails(pool, (struct memory_spec){0}, 0), STATUS_SIZE_ZERO);
    assert_int_equal(plan_fails(pool, (struct memory_spec){0}, UINT64_MAX), STATUS_SIZE_OVERFLOW);
    assert_int_equal(plan_fails(pool, (struct memory_spec){0}, UINT64_C(1) << 63), STATUS_SIZE_OVERFLOW);
    assert_int_equal(plan_fails(pool, (struct memory_spec){0}, 512 * MB + 1), STATUS_TOO_BIG);
    assert_int_equal(pool_plan(pool, &(struct memory_spec){0}, 1, NOW, &plan, NULL), 0);
    assert_int_equal(plan.brief.bytes, PAGE);

    assert_int_equal(pool_plan(pool, &(struct memory_spec){0}, 400 * MB, NOW, &plan, NULL), 0);
    assert_int_equal(pool_charge(pool, &plan, NULL, TALLY_USED, NULL), 0);
    assert_int_equal(plan_fails(pool, (struct memory_spec){0}, 200 * MB), STATUS_POOL_FULL);
    /* charged to the node, so the other pools of that node feel it */
    assert_int_equal(plan_fails(pools_by_name(pools, "node0-thp"), (struct memory_spec){0}, 200 * MB),
                     STATUS_POOL_FULL);
    assert_int_equal(pool_available(pools_by_name(pools, "node0-thp")), 112 * MB);
    assert_int_equal(
        plan_fails(all, (struct memory_spec){.n_nodes = 1, .nodes = {0}, .placement = PLACEMENT_BIND}, 200 * MB),
        STATUS_POOL_FULL);
    assert_int_equal(
        plan_fails(all, (struct memory_spec){.n_nodes = 1, .nodes = {0}, .placement = PLACEMENT_BIND}, 600 * MB),
        STATUS_TOO_BIG);
    /* a preference goes on to the next nearest */
    assert_int_equal(pool_plan(all, &(struct memory_spec){.n_nodes = 1, .nodes = {0}, .placement = PLACEMENT_LOCAL},
                               200 * MB, NOW, &plan, NULL),
                     0);
    assert_int_equal(plan.brief.node, 1);
    pools_free(pools);
}

static void plans_mind_the_pool(void **state)
{
    struct pools *pools = make(&(struct pools_config){0});
    struct pool *pool = pools_by_name(pools, "node0-4k");
    struct pool *all = pools_by_name(pools, "all-4k");
    struct plan plan;

    assert_int_equal(plan_fails(pool, (struct memory_spec){.n_nodes = 1, .nodes = {1}}, PAGE), STATUS_NO_SUCH_NODE);
    assert_int_equal(pool_plan(pool, &(struct memory_spec){.n_nodes = 1, .nodes = {1}, .placement = PLACEMENT_LOCAL},
                               PAGE, NOW, &plan, NULL),
                     0);
    assert_int_equal(plan.brief.node, 0);
    assert_int_equal(plan_fails(all, (struct memory_spec){.n_nodes = 2, .nodes = {0, 0}}, PAGE),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(
        plan_fails(all, (struct memory_spec){.placement = PLACEMENT_SPLIT, .n_weights = 3, .weights = {0}}, PAGE),
        STATUS_INVALID_ARGUMENT);
    assert_int_equal(
        plan_fails(all, (struct memory_spec){.placement = PLACEMENT_SPLIT, .n_weights = 2, .weights = {0}}, PAGE),
        STATUS_INVALID_ARGUMENT);
    /* nobody says where nor from where: the node with most room */
    assert_int_equal(pool_plan(all, &(struct memory_spec){0}, PAGE, NOW, &plan, NULL), 0);
    assert_int_equal(plan.brief.node, 1);
    pools_free(pools);
}

/* ---- which node comes first -------------------------------------------------------------------------------------- */

/* Two nodes with CPUs, a fast and a large slow one without: the latter has most room. */
static int setup_tiers(void **state)
{
    static const uint64_t totals[] = {1024 * MB, 1024 * MB, 256 * MB, 8192 * MB};
    static const uint32_t distances[4][4] = {{10, 21, 15, 40}, {21, 10, 30, 30}, {15, 30, 10, 50}, {40, 30, 50, 10}};

    machine = (struct topology){.base_page = PAGE, .n_nodes = 4};
    for (uint32_t i = 0; i < 4; i++) {
        machine.nodes[i] = (struct topology_node){.number = i, .physical = i, .total = totals[i], .has_cpus = i < 2};
        memcpy(machine.nodes[i].distances, distances[i], sizeof(distances[i]));
    }
    return 0;
}

/* The nodes of a buffer that takes all the room that there is on those which the placement permits. */
static const char *order(struct pool *pool, struct memory_spec request)
{
    static char text[64];
    bool only_named =
        request.n_nodes && (request.placement == PLACEMENT_BIND || request.placement == PLACEMENT_INTERLEAVE);
    struct problem problem = PROBLEM_NULL;
    uint64_t size = 0;
    struct plan plan;

    for (uint32_t i = 0; i < (only_named ? request.n_nodes : pool->n_nodes); i++) {
        const struct budget *budget = pool_node_budget(pool, only_named ? request.nodes[i] : pool->nodes[i]);

        size += budget->capacity - tally_used(&budget->bytes);
    }
    if (request.placement == PLACEMENT_INTERLEAVE)
        size = 16 * PAGE;
    if (pool_plan(pool, &request, size, NOW, &plan, &problem))
        fail_msg("%s", problem.sentence);
    text[0] = '\0';
    for (uint32_t i = 0; i < plan.brief.n_nodes; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "", plan.nodes.node[i]);
    return text;
}

#define ASKED(how, caller, ...)                                          \
    ((struct memory_spec){                                               \
        .placement = PLACEMENT_##how,                                    \
        .caller_node = (caller),                                         \
        .n_nodes = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
        .nodes = {__VA_ARGS__},                                          \
    })
#define ANYWHERE(how, caller) ((struct memory_spec){.placement = PLACEMENT_##how, .caller_node = (caller)})
#define ON(node)              (1 + (node))

static void the_callers_node_comes_first_and_then_the_nearest(void **state)
{
    struct pools *pools = make(&(struct pools_config){0});
    struct pool *all = pools_by_name(pools, "all-4k");

    assert_string_equal(order(all, ANYWHERE(POOL, ON(0))), "0 2 1 3");
    assert_string_equal(order(all, ANYWHERE(POOL, ON(1))), "1 0 2 3");
    assert_string_equal(order(all, ANYWHERE(LOCAL, ON(1))), "1 0 2 3");
    assert_string_equal(order(all, ANYWHERE(PREFERRED, ON(1))), "1 0 2 3");
    assert_string_equal(order(all, ANYWHERE(BIND, ON(1))), "1 0 2 3");

    assert_string_equal(order(all, ASKED(BIND, ON(0), 3, 2, 1, 0)), "0 2 1 3");
    assert_string_equal(order(all, ASKED(BIND, ON(1), 3, 2, 1, 0)), "1 0 3 2");
    assert_string_equal(order(all, ASKED(BIND, ON(0), 3, 1)), "1 3");
    assert_string_equal(order(all, ASKED(BIND, ON(0), 3, 2)), "2 3");
    /* those that are as far as each other, as they are named */
    assert_string_equal(order(all, ASKED(BIND, ON(1), 3, 2)), "3 2");

    /* those that are named before those that are not; of one alone its own neighbours */
    assert_string_equal(order(all, ASKED(PREFERRED, ON(0), 3, 1)), "1 3 0 2");
    assert_string_equal(order(all, ASKED(POOL, ON(0), 3, 1)), "1 3 0 2");
    assert_string_equal(order(all, ASKED(PREFERRED, ON(0), 3)), "3 1 0 2");
    assert_string_equal(order(all, ASKED(LOCAL, ON(0), 0)), "0 2 1 3");

    /* parts go round as they are told to */
    assert_string_equal(order(all, ASKED(INTERLEAVE, ON(0), 3, 0)), "3 0");
    pools_free(pools);
}

static void a_full_node_is_passed_over_for_the_next_nearest(void **state)
{
    static const uint32_t expected[] = {0, 2, 1, 3};
    struct pools *pools = make(&(struct pools_config){0});
    struct pool *all = pools_by_name(pools, "all-4k");
    const struct memory_spec bound = ASKED(BIND, ON(0), 3, 2, 1, 0);
    struct plan plan;

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pool_plan(all, &bound, 100 * MB, NOW, &plan, NULL), 0);
        assert_int_equal(plan.brief.n_nodes, 1);
        assert_int_equal(plan.brief.node, expected[i]);
        assert_int_equal(pool_plan(all, &ANYWHERE(POOL, ON(0)), 100 * MB, NOW, &plan, NULL), 0);
        assert_int_equal(plan.brief.node, expected[i]);
        plan.brief.bytes = plan.nodes.bytes[0] = pool_node_budget(all, expected[i])->capacity;
        assert_int_equal(pool_charge(all, &plan, NULL, TALLY_USED, NULL), 0);
    }
    pools_free(pools);
}

static void memory_only_nodes_come_after_others_that_are_as_far(void **state)
{
    struct pools *pools;

    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++)
            machine.nodes[i].distances[k] = i == k ? 10 : 20;
    machine.nodes[0].has_cpus = false;
    machine.nodes[2].has_cpus = true;
    pools = make(&(struct pools_config){0});
    assert_string_equal(order(pools_by_name(pools, "all-4k"), ANYWHERE(POOL, ON(1))), "1 2 0 3");
    assert_string_equal(order(pools_by_name(pools, "all-4k"), ASKED(BIND, ON(1), 3, 0, 2)), "2 3 0");
    pools_free(pools);
    /* nor has a distance that nobody knows any merit */
    machine.nodes[1].distances[2] = 0;
    pools = make(&(struct pools_config){0});
    assert_string_equal(order(pools_by_name(pools, "all-4k"), ANYWHERE(POOL, ON(1))), "1 0 3 2");
    pools_free(pools);
}

static void who_does_not_tell_his_node_gets_a_guess(void **state)
{
    struct pools *pools = make(&(struct pools_config){0});
    struct pool *all = pools_by_name(pools, "all-4k"), *node0 = pools_by_name(pools, "node0-4k");
    struct plan plan;

    /* the one with processors that has most room, and not that without */
    assert_string_equal(order(all, ANYWHERE(POOL, 0)), "0 2 1 3");
    assert_int_equal(pool_plan(node0, &(struct memory_spec){0}, PAGE, NOW, &plan, NULL), 0);
    assert_int_equal(pool_charge(node0, &plan, NULL, TALLY_USED, NULL), 0);
    assert_string_equal(order(all, ANYWHERE(POOL, 0)), "1 0 2 3");
    assert_string_equal(order(all, ANYWHERE(POOL, ON(63))), "1 0 2 3");
    assert_string_equal(order(all, ANYWHERE(POOL, UINT32_MAX)), "1 0 2 3");
    /* the first that is named: an older client names its own for LOCAL */
    assert_string_equal(order(all, ASKED(LOCAL, 0, 0)), "0 2 1 3");
    assert_string_equal(order(all, ASKED(BIND, 0, 1, 3, 0)), "1 0 3");
    assert_string_equal(order(all, ASKED(PREFERRED, 0, 3, 0)), "3 0 1 2");
    pools_free(pools);
}

static void a_node_without_memory_has_neighbours_too(void **state)
{
    struct pools *pools = make(&(struct pools_config){0});
    struct pool *all = pools_by_name(pools, "all-4k");

    assert_string_equal(order(all, ANYWHERE(POOL, ON(3))), "2 1 0");
    assert_string_equal(order(all, ASKED(LOCAL, ON(3), 3)), "2 1 0");
    assert_string_equal(order(all, ASKED(BIND, ON(3), 0, 1)), "1 0");
    pools_free(pools);
}

static void the_order_is_the_same_in_declared_pools(void **state)
{
    struct pool_config declared[] = {
        {.name = "bound", .placement = PLACEMENT_BIND, .n_nodes = 3, .nodes = {3, 1, 0}},
        {.name = "preferred", .placement = PLACEMENT_PREFERRED, .n_nodes = 3, .nodes = {3, 1, 0}},
        {.name = "local", .n_nodes = 3, .nodes = {3, 1, 0}},
    };
    struct pools *pools = make(&(struct pools_config){.pools = declared, .n_pools = 3});

    for (unsigned i = 0; i < 3; i++) {
        struct pool *pool = pools_by_name(pools, declared[i].name);

        assert_string_equal(order(pool, ANYWHERE(POOL, ON(0))), "0 1 3");
        assert_string_equal(order(pool, ANYWHERE(POOL, ON(1))), "1 0 3");
        assert_string_equal(order(pool, ANYWHERE(POOL, ON(2))), "0 1 3");
    }
    pools_free(pools);
}

static void declared_pools_have_caps(void **state)
{
    struct pool_config declared[] = {
        {.name = "small", .capacity = {.bytes = 10 * MB}, .n_nodes = 2, .nodes = {0, 1}},
        {.name = "half", .capacity = {.percent = 50}, .n_nodes = 1, .nodes = {0}, .committer = COMMITTER_NONE},
        {.name = "round", .placement = PLACEMENT_INTERLEAVE, .part_size = 2 * MB},
    };
    struct pools *pools = make(&(struct pools_config){.pools = declared, .n_pools = 3});
    struct pool *small = pools_by_name(pools, "small");
    struct pool *round = pools_by_name(pools, "round");
    struct plan plan;
    struct plan second;

    assert_int_equal(small->placement, PLACEMENT_LOCAL);
    assert_int_equal(pool_capacity(small), 10 * MB);
    assert_int_equal(pool_capacity(pools_by_name(pools, "half")), 256 * MB);
    assert_int_equal(pools_by_name(pools, "half")->committer, COMMITTER_NONE);
    assert_int_equal(round->n_nodes, 3);
    assert_int_equal(plan_fails(small, (struct memory_spec){0}, 11 * MB), STATUS_TOO_BIG);
    assert_int_equal(pool_plan(small, &(struct memory_spec){0}, 6 * MB, NOW, &plan, NULL), 0);
    assert_int_equal(pool_plan(small, &(struct memory_spec){0}, 6 * MB, NOW, &second, NULL), 0);
    assert_int_equal(pool_charge(small, &plan, NULL, TALLY_USED, NULL), 0);
    assert_int_equal(pool_charge(small, &second, NULL, TALLY_USED, NULL), STATUS_POOL_FULL);
    assert_int_equal(plan_fails(small, (struct memory_spec){0}, 6 * MB), STATUS_POOL_FULL);
    pool_shift(small, &plan, NULL, TALLY_USED, TALLY_NONE);
    assert_int_equal(pool_available(small), 10 * MB);
    assert_int_equal(pool_plan(round, &(struct memory_spec){0}, 8 * MB, NOW, &plan, NULL), 0);
    assert_int_equal(plan.brief.part_size, 2 * MB);
    assert_int_equal(plan.brief.n_nodes, 3);
    pools_free(pools);
}

static void what_returns_counts_for_what_is_had_soon(void **state)
{
    struct pool_config declared[] = {
        {.name = "small", .capacity = {.bytes = 10 * MB}, .n_nodes = 1, .nodes = {0}},
        {.name = "round", .placement = PLACEMENT_INTERLEAVE, .part_size = 2 * MB},
    };
    struct pools *pools = make(&(struct pools_config){.pools = declared, .n_pools = 2});
    struct pool *small = pools_by_name(pools, "small"), *node = pools_by_name(pools, "node0-4k");
    struct pool *round = pools_by_name(pools, "round");
    const struct memory_spec request = {0};
    struct plan plan;

    assert_int_equal(pool_largest_soon(small, NULL), 10 * MB);
    assert_int_equal(pool_largest_soon(node, NULL), 512 * MB);
    /* node 2 has least, and as much as the others each */
    assert_in_range(pool_largest_soon(round, NULL), 3 * 256 * MB - 2 * MB, 3 * 256 * MB + 4 * MB);
    assert_true(pool_fits_soon(round, &request, pool_largest_soon(round, NULL), NULL));
    assert_false(pool_fits_soon(round, &request, pool_largest_soon(round, NULL) + PAGE, NULL));

    assert_int_equal(pool_plan(small, &request, 8 * MB, NOW, &plan, NULL), 0);
    assert_int_equal(pool_charge(small, &plan, NULL, TALLY_USED, NULL), 0);
    assert_int_equal(pool_largest_soon(small, NULL), 2 * MB);
    assert_false(pool_fits_soon(small, &request, 3 * MB, NULL));
    assert_false(pool_is_reclaiming(node));
    pool_shift(small, &plan, NULL, TALLY_USED, TALLY_RECLAIMING);
    assert_true(pool_is_reclaiming(node) && pool_is_reclaiming(round));
    assert_int_equal(pool_available(small), 2 * MB);
    assert_int_equal(pool_available_soon(small, NULL), 10 * MB);
    assert_int_equal(pool_available_soon(node, NULL), 512 * MB);
    assert_true(pool_fits_soon(small, &request, 10 * MB, NULL));
    assert_int_equal(plan_fails(small, request, 3 * MB), STATUS_POOL_FULL);
    pool_lower(small, 0, NULL, TALLY_RECLAIMING, 5 * MB);
    assert_int_equal(pool_available(small), 7 * MB);
    assert_int_equal(pool_available_soon(small, NULL), 10 * MB);
    plan.brief.bytes = plan.nodes.bytes[0] = 3 * MB;
    pool_shift(small, &plan, NULL, TALLY_RECLAIMING, TALLY_NONE);
    assert_false(pool_is_reclaiming(node));
    assert_int_equal(pool_available(small), 10 * MB);
    pools_free(pools);
}

static int declare(struct pool_config config)
{
    struct problem problem = PROBLEM_NULL;
    struct pools *pools = NULL;
    int r = pools_new(&pools, &machine, &(struct pools_config){.pools = &config, .n_pools = 1}, &problem);

    if (!r) {
        pools_free(pools);
        return 0;
    }
    assert_null(pools);
    assert_true(strlen(problem.sentence) > 10);
    return r;
}

static void bad_declarations_are_refused(void **state)
{
    assert_int_equal(declare((struct pool_config){.name = "fine"}), 0);
    assert_int_equal(declare((struct pool_config){.name = ""}), STATUS_INVALID_ARGUMENT);
    assert_int_equal(declare((struct pool_config){.name = "a b"}), STATUS_INVALID_ARGUMENT);
    assert_int_equal(declare((struct pool_config){.name = "node0-4k"}), STATUS_INVALID_ARGUMENT);
    assert_int_equal(declare((struct pool_config){.name = "x", .n_nodes = 1, .nodes = {3}}), STATUS_NO_SUCH_NODE);
    assert_int_equal(declare((struct pool_config){.name = "x", .n_nodes = 1, .nodes = {70}}), STATUS_NO_SUCH_NODE);
    assert_int_equal(declare((struct pool_config){.name = "x", .n_nodes = 2, .nodes = {1, 1}}),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(declare((struct pool_config){.name = "x", .pages = PAGES_HUGETLB}), STATUS_NOT_SUPPORTED);
    assert_int_equal(declare((struct pool_config){.name = "x", .part_size = PAGE}), STATUS_INVALID_ARGUMENT);
    assert_int_equal(
        declare((struct pool_config){.name = "x", .placement = PLACEMENT_INTERLEAVE, .part_size = PAGE + 1}),
        STATUS_INVALID_ARGUMENT);
    assert_int_equal(declare((struct pool_config){.name = "x", .n_weights = 1, .weights = {1}}),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(declare((struct pool_config){.name = "x", .placement = PLACEMENT_SPLIT, .n_weights = 3}),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(declare((struct pool_config){.name = "x", .capacity = {.percent = 200}}), STATUS_INVALID_ARGUMENT);
    machine.thp_size = 0;
    assert_int_equal(declare((struct pool_config){.name = "x", .pages = PAGES_THP}), STATUS_NOT_SUPPORTED);
}

/* I5: after any sequence of charges and uncharges every sum is the sum of what is charged. */
static void I5_budgets_stay_exact(void **state)
{
    struct pool_config declared[] = {
        {.name = "capped", .capacity = {.bytes = 100 * MB}},
        {.name = "split", .placement = PLACEMENT_SPLIT},
        {.name = "round", .placement = PLACEMENT_INTERLEAVE},
    };
    struct pools *pools = make(&(struct pools_config){.pools = declared, .n_pools = 3});
    enum { LIVE = 300 };
    static struct {
        struct pool *pool;
        struct plan plan;
    } live[LIVE];
    unsigned refused = 0;

    srandom(7);
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = (unsigned)random() % LIVE;
        uint64_t nodes[TOPOLOGY_NODES_MAX] = {0};
        uint64_t used[16] = {0};

        if (live[i].pool) {
            pool_shift(live[i].pool, &live[i].plan, NULL, TALLY_USED, TALLY_NONE);
            live[i].pool = NULL;
        } else {
            struct pool *pool = pools_get(pools, (uint32_t)random() % pools_count(pools));
            struct memory_spec request = {.placement = (enum placement)(random() % 6)};
            uint64_t size = 1 + (uint64_t)random() % (20 * MB);
            int r = pool_plan(pool, &request, size, NOW, &live[i].plan, NULL);

            if (!r)
                r = pool_charge(pool, &live[i].plan, NULL, TALLY_USED, NULL);
            if (!r)
                live[i].pool = pool;
            else
                refused++;
        }
        if (round % 16)
            continue;
        for (unsigned k = 0; k < LIVE; k++) {
            if (!live[k].pool)
                continue;
            used[live[k].pool->index] += live[k].plan.brief.bytes;
            for (uint32_t n = 0; n < live[k].plan.brief.n_nodes; n++)
                nodes[live[k].plan.nodes.node[n]] += live[k].plan.nodes.bytes[n];
        }
        for (uint32_t n = 0; n < 4; n++) {
            assert_int_equal(tally_used(&pools_node_budget(pools, n)->bytes), nodes[n]);
            assert_true(nodes[n] <= pools_node_budget(pools, n)->capacity);
        }
        for (uint32_t p = 0; p < pools_count(pools); p++)
            assert_int_equal(tally_used(&pools_get(pools, p)->bytes), used[p]);
    }
    assert_true(refused > 100);
    for (unsigned k = 0; k < LIVE; k++)
        if (live[k].pool)
            pool_shift(live[k].pool, &live[k].plan, NULL, TALLY_USED, TALLY_NONE);
    for (uint32_t p = 0; p < pools_count(pools); p++) {
        assert_int_equal(tally_used(&pools_get(pools, p)->bytes), 0);
        assert_int_equal(tally_used(&pools_get(pools, p)->buffers), 0);
    }
    pools_free(pools);
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/* Of each node's memory, through whatever pools, and of a cap; where a share is used up another node may do. */
static void I7_a_share_is_of_nodes_and_not_of_pools(void **state)
{
    struct pool_config small = {.name = "small", .capacity = {.bytes = 10 * MB}, .n_nodes = 1, .nodes = {1}};
    struct pools *pools = make(&(struct pools_config){.pools = &small, .n_pools = 1});
    struct pool *node0 = pools_by_name(pools, "node0-4k"), *thp = pools_by_name(pools, "node0-thp");
    struct pool *capped = pools_by_name(pools, "small");
    const struct memory_spec any = {0}, near0 = {.n_nodes = 1, .nodes = {0}, .placement = PLACEMENT_LOCAL};
    const struct account_limits limits = {.share = 50};
    struct accounts accounts;
    struct account *first, *second;
    struct pool_view view = {.taken = TALLY_STOCK};
    struct problem problem = PROBLEM_NULL;
    struct plan plan, other, unused;

    accounts_init(&accounts, &limits);
    accounts_set_places(&accounts, pools_places(pools));
    assert_int_equal(account_of_user(&accounts, 1000, &first, NULL), 0);
    assert_int_equal(account_of_user(&accounts, 1001, &second, NULL), 0);
    view.payer = first;
    assert_int_equal(pool_plan(node0, &any, 257 * MB, view, &plan, &problem), STATUS_LIMIT);
    assert_non_null(strstr(problem.sentence, "bytes of pool node0-4k"));
    assert_non_null(strstr(problem.sentence, " bytes more, but may have "));
    assert_non_null(strstr(problem.sentence, " bytes, "));
    assert_non_null(strstr(problem.sentence, "[user 1000] share = 100%"));
    assert_int_equal(pool_plan(node0, &any, 513 * MB, view, &plan, NULL), STATUS_TOO_BIG);
    assert_int_equal(pool_plan(node0, &any, 256 * MB, view, &plan, NULL), 0);
    assert_int_equal(pool_charge(node0, &plan, first, TALLY_USED, NULL), 0);
    assert_int_equal(pool_plan(thp, &any, PAGE, view, &unused, NULL), STATUS_LIMIT);
    assert_int_equal(pool_largest_soon(node0, first), 0);
    assert_int_equal(pool_largest_soon(thp, second), 128 * MB);
    assert_int_equal(pool_largest_soon(node0, NULL), 256 * MB);
    assert_int_equal(pool_plan(pools_by_name(pools, "all-4k"), &near0, MB, view, &unused, NULL), 0);
    assert_int_equal(unused.brief.node, 1);
    assert_int_equal(pool_largest_soon(capped, first), 5 * MB);

    /* stock is nobody's, until it is earmarked */
    view.payer = NULL;
    assert_int_equal(pool_plan(node0, &any, 100 * MB, view, &other, NULL), 0);
    assert_int_equal(pool_charge(node0, &other, NULL, TALLY_STOCK, NULL), 0);
    assert_int_equal(pool_largest_soon(node0, second), 128 * MB);
    assert_int_equal(pool_check_share(node0, &other, first, NULL), STATUS_LIMIT);
    assert_int_equal(pool_check_share(node0, &other, second, NULL), 0);
    pool_shift_payer(node0, &other, second, TALLY_NONE, TALLY_STOCK);
    assert_int_equal(pool_largest_soon(node0, second), 28 * MB);
    assert_int_equal(pool_check_share(node0, &other, second, NULL), STATUS_LIMIT);
    pool_shift(node0, &other, second, TALLY_STOCK, TALLY_USED);

    /* what is certain to be free soon is waited for */
    assert_int_equal(pool_largest_soon(node0, second), 28 * MB);
    pool_shift(node0, &plan, first, TALLY_USED, TALLY_RECLAIMING);
    assert_int_equal(pool_largest_soon(node0, second), 156 * MB);
    view.payer = second;
    assert_int_equal(pool_plan(node0, &any, 156 * MB, view, &unused, NULL), STATUS_LIMIT);
    pool_shift(node0, &plan, first, TALLY_RECLAIMING, TALLY_NONE);
    pool_lower(node0, 0, second, TALLY_USED, 40 * MB);
    assert_int_equal(pool_largest_soon(node0, second), 196 * MB);
    pool_lower(node0, 0, second, TALLY_USED, 60 * MB);
    account_unref(first);
    account_unref(second);
    accounts_deinit(&accounts);
    pools_free(pools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_node_has_its_pools, setup),
        cmocka_unit_test_setup(capacity_is_configured, setup),
        cmocka_unit_test_setup(a_request_finds_its_pool, setup),
        cmocka_unit_test_setup(sizes_have_their_own_errors, setup),
        cmocka_unit_test_setup(plans_mind_the_pool, setup),
        cmocka_unit_test_setup(the_callers_node_comes_first_and_then_the_nearest, setup_tiers),
        cmocka_unit_test_setup(a_full_node_is_passed_over_for_the_next_nearest, setup_tiers),
        cmocka_unit_test_setup(memory_only_nodes_come_after_others_that_are_as_far, setup_tiers),
        cmocka_unit_test_setup(who_does_not_tell_his_node_gets_a_guess, setup_tiers),
        cmocka_unit_test_setup(a_node_without_memory_has_neighbours_too, setup),
        cmocka_unit_test_setup(the_order_is_the_same_in_declared_pools, setup_tiers),
        cmocka_unit_test_setup(declared_pools_have_caps, setup),
        cmocka_unit_test_setup(what_returns_counts_for_what_is_had_soon, setup),
        cmocka_unit_test_setup(bad_declarations_are_refused, setup),
        cmocka_unit_test_setup(I5_budgets_stay_exact, setup),
        cmocka_unit_test_setup(I7_a_share_is_of_nodes_and_not_of_pools, setup),
    };

    return test_run(tests, NULL, NULL);
}
