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

static struct broker_process *broker;
static struct memclient *ctx, *observer;

static struct memclient_buffer *one(void)
{
    struct memclient_buffer *buf = NULL;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    return buf;
}

/* A habit, if the machine is fast enough for one. What is ahead then is as many as it gets to be. */
static void make_habit(void)
{
    for (unsigned i = 0; i < 200 && ctx->ahead.n < 4; i++)
        memclient_buffer_unref(one());
}

static int add_one(const struct memclient_buffer_info *info, void *data)
{
    *(uint64_t *)data += info->state == MEMCLIENT_STATE_LIVE;
    return 0;
}

/* That live, as any other session may list them. */
static uint64_t listed(void)
{
    uint64_t n = 0;

    assert_done(memclient_list_buffers(observer, add_one, &n));
    return n;
}

/* All figures say the same, as soon as what was given back is served. */
static bool sees(uint64_t n)
{
    struct memclient_broker_status status = broker_status(observer);

    return listed() == n && status.buffers == n && status.bytes == n * SIZE &&
           broker_pool_used(observer, NULL) == n * SIZE;
}

static void assert_sees(uint64_t n)
{
    assert_true(WAIT_UNTIL(sees(n)));
    broker_check(broker);
}

static void begin(const char *config)
{
    broker = broker_for_test(config);
    ctx = broker_connect(broker);
    observer = broker_connect(broker);
    make_habit();
}

/* All of it has been given back. */
static void end(void)
{
    assert_sees(0);
    memclient_close(ctx);
    memclient_close(observer);
    broker_finish(broker);
}

/* Zeroed, and nobody else's. */
static void use(struct memclient_buffer *buf, unsigned seed)
{
    void *p = NULL;

    assert_done(memclient_map(buf, NULL, &p));
    assert_true(all_zero(p, SIZE));
    pattern_write(p, SIZE, seed);
    assert_done(memclient_unmap(ctx, p, 0));
}

static void assert_used(struct memclient_buffer *buf, unsigned seed)
{
    void *p = NULL;

    assert_done(memclient_map(buf, NULL, &p));
    assert_true(pattern_holds(p, SIZE, seed));
    assert_done(memclient_unmap(ctx, p, 0));
}

static void others_see_what_was_allocated_and_no_more(void **state)
{
    struct memclient_buffer *bufs[MANY];

    (void)state;
    begin(NULL);
    assert_sees(0);
    for (unsigned i = 0; i < MANY; i++) {
        bufs[i] = one();
        use(bufs[i], i);
        assert_int_equal(listed(), i + 1);
        if (i % 20 == 0)
            assert_sees(i + 1);
    }
    assert_sees(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_used(bufs[i], i);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(memclient_buffer_id(bufs[i]), memclient_buffer_id(bufs[k]));
    }
    for (unsigned i = 1; i < MANY; i += 2)
        memclient_buffer_unref(bufs[i]);
    assert_sees(MANY / 2);
    for (unsigned i = 0; i < MANY; i += 2)
        memclient_buffer_unref(bufs[i]);
    end();
}

static void who_takes_one_can_do_everything_with_it_at_once(void **state)
{
    struct memclient_name_options names = MEMCLIENT_NAME_OPTIONS_INIT;

    (void)state;
    begin(NULL);
    for (unsigned i = 0; i < 30; i++) {
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
        struct memclient_buffer *buf = one(), *theirs = NULL;
        struct memclient_token token;

        switch (i % 5) {
        case 0: /* by a token, which may come to the broker before what the taker says */
            assert_done(memclient_share(buf, NULL, &token));
            assert_done(memclient_open_token(observer, &token, 0, &theirs));
            break;
        case 1: /* by its number, likewise */
            assert_done(memclient_open_id(observer, memclient_buffer_id(buf), MEMCLIENT_READ, &theirs));
            break;
        case 2:
            assert_done(memclient_name_bind(buf, "it", &names));
            assert_done(memclient_open_name(observer, "it", MEMCLIENT_READ, &theirs));
            assert_done(memclient_name_unbind(ctx, "it"));
            break;
        case 3:
            assert_done(memclient_buffer_info(buf, &info));
            assert_int_equal(info.holds, 1);
            break;
        default:
            assert_done(memclient_destroy(observer, memclient_buffer_id(buf), false));
            break;
        }
        memclient_buffer_unref(theirs);
        memclient_buffer_unref(buf);
    }
    end();
}

