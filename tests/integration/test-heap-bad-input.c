/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: what is refused, and with which errno. */
#include "tests/integration/heaps.h"

static void what_is_wrong_is_told_by_the_word(void **state)
{
    struct heap_test test = heap_begin(NULL, 0);
    struct memclient_block block, other, prepared;
    uint64_t bytes = 0;
    void *p, *again;
    int local;

    assert_refused(memclient_heap_alloc(test.heap, BLOCK + 1, &p), EMSGSIZE);
    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    assert_done(memclient_heap_free(test.heap, NULL));
    assert_refused(memclient_heap_free(test.heap, (char *)p + 64), EINVAL);
    assert_refused(memclient_heap_free(test.heap, &local), EFAULT);
    assert_refused(memclient_block_bytes(test.heap, (char *)p + 64, &bytes), EINVAL);
    assert_refused(memclient_block_bytes(test.heap, &local, &bytes), EFAULT);
    assert_refused(memclient_block_bytes(test.heap, p, NULL), EINVAL);
    assert_done(memclient_block_bytes(test.heap, p, &bytes));
    assert_int_equal(bytes, BLOCK);
    assert_done(memclient_heap_free(test.heap, p));
    assert_refused(memclient_heap_free(test.heap, p), EALREADY);
    assert_sentence("twice");

    assert_done(memclient_heap_alloc(test.heap, BLOCK, &p));
    assert_done(memclient_block_prepare(test.heap, p, &prepared));
    assert_done(memclient_block_give(test.heap, p, 0, &block));
    assert_memory_equal(&prepared, &block, sizeof(block));
    assert_refused(memclient_block_prepare(test.heap, p, &prepared), EBUSY);
    assert_refused(memclient_heap_free(test.heap, p), EBUSY);
    assert_refused(memclient_block_give(test.heap, p, 0, &other), EBUSY);
    other = block;
    other.generation++;
    assert_refused(memclient_block_take(test.heap, &other, &again), ESTALE);
    other = block;
    other.position += 16;
    assert_refused(memclient_block_take(test.heap, &other, &again), EINVAL);
    other.position = block.position | UINT64_C(1) << 60;
    assert_refused(memclient_block_take(test.heap, &other, &again), EINVAL);
    other.position = block.position + (UINT64_C(5) << 48);
    assert_refused(memclient_block_take(test.heap, &other, &again), ESTALE);
    assert_refused(memclient_block_give(test.heap, p, 77, &other), ESRCH);
    assert_done(memclient_block_take(test.heap, &block, &again));
    assert_ptr_equal(again, p);
    assert_refused(memclient_block_take(test.heap, &block, &again), EALREADY);
    assert_done(memclient_heap_free(test.heap, p));
    assert_refused(memclient_block_take(test.heap, &block, &again), ESTALE);
    heap_end(&test);
}

/* Two heaps in which the same has happened, so that all numbers are the same. */
static void what_another_heap_has_given_is_refused(void **state)
{
    struct heap_test test = heap_begin(NULL, 0);
    struct memclient_heap *other = heap_of(test.ctx, NULL, 0);
    struct memclient_block_token tokens[2];
    struct memclient_block blocks[2];
    void *p, *q;

    for (unsigned i = 0; i < 2; i++) {
        struct memclient_heap *heap = i ? other : test.heap;

        assert_done(memclient_heap_alloc(heap, BLOCK, &p));
        assert_done(memclient_block_give(heap, p, 0, &blocks[i]));
        assert_done(memclient_heap_alloc(heap, BLOCK, &q));
        assert_done(memclient_block_share(heap, q, 0, &tokens[i]));
    }
    assert_int_equal(blocks[0].position, blocks[1].position);
    assert_refused(memclient_block_take(other, &blocks[0], &p), EINVAL);
    assert_sentence("another heap");
    assert_refused(memclient_block_open(other, &tokens[0], &p), EINVAL);
    assert_sentence("another heap");
    assert_refused(memclient_block_take(test.heap, &blocks[1], &p), EINVAL);
    for (unsigned i = 0; i < 2; i++) {
        struct memclient_heap *heap = i ? other : test.heap;

        assert_done(memclient_block_take(heap, &blocks[i], &p));
        assert_done(memclient_block_open(heap, &tokens[i], &q));
    }
    memclient_heap_close(other);
    heap_end(&test);
}

