/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that go to another node: whole, or not at all. The nodes are played; test-nodes.c has real ones. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "mem/commit.h"
#include "mem/handle.h"
#include "mem/migrate.h"
#include "proto/status.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/unit/mem/nodes.h"

#define SIZE  (160 * MIB) /* three slices */
#define PAGES (SIZE / nodes_page())

static struct topology machine;
static struct commit buffer;
static struct migration migration;
static atomic_bool cancel;

static int setup(void **state)
{
    if (topology_load(&machine, 2) < 0)
        return -1;
    nodes_begin(&machine);
    atomic_store(&cancel, false);
    return 0;
}

static struct plan plan_on(uint32_t node, uint64_t bytes)
{
    const struct plan_brief brief = {
        .bytes = bytes, .n_nodes = 1, .node = node, .placement = PLACEMENT_BIND, .strict = true};
    struct plan plan;

    plan_unpack(&plan, &brief, NULL);
    return plan;
}

static void make(const struct plan *plan)
{
    commit_init(&buffer);
    buffer.topology = &machine;
    buffer.pages = PAGES_BASE;
    buffer.page_size = page_size();
    buffer.publishable = true;
    buffer.plan = *plan;
    if (commit_run(&buffer))
        fail_msg("commit: %s", buffer.problem.sentence);
}

static void make_on(uint32_t node, uint64_t bytes)
{
    struct plan plan = plan_on(node, bytes);

    make(&plan);
}

static void write_all(uint64_t bytes)
{
    char *map = map_shared(buffer.fd, bytes, PROT_READ | PROT_WRITE);

    assert_mapped(map);
    for (uint64_t at = 0; at < bytes; at += page_size())
        map[at] = (char)(at / page_size());
    assert_ok(munmap(map, bytes));
}

static void assert_contents(uint64_t bytes)
{
    char *map = map_shared(buffer.fd, bytes, PROT_READ);

    assert_mapped(map);
    for (uint64_t at = 0; at < bytes; at += page_size())
        assert_int_equal(map[at], (char)(at / page_size()));
    assert_ok(munmap(map, bytes));
}

static int move_to(uint32_t node)
{
    memset(&migration, 0, sizeof(migration));
    commit_init(&migration.to);
    migration.to.topology = &machine;
    migration.to.pages = buffer.pages;
    migration.to.page_size = buffer.page_size;
    migration.to.plan = plan_on(node, buffer.plan.brief.bytes);
    migration.from = buffer.plan;
    migration.cancel = &cancel;
    return migrate_run(&migration, buffer.fd);
}

static void must_move_to(uint32_t node)
{
    if (move_to(node))
        fail_msg("move: %s", migration.to.problem.sentence);
}

static void all_pages_go(void **state)
{
    unsigned fds;
    bool sole;

    make_on(0, SIZE);
    write_all(SIZE);
    fds = fd_count();
    must_move_to(1);
    assert_int_equal(nodes_count(SIZE, 1), PAGES);
    assert_true(migration.to.verified);
    assert_contents(SIZE);
    assert_int_equal(memfd_allocated(buffer.fd), SIZE);
    /* T is as alone as before */
    assert_int_equal(fd_count(), fds);
    assert_int_equal(handle_sole(buffer.fd, &sole, NULL), 0);
    assert_true(sole);
    /* what is there already is not moved */
    nodes.moves = 0;
    must_move_to(1);
    assert_int_equal(nodes.moves, 0);
    commit_deinit(&buffer);
}

static void from_several_nodes_to_one(void **state)
{
    struct plan plan = {.brief = {.bytes = SIZE, .n_nodes = 2, .placement = PLACEMENT_INTERLEAVE, .part_size = MIB},
                        .nodes = {.node = {0, 1}, .bytes = {SIZE / 2, SIZE / 2}}};

    make(&plan);
    assert_int_equal(nodes_count(SIZE, 1), PAGES / 2);
    must_move_to(1);
    assert_int_equal(nodes_count(SIZE, 1), PAGES);
    commit_deinit(&buffer);
}

static void one_that_is_in_use_keeps_all(void **state)
{
    make_on(0, SIZE);
    write_all(SIZE);
    nodes.stuck = 100 * MIB / page_size();
    assert_int_equal(move_to(1), STATUS_BUSY);
    assert_non_null(strstr(migration.to.problem.sentence, "mapped"));
    assert_false(migration.displaced);
    assert_int_equal(nodes_count(SIZE, 0), PAGES);
    assert_contents(SIZE);
    nodes.stuck = SIZE_MAX;
    must_move_to(1);
    commit_deinit(&buffer);
}

