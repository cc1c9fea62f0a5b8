/* SPDX-License-Identifier: Apache-2.0 */
/* I5, the sums are exact: whatever happens to buffers, the kernel has just the pages that the listings tell of. */
#include "tests/integration/truth.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define SIZE (MIB + 3)
#define MANY 20

static const char pools[] = "[topology]\nsimulate_nodes = 2\n"
                            "[pool lazy]\nnodes = 0\ncapacity = 16M\ncommit = lazy\n"
                            "[pool own]\nnodes = 0\ncapacity = 16M\ncharge = client\n"
                            "[pool stocked]\nnodes = 0\ncapacity = 16M\nstock = 50%\n";

static struct broker_process *broker;
static struct memclient_context *ctx;

static void begin(const char *config)
{
    struct truth truth;

    broker = broker_for_test(config);
    ctx = broker_connect(broker);
    if (!truth_look(ctx, broker->pid, &truth))
        test_skip("this user may not see what the broker has open");
}

static void end(void)
{
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* What is listed is there but for so many bytes, which come when they are touched. */
static void assert_truth(uint64_t listed, uint64_t to_come)
{
    struct truth truth;

    if (!truth_comes(ctx, broker->pid, listed, to_come, &truth))
        fail_msg("%s; %" PRIu64 " bytes are listed (should be: %" PRIu64 "), %" PRIu64 " in stock, %" PRIu64
                 " allocated; %" PRIu64 " should be yet to come",
                 truth.fault, truth.listed, listed, truth.stock, truth.allocated, to_come);
}

static struct memclient_buffer *make(const char *pool, uint64_t size, unsigned pages, unsigned flags)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.pool = pool;
    options.pages = pages;
    options.flags = flags;
    assert_done(memclient_alloc(ctx, size, &options, &buf));
    return buf;
}

static char *map(struct memclient_buffer *buf)
{
    void *p;

    assert_done(memclient_map(buf, NULL, &p));
    return p;
}

static void give_back(struct memclient_buffer *buf, void *mapped)
{
    assert_done(memclient_unmap(ctx, mapped, 0));
    memclient_buffer_unref(buf);
}

static void I5_allocations_and_what_is_given_back(void **state)
{
    struct memclient_buffer *bufs[MANY];
    uint64_t sum = 0;

    begin(NULL);
    assert_truth(0, 0);
    for (size_t i = 0; i < MANY; i++) {
        bufs[i] = make(NULL, 1 + i * 37 * KIB, MEMCLIENT_PAGES_ANY, i & 1 ? MEMCLIENT_ALLOC_NO_HOME : 0);
        sum += memclient_buffer_bytes(bufs[i]);
    }
    assert_truth(sum, 0);
    for (size_t i = 0; i < MANY; i += 3) {
        sum -= memclient_buffer_bytes(bufs[i]);
        bufs[i] = memclient_buffer_unref(bufs[i]);
    }
    assert_truth(sum, 0);
    for (size_t i = 0; i < MANY; i++)
        memclient_buffer_unref(bufs[i]);
    assert_truth(0, 0);
    end();
}

static void I5_discarded_pages_are_listed_and_come_back(void **state)
{
    const size_t page = page_size();
    struct memclient_buffer *buf;
    uint64_t bytes;
    char *p;

    begin(NULL);
    buf = make(NULL, SIZE, MEMCLIENT_PAGES_BASE, 0);
    bytes = memclient_buffer_bytes(buf);
    p = map(buf);
    assert_done(memclient_discard(buf, 2 * page, 5 * page));
    assert_truth(bytes, 5 * page);
    p[3 * page] = 1;
    assert_truth(bytes, 4 * page);
    assert_done(memclient_discard(buf, 0, 0));
    assert_truth(bytes, bytes);
    memset(p, 1, bytes);
    assert_truth(bytes, 0);
    give_back(buf, p);
    assert_truth(0, 0);
    end();
}

static void I5_lazy_pages_come_when_they_are_touched(void **state)
{
    const size_t page = page_size();
    struct memclient_buffer *lazy, *own;
    uint64_t bytes, both;
    char *p;

    begin(pools);
    lazy = make("lazy", SIZE, MEMCLIENT_PAGES_ANY, 0);
    bytes = memclient_buffer_bytes(lazy);
    assert_truth(bytes, bytes);
    p = map(lazy);
    for (size_t i = 0; i < 7; i++)
        p[i * 11 * page] = 1;
    assert_truth(bytes, bytes - 7 * page);
    /* the library makes these before anybody sees the buffer */
    own = make("own", SIZE, MEMCLIENT_PAGES_ANY, 0);
    both = bytes + memclient_buffer_bytes(own);
    assert_truth(both, bytes - 7 * page);
    give_back(lazy, p);
    assert_truth(both - bytes, 0);
    memclient_buffer_unref(own);
    assert_truth(0, 0);
    end();
}

static void I5_published_and_moved(void **state)
{
    struct memclient_buffer *published, *moved;
    uint64_t bytes;
    char *p;

    begin(pools);
    published = make(NULL, SIZE, MEMCLIENT_PAGES_BASE, MEMCLIENT_ALLOC_PUBLISHABLE);
    moved = make("node0-4k", SIZE, MEMCLIENT_PAGES_BASE, 0);
    bytes = memclient_buffer_bytes(published) + memclient_buffer_bytes(moved);
    p = map(moved);
    p[0] = 1;
    assert_done(memclient_publish(published, 0));
    assert_done(memclient_move(moved, 1));
    assert_truth(bytes, 0);
    broker_kill_child(broker);
    assert_truth(bytes, 0);
    memclient_buffer_unref(published);
    give_back(moved, p);
    assert_truth(0, 0);
    end();
}

