/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process has closed stays mapped, so opening the same handle again makes no call. It goes when the memory does,
 * whatever the process does.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/umf/handles.h"

#define ROUNDS 100

static void receive_note(int channel, struct note *note)
{
    CHECK(wait_readable(channel));
    CHECK(recv(channel, note, sizeof(*note), 0) == sizeof(*note));
}

static umf_memory_provider_handle_t own_provider(unsigned protection)
{
    umf_memory_provider_handle_t own;

    CHECK(create(protection, &own) == UMF_RESULT_SUCCESS);
    return own;
}

static struct entry *open_note(umf_memory_provider_handle_t own, const struct note *note)
{
    struct entry *first = NULL;

    CHECK(umfMemoryProviderOpenIPCHandle(own, (void *)(uintptr_t)note->handle, (void **)&first) == UMF_RESULT_SUCCESS);
    return first;
}

static void close_it(umf_memory_provider_handle_t own, void *ptr)
{
    CHECK(umfMemoryProviderCloseIPCHandle(own, ptr, size) == UMF_RESULT_SUCCESS);
}

static void start(struct child *child, child_body *body, struct note *note)
{
    child_start(child, body, NULL);
    *note = produce();
    assert_int_equal(send(child->channel, note, sizeof(*note), MSG_NOSIGNAL), sizeof(*note));
    child_hear(child);
}

static void finish(struct child *child)
{
    child_tell(child);
    child_finish(child);
    observer_expect_nothing();
}

/* ---- again ------------------------------------------------------------------------------------------------------- */

static void open_often(int channel, void *context)
{
    umf_memory_provider_handle_t own = own_provider(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE);
    struct entry *first;
    struct note note;

    (void)context;
    receive_note(channel, &note);
    close_it(own, open_note(own, &note));
    tell(channel);
    hear(channel);
    for (unsigned i = 0; i < ROUNDS; i++) {
        first = open_note(own, &note);
        CHECK((char *)first == note.address);
        CHECK(!strcmp(first->text, "later"));
        close_it(own, first);
    }
    tell(channel);
    hear(channel);
    /* opened twice, and each is closed separately */
    first = open_note(own, &note);
    CHECK(open_note(own, &note) == first);
    close_it(own, first);
    CHECK(!strcmp(first->text, "later"));
    close_it(own, first);
    CHECK(umfMemoryProviderCloseIPCHandle(own, first, size) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(own);
    tell(channel);
    hear(channel);
}

static void opening_again_makes_no_call(void **state)
{
    struct child child;
    struct note note;
    struct entry *entry;
    uint64_t requests;

    start(&child, open_often, &note);
    entry = (void *)note.address;
    (void)snprintf(entry->text, sizeof(entry->text), "later");
    requests = observer_requests();
    child_tell(&child);
    child_hear(&child);
    assert_int_equal(observer_requests(), requests);
    child_tell(&child);
    child_hear(&child);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    /* destroying the provider released all that it kept, though the process lives */
    observer_expect_nothing();
    finish(&child);
}

/* ---- rights ------------------------------------------------------------------------------------------------------ */

static unsigned access_at(const void *ptr)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    CHECK(!memclient_address_query(ptr, &info));
    return info.access;
}

static void open_with_rights(int channel, void *context)
{
    umf_memory_provider_handle_t reader = own_provider(UMF_PROTECTION_READ);
    umf_memory_provider_handle_t writer = own_provider(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE);
    struct entry *first;
    struct note note;

    (void)context;
    receive_note(channel, &note);
    for (unsigned i = 0; i < 10; i++) {
        first = open_note(writer, &note);
        CHECK(access_at(first) == (MEMCLIENT_READ | MEMCLIENT_WRITE));
        close_it(writer, first);
        first = open_note(reader, &note);
        CHECK(access_at(first) == MEMCLIENT_READ);
        close_it(reader, first);
    }
    umfMemoryProviderDestroy(reader);
    umfMemoryProviderDestroy(writer);
    tell(channel);
    hear(channel);
}

static void I2_each_provider_opens_with_its_own_rights(void **state)
{
    struct child child;
    struct note note;

    start(&child, open_with_rights, &note);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    finish(&child);
}

/* ---- the end of the memory --------------------------------------------------------------------------------------- */

