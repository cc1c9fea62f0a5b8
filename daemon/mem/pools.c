/* SPDX-License-Identifier: Apache-2.0 */
/* The set of pools: made from topology and configuration, and found for a request. See pool.h. */

#include "mem/pools.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/clock.h"
#include "proto/status.h"

#define DEFAULT_PERCENT 50

struct size_text size_text(uint64_t bytes)
{
    static const char units[] = {'k', 'm', 'g', 't'};
    struct size_text size;
    uint64_t n = bytes / 1024;
    size_t unit = 0;

    while (n && !(n % 1024) && unit + 1 < sizeof(units)) {
        n /= 1024;
        unit++;
    }
    (void)snprintf(size.text, sizeof(size.text), "%llu%c", (unsigned long long)n, units[unit]);
    return size;
}

uint64_t percent_of(uint64_t bytes, uint32_t percent)
{
    return bytes / 100 * percent + bytes % 100 * percent / 100;
}

uint32_t budget_index_of_huge(const struct topology *topology, uint64_t size)
{
    for (uint32_t i = 0; i < topology->n_huge; i++)
        if (topology->huge_sizes[i] == size)
            return 1 + i;
    return 0;
}

static void set_budgets(struct pools *pools, const struct pool_capacity *capacity)
{
    for (uint32_t i = 0; i < pools->topology->n_nodes; i++) {
        const struct topology_node *node = &pools->topology->nodes[i];
        uint64_t bytes;

        if (capacity->percent || !capacity->bytes)
            bytes = percent_of(node->total, capacity->percent ? capacity->percent : DEFAULT_PERCENT);
        else
            bytes = capacity->bytes < node->total ? capacity->bytes : node->total;
        pools->budgets[0][node->number].capacity = align_down(bytes, pools->topology->base_page);
    }
    pools_refresh(pools, 0);
}

void pools_refresh(struct pools *pools, uint64_t age_ns)
{
    const struct topology *topology = pools->topology;
    uint64_t now;

    if (!topology->n_huge)
        return;
    now = clock_now_ns();
    if (now - pools->refreshed < age_ns)
        return;
    pools->refreshed = now;
    for (uint32_t h = 0; h < topology->n_huge; h++)
        for (uint32_t i = 0; i < topology->n_nodes; i++) {
            uint32_t number = topology->nodes[i].number;
            uint64_t pages =
                topology->nodes[i].total ? topology_huge_pages(topology, number, topology->huge_sizes[h]) : 0;

            pools->budgets[1 + h][number].capacity = pages * topology->huge_sizes[h];
        }
}

/* Sets page_size, granule and budget_index by the kind of pages. False: this machine has no such pages. */
static bool set_kind(struct pool *pool, enum pages pages, uint64_t page_size)
{
    const struct topology *topology = pool->pools->topology;

    pool->pages = pages;
    pool->granule = topology->base_page;
    pool->budget_index = 0;
    switch (pages) {
    case PAGES_ANY:
    case PAGES_BASE:
        pool->pages = PAGES_BASE;
        pool->page_size = topology->base_page;
        return !page_size || page_size == topology->base_page;
    case PAGES_THP:
        pool->page_size = topology->thp_size;
        return topology->thp_size && (!page_size || page_size == topology->thp_size);
    case PAGES_HUGETLB:
        pool->page_size = page_size ? page_size : topology->default_huge;
        pool->granule = pool->page_size;
        pool->budget_index = budget_index_of_huge(topology, pool->page_size);
        return pool->budget_index != 0;
    }
    return false;
}

/* What users have is counted for each budget that there can be, and for each cap. */
static void add_places(struct pools *pools)
{
    const struct topology *topology = pools->topology;

    for (uint32_t i = 0; i <= BUDGET_INDEX_NONE; i++)
        for (uint32_t node = 0; node < TOPOLOGY_NODES_MAX; node++)
            pools->budgets[i][node].place =
                i <= topology->n_huge && topology_node(topology, node) ? pools->n_places++ : PLACE_NONE;
    for (uint32_t i = 0; i < pools->n_pools; i++)
        if (pools->pools[i].cap != UINT64_MAX)
            pools->pools[i].place = pools->n_places++;
}

uint32_t pools_places(const struct pools *pools)
{
    return pools->n_places;
}

/* A pool in the next free place, which is added to the set by counting it in n_pools. */
static struct pool *pools_fresh(struct pools *pools)
{
    struct pool *pool = &pools->pools[pools->n_pools];

