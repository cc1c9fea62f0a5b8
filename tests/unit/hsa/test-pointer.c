/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a pointer: hsa_amd_pointer_info for each type of memory, hsa_amd_pointer_info_set_userdata, and
 * hsa_amd_agents_allow_access.
 */
#include "tests/unit/hsa/hsa.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FINE_FLAG   HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
#define COARSE_FLAG HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED
#define RW          HSA_ACCESS_PERMISSION_RW

static void assert_info_at(const void *ptr, const hsa_amd_pointer_info_t *wanted, int line)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info), .userData = &info, .global_flags = 77};
    hsa_amd_pointer_info_t all = *wanted;

    all.size = sizeof(info);
    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    if (info.size != all.size || info.type != all.type || info.agentBaseAddress != all.agentBaseAddress ||
        info.hostBaseAddress != all.hostBaseAddress || info.sizeInBytes != all.sizeInBytes ||
        info.userData != all.userData || info.agentOwner.handle != all.agentOwner.handle ||
        info.global_flags != all.global_flags)
        fail_msg("line %d: size %u type %d agent base %p host base %p size %zu user data %p owner %llx flags %x", line,
                 info.size, info.type, info.agentBaseAddress, info.hostBaseAddress, info.sizeInBytes, info.userData,
                 (unsigned long long)info.agentOwner.handle, info.global_flags);
}
#define assert_info(ptr, ...) assert_info_at((ptr), &(hsa_amd_pointer_info_t){__VA_ARGS__}, __LINE__)
#define assert_unknown(ptr)   assert_info(ptr, .type = HSA_EXT_POINTER_TYPE_UNKNOWN)

/* Agents that may use it, as a mask of ours; they are listed in order. */
static unsigned accessible(const void *ptr)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_agent_t *list = (hsa_agent_t *)&info;
    uint32_t n = 77;
    unsigned found = 0;

    assert_success(hsa_amd_pointer_info(ptr, &info, malloc, &n, &list));
    assert_int_equal(!list, !n);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned a = 0; a < AGENTS; a++)
            if (list[i].handle == agents[a].handle) {
                assert_int_equal(found >> a, 0);
                found |= 1U << a;
            }
    free(list);
    assert_int_equal(__builtin_popcount(found), n);
    return found;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* hsa_amd_pointer_info_t: type, agentBaseAddress, hostBaseAddress, sizeInBytes, agentOwner, global_flags.
 * HSA_EXT_POINTER_TYPE_HSA: any address within, to the last byte that was asked for. */
static void test_type_hsa(void **state)
{
    const unsigned flags[] = {FINE_FLAG, FINE_FLAG | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT, COARSE_FLAG};

    for (unsigned i = 0; i < AGENTS; i++)
        for (unsigned k = 0; k < POOLS; k++) {
            char *ptr;

            assert_success(hsa_amd_memory_pool_allocate(pools[i][k], 5000, 0, (void **)&ptr));
            for (size_t at = 0; at < 5000; at += 4999)
                assert_info(ptr + at, .type = HSA_EXT_POINTER_TYPE_HSA, .agentBaseAddress = ptr, .hostBaseAddress = ptr,
                            .sizeInBytes = 5000, .agentOwner = agents[i], .global_flags = flags[k]);
            assert_unknown(ptr + 5000);
            assert_unknown(ptr - 1);
            assert_int_equal(accessible(ptr), 3);
            assert_success(hsa_memory_free(ptr));
            assert_unknown(ptr);
        }
}

/* HSA_EXT_POINTER_TYPE_UNKNOWN is a success. */
static void test_type_unknown(void **state)
{
    assert_unknown(&state);
    assert_unknown((void *)1);
    assert_unknown((void *)UINTPTR_MAX);
    assert_int_equal(accessible(&state), 0);
}

/* HSA_EXT_POINTER_TYPE_LOCKED */
static void test_type_locked(void **state)
{
    char ours[100];

    assert_success(hsa_memory_register(ours, sizeof(ours)));
    assert_info(ours + 99, .type = HSA_EXT_POINTER_TYPE_LOCKED, .agentBaseAddress = ours, .hostBaseAddress = ours,
                .sizeInBytes = 100, .agentOwner = agents[0], .global_flags = FINE_FLAG);
    assert_int_equal(accessible(ours), 3);
    assert_success(hsa_memory_deregister(ours, sizeof(ours)));
}

