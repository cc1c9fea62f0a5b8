/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeper and broker are gone at once and another one begins with nothing: what clients have mapped stays theirs, and
 * they go on with new sessions, at addresses that are free in all of them.
 */
#include "tests/integration/clients.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE (UINT64_C(1) << 20)

/* Longer than what a program waits for at first, before it looks again. */
#define ABSENCE_MS 500

static struct broker_process broker;

/* Of a test that failed. */
static int kill_broker(void **state)
{
    if (broker.pid)
        broker_kill(&broker);
    return 0;
}

/* After a crash: at the same place, with nothing. What it was called before is a link to the next. */
static void begin_anew(const char *path)
{
    unlink(broker.socket);
    unlink(broker.config);
    unlink(broker.log);
    broker_start(&broker, NULL, 0);
    (void)unlink(path);
    assert_ok(symlink(broker.socket, path));
}

static void lose_everything(const char *path)
{
    broker_crash(&broker);
    begin_anew(path);
}

static struct memclient_context *open_patient(const char *path, unsigned deadline_ms)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx = NULL;

    options.socket = path;
    options.deadline_ms = deadline_ms;
    return memclient_context_open(&options, &ctx) ? NULL : ctx;
}

static struct memclient_context *open_at(const char *path)
{
    return open_patient(path, PATIENCE_MS);
}

static void path_for(char path[static 300])
{
    snprintf(path, 300, "%s/%d.lost.sock", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
}

static void begin(char path[static 300])
{
    path_for(path);
    broker_start(&broker, NULL, 0);
    (void)unlink(path);
    assert_ok(symlink(broker.socket, path));
}

static void finish(const char *path)
{
    struct memclient_context *ctx = open_at(path);

    assert_non_null(ctx);
    broker_check(&broker);
    /* what was told went with the sessions that told it */
    assert_true(WAIT_UNTIL(broker_status(ctx).reservations == 0));
    memclient_context_close(ctx);
    broker_stop(&broker);
    assert_ok(unlink(path));
}

/* ---- two that share ---------------------------------------------------------------------------------------------- */

/* Maps what it is given, at its home, and says so; until the channel is closed. The first stays mapped. */
static void map_what_comes(int channel, void *path)
{
    struct memclient_context *ctx = open_at(path);
    struct memclient_buffer *first = NULL;
    struct memclient_token token;
    void *p = NULL, *q;

    CHECK(ctx);
    while (take_bytes(channel, &token, sizeof(token))) {
        struct memclient_buffer *buf;

        CHECK_DONE(memclient_open_token(ctx, &token, 0, &buf));
        CHECK_DONE(memclient_map(buf, NULL, &q));
        CHECK(q == memclient_buffer_home(buf));
        if (!first) {
            first = buf;
            p = q;
        } else {
            CHECK(pattern_holds(p, SIZE, 1));
            CHECK_DONE(memclient_unmap(ctx, q, 0));
            memclient_buffer_unref(buf);
        }
        tell(channel);
    }
    memclient_buffer_unref(first);
    memclient_context_close(ctx);
}

static void hand_over(struct child *child, struct memclient_buffer *buf)
{
    struct memclient_token token;

    assert_done(memclient_share(buf, NULL, &token));
    assert_true(pass_bytes(child->channel, &token, sizeof(token)));
    child_hear(child);
}

static void hand_over_new_ones(struct child *child, struct memclient_context *ctx, unsigned n)
{
    struct memclient_buffer *bufs[16];
    void *p;

    for (unsigned i = 0; i < n; i++) {
        assert_done(memclient_alloc(ctx, SIZE, NULL, &bufs[i]));
        assert_done(memclient_map(bufs[i], NULL, &p));
        assert_ptr_equal(p, memclient_buffer_home(bufs[i]));
        hand_over(child, bufs[i]);
    }
    for (unsigned i = 0; i < n; i++)
        memclient_buffer_unref(bufs[i]);
}

static void what_is_given_out_can_be_mapped_by_all_who_lost_a_broker_I9(void **state)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *shared;
    struct memclient_context *ctx;
    struct child child;
    char path[300];
    void *p;

    begin(path);
    child_start(&child, map_what_comes, path);
    ctx = open_at(path);
    assert_done(memclient_alloc(ctx, SIZE, NULL, &shared));
    assert_done(memclient_map(shared, NULL, &p));
    pattern_write(p, SIZE, 1);
    hand_over(&child, shared);

    lose_everything(path);
    assert_refused(memclient_buffer_query(shared, &info), ESTALE);
    hand_over_new_ones(&child, ctx, 4);
    assert_true(pattern_holds(p, SIZE, 1));
    /* both told the same range; the one that told it first goes */
    memclient_buffer_unref(shared);
    memclient_context_close(ctx);
    ctx = open_at(path);
    assert_true(WAIT_UNTIL(broker_status(ctx).sessions == 2));
    hand_over_new_ones(&child, ctx, 8);
    /* and the next broker of the same keeper knows */
    broker_kill_child(&broker);
    hand_over_new_ones(&child, ctx, 16);
    memclient_context_close(ctx);
    close(child.channel);
    child.channel = -1;
    assert_int_equal(child_wait(&child), 0);
    finish(path);
}

