/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_amd_ipc_memory_create, hsa_amd_ipc_memory_attach, hsa_amd_ipc_memory_detach: every argument and status, and what
 * a handle is. Several processes are in test-ipc-processes.c.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/child.h"
#include "tests/unit/hsa/hsa.h"

#define SIZE (3 * MIB)
#define ODD  12345

static struct memclient_context *native; /* a session beside HSA's */

static int setup(void **state)
{
    return hsa_group_setup(state) || memclient_context_open(NULL, &native);
}

static int teardown(void **state)
{
    memclient_context_close(native);
    return hsa_group_teardown(state);
}

static void *allocate(size_t size)
{
    void *ptr = NULL;

    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], size, 0, &ptr));
    return ptr;
}

static struct memclient_token as_token(const hsa_amd_ipc_memory_t *handle)
{
    struct memclient_token token;

    memcpy(token.bytes, handle->handle, sizeof(token.bytes));
    return token;
}

/* ---- hsa_amd_ipc_memory_create ----------------------------------------------------------------------------------- */

#define refuses_create(ptr, len) hsa_refuses_create(ptr, len, __LINE__)

static void hsa_refuses_create(void *ptr, size_t len, int line)
{
    hsa_amd_ipc_memory_t handle, before;

    memset(&handle, 0x5a, sizeof(handle));
    before = handle;
    hsa_assert_status(hsa_amd_ipc_memory_create(ptr, len, &handle), HSA_STATUS_ERROR_INVALID_ARGUMENT,
                      "hsa_amd_ipc_memory_create", __FILE__, line);
    assert_memory_equal(&handle, &before, sizeof(handle));
}

/* hsa_amd_ipc_memory_create: ptr, len, handle: INVALID_ARGUMENT */
static void create_refuses_what_is_no_allocation(void **state)
{
    char *ptr = allocate(SIZE), *freed = allocate(SIZE), *ordinary = malloc(SIZE);
    hsa_amd_ipc_memory_t handle;

    assert_success(hsa_memory_free(freed));
    assert_status(hsa_amd_ipc_memory_create(ptr, SIZE, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses_create(NULL, SIZE);
    refuses_create(ptr, 0);
    refuses_create(ptr, SIZE - 1);
    refuses_create(ptr, SIZE + 1);
    refuses_create(ptr, 2 * SIZE);
    refuses_create(ptr, SIZE_MAX);
    refuses_create(ptr + 4096, SIZE - 4096);
    refuses_create(ptr + 4096, SIZE);
    refuses_create(freed, SIZE);
    refuses_create(ordinary, SIZE);
    assert_success(hsa_memory_register(ordinary, SIZE));
    refuses_create(ordinary, SIZE);
    assert_success(hsa_memory_deregister(ordinary, SIZE));
    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    assert_success(hsa_memory_free(ptr));
    refuses_create(ptr, SIZE);
    free(ordinary);
}

/* A mapping of virtual memory is shared by its handle's descriptor. */
static void create_refuses_virtual_memory(void **state)
{
    hsa_amd_vmem_alloc_handle_t memory;
    void *va = NULL;

    assert_success(hsa_amd_vmem_address_reserve(&va, SIZE + MIB, 0, 0));
    refuses_create(va, SIZE + MIB);
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], SIZE + MIB, MEMORY_TYPE_NONE, 0, &memory));
    assert_success(hsa_amd_vmem_map(va, SIZE + MIB, 0, memory, 0));
    refuses_create(va, SIZE + MIB);
    assert_success(hsa_amd_vmem_unmap(va, SIZE + MIB));
    assert_success(hsa_amd_vmem_handle_release(memory));
    assert_success(hsa_amd_vmem_address_free(va, SIZE + MIB));
}

/* hsa_amd_ipc_memory_create(ptr, len, handle): SUCCESS, len as asked for, or rounded up to pages */
static void create_takes_both_sizes(void **state)
{
    hsa_amd_ipc_memory_t asked, rounded;
    void *ptr = allocate(ODD), *again = NULL;

    assert_success(hsa_amd_ipc_memory_create(ptr, ODD, &asked));
    assert_success(hsa_amd_ipc_memory_create(ptr, 16384, &rounded));
    assert_memory_equal(&asked, &rounded, sizeof(asked));
    refuses_create(ptr, ODD + 1);
    assert_success(hsa_amd_ipc_memory_attach(&asked, ODD, 0, NULL, &again));
    assert_success(hsa_amd_ipc_memory_detach(again));
    assert_success(hsa_amd_ipc_memory_attach(&asked, 16384, 0, NULL, &again));
    assert_success(hsa_amd_ipc_memory_detach(again));
    assert_success(hsa_memory_free(ptr));
}

