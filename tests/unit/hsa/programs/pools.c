/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools under stress: a thousand threads, holes, the largest allocations, what is freed twice, and that what is
 * available comes back to the byte.
 */
#include "program.h"

static hsa_amd_memory_pool_t pool_of_threads;

static void *allocate_and_free(void *data)
{
    unsigned char *ptr;

    pthread_barrier_wait(&all_there);
    NEED(hsa_amd_memory_pool_allocate(pool_of_threads, MIB, 0, (void **)&ptr));
    NEED_TRUE(ptr[0] == 0 && ptr[MIB - 1] == 0);
    ptr[0] = ptr[MIB - 1] = (unsigned char)((uintptr_t)data | 1);
    NEED(hsa_amd_agents_allow_access(n_agents, agents, NULL, ptr));
    NEED_TRUE(ptr[0] == (unsigned char)((uintptr_t)data | 1) && ptr[0] == ptr[MIB - 1]);
    NEED(hsa_amd_memory_pool_free(ptr));
    return NULL;
}

static void thousand_threads(hsa_amd_memory_pool_t pool)
{
    pool_of_threads = pool;
    for (unsigned i = 0; i < rounds(1); i++)
        run_threads(1024, allocate_and_free);
}

/* Every second one is freed, and larger ones must still be had. */
static void holes(hsa_amd_memory_pool_t pool)
{
    enum { N = 64 };
    char *small[N], *large[N / 4];

    for (unsigned i = 0; i < N; i++) {
        NEED(hsa_amd_memory_pool_allocate(pool, 256 * KIB, 0, (void **)&small[i]));
        memset(small[i], (int)i, 256 * KIB);
    }
    for (unsigned i = 0; i < N; i += 2)
        NEED(hsa_amd_memory_pool_free(small[i]));
    for (unsigned i = 0; i < N / 4; i++) {
        NEED(hsa_amd_memory_pool_allocate(pool, 512 * KIB, 0, (void **)&large[i]));
        memset(large[i], 0xEE, 512 * KIB);
    }
    for (unsigned i = 1; i < N; i += 2) {
        NEED_TRUE(small[i][0] == (char)i && small[i][256 * KIB - 1] == (char)i);
        NEED(hsa_amd_memory_pool_free(small[i]));
    }
    for (unsigned i = 0; i < N / 4; i++)
        NEED(hsa_amd_memory_pool_free(large[i]));
}

static void limits(hsa_amd_memory_pool_t pool)
{
    const size_t size = pool_size_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE);
    const size_t most = pool_size_info(pool, HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE);
    const size_t alignment = pool_size_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT);
    char *ptr, *again;

    NEED_TRUE(most <= size);
    NEED_STATUS(hsa_amd_memory_pool_allocate(pool, size + 1, 0, (void **)&ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED_STATUS(hsa_amd_memory_pool_allocate(pool, SIZE_MAX, 0, (void **)&ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED_STATUS(hsa_amd_memory_pool_allocate(pool, 0, 0, (void **)&ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (size_t bytes = 1; bytes <= 64 * MIB && bytes <= most; bytes *= 3) {
        NEED(hsa_amd_memory_pool_allocate(pool, bytes, 0, (void **)&ptr));
        NEED_TRUE((uintptr_t)ptr % alignment == 0);
        ptr[bytes - 1] = 1;
        NEED(hsa_amd_memory_pool_free(ptr));
        NEED_STATUS(hsa_amd_memory_pool_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    }
    NEED(hsa_amd_memory_pool_allocate(pool, 100, 0, (void **)&ptr));
    NEED_STATUS(hsa_amd_memory_pool_free(ptr + 4096), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED(hsa_memory_free(ptr));
    NEED_STATUS(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED(hsa_amd_memory_pool_allocate(pool, 100, 0, (void **)&again));
    NEED(hsa_amd_memory_pool_free(again));
}

static void available(unsigned agent)
{
    const uint64_t before = memory_avail(agents[agent]);
    void *ptr[8];

    for (unsigned round = 0; round < rounds(5); round++) {
        for (unsigned i = 0; i < 8; i++) {
            NEED(hsa_amd_memory_pool_allocate(pools[agent][i % n_pools[agent]], 4 * MIB, 0, &ptr[i]));
            NEED_TRUE(memory_avail(agents[agent]) == before - (i + 1) * 4 * MIB);
        }
        for (unsigned i = 0; i < 8; i++)
            NEED(hsa_amd_memory_pool_free(ptr[i]));
        if (memory_avail(agents[agent]) != before)
            give_up("all is freed, and %llu bytes are missing",
                    (unsigned long long)(before - memory_avail(agents[agent])));
    }
}

int main(void)
{
    begin();
    for (unsigned a = 0; a < n_agents; a++) {
        for (unsigned k = 0; k < n_pools[a]; k++) {
            thousand_threads(pools[a][k]);
            holes(pools[a][k]);
            limits(pools[a][k]);
        }
        available(a);
    }
    end();
    return 0;
}
