/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that go to another node: the charge goes along, contents and addresses stay, for everybody who has it mapped.
 * With pages where there are several NUMA nodes (make check-vm); simulated nodes stand in for what is only about
 * budgets.
 */
#include "tests/integration/clients.h"

#include <stdio.h>
#include <sys/mman.h>

#define SIZE (8 * MIB)
#define SEED 40

static const char two_nodes[] = "[topology]\nsimulate_nodes = 2\n[pools]\ncapacity = 64M\n";

static void several_nodes(uint32_t nodes[2])
{
    unsigned long mask = nodes_with_memory();
    unsigned n = 0;

    for (uint32_t node = 0; node < NODES_MAX && n < 2; node++)
        if (mask & 1UL << node)
            nodes[n++] = node;
    if (n < 2)
        test_skip("there is one NUMA node; make check-vm has machines with several");
}

static struct memclient_buffer *make_on(struct memclient_context *ctx, uint32_t node, size_t size, unsigned pages)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.nodes = &node;
    options.n_nodes = 1;
    options.pages = pages;
    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(ctx, size, &options, &buf));
    return buf;
}

static void *map(struct memclient_buffer *buf)
{
    void *p;

    assert_done(memclient_map(buf, NULL, &p));
    return p;
}

/* What the broker says. */
static void assert_is_on(struct memclient_buffer *buf, uint32_t node)
{
    struct memclient_buffer_info info = broker_info(buf);

    assert_int_equal(info.n_nodes, 1);
    assert_int_equal(info.nodes[0], node);
    assert_int_equal(info.node_bytes[0], memclient_buffer_bytes(buf));
    assert_int_equal(info.placement, MEMCLIENT_PLACEMENT_BIND);
    assert_true(info.flags & MEMCLIENT_BUFFER_VERIFIED);
}

/* What the kernel says. */
static void assert_pages_are_on(void *p, size_t size, uint32_t node)
{
    size_t counts[NODES_MAX] = {0};

    for (volatile char *at = p; at < (char *)p + size; at += page_size())
        (void)*at;
    pages_by_node(p, size, page_size(), counts);
    assert_int_equal(counts[node], size / page_size());
}

/* ---- somebody else ----------------------------------------------------------------------------------------------- */

struct other {
    const char *socket;
    struct memclient_token token;
};

/* Has it mapped and touched, and says so; then lets go of the pages; then sees what is there still. */
static void look_at_it(int channel, void *data)
{
    struct other *other = data;
    struct memclient_context *ctx = broker_connect_in_child(other->socket);
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf;
    void *p;

    options.flags = MEMCLIENT_MAP_NOT_HOME;
    CHECK_DONE(memclient_open_token(ctx, &other->token, 0, &buf));
    CHECK_DONE(memclient_map(buf, &options, &p));
    CHECK_REFUSED(memclient_move(buf, 0), EACCES);
    CHECK(pattern_holds(p, SIZE, SEED));
    tell(channel);
    hear(channel);
    CHECK(!madvise(p, SIZE, MADV_DONTNEED));
    tell(channel);
    hear(channel);
    CHECK(pattern_holds(p, SIZE, SEED));
    pattern_write(p, SIZE, SEED + 1);
    memclient_context_close(ctx);
}

static struct other shared(struct broker_process *broker, struct memclient_buffer *buf)
{
    struct other other = {.socket = broker->socket};
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;

    options.rights = MEMCLIENT_READ | MEMCLIENT_WRITE;
    assert_done(memclient_share(buf, &options, &other.token));
    return other;
}

/* ---- simulated --------------------------------------------------------------------------------------------------- */

