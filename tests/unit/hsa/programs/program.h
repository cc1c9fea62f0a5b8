/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What these programs begin with. They are written as anybody would write them, to HSA's headers alone, and
 * find the CPU agents and their pools.
 */
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/program.h"

#define AGENTS_MAX 64
#define POOLS_MAX  3
#define GIB        ((size_t)1 << 30)

#define NEED(call)                expect((call), HSA_STATUS_SUCCESS, #call, __FILE__, __LINE__)
#define NEED_STATUS(call, wanted) expect((call), (hsa_status_t)(wanted), #call, __FILE__, __LINE__)

static inline void expect(hsa_status_t got, hsa_status_t wanted, const char *call, const char *file, int line)
{
    const char *text = "an unknown status";

    if (got == wanted)
        return;
    hsa_status_string(got, &text);
    give_up("%s:%d: %s gave 0x%x (%s), not 0x%x", file, line, call, (unsigned)got, text, (unsigned)wanted);
}

/* ---- agents and pools -------------------------------------------------------------------------------------------- */

static unsigned n_agents;
static hsa_agent_t agents[AGENTS_MAX];
static unsigned n_pools[AGENTS_MAX];
static hsa_amd_memory_pool_t pools[AGENTS_MAX][POOLS_MAX];

static inline hsa_status_t note_agent(hsa_agent_t agent, void *data)
{
    hsa_device_type_t type;
    hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);

    (void)data;
    if (status == HSA_STATUS_SUCCESS && type == HSA_DEVICE_TYPE_CPU)
        agents[n_agents++] = agent;
    return status;
}

/* Those of the global segment that can be allocated from. */
static inline hsa_status_t note_pool(hsa_amd_memory_pool_t pool, void *data)
{
    unsigned of = *(unsigned *)data;
    hsa_amd_segment_t segment;
    bool allowed = false;

    NEED(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    NEED(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
    if (segment == HSA_AMD_SEGMENT_GLOBAL && allowed)
        pools[of][n_pools[of]++] = pool;
    return HSA_STATUS_SUCCESS;
}

static inline void begin(void)
{
    NEED(hsa_init());
    NEED(hsa_iterate_agents(note_agent, NULL));
    NEED_TRUE(n_agents >= 2);
    for (unsigned i = 0; i < n_agents; i++) {
        NEED(hsa_amd_agent_iterate_memory_pools(agents[i], note_pool, &i));
        NEED_TRUE(n_pools[i] > 0);
    }
}

static inline void end(void)
{
    NEED(hsa_shut_down());
    NEED_STATUS(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
}

static inline uint64_t memory_avail(hsa_agent_t agent)
{
    uint64_t bytes = 0;

    NEED(hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes));
    return bytes;
}

static inline size_t pool_size_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute)
{
    size_t value = 0;

    NEED(hsa_amd_memory_pool_get_info(pool, attribute, &value));
    return value;
}

static inline size_t granule(hsa_amd_memory_pool_t pool)
{
    return pool_size_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static pthread_barrier_t all_there;

/* So many, with small stacks, that begin together. */
static inline void run_threads(unsigned n, void *(*body)(void *))
{
    pthread_t *threads = calloc(n, sizeof(*threads));
    pthread_attr_t attributes;

    NEED_TRUE(threads);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * KIB);
    NEED_TRUE(pthread_barrier_init(&all_there, NULL, n) == 0);
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], &attributes, body, (void *)(uintptr_t)i))
            give_up("there are no %u threads to be had", n);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all_there);
    pthread_attr_destroy(&attributes);
    free(threads);
}
