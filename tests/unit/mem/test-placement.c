/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans as properties: whatever is asked for and however full the nodes are, the parts sum up to the
 * buffer, no node gets more than it has room for, and every offset is on the node that is charged for it.
 */
#include "tests/support/test.h"

#include <string.h>

#include "mem/placement.h"
#include "proto/status.h"

#define GRANULE UINT64_C(4096)

static uint64_t seed = 88172645463325252u;

static uint64_t number(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static struct plan_request request(enum placement placement, uint64_t granules, uint32_t n_nodes)
{
    struct plan_request r = {
        .bytes = granules * GRANULE,
        .granule = GRANULE,
        .placement = placement,
        .n_nodes = n_nodes,
    };

    for (uint32_t i = 0; i < n_nodes; i++)
        r.nodes[i] = i;
    return r;
}

/* Walks the plan by plan_node_of() and compares with what the nodes are charged. */
static void check_plan(const struct plan *plan, const struct plan_request *r, const uint64_t *room)
{
    uint64_t seen[TOPOLOGY_NODES_MAX] = {0};
    uint64_t sum = 0;

    assert_int_equal(plan->brief.bytes, r->bytes);
    assert_in_range(plan->brief.n_nodes, 1, r->n_nodes);
    assert_int_equal(plan->brief.node, plan->nodes.node[0]);
    for (uint64_t offset = 0; offset < r->bytes;) {
        uint64_t run = 0;
        uint32_t node = plan_node_of(plan, offset, &run);

        assert_true(run > 0 && run <= r->bytes - offset && run % GRANULE == 0);
        assert_int_equal(plan_node_of(plan, offset + run - 1, NULL), node);
        seen[node] += run;
        offset += run;
    }
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++) {
        uint32_t node = plan->nodes.node[i];

        assert_true(plan->nodes.bytes[i] > 0);
        assert_int_equal(seen[node], plan->nodes.bytes[i]);
        assert_true(plan->nodes.bytes[i] <= room[node]);
        sum += plan->nodes.bytes[i];
    }
    assert_int_equal(sum, r->bytes);
}

static void any_plan_sums_up(void **state)
{
    uint64_t room[TOPOLOGY_NODES_MAX];
    unsigned made = 0;

    for (unsigned round = 0; round < 20000; round++) {
        enum placement placement = PLACEMENT_BIND + (enum placement)number(5);
        struct plan_request r = request(placement, 1 + number(500), 1 + (uint32_t)number(6));
        struct plan plan;
        struct plan again;
        uint64_t total = 0;
        int status;

        for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++)
            room[i] = number(300) * GRANULE + number(3);
        for (uint32_t i = 0; i < r.n_nodes; i++) {
            uint32_t with = (uint32_t)number(r.n_nodes);
            uint32_t node = r.nodes[i];

            r.nodes[i] = r.nodes[with];
            r.nodes[with] = node;
            r.weights[i] = (uint32_t)number(5);
        }
        if (number(2))
            r.part_size = (1 + number(20)) * GRANULE;
        for (uint32_t i = 0; i < r.n_nodes; i++)
            total += room[i] / GRANULE * GRANULE;
        status = plan_make(&plan, &r, room, NULL);
        if (!status) {
            made++;
            check_plan(&plan, &r, room);
            assert_int_equal(plan_make(&again, &r, room, NULL), 0);
            assert_memory_equal(&plan, &again, sizeof(plan));
            assert_int_equal(plan.brief.strict, placement == PLACEMENT_BIND);
            plan_unpack(&again, &plan.brief, &plan.nodes);
            check_plan(&again, &r, room);
        } else {
            assert_int_equal(status, STATUS_POOL_FULL);
            if (placement != PLACEMENT_INTERLEAVE && placement != PLACEMENT_SPLIT)
                assert_true(total < r.bytes);
        }
    }
    assert_true(made > 1000);
}

