/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's extensions that real programs use: pools, access, pointers, filling, callbacks, and memory shared with other
 * processes. Each test quotes the function and what of it is checked, as COVERAGE lists them.
 */
#include "tests/unit/hsa/hsa.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

#define PAGE                ((size_t)sysconf(_SC_PAGESIZE))
#define CAPACITY            (64 * MIB) /* of a node, as configured below */
#define INVALID_MEMORY_POOL ((hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL)

static char *allocate(hsa_amd_memory_pool_t pool, size_t size)
{
    void *ptr = NULL;

    assert_success(hsa_amd_memory_pool_allocate(pool, size, 0, &ptr));
    return ptr;
}

static hsa_amd_pointer_info_t pointer(const void *ptr)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};

    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    return info;
}

/* ---- pools ----------------------------------------------------------------------------------------------- */

/* hsa_amd_memory_pool_allocate(memory_pool, size, flags, ptr): HSA_STATUS_SUCCESS, whatever the flags;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT if size is 0 or ptr NULL, then HSA_STATUS_ERROR_INVALID_MEMORY_POOL. */
static void pool_allocate(void **state)
{
    void *ptr = NULL;

    (void)state;
    for (unsigned i = 0; i < AGENTS * POOLS; i++) {
        assert_status(hsa_amd_memory_pool_allocate(pools[i % AGENTS][i / AGENTS], 1000 + i, i, &ptr),
                      HSA_STATUS_SUCCESS);
        memset(ptr, 1, 1000 + i);
        assert_success(hsa_amd_memory_pool_free(ptr));
    }
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){0}, 0, 0, &ptr),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){0}, PAGE, 0, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){0}, PAGE, 0, &ptr), INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){agents[0].handle}, PAGE, 0, &ptr),
                  INVALID_MEMORY_POOL);
}

/* hsa_amd_memory_pool_allocate(): HSA_STATUS_ERROR_INVALID_ALLOCATION above what the pool says,
 * HSA_STATUS_ERROR_OUT_OF_RESOURCES when it has become less. */
static void pool_allocate_too_much(void **state)
{
    size_t max = 0;
    void *ptr;
    char *most;

    (void)state;
    assert_success(hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, &max));
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], max + 1, 0, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE_MAX, 0, &ptr),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    most = allocate(pools[0][FINE], max);
    assert_status(hsa_amd_memory_pool_allocate(pools[0][FINE], MIB, 0, &ptr), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_success(hsa_amd_memory_pool_free(most));
}

/* hsa_amd_memory_pool_free(ptr): HSA_STATUS_SUCCESS for what a pool or a region gave, and for NULL;
 * HSA_STATUS_ERROR_INVALID_ALLOCATION for a second time and for any other address. */
