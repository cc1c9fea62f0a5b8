/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7, nobody starves the rest: one user takes of everything as much as it gets, by every way that it has, and stays or
 * leaves it behind. A user that comes later still gets its share, and an administrator gets in and cleans up.
 *
 * Each thing is taken three times. A user whose share is 100 % shows how much there is of it. Without that it gets half
 * of it, and the next one half of the rest; the refusal names the line that would change that.
 */
#include "tests/integration/clients.h"

#include <grp.h>
#include <signal.h>
#include <stdlib.h>

#include "proto/limits.h"
#include "proto/methods.h"

#define UID_GREEDY 61003
#define UID_LATE   61004
#define UID_LAST   61005
#define GID_MANY   61050

#define HOARD_MAX 16384
/* buffers that many sessions hold */
#define HELD 32

/* ---- what there is, and how one gets more of it ------------------------------------------------------------------ */

struct hoard {
    struct broker_process *broker;
    struct memclient_context *ctx;
    unsigned n;
    struct memclient_buffer *buffer; /* something that tokens and names are for */
};

static struct memclient_context *hoard_open(struct broker_process *broker, bool administrator, int *ret)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx = NULL;

    options.socket = broker->socket;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    options.deadline_ms = PATIENCE_MS;
    options.administrator = administrator;
    *ret = memclient_context_open(&options, &ctx);
    return ctx;
}

static int one_called(struct hoard *h, const char *name, const char *pool, uint64_t size)
{
    struct memclient_name_options policy = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buffer;
    int r;

    policy.policy = pool ? MEMCLIENT_NAME_KEEP : MEMCLIENT_NAME_FREE;
    options.pool = pool;
    options.name = name;
    options.name_options = &policy;
    r = memclient_alloc(h->ctx, size, &options, &buffer);
    if (!r && pool)
        memclient_buffer_unref(buffer);
    return r;
}

static int one_named(struct hoard *h, const char *pool)
{
    char name[32];

    snprintf(name, sizeof(name), "left/%u", h->n);
    return one_called(h, name, pool, 65536);
}

/* It stays when its user has gone. */
static int take_name_in_pool(struct hoard *h)
{
    return one_named(h, "tight");
}

/* All of them have the memory of one node. */
static int take_through_each_pool(struct hoard *h)
{
    static const char *const pools[] = {"node0-4k", "tight", "other", "third"};
    int r = 0;

    for (unsigned i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        r = one_named(h, pools[(h->n + i) % 4]);
        if (!r)
            return 0;
    }
    return r;
}

/* Nothing keeps it but a descriptor. */
static int take_detached(struct hoard *h)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buffer;
    int r, fd;

    options.pool = "tight";
    r = memclient_alloc(h->ctx, 65536, &options, &buffer);
    if (r)
        return r;
    r = memclient_export_fd(buffer, MEMCLIENT_READ, &fd);
    memclient_buffer_unref(buffer);
    return r;
}

/* Each takes a descriptor of the broker, and is watched. */
static int take_exported_buffer(struct hoard *h)
{
    struct memclient_buffer *buffer;
    int r = memclient_alloc(h->ctx, 1, NULL, &buffer), fd;

    if (!r)
        r = memclient_export_fd(buffer, MEMCLIENT_READ, &fd);
    if (!r)
        fd_close(fd);
    return r;
}

static int need_buffer(struct hoard *h)
{
    return h->buffer ? 0 : memclient_alloc(h->ctx, 1, NULL, &h->buffer);
}

static int take_token(struct hoard *h)
{
    struct memclient_token token;
    int r = need_buffer(h);

    return r ? r : memclient_share(h->buffer, NULL, &token);
}

static int take_name(struct hoard *h)
{
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    char name[32];
    int r = 0;

    /* each buffer has as many as one may have */
    if (h->n % MEMORYD_BUFFER_NAMES_MAX == 0)
        r = memclient_alloc(h->ctx, 1, NULL, &h->buffer);

    options.policy = MEMCLIENT_NAME_FREE;
    snprintf(name, sizeof(name), "name/%u", h->n);
    return r ? r : memclient_bind_name(h->buffer, name, &options);
}