static bool gets_stock(void)
{
    struct memclient_buffer *buf = make("stocked", 256 * KIB, MEMCLIENT_PAGES_ANY, 0);

    memclient_buffer_unref(buf);
    return broker_stock(ctx) > 0;
}

static void I5_stock_is_all_that_is_in_no_buffer(void **state)
{
    struct memclient_buffer *buf;

    begin(pools);
    assert_true(WAIT_UNTIL(gets_stock()));
    assert_truth(0, 0);
    buf = make("stocked", 256 * KIB, MEMCLIENT_PAGES_ANY, 0);
    assert_truth(256 * KIB, 0);
    broker_kill_child(broker);
    assert_truth(256 * KIB, 0);
    memclient_buffer_unref(buf);
    assert_truth(0, 0);
    end();
}

static void I5_detached_buffers_are_listed_until_the_last_lets_go(void **state)
{
    struct memclient_buffer *buf;
    uint64_t bytes;
    int fd;

    begin(NULL);
    buf = make(NULL, SIZE, MEMCLIENT_PAGES_BASE, 0);
    bytes = memclient_buffer_bytes(buf);
    assert_done(memclient_export_fd(buf, 0, &fd));
    memclient_buffer_unref(buf);
    assert_true(WAIT_UNTIL(broker_status(ctx).buffers_detached == 1));
    assert_truth(bytes, 0);
    broker_kill_child(broker);
    assert_truth(bytes, 0);
    close(fd);
    assert_truth(0, 0);
    end();
}

/* ---- deaths ------------------------------------------------------------------------------------------------------ */

/* Has some buffers, one of them by a name, and dies. */
static void be_a_victim(int channel, void *socket)
{
    struct memclient_context *own = broker_connect_in_child(socket);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options where = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf;
    void *p;

    /* what the parent has where is there in the child, too */
    where.flags = MEMCLIENT_MAP_NOT_HOME;
    for (size_t i = 0; i < MANY; i++) {
        options.name = i ? NULL : "left";
        CHECK_DONE(memclient_alloc(own, SIZE, &options, &buf));
        CHECK_DONE(memclient_map(buf, &where, &p));
        *(char *)p = 1;
    }
    tell(channel);
    pause();
}

static void I5_clients_broker_and_keeper_are_killed(void **state)
{
    struct memclient_buffer *kept;
    struct child victim;
    uint64_t bytes;

    begin(NULL);
    kept = make(NULL, SIZE, MEMCLIENT_PAGES_BASE, 0);
    bytes = memclient_buffer_bytes(kept);
    for (unsigned round = 0; round < 3; round++) {
        child_start(&victim, be_a_victim, broker->socket);
        child_hear(&victim);
        assert_truth(bytes * (1 + MANY), 0);
        if (round == 1)
            broker_kill_child(broker);
        if (round == 2)
            broker_kill_keeper(broker);
        assert_truth(bytes * (1 + MANY), 0);
        child_kill(&victim);
        assert_truth(bytes * 2, 0); /* with that of the name */
        assert_done(memclient_unbind_name(ctx, "left"));
        assert_truth(bytes, 0);
    }
    memclient_buffer_unref(kept);
    assert_truth(0, 0);
    end();
}

/* ---- huge pages -------------------------------------------------------------------------------------------------- */

static void I5_huge_pages(void **state)
{
    size_t huge = huge_page_size();
    struct memclient_buffer *buf, *other;
    int fd;

    settings_huge_pages(huge, 4);
    begin(NULL);
    buf = make(NULL, huge + 1, MEMCLIENT_PAGES_HUGETLB, MEMCLIENT_ALLOC_PUBLISHABLE);
    other = make(NULL, SIZE, MEMCLIENT_PAGES_BASE, 0);
    assert_truth(2 * huge + memclient_buffer_bytes(other), 0);
    assert_done(memclient_publish(buf, 0));
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    memclient_buffer_unref(buf);
    memclient_buffer_unref(other);
    assert_truth(2 * huge, 0);
    broker_kill_child(broker);
    assert_truth(2 * huge, 0);
    close(fd);
    assert_truth(0, 0);
    end();
}

static void I5_transparent_huge_pages(void **state)
{
    size_t huge = thp_size();
    struct memclient_buffer *buf;

    settings_shmem_thp();
    begin(NULL);
    buf = make(NULL, 2 * huge + 1, MEMCLIENT_PAGES_THP, 0);
    assert_truth(memclient_buffer_bytes(buf), 0);
    memclient_buffer_unref(buf);
    assert_truth(0, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I5_allocations_and_what_is_given_back),
        at_broker(I5_discarded_pages_are_listed_and_come_back),
        at_broker(I5_lazy_pages_come_when_they_are_touched),
        at_broker(I5_published_and_moved),
        at_broker(I5_stock_is_all_that_is_in_no_buffer),
        at_broker(I5_detached_buffers_are_listed_until_the_last_lets_go),
        at_broker(I5_clients_broker_and_keeper_are_killed),
        at_broker_with_settings(I5_huge_pages),
        at_broker_with_settings(I5_transparent_huge_pages),
    };

    return test_run(tests, NULL, NULL);
}