static void the_charge_moves_and_nothing_else(void **state)
{
    struct broker_process *broker = broker_for_test(two_nodes);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = make_on(ctx, 0, SIZE, MEMCLIENT_PAGES_ANY);
    struct other other = shared(broker, buf);
    void *p = map(buf);
    struct child child;

    pattern_write(p, SIZE, SEED);
    child_start(&child, look_at_it, &other);
    child_hear(&child);
    assert_int_equal(broker_pool_used(ctx, "node0-4k"), SIZE);
    assert_done(memclient_move(buf, 1));
    assert_is_on(buf, 1);
    assert_int_equal(broker_pool_used(ctx, "node0-4k"), 0);
    assert_int_equal(broker_pool_used(ctx, "node1-4k"), SIZE);
    broker_check(broker);
    assert_true(pattern_holds(p, SIZE, SEED));
    assert_int_equal(memclient_buffer_home(buf), (uintptr_t)p);
    child_tell(&child);
    child_hear(&child);
    child_tell(&child);
    child_finish(&child);
    assert_true(pattern_holds(p, SIZE, SEED + 1));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void pages_that_cannot_be_moved_stay(void **state)
{
    struct broker_process *broker = broker_for_test("[topology]\nsimulate_nodes = 2\n[pools]\ncapacity = 64M\n"
                                                    "[pool slow]\nnodes = 0\ncommit = lazy\n");
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf = make_on(ctx, 0, SIZE, MEMCLIENT_PAGES_ANY), *other, *lazy;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    assert_refused(memclient_move(buf, 2), ENXIO);
    other = make_on(ctx, 1, 60 * MIB, MEMCLIENT_PAGES_ANY);
    assert_refused(memclient_move(buf, 1), ENOMEM);
    assert_string_equal(memclient_status_name(memclient_error_status()), "POOL_FULL");
    assert_int_equal(broker_pool_used(ctx, "node1-4k"), 60 * MIB);
    options.pool = "slow";
    assert_done(memclient_alloc(ctx, SIZE, &options, &lazy));
    assert_refused(memclient_move(lazy, 1), EOPNOTSUPP);
    assert_is_on(buf, 0);
    memclient_buffer_unref(other);
    memclient_buffer_unref(lazy);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void huge_pages_of_the_system_stay(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *buf;

    settings_huge_pages_on_node(huge_page_size(), 4, nodes_with_memory() > 1 ? 0 : -1);
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    buf = make_on(ctx, 0, huge_page_size(), MEMCLIENT_PAGES_HUGETLB);
    assert_refused(memclient_move(buf, 0), EOPNOTSUPP);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- with pages -------------------------------------------------------------------------------------------------- */

/* A second mapping, somewhere. */
static void *map_again(struct memclient_buffer *buf)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *p;

    options.flags = MEMCLIENT_MAP_NOT_HOME;
    assert_done(memclient_map(buf, &options, &p));
    return p;
}

/* As it is installed, by a broker that may do nothing special; mapped and touched here, twice. */
static void the_pages_are_on_the_other_node(void **state)
{
    const size_t size = SIZE + page_size();
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    uint32_t nodes[2];
    void *p, *again;

    several_nodes(nodes);
    broker = broker_for_test_as(UID_BROKER, NULL);
    ctx = broker_connect(broker);
    buf = make_on(ctx, nodes[0], size, MEMCLIENT_PAGES_ANY);
    p = map(buf);
    again = map_again(buf);
    pattern_write(p, size, SEED);
    assert_pages_are_on(p, size, nodes[0]);
    for (unsigned i = 1; i < 4; i++) {
        assert_true(pattern_holds(again, size, SEED));
        assert_done(memclient_move(buf, nodes[i & 1]));
        assert_pages_are_on(p, size, nodes[i & 1]);
        assert_is_on(buf, nodes[i & 1]);
        assert_true(pattern_holds(p, size, SEED));
        broker_check(broker);
        if (i == 2)
            assert_done(memclient_publish(buf, 0));
    }
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What was discarded comes back there. */
static void pages_that_are_yet_to_come_come_there(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    uint32_t nodes[2];
    void *p;

    several_nodes(nodes);
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    buf = make_on(ctx, nodes[0], SIZE, MEMCLIENT_PAGES_ANY);
    p = map(buf);
    assert_done(memclient_move(buf, nodes[1]));
    assert_done(memclient_discard(buf, 0, 0));
    assert_pages_are_on(p, SIZE, nodes[1]);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void huge_ones_stay_huge(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    uint64_t huge;
    uint32_t nodes[2];
    void *p;

    several_nodes(nodes);
    settings_shmem_thp();
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    buf = make_on(ctx, nodes[0], 4 * thp_size(), MEMCLIENT_PAGES_THP);
    p = map(buf);
    pattern_write(p, SIZE, SEED);
    huge = broker_info(buf).huge_bytes;
    assert_true(huge > 0);
    assert_done(memclient_move(buf, nodes[1]));
    assert_is_on(buf, nodes[1]);
    assert_int_equal(broker_info(buf).huge_bytes, huge);
    assert_pages_are_on(p, 4 * thp_size(), nodes[1]);
    assert_true(pattern_holds(p, SIZE, SEED));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void what_somebody_else_has_touched_stays_until_he_lets_go(void **state)
{
    struct broker_process *broker;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct other other;
    struct child child;
    uint32_t nodes[2];
    char who[40];
    void *p;

    several_nodes(nodes);
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    buf = make_on(ctx, nodes[0], SIZE, MEMCLIENT_PAGES_ANY);
    other = shared(broker, buf);
    p = map(buf);
    pattern_write(p, SIZE, SEED);
    child_start(&child, look_at_it, &other);
    child_hear(&child);
    assert_refused(memclient_move(buf, nodes[1]), EBUSY);
    (void)snprintf(who, sizeof(who), "(pid %d, ", (int)child.pid);
    assert_sentence(who);
    assert_is_on(buf, nodes[0]);
    broker_check(broker);
    child_tell(&child);
    child_hear(&child);
    assert_done(memclient_move(buf, nodes[1]));
    assert_is_on(buf, nodes[1]);
    assert_pages_are_on(p, SIZE, nodes[1]);
    child_tell(&child);
    child_finish(&child);
    assert_true(pattern_holds(p, SIZE, SEED + 1));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

#define TIMES 4

struct traveller {
    const char *socket;
    uint32_t nodes[2];
};

static void travel(int channel, void *data)
{
    struct traveller *traveller = data;
    struct memclient_context *ctx = broker_connect_in_child(traveller->socket);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;
    void *p;

    options.nodes = traveller->nodes;
    options.n_nodes = 1;
    CHECK_DONE(memclient_alloc(ctx, 4 * SIZE, &options, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    pattern_write(p, 4 * SIZE, SEED);
    for (unsigned i = 1; i <= TIMES; i++) {
        struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

        tell(channel);
        CHECK_DONE(memclient_move(buf, traveller->nodes[i & 1]));
        CHECK_DONE(memclient_buffer_query(buf, &info));
        CHECK(info.nodes[0] == traveller->nodes[i & 1] && info.flags & MEMCLIENT_BUFFER_VERIFIED);
        CHECK(pattern_holds(p, 4 * SIZE, SEED));
        hear(channel);
    }
    memclient_context_close(ctx);
}

/* Somewhere in the middle of it, or not. */
static void a_broker_that_dies_meanwhile_is_not_noticed(void **state)
{
    struct traveller traveller;
    struct broker_process *broker;
    struct child child;

    several_nodes(traveller.nodes);
    broker = broker_for_test(NULL);
    traveller.socket = broker->socket;
    child_start(&child, travel, &traveller);
    for (unsigned i = 0; i < TIMES; i++) {
        child_hear(&child);
        broker_kill_child(broker);
        broker_check(broker);
        child_tell(&child);
    }
    child_finish(&child);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(the_charge_moves_and_nothing_else),
        at_broker(pages_that_cannot_be_moved_stay),
        at_broker_with_settings(huge_pages_of_the_system_stay),
        at_broker(the_pages_are_on_the_other_node),
        at_broker(pages_that_are_yet_to_come_come_there),
        at_broker_with_settings(huge_ones_stay_huge),
        at_broker(what_somebody_else_has_touched_stays_until_he_lets_go),
        at_broker(a_broker_that_dies_meanwhile_is_not_noticed),
    };

    return test_run(tests, NULL, NULL);
}