/* The same bytes while the allocation lives, of every kind of memory, and of no other allocation ever. */
static void handles_are_stable_and_unique(void **state)
{
    enum { N = 64 };
    static hsa_amd_ipc_memory_t handles[N], again;
    void *ptr;

    for (unsigned i = 0; i < N; i++) {
        assert_success(hsa_amd_memory_pool_allocate(pools[i % AGENTS][i / AGENTS % POOLS], 4096, 0, &ptr));
        assert_success(hsa_amd_ipc_memory_create(ptr, 4096, &handles[i]));
        assert_success(hsa_amd_ipc_memory_create(ptr, 4096, &again));
        assert_memory_equal(&handles[i], &again, sizeof(again));
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(&handles[i], &handles[k], sizeof(again));
        assert_success(hsa_memory_free(ptr));
    }
}

static void *create_one(void *handle)
{
    void *ptr;

    memcpy(&ptr, handle, sizeof(ptr));
    return hsa_amd_ipc_memory_create(ptr, SIZE, handle) ? handle : NULL;
}

/* Threads that are first at the same time are told the same, and no second token is left. */
static void one_handle_for_all_threads(void **state)
{
    enum { N = 8 };
    hsa_amd_ipc_memory_t handles[N];
    pthread_t threads[N];

    for (unsigned round = 0; round < 20; round++) {
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
        struct memclient_buffer *buffer;
        void *ptr = allocate(SIZE), *failed;

        for (unsigned i = 0; i < N; i++) {
            memcpy(&handles[i], &ptr, sizeof(ptr));
            assert_int_equal(pthread_create(&threads[i], NULL, create_one, &handles[i]), 0);
        }
        for (unsigned i = 0; i < N; i++) {
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
            assert_memory_equal(&handles[i], &handles[0], sizeof(handles[0]));
        }
        assert_success(memclient_hsa_buffer(ptr, &buffer));
        assert_ok(memclient_buffer_query(buffer, &info));
        memclient_buffer_unref(buffer);
        assert_int_equal(info.tokens, 1);
        assert_success(hsa_memory_free(ptr));
    }
}

/* ---- hsa_amd_ipc_memory_attach ----------------------------------------------------------------------------------- */

#define refuses_attach(handle, len, n, list, status) hsa_refuses_attach(handle, len, n, list, status, __LINE__)

static void hsa_refuses_attach(const hsa_amd_ipc_memory_t *handle, size_t len, uint32_t n, const hsa_agent_t *list,
                               hsa_status_t status, int line)
{
    void *ptr = &ptr;

    hsa_assert_status(hsa_amd_ipc_memory_attach(handle, len, n, list, &ptr), status, "hsa_amd_ipc_memory_attach",
                      __FILE__, line);
    assert_ptr_equal(ptr, &ptr);
}

