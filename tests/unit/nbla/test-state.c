/* SPDX-License-Identifier: Apache-2.0 */
/* The device's state: locks of memory that others have opened, seen from where it was made. */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/nbla/nbla.h"

#define BYTES ((size_t)64 << 10)

struct note {
    struct memclient_token token;
    uint64_t offset;
    uint64_t length;
};

static void share(nbla_memory *memory, struct child *child)
{
    struct note note = {0};

    assert_gives(nbla_memory_token(memory, &note.token, &note.offset, &note.length), 0);
    assert_int_equal(write(child->channel, &note, sizeof(note)), sizeof(note));
}

static nbla_memory *receive(int channel)
{
    nbla_memory *memory;
    struct note note = {0};

    CHECK(wait_readable(channel));
    CHECK(read(channel, &note, sizeof(note)) == sizeof(note));
    CHECK(nbla_memory_open_token(NULL, &note.token, note.offset, note.length, NULL, &memory) == 0);
    return memory;
}

/* Locks at each turn, and unlocks at the next; at last it ends with the memory locked. */
static void lock_in_turns(int channel, void *context)
{
    nbla_memory *memory = receive(channel);

    (void)context;
    for (int i = 0; i < 2; i++) {
        nbla_memory_lock_device(memory);
        nbla_memory_lock_device(memory);
        CHECK(nbla_memory_get_device_state(memory) == NBLA_DEVICE_UNLOCKED); /* its own counts for others */
        tell(channel);
        hear(channel);
        nbla_memory_unlock_device(memory);
        tell(channel);
        hear(channel);
    }
    nbla_memory_lock_device(memory);
    tell(channel);
    hear(channel);
    CHECK(nbla_memory_destroy(memory) == 0);
    tell(channel);
    hear(channel);
}

/*
 * nbla_memory_get_device_state: "Get device memory state." It is NBLA_DEVICE_LOCKED while another process has locked by
 * nbla_memory_lock_device what it has opened, until nbla_memory_unlock_device or the end of that memory; and of the
 * blocks that were divided only those that it has opened. Asking and locking make no request but the first.
 */
static void locked_by_another_process(void **state)
{
    nbla_memory *memory, *second, *third;
    struct child child;
    uint64_t requests;

    child_start(&child, lock_in_turns, NULL);
    memory = nbla_allocated(BYTES);
    assert_gives(nbla_memory_divide(memory, 1000, &second), 0);
    assert_gives(nbla_memory_divide(second, 1000, &third), 0);
    assert_int_equal(nbla_memory_get_device_state(second), NBLA_DEVICE_UNLOCKED);
    share(second, &child);
    for (int i = 0; i < 2; i++) {
        child_hear(&child);
        requests = observer_requests();
        assert_int_equal(nbla_memory_get_device_state(second), NBLA_DEVICE_LOCKED);
        assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
        assert_int_equal(nbla_memory_get_device_state(third), NBLA_DEVICE_UNLOCKED);
        child_tell(&child);
        child_hear(&child);
        assert_int_equal(nbla_memory_get_device_state(second), NBLA_DEVICE_UNLOCKED);
        if (i)
            assert_int_equal(observer_requests(), requests);
        child_tell(&child);
    }
    child_hear(&child);
    assert_int_equal(nbla_memory_get_device_state(second), NBLA_DEVICE_LOCKED);
    assert_gives(nbla_memory_try_merge(memory, second), 1);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_LOCKED);
    child_tell(&child);
    child_hear(&child);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    child_tell(&child);
    child_finish(&child);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_gives(nbla_memory_destroy(third), 0);
}

static void lock_and_stay(int channel, void *context)
{
    nbla_memory *memory = receive(channel);

    (void)context;
    nbla_memory_lock_device(memory);
    tell(channel);
    hear(channel);
}

/* It ends with the process, be that killed; and brokers that are killed meanwhile change nothing. */
static void ends_with_the_process(void **state)
{
    struct child child;
    nbla_memory *memory;

    child_start(&child, lock_and_stay, NULL);
    memory = nbla_allocated(BYTES);
    share(memory, &child);
    child_hear(&child);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_LOCKED);
    broker_kill_child(&observed);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_LOCKED);
    child_kill(&child);
    assert_true(WAIT_UNTIL(nbla_memory_get_device_state(memory) == NBLA_DEVICE_UNLOCKED));
    assert_gives(nbla_memory_destroy(memory), 0);
    /* what was given back while no broker was there is told with the next call */
    assert_int_equal(memclient_broker_ping(NULL), 0);
}

/* nbla_memory_lock_device of memory that was made here does nothing: nnabla's allocators do it when they free. */
static void locked_by_its_maker(void **state)
{
    nbla_memory *memory = nbla_allocated(BYTES), *opened;
    struct memclient_token token;
    uint64_t offset, length;

    nbla_memory_lock_device(memory);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    /* one that was opened in the same process is another */
    assert_gives(nbla_memory_token(memory, &token, &offset, &length), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, offset, length, NULL, &opened), 0);
    assert_int_equal(nbla_memory_get_device_state(opened), NBLA_DEVICE_UNLOCKED);
    nbla_memory_unlock_device(opened);
    nbla_memory_lock_device(opened);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_LOCKED);
    nbla_memory_unlock_device(memory);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_LOCKED);
    assert_gives(nbla_memory_destroy(opened), 0);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* Of virtual memory: that of any chunk that is bound; nbla_memory_unbind ends a lock. */
