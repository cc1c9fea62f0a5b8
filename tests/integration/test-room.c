/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was given back can be had again, at once and exactly, though giving back takes its time: who asks for it waits,
 * and what is told as available counts it. What somebody still has does not count.
 */
#include "tests/integration/clients.h"

#include <pthread.h>
#include <sys/mman.h>

#define TIGHT "[pool tight]\nnodes = 0\ncapacity = 256M\n"
#define ALL   (256 * MIB)

static uint64_t available(struct memclient_context *ctx)
{
    return broker_pool_available(ctx, "tight");
}

static int try_alloc(struct memclient_context *ctx, uint64_t size, struct memclient_buffer **buf)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pool = "tight";
    return memclient_alloc(ctx, size, &options, buf);
}

static void *alloc_mapped(struct memclient_context *ctx, uint64_t size, struct memclient_buffer **buf)
{
    char *p;

    assert_done(try_alloc(ctx, size, buf));
    assert_done(memclient_map(*buf, NULL, (void **)&p));
    p[size - 1] = 1;
    return p;
}

static void available_memory_is_exact_at_once(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker);
    uint64_t before = available(ctx), size = page_size();

    assert_int_equal(before, ALL);
    for (unsigned i = 0; i < 200; i++, size = size == ALL ? page_size() : 2 * size) {
        struct memclient_buffer *buf;
        void *p = alloc_mapped(ctx, size, &buf);

        assert_int_equal(available(ctx), before - size);
        if (i % 2 == 0) {
            assert_done(memclient_unmap(ctx, p, 0));
            memclient_buffer_unref(buf);
        } else {
            memclient_buffer_unref(buf);
            assert_done(memclient_unmap(ctx, p, 0));
        }
        assert_int_equal(available(ctx), before);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

static int see_declared(const struct memclient_pool_info *pool, void *data)
{
    unsigned *declared = data;

    assert_int_equal(pool->declared, strcmp(pool->name, "tight") == 0);
    *declared += pool->declared;
    return 0;
}

static void pools_of_the_configuration_say_so(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker);
    unsigned declared = 0;

    assert_done(memclient_list_pools(ctx, see_declared, &declared));
    assert_int_equal(declared, 1);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void released_memory_can_be_allocated(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf, *many[64];
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    uint64_t sizes[64];

    for (unsigned i = 0; i < 10; i++) {
        assert_done(memclient_unmap(ctx, alloc_mapped(ctx, ALL, &buf), 0));
        memclient_buffer_unref(buf);
    }
    /* by somebody else, once it has arrived; in many pieces, and while the sums are proven */
    options.pool = "tight";
    for (unsigned i = 0; i < 64; i++)
        sizes[i] = ALL / 64;
    for (unsigned i = 0; i < 5; i++) {
        assert_done(memclient_broker_ping(ctx));
        assert_done(memclient_alloc_many(other, 64, sizes, &options, many));
        if (i % 2)
            memclient_buffer_unref_many(64, many);
        else
            for (unsigned k = 0; k < 64; k++)
                memclient_buffer_unref(many[k]);
        assert_done(memclient_broker_ping(other));
        broker_check(broker);
        assert_done(memclient_unmap(ctx, alloc_mapped(ctx, ALL, &buf), 0));
        memclient_buffer_unref(buf);
        broker_check(broker);
    }
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void limits_wait_for_what_was_given_back(void **state)
{
    struct broker_process *broker =
        broker_for_test("[limits]\nuid_bytes = 128M\nsession_bytes = 64M\nuid_buffers = 4\n" TIGHT);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker),
                             *third = broker_connect(broker);
    struct memclient_buffer *buf, *theirs, *none, *few[4];

    /* the session's, and the user's, are told */
    assert_int_equal(available(ctx), 64 * MIB);
    assert_done(try_alloc(other, 32 * MIB, &theirs));
    assert_int_equal(available(ctx), 64 * MIB);
    assert_int_equal(available(other), 32 * MIB);
    for (unsigned i = 0; i < 10; i++) {
        assert_done(try_alloc(ctx, 64 * MIB, &buf));
        assert_int_equal(available(ctx), 0);
        assert_int_equal(available(third), 32 * MIB);
        assert_refused(try_alloc(third, 32 * MIB + page_size(), &none), EDQUOT);
        memclient_buffer_unref(buf);
        assert_int_equal(available(ctx), 64 * MIB);
    }
    assert_refused(try_alloc(ctx, 64 * MIB + page_size(), &none), EDQUOT);
    memclient_buffer_unref(theirs);
    assert_done(memclient_broker_ping(other));
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned k = 0; k < 4; k++)
            assert_done(try_alloc(ctx, 16 * MIB, &few[k]));
        assert_refused(try_alloc(ctx, page_size(), &none), EDQUOT);
        for (unsigned k = 0; k < 4; k++)
            memclient_buffer_unref(few[k]);
    }
    memclient_context_close(third);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void what_cannot_suffice_is_not_waited_for(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf, *large, *small, *none;
    int fd;

    /* that somebody still has: then it is detached, and nobody can say for how long */
    assert_done(try_alloc(ctx, 128 * MIB, &large));
    assert_done(memclient_export_fd(large, MEMCLIENT_READ, &fd));
    memclient_buffer_unref(large);
    assert_int_equal(available(ctx), ALL / 2);
    assert_refused(try_alloc(ctx, ALL / 2 + page_size(), &none), ENOMEM);
    assert_string_equal(memclient_status_name(memclient_error_status()), "POOL_FULL");

    /* that is too little even with all that comes back */
    assert_done(try_alloc(ctx, 64 * MIB, &buf));
    assert_done(try_alloc(ctx, 64 * MIB, &small));
    memclient_buffer_unref(buf);
    assert_refused(try_alloc(ctx, 64 * MIB + page_size(), &none), ENOMEM);
    assert_done(try_alloc(ctx, 64 * MIB, &buf));
    memclient_buffer_unref(buf);
    memclient_buffer_unref(small);

    /* and when the last has let go, there it is */
    assert_ok(close(fd));
    assert_true(WAIT_UNTIL(available(ctx) == ALL));
    assert_done(try_alloc(ctx, ALL, &buf));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- several at once --------------------------------------------------------------------------------------------- */

#define THREADS 4

static void *churn(void *data)
{
    struct memclient_context *ctx = data;
    struct memclient_buffer *buf;

    for (unsigned i = 0; i < 25; i++) {
        int r = try_alloc(ctx, ALL / THREADS, &buf);

        if (r != 0)
            return data; /* refused */
        memclient_buffer_unref(buf);
    }
    return NULL;
}

/* Each always has its share, whether they share a session or not. */
static void nobody_takes_what_another_waits_for(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker), *own[THREADS];
    pthread_t threads[THREADS];
    void *result;

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < THREADS; i++) {
            own[i] = round == 0 ? ctx : broker_connect(broker);
            assert_int_equal(pthread_create(&threads[i], NULL, churn, own[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], &result), 0);
            assert_null(result);
            if (round == 1)
                memclient_context_close(own[i]);
        }
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* The next broker goes on with what the former was giving back, and with who waits for it. */
static void the_next_broker_gives_back_and_waits(void **state)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;

    for (unsigned i = 0; i < 10; i++) {
        assert_done(memclient_unmap(ctx, alloc_mapped(ctx, ALL, &buf), 0));
        memclient_buffer_unref(buf);
        broker_kill_child(broker);
    }
    assert_done(try_alloc(ctx, ALL, &buf));
    memclient_buffer_unref(buf);
    assert_int_equal(available(ctx), ALL);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(available_memory_is_exact_at_once),     at_broker(pools_of_the_configuration_say_so),
        at_broker(released_memory_can_be_allocated),      at_broker(limits_wait_for_what_was_given_back),
        at_broker(what_cannot_suffice_is_not_waited_for), at_broker(nobody_takes_what_another_waits_for),
        at_broker(the_next_broker_gives_back_and_waits),
    };

    return test_run(tests, NULL, NULL);
}
