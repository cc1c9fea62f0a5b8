/* SPDX-License-Identifier: Apache-2.0 */
/* I5 while buffers go from node to node: what is charged, where, before, during and after, and who may have it done. */
#include "tests/unit/broker/host.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "mem/buffer.h"
#include "mem/pool.h"
#include "mem/rights.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/mem/nodes.h"

#define SIZE (8 * MIB)

static int setup_simulated(void **state)
{
    host_reset(2);
    host_start();
    return 0;
}

/* Two nodes that the broker takes for real ones. The host may have replaced a call as well. */
static void play_nodes(void)
{
    int (*pidfd_open)(pid_t pid, unsigned flags) = sys->pidfd_open;

    nodes_begin(host.topology);
    faulty.pidfd_open = pidfd_open;
}

static int setup_played(void **state)
{
    int r = setup_simulated(state);

    play_nodes();
    return r;
}

static int teardown(void **state)
{
    int r = host_teardown(state);

    fault_clear(state);
    return r;
}

static uint64_t node_used(uint32_t node)
{
    return tally_used(&pools_node_budget(host.pools, node)->bytes);
}

static uint64_t pool_used(const char *name)
{
    return tally_used(&pools_by_name(host.pools, name)->bytes);
}

/* Where it lies and what it costs; the other node has nothing. */
static void assert_on(uint64_t session, uint64_t buffer, uint32_t node, uint64_t bytes)
{
    struct buffer_info info;

    assert_int_equal(host_info(session, buffer, &info), 0);
    assert_int_equal(info.n_nodes, 1);
    assert_int_equal(info.nodes[0], node);
    assert_int_equal(info.node_bytes[0], bytes);
    assert_int_equal(info.placement, PLACEMENT_BIND);
    assert_true(info.flags & BUFFER_VERIFIED);
    assert_int_equal(node_used(node), bytes);
    assert_int_equal(node_used(!node), 0);
    assert_int_equal(host_used(), bytes);
    assert_int_equal(host_check(session), 0);
}

static uint64_t alloc_as(uint64_t session, const struct alloc_spec *wanted, uint64_t size)
{
    static struct alloc_spec args;
    static struct opened result;

    args = *wanted;
    args.n = 1;
    args.sizes[0] = size;
    memset(&result, 0, sizeof(result));
    assert_int_equal(CALL(session, op_alloc, &args, &result), 0);
    return result.items[0].id;
}

static uint64_t alloc_on(uint64_t session, uint32_t node, uint64_t size)
{
    const struct alloc_spec args = {.memory = {.n_nodes = 1, .nodes = {node}, .placement = PLACEMENT_BIND}};

    return alloc_as(session, &args, size);
}

/* ---- what becomes of the charge ---------------------------------------------------------------------------------- */

static void the_charge_goes_along(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_on(session, 0, SIZE);
    struct buffer_info before, after;

    assert_on(session, buffer, 0, SIZE);
    assert_int_equal(host_info(session, buffer, &before), 0);
    assert_int_equal(CALL(session, op_move, buffer, 1), 0);
    assert_on(session, buffer, 1, SIZE);
    assert_int_equal(host_info(session, buffer, &after), 0);
    assert_string_equal(after.pool, "node1-4k");
    assert_int_equal(after.address, before.address);
    assert_int_equal(after.inode, before.inode);
    assert_int_equal(pool_used("node0-4k"), 0);
    assert_int_equal(pool_used("node1-4k"), SIZE);
    /* there already */
    assert_int_equal(CALL(session, op_move, buffer, 1), 0);
    assert_on(session, buffer, 1, SIZE);
    assert_int_equal(CALL(session, op_move, buffer, 0), 0);
    assert_on(session, buffer, 0, SIZE);
}

/* In its own pool, where that has the node; what is there already needs no room. */
static void several_nodes_become_one(void **state)
{
    const struct alloc_spec split = {
        .memory = {.n_nodes = 2, .nodes = {0, 1}, .placement = PLACEMENT_SPLIT, .n_weights = 2, .weights = {1, 1}}};
    uint64_t session = host_session(1), large = HOST_POOL_BYTES - SIZE, buffer = alloc_as(session, &split, large);
    struct buffer_info info;

    assert_int_equal(node_used(1), large / 2);
    assert_int_equal(CALL(session, op_move, buffer, 1), 0);
    assert_on(session, buffer, 1, large);
    assert_int_equal(host_info(session, buffer, &info), 0);
    assert_string_equal(info.pool, "all-4k");
    assert_int_equal(pool_used("all-4k"), large);
    assert_int_equal(CALL(session, op_move, buffer, 0), 0);
    assert_on(session, buffer, 0, large);
}

