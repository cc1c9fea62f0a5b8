/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of shared memory: their bytes, what is made of damaged ones, and processes that share: forked before there
 * was anything to inherit, executed, of another user, killed, with a broker that is killed in between.
 *
 * The same program is also the one that others execute: `test-ipc-shared HANDLE ADDRESS` opens.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memclient/umf/pools/pool_proxy.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"
#include "tests/unit/umf/umf.h"

#define HANDLE 64
#define PAGES 8

/* What lies in shared memory; `next` points to another one there. */
struct entry {
    struct entry *next;
    char text[32];
};

struct note {
    uint8_t handle[HANDLE];
    char *address; /* the producer's */
};

static umf_memory_provider_handle_t provider;
static size_t page, size;

static umf_result_t create(unsigned protection, umf_memory_provider_handle_t *made)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.visibility = UMF_MEM_MAP_SHARED;
    params.protection = protection;
    return umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, made);
}

static int setup(void **state)
{
    (void)state;
    assert_success(create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &provider));
    return 0;
}

static int teardown(void **state)
{
    umfMemoryProviderDestroy(provider);
    return umf_nothing_left(state);
}

/* Two entries, the first in the first page and the second in the last. */
static void fill(char *ptr)
{
    struct entry *first = (struct entry *)ptr, *second = (struct entry *)(ptr + size - page);

    *first = (struct entry){second, "first"};
    *second = (struct entry){NULL, "second"};
}

static struct note produce(void)
{
    struct note note;
    void *ptr;

    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    fill(ptr);
    assert_success(umfMemoryProviderGetIPCHandle(provider, ptr, size, note.handle));
    note.address = ptr;
    return note;
}

static char *open_it(const struct note *note)
{
    void *ptr;

    assert_success(umfMemoryProviderOpenIPCHandle(provider, (void *)(uintptr_t)note->handle, &ptr));
    return ptr;
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

static void test_same_bytes(void **state)
{
    struct note note = produce(), again;
    size_t bytes = 0;
    uint64_t before;

    (void)state;
    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &bytes));
    assert_int_equal(bytes, HANDLE);
    before = umf_requests();
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address, size, again.handle));
    assert_memory_equal(note.handle, again.handle, HANDLE);
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address + page, page, again.handle));
    assert_memory_not_equal(note.handle, again.handle, HANDLE);
    assert_int_equal(umf_requests(), before);
    assert_success(umfMemoryProviderPutIPCHandle(provider, again.handle));
    assert_success(umfMemoryProviderPutIPCHandle(provider, note.handle));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    /* also when the memory is gone */
    assert_success(umfMemoryProviderPutIPCHandle(provider, note.handle));
}