/* hsa_amd_ipc_memory_attach: handle, len, num_agents, mapping_agents, mapped_ptr: INVALID_ARGUMENT, INVALID_AGENT */
static void attach_checks_its_arguments(void **state)
{
    hsa_agent_t some[3] = {agents[0], {0}, agents[1]};
    hsa_amd_ipc_memory_t handle, forged;
    void *ptr = allocate(SIZE);

    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    assert_status(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses_attach(NULL, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses_attach(&handle, 0, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses_attach(&handle, SIZE - 1, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses_attach(&handle, SIZE + 4096, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses_attach(&handle, SIZE, 1, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses_attach(&handle, SIZE, 3, some, HSA_STATUS_ERROR_INVALID_AGENT);
    some[1].handle = pools[0][FINE].handle;
    refuses_attach(&handle, SIZE, 3, some, HSA_STATUS_ERROR_INVALID_AGENT);
    for (unsigned i = 0; i < sizeof(handle) * 8; i++) {
        forged = handle;
        forged.handle[i / 32] ^= 1U << i % 32;
        refuses_attach(&forged, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    memset(&forged, 0, sizeof(forged));
    refuses_attach(&forged, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    memset(&forged, 0xff, sizeof(forged));
    refuses_attach(&forged, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_free(ptr));
}

static void see(const void *ptr, hsa_amd_pointer_type_t type, size_t size, uint32_t n_agents)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_agent_t *accessible = NULL;
    uint32_t n = 0;

    assert_success(hsa_amd_pointer_info(ptr, &info, malloc, &n, &accessible));
    assert_int_equal(info.type, type);
    if (type != HSA_EXT_POINTER_TYPE_UNKNOWN) {
        assert_int_equal(info.sizeInBytes, size);
        assert_int_equal(n, n_agents);
        assert_int_equal(info.agentOwner.handle, agents[1].handle);
    }
    free(accessible);
}

/* hsa_amd_ipc_memory_attach, hsa_amd_ipc_memory_detach(mapped_ptr): SUCCESS. hsa_memory_free: INVALID_ARGUMENT. In the
 * process that made it: at another address, the same memory, and known as IPC memory. */
static void attach_in_the_same_process(void **state)
{
    hsa_amd_ipc_memory_t handle, other;
    uint32_t *ptr, *mapped, *again;

    assert_success(hsa_amd_memory_pool_allocate(pools[1][FINE], SIZE, 0, (void **)&ptr));
    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 1, &agents[0], (void **)&mapped));
    assert_ptr_not_equal(mapped, ptr);
    *ptr = 42;
    assert_int_equal(*mapped, 42);
    mapped[SIZE / 4 - 1] = 43;
    assert_int_equal(ptr[SIZE / 4 - 1], 43);
    see(mapped, HSA_EXT_POINTER_TYPE_IPC, SIZE, 1);
    see(ptr, HSA_EXT_POINTER_TYPE_HSA, SIZE, AGENTS);
    /* again: the same address, counted, for the agents of both; and its own handle */
    assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, (void **)&again));
    assert_ptr_equal(again, mapped);
    see(mapped, HSA_EXT_POINTER_TYPE_IPC, SIZE, AGENTS);
    assert_success(hsa_amd_ipc_memory_create(mapped, SIZE, &other));
    assert_memory_equal(&other, &handle, sizeof(other));
    assert_status(hsa_memory_free(mapped), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_int_equal(*mapped, 42);
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    see(mapped, HSA_EXT_POINTER_TYPE_UNKNOWN, 0, 0);
    assert_status(hsa_amd_ipc_memory_detach(mapped), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(*ptr, 42);
    assert_success(hsa_memory_free(ptr));
}

static hsa_amd_ipc_memory_t token_for(struct memclient_buffer *buffer, unsigned rights)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_token token;
    hsa_amd_ipc_memory_t handle;

    options.rights = rights;
    assert_int_equal(memclient_share(buffer, &options, &token), 0);
    memcpy(handle.handle, token.bytes, sizeof(handle.handle));
    return handle;
}

/* Where another interface has mapped a part of it, and by two handles: always at the one address, each with its rights,
 * until the last has gone. */
static void attach_what_is_mapped_already(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    hsa_amd_ipc_memory_t reading, writing;
    struct memclient_buffer *buffer;
    char *home, *at;
    void *part;

    assert_int_equal(memclient_alloc(native, SIZE, NULL, &buffer), 0);
    home = memclient_buffer_home(buffer);
    reading = token_for(buffer, MEMCLIENT_READ);
    writing = token_for(buffer, MEMCLIENT_READ | MEMCLIENT_WRITE);
    options.offset = options.length = memclient_buffer_granule(buffer);
    assert_int_equal(memclient_map(buffer, &options, &part), 0);
    assert_success(hsa_amd_ipc_memory_attach(&reading, SIZE, 0, NULL, (void **)&at));
    assert_ptr_equal(at, home);
    assert_success(hsa_amd_ipc_memory_attach(&writing, SIZE, 0, NULL, (void **)&at));
    assert_ptr_equal(at, home);
    home[0] = home[SIZE - 1] = 'h';
    assert_int_equal(memclient_unmap(native, part, 0), 0);
    home[options.offset] = 'i';
    for (int i = 0; i < 3; i++) {
        assert_success(hsa_amd_ipc_memory_attach(&writing, SIZE, 0, NULL, (void **)&at));
        assert_success(hsa_amd_ipc_memory_detach(at));
    }
    assert_success(hsa_amd_ipc_memory_detach(at));
    assert_int_equal(home[0], 'h');
    assert_int_equal(home[options.offset], 'i');
    assert_success(hsa_amd_ipc_memory_detach(at));
    assert_status(hsa_amd_ipc_memory_detach(at), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    memclient_buffer_unref(buffer);
}

/* hsa_amd_ipc_memory_detach: mapped_ptr: INVALID_ARGUMENT */
static void detach_refuses_what_is_not_attached(void **state)
{
    hsa_amd_ipc_memory_t handle;
    char *ptr = allocate(SIZE), *mapped;

    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, (void **)&mapped));
    assert_status(hsa_amd_ipc_memory_detach(NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_detach(&handle), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_detach(ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_detach(mapped + 4096), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(hsa_memory_free(ptr));
}

/* "later attach -> INVALID_ARGUMENT", at once, also when the same address is in use again. */
static void stale_handles_are_refused(void **state)
{
    hsa_amd_ipc_memory_t handle, next;
    void *ptr = allocate(SIZE), *mapped;

    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    assert_success(hsa_memory_free(ptr));
    refuses_attach(&handle, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ptr = allocate(SIZE);
    refuses_attach(&handle, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &next));
    assert_memory_not_equal(&handle, &next, sizeof(next));
    refuses_attach(&handle, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    /* what is attached outlives the allocation, and so does its handle */
    assert_success(hsa_amd_ipc_memory_attach(&next, SIZE, 0, NULL, &mapped));
    memset(ptr, 7, SIZE);
    assert_success(hsa_memory_free(ptr));
    assert_int_equal(((char *)mapped)[SIZE - 1], 7);
    assert_success(hsa_amd_ipc_memory_attach(&next, SIZE, 0, NULL, &ptr));
    assert_ptr_equal(ptr, mapped);
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    refuses_attach(&next, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* ---- with the native API ----------------------------------------------------------------------------------------- */

/* The bytes are a token: it can be opened and revoked. */
static void a_handle_is_a_token(void **state)
{
    struct memclient_token token;
    struct memclient_buffer *buf;
    hsa_amd_ipc_memory_t handle;
    char *ptr = allocate(SIZE), *mapped, *there;

    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    token = as_token(&handle);
    assert_ok(memclient_open_token(native, &token, 0, &buf));
    assert_int_equal(memclient_buffer_size(buf), SIZE);
    assert_ptr_equal(memclient_buffer_home(buf), ptr);
    assert_ok(memclient_map(
        buf,
        &(struct memclient_map_options){.size = sizeof(struct memclient_map_options), .flags = MEMCLIENT_MAP_NOT_HOME},
        (void **)&there));
    memcpy(there, "over there", sizeof("over there"));
    assert_string_equal(ptr, "over there");
    assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, (void **)&mapped));
    assert_ok(memclient_revoke_token(native, &token));
    refuses_attach(&handle, SIZE, 0, NULL, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_string_equal(mapped, "over there");
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_ok(memclient_unmap(native, there, 0));
    memclient_buffer_unref(buf);
    assert_success(hsa_memory_free(ptr));
}

/* Attaches by a token, in a child, and writes. */
static void write_attached(int channel, void *context)
{
    hsa_amd_ipc_memory_t handle;
    volatile char *mapped;

    (void)channel;
    memcpy(&handle, context, sizeof(handle));
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, (void **)&mapped) == HSA_STATUS_SUCCESS);
    CHECK(mapped[0] == 'r');
    mapped[0] = 'w';
}

/* And a token is a handle, with what it grants. */
static void a_token_is_a_handle(void **state)
{
    struct memclient_share_options read_only = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_token token, reading;
    struct memclient_buffer *buf;
    hsa_amd_ipc_memory_t handle;
    char *here, *mapped;

    read_only.rights = MEMCLIENT_READ;
    assert_ok(memclient_alloc(native, SIZE, NULL, &buf));
    assert_ok(memclient_map(buf, NULL, (void **)&here));
    assert_ok(memclient_share(buf, NULL, &token));
    assert_ok(memclient_share(buf, &read_only, &reading));
    memcpy(handle.handle, token.bytes, sizeof(handle.handle));
    memcpy(here, "rest", sizeof("rest"));
    assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, (void **)&mapped));
    assert_string_equal(mapped, "rest");
    /* a page that a child inherits as one to write stays so, whatever it attaches there */
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_ok(memclient_unmap(native, here, 0));
    assert_int_equal(child_signal(write_attached, &reading), SIGSEGV);
    assert_int_equal(child_signal(write_attached, &token), 0);
    assert_ok(memclient_map(buf, NULL, (void **)&here));
    assert_int_equal(here[0], 'w');
    assert_ok(memclient_unmap(native, here, 0));
    memclient_buffer_unref(buf);
}

/* ---- callbacks and threads --------------------------------------------------------------------------------------- */

static unsigned calls;

static void gone(void *ptr, void *data)
{
    calls++;
    assert_ptr_equal(ptr, *(void **)data);
    assert_status(hsa_amd_ipc_memory_detach(ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_amd_register_deallocation_callback: of attached memory, at the last detach */
static void detach_calls_back(void **state)
{
    hsa_amd_ipc_memory_t handle;
    void *ptr = allocate(SIZE), *mapped;

    calls = 0;
    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    for (unsigned i = 0; i < 2; i++)
        assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, &mapped));
    assert_success(hsa_amd_register_deallocation_callback(mapped, gone, &mapped));
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_int_equal(calls, 0);
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_int_equal(calls, 1);
    assert_success(hsa_memory_free(ptr));
}

static void *attach_often(void *data)
{
    const hsa_amd_ipc_memory_t *handle = data;

    for (unsigned i = 0; i < 200; i++) {
        volatile uint32_t *mapped;

        if (hsa_amd_ipc_memory_attach(handle, SIZE, 0, NULL, (void **)&mapped) || *mapped != 4711 ||
            hsa_amd_ipc_memory_detach((void *)mapped))
            return data;
    }
    return NULL;
}

/* Threads that attach and detach the same handle. */
static void attach_in_many_threads(void **state)
{
    enum { N = 8 };
    hsa_amd_ipc_memory_t handle;
    pthread_t threads[N];
    uint32_t *ptr = allocate(SIZE);
    void *failed;

    *ptr = 4711;
    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, attach_often, &handle), 0);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_success(hsa_memory_free(ptr));
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static void call_all(int channel, void *context)
{
    hsa_amd_ipc_memory_t handle = {{0}};
    void *ptr = context;

    (void)channel;
    CHECK(hsa_amd_ipc_memory_create(ptr, SIZE, &handle) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_memory_create(NULL, 0, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, &ptr) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_memory_attach(NULL, 0, 0, NULL, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_memory_detach(ptr) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_ipc_memory_detach(NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
}

/* NOT_INITIALIZED comes first. A child begins without. */
static void not_initialized(void **state)
{
    void *ptr = allocate(SIZE);

    child_run(call_all, ptr);
    assert_success(hsa_memory_free(ptr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(create_refuses_what_is_no_allocation, hsa_nothing_left),
        cmocka_unit_test_teardown(create_refuses_virtual_memory, hsa_nothing_left),
        cmocka_unit_test_teardown(create_takes_both_sizes, hsa_nothing_left),
        cmocka_unit_test_teardown(handles_are_stable_and_unique, hsa_nothing_left),
        cmocka_unit_test_teardown(one_handle_for_all_threads, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_checks_its_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_in_the_same_process, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_what_is_mapped_already, hsa_nothing_left),
        cmocka_unit_test_teardown(detach_refuses_what_is_not_attached, hsa_nothing_left),
        cmocka_unit_test_teardown(stale_handles_are_refused, hsa_nothing_left),
        cmocka_unit_test_teardown(a_handle_is_a_token, hsa_nothing_left),
        cmocka_unit_test_teardown(a_token_is_a_handle, hsa_nothing_left),
        cmocka_unit_test_teardown(detach_calls_back, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_in_many_threads, hsa_nothing_left),
        cmocka_unit_test_teardown(not_initialized, hsa_nothing_left),
    };

    return test_run(tests, setup, teardown);
}