    memset(pool, 0, sizeof(*pool));
    pool->pools = pools;
    pool->index = pools->n_pools;
    pool->number = (uint16_t)pool->index;
    pool->cap = UINT64_MAX;
    pool->place = PLACE_NONE;
    return pool;
}

/* Adds a pool for each node that has such pages, and one over all of these nodes if there are several. */
static void add_kind(struct pools *pools, enum pages pages, uint64_t page_size, const char *suffix,
                     const struct pools_config *config)
{
    struct pool all;
    struct pool *pool = pools_fresh(pools);

    if (!set_kind(pool, pages, page_size))
        return;
    pool->most_stock = pages == PAGES_HUGETLB ? config->huge_stock : config->stock;
    pool->committer = pages == PAGES_HUGETLB ? COMMITTER_BROKER : config->committer;
    all = *pool;
    for (uint32_t i = 0; i < pools->topology->n_nodes; i++) {
        uint32_t number = pools->topology->nodes[i].number;

        pool = pools_fresh(pools);
        (void)set_kind(pool, pages, page_size);
        pool->most_stock = all.most_stock;
        pool->committer = all.committer;
        if (!pools->budgets[pool->budget_index][number].capacity)
            continue;
        (void)snprintf(pool->name, sizeof(pool->name), "node%u-%s", number, suffix);
        pool->placement = PLACEMENT_BIND;
        pool->nodes[pool->n_nodes++] = number;
        all.nodes[all.n_nodes++] = number;
        pools->n_pools++;
    }
    if (all.n_nodes > 1) {
        all.index = pools->n_pools;
        all.number = (uint16_t)all.index;
        (void)snprintf(all.name, sizeof(all.name), "all-%s", suffix);
        all.placement = PLACEMENT_LOCAL;
        pools->pools[pools->n_pools++] = all;
    }
}

static int config_refuse(struct problem *problem, const struct pool_config *config, const char *what)
{
    return refuse(problem, STATUS_INVALID_ARGUMENT, "pool %.*s: %s", POOL_NAME_MAX, config->name, what);
}

static bool good_name(const char *name)
{
    size_t length = strnlen(name, POOL_NAME_MAX + 1);

    return length && length <= POOL_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

static int set_nodes(struct pool *pool, const struct pool_config *config, struct problem *problem)
{
    const struct topology *topology = pool->pools->topology;

    if (config->n_nodes > TOPOLOGY_NODES_MAX)
        return config_refuse(problem, config, "too many nodes");
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        const struct topology_node *node = topology_node(topology, config->nodes[i]);

        if (!node || !node->total)
            return refuse(problem, STATUS_NO_SUCH_NODE, "pool %s: node %u does not exist or has no memory",
                          config->name, config->nodes[i]);
        for (uint32_t k = 0; k < i; k++)
            if (config->nodes[k] == config->nodes[i])
                return config_refuse(problem, config, "a node is named twice");
        pool->nodes[pool->n_nodes++] = config->nodes[i];
    }
    /* none configured: the nodes that have such pages, or else all that may get some */
    for (int any = 0; any < 2 && !pool->n_nodes; any++)
        for (uint32_t i = 0; i < topology->n_nodes; i++) {
            uint32_t number = topology->nodes[i].number;

            if (any ? topology->nodes[i].total : pool->pools->budgets[pool->budget_index][number].capacity)
                pool->nodes[pool->n_nodes++] = number;
        }
    return 0;
}

static int set_placement(struct pool *pool, const struct pool_config *config, struct problem *problem)
{
    uint64_t sum = 0;

    pool->placement = config->placement;
    if (pool->placement == PLACEMENT_POOL)
        pool->placement = pool->n_nodes == 1 ? PLACEMENT_BIND : PLACEMENT_LOCAL;
    if (config->part_size && pool->placement != PLACEMENT_INTERLEAVE)
        return config_refuse(problem, config, "a part size is for placement interleave only");
    if (config->part_size % pool->granule)
        return config_refuse(problem, config, "the part size is no multiple of its page size");
    pool->part_size = config->part_size;
    if (!config->n_weights)
        return 0;
    if (pool->placement != PLACEMENT_SPLIT)
        return config_refuse(problem, config, "weights are for placement split only");
    if (config->n_weights != pool->n_nodes)
        return config_refuse(problem, config, "it needs as many weights as nodes");
    for (uint32_t i = 0; i < config->n_weights; i++) {
        pool->weights[i] = config->weights[i];
        sum += config->weights[i];
    }
    pool->n_weights = config->n_weights;
    return sum ? 0 : config_refuse(problem, config, "all weights are 0");
}

