/* SPDX-License-Identifier: Apache-2.0 */
/* One pool: where a buffer would go, and who is charged for it. See pool.h. */

#include "mem/pool.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "mem/pools.h"
#include "proto/status.h"

static uint64_t left_of(uint64_t capacity, uint64_t used)
{
    return capacity > used ? capacity - used : 0;
}

bool pool_has_node(const struct pool *pool, uint32_t node)
{
    for (uint32_t i = 0; i < pool->n_nodes; i++)
        if (pool->nodes[i] == node)
            return true;
    return false;
}

static bool listed(const struct plan_request *plan, uint32_t node)
{
    for (uint32_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i] == node)
            return true;
    return false;
}

static void append_others(struct plan_request *plan, const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->n_nodes; i++)
        if (!listed(plan, pool->nodes[i]))
            plan->nodes[plan->n_nodes++] = pool->nodes[i];
}

static bool has_processors(const struct topology *topology, uint32_t number)
{
    const struct topology_node *node = topology_node(topology, number);

    return node && node->has_cpus;
}

/* Is node a to be taken rather than node b, as seen from a third? Memory without processors is rarely the faster one,
 * and many a machine tells one distance for all that is not local. */
static bool is_nearer(const struct topology *topology, const struct topology_node *from, uint32_t a, uint32_t b)
{
    /* 0 is unknown: the last */
    uint32_t to_a = from->distances[a] - 1, to_b = from->distances[b] - 1;

    if (a == from->number || b == from->number)
        return a == from->number;
    if (to_a != to_b)
        return to_a < to_b;
    return has_processors(topology, a) && !has_processors(topology, b);
}

/* n nodes, the nearest first. Those that are equally far stay in their order. */
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

/* The one with most room, of those with processors if there are any. */
static const struct topology_node *roomiest_node(const struct pool *pool)
{
    const struct topology *topology = pool->pools->topology;
    uint32_t best = pool->nodes[0];
    uint64_t most = 0;

    for (uint32_t i = 0; i < pool->n_nodes; i++) {
        uint32_t node = pool->nodes[i];
        const struct budget *budget = pool_node_budget(pool, node);
        uint64_t room = left_of(budget->capacity, budget->used);
        bool cpus = has_processors(topology, node), best_has = has_processors(topology, best);

        if (cpus != best_has ? cpus : room > most) {
            best = node;
            most = room;
        }
    }
    return topology_node(topology, best);
}

/* The node of whoever asks; for a client that does not tell, a guess. */
static const struct topology_node *node_of_caller(const struct pool *pool, const struct pool_request *request)
{
    const struct topology *topology = pool->pools->topology;
    const struct topology_node *node = request->caller_node ? topology_node(topology, request->caller_node - 1) : NULL;

    if (!node && request->n_nodes)
        node = topology_node(topology, request->nodes[0]);
    return node ? node : roomiest_node(pool);
}

/* The first n_named nodes of the plan are named by the request, and come before the others. */
static void order_nodes(struct plan_request *plan, uint32_t n_named, const struct pool *pool,
                        const struct pool_request *request)
{
    const struct topology *topology = pool->pools->topology;
    const struct topology_node *from;

    if (plan->n_nodes == 1 || plan->placement == PLACEMENT_INTERLEAVE || plan->placement == PLACEMENT_SPLIT)
        return;
    from = node_of_caller(pool, request);
    if (!from)
        return;
    sort_by_distance(topology, from, n_named, plan->nodes);
    /* what has no room on one node that was wanted goes near to that */
    if (n_named == 1)
        from = topology_node(topology, plan->nodes[0]);
    sort_by_distance(topology, from, plan->n_nodes - n_named, plan->nodes + n_named);
}

