/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients keep though it was given back, by the words that they write: here they are written by hand, so that the
 * broker sees what no library does, or not at that moment.
 */
#include "proto/hold_cache.h"
#include "tests/unit/broker/host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/buffer.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "proto/status.h"
#include "sys/peer.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (UINT64_C(64) << 10)
#define RW   (RIGHT_READ | RIGHT_WRITE)

static uint32_t state_of(uint64_t admin, uint64_t buffer)
{
    struct buffer_info info;

    assert_int_equal(host_info(admin, buffer, &info), 0);
    return info.state;
}

/* A session with its hold cache, mapped, of which the client says that it has let nothing out. */
static uint64_t session_with_cache(uintptr_t connection, struct session_memory **ret)
{
    struct hello_args args = {.connection = (void *)connection, .program = "test", .release_log = true};
    struct hello_result result;
    struct peer peer = PEER_NULL;
    int log;

    assert_int_equal(peer_init_pid(&peer, getpid()), 0);
    peer.uid = getuid();
    args.peer = &peer;
    assert_int_equal(CALL(0, op_hello, &args, &result), 0);
    peer_deinit(&peer);
    assert_true(result.release_log);
    log = host_open_release_log(result.session);
    *ret = mmap(NULL, SESSION_MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, log, 0);
    assert_mapped(*ret);
    assert_ok(close(log));
    (*ret)->cache.in_hand = 1;
    return result.session;
}

/* ---- who may have it besides ------------------------------------------------------------------------------------- */

/* Who let a descriptor out is gone; who brings it back says nothing of that, nor does who had it from there. */
static void I4_what_came_back_by_a_descriptor_may_be_elsewhere(void **state)
{
    struct session_memory *makers, *others, *keepers;
    uint64_t admin = host_session(1), maker = session_with_cache(2, &makers), other = session_with_cache(3, &others),
             keeper = session_with_cache(4, &keepers), buffer;
    const struct share_args terms = {.rights = RW};
    uint8_t token[32];
    int fd, kept;
    char *p;

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    fd = host_export(maker, buffer, RW);
    p = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    *p = 'x';
    makers->cache.in_hand = 0;
    assert_int_equal(host_release(maker, buffer), 0);
    host_settle();
    assert_int_equal(state_of(admin, buffer), 2);
    assert_int_equal(host_import(other, fd, NULL), 0);
    close(fd);
    assert_int_equal(host_share(other, buffer, &terms, token), 0);
    assert_int_equal(host_open(keeper, token, 0, &kept), 0);
    close(kept);
    keepers->cache.slots[0] = (struct hold_cache_slot){.buffer = buffer, .state = HOLD_CACHED, .claims = 1};
    assert_int_equal(host_release(other, buffer), 0);
    host_settle();
    assert_int_equal(keepers->cache.slots[0].state, HOLD_CACHED | HOLD_TAKEN | HOLD_DONE);
    assert_int_equal(state_of(admin, buffer), 2);
    assert_int_equal(*p, 'x');
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(admin), 0);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_ok(munmap(makers, SESSION_MEMORY_SIZE));
    assert_ok(munmap(others, SESSION_MEMORY_SIZE));
    assert_ok(munmap(keepers, SESSION_MEMORY_SIZE));
}

/* A client may have a release log and not care for what is behind it: then it never says what it lets out. */
static void I4_who_says_nothing_may_have_let_it_out(void **state)
{
    struct session_memory *makers, *keepers;
    uint64_t admin = host_session(1), maker = session_with_cache(2, &makers), keeper = session_with_cache(3, &keepers),
             buffer;
    const struct share_args terms = {.rights = RW};
    uint8_t token[32];
    int fd, kept;
    char *p;

    assert_ok(madvise(makers, SESSION_MEMORY_SIZE, MADV_REMOVE));
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    fd = host_export(maker, buffer, RW);
    p = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    close(fd);
    *p = 'x';
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_open(keeper, token, 0, &kept), 0);
    close(kept);
    keepers->cache.slots[0] = (struct hold_cache_slot){.buffer = buffer, .state = HOLD_CACHED, .claims = 1};
    assert_int_equal(host_release(maker, buffer), 0);
    host_settle();
    assert_int_equal(keepers->cache.slots[0].state, HOLD_CACHED | HOLD_TAKEN | HOLD_DONE);
    assert_int_equal(state_of(admin, buffer), 2);
    assert_int_equal(*p, 'x');
    assert_int_equal(host_check(admin), 0);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_ok(munmap(makers, SESSION_MEMORY_SIZE));
    assert_ok(munmap(keepers, SESSION_MEMORY_SIZE));
}

/*
 * No library caches what can be sealed, but a client may say so. What is sealed cannot be emptied: it is there until
 * the client lets go of it, and others are refused instead of waiting for it.
 */
static void I7_nobody_waits_for_what_cannot_be_emptied(void **state)
{
    struct session_memory *memory;
    uint64_t admin = host_session(1), maker = session_with_cache(2, &memory), buffer;
    struct alloc_spec whole = {.n = 1, .sizes = {HOST_POOL_BYTES}};
    static struct opened result;
    int fd, reading;
    void *p;

    assert_int_equal(host_alloc(maker, SIZE, BUFFER_PUBLISHABLE, &buffer), 0);
    fd = host_export(maker, buffer, RW);
    reading = host_export(maker, buffer, RIGHT_READ);
    assert_ok(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    p = map_shared(reading, SIZE, PROT_READ);
    assert_mapped(p);
    close(fd);
    close(reading);
    memory->cache.slots[0] = (struct hold_cache_slot){.buffer = buffer, .state = HOLD_CACHED, .claims = 1};
    assert_int_equal(CALL(admin, op_alloc, &whole, &result), STATUS_POOL_FULL);
    assert_int_equal(memory->cache.slots[0].state, HOLD_CACHED | HOLD_TAKEN | HOLD_DONE);
    assert_int_equal(state_of(admin, buffer), 2);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(admin), 0);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_ok(munmap(memory, SESSION_MEMORY_SIZE));
}

