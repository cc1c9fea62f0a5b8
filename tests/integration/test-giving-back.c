/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program gives back it does not wait for, and it is given back all the same: before whatever it asks next, in
 * few requests, when the program is replaced or the broker dies.
 */
#include "tests/integration/clients.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define SIZE 4096
#define MANY 100

static struct memclient_buffer *make(struct memclient_context *ctx)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    return buf;
}

static void make_many(struct memclient_context *ctx, struct memclient_buffer **bufs, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        bufs[i] = make(ctx);
}

static void the_next_call_finds_it_gone(void **state)
{
    struct broker_process *broker = broker_for_test("[limits]\nsession_buffers = 4\nsession_reservations = 1\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_reservation *res;
    struct memclient_buffer *bufs[4], *more;

    for (unsigned i = 0; i < 50; i++) {
        make_many(ctx, bufs, 4);
        assert_refused(memclient_alloc(ctx, SIZE, NULL, &more), EDQUOT);
        if (i % 2)
            memclient_buffer_unref_many(4, bufs);
        else
            for (unsigned k = 0; k < 4; k++)
                memclient_buffer_unref(bufs[k]);
        assert_int_equal(broker_status(ctx).buffers, 0);
        assert_done(memclient_reserve(ctx, 1 << 20, NULL, &res));
        assert_done(memclient_reservation_release(res));
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void many_are_given_back_together(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *bufs[2 * MANY + 1];
    struct memclient_reservation *res;
    uint64_t requests;

    make_many(ctx, bufs, MANY);
    requests = broker_status(ctx).requests;
    memclient_buffer_unref_many(MANY, bufs);
    /* 64 to a request */
    assert_int_equal(broker_status(ctx).requests, requests + 2 + 1);
    assert_int_equal(broker_status(ctx).buffers, 0);

    /* of several sessions, with gaps, with one that others have */
    make_many(ctx, bufs, MANY);
    make_many(other, bufs + MANY, MANY);
    bufs[7] = memclient_buffer_unref(bufs[7]);
    bufs[2 * MANY] = memclient_buffer_ref(bufs[8]);
    memclient_buffer_unref_many(2 * MANY, bufs);
    assert_done(memclient_broker_ping(other));
    assert_int_equal(broker_status(ctx).buffers, 1);
    memclient_buffer_unref(bufs[2 * MANY]);
    memclient_buffer_unref_many(0, NULL);

    /* by one unmapping */
    assert_done(memclient_reserve(ctx, MANY * page_size(), NULL, &res));
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    make_many(ctx, bufs, MANY);
    for (size_t i = 0; i < MANY; i++) {
        void *at;

        options.address = (char *)memclient_reservation_address(res) + i * page_size();
        assert_done(memclient_map(bufs[i], &options, &at));
    }
    memclient_buffer_unref_many(MANY, bufs);
    assert_int_equal(broker_status(ctx).buffers, MANY);
    requests = broker_status(ctx).requests;
    assert_done(memclient_unmap(ctx, memclient_reservation_address(res), MANY * page_size()));
    assert_int_equal(broker_status(ctx).requests, requests + 2 + 1);
    assert_int_equal(broker_status(ctx).buffers, 0);
    assert_done(memclient_reservation_release(res));
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* A broker that does nothing keeps nobody waiting, and does it when it can. */
static void nobody_waits_for_it(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_reservation *res;
    struct memclient_buffer *bufs[10];
    pid_t pid = broker_child(broker);

    make_many(ctx, bufs, 10);
    assert_done(memclient_reserve(ctx, 1 << 20, NULL, &res));
    assert_ok(kill(pid, SIGSTOP));
    for (unsigned i = 0; i < 10; i++)
        memclient_buffer_unref(bufs[i]);
    assert_done(memclient_reservation_release(res));
    assert_ok(kill(pid, SIGCONT));
    assert_true(WAIT_UNTIL(broker_buffers(other) == 0));
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void a_broker_that_dies_loses_none_of_it(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *bufs[20];

    for (unsigned round = 0; round < 5; round++) {
        make_many(ctx, bufs, 20);
        for (unsigned i = 0; i < 20; i++) {
            if (i == round * 4)
                assert_ok(kill(broker_child(broker), SIGKILL));
            memclient_buffer_unref(bufs[i]);
        }
        assert_true(WAIT_UNTIL(broker_status(ctx).buffers == 0));
        broker_check(broker);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* With exec() the connection goes and the process stays: what it has said counts. */
static void give_back_and_become_another_program(int channel, void *data)
{
    struct memclient_context *ctx = broker_connect_in_child(data);
    struct memclient_buffer *bufs[MANY];

    for (unsigned i = 0; i < MANY; i++)
        CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &bufs[i]));
    tell(channel);
    hear(channel);
    for (unsigned i = 0; i < MANY; i++)
        memclient_buffer_unref(bufs[i]);
    execlp("sleep", "sleep", "1000", NULL);
    CHECK(!"sleep is there");
}

static void what_was_said_counts_when_the_connection_is_gone(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct child child;

    child_start(&child, give_back_and_become_another_program, broker->socket);
    child_hear(&child);
    assert_int_equal(broker_buffers(ctx), MANY);
    child_tell(&child);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 0));
    child_kill(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(the_next_call_finds_it_gone),
        at_broker(many_are_given_back_together),
        at_broker(nobody_waits_for_it),
        at_broker(a_broker_that_dies_loses_none_of_it),
        at_broker(what_was_said_counts_when_the_connection_is_gone),
    };

    return test_run(tests, NULL, NULL);
}
