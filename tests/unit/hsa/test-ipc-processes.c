/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC memory among processes: what lives how long, at which addresses, and that nothing is left. The same program is
 * also the one that others execute: `test-ipc-processes HANDLE ADDRESS` attaches.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/hsa.h"

#define SIZE (3 * MIB)

/* What processes tell each other. */
struct note {
    hsa_amd_ipc_memory_t handle;
    char *address;
};

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

static struct note allocate(void)
{
    struct note note;

    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE, 0, (void **)&note.address));
    assert_success(hsa_amd_ipc_memory_create(note.address, SIZE, &note.handle));
    return note;
}

static hsa_status_t attach(const struct note *note, char **mapped)
{
    return hsa_amd_ipc_memory_attach(&note->handle, SIZE, 0, NULL, (void **)mapped);
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

static hsa_status_t take_fine(hsa_amd_memory_pool_t pool, void *data)
{
    *(hsa_amd_memory_pool_t *)data = pool;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t take_pool(hsa_agent_t agent, void *data)
{
    return hsa_amd_agent_iterate_memory_pools(agent, take_fine, data);
}

static void send_note(int channel, const struct note *note)
{
    CHECK(send(channel, note, sizeof(*note), MSG_NOSIGNAL) == sizeof(*note));
}

static void receive_note(int channel, struct note *note)
{
    CHECK(wait_readable(channel));
    CHECK(recv(channel, note, sizeof(*note), 0) == sizeof(*note));
}

/* Exports memory that says "hello", tells of it, and stays until it hears something. */
static void export(int channel, void *context)
{
    hsa_amd_memory_pool_t pool;
    struct note note;

    (void)context;
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_iterate_agents(take_pool, &pool) == HSA_STATUS_INFO_BREAK);
    CHECK(hsa_amd_memory_pool_allocate(pool, SIZE, 0, (void **)&note.address) == HSA_STATUS_SUCCESS);
    memcpy(note.address, "hello", sizeof("hello"));
    CHECK(hsa_amd_ipc_memory_create(note.address, SIZE, &note.handle) == HSA_STATUS_SUCCESS);
    send_note(channel, &note);
    hear(channel);
}

/* Attaches what it is told of, tells where, and the handle as it sees it; says "bye" there; stays until it hears. */
static void import(int channel, void *context)
{
    struct note note, seen;

    (void)context;
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    receive_note(channel, &note);
    CHECK(attach(&note, &seen.address) == HSA_STATUS_SUCCESS);
    CHECK(!strcmp(seen.address, "hello"));
    memcpy(seen.address, "bye", sizeof("bye"));
    CHECK(hsa_amd_ipc_memory_create(seen.address, SIZE, &seen.handle) == HSA_STATUS_SUCCESS);
    send_note(channel, &seen);
    hear(channel);
    CHECK(hsa_amd_ipc_memory_detach(seen.address) == HSA_STATUS_SUCCESS);
}

/* ---- two and three processes ------------------------------------------------------------------------------------- */

/* At the address that it has in the other process, in both of them, and the handle is the same there. */
static void attach_at_home(void **state)
{
    struct note note, seen;
    struct child child;

    /* before there is anything that it would inherit */
    child_start(&child, import, NULL);
    note = allocate();
    memcpy(note.address, "hello", sizeof("hello"));
    send_note(child.channel, &note);
    receive_note(child.channel, &seen);
    assert_ptr_equal(seen.address, note.address);
    assert_memory_equal(&seen.handle, &note.handle, sizeof(note.handle));
    assert_string_equal(note.address, "bye");
    child_tell(&child);
    child_finish(&child);
    assert_success(hsa_memory_free(note.address));
}

/* Over what the parent had mapped there, which is the same and stays. */
static void attach_inherited(int channel, void *context)
{
    struct note *note = context;
    char *mapped;

    (void)channel;
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(attach(note, &mapped) == HSA_STATUS_SUCCESS);
    CHECK(mapped == note->address);
    CHECK(!strcmp(mapped, "hello"));
    CHECK(hsa_amd_ipc_memory_detach(mapped) == HSA_STATUS_SUCCESS);
    CHECK(!strcmp(note->address, "hello"));
}

static void attach_over_the_parents(void **state)
{
    struct note note = allocate();

    memcpy(note.address, "hello", sizeof("hello"));
    child_run(attach_inherited, &note);
    assert_success(hsa_memory_free(note.address));
}

/* Anywhere else where something else has that address. */
static void attach_beside(int channel, void *context)
{
    struct note note;
    char *mapped, *taken;

    (void)context;
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    receive_note(channel, &note);
    taken = mmap(note.address, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(taken == note.address);
    CHECK(attach(&note, &mapped) == HSA_STATUS_SUCCESS);
    CHECK(mapped != note.address);
    CHECK(!strcmp(mapped, "hello"));
    CHECK(hsa_amd_ipc_memory_detach(mapped) == HSA_STATUS_SUCCESS);
}

static void attach_elsewhere(void **state)
{
    struct child child;
    struct note note;

    child_start(&child, attach_beside, NULL);
    note = allocate();
    memcpy(note.address, "hello", sizeof("hello"));
    send_note(child.channel, &note);
    child_finish(&child);
    assert_success(hsa_memory_free(note.address));
}

/* Both children begin without HSA, as after a fork before hsa_init(). */
static void between_children(void **state)
{
    struct child exporter, importer;
    struct note note, seen;

    child_start(&exporter, export, NULL);
    child_start(&importer, import, NULL);
    receive_note(exporter.channel, &note);
    send_note(importer.channel, &note);
    receive_note(importer.channel, &seen);
    assert_ptr_equal(seen.address, note.address);
    child_tell(&importer);
    child_finish(&importer);
    child_tell(&exporter);
    child_finish(&exporter);
}

/* One that exits, or is killed: what is attached stays, and as long as it is, its handle; then no more. */
static void exporter_ends(bool killed)
{
    struct child exporter, importer;
    struct note note, seen;
    char *mapped;

    child_start(&exporter, export, NULL);
    child_start(&importer, import, NULL);
    receive_note(exporter.channel, &note);
    assert_success(attach(&note, &mapped));
    if (killed) {
        child_kill(&exporter);
    } else {
        child_tell(&exporter);
        child_finish(&exporter);
    }
    assert_string_equal(mapped, "hello");
    send_note(importer.channel, &note);
    receive_note(importer.channel, &seen);
    assert_string_equal(mapped, "bye");
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(attach(&note, &mapped));
    assert_string_equal(mapped, "bye");
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    child_tell(&importer);
    child_finish(&importer);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_status(attach(&note, &mapped), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

static void exporter_exits(void **state)
{
    exporter_ends(false);
}

static void exporter_is_killed(void **state)
{
    exporter_ends(true);
}

/* Nothing is there to be attached. Whoever looked a moment too soon gives back what it got. */
static bool is_gone(const struct note *note)
{
    char *mapped;

    if (attach(note, &mapped))
        return true;
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    return false;
}

/* An importer that is killed takes nothing with it. */
static void importer_is_killed(void **state)
{
    struct note note = allocate(), seen;
    struct child importer;
    char *mapped;

    memcpy(note.address, "hello", sizeof("hello"));
    child_start(&importer, import, NULL);
    send_note(importer.channel, &note);
    receive_note(importer.channel, &seen);
    child_kill(&importer);
    assert_string_equal(note.address, "bye");
    assert_success(attach(&note, &mapped));
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(hsa_memory_free(note.address));
    /* the broker hears of the death after this process */
    assert_true(WAIT_UNTIL(is_gone(&note)));
    assert_status(attach(&note, &mapped), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* ---- exec -------------------------------------------------------------------------------------------------------- */

/* The program's other half: 0 if all is as it should be. */
static int executed(const char *text, const char *address)
{
    struct memclient_token token;
    struct note note = {.address = (char *)(uintptr_t)strtoull(address, NULL, 16)};
    char *mapped;

    if (memclient_token_parse(text, &token) || hsa_init())
        return 1;
    memcpy(note.handle.handle, token.bytes, sizeof(token.bytes));
    if (attach(&note, &mapped))
        return 2;
    /* a sanitizer's shadow may lie anywhere */
    if (mapped != note.address && !TEST_ASAN && !TEST_TSAN)
        return 3;
    if (strcmp(mapped, "hello") != 0)
        return 4;
    memcpy(mapped, "executed", sizeof("executed"));
    return hsa_amd_ipc_memory_detach(mapped) || hsa_shut_down() ? 5 : 0;
}

static void execute(int channel, void *context)
{
    const struct note *note = context;
    struct memclient_token token;
    char text[MEMCLIENT_TOKEN_TEXT_SIZE], address[32];

    (void)channel;
    memcpy(token.bytes, note->handle.handle, sizeof(token.bytes));
    memclient_token_format(&token, text);
    snprintf(address, sizeof(address), "%llx", (unsigned long long)(uintptr_t)note->address);
    execl("/proc/self/exe", "executed", text, address, (char *)NULL);
    CHECK(!"executed");
}

/* A process that shares nothing else with this one. */
static void attach_in_another_program(void **state)
{
    struct note note = allocate();

    memcpy(note.address, "hello", sizeof("hello"));
    child_run(execute, &note);
    assert_string_equal(note.address, "executed");
    assert_success(hsa_memory_free(note.address));
}

/* ---- the broker, and leaks --------------------------------------------------------------------------------------- */

/* A handle outlives a broker that is killed. */
static void broker_is_killed(void **state)
{
    struct note note = allocate();
    hsa_amd_ipc_memory_t again;
    char *mapped, *twice;

    memcpy(note.address, "hello", sizeof("hello"));
    broker_kill_child(&observed);
    assert_success(attach(&note, &mapped));
    assert_string_equal(mapped, "hello");
    broker_kill_child(&observed);
    assert_success(attach(&note, &twice));
    assert_ptr_equal(mapped, twice);
    assert_success(hsa_amd_ipc_memory_create(note.address, SIZE, &again));
    assert_memory_equal(&again, &note.handle, sizeof(again));
    broker_kill_child(&observed);
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(hsa_memory_free(note.address));
    assert_status(attach(&note, &mapped), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* Mappings of memory files, as buffers are. Others may be a sanitizer's. */
static void cycle(void)
{
    struct note note = allocate();
    char *mapped;

    assert_success(attach(&note, &mapped));
    mapped[0] = 1;
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(hsa_memory_free(note.address));
}

static int add_stock(const struct memclient_pool_info *pool, void *data)
{
    *(uint64_t *)data += pool->stock_buffers;
    return 0;
}

/* Has the broker no more open than then, one aside? What it keeps ready has two descriptors a buffer at most. */
static bool broker_has_closed(const struct memclient_broker_info *before)
{
    struct memclient_broker_info now = MEMCLIENT_BROKER_INFO_INIT;
    uint64_t ready = 0;

    assert_ok(memclient_broker_query(native, &now));
    assert_ok(memclient_list_pools(native, add_stock, &ready));
    return now.fds <= before->fds + 2 * ready + 1;
}

/* A thousand times, and neither the broker nor this process has anything of it left. */
static void no_leaks(void **state)
{
    struct memclient_broker_info before = MEMCLIENT_BROKER_INFO_INIT, after = MEMCLIENT_BROKER_INFO_INIT;
    unsigned fds;
    size_t maps;

    for (unsigned i = 0; i < 10; i++)
        cycle();
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    fds = fd_count();
    maps = maps_named("memfd:");
    assert_ok(memclient_broker_query(native, &before));
    for (unsigned i = 0; i < 1000; i++)
        cycle();
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_ok(memclient_broker_query(native, &after));
    assert_int_equal(after.tokens, before.tokens);
    assert_int_equal(after.sessions, before.sessions);
    assert_int_equal(after.reservations, before.reservations);
    /* memory that is on its way back is still open there */
    assert_true(WAIT_UNTIL(broker_has_closed(&before)));
    assert_true(fd_count() <= fds);
    assert_int_equal(maps_named("memfd:"), maps);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(attach_at_home, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_over_the_parents, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_elsewhere, hsa_nothing_left),
        cmocka_unit_test_teardown(between_children, hsa_nothing_left),
        cmocka_unit_test_teardown(exporter_exits, hsa_nothing_left),
        cmocka_unit_test_teardown(exporter_is_killed, hsa_nothing_left),
        cmocka_unit_test_teardown(importer_is_killed, hsa_nothing_left),
        cmocka_unit_test_teardown(attach_in_another_program, hsa_nothing_left),
        cmocka_unit_test_teardown(broker_is_killed, hsa_nothing_left),
        cmocka_unit_test_teardown(no_leaks, hsa_nothing_left),
    };

    if (argc == 3)
        return executed(argv[1], argv[2]);
    return test_run(tests, setup, teardown);
}
