/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document on the OS provider and on sharing, sentence by sentence, with memory of a broker that has two simulated
 * nodes. Each test quotes the function and what of it is checked.
 */
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/unit/umf/umf.h"

#define PREFERRED_MANY 5 /* younger than some headers */

static umf_memory_provider_handle_t shared, other, private_one, unable;
static size_t page;

static umf_memory_provider_handle_t make(umf_os_memory_provider_params_t params)
{
    umf_memory_provider_handle_t made = NULL;

    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &made));
    return made;
}

static umf_os_memory_provider_params_t shared_params(void)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.visibility = UMF_MEM_MAP_SHARED;
    return params;
}

static int setup(void **state)
{
    umf_memory_provider_ops_t ops = *umfOsMemoryProviderOps();
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    (void)state;
    page = (size_t)page_size();
    shared = make(shared_params());
    other = make(shared_params());
    private_one = make(params);
    memset(&ops.ipc, 0, sizeof(ops.ipc));
    assert_success(umfMemoryProviderCreate(&ops, &params, &unable));
    return 0;
}

static int teardown(void **state)
{
    umfMemoryProviderDestroy(shared);
    umfMemoryProviderDestroy(other);
    umfMemoryProviderDestroy(private_one);
    umfMemoryProviderDestroy(unable);
    return umf_nothing_left(state);
}

static char *alloc(umf_memory_provider_handle_t provider, size_t size)
{
    void *ptr = NULL;

    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    return ptr;
}

/* ---- the OS provider ------------------------------------------------------------------------------------- */

static void do_read(int channel, void *context)
{
    (void)channel;
    (void)*(volatile char *)context;
}

static void do_write(int channel, void *context)
{
    (void)channel;
    *(volatile char *)context = 1;
}

/* umf_mem_protection_flags_t: UMF_PROTECTION_NONE: cannot be accessed; UMF_PROTECTION_READ: can be read;
 * UMF_PROTECTION_WRITE: can be written; UMF_PROTECTION_EXEC: can be executed; UMF_PROTECTION_MAX is none.
 * umf_os_memory_provider_params_t: protection. */
static void protection(void **state)
{
    static const struct {
        unsigned protection;
        bool read, write;
    } rows[] = {
        {UMF_PROTECTION_NONE, false, false},
        {UMF_PROTECTION_READ, true, false},
        {UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, true, true},
        {UMF_PROTECTION_READ | UMF_PROTECTION_EXEC, true, false},
    };
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t none = NULL;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
        umf_memory_provider_handle_t provider;
        char *ptr;

        params.protection = rows[i / 2].protection;
        params.visibility = i % 2 ? UMF_MEM_MAP_SHARED : UMF_MEM_MAP_PRIVATE;
        provider = make(params);
        ptr = alloc(provider, page);
        assert_int_equal(child_signal(do_read, ptr), rows[i / 2].read ? 0 : SIGSEGV);
        assert_int_equal(child_signal(do_write, ptr), rows[i / 2].write ? 0 : SIGSEGV);
        if (params.protection & UMF_PROTECTION_EXEC) {
            char access[5] = "";
            FILE *maps = fopen("/proc/self/maps", "re");
            char line[512];

            assert_non_null(maps);
            while (fgets(line, sizeof(line), maps)) {
                unsigned long from, to;

                if (sscanf(line, "%lx-%lx %4s", &from, &to, access) == 3 && (uintptr_t)ptr >= from &&
                    (uintptr_t)ptr < to)
                    break;
            }
            (void)fclose(maps);
            assert_int_equal(access[2], 'x');
        }
        assert_success(umfMemoryProviderFree(provider, ptr, page));
        umfMemoryProviderDestroy(provider);
    }
    params.protection = UMF_PROTECTION_MAX | 0x10;
    assert_result(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &none), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(none);
}

/* umf_memory_visibility_t: UMF_MEM_MAP_PRIVATE: a child's writes are its own; UMF_MEM_MAP_SHARED: they are seen.
 * umf_os_memory_provider_params_t: visibility. */
static void visibility(void **state)
{
    char *mine = alloc(private_one, page), *ours = alloc(shared, page);

    (void)state;
    assert_int_equal(child_signal(do_write, mine), 0);
    assert_int_equal(child_signal(do_write, ours), 0);
    assert_int_equal(*mine, 0);
    assert_int_equal(*ours, 1);
    assert_success(umfMemoryProviderFree(private_one, mine, page));
    assert_success(umfMemoryProviderFree(shared, ours, page));
}

