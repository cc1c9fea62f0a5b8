/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: a client whose control group may have 64 MiB, and that wants more by way of the broker.
 *
 * Where the broker allocates the pages its own group pays for them, and what bounds the client is its user's share. In
 * a pool with charge = client its own group pays, and the kernel ends it there. Either way the broker goes on, and so
 * does a client of another user. Needs limits of memory by control groups of version 2: tests/vm/charging.sh.
 */
#include "tests/integration/clients.h"
#include "tests/support/cgroup.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define LIMIT     (64 * MIB)
#define CAPACITY  (192 * MIB)
#define PIECE     (4 * MIB)
#define UID_OTHER 61003
/* What a process and the library need for themselves. */
#define SLACK (24 * MIB)

struct greedy {
    const char *socket;
    const char *pool;
};

struct haul {
    uint64_t bytes;
    int refused; /* -errno of what came next */
};

/* Takes and writes, until it is refused or killed. */
static void take_all(int channel, void *context)
{
    const struct greedy *greedy = context;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct haul haul = {0};
    void *at;

    CHECK(cgroup_put("client", 0));
    become(UID_STRANGER);
    ctx = broker_connect_in_child(greedy->socket);
    options.pool = greedy->pool;
    while (!(haul.refused = memclient_alloc(ctx, PIECE, &options, &buf))) {
        CHECK_DONE(memclient_map(buf, NULL, &at));
        memset(at, 1, PIECE);
        haul.bytes += PIECE;
    }
    CHECK(pass_bytes(channel, &haul, sizeof(haul)));
    hear(channel);
}

/* Another user's program, which is in no such group. */
static void live_well(int channel, void *context)
{
    const struct greedy *greedy = context;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf, *kept;
    struct memclient_context *ctx;
    void *at;

    become(UID_OTHER);
    ctx = broker_connect_in_child(greedy->socket);
    options.pool = greedy->pool;
    CHECK_DONE(memclient_alloc(ctx, PIECE, &options, &kept));
    CHECK_DONE(memclient_map(kept, NULL, &at));
    pattern_write(at, PIECE, 1);
    tell(channel);
    hear(channel);
    CHECK(pattern_holds(at, PIECE, 1));
    CHECK_DONE(memclient_alloc(ctx, PIECE, &options, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &at));
    pattern_write(at, PIECE, 2);
    tell(channel);
    memclient_context_close(ctx);
}

static struct broker_process *begin(const char *pool, unsigned share)
{
    struct broker_process *broker;
    char config[256];

    test_needs_root();
    cgroup_begin_memory();
    cgroup_make("broker");
    cgroup_make("client");
    assert_true(cgroup_write("client", "memory.max", "64M"));
    snprintf(config, sizeof(config),
             "[pool tight]\nnodes = 0\ncapacity = 192M\nstock = 0\n%s\n[limits]\nuid_share = %u%%\n", pool, share);
    /* what is started now is in the broker's group */
    assert_true(cgroup_put("broker", 0));
    broker = broker_for_test_as(UID_BROKER, config);
    assert_true(cgroup_put(NULL, 0));
    return broker;
}

static uint64_t shared_by(const char *group)
{
    return cgroup_stat(group, "memory.stat", "shmem");
}

/* ---- charge = broker --------------------------------------------------------------------------------------------- */

static void past_its_limit_with_share(unsigned share)
{
    struct broker_process *broker = begin("", share);
    struct greedy greedy = {broker->socket, "tight"};
    struct child child;
    struct haul haul;

    child_start(&child, take_all, &greedy);
    assert_true(take_bytes(child.channel, &haul, sizeof(haul)));
    print_message("share %u %%: %zu MiB of %zu, of which its own group pays for %zu and the broker's for %zu\n", share,
                  (size_t)(haul.bytes / MIB), CAPACITY / MIB, (size_t)(shared_by("client") / MIB),
                  (size_t)(shared_by("broker") / MIB));
    assert_int_equal(haul.bytes, CAPACITY * share / 100);
    assert_int_equal(haul.refused, share < 100 ? -EDQUOT : -ENOMEM);
    assert_true(haul.bytes > LIMIT);
    assert_true(shared_by("broker") + MIB >= haul.bytes);
    assert_true(cgroup_number("client", "memory.current") < SLACK);
    assert_int_equal(cgroup_stat("client", "memory.events", "oom_kill"), 0);
    child_tell(&child);
    child_finish(&child);
    broker_finish(broker);
    assert_int_equal(cgroup_remove(NULL), 0);
}

