/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_memory_assign_agent: who owns coarse-grained memory, what that lets the process do, and where the pages are
 * charged. (On simulated nodes nobody can see where pages are.)
 */
#include "tests/unit/hsa/hsa.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "tests/support/child.h"

#define RO         HSA_ACCESS_PERMISSION_RO
#define WO         HSA_ACCESS_PERMISSION_WO
#define RW         HSA_ACCESS_PERMISSION_RW
#define NODE_BYTES (64 * MIB)

static char *allocate(unsigned agent, int kind, size_t size)
{
    void *ptr = NULL;

    assert_success(hsa_memory_allocate(regions[agent][kind], size, &ptr));
    return ptr;
}

/* Where the broker has it charged: the number of the agent; all of it is on one node. */
static unsigned charged(const void *ptr)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buffer;
    uint32_t node;

    assert_success(memclient_hsa_buffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_query(buffer, &info), 0);
    memclient_buffer_unref(buffer);
    assert_int_equal(info.n_nodes, 1);
    assert_int_equal(info.node_bytes[0], info.bytes);
    for (unsigned i = 0; i < AGENTS; i++) {
        assert_success(hsa_agent_get_info(agents[i], HSA_AGENT_INFO_NODE, &node));
        if (node == info.nodes[0])
            return i;
    }
    fail();
    return AGENTS;
}

static uint64_t owner(const void *ptr)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};

    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_int_equal(info.type, HSA_EXT_POINTER_TYPE_HSA);
    return info.agentOwner.handle;
}

static void read_it(int channel, void *ptr)
{
    (void)channel;
    *(volatile char *)ptr;
}

static void write_it(int channel, void *ptr)
{
    (void)channel;
    *(volatile char *)ptr = 1;
}