/* umfOsMemoryProviderOps(), umfOsMemoryProviderParamsDefault(): of umf_os_memory_provider_params_t: shm_name,
 * numa_list, numa_list_len, numa_mode, partitions, partitions_len. */
static void parameters(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    umf_memory_provider_handle_t provider;
    struct memclient_buffer *buffer = NULL;
    unsigned nodes[] = {0, 1};
    umf_numa_split_partition_t pieces[] = {{3, 1}, {1, 0}};
    char name[] = "/called", *ptr;

    (void)state;
    assert_ptr_equal(umfOsMemoryProviderOps(), umfOsMemoryProviderOps());
    assert_int_equal(params.protection, UMF_PROTECTION_READ | UMF_PROTECTION_WRITE);
    assert_int_equal(params.visibility, UMF_MEM_MAP_PRIVATE);
    assert_int_equal(params.numa_mode, UMF_NUMA_MODE_DEFAULT);
    assert_int_equal(params.part_size, 0);
    params.visibility = UMF_MEM_MAP_SHARED;
    params.shm_name = name;
    params.numa_list = nodes;
    params.numa_list_len = 2;
    params.numa_mode = UMF_NUMA_MODE_SPLIT;
    params.partitions = pieces;
    params.partitions_len = 2;
    provider = make(params);
    ptr = alloc(provider, 8 * page);
    assert_success(umfMemorydGetBuffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_info(buffer, &info), 0);
    assert_int_equal(strncmp(info.name, "called", 6), 0);
    assert_int_equal(info.node_bytes[info.nodes[0] == 1 ? 0 : 1], 6 * page);
    memclient_buffer_unref(buffer);
    assert_success(umfMemoryProviderFree(provider, ptr, 8 * page));
    umfMemoryProviderDestroy(provider);
}

static umf_os_memory_provider_params_t of_mode(umf_numa_mode_t mode, unsigned *nodes, unsigned n)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.numa_mode = mode;
    params.numa_list = nodes;
    params.numa_list_len = n;
    return params;
}

static int mode_of(umf_os_memory_provider_params_t params)
{
    umf_memory_provider_handle_t provider = make(params);
    char *ptr = alloc(provider, 4 * page);
    int mode = -1;

    memset(ptr, 1, 4 * page);
    assert_ok(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, ptr, MPOL_F_ADDR));
    assert_success(umfMemoryProviderFree(provider, ptr, 4 * page));
    umfMemoryProviderDestroy(provider);
    return mode;
}

static void expect_invalid(umf_os_memory_provider_params_t params)
{
    umf_memory_provider_handle_t none = NULL;

    assert_result(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &none), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(none);
}

/* umf_numa_mode_t: UMF_NUMA_MODE_DEFAULT: corresponds to MPOL_DEFAULT, the list must be empty; UMF_NUMA_MODE_BIND:
 * any of the allowed nodes, at least one; UMF_NUMA_MODE_INTERLEAVE: across the set of nodes, at least one;
 * UMF_NUMA_MODE_PREFERRED: other nodes if it cannot be; UMF_NUMA_MODE_LOCAL: the node of the CPU that triggered the
 * allocation, the list must be empty. */
static void numa_modes(void **state)
{
    unsigned node[] = {(unsigned)__builtin_ctzl(nodes_with_memory())};
    int mode;

    (void)state;
    assert_int_equal(mode_of(of_mode(UMF_NUMA_MODE_DEFAULT, NULL, 0)), MPOL_DEFAULT);
    expect_invalid(of_mode(UMF_NUMA_MODE_DEFAULT, node, 1));
    assert_int_equal(mode_of(of_mode(UMF_NUMA_MODE_BIND, node, 1)), MPOL_BIND);
    expect_invalid(of_mode(UMF_NUMA_MODE_BIND, NULL, 0));
    assert_int_equal(mode_of(of_mode(UMF_NUMA_MODE_INTERLEAVE, node, 1)), MPOL_INTERLEAVE);
    expect_invalid(of_mode(UMF_NUMA_MODE_INTERLEAVE, NULL, 0));
    mode = mode_of(of_mode(UMF_NUMA_MODE_PREFERRED, node, 1));
    assert_true(mode == MPOL_PREFERRED || mode == PREFERRED_MANY);
    mode = mode_of(of_mode(UMF_NUMA_MODE_LOCAL, NULL, 0));
    assert_true(mode == MPOL_PREFERRED || mode == MPOL_LOCAL);
    expect_invalid(of_mode(UMF_NUMA_MODE_LOCAL, node, 1));
}

