/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a broker: what was refused and who had it, and how the processes of sessions ended, on a kernel that
 * tells that and on one that does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/state.h"
#include "history/counters.h"
#include "history/history.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "sys/sys.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/files.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"

#define UID_WORKER 7001
#define MIB        (UINT64_C(1) << 20)

static int nobody_tells(int pidfd, int *ret)
{
    (void)pidfd;
    (void)ret;
    errno = ENOTTY;
    return -1;
}

static struct sys_calls older;

static int restore(void **state)
{
    sys = &sys_kernel;
    return host_teardown(state);
}

static void need_pidfds(void)
{
    if (host_no_pidfds)
        test_skip("valgrind knows no pidfds");
}

/* The latest of this kind. */
static const struct history_record *latest(enum history_kind kind)
{
    const struct history_record *record, *found = NULL;
    unsigned budget = UINT32_MAX;
    uint64_t cursor = 0;

    while ((record = history_next(host.broker->history, &cursor, &budget)))
        if (record->kind == kind)
            found = record;
    assert_non_null(found);
    return found;
}

static void be_there(int channel, void *context)
{
    (void)context;
    hear(channel);
    _exit(3);
}

static uint64_t worker_begins(struct child *child)
{
    child_start(child, be_there, NULL);
    return host_session_of(7, child->pid, UID_WORKER);
}

static bool session_is_gone(uint64_t session)
{
    host_turn(1);
    return !sessions_find(&host.broker->sessions, session);
}

static bool has_ended(enum history_end end)
{
    host_turn(1);
    return latest(HISTORY_ENDED)->end == end;
}

static void the_end_does_not_wait_for_its_cause(void **state)
{
    const struct history_record *record;
    unsigned fds = fd_count();
    struct child child;
    uint64_t session, buffer;
    int status;

    need_pidfds();
    session = worker_begins(&child);
    assert_int_equal(host_alloc(session, MIB, 0, &buffer), 0);
    child_kill_unreaped(&child);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    record = latest(HISTORY_ENDED);
    assert_int_equal(record->session, session);
    assert_int_equal(record->uid, UID_WORKER);
    assert_int_equal(record->bytes, MIB);
    assert_int_equal(record->holds, 1);
    if (!child_ends_are_told()) {
        assert_int_equal(record->end, HISTORY_END_UNKNOWN);
        test_skip("this kernel tells nobody how a process ended");
    }
    assert_int_equal(record->end, HISTORY_END_DIED);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_true(WAIT_UNTIL(has_ended(HISTORY_END_SIGNAL)));
    assert_int_equal(latest(HISTORY_ENDED)->status, SIGKILL);
    close(child.channel);
    host_settle();
    assert_int_equal(fd_count(), fds);
}

/* Reaped at once. */
static void an_exit_has_its_status(void **state)
{
    struct child child;
    uint64_t session;

    need_pidfds();
    session = worker_begins(&child);
    child_tell(&child);
    assert_int_equal(WEXITSTATUS(child_wait(&child)), 3);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    if (!child_ends_are_told())
        test_skip("this kernel tells nobody how a process ended");
    assert_int_equal(latest(HISTORY_ENDED)->end, HISTORY_END_EXITED);
    assert_int_equal(latest(HISTORY_ENDED)->status, 3);
}

static void an_older_kernel_tells_nothing(void **state)
{
    unsigned fds = fd_count();
    struct child child;
    uint64_t session;
    int status;

    need_pidfds();
    older = sys_kernel;
    older.pidfd_status = nobody_tells;
    sys = &older;
    session = worker_begins(&child);
    child_kill_unreaped(&child);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    assert_int_equal(latest(HISTORY_ENDED)->end, HISTORY_END_UNKNOWN);
    /* nothing is kept for a cause that will not come */
    host_settle();
    assert_int_equal(fd_count(), fds + 1);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    close(child.channel);
    assert_int_equal(fd_count(), fds);
}

/* ---- for want of memory ------------------------------------------------------------------------------------------ */

static void kills_are(unsigned kills)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "low 0\noom_kill %u\n", kills);
    files_put("sys/fs/cgroup/worker/memory.events", text);
}

/* In the group, which is looked at where kills are counted only. */
static uint64_t worker_in_group_without_a_buffer(struct child *child, unsigned kills)
{
    uint64_t session;
    char path[64];

    need_pidfds();
    if (!child_ends_are_told())
        test_skip("this kernel tells nobody how a process ended");
    host.broker->options.groups_root = files_root;
    child_start(child, be_there, NULL);
    (void)snprintf(path, sizeof(path), "proc/%d/cgroup", (int)child->pid);
    files_put(path, "0::/worker\n");
    kills_are(kills);
    session = host_session_of(7, child->pid, UID_WORKER);
    host_settle();
    return session;
}