static void nodes_are_tried_in_order(void **state)
{
    static const enum placement placements[] = {PLACEMENT_BIND, PLACEMENT_PREFERRED, PLACEMENT_LOCAL};
    uint64_t room[TOPOLOGY_NODES_MAX] = {10 * GRANULE, 30 * GRANULE, 40 * GRANULE};
    struct plan plan;

    for (unsigned i = 0; i < 3; i++) {
        struct plan_request r = request(placements[i], 20, 3);

        assert_int_equal(plan_make(&plan, &r, room, NULL), 0);
        assert_int_equal(plan.brief.n_nodes, 1);
        assert_int_equal(plan.brief.node, 1);
        r.bytes = 50 * GRANULE;
        assert_int_equal(plan_make(&plan, &r, room, NULL), 0);
        assert_int_equal(plan.brief.n_nodes, 3);
        assert_int_equal(plan.nodes.bytes[0], 10 * GRANULE);
        assert_int_equal(plan.nodes.bytes[1], 30 * GRANULE);
        assert_int_equal(plan.nodes.bytes[2], 10 * GRANULE);
        assert_int_equal(plan.brief.strict, placements[i] == PLACEMENT_BIND);
        check_plan(&plan, &r, room);
        r.bytes = 81 * GRANULE;
        assert_int_equal(plan_make(&plan, &r, room, NULL), STATUS_POOL_FULL);
    }
}

static void parts_go_round(void **state)
{
    uint64_t room[TOPOLOGY_NODES_MAX] = {1000 * GRANULE, 1000 * GRANULE, 1000 * GRANULE};
    struct plan_request r = request(PLACEMENT_INTERLEAVE, 10, 3);
    struct problem problem = PROBLEM_NULL;
    struct plan plan;

    r.part_size = 2 * GRANULE;
    assert_int_equal(plan_make(&plan, &r, room, NULL), 0);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(plan_node_of(&plan, i * GRANULE, NULL), i / 2 % 3);
    r.part_size = GRANULE + 1;
    assert_int_equal(plan_make(&plan, &r, room, &problem), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(problem.sentence, "multiple"));

    for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++)
        room[i] = UINT64_C(1) << 40;
    r.bytes = (PLAN_PARTS_MAX + 1) * GRANULE;
    r.part_size = GRANULE;
    assert_int_equal(plan_make(&plan, &r, room, &problem), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(problem.sentence, "8192"));
    r.part_size = 0;
    assert_int_equal(plan_make(&plan, &r, room, NULL), 0);
    assert_int_equal(plan.brief.part_size, 2 * GRANULE);
    check_plan(&plan, &r, room);
}

static void weights_divide(void **state)
{
    uint64_t room[TOPOLOGY_NODES_MAX] = {1000 * GRANULE, 1000 * GRANULE, 1000 * GRANULE};
    struct plan_request r = request(PLACEMENT_SPLIT, 100, 3);
    struct plan plan;

    r.weights[0] = 1;
    r.weights[2] = 3;
    assert_int_equal(plan_make(&plan, &r, room, NULL), 0);
    assert_int_equal(plan.brief.n_nodes, 2);
    assert_int_equal(plan.nodes.bytes[0], 25 * GRANULE);
    assert_int_equal(plan_node_of(&plan, 25 * GRANULE, NULL), 2);
    r.weights[0] = r.weights[2] = UINT32_MAX;
    assert_int_equal(plan_make(&plan, &r, room, NULL), 0);
    assert_int_equal(plan.nodes.bytes[1], 50 * GRANULE);
    memset(r.weights, 0, sizeof(r.weights));
    assert_int_equal(plan_make(&plan, &r, room, NULL), 0);
    assert_int_equal(plan.brief.n_nodes, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_plan_sums_up),
        cmocka_unit_test(nodes_are_tried_in_order),
        cmocka_unit_test(parts_go_round),
        cmocka_unit_test(weights_divide),
    };

    return test_run(tests, NULL, NULL);
}