static void virtual_memory(void **state)
{
    nbla_physical_memory *p[3] = {nbla_chunk(BYTES), nbla_chunk(BYTES)};
    nbla_memory *memory = nbla_bound(2, p), *other;
    struct memclient_token token;
    uint64_t offset, length;

    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    assert_gives(nbla_physical_memory_token(p[1], &token, &offset, &length), 0);
    assert_gives(nbla_physical_memory_open_token(NULL, &token, offset, length, NULL, &p[2]), 0);
    other = nbla_bound(1, p + 2);
    nbla_memory_lock_device(memory);
    assert_int_equal(nbla_memory_get_device_state(other), NBLA_DEVICE_UNLOCKED);
    nbla_memory_lock_device(other);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_LOCKED);
    nbla_memory_unlock_device(other);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    nbla_memory_lock_device(other);
    assert_gives(nbla_memory_unbind(other), 0);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    assert_int_equal(nbla_memory_get_device_state(other), NBLA_DEVICE_UNLOCKED);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(other), 0);
    for (int i = 0; i < 3; i++)
        nbla_physical_memory_unref(p[i]);
}

static nbla_physical_memory *opened_again(nbla_physical_memory *p)
{
    struct memclient_token token;
    nbla_physical_memory *opened;
    uint64_t offset, length;

    assert_gives(nbla_physical_memory_token(p, &token, &offset, &length), 0);
    assert_gives(nbla_physical_memory_open_token(NULL, &token, offset, length, NULL, &opened), 0);
    return opened;
}

/* The lock is of the memory, not of the chunk: another memory that shows that one as well ends its own lock only. What
 * nbla_memory_grow adds to memory that is locked is locked as well. */
static void chunk_in_two_memories(void **state)
{
    nbla_physical_memory *p[2] = {nbla_chunk(BYTES), nbla_chunk(BYTES)};
    nbla_physical_memory *opened[2] = {opened_again(p[0]), opened_again(p[1])};
    nbla_memory *made[2] = {nbla_bound(1, p), nbla_bound(1, p + 1)};
    nbla_memory *one = nbla_bound(1, opened), *two = nbla_bound(1, opened);

    nbla_memory_lock_device(one);
    nbla_memory_lock_device(two);
    assert_int_equal(nbla_memory_get_device_state(made[0]), NBLA_DEVICE_LOCKED);
    nbla_memory_unlock_device(two);
    assert_int_equal(nbla_memory_get_device_state(made[0]), NBLA_DEVICE_LOCKED);
    assert_int_equal(nbla_memory_get_device_state(one), NBLA_DEVICE_UNLOCKED);
    assert_int_equal(nbla_memory_get_device_state(two), NBLA_DEVICE_LOCKED);
    assert_gives(nbla_memory_destroy(two), 0);
    assert_int_equal(nbla_memory_get_device_state(made[0]), NBLA_DEVICE_LOCKED);

    assert_gives(nbla_memory_grow(one, opened + 1, 1), 1);
    assert_int_equal(nbla_memory_get_device_state(made[1]), NBLA_DEVICE_LOCKED);
    nbla_memory_unlock_device(one);
    for (int i = 0; i < 2; i++)
        assert_int_equal(nbla_memory_get_device_state(made[i]), NBLA_DEVICE_UNLOCKED);
    assert_gives(nbla_memory_destroy(one), 0);
    for (int i = 0; i < 2; i++) {
        assert_gives(nbla_memory_destroy(made[i]), 0);
        nbla_physical_memory_unref(p[i]);
        nbla_physical_memory_unref(opened[i]);
    }
}

enum { MANY = 300 };

/* A process may ask about more allocations than it has descriptors, and has some left for itself. */
static void ask_about_many(int channel, void *context)
{
    struct rlimit limit;
    nbla_memory *memories[MANY];

    (void)channel;
    (void)context;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 200;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < MANY; i++) {
        memories[i] = nbla_memory_new(NULL, 1, "");
        CHECK(memories[i] && nbla_memory_alloc(memories[i]) == 0);
        CHECK(nbla_memory_get_device_state(memories[i]) == NBLA_DEVICE_UNLOCKED);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(nbla_memory_get_device_state(memories[i]) == NBLA_DEVICE_UNLOCKED);
    for (int i = 0; i < MANY; i++)
        CHECK(nbla_memory_destroy(memories[i]) == 0);
}

static void few_descriptors(void **state)
{
    child_run(ask_about_many, NULL);
}

/* The copy in a child has no lock of its own, and gives up none of its parent's. */
static void end_in_child(int channel, void *context)
{
    nbla_memory *opened = context;

    (void)channel;
    CHECK(nbla_memory_get_device_state(opened) == NBLA_DEVICE_LOCKED); /* the parent's */
    nbla_memory_unlock_device(opened);
    CHECK(nbla_memory_destroy(opened) == 0);
}

static void forked(void **state)
{
    nbla_memory *memory = nbla_allocated(BYTES), *opened;
    struct memclient_token token;
    uint64_t offset, length;

    assert_gives(nbla_memory_token(memory, &token, &offset, &length), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, offset, length, NULL, &opened), 0);
    nbla_memory_lock_device(opened);
    child_run(end_in_child, opened);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_LOCKED);
    nbla_memory_unlock_device(opened);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    assert_gives(nbla_memory_destroy(opened), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(locked_by_another_process),
        TEST(ends_with_the_process),
        TEST(locked_by_its_maker),
        TEST(virtual_memory),
        TEST(chunk_in_two_memories),
        TEST(few_descriptors),
        TEST(forked),
    };

    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
