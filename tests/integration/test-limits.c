/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7, nobody starves the rest: each limit holds, says its name to who reaches it, and is nobody else's; and a client
 * that hoards, sleeps or floods takes nothing from the others.
 */
#include "tests/integration/clients.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#define LIMIT 5
#define MOST  64

/* What a client may have too much of: one more, and all of them back again. */
struct hoard {
    struct memclient_context *ctx;
    size_t n;
    struct memclient_buffer *bufs[MOST];
    struct memclient_reservation *reservations[MOST];
    struct memclient_token tokens[MOST];
};

static int one_buffer(struct hoard *h)
{
    return memclient_alloc(h->ctx, 1, NULL, &h->bufs[h->n]);
}

static int one_page(struct hoard *h)
{
    return memclient_alloc(h->ctx, page_size(), NULL, &h->bufs[h->n]);
}

static int one_token(struct hoard *h)
{
    if (h->bufs[0] == NULL)
        assert_done(memclient_alloc(h->ctx, 1, NULL, &h->bufs[0]));
    return memclient_share(h->bufs[0], NULL, &h->tokens[h->n]);
}

static int one_reservation(struct hoard *h)
{
    return memclient_reserve(h->ctx, page_size(), NULL, &h->reservations[h->n]);
}

static int one_name(struct hoard *h)
{
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    char name[16];

    options.policy = MEMCLIENT_NAME_FREE;
    if (h->bufs[0] == NULL)
        assert_done(memclient_alloc(h->ctx, 1, NULL, &h->bufs[0]));
    snprintf(name, sizeof(name), "limit/%zu", h->n);
    return memclient_bind_name(h->bufs[0], name, &options);
}

static void give_back(struct hoard *h)
{
    for (size_t i = 0; i < MOST; i++) {
        memclient_buffer_unref(h->bufs[i]);
        if (h->reservations[i] != NULL)
            assert_done(memclient_reservation_release(h->reservations[i]));
    }
    memclient_context_close(h->ctx);
}

struct limit {
    const char *what;
    int (*one_more)(struct hoard *hoard);
    unsigned long unit;
};

static const struct limit limits[] = {
    {"buffers", one_buffer, 1},
    {"bytes", one_page, 4096},
    {"tokens", one_token, 1},
    {"names", one_name, 1},
    {"reservations", one_reservation, 1},
    {"addresses", one_reservation, 4096},
};

/* A broker that has this limit at LIMIT, and two sessions that hold nothing. */
static struct broker_process *two_under(const struct limit *limit, const char *scope, struct hoard *one,
                                        struct hoard *other)
{
    unsigned long unit = limit->unit == 1 ? 1 : page_size();
    struct broker_process *broker;
    char config[100];

    snprintf(config, sizeof(config), "[limits]\n%s_%s = %lu\n", scope, limit->what, LIMIT * unit);
    broker = broker_for_test(config);
    *one = (struct hoard){.ctx = broker_connect(broker)};
    *other = (struct hoard){.ctx = broker_connect(broker)};
    return broker;
}

static size_t fill(struct hoard *hoard, const struct limit *limit, const char *scope)
{
    char key[40];
    int r = 0;

    while (hoard->n < MOST && (r = limit->one_more(hoard)) == 0)
        hoard->n++;
    assert_int_equal(r, -EDQUOT);
    snprintf(key, sizeof(key), "%s_%s", scope, limit->what);
    assert_sentence(key);
    return hoard->n;
}

static void I7_a_sessions_limits_are_its_own(void **state)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        static struct hoard greedy, modest;
        struct broker_process *broker = two_under(&limits[i], "session", &greedy, &modest);

        assert_int_equal(fill(&greedy, &limits[i], "session"), LIMIT);
        modest.n = MOST - 1; /* another name than his */
        assert_done(limits[i].one_more(&modest));
        broker_check(broker);
        give_back(&greedy);
        give_back(&modest);
        broker_finish(broker);
    }
}

static void I7_a_users_limits_count_all_his_sessions(void **state)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        static struct hoard first, second;
        struct broker_process *broker = two_under(&limits[i], "uid", &first, &second);

        for (first.n = 0; first.n < LIMIT - 1; first.n++)
            assert_done(limits[i].one_more(&first));
        second.n = MOST - 2;
        assert_done(limits[i].one_more(&second));
        second.n++;
        assert_int_equal(limits[i].one_more(&second), -EDQUOT);
        assert_sentence("uid_");
        broker_check(broker);
        /* what is given back may be had again */
        give_back(&first);
        assert_true(WAIT_UNTIL(limits[i].one_more(&second) == 0));
        give_back(&second);
        broker_finish(broker);
    }
}

/* ---- another user ------------------------------------------------------------------------------------------------ */