static void a_limit_is_reached_exactly(void **state)
{
    struct memclient_buffer *bufs[41] = {NULL};

    (void)state;
    begin("[limits]\nuid_buffers=40\n");
    for (unsigned turn = 0; turn < 3; turn++) {
        make_habit();
        for (unsigned i = 0; i < 40; i++)
            bufs[i] = one();
        assert_refused(memclient_alloc(ctx, SIZE, NULL, &bufs[40]), EDQUOT);
        assert_sees(40);
        memclient_buffer_unref(bufs[39]);
        bufs[39] = one();
        for (unsigned i = 0; i < 40; i++)
            memclient_buffer_unref(bufs[i]);
    }
    end();
}

/* The last byte is its own, with what is ahead; and another kind of buffer finds the room as well. */
static void a_pool_is_filled_to_the_last_byte(void **state)
{
    struct memclient_buffer *all = NULL, *bufs[128];
    struct memclient_alloc_options whole = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer_info info;

    (void)state;
    begin("[pools]\ncapacity=8M\n");
    /* the one of small buffers, whatever others the machine may have */
    bufs[0] = one();
    info = broker_info(bufs[0]);
    memclient_buffer_unref(bufs[0]);
    whole.pool = info.pool;
    make_habit();
    assert_true(broker_pool_available(observer, info.pool) <= 128 * SIZE);
    for (unsigned i = 0; i < 128; i++)
        bufs[i] = one();
    assert_refused(memclient_alloc(ctx, SIZE, NULL, &all), ENOMEM);
    assert_sees(128);
    for (unsigned i = 0; i < 128; i++)
        memclient_buffer_unref(bufs[i]);
    make_habit();
    assert_done(memclient_alloc(ctx, 128 * SIZE, &whole, &all));
    assert_refused(memclient_alloc(ctx, SIZE, NULL, &bufs[0]), ENOMEM);
    memclient_buffer_unref(all);
    /* what a session that is closed had ahead is another one's, once it has been taken apart */
    make_habit();
    memclient_close(ctx);
    ctx = NULL;
    assert_true(WAIT_UNTIL(broker_pool_available(observer, info.pool) == 128 * SIZE));
    assert_done(memclient_alloc(observer, 128 * SIZE, &whole, &all));
    memclient_buffer_unref(all);
    end();
}

static void allocate_in_child(int channel, void *data)
{
    struct memclient_buffer *bufs[20] = {NULL};

    (void)data;
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
    struct memclient_buffer *bufs[20];
    struct child child;

    (void)state;
    begin(NULL);
    child_start(&child, allocate_in_child, NULL);
    for (unsigned i = 0; i < 20; i++) {
        bufs[i] = one();
        use(bufs[i], i);
    }
    child_hear(&child);
    assert_sees(40);
    for (unsigned i = 0; i < 20; i++)
        assert_used(bufs[i], i);
    child_tell(&child);
    child_finish(&child);
    assert_sees(20);
    for (unsigned i = 0; i < 20; i++)
        memclient_buffer_unref(bufs[i]);
    end();
}

static void nothing_is_lost_with_a_broker(void **state)
{
    struct memclient_buffer *bufs[MANY];

    (void)state;
    begin(NULL);
    for (unsigned i = 0; i < MANY; i++) {
        if (i % 12 == 5)
            broker_kill_child(broker);
        bufs[i] = one();
        use(bufs[i], i);
    }
    assert_sees(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_used(bufs[i], i);
        memclient_buffer_unref(bufs[i]);
    }
    end();
}