static int add_declared(struct pools *pools, const struct pool_config *config, struct problem *problem)
{
    struct pool *pool = pools_fresh(pools);
    int r;

    if (!good_name(config->name))
        return config_refuse(problem, config, "a pool's name has 1-63 letters, digits, dots, dashes or underscores");
    if (pools_by_name(pools, config->name))
        return config_refuse(problem, config, "there is a pool of this name already");
    if (config->capacity.percent > 100)
        return config_refuse(problem, config, "its capacity is more than 100 % of its nodes' budgets");
    if (!set_kind(pool, config->pages, config->page_size))
        return refuse(problem, STATUS_NOT_SUPPORTED,
                      config->pages == PAGES_THP
                          ? "pool %s: the kernel gives shared memory no such transparent huge pages; see "
                            "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
                          : "pool %s: this machine has no pages of this size",
                      config->name);
    memcpy(pool->name, config->name, strlen(config->name) + 1);
    r = set_nodes(pool, config, problem);
    if (!r)
        r = set_placement(pool, config, problem);
    if (r)
        return r;
    pool->committer = config->committer;
    pool->allow = config->allow;
    pool->declared = true;
    pool->most_stock = config->stock;
    if (config->capacity.percent)
        pool->cap = align_down(percent_of(pool_capacity(pool), config->capacity.percent), pool->granule);
    else if (config->capacity.bytes)
        pool->cap = align_down(config->capacity.bytes, pool->granule);
    pools->n_pools++;
    return 0;
}

void pools_set_base_pages(struct pools *pools, bool base_pages)
{
    pools->pages_by_size = !base_pages;
}

int pools_new(struct pools **ret, const struct topology *topology, const struct pools_config *config,
              struct problem *problem)
{
    size_t own = (size_t)(topology->n_nodes + 1) * (2 + topology->n_huge);
    _cleanup_(pools_freep) struct pools *pools = NULL;
    int r;

    if (config->n_pools > POOLS_MAX)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "%zu pools; at most %d can be declared", config->n_pools,
                      POOLS_MAX);
    if (config->capacity.percent > 100)
        return refuse(problem, STATUS_INVALID_ARGUMENT,
                      "a capacity of %u %% of each node's memory; at most 100 %% can be given out",
                      config->capacity.percent);
    pools = calloc(1, sizeof(*pools) + (own + config->n_pools) * sizeof(pools->pools[0]));
    if (!pools)
        return -ENOMEM;
    pools->topology = topology;
    pools_set_base_pages(pools, config->base_pages);
    set_budgets(pools, &config->capacity);
    add_kind(pools, PAGES_BASE, 0, size_text(topology->base_page).text, config);
    add_kind(pools, PAGES_THP, 0, "thp", config);
    for (uint32_t i = 0; i < topology->n_huge; i++)
        add_kind(pools, PAGES_HUGETLB, topology->huge_sizes[i], size_text(topology->huge_sizes[i]).text, config);
    for (size_t i = 0; i < config->n_pools; i++) {
        r = add_declared(pools, &config->pools[i], problem);
        if (r) {
            if (problem)
                problem->item = (uint32_t)i;
            return r;
        }
    }
    add_places(pools);
    *ret = steal_ptr(&pools);
    return 0;
}

struct pools *pools_free(struct pools *pools)
{
    assert(!pools || !pools->by_number);
    free(pools);
    return NULL;
}

uint32_t pools_count(const struct pools *pools)
{
    return pools->n_pools + pools->n_retired;
}

struct pool *pools_get(struct pools *pools, uint32_t index)
{
    if (index < pools->n_pools)
        return &pools->pools[index];
    return index < pools_count(pools) ? pools->retired[index - pools->n_pools] : NULL;
}

struct pool *pools_by_name(struct pools *pools, const char *name)
{
    for (uint32_t i = 0; i < pools->n_pools; i++)
        if (!strcmp(pools->pools[i].name, name))
            return &pools->pools[i];
    return NULL;
}

const struct budget *pools_node_budget(const struct pools *pools, uint32_t node)
{
    return node < TOPOLOGY_NODES_MAX ? &pools->budgets[0][node] : NULL;
}

