/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share memory by handles: forked before there was anything to inherit, executed, of another user,
 * killed, and with a broker that is killed meanwhile.
 *
 * The program is also the one that is executed: `test-ipc-processes HANDLE ADDRESS` opens.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/umf/handles.h"

/* ---- children ---------------------------------------------------------------------------------------------------- */

static void send_note(int channel, const struct note *note)
{
    CHECK(send(channel, note, sizeof(*note), MSG_NOSIGNAL) == sizeof(*note));
}

static void receive_note(int channel, struct note *note)
{
    CHECK(wait_readable(channel));
    CHECK(recv(channel, note, sizeof(*note), 0) == sizeof(*note));
}

/* A consumer: opens the handle that it is sent, follows the pointer in the memory, answers there, and waits for a
 * message. */
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
    assert_string_equal(((struct entry *)(void *)note.address)->next->text, "answer");
    /* it keeps the memory */
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    child_tell(&consumer);
    child_finish(&consumer);
}

/* umfMemoryProviderOpenIPCHandle: memory of the broker lies at the same address in all processes where that is free. */
static void test_another_process(void **state)
{
    share_with(NULL);
}

static void test_another_user(void **state)
{
    uid_t stranger = UID_STRANGER;

    test_needs_root();
    share_with(&stranger);
}

struct sent {
    umf_memory_pool_handle_t pool;
    char bytes[1024];
};

static void consume_in_pool(int channel, void *context)
{
    struct sent *sent = context;
    void *ptr = NULL;

    CHECK(umfOpenIPCHandle(sent->pool, (umf_ipc_handle_t)sent->bytes, &ptr) == UMF_RESULT_SUCCESS);
    CHECK(!strcmp(ptr, "from the parent"));
    memcpy(ptr, "from the child", sizeof("from the child"));
    CHECK(umfCloseIPCHandle(ptr) == UMF_RESULT_SUCCESS);
}

/* umfOpenIPCHandle, of a handle that came as bytes, and of a copy after the handle was put. */
static void test_pools(void **state)
{
    umf_memory_provider_handle_t other;
    umf_memory_pool_handle_t producer;
    umf_ipc_handle_t handle = NULL;
    struct sent sent;
    size_t bytes = 0;
    char *from;

    assert_success(create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &other));
    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, 0, &producer));
    assert_success(umfPoolCreate(umfProxyPoolOps(), other, NULL, 0, &sent.pool));
    from = umfPoolMalloc(producer, 2 * page);
    memcpy(from + page, "from the parent", sizeof("from the parent"));
    assert_success(umfGetIPCHandle(from + page, &handle, &bytes));
    assert_true(bytes <= sizeof(sent.bytes));
    memcpy(sent.bytes, handle, bytes);
    child_run(consume_in_pool, &sent);
    assert_string_equal(from + page, "from the child");
    assert_success(umfPutIPCHandle(handle));
    memcpy(from + page, "from the parent", sizeof("from the parent"));
    child_run(consume_in_pool, &sent);
    assert_string_equal(from + page, "from the child");
    assert_success(umfFree(from));
    umfPoolDestroy(producer);
    umfPoolDestroy(sent.pool);
    umfMemoryProviderDestroy(other);
}

/* The producer is killed. A consumer that has opened the memory keeps it, and others can open it as long as it does. */
static void test_producer_killed(void **state)
{
    struct child producer, consumer;
    struct note note;
    char *here;
    void *ptr;

    child_start(&producer, produce_there, NULL);
    child_start(&consumer, consume, NULL);
    receive_note(producer.channel, &note);
    here = open_it(&note);
    child_kill(&producer);
    assert_string_equal(((struct entry *)(void *)here)->text, "first");
    send_note(consumer.channel, &note);
    child_hear(&consumer);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, here, size));
    child_tell(&consumer);
    child_finish(&consumer);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_result(umfMemoryProviderOpenIPCHandle(provider, note.handle, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* Handles and opened memory survive when brokers are killed. */
static void test_broker_killed(void **state)
{
    struct child consumer;
    struct note note, again;
    char *here;

    child_start(&consumer, consume, NULL);
    note = produce();
    broker_kill_child(&observed);
    send_note(consumer.channel, &note);
    child_hear(&consumer);
    broker_kill_child(&observed);
    here = open_it(&note);
    assert_string_equal(((struct entry *)(void *)(here + size - page))->text, "answer");
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address, size, again.handle));
    assert_memory_equal(again.handle, note.handle, HANDLE);
    broker_kill_child(&observed);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, here, size));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    child_tell(&consumer);
    child_finish(&consumer);
    /* what was released without a broker is reported with the next call */
    assert_int_equal(memclient_broker_ping(NULL), 0);
}