/* Where the kernel does not say who has it, the broker knows of caches nevertheless. */
static void I7_what_only_caches_have_is_emptied_without_asking(void **state)
{
    struct session_memory *memory;
    uint64_t admin = host_session(1), maker = session_with_cache(2, &memory), buffer;
    struct alloc_spec most = {.n = 1, .sizes = {HOST_POOL_BYTES - SIZE / 2}};
    static struct sys_calls silent;
    static struct opened result;
    char *p;
    int fd;

    silent = sys_kernel;
    silent.set_lease = host_no_lease;
    sys = &silent;
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    fd = host_export(maker, buffer, RW);
    p = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    close(fd);
    *p = 'x';
    memory->cache.slots[0] = (struct hold_cache_slot){.buffer = buffer, .state = HOLD_CACHED, .claims = 1};
    assert_int_equal(CALL(admin, op_alloc, &most, &result), 0);
    assert_int_equal(*p, 0);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(host_release(admin, result.items[0].id), 0);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    sys = &sys_kernel;
    assert_int_equal(host_check(admin), 0);
    assert_ok(munmap(memory, SESSION_MEMORY_SIZE));
}

/* ---- which one --------------------------------------------------------------------------------------------------- */

static struct sys_calls altered;
static struct session_memory *client;
static uint64_t put_instead;

/* The client has it again, and puts another one into the slot, after the broker has looked what is in it. */
static void *map_a_moment_later(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    if (put_instead)
        client->cache.slots[0].buffer = put_instead;
    put_instead = 0;
    return mmap(address, length, protection, flags, fd, offset);
}

static void I4_what_is_taken_instead_ends_too(void **state)
{
    uint64_t admin = host_session(1), holder = session_with_cache(2, &client), buffers[2];
    uint8_t token[32];
    const struct share_args terms = {.rights = RW};

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(host_alloc(holder, SIZE, 0, &buffers[i]), 0);
    assert_int_equal(host_share(holder, buffers[0], &terms, token), 0);
    assert_int_equal(host_open(admin, token, 0, NULL), 0);
    client->cache.slots[0] = (struct hold_cache_slot){.buffer = buffers[0], .state = HOLD_CACHED, .claims = 1};
    altered = sys_kernel;
    altered.mmap = map_a_moment_later;
    sys = &altered;
    put_instead = buffers[1];
    assert_int_equal(host_release(admin, buffers[0]), 0);
    assert_int_equal(put_instead, 0);
    sys = &sys_kernel;
    assert_true(HOST_UNTIL(host_used() == SIZE));
    assert_int_equal(client->cache.slots[0].state, HOLD_CACHED | HOLD_TAKEN | HOLD_DONE);
    assert_int_equal(state_of(admin, buffers[0]), 1);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(host_release(holder, buffers[0]), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_ok(munmap(client, SESSION_MEMORY_SIZE));
}

/* ---- how many at once -------------------------------------------------------------------------------------------- */

#define SESSIONS 8

static unsigned count_taken(struct session_memory *const *memories)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SESSIONS; i++)
        for (unsigned slot = 0; slot < HOLD_CACHE_SLOTS; slot++)
            n += (memories[i]->cache.slots[slot].state & HOLD_TAKEN) != 0;
    return n;
}

static void I7_one_turn_empties_few_caches(void **state)
{
    const unsigned all = SESSIONS * HOLD_CACHE_SLOTS;
    struct session_memory *memories[SESSIONS];
    uint64_t admin = host_session(1), buffer;
    struct alloc_spec args = {.n = 1, .sizes = {HOST_POOL_BYTES}};
    static struct opened result;
    struct call call;

    for (unsigned i = 0; i < SESSIONS; i++) {
        uint64_t session = session_with_cache(2 + i, &memories[i]);

        for (unsigned slot = 0; slot < HOLD_CACHE_SLOTS; slot++) {
            assert_int_equal(host_alloc(session, 4096, 0, &buffer), 0);
            memories[i]->cache.slots[slot] =
                (struct hold_cache_slot){.buffer = buffer, .state = HOLD_CACHED, .claims = 1};
        }
    }
    host.no_commit = true;
    call_init(&call, admin);
    assert_int_equal(op_alloc(&call.op, &args, &result), OP_PENDING);
    assert_in_range(count_taken(memories), 1, HOLD_CACHE_SLOTS / 2);
    host.no_commit = false;
    assert_int_equal(call_finish(&call, OP_PENDING), 0);
    assert_int_equal(count_taken(memories), all);
    assert_int_equal(host_check(admin), 0);
    for (unsigned i = 0; i < SESSIONS; i++)
        assert_ok(munmap(memories[i], SESSION_MEMORY_SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)
        TEST(I4_what_came_back_by_a_descriptor_may_be_elsewhere),
        TEST(I4_who_says_nothing_may_have_let_it_out),
        TEST(I7_nobody_waits_for_what_cannot_be_emptied),
        TEST(I7_what_only_caches_have_is_emptied_without_asking),
        TEST(I4_what_is_taken_instead_ends_too),
        TEST(I7_one_turn_empties_few_caches),
#undef TEST
    };

    return test_run(tests, NULL, NULL);
}
