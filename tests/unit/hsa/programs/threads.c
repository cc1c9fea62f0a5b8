/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping in a thousand threads at once, and asking in four thousand. */
#include "program.h"

static void *start(void *data)
{
    (void)data;
    pthread_barrier_wait(&all_there);
    NEED(hsa_init());
    return NULL;
}

static void *stop(void *data)
{
    (void)data;
    pthread_barrier_wait(&all_there);
    NEED(hsa_shut_down());
    return NULL;
}

static hsa_status_t count(hsa_agent_t agent, void *data)
{
    (void)agent;
    ++*(unsigned *)data;
    return HSA_STATUS_SUCCESS;
}

static void *start_and_stop(void *data)
{
    unsigned n = 0;

    (void)data;
    pthread_barrier_wait(&all_there);
    for (unsigned i = 0; i < rounds(3); i++) {
        NEED(hsa_init());
        NEED(hsa_iterate_agents(count, &n));
        NEED(hsa_shut_down());
    }
    NEED_TRUE(n >= 2 * rounds(3));
    return NULL;
}

static void *ask(void *data)
{
    const unsigned me = (unsigned)(uintptr_t)data;
    const hsa_agent_t agent = agents[me % n_agents];
    const hsa_amd_memory_pool_t pool = pools[me % n_agents][0];
    char name[64];
    uint32_t node;
    size_t size;

    pthread_barrier_wait(&all_there);
    for (unsigned i = 0; i < rounds(20); i++) {
        NEED(hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name));
        NEED_TRUE(memchr(name, 0, sizeof(name)));
        NEED(hsa_agent_get_info(agent, HSA_AGENT_INFO_NODE, &node));
        NEED_TRUE(node == me % n_agents);
        NEED(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size));
        NEED_TRUE(size > 0);
        NEED(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, &size));
        NEED_TRUE(size > 0);
    }
    return NULL;
}

int main(void)
{
    const unsigned racers = 1000;

    run_threads(racers, start);
    begin();
    for (unsigned i = 0; i < 5; i++)
        run_threads(4096, ask);
    run_threads(racers, stop);
    end();
    run_threads(racers, start_and_stop);
    NEED_STATUS(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    return 0;
}
