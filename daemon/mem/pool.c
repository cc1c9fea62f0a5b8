/* SPDX-License-Identifier: Apache-2.0 */
/* One pool: where a buffer would go, and who is charged for it. See pool.h. */

#include "mem/pool.h"

#include <stdio.h>
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

/* What the payer has of a budget or cap, and may have, of what others leave. What is earmarked for it is its own. */
struct share {
    uint64_t has;
    uint64_t most;
};

static struct share share_in(const struct tally *bytes, uint64_t capacity, uint32_t place, struct pool_view view)
{
    const struct tally *own = view.payer ? account_place(view.payer, place) : NULL;
    unsigned percent = own ? account_share(view.payer) : SHARE_ALL;
    enum tally_state used = view.taken < TALLY_RECLAIMING ? view.taken : TALLY_RECLAIMING;
    struct share share = {.has = 0, .most = UINT64_MAX};

    if (percent == SHARE_ALL)
        return share;
    share.has = tally_sum(own, used) + (used ? own->in[TALLY_STOCK] : 0);
    share.most = share_of(capacity, tally_sum(bytes, used) - tally_sum(own, used), percent);
    return share;
}

/*
 * How much is free if what is taken, and the states before that, count as taken:
 *     TALLY_STOCK       now
 *     TALLY_RECLAIMING  once all stock is given back
 *     TALLY_USED        once all stock is given back and all that is reclaiming is free
 *     TALLY_NONE        if everything were free
 */
static uint64_t free_in(const struct tally *bytes, uint64_t capacity, uint32_t place, struct pool_view view)
{
    uint64_t all = left_of(capacity, tally_sum(bytes, view.taken));
    struct share share = share_in(bytes, capacity, place, view);
    uint64_t own = left_of(share.most, share.has);

    return own < all ? own : all;
}

static uint64_t free_under_cap(const struct pool *pool, struct pool_view view)
{
    return free_in(&pool->bytes, pool->cap, pool->place, view);
}

static uint64_t free_on_node(const struct pool *pool, uint32_t node, struct pool_view view)
{
    const struct budget *budget = pool_node_budget(pool, node);

    return free_in(&budget->bytes, budget->capacity, budget->place, view);
}

static int make_plan(struct plan *ret, const struct pool *pool, const struct plan_request *plan, struct pool_view view,
                     struct problem *problem)
{
    uint64_t available[TOPOLOGY_NODES_MAX] = {0};

    if (plan->bytes > free_under_cap(pool, view))
        return STATUS_POOL_FULL;
    for (uint32_t i = 0; i < pool->n_nodes; i++)
        available[pool->nodes[i]] = free_on_node(pool, pool->nodes[i], view);
    return plan_make(ret, plan, available, problem);
}

/* What a user may have of a pool is what it may have of its nodes, or of its cap. */
static struct share pool_share(const struct pool *pool, struct pool_view view)
{
    struct share sum = {.has = 0}, cap = share_in(&pool->bytes, pool->cap, pool->place, view);

    for (uint32_t i = 0; i < pool->n_nodes; i++) {
        const struct budget *budget = pool_node_budget(pool, pool->nodes[i]);
        struct share share = share_in(&budget->bytes, budget->capacity, budget->place, view);

        if (share.most == UINT64_MAX)
            return cap;
        sum.has += share.has;
        sum.most += share.most;
    }
    return left_of(cap.most, cap.has) < left_of(sum.most, sum.has) ? cap : sum;
}

static int pool_refuse_share(const struct pool *pool, uint64_t bytes, struct pool_view view, struct problem *problem)
{
    struct share share = pool_share(pool, view);
    char what[POOL_NAME_MAX + 32];

    (void)snprintf(what, sizeof(what), "bytes of pool %s", pool->name);
    return problem_short_of(problem,
                            account_refuse_share(view.payer, what, " bytes", share.has, bytes, share.most, problem),
                            (struct shortage){pool->name, "bytes", bytes, share.has, share.most, 0});
}

struct shortage pool_shortage(const struct pool *pool, uint64_t bytes)
{
    uint64_t capacity = pool_capacity(pool);

    return (struct shortage){pool->name, "bytes", bytes, left_of(capacity, pool_available(pool)), capacity, 0};
}

