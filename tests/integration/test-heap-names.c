/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps with names, which stay when all members have died, and whom they belong to. */
#include "tests/integration/heaps.h"

static void fill_by_name(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    const uint64_t size = BLOCK;
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_block block;
    struct memclient_heap *heap;
    void *p;

    options.block_sizes = &size;
    options.n_block_sizes = 1;
    options.name = "cam/frames";
    options.flags = MEMCLIENT_HEAP_KEEP_GIVEN;
    CHECK_DONE(memclient_heap_create(ctx, &options, &heap));
    CHECK_DONE(memclient_heap_alloc(heap, BLOCK, &p));
    pattern_write(p, BLOCK, 9);
    CHECK_DONE(memclient_block_give(heap, p, 0, &block));
    CHECK(pass_bytes(channel, &block, sizeof(block)));
    hear(channel);
}

/* All members die, and a broker as well. */
static void a_heap_with_a_name_stays(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_heap *heap;
    struct memclient_block block;
    struct child child;
    void *p;

    child_start(&child, fill_by_name, broker->socket);
    assert_true(take_bytes(child.channel, &block, sizeof(block)));
    child_kill(&child);
    broker_kill_child(broker);
    assert_done(memclient_heap_open_name(ctx, "cam/frames", &heap));
    assert_int_equal(info_of(heap).members, 1);
    assert_int_equal(info_of(heap).blocks_given, 1);
    assert_done(memclient_block_take(heap, &block, &p));
    assert_true(pattern_holds(p, BLOCK, 9));
    memclient_heap_close(heap);
    assert_done(memclient_heap_open_name(ctx, "cam/frames", &heap));
    assert_done(memclient_heap_trim(heap));
    assert_int_equal(info_of(heap).slabs, 0);
    assert_done(memclient_heap_alloc(heap, 1, &p));
    assert_done(memclient_heap_destroy(heap));
    assert_refused(memclient_heap_open_name(ctx, "cam/frames", &heap), ENOENT);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* A member that came by a token adds slabs that stay, too. */
static void slabs_of_a_heap_with_a_name_have_names(void **state)
{
    struct heap_test test = heap_begin("kept", MEMCLIENT_HEAP_KEEP_GIVEN);
    struct memclient_block block;
    struct child child;
    void *p;

    test.start.n = 2;
    memclient_heap_close(test.heap);
    child_start(&child, heap_fill_in_child, &test.start);
    assert_true(take_bytes(child.channel, &block, sizeof(block)));
    child_kill(&child);
    assert_true(WAIT_UNTIL(broker_status(test.ctx).sessions == 1));
    assert_done(memclient_heap_open_name(test.ctx, "kept", &test.heap));
    assert_done(memclient_block_take(test.heap, &block, &p));
    assert_true(pattern_holds(p, SMALL, 1));
    assert_done(memclient_heap_destroy(test.heap));
    test.heap = NULL;
    heap_end(&test);
}

/* A member that goes on after that adds slabs that end with it. */
static void nothing_of_a_destroyed_heap_stays(void **state)
{
    struct heap_test test = heap_begin("short", 0);
    struct memclient_context *second = broker_connect(test.broker);
    struct memclient_heap *other;
    void *p;

    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    assert_done(memclient_heap_open_name(second, "short", &other));
    assert_done(memclient_heap_destroy(test.heap));
    test.heap = NULL;
    for (int i = 0; i < 40; i++)
        assert_done(memclient_heap_alloc(other, BLOCK, &p));
    assert_true(info_of(other).slabs >= 2);
    assert_int_equal(broker_status(test.ctx).names, 0);
    memclient_heap_close(other);
    assert_true(WAIT_UNTIL(broker_buffers(test.ctx) == 0));
    /* the name is free again */
    test.heap = heap_of(test.ctx, "short", 0);
    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    assert_done(memclient_heap_destroy(test.heap));
    test.heap = NULL;
    memclient_context_close(second);
    heap_end(&test);
}

/* Names that were bound to it later go as well, and those of slabs that a member who came by one has added. */
static void every_name_of_a_destroyed_heap_goes(void **state)
{
    struct heap_test test = heap_begin("first", 0);
    struct memclient_context *second = broker_connect(test.broker);
    struct memclient_buffer *control;
    struct memclient_heap *other;
    void *p;

    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    assert_done(memclient_open_name(second, "first", 0, &control));
    assert_done(memclient_bind_name(control, "second", NULL));
    assert_done(memclient_unbind_name(second, "first"));
    assert_done(memclient_bind_name(control, "third/name", NULL));
    assert_done(memclient_heap_open_name(second, "second", &other));
    for (unsigned i = 0; i < BLOCKS_OF_SLAB; i++)
        assert_done(memclient_heap_alloc(other, BLOCK, &p));
    assert_int_equal(broker_status(test.ctx).names, 4);
    memclient_buffer_unref(control);
    memclient_heap_close(other);
    assert_done(memclient_heap_destroy(test.heap));
    test.heap = NULL;
    assert_int_equal(broker_status(test.ctx).names, 0);
    assert_true(WAIT_UNTIL(broker_buffers(test.ctx) == 0));

    /* one that had none at first */
    test.heap = heap_of(test.ctx, NULL, 0);
    assert_done(memclient_heap_share(test.heap, NULL, &test.start.token));
    assert_done(memclient_open_token(test.ctx, &test.start.token, 0, &control));
    assert_done(memclient_bind_name(control, "late", NULL));
    memclient_buffer_unref(control);
    assert_done(memclient_heap_destroy(test.heap));
    test.heap = NULL;
    assert_int_equal(broker_status(test.ctx).names, 0);
    memclient_context_close(second);
    heap_end(&test);
}

static void allocate_as_a_stranger(int channel, void *context)
{
    struct memclient_heap *heap = heap_open_in_child(context);
    void *p;

    for (unsigned i = 1; i < BLOCKS_OF_SLAB; i++)
        CHECK_DONE(memclient_heap_alloc(heap, BLOCK, &p));
    CHECK_REFUSED(memclient_heap_alloc(heap, BLOCK, &p), EACCES);
    CHECK_REFUSED(memclient_heap_destroy(heap), EACCES);
    tell(channel);
    hear(channel);
}

static void bind_as_a_stranger(int channel, void *context)
{
    const struct heap_start *start = context;
    struct memclient_context *ctx;
    struct memclient_buffer *control;

    become(start->uid);
    ctx = broker_connect_in_child(start->socket);
    CHECK_DONE(memclient_open_token(ctx, &start->token, 0, &control));
    CHECK_DONE(memclient_bind_name(control, "theirs", NULL));
    tell(channel);
    hear(channel);
    CHECK_DONE(memclient_unbind_name(ctx, "theirs"));
}

/* It stays, and the heap with it, but this user's names go, whichever was bound first. */
static void another_users_name_does_not_keep_ones_own(void **state)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *control;
    struct heap_test test;
    struct child child;

    test_needs_root();
    test = heap_begin("mine", 0);
    test.start.uid = UID_STRANGER;
    assert_done(memclient_open_name(test.ctx, "mine", 0, &control));
    options.rights = MEMCLIENT_READ | MEMCLIENT_WRITE | MEMCLIENT_MANAGE;
    assert_done(memclient_share(control, &options, &test.start.token));
    child_start(&child, bind_as_a_stranger, &test.start);
    child_hear(&child);
    assert_done(memclient_bind_name(control, "second", NULL));
    assert_done(memclient_bind_name(control, "third", NULL));
    memclient_buffer_unref(control);
    assert_refused(memclient_heap_destroy(test.heap), EACCES);
    assert_int_equal(broker_status(test.ctx).names, 1);
    child_tell(&child);
    child_finish(&child);
    assert_done(memclient_heap_destroy(test.heap));
    test.heap = NULL;
    heap_end(&test);
}

static void strangers_share_blocks_but_add_no_named_slabs(void **state)
{
    struct heap_test test;
    struct child child;
    void *p;

    test_needs_root();
    test = heap_begin("mine", 0);
    test.start.uid = UID_STRANGER;
    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    child_start(&child, allocate_as_a_stranger, &test.start);
    child_hear(&child);
    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    assert_int_equal(info_of(test.heap).slabs, 2);
    child_tell(&child);
    child_finish(&child);
    assert_done(memclient_heap_destroy(test.heap));
    test.heap = NULL;
    heap_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_heap_with_a_name_stays),
        at_broker(slabs_of_a_heap_with_a_name_have_names),
        at_broker(nothing_of_a_destroyed_heap_stays),
        at_broker(every_name_of_a_destroyed_heap_goes),
        at_broker(another_users_name_does_not_keep_ones_own),
        at_broker(strangers_share_blocks_but_add_no_named_slabs),
    };
    return test_run(tests, NULL, NULL);
}