static void I7_what_the_broker_pays_for_is_bounded_by_the_share(void **state)
{
    past_its_limit_with_share(50);
    past_its_limit_with_share(100);
}

/* ---- charge = client --------------------------------------------------------------------------------------------- */

static void stopped_at_its_limit(const char *pool, const char *named)
{
    struct broker_process *broker = begin(pool, 50);
    struct greedy greedy = {broker->socket, named};
    struct memclient_context *ctx;
    struct child child, other;
    pid_t serving = broker_child(broker);
    uint64_t its_own = shared_by("broker");
    struct haul haul;
    int status;

    child_start(&other, live_well, &greedy);
    child_hear(&other);
    child_start(&child, take_all, &greedy);
    if (take_bytes(child.channel, &haul, sizeof(haul)))
        fail_msg("its group may have %zu MiB, and it got %zu", LIMIT / MIB, (size_t)(haul.bytes / MIB));
    status = child_wait(&child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(cgroup_stat("client", "memory.events", "oom_kill"), 1);
    assert_true(shared_by("broker") < its_own + 2 * MIB);
    child_tell(&other);
    child_hear(&other);
    child_finish(&other);
    /* what it had is free again, and its group has nothing left to pay for */
    ctx = broker_connect(broker);
    assert_true(WAIT_UNTIL(broker_pool_used(ctx, named) == 0));
    assert_true(WAIT_UNTIL(shared_by("client") < 2 * MIB));
    assert_int_equal(broker_child(broker), serving);
    assert_int_equal(broker_status(ctx).restarts, 0);
    memclient_context_close(ctx);
    broker_finish(broker);
    assert_int_equal(cgroup_remove(NULL), 0);
}

static void I7_what_the_client_pays_for_is_bounded_by_its_group(void **state)
{
    stopped_at_its_limit("charge = client", "tight");
}

/* The pools that the machine has by itself, which a client gets that names none. */
static void I7_so_it_is_in_all_pools(void **state)
{
    stopped_at_its_limit("[pools]\ncharge = client", "tight");
    stopped_at_its_limit("[pools]\ncharge = client", "node0-4k");
}

/* ---- placement --------------------------------------------------------------------------------------------------- */

static void assert_all_on(const void *at, uint32_t node)
{
    size_t counts[NODES_MAX] = {0};

    pages_by_node(at, PIECE, page_size(), counts);
    CHECK(counts[node] == PIECE / page_size());
}

static void be_moved(int channel, void *context)
{
    const struct greedy *greedy = context;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    void *at;

    CHECK(cgroup_put("client", 0));
    become(UID_STRANGER);
    ctx = broker_connect_in_child(greedy->socket);
    options.pool = greedy->pool;
    CHECK_DONE(memclient_alloc(ctx, PIECE, &options, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &at));
    pattern_write(at, PIECE, 3);
    assert_all_on(at, 1);
    tell(channel);
    hear(channel);
    CHECK_DONE(memclient_move(buf, 0));
    CHECK(pattern_holds(at, PIECE, 3));
    assert_all_on(at, 0);
    tell(channel);
    hear(channel);
    memclient_context_close(ctx);
}

/* The policy of the file is the broker's, whoever allocates its pages; and the kernel moves a page with its charge. */
static void what_the_client_pays_for_is_where_it_should_be(void **state)
{
    struct broker_process *broker;
    struct greedy greedy = {.pool = "far"};
    struct child child;
    uint64_t its_own;

    if ((nodes_with_memory() & 3) != 3)
        test_skip("this takes the nodes 0 and 1");
    broker = begin("[pool far]\nnodes = 1\ncharge = client", 50);
    greedy.socket = broker->socket;
    its_own = shared_by("broker");
    child_start(&child, be_moved, &greedy);
    for (int i = 0; i < 2; i++) {
        child_hear(&child);
        assert_true(WAIT_UNTIL(shared_by("client") + MIB >= PIECE));
        assert_true(shared_by("broker") < its_own + 2 * MIB);
        child_tell(&child);
    }
    child_finish(&child);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker_with_groups(I7_what_the_broker_pays_for_is_bounded_by_the_share),
        at_broker_with_groups(I7_what_the_client_pays_for_is_bounded_by_its_group),
        at_broker_with_groups(I7_so_it_is_in_all_pools),
        at_broker_with_groups(what_the_client_pays_for_is_where_it_should_be),
    };

    return test_run(tests, NULL, NULL);
}