static void a_node_without_room_gets_nothing(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_on(session, 0, SIZE);
    uint64_t other = alloc_on(session, 1, HOST_POOL_BYTES - SIZE / 2);

    assert_int_equal(CALL(session, op_move, buffer, 1), STATUS_POOL_FULL);
    assert_non_null(strstr(host_sentence, "node 1"));
    assert_int_equal(node_used(1), HOST_POOL_BYTES - SIZE / 2);
    assert_int_equal(host_release(session, other), 0);
    host_settle();
    assert_on(session, buffer, 0, SIZE);
    assert_int_equal(CALL(session, op_move, buffer, 1), 0);
    assert_on(session, buffer, 1, SIZE);
}

/* ---- waiting for room -------------------------------------------------------------------------------------------- */

static struct call moving;

static void begin_move(uint64_t session, uint64_t buffer, uint32_t node)
{
    call_init(&moving, session);
    assert_int_equal(op_move(&moving.op, buffer, node), OP_PENDING);
}

/* One of SIZE on node 0; node 1 is full, and all of it on its way back until come_back(). */
static uint64_t alloc_beside_what_returns(uint64_t session)
{
    uint64_t buffer = alloc_on(session, 0, SIZE);
    uint64_t other = alloc_on(session, 1, HOST_POOL_BYTES);

    host.no_commit = true;
    assert_int_equal(host_release(session, other), 0);
    return buffer;
}

static void come_back(uint64_t session)
{
    host.no_commit = false;
    assert_int_equal(host_check(session), 0);
}

static void a_move_waits_for_memory_reclaimed_on_the_node(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_beside_what_returns(session);

    begin_move(session, buffer, 1);
    host_turn(5);
    assert_false(moving.ended);
    assert_int_equal(node_used(1), HOST_POOL_BYTES);
    come_back(session);
    assert_int_equal(call_finish(&moving, OP_PENDING), 0);
    assert_on(session, buffer, 1, SIZE);
}

static void a_move_does_not_wait_for_less_than_it_needs(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_on(session, 0, SIZE), large = alloc_on(session, 0, 2 * SIZE);
    uint64_t some = alloc_on(session, 1, SIZE), most = alloc_on(session, 1, HOST_POOL_BYTES - SIZE - SIZE / 2);

    host.no_commit = true;
    assert_int_equal(host_release(session, some), 0);
    assert_int_equal(CALL(session, op_move, large, 1), STATUS_POOL_FULL);
    begin_move(session, buffer, 1);
    come_back(session);
    assert_int_equal(call_finish(&moving, OP_PENDING), 0);
    assert_int_equal(node_used(1), HOST_POOL_BYTES - SIZE / 2);
    assert_int_equal(host_release(session, most), 0);
    host_settle();
}

static void a_move_fails_when_another_took_what_was_reclaimed(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_beside_what_returns(session);
    static struct alloc_spec args = {
        .n = 1, .sizes = {HOST_POOL_BYTES}, .memory = {.n_nodes = 1, .nodes = {1}, .placement = PLACEMENT_BIND}};
    static struct opened result;
    static struct call first;

    call_init(&first, session);
    assert_int_equal(op_alloc(&first.op, &args, &result), OP_PENDING);
    begin_move(session, buffer, 1);
    come_back(session);
    assert_int_equal(call_finish(&first, OP_PENDING), 0);
    assert_int_equal(call_finish(&moving, OP_PENDING), STATUS_POOL_FULL);
    assert_int_equal(node_used(0), SIZE);
    assert_int_equal(host_check(session), 0);
}

/* It goes, its session goes, or it is cancelled: nothing is kept for it. */
static void a_move_that_waits_for_reclaimed_memory_can_be_cancelled(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), buffer = alloc_beside_what_returns(session);
    static struct call cancelled;

    call_init(&cancelled, session);
    assert_int_equal(op_move(&cancelled.op, buffer, 1), OP_PENDING);
    op_cancel(&cancelled.op);
    assert_int_equal(call_finish(&cancelled, OP_PENDING), STATUS_TIMED_OUT);
    begin_move(session, buffer, 1);
    assert_int_equal(CALL(session, op_destroy, buffer, false), 0);
    come_back(other);
    assert_int_equal(call_finish(&moving, OP_PENDING), STATUS_STALE);
    host_settle();

    buffer = alloc_beside_what_returns(session);
    begin_move(session, buffer, 1);
    host.no_commit = false;
    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_int_not_equal(call_finish(&moving, OP_PENDING), 0);
    host_settle();
    assert_int_equal(host_used(), 0);
    assert_int_equal(host_check(other), 0);
}

/* ---- who may, and what ------------------------------------------------------------------------------------------- */