/* ---- one's own wish ---------------------------------------------------------------------------------------------- */

static void what_was_lost_can_be_made_again_where_it_was_I9(void **state)
{
    struct memclient_alloc_options again = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *bufs[3], *buf;
    struct memclient_reservation *res;
    struct memclient_context *ctx;
    char path[300];
    void *p[3], *q, *at;

    begin(path);
    ctx = open_at(path);
    for (unsigned i = 0; i < 3; i++) {
        assert_done(memclient_alloc(ctx, SIZE, NULL, &bufs[i]));
        assert_done(memclient_map(bufs[i], NULL, &p[i]));
        pattern_write(p[i], SIZE, i);
    }
    assert_done(memclient_reserve(ctx, SIZE, NULL, &res));
    at = memclient_reservation_address(res);
    lose_everything(path);
    /* the one in the middle; what is beside it stays kept out */
    assert_done(memclient_unmap(ctx, p[1], 0));
    again.address = (uintptr_t)p[1];
    assert_done(memclient_alloc(ctx, SIZE, &again, &buf));
    assert_done(memclient_map(buf, NULL, &q));
    assert_ptr_equal(q, p[1]);
    memclient_buffer_unref(buf);
    assert_done(memclient_reservation_release(res));
    assert_done(memclient_reserve(ctx, SIZE, RESERVE_WITH(.address = (uintptr_t)at), &res));
    for (unsigned i = 0; i < 8; i++) {
        assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
        assert_done(memclient_map(buf, NULL, &q));
        memclient_buffer_unref(buf);
    }
    assert_true(pattern_holds(p[0], SIZE, 0) && pattern_holds(p[2], SIZE, 2));
    for (unsigned i = 0; i < 3; i++)
        memclient_buffer_unref(bufs[i]);
    assert_done(memclient_reservation_release(res));
    memclient_context_close(ctx);
    finish(path);
}

/* ---- again and again --------------------------------------------------------------------------------------------- */

#define PLAYERS 3
#define ROUNDS  8
#define HANDS   300

struct hand {
    void *at;
    size_t size;
    uint64_t seed;
};

/* Gets buffers of all sizes and unmaps some of them, of whatever broker they are; in more pieces than can be told. */
static void play(int channel, void *path)
{
    struct hand *hands = calloc(HANDS, sizeof(*hands));
    struct memclient_context *ctx = open_at(path);
    uint64_t random = UINT64_C(88172645463325252) + (uint64_t)getpid();

    CHECK(hands && ctx);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < HANDS; i++) {
            struct hand *hand = &hands[i];
            struct memclient_buffer *buf;

            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            CHECK(!hand->at || pattern_holds(hand->at, hand->size, hand->seed));
            if (hand->at && random % 3) {
                CHECK_DONE(memclient_unmap(ctx, hand->at, 0));
                hand->at = NULL;
            } else if (!hand->at && random % 4) {
                hand->size = (1 + random / 7 % 16) * 4096;
                hand->seed = random;
                CHECK_DONE(memclient_alloc(ctx, hand->size, NULL, &buf));
                CHECK_DONE(memclient_map(buf, NULL, &hand->at));
                memclient_buffer_unref(buf);
                pattern_write(hand->at, hand->size, hand->seed);
            }
        }
        tell(channel);
        hear(channel);
    }
    free(hands);
    memclient_context_close(ctx);
}

static void again_and_again_I9(void **state)
{
    struct child players[PLAYERS];
    char path[300];

    begin(path);
    for (unsigned i = 0; i < PLAYERS; i++)
        child_start(&players[i], play, path);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < PLAYERS; i++)
            child_hear(&players[i]);
        /* at times only the broker */
        if (round % 3 == 2)
            broker_kill_child(&broker);
        else
            lose_everything(path);
        for (unsigned i = 0; i < PLAYERS; i++)
            child_tell(&players[i]);
    }
    for (unsigned i = 0; i < PLAYERS; i++)
        child_finish(&players[i]);
    finish(path);
}

#define lost_test(function) cmocka_unit_test_teardown(function, kill_broker)

