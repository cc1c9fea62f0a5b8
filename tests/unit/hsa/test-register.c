/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making ordinary memory known: hsa_memory_register, hsa_memory_deregister, and hsa_amd_memory_lock with its kin.
 */
#include "tests/unit/hsa/hsa.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "tests/support/child.h"

#define INVALID_MEMORY_POOL (hsa_status_t) HSA_STATUS_ERROR_INVALID_MEMORY_POOL

static char memory[16384];

static hsa_amd_pointer_info_t info_of(const void *ptr)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};

    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    return info;
}

static bool is_locked(const void *ptr)
{
    return info_of(ptr).type == HSA_EXT_POINTER_TYPE_LOCKED;
}

/* Each test leaves nothing registered. */
static int nothing_known(void **state)
{
    for (size_t at = 0; at < sizeof(memory); at += 16)
        assert_int_equal(info_of(memory + at).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    return hsa_nothing_left(state);
}

/* ---- hsa_memory_register ----------------------------------------------------------------------------------------- */

/* hsa_memory_register: SUCCESS, "a performance hint", so the bytes stay as they are; ptr and size are what
 * hsa_amd_pointer_info tells, byte for byte, as LOCKED, until hsa_memory_deregister: SUCCESS. */
static void test_register(void **state)
{
    hsa_amd_pointer_info_t info;

    memory[1099] = 3;
    assert_success(hsa_memory_register(memory + 100, 1000));
    info = info_of(memory + 1099);
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_LOCKED);
    assert_ptr_equal(info.hostBaseAddress, memory + 100);
    assert_ptr_equal(info.agentBaseAddress, memory + 100);
    assert_int_equal(info.sizeInBytes, 1000);
    assert_false(is_locked(memory + 99));
    assert_false(is_locked(memory + 1100));
    assert_int_equal(memory[1099], 3);
    memory[1099] = 4;
    assert_success(hsa_memory_deregister(memory + 100, 1000));
    assert_false(is_locked(memory + 100));
    assert_int_equal(memory[1099], 4);
}