static void not_everybody_may_and_not_everything_can(void **state)
{
    const struct share_args terms = {.rights = RIGHT_READ | RIGHT_WRITE};
    uint64_t session = host_session(1), other = host_session(2), buffer = alloc_on(session, 0, SIZE);
    uint8_t token[32];

    assert_int_equal(CALL(other, op_move, buffer, 1), STATUS_NO_RIGHT);
    assert_int_equal(host_share(session, buffer, &terms, token), 0);
    assert_int_equal(host_open(other, token, 0, NULL), 0);
    assert_int_equal(CALL(other, op_move, buffer, 1), STATUS_NO_RIGHT);
    assert_int_equal(CALL(session, op_move, buffer, 2), STATUS_NO_SUCH_NODE);
    assert_int_equal(CALL(session, op_move, UINT64_MAX, 1), STATUS_NO_SUCH_ID);
    assert_int_equal(CALL(0, op_move, buffer, 1), STATUS_NO_SESSION);
    assert_on(session, buffer, 0, SIZE);
    assert_int_equal(CALL(session, op_destroy, buffer, false), 0);
    assert_int_equal(CALL(session, op_move, buffer, 1), STATUS_STALE);
}

/* ---- with pages -------------------------------------------------------------------------------------------------- */

static void pages_and_charge_go_together(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_on(session, 0, SIZE);
    _cleanup_close_ int fd = host_export(session, buffer, RIGHT_READ | RIGHT_WRITE);
    char *map = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);

    assert_mapped(map);
    memset(map, 7, SIZE);
    assert_int_equal(nodes_count(SIZE, 0), SIZE / page_size());
    assert_int_equal(CALL(session, op_move, buffer, 1), 0);
    assert_int_equal(nodes_count(SIZE, 1), SIZE / page_size());
    assert_on(session, buffer, 1, SIZE);
    assert_int_equal(map[SIZE - 1], 7);
    assert_ok(munmap(map, SIZE));
}

static void what_is_in_use_stays_and_it_is_said_whose_it_is(void **state)
{
    const struct share_args terms = {.rights = RIGHT_READ};
    uint64_t session = host_session(1), other = host_session(2), buffer = alloc_on(session, 0, SIZE);
    char who[64];
    uint8_t token[32];

    assert_int_equal(host_share(session, buffer, &terms, token), 0);
    assert_int_equal(host_open(other, token, 0, NULL), 0);
    nodes.stuck = 1000;
    assert_int_equal(CALL(session, op_move, buffer, 1), STATUS_BUSY);
    (void)snprintf(who, sizeof(who), "else holds it: session %llu (pid", (unsigned long long)other);
    assert_non_null(strstr(host_sentence, who));
    assert_int_equal(nodes_count(SIZE, 0), SIZE / page_size());
    assert_on(session, buffer, 0, SIZE);
    nodes.stuck = SIZE_MAX;
    assert_int_equal(CALL(session, op_move, buffer, 1), 0);
    assert_on(session, buffer, 1, SIZE);
}

static void without_memory_there_it_stays(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_on(session, 0, SIZE);

    nodes.available[1] = MIB;
    assert_int_equal(CALL(session, op_move, buffer, 1), STATUS_NO_MEMORY);
    assert_on(session, buffer, 0, SIZE);
}

/* First one does not go, however often it is tried, then another one does not come back. */
static void run_out_and_get_stuck(unsigned moves)
{
    nodes.available[1] = MIB;
    if (!moves)
        nodes.stuck = 5;
    else if (!nodes.policy[0])
        nodes.stuck = 3;
}

/* The sum stays exact, and nobody is told that its pages were seen where they are not. */
static void what_cannot_come_back_is_not_verified(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_on(session, 0, SIZE);
    struct buffer_info info;

    nodes.moving = run_out_and_get_stuck;
    nodes.moves = 0;
    assert_int_equal(CALL(session, op_move, buffer, 1), STATUS_NO_MEMORY);
    assert_int_equal(nodes_count(SIZE, 0), SIZE / page_size() - 1);
    assert_int_equal(host_info(session, buffer, &info), 0);
    assert_false(info.flags & BUFFER_VERIFIED);
    assert_int_equal(node_used(0), SIZE);
    assert_int_equal(node_used(1), 0);
    assert_int_equal(host_check(session), 0);
    /* it is brought back by asking for it */
    nodes.moving = NULL;
    nodes.stuck = SIZE_MAX;
    assert_int_equal(CALL(session, op_move, buffer, 0), 0);
    assert_on(session, buffer, 0, SIZE);
}

/* ---- meanwhile --------------------------------------------------------------------------------------------------- */