static int take_small_reservation(struct hoard *h)
{
    struct memclient_reservation *reservation;

    return memclient_reserve(h->ctx, page_size(), NULL, &reservation);
}

static int take_large_reservation(struct hoard *h)
{
    struct memclient_reservation *reservation;

    return memclient_reserve(h->ctx, UINT64_C(1) << 30, NULL, &reservation);
}

/* Many sessions have the same buffers open. */
static int take_hold(struct hoard *h)
{
    static struct memclient_context *other;
    struct memclient_buffer *buffer;
    char name[32];
    int r = 0;

    snprintf(name, sizeof(name), "held/%u", h->n % HELD);
    if (h->n < HELD)
        return one_called(h, name, NULL, 1);
    if (h->n % HELD == 0)
        other = hoard_open(h->broker, false, &r);
    return r ? r : memclient_open_name(other, name, 0, &buffer);
}

/* Many sessions of one process, each with a connection. */
static int take_session(struct hoard *h)
{
    int r;

    (void)hoard_open(h->broker, false, &r);
    return r;
}

static const struct thing {
    const char *what;
    const char *config;
    int (*take)(struct hoard *hoard);
    unsigned nofile;
    bool stays;     /* when its user has gone */
    unsigned least; /* that there must be for the numbers below to mean something */
} things[] = {
    {"names that stay", "[pool tight]\nnodes = 0\ncapacity = 4M\n", take_name_in_pool, 0, true, 64},
    {"pools of one node",
     "[pools]\ncapacity = 4M\n[pool tight]\nnodes = 0\n[pool other]\nnodes = 0\n[pool third]\nnodes = 0\n",
     take_through_each_pool, 0, true, 60},
    {"detached memory", "[pool tight]\nnodes = 0\ncapacity = 4M\n", take_detached, 0, false, 64},
    {"buffers", NULL, take_exported_buffer, 1024, false, 200},
    {"tokens", "[limits]\nmetadata = 1M\n", take_token, 0, false, 1000},
    {"names", "[limits]\nmetadata = 1M\n", take_name, 0, false, 1000},
    {"reservations", "[limits]\nmetadata = 1M\n", take_small_reservation, 0, false, 1000},
    {"holds", "[limits]\nmetadata = 1M\n", take_hold, 0, false, 1000},
    {"addresses", NULL, take_large_reservation, 0, false, 60},
    {"sessions", "[limits]\nconnections = 64\n", take_session, 0, false, 60},
};

/* ---- one user ---------------------------------------------------------------------------------------------------- */

struct taker {
    struct child child;
    struct broker_process *broker;
    const struct thing *thing;
    uid_t uid;
    gid_t gid;       /* 0 = its own */
    bool is_limited; /* the refusal must name the line that would change that */
    bool leaves;
    unsigned has; /* of those that have names, from before */
    unsigned taken;
};

static void taker_run(int channel, void *context)
{
    const struct taker *taker = context;
    struct hoard hoard = {.broker = taker->broker, .n = taker->has};
    char line[64];
    int r;

    if (taker->gid)
        CHECK(setgroups(1, &taker->gid) == 0 && setresgid(taker->uid, taker->uid, taker->uid) == 0 &&
              setresuid(taker->uid, taker->uid, taker->uid) == 0);
    else
        become(taker->uid);
    hoard.ctx = hoard_open(taker->broker, false, &r);
    CHECK(r == 0);
    if (taker->thing->take == take_session)
        hoard.n++;
    while ((r = taker->thing->take(&hoard)) == 0)
        CHECK(++hoard.n < HOARD_MAX);
    snprintf(line, sizeof(line), "[user %u] share = 100%%", (unsigned)taker->uid);
    if (taker->is_limited && (r != -EDQUOT || !strstr(memclient_error(), line)))
        fprintf(stderr, "%s: refused with %d: %s\n", taker->thing->what, r, memclient_error());
    CHECK(!taker->is_limited || (r == -EDQUOT && strstr(memclient_error(), line)));
    CHECK(write(channel, &hoard.n, sizeof(hoard.n)) == sizeof(hoard.n));
    if (!taker->leaves)
        hear(channel);
}

