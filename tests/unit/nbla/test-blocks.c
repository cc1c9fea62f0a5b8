/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of one allocation that share pages, opened where they are in the process that made them, in any order. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "tests/support/child.h"
#include "tests/unit/nbla/nbla.h"

#define BYTES ((size_t)64 << 10)

/* Two blocks of one page, at their maker's addresses or at others: both, and what is written stays. */
static void blocks_of_one_page(void **state)
{
    nbla_memory *memory = nbla_allocated(BYTES), *second, *opened[2];
    char *there = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct memclient_token token[2];
    uint64_t offset[2], length[2];

    assert_mapped(there);
    assert_ok(munmap(there, BYTES));
    assert_gives(nbla_memory_divide(memory, 2 * page_size() + 512, &second), 0);
    assert_gives(nbla_memory_token(memory, &token[0], &offset[0], &length[0]), 0);
    assert_gives(nbla_memory_token(second, &token[1], &offset[1], &length[1]), 0);
    for (int order = 0; order < 2; order++) {
        for (int i = 0; i < 2; i++) {
            assert_gives(nbla_memory_open_token(NULL, &token[i], offset[i], length[i], there + offset[i], &opened[i]),
                         0);
            assert_ptr_equal(nbla_memory_pointer(opened[i]), there + offset[i]);
        }
        there[offset[1] - 1] = 'a';
        there[offset[1]] = 'b';
        assert_gives(nbla_memory_destroy(opened[order]), 0);
        assert_int_equal(there[offset[1] - order], order ? 'a' : 'b');
        assert_gives(nbla_memory_destroy(opened[!order]), 0);
    }
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
}

/* As an allocator divides: 512 bytes and multiples, so that most pages have several blocks. */
#define BLOCKS 100

struct block_note {
    struct memclient_token token;
    uint64_t offset, length;
    char *address;
};

static void shuffle(unsigned *seed, unsigned order[static BLOCKS])
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned other = (unsigned)rand_r(seed) % (i + 1);

        order[i] = order[other];
        order[other] = i;
    }
}

static void consume_blocks(int channel, void *context)
{
    struct block_note *notes = context;
    unsigned seed = 17, order[BLOCKS];
    nbla_memory *memories[BLOCKS];

    hear(channel);
    for (int round = 0; round < 3; round++) {
        shuffle(&seed, order);
        for (unsigned i = 0; i < BLOCKS; i++) {
            const struct block_note *note = &notes[order[i]];

            CHECK(nbla_memory_open_token(NULL, &note->token, note->offset, note->length, round ? note->address : NULL,
                                         &memories[order[i]]) == 0);
            /* a sanitizer's shadow may lie anywhere */
            CHECK(nbla_memory_pointer(memories[order[i]]) == note->address || TEST_TSAN);
        }
        shuffle(&seed, order);
        for (unsigned i = 0; i < BLOCKS; i++) {
            /* those that are left are as they were */
            for (unsigned k = i; k < BLOCKS; k++) {
                const unsigned char *pointer = nbla_memory_pointer(memories[order[k]]);

                CHECK(pointer[0] == order[k] && pointer[notes[order[k]].length - 1] == order[k]);
            }
            CHECK(nbla_memory_destroy(memories[order[i]]) == 0);
        }
    }
}

/* All blocks of one allocation, each by its own token, at their maker's addresses; opened and closed in any order. */
static void many_blocks_in_another_process(void **state)
{
    struct block_note *notes =
        mmap(NULL, BLOCKS * sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    nbla_memory *blocks[BLOCKS], *rest;
    struct child child;

    assert_mapped(notes);
    child_start(&child, consume_blocks, notes);
    rest = nbla_allocated((size_t)1 << 20);
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = rest;
        assert_gives(nbla_memory_divide(rest, (size_t)512 * (1 + i % 13), &rest), 0);
        notes[i].address = nbla_memory_pointer(blocks[i]);
        assert_gives(nbla_memory_token(blocks[i], &notes[i].token, &notes[i].offset, &notes[i].length), 0);
        memset(notes[i].address, (int)i, notes[i].length);
    }
    child_tell(&child);
    child_finish(&child);
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_gives(nbla_memory_destroy(blocks[i]), 0);
    assert_gives(nbla_memory_destroy(rest), 0);
    assert_ok(munmap(notes, BLOCKS * sizeof(*notes)));
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(blocks_of_one_page),
        TEST(many_blocks_in_another_process),
    };

    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