/* In the group, in which so many were killed before, and with a buffer. */
static uint64_t worker_in_group(struct child *child, unsigned kills)
{
    uint64_t session = worker_in_group_without_a_buffer(child, kills), buffer;

    assert_int_equal(host_alloc(session, 4096, 0, &buffer), 0);
    host_settle();
    return session;
}

static void who_is_killed_while_its_group_runs_out_of_memory_died_of_that(void **state)
{
    unsigned fds = fd_count();
    struct child child;
    uint64_t session = worker_in_group(&child, 2);
    int status;

    kills_are(3);
    child_kill_unreaped(&child);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    host_settle();
    assert_int_equal(latest(HISTORY_ENDED)->end, HISTORY_END_DIED);
    /* what the group counts afterwards, or that it has gone, changes nothing */
    files_put("sys/fs/cgroup/worker/memory.events", NULL);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_true(WAIT_UNTIL(has_ended(HISTORY_END_OOM)));
    assert_int_equal(latest(HISTORY_ENDED)->status, SIGKILL);
    assert_int_equal(host.broker->counters->file->ends[HISTORY_END_OOM], 1);
    assert_int_equal(host.broker->counters->file->ends[HISTORY_END_SIGNAL], 0);
    close(child.channel);
    host_settle();
    assert_int_equal(fd_count(), fds);
}

/* Reaped before the worker has looked. */
static void it_is_told_when_the_group_was_looked_at(void **state)
{
    struct child child;
    uint64_t session = worker_in_group(&child, 0);

    kills_are(1);
    child_kill(&child);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    assert_true(WAIT_UNTIL(has_ended(HISTORY_END_OOM)));
}

static void others_that_the_group_lost_before_are_no_reason(void **state)
{
    struct child child;
    uint64_t session = worker_in_group(&child, 2);

    child_kill(&child);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    assert_true(WAIT_UNTIL(has_ended(HISTORY_END_SIGNAL)));
    assert_int_equal(latest(HISTORY_ENDED)->status, SIGKILL);
}

static void who_exits_did_not_die_of_that(void **state)
{
    struct child child;
    uint64_t session = worker_in_group(&child, 2);

    kills_are(3);
    child_tell(&child);
    assert_int_equal(WEXITSTATUS(child_wait(&child)), 3);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    assert_true(WAIT_UNTIL(has_ended(HISTORY_END_EXITED)));
}

static void a_group_that_has_gone_says_nothing(void **state)
{
    struct child child;
    uint64_t session = worker_in_group(&child, 2);

    files_put("sys/fs/cgroup/worker/memory.events", NULL);
    child_kill(&child);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    assert_true(WAIT_UNTIL(has_ended(HISTORY_END_SIGNAL)));
}

/* How the session of this child ended, once it has been killed and that is told. */
static enum history_end end_of_killed(struct child *child, uint64_t session)
{
    const struct history_record *record;

    child_kill(child);
    assert_true(WAIT_UNTIL(session_is_gone(session)));
    assert_true(HOST_UNTIL(!has_ended(HISTORY_END_DIED)));
    record = latest(HISTORY_ENDED);
    assert_int_equal(record->session, session);
    assert_int_equal(record->status, SIGKILL);
    return record->end;
}

static void a_kill_that_was_counted_explains_one_death(void **state)
{
    struct child children[5];
    uint64_t sessions[5];

    for (unsigned i = 0; i < 4; i++)
        sessions[i] = worker_in_group(&children[i], 2);
    kills_are(3);
    assert_int_equal(end_of_killed(&children[0], sessions[0]), HISTORY_END_OOM);
    assert_int_equal(end_of_killed(&children[1], sessions[1]), HISTORY_END_SIGNAL);
    kills_are(4);
    sessions[4] = worker_in_group(&children[4], 4);
    assert_int_equal(end_of_killed(&children[4], sessions[4]), HISTORY_END_SIGNAL);
    assert_int_equal(end_of_killed(&children[2], sessions[2]), HISTORY_END_OOM);
    assert_int_equal(end_of_killed(&children[3], sessions[3]), HISTORY_END_SIGNAL);
    host_settle();
    assert_true(RB_EMPTY(&host.broker->oom_groups));
}

/* The first one that was killed may be reaped last. */
static void kills_explain_deaths_in_any_order(void **state)
{
    struct child children[2];
    uint64_t sessions[2];

    sessions[0] = worker_in_group(&children[0], 2);
    sessions[1] = worker_in_group(&children[1], 3);
    kills_are(4);
    assert_int_equal(end_of_killed(&children[1], sessions[1]), HISTORY_END_OOM);
    assert_int_equal(end_of_killed(&children[0], sessions[0]), HISTORY_END_OOM);
}

static void whose_session_has_had_nothing_is_not_looked_at(void **state)
{
    struct child child;
    uint64_t session = worker_in_group_without_a_buffer(&child, 2);

    kills_are(3);
    assert_int_equal(end_of_killed(&child, session), HISTORY_END_SIGNAL);
}

