/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm stock, as programs and administrators see it: it is there for who asks again, it is nobody's and in nobody's
 * way, nobody's bytes are in it, and the next broker still has it.
 */
#include "tests/integration/clients.h"

#define TIGHT "[pool tight]\nnodes = 0\ncapacity = 16M\nstock = 50%\n"
#define ALL   (16 * MIB)
#define SIZE  (256 * KIB)

static int try_alloc(struct memclient_context *ctx, uint64_t size, struct memclient_buffer **buf)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pool = "tight";
    return memclient_alloc(ctx, size, &options, buf);
}

static int find(const struct memclient_pool_info *pool, void *data)
{
    if (strcmp(pool->name, "tight") != 0)
        return 0;
    *(struct memclient_pool_info *)data = *pool;
    return 1;
}

static struct memclient_pool_info look(struct memclient_context *ctx)
{
    struct memclient_pool_info pool = {.stock = 0};

    assert_done(memclient_list_pools(ctx, find, &pool));
    return pool;
}

/* There is some, nothing of it is being made, and what was given back has arrived. */
static bool is_calm(struct memclient_context *ctx)
{
    struct memclient_pool_info pool = look(ctx);

    return pool.stock_ready && pool.stock_ready == pool.stock && !pool.used;
}

static bool ask(struct memclient_context *ctx)
{
    struct memclient_buffer *buf;

    assert_done(try_alloc(ctx, SIZE, &buf));
    memclient_buffer_unref(buf);
    return look(ctx).stock_ready;
}

/* Who had to wait for room asked in vain, as far as stock is concerned, and has to ask again. */
static void have_stock(struct memclient_context *ctx)
{
    assert_true(WAIT_UNTIL(ask(ctx)));
    assert_true(WAIT_UNTIL(is_calm(ctx)));
}

/* One comes from there, unless more was made at that very moment. */
static bool sees_it_go(struct memclient_context *ctx)
{
    struct memclient_pool_info before, pool;
    struct memclient_buffer *buf;

    have_stock(ctx);
    before = look(ctx);
    assert_int_equal(before.stock, before.stock_buffers * SIZE);
    assert_int_equal(before.available, ALL);
    assert_int_equal(before.buffers, 0);
    assert_int_equal(broker_status(ctx).buffers, 0);
    assert_done(try_alloc(ctx, SIZE, &buf));
    pool = look(ctx);
    assert_int_equal(pool.used, SIZE);
    assert_int_equal(pool.buffers, 1);
    assert_int_equal(pool.available, ALL - SIZE);
    memclient_buffer_unref(buf);
    return pool.stock_ready == before.stock_ready - SIZE;
}

static void a_repeated_size_is_allocated_from_stock(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker);

    assert_true(WAIT_UNTIL(sees_it_go(ctx)));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What another one gives back does not get there. */
static void I4_stock_is_zeros_that_nobody_had(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf;

    have_stock(ctx);
    for (unsigned i = 0; i < 200; i++) {
        struct memclient_context *who = i % 2 ? ctx : other;
        void *p;

        assert_done(try_alloc(who, SIZE, &buf));
        assert_done(memclient_map(buf, NULL, &p));
        assert_true(all_zero(p, SIZE));
        memset(p, 0xa5, SIZE);
        assert_done(memclient_unmap(who, p, 0));
        memclient_buffer_unref(buf);
    }
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void stock_leaves_room_for_everybody(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf, *none;

    for (unsigned i = 0; i < 5; i++) {
        have_stock(ctx);
        assert_int_equal(look(other).available, ALL);
        assert_done(try_alloc(other, ALL, &buf));
        assert_int_equal(look(ctx).stock, 0);
        assert_refused(try_alloc(ctx, SIZE, &none), ENOMEM);
        broker_check(broker);
        memclient_buffer_unref(buf);
        assert_done(memclient_broker_ping(other));
    }
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Whoever kills brokers gets no second copy of it, nor loses it; and it is not handed out twice. */
static void I5_stock_outlives_the_broker(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_pool_info before, after;

    have_stock(ctx);
    for (unsigned i = 0; i < 5; i++) {
        struct memclient_buffer *bufs[2];

        assert_true(WAIT_UNTIL(is_calm(ctx)));
        before = look(ctx);
        broker_kill_child(broker);
        after = look(ctx);
        assert_true(after.stock_ready >= before.stock_ready);
        for (unsigned k = 0; k < 2; k++) {
            void *p;

            assert_done(try_alloc(ctx, SIZE, &bufs[k]));
            assert_done(memclient_map(bufs[k], NULL, &p));
            assert_true(all_zero(p, SIZE));
            memset(p, 0xa5, SIZE);
            assert_done(memclient_unmap(ctx, p, 0));
        }
        assert_int_not_equal(broker_info(bufs[0]).inode, broker_info(bufs[1]).inode);
        broker_check(broker);
        memclient_buffer_unref_many(2, bufs);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void none_is_made_where_none_is_wanted(void **state)
{
    struct broker_process *broker = broker_for_test("[pool tight]\nnodes = 0\ncapacity = 16M\nstock = 0\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;

    for (unsigned i = 0; i < 20; i++) {
        assert_done(try_alloc(ctx, SIZE, &buf));
        memclient_buffer_unref(buf);
        assert_int_equal(look(ctx).stock, 0);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_repeated_size_is_allocated_from_stock), at_broker(I4_stock_is_zeros_that_nobody_had),
        at_broker(stock_leaves_room_for_everybody),         at_broker(I5_stock_outlives_the_broker),
        at_broker(none_is_made_where_none_is_wanted),
    };

    return test_run(tests, NULL, NULL);
}
