/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing works before hsa_init(). Each test quotes the functions that it checks, as COVERAGE lists them. */
#include "tests/unit/hsa/hsa.h"

#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

#define assert_uninitialized(call) assert_status(call, HSA_STATUS_ERROR_NOT_INITIALIZED)

static hsa_status_t never(hsa_agent_t agent, void *data)
{
    (void)agent;
    (void)data;
    return HSA_STATUS_ERROR;
}

static hsa_status_t never_region(hsa_region_t region, void *data)
{
    (void)region;
    (void)data;
    return HSA_STATUS_ERROR;
}

static hsa_status_t never_pool(hsa_amd_memory_pool_t pool, void *data)
{
    (void)pool;
    (void)data;
    return HSA_STATUS_ERROR;
}

static hsa_status_t never_cache(hsa_cache_t cache, void *data)
{
    (void)cache;
    (void)data;
    return HSA_STATUS_ERROR;
}

static hsa_status_t never_isa(hsa_isa_t isa, void *data)
{
    (void)isa;
    (void)data;
    return HSA_STATUS_ERROR;
}

static void never_freed(void *ptr, void *data)
{
    (void)ptr;
    (void)data;
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED: "The HSA runtime has not been initialized", of HSA's own functions; before
 * anything else is looked at. */
static void core_not_initialized(void **state)
{
    char memory[64];
    void *ptr = memory;

    assert_success(hsa_shut_down());
    assert_uninitialized(hsa_shut_down());
    assert_uninitialized(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_SIZE, memory));
    assert_uninitialized(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_SIZE, NULL));
    assert_uninitialized(hsa_agent_iterate_regions(agents[0], never_region, NULL));
    assert_uninitialized(hsa_memory_allocate(regions[0][FINE], 4096, &ptr));
    assert_uninitialized(hsa_memory_free(ptr));
    assert_uninitialized(hsa_memory_free(NULL));
    assert_uninitialized(hsa_memory_copy(memory, memory + 32, 32));
    assert_uninitialized(hsa_memory_assign_agent(ptr, agents[0], HSA_ACCESS_PERMISSION_RW));
    assert_uninitialized(hsa_memory_register(memory, 32));
    assert_uninitialized(hsa_memory_deregister(memory, 32));
    assert_uninitialized(hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, memory));
    assert_uninitialized(hsa_iterate_agents(never, NULL));
    assert_uninitialized(hsa_agent_get_info(agents[0], HSA_AGENT_INFO_NODE, memory));
    assert_uninitialized(hsa_agent_iterate_caches(agents[0], never_cache, NULL));
    assert_uninitialized(hsa_cache_get_info((hsa_cache_t){1}, HSA_CACHE_INFO_LEVEL, memory));
    assert_uninitialized(hsa_agent_iterate_isas(agents[0], never_isa, NULL));
    assert_uninitialized(hsa_isa_get_info_alt((hsa_isa_t){1}, HSA_ISA_INFO_NAME, memory));
    assert_uninitialized(hsa_signal_create(0, 0, NULL, (hsa_signal_t *)memory));
    assert_uninitialized(hsa_signal_destroy((hsa_signal_t){1}));
    assert_success(hsa_init());
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED of AMD's functions for virtual memory. */
static void vmem_not_initialized(void **state)
{
    const hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    hsa_amd_vmem_alloc_handle_t handle = {1};
    hsa_access_permission_t perms;
    hsa_amd_memory_pool_t pool;
    hsa_amd_memory_type_t type;
    void *va = (void *)PAGE;
    int fd = 0;

    assert_success(hsa_shut_down());
    assert_uninitialized(hsa_amd_vmem_address_reserve(&va, PAGE, 0, 0));
    assert_uninitialized(hsa_amd_vmem_address_reserve_align(&va, PAGE, 0, 0, 0));
    assert_uninitialized(hsa_amd_vmem_address_free(va, PAGE));
    assert_uninitialized(hsa_amd_vmem_handle_create(pools[0][FINE], PAGE, MEMORY_TYPE_NONE, 0, &handle));
    assert_uninitialized(hsa_amd_vmem_handle_release(handle));
    assert_uninitialized(hsa_amd_vmem_map(va, PAGE, 0, handle, 0));
    assert_uninitialized(hsa_amd_vmem_unmap(va, PAGE));
    assert_uninitialized(hsa_amd_vmem_set_access(va, PAGE, &desc, 1));
    assert_uninitialized(hsa_amd_vmem_get_access(va, &perms, agents[0]));
    assert_uninitialized(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
    assert_uninitialized(hsa_amd_vmem_import_shareable_handle(0, &handle));
    assert_uninitialized(hsa_amd_vmem_retain_alloc_handle(&handle, va));
    assert_uninitialized(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type));
    assert_success(hsa_init());
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED of AMD's other functions, and of memclient_hsa_buffer(). */
static void amd_not_initialized(void **state)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_amd_ipc_memory_t token = {{0}};
    hsa_signal_t signal = {1};
    struct memclient_buffer *buffer;
    uint64_t offset;
    size_t size;
    char memory[64];
    void *ptr = memory;
    bool result;
    int fd = -1;

    assert_success(hsa_shut_down());
    assert_uninitialized(hsa_amd_agent_iterate_memory_pools(agents[0], never_pool, NULL));
    assert_uninitialized(hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_SIZE, memory));
    assert_uninitialized(hsa_amd_memory_pool_allocate(pools[0][FINE], PAGE, 0, &ptr));
    assert_uninitialized(hsa_amd_memory_pool_free(ptr));
    assert_uninitialized(
        hsa_amd_agent_memory_pool_get_info(agents[0], pools[0][FINE], HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, memory));
    assert_uninitialized(hsa_amd_agents_allow_access(1, agents, NULL, ptr));
    assert_uninitialized(hsa_amd_memory_pool_can_migrate(pools[0][FINE], pools[1][FINE], &result));
    assert_uninitialized(hsa_amd_memory_migrate(ptr, pools[0][FINE], 0));
    assert_uninitialized(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_uninitialized(hsa_amd_pointer_info_set_userdata(ptr, NULL));
    assert_uninitialized(hsa_amd_register_deallocation_callback(ptr, never_freed, NULL));
    assert_uninitialized(hsa_amd_deregister_deallocation_callback(ptr, never_freed));
    assert_uninitialized(hsa_amd_memory_fill(memory, 0, 4));
    assert_uninitialized(hsa_amd_memory_async_copy(memory, agents[0], memory + 32, agents[0], 32, 0, NULL, signal));
    assert_uninitialized(hsa_amd_memory_lock(memory, 64, NULL, 0, &ptr));
    assert_uninitialized(hsa_amd_memory_lock_to_pool(memory, 64, NULL, 0, pools[0][FINE], 0, &ptr));
    assert_uninitialized(hsa_amd_memory_unlock(memory));
    assert_uninitialized(hsa_amd_ipc_memory_create(ptr, 64, &token));
    assert_uninitialized(hsa_amd_ipc_memory_attach(&token, 64, 0, NULL, &ptr));
    assert_uninitialized(hsa_amd_ipc_memory_detach(ptr));
    assert_uninitialized(hsa_amd_portable_export_dmabuf(ptr, 64, &fd, &offset));
    assert_uninitialized(hsa_amd_portable_export_dmabuf_v2(ptr, 64, &fd, &offset, 0));
    assert_uninitialized(hsa_amd_portable_close_dmabuf(fd));
    assert_uninitialized(hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, &ptr, NULL, NULL));
    assert_uninitialized(hsa_amd_interop_unmap_buffer(ptr));
    assert_uninitialized(hsa_amd_signal_create(0, 0, NULL, 0, &signal));
    assert_uninitialized(hsa_amd_ipc_signal_create(signal, &token));
    assert_uninitialized(hsa_amd_ipc_signal_attach(&token, &signal));
    assert_uninitialized(memclient_hsa_buffer(ptr, &buffer));
    assert_success(hsa_init());
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(core_not_initialized),
        TEST(vmem_not_initialized),
        TEST(amd_not_initialized),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