static void pool_free(void **state)
{
    void *of_region = NULL;
    char *ptr = allocate(pools[0][FINE], 2 * PAGE);

    (void)state;
    assert_status(hsa_amd_memory_pool_free(ptr + PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_pool_free(&ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_pool_free(ptr), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_memory_pool_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_memory_pool_free(NULL));
    assert_success(hsa_memory_allocate(regions[0][FINE], PAGE, &of_region));
    assert_success(hsa_amd_memory_pool_free(of_region));
    assert_success(hsa_memory_free(allocate(pools[1][COARSE], PAGE)));
}

/* hsa_amd_agent_memory_pool_get_info(agent, memory_pool, attribute, value): HSA_STATUS_SUCCESS:
 * HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS and
 * HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, an hsa_amd_memory_pool_link_info_t; HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_MEMORY_POOL. */
static void agent_memory_pool_info(void **state)
{
    (void)state;
    for (unsigned a = 0; a < AGENTS; a++)
        for (unsigned b = 0; b < AGENTS; b++) {
            hsa_amd_memory_pool_access_t access = HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
            hsa_amd_memory_pool_link_info_t links[2] = {{.numa_distance = 77}, {.numa_distance = 77}};
            uint32_t hops = 77;

            assert_status(hsa_amd_agent_memory_pool_get_info(agents[a], pools[b][FINE],
                                                             HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access),
                          HSA_STATUS_SUCCESS);
            assert_int_equal(access, HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
            assert_success(hsa_amd_agent_memory_pool_get_info(agents[a], pools[b][COARSE],
                                                              HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops));
            assert_int_equal(hops, a == b ? 0 : 1);
            assert_success(hsa_amd_agent_memory_pool_get_info(agents[a], pools[b][FINE],
                                                              HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, links));
            if (a != b) {
                assert_true(links[0].numa_distance >= 10 && links[0].numa_distance != 77);
                assert_true(links[0].atomic_support_32bit && links[0].atomic_support_64bit);
                assert_true(links[0].coherent_support);
                assert_int_equal(links[0].link_type, 0);
                assert_true(!links[0].min_latency && !links[0].max_latency);
                assert_true(!links[0].min_bandwidth && !links[0].max_bandwidth);
            }
            assert_int_equal(links[1].numa_distance, 77);
            assert_status(hsa_amd_agent_memory_pool_get_info(agents[a], pools[b][FINE],
                                                             (hsa_amd_agent_memory_pool_info_t)3, &hops),
                          HSA_STATUS_ERROR_INVALID_ARGUMENT);
            assert_status(hsa_amd_agent_memory_pool_get_info(agents[a], pools[b][FINE],
                                                             HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, NULL),
                          HSA_STATUS_ERROR_INVALID_ARGUMENT);
            assert_status(hsa_amd_agent_memory_pool_get_info((hsa_agent_t){0}, pools[b][FINE],
                                                             HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access),
                          HSA_STATUS_ERROR_INVALID_AGENT);
            assert_status(hsa_amd_agent_memory_pool_get_info(agents[a], (hsa_amd_memory_pool_t){0},
                                                             HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access),
                          INVALID_MEMORY_POOL);
        }
}

/* hsa_amd_agents_allow_access(num_agents, agents, flags, ptr): HSA_STATUS_SUCCESS for an allocation;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT for no agents, flags or no ptr; HSA_STATUS_ERROR_INVALID_AGENT for one that is
 * none; HSA_STATUS_ERROR_INVALID_ALLOCATION for another ptr. */
static void agents_allow_access(void **state)
{
    char *ptr = allocate(pools[0][FINE], 2 * PAGE);
    const hsa_agent_t wrong[2] = {agents[0], {0}};
    const uint32_t flags = 0;

    (void)state;
    assert_status(hsa_amd_agents_allow_access(AGENTS, agents, NULL, ptr), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_agents_allow_access(1, &agents[1], NULL, ptr), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_agents_allow_access(0, agents, NULL, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(1, NULL, NULL, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(1, agents, &flags, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(2, wrong, NULL, ptr), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, ptr + PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, &wrong), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_memory_pool_free(ptr));
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_amd_agents_allow_access() of virtual memory: reading and writing, of all mappings that follow without a gap. */
static void agents_allow_access_to_mappings(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle;
    hsa_access_permission_t perms = HSA_ACCESS_PERMISSION_NONE;
    char *va;

    (void)state;
    assert_success(hsa_amd_vmem_address_reserve((void **)&va, 4 * PAGE, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], PAGE, MEMORY_TYPE_NONE, 0, &handle));
    for (unsigned i = 0; i < 4; i++)
        if (i != 2)
            assert_success(hsa_amd_vmem_map(va + i * PAGE, PAGE, 0, handle, 0));
    assert_success(hsa_amd_agents_allow_access(1, &agents[1], NULL, va));
    va[0] = 1;
    assert_int_equal(va[PAGE], 1);
    assert_success(hsa_amd_vmem_get_access(va + PAGE, &perms, agents[1]));
    assert_int_equal(perms, HSA_ACCESS_PERMISSION_RW);
    assert_status(hsa_amd_vmem_get_access(va + 3 * PAGE, &perms, agents[1]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_unmap(va, 2 * PAGE));
    assert_success(hsa_amd_vmem_unmap(va + 3 * PAGE, PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 4 * PAGE));
}

/* ---- pointers -------------------------------------------------------------------------------------------- */

static void *no_memory(size_t size)
{
    (void)size;
    return NULL;
}

/* hsa_amd_pointer_info(ptr, info, alloc, num_agents_accessible, accessible): HSA_STATUS_SUCCESS of any address of an
 * allocation, and of unknown ones; HSA_STATUS_ERROR_INVALID_ARGUMENT without ptr or info, or with size 0;
 * HSA_STATUS_ERROR_OUT_OF_RESOURCES where alloc gives nothing. */
static void pointer_info(void **state)
{
    char *ptr = allocate(pools[1][KERNARG], 5000);
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_agent_t *accessible = NULL;
    uint32_t n = 0;

    (void)state;
    assert_status(hsa_amd_pointer_info(ptr + 4999, &info, malloc, &n, &accessible), HSA_STATUS_SUCCESS);
    assert_int_equal(info.size, sizeof(info));
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_HSA);
    assert_ptr_equal(info.agentBaseAddress, ptr);
    assert_ptr_equal(info.hostBaseAddress, ptr);
    assert_int_equal(info.sizeInBytes, 5000);
    assert_int_equal(info.agentOwner.handle, agents[1].handle);
    assert_int_equal(info.global_flags, 3);
    assert_int_equal(n, AGENTS);
    assert_non_null(accessible);
    assert_int_equal(accessible[0].handle, agents[0].handle);
    assert_int_equal(accessible[1].handle, agents[1].handle);
    free(accessible);
    assert_int_equal(pointer(ptr + 5000).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_int_equal(pointer(&n).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_status(hsa_amd_pointer_info(NULL, &info, NULL, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_pointer_info(ptr, NULL, NULL, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_pointer_info(ptr, &info, no_memory, &n, &accessible), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    info.size = 0;
    assert_status(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_memory_pool_free(ptr));
}

/* hsa_amd_pointer_info(): no more of info is written than its size says, which is all that older programs have. */
static void pointer_info_of_old_programs(void **state)
{
    char *ptr = allocate(pools[0][FINE], 100);
    hsa_amd_pointer_info_t info;

    (void)state;
    memset(&info, 0x5A, sizeof(info));
    info.size = offsetof(hsa_amd_pointer_info_t, userData);
    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_int_equal(info.size, offsetof(hsa_amd_pointer_info_t, userData));
    assert_int_equal(info.sizeInBytes, 100);
    assert_int_equal(info.global_flags, 0x5A5A5A5A);
    assert_success(hsa_amd_memory_pool_free(ptr));
}

/* hsa_amd_pointer_info() of reserved addresses, and of what is mapped in them: HSA_EXT_POINTER_TYPE_RESERVED_ADDR and
 * HSA_EXT_POINTER_TYPE_HSA_VMEM. */
static void pointer_info_of_virtual_memory(void **state)
{
    hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RO, agents[1]};
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_amd_vmem_alloc_handle_t handle;
    hsa_agent_t *accessible = NULL;
    uint32_t n = 77;
    char *va;

    (void)state;
    assert_success(hsa_amd_vmem_address_reserve((void **)&va, 4 * PAGE, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[0][COARSE], PAGE, MEMORY_TYPE_NONE, 0, &handle));
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handle, 0));
    info = pointer(va + PAGE);
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_RESERVED_ADDR);
    assert_ptr_equal(info.hostBaseAddress, va);
    assert_int_equal(info.sizeInBytes, 4 * PAGE);
    assert_success(hsa_amd_pointer_info(va, &info, malloc, &n, &accessible));
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_HSA_VMEM);
    assert_ptr_equal(info.hostBaseAddress, va);
    assert_int_equal(info.sizeInBytes, PAGE);
    assert_int_equal(info.agentOwner.handle, agents[0].handle);
    assert_int_equal(n, 0);
    assert_null(accessible);
    assert_success(hsa_amd_vmem_set_access(va, PAGE, &desc, 1));
    assert_success(hsa_amd_pointer_info(va, &info, malloc, &n, &accessible));
    assert_int_equal(n, 1);
    assert_int_equal(accessible[0].handle, agents[1].handle);
    free(accessible);
    assert_success(hsa_amd_vmem_unmap(va, PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 4 * PAGE));
    assert_int_equal(pointer(va).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
}

/* hsa_amd_pointer_info_set_userdata(ptr, userdata): HSA_STATUS_SUCCESS, told by hsa_amd_pointer_info() of any
 * address; HSA_STATUS_ERROR_INVALID_ARGUMENT where nothing is. */
static void pointer_info_set_userdata(void **state)
{
    char *ptr = allocate(pools[0][FINE], 2 * PAGE);
    int local;

    (void)state;
    assert_null(pointer(ptr).userData);
    assert_status(hsa_amd_pointer_info_set_userdata(ptr + PAGE, &local), HSA_STATUS_SUCCESS);
    assert_ptr_equal(pointer(ptr).userData, &local);
    assert_status(hsa_amd_pointer_info_set_userdata(&local, &local), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_pointer_info_set_userdata(NULL, &local), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_memory_pool_free(ptr));
}

/* hsa_amd_memory_fill(ptr, value, count): HSA_STATUS_SUCCESS: a value of 32 bits, count times; no more than that;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_ALLOCATION. */
static void memory_fill(void **state)
{
    uint32_t *ptr = (uint32_t *)(void *)allocate(pools[0][FINE], 8 * MIB), local[4];

    (void)state;
    assert_status(hsa_amd_memory_fill(ptr + 1, 0x12345678, 2 * MIB - 2), HSA_STATUS_SUCCESS);
    assert_int_equal(ptr[0], 0);
    assert_int_equal(ptr[2 * MIB - 1], 0);
    for (size_t i = 1; i < 2 * MIB - 1; i += 999)
        assert_int_equal(ptr[i], 0x12345678);
    assert_status(hsa_amd_memory_fill(ptr, 1, 0), HSA_STATUS_SUCCESS);
    assert_int_equal(ptr[0], 0);
    assert_status(hsa_amd_memory_fill(NULL, 1, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_fill((char *)ptr + 2, 1, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_fill(ptr, 1, 2 * MIB + 1), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_fill(ptr, 1, SIZE_MAX), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_memory_fill(local, 1, 4), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_memory_pool_free(ptr));
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */

static unsigned called;
static void *told;

static void on_free(void *ptr, void *user_data)
{
    char *another;

    called++;
    told = ptr;
    *(unsigned *)user_data += 1;
    /* no lock is held, and the memory is gone from the runtime's books */
    assert_status(hsa_amd_memory_pool_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    another = allocate(pools[0][FINE], PAGE);
    assert_success(hsa_amd_memory_pool_free(another));
}

/* hsa_amd_register_deallocation_callback(ptr, callback, user_data): HSA_STATUS_SUCCESS: called once with ptr and
 * user_data when the allocation goes; HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_ALLOCATION. */
static void register_deallocation_callback(void **state)
{
    char *ptr = allocate(pools[0][FINE], 2 * PAGE);
    unsigned counted = 0;

    (void)state;
    called = 0;
    assert_status(hsa_amd_register_deallocation_callback(ptr + PAGE, on_free, &counted), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_register_deallocation_callback(ptr + PAGE, on_free, &counted), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_register_deallocation_callback(NULL, on_free, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_register_deallocation_callback(ptr, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_register_deallocation_callback(&ptr, on_free, NULL), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(called, 2);
    assert_int_equal(counted, 2);
    assert_ptr_equal(told, ptr + PAGE);
}

/* hsa_amd_deregister_deallocation_callback(ptr, callback): HSA_STATUS_SUCCESS, and it is not called;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT if it was not registered. */
static void deregister_deallocation_callback(void **state)
{
    char *ptr = allocate(pools[0][FINE], 2 * PAGE);
    unsigned counted = 0;

    (void)state;
    assert_success(hsa_amd_register_deallocation_callback(ptr, on_free, &counted));
    assert_status(hsa_amd_deregister_deallocation_callback(ptr + PAGE, on_free), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_deregister_deallocation_callback(NULL, on_free), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_deregister_deallocation_callback(ptr, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_deregister_deallocation_callback(&ptr, on_free), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_deregister_deallocation_callback(ptr, on_free), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_deregister_deallocation_callback(ptr, on_free), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_memory_pool_free(ptr));
    assert_int_equal(counted, 0);
}

/* ---- other processes ------------------------------------------------------------------------------------- */

/* hsa_amd_ipc_memory_create(ptr, len, handle): HSA_STATUS_SUCCESS: the same bytes each time, of another allocation
 * others; HSA_STATUS_ERROR_INVALID_ARGUMENT for a part of an allocation, or none. */
static void ipc_memory_create(void **state)
{
    char *ptr = allocate(pools[0][FINE], 5000), *other = allocate(pools[0][FINE], 5000);
    hsa_amd_ipc_memory_t a, b;

    (void)state;
    assert_status(hsa_amd_ipc_memory_create(ptr, 5000, &a), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_ipc_memory_create(ptr, (5000 + PAGE - 1) / PAGE * PAGE, &b), HSA_STATUS_SUCCESS);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_success(hsa_amd_ipc_memory_create(other, 5000, &b));
    assert_memory_not_equal(&a, &b, sizeof(a));
    assert_status(hsa_amd_ipc_memory_create(ptr, 4999, &b), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_create(ptr, 0, &b), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_create(ptr + PAGE, 5000 - PAGE, &b), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_create(&a, 5000, &b), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_create(NULL, 5000, &b), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_create(ptr, 5000, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_memory_pool_free(ptr));
    assert_success(hsa_amd_memory_pool_free(other));
}

static bool is_no_more(const hsa_amd_ipc_memory_t *handle)
{
    void *ptr;
    hsa_status_t status = hsa_amd_ipc_memory_attach(handle, 5000, 0, NULL, &ptr);

    if (status == HSA_STATUS_SUCCESS)
        CHECK(hsa_amd_ipc_memory_detach(ptr) == HSA_STATUS_SUCCESS);
    return status == HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static void attacher(int channel, void *data)
{
    const hsa_amd_ipc_memory_t *handle = data;
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    const hsa_agent_t none = {0};
    void *ptr = NULL, *again = NULL;

    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_memory_attach(handle, 5000, 0, NULL, &ptr) == HSA_STATUS_SUCCESS);
    CHECK(strcmp(ptr, "from the parent") == 0);
    memcpy(ptr, "from the child", sizeof("from the child"));
    CHECK(hsa_amd_ipc_memory_attach(handle, 5000, AGENTS, agents, &again) == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_memory_attach(NULL, 5000, 0, NULL, &again) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_memory_attach(handle, 5000, 0, NULL, NULL) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_memory_attach(handle, 5000, 1, NULL, &again) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_memory_attach(handle, 64, 0, NULL, &again) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_memory_attach(handle, 5000, 1, &none, &again) == HSA_STATUS_ERROR_INVALID_AGENT);
    CHECK(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL) == HSA_STATUS_SUCCESS);
    CHECK(info.type == HSA_EXT_POINTER_TYPE_IPC);
    CHECK(hsa_amd_memory_pool_free(ptr) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_memory_detach(NULL) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_memory_detach(&ptr) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    CHECK(hsa_amd_ipc_memory_detach(again) == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_memory_detach(ptr) == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_memory_detach(ptr) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    tell(channel);
    hear(channel);
    CHECK(WAIT_UNTIL(is_no_more(handle)));
}

/* hsa_amd_ipc_memory_attach(handle, len, num_agents, mapping_agents, mapped_ptr): HSA_STATUS_SUCCESS: the same
 * memory; HSA_STATUS_ERROR_INVALID_ARGUMENT also when it is no more; HSA_STATUS_ERROR_INVALID_AGENT.
 * hsa_amd_ipc_memory_detach(mapped_ptr): HSA_STATUS_SUCCESS as often as attached, then
 * HSA_STATUS_ERROR_INVALID_ARGUMENT. hsa_memory_free() of it is HSA_STATUS_ERROR_INVALID_ARGUMENT, as is
 * hsa_amd_memory_pool_free(). */
static void ipc_memory_attach(void **state)
{
    char *ptr = allocate(pools[0][FINE], 5000);
    hsa_amd_ipc_memory_t handle;
    struct child child;

    (void)state;
    memcpy(ptr, "from the parent", sizeof("from the parent"));
    assert_success(hsa_amd_ipc_memory_create(ptr, 5000, &handle));
    child_start(&child, attacher, &handle);
    child_hear(&child);
    assert_string_equal(ptr, "from the child");
    assert_success(hsa_amd_memory_pool_free(ptr));
    child_tell(&child);
    child_finish(&child);
}

/* hsa_amd_portable_export_dmabuf(ptr, size, dmabuf, offset): HSA_STATUS_SUCCESS: a descriptor in which ptr is at
 * offset; HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_ALLOCATION.
 * hsa_amd_portable_export_dmabuf_v2(ptr, size, dmabuf, offset, flags) likewise.
 * hsa_amd_portable_close_dmabuf(dmabuf): HSA_STATUS_SUCCESS, then HSA_STATUS_ERROR_RESOURCE_FREE. */
static void portable_dmabuf(void **state)
{
    char *ptr = allocate(pools[0][FINE], 4 * PAGE), *mapped;
    uint64_t offset = 77;
    int fd = -1, second = -1;

    (void)state;
    memcpy(ptr + PAGE, "a page on", sizeof("a page on"));
    assert_status(hsa_amd_portable_export_dmabuf(ptr + PAGE, PAGE, &fd, &offset), HSA_STATUS_SUCCESS);
    assert_int_equal(offset, PAGE);
    mapped = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)offset);
    assert_true(mapped != MAP_FAILED);
    assert_string_equal(mapped, "a page on");
    munmap(mapped, PAGE);
    assert_status(hsa_amd_portable_export_dmabuf_v2(ptr, 4 * PAGE, &second, &offset, HSA_AMD_DMABUF_MAPPING_TYPE_PCIE),
                  HSA_STATUS_SUCCESS);
    assert_int_equal(offset, 0);
    assert_success(hsa_amd_portable_close_dmabuf(second));
    assert_status(hsa_amd_portable_close_dmabuf(fd), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_portable_close_dmabuf(fd), HSA_STATUS_ERROR_RESOURCE_FREE);
    fd = 77;
    assert_status(hsa_amd_portable_export_dmabuf(NULL, PAGE, &fd, &offset), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf(ptr, 0, &fd, &offset), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf(ptr, PAGE, NULL, &offset), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf(ptr, PAGE, &fd, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf(ptr, 5 * PAGE, &fd, &offset), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_portable_export_dmabuf(&fd, 4, &fd, &offset), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(fd, 77);
    assert_success(hsa_amd_memory_pool_free(ptr));
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pool_allocate),
        TEST(pool_allocate_too_much),
        TEST(pool_free),
        TEST(agent_memory_pool_info),
        TEST(agents_allow_access),
        TEST(agents_allow_access_to_mappings),
        TEST(pointer_info),
        TEST(pointer_info_of_old_programs),
        TEST(pointer_info_of_virtual_memory),
        TEST(pointer_info_set_userdata),
        TEST(memory_fill),
        TEST(register_deallocation_callback),
        TEST(deregister_deallocation_callback),
        TEST(ipc_memory_create),
        TEST(ipc_memory_attach),
        TEST(portable_dmabuf),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