static void test_whose(void **state)
{
    umf_memory_provider_handle_t other;
    struct note note = produce();
    char *opened, local;

    (void)state;
    assert_success(create(UMF_PROTECTION_READ, &other));
    opened = open_it(&note);
    assert_result(umfMemoryProviderGetIPCHandle(other, note.address, size, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, &local, 1, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, opened, size, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, note.address, size + page, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, note.address, 0, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, note.address + 1, page, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(other, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    /* what was opened is closed, not freed; and by who opened it */
    assert_result(umfMemoryProviderFree(provider, opened, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(other, opened, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, size));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    umfMemoryProviderDestroy(other);
}

static void test_damaged(void **state)
{
    struct note note = produce(), damaged;
    uint8_t zeros[HANDLE] = {0};
    void *ptr = &ptr;

    (void)state;
    for (unsigned bit = 0; bit < HANDLE * 8; bit++) {
        damaged = note;
        damaged.handle[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_result(umfMemoryProviderOpenIPCHandle(provider, damaged.handle, &ptr),
                      UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(umfMemoryProviderPutIPCHandle(provider, damaged.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    assert_result(umfMemoryProviderOpenIPCHandle(provider, zeros, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(ptr, &ptr);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
}

/* A forger can mend the check value, and no more. */
static void seal(uint8_t *handle)
{
    uint32_t check = UINT32_C(2166136261);

    for (size_t i = 8; i < HANDLE; i++)
        check = (check ^ handle[i]) * UINT32_C(16777619);
    memcpy(handle + 4, &check, sizeof(check));
}

static void test_forged(void **state)
{
    const struct note note = produce();
    const struct {
        uint64_t offset, length;
    } parts[] = {
        {0, size + 1}, {0, UINT64_MAX}, {page, size},     {size, page}, {UINT64_MAX - page + 1, page},
        {1, page},     {0, 0},          {UINT64_MAX, 2},  {page, 0},
    };
    struct note forged;
    void *ptr;

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        forged = note;
        memcpy(forged.handle + 40, &parts[i].offset, 8);
        memcpy(forged.handle + 48, &parts[i].length, 8);
        seal(forged.handle);
        assert_result(umfMemoryProviderOpenIPCHandle(provider, forged.handle, &ptr),
                      UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    for (unsigned i = 8; i < 40; i++) {
        forged = note;
        forged.handle[i] ^= 1;
        seal(forged.handle);
        assert_result(umfMemoryProviderOpenIPCHandle(provider, forged.handle, &ptr),
                      UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    forged = note;
    seal(forged.handle);
    assert_memory_equal(forged.handle, note.handle, HANDLE);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
}

/* ---- in one process -------------------------------------------------------------------------------------- */

static void test_here(void **state)
{
    struct note note = produce();
    char *one = open_it(&note), *two = open_it(&note);

    (void)state;
    assert_true(one != note.address && two != note.address && one != two);
    assert_string_equal(((struct entry *)one)->text, "first");
    one[page] = 3;
    assert_true(two[page] == 3 && note.address[page] == 3);
    /* in any order; the size need not be known */
    assert_success(umfMemoryProviderCloseIPCHandle(provider, one, 8));
    assert_int_equal(two[page], 3);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, one, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, two + page, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_int_equal(two[page], 3);
    /* as long as somebody has it, it can be opened */
    one = open_it(&note);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, two, size));
    assert_string_equal(((struct entry *)one)->text, "first");
    assert_success(umfMemoryProviderCloseIPCHandle(provider, one, size));
    assert_int_equal(umf_buffers(), 0);
    assert_result(umfMemoryProviderOpenIPCHandle(provider, note.handle, (void **)&one),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, two, size));
}

/* A part has a handle of its own; what was freed of the rest is not seen through it. */
static void test_parts(void **state)
{
    struct note note = produce(), part;
    char *opened;

    (void)state;
    note.address[2 * page] = 9;
    assert_success(umfMemoryProviderAllocationSplit(provider, note.address, size, 2 * page));
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address + 2 * page, page + 100, part.handle));
    assert_success(umfMemoryProviderFree(provider, note.address, 2 * page));
    opened = open_it(&part);
    assert_int_equal(opened[0], 9);
    /* a part that was freed while another has it open stays as it is for that one */
    assert_success(umfMemoryProviderFree(provider, note.address + 2 * page, size - 2 * page));
    assert_int_equal(opened[0], 9);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, page + 100));
}

static void test_end_closes(void **state)
{
    umf_memory_provider_handle_t consumer;
    struct note note = produce();
    void *ptr;

    (void)state;
    assert_success(create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &consumer));
    assert_success(umfMemoryProviderOpenIPCHandle(consumer, note.handle, &ptr));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_int_equal(umf_buffers(), 1);
    umfMemoryProviderDestroy(consumer);
    assert_int_equal(umf_buffers(), 0);
}

static void do_write(int channel, void *context)
{
    (void)channel;
    *(volatile char *)context = 1;
}

/* Consumers get no more than the producer had, nor more than they asked for. */
static void test_rights(void **state)
{
    umf_memory_provider_handle_t reader;
    struct note note = produce();
    void *ptr, *source;

    (void)state;
    assert_success(create(UMF_PROTECTION_READ, &reader));
    assert_success(umfMemoryProviderOpenIPCHandle(reader, note.handle, &ptr));
    assert_string_equal(((struct entry *)ptr)->text, "first");
    assert_int_equal(child_signal(do_write, ptr), SIGSEGV);
    assert_success(umfMemoryProviderCloseIPCHandle(reader, ptr, size));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_success(umfMemoryProviderAlloc(reader, page, 0, &source));
    assert_success(umfMemoryProviderGetIPCHandle(reader, source, page, note.handle));
    umfMemoryProviderDestroy(reader);
}

static void *share_and_open(void *arg)
{
    const char *address = arg;
    uint8_t handle[HANDLE];

    for (int i = 0; i < 50; i++) {
        void *ptr;

        assert_success(umfMemoryProviderGetIPCHandle(provider, address, size, handle));
        assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, &ptr));
        assert_string_equal(((struct entry *)ptr)->text, "first");
        assert_success(umfMemoryProviderCloseIPCHandle(provider, ptr, size));
        assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[6];
    void *ptr;

    (void)state;
    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    fill(ptr);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, share_and_open, ptr), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_success(umfMemoryProviderFree(provider, ptr, size));
}

/* Of a slab whose handle is there, and that is open, nothing more is asked for. */
static void test_pools_ask_once(void **state)
{
    umf_memory_pool_handle_t producer, consumer;
    umf_ipc_handle_t handle, second;
    void *ptr, *a, *b;
    uint64_t before;
    size_t bytes;

    (void)state;
    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, 0, &producer));
    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, 0, &consumer));
    ptr = umfPoolMalloc(producer, size);
    assert_non_null(ptr);
    fill(ptr);
    assert_success(umfGetIPCHandle(ptr, &handle, &bytes));
    assert_success(umfOpenIPCHandle(consumer, handle, &a));
    before = umf_requests();
    assert_success(umfGetIPCHandle((char *)ptr + size - page, &second, &bytes));
    assert_success(umfOpenIPCHandle(consumer, second, &b));
    assert_string_equal(((struct entry *)b)->text, "second");
    assert_ptr_equal(b, (char *)a + size - page);
    assert_ptr_equal(umfPoolByPtr(b), consumer);
    assert_success(umfCloseIPCHandle(a));
    assert_int_equal(umf_requests(), before);
    assert_success(umfCloseIPCHandle(b));
    assert_result(umfCloseIPCHandle(b), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfPutIPCHandle(handle));
    assert_success(umfPutIPCHandle(second));
    assert_success(umfPoolFree(producer, ptr));
    umfPoolDestroy(consumer);
    umfPoolDestroy(producer);
}

