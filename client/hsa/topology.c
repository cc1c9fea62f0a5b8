/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovering the agents, and looking them up.
 *
 * The broker lists its nodes and pools, and the kernel describes the processors of a node (machine.c). Simulated nodes
 * show the processors of the real node that they stand for.
 *
 * An agent's handle is AGENT_BASE + its index. The handle of a pool or cache encodes its agent and its index there, so
 * that a lookup is arithmetic. Handles are the same in all processes of one broker, and never 0.
 */
#include "hsa/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/cleanup.h"

#define AGENT_BASE UINT64_C(0x100)
#define POOL_BASE  UINT64_C(0x10000)
#define CACHE_BASE UINT64_C(0x20000)

/* The size of the regions that only kernels would use: the minimum that HSA requires for the private memory of a
 * work-group. */
#define KERNEL_SIZE 65536

/* The end of an agent's declared pools, which leaves room for the three regions. */
#define DECLARED_END (TOPOLOGY_POOLS_MAX - 3)

/* Snapshots are never freed, so pointers into them stay valid; a process sees few brokers in its life. */
struct snapshot {
    struct topology topology;
    struct snapshot *next;
    struct agent agents[TOPOLOGY_AGENTS_MAX];
};

static struct snapshot *known;   /* all snapshots, newest first */
static struct snapshot *current; /* atomic */

const struct topology *topology(void)
{
    struct snapshot *snapshot = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

    return snapshot ? &snapshot->topology : NULL;
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

const struct agent *topology_agent(hsa_agent_t agent)
{
    const struct topology *t = topology();

    return t && agent.handle - AGENT_BASE < t->n_agents ? &t->agents[agent.handle - AGENT_BASE] : NULL;
}

bool topology_agents(uint32_t n, const hsa_agent_t *agents, uint64_t *set)
{
    uint64_t found = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct agent *agent = topology_agent(agents[i]);

        if (!agent)
            return false;
        found |= agent_bit(agent);
    }
    *set = found;
    return true;
}

const struct pool *topology_pool(uint64_t handle)
{
    const struct topology *t = topology();
    uint64_t agent = (handle - POOL_BASE) / TOPOLOGY_POOLS_MAX;
    uint64_t pool = (handle - POOL_BASE) % TOPOLOGY_POOLS_MAX;

    if (!t || handle < POOL_BASE || agent >= t->n_agents || pool >= t->agents[agent].n_regions)
        return NULL;
    return &t->agents[agent].pools[pool];
}

const struct pool *topology_memory_pool(hsa_amd_memory_pool_t handle)
{
    const struct pool *pool = topology_pool(handle.handle);

    return pool && pool->allocatable ? pool : NULL;
}

const struct pool *topology_pool_of(const struct memclient_buffer_info *info)
{
    const struct topology *t = topology();

    for (unsigned i = 0; info->n_nodes && i < t->n_agents; i++)
        if (t->agents[i].node == info->nodes[0])
            return t->agents[i].n_pools ? &t->agents[i].pools[POOL_FINE] : NULL;
    return NULL;
}

const struct cache *topology_cache(hsa_cache_t cache)
{
    const struct topology *t = topology();
    uint64_t agent = (cache.handle - CACHE_BASE) / TOPOLOGY_CACHES_MAX;
    uint64_t i = (cache.handle - CACHE_BASE) % TOPOLOGY_CACHES_MAX;

    if (!t || cache.handle < CACHE_BASE || agent >= t->n_agents || i >= t->agents[agent].n_caches)
        return NULL;
    return &t->agents[agent].caches[i];
}

/* ---- asking the broker ------------------------------------------------------------------------------------------- */

static struct agent *topology_agent_of_node(struct snapshot *snapshot, uint32_t node)
{
    for (unsigned i = 0; i < snapshot->topology.n_agents; i++)
        if (snapshot->agents[i].node == node)
            return &snapshot->agents[i];
    return NULL;
}

static const struct agent *topology_agent_of_physical(const struct snapshot *snapshot, uint32_t physical)
{
    for (unsigned i = 0; i < snapshot->topology.n_agents; i++)
        if (snapshot->agents[i].physical == physical)
            return &snapshot->agents[i];
    return NULL;
}

