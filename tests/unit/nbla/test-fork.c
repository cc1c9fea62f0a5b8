/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork(): what was allocated is the child's own from then on, as malloc()'s memory, free blocks that an allocator keeps
 * above all; what was opened is shared as before.
 */
#include <string.h>
#include <sys/resource.h>

#include "tests/support/child.h"
#include "tests/unit/nbla/nbla.h"

/* Of which no descriptor is kept, and of which one is. */
#define SMALL ((size_t)20 << 10)
#define LARGE ((size_t)1 << 20)

static void fill(nbla_memory *memory, int with)
{
    memset(nbla_memory_pointer(memory), with, nbla_memory_bytes(memory));
}

static bool is_filled(nbla_memory *memory, char with)
{
    const char *pointer = nbla_memory_pointer(memory);

    for (size_t i = 0; i < nbla_memory_bytes(memory); i++)
        if (pointer[i] != with)
            return false;
    return true;
}

/* Blocks of one allocation, in use and free, some of them with a page in common. */
struct blocks {
    nbla_memory *used, *small, *free;
};

static struct blocks divided(size_t bytes)
{
    struct blocks blocks = {.used = nbla_allocated(bytes)};

    assert_gives(nbla_memory_divide(blocks.used, 5000, &blocks.small), 0);
    assert_gives(nbla_memory_divide(blocks.small, 512, &blocks.free), 0);
    fill(blocks.used, 'u');
    return blocks;
}

static void destroy_blocks(struct blocks *blocks)
{
    assert_gives(nbla_memory_destroy(blocks->used), 0);
    assert_gives(nbla_memory_destroy(blocks->small), 0);
    assert_gives(nbla_memory_destroy(blocks->free), 0);
}

/* Both use the blocks that were free, one after the other in turn. */
static void use_blocks(int channel, void *context)
{
    struct blocks *blocks = context;

    CHECK(is_filled(blocks->used, 'u'));
    fill(blocks->small, 'c');
    fill(blocks->free, 'c');
    tell(channel);
    hear(channel);
    CHECK(is_filled(blocks->small, 'c') && is_filled(blocks->free, 'c'));
    fill(blocks->used, 'd');
    tell(channel);
    hear(channel);
    CHECK(is_filled(blocks->used, 'd'));
    CHECK(nbla_memory_destroy(blocks->used) == 0 && nbla_memory_destroy(blocks->small) == 0 &&
          nbla_memory_destroy(blocks->free) == 0);
}

static void use_in_both(struct blocks *blocks)
{
    struct child child;

    child_start(&child, use_blocks, blocks);
    child_hear(&child);
    fill(blocks->small, 'p');
    fill(blocks->free, 'p');
    child_tell(&child);
    child_hear(&child);
    assert_true(is_filled(blocks->small, 'p') && is_filled(blocks->free, 'p'));
    assert_true(is_filled(blocks->used, 'u'));
    fill(blocks->used, 'q');
    child_tell(&child);
    child_finish(&child);
    assert_true(is_filled(blocks->used, 'q'));
}

static void free_blocks_are_of_one_process_only(void **state)
{
    static const size_t sizes[] = {SMALL, LARGE};

    for (int i = 0; i < 2; i++) {
        struct blocks blocks = divided(sizes[i]);

        use_in_both(&blocks);
        destroy_blocks(&blocks);
    }
}

/* The same, also where a token of a block was given away: who has that shares with the parent, not the child. */
static void what_was_shared_is_the_parents(void **state)
{
    struct blocks blocks = divided(LARGE);
    struct memclient_token token;
    uint64_t offset, length;
    nbla_memory *opened;

    assert_gives(nbla_memory_token(blocks.used, &token, &offset, &length), 0);
    use_in_both(&blocks);
    assert_gives(nbla_memory_open_token(NULL, &token, offset, length, NULL, &opened), 0);
    assert_true(is_filled(opened, 'q'));
    assert_gives(nbla_memory_destroy(opened), 0);
    destroy_blocks(&blocks);
}

#define MANY 40

static void use_many(int channel, void *context)
{
    nbla_memory **memories = context;

    for (int i = 0; i < MANY; i++) {
        CHECK(is_filled(memories[i], (char)i));
        fill(memories[i], 'c');
    }
    tell(channel);
    hear(channel);
    for (int i = 0; i < MANY; i++)
        CHECK(is_filled(memories[i], 'c'));
}

/* More than descriptors are kept for. */
static void there_may_be_more_than_descriptors(void **state)
{
    struct rlimit before, few;
    nbla_memory *memories[MANY];
    struct child child;

    assert_ok(getrlimit(RLIMIT_NOFILE, &before));
    few = before;
    few.rlim_cur = 100;
    assert_ok(setrlimit(RLIMIT_NOFILE, &few));
    for (int i = 0; i < MANY; i++) {
        memories[i] = nbla_allocated(LARGE / 2);
        fill(memories[i], i);
    }
    child_start(&child, use_many, memories);
    child_hear(&child);
    for (int i = 0; i < MANY; i++)
        assert_true(is_filled(memories[i], (char)i));
    child_tell(&child);
    child_finish(&child);
    for (int i = 0; i < MANY; i++)
        assert_gives(nbla_memory_destroy(memories[i]), 0);
    assert_ok(setrlimit(RLIMIT_NOFILE, &before));
}