/* Bytes of an allocation of 8 pages that are on the broker's node 1. */
static size_t on_second(umf_os_memory_provider_params_t params)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buffer = NULL;
    umf_memory_provider_handle_t provider;
    size_t bytes = 0;
    char *ptr;

    params.visibility = UMF_MEM_MAP_SHARED;
    provider = make(params);
    ptr = alloc(provider, 8 * page);
    assert_success(umfMemorydGetBuffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_info(buffer, &info), 0);
    for (uint32_t i = 0; i < info.n_nodes; i++)
        if (info.nodes[i] == 1)
            bytes = info.node_bytes[i];
    memclient_buffer_unref(buffer);
    assert_success(umfMemoryProviderFree(provider, ptr, 8 * page));
    umfMemoryProviderDestroy(provider);
    return bytes;
}

/* UMF_NUMA_MODE_SPLIT of umf_numa_mode_t: split evenly across nodes; umf_numa_split_partition_t: weight, target:
 * another distribution of pages. UMF_NUMA_MODE_INTERLEAVE in turn, by part_size. UMF_NUMA_MODE_BIND on no other.
 * umf_os_memory_provider_params_t: part_size. */
static void splits_and_parts(void **state)
{
    unsigned nodes[] = {0, 1};
    umf_numa_split_partition_t pieces[] = {{.weight = 7, .target = 0}, {.weight = 1, .target = 1}};
    umf_os_memory_provider_params_t params = of_mode(UMF_NUMA_MODE_SPLIT, nodes, 2);

    (void)state;
    assert_int_equal(on_second(params), 4 * page);
    params.partitions = pieces;
    params.partitions_len = 2;
    assert_int_equal(on_second(params), page);
    expect_invalid(of_mode(UMF_NUMA_MODE_SPLIT, NULL, 0));
    params = of_mode(UMF_NUMA_MODE_INTERLEAVE, nodes, 2);
    assert_int_equal(on_second(params), 4 * page);
    params.part_size = 6 * page;
    assert_int_equal(on_second(params), 2 * page);
    assert_int_equal(on_second(of_mode(UMF_NUMA_MODE_BIND, nodes + 1, 1)), 8 * page);
}

/* umf_os_memory_provider_native_error, umf_os_memory_provider_native_error_t: UMF_OS_RESULT_SUCCESS;
 * UMF_OS_RESULT_ERROR_ALLOC_FAILED; UMF_OS_RESULT_ERROR_FREE_FAILED; UMF_OS_RESULT_ERROR_BIND_FAILED;
 * UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED, UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED. UMF_OS_RESULTS_START_FROM. */
static void native_errors(void **state)
{
    unsigned nowhere[] = {700};
    umf_memory_provider_handle_t lost = make(of_mode(UMF_NUMA_MODE_BIND, nowhere, 1));
    void *ptr = NULL;

    (void)state;
    assert_int_equal(UMF_OS_RESULT_SUCCESS, UMF_OS_RESULTS_START_FROM);
    assert_native(shared, umfMemoryProviderAlloc(shared, SIZE_MAX, 0, &ptr), UMF_OS_RESULT_ERROR_ALLOC_FAILED,
                  "memory allocation failed");
    assert_native(shared, umfMemoryProviderFree(shared, (void *)1, page), UMF_OS_RESULT_ERROR_FREE_FAILED,
                  "memory deallocation failed");
    assert_native(lost, umfMemoryProviderAlloc(lost, page, 0, &ptr), UMF_OS_RESULT_ERROR_BIND_FAILED,
                  "binding memory to NUMA node failed");
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_native(private_one, umfMemoryProviderPurgeLazy(private_one, (void *)1, 1),
                  UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED, "lazy purging failed");
    assert_native(private_one, umfMemoryProviderPurgeForce(private_one, (void *)1, 1),
                  UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED, "force purging failed");
    assert_null(ptr);
    umfMemoryProviderDestroy(lost);
}

/* ---- handles of providers -------------------------------------------------------------------------------- */

/* umfMemoryProviderGetIPCHandleSize(hProvider, size): UMF_RESULT_SUCCESS: of the data for a handle;
 * UMF_RESULT_ERROR_NOT_SUPPORTED if the provider cannot; UMF_RESULT_ERROR_INVALID_ARGUMENT: an argument is NULL. */
