/* SPDX-License-Identifier: Apache-2.0 */
/* One pool: where a buffer would go, and who is charged for it. See pool.h. */

#include "mem/pool.h"

#include <string.h>

#include "base/checked.h"
#include "mem/pools.h"
#include "proto/status.h"

static uint64_t left_of(uint64_t capacity, uint64_t used)
{
    return capacity > used ? capacity - used : 0;
}

static struct budget *budget_of(const struct pool *pool, uint32_t node)
{
    return &pool->pools->budgets[pool->budget_index][node];
}

static bool is_among(uint32_t node, uint32_t n, const uint32_t *nodes)
{
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] == node)
            return true;
    return false;
}

bool pool_has_node(const struct pool *pool, uint32_t node)
{
    return is_among(node, pool->n_nodes, pool->nodes);
}

static void append_others(struct plan_request *plan, const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->n_nodes; i++)
        if (!is_among(pool->nodes[i], plan->n_nodes, plan->nodes))
            plan->nodes[plan->n_nodes++] = pool->nodes[i];
}

static bool has_processors(const struct topology *topology, uint32_t number)
{
    const struct topology_node *node = topology_node(topology, number);

    return node && node->has_cpus;
}

/* Is node a nearer to `from` than node b? At equal distance a node with processors comes first: memory without any is
 * rarely the faster one, and many machines report one distance for all nodes that are not local. */
static bool is_nearer(const struct topology *topology, const struct topology_node *from, uint32_t a, uint32_t b)
{
    /* 0 is unknown, and becomes the greatest */
    uint32_t to_a = from->distances[a] - 1, to_b = from->distances[b] - 1;

    if (a == from->number || b == from->number)
        return a == from->number;
    if (to_a != to_b)
        return to_a < to_b;
    return has_processors(topology, a) && !has_processors(topology, b);
}

/* Sorts n nodes, the nearest first. Equally near ones keep their order. */
static void sort_by_distance(const struct topology *topology, const struct topology_node *from, uint32_t n,
                             uint32_t *nodes)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t node = nodes[i], to = i;

        for (; to && is_nearer(topology, from, node, nodes[to - 1]); to--)
            nodes[to] = nodes[to - 1];
        nodes[to] = node;
    }
}

/* The node with most room, among those with processors if there are any. */
static const struct topology_node *most_free_node(const struct pool *pool)
{
    const struct topology *topology = pool->pools->topology;
    uint32_t best = pool->nodes[0];
    uint64_t most = 0;

    for (uint32_t i = 0; i < pool->n_nodes; i++) {
        uint32_t node = pool->nodes[i];
        const struct budget *budget = pool_node_budget(pool, node);
        uint64_t available = left_of(budget->capacity, tally_used(&budget->bytes));
        bool cpus = has_processors(topology, node), best_has = has_processors(topology, best);

        if (cpus != best_has ? cpus : available > most) {
            best = node;
            most = available;
        }
    }
    return topology_node(topology, best);
}

/* The node that the caller's thread runs on. If that is not known: the first node of the spec, or the most free one. */
static const struct topology_node *node_of_caller(const struct pool *pool, const struct memory_spec *spec)
{
    const struct topology *topology = pool->pools->topology;
    const struct topology_node *node = spec->caller_node ? topology_node(topology, spec->caller_node - 1) : NULL;

    if (!node && spec->n_nodes)
        node = topology_node(topology, spec->nodes[0]);
    return node ? node : most_free_node(pool);
}

/* The spec names the first n_named nodes of the plan. They stay before the others. */
static void order_nodes(struct plan_request *plan, uint32_t n_named, const struct pool *pool,
                        const struct memory_spec *spec)
{
    const struct topology *topology = pool->pools->topology;
    const struct topology_node *from;

    if (plan->n_nodes == 1 || plan->placement == PLACEMENT_INTERLEAVE || plan->placement == PLACEMENT_SPLIT)
        return;
    from = node_of_caller(pool, spec);
    if (!from)
        return;
    sort_by_distance(topology, from, n_named, plan->nodes);
    /* if one node was named, what finds no room there goes to the nodes near it */
    if (n_named == 1)
        from = topology_node(topology, plan->nodes[0]);
    sort_by_distance(topology, from, plan->n_nodes - n_named, plan->nodes + n_named);
}

