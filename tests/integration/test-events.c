/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as programs get them: of one buffer, of one name, of everything; after the death of the broker by the
 * descriptor alone; and what another user gets of them.
 */
#include "tests/integration/clients.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define OF_HOLDS (MEMCLIENT_EVENT_HELD | MEMCLIENT_EVENT_LEFT | MEMCLIENT_EVENT_DIED)
#define ANYTHING \
    (OF_HOLDS | MEMCLIENT_EVENT_DEATH | MEMCLIENT_EVENT_PUBLISHED | MEMCLIENT_EVENT_MOVED | MEMCLIENT_EVENT_DESTROYED)

/* The next one, however long it takes; the program does nothing but wait for the descriptor. */
static struct memclient_event event_await(struct memclient_context *ctx)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct pollfd wait = {.events = POLLIN};
    int64_t end = wait_now_ms() + PATIENCE_MS;
    int r;

    assert_done(memclient_event_fd(ctx, &wait.fd));
    while ((r = memclient_event_next(ctx, &event)) == -EAGAIN && wait_now_ms() < end)
        assert_true(poll(&wait, 1, PATIENCE_MS) > 0);
    assert_int_equal(r, 0);
    return event;
}

static struct memclient_event event_await_kind(struct memclient_context *ctx, unsigned kind)
{
    struct memclient_event event;

    do
        event = event_await(ctx);
    while (event.kind != kind);
    return event;
}

struct guest {
    const char *socket;
    struct memclient_token token;
    uid_t uid;
};

/* Holds it until it is told to go, or killed. */
static void hold(int channel, void *context)
{
    struct guest *guest = context;
    struct memclient_context *ctx = broker_connect_in_child(guest->socket);
    struct memclient_buffer *buf;

    CHECK_DONE(memclient_open_token(ctx, &guest->token, 0, &buf));
    tell(channel);
    hear(channel);
    memclient_context_close(ctx);
}

