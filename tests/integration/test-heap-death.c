/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: what members had that died. */
#include "tests/integration/heaps.h"

#include <signal.h>

static void after_a_death(unsigned flags)
{
    struct heap_test test = heap_begin(NULL, flags);
    struct memclient_block block;
    struct child child;
    void *p;

    test.start.n = 100;
    /* the slab is held here, too */
    assert_done(memclient_heap_alloc(test.heap, 1, &p));
    assert_done(memclient_heap_free(test.heap, p));
    child_start(&child, heap_fill_in_child, &test.start);
    assert_true(take_bytes(child.channel, &block, sizeof(block)));
    /* one that is stopped has lost nothing */
    assert_ok(kill(child.pid, SIGSTOP));
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).blocks_owned, 50);
    assert_int_equal(info_of(test.heap).blocks_given, 50);
    child_kill(&child);
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).blocks_owned, 0);
    if (flags & MEMCLIENT_HEAP_KEEP_GIVEN) {
        assert_int_equal(info_of(test.heap).blocks_given, 50);
        assert_done(memclient_block_take(test.heap, &block, &p));
        assert_true(pattern_holds(p, SMALL, test.start.n - 1));
    } else {
        assert_int_equal(info_of(test.heap).blocks_given, 0);
        assert_refused(memclient_block_take(test.heap, &block, &p), ESTALE);
    }
    assert_int_equal(info_of(test.heap).members, 1);
    heap_end(&test);
}

static void what_the_dead_had_is_taken_back(void **state)
{
    after_a_death(0);
    after_a_death(MEMCLIENT_HEAP_KEEP_GIVEN);
}

/* Of a heap without a name. */
static void a_slab_that_only_the_dead_had_is_gone(void **state)
{
    struct heap_test test = heap_begin(NULL, MEMCLIENT_HEAP_KEEP_GIVEN);
    struct memclient_block block;
    struct child child;
    void *p;

    test.start.n = 2;
    child_start(&child, heap_fill_in_child, &test.start);
    assert_true(take_bytes(child.channel, &block, sizeof(block)));
    assert_int_equal(broker_buffers(test.ctx), 2);
    child_kill(&child);
    assert_true(WAIT_UNTIL(broker_buffers(test.ctx) == 1));
    assert_refused(memclient_block_take(test.heap, &block, &p), ESTALE);
    assert_int_equal(info_of(test.heap).slabs, 0);
    assert_done(memclient_heap_alloc(test.heap, SMALL, &p));
    assert_refused(memclient_block_take(test.heap, &block, &p), ESTALE);
    assert_int_equal(info_of(test.heap).members, 1);
    heap_end(&test);
}

#define MANY_SLABS 80

static void fill_many_slabs(int channel, void *context)
{
    const struct heap_start *start = context;
    struct memclient_heap *heap = heap_open_in_child(start);
    void *p;

    for (unsigned i = 0; i < MANY_SLABS; i++)
        CHECK_DONE(memclient_heap_alloc(heap, SMALL, &p));
    tell(channel);
    hear(channel);
}

/* However many there are, one sweep finds that out. */
static void many_slabs_that_only_the_dead_had_are_gone(void **state)
{
    struct heap_test test = heap_begin_of_size(SMALL, SMALL, 0);
    struct child child;

    child_start(&child, fill_many_slabs, &test.start);
    child_hear(&child);
    assert_int_equal(broker_buffers(test.ctx), 1 + MANY_SLABS);
    child_kill(&child);
    assert_true(WAIT_UNTIL(broker_buffers(test.ctx) == 1));
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).members, 1);
    assert_int_equal(info_of(test.heap).slabs, 0);
    heap_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(what_the_dead_had_is_taken_back),
        at_broker(a_slab_that_only_the_dead_had_is_gone),
        at_broker(many_slabs_that_only_the_dead_had_are_gone),
    };
    return test_run(tests, NULL, NULL);
}