static int choose_nodes(struct plan_request *plan, const struct pool *pool,
                        const struct pool_request *request, struct problem *problem)
{
    bool preference = plan->placement == PLACEMENT_PREFERRED || plan->placement == PLACEMENT_LOCAL;
    uint32_t n_named;

    if (request->n_nodes > TOPOLOGY_NODES_MAX)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "%u nodes; at most %d can be named",
                      request->n_nodes, TOPOLOGY_NODES_MAX);
    for (uint32_t i = 0; i < request->n_nodes; i++) {
        uint32_t node = request->nodes[i];

        if (pool_has_node(pool, node)) {
            if (listed(plan, node))
                return refuse(problem, STATUS_INVALID_ARGUMENT, "node %u is named twice", node);
            plan->nodes[plan->n_nodes++] = node;
        } else if (plan->placement != PLACEMENT_LOCAL) {
            return refuse(problem, STATUS_NO_SUCH_NODE,
                          "pool %s has no memory of node %u; name another pool or another node",
                          pool->name, node);
        }
    }
    n_named = plan->n_nodes;
    if (!request->n_nodes || preference)
        append_others(plan, pool);
    order_nodes(plan, n_named, pool, request);
    return 0;
}

static int choose_weights(struct plan_request *plan, const struct pool *pool,
                          const struct pool_request *request, struct problem *problem)
{
    uint64_t sum = 0;

    if (plan->placement != PLACEMENT_SPLIT)
        return 0;
    if (!request->n_weights) {
        if (!request->n_nodes && pool->n_weights)
            memcpy(plan->weights, pool->weights, pool->n_weights * sizeof(plan->weights[0]));
        return 0;
    }
    if (request->n_weights != plan->n_nodes)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "%u weights for %u nodes; give one a node",
                      request->n_weights, plan->n_nodes);
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        plan->weights[i] = request->weights[i];
        sum += request->weights[i];
    }
    if (!sum)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "all weights are 0; give one of them a share");
    return 0;
}

/* NOW; were the stock given back; when all is back that is returning besides; if everything were free. */
enum when { NOW, WITHOUT_STOCK, SOON, EVER };

static uint64_t used_when(uint64_t used, uint64_t stock, uint64_t returning, enum when when)
{
    switch (when) {
    case NOW:
        return used + stock;
    case WITHOUT_STOCK:
        return used;
    case SOON:
        return used - returning;
    case EVER:
        break;
    }
    return 0;
}

static uint64_t room_under_cap(const struct pool *pool, enum when when)
{
    return left_of(pool->cap, used_when(pool->used, pool->stock, pool->returning, when));
}

static uint64_t room_on_node(const struct pool *pool, uint32_t node, enum when when)
{
    const struct budget *budget = pool_node_budget(pool, node);

    return left_of(budget->capacity, used_when(budget->used, budget->stock, budget->returning, when));
}

static int make_plan(struct plan *ret, const struct pool *pool, const struct plan_request *plan, enum when when,
                     struct problem *problem)
{
    uint64_t room[TOPOLOGY_NODES_MAX] = {0};

    if (plan->bytes > room_under_cap(pool, when))
        return STATUS_POOL_FULL;
    for (uint32_t i = 0; i < pool->n_nodes; i++)
        room[pool->nodes[i]] = room_on_node(pool, pool->nodes[i], when);
    return plan_make(ret, plan, room, problem);
}

static int full(const struct pool *pool, uint64_t bytes, struct problem *problem)
{
    return refuse(problem, STATUS_POOL_FULL,
                  "%llu bytes do not fit into pool %s now (%llu bytes available); release something, "
                  "wait, or use another pool",
                  (unsigned long long)bytes, pool->name, (unsigned long long)pool_available(pool));
}

static int choose(struct plan_request *plan, const struct pool *pool, const struct pool_request *request,
                  uint64_t size, struct problem *problem)
{
    int r;

    *plan = (struct plan_request){.granule = pool->granule};
    if (!size)
        return refuse(problem, STATUS_SIZE_ZERO, "a buffer of 0 bytes; ask for at least 1");
    if (!checked_align_up_u64(size, pool->granule, &plan->bytes) || plan->bytes > INT64_MAX)
        return refuse(problem, STATUS_SIZE_OVERFLOW, "%llu bytes are more than any file can have",
                      (unsigned long long)size);
    plan->placement = request->placement == PLACEMENT_POOL ? pool->placement : request->placement;
    plan->part_size = request->part_size;
    if (!plan->part_size && pool->placement == plan->placement)
        plan->part_size = pool->part_size;
    r = choose_nodes(plan, pool, request, problem);
    return r ? r : choose_weights(plan, pool, request, problem);
}

