/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of a heap: another user who gets blocks, can write none of it, and whose death takes nothing from others. */
#include "tests/integration/heaps.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static struct heap_test readers_begin(void)
{
    return heap_begin_of_size(SMALL, 64 * SMALL, 2);
}

/* Says what it is, then takes what comes; frees all but each third. */
static void read_what_comes(int channel, void *context)
{
    struct memclient_heap *heap = heap_open_in_child(context);
    struct memclient_block_token token;
    struct memclient_block block;
    void *p, *again;

    CHECK_REFUSED(memclient_heap_alloc(heap, 1, &p), EPERM);
    CHECK_REFUSED(memclient_heap_sweep(heap), EPERM);
    CHECK_REFUSED(memclient_heap_trim(heap), EPERM);
    CHECK_REFUSED(memclient_heap_destroy(heap), EPERM);
    CHECK_REFUSED(memclient_heap_share(heap, NULL, &token.slab), EPERM);
    tell(channel);
    for (unsigned i = 0; take_bytes(channel, &token, sizeof(token)); i++) {
        block = token.block;
        block.generation ^= UINT64_C(1) << 63;
        CHECK_REFUSED(memclient_block_take(heap, &block, &p), EINVAL);
        block = token.block;
        block.generation++;
        if (i)
            CHECK_REFUSED(memclient_block_take(heap, &block, &p), ESTALE);
        else
            CHECK_REFUSED(memclient_block_take(heap, &token.block, &p), ENXIO);
        CHECK_DONE(memclient_block_open(heap, &token, &p));
        CHECK_REFUSED(memclient_block_open(heap, &token, &again), EALREADY);
        CHECK(pattern_holds(p, SMALL, i));
        CHECK(mprotect((void *)((uintptr_t)p & ~UINT64_C(4095)), SMALL, PROT_READ | PROT_WRITE) < 0);
        CHECK_REFUSED(memclient_block_give(heap, p, 0, &block), EPERM);
        CHECK_REFUSED(memclient_block_prepare(heap, p, &block), EPERM);
        if (i % 3) {
            CHECK_DONE(memclient_heap_free(heap, p));
            CHECK_REFUSED(memclient_heap_free(heap, p), EALREADY);
            CHECK_REFUSED(memclient_block_open(heap, &token, &again), ESTALE);
        }
        tell(channel);
    }
}

static void a_reader_gets_blocks_and_gives_them_back_as(bool stranger)
{
    struct heap_test test = readers_begin();
    struct memclient_block_token token;
    struct memclient_heap *other;
    struct child child;
    uint64_t reader;
    void *p;

    test.start.uid = stranger ? UID_STRANGER : 0;
    assert_done(memclient_heap_invite(test.heap, &test.start.token, &reader));
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).readers, 1);
    child_start(&child, read_what_comes, &test.start);
    child_hear(&child);
    assert_refused(memclient_heap_open_token(test.ctx, &test.start.token, &other), EBUSY);
    for (unsigned i = 0; i < 90; i++) {
        assert_done(memclient_heap_alloc(test.heap, SMALL, &p));
        pattern_write(p, SMALL, i);
        assert_done(memclient_block_share(test.heap, p, reader, &token));
        assert_refused(memclient_block_take(test.heap, &token.block, &p), ESTALE);
        assert_refused(memclient_heap_free(test.heap, p), EPERM);
        assert_true(pass_bytes(child.channel, &token, sizeof(token)));
        child_hear(&child);
    }
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).blocks_owned, 30);
    assert_int_equal(info_of(test.heap).blocks_mine, 0);
    assert_ok(kill(child.pid, SIGSTOP));
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).blocks_owned, 30);
    child_kill(&child);
    assert_done(memclient_heap_sweep(test.heap));
    assert_int_equal(info_of(test.heap).blocks_owned, 0);
    assert_int_equal(info_of(test.heap).readers, 0);
    assert_done(memclient_heap_alloc(test.heap, SMALL, &p));
    assert_refused(memclient_block_share(test.heap, p, reader, &token), ESRCH);
    heap_end(&test);
}

static void a_reader_gets_blocks_and_gives_them_back(void **state)
{
    a_reader_gets_blocks_and_gives_them_back_as(false);
}

static void a_stranger_can_be_a_reader(void **state)
{
    test_needs_root();
    a_reader_gets_blocks_and_gives_them_back_as(true);
}

