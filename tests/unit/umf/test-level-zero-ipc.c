/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing memory of Level Zero between processes, with a loader of our own instead of the real one (fake-ze.h): the
 * broker brings the descriptor in the driver's handle to another process, and the rest of the handle arrives unchanged.
 * No device has been used.
 *
 * The program runs itself again with LD_LIBRARY_PATH, which is only read when a program starts.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/providers/provider_level_zero.h>

#include "tests/integration/clients.h"
#include "tests/unit/umf/again.h"
#include "tests/unit/umf/fake-ze.h"
#include "tests/unit/umf/umf.h"

#define CONTEXT ((void *)0x1001)
#define DEVICE  ((void *)0x2002)
#define SIZE    ((size_t)100000)
#define HANDLE  120

static struct fake_ze *ze; /* the loader's own */
static umf_memory_provider_handle_t provider;

static umf_memory_provider_handle_t provider_of(umf_usm_memory_type_t type)
{
    level_zero_memory_provider_params_t params = {
        .level_zero_context_handle = CONTEXT,
        .level_zero_device_handle = type == UMF_MEMORY_TYPE_HOST ? NULL : DEVICE,
        .memory_type = type,
    };
    umf_memory_provider_handle_t made = NULL;

    CHECK(umfMemoryProviderCreate(umfLevelZeroMemoryProviderOps(), &params, &made) == UMF_RESULT_SUCCESS);
    return made;
}

static int setup(void **state)
{
    provider = provider_of(UMF_MEMORY_TYPE_DEVICE);
    return 0;
}

/* The driver has everything back, and the broker has nothing. */
static int teardown(void **state)
{
    umfMemoryProviderDestroy(provider);
    assert_int_equal(ze->alive, 0);
    assert_int_equal(ze->ipc_gets, 0);
    assert_int_equal(ze->ipc_opens, 0);
    *ze = (struct fake_ze){.page_size = FAKE_ZE_PAGE};
    return umf_nothing_left(state);
}

struct note {
    uint8_t handle[HANDLE];
};

static char *allocate(void)
{
    void *ptr = NULL;

    CHECK(umfMemoryProviderAlloc(provider, SIZE, 0, &ptr) == UMF_RESULT_SUCCESS);
    (void)snprintf(ptr, SIZE, "of a device");
    return ptr;
}

static struct note give(const void *ptr)
{
    struct note note;

    CHECK(umfMemoryProviderGetIPCHandle(provider, ptr, SIZE, note.handle) == UMF_RESULT_SUCCESS);
    return note;
}

static umf_result_t take(const struct note *note, void **ptr)
{
    struct note copy = *note;

    return umfMemoryProviderOpenIPCHandle(provider, copy.handle, ptr);
}

/* ---- another process --------------------------------------------------------------------------------------------- */

/* A consumer, forked before there was anything: opens the handle that it is sent, answers in the memory, and waits for
 * a message. */
static void consume(int channel, void *context)
{
    struct note note;
    void *ptr;

    (void)context;
    CHECK(take_bytes(channel, &note, sizeof(note)));
    CHECK(take(&note, &ptr) == UMF_RESULT_SUCCESS);
    CHECK(ze->ipc_opens == 1 && ze->context == CONTEXT && ze->device == DEVICE);
    CHECK(!strcmp(ptr, "of a device"));
    (void)snprintf((char *)ptr + SIZE - 10, 10, "answer");
    tell(channel);
    hear(channel);
    CHECK(!strcmp(ptr, "of a device"));
    CHECK(umfMemoryProviderCloseIPCHandle(provider, ptr, 8) == UMF_RESULT_SUCCESS);
    CHECK(ze->ipc_opens == 0);
}

static void produce(int channel, void *context)
{
    struct note note;

    (void)context;
    note = give(allocate());
    CHECK(pass_bytes(channel, &note, sizeof(note)));
    hear(channel);
}

static void share_with_another(bool brokers_die)
{
    struct child consumer;
    struct note note;
    char *ptr;

    child_start(&consumer, consume, NULL);
    ptr = allocate();
    note = give(ptr);
    if (brokers_die)
        broker_kill_child(&observed);
    assert_true(pass_bytes(consumer.channel, &note, sizeof(note)));
    child_hear(&consumer);
    assert_string_equal(ptr + SIZE - 10, "answer");
    if (brokers_die)
        broker_kill_child(&observed);
    /* a consumer keeps what it has opened */
    assert_success(umfMemoryProviderPutIPCHandle(provider, note.handle));
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
    child_tell(&consumer);
    child_finish(&consumer);
    /* what was released without a broker is reported with the next call */
    assert_int_equal(memclient_broker_ping(NULL), 0);
}