/* It never heard of it, and nor did the one before. */
static void the_next_broker_sees_what_was_taken(void **state)
{
    struct memclient_buffer *bufs[4];

    (void)state;
    begin(NULL);
    assert_sees(0);
    for (unsigned i = 0; i < 4; i++)
        bufs[i] = one();
    broker_kill_child(broker);
    assert_int_equal(listed(), 4);
    assert_sees(4);
    for (unsigned i = 0; i < 4; i++) {
        use(bufs[i], i);
        memclient_buffer_unref(bufs[i]);
    }
    /* what is given back waits for the next call, where the connection is lost */
    assert_done(memclient_ping(ctx));
    end();
}

static void die_with_some(int channel, void *data)
{
    struct memclient *its = broker_connect_in_child(data);
    struct memclient_buffer *buf = NULL;

    for (unsigned i = 0; i < 100; i++) {
        CHECK_DONE(memclient_alloc(its, SIZE, NULL, &buf));
        memclient_buffer_unref(buf);
    }
    CHECK_DONE(memclient_alloc(its, SIZE, NULL, &buf));
    CHECK_DONE(memclient_ping(its));
    tell(channel);
    hear(channel);
}

static void they_end_with_their_process(void **state)
{
    struct child child;

    (void)state;
    begin(NULL);
    child_start(&child, die_with_some, broker->socket);
    child_hear(&child);
    assert_sees(1);
    child_kill(&child);
    end();
}

/* A program that closes descriptors which it does not know gets new ones, and those that it opens are its own. */
static void descriptors_that_were_closed_are_not_used(void **state)
{
    struct memclient_buffer *bufs[20];
    int fds[16];

    (void)state;
    begin(NULL);
    for (unsigned i = 0; i < ctx->ahead.n; i++)
        close(ctx->ahead.items[i].opened.fd);
    for (unsigned i = 0; i < 16; i++)
        fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (unsigned i = 0; i < 20; i++) {
        bufs[i] = one();
        use(bufs[i], i);
    }
    for (unsigned i = 0; i < 20; i++)
        memclient_buffer_unref(bufs[i]);
    memclient_close(ctx);
    ctx = NULL;
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(close(fds[i]), 0);
    end();
}

/* And what was taken by one that is closed is there nevertheless. */
static void what_was_taken_needs_no_descriptor(void **state)
{
    struct memclient_buffer *bufs[4];

    (void)state;
    begin(NULL);
    assert_sees(0);
    for (unsigned i = 0; i < 4; i++) {
        bufs[i] = one();
        if (i % 2)
            use(bufs[i], i);
        assert_int_equal(close(bufs[i]->fd), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        if (i % 2)
            assert_used(bufs[i], i);
        else
            use(bufs[i], i);
    }
    assert_sees(4);
    for (unsigned i = 0; i < 4; i++)
        memclient_buffer_unref(bufs[i]);
    end();
}

/* Who locks all of a file that he exports meets nobody's lock. */
static void all_of_what_was_taken_can_be_locked(void **state)
{
    (void)state;
    begin(NULL);
    for (unsigned i = 0; i < 20; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct memclient_buffer *buf = one();
        int fd = -1;

        assert_done(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
        assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
        close(fd);
        memclient_buffer_unref(buf);
    }
    end();
}

static void *allocate_and_keep(void *data)
{
    struct memclient_buffer **kept = calloc(MANY, sizeof(*kept));

    (void)data;
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
    struct memclient_buffer **kept[4];
    pthread_t threads[4];
    uint64_t n = 0;

    (void)state;
    begin(NULL);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_keep, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        void *p = NULL;

        assert_int_equal(pthread_join(threads[i], &p), 0);
        kept[i] = p;
        assert_non_null(kept[i]);
        for (unsigned k = 0; k < MANY; k++)
            if (kept[i][k]) {
                use(kept[i][k], i * MANY + k);
                n++;
            }
    }
    assert_true(n > 4 * (MANY - 5));
    assert_sees(n);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < MANY; k++)
            if (kept[i][k]) {
                assert_used(kept[i][k], i * MANY + k);
                memclient_buffer_unref(kept[i][k]);
            }
        free(kept[i]);
    }
    end();
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