static int plan_when(struct pool *pool, const struct pool_request *request, uint64_t size, enum when when,
                     struct plan *ret, struct problem *problem)
{
    struct plan_request plan;
    struct plan unused;
    int r = choose(&plan, pool, request, size, problem);

    if (r)
        return r;
    r = make_plan(ret, pool, &plan, when, problem);
    if (r != STATUS_POOL_FULL)
        return r;
    r = make_plan(&unused, pool, &plan, EVER, problem);
    if (r != STATUS_POOL_FULL)
        return r ? r : full(pool, plan.bytes, problem);
    return refuse(problem, STATUS_TOO_BIG,
                  "%llu bytes placed like this are more than pool %s could ever hold (its capacity is "
                  "%llu bytes); ask for less, or for more nodes",
                  (unsigned long long)plan.bytes, pool->name,
                  (unsigned long long)pool_capacity(pool));
}

int pool_plan(struct pool *pool, const struct pool_request *request, uint64_t size, struct plan *ret,
              struct problem *problem)
{
    return plan_when(pool, request, size, NOW, ret, problem);
}

int pool_plan_without_stock(struct pool *pool, const struct pool_request *request, uint64_t size, struct plan *ret,
                            struct problem *problem)
{
    return plan_when(pool, request, size, WITHOUT_STOCK, ret, problem);
}

uint32_t pool_remoteness(struct pool *pool, const struct pool_request *request, const struct plan *plan)
{
    struct plan_request order;
    uint32_t most = 0;

    if (choose(&order, pool, request, plan->brief.bytes, NULL))
        return UINT32_MAX;
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++) {
        uint32_t rank = 0;

        while (rank < order.n_nodes && order.nodes[rank] != plan->nodes.node[i])
            rank++;
        most = rank > most ? rank : most;
    }
    return most;
}

int pool_charge(struct pool *pool, const struct plan *plan, struct problem *problem)
{
    if (plan->brief.bytes > room_under_cap(pool, NOW))
        return full(pool, plan->brief.bytes, problem);
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        if (plan->nodes.bytes[i] > room_on_node(pool, plan->nodes.node[i], NOW))
            return full(pool, plan->brief.bytes, problem);
    pool_recharge(pool, plan);
    return 0;
}

void pool_recharge(struct pool *pool, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        pool->pools->budgets[pool->purse][plan->nodes.node[i]].used += plan->nodes.bytes[i];
    pool->used += plan->brief.bytes;
    pool->buffers++;
}

void pool_uncharge(struct pool *pool, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++) {
        struct budget *budget = &pool->pools->budgets[pool->purse][plan->nodes.node[i]];

        assert(budget->used >= plan->nodes.bytes[i]);
        budget->used -= plan->nodes.bytes[i];
    }
    assert(pool->used >= plan->brief.bytes && pool->buffers);
    pool->used -= plan->brief.bytes;
    pool->buffers--;
}

int pool_stock(struct pool *pool, uint32_t node, uint64_t bytes, struct problem *problem)
{
    if (bytes > room_under_cap(pool, NOW) || bytes > room_on_node(pool, node, NOW))
        return full(pool, bytes, problem);
    pool_restock(pool, node, bytes);
    return 0;
}

void pool_restock(struct pool *pool, uint32_t node, uint64_t bytes)
{
    pool->pools->budgets[pool->purse][node].stock += bytes;
    pool->stock += bytes;
    pool->stock_buffers++;
}

void pool_unstock(struct pool *pool, uint32_t node, uint64_t bytes)
{
    struct budget *budget = &pool->pools->budgets[pool->purse][node];

    assert(budget->stock >= bytes && pool->stock >= bytes && pool->stock_buffers);
    budget->stock -= bytes;
    pool->stock -= bytes;
    pool->stock_buffers--;
}

uint64_t pool_most_stock(const struct pool *pool)
{
    const struct pool_capacity *most = &pool->most_stock;

    if (pool->lazy || pool->retired)
        return 0;
    return most->percent ? percent_of(pool_capacity(pool), most->percent) : most->bytes;
}