/* Without a call of a member in between, the queue is full some time; a member that needs a block empties it. */
static void what_readers_free_is_allocated_again(void **state)
{
    struct heap_test test = readers_begin();
    struct memclient_context *reads = broker_connect(test.broker);
    struct memclient_heap *reader;
    struct memclient_block_token tokens[128];
    struct memclient_token invitation;
    uint64_t number;
    void *p;

    assert_done(memclient_heap_invite(test.heap, &invitation, &number));
    assert_done(memclient_heap_open_token(reads, &invitation, &reader));
    assert_int_equal(memclient_heap_member(reader), number);
    for (int round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 128; i++) {
            assert_done(memclient_heap_alloc(test.heap, SMALL, &p));
            assert_done(memclient_block_share(test.heap, p, number, &tokens[i]));
        }
        for (unsigned i = 0; i < 128; i++) {
            assert_done(memclient_block_open(reader, &tokens[i], &p));
            assert_done(memclient_heap_free(reader, p));
        }
    }
    assert_int_equal(info_of(test.heap).slabs, 2);
    memclient_heap_close(reader);
    memclient_context_close(reads);
    heap_end(&test);
}

/* More blocks than the queue has room for, while no member looks into it. */
static void a_full_queue_refuses_until_a_member_looks(void **state)
{
    enum { MANY = 8100 };
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *reads = broker_connect(broker);
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_heap *heap, *reader;
    struct memclient_block_token token;
    struct memclient_token invitation;
    const uint64_t size = 64;
    static void *blocks[MANY];
    unsigned freed = 0;
    uint64_t number;
    void *p;

    options.block_sizes = &size;
    options.n_block_sizes = 1;
    options.slab_size = MANY * size;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    assert_done(memclient_heap_invite(heap, &invitation, &number));
    assert_done(memclient_heap_open_token(reads, &invitation, &reader));
    for (unsigned i = 0; i < MANY; i++) {
        assert_done(memclient_heap_alloc(heap, 1, &p));
        assert_done(memclient_block_share(heap, p, number, &token));
        assert_done(memclient_block_open(reader, &token, &blocks[i]));
    }
    while (memclient_heap_free(reader, blocks[freed]) == 0)
        freed++;
    assert_int_equal(freed, 8000);
    assert_refused(memclient_heap_free(reader, blocks[freed]), EAGAIN);
    assert_done(memclient_heap_sweep(heap));
    assert_int_equal(info_of(heap).blocks_owned, MANY - freed);
    for (; freed < MANY; freed++)
        assert_done(memclient_heap_free(reader, blocks[freed]));
    assert_done(memclient_heap_sweep(heap));
    assert_int_equal(info_of(heap).blocks_owned, 0);
    memclient_heap_close(reader);
    memclient_heap_close(heap);
    memclient_context_close(reads);
    memclient_context_close(ctx);
    broker_finish(broker);
}

#define READS 4

struct reading {
    struct memclient_heap *heap;
    struct memclient_block_token token;
    int r;
};

static void *open_block(void *arg)
{
    struct reading *reading = arg;
    void *p;

    reading->r = memclient_block_open(reading->heap, &reading->token, &p);
    if (!reading->r)
        reading->r = memclient_heap_free(reading->heap, p);
    return NULL;
}

/* The slab is new to all of them. */
static void threads_of_a_reader_open_a_slab_together(void **state)
{
    struct heap_test test = readers_begin();
    struct memclient_context *reads = broker_connect(test.broker);
    struct memclient_heap *reader;
    struct memclient_token invitation;
    struct reading readings[READS];
    pthread_t threads[READS];
    uint64_t number;
    void *p;

    for (unsigned round = 0; round < 20; round++) {
        assert_done(memclient_heap_invite(test.heap, &invitation, &number));
        assert_done(memclient_heap_open_token(reads, &invitation, &reader));
        for (unsigned i = 0; i < READS; i++) {
            readings[i].heap = reader;
            assert_done(memclient_heap_alloc(test.heap, SMALL, &p));
            assert_done(memclient_block_share(test.heap, p, number, &readings[i].token));
        }
        for (unsigned i = 0; i < READS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, open_block, &readings[i]), 0);
        for (unsigned i = 0; i < READS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(readings[i].r, 0);
        }
        memclient_heap_close(reader);
        assert_done(memclient_heap_sweep(test.heap));
        assert_int_equal(info_of(test.heap).blocks_owned, 0);
    }
    memclient_context_close(reads);
    heap_end(&test);
}

