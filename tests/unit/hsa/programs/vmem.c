/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory as test suites of HSA runtimes try it: on every pool and for every pair of agents, with mistakes, and
 * from many threads at once.
 */
#include "program.h"

static void basic(hsa_amd_memory_pool_t pool, hsa_agent_t a, hsa_agent_t b)
{
    const size_t size = 2 * granule(pool);
    hsa_amd_memory_access_desc_t desc[2] = {{HSA_ACCESS_PERMISSION_RW, a}, {HSA_ACCESS_PERMISSION_RO, b}};
    hsa_amd_vmem_alloc_handle_t handle, again;
    hsa_access_permission_t permission;
    hsa_amd_memory_pool_t of;
    hsa_amd_memory_type_t type;
    uint32_t *address;

    NEED(hsa_amd_vmem_address_reserve((void **)&address, size, 0, 0));
    NEED(hsa_amd_vmem_handle_create(pool, size, MEMORY_TYPE_PINNED, 0, &handle));
    NEED(hsa_amd_vmem_map(address, size, 0, handle, 0));
    NEED(hsa_amd_vmem_set_access(address, size, desc, a.handle == b.handle ? 1 : 2));
    NEED(hsa_amd_vmem_get_access(address, &permission, a));
    NEED_TRUE(permission == HSA_ACCESS_PERMISSION_RW);
    if (a.handle != b.handle) {
        NEED(hsa_amd_vmem_get_access(address, &permission, b));
        NEED_TRUE(permission == HSA_ACCESS_PERMISSION_RO);
    }
    for (size_t i = 0; i < size / sizeof(*address); i += 1024)
        address[i] = (uint32_t)i;
    for (size_t i = 0; i < size / sizeof(*address); i += 1024)
        NEED_TRUE(address[i] == (uint32_t)i);
    NEED(hsa_amd_vmem_retain_alloc_handle(&again, address));
    NEED_TRUE(again.handle == handle.handle);
    NEED(hsa_amd_vmem_handle_release(again));
    NEED(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &of, &type));
    NEED_TRUE(of.handle == pool.handle && type == MEMORY_TYPE_PINNED);
    NEED_STATUS(hsa_amd_vmem_address_free(address, size), HSA_STATUS_ERROR_RESOURCE_FREE);
    NEED(hsa_amd_vmem_unmap(address, size));
    NEED(hsa_amd_vmem_handle_release(handle));
    NEED(hsa_amd_vmem_address_free(address, size));
}

/* Chunks that lie apart in memory, one after the other in addresses; and somebody passes the size as flags. */
static void chunks_without_order(hsa_amd_memory_pool_t pool)
{
    enum { CHUNKS = 16 };
    const size_t size = granule(pool);
    hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    hsa_amd_vmem_alloc_handle_t handles[CHUNKS], spacers[CHUNKS];
    unsigned char *address;

    NEED(hsa_amd_vmem_address_reserve((void **)&address, CHUNKS * size, 0, 0));
    for (unsigned i = 0; i < CHUNKS; i++) {
        NEED(hsa_amd_vmem_handle_create(pool, size, MEMORY_TYPE_NONE, 0, &handles[i]));
        NEED(hsa_amd_vmem_handle_create(pool, size, MEMORY_TYPE_NONE, 0, &spacers[i]));
    }
    for (unsigned i = 0; i < CHUNKS; i++)
        NEED(hsa_amd_vmem_handle_release(spacers[i]));
    for (unsigned i = 0; i < CHUNKS; i++)
        NEED(hsa_amd_vmem_map(address + i * size, size, 0, handles[(i * 7) % CHUNKS], size));
    NEED(hsa_amd_vmem_set_access(address, CHUNKS * size, &desc, 1));
    memset(address, 0x33, CHUNKS * size);
    NEED_TRUE(address[CHUNKS * size - 1] == 0x33);
    for (unsigned i = 0; i < CHUNKS; i++)
        NEED(hsa_amd_vmem_unmap(address + i * size, size));
    for (unsigned i = 0; i < CHUNKS; i++)
        NEED(hsa_amd_vmem_handle_release(handles[i]));
    NEED(hsa_amd_vmem_address_free(address, CHUNKS * size));
}

