/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: blocks of one process, and what another process gets, changes and gives back. */
#include "tests/integration/heaps.h"

#include <signal.h>

static void blocks_are_allocated_and_freed(void **state)
{
    struct heap_test test = heap_begin(NULL, 0);
    char *blocks[40];
    void *p;

    assert_int_equal(info_of(test.heap).slabs, 0);
    for (int i = 0; i < 40; i++) {
        assert_done(memclient_heap_alloc(test.heap, i % 2 ? 5000 : BLOCK, &p));
        assert_true((uintptr_t)p % BLOCK == 0);
        blocks[i] = p;
        pattern_write(p, BLOCK, (uint64_t)i);
    }
    for (int i = 0; i < 40; i++)
        assert_true(pattern_holds(blocks[i], BLOCK, (uint64_t)i));
    assert_int_equal(info_of(test.heap).slabs, 3);
    assert_int_equal(info_of(test.heap).blocks_mine, 40);
    assert_done(memclient_heap_alloc(test.heap, SMALL, &p));
    assert_int_equal(info_of(test.heap).slabs, 4);
    assert_int_equal(info_of(test.heap).blocks, 3 * BLOCKS_OF_SLAB + SMALL_OF_SLAB);
    assert_done(memclient_heap_free(test.heap, p));
    for (int i = 0; i < 40; i++)
        assert_done(memclient_heap_free(test.heap, blocks[i]));
    assert_int_equal(info_of(test.heap).blocks_free, info_of(test.heap).blocks);
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).slabs, 2);
    assert_done(memclient_heap_trim(test.heap));
    assert_int_equal(info_of(test.heap).slabs, 0);
    assert_done(memclient_heap_alloc(test.heap, 1, &p));
    heap_end(&test);
}

/* Sizes of which the smallest that is large enough is aligned too little. */
static void blocks_are_aligned_as_wanted(void **state)
{
    struct heap_test test = heap_begin(NULL, 0);
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    const uint64_t sizes[] = {4160, 192, 3 * 4096, 4 * MIB, 320};
    struct memclient_heap *heap;
    void *p;

    options.block_sizes = sizes;
    options.n_block_sizes = 5;
    options.slab_size = 16 * MIB;
    assert_done(memclient_heap_create(test.ctx, &options, &heap));
    for (uint64_t alignment = 1; alignment <= 2 * MIB; alignment *= 2)
        for (unsigned i = 0; i < 3; i++) {
            assert_done(memclient_heap_alloc_aligned(heap, 100, alignment, &p));
            assert_true((uintptr_t)p % alignment == 0);
            pattern_write(p, 100, alignment);
        }
    /* 192 bytes for up to 64, twelve KiB for up to 4096, and else the largest */
    assert_int_equal(info_of(heap).slabs, 1 + 1 + 7);
    assert_refused(memclient_heap_alloc_aligned(heap, 100, 0, &p), EINVAL);
    assert_refused(memclient_heap_alloc_aligned(heap, 100, 96, &p), EINVAL);
    assert_refused(memclient_heap_alloc_aligned(heap, 100, 4 * MIB, &p), EINVAL);
    assert_refused(memclient_heap_alloc_aligned(heap, 4 * MIB + 1, 64, &p), EMSGSIZE);
    assert_refused(memclient_heap_alloc_aligned(test.heap, 100, 2 * BLOCK, &p), EMSGSIZE);
    assert_sentence("multiple of 131072");
    memclient_heap_close(heap);
    heap_end(&test);
}

/* Takes what it is sent, tells whether it has the contents, changes and gives it back. */
static void take_and_give(int channel, void *context)
{
    const struct heap_start *start = context;
    struct memclient_heap *heap = heap_open_in_child(start);
    struct memclient_block block;
    uint64_t me, bytes;
    void *p;

    me = memclient_heap_member(heap);
    CHECK(pass_bytes(channel, &me, sizeof(me)));
    while (take_bytes(channel, &block, sizeof(block))) {
        CHECK_DONE(memclient_block_take(heap, &block, &p));
        CHECK_DONE(memclient_block_bytes(heap, p, &bytes));
        CHECK(bytes == BLOCK);
        CHECK_REFUSED(memclient_block_take(heap, &block, &p), EALREADY);
        CHECK(pattern_holds(p, BLOCK, 1));
        pattern_write(p, BLOCK, 2);
        CHECK_DONE(memclient_block_give(heap, p, 0, &block));
        CHECK(pass_bytes(channel, &block, sizeof(block)));
    }
}

static void a_block_goes_to_another_process_and_back(void **state)
{
    struct heap_test test = heap_begin(NULL, 0);
    struct memclient_block block, stale;
    struct child child;
    uint64_t it;
    void *p;

    child_start(&child, take_and_give, &test.start);
    assert_true(take_bytes(child.channel, &it, sizeof(it)));
    assert_true(it != memclient_heap_member(test.heap));
    for (int i = 0; i < 40; i++) {
        assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
        pattern_write(p, BLOCK, 1);
        assert_done(memclient_block_give(test.heap, p, i % 2 ? it : 0, &block));
        stale = block;
        assert_true(pass_bytes(child.channel, &block, sizeof(block)));
        assert_true(take_bytes(child.channel, &block, sizeof(block)));
        assert_refused(memclient_block_take(test.heap, &stale, &p), ESTALE);
        assert_done(memclient_block_take(test.heap, &block, &p));
        assert_true(pattern_holds(p, BLOCK, 2));
        if (i % 3)
            assert_done(memclient_heap_free(test.heap, p));
    }
    assert_int_equal(info_of(test.heap).members, 2);
    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    child_kill(&child);
    assert_done(memclient_block_give(test.heap, p, it, &block)); /* it was not swept yet */
    assert_true(WAIT_UNTIL(memclient_heap_sweep(test.heap) == 0 && info_of(test.heap).members == 1));
    assert_refused(memclient_block_take(test.heap, &block, &p), ESTALE);
    assert_refused(memclient_heap_free(test.heap, p), EALREADY);
    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    assert_refused(memclient_block_give(test.heap, p, it, &block), ESRCH);
    heap_end(&test);
}

static void it_goes_on_without_a_broker(void **state)
{
    struct heap_test test = heap_begin(NULL, 0);
    pid_t pid;
    void *p;

    assert_done(memclient_heap_alloc(test.heap, 1, &p));
    pid = broker_child(test.broker);
    assert_ok(kill(pid, SIGSTOP));
    for (int i = 0; i < 1000; i++) {
        assert_done(memclient_heap_free(test.heap, p));
        assert_done(memclient_heap_alloc(test.heap, 1, &p));
    }
    assert_ok(kill(pid, SIGKILL));
    for (int i = 0; i < 40; i++)
        assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    heap_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(blocks_are_allocated_and_freed),
        at_broker(blocks_are_aligned_as_wanted),
        at_broker(a_block_goes_to_another_process_and_back),
        at_broker(it_goes_on_without_a_broker),
    };
    return test_run(tests, NULL, NULL);
}