/* A process in which malloc() has nothing left to give. */
static void register_without_memory(int channel, void *data)
{
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    child_use_up_memory();
    CHECK(hsa_memory_register(memory, sizeof(memory)) == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
}

/* hsa_memory_register: OUT_OF_RESOURCES "failed to allocate the required resources". */
static void test_register_out_of_resources(void **state)
{
    child_run(register_without_memory, NULL);
}

/* hsa_memory_register, size: "A size of 0 is only allowed if ptr is NULL": INVALID_ARGUMENT "size is 0 but ptr is not
 * NULL"; ptr: "If a NULL pointer is passed, no operation is performed". */
static void test_register_nothing(void **state)
{
    assert_status(hsa_memory_register(memory, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_register(NULL, 0));
    assert_success(hsa_memory_register(NULL, 4096));
    assert_success(hsa_memory_deregister(NULL, 0));
    assert_success(hsa_memory_deregister(NULL, 4096));
}

/* hsa_memory_register, ptr: "If the buffer has been allocated using hsa_memory_allocate, or has already been
 * registered, no operation is performed". */
static void test_register_known(void **state)
{
    void *reserved;
    char *ptr;

    assert_success(hsa_memory_allocate(regions[0][FINE], 8192, (void **)&ptr));
    assert_success(hsa_memory_register(ptr, 8192));
    assert_success(hsa_memory_register(ptr + 100, 100));
    assert_int_equal(info_of(ptr).type, HSA_EXT_POINTER_TYPE_HSA);
    assert_success(hsa_memory_deregister(ptr, 8192));
    assert_int_equal(info_of(ptr).type, HSA_EXT_POINTER_TYPE_HSA);
    assert_success(hsa_memory_free(ptr));

    assert_success(hsa_amd_vmem_address_reserve(&reserved, 4 * MIB, 0, 0));
    assert_success(hsa_memory_register(reserved, 4 * MIB));
    assert_int_equal(info_of(reserved).type, HSA_EXT_POINTER_TYPE_RESERVED_ADDR);
    assert_success(hsa_amd_vmem_address_free(reserved, 4 * MIB));

    assert_success(hsa_memory_register(memory, 4096));
    assert_success(hsa_memory_register(memory, 4096));
    assert_success(hsa_memory_deregister(memory, 4096));
    assert_false(is_locked(memory));
}

/* hsa_memory_register: "Registrations should not overlap": INVALID_ARGUMENT, and the former one stays. */
static void test_register_overlap(void **state)
{
    const struct {
        size_t at, size;
    } ranges[] = {{3999, 2}, {4000, 1}, {4000, 1999}, {4001, 1999}, {5999, 2}, {0, 16384}, {4500, 10}};
    char *ptr;

    assert_success(hsa_memory_register(memory + 4000, 2000));
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
        assert_status(hsa_memory_register(memory + ranges[i].at, ranges[i].size), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_register(memory + 3999, 1));
    assert_success(hsa_memory_register(memory + 6000, 1));
    assert_int_equal(info_of(memory + 4000).sizeInBytes, 2000);
    assert_success(hsa_memory_deregister(memory + 3999, 1));
    assert_success(hsa_memory_deregister(memory + 4000, 2000));
    assert_success(hsa_memory_deregister(memory + 6000, 1));

    /* in part HSA's own; and beyond all addresses */
    assert_success(hsa_memory_allocate(regions[0][FINE], 8192, (void **)&ptr));
    assert_status(hsa_memory_register(ptr + 4096, 8192), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_register(ptr - 4096, 8192), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_free(ptr));
    assert_status(hsa_memory_register(memory, SIZE_MAX), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_memory_deregister: "If the memory interval being deregistered does not match a previous registration (start and
 * end addresses), the behavior is undefined": SUCCESS, nothing happens. */
static void test_deregister_no_match(void **state)
{
    assert_success(hsa_memory_register(memory, 4096));
    assert_success(hsa_memory_deregister(memory, 4095));
    assert_success(hsa_memory_deregister(memory, 0));
    assert_success(hsa_memory_deregister(memory + 1, 4095));
    assert_success(hsa_memory_deregister(&state, 8));
    assert_true(is_locked(memory));
    assert_success(hsa_memory_deregister(memory, 4096));
    assert_success(hsa_memory_deregister(memory, 4096));
}

/* Registered memory is the application's: not for freeing, copied and filled as any. */
static void test_registered_is_ours(void **state)
{
    assert_success(hsa_memory_register(memory, 4096));
    assert_status(hsa_memory_free(memory), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_agents_allow_access(1, agents, NULL, memory), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_memory_fill(memory, 0x01010101, 1024));
    assert_success(hsa_memory_copy(memory + 4096, memory, 4096));
    assert_int_equal(memory[8191], 1);
    assert_success(hsa_memory_deregister(memory, 4096));
}

/* Memory that was unmapped without a word is forgotten when something of HSA's comes to lie there. */
static void test_unmapped_behind_our_back(void **state)
{
    const size_t size = 4 * MIB;
    void *ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *reserved;

    assert_mapped(ptr);
    assert_success(hsa_memory_register((char *)ptr + 4096, size - 8192));
    munmap(ptr, size);
    assert_success(hsa_amd_vmem_address_reserve(&reserved, MIB, (uintptr_t)ptr + 2 * MIB, 0));
    assert_ptr_equal(reserved, (char *)ptr + 2 * MIB);
    assert_int_equal(info_of((char *)ptr + 4096).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_int_equal(info_of(reserved).type, HSA_EXT_POINTER_TYPE_RESERVED_ADDR);
    assert_success(hsa_amd_vmem_address_free(reserved, MIB));
}

/* ---- hsa_amd_memory_lock ----------------------------------------------------------------------------------------- */

/* hsa_amd_memory_lock(host_ptr, size, agents, num_agent, agent_ptr), hsa_amd_memory_unlock(host_ptr): SUCCESS,
 * *agent_ptr is host_ptr, since CPU agents have no other addresses; counted, and apart from hsa_memory_register. */
static void test_lock(void **state)
{
    void *agent_ptr = NULL;

    assert_success(hsa_amd_memory_lock(memory, 100, NULL, 0, &agent_ptr));
    assert_ptr_equal(agent_ptr, memory);
    assert_int_equal(info_of(memory + 99).sizeInBytes, 100);
    assert_success(hsa_amd_memory_lock(memory, 100, agents, AGENTS, &agent_ptr));
    assert_success(hsa_memory_register(memory, 100));
    assert_success(hsa_amd_memory_unlock(memory));
    assert_success(hsa_memory_deregister(memory, 100));
    assert_true(is_locked(memory));
    assert_success(hsa_amd_memory_unlock(memory));
    assert_false(is_locked(memory));
    /* of what is not locked there is nothing to undo */
    assert_success(hsa_amd_memory_unlock(memory));
    assert_success(hsa_amd_memory_unlock(NULL));
}

/* hsa_amd_memory_lock: HSA_STATUS_SUCCESS across what is locked or registered, which stays as it is, as programs need
 * that lock a part of their memory for each transfer; hsa_amd_memory_unlock of such a range. INVALID_ARGUMENT across
 * memory that is HSA's. */
static void test_lock_overlap(void **state)
{
    void *agent_ptr = NULL, *ours = NULL;

    assert_success(hsa_amd_memory_lock(memory, 4096, NULL, 0, &agent_ptr));
    assert_success(hsa_memory_register(memory + 4096, 4096));
    assert_success(hsa_amd_memory_lock(memory + 100, 8000, NULL, 0, &agent_ptr));
    assert_ptr_equal(agent_ptr, memory + 100);
    assert_success(hsa_amd_memory_lock(memory, 8192, agents, 1, &agent_ptr));
    assert_ptr_equal(agent_ptr, memory);
    assert_int_equal(info_of(memory + 100).sizeInBytes, 4096);
    assert_ptr_equal(info_of(memory + 5000).hostBaseAddress, memory + 4096);
    assert_success(hsa_amd_memory_unlock(memory + 100));
    assert_true(is_locked(memory + 100));
    assert_true(is_locked(memory + 5000));
    assert_success(hsa_amd_memory_unlock(memory));
    assert_success(hsa_memory_deregister(memory + 4096, 4096));
    assert_false(is_locked(memory));

    assert_success(hsa_memory_allocate(regions[0][FINE], 4096, &ours));
    assert_success(hsa_amd_memory_lock(ours, 100, NULL, 0, &agent_ptr));
    agent_ptr = NULL;
    assert_status(hsa_amd_memory_lock((char *)ours + 100, 4096, NULL, 0, &agent_ptr),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(memory, SIZE_MAX, NULL, 0, &agent_ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_null(agent_ptr);
    assert_success(hsa_memory_free(ours));
}

/* hsa_amd_memory_lock: INVALID_ARGUMENT, INVALID_AGENT; agent_ptr is untouched. */
static void test_lock_errors(void **state)
{
    hsa_agent_t bad[2] = {agents[0], {0}};
    void *agent_ptr = &agent_ptr;

    assert_status(hsa_amd_memory_lock(NULL, 1, NULL, 0, &agent_ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(memory, 0, NULL, 0, &agent_ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(memory, 1, NULL, 0, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(memory, 1, NULL, 1, &agent_ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(memory, 1, agents, 0, &agent_ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(memory, 1, agents, -1, &agent_ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock(memory, 1, bad, 2, &agent_ptr), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_ptr_equal(agent_ptr, &agent_ptr);
}

/* hsa_amd_memory_lock_to_pool(host_ptr, size, agents, num_agent, pool, flags, agent_ptr): likewise SUCCESS,
 * INVALID_ARGUMENT, INVALID_AGENT, with INVALID_MEMORY_POOL and no flags. */
static void test_lock_to_pool(void **state)
{
    void *agent_ptr = NULL;

    assert_success(hsa_amd_memory_lock_to_pool(memory, 100, agents, 1, pools[1][FINE], 0, &agent_ptr));
    assert_ptr_equal(agent_ptr, memory);
    assert_true(is_locked(memory));
    assert_success(hsa_amd_memory_unlock(memory));
    assert_status(hsa_amd_memory_lock_to_pool(memory, 100, NULL, 0, (hsa_amd_memory_pool_t){0}, 0, &agent_ptr),
                  INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_lock_to_pool(memory, 100, &(hsa_agent_t){0}, 1, pools[0][FINE], 0, &agent_ptr),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_lock_to_pool(memory, 100, NULL, 0, pools[0][FINE], 1, &agent_ptr),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_lock_to_pool(memory, 0, NULL, 0, pools[0][FINE], 0, &agent_ptr),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

#define TEST(name) cmocka_unit_test_teardown(name, nothing_known)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_register),
        TEST(test_register_out_of_resources),
        TEST(test_register_nothing),
        TEST(test_register_known),
        TEST(test_register_overlap),
        TEST(test_deregister_no_match),
        TEST(test_registered_is_ours),
        TEST(test_unmapped_behind_our_back),
        TEST(test_lock),
        TEST(test_lock_overlap),
        TEST(test_lock_errors),
        TEST(test_lock_to_pool),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