/* HSA_EXT_POINTER_TYPE_IPC */
static void test_type_ipc(void **state)
{
    hsa_amd_ipc_memory_t handle;
    void *ptr;
    char *attached;

    assert_success(hsa_memory_allocate(regions[1][FINE], MIB, &ptr));
    assert_success(hsa_amd_ipc_memory_create(ptr, MIB, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, MIB, 0, NULL, (void **)&attached));
    assert_info(attached + 5, .type = HSA_EXT_POINTER_TYPE_IPC, .agentBaseAddress = attached,
                .hostBaseAddress = attached, .sizeInBytes = MIB, .agentOwner = agents[1], .global_flags = FINE_FLAG);
    assert_int_equal(accessible(attached), 3);
    assert_success(hsa_amd_ipc_memory_detach(attached));
    assert_unknown(attached);
    assert_success(hsa_memory_free(ptr));
}

/* HSA_EXT_POINTER_TYPE_RESERVED_ADDR where nothing is mapped: agents have no base; HSA_EXT_POINTER_TYPE_HSA_VMEM where
 * something is: the base is the pointer asked for, and the agents those with a permission. */
static void test_type_vmem(void **state)
{
    hsa_amd_memory_access_desc_t access = {HSA_ACCESS_PERMISSION_RO, agents[1]};
    hsa_amd_vmem_alloc_handle_t handle;
    char *va;

    assert_success(hsa_amd_vmem_address_reserve((void **)&va, 4 * MIB, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[1][COARSE], MIB, MEMORY_TYPE_NONE, 0, &handle));
    assert_info(va + 5, .type = HSA_EXT_POINTER_TYPE_RESERVED_ADDR, .hostBaseAddress = va, .sizeInBytes = 4 * MIB);
    assert_int_equal(accessible(va), 0);
    assert_success(hsa_amd_vmem_map(va + MIB, MIB, 0, handle, 0));
    assert_info(va + MIB + 5, .type = HSA_EXT_POINTER_TYPE_HSA_VMEM, .agentBaseAddress = va + MIB + 5,
                .hostBaseAddress = va + MIB + 5, .sizeInBytes = MIB, .agentOwner = agents[1],
                .global_flags = COARSE_FLAG);
    assert_int_equal(accessible(va + MIB), 0);
    assert_success(hsa_amd_vmem_set_access(va + MIB, MIB, &access, 1));
    assert_int_equal(accessible(va + MIB), 2);
    assert_info(va + 2 * MIB, .type = HSA_EXT_POINTER_TYPE_RESERVED_ADDR, .hostBaseAddress = va,
                .sizeInBytes = 4 * MIB);
    assert_success(hsa_amd_vmem_unmap(va + MIB, MIB));
    assert_info(va + MIB, .type = HSA_EXT_POINTER_TYPE_RESERVED_ADDR, .hostBaseAddress = va, .sizeInBytes = 4 * MIB);
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 4 * MIB));
    assert_unknown(va);
}

/* A reservation that is this process's alone says so: here, one outside of the broker's arena. */
static void test_process_private(void **state)
{
    void *hole = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *va;

    assert_mapped(hole);
    munmap(hole, 4 * MIB);
    assert_success(hsa_amd_vmem_address_reserve(&va, MIB, (uintptr_t)hole, 0));
    assert_ptr_equal(va, hole);
    assert_info(va, .type = HSA_EXT_POINTER_TYPE_RESERVED_ADDR, .hostBaseAddress = va, .sizeInBytes = MIB,
                .global_flags = MEMCLIENT_HSA_POINTER_PROCESS_PRIVATE);
    assert_success(hsa_amd_vmem_address_free(va, MIB));
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static void *no_memory(size_t size)
{
    (void)size;
    return NULL;
}

/* hsa_amd_pointer_info(ptr, info, alloc, num_agents_accessible, accessible): SUCCESS, INVALID_ARGUMENT,
 * OUT_OF_RESOURCES where alloc gives nothing, and what the last three are for. */
static void test_arguments(void **state)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_agent_t *list = agents;
    uint32_t n = 77;
    void *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], 4096, &ptr));
    assert_status(hsa_amd_pointer_info(NULL, &info, NULL, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_pointer_info(ptr, NULL, NULL, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    info.size = 0;
    assert_status(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    info.size = sizeof(info);
    /* an array is made only for who takes all of it */
    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, &n, &list));
    assert_success(hsa_amd_pointer_info(ptr, &info, malloc, NULL, &list));
    assert_success(hsa_amd_pointer_info(ptr, &info, malloc, &n, NULL));
    info.type = HSA_EXT_POINTER_TYPE_UNKNOWN;
    assert_status(hsa_amd_pointer_info(ptr, &info, no_memory, &n, &list), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_ptr_equal(list, agents);
    assert_int_equal(n, 77);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_amd_pointer_info_t: size. hsa_amd_pointer_info, info->size: no byte more is written; it becomes what was. */
static void test_size(void **state)
{
    void *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], 4096, &ptr));
    for (uint32_t size = sizeof(uint32_t); size <= sizeof(hsa_amd_pointer_info_t) + 16; size++) {
        unsigned char bytes[sizeof(hsa_amd_pointer_info_t) + 16];
        uint32_t told = size, wanted = size < sizeof(hsa_amd_pointer_info_t) ? size : sizeof(hsa_amd_pointer_info_t);

        memset(bytes, 0xee, sizeof(bytes));
        memcpy(bytes, &told, sizeof(told));
        assert_success(hsa_amd_pointer_info(ptr, (hsa_amd_pointer_info_t *)(void *)bytes, NULL, NULL, NULL));
        memcpy(&told, bytes, sizeof(told));
        assert_int_equal(told, wanted);
        for (size_t at = wanted; at < sizeof(bytes); at++)
            assert_int_equal(bytes[at], 0xee);
    }
    assert_success(hsa_memory_free(ptr));
}