static unsigned taker_start(struct taker *taker, struct broker_process *broker, const struct thing *thing, uid_t uid)
{
    taker->broker = broker;
    taker->thing = thing;
    taker->uid = uid;
    child_start(&taker->child, taker_run, taker);
    if (read(taker->child.channel, &taker->taken, sizeof(taker->taken)) != sizeof(taker->taken))
        child_finish(&taker->child); /* which fails */
    if (taker->leaves)
        child_finish(&taker->child);
    return taker->taken;
}

static void taker_end(struct taker *taker)
{
    if (taker->leaves)
        return;
    child_tell(&taker->child);
    child_finish(&taker->child);
}

/* An administrator gets in whatever others have, sees that the sums agree, and gives back what was left behind. */
static void administrator_cleans_up(struct broker_process *broker, uid_t uid, unsigned n)
{
    struct memclient_context *ctx;
    int r;

    ctx = hoard_open(broker, true, &r);
    if (r)
        fail_msg("an administrator does not get in: %s", memclient_error());
    for (unsigned i = 0; i < n; i++) {
        char name[64];

        snprintf(name, sizeof(name), "uid:%u/left/%u", (unsigned)uid, i);
        assert_done(memclient_unbind_name(ctx, name));
    }
    memclient_context_close(ctx);
}

static struct broker_process *broker_with(const struct thing *thing, const char *more)
{
    char config[512];

    snprintf(config, sizeof(config), "%s%s", thing->config ? thing->config : "", more);
    return broker_for_test_with_nofile(thing->nofile, config);
}

/* All that there is, for a user who may have it. */
static unsigned everything_of(const struct thing *thing)
{
    struct taker greedy = {.leaves = false};
    struct broker_process *broker = broker_with(thing, "[user 61003]\nshare = 100%\n");
    unsigned all = taker_start(&greedy, broker, thing, UID_GREEDY);

    administrator_cleans_up(broker, UID_GREEDY, thing->stays ? all : 0);
    taker_end(&greedy);
    broker_finish(broker);
    return all;
}

static void assert_part(const char *what, const char *who, unsigned taken, unsigned of, unsigned all)
{
    /* some of what there is goes for sessions and the like */
    unsigned slack = 2 + all / 40;

    if (taken > of || taken + slack < of)
        fail_msg("%s: the %s user has %u of %u, and should have about %u", what, who, taken, all, of);
}

static void one_user_leaves_others_their_share(const struct thing *thing)
{
    unsigned all = everything_of(thing);
    struct taker greedy = {.is_limited = true, .leaves = thing->stays}, late = {.is_limited = true};
    struct broker_process *broker = broker_with(thing, "");
    unsigned first, second;

    if (all < thing->least)
        fail_msg("%s: a user whose share is everything has %u only", thing->what, all);
    first = taker_start(&greedy, broker, thing, UID_GREEDY);
    second = taker_start(&late, broker, thing, UID_LATE);
    assert_part(thing->what, "first", first, all / 2 + 1, all);
    assert_part(thing->what, "second", second, all / 4 + 1, all);
    administrator_cleans_up(broker, UID_GREEDY, thing->stays ? first : 0);
    administrator_cleans_up(broker, UID_LATE, thing->stays ? second : 0);
    taker_end(&greedy);
    taker_end(&late);
    broker_finish(broker);
}

#define THING(name, index)                                  \
    static void I7_##name(void **state)                     \
    {                                                       \
        test_needs_root();                                  \
        one_user_leaves_others_their_share(&things[index]); \
    }

THING(names_that_stay_leave_others_their_share, 0)
THING(all_pools_of_a_node_are_one_share, 1)
THING(detached_memory_leaves_others_their_share, 2)
THING(buffers_leave_others_their_share, 3)
THING(tokens_leave_others_their_share, 4)
THING(names_leave_others_their_share, 5)
THING(reservations_leave_others_their_share, 6)
THING(holds_leave_others_their_share, 7)
THING(addresses_leave_others_their_share, 8)
THING(sessions_leave_others_their_share, 9)

