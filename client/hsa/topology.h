/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as HSA sees it: a CPU agent for each NUMA node that the broker has, with its pools and regions.
 *
 * It is found out at hsa_init() and does not change afterwards; how much memory is left is asked for by headroom.h. A
 * snapshot is never freed, so that pointers into it, and handles, need no lock; when HSA is initialised again and the
 * broker has become another one, there is a new one.
 *
 * A region and a pool of the same memory are one struct and have one handle. Handles are small numbers that are
 * looked up in tables: nothing that a caller passes is ever followed as a pointer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/memclient.h>

#define TOPOLOGY_AGENTS_MAX 64 /* so that a set of agents is one uint64_t, by index; nodes beyond it are no agents */
#define TOPOLOGY_POOLS_MAX 16  /* of an agent: pools first, then what are only regions */
#define TOPOLOGY_CACHES_MAX 8

/* What allocations and reservations from that size on are aligned to. */
#define HUGE_PAGE (UINT64_C(2) << 20)

/* Its header has it outside of the type. */
#define INVALID_MEMORY_POOL ((hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL)

enum pool_kind {
    POOL_FINE,     /* the first: programs that want any pool take it */
    POOL_KERNARG,
    POOL_COARSE,
    POOL_DECLARED, /* of huge pages, as the broker's configuration declares them */
    /* from here on regions only: nothing can be allocated from them */
    REGION_READONLY,
    REGION_GROUP,
    REGION_PRIVATE
};

struct agent;

/* Members that get_info answers with have HSA's types. */
struct pool {
    uint64_t handle; /* of hsa_region_t and hsa_amd_memory_pool_t */
    const struct agent *agent;
    enum pool_kind kind;
    unsigned index;       /* of all pools that can be allocated from; 0 on regions that cannot */
    unsigned segment;     /* hsa_region_segment_t */
    unsigned flags;       /* hsa_region_global_flag_t */
    bool allocatable;
    char name[MEMCLIENT_POOL_NAME_SIZE]; /* the broker's pool */
    unsigned pages;       /* enum memclient_pages */
    uint64_t page_size;
    size_t granule;       /* and alignment */
    size_t recommended;   /* granule */
    size_t capacity;      /* REGION_INFO_SIZE */
    uint32_t private_max; /* ALLOC_MAX_PRIVATE_WORKGROUP_SIZE */
};

struct cache {
    hsa_cache_t handle;
    uint8_t level;
    uint32_t size;
    char name[32];
    uint32_t name_length;
};

struct agent {
    hsa_agent_t handle;
    unsigned index;
    uint32_t node;     /* the broker's number */
    uint32_t physical; /* the kernel's */
    hsa_agent_t nearest_cpu; /* itself, unless it has no processors */
    uint32_t cores;          /* from here to the caches, all that has no comment: see machine_describe() */
    uint32_t max_mhz;
    uint32_t cache_bytes[4];
    uint32_t cacheline;
    char name[64];
    char uuid[21];
    uint32_t distances[TOPOLOGY_AGENTS_MAX]; /* SLIT, by agent index; 10 = itself */
    unsigned n_pools;   /* that are pools */
    unsigned n_regions; /* pools included */
    struct pool pools[TOPOLOGY_POOLS_MAX];
    unsigned n_caches;
    struct cache caches[TOPOLOGY_CACHES_MAX];
};

struct topology {
    unsigned n_agents;
    struct agent *agents; /* in the order of their nodes */
    unsigned n_pools;     /* that can be allocated from, of all agents */
    uint64_t page_size;
    bool simulated;
};

/* The present one; NULL before the first hsa_init(). */
const struct topology *topology(void);

/* A set of agents: this one, and all. */
static inline uint64_t agent_bit(const struct agent *agent)
{
    return UINT64_C(1) << agent->index;
}

static inline uint64_t agents_all(void)
{
    return UINT64_MAX >> (64 - topology()->n_agents);
}

/* NULL if there is none. */
const struct agent *topology_agent(hsa_agent_t agent);
/* A list of agents as a set, by index; false if one of them is none. */
bool topology_agents(uint32_t n, const hsa_agent_t *agents, uint64_t *set);
const struct pool *topology_pool(uint64_t handle);
/* The same, but regions that nothing can be allocated from are no memory pools. */
const struct pool *topology_memory_pool(hsa_amd_memory_pool_t handle);
/* The standard pool of the agent that has a buffer's first page, as if that had allocated it; NULL if none has. */
const struct pool *topology_pool_of(const struct memclient_buffer_info *info);
const struct cache *topology_cache(hsa_cache_t cache);

/*
 * machine.c: fills in name, cores, max_mhz, cache_bytes, cacheline, and the caches' level, size and name, for the node
 * that the kernel calls so. has_cpus: as the broker says, for kernels that do not. `root` is where /sys, /proc and /etc
 * are: "".
 */
void machine_describe(struct agent *agent, uint32_t physical, bool has_cpus, const char *root);
/* Its uuid, by its node: the same in every process of the machine and after every boot. */
void machine_identify(struct agent *agent, const char *root);

/* At the first hsa_init(). OUT_OF_RESOURCES if the broker cannot be asked or has no memory. */
hsa_status_t topology_load(struct memclient *ctx);
