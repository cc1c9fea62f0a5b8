/* SPDX-License-Identifier: Apache-2.0 */
/* One worker, and two users: what one of them has queued does not keep the other waiting. */
#include "tests/unit/broker/host.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/state.h"
#include "proto/status.h"
#include "sys/sys.h"
#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define LARGE (20 * MIB)
#define MANY  6

struct large {
    struct call call;
    struct alloc_spec spec;
    struct opened result;
};

static void large_begin(struct large *large, uint64_t session, uint64_t size)
{
    *large = (struct large){.spec = {.n = 1, .sizes = {size}}};
    call_init(&large->call, session);
    assert_int_equal(op_alloc(&large->call.op, &large->spec, &large->result), OP_PENDING);
}

/* Its id. */
static uint64_t large_end(struct large *large)
{
    assert_int_equal(call_finish(&large->call, OP_PENDING), 0);
    fdset_deinit(&large->result.fds);
    return large->result.items[0].id;
}

static unsigned count_ended(const struct large *large, unsigned n)
{
    unsigned ended = 0;

    for (unsigned i = 0; i < n; i++)
        ended += large[i].call.ended;
    return ended;
}

static void anothers_commit_is_next(void **state)
{
    static struct large mine[MANY], other;
    uint64_t me = host_session(1), you = host_session_of(2, getpid(), UID_STRANGER);

    for (unsigned i = 0; i < MANY; i++)
        large_begin(&mine[i], me, LARGE);
    large_begin(&other, you, LARGE);
    assert_true(HOST_UNTIL(other.call.ended));
    assert_int_equal(count_ended(mine, MANY), 1);
    (void)large_end(&other);
    for (unsigned i = 0; i < MANY; i++)
        (void)large_end(&mine[i]);
}

static unsigned count_left(const uint64_t *ids, unsigned n)
{
    unsigned left = 0;

    for (unsigned i = 0; i < n; i++)
        left += buffers_find(&host.broker->buffers, ids[i]) != NULL;
    return left;
}

static void anothers_memory_is_given_back_next(void **state)
{
    static struct large large;
    uint64_t me = host_session(1), you = host_session_of(2, getpid(), UID_STRANGER);
    uint64_t mine[MANY], other;

    for (unsigned i = 0; i < MANY; i++) {
        large_begin(&large, me, LARGE);
        mine[i] = large_end(&large);
    }
    large_begin(&large, you, LARGE);
    other = large_end(&large);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(host_release(me, mine[i]), 0);
    assert_int_equal(host_release(you, other), 0);
    assert_true(HOST_UNTIL(!buffers_find(&host.broker->buffers, other)));
    assert_in_range(count_left(mine, MANY), MANY - 2, MANY - 1);
    host_settle();
    assert_int_equal(count_left(mine, MANY), 0);
}

/* ---- calls that take as long as the test likes ------------------------------------------------------------------- */

static struct sys_calls gated;
static atomic_uint at_gate, gates;
static sem_t gate;

/* So many calls wait; those after them do not. */
static void gates_set(unsigned n)
{
    gated = *sys;
    atomic_store(&gates, n);
    atomic_store(&at_gate, 0);
    sem_init(&gate, 0, 0);
}

static void gate_pass(void)
{
    if (atomic_fetch_add(&at_gate, 1) < atomic_load(&gates))
        while (sem_wait(&gate) < 0)
            ;
}

static int gated_fallocate(int fd, int mode, off_t offset, off_t length)
{
    gate_pass();
    return sys_kernel.fallocate(fd, mode, offset, length);
}

static int gated_add_seals(int fd, int seals)
{
    if (seals & F_SEAL_WRITE)
        gate_pass();
    return sys_kernel.add_seals(fd, seals);
}

static void a_long_commit_pauses_for_another(void **state)
{
    static struct large mine, other;
    uint64_t me = host_session(1), you = host_session_of(2, getpid(), UID_STRANGER);
    const struct sys_calls *before = sys;
    struct buffer_info info;
    uint64_t id;

    gates_set(1);
    gated.fallocate = gated_fallocate;
    sys = &gated;
    large_begin(&mine, me, 256 * MIB);
    assert_true(WAIT_UNTIL(atomic_load(&at_gate) == 1));
    large_begin(&other, you, LARGE);
    sem_post(&gate);
    assert_true(HOST_UNTIL(other.call.ended));
    assert_false(mine.call.ended);
    assert_int_equal(atomic_load(&at_gate), 2);
    id = large_end(&mine);
    (void)large_end(&other);
    assert_int_equal(atomic_load(&at_gate), 5);
    sys = before;
    assert_int_equal(host_info(me, id, &info), 0);
    assert_int_equal(info.size, 256 * MIB);
}

