/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers ahead, as programs and those beside them see it: exactly what was allocated is there, nothing else, whoever
 * dies, forks, closes or has no room.
 *
 * Whether the library has anything ahead depends on how fast the machine is, and nothing that is promised depends on
 * that. So tests make it likely, and assert the promise either way.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/buffer.h"
#include "core/context.h"

#define SIZE (UINT64_C(64) << 10)
#define MANY 60

static struct memclient_buffer *one(struct memclient *ctx)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    return buf;
}

/* A habit, if the machine is fast enough for one. What is ahead then is as many as it gets to be. */
static void make_habit(struct memclient *ctx)
{
    for (unsigned i = 0; i < 200 && ctx->ahead.n < 4; i++)
        memclient_buffer_unref(one(ctx));
}

static int add_one(const struct memclient_buffer_info *info, void *data)
{
    *(uint64_t *)data += info->state == MEMCLIENT_STATE_LIVE;
    return 0;
}

/* That live, as any other session may list them. */
static uint64_t listed(struct memclient *observer)
{
    uint64_t n = 0;

    assert_done(memclient_list_buffers(observer, add_one, &n));
    return n;
}

/* All figures say the same, as soon as what was given back is served. */
static bool sees(struct memclient *observer, uint64_t n)
{
    struct memclient_broker_status status = broker_status(observer);

    return listed(observer) == n && status.buffers == n && status.bytes == n * SIZE &&
           broker_pool_used(observer, NULL) == n * SIZE;
}

static void assert_sees(struct broker_process *broker, struct memclient *observer, uint64_t n)
{
    assert_true(WAIT_UNTIL(sees(observer, n)));
    broker_check(broker);
}

/* Zeroed, and nobody else's. */
static void use(struct memclient *ctx, struct memclient_buffer *buf, unsigned seed)
{
    void *p = NULL;

    assert_done(memclient_map(buf, NULL, &p));
    assert_true(all_zero(p, SIZE));
    pattern_write(p, SIZE, seed);
    assert_done(memclient_unmap(ctx, p, 0));
}

static void assert_used(struct memclient *ctx, struct memclient_buffer *buf, unsigned seed)
{
    void *p = NULL;

    assert_done(memclient_map(buf, NULL, &p));
    assert_true(pattern_holds(p, SIZE, seed));
    assert_done(memclient_unmap(ctx, p, 0));
}