/* A worker hangs in reading the file. */
static void a_worker_that_hangs_keeps_no_cause_back(void **state)
{
    struct child child;
    uint64_t session = worker_in_group(&child, 2);
    char path[PATH_MAX];
    _cleanup_close_ int fd = -1;

    assert_true(snprintf(path, sizeof(path), "%s/sys/fs/cgroup/worker/memory.events", files_root) < PATH_MAX);
    files_put("sys/fs/cgroup/worker/memory.events", NULL);
    assert_ok(mkfifo(path, 0600));
    child_kill(&child);
    assert_true(HOST_UNTIL(session_is_gone(session) && (fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0));
    host_turn(1);
    assert_int_equal(latest(HISTORY_ENDED)->end, HISTORY_END_DIED);
    /* a minute later */
    timers_run(&host.broker->timers, deadline_after_ms(60000));
    assert_int_equal(latest(HISTORY_ENDED)->end, HISTORY_END_SIGNAL);
    assert_int_equal(write(fd, "low 0\noom_kill 3\n", 17), 17);
    fd = fd_close(fd);
    host_settle();
    assert_int_equal(latest(HISTORY_ENDED)->end, HISTORY_END_SIGNAL);
    assert_ok(unlink(path));
}

static int set_up_files(void **state)
{
    return files_set_up(state) || host_setup(state);
}

static int clean_up_files(void **state)
{
    return restore(state) || files_clean_up(state);
}

static void goodbye_is_no_death(void **state)
{
    uint64_t session = host_session(1);

    assert_int_equal(CALL(session, op_goodbye), 0);
    assert_int_equal(latest(HISTORY_ENDED)->end, HISTORY_END_GOODBYE);
    assert_int_equal(latest(HISTORY_ENDED)->session, session);
}

/* Another user has most of the pool, and this one some. */
static void a_refusal_says_who_had_it(void **state)
{
    uint64_t session = host_session_of(1, getpid(), UID_WORKER), other = host_session_of(2, getpid(), 7002);
    const struct history_record *record;
    struct op_refusal refusal = {.session = session, .uid = UID_WORKER, .method = METHOD_ALLOC, .sentence = "full"};
    struct shortage shortage;
    uint64_t buffer;

    assert_int_equal(host_alloc(session, MIB, 0, &buffer), 0);
    assert_int_equal(host_alloc(other, 3 * MIB, 0, &buffer), 0);
    shortage = pool_shortage(pools_get(host.pools, 0), 5 * MIB);
    refusal.status = STATUS_POOL_FULL;
    refusal.shortage = &shortage;
    op_refused(host.broker, &refusal);
    record = latest(HISTORY_REFUSED);
    assert_int_equal(record->mine, MIB);
    assert_int_equal(record->most, 3 * MIB);
    assert_int_equal(record->most_uid, 7002);
    assert_int_equal(record->used, 4 * MIB);
    assert_int_equal(record->wanted, 5 * MIB);
    assert_int_equal(record->limit, pool_capacity(pools_get(host.pools, 0)));
    assert_string_equal(record->sentence, "full");
    assert_string_equal(record->program, "test");

    /* of what limits count, as of pools */
    shortage = (struct shortage){.resource = "buffers", .wanted = 1, .used = 1, .limit = 1};
    refusal.status = STATUS_LIMIT;
    op_refused(host.broker, &refusal);
    record = latest(HISTORY_REFUSED);
    assert_int_equal(record->mine, 1);
    assert_string_equal(record->resource, "buffers");
    assert_string_equal(record->pool, "");
}

#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, set_up_files, clean_up_files)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_end_does_not_wait_for_its_cause, host_setup, restore),
        cmocka_unit_test_setup_teardown(an_exit_has_its_status, host_setup, restore),
        cmocka_unit_test_setup_teardown(an_older_kernel_tells_nothing, host_setup, restore),
        WITH_FILES(who_is_killed_while_its_group_runs_out_of_memory_died_of_that),
        WITH_FILES(it_is_told_when_the_group_was_looked_at),
        WITH_FILES(others_that_the_group_lost_before_are_no_reason),
        WITH_FILES(who_exits_did_not_die_of_that),
        WITH_FILES(a_group_that_has_gone_says_nothing),
        WITH_FILES(a_kill_that_was_counted_explains_one_death),
        WITH_FILES(kills_explain_deaths_in_any_order),
        WITH_FILES(whose_session_has_had_nothing_is_not_looked_at),
        WITH_FILES(a_worker_that_hangs_keeps_no_cause_back),
        cmocka_unit_test_setup_teardown(goodbye_is_no_death, host_setup, restore),
        cmocka_unit_test_setup_teardown(a_refusal_says_who_had_it, host_setup, restore),
    };

    return test_run(tests, NULL, NULL);
}
