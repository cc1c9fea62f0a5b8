/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker is killed and another one goes on: nothing of its clients is lost, and what ended while there was none is
 * noticed.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/integration/clients.h"

static const uint64_t sizes[] = {1, 4096, 65536, 300 << 10, 3 << 20};
#define N (sizeof(sizes) / sizeof(*sizes))

/* Lets go of it. */
static uint64_t id_of(struct memclient_buffer *buf)
{
    uint64_t id = memclient_buffer_id(buf);

    memclient_buffer_unref(buf);
    return id;
}

static uint64_t id_by_name(struct memclient_context *ctx, const char *name)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_open_name(ctx, name, 0, &buf));
    return id_of(buf);
}

static uint64_t id_by_token(struct memclient_context *ctx, const struct memclient_token *token)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_open_token(ctx, token, 0, &buf));
    return id_of(buf);
}

/* Descriptors are counted here, and what is in stock has some: it has a test of its own. */
static void everything_outlives_the_broker_I5(void **state)
{
    struct memclient_context_info before = MEMCLIENT_CONTEXT_INFO_INIT, after = before;
    struct broker_process *broker = broker_for_test("[pools]\nstock = 0\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_reservation *res = NULL;
    struct memclient_buffer *bufs[N] = {NULL}, *one_more = NULL;
    struct memclient_token token;
    unsigned keeper_fds, broker_fds;
    void *at[N] = {NULL};
    uint64_t used;

    assert_done(memclient_context_query(ctx, &before));
    for (unsigned i = 0; i < N; i++) {
        assert_done(memclient_alloc(ctx, sizes[i], NULL, &bufs[i]));
        assert_done(memclient_map(bufs[i], NULL, &at[i]));
        pattern_write(at[i], sizes[i], i);
    }
    assert_done(memclient_bind_name(bufs[2], "recover/two", NULL));
    assert_done(memclient_share(bufs[3], NULL, &token));
    assert_done(memclient_reserve(ctx, 1 << 20, NULL, &res));
    used = broker_pool_used(ctx, NULL);
    /* it is gone only when the keeper has read that it is to drop it, and so all that was said before */
    assert_done(memclient_alloc(ctx, 1 << 20, NULL, &one_more));
    memclient_buffer_unref(one_more);
    assert_true(WAIT_UNTIL(broker_pool_used(ctx, NULL) == used));
    keeper_fds = broker_count_fds(broker->pid);
    broker_fds = broker_count_fds(broker_child(broker));

    for (unsigned round = 0; round < 5; round++) {
        broker_kill_child(broker);
        assert_done(memclient_context_query(ctx, &after));
        assert_int_equal(after.session, before.session);
        assert_int_equal(broker_buffers(ctx), N);
        assert_int_equal(broker_pool_used(ctx, NULL), used);
        assert_int_equal(id_by_name(ctx, "recover/two"), memclient_buffer_id(bufs[2]));
        assert_int_equal(id_by_token(ctx, &token), memclient_buffer_id(bufs[3]));
        assert_int_equal(broker_status(ctx).reservations, 1);
        assert_int_equal(broker_status(ctx).restarts, round + 1);
        assert_int_equal(broker_status(ctx).quarantined, 0);
        for (unsigned i = 0; i < N; i++) {
            struct memclient_buffer_info info = broker_info(bufs[i]);

            assert_int_equal(info.holds, 1);
            assert_ptr_equal((void *)(uintptr_t)info.address, memclient_buffer_home(bufs[i]));
            assert_true(pattern_holds(at[i], sizes[i], i));
        }
        broker_check(broker);
        assert_true(WAIT_UNTIL(broker_count_fds(broker->pid) == keeper_fds));
        assert_true(WAIT_UNTIL(broker_count_fds(broker_child(broker)) == broker_fds));
    }

    assert_done(memclient_unbind_name(ctx, "recover/two"));
    assert_done(memclient_reservation_release(res));
    for (unsigned i = 0; i < N; i++) {
        assert_done(memclient_unmap(ctx, at[i], 0));
        memclient_buffer_unref(bufs[i]);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* More than another broker looks at one by one: a thread looks at them while they come. */
static void many_outlive_the_broker_as_well_I5(void **state)
{
    static const uint64_t pages[MEMCLIENT_BATCH_MAX] = {[0 ... MEMCLIENT_BATCH_MAX - 1] = 4096};
    static struct memclient_buffer *bufs[5 * MEMCLIENT_BATCH_MAX];
    struct broker_process *broker = broker_for_test("[pools]\nstock = 0\n");
    struct memclient_context *ctx = broker_connect(broker);
    unsigned n = sizeof(bufs) / sizeof(bufs[0]);

    for (unsigned i = 0; i < n; i += MEMCLIENT_BATCH_MAX)
        assert_done(memclient_alloc_many(ctx, MEMCLIENT_BATCH_MAX, pages, NULL, bufs + i));
    for (unsigned i = 0; i < n; i++) {
        void *p = NULL;

        assert_done(memclient_map(bufs[i], NULL, &p));
        pattern_write(p, 4096, i);
        assert_done(memclient_unmap(ctx, p, 0));
    }
    for (unsigned round = 0; round < 5; round++) {
        broker_kill_child(broker);
        assert_int_equal(broker_buffers(ctx), n);
        assert_int_equal(broker_status(ctx).restarts, round + 1);
        assert_int_equal(broker_status(ctx).quarantined, 0);
        broker_check(broker);
    }
    for (unsigned i = 0; i < n; i++) {
        void *p = NULL;

        assert_done(memclient_map(bufs[i], NULL, &p));
        assert_true(pattern_holds(p, 4096, i));
        assert_done(memclient_unmap(ctx, p, 0));
    }
    memclient_buffer_unref_many(n, bufs);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- what happens while there is none ---------------------------------------------------------------------------- */

static void hold_something(int channel, void *context)
{
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *bufs[3] = {NULL};
    uint64_t id;
    void *p;

    options.policy = MEMCLIENT_NAME_FREE;
    for (unsigned i = 0; i < 3; i++) {
        CHECK_DONE(memclient_alloc(ctx, 1 << 20, NULL, &bufs[i]));
        CHECK_DONE(memclient_map(bufs[i], NULL, &p));
        pattern_write(p, 1 << 20, i);
    }
    CHECK_DONE(memclient_bind_name(bufs[0], "recover/free", &options));
    CHECK_DONE(memclient_bind_name(bufs[1], "recover/keep", NULL));
    id = memclient_buffer_id(bufs[2]);
    CHECK(pass_bytes(channel, &id, sizeof(id)));
    hear(channel);
}

static void stop_keeper_and_kill_broker(struct broker_process *broker)
{
    pid_t pid = broker_child(broker);

    assert_ok(kill(broker->pid, SIGSTOP));
    assert_ok(kill(pid, SIGKILL));
}

static void a_death_without_a_broker_is_noticed_I6(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = NULL;
    struct child child;
    uint64_t id;

    child_start(&child, hold_something, broker->socket);
    assert_true(take_bytes(child.channel, &id, sizeof(id)));
    assert_int_equal(broker_buffers(ctx), 3);
    stop_keeper_and_kill_broker(broker);
    child_kill(&child);
    assert_ok(kill(broker->pid, SIGCONT));
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 1));
    assert_refused(memclient_open_id(ctx, id, 0, &buf), ESTALE);
    assert_done(memclient_open_name(ctx, "recover/keep", 0, &buf));
    assert_done(memclient_unbind_name(ctx, "recover/keep"));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void a_last_close_without_a_broker_is_noticed_I4(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = NULL;
    uint64_t used;
    int fd = -1;
    void *p;

    used = broker_pool_used(ctx, NULL);
    assert_done(memclient_alloc(ctx, 1 << 20, NULL, &buf));
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
    p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_ok(close(fd));
    pattern_write(p, 1 << 20, 7);
    memclient_buffer_unref(buf);
    assert_true(WAIT_UNTIL(broker_status(ctx).buffers_detached == 1));
    broker_kill_child(broker);
    assert_int_equal(broker_status(ctx).buffers_detached, 1);
    broker_check(broker);
    assert_true(pattern_holds(p, 1 << 20, 7));
    stop_keeper_and_kill_broker(broker);
    assert_ok(munmap(p, 1 << 20));
    assert_ok(kill(broker->pid, SIGCONT));
    assert_true(WAIT_UNTIL(broker_pool_used(ctx, NULL) == used));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Large ones take a while to commit and to close: the broker dies in the midst of that. */
static void what_was_under_way_comes_to_its_end(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);

    for (unsigned i = 0; i < 8; i++) {
        struct memclient_buffer *buf = NULL, *other = NULL;
        void *p = NULL;

        assert_done(memclient_alloc(ctx, 16 << 20, NULL, &buf));
        assert_done(memclient_map(buf, NULL, &p));
        assert_done(memclient_unmap(ctx, p, 0));
        memclient_buffer_unref(buf);
        if (i % 2)
            usleep(i * 300);
        broker_kill_child(broker);
        assert_done(memclient_alloc(ctx, 16 << 20, NULL, &other));
        memclient_buffer_unref(other);
        broker_check(broker);
    }
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(everything_outlives_the_broker_I5),      at_broker(many_outlive_the_broker_as_well_I5),
        at_broker(a_death_without_a_broker_is_noticed_I6), at_broker(a_last_close_without_a_broker_is_noticed_I4),
        at_broker(what_was_under_way_comes_to_its_end),
    };

    return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