/* Nodes with neither memory nor processors are skipped. */
static int topology_add_agent(const struct memclient_node_info *node, void *data)
{
    struct snapshot *snapshot = data;
    struct topology *t = &snapshot->topology;
    const struct agent *alike = topology_agent_of_physical(snapshot, node->physical);
    struct agent *agent;

    if ((!node->total && !node->has_cpus) || t->n_agents == TOPOLOGY_AGENTS_MAX)
        return 0;
    agent = &snapshot->agents[t->n_agents];
    if (alike)
        *agent = *alike;
    else
        machine_describe(agent, node->physical, node->has_cpus, "");
    agent->index = t->n_agents++;
    agent->handle.handle = AGENT_BASE + agent->index;
    agent->node = node->node;
    agent->physical = node->physical;
    machine_identify(agent, "");
    for (unsigned i = 0; i < agent->n_caches; i++)
        agent->caches[i].handle.handle = CACHE_BASE + agent->index * TOPOLOGY_CACHES_MAX + i;
    return 0;
}

/* To be called when all agents are known. */
static int topology_add_distances(const struct memclient_node_info *node, void *data)
{
    struct snapshot *snapshot = data;
    struct agent *agent = topology_agent_of_node(snapshot, node->node);

    for (unsigned i = 0; agent && i < snapshot->topology.n_agents; i++) {
        uint32_t to = snapshot->agents[i].node;

        agent->distances[i] = to < node->n_distances ? node->distances[to] : 0;
    }
    return 0;
}

static void topology_set_nearest(struct snapshot *snapshot)
{
    for (unsigned i = 0; i < snapshot->topology.n_agents; i++) {
        struct agent *agent = &snapshot->agents[i];
        const struct agent *nearest = agent;

        for (unsigned k = 0; !agent->cores && k < snapshot->topology.n_agents; k++)
            if (snapshot->agents[k].cores &&
                (nearest == agent || agent->distances[k] < agent->distances[nearest->index]))
                nearest = &snapshot->agents[k];
        agent->nearest_cpu = nearest->handle;
    }
}

static struct pool *topology_declared_pool(struct agent *agent)
{
    struct pool *pool = &agent->pools[POOL_DECLARED];

    while (pool->allocatable)
        pool++;
    return pool - agent->pools < DECLARED_END ? pool : NULL;
}

/*
 * Adds a pool of one node that HSA offers. Ordinary memory uses transparent huge pages if the broker has a pool of
 * them, else base pages. Huge pages that must be set aside are offered if the configuration declares a pool of them.
 */
static int topology_add_pool(const struct memclient_pool_info *from, void *data)
{
    struct snapshot *snapshot = data;
    struct agent *agent = from->n_nodes == 1 ? topology_agent_of_node(snapshot, from->nodes[0]) : NULL;
    bool huge = from->pages == MEMCLIENT_PAGES_HUGETLB;
    struct pool *pool;

    if (!agent || from->placement != MEMCLIENT_PLACEMENT_BIND || from->lazy || from->declared != huge)
        return 0;
    pool = huge ? topology_declared_pool(agent) : &agent->pools[POOL_FINE];
    if (!pool || (!huge && pool->allocatable && from->pages != MEMCLIENT_PAGES_THP))
        return 0;
    pool->allocatable = true;
    (void)snprintf(pool->name, sizeof(pool->name), "%s", from->name);
    pool->pages = from->pages;
    pool->page_size = from->page_size;
    pool->granule = from->granule;
    pool->recommended = from->granule > HUGE_PAGE ? from->granule : HUGE_PAGE;
    pool->capacity = from->capacity;
    return 0;
}

/* Appends a pool. */
static void topology_set_pool(struct agent *agent, enum pool_kind kind, unsigned segment, unsigned flags)
{
    struct pool *pool = &agent->pools[agent->n_regions];

    if (kind == POOL_KERNARG || kind == POOL_COARSE)
        *pool = agent->pools[POOL_FINE]; /* the same memory */
    pool->handle = POOL_BASE + agent->index * TOPOLOGY_POOLS_MAX + agent->n_regions++;
    pool->agent = agent;
    pool->kind = kind;
    pool->segment = segment;
    pool->flags = flags;
}

static void topology_set_region(struct agent *agent, enum pool_kind kind, unsigned segment)
{
    struct pool *region = &agent->pools[agent->n_regions];

    topology_set_pool(agent, kind, segment, 0);
    region->granule = page_size();
    region->capacity = KERNEL_SIZE;
    region->private_max = kind == REGION_PRIVATE ? KERNEL_SIZE : 0;
}