static void run_out_of_memory(unsigned moves)
{
    if (moves == 1)
        nodes.available[1] = 90 * MIB;
}

static void want_of_memory_midway_brings_all_back(void **state)
{
    make_on(0, SIZE);
    nodes.moving = run_out_of_memory;
    assert_int_equal(move_to(1), STATUS_NO_MEMORY);
    assert_non_null(strstr(migration.to.problem.sentence, "node 1"));
    assert_true(nodes.moves > 2);
    assert_false(migration.displaced);
    assert_int_equal(nodes_count(SIZE, 0), PAGES);
    /* at once, if it has none from the beginning */
    nodes.moves = 0;
    assert_int_equal(move_to(1), STATUS_NO_MEMORY);
    assert_int_equal(nodes.moves, 0);
    commit_deinit(&buffer);
}

/* The kernel lacked memory, and so the pages stay. */
static void grow_stuck(unsigned moves)
{
    if (moves == 0)
        nodes.available[1] = 80 * MIB;
    else
        nodes.stuck = 7;
}

static void one_that_cannot_come_back_is_told(void **state)
{
    make_on(0, SIZE);
    nodes.moving = grow_stuck;
    assert_int_equal(move_to(1), STATUS_NO_MEMORY);
    assert_true(migration.displaced);
    assert_int_equal(nodes_count(SIZE, 0), PAGES - 1);
    commit_deinit(&buffer);
    /* who was not bound has nothing that could be broken */
    nodes.moving = NULL;
    nodes.stuck = SIZE_MAX;
    nodes.available[1] = UINT64_C(1) << 40;
    make_on(0, SIZE);
    buffer.plan.brief.strict = false;
    nodes.moves = 0;
    nodes.moving = grow_stuck;
    assert_int_equal(move_to(1), STATUS_NO_MEMORY);
    assert_false(migration.displaced);
    commit_deinit(&buffer);
}

static void cancel_it(unsigned moves)
{
    if (moves == 1)
        atomic_store(&cancel, true);
}

static void a_cancelled_move_goes_back(void **state)
{
    make_on(0, SIZE);
    nodes.moving = cancel_it;
    assert_int_equal(move_to(1), STATUS_TIMED_OUT);
    assert_false(migration.displaced);
    assert_int_equal(nodes_count(SIZE, 0), PAGES);
    commit_deinit(&buffer);
}

static int published;

static void publish_it(unsigned moves)
{
    if (moves == 1)
        published = handle_publish(buffer.fd, false, NULL);
}

static void a_move_forbids_no_publishing(void **state)
{
    make_on(0, SIZE);
    published = -1;
    nodes.moving = publish_it;
    must_move_to(1);
    assert_int_equal(published, 0);
    /* and what is published is moved */
    nodes.moving = NULL;
    must_move_to(0);
    assert_int_equal(nodes_count(SIZE, 0), PAGES);
    commit_deinit(&buffer);
}

/* Every call of every kind fails once: all pages are on one node or all on the other, and nothing stays open. */
static void faults_leave_nothing_behind(void **state)
{
    static const int errors[] = {ENOMEM, EMFILE, EPERM, EINVAL};
    const size_t size = 66 * MIB;
    unsigned fds, refused = 0, displaced = 0;

    make_on(0, size);
    fds = fd_count();
    for (enum fault kind = 0; kind < FAULT_KINDS; kind++)
        for (unsigned n = 1; n < 1000; n++) {
            nodes_set(kind, n, errors[n % 4]);
            (void)move_to(1);
            if (!fault_hit && !migration.to.status)
                n = 1000;
            nodes_set(FAULT_KINDS, 0, 0);
            assert_int_equal(fd_count(), fds);
            if (migration.to.status) {
                assert_true(migration.to.status > 0);
                assert_true(strlen(migration.to.problem.sentence) > 10);
                refused++;
                displaced += migration.displaced;
                if (!migration.displaced)
                    assert_int_equal(nodes_count(size, 0), size / page_size());
            } else {
                assert_int_equal(nodes_count(size, 1), size / page_size());
            }
            must_move_to(0);
        }
    assert_true(refused >= 3);
    assert_int_equal(displaced, 0);
    commit_deinit(&buffer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, fault_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_pages_go),
        TEST(from_several_nodes_to_one),
        TEST(one_that_is_in_use_keeps_all),
        TEST(want_of_memory_midway_brings_all_back),
        TEST(one_that_cannot_come_back_is_told),
        TEST(a_cancelled_move_goes_back),
        TEST(a_move_forbids_no_publishing),
        TEST(faults_leave_nothing_behind),
    };

    return test_run(tests, NULL, NULL);
}
