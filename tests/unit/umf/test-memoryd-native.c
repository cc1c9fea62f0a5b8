/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memoryd provider beside the native API: its buffers and sessions, handles made of tokens, and full pools of the
 * broker, on two simulated nodes of 16 MiB each. test-memoryd has the rest of the parameters.
 */
#include <errno.h>
#include <pthread.h>

#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"
#include "tests/unit/umf/umf.h"

#define NODE (16 * MIB)
#define MOST (12 * MIB) /* of a node, which has no room for another one then */

static size_t page;

static umf_memory_provider_handle_t make(umf_memoryd_memory_provider_params_t params)
{
    umf_memory_provider_handle_t made = NULL;

    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &made));
    return made;
}

static char *alloc(umf_memory_provider_handle_t provider, size_t size)
{
    void *ptr = NULL;

    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    return ptr;
}

static struct memclient_buffer *buffer_of(const void *ptr)
{
    struct memclient_buffer *buffer = NULL;

    assert_success(umfMemorydGetBuffer(ptr, &buffer));
    return buffer;
}

/* Bytes of the allocation on the broker's node. */
static size_t on_node(const char *ptr, uint32_t node)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buffer = buffer_of(ptr);
    size_t bytes = 0;

    assert_int_equal(memclient_buffer_query(buffer, &info), 0);
    for (uint32_t i = 0; i < info.n_nodes; i++)
        if (info.nodes[i] == node)
            bytes = info.node_bytes[i];
    memclient_buffer_unref(buffer);
    return bytes;
}

/* umfMemorydMemoryProviderOps(), umfMemorydMemoryProviderParamsDefault(): memory of the broker. umfMemorydGetBuffer(
 * ptr, buffer): UMF_RESULT_SUCCESS: a reference more of the buffer, also anywhere within and of the OS provider's
 * shared memory; UMF_RESULT_ERROR_INVALID_ARGUMENT: an argument is NULL or nothing is there. */
static void get_buffer(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t providers[2] = {make(umfMemorydMemoryProviderParamsDefault())};
    struct memclient_buffer *buffer = NULL;

    params.visibility = UMF_MEM_MAP_SHARED;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &providers[1]));
    assert_ptr_equal(umfMemorydMemoryProviderOps(), umfMemorydMemoryProviderOps());
    for (unsigned i = 0; i < 2; i++) {
        char *ptr = alloc(providers[i], page);

        assert_result(umfMemorydGetBuffer(NULL, &buffer), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(umfMemorydGetBuffer(ptr, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(umfMemorydGetBuffer(&params, &buffer), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_null(buffer);
        assert_result(umfMemorydGetBuffer(ptr + page - 1, &buffer), UMF_RESULT_SUCCESS);
        assert_int_equal(memclient_buffer_bytes(buffer), page);
        assert_success(umfMemoryProviderFree(providers[i], ptr, page));
        assert_true(WAIT_UNTIL(observer_buffers() == 1)); /* kept by the reference */
        memclient_buffer_unref(buffer);
        buffer = NULL;
        umfMemoryProviderDestroy(providers[i]);
        assert_true(WAIT_UNTIL(observer_buffers() == 0));
    }
}

/* memclient_umf_params: context: whose session. */
static void context(void **state)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_buffer *buffer;
    umf_memory_provider_handle_t provider;

    options.socket = observed.socket;
    assert_int_equal(memclient_context_open(&options, &params.context), 0);
    provider = make(params);
    buffer = buffer_of(alloc(provider, page));
    assert_ptr_equal(memclient_buffer_context(buffer), params.context);
    memclient_buffer_unref(buffer);
    umfMemoryProviderDestroy(provider);
    memclient_context_close(params.context);
}

/* memclient_umf_params: part_size: of interleaving. */
static void parts(void **state)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    const uint32_t nodes[] = {1, 0};
    umf_memory_provider_handle_t provider;
    char *ptr;

    params.nodes = nodes;
    params.n_nodes = 2;
    params.placement = MEMCLIENT_PLACEMENT_INTERLEAVE;
    params.part_size = 2 * page;
    provider = make(params);
    ptr = alloc(provider, 6 * page);
    assert_int_equal(on_node(ptr, 1), 4 * page);
    assert_int_equal(on_node(ptr, 0), 2 * page);
    umfMemoryProviderDestroy(provider);
}

static void open_in_child(int channel, void *handle)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    umf_memory_provider_handle_t provider = make(umfMemorydMemoryProviderParamsDefault());
    void *ptr = NULL;

    (void)channel;
    CHECK(umfMemoryProviderOpenIPCHandle(provider, handle, &ptr) == UMF_RESULT_SUCCESS);
    CHECK(memclient_address_query(ptr, &info) == 0);
    CHECK(info.access == MEMCLIENT_READ);
    umfMemoryProviderDestroy(provider);
}