static void allocate_as_a_stranger(int channel, void *context)
{
    struct memclient_buffer *buf;
    struct memclient_context *ctx;

    (void)channel;
    become(UID_STRANGER);
    ctx = broker_connect_in_child(context);
    for (size_t i = 0; i < LIMIT; i++)
        CHECK_DONE(memclient_alloc(ctx, 1, NULL, &buf));
    CHECK_REFUSED(memclient_alloc(ctx, 1, NULL, &buf), EDQUOT);
    memclient_context_close(ctx);
}

static void I7_one_users_limit_is_not_anothers(void **state)
{
    static struct hoard greedy;
    struct broker_process *broker;

    test_needs_root();
    memset(&greedy, 0, sizeof(greedy));
    broker = broker_for_test("[limits]\nuid_buffers = 5\n");
    greedy.ctx = broker_connect(broker);
    assert_int_equal(fill(&greedy, &limits[0], "uid"), LIMIT);
    child_run(allocate_as_a_stranger, broker->socket);
    give_back(&greedy);
    broker_finish(broker);
}

static void I7_too_many_sessions_are_told(void **state)
{
    struct broker_process *broker = broker_for_test("[limits]\nuid_sessions = 5\n");
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *contexts[LIMIT], *one_more;

    options.socket = broker->socket;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    for (size_t i = 0; i < LIMIT; i++)
        contexts[i] = broker_connect(broker);
    assert_refused(memclient_context_open(&options, &one_more), EDQUOT);
    assert_sentence("uid_sessions");
    for (size_t i = 0; i < LIMIT; i++)
        assert_done(memclient_broker_ping(contexts[i]));
    for (size_t i = 0; i < LIMIT; i++)
        memclient_context_close(contexts[i]);
    broker_finish(broker);
}

/* ---- those who do not take part ---------------------------------------------------------------------------------- */

static void subscribe_and_stop(int channel, void *context)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    struct memclient_context *ctx = broker_connect_in_child(context);
    bool lost = false;
    int fd;

    CHECK_DONE(memclient_event_subscribe(ctx, MEMCLIENT_EVENT_NAME));
    CHECK_DONE(memclient_event_fd(ctx, &fd));
    tell(channel);
    hear(channel); /* it is stopped here, while events come that nobody reads */
    CHECK_DONE(memclient_broker_ping(ctx));
    while (memclient_event_next(ctx, &event) == 0)
        lost = lost || event.kind == MEMCLIENT_EVENT_LOST;
    CHECK(lost);
    memclient_context_close(ctx);
}

/* Events for a client that sleeps are dropped, and it is told; nobody waits for it, and it stays connected. */
static void I7_who_sleeps_loses_events_and_nothing_else(void **state)
{
    struct broker_process *broker = broker_for_test("[session]\nstall_timeout = 100ms\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;
    struct child child;

    child_start(&child, subscribe_and_stop, broker->socket);
    child_hear(&child);
    assert_ok(kill(child.pid, SIGSTOP));
    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    for (size_t i = 0; i < 5000; i++) {
        char name[120];

        snprintf(name, sizeof(name), "a/name/that/is/long/enough/to/fill/a/socket/buffer/in/time/%zu", i);
        assert_done(memclient_bind_name(buf, name, NULL));
        assert_done(memclient_unbind_name(ctx, name));
    }
    assert_ok(kill(child.pid, SIGCONT));
    child_tell(&child);
    child_finish(&child);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void hoard_descriptors(int channel, void *context)
{
    struct rlimit limit = {4096, 4096};
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *buf;
    int fd, r;

    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_DONE(memclient_alloc(ctx, 1, NULL, &buf));
    do
        r = memclient_export_fd(buf, 0, &fd);
    while (r == 0);
    /* its own table is full, which is its own affair; its session survives it */
    CHECK(r == -EMFILE || r == -ECONNRESET || r == -ENOTCONN);
    tell(channel);
    hear(channel);
}

static void I7_who_hoards_descriptors_fills_his_own_table(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    uint64_t fds = broker_status(ctx).fds;
    struct child child;

    child_start(&child, hoard_descriptors, broker->socket);
    child_hear(&child);
    assert_true(broker_status(ctx).fds < fds + 16);
    assert_done(memclient_broker_ping(ctx));
    child_kill(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I7_a_sessions_limits_are_its_own),
        at_broker(I7_a_users_limits_count_all_his_sessions),
        at_broker(I7_one_users_limit_is_not_anothers),
        at_broker(I7_too_many_sessions_are_told),
        at_broker(I7_who_sleeps_loses_events_and_nothing_else),
        at_broker(I7_who_hoards_descriptors_fills_his_own_table),
    };

    return test_run(tests, NULL, NULL);
}