static void options_are_checked(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_alloc_options memory = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_name_options name = MEMCLIENT_NAME_OPTIONS_INIT;
    uint64_t sizes[] = {100, 0, UINT64_MAX};
    char long_name[252] = {0};
    struct memclient_buffer *buf;
    struct memclient_token token;
    struct memclient_heap *heap;
    void *p;

    assert_refused(memclient_heap_create(ctx, &options, &heap), EINVAL);
    options.block_sizes = sizes;
    options.n_block_sizes = 2;
    assert_refused(memclient_heap_create(ctx, &options, &heap), EINVAL);
    sizes[0] = sizes[2];
    options.n_block_sizes = 1;
    assert_refused(memclient_heap_create(ctx, &options, &heap), EINVAL);
    sizes[0] = 100;
    options.slabs_max = 5000;
    assert_refused(memclient_heap_create(ctx, &options, &heap), EINVAL);
    options.slabs_max = 1;
    options.slab_size = 1;
    options.flags = 8;
    assert_refused(memclient_heap_create(ctx, &options, &heap), EINVAL);
    options.flags = 0;
    memory.address = 1;
    options.memory = &memory;
    assert_refused(memclient_heap_create(ctx, &options, &heap), EINVAL);
    memory.address = 0;
    name.other_rights = MEMCLIENT_READ;
    options.name = "h";
    options.name_options = &name;
    assert_refused(memclient_heap_create(ctx, &options, &heap), EINVAL);
    name.other_rights = 0;
    memset(long_name, 'n', sizeof(long_name) - 1);
    options.name = long_name;
    assert_refused(memclient_heap_create(ctx, &options, &heap), ENAMETOOLONG);
    options.name = NULL;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    /* one block in one slab */
    assert_done(memclient_heap_alloc(heap, 128, &p));
    assert_refused(memclient_heap_alloc(heap, 1, &p), ENOMEM);
    assert_refused(memclient_heap_alloc(heap, 129, &p), EMSGSIZE);
    memclient_heap_close(heap);

    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    assert_done(memclient_share(buf, NULL, &token));
    assert_refused(memclient_heap_open_token(ctx, &token, &heap), EBADMSG);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

#define MEMBERS_MAX 1022

/* Each has two descriptors here. The last one is told what to do, and comes in when another one has left. */
static void as_many_members_as_there_may_be(void **state)
{
    static struct memclient_heap *heaps[MEMBERS_MAX];
    struct heap_test test;
    struct memclient_token invitation;
    struct memclient_heap *late;
    struct rlimit limit;
    uint64_t number;
    void *p;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_max < 3 * MEMBERS_MAX)
        test_skip("%d descriptors are needed", 3 * MEMBERS_MAX);
    limit.rlim_cur = limit.rlim_max;
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    test = heap_begin(NULL, 0);
    heaps[0] = test.heap;
    for (unsigned i = 1; i < MEMBERS_MAX; i++)
        assert_done(memclient_heap_open_token(test.ctx, &test.start.token, &heaps[i]));
    assert_int_equal(info_of(heaps[0]).members, MEMBERS_MAX);
    assert_refused(memclient_heap_open_token(test.ctx, &test.start.token, &late), EUSERS);
    assert_sentence("one must leave first");
    assert_refused(memclient_heap_invite(heaps[0], &invitation, &number), EUSERS);
    assert_sentence("one must leave first");
    assert_done(memclient_heap_alloc(heaps[MEMBERS_MAX - 1], 1, &p));
    memclient_heap_close(heaps[500]);
    assert_done(memclient_heap_open_token(test.ctx, &test.start.token, &heaps[500]));
    assert_done(memclient_heap_free(heaps[MEMBERS_MAX - 1], p));
    for (unsigned i = MEMBERS_MAX; --i > 0;)
        memclient_heap_close(heaps[i]);
    heap_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(what_is_wrong_is_told_by_the_word),
        at_broker(what_another_heap_has_given_is_refused),
        at_broker(options_are_checked),
        at_broker(as_many_members_as_there_may_be),
    };
    return test_run(tests, NULL, NULL);
}