/* umfMemorydProviderHandle(token, offset, length, providerIpcData): UMF_RESULT_SUCCESS: a handle of these bytes of the
 * token's buffer, and no call is made; UMF_RESULT_ERROR_INVALID_ARGUMENT: a pointer is NULL, length is 0, or offset +
 * length overflows. */
static void provider_handle(void **state)
{
    umf_memory_provider_handle_t provider = make(umfMemorydMemoryProviderParamsDefault());
    char *from = alloc(provider, 3 * page);
    struct memclient_buffer *buffer = buffer_of(from);
    const size_t offset = page, length = 2 * page;
    struct memclient_token token;
    uint8_t providerIpcData[64];
    uint64_t before;
    void *ptr = NULL;

    assert_int_equal(memclient_share(buffer, NULL, &token), 0);
    before = observer_requests();
    assert_result(umfMemorydProviderHandle(NULL, offset, length, providerIpcData), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydProviderHandle(&token, offset, 0, providerIpcData), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydProviderHandle(&token, offset, length, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydProviderHandle(&token, SIZE_MAX - page + 1, length, providerIpcData),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydProviderHandle(&token, offset, length, providerIpcData), UMF_RESULT_SUCCESS);
    assert_int_equal(observer_requests(), before);
    assert_success(umfMemoryProviderOpenIPCHandle(provider, providerIpcData, &ptr));
    from[offset + length - 1] = 5;
    assert_int_equal(((char *)ptr)[length - 1], 5);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, ptr, length));
    memclient_buffer_unref(buffer);
    umfMemoryProviderDestroy(provider);
}