static int choose_nodes(struct plan_request *plan, const struct pool *pool, const struct memory_spec *spec,
                        struct problem *problem)
{
    bool preference = plan->placement == PLACEMENT_PREFERRED || plan->placement == PLACEMENT_LOCAL;
    uint32_t n_named;

    for (uint32_t i = 0; i < spec->n_nodes; i++) {
        uint32_t node = spec->nodes[i];

        if (pool_has_node(pool, node)) {
            if (is_among(node, plan->n_nodes, plan->nodes))
                return refuse(problem, STATUS_INVALID_ARGUMENT, "node %u is named twice", node);
            plan->nodes[plan->n_nodes++] = node;
        } else if (plan->placement != PLACEMENT_LOCAL) {
            return refuse(problem, STATUS_NO_SUCH_NODE,
                          "pool %s has no memory of node %u; name another pool or another node", pool->name, node);
        }
    }
    n_named = plan->n_nodes;
    if (!spec->n_nodes || preference)
        append_others(plan, pool);
    order_nodes(plan, n_named, pool, spec);
    return 0;
}

static int choose_weights(struct plan_request *plan, const struct pool *pool, const struct memory_spec *spec,
                          struct problem *problem)
{
    uint64_t sum = 0;

    if (plan->placement != PLACEMENT_SPLIT)
        return 0;
    if (!spec->n_weights) {
        if (!spec->n_nodes && pool->n_weights)
            memcpy(plan->weights, pool->weights, pool->n_weights * sizeof(plan->weights[0]));
        return 0;
    }
    if (spec->n_weights != plan->n_nodes)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "%u weights for %u nodes; give one a node", spec->n_weights,
                      plan->n_nodes);
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        plan->weights[i] = spec->weights[i];
        sum += spec->weights[i];
    }
    if (!sum)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "all weights are 0; give one of them a share");
    return 0;
}

/*
 * How much is free if `taken` and the states before it count as taken:
 *     TALLY_STOCK       now
 *     TALLY_RECLAIMING  once all stock is given back
 *     TALLY_USED        once all stock is given back and all that is reclaiming is free
 *     TALLY_NONE        if everything were free
 */
static uint64_t free_under_cap(const struct pool *pool, enum tally_state taken)
{
    return left_of(pool->cap, tally_sum(&pool->bytes, taken));
}

static uint64_t free_on_node(const struct pool *pool, uint32_t node, enum tally_state taken)
{
    const struct budget *budget = pool_node_budget(pool, node);

    return left_of(budget->capacity, tally_sum(&budget->bytes, taken));
}

static int make_plan(struct plan *ret, const struct pool *pool, const struct plan_request *plan, enum tally_state taken,
                     struct problem *problem)
{
    uint64_t available[TOPOLOGY_NODES_MAX] = {0};

    if (plan->bytes > free_under_cap(pool, taken))
        return STATUS_POOL_FULL;
    for (uint32_t i = 0; i < pool->n_nodes; i++)
        available[pool->nodes[i]] = free_on_node(pool, pool->nodes[i], taken);
    return plan_make(ret, plan, available, problem);
}

static int pool_refuse_full(const struct pool *pool, uint64_t bytes, struct problem *problem)
{
    return refuse(problem, STATUS_POOL_FULL,
                  "%llu bytes do not fit into pool %s now (%llu bytes available); release something, "
                  "wait, or use another pool",
                  (unsigned long long)bytes, pool->name, (unsigned long long)pool_available(pool));
}