static void mistakes(hsa_amd_memory_pool_t pool)
{
    const size_t size = granule(pool);
    hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    hsa_amd_vmem_alloc_handle_t handle, never = {0};
    hsa_access_permission_t permission;
    char *address;
    int fd;

    NEED_STATUS(hsa_amd_vmem_address_reserve((void **)&address, 0, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED(hsa_amd_vmem_address_reserve((void **)&address, 2 * size, 0, 0));
    NEED_STATUS(hsa_amd_vmem_handle_create(pool, 0, MEMORY_TYPE_NONE, 0, &handle), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED_STATUS(hsa_amd_vmem_handle_create(pool, size + 1, MEMORY_TYPE_NONE, 0, &handle),
                HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED(hsa_amd_vmem_handle_create(pool, size, MEMORY_TYPE_NONE, 0, &handle));
    NEED_STATUS(hsa_amd_vmem_map(address, 2 * size, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED_STATUS(hsa_amd_vmem_map(address + 2 * size, size, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED_STATUS(hsa_amd_vmem_map(address, size, 0, never, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED_STATUS(hsa_amd_vmem_set_access(address, size, &desc, 1), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED_STATUS(hsa_amd_vmem_get_access(address, &permission, agents[0]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED_STATUS(hsa_amd_vmem_unmap(address, size), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED(hsa_amd_vmem_map(address, size, 0, handle, 0));
    NEED_STATUS(hsa_amd_vmem_map(address, size, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED_STATUS(hsa_amd_vmem_export_shareable_handle(&fd, never, 0), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED(hsa_amd_vmem_unmap(address, size));
    NEED(hsa_amd_vmem_handle_release(handle));
    NEED_STATUS(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    NEED(hsa_amd_vmem_address_free(address, 2 * size));
    NEED_STATUS(hsa_amd_vmem_address_free(address, 2 * size), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* One handle, mapped by all threads; and one of each thread's own. */
static hsa_amd_vmem_alloc_handle_t shared;

static void *map_and_unmap(void *data)
{
    const unsigned me = (unsigned)(uintptr_t)data;
    const hsa_amd_memory_pool_t pool = pools[me % n_agents][0];
    const hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, agents[me % n_agents]};
    hsa_amd_vmem_alloc_handle_t own;
    uint32_t *address;

    pthread_barrier_wait(&all_there);
    for (unsigned i = 0; i < rounds(50); i++) {
        NEED(hsa_amd_vmem_address_reserve((void **)&address, 128 * KIB, 0, 0));
        NEED(hsa_amd_vmem_handle_create(pool, 64 * KIB, MEMORY_TYPE_NONE, 0, &own));
        NEED(hsa_amd_vmem_map(address, 64 * KIB, 0, own, 0));
        NEED(hsa_amd_vmem_map((char *)address + 64 * KIB, 64 * KIB, 0, shared, 0));
        NEED(hsa_amd_vmem_set_access(address, 128 * KIB, &desc, 1));
        NEED_TRUE(address[0] == 0);
        address[0] = me + i;
        __atomic_fetch_add(&address[16 * KIB], 1, __ATOMIC_RELAXED);
        NEED_TRUE(address[0] == me + i);
        NEED(hsa_amd_vmem_handle_release(own));
        NEED(hsa_amd_vmem_unmap(address, 128 * KIB));
        NEED(hsa_amd_vmem_address_free(address, 128 * KIB));
    }
    return NULL;
}

static void many_threads(void)
{
    const hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RO, agents[1]};
    const unsigned threads = 16;
    uint32_t *address;

    NEED(hsa_amd_vmem_handle_create(pools[0][0], 64 * KIB, MEMORY_TYPE_NONE, 0, &shared));
    run_threads(threads, map_and_unmap);
    NEED(hsa_amd_vmem_address_reserve((void **)&address, 64 * KIB, 0, 0));
    NEED(hsa_amd_vmem_map(address, 64 * KIB, 0, shared, 0));
    NEED(hsa_amd_vmem_set_access(address, 64 * KIB, &desc, 1));
    if (*address != threads * rounds(50))
        give_up("the threads counted to %u, not to %u", *address, threads * rounds(50));
    NEED(hsa_amd_vmem_unmap(address, 64 * KIB));
    NEED(hsa_amd_vmem_handle_release(shared));
    NEED(hsa_amd_vmem_address_free(address, 64 * KIB));
}

int main(void)
{
    bool supported = false;

    begin();
    NEED(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED, &supported));
    NEED_TRUE(supported);
    for (unsigned a = 0; a < n_agents; a++)
        for (unsigned k = 0; k < n_pools[a]; k++) {
            for (unsigned b = 0; b < n_agents; b++)
                basic(pools[a][k], agents[a], agents[b]);
            chunks_without_order(pools[a][k]);
            mistakes(pools[a][k]);
        }
    many_threads();
    end();
    return 0;
}