static void a_buffer_is_watched_from_its_holders_to_its_end(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct guest guest = {.socket = broker->socket};
    struct memclient_buffer *buf;
    struct memclient_event event;
    struct child child;
    uint64_t id, session;
    int status;

    assert_done(memclient_alloc(ctx, 4096, NULL, &buf));
    id = memclient_buffer_id(buf);
    assert_done(memclient_share(buf, NULL, &guest.token));
    assert_done(memclient_event_subscribe_buffer(ctx, id, ANYTHING));
    child_start(&child, hold, &guest);
    child_hear(&child);
    event = event_await(ctx);
    assert_int_equal(event.kind, MEMCLIENT_EVENT_HELD);
    assert_int_equal(event.buffer, id);
    assert_int_equal(event.pid, child.pid);
    assert_int_equal(event.uid, getuid());
    session = event.session;

    child_kill_unreaped(&child);
    event = event_await(ctx);
    assert_int_equal(event.kind, MEMCLIENT_EVENT_DIED);
    assert_int_equal(event.session, session);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    close(child.channel);
    event = event_await(ctx);
    assert_int_equal(event.kind, MEMCLIENT_EVENT_DEATH);
    assert_int_equal(event.session, session);
    assert_int_equal(event.end, child_ends_are_told() ? MEMCLIENT_END_SIGNAL : MEMCLIENT_END_UNKNOWN);
    assert_int_equal(event.exit_status, child_ends_are_told() ? SIGKILL : 0);

    child_start(&child, hold, &guest);
    child_hear(&child);
    assert_int_equal(event_await(ctx).kind, MEMCLIENT_EVENT_HELD);
    child_tell(&child);
    child_finish(&child);
    assert_int_equal(event_await(ctx).kind, MEMCLIENT_EVENT_LEFT);

    assert_done(memclient_destroy_id(ctx, id, 0));
    assert_int_equal(event_await_kind(ctx, MEMCLIENT_EVENT_DESTROYED).buffer, id);
    assert_refused(memclient_event_subscribe_buffer(ctx, id, MEMCLIENT_EVENT_HELD), ESTALE);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* To the other one of two nodes; who moves it is not told. */
static void that_a_buffer_moves_is_told(void **state)
{
    struct broker_process *broker = broker_for_test("[topology]\nsimulate_nodes = 2\n");
    struct memclient_context *ctx = broker_connect(broker), *mover = broker_connect(broker);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct memclient_buffer *buf, *other;
    uint32_t node = 0;

    options.nodes = &node;
    options.n_nodes = 1;
    assert_done(memclient_alloc(mover, 4096, &options, &buf));
    assert_done(memclient_alloc(mover, 4096, &options, &other));
    assert_done(memclient_event_subscribe_buffer(ctx, memclient_buffer_id(buf), MEMCLIENT_EVENT_MOVED));
    assert_done(memclient_event_subscribe(mover, MEMCLIENT_EVENT_MOVED));
    assert_done(memclient_move(other, 1));
    assert_done(memclient_move(buf, 1));
    event = event_await(ctx);
    assert_int_equal(event.kind, MEMCLIENT_EVENT_MOVED);
    assert_int_equal(event.buffer, memclient_buffer_id(buf));
    assert_done(memclient_broker_ping(mover));
    assert_int_equal(memclient_event_next(mover, &event), -EAGAIN);
    memclient_buffer_unref(other);
    memclient_buffer_unref(buf);
    memclient_context_close(mover);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* To one that holds nothing, as memctl does: of everything, or of one buffer. */
static void that_a_buffer_is_discarded_is_told(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *all = broker_connect(broker),
                             *one = broker_connect(broker);
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct memclient_buffer *buf, *other;

    assert_done(memclient_alloc(ctx, 4096, NULL, &buf));
    assert_done(memclient_alloc(ctx, 4096, NULL, &other));
    assert_done(memclient_event_subscribe(all, MEMCLIENT_EVENT_DISCARDED));
    assert_done(memclient_event_subscribe_buffer(one, memclient_buffer_id(other), MEMCLIENT_EVENT_DISCARDED));
    assert_done(memclient_discard(buf, 0, 0));
    assert_done(memclient_discard(other, 0, 0));
    event = event_await_kind(all, MEMCLIENT_EVENT_DISCARDED);
    assert_int_equal(event.buffer, memclient_buffer_id(buf));
    assert_int_equal(event_await_kind(all, MEMCLIENT_EVENT_DISCARDED).buffer, memclient_buffer_id(other));
    assert_int_equal(event_await_kind(one, MEMCLIENT_EVENT_DISCARDED).buffer, memclient_buffer_id(other));
    memclient_buffer_unref(buf);
    memclient_buffer_unref(other);
    memclient_context_close(all);
    memclient_context_close(one);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void what_cannot_be_subscribed_to_is_refused(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    char name[32];

    assert_refused(memclient_event_subscribe(ctx, 2 * MEMCLIENT_EVENT_HISTORY), EINVAL);
    assert_refused(memclient_event_subscribe_buffer(ctx, 12345, MEMCLIENT_EVENT_HELD), ENOENT);
    assert_refused(memclient_event_subscribe_buffer(ctx, 0, MEMCLIENT_EVENT_HELD), EINVAL);
    assert_refused(memclient_event_subscribe_buffer(ctx, 1, MEMCLIENT_EVENT_HISTORY), EINVAL);
    assert_refused(memclient_event_subscribe_name(ctx, "a", MEMCLIENT_EVENT_HELD), EINVAL);
    assert_refused(memclient_event_subscribe_name(ctx, "", MEMCLIENT_EVENT_NAME), EINVAL);
    assert_refused(memclient_event_subscribe_name(ctx, NULL, MEMCLIENT_EVENT_NAME), EINVAL);
    for (unsigned i = 0; i < 16; i++) {
        (void)snprintf(name, sizeof(name), "n/%u", i);
        assert_done(memclient_event_subscribe_name(ctx, name, MEMCLIENT_EVENT_NAME));
    }
    assert_refused(memclient_event_subscribe_name(ctx, "one/more", MEMCLIENT_EVENT_NAME), EDQUOT);
    assert_done(memclient_event_subscribe_name(ctx, "n/0", 0));
    assert_done(memclient_event_subscribe_name(ctx, "one/more", MEMCLIENT_EVENT_NAME));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void the_history_has_something_new(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *none;

    assert_done(memclient_event_subscribe(ctx, MEMCLIENT_EVENT_HISTORY));
    assert_true(memclient_alloc(other, UINT64_C(1) << 50, NULL, &none) < 0);
    assert_int_equal(event_await(ctx).kind, MEMCLIENT_EVENT_HISTORY);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Holds and names the buffer again and again, and waits for its broker as any program does. */
static void come_and_go(int channel, void *context)
{
    struct guest *guest = context;
    struct memclient_context *ctx = broker_connect_in_child(guest->socket);
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_buffer *mine;

    /* it is killed at any time, also while it has the name */
    options.policy = MEMCLIENT_NAME_FREE;
    CHECK_DONE(memclient_alloc(ctx, 4096, NULL, &mine));
    tell(channel);
    for (;;) {
        struct memclient_context *visit = broker_connect_in_child(guest->socket);
        struct memclient_buffer *buf;

        CHECK_DONE(memclient_open_token(visit, &guest->token, 0, &buf));
        memclient_buffer_unref(buf);
        memclient_context_close(visit);
        CHECK_DONE(memclient_bind_name(mine, "events/again", &options));
        CHECK_DONE(memclient_unbind_name(ctx, "events/again"));
        (void)poll(NULL, 0, 10);
    }
}

/* What was subscribed to goes on, of everything, of a buffer and of a name, though the program calls nothing. */
static void after_the_death_of_a_broker_the_descriptor_is_enough(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *of_name = broker_connect(broker);
    struct guest guest = {.socket = broker->socket};
    struct memclient_buffer *buf;
    struct child child;

    assert_done(memclient_alloc(ctx, 4096, NULL, &buf));
    assert_done(memclient_share(buf, NULL, &guest.token));
    assert_done(memclient_event_subscribe(ctx, MEMCLIENT_EVENT_HISTORY));
    assert_done(memclient_event_subscribe_buffer(ctx, memclient_buffer_id(buf), MEMCLIENT_EVENT_HELD));
    assert_done(memclient_event_subscribe_name(of_name, "events/again", MEMCLIENT_EVENT_NAME));
    child_start(&child, come_and_go, &guest);
    child_hear(&child);
    for (unsigned i = 0; i < 3; i++) {
        kill(broker_child(broker), SIGKILL);
        (void)event_await_kind(ctx, MEMCLIENT_EVENT_LOST);
        (void)event_await_kind(ctx, MEMCLIENT_EVENT_HELD);
        (void)event_await_kind(of_name, MEMCLIENT_EVENT_LOST);
        (void)event_await_kind(of_name, MEMCLIENT_EVENT_NAME);
    }
    child_kill(&child);
    memclient_buffer_unref(buf);
    memclient_context_close(of_name);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- another user ------------------------------------------------------------------------------------------------ */

static bool child_next(struct memclient_context *ctx, struct memclient_event *event)
{
    CHECK_DONE(memclient_broker_ping(ctx));
    return memclient_event_next(ctx, event) == 0;
}

/* It wants everything, and gets what is its own. What happened before is told before. */
static void spy(int channel, void *context)
{
    struct guest *guest = context;
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct memclient_context *ctx, *twin;
    struct memclient_buffer *mine, *given;
    uint64_t foreign;

    become(UID_STRANGER);
    ctx = broker_connect_in_child(guest->socket);
    twin = broker_connect_in_child(guest->socket);
    CHECK(take_bytes(channel, &foreign, sizeof(foreign)));
    CHECK(memclient_event_subscribe_buffer(ctx, foreign, OF_HOLDS) == -EACCES);
    CHECK_DONE(memclient_event_subscribe(ctx, ANYTHING | MEMCLIENT_EVENT_HISTORY | MEMCLIENT_EVENT_NAME));
    tell(channel);
    hear(channel);
    /* the other user has done it all by now */
    CHECK_DONE(memclient_alloc(twin, 4096, NULL, &mine));
    CHECK(WAIT_UNTIL(child_next(ctx, &event)));
    CHECK(event.kind == MEMCLIENT_EVENT_HELD && event.buffer == memclient_buffer_id(mine) && event.uid == UID_STRANGER);

    /* of what it was given it learns that somebody came, but not who */
    CHECK_DONE(memclient_open_token(ctx, &guest->token, 0, &given));
    tell(channel);
    CHECK(WAIT_UNTIL(child_next(ctx, &event)));
    CHECK(event.kind == MEMCLIENT_EVENT_HELD && event.buffer == foreign);
    CHECK(event.session == 0 && event.uid == UINT32_MAX && event.pid == 0);
    memclient_context_close(twin);
    memclient_context_close(ctx);
}

static void do_everything(struct broker_process *broker, struct memclient_context *ctx)
{
    struct memclient_alloc_options publishable = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct guest guest = {.socket = broker->socket};
    struct memclient_buffer *buf;
    struct child child;

    publishable.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, 4096, &publishable, &buf));
    assert_done(memclient_bind_name(buf, "events/private", NULL));
    assert_done(memclient_share(buf, NULL, &guest.token));
    child_start(&child, hold, &guest);
    child_hear(&child);
    child_kill(&child);
    assert_done(memclient_publish(buf, 0));
    assert_done(memclient_destroy_id(ctx, memclient_buffer_id(buf), 0));
    memclient_buffer_unref(buf);
}

static void I3_others_are_told_nothing_of_what_is_not_theirs(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct guest guest = {.socket = broker->socket};
    struct memclient_buffer *buf, *again;
    struct memclient_context *other;
    struct child child;
    uint64_t id;

    if (getuid() != 0) {
        memclient_context_close(ctx);
        broker_finish(broker);
        test_skip("another user needs root");
    }
    assert_done(memclient_alloc(ctx, 4096, NULL, &buf));
    id = memclient_buffer_id(buf);
    assert_done(memclient_share(buf, NULL, &guest.token));
    child_start(&child, spy, &guest);
    assert_true(pass_bytes(child.channel, &id, sizeof(id)));
    child_hear(&child);
    do_everything(broker, ctx);
    child_tell(&child);
    child_hear(&child);
    other = broker_connect(broker);
    assert_done(memclient_open_token(other, &guest.token, 0, &again));
    child_finish(&child);
    memclient_buffer_unref(again);
    memclient_context_close(other);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_buffer_is_watched_from_its_holders_to_its_end),
        at_broker(that_a_buffer_moves_is_told),
        at_broker(that_a_buffer_is_discarded_is_told),
        at_broker(what_cannot_be_subscribed_to_is_refused),
        at_broker(the_history_has_something_new),
        at_broker(after_the_death_of_a_broker_the_descriptor_is_enough),
        at_broker(I3_others_are_told_nothing_of_what_is_not_theirs),
    };

    return test_run(tests, NULL, NULL);
}
