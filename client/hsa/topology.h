/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as HSA sees it: a CPU agent for each NUMA node of the broker, with its pools and regions.
 *
 * It is loaded by hsa_init() and constant afterwards; headroom.h has the free memory. A snapshot is never freed, so
 * that handles and pointers into it need no lock. If HSA is initialised again with another broker, a new snapshot is
 * made.
 *
 * A region and a pool of the same memory are one struct and have one handle. Handles are small numbers that are looked
 * up in tables: a handle is never used as a pointer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/memclient.h>

#define TOPOLOGY_AGENTS_MAX 64 /* a set of agents is a uint64_t, by index; further nodes are no agents */
#define TOPOLOGY_POOLS_MAX  16 /* of an agent: pools first, then what is only a region */
#define TOPOLOGY_CACHES_MAX 8

/* Allocations and reservations from this size on are aligned to it. */
#define HUGE_PAGE (UINT64_C(2) << 20)

/* The header defines it outside of hsa_status_t. */
#define INVALID_MEMORY_POOL ((hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL)

enum pool_kind {
    POOL_FINE, /* the first, which programs take that want any pool */
    POOL_KERNARG,
    POOL_COARSE,
    POOL_DECLARED, /* of huge pages, declared by the broker's configuration */
    /* only regions from here on: nothing can be allocated from them */
    REGION_READONLY,
    REGION_GROUP,
    REGION_PRIVATE
};

struct agent;

/* Members that get_info functions copy have HSA's types. */
struct pool {
    uint64_t handle; /* of hsa_region_t and hsa_amd_memory_pool_t */
    const struct agent *agent;
    enum pool_kind kind;
    unsigned index;   /* among all pools; 0 for regions */
    unsigned segment; /* hsa_region_segment_t */
    unsigned flags;   /* hsa_region_global_flag_t */
    bool allocatable;
    char name[MEMCLIENT_POOL_NAME_SIZE]; /* of the broker's pool */
    unsigned pages;                      /* enum memclient_pages */
    uint64_t page_size;
    size_t granule;       /* and the alignment */
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
    uint32_t node;           /* the broker's number */
    uint32_t physical;       /* the kernel's */
    hsa_agent_t nearest_cpu; /* itself, unless it has no processors */
    uint32_t cores;          /* from here to the caches, members without a comment: see machine_describe() */
    uint32_t max_mhz;
    uint32_t cache_bytes[4];
    uint32_t cacheline;
    char name[64];
    char uuid[21];
    uint32_t distances[TOPOLOGY_AGENTS_MAX]; /* SLIT, by agent index; 10: itself */
    unsigned n_pools;                        /* among the regions */
    unsigned n_regions;                      /* pools included */
    struct pool pools[TOPOLOGY_POOLS_MAX];
    unsigned n_caches;
    struct cache caches[TOPOLOGY_CACHES_MAX];
};

struct topology {
    unsigned n_agents;
    struct agent *agents; /* in the order of their nodes */
    unsigned n_pools;     /* of all agents */
};

/* The present topology; NULL before the first hsa_init(). */
const struct topology *topology(void);

/* Sets of agents: one, and all. */
static inline uint64_t agent_bit(const struct agent *agent)
{
    return UINT64_C(1) << agent->index;
}

static inline uint64_t agents_all(void)
{
    return UINT64_MAX >> (64 - topology()->n_agents);
}

/* These return NULL or false for invalid handles. */
const struct agent *topology_agent(hsa_agent_t agent);
/* Makes a set of a list of agents. */
bool topology_agents(uint32_t n, const hsa_agent_t *agents, uint64_t *set);
const struct pool *topology_pool(uint64_t handle);
/* The same, except regions that are no pools. */
const struct pool *topology_memory_pool(hsa_amd_memory_pool_t handle);
/* The standard pool of the agent that has a buffer's first page; NULL if no agent has it. */
const struct pool *topology_pool_of(const struct memclient_buffer_info *info);
const struct cache *topology_cache(hsa_cache_t cache);

/*
 * machine.c: sets name, cores, max_mhz, cache_bytes, cacheline, and the caches' level, size and name, for the node with
 * this number of the kernel. has_cpus comes from the broker, for kernels that do not tell. `root` is the directory of
 * /sys, /proc and /etc: "".
 */
void machine_describe(struct agent *agent, uint32_t physical, bool has_cpus, const char *root);
/* Sets its uuid by its node: the same in all processes of the machine and after every boot. */
void machine_identify(struct agent *agent, const char *root);

/* At the first hsa_init(). OUT_OF_RESOURCES if the broker does not answer or has no memory. */
hsa_status_t topology_load(struct memclient_context *ctx);