struct chunks_of_parent {
    nbla_physical_memory *bound, *free;
    nbla_memory *memory;
};

static void use_chunks(int channel, void *context)
{
    struct chunks_of_parent *parent = context;
    struct memclient_token token;
    uint64_t offset, length;
    nbla_memory *memory;

    /* what is bound is a copy, what is not is memory of its own when it is */
    CHECK(is_filled(parent->memory, 'b'));
    fill(parent->memory, 'c');
    CHECK(nbla_physical_memory_token(parent->free, &token, &offset, &length) == NBLA_ERROR_RUNTIME);
    CHECK(nbla_physical_memory_id(parent->free) == 0);
    memory = nbla_memory_new_virtual(NULL, 1, "", &parent->free, 1);
    CHECK(memory && nbla_memory_bind(memory) == 0);
    CHECK(is_filled(memory, 0));
    fill(memory, 'c');
    tell(channel);
    hear(channel);
    CHECK(is_filled(parent->memory, 'c') && is_filled(memory, 'c'));
    CHECK(nbla_physical_memory_id(parent->free) != 0);
    CHECK(nbla_physical_memory_token(parent->free, &token, &offset, &length) == 0);
    CHECK(nbla_memory_unbind(parent->memory) == 0 && nbla_memory_bind(parent->memory) == 0);
    CHECK(is_filled(parent->memory, 0));
    CHECK(nbla_memory_destroy(memory) == 0 && nbla_memory_destroy(parent->memory) == 0);
    nbla_physical_memory_unref(parent->bound);
    nbla_physical_memory_unref(parent->free);
}

static void chunks_are_of_one_process_only(void **state)
{
    struct chunks_of_parent parent = {.bound = nbla_chunk(LARGE), .free = nbla_chunk(LARGE)};
    struct child child;
    nbla_memory *memory;

    assert_int_equal(nbla_physical_memory_alloc(parent.free), LARGE);
    parent.memory = nbla_bound(1, &parent.bound);
    fill(parent.memory, 'b');
    child_start(&child, use_chunks, &parent);
    child_hear(&child);
    assert_true(is_filled(parent.memory, 'b'));
    memory = nbla_bound(1, &parent.free);
    fill(memory, 'p');
    child_tell(&child);
    child_finish(&child);
    assert_true(is_filled(memory, 'p'));
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(parent.memory), 0);
    nbla_physical_memory_unref(parent.bound);
    nbla_physical_memory_unref(parent.free);
}

struct inherited {
    nbla_memory *made, *opened;
};

static void share_in_child(int channel, void *context)
{
    struct inherited *inherited = context;
    struct memclient_token token;
    uint64_t offset, length;
    nbla_memory *memory, *again;
    int fd;

    (void)channel;
    CHECK(nbla_memory_token(inherited->made, &token, &offset, &length) == NBLA_ERROR_RUNTIME);
    CHECK(nbla_memory_export(inherited->made, &fd, &offset, &length) == NBLA_ERROR_RUNTIME);
    CHECK(nbla_memory_id(inherited->made) == 0);
    CHECK(nbla_memory_get_device_state(inherited->made) == NBLA_DEVICE_UNLOCKED);
    fill(inherited->opened, 'o');
    /* what is allocated here is shared as ever */
    memory = nbla_memory_new(NULL, SMALL, "");
    CHECK(memory && nbla_memory_alloc(memory) == 0);
    CHECK(nbla_memory_token(memory, &token, &offset, &length) == 0);
    CHECK(nbla_memory_open_token(NULL, &token, offset, length, NULL, &again) == 0);
    fill(again, 'a');
    CHECK(is_filled(memory, 'a'));
    CHECK(nbla_memory_destroy(again) == 0 && nbla_memory_destroy(memory) == 0);
}

/* nbla_memory_export and nbla_memory_token of what the parent has allocated: NBLA_ERROR_RUNTIME. */
static void opened_memory_stays_shared(void **state)
{
    struct memclient_buffer *buffer;
    struct memclient_token token;
    struct inherited inherited = {.made = nbla_allocated(LARGE)};

    assert_int_equal(memclient_alloc(NULL, LARGE, NULL, &buffer), 0);
    assert_int_equal(memclient_share(buffer, NULL, &token), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, NULL, &inherited.opened), 0);
    child_run(share_in_child, &inherited);
    assert_true(is_filled(inherited.opened, 'o'));
    assert_gives(nbla_memory_destroy(inherited.opened), 0);
    assert_gives(nbla_memory_destroy(inherited.made), 0);
    memclient_buffer_unref(buffer);
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(free_blocks_are_of_one_process_only), TEST(what_was_shared_is_the_parents),
        TEST(there_may_be_more_than_descriptors),  TEST(chunks_are_of_one_process_only),
        TEST(opened_memory_stays_shared),
    };

    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