static void handle_size(void **state)
{
    size_t size = 0;

    (void)state;
    assert_result(umfMemoryProviderGetIPCHandleSize(unable, &size), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderGetIPCHandleSize(NULL, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandleSize(shared, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(size, 0);
    assert_result(umfMemoryProviderGetIPCHandleSize(shared, &size), UMF_RESULT_SUCCESS);
    assert_true(size > 0);
}

/* umfMemoryProviderGetIPCHandle(hProvider, ptr, size, providerIpcData): UMF_RESULT_SUCCESS;
 * UMF_RESULT_ERROR_INVALID_ARGUMENT if ptr was not allocated by this provider; UMF_RESULT_ERROR_NOT_SUPPORTED.
 * umfMemoryProviderPutIPCHandle(hProvider, providerIpcData): releases it: UMF_RESULT_SUCCESS;
 * UMF_RESULT_ERROR_INVALID_ARGUMENT if it was not created by this provider; UMF_RESULT_ERROR_NOT_SUPPORTED. */
static void get_and_put(void **state)
{
    char *ptr = alloc(shared, page), *mine = alloc(private_one, page), providerIpcData[1024] = {0};

    (void)state;
    assert_result(umfMemoryProviderGetIPCHandle(NULL, ptr, page, providerIpcData), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(shared, NULL, page, providerIpcData),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(shared, ptr, page, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(shared, mine, page, providerIpcData),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(other, ptr, page, providerIpcData), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(unable, ptr, page, providerIpcData), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderPutIPCHandle(shared, providerIpcData), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(shared, ptr, page, providerIpcData), UMF_RESULT_SUCCESS);
    assert_result(umfMemoryProviderPutIPCHandle(NULL, providerIpcData), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(unable, providerIpcData), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderPutIPCHandle(shared, providerIpcData), UMF_RESULT_SUCCESS);
    assert_success(umfMemoryProviderFree(shared, ptr, page));
    assert_success(umfMemoryProviderFree(private_one, mine, page));
}

/* umfMemoryProviderOpenIPCHandle(hProvider, providerIpcData, ptr): UMF_RESULT_SUCCESS: the memory to be used in the
 * current process; UMF_RESULT_ERROR_INVALID_ARGUMENT if it cannot be handled by the provider;
 * UMF_RESULT_ERROR_NOT_SUPPORTED. umfMemoryProviderCloseIPCHandle(hProvider, ptr, size): UMF_RESULT_SUCCESS;
 * UMF_RESULT_ERROR_INVALID_ARGUMENT if invalid hProvider or ptr are passed; UMF_RESULT_ERROR_NOT_SUPPORTED. */
static void open_and_close(void **state)
{
    char *from = alloc(shared, page), providerIpcData[1024] = {0};
    void *ptr = NULL;

    (void)state;
    assert_result(umfMemoryProviderOpenIPCHandle(other, providerIpcData, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderGetIPCHandle(shared, from, page, providerIpcData));
    assert_result(umfMemoryProviderOpenIPCHandle(NULL, providerIpcData, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderOpenIPCHandle(unable, providerIpcData, &ptr), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_null(ptr);
    assert_result(umfMemoryProviderOpenIPCHandle(other, providerIpcData, &ptr), UMF_RESULT_SUCCESS);
    memcpy(from, "from here", sizeof("from here"));
    assert_string_equal(ptr, "from here");
    assert_result(umfMemoryProviderCloseIPCHandle(NULL, ptr, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(other, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(other, providerIpcData, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(unable, ptr, page), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfMemoryProviderCloseIPCHandle(other, ptr, page), UMF_RESULT_SUCCESS);
    assert_success(umfMemoryProviderPutIPCHandle(shared, providerIpcData));
    assert_success(umfMemoryProviderFree(shared, from, page));
}

/* ---- handles of pools ------------------------------------------------------------------------------------ */

static umf_memory_pool_handle_t pool_of(umf_memory_provider_handle_t provider)
{
    umf_memory_pool_handle_t pool = NULL;

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, 0, &pool));
    return pool;
}

/* umfPoolGetIPCHandleSize(hPool, size): UMF_RESULT_SUCCESS: size of IPC handles in bytes;
 * UMF_RESULT_ERROR_INVALID_ARGUMENT: hPool or size is NULL; UMF_RESULT_ERROR_NOT_SUPPORTED: the memory provider should
 * support IPC, otherwise they return an error. umfGetIPCHandle(ptr, ipcHandle, size): UMF_RESULT_SUCCESS, an
 * umf_ipc_handle_t; UMF_RESULT_ERROR_INVALID_ARGUMENT, UMF_RESULT_ERROR_NOT_SUPPORTED. umfPutIPCHandle(ipcHandle):
 * UMF_RESULT_SUCCESS. */
static void pool_get_and_put(void **state)
{
    umf_memory_pool_handle_t hPool = pool_of(shared), cannot = pool_of(unable);
    void *ptr = umfPoolMalloc(hPool, page), *mine = umfPoolMalloc(cannot, page);
    umf_ipc_handle_t ipcHandle = NULL;
    size_t size = 0, told = 0;

    (void)state;
    assert_result(umfPoolGetIPCHandleSize(NULL, &told), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolGetIPCHandleSize(hPool, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfPoolGetIPCHandleSize(cannot, &told), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_result(umfPoolGetIPCHandleSize(hPool, &told), UMF_RESULT_SUCCESS);
    assert_result(umfGetIPCHandle(NULL, &ipcHandle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(ptr, NULL, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(ptr, &ipcHandle, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfGetIPCHandle(mine, &ipcHandle, &size), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_null(ipcHandle);
    assert_result(umfGetIPCHandle(ptr, &ipcHandle, &size), UMF_RESULT_SUCCESS);
    assert_int_equal(size, told);
    assert_result(umfPutIPCHandle(ipcHandle), UMF_RESULT_SUCCESS);
    assert_success(umfFree(ptr));
    assert_success(umfFree(mine));
    umfPoolDestroy(hPool);
    umfPoolDestroy(cannot);
}

struct sent {
    umf_memory_pool_handle_t pool;
    char bytes[1024];
};

static void consume(int channel, void *context)
{
    struct sent *sent = context;
    void *ptr = NULL;

    (void)channel;
    CHECK(umfOpenIPCHandle(sent->pool, (umf_ipc_handle_t)sent->bytes, &ptr) == UMF_RESULT_SUCCESS);
    CHECK(!strcmp(ptr, "from the parent"));
    memcpy(ptr, "from the child", sizeof("from the child"));
    CHECK(umfCloseIPCHandle(ptr) == UMF_RESULT_SUCCESS);
}

/* umfOpenIPCHandle(hPool, ipcHandle, ptr): UMF_RESULT_SUCCESS: the memory in the current process, of a handle that
 * came as bytes; UMF_RESULT_ERROR_INVALID_ARGUMENT, UMF_RESULT_ERROR_NOT_SUPPORTED. umfCloseIPCHandle(ptr):
 * UMF_RESULT_SUCCESS; UMF_RESULT_ERROR_INVALID_ARGUMENT: nothing is open there. */
static void pool_open_and_close(void **state)
{
    umf_memory_pool_handle_t producer = pool_of(shared), hPool = pool_of(other), cannot = pool_of(unable);
    char *from = umfPoolMalloc(producer, 2 * page);
    struct sent sent = {.pool = hPool};
    umf_ipc_handle_t ipcHandle = NULL;
    void *ptr = NULL;
    size_t size = 0;

    (void)state;
    memcpy(from + page, "from the parent", sizeof("from the parent"));
    assert_success(umfGetIPCHandle(from + page, &ipcHandle, &size));
    assert_true(size <= sizeof(sent.bytes));
    memcpy(sent.bytes, ipcHandle, size);
    child_run(consume, &sent);
    assert_string_equal(from + page, "from the child");
    assert_result(umfOpenIPCHandle(NULL, ipcHandle, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfOpenIPCHandle(hPool, NULL, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfOpenIPCHandle(hPool, ipcHandle, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfOpenIPCHandle(cannot, ipcHandle, &ptr), UMF_RESULT_ERROR_NOT_SUPPORTED);
    sent.bytes[size / 2] ^= 1;
    assert_result(umfOpenIPCHandle(hPool, (umf_ipc_handle_t)sent.bytes, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(ptr);
    assert_result(umfOpenIPCHandle(hPool, ipcHandle, &ptr), UMF_RESULT_SUCCESS);
    assert_string_equal(ptr, "from the child");
    assert_result(umfCloseIPCHandle(ptr), UMF_RESULT_SUCCESS);
    assert_result(umfCloseIPCHandle(&size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfPutIPCHandle(ipcHandle));
    sent.bytes[size / 2] ^= 1; /* the copy goes on being good */
    assert_result(umfOpenIPCHandle(hPool, (umf_ipc_handle_t)sent.bytes, &ptr), UMF_RESULT_SUCCESS);
    assert_result(umfCloseIPCHandle(ptr), UMF_RESULT_SUCCESS);
    assert_success(umfFree(from));
    umfPoolDestroy(producer);
    umfPoolDestroy(hPool);
    umfPoolDestroy(cannot);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(protection),
        TEST(visibility),
        TEST(parameters),
        TEST(numa_modes),
        TEST(splits_and_parts),
        TEST(native_errors),
        TEST(handle_size),
        TEST(get_and_put),
        TEST(open_and_close),
        TEST(pool_get_and_put),
        TEST(pool_open_and_close),
    };

    return test_run(tests, umf_group_setup, umf_group_teardown);
}