/* Paused, and cancelled then: what it has so far is given back by a worker. */
static void a_commit_that_paused_can_be_cancelled(void **state)
{
    static struct large mine, other;
    uint64_t me = host_session(1), you = host_session_of(2, getpid(), UID_STRANGER);
    const struct sys_calls *before = sys;

    gates_set(2);
    gated.fallocate = gated_fallocate;
    sys = &gated;
    large_begin(&mine, me, 256 * MIB);
    assert_true(WAIT_UNTIL(atomic_load(&at_gate) == 1));
    large_begin(&other, you, LARGE);
    sem_post(&gate);
    assert_true(HOST_UNTIL(atomic_load(&at_gate) == 2)); /* the other one is at work */
    op_cancel(&mine.call.op);
    sem_post(&gate);
    (void)large_end(&other);
    assert_int_equal(call_finish(&mine.call, OP_PENDING), STATUS_TIMED_OUT);
    assert_int_equal(atomic_load(&at_gate), 2);
    sys = before;
    host_settle();
    assert_int_equal(host_used(), LARGE);
}

/* The kernel keeps two of three waiting. All are given up; the third never begins; others' go on. */
static void a_seal_that_hangs_is_given_up(void **state)
{
    static struct call calls[3];
    uint64_t me = host_session(1), you = host_session_of(2, getpid(), UID_STRANGER), buffers[3], theirs;
    const struct sys_calls *before = sys;
    struct buffer_info info;

    gates_set(2);
    gated.add_seals = gated_add_seals;
    sys = &gated;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(host_alloc(me, page_size(), BUFFER_PUBLISHABLE, &buffers[i]), 0);
        call_init(&calls[i], me);
        assert_int_equal(op_publish(&calls[i].op, buffers[i], false), OP_PENDING);
    }
    assert_true(WAIT_UNTIL(atomic_load(&at_gate) == 2));
    assert_int_equal(host_alloc(you, page_size(), BUFFER_PUBLISHABLE, &theirs), 0);
    assert_int_equal(CALL(you, op_publish, theirs, false), 0);
    for (unsigned i = 0; i < 3; i++)
        op_cancel(&calls[i].op);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(call_finish(&calls[i], OP_PENDING), STATUS_TIMED_OUT);
        assert_non_null(strstr(calls[i].op.problem.sentence, i < 2 ? "keeps the kernel" : "before it began"));
    }
    /* the kernel still has the first two, also the one that ends meanwhile */
    assert_int_equal(host_release(me, buffers[0]), 0);
    assert_int_equal(host_release(me, buffers[2]), 0);
    assert_int_equal(host_used(), 3 * page_size());
    assert_int_equal(host_check(me), 0);
    sem_post(&gate);
    sem_post(&gate);
    assert_true(HOST_UNTIL(host_used() == 2 * page_size()));
    sys = before;
    assert_int_equal(atomic_load(&at_gate), 3);
    assert_true(HOST_UNTIL(host_info(me, buffers[1], &info) == 0 && info.flags & BUFFER_PUBLISHED));
}

/* I8: who looks at a process may have to wait for it. Here its status is a pipe that nobody writes to yet. */
static void I8_a_process_that_is_looked_at_keeps_nobody_waiting(void **state)
{
    const struct sys_calls *before = sys;
    uint64_t me = host_session(1), gone = host_session(2), buffer, another;
    char folder[] = "/tmp/memoryd-proc-XXXXXX", path[80];
    struct sys_calls calls = *sys;
    struct buffer_info info;
    int status;

    assert_int_equal(host_alloc(gone, page_size(), 0, &buffer), 0);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
    assert_ok(mkdir(path, 0700));
    (void)snprintf(path, sizeof(path), "%s/%d/status", folder, (int)getpid());
    assert_ok(mkfifo(path, 0600));
    calls.proc = folder;
    sys = &calls;
    assert_int_equal(broker_connection_lost(host.broker, gone, (void *)2), 0);
    assert_true(HOST_UNTIL(work_pending(host.work) == 1));
    /* the grace is over, and others are served */
    assert_int_equal(host_alloc(me, page_size(), 0, &another), 0);
    assert_int_equal(host_info(me, buffer, &info), 0);
    assert_int_equal(info.holds, 1);
    status = open(path, O_WRONLY | O_CLOEXEC);
    assert_ok(status);
    assert_true(dprintf(status, "Name:\tx\nState:\tS (sleeping)\n") > 0);
    close(status);
    assert_true(HOST_UNTIL(host_info(me, buffer, &info) == STATUS_STALE));
    sys = before;
    assert_ok(unlink(path));
    *strrchr(path, '/') = '\0';
    assert_ok(rmdir(path));
    assert_ok(rmdir(folder));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, host_setup_large, host_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(anothers_commit_is_next),          TEST(anothers_memory_is_given_back_next),
        TEST(a_long_commit_pauses_for_another), TEST(a_commit_that_paused_can_be_cancelled),
        TEST(a_seal_that_hangs_is_given_up),    TEST(I8_a_process_that_is_looked_at_keeps_nobody_waiting),
    };

    return test_run(tests, NULL, NULL);
}