/* ---- children -------------------------------------------------------------------------------------------- */

static void send_note(int channel, const struct note *note)
{
    CHECK(send(channel, note, sizeof(*note), MSG_NOSIGNAL) == sizeof(*note));
}

static void receive_note(int channel, struct note *note)
{
    CHECK(wait_readable(channel));
    CHECK(recv(channel, note, sizeof(*note), 0) == sizeof(*note));
}

/* What consumers do: opens what it is told of, follows the pointer in it, answers there, and stays until it hears. */
static void consume(int channel, void *context)
{
    umf_memory_provider_handle_t own;
    const uid_t *uid = context;
    struct entry *first;
    struct note note;

    if (uid)
        become(*uid);
    CHECK(create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &own) == UMF_RESULT_SUCCESS);
    receive_note(channel, &note);
    CHECK(umfMemoryProviderOpenIPCHandle(own, note.handle, (void **)&first) == UMF_RESULT_SUCCESS);
    CHECK((char *)first == note.address);
    CHECK(!strcmp(first->text, "first"));
    CHECK(!strcmp(first->next->text, "second"));
    (void)snprintf(first->next->text, sizeof(first->next->text), "answer");
    tell(channel);
    hear(channel);
    CHECK(!strcmp(first->next->text, "answer"));
    CHECK(umfMemoryProviderCloseIPCHandle(own, first, 8) == UMF_RESULT_SUCCESS);
    umfMemoryProviderDestroy(own);
}

static void produce_there(int channel, void *context)
{
    struct note note;
    void *ptr;

    (void)context;
    CHECK(umfMemoryProviderAlloc(provider, size, 0, &ptr) == UMF_RESULT_SUCCESS);
    fill(ptr);
    CHECK(umfMemoryProviderGetIPCHandle(provider, ptr, size, note.handle) == UMF_RESULT_SUCCESS);
    note.address = ptr;
    send_note(channel, &note);
    hear(channel);
}

static void share_with(uid_t *uid)
{
    struct child consumer;
    struct note note;

    child_start(&consumer, consume, uid);
    note = produce();
    send_note(consumer.channel, &note);
    child_hear(&consumer);
    assert_string_equal(((struct entry *)note.address)->next->text, "answer");
    /* it keeps what it has */
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_int_equal(umf_buffers(), 1);
    child_tell(&consumer);
    child_finish(&consumer);
}

static void test_another_process(void **state)
{
    (void)state;
    share_with(NULL);
}

static void test_another_user(void **state)
{
    uid_t stranger = UID_STRANGER;

    (void)state;
    test_needs_root();
    share_with(&stranger);
}