void pool_lower(struct pool *pool, uint32_t node, uint64_t by)
{
    struct budget *budget = &pool->pools->budgets[pool->purse][node];

    assert(budget->used >= by && pool->used >= by);
    budget->used -= by;
    pool->used -= by;
}

int pool_keep_room(const struct pool_room *room, struct problem *problem)
{
    struct pool *pool = room->pool;
    struct budget *budget = &pool->pools->budgets[pool->purse][room->node];

    if (room->on_node > room_on_node(pool, room->node, NOW))
        return refuse(problem, STATUS_POOL_FULL,
                      "node %u has no room for %llu bytes more now (%llu bytes available); release something there, or "
                      "use another node",
                      room->node, (unsigned long long)room->on_node,
                      (unsigned long long)room_on_node(pool, room->node, NOW));
    if (room->in_pool > room_under_cap(pool, NOW))
        return full(pool, room->in_pool, problem);
    budget->used += room->on_node;
    pool->used += room->in_pool;
    return 0;
}

void pool_give_room(const struct pool_room *room)
{
    struct pool *pool = room->pool;
    struct budget *budget = &pool->pools->budgets[pool->purse][room->node];

    assert(budget->used >= room->on_node && pool->used >= room->in_pool);
    budget->used -= room->on_node;
    pool->used -= room->in_pool;
}

static bool has_room(const struct pool_room *room, enum when when)
{
    return room->on_node <= room_on_node(room->pool, room->node, when) &&
           room->in_pool <= room_under_cap(room->pool, when);
}

bool pool_room_returns(const struct pool_room *room)
{
    return !has_room(room, NOW) && has_room(room, SOON);
}

void pool_return(struct pool *pool, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++)
        pool->pools->budgets[pool->purse][plan->nodes.node[i]].returning += plan->nodes.bytes[i];
    pool->returning += plan->brief.bytes;
}

void pool_unreturn(struct pool *pool, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->brief.n_nodes; i++) {
        struct budget *budget = &pool->pools->budgets[pool->purse][plan->nodes.node[i]];

        assert(budget->returning >= plan->nodes.bytes[i]);
        budget->returning -= plan->nodes.bytes[i];
    }
    assert(pool->returning >= plan->brief.bytes);
    pool->returning -= plan->brief.bytes;
}

bool pool_is_returning(const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->n_nodes; i++) {
        const struct budget *budget = pool_node_budget(pool, pool->nodes[i]);

        if (budget->returning || budget->stock)
            return true;
    }
    return false;
}

bool pool_fits_soon(struct pool *pool, const struct pool_request *request, uint64_t size)
{
    struct plan_request plan;
    struct plan unused;

    return !choose(&plan, pool, request, size, NULL) && !make_plan(&unused, pool, &plan, SOON, NULL);
}

/* In whole granules, of which alone there are buffers. */
static uint64_t available(const struct pool *pool, enum when when)
{
    uint64_t sum = 0, cap = align_down(room_under_cap(pool, when), pool->granule);

    for (uint32_t i = 0; i < pool->n_nodes; i++)
        sum += align_down(room_on_node(pool, pool->nodes[i], when), pool->granule);
    return sum < cap ? sum : cap;
}

uint64_t pool_available(const struct pool *pool)
{
    return available(pool, WITHOUT_STOCK);
}

uint64_t pool_available_soon(const struct pool *pool)
{
    return available(pool, SOON);
}

uint64_t pool_largest_soon(struct pool *pool)
{
    const struct pool_request request = {.placement = PLACEMENT_POOL};
    uint64_t all = pool_available_soon(pool);
    uint64_t fits = 0, fails = all / pool->granule;

    if (!all || pool_fits_soon(pool, &request, all))
        return all;
    /* the nodes have fixed shares of it, and the fullest decides */
    while (fails - fits > 1) {
        uint64_t middle = fits + (fails - fits) / 2;

        if (pool_fits_soon(pool, &request, middle * pool->granule))
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
    return &pool->pools->budgets[pool->purse][node];
}