static int find_named(struct pools *pools, const struct memory_spec *spec, struct pool **ret, struct problem *problem)
{
    struct pool *pool = pools_by_name(pools, spec->pool);

    if (!pool)
        return refuse(problem, STATUS_NO_SUCH_POOL,
                      "no pool is called \"%.*s\"; `memctl pools` lists the pools there are", POOL_NAME_MAX,
                      spec->pool);
    if ((spec->pages != PAGES_ANY && spec->pages != pool->pages) ||
        (spec->page_size && spec->page_size != pool->page_size))
        return refuse(problem, STATUS_INVALID_ARGUMENT,
                      "pool %s has pages of another kind or size (%s); leave that out or name another pool", pool->name,
                      size_text(pool->page_size).text);
    *ret = pool;
    return 0;
}

static int no_such_pages(const struct pools *pools, enum pages pages, uint64_t size, struct problem *problem)
{
    if (pages == PAGES_THP)
        return refuse(problem, STATUS_NO_SUCH_POOL,
                      "the kernel gives shared memory no transparent huge pages; ask for base pages, or let "
                      "an administrator set shmem_enabled to advise and restart memoryd");
    if (pages == PAGES_HUGETLB && budget_index_of_huge(pools->topology, size))
        return refuse(problem, STATUS_NO_SUCH_POOL,
                      "no %s huge pages were reserved or allowed when memoryd started; ask for base pages, or let an "
                      "administrator set nr_hugepages or nr_overcommit_hugepages and restart memoryd",
                      size_text(size).text);
    return refuse(problem, STATUS_NO_SUCH_POOL, "this machine has no pages of %llu bytes", (unsigned long long)size);
}

/* LOCAL may name a node without memory: the one that the thread runs on. */
static int check_nodes(const struct pools *pools, const struct memory_spec *spec, struct problem *problem)
{
    for (uint32_t i = 0; i < spec->n_nodes; i++) {
        const struct topology_node *node = topology_node(pools->topology, spec->nodes[i]);

        if (!node || (!node->total && spec->placement != PLACEMENT_LOCAL))
            return refuse(problem, STATUS_NO_SUCH_NODE,
                          node ? "node %u has no memory; `memctl nodes` lists those that have"
                               : "there is no node %u; `memctl nodes` lists the nodes there are",
                          spec->nodes[i]);
    }
    return 0;
}

/* The pool with such pages that the configuration did not declare: of *own_node, or else the last one, since the pool
 * over all nodes follows those of single nodes. NULL if there is none. */
static struct pool *find_like(struct pools *pools, const struct pool *wanted, const uint32_t *own_node)
{
    struct pool *found = NULL;

    for (uint32_t i = 0; i < pools->n_pools; i++) {
        struct pool *pool = &pools->pools[i];

        if (pool->declared || pool->pages != wanted->pages || pool->page_size != wanted->page_size)
            continue;
        if (!own_node || (pool->n_nodes == 1 && pool->nodes[0] == *own_node))
            found = pool;
    }
    return found;
}

int pools_find(struct pools *pools, const struct memory_spec *spec, struct pool **ret, struct problem *problem)
{
    bool is_own = spec->n_nodes == 1 && (spec->placement == PLACEMENT_POOL || spec->placement == PLACEMENT_BIND);
    const uint32_t *own_node = is_own ? spec->nodes : NULL;
    struct pool wanted = {.pools = pools};
    enum pages pages = spec->pages;
    struct pool *found;
    int r = check_nodes(pools, spec, problem);

    if (r)
        return r;
    if (spec->pool[0])
        return find_named(pools, spec, ret, problem);
    if (pages == PAGES_ANY && spec->page_size && spec->page_size != pools->topology->base_page)
        pages = PAGES_HUGETLB;
    if (!set_kind(&wanted, pages, spec->page_size))
        return no_such_pages(pools, pages, wanted.page_size, problem);
    found = find_like(pools, &wanted, own_node);
    if (!found && own_node && wanted.pages == PAGES_HUGETLB)
        return refuse(problem, STATUS_NO_SUCH_POOL,
                      "node %u had no %s huge pages when memoryd started; name another node, or "
                      "ask for base pages",
                      *own_node, size_text(wanted.page_size).text);
    if (!found)
        return no_such_pages(pools, wanted.pages, wanted.page_size, problem);
    *ret = found;
    return 0;
}