/* umfLevelZeroMemoryProviderOps: handles for other processes. */
static void another_process(void **state)
{
    share_with_another(false);
}

/* umfLevelZeroMemoryProviderOps: restarts of the broker change nothing. */
static void brokers_that_die(void **state)
{
    share_with_another(true);
}

/* umfLevelZeroMemoryProviderOps: the handle goes with the process that made it, unless another has it open. */
static void a_producer_that_dies(void **state)
{
    struct child producer;
    struct note note;
    void *first, *second;

    child_start(&producer, produce, NULL);
    assert_true(take_bytes(producer.channel, &note, sizeof(note)));
    assert_success(take(&note, &first));
    child_kill(&producer);
    assert_string_equal(first, "of a device");
    assert_success(take(&note, &second));
    assert_string_equal(second, "of a device");
    assert_success(umfMemoryProviderCloseIPCHandle(provider, second, SIZE));
    assert_success(umfMemoryProviderCloseIPCHandle(provider, first, SIZE));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_result(take(&note, &first), UMF_RESULT_ERROR_INVALID_ARGUMENT);

    child_start(&producer, produce, NULL);
    assert_true(take_bytes(producer.channel, &note, sizeof(note)));
    child_kill(&producer);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_result(take(&note, &first), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

static umf_memory_pool_handle_t pool_of(umf_memory_provider_handle_t of)
{
    umf_memory_pool_handle_t pool = NULL;

    CHECK(umfPoolCreate(umfProxyPoolOps(), of, NULL, 0, &pool) == UMF_RESULT_SUCCESS);
    return pool;
}

#define POOL_HANDLE_MAX 512

static void consume_of_pool(int channel, void *context)
{
    union {
        uint64_t aligned;
        char bytes[POOL_HANDLE_MAX];
    } handle;
    umf_memory_pool_handle_t pool = pool_of(provider);
    void *ptr;

    (void)context;
    CHECK(take_bytes(channel, handle.bytes, sizeof(handle.bytes)));
    CHECK(umfOpenIPCHandle(pool, (umf_ipc_handle_t)(void *)handle.bytes, &ptr) == UMF_RESULT_SUCCESS);
    CHECK(!strcmp(ptr, "in a pool"));
    CHECK(umfCloseIPCHandle(ptr) == UMF_RESULT_SUCCESS);
    umfPoolDestroy(pool);
}

static void pools(void **state)
{
    umf_memory_pool_handle_t pool;
    char bytes[POOL_HANDLE_MAX] = "";
    umf_ipc_handle_t handle;
    struct child consumer;
    size_t size;
    void *ptr;

    child_start(&consumer, consume_of_pool, NULL);
    pool = pool_of(provider);
    ptr = umfPoolMalloc(pool, SIZE);
    assert_non_null(ptr);
    (void)snprintf(ptr, SIZE, "in a pool");
    assert_success(umfGetIPCHandle(ptr, &handle, &size));
    assert_true(size <= sizeof(bytes));
    memcpy(bytes, handle, size);
    assert_true(pass_bytes(consumer.channel, bytes, sizeof(bytes)));
    child_finish(&consumer);
    assert_success(umfPutIPCHandle(handle));
    assert_success(umfPoolFree(pool, ptr));
    umfPoolDestroy(pool);
}

/* ---- one process ------------------------------------------------------------------------------------------------- */

/* umfLevelZeroMemoryProviderOps: a handle can be opened until it is put as often as it was got. */
static void an_allocation_has_one_handle(void **state)
{
    struct note first, second;
    void *ptr = allocate();
    void *opened[2];
    size_t size = 0;

    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &size));
    assert_int_equal(size, HANDLE);
    first = give(ptr);
    second = give(ptr);
    assert_memory_equal(&first, &second, sizeof(first));
    assert_int_equal(ze->ipc_gets, 1);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_success(umfMemoryProviderPutIPCHandle(provider, first.handle));
    assert_success(take(&first, &opened[0]));
    assert_success(take(&first, &opened[1]));
    assert_success(umfMemoryProviderPutIPCHandle(provider, second.handle));
    assert_int_equal(ze->ipc_gets, 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(opened[i], "of a device");
        assert_success(umfMemoryProviderCloseIPCHandle(provider, opened[i], SIZE));
    }
    assert_result(umfMemoryProviderCloseIPCHandle(provider, opened[0], SIZE), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_result(take(&first, &opened[0]), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
}

/* umfLevelZeroMemoryProviderOps: a handle can be opened until the memory is freed. */
static void freeing_ends_it(void **state)
{
    void *ptr = allocate(), *other;
    struct note note = give(ptr);

    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
    assert_int_equal(ze->ipc_gets, 0);
    assert_result(take(&note, &other), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderPutIPCHandle(provider, note.handle));
}

/* umfLevelZeroMemoryProviderOps: a handle can be opened until its provider ends. */
static void a_provider_gives_back_what_is_left(void **state)
{
    umf_memory_provider_handle_t mine = provider;
    void *ptr = allocate(), *opened[2];
    struct note note = give(ptr);

    provider = provider_of(UMF_MEMORY_TYPE_SHARED);
    assert_success(take(&note, &opened[0]));
    assert_success(take(&note, &opened[1]));
    assert_int_equal(ze->ipc_opens, 2);
    umfMemoryProviderDestroy(provider);
    assert_int_equal(ze->ipc_opens, 0);
    provider = mine;
    (void)give(ptr);
    umfMemoryProviderDestroy(mine);
    assert_int_equal(ze->ipc_gets, 0);
    provider = provider_of(UMF_MEMORY_TYPE_DEVICE);
    assert_result(take(&note, &opened[0]), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
}

struct giver {
    void *ptr;
    struct note note;
    atomic_bool done;
};

static void *give_meanwhile(void *p)
{
    struct giver *giver = p;

    giver->note = give(giver->ptr);
    atomic_store(&giver->done, true);
    return NULL;
}

static void who_waits_for_the_broker_keeps_nobody_from_the_driver(void **state)
{
    struct giver givers[2] = {{.ptr = allocate()}};
    void *other = allocate();
    pid_t broker = broker_child(&observed);
    pthread_t threads[2];

    givers[1].ptr = givers[0].ptr;
    assert_ok(kill(broker, SIGSTOP));
    assert_int_equal(pthread_create(&threads[0], NULL, give_meanwhile, &givers[0]), 0);
    assert_true(WAIT_UNTIL(__atomic_load_n(&ze->ipc_gets, __ATOMIC_SEQ_CST) == 1));
    assert_int_equal(pthread_create(&threads[1], NULL, give_meanwhile, &givers[1]), 0);
    assert_success(umfMemoryProviderFree(provider, other, SIZE));
    assert_false(atomic_load(&givers[0].done));
    assert_ok(kill(broker, SIGCONT));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    /* an allocation has one handle */
    assert_int_equal(ze->ipc_gets, 1);
    assert_memory_equal(&givers[0].note, &givers[1].note, sizeof(struct note));
    assert_success(umfMemoryProviderFree(provider, givers[0].ptr, SIZE));
}

/* umfLevelZeroMemoryProviderOps: ptr is where the allocation starts, or UMF_RESULT_ERROR_INVALID_ARGUMENT. */
static void arguments(void **state)
{
    umf_memory_provider_handle_t other = provider_of(UMF_MEMORY_TYPE_DEVICE);
    char *ptr = allocate();
    struct note note = give(ptr);
    void *opened = NULL;
    size_t size;

    assert_result(umfMemoryProviderGetIPCHandleSize(provider, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &size));
    /* a handle is of a whole allocation */
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr + 4096, 4096, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderPutIPCHandle(provider, note.handle));
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr, SIZE + 1, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr, 0, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, NULL, SIZE, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr, SIZE, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, &size, 8, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, ptr, SIZE), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(provider, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, NULL, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    note = give(ptr);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, note.handle, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(other, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(other);
    /* the driver needs a device for it, and a provider of the host's memory has none */
    other = provider_of(UMF_MEMORY_TYPE_HOST);
    assert_result(umfMemoryProviderOpenIPCHandle(other, note.handle, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(other);
    assert_null(opened);
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
}

/* The checksum as the provider computes it. */
static void set_check(struct note *note)
{
    uint32_t check = UINT32_C(2166136261);

    for (size_t i = 8; i < HANDLE; i++)
        check = (check ^ note->handle[i]) * UINT32_C(16777619);
    memcpy(note->handle + 4, &check, sizeof(check));
}

/* umfLevelZeroMemoryProviderOps: UMF_RESULT_ERROR_INVALID_ARGUMENT. */
static void damaged_and_forged_handles(void **state)
{
    void *ptr = allocate(), *opened = NULL;
    struct note note = give(ptr), wrong;
    struct memclient_buffer *buffer;
    struct memclient_token token;

    for (size_t i = 0; i < HANDLE; i++) {
        wrong = note;
        wrong.handle[i] ^= 0x10;
        assert_result(take(&wrong, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(umfMemoryProviderPutIPCHandle(provider, wrong.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    /* the token, by a forger who can compute the checksum; then the driver's part */
    for (size_t i = 8; i < 40; i++) {
        wrong = note;
        wrong.handle[i] ^= 0x10;
        set_check(&wrong);
        assert_result(take(&wrong, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    wrong = note;
    wrong.handle[56 + 8] ^= 0x10;
    set_check(&wrong);
    assert_result(take(&wrong, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    /* the broker's own memory is not Level Zero's */
    assert_int_equal(memclient_alloc(NULL, SIZE, NULL, &buffer), 0);
    assert_int_equal(memclient_share(buffer, NULL, &token), 0);
    wrong = note;
    memcpy(wrong.handle + 8, token.bytes, sizeof(token.bytes));
    set_check(&wrong);
    assert_result(take(&wrong, &opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    memclient_buffer_unref(buffer);
    assert_null(opened);
    assert_int_equal(ze->ipc_opens, 0);
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
}

/* umfLevelZeroMemoryProviderOps: what the driver cannot share is UMF_RESULT_ERROR_NOT_SUPPORTED. */
static void what_the_driver_refuses(void **state)
{
    void *ptr = allocate(), *opened;
    struct note note;

    ze->get_ipc_result = L0_UNSUPPORTED_FEATURE;
    assert_result(umfMemoryProviderGetIPCHandle(provider, ptr, SIZE, note.handle), UMF_RESULT_ERROR_NOT_SUPPORTED);
    ze->get_ipc_result = L0_DEVICE_LOST;
    assert_native(provider, umfMemoryProviderGetIPCHandle(provider, ptr, SIZE, note.handle), L0_DEVICE_LOST,
                  "zeMemGetIpcHandle: ZE_RESULT_ERROR_DEVICE_LOST");
    ze->get_ipc_result = 0;
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    note = give(ptr);
    ze->open_ipc_result = L0_OUT_OF_DEVICE_MEMORY;
    assert_native(provider, take(&note, &opened), L0_OUT_OF_DEVICE_MEMORY,
                  "zeMemOpenIpcHandle: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY");
    ze->open_ipc_result = 0;
    assert_success(take(&note, &opened));
    ze->close_ipc_result = L0_UNKNOWN;
    assert_native(provider, umfMemoryProviderCloseIPCHandle(provider, opened, SIZE), L0_UNKNOWN,
                  "zeMemCloseIpcHandle: ZE_RESULT_ERROR_UNKNOWN");
    assert_success(umfMemoryProviderFree(provider, ptr, SIZE));
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static int with_loader(void)
{
    const struct CMUnitTest tests[] = {
        TEST(another_process),
        TEST(brokers_that_die),
        TEST(a_producer_that_dies),
        TEST(pools),
        TEST(an_allocation_has_one_handle),
        TEST(freeing_ends_it),
        TEST(a_provider_gives_back_what_is_left),
        TEST(who_waits_for_the_broker_keeps_nobody_from_the_driver),
        TEST(arguments),
        TEST(damaged_and_forged_handles),
        TEST(what_the_driver_refuses),
    };
    void *library = dlopen(L0_LOADER, RTLD_NOW | RTLD_LOCAL);

    ze = library ? dlsym(library, "fake_ze") : NULL;
    if (!ze) {
        print_error("the loader of the tests was not found: %s\n", dlerror());
        return 1;
    }
    return test_run(tests, umf_group_setup, umf_group_teardown);
}

static void loader(void **state)
{
    char path[2 * PATH_MAX];

    beside_us(path, sizeof(path), ".libs");
    assert_int_equal(run_again(path, "with-loader"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loader)};

    if (argc > 1 && !strcmp(argv[1], "with-loader"))
        return with_loader();
    return test_run(tests, NULL, NULL);
}
