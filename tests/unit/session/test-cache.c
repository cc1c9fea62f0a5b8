/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words by which client and broker settle who has a hold: of each that is put there exactly one has it afterwards,
 * and nothing that the client does to that memory is more than an answer "there is none".
 */
#include "session/cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/support/test.h"

#define ROUNDS 2000u

static struct session session;
static struct session_memory *memory;

static int set_up(void **state)
{
    session.release_log = -1;
    assert_ok(session_make_release_log(&session));
    assert_ok(fallocate(session.release_log, 0, 0, SESSION_MEMORY_SIZE));
    memory = mmap(NULL, SESSION_MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, session.release_log, 0);
    assert_true(memory != MAP_FAILED);
    /* as the library does: a page that was never written to is not there for the broker */
    memory->cache.in_hand = 0;
    return 0;
}

static int tear_down(void **state)
{
    assert_ok(munmap(memory, SESSION_MEMORY_SIZE));
    session.release_log = fd_close(session.release_log);
    return 0;
}

static uint32_t state_of(unsigned slot)
{
    return __atomic_load_n(&memory->cache.slots[slot].state, __ATOMIC_SEQ_CST);
}

static void put(unsigned slot, uint64_t buffer)
{
    memory->cache.slots[slot].buffer = buffer;
    memory->cache.slots[slot].claims = 1;
    __atomic_store_n(&memory->cache.slots[slot].state, HOLD_CACHED, __ATOMIC_SEQ_CST);
}

static bool get_back(unsigned slot)
{
    uint32_t cached = HOLD_CACHED;

    return __atomic_compare_exchange_n(&memory->cache.slots[slot].state, &cached, 0, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static void the_broker_takes_what_is_cached(void **state)
{
    struct hold_cache_slot slot;

    assert_int_equal(session_find_cached(&session, 7), -1);
    assert_false(session_take_cached(&session, 5, &slot));
    put(5, 7);
    assert_int_equal(session_find_cached(&session, 7), 5);
    assert_true(session_take_cached(&session, 5, &slot));
    assert_int_equal(slot.buffer, 7);
    assert_int_equal(slot.claims, 1);
    assert_false(get_back(5));
    /* the next broker finds it so, and goes on */
    assert_int_equal(session_find_cached(&session, 7), 5);
    assert_true(session_take_cached(&session, 5, &slot));
    session_cache_done(&session, 5);
    assert_int_equal(state_of(5), HOLD_CACHED | HOLD_TAKEN | HOLD_DONE);
    assert_int_equal(session_find_cached(&session, 7), -1);
    assert_false(session_take_cached(&session, 5, &slot));

    put(5, 8);
    assert_true(get_back(5));
    assert_false(session_take_cached(&session, 5, &slot));
}

static void the_broker_tells(void **state)
{
    assert_true(session_tell_wanted(&session, true));
    assert_false(session_tell_wanted(&session, true));
    assert_int_equal(memory->cache.wanted, 1);
    assert_true(session_tell_wanted(&session, false));
    assert_int_equal(memory->cache.wanted, 0);
    session_tell_change(&session, HOLD_CACHE_CHANGES + 3);
    session_tell_change(&session, 3);
    assert_int_equal(memory->cache.changes[3], 2);
    assert_true(session_has_let_out(&session));
    memory->cache.in_hand = 1;
    assert_false(session_has_let_out(&session));
    memory->cache.in_hand = 0;
    assert_true(session_has_let_out(&session));
}

/* Of an older broker, or of a client that has none: nothing is ever there, and nobody is sure of anything. */
static void without_a_cache_there_is_nothing(void **state)
{
    struct hold_cache_slot slots[HOLD_CACHE_SLOTS];
    struct session other = {.release_log = -1};

    for (unsigned i = 0; i < 2; i++) {
        assert_false(session_read_cache(&other, slots));
        assert_int_equal(session_find_cached(&other, 0), -1);
        assert_false(session_tell_wanted(&other, true));
        session_tell_change(&other, 1);
        assert_true(session_has_let_out(&other));
        if (other.release_log < 0) {
            other.release_log = memfd_create("older", MFD_CLOEXEC | MFD_ALLOW_SEALING);
            assert_ok(ftruncate(other.release_log, RELEASE_LOG_SIZE));
            assert_ok(fcntl(other.release_log, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
        }
    }
    (void)fd_close(other.release_log);
}

/* No signal comes of it: neither of pages that are not there, nor of a file that ends before. */
static void I8_the_client_may_take_the_pages_away(void **state)
{
    struct session other = {.release_log = memfd_create("cut", MFD_CLOEXEC)};
    struct hold_cache_slot slot;

    put(1, 7);
    assert_ok(madvise(memory, SESSION_MEMORY_SIZE, MADV_REMOVE));
    assert_false(session_take_cached(&session, 1, &slot));
    session_cache_done(&session, 1);
    assert_false(session_take_cached(&other, 1, &slot));
    session_cache_done(&other, 1);
    (void)fd_close(other.release_log);
}

/* It may keep them for longer than its session, and nobody is charged for them then. */
static void I5_no_page_of_it_is_the_brokers(void **state)
{
    struct hold_cache_slot slot;
    struct stat st;

    put(1, 7);
    assert_true(session_take_cached(&session, 1, &slot));
    assert_ok(madvise(memory, SESSION_MEMORY_SIZE, MADV_REMOVE));
    session_cache_done(&session, 1);
    (void)session_take_cached(&session, 1, &slot);
    session_tell_change(&session, 7);
    (void)session_tell_wanted(&session, true);
    assert_ok(fstat(session.release_log, &st));
    assert_int_equal(st.st_blocks, 0);
}

/* ---- at once ----------------------------------------------------------------------------------------------------- */

static uint8_t kept[ROUNDS], taken[ROUNDS];
static unsigned at; /* the client's round */

static void *client(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ROUNDS; i++) {
        put(0, i + 1);
        if (i % 3)
            sched_yield();
        if (get_back(0))
            kept[i]++;
        else
            while (!(state_of(0) & HOLD_DONE))
                sched_yield();
        __atomic_store_n(&at, i + 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void exactly_one_has_each(void **state)
{
    struct hold_cache_slot slots[HOLD_CACHE_SLOTS];
    pthread_t thread;
    unsigned n = 0;

    assert_int_equal(pthread_create(&thread, NULL, client, NULL), 0);
    while (__atomic_load_n(&at, __ATOMIC_SEQ_CST) < ROUNDS) {
        assert_true(session_read_cache(&session, slots));
        if (!hold_cache_is_open(&slots[0]) || !session_take_cached(&session, 0, &slots[0]))
            continue;
        assert_in_range(slots[0].buffer, 1, ROUNDS);
        taken[slots[0].buffer - 1]++;
        n++;
        session_cache_done(&session, 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < ROUNDS; i++)
        assert_int_equal(kept[i] + taken[i], 1);
    print_message("%u of %u were taken\n", n, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_broker_takes_what_is_cached, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_broker_tells, set_up, tear_down),
        cmocka_unit_test(without_a_cache_there_is_nothing),
        cmocka_unit_test_setup_teardown(I8_the_client_may_take_the_pages_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(I5_no_page_of_it_is_the_brokers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(exactly_one_has_each, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