/* A user's own section comes before its group's. */
static void a_group_has_a_share_for_each_member(void **state)
{
    const struct thing *thing = &things[0];
    struct taker first = {.gid = GID_MANY}, second = {.gid = GID_MANY, .is_limited = true};
    struct broker_process *broker;
    unsigned taken;

    test_needs_root();
    broker = broker_with(thing, "[group 61050]\nshare = 75%\n[user 61004]\nshare = 50%\n");
    taken = taker_start(&first, broker, thing, UID_GREEDY);
    assert_int_equal(taken, 48);
    assert_int_equal(taker_start(&second, broker, thing, UID_LATE), 8);
    administrator_cleans_up(broker, UID_GREEDY, taken);
    administrator_cleans_up(broker, UID_LATE, 8);
    taker_end(&first);
    taker_end(&second);
    broker_finish(broker);
}

/* With stock there, which gives way to who needs memory. */
static void use_up_records_and_allocate(int channel, void *context)
{
    struct hoard hoard = {.broker = context};
    struct memclient_buffer *buffer;
    int r;

    become(UID_GREEDY);
    hoard.ctx = hoard_open(hoard.broker, false, &r);
    CHECK(r == 0);
    /* often enough that some are made in advance */
    for (unsigned i = 0; i < 16; i++)
        CHECK_DONE(memclient_alloc(hoard.ctx, 65536, NULL, &buffer));
    while ((r = take_token(&hoard)) == 0)
        CHECK(++hoard.n < HOARD_MAX);
    CHECK(r == -EDQUOT);
    tell(channel);
    hear(channel);
    CHECK_REFUSED(memclient_alloc(hoard.ctx, 65536, NULL, &buffer), EDQUOT);
}