static void topology_set_pools(struct snapshot *snapshot)
{
    const unsigned fine = HSA_REGION_GLOBAL_FLAG_FINE_GRAINED, coarse = HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED;

    for (unsigned i = 0; i < snapshot->topology.n_agents; i++) {
        struct agent *agent = &snapshot->agents[i];

        if (agent->pools[POOL_FINE].allocatable) {
            topology_set_pool(agent, POOL_FINE, HSA_REGION_SEGMENT_GLOBAL, fine);
            topology_set_pool(agent, POOL_KERNARG, HSA_REGION_SEGMENT_GLOBAL, fine | HSA_REGION_GLOBAL_FLAG_KERNARG);
            topology_set_pool(agent, POOL_COARSE, HSA_REGION_SEGMENT_GLOBAL, coarse);
            while (agent->n_regions < DECLARED_END && agent->pools[agent->n_regions].allocatable)
                topology_set_pool(agent, POOL_DECLARED, HSA_REGION_SEGMENT_GLOBAL, coarse);
        }
        agent->n_pools = agent->n_regions;
        for (unsigned k = 0; k < agent->n_pools; k++)
            agent->pools[k].index = snapshot->topology.n_pools++;
        topology_set_region(agent, REGION_READONLY, HSA_REGION_SEGMENT_READONLY);
        topology_set_region(agent, REGION_GROUP, HSA_REGION_SEGMENT_GROUP);
        topology_set_region(agent, REGION_PRIVATE, HSA_REGION_SEGMENT_PRIVATE);
    }
}

/* ---- publishing -------------------------------------------------------------------------------------------------- */

static bool topology_same_pool(const struct pool *a, const struct pool *b)
{
    return a->kind == b->kind && !strcmp(a->name, b->name) && a->pages == b->pages && a->page_size == b->page_size &&
           a->granule == b->granule && a->capacity == b->capacity;
}

/* The frequency is ignored, since it may be a current measurement. */
static bool topology_same_agent(const struct agent *a, const struct agent *b)
{
    bool same = a->node == b->node && a->physical == b->physical && a->cores == b->cores &&
                a->cacheline == b->cacheline && a->nearest_cpu.handle == b->nearest_cpu.handle &&
                !memcmp(a->cache_bytes, b->cache_bytes, sizeof(a->cache_bytes)) && !strcmp(a->name, b->name) &&
                !strcmp(a->uuid, b->uuid) && !memcmp(a->distances, b->distances, sizeof(a->distances)) &&
                a->n_pools == b->n_pools && a->n_regions == b->n_regions && a->n_caches == b->n_caches;

    for (unsigned i = 0; same && i < a->n_regions; i++)
        same = topology_same_pool(&a->pools[i], &b->pools[i]);
    for (unsigned i = 0; same && i < a->n_caches; i++)
        same = a->caches[i].level == b->caches[i].level && a->caches[i].size == b->caches[i].size &&
               !strcmp(a->caches[i].name, b->caches[i].name);
    return same;
}

static bool topology_same(const struct topology *a, const struct topology *b)
{
    bool same = a->n_agents == b->n_agents;

    for (unsigned i = 0; same && i < a->n_agents; i++)
        same = topology_same_agent(&a->agents[i], &b->agents[i]);
    return same;
}

/* Publishes the snapshot, or an older one with the same contents. */
static void topology_publish(struct snapshot *snapshot)
{
    struct snapshot *former = known;

    while (former && !topology_same(&former->topology, &snapshot->topology))
        former = former->next;
    if (former) {
        free(snapshot);
        snapshot = former;
    } else {
        snapshot->next = known;
        known = snapshot;
    }
    __atomic_store_n(&current, snapshot, __ATOMIC_RELEASE);
}

hsa_status_t topology_load(struct memclient_context *ctx)
{
    _cleanup_free_ struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

    if (!snapshot)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    snapshot->topology.agents = snapshot->agents;
    if (memclient_list_nodes(ctx, topology_add_agent, snapshot) ||
        memclient_list_nodes(ctx, topology_add_distances, snapshot) ||
        memclient_list_pools(ctx, topology_add_pool, snapshot))
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    topology_set_nearest(snapshot);
    topology_set_pools(snapshot);
    if (!snapshot->topology.n_pools)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    topology_publish(steal_ptr(&snapshot));
    return HSA_STATUS_SUCCESS;
}