static int pool_fill_request(struct plan_request *plan, const struct pool *pool, const struct memory_spec *spec,
                             uint64_t size, struct problem *problem)
{
    int r;

    *plan = (struct plan_request){.granule = pool->granule};
    if (!size)
        return refuse(problem, STATUS_SIZE_ZERO, "a buffer of 0 bytes; ask for at least 1");
    if (!checked_align_up_u64(size, pool->granule, &plan->bytes) || plan->bytes > INT64_MAX)
        return refuse(problem, STATUS_SIZE_OVERFLOW, "%llu bytes are more than any file can have",
                      (unsigned long long)size);
    plan->placement = spec->placement == PLACEMENT_POOL ? pool->placement : spec->placement;
    plan->part_size = spec->part_size;
    if (!plan->part_size && pool->placement == plan->placement)
        plan->part_size = pool->part_size;
    r = choose_nodes(plan, pool, spec, problem);
    return r ? r : choose_weights(plan, pool, spec, problem);
}

int pool_plan(struct pool *pool, const struct memory_spec *spec, uint64_t size, enum tally_state taken,
              struct plan *ret, struct problem *problem)
{
    struct plan_request plan;
    struct plan unused;
    int r = pool_fill_request(&plan, pool, spec, size, problem);

    if (r)
        return r;
    r = make_plan(ret, pool, &plan, taken, problem);
    if (!r) {
        ret->pool = pool;
        ret->size = size;
    }
    if (r != STATUS_POOL_FULL)
        return r;
    r = make_plan(&unused, pool, &plan, TALLY_NONE, problem);
    if (r != STATUS_POOL_FULL)
        return r ? r : pool_refuse_full(pool, plan.bytes, problem);
    return refuse(problem, STATUS_TOO_BIG,
                  "%llu bytes placed like this are more than pool %s could ever hold (its capacity is "
                  "%llu bytes); ask for less, or for more nodes",
                  (unsigned long long)plan.bytes, pool->name, (unsigned long long)pool_capacity(pool));
}

uint32_t pool_remoteness(struct pool *pool, const struct memory_spec *spec, const struct plan *plan)
{
    struct plan_request order;
    uint32_t most = 0;

    if (pool_fill_request(&order, pool, spec, plan->brief.bytes, NULL))
        return UINT32_MAX;
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++) {
        uint32_t rank = 0;

        while (rank < order.n_nodes && order.nodes[rank] != plan->nodes.node[i])
            rank++;
        most = rank > most ? rank : most;
    }
    return most;
}

int pool_charge(struct pool *pool, const struct plan *plan, enum tally_state to, struct problem *problem)
{
    if (plan->brief.bytes > free_under_cap(pool, TALLY_STOCK))
        return pool_refuse_full(pool, plan->brief.bytes, problem);
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        if (plan->nodes.bytes[i] > free_on_node(pool, plan->nodes.node[i], TALLY_STOCK))
            return pool_refuse_full(pool, plan->brief.bytes, problem);
    pool_shift(pool, plan, TALLY_NONE, to);
    return 0;
}

void pool_shift(struct pool *pool, const struct plan *plan, enum tally_state from, enum tally_state to)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        tally_shift(&budget_of(pool, plan->nodes.node[i])->bytes, from, to, plan->nodes.bytes[i]);
    tally_shift(&pool->bytes, from, to, plan->brief.bytes);
    tally_shift(&pool->buffers, from, to, 1);
}

void pool_lower(struct pool *pool, uint32_t node, enum tally_state from, uint64_t by)
{
    tally_shift(&budget_of(pool, node)->bytes, from, TALLY_NONE, by);
    tally_shift(&pool->bytes, from, TALLY_NONE, by);
}

uint64_t pool_most_stock(const struct pool *pool)
{
    const struct pool_capacity *most = &pool->most_stock;

    if (pool->lazy || pool->retired)
        return 0;
    return most->percent ? percent_of(pool_capacity(pool), most->percent) : most->bytes;
}