/* By a pool, as programs do. */
static umf_memory_pool_handle_t own_pool(void)
{
    umf_memory_provider_handle_t own = own_provider(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE);
    umf_memory_pool_handle_t pool;

    CHECK(umfPoolCreate(umfProxyPoolOps(), own, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool) == UMF_RESULT_SUCCESS);
    return pool;
}

struct pool_note {
    size_t bytes;
    uint64_t handle[64];
};

static void close_and_be_idle(int channel, void *context)
{
    umf_memory_pool_handle_t pool = own_pool();
    struct pool_note note;
    void *ptr;

    (void)context;
    CHECK(wait_readable(channel));
    CHECK(recv(channel, &note, sizeof(note), 0) == sizeof(note));
    CHECK(umfOpenIPCHandle(pool, (umf_ipc_handle_t)note.handle, &ptr) == UMF_RESULT_SUCCESS);
    CHECK(!strcmp(ptr, "here"));
    CHECK(umfCloseIPCHandle(ptr) == UMF_RESULT_SUCCESS);
    tell(channel);
    hear(channel);
    /* it is stale, and its mapping is gone */
    CHECK(umfOpenIPCHandle(pool, (umf_ipc_handle_t)note.handle, &ptr) == UMF_RESULT_ERROR_INVALID_ARGUMENT);
    tell(channel);
    hear(channel);
    umfPoolDestroy(pool);
}

static uint64_t bytes_of_broker(void)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

    assert_int_equal(memclient_broker_query(NULL, &status), 0);
    return status.bytes;
}

static void maker_frees(bool broker_dies)
{
    umf_memory_pool_handle_t pool;
    struct pool_note note = {.bytes = 0};
    umf_ipc_handle_t handle;
    struct child child;
    char *ptr;

    child_start(&child, close_and_be_idle, NULL);
    pool = own_pool();
    ptr = umfPoolMalloc(pool, 1 << 20);
    assert_non_null(ptr);
    memcpy(ptr, "here", sizeof("here"));
    assert_success(umfGetIPCHandle(ptr, &handle, &note.bytes));
    assert_true(note.bytes <= sizeof(note.handle));
    memcpy(note.handle, handle, note.bytes);
    assert_int_equal(send(child.channel, &note, sizeof(note), MSG_NOSIGNAL), sizeof(note));
    child_hear(&child);
    if (broker_dies)
        broker_kill_child(&observed);
    assert_success(umfPutIPCHandle(handle));
    assert_success(umfPoolFree(pool, ptr));
    umfPoolDestroy(pool);
    assert_true(WAIT_UNTIL(bytes_of_broker() <= page));
    child_tell(&child);
    child_hear(&child);
    observer_expect_nothing();
    finish(&child);
}

static void I4_what_was_closed_goes_when_its_maker_frees_it(void **state)
{
    maker_frees(false);
}

static void I4_what_was_closed_goes_over_the_brokers_death(void **state)
{
    maker_frees(true);
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

static void open_in_a_child(int channel, void *context)
{
    umf_memory_provider_handle_t own = own_provider(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE);
    struct note note;
    int status;
    pid_t pid;

    (void)context;
    receive_note(channel, &note);
    close_it(own, open_note(own, &note));
    pid = fork();
    if (!pid) {
        unsigned char there;

        CHECK(mincore(note.address, page, &there) < 0);
        close_it(own, open_note(own, &note));
        CHECK(!strcmp(open_note(own, &note)->text, "first"));
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
    CHECK(!strcmp(open_note(own, &note)->text, "first"));
    umfMemoryProviderDestroy(own);
    tell(channel);
    hear(channel);
}

static void a_child_opens_its_own(void **state)
{
    struct child child;
    struct note note;

    start(&child, open_in_a_child, &note);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    finish(&child);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opening_again_makes_no_call),
        TEST(I2_each_provider_opens_with_its_own_rights),
        TEST(I4_what_was_closed_goes_when_its_maker_frees_it),
        TEST(I4_what_was_closed_goes_over_the_brokers_death),
        TEST(a_child_opens_its_own),
    };

    setenv("MEMORYD_CACHE", "64", 1);
    return cmocka_run_group_tests(tests, group_setup, umf_group_teardown);
}