static bool can(child_body *body, void *ptr)
{
    int signal = child_signal(body, ptr);

    assert_true(!signal || signal == SIGSEGV);
    return !signal;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* hsa_memory_assign_agent: INVALID_ARGUMENT "ptr is NULL, or access is not a valid access value". */
static void test_invalid_argument(void **state)
{
    char *ptr = allocate(0, COARSE, MIB);

    assert_status(hsa_memory_assign_agent(NULL, agents[0], RW), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_assign_agent(ptr, agents[0], HSA_ACCESS_PERMISSION_NONE),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_assign_agent(ptr, agents[0], (hsa_access_permission_t)4),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_assign_agent(ptr, (hsa_agent_t){0}, (hsa_access_permission_t)4),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent: INVALID_AGENT "The agent is invalid". */
static void test_invalid_agent(void **state)
{
    char *ptr = allocate(0, COARSE, MIB);

    assert_status(hsa_memory_assign_agent(ptr, (hsa_agent_t){0}, RW), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_memory_assign_agent(ptr, (hsa_agent_t){pools[0][0].handle}, RW), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_memory_assign_agent(ptr, (hsa_agent_t){UINT64_MAX}, RW), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent, ptr: "must match an address previously returned by hsa_memory_allocate". */
static void test_other_pointers(void **state)
{
    char *ptr = allocate(0, COARSE, MIB);

    assert_status(hsa_memory_assign_agent(ptr + 4096, agents[1], RO), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_true(can(write_it, ptr));
    /* fine-grained, as all memory that is not HSA's */
    assert_success(hsa_memory_assign_agent(&state, agents[1], HSA_ACCESS_PERMISSION_RO));
    state = NULL;
    assert_int_equal(charged(ptr), 0);
    assert_success(hsa_memory_free(ptr));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], RW));
}

/* hsa_memory_assign_agent: "If ptr points to a fine-grained global buffer, no operation is performed and the function
 * returns success." */
static void test_fine_grained(void **state)
{
    static char ours[64];

    for (int k = FINE; k <= KERNARG; k++) {
        char *ptr = allocate(0, k, MIB);
        uint64_t before = observer_requests();

        assert_success(hsa_memory_assign_agent(ptr, agents[1], RO));
        assert_int_equal(observer_requests(), before);
        ptr[0] = 1;
        assert_int_equal(charged(ptr), 0);
        assert_int_equal(owner(ptr), agents[0].handle);
        assert_success(hsa_memory_free(ptr));
    }
    assert_success(hsa_memory_register(ours, sizeof(ours)));
    assert_success(hsa_memory_assign_agent(ours, agents[1], RO));
    ours[0] = 1;
    assert_success(hsa_memory_deregister(ours, sizeof(ours)));
}

/* ---- coarse-grained ---------------------------------------------------------------------------------------------- */

/* hsa_memory_assign_agent, agent: "becomes the owner of the buffer"; "change the physical location"; "The virtual
 * location (address) of the passed buffer is never modified"; "The size of the buffer affected by the ownership change
 * is identical to the size of that previous allocation". The first owner is the region's agent. */
static void test_owner(void **state)
{
    const size_t size = 3 * MIB + 5;
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    char *ptr = allocate(0, COARSE, size);

    assert_int_equal(owner(ptr), agents[0].handle);
    assert_int_equal(charged(ptr), 0);
    memset(ptr, 0x5a, size);
    assert_success(hsa_memory_assign_agent(ptr, agents[1], RW));
    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_ptr_equal(info.hostBaseAddress, ptr);
    assert_int_equal(owner(ptr), agents[1].handle);
    assert_int_equal(owner(ptr + size - 1), agents[1].handle);
    assert_int_equal(charged(ptr), 1);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(ptr[i], 0x5a);
    memset(ptr, 0x6b, size);
    assert_success(hsa_memory_assign_agent(ptr, agents[0], RW));
    assert_int_equal(charged(ptr), 0);
    assert_int_equal(ptr[size - 1], 0x6b);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent, access: "Access permissions requested for the new owner": RO, WO, RW are what the process
 * may do with all of it, and no more. hsa_region_global_flag_t: of COARSE_GRAINED regions, "Updates to memory in this
 * region can be performed by a single agent at a time": "the previous owner cannot longer access". */
static void test_access(void **state)
{
    char *ptr = allocate(0, COARSE, 2 * MIB);

    assert_true(can(write_it, ptr));
    for (unsigned i = 0; i < 2 * AGENTS; i++) {
        hsa_agent_t agent = agents[i % AGENTS];

        assert_success(hsa_memory_assign_agent(ptr, agent, RO));
        assert_true(can(read_it, ptr) && can(read_it, ptr + 2 * MIB - 1));
        assert_false(can(write_it, ptr) || can(write_it, ptr + 2 * MIB - 1));
        assert_success(hsa_memory_assign_agent(ptr, agent, WO));
        assert_true(can(write_it, ptr) && can(write_it, ptr + 2 * MIB - 1));
        assert_success(hsa_memory_assign_agent(ptr, agent, RO));
        assert_success(hsa_memory_assign_agent(ptr, agent, RW));
        assert_true(can(read_it, ptr) && can(write_it, ptr));
    }
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent: "It is allowed to change ownership to an agent that is already the owner of the buffer, with
 * the same or different access permissions." Nothing moves, so nobody is called. */
static void test_same_owner(void **state)
{
    char *ptr = allocate(1, COARSE, MIB);
    uint64_t before = observer_requests();

    assert_success(hsa_memory_assign_agent(ptr, agents[1], RW));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], RO));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], RO));
    assert_false(can(write_it, ptr));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], RW));
    assert_true(can(write_it, ptr));
    assert_int_equal(observer_requests(), before);
    assert_int_equal(owner(ptr), agents[1].handle);
    assert_int_equal(charged(ptr), 1);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent: OUT_OF_RESOURCES: the new owner's node has no room, and nothing is changed. */