static void both_places_are_charged_meanwhile(void **state)
{
    uint64_t session = host_session(1), buffer = alloc_on(session, 0, SIZE);
    static struct call check;
    static struct check_result result;

    /* one that walks the records before, during and after */
    call_init(&check, session);
    assert_int_equal(op_check(&check.op, &result), OP_PENDING);
    begin_move(session, buffer, 1);
    assert_int_equal(node_used(0), SIZE);
    assert_int_equal(node_used(1), SIZE);
    assert_int_equal(CALL(session, op_move, buffer, 0), STATUS_BUSY);
    assert_int_equal(call_finish(&check, OP_PENDING), 0);
    assert_int_equal(result.faults, 0);
    assert_int_equal(call_finish(&moving, OP_PENDING), 0);
    assert_on(session, buffer, 1, SIZE);
}

static void it_may_end_meanwhile(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), buffer = alloc_on(session, 0, SIZE);

    begin_move(session, buffer, 1);
    assert_int_equal(host_release(session, buffer), 0);
    (void)call_finish(&moving, OP_PENDING);
    host_settle();
    assert_int_equal(host_used(), 0);
    assert_int_equal(node_used(0) + node_used(1), 0);
    assert_int_equal(host_check(other), 0);
}

static void its_session_may_end_meanwhile(void **state)
{
    uint64_t session = host_session(1), other = host_session(2), buffer = alloc_on(session, 0, SIZE);

    assert_int_equal(host_bind(session, buffer, "stays", 0, 0), 0);
    begin_move(session, buffer, 1);
    assert_int_equal(CALL(session, op_goodbye), 0);
    (void)call_finish(&moving, OP_PENDING);
    host_settle();
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(node_used(0) + node_used(1), SIZE);
    assert_int_equal(host_check(other), 0);
    assert_int_equal(CALL(other, op_name_unbind, "stays"), 0);
    host_settle();
}

static sem_t begun, cancelled;

static void wait_until_cancelled(unsigned moves)
{
    if (moves)
        return;
    (void)sem_post(&begun);
    while (sem_wait(&cancelled) && errno == EINTR)
        ;
}

/* The third of three slices is not reached. */
static void a_cancelled_one_stays(void **state)
{
    uint64_t session, buffer;

    host_teardown(state);
    host_reset(2);
    host.pool_bytes = HOST_LARGE_BYTES;
    host_start();
    play_nodes();
    session = host_session(1);
    buffer = alloc_on(session, 0, 160 * MIB);
    assert_ok(sem_init(&begun, 0, 0));
    assert_ok(sem_init(&cancelled, 0, 0));
    nodes.moving = wait_until_cancelled;
    begin_move(session, buffer, 1);
    while (sem_wait(&begun) && errno == EINTR)
        ;
    op_cancel(&moving.op);
    (void)sem_post(&cancelled);
    assert_int_equal(call_finish(&moving, OP_PENDING), STATUS_TIMED_OUT);
    assert_on(session, buffer, 0, 160 * MIB);
}

#define SIMULATED(f) cmocka_unit_test_setup_teardown(f, setup_simulated, teardown)
#define PLAYED(f)    cmocka_unit_test_setup_teardown(f, setup_played, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIMULATED(the_charge_goes_along),
        SIMULATED(several_nodes_become_one),
        SIMULATED(a_node_without_room_gets_nothing),
        SIMULATED(a_move_waits_for_memory_reclaimed_on_the_node),
        SIMULATED(a_move_does_not_wait_for_less_than_it_needs),
        SIMULATED(a_move_fails_when_another_took_what_was_reclaimed),
        SIMULATED(a_move_that_waits_for_reclaimed_memory_can_be_cancelled),
        SIMULATED(not_everybody_may_and_not_everything_can),
        PLAYED(the_charge_goes_along),
        PLAYED(several_nodes_become_one),
        PLAYED(a_node_without_room_gets_nothing),
        PLAYED(a_move_waits_for_memory_reclaimed_on_the_node),
        PLAYED(a_move_does_not_wait_for_less_than_it_needs),
        PLAYED(a_move_fails_when_another_took_what_was_reclaimed),
        PLAYED(a_move_that_waits_for_reclaimed_memory_can_be_cancelled),
        PLAYED(not_everybody_may_and_not_everything_can),
        PLAYED(pages_and_charge_go_together),
        PLAYED(what_is_in_use_stays_and_it_is_said_whose_it_is),
        PLAYED(without_memory_there_it_stays),
        PLAYED(what_cannot_come_back_is_not_verified),
        PLAYED(both_places_are_charged_meanwhile),
        PLAYED(it_may_end_meanwhile),
        PLAYED(its_session_may_end_meanwhile),
        PLAYED(a_cancelled_one_stays),
    };

    return test_run(tests, NULL, NULL);
}