static void *alloc_and_free(size_t size)
{
    void *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], 4096, &ptr));
    assert_success(hsa_memory_free(ptr));
    return malloc(size);
}

/* alloc is called with no lock held: it may call everything. No call of the broker is made for the rest. */
static void test_alloc_calls_back(void **state)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_agent_t *list;
    uint64_t before;
    uint32_t n;
    size_t max;
    void *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], 4096, &ptr));
    assert_success(hsa_amd_pointer_info(ptr, &info, alloc_and_free, &n, &list));
    free(list);
    /* a call, which is answered after what was given back before */
    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_ALLOC_MAX_SIZE, &max));
    before = observer_requests();
    assert_success(hsa_amd_pointer_info(ptr, &info, malloc, &n, &list));
    assert_int_equal(observer_requests(), before);
    free(list);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_amd_pointer_info_t: userData. hsa_amd_pointer_info_set_userdata(ptr, userdata): SUCCESS, of the allocation
 * around ptr; INVALID_ARGUMENT where nothing is known. */
static void test_userdata(void **state)
{
    void *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], 4096, &ptr));
    assert_success(hsa_amd_pointer_info_set_userdata((char *)ptr + 10, &ptr));
    assert_info(ptr, .type = HSA_EXT_POINTER_TYPE_HSA, .agentBaseAddress = ptr, .hostBaseAddress = ptr,
                .sizeInBytes = 4096, .userData = &ptr, .agentOwner = agents[0], .global_flags = FINE_FLAG);
    assert_success(hsa_amd_pointer_info_set_userdata(ptr, NULL));
    assert_status(hsa_amd_pointer_info_set_userdata(NULL, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_pointer_info_set_userdata(&ptr, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_free(ptr));
    assert_status(hsa_amd_pointer_info_set_userdata(ptr, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* ---- hsa_amd_agents_allow_access --------------------------------------------------------------------------------- */

/* hsa_amd_agents_allow_access(num_agents, agents, flags, ptr): SUCCESS of allocations and attached memory by their
 * address; INVALID_ARGUMENT, INVALID_AGENT, INVALID_ALLOCATION. */
static void test_allow_access(void **state)
{
    hsa_agent_t bad[2] = {agents[0], {0}};
    hsa_amd_ipc_memory_t handle;
    uint32_t flags = 0;
    void *attached;
    char *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], 8192, (void **)&ptr));
    assert_success(hsa_amd_agents_allow_access(AGENTS, agents, NULL, ptr));
    assert_success(hsa_amd_agents_allow_access(1, &agents[1], NULL, ptr));
    assert_status(hsa_amd_agents_allow_access(0, agents, NULL, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(1, NULL, NULL, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(1, agents, &flags, ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_agents_allow_access(2, bad, NULL, ptr), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, ptr + 4096), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_ipc_memory_create(ptr, 8192, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, 8192, 0, NULL, &attached));
    assert_success(hsa_amd_agents_allow_access(1, agents, NULL, attached));
    assert_success(hsa_amd_ipc_memory_detach(attached));
    assert_success(hsa_memory_free(ptr));
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_amd_agents_allow_access of virtual memory: RW of the mapping and those that follow it without a gap. */
static void test_allow_access_vmem(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle;
    hsa_access_permission_t access;
    char *va;

    assert_success(hsa_amd_vmem_address_reserve((void **)&va, 8 * MIB, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], MIB, MEMORY_TYPE_NONE, 0, &handle));
    for (int i = 0; i < 5; i++)
        if (i != 3)
            assert_success(hsa_amd_vmem_map(va + i * MIB, MIB, 0, handle, 0));
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, va + 3 * MIB), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_agents_allow_access(1, agents, NULL, va + MIB));
    va[MIB] = 1;
    assert_int_equal(va[3 * MIB - MIB], 1);
    for (int i = 0; i < 5; i++)
        if (i == 1 || i == 2) {
            assert_success(hsa_amd_vmem_get_access(va + i * MIB, &access, agents[0]));
            assert_int_equal(access, RW);
        } else {
            assert_status(hsa_amd_vmem_get_access(va + i * MIB, &access, agents[0]),
                          HSA_STATUS_ERROR_INVALID_ALLOCATION);
        }
    assert_success(hsa_amd_vmem_unmap(va, 3 * MIB));
    assert_success(hsa_amd_vmem_unmap(va + 4 * MIB, MIB));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 8 * MIB));
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

