/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps and fork(): a child is another member. */
#include "tests/integration/heaps.h"

struct family {
    struct heap_test test;
    void *block;
};

static void be_another_member(int channel, void *context)
{
    struct family *family = context;
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;
    struct memclient_block block;
    void *p;

    CHECK(memclient_heap_member(family->test.heap) == 0);
    CHECK_REFUSED(memclient_heap_free(family->test.heap, family->block), EPERM);
    CHECK(pattern_holds(family->block, BLOCK, 4));
    hear(channel); /* the parent has freed and allocated */
    CHECK_DONE(memclient_heap_alloc(family->test.heap, BLOCK, &p));
    CHECK(memclient_heap_member(family->test.heap) != 0);
    CHECK(p != family->block);
    pattern_write(p, BLOCK, 5);
    CHECK_DONE(memclient_heap_query(family->test.heap, &info));
    CHECK(info.members == 2 && info.blocks_mine == 1 && info.blocks_owned == 2);
    CHECK_DONE(memclient_block_give(family->test.heap, p, 0, &block));
    CHECK(pass_bytes(channel, &block, sizeof(block)));
    hear(channel);
    memclient_heap_close(family->test.heap);
}

static void a_child_is_another_member(void **state)
{
    struct family family = {.test = heap_begin(NULL, 0)};
    struct memclient_block block;
    struct child child;
    void *p;

    assert_done(memclient_heap_alloc(family.test.heap, BLOCK, &family.block));
    pattern_write(family.block, BLOCK, 4);
    child_start(&child, be_another_member, &family);
    assert_done(memclient_heap_alloc(family.test.heap, BLOCK, &p));
    assert_done(memclient_heap_free(family.test.heap, p));
    child_tell(&child);
    assert_true(take_bytes(child.channel, &block, sizeof(block)));
    assert_done(memclient_block_take(family.test.heap, &block, &p));
    assert_true(pattern_holds(p, BLOCK, 5));
    child_tell(&child);
    child_finish(&child);
    assert_int_equal(info_of(family.test.heap).members, 1);
    assert_int_equal(info_of(family.test.heap).blocks_mine, 2);
    heap_end(&family.test);
}

static void destroy_in_child(int channel, void *context)
{
    const struct family *family = context;

    (void)channel;
    CHECK_DONE(memclient_heap_destroy(family->test.heap));
}

/* Whoever has it open may destroy it, and be no member yet. What the parent has stays until it leaves. */
static void a_child_destroys_the_heap_for_all(void **state)
{
    struct family family = {.test = heap_begin("doomed", 0)};

    assert_done(memclient_heap_alloc(family.test.heap, BLOCK, &family.block));
    pattern_write(family.block, BLOCK, 4);
    assert_int_equal(broker_status(family.test.ctx).names, 2);
    child_run(destroy_in_child, &family);
    assert_int_equal(broker_status(family.test.ctx).names, 0);
    assert_true(pattern_holds(family.block, BLOCK, 4));
    assert_done(memclient_heap_free(family.test.heap, family.block));
    memclient_heap_close(family.test.heap);
    family.test.heap = NULL;
    assert_true(WAIT_UNTIL(broker_buffers(family.test.ctx) == 0));
    heap_end(&family.test);
}

static void outlive_the_parent(int channel, void *context)
{
    struct family *family = context;
    struct memclient_token token;
    void *p;

    CHECK_DONE(memclient_heap_alloc(family->test.heap, BLOCK, &p));
    pattern_write(p, BLOCK, 6);
    tell(channel);
    hear(channel); /* the parent has left */
    CHECK(pattern_holds(p, BLOCK, 6));
    for (int i = 0; i < 40; i++)
        CHECK_DONE(memclient_heap_alloc(family->test.heap, BLOCK, &p));
    CHECK_DONE(memclient_heap_share(family->test.heap, NULL, &token));
    CHECK(pass_bytes(channel, &token, sizeof(token)));
    hear(channel);
}

/* The slabs were mapped by the parent, whose session held them. */
static void a_child_keeps_slabs_that_its_parent_made(void **state)
{
    struct family family = {.test = heap_begin(NULL, 0)};
    struct memclient_token token;
    struct child child;

    assert_done(memclient_heap_alloc(family.test.heap, BLOCK, &family.block));
    child_start(&child, outlive_the_parent, &family);
    child_hear(&child);
    memclient_heap_close(family.test.heap);
    memclient_context_close(family.test.ctx);
    child_tell(&child);
    assert_true(take_bytes(child.channel, &token, sizeof(token)));
    family.test.ctx = broker_connect(family.test.broker);
    assert_done(memclient_heap_open_token(family.test.ctx, &token, &family.test.heap));
    assert_int_equal(info_of(family.test.heap).members, 2);
    assert_int_equal(info_of(family.test.heap).slabs, 3);
    assert_int_equal(info_of(family.test.heap).blocks_owned, 41);
    child_tell(&child);
    child_finish(&child);
    assert_done(memclient_heap_sweep(family.test.heap));
    assert_int_equal(info_of(family.test.heap).blocks_owned, 0);
    heap_end(&family.test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_child_is_another_member),
        at_broker(a_child_destroys_the_heap_for_all),
        at_broker(a_child_keeps_slabs_that_its_parent_made),
    };
    return test_run(tests, NULL, NULL);
}