/* A slab that members have given back ends when the reader opens the next one, not only with the reader. */
static void a_reader_lets_go_of_slabs_that_are_gone(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *reads = broker_connect(broker);
    const uint64_t sizes[] = {SMALL, 2 * SMALL};
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_block_token small, large;
    struct memclient_heap *heap, *reader;
    struct memclient_token invitation;
    uint64_t number;
    void *p, *other;

    options.block_sizes = sizes;
    options.n_block_sizes = 2;
    options.slab_size = 16 * SMALL;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    assert_done(memclient_heap_invite(heap, &invitation, &number));
    assert_done(memclient_heap_open_token(reads, &invitation, &reader));
    assert_done(memclient_heap_alloc(heap, SMALL, &p));
    assert_done(memclient_heap_alloc(heap, 2 * SMALL, &other));
    assert_done(memclient_block_share(heap, p, number, &small));
    assert_done(memclient_block_share(heap, other, number, &large));
    assert_done(memclient_block_open(reader, &small, &p));
    assert_done(memclient_heap_free(reader, p));
    assert_int_equal(broker_buffers(ctx), 4);
    assert_done(memclient_heap_trim(heap));
    assert_int_equal(info_of(heap).slabs, 1);
    assert_done(memclient_block_open(reader, &large, &p));
    assert_int_equal(info_of(reader).slabs, 1);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 3));
    memclient_heap_close(reader);
    memclient_heap_close(heap);
    memclient_context_close(reads);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void share_one(struct memclient_heap *heap, uint64_t to, struct memclient_block_token *token)
{
    void *p;

    assert_done(memclient_heap_alloc(heap, SMALL, &p));
    assert_done(memclient_block_share(heap, p, to, token));
}

/* Another reader still has the slab mapped, whose number is the next one's. */
static void who_comes_too_late_is_told_that_the_slab_is_gone(void **state)
{
    struct heap_test test = readers_begin();
    struct memclient_heap *readers[2];
    struct memclient_context *contexts[2];
    struct memclient_block_token old, late, now;
    struct memclient_token invitation;
    uint64_t numbers[2];
    void *p, *again;

    for (unsigned i = 0; i < 2; i++) {
        contexts[i] = broker_connect(test.broker);
        assert_done(memclient_heap_invite(test.heap, &invitation, &numbers[i]));
        assert_done(memclient_heap_open_token(contexts[i], &invitation, &readers[i]));
    }
    share_one(test.heap, numbers[0], &late);
    share_one(test.heap, numbers[1], &old);
    assert_done(memclient_block_open(readers[0], &late, &p));
    assert_done(memclient_heap_free(readers[0], p));
    assert_done(memclient_block_open(readers[1], &old, &p));
    assert_done(memclient_heap_free(readers[1], p));
    assert_done(memclient_heap_trim(test.heap));
    assert_int_equal(info_of(test.heap).slabs, 0);
    share_one(test.heap, numbers[0], &now);
    assert_done(memclient_block_open(readers[0], &now, &p));
    assert_refused(memclient_block_open(readers[0], &late, &again), ESTALE);
    assert_true(all_zero(p, SMALL));
    assert_done(memclient_heap_free(readers[0], p));
    assert_refused(memclient_block_open(readers[0], &late, &again), ESTALE);
    assert_int_equal(info_of(readers[0]).slabs, 1);
    for (unsigned i = 0; i < 2; i++) {
        memclient_heap_close(readers[i]);
        memclient_context_close(contexts[i]);
    }
    heap_end(&test);
}

static void invite_and_die(int channel, void *context)
{
    struct memclient_heap *heap = heap_open_in_child(context);
    struct memclient_token invitation;
    uint64_t number;

    CHECK_DONE(memclient_heap_invite(heap, &invitation, &number));
    CHECK(pass_bytes(channel, &invitation, sizeof(invitation)));
    hear(channel);
}

static void an_invitation_ends_with_who_made_it(void **state)
{
    struct heap_test test = readers_begin();
    struct memclient_heap *reader;
    struct memclient_token invitation;
    struct child child;
    int r;

    child_start(&child, invite_and_die, &test.start);
    assert_true(take_bytes(child.channel, &invitation, sizeof(invitation)));
    assert_int_equal(info_of(test.heap).readers, 1);
    child_kill(&child);
    assert_true(WAIT_UNTIL(memclient_heap_sweep(test.heap) == 0 && info_of(test.heap).readers == 0));
    assert_true(WAIT_UNTIL((r = memclient_heap_open_token(test.ctx, &invitation, &reader)) < 0));
    assert_int_equal(r, -ESTALE);
    heap_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_reader_gets_blocks_and_gives_them_back),
        at_broker(a_stranger_can_be_a_reader),
        at_broker(what_readers_free_is_allocated_again),
        at_broker(a_full_queue_refuses_until_a_member_looks),
        at_broker(threads_of_a_reader_open_a_slab_together),
        at_broker(a_reader_lets_go_of_slabs_that_are_gone),
        at_broker(who_comes_too_late_is_told_that_the_slab_is_gone),
        at_broker(an_invitation_ends_with_who_made_it),
    };
    return test_run(tests, NULL, NULL);
}