static hsa_amd_pointer_info_t info_of(const void *ptr)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};

    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_int_equal(info.size, sizeof(info));
    return info;
}

/* hsa_amd_pointer_info_t: registered, alloc_flags: fields that older headers do not have. */
static void test_newer_fields(void **state)
{
    struct {
        hsa_amd_pointer_info_t info;
        uint64_t behind;
    } older;
    uint32_t flags = HSA_AMD_MEMORY_POOL_CONTIGUOUS_FLAG | HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG;
    hsa_amd_vmem_alloc_handle_t handle;
    void *ptr, *va;

    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], 100, flags, &ptr));
    assert_true(info_of(ptr).registered);
    assert_int_equal(info_of(ptr).alloc_flags, flags);
    /* of programs that were compiled with 48, 52 and 56 bytes of it: what they have is written, and no more */
    for (uint32_t size = 48; size <= 56; size += 4) {
        memset(&older, 0xee, sizeof(older));
        older.info.size = size;
        assert_success(hsa_amd_pointer_info(ptr, &older.info, NULL, NULL, NULL));
        assert_int_equal(older.info.size, size);
        assert_int_equal(older.info.agentOwner.handle, agents[0].handle);
        assert_int_equal(older.info.sizeInBytes, 100);
        assert_int_equal(older.info.global_flags, size > 48 ? FINE_FLAG : 0xeeeeeeee);
        assert_int_equal(*(unsigned char *)&older.info.registered, size > 52 ? true : 0xee);
        assert_int_equal(older.info.alloc_flags, 0xeeeeeeee);
        assert_true(older.behind == UINT64_C(0xeeeeeeeeeeeeeeee));
    }
    assert_success(hsa_memory_free(ptr));
    assert_success(hsa_memory_allocate(regions[0][FINE], 100, &ptr));
    assert_true(info_of(ptr).registered);
    assert_int_equal(info_of(ptr).alloc_flags, 0);
    assert_success(hsa_memory_free(ptr));
    assert_false(info_of(&ptr).registered);
    assert_success(hsa_memory_register(&ptr, sizeof(ptr)));
    assert_true(info_of(&ptr).registered);
    assert_success(hsa_memory_deregister(&ptr, sizeof(ptr)));
    /* addresses alone, and what is mapped there */
    for (uint64_t no_register = 0; no_register <= HSA_AMD_VMEM_ADDRESS_NO_REGISTER; no_register++) {
        assert_success(hsa_amd_vmem_address_reserve(&va, 2 * MIB, 0, no_register));
        assert_int_equal(info_of(va).type, HSA_EXT_POINTER_TYPE_RESERVED_ADDR);
        assert_int_equal(info_of(va).registered, !no_register);
        assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], MIB, MEMORY_TYPE_NONE, 0, &handle));
        assert_success(hsa_amd_vmem_map(va, MIB, 0, handle, 0));
        assert_true(info_of(va).registered);
        assert_success(hsa_amd_vmem_unmap(va, MIB));
        assert_success(hsa_amd_vmem_handle_release(handle));
        assert_success(hsa_amd_vmem_address_free(va, 2 * MIB));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_type_hsa),          TEST(test_type_unknown),     TEST(test_type_locked), TEST(test_type_ipc),
        TEST(test_type_vmem),         TEST(test_process_private),  TEST(test_arguments),   TEST(test_size),
        TEST(test_newer_fields),      TEST(test_alloc_calls_back), TEST(test_userdata),    TEST(test_allow_access),
        TEST(test_allow_access_vmem),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