static int pool_refuse_full(const struct pool *pool, uint64_t bytes, struct problem *problem)
{
    return refuse(problem, problem_short_of(problem, STATUS_POOL_FULL, pool_shortage(pool, bytes)),
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

int pool_plan(struct pool *pool, const struct memory_spec *spec, uint64_t size, struct pool_view view, struct plan *ret,
              struct problem *problem)
{
    const struct pool_view empty = {.taken = TALLY_NONE}, shared = {.taken = view.taken};
    struct plan_request plan;
    struct plan unused;
    int r = pool_fill_request(&plan, pool, spec, size, problem);

    if (r)
        return r;
    r = make_plan(ret, pool, &plan, view, problem);
    if (!r) {
        ret->pool = pool;
        ret->size = size;
    }
    if (r != STATUS_POOL_FULL)
        return r;
    if (view.payer && !make_plan(&unused, pool, &plan, shared, problem))
        return pool_refuse_share(pool, plan.bytes, view, problem);
    r = make_plan(&unused, pool, &plan, empty, problem);
    if (r != STATUS_POOL_FULL)
        return r ? r : pool_refuse_full(pool, plan.bytes, problem);
    return refuse(problem, problem_short_of(problem, STATUS_TOO_BIG, pool_shortage(pool, plan.bytes)),
                  "%llu bytes placed like this are more than pool %s could ever hold (its capacity is "
                  "%llu bytes); ask for less, or for more nodes",
                  (unsigned long long)plan.bytes, pool->name, (unsigned long long)pool_capacity(pool));
}

uint64_t pool_used_by(const struct pool *pool, const struct account *account)
{
    const struct tally *own = account_place(account, pool->place);
    uint64_t sum = 0;

    if (own)
        return tally_used(own);
    for (uint32_t i = 0; i < pool->n_nodes; i++) {
        own = account_place(account, pool_node_budget(pool, pool->nodes[i])->place);
        sum += own ? tally_used(own) : 0;
    }
    return sum;
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

int pool_check_share(const struct pool *pool, const struct plan *plan, const struct account *payer,
                     struct problem *problem)
{
    const struct pool_view view = {.taken = TALLY_RECLAIMING, .payer = payer};
    struct share share = share_in(&pool->bytes, pool->cap, pool->place, view);
    bool fits = plan->brief.bytes <= left_of(share.most, share.has);

    for (uint32_t i = 0; i < plan->brief.n_nodes && fits; i++) {
        const struct budget *budget = pool_node_budget(pool, plan->nodes.node[i]);

        share = share_in(&budget->bytes, budget->capacity, budget->place, view);
        fits = plan->nodes.bytes[i] <= left_of(share.most, share.has);
    }
    return fits ? 0 : pool_refuse_share(pool, plan->brief.bytes, view, problem);
}

int pool_charge(struct pool *pool, const struct plan *plan, const struct account *payer, enum tally_state to,
                struct problem *problem)
{
    const struct pool_view now = {.taken = TALLY_STOCK};
    int r = payer ? pool_check_share(pool, plan, payer, problem) : 0;

    if (r)
        return r;
    if (plan->brief.bytes > free_under_cap(pool, now))
        return pool_refuse_full(pool, plan->brief.bytes, problem);
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        if (plan->nodes.bytes[i] > free_on_node(pool, plan->nodes.node[i], now))
            return pool_refuse_full(pool, plan->brief.bytes, problem);
    pool_shift(pool, plan, payer, TALLY_NONE, to);
    return 0;
}

/* Of a pool that has gone, or of a node that has, nobody's share is computed. */
static void place_shift(const struct account *payer, uint32_t place, enum tally_state from, enum tally_state to,
                        uint64_t bytes)
{
    struct tally *own = account_place(payer, place);

    if (own)
        tally_shift(own, from, to, bytes);
}

void pool_shift_payer(struct pool *pool, const struct plan *plan, const struct account *payer, enum tally_state from,
                      enum tally_state to)
{
    if (!payer)
        return;
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        place_shift(payer, budget_of(pool, plan->nodes.node[i])->place, from, to, plan->nodes.bytes[i]);
    place_shift(payer, pool->place, from, to, plan->brief.bytes);
}

void pool_shift(struct pool *pool, const struct plan *plan, const struct account *payer, enum tally_state from,
                enum tally_state to)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        tally_shift(&budget_of(pool, plan->nodes.node[i])->bytes, from, to, plan->nodes.bytes[i]);
    tally_shift(&pool->bytes, from, to, plan->brief.bytes);
    tally_shift(&pool->buffers, from, to, 1);
    pool_shift_payer(pool, plan, payer, from, to);
}

void pool_lower(struct pool *pool, uint32_t node, const struct account *payer, enum tally_state from, uint64_t by)
{
    struct budget *budget = budget_of(pool, node);

    tally_shift(&budget->bytes, from, TALLY_NONE, by);
    tally_shift(&pool->bytes, from, TALLY_NONE, by);
    if (payer) {
        place_shift(payer, budget->place, from, TALLY_NONE, by);
        place_shift(payer, pool->place, from, TALLY_NONE, by);
    }
}

uint64_t pool_most_stock(const struct pool *pool)
{
    const struct pool_capacity *most = &pool->most_stock;

    if (pool->committer != COMMITTER_BROKER || pool->retired)
        return 0;
    return most->percent ? percent_of(pool_capacity(pool), most->percent) : most->bytes;
}

static bool demand_fits(const struct pool_demand *demand, struct pool_view view)
{
    return demand->on_node <= free_on_node(demand->pool, demand->node, view) &&
           demand->in_pool <= free_under_cap(demand->pool, view);
}

static void demand_shift(const struct pool_demand *demand, enum tally_state from, enum tally_state to)
{
    struct budget *budget = budget_of(demand->pool, demand->node);

    tally_shift(&budget->bytes, from, to, demand->on_node);
    tally_shift(&demand->pool->bytes, from, to, demand->in_pool);
    place_shift(demand->payer, budget->place, from, to, demand->on_node);
    place_shift(demand->payer, demand->pool->place, from, to, demand->in_pool);
}

int pool_reserve(const struct pool_demand *demand, struct problem *problem)
{
    const struct pool_view now = {.taken = TALLY_STOCK}, own = {.taken = TALLY_STOCK, .payer = demand->payer};
    struct pool *pool = demand->pool;

    if (demand->on_node > free_on_node(pool, demand->node, now))
        return refuse(problem, problem_short_of(problem, STATUS_POOL_FULL, pool_shortage(pool, demand->on_node)),
                      "node %u has no room for %llu bytes more now (%llu bytes available); release something there, or "
                      "use another node",
                      demand->node, (unsigned long long)demand->on_node,
                      (unsigned long long)free_on_node(pool, demand->node, now));
    if (demand->in_pool > free_under_cap(pool, now))
        return pool_refuse_full(pool, demand->in_pool, problem);
    if (!demand_fits(demand, own))
        return pool_refuse_share(pool, demand->on_node > demand->in_pool ? demand->on_node : demand->in_pool, own,
                                 problem);
    demand_shift(demand, TALLY_NONE, TALLY_USED);
    return 0;
}

void pool_unreserve(const struct pool_demand *demand)
{
    demand_shift(demand, TALLY_USED, TALLY_NONE);
}

bool pool_can_reserve_soon(const struct pool_demand *demand)
{
    const struct pool_view now = {.taken = TALLY_STOCK, .payer = demand->payer};
    const struct pool_view soon = {.taken = TALLY_USED, .payer = demand->payer};

    return !demand_fits(demand, now) && demand_fits(demand, soon);
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

bool pool_fits_soon(struct pool *pool, const struct memory_spec *spec, uint64_t size, const struct account *payer)
{
    const struct pool_view soon = {.taken = TALLY_USED, .payer = payer};
    struct plan_request plan;
    struct plan unused;

    return !pool_fill_request(&plan, pool, spec, size, NULL) && !make_plan(&unused, pool, &plan, soon, NULL);
}

/* Rounded down to whole granules, since every buffer is a multiple of them. */
static uint64_t pool_available_with(const struct pool *pool, struct pool_view view)
{
    uint64_t sum = 0, cap = align_down(free_under_cap(pool, view), pool->granule);

    for (uint32_t i = 0; i < pool->n_nodes; i++)
        sum += align_down(free_on_node(pool, pool->nodes[i], view), pool->granule);
    return sum < cap ? sum : cap;
}

uint64_t pool_available(const struct pool *pool)
{
    return pool_available_with(pool, (struct pool_view){.taken = TALLY_RECLAIMING});
}

uint64_t pool_available_soon(const struct pool *pool, const struct account *payer)
{
    return pool_available_with(pool, (struct pool_view){.taken = TALLY_USED, .payer = payer});
}

uint64_t pool_largest_soon(struct pool *pool, const struct account *payer)
{
    const struct memory_spec spec = {.placement = PLACEMENT_POOL};
    uint64_t all = pool_available_soon(pool, payer);
    uint64_t fits = 0, fails = all / pool->granule;

    if (!all || pool_fits_soon(pool, &spec, all, payer))
        return all;
    /* the placement gives each node a fixed part, so the fullest node sets the limit, which is searched for */
    while (fails - fits > 1) {
        uint64_t middle = fits + (fails - fits) / 2;

        if (pool_fits_soon(pool, &spec, middle * pool->granule, payer))
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