/* Of everything and of a name, though the program makes no other call; and not only once. */
static void events_go_on_by_their_descriptor_alone(void **state)
{
    struct memclient_context *ctx, *other;
    struct memclient_buffer *buf;
    struct pollfd wait = {.events = POLLIN};
    char path[300];

    begin(path);
    ctx = open_at(path);
    assert_non_null(ctx);
    assert_done(memclient_event_subscribe(ctx, MEMCLIENT_EVENT_HELD));
    assert_done(memclient_event_subscribe_name(ctx, "lost/again", MEMCLIENT_EVENT_NAME));
    assert_done(memclient_event_fd(ctx, &wait.fd));
    for (unsigned i = 0; i < 2; i++) {
        struct memclient_event event = MEMCLIENT_EVENT_INIT;
        int64_t end = wait_now_ms() + PATIENCE_MS;
        unsigned seen = 0;

        lose_everything(path);
        other = open_at(path);
        assert_non_null(other);
        while (seen != (MEMCLIENT_EVENT_LOST | MEMCLIENT_EVENT_HELD | MEMCLIENT_EVENT_NAME)) {
            assert_true(wait_now_ms() < end);
            assert_done(memclient_alloc(other, 4096, NULL, &buf));
            assert_done(memclient_bind_name(buf, "lost/again", NULL));
            assert_done(memclient_unbind_name(other, "lost/again"));
            memclient_buffer_unref(buf);
            (void)poll(&wait, 1, 20);
            while (!memclient_event_next(ctx, &event))
                seen |= event.kind;
        }
        memclient_context_close(other);
    }
    memclient_context_close(ctx);
    finish(path);
}

/* A call notices first that all is lost, and fails. Then the program takes one event each time that there is one. */
static void events_go_on_after_a_call_that_failed(void **state)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct pollfd wait = {.events = POLLIN};
    struct memclient_context *ctx, *other;
    struct memclient_buffer *buf;
    int64_t end = wait_now_ms() + PATIENCE_MS;
    char path[300];
    bool seen = false;

    begin(path);
    ctx = open_patient(path, 1000);
    assert_non_null(ctx);
    assert_done(memclient_event_subscribe(ctx, MEMCLIENT_EVENT_HELD));
    assert_done(memclient_event_fd(ctx, &wait.fd));
    broker_crash(&broker);
    assert_true(memclient_broker_ping(ctx) < 0);
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_done(memclient_event_next(ctx, &event));
    assert_int_equal(event.kind, MEMCLIENT_EVENT_LOST);
    for (int64_t until = wait_now_ms() + ABSENCE_MS; wait_now_ms() < until;)
        if (poll(&wait, 1, 20) == 1)
            assert_true(memclient_event_next(ctx, &event) < 0);
    begin_anew(path);
    other = open_at(path);
    assert_non_null(other);
    while (!seen) {
        assert_true(wait_now_ms() < end);
        assert_done(memclient_alloc(other, 4096, NULL, &buf));
        memclient_buffer_unref(buf);
        if (poll(&wait, 1, 20) == 1 && !memclient_event_next(ctx, &event))
            seen = event.kind == MEMCLIENT_EVENT_HELD;
    }
    memclient_context_close(other);
    memclient_context_close(ctx);
    finish(path);
}

/* What was chosen of a buffer goes with the session. Who has chosen nothing else is told when the connection breaks,
 * and again when there is another session, however much later. */
static void who_chose_a_buffer_only_is_told_of_a_new_session_too(void **state)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct pollfd wait = {.events = POLLIN};
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    char path[300];
    bool again = false;

    begin(path);
    ctx = open_patient(path, 1000);
    assert_non_null(ctx);
    assert_done(memclient_alloc(ctx, 4096, NULL, &buf));
    assert_done(memclient_event_subscribe_buffer(ctx, memclient_buffer_id(buf), MEMCLIENT_EVENT_HELD));
    assert_done(memclient_event_fd(ctx, &wait.fd));
    broker_crash(&broker);
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_done(memclient_event_next(ctx, &event));
    assert_int_equal(event.kind, MEMCLIENT_EVENT_LOST);
    for (int64_t until = wait_now_ms() + ABSENCE_MS; wait_now_ms() < until;)
        if (poll(&wait, 1, 20) == 1)
            assert_true(memclient_event_next(ctx, &event) < 0);
    begin_anew(path);
    for (int64_t end = wait_now_ms() + PATIENCE_MS; !again && wait_now_ms() < end;)
        if (poll(&wait, 1, 20) == 1 && !memclient_event_next(ctx, &event))
            again = event.kind == MEMCLIENT_EVENT_LOST;
    assert_true(again);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    finish(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        lost_test(what_is_given_out_can_be_mapped_by_all_who_lost_a_broker_I9),
        lost_test(what_was_lost_can_be_made_again_where_it_was_I9),
        lost_test(again_and_again_I9),
        lost_test(events_go_on_by_their_descriptor_alone),
        lost_test(events_go_on_after_a_call_that_failed),
        lost_test(who_chose_a_buffer_only_is_told_of_a_new_session_too),
    };

    return test_run(tests, NULL, NULL);
}
