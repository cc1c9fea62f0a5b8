/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding out which agents there are, and looking them up.
 *
 * The broker says which nodes and pools it has; sysfs and /proc say what the processors of a node are called and
 * how many they are. Simulated nodes stand for one real one and get its processors.
 *
 * Handles: an agent's is AGENT_BASE + its index. A pool's also says which of the agent's it is, so that looking
 * one up is arithmetic. They are the same in every process that asks the same broker, and never 0.
 */
#include "hsa/topology.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "hsa/runtime.h"

#define AGENT_BASE UINT64_C(0x100)
#define POOL_BASE  UINT64_C(0x10000)
#define HUGE_PAGE  (UINT64_C(2) << 20)

/* Snapshots are kept for good: a process sees few brokers in its life, and pointers into them stay good. */
struct snapshot {
    struct topology topology;
    struct snapshot *former;
    struct agent agents[TOPOLOGY_AGENTS_MAX];
};

static struct snapshot *current; /* atomic */

const struct topology *topology(void)
{
    struct snapshot *snapshot = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

    return snapshot ? &snapshot->topology : NULL;
}

/* ---- looking up ------------------------------------------------------------------------------------------ */

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
        found |= UINT64_C(1) << agent->index;
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

const struct agent *topology_agent_of_node(uint32_t node)
{
    const struct topology *t = topology();

    for (unsigned i = 0; t && i < t->n_agents; i++)
        if (t->agents[i].node == node)
            return &t->agents[i];
    return NULL;
}

/* ---- asking the broker ----------------------------------------------------------------------------------- */

static struct agent *agent_of_node(struct snapshot *snapshot, uint32_t node)
{
    for (unsigned i = 0; i < snapshot->topology.n_agents; i++)
        if (snapshot->agents[i].node == node)
            return &snapshot->agents[i];
    return NULL;
}

static int add_agent(const struct memclient_node *node, void *data)
{
    struct snapshot *snapshot = data;
    struct topology *t = &snapshot->topology;
    struct agent *agent;

    if (t->n_agents == TOPOLOGY_AGENTS_MAX)
        return 0;
    agent = &snapshot->agents[t->n_agents];
    agent->index = t->n_agents++;
    agent->handle.handle = AGENT_BASE + agent->index;
    agent->node = node->node;
    agent->physical = node->physical;
    t->simulated = t->simulated || node->simulated;
    /* by node for now; set_distances() makes it by agent */
    for (size_t i = 0; i < node->n_distances && i < TOPOLOGY_AGENTS_MAX; i++)
        agent->distances[i] = node->distances[i];
    return 0;
}

static void set_distances(struct snapshot *snapshot)
{
    for (unsigned i = 0; i < snapshot->topology.n_agents; i++) {
        struct agent *agent = &snapshot->agents[i];
        uint32_t by_node[TOPOLOGY_AGENTS_MAX];

        memcpy(by_node, agent->distances, sizeof(by_node));
        memset(agent->distances, 0, sizeof(agent->distances));
        for (unsigned k = 0; k < snapshot->topology.n_agents; k++) {
            uint32_t node = snapshot->agents[k].node;

            agent->distances[k] = node < TOPOLOGY_AGENTS_MAX ? by_node[node] : 0;
        }
    }
}

/* A pool of one node that HSA offers: of transparent huge pages where there are such, else of base pages. */
static int note_pool(const struct memclient_pool *from, void *data)
{
    struct snapshot *snapshot = data;
    struct agent *agent = from->n_nodes == 1 ? agent_of_node(snapshot, from->nodes[0]) : NULL;
    struct pool *pool;

    if (!agent || from->placement != MEMCLIENT_PLACEMENT_BIND || from->lazy ||
        from->pages == MEMCLIENT_PAGES_HUGETLB)
        return 0;
    pool = &agent->pools[POOL_FINE];
    if (pool->allocatable && from->pages != MEMCLIENT_PAGES_THP)
        return 0;
    pool->allocatable = true;
    memcpy(pool->name, from->name, strlen(from->name) + 1);
    pool->pages = from->pages;
    pool->page_size = from->page_size;
    pool->granule = from->granule;
    pool->recommended = from->granule > HUGE_PAGE ? from->granule : HUGE_PAGE;
    pool->capacity = from->capacity;
    return 0;
}

static void set_pool(struct agent *agent, enum pool_kind kind, unsigned segment, unsigned flags)
{
    struct pool *pool = &agent->pools[agent->n_regions];

    if (kind != POOL_FINE && kind < REGION_READONLY)
        *pool = agent->pools[POOL_FINE];
    pool->handle = POOL_BASE + agent->index * TOPOLOGY_POOLS_MAX + agent->n_regions++;
    pool->agent = agent;
    pool->kind = kind;
    pool->segment = segment;
    pool->flags = flags;
}

static void set_pools(struct snapshot *snapshot)
{
    const unsigned fine = HSA_REGION_GLOBAL_FLAG_FINE_GRAINED;

    for (unsigned i = 0; i < snapshot->topology.n_agents; i++) {
        struct agent *agent = &snapshot->agents[i];

        if (agent->pools[POOL_FINE].allocatable) {
            set_pool(agent, POOL_FINE, HSA_REGION_SEGMENT_GLOBAL, fine);
            set_pool(agent, POOL_KERNARG, HSA_REGION_SEGMENT_GLOBAL, fine | HSA_REGION_GLOBAL_FLAG_KERNARG);
            set_pool(agent, POOL_COARSE, HSA_REGION_SEGMENT_GLOBAL, HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED);
        }
        agent->n_pools = agent->n_regions;
        for (unsigned k = 0; k < agent->n_pools; k++)
            agent->pools[k].index = snapshot->topology.n_pools++;
        set_pool(agent, REGION_READONLY, HSA_REGION_SEGMENT_READONLY, 0);
        set_pool(agent, REGION_GROUP, HSA_REGION_SEGMENT_GROUP, 0);
        set_pool(agent, REGION_PRIVATE, HSA_REGION_SEGMENT_PRIVATE, 0);
    }
}

/* ---- publishing ------------------------------------------------------------------------------------------ */

static bool is_same(const struct snapshot *a, const struct snapshot *b)
{
    return a && a->topology.n_agents == b->topology.n_agents && a->topology.simulated == b->topology.simulated;
}

hsa_status_t topology_load(struct memclient *ctx)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    int r;

    if (!snapshot)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    snapshot->topology.agents = snapshot->agents;
    snapshot->topology.page_size = (uint64_t)sysconf(_SC_PAGESIZE);
    r = memclient_list_nodes(ctx, add_agent, snapshot);
    if (!r)
        r = memclient_list_pools(ctx, note_pool, snapshot);
    if (r || !snapshot->topology.n_agents) {
        free(snapshot);
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    set_distances(snapshot);
    set_pools(snapshot);
    snapshot->former = current;
    if (is_same(current, snapshot))
        free(snapshot);
    else
        __atomic_store_n(&current, snapshot, __ATOMIC_RELEASE);
    return HSA_STATUS_SUCCESS;
}
