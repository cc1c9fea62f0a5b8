/* SPDX-License-Identifier: Apache-2.0 */
/* See heaps.h. */
#include "tests/integration/heaps.h"

struct memclient_heap *heap_of(struct memclient_context *ctx, const char *name, unsigned flags)
{
    const uint64_t sizes[] = {BLOCK, SMALL};
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_heap *heap;

    options.block_sizes = sizes;
    options.n_block_sizes = 2;
    options.slab_size = BLOCKS_OF_SLAB * BLOCK;
    options.name = name;
    options.flags = flags;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    return heap;
}

struct memclient_heap *heap_of_size(struct memclient_context *ctx, uint64_t size, uint64_t slab_size, size_t slabs_max)
{
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct memclient_heap *heap;

    options.block_sizes = &size;
    options.n_block_sizes = 1;
    options.slab_size = slab_size;
    options.slabs_max = slabs_max;
    assert_done(memclient_heap_create(ctx, &options, &heap));
    return heap;
}

struct memclient_heap_info info_of(struct memclient_heap *heap)
{
    struct memclient_heap_info info = MEMCLIENT_HEAP_INFO_INIT;

    assert_done(memclient_heap_query(heap, &info));
    assert_int_equal(info.blocks, info.blocks_free + info.blocks_owned + info.blocks_given);
    return info;
}

struct memclient_heap *heap_open_in_child(const struct heap_start *start)
{
    struct memclient_heap *heap;

    if (start->uid)
        become(start->uid);
    CHECK_DONE(memclient_heap_open_token(broker_connect_in_child(start->socket), &start->token, &heap));
    return heap;
}

void heap_fill_in_child(int channel, void *context)
{
    const struct heap_start *start = context;
    struct memclient_heap *heap = heap_open_in_child(start);
    struct memclient_block block;
    void *p;

    for (unsigned i = 0; i < start->n; i++) {
        CHECK_DONE(memclient_heap_alloc(heap, SMALL, &p));
        if (i % 2) {
            pattern_write(p, SMALL, i);
            CHECK_DONE(memclient_block_give(heap, p, 0, &block));
        }
    }
    CHECK(pass_bytes(channel, &block, sizeof(block)));
    hear(channel);
}

static void heap_start_set(struct heap_start *start, const struct heap_test *test)
{
    (void)snprintf(start->socket, sizeof(start->socket), "%s", test->broker->socket);
    assert_done(memclient_heap_share(test->heap, NULL, &start->token));
}

struct heap_test heap_begin(const char *name, unsigned flags)
{
    struct heap_test test = {.broker = broker_for_test(NULL)};

    test.ctx = broker_connect(test.broker);
    test.heap = heap_of(test.ctx, name, flags);
    heap_start_set(&test.start, &test);
    return test;
}

struct heap_test heap_begin_of_size(uint64_t size, uint64_t slab_size, size_t slabs_max)
{
    struct heap_test test = {.broker = broker_for_test(NULL)};

    test.ctx = broker_connect(test.broker);
    test.heap = heap_of_size(test.ctx, size, slab_size, slabs_max);
    heap_start_set(&test.start, &test);
    return test;
}

void heap_end(struct heap_test *test)
{
    memclient_heap_close(test->heap);
    memclient_context_close(test->ctx);
    broker_finish(test->broker);
}