/* A handle of another broker is invalid here. */
static void test_another_broker(void **state)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t there;
    struct broker_process other;
    uint8_t handle[HANDLE];
    void *ptr, *none;

    broker_start(&other, NULL, 0);
    options.socket = other.socket;
    assert_int_equal(memclient_context_open(&options, &params.context), 0);
    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &there));
    assert_success(umfMemoryProviderAlloc(there, page, 0, &ptr));
    assert_success(umfMemoryProviderGetIPCHandle(there, ptr, page, handle));
    assert_result(umfMemoryProviderOpenIPCHandle(provider, handle, &none), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(there);
    memclient_context_close(params.context);
    broker_stop(&other);
}

/* ---- exec -------------------------------------------------------------------------------------------------------- */

static int look_at(struct entry *first, const char *address)
{
    /* a sanitizer's shadow may be anywhere */
    if ((uintptr_t)first != strtoull(address, NULL, 16))
        return TEST_ASAN || TEST_TSAN ? 0 : 4;
    if (strcmp(first->text, "first") != 0 || strcmp(first->next->text, "second") != 0)
        return 5;
    (void)snprintf(first->text, sizeof(first->text), "executed");
    return 0;
}

/* The executed program: returns 0 if all is well. */
static int executed(const char *text, const char *address)
{
    umf_memory_provider_handle_t own;
    struct memclient_token halves[2];
    struct entry *first;
    int rc;

    /* a handle is as long as two tokens, and a token's text is its bytes in hexadecimal */
    if (memclient_token_parse(text, &halves[1]) == 0 || strlen(text) != 2 * (MEMCLIENT_TOKEN_TEXT_SIZE - 1))
        return 1;
    for (int i = 0; i < 2; i++) {
        char half[MEMCLIENT_TOKEN_TEXT_SIZE] = {0};

        memcpy(half, text + i * (MEMCLIENT_TOKEN_TEXT_SIZE - 1), (MEMCLIENT_TOKEN_TEXT_SIZE - 1));
        if (memclient_token_parse(half, &halves[i]))
            return 2;
    }
    if (create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &own) ||
        umfMemoryProviderOpenIPCHandle(own, halves, (void **)&first))
        return 3;
    rc = look_at(first, address);
    if (umfMemoryProviderCloseIPCHandle(own, first, 8))
        rc = 6;
    umfMemoryProviderDestroy(own);
    return rc;
}

static void execute(int channel, void *context)
{
    const struct note *note = context;
    char text[2 * MEMCLIENT_TOKEN_TEXT_SIZE], address[32], program[PATH_MAX] = "";
    struct memclient_token halves[2];

    (void)channel;
    /* executed by its path, since under valgrind the link leads to valgrind */
    CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    memcpy(halves, note->handle, sizeof(halves));
    memclient_token_format(&halves[0], text);
    memclient_token_format(&halves[1], text + (MEMCLIENT_TOKEN_TEXT_SIZE - 1));
    snprintf(address, sizeof(address), "%llx", (unsigned long long)(uintptr_t)note->address);
    execl(program, "executed", text, address, (char *)NULL);
    CHECK(!"executed");
}

static void test_another_program(void **state)
{
    struct note note = produce();

    child_run(execute, &note);
    if (!TEST_ASAN && !TEST_TSAN)
        assert_string_equal(((struct entry *)(void *)note.address)->text, "executed");
    assert_success(umfMemoryProviderFree(provider, note.address, size));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_another_process), TEST(test_another_user),   TEST(test_pools),           TEST(test_producer_killed),
        TEST(test_broker_killed),   TEST(test_another_broker), TEST(test_another_program),
    };

    if (argc == 3)
        return executed(argv[1], argv[2]);
    return test_run(tests, group_setup, umf_group_teardown);
}