static void test_out_of_resources(void **state)
{
    char *ptr = allocate(0, COARSE, 16 * MIB);
    char *other = allocate(1, FINE, NODE_BYTES - 8 * MIB);

    memset(ptr, 0x5a, 16 * MIB);
    assert_status(hsa_memory_assign_agent(ptr, agents[1], RO), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_int_equal(owner(ptr), agents[0].handle);
    assert_int_equal(charged(ptr), 0);
    assert_int_equal(ptr[16 * MIB - 1], 0x5a);
    ptr[0] = 1;
    assert_success(hsa_memory_free(other));
    /* what is on its way back is waited for */
    assert_success(hsa_memory_assign_agent(ptr, agents[1], RO));
    assert_int_equal(charged(ptr), 1);
    assert_int_equal(ptr[16 * MIB - 1], 0x5a);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_copy, dst: "only visible to the agent currently assigned", src: "must be assigned to an agent, from which
 * the data will be retrieved": what the owner may not do is INVALID_ARGUMENT, and nothing is copied. So for
 * hsa_amd_memory_fill. */
static void test_copy(void **state)
{
    char *a = allocate(0, COARSE, MIB);
    char *b = allocate(0, COARSE, MIB);

    memset(a, 1, MIB);
    assert_success(hsa_memory_assign_agent(a, agents[1], RO));
    assert_success(hsa_memory_assign_agent(b, agents[1], WO));
    assert_success(hsa_memory_copy(b, a, MIB));
    assert_status(hsa_memory_copy(a, b, MIB), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(a + MIB - 1, &state, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(&state, b + MIB - 1, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_fill(a, 7, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_memory_fill(b + MIB - 4, 7, 1));
    assert_success(hsa_memory_assign_agent(b, agents[0], RO));
    assert_int_equal(b[0], 1);
    assert_int_equal(b[MIB - 4], 7);
    assert_int_equal(a[0], 1);
    assert_success(hsa_memory_assign_agent(a, agents[0], RW));
    assert_success(hsa_memory_copy(a, b, MIB));
    assert_int_equal(a[MIB - 4], 7);
    assert_success(hsa_memory_free(a));
    assert_success(hsa_memory_free(b));
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

struct shared {
    hsa_amd_ipc_memory_t handle;
};

/* Has it attached, and in use, all the time. */
static void other_process(int channel, void *context)
{
    struct shared *shared = context;
    void *ptr;

    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_memory_attach(&shared->handle, MIB, 0, NULL, &ptr) == HSA_STATUS_SUCCESS);
    memset(ptr, 1, MIB);
    tell(channel);
    hear(channel);
    memset(ptr, 2, MIB);
    CHECK(hsa_amd_ipc_memory_detach(ptr) == HSA_STATUS_SUCCESS);
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* Mappings of other processes are untouched; also where these keep the pages from moving, which simulated nodes do not
 * show: "allowed, but not required, to change the physical location". */
static void test_other_process(void **state)
{
    char *ptr = allocate(0, COARSE, MIB);
    struct shared shared;
    struct child child;

    assert_success(hsa_amd_ipc_memory_create(ptr, MIB, &shared.handle));
    child_start(&child, other_process, &shared);
    child_hear(&child);
    assert_success(hsa_memory_assign_agent(ptr, agents[1], RO));
    assert_int_equal(owner(ptr), agents[1].handle);
    assert_int_equal(ptr[MIB - 1], 1);
    child_tell(&child);
    child_finish(&child);
    assert_int_equal(ptr[MIB - 1], 2);
    assert_success(hsa_memory_free(ptr));
}

static void *assign_often(void *ptr)
{
    for (int i = 0; i < 20; i++) {
        hsa_status_t status = hsa_memory_assign_agent(ptr, agents[i % AGENTS], i % 3 ? RW : RO);

        if (status)
            return (void *)(uintptr_t)status;
    }
    return NULL;
}

/* Threads that disagree, over one buffer and beside others: all succeed, and in the end it is on the node of whoever
 * owns it. */
static void test_threads(void **state)
{
    char *ptrs[] = {allocate(0, COARSE, MIB), allocate(0, COARSE, 4 * MIB)};
    pthread_t threads[8];
    void *result;

    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, assign_often, ptrs[i % 2]), 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_success((hsa_status_t)(uintptr_t)result);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(owner(ptrs[i]), agents[charged(ptrs[i])].handle);
        assert_success(hsa_memory_free(ptrs[i]));
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_invalid_argument),
        TEST(test_invalid_agent),
        TEST(test_other_pointers),
        TEST(test_fine_grained),
        TEST(test_owner),
        TEST(test_access),
        TEST(test_same_owner),
        TEST(test_out_of_resources),
        TEST(test_copy),
        TEST(test_other_process),
        TEST(test_threads),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