static void make_handle_without_memory(int channel, void *context)
{
    struct memclient_token token = {{0}};
    umf_ipc_handle_t handle = NULL;
    size_t size = 0;

    (void)channel;
    (void)context;
    child_use_up_memory();
    CHECK(umfMemorydPoolHandle(&token, 0, page, &handle, &size) == UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(!handle && !size);
}

/* umfMemorydPoolHandle(): UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY. */
static void pool_handle_without_memory(void **state)
{
    child_run(make_handle_without_memory, NULL);
}

/* umfMemorydPoolHandle(token, offset, length, ipcHandle, size): UMF_RESULT_SUCCESS: a handle of these bytes, which is
 * opened in a pool at any offset, and no call is made; UMF_RESULT_ERROR_INVALID_ARGUMENT: a pointer is NULL, length is
 * 0, or offset + length overflows. */
static void pool_handle(void **state)
{
    umf_memory_provider_handle_t provider = make(umfMemorydMemoryProviderParamsDefault());
    char *from = alloc(provider, 3 * page);
    struct memclient_buffer *buffer = buffer_of(from);
    const size_t offset = page + 40, length = page;
    umf_memory_pool_handle_t pool = NULL;
    umf_ipc_handle_t ipcHandle = NULL;
    struct memclient_token token;
    size_t size = 0, told = 0;
    uint64_t before;
    void *ptr = NULL;

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, 0, &pool));
    assert_int_equal(memclient_share(buffer, NULL, &token), 0);
    before = observer_requests();
    assert_result(umfMemorydPoolHandle(NULL, offset, length, &ipcHandle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydPoolHandle(&token, offset, 0, &ipcHandle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydPoolHandle(&token, SIZE_MAX, length, &ipcHandle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydPoolHandle(&token, offset, length, NULL, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydPoolHandle(&token, offset, length, &ipcHandle, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(ipcHandle);
    assert_result(umfMemorydPoolHandle(&token, offset, length, &ipcHandle, &size), UMF_RESULT_SUCCESS);
    assert_int_equal(observer_requests(), before);
    assert_success(umfPoolGetIPCHandleSize(pool, &told));
    assert_int_equal(size, told);
    assert_success(umfOpenIPCHandle(pool, ipcHandle, &ptr));
    from[offset] = 6;
    assert_int_equal(*(char *)ptr, 6);
    assert_success(umfCloseIPCHandle(ptr));
    assert_success(umfPutIPCHandle(ipcHandle));
    memclient_buffer_unref(buffer);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* memclient_umf_params: shared_rights: what handles for other processes grant. */
static void shared_rights(void **state)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;
    uint8_t handle[64];
    char *ptr;

    params.shared_rights = MEMCLIENT_READ;
    provider = make(params);
    ptr = alloc(provider, page);
    *ptr = 1; /* which is not our memory */
    assert_success(umfMemoryProviderGetIPCHandle(provider, ptr, page, handle));
    child_run(open_in_child, handle);
    assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
    umfMemoryProviderDestroy(provider);
}

static umf_memoryd_memory_provider_params_t of_node(const uint32_t *node)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();

    params.nodes = node;
    params.n_nodes = 1;
    params.placement = MEMCLIENT_PLACEMENT_BIND;
    return params;
}

static void *alloc_elsewhere(void *provider)
{
    return alloc(provider, MOST);
}

/* memclient_umf_params: wait_ms: how long to wait for room when the pool is full; UMF_MEMORYD_RESULTS_START_FROM:
 * numbers of umfMemoryProviderGetLastNativeError() are errno behind it. */
static void waiting(void **state)
{
    const uint32_t node = 1;
    umf_memoryd_memory_provider_params_t params = of_node(&node);
    umf_memory_provider_handle_t first = make(params), hasty, patient;
    char *ptr = alloc(first, MOST);
    pthread_t thread;
    void *got = NULL;

    params.wait_ms = 1;
    hasty = make(params);
    assert_native(hasty, umfMemoryProviderAlloc(hasty, MOST, 0, &got), UMF_MEMORYD_RESULTS_START_FROM + ETIMEDOUT, "");
    assert_null(got);
    params.wait_ms = PATIENCE_MS;
    patient = make(params);
    assert_int_equal(pthread_create(&thread, NULL, alloc_elsewhere, patient), 0);
    assert_success(umfMemoryProviderFree(first, ptr, MOST));
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_non_null(got);
    umfMemoryProviderDestroy(first);
    umfMemoryProviderDestroy(hasty);
    umfMemoryProviderDestroy(patient);
}

/* UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY of umf_result_t: there is not enough memory for the call. */
static void more_than_there_is(void **state)
{
    const uint32_t node = 1;
    umf_memory_provider_handle_t provider = make(of_node(&node));
    void *ptr = NULL;

    (void)alloc(provider, MOST);
    assert_result(umfMemoryProviderAlloc(provider, MOST, 0, &ptr), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    assert_null(ptr);
    umfMemoryProviderDestroy(provider);
}

/* UMF_NUMA_MODE_PREFERRED of umf_numa_mode_t: specifies the preferred node; if that cannot be, memory is allocated from
 * other nodes. UMF_NUMA_MODE_BIND: not so. */
static void preferred(void **state)
{
    unsigned node[] = {1};
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t prefers, is_bound;
    char *first, *second;
    void *none = NULL;

    params.visibility = UMF_MEM_MAP_SHARED;
    params.numa_list = node;
    params.numa_list_len = 1;
    params.numa_mode = UMF_NUMA_MODE_PREFERRED;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &prefers));
    params.numa_mode = UMF_NUMA_MODE_BIND;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &is_bound));
    first = alloc(prefers, MOST);
    assert_int_equal(on_node(first, 1), MOST);
    second = alloc(prefers, MOST);
    assert_true(on_node(second, 0) >= MOST - (NODE - MOST));
    assert_native(is_bound, umfMemoryProviderAlloc(is_bound, MOST, 0, &none), UMF_OS_RESULT_ERROR_ALLOC_FAILED,
                  "memory allocation failed");
    umfMemoryProviderDestroy(prefers);
    umfMemoryProviderDestroy(is_bound);
}

#define TEST(function) cmocka_unit_test_teardown(function, umf_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(get_buffer),      TEST(context),     TEST(parts),
        TEST(provider_handle), TEST(pool_handle), TEST(pool_handle_without_memory),
        TEST(shared_rights),   TEST(waiting),     TEST(more_than_there_is),
        TEST(preferred),
    };

    page = (size_t)page_size();
    umf_config = "[pools]\ncapacity = 16M\n";
    return test_run(tests, umf_group_setup, umf_group_teardown);
}