int pool_reserve(const struct pool_demand *demand, struct problem *problem)
{
    struct pool *pool = demand->pool;

    if (demand->on_node > free_on_node(pool, demand->node, TALLY_STOCK))
        return refuse(problem, STATUS_POOL_FULL,
                      "node %u has no room for %llu bytes more now (%llu bytes available); release something there, or "
                      "use another node",
                      demand->node, (unsigned long long)demand->on_node,
                      (unsigned long long)free_on_node(pool, demand->node, TALLY_STOCK));
    if (demand->in_pool > free_under_cap(pool, TALLY_STOCK))
        return pool_refuse_full(pool, demand->in_pool, problem);
    tally_shift(&budget_of(pool, demand->node)->bytes, TALLY_NONE, TALLY_USED, demand->on_node);
    tally_shift(&pool->bytes, TALLY_NONE, TALLY_USED, demand->in_pool);
    return 0;
}

void pool_unreserve(const struct pool_demand *demand)
{
    tally_shift(&budget_of(demand->pool, demand->node)->bytes, TALLY_USED, TALLY_NONE, demand->on_node);
    tally_shift(&demand->pool->bytes, TALLY_USED, TALLY_NONE, demand->in_pool);
}

static bool demand_fits(const struct pool_demand *demand, enum tally_state taken)
{
    return demand->on_node <= free_on_node(demand->pool, demand->node, taken) &&
           demand->in_pool <= free_under_cap(demand->pool, taken);
}

bool pool_can_reserve_soon(const struct pool_demand *demand)
{
    return !demand_fits(demand, TALLY_STOCK) && demand_fits(demand, TALLY_USED);
}

bool pool_is_reclaiming(const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->n_nodes; i++) {
        const struct budget *budget = pool_node_budget(pool, pool->nodes[i]);

        if (budget->bytes.in[TALLY_RECLAIMING] || budget->bytes.in[TALLY_STOCK])
            return true;
    }
    return false;
}

bool pool_fits_soon(struct pool *pool, const struct memory_spec *spec, uint64_t size)
{
    struct plan_request plan;
    struct plan unused;

    return !pool_fill_request(&plan, pool, spec, size, NULL) && !make_plan(&unused, pool, &plan, TALLY_USED, NULL);
}

/* Rounded down to whole granules, since every buffer is a multiple of them. */
static uint64_t pool_available_with(const struct pool *pool, enum tally_state taken)
{
    uint64_t sum = 0, cap = align_down(free_under_cap(pool, taken), pool->granule);

    for (uint32_t i = 0; i < pool->n_nodes; i++)
        sum += align_down(free_on_node(pool, pool->nodes[i], taken), pool->granule);
    return sum < cap ? sum : cap;
}

uint64_t pool_available(const struct pool *pool)
{
    return pool_available_with(pool, TALLY_RECLAIMING);
}

uint64_t pool_available_soon(const struct pool *pool)
{
    return pool_available_with(pool, TALLY_USED);
}

uint64_t pool_largest_soon(struct pool *pool)
{
    const struct memory_spec spec = {.placement = PLACEMENT_POOL};
    uint64_t all = pool_available_soon(pool);
    uint64_t fits = 0, fails = all / pool->granule;

    if (!all || pool_fits_soon(pool, &spec, all))
        return all;
    /* the placement gives each node a fixed share, so the fullest node sets the limit, which is searched for */
    while (fails - fits > 1) {
        uint64_t middle = fits + (fails - fits) / 2;

        if (pool_fits_soon(pool, &spec, middle * pool->granule))
            fits = middle;
        else
            fails = middle;
    }
    return fits * pool->granule;
}

uint64_t pool_capacity(const struct pool *pool)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pool->n_nodes; i++)
        sum += pool_node_budget(pool, pool->nodes[i])->capacity;
    return sum < pool->cap ? sum : pool->cap;
}

const struct budget *pool_node_budget(const struct pool *pool, uint32_t node)
{
    return budget_of(pool, node);
}