static void others_see_what_was_allocated_and_no_more(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer *bufs[MANY];

    (void)state;
    make_habit(ctx);
    assert_sees(broker, observer, 0);
    for (unsigned i = 0; i < MANY; i++) {
        bufs[i] = one(ctx);
        use(ctx, bufs[i], i);
        assert_int_equal(listed(observer), i + 1);
        if (i % 20 == 0)
            assert_sees(broker, observer, i + 1);
    }
    assert_sees(broker, observer, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_used(ctx, bufs[i], i);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(memclient_buffer_id(bufs[i]), memclient_buffer_id(bufs[k]));
    }
    for (unsigned i = 1; i < MANY; i += 2)
        memclient_buffer_unref(bufs[i]);
    assert_sees(broker, observer, MANY / 2);
    for (unsigned i = 0; i < MANY; i += 2)
        memclient_buffer_unref(bufs[i]);
    assert_sees(broker, observer, 0);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

static void who_takes_one_can_do_everything_with_it_at_once(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_name_options names = MEMCLIENT_NAME_OPTIONS_INIT;

    (void)state;
    make_habit(ctx);
    for (unsigned i = 0; i < 30; i++) {
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
        struct memclient_buffer *buf = one(ctx), *theirs = NULL;
        struct memclient_token token;

        switch (i % 5) {
        case 0: /* by a token, which may come to the broker before what the taker says */
            assert_done(memclient_share(buf, NULL, &token));
            assert_done(memclient_open_token(other, &token, 0, &theirs));
            break;
        case 1: /* by its number, likewise */
            assert_done(memclient_open_id(other, memclient_buffer_id(buf), MEMCLIENT_READ, &theirs));
            break;
        case 2:
            assert_done(memclient_name_bind(buf, "it", &names));
            assert_done(memclient_open_name(other, "it", MEMCLIENT_READ, &theirs));
            assert_done(memclient_name_unbind(ctx, "it"));
            break;
        case 3:
            assert_done(memclient_buffer_info(buf, &info));
            assert_int_equal(info.holds, 1);
            break;
        default:
            assert_done(memclient_destroy(other, memclient_buffer_id(buf), false));
            break;
        }
        memclient_buffer_unref(theirs);
        memclient_buffer_unref(buf);
    }
    assert_sees(broker, other, 0);
    memclient_close(ctx);
    memclient_close(other);
    broker_finish(broker);
}

static void a_limit_is_reached_exactly(void **state)
{
    struct broker_process *broker = broker_for_test("[limits]\nuid_buffers=40\n");
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer *bufs[41] = {NULL};

    (void)state;
    for (unsigned turn = 0; turn < 3; turn++) {
        make_habit(ctx);
        for (unsigned i = 0; i < 40; i++)
            bufs[i] = one(ctx);
        assert_refused(memclient_alloc(ctx, SIZE, NULL, &bufs[40]), EDQUOT);
        assert_sees(broker, observer, 40);
        memclient_buffer_unref(bufs[39]);
        bufs[39] = one(ctx);
        for (unsigned i = 0; i < 40; i++)
            memclient_buffer_unref(bufs[i]);
    }
    assert_sees(broker, observer, 0);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

/* The last byte is its own, with what is ahead; and another kind of buffer finds the room as well. */
static void a_pool_is_filled_to_the_last_byte(void **state)
{
    struct broker_process *broker = broker_for_test("[pools]\ncapacity=8M\n");
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer *all = NULL, *bufs[128];
    struct memclient_alloc_options whole = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer_info info;

    (void)state;
    /* the one of small buffers, whatever others the machine may have */
    bufs[0] = one(ctx);
    info = broker_info(bufs[0]);
    memclient_buffer_unref(bufs[0]);
    whole.pool = info.pool;
    make_habit(ctx);
    assert_true(broker_pool_available(observer, info.pool) <= 128 * SIZE);
    for (unsigned i = 0; i < 128; i++)
        bufs[i] = one(ctx);
    assert_refused(memclient_alloc(ctx, SIZE, NULL, &all), ENOMEM);
    assert_sees(broker, observer, 128);
    for (unsigned i = 0; i < 128; i++)
        memclient_buffer_unref(bufs[i]);
    make_habit(ctx);
    assert_done(memclient_alloc(ctx, 128 * SIZE, &whole, &all));
    assert_refused(memclient_alloc(ctx, SIZE, NULL, &bufs[0]), ENOMEM);
    memclient_buffer_unref(all);
    /* what a session that is closed had ahead is another one's, once it has been taken apart */
    make_habit(ctx);
    memclient_close(ctx);
    assert_true(WAIT_UNTIL(broker_pool_available(observer, info.pool) == 128 * SIZE));
    assert_done(memclient_alloc(observer, 128 * SIZE, &whole, &all));
    memclient_buffer_unref(all);
    memclient_close(observer);
    broker_finish(broker);
}

static void allocate_in_child(int channel, void *data)
{
    struct memclient *ctx = data;
    struct memclient_buffer *bufs[20] = {NULL};

    for (unsigned i = 0; i < 20; i++)
        CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &bufs[i]));
    tell(channel);
    hear(channel);
    for (unsigned i = 0; i < 20; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_close(ctx);
}

static void a_child_takes_none_of_its_parents(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer *bufs[20];
    struct child child;

    (void)state;
    make_habit(ctx);
    child_start(&child, allocate_in_child, ctx);
    for (unsigned i = 0; i < 20; i++) {
        bufs[i] = one(ctx);
        use(ctx, bufs[i], i);
    }
    child_hear(&child);
    assert_sees(broker, observer, 40);
    for (unsigned i = 0; i < 20; i++)
        assert_used(ctx, bufs[i], i);
    child_tell(&child);
    child_finish(&child);
    assert_sees(broker, observer, 20);
    for (unsigned i = 0; i < 20; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

static void nothing_is_lost_with_a_broker(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer *bufs[MANY];

    (void)state;
    make_habit(ctx);
    for (unsigned i = 0; i < MANY; i++) {
        if (i % 12 == 5)
            broker_kill_child(broker);
        bufs[i] = one(ctx);
        use(ctx, bufs[i], i);
    }
    assert_sees(broker, observer, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_used(ctx, bufs[i], i);
        memclient_buffer_unref(bufs[i]);
    }
    assert_sees(broker, observer, 0);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

/* It never heard of it, and nor did the one before. */
static void the_next_broker_sees_what_was_taken(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer *bufs[4];

    (void)state;
    make_habit(ctx);
    assert_sees(broker, observer, 0);
    for (unsigned i = 0; i < 4; i++)
        bufs[i] = one(ctx);
    broker_kill_child(broker);
    assert_int_equal(listed(observer), 4);
    assert_sees(broker, observer, 4);
    for (unsigned i = 0; i < 4; i++) {
        use(ctx, bufs[i], i);
        memclient_buffer_unref(bufs[i]);
    }
    /* what is given back waits for the next call, where the connection is lost */
    assert_done(memclient_ping(ctx));
    assert_sees(broker, observer, 0);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

static void die_with_some(int channel, void *data)
{
    struct memclient *ctx = broker_connect_in_child(data);
    struct memclient_buffer *buf = NULL;

    for (unsigned i = 0; i < 100; i++) {
        CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &buf));
        memclient_buffer_unref(buf);
    }
    CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &buf));
    CHECK_DONE(memclient_ping(ctx));
    tell(channel);
    hear(channel);
}

static void they_end_with_their_process(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *observer = broker_connect(broker);
    struct child child;

    (void)state;
    child_start(&child, die_with_some, broker->socket);
    child_hear(&child);
    assert_sees(broker, observer, 1);
    child_kill(&child);
    assert_sees(broker, observer, 0);
    memclient_close(observer);
    broker_finish(broker);
}

/* A program that closes descriptors which it does not know gets new ones, and those that it opens are its own. */
static void descriptors_that_were_closed_are_not_used(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker);
    struct memclient_buffer *bufs[20];
    int fds[16];

    (void)state;
    make_habit(ctx);
    for (unsigned i = 0; i < ctx->ahead.n; i++)
        close(ctx->ahead.items[i].opened.fd);
    for (unsigned i = 0; i < 16; i++)
        fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (unsigned i = 0; i < 20; i++) {
        bufs[i] = one(ctx);
        use(ctx, bufs[i], i);
    }
    for (unsigned i = 0; i < 20; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_close(ctx);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(close(fds[i]), 0);
    broker_finish(broker);
}

/* And what was taken by one that is closed is there nevertheless. */
static void what_was_taken_needs_no_descriptor(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer *bufs[4];

    (void)state;
    make_habit(ctx);
    assert_sees(broker, observer, 0);
    for (unsigned i = 0; i < 4; i++) {
        bufs[i] = one(ctx);
        if (i % 2)
            use(ctx, bufs[i], i);
        assert_int_equal(close(bufs[i]->fd), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        if (i % 2)
            assert_used(ctx, bufs[i], i);
        else
            use(ctx, bufs[i], i);
    }
    assert_sees(broker, observer, 4);
    for (unsigned i = 0; i < 4; i++)
        memclient_buffer_unref(bufs[i]);
    assert_sees(broker, observer, 0);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

/* Who locks all of a file that he exports meets nobody's lock. */
static void all_of_what_was_taken_can_be_locked(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker);

    (void)state;
    make_habit(ctx);
    for (unsigned i = 0; i < 20; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct memclient_buffer *buf = one(ctx);
        int fd = -1;

        assert_done(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
        assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
        close(fd);
        memclient_buffer_unref(buf);
    }
    memclient_close(ctx);
    broker_finish(broker);
}

static void *allocate_and_keep(void *data)
{
    struct memclient *ctx = data;
    struct memclient_buffer **kept = calloc(MANY, sizeof(*kept));

    for (unsigned i = 0; kept && i < 4 * MANY; i++) {
        struct memclient_buffer *buf = NULL;

        if (memclient_alloc(ctx, i % 50 == 49 ? 2 * SIZE : SIZE, NULL, &buf))
            break;
        if (i % 4 || i % 50 == 49) {
            memclient_buffer_unref(buf);
        } else {
            kept[i / 4] = buf;
        }
    }
    return kept;
}

static void threads_take_from_the_same(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient *ctx = broker_connect(broker), *observer = broker_connect(broker);
    struct memclient_buffer **kept[4];
    pthread_t threads[4];
    uint64_t n = 0;

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_keep, ctx), 0);
    for (unsigned i = 0; i < 4; i++) {
        void *p = NULL;

        assert_int_equal(pthread_join(threads[i], &p), 0);
        kept[i] = p;
        assert_non_null(kept[i]);
        for (unsigned k = 0; k < MANY; k++)
            if (kept[i][k]) {
                use(ctx, kept[i][k], i * MANY + k);
                n++;
            }
    }
    assert_true(n > 4 * (MANY - 5));
    assert_sees(broker, observer, n);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < MANY; k++)
            if (kept[i][k]) {
                assert_used(ctx, kept[i][k], i * MANY + k);
                memclient_buffer_unref(kept[i][k]);
            }
        free(kept[i]);
    }
    assert_sees(broker, observer, 0);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(others_see_what_was_allocated_and_no_more),
        at_broker(who_takes_one_can_do_everything_with_it_at_once),
        at_broker(a_limit_is_reached_exactly),
        at_broker(a_pool_is_filled_to_the_last_byte),
        at_broker(a_child_takes_none_of_its_parents),
        at_broker(nothing_is_lost_with_a_broker),
        at_broker(the_next_broker_sees_what_was_taken),
        at_broker(they_end_with_their_process),
        at_broker(descriptors_that_were_closed_are_not_used),
        at_broker(what_was_taken_needs_no_descriptor),
        at_broker(all_of_what_was_taken_can_be_locked),
        at_broker(threads_take_from_the_same),
    };

    return test_run(tests, NULL, NULL);
}