static void I7_who_has_no_room_for_records_does_not_wait_for_memory(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child child;

    test_needs_root();
    broker = broker_for_test("[limits]\nmetadata = 1M\n");
    ctx = broker_connect(broker);
    child_start(&child, use_up_records_and_allocate, broker);
    child_hear(&child);
    assert_true(WAIT_UNTIL(broker_stock(ctx) > 0));
    child_tell(&child);
    child_finish(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* More or less than others, also where connections are counted. */
static void a_user_has_limits_of_its_own(void **state)
{
    static const struct thing thing = {.what = "sessions",
                                       .config = "[limits]\nuid_sessions = 4\n[user 61003]\nsessions = 40\n",
                                       .take = take_session};
    struct taker first = {.leaves = true}, second = {.leaves = true};
    struct broker_process *broker;

    test_needs_root();
    broker = broker_with(&thing, "");
    assert_int_equal(taker_start(&first, broker, &thing, UID_GREEDY), 40);
    assert_int_equal(taker_start(&second, broker, &thing, UID_LATE), 4);
    broker_finish(broker);
}

/* Neither a restart nor a smaller share takes anything away, and neither gives anybody more. */
static void I7_shares_outlive_the_broker(void **state)
{
    const struct thing *thing = &things[0];
    struct taker greedy = {.is_limited = true, .leaves = true}, again = {.is_limited = true, .leaves = true};
    struct taker late = {.is_limited = true, .leaves = true}, last = {.is_limited = true, .leaves = true};
    struct broker_process *broker;
    struct memclient_context *ctx;
    FILE *config;

    test_needs_root();
    broker = broker_with(thing, "");
    assert_int_equal(taker_start(&greedy, broker, thing, UID_GREEDY), 32);
    broker_kill_child(broker);
    again.has = 32;
    assert_int_equal(taker_start(&again, broker, thing, UID_GREEDY), 32);
    assert_int_equal(taker_start(&late, broker, thing, UID_LATE), 16);
    config = fopen(broker->config, "ae");
    assert_non_null(config);
    fputs("[limits]\nuid_share = 25%\n", config);
    assert_int_equal(fclose(config), 0);
    assert_ok(kill(broker->pid, SIGHUP));
    assert_true(WAIT_UNTIL(broker_said(broker, "uid_share has changed")));
    again.has = 32;
    assert_int_equal(taker_start(&again, broker, thing, UID_GREEDY), 32);
    assert_int_equal(taker_start(&last, broker, thing, UID_LAST), 4);
    ctx = broker_connect(broker);
    assert_int_equal(broker_buffers(ctx), 32 + 16 + 4);
    broker_check(broker);
    memclient_context_close(ctx);
    administrator_cleans_up(broker, UID_GREEDY, 32);
    administrator_cleans_up(broker, UID_LATE, 16);
    administrator_cleans_up(broker, UID_LAST, 4);
    broker_finish(broker);
}

static void connect_and_say_nothing(int channel, void *context)
{
    const struct broker_process *broker = context;

    become(UID_GREEDY);
    for (unsigned i = 0; i < 200; i++)
        CHECK(raw_connect(broker) >= 0);
    tell(channel);
    hear(channel);
}

/* They need no session to take what others could have. */
static void I7_connections_leave_others_their_share(void **state)
{
    const struct thing *thing = &things[9];
    struct taker late = {.is_limited = true};
    struct broker_process *broker;
    struct child greedy;
    unsigned taken;

    test_needs_root();
    broker = broker_with(thing, "");
    child_start(&greedy, connect_and_say_nothing, broker);
    child_hear(&greedy);
    taken = taker_start(&late, broker, thing, UID_LATE);
    /* at most half of the 64, and those by which a user would learn that it has too many, are another's */
    assert_in_range(taken, (64 - 32 - 16) / 2, 16);
    administrator_cleans_up(broker, UID_GREEDY, 0);
    taker_end(&late);
    child_tell(&greedy);
    child_finish(&greedy);
    broker_finish(broker);
}

struct waiter {
    struct child child;
    struct broker_process *broker;
    uid_t uid;
    unsigned granules; /* of 64K */
    int wanted;
};

static void wait_for_room(int channel, void *context)
{
    const struct waiter *waiter = context;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buffer;
    struct memclient_context *ctx;
    int r;

    become(waiter->uid);
    ctx = hoard_open(waiter->broker, false, &r);
    CHECK(r == 0);
    hear(channel);
    options.pool = "tight";
    CHECK(memclient_alloc(ctx, 65536, &options, &buffer) == -ENOMEM);
    tell(channel);
    options.wait_ms = 10 * PATIENCE_MS;
    CHECK(memclient_alloc(ctx, waiter->granules * UINT64_C(65536), &options, &buffer) == waiter->wanted);
    memclient_context_close(ctx);
}

/* Who waits for more than its share is refused when there is room, and nobody waits behind it. */
static void I7_who_may_not_have_it_keeps_nobody_waiting(void **state)
{
    struct waiter greedy = {.uid = UID_GREEDY, .granules = 40, .wanted = -EDQUOT};
    struct waiter late = {.uid = UID_LATE, .granules = 20, .wanted = 0};
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *all;
    struct memclient_context *ctx;

    test_needs_root();
    greedy.broker = late.broker = broker_with(&things[0], "");
    /* before there is a descriptor that they would have, too */
    child_start(&greedy.child, wait_for_room, &greedy);
    child_start(&late.child, wait_for_room, &late);
    ctx = broker_connect(greedy.broker);
    options.pool = "tight";
    assert_done(memclient_alloc(ctx, 4 << 20, &options, &all));
    child_tell(&greedy.child);
    child_hear(&greedy.child);
    child_tell(&late.child);
    child_hear(&late.child);
    memclient_context_close(ctx);
    child_finish(&late.child);
    child_finish(&greedy.child);
    broker_finish(greedy.broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I7_names_that_stay_leave_others_their_share),
        at_broker(I7_all_pools_of_a_node_are_one_share),
        at_broker(I7_detached_memory_leaves_others_their_share),
        at_broker(I7_buffers_leave_others_their_share),
        at_broker(I7_tokens_leave_others_their_share),
        at_broker(I7_names_leave_others_their_share),
        at_broker(I7_reservations_leave_others_their_share),
        at_broker(I7_holds_leave_others_their_share),
        at_broker(I7_addresses_leave_others_their_share),
        at_broker(I7_sessions_leave_others_their_share),
        at_broker(a_group_has_a_share_for_each_member),
        at_broker(I7_who_has_no_room_for_records_does_not_wait_for_memory),
        at_broker(a_user_has_limits_of_its_own),
        at_broker(I7_shares_outlive_the_broker),
        at_broker(I7_connections_leave_others_their_share),
        at_broker(I7_who_may_not_have_it_keeps_nobody_waiting),
    };

    return test_run(tests, NULL, NULL);
}