/* The producer is killed: who has opened it has it, and as long as he does others can open it. */
static void test_producer_killed(void **state)
{
    struct child producer, consumer;
    struct note note;
    char *here;
    void *ptr;

    (void)state;
    child_start(&producer, produce_there, NULL);
    child_start(&consumer, consume, NULL);
    receive_note(producer.channel, &note);
    here = open_it(&note);
    child_kill(&producer);
    assert_string_equal(((struct entry *)here)->text, "first");
    send_note(consumer.channel, &note);
    child_hear(&consumer);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, here, size));
    child_tell(&consumer);
    child_finish(&consumer);
    assert_true(WAIT_UNTIL(umf_buffers() == 0));
    assert_result(umfMemoryProviderOpenIPCHandle(provider, note.handle, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* Handles, and what was opened, outlive brokers that are killed. */
static void test_broker_killed(void **state)
{
    struct child consumer;
    struct note note, again;
    char *here;

    (void)state;
    child_start(&consumer, consume, NULL);
    note = produce();
    broker_kill_child(&umf_broker);
    send_note(consumer.channel, &note);
    child_hear(&consumer);
    broker_kill_child(&umf_broker);
    here = open_it(&note);
    assert_string_equal(((struct entry *)(here + size - page))->text, "answer");
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address, size, again.handle));
    assert_memory_equal(again.handle, note.handle, HANDLE);
    broker_kill_child(&umf_broker);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, here, size));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    child_tell(&consumer);
    child_finish(&consumer);
    /* what was given back without a broker is told with the next call */
    assert_int_equal(memclient_ping(NULL), 0);
}

/* A handle of another broker is none here. */
static void test_another_broker(void **state)
{
    struct memclient_options options = MEMCLIENT_OPTIONS_INIT;
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t there;
    struct broker_process other;
    uint8_t handle[HANDLE];
    void *ptr, *none;

    (void)state;
    broker_start(&other, NULL, 0);
    options.socket = other.socket;
    assert_int_equal(memclient_open(&options, &params.context), 0);
    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &there));
    assert_success(umfMemoryProviderAlloc(there, page, 0, &ptr));
    assert_success(umfMemoryProviderGetIPCHandle(there, ptr, page, handle));
    assert_result(umfMemoryProviderOpenIPCHandle(provider, handle, &none), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(there);
    memclient_close(params.context);
    broker_stop(&other);
}

/* ---- exec ------------------------------------------------------------------------------------------------ */

/* The program's other half: 0 if all is as it should be. */
static int executed(const char *text, const char *address)
{
    umf_memory_provider_handle_t own;
    struct memclient_token halves[2];
    struct entry *first;

    /* a handle is as long as two tokens, and a token's text is the bytes in hexadecimal */
    if (memclient_token_parse(text, &halves[1]) == 0 || strlen(text) != 2 * MEMCLIENT_TOKEN_TEXT)
        return 1;
    for (int i = 0; i < 2; i++) {
        char half[MEMCLIENT_TOKEN_TEXT + 1] = {0};

        memcpy(half, text + i * MEMCLIENT_TOKEN_TEXT, MEMCLIENT_TOKEN_TEXT);
        if (memclient_token_parse(half, &halves[i]))
            return 2;
    }
    if (create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &own) ||
        umfMemoryProviderOpenIPCHandle(own, halves, (void **)&first))
        return 3;
    /* a sanitizer's shadow may lie anywhere */
    if ((uintptr_t)first != strtoull(address, NULL, 16))
        return TEST_ASAN || TEST_TSAN ? 0 : 4;
    if (strcmp(first->text, "first") != 0 || strcmp(first->next->text, "second") != 0)
        return 5;
    (void)snprintf(first->text, sizeof(first->text), "executed");
    return umfMemoryProviderCloseIPCHandle(own, first, 8);
}

static void execute(int channel, void *context)
{
    const struct note *note = context;
    char text[2 * MEMCLIENT_TOKEN_TEXT + 1], address[32];
    struct memclient_token halves[2];

    (void)channel;
    memcpy(halves, note->handle, sizeof(halves));
    memclient_token_format(&halves[0], text);
    memclient_token_format(&halves[1], text + MEMCLIENT_TOKEN_TEXT);
    snprintf(address, sizeof(address), "%llx", (unsigned long long)(uintptr_t)note->address);
    execl("/proc/self/exe", "executed", text, address, (char *)NULL);
    CHECK(!"executed");
}

static void test_another_program(void **state)
{
    struct note note = produce();

    (void)state;
    child_run(execute, &note);
    if (!TEST_ASAN && !TEST_TSAN)
        assert_string_equal(((struct entry *)note.address)->text, "executed");
    assert_success(umfMemoryProviderFree(provider, note.address, size));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_same_bytes),
        TEST(test_whose),
        TEST(test_damaged),
        TEST(test_forged),
        TEST(test_here),
        TEST(test_parts),
        TEST(test_end_closes),
        TEST(test_rights),
        TEST(test_threads),
        TEST(test_pools_ask_once),
        TEST(test_another_process),
        TEST(test_another_user),
        TEST(test_producer_killed),
        TEST(test_broker_killed),
        TEST(test_another_broker),
        TEST(test_another_program),
    };

    page = (size_t)page_size();
    size = PAGES * page;
    if (argc == 3)
        return executed(argv[1], argv[2]);
    return test_run(tests, umf_group_setup, umf_group_teardown);
}
