/* SPDX-License-Identifier: Apache-2.0 */
/* I4: a buffer ends when, and only when, nobody has it: the kernel is asked. I6: no timeout takes data. */
#include "proto/hold_cache.h"
#include "tests/unit/broker/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "mem/token.h"
#include "sys/peer.h"
#include "sys/sys.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define SIZE (UINT64_C(64) << 10)
#define RW   (RIGHT_READ | RIGHT_WRITE)

static uint32_t state_of(uint64_t admin, uint64_t buffer)
{
    struct buffer_info info;

    assert_int_equal(host_info(admin, buffer, &info), 0);
    return info.state;
}

static void never_exported_ends_at_once(void **state)
{
    uint64_t session = host_session(1), buffer;
    struct buffer_info info;

    assert_int_equal(host_alloc(session, SIZE - 1, 0, &buffer), 0);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_info(session, buffer, &info), 0);
    assert_int_equal(info.size, SIZE - 1);
    assert_int_equal(info.bytes, SIZE);
    assert_int_equal(info.state, 1);
    assert_int_equal(host_release(session, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_release(session, buffer), STATUS_STALE);
    assert_int_equal(host_release(session, buffer + 1000), STATUS_NO_SUCH_ID);
    assert_int_equal(host_info(session, buffer, &info), STATUS_STALE);
    assert_int_equal(host_check(session), 0);
}

static void I4_a_descriptor_in_flight_keeps_the_contents(void **state)
{
    uint64_t admin = host_session(1), maker = host_session(2), buffer, found;
    _cleanup_close_ int fd = -1, got = -1;
    uint64_t word = 0;
    int pair[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    fd = host_export(maker, buffer, RW);
    assert_int_equal(pwrite(fd, "contents", 8, 0), 8);
    assert_int_equal(fd_send_one(pair[0], fd), 1);
    fd = fd_close(fd);
    assert_int_equal(CALL(maker, op_goodbye), 0);
    host_settle();
    assert_int_equal(state_of(admin, buffer), 2);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(admin), 0);

    got = fd_receive_one(pair[1]);
    assert_true(got >= 0);
    assert_int_equal(pread(got, &word, 8, 0), 8);
    assert_memory_equal(&word, "contents", 8);
    /* it comes back to life for whoever brings it */
    assert_int_equal(host_import(admin, got, &found), 0);
    assert_int_equal(found, buffer);
    assert_int_equal(state_of(admin, buffer), 1);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(host_release(admin, buffer), 0);
    host_settle();
    assert_int_equal(state_of(admin, buffer), 2);
    got = fd_close(got);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);

    /* and one that is never read goes with its socket */
    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    fd = host_export(admin, buffer, RIGHT_READ);
    assert_int_equal(fd_send_one(pair[0], fd), 1);
    fd = fd_close(fd);
    assert_int_equal(host_release(admin, buffer), 0);
    host_settle();
    assert_int_equal(host_used(), SIZE);
    close(pair[0]);
    close(pair[1]);
    assert_true(HOST_UNTIL(host_used() == 0));
}

static void sleeper(int channel, void *context)
{
    (void)context;
    tell(channel);
    hear(channel);
}

static void I4_a_forked_mapping_keeps_the_contents(void **state)
{
    uint64_t admin = host_session(1), buffer;
    struct child child;
    int fd;
    void *p;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    fd = host_export(admin, buffer, RW);
    p = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    close(fd);
    child_start(&child, sleeper, NULL);
    child_hear(&child);
    assert_ok(munmap(p, SIZE));
    assert_int_equal(host_release(admin, buffer), 0);
    host_settle();
    assert_int_equal(state_of(admin, buffer), 2);
    assert_int_equal(host_used(), SIZE);
    child_kill(&child);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

static void I4_a_published_one_ends_as_well(void **state)
{
    uint64_t admin = host_session(1), buffer;
    int fd;
    void *p;

    assert_int_equal(host_alloc(admin, SIZE, BUFFER_PUBLISHABLE, &buffer), 0);
    assert_int_equal(CALL(admin, op_publish, buffer, false), 0);
    fd = host_export(admin, buffer, RIGHT_READ);
    p = map_shared(fd, SIZE, PROT_READ);
    assert_mapped(p);
    close(fd);
    assert_int_equal(host_release(admin, buffer), 0);
    host_settle();
    assert_int_equal(state_of(admin, buffer), 2);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
}

static void I4_an_inode_that_nobody_sees_stays_charged(void **state)
{
    uint64_t admin = host_session(1), buffer;
    _cleanup_close_ int fd = -1, path = -1;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    fd = host_export(admin, buffer, RIGHT_READ);
    path = fd_reopen(fd, O_PATH);
    assert_true(path >= 0);
    fd = fd_close(fd);
    assert_int_equal(host_release(admin, buffer), 0);
    host_settle();
    assert_int_equal(state_of(admin, buffer), 3);
    assert_int_equal(host_used(), SIZE);
    path = fd_close(path);
    assert_true(HOST_UNTIL(host_used() == 0));
}

static void destroying_ends_all_claims(void **state)
{
    uint64_t admin = host_session(1), other = host_session(2), buffer;
    const struct share_args terms = {.rights = RW, .flags = TOKEN_KEEPING, .uses = 1};
    uint8_t token[32];
    int fd;
    char *p;

    assert_int_equal(host_alloc(admin, SIZE, 0, &buffer), 0);
    assert_int_equal(host_bind(admin, buffer, "doomed", 0, 0), 0);
    assert_int_equal(host_share(admin, buffer, &terms, token), 0);
    fd = host_export(admin, buffer, RW);
    assert_int_equal(host_import(other, fd, NULL), 0);
    p = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    close(fd);
    *p = 'x';
    assert_int_equal(CALL(admin, op_destroy, buffer, false), 0);
    host_settle();
    assert_int_equal(host_lookup(admin, "doomed", 0, 0, NULL), STATUS_NO_SUCH_NAME);
    assert_int_equal(host_open(other, token, 0, NULL), STATUS_TOKEN_STALE);
    assert_int_equal(host_release(other, buffer), STATUS_STALE);
    assert_int_equal(state_of(admin, buffer), 2);
    assert_int_equal(*p, 'x');
    assert_int_equal(host_check(admin), 0);
    /* an administrator may take it away */
    assert_int_equal(CALL(admin, op_destroy, buffer, true), 0);
    assert_int_equal(*p, 0);
    assert_int_equal(host_used(), SIZE);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

static void the_charge_follows_the_oldest_hold(void **state)
{
    uint64_t admin = host_session(1), maker = host_session_of(2, getpid(), 5001),
             second = host_session_of(3, getpid(), 5002), third = host_session_of(4, getpid(), 5003), buffer;
    struct buffer_info info;
    const struct share_args terms = {.rights = RIGHT_READ};
    uint8_t token[32];

    assert_int_equal(host_alloc(maker, SIZE, 0, &buffer), 0);
    assert_int_equal(host_share(maker, buffer, &terms, token), 0);
    assert_int_equal(host_open(second, token, 0, NULL), 0);
    assert_int_equal(host_open(third, token, 0, NULL), 0);
    assert_int_equal(host_info(admin, buffer, &info), 0);
    assert_int_equal(info.charged_uid, 5001);
    assert_int_equal(info.holds, 3);
    assert_int_equal(host_release(maker, buffer), 0);
    assert_int_equal(host_info(admin, buffer, &info), 0);
    assert_int_equal(info.charged_uid, 5002);
    assert_int_equal(info.uid, 5001);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(CALL(second, op_goodbye), 0);
    host_settle();
    assert_int_equal(host_info(admin, buffer, &info), 0);
    assert_int_equal(info.charged_uid, 5003);
    assert_int_equal(host_check(admin), 0);
    assert_int_equal(host_release(third, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

static void I6_death_is_the_processs_and_nothing_else(void **state)
{
    uint64_t admin = host_session(1), victim, buffer;
    struct child child;
    struct buffer_info info;
    int fd;
    void *p;

    if (host_no_pidfds)
        test_skip("no pidfds here: is this valgrind?");
    child_start(&child, sleeper, NULL);
    child_hear(&child);
    victim = host_session_of(2, child.pid, getuid());
    assert_int_equal(host_alloc(victim, SIZE, 0, &buffer), 0);
    /* somebody, who might be the stopped child, has it mapped */
    fd = host_export(victim, buffer, RW);
    p = map_shared(fd, SIZE, PROT_READ);
    assert_mapped(p);
    close(fd);

    assert_ok(kill(child.pid, SIGSTOP));
    assert_int_equal(broker_connection_lost(host.broker, victim, (void *)2), 0);
    for (int i = 0; i < 20; i++)
        host_turn(10);
    assert_int_equal(host_info(admin, buffer, &info), 0);
    assert_int_equal(info.holds, 1);
    assert_int_equal(info.state, 1);

    child_kill(&child);
    assert_true(HOST_UNTIL(host_info(admin, buffer, &info) == 0 && info.holds == 0));
    assert_int_equal(info.state, 2);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

static void I6_a_lost_connection_ends_it_when_nothing_is_in_use(void **state)
{
    uint64_t admin = host_session(1), session = host_session(2), buffer, unused;
    int fd;
    void *p;

    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_int_equal(host_alloc(session, SIZE, 0, &unused), 0);
    fd = host_export(session, buffer, RW);
    p = map_shared(fd, SIZE, PROT_READ);
    assert_mapped(p);
    close(fd);
    assert_int_equal(broker_connection_lost(host.broker, session, (void *)2), 0);
    for (int i = 0; i < 10; i++)
        host_turn(10);
    assert_int_equal(host_used(), 2 * SIZE);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

static unsigned leases; /* asked for in this turn */

static int counted_lease(int fd, int type)
{
    leases++;
    return sys_kernel.set_lease(fd, type);
}

/* Else a user that loses thousands of connections at once, with thousands of buffers, would stop the loop. */
static void I7_a_few_buffers_are_asked_about_in_a_turn(void **state)
{
    enum { SESSIONS = 8, BUFFERS = 32 };
    static struct sys_calls counting;
    uint64_t admin = host_session(1), sessions[SESSIONS], buffer;
    const struct sys_calls *before = sys;

    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = host_session(2);
        for (int n = 0; n < BUFFERS; n++) {
            assert_int_equal(host_alloc(sessions[i], SIZE, 0, &buffer), 0);
            close(host_export(sessions[i], buffer, RW));
        }
    }
    counting = *before;
    counting.set_lease = counted_lease;
    sys = &counting;
    for (int i = 0; i < SESSIONS; i++)
        assert_int_equal(broker_connection_lost(host.broker, sessions[i], (void *)2), 0);
    do {
        leases = 0;
        host_turn(5);
        assert_in_range(leases, 0, SESSIONS * BUFFERS);
    } while (host_used());
    sys = before;
    assert_int_equal(host_check(admin), 0);
}

/* It cannot come back while it is stopped, and as long nothing is taken. */
static void I6_a_stopped_process_keeps_what_it_does_not_use(void **state)
{
    uint64_t admin = host_session(1), session, buffer;
    struct child child;
    int status;

    child_start(&child, sleeper, NULL);
    child_hear(&child);
    session = host_session_of(2, child.pid, geteuid());
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    assert_ok(kill(child.pid, SIGSTOP));
    assert_int_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
    assert_int_equal(broker_connection_lost(host.broker, session, (void *)2), 0);
    for (int i = 0; i < 20; i++)
        host_turn(10);
    assert_int_equal(host_used(), SIZE);
    assert_ok(kill(child.pid, SIGCONT));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
    child_kill(&child);
}

/* The next broker has the session, whenever its client makes a call again. */
static void I6_a_connection_that_goes_with_the_broker_ends_nothing(void **state)
{
    uint64_t admin = host_session(1), session = host_session(2), buffer;

    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);
    broker_announce_shutdown(host.broker);
    assert_int_equal(broker_connection_lost(host.broker, session, (void *)2), 0);
    for (int i = 0; i < 10; i++)
        host_turn(10);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_check(admin), 0);
}

/* Its client may keep it when the session has ended, and nobody is charged for it. */
static void I5_a_release_log_has_no_page_of_the_brokers(void **state)
{
    struct hello_args args = {.connection = (void *)1, .resume = host_session(1), .release_log = true};
    struct hello_result result;
    struct peer peer = PEER_NULL;
    struct stat st;
    int log;

    memcpy(args.secret, host.secret, 16);
    args.peer = &peer;
    assert_int_equal(peer_init_pid(&peer, getpid()), 0);
    peer.uid = getuid();
    assert_int_equal(CALL(0, op_hello, &args, &result), 0);
    assert_true(result.release_log);
    log = host_open_release_log(result.session);
    assert_ok(fstat(log, &st));
    assert_int_equal(st.st_size, SESSION_MEMORY_SIZE);
    assert_int_equal(st.st_blocks, 0);
    /* what looks for releases there finds none, and makes none */
    assert_true(broker_next_release_log(host.broker, &(uint64_t){0}, &(struct broker_release_log){0}));
    assert_ok(fstat(log, &st));
    assert_int_equal(st.st_blocks, 0);
    assert_ok(close(log));
    peer_deinit(&peer);
}

static void I3_only_the_same_process_resumes(void **state)
{
    uint64_t admin = host_session(1), session = host_session(2), buffer;
    struct hello_args args = {.connection = (void *)3, .resume = session};
    struct hello_result result;
    struct peer peer = PEER_NULL;
    struct child child;

    memcpy(args.secret, host.secret, 16);
    args.peer = &peer;
    assert_int_equal(host_alloc(session, SIZE, 0, &buffer), 0);

    child_start(&child, sleeper, NULL);
    child_hear(&child);
    assert_int_equal(peer_init_pid(&peer, child.pid), 0);
    peer.uid = getuid();
    assert_int_equal(CALL(0, op_hello, &args, &result), STATUS_SESSION_REJECTED);
    assert_true(peer.pidfd >= 0);
    peer_deinit(&peer);
    child_kill(&child);

    assert_int_equal(peer_init_pid(&peer, getpid()), 0);
    peer.uid = getuid();
    args.secret[3] ^= 1;
    assert_int_equal(CALL(0, op_hello, &args, &result), STATUS_SESSION_REJECTED);
    args.secret[3] ^= 1;
    args.resume = session + 100;
    assert_int_not_equal(CALL(0, op_hello, &args, &result), 0);
    args.resume = session;
    /* also while the old connection is still there: the new one takes its place */
    assert_int_equal(CALL(0, op_hello, &args, &result), 0);
    assert_int_equal(result.session, session);
    assert_int_equal(host.n_disconnected, 1);
    assert_ptr_equal(host.disconnected[0], (void *)2);
    peer_deinit(&peer);

    /* news of the old connection's end, which come late, change nothing */
    assert_int_equal(broker_connection_lost(host.broker, session, (void *)2), 0);
    for (int i = 0; i < 10; i++)
        host_turn(10);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_release(session, buffer), 0);
    assert_int_equal(CALL(session, op_goodbye), 0);
    host_settle();
    assert_int_equal(CALL(0, op_hello, &args, &result), STATUS_STALE);
    assert_int_equal(host_check(admin), 0);
    peer_deinit(&peer);
}

/* Reads and throws away, or says that the kernel did. */
static bool lose_events, overflow_once;

static ssize_t lossy_read(int fd, void *buffer, size_t size)
{
    ssize_t n;

    if (fd != broker_watch_fd(host.broker))
        return sys_kernel.read(fd, buffer, size);
    if (overflow_once) {
        struct inotify_event event = {.wd = -1, .mask = IN_Q_OVERFLOW};

        overflow_once = false;
        lose_events = false;
        memcpy(buffer, &event, sizeof(event));
        return sizeof(event);
    }
    do
        n = sys_kernel.read(fd, buffer, size);
    while (lose_events && n > 0);
    return n;
}

/* Nothing is to be found out by asking, either. */
static int lossy_lease(int fd, int type)
{
    if (type != F_WRLCK || !lose_events)
        return sys_kernel.set_lease(fd, type);
    errno = EAGAIN;
    return -1;
}

/* Whoever ends it, the two sides forget each other at once: afterwards the connection may be freed. */
static void an_ended_session_forgets_its_connection(void **state)
{
    uint64_t admin = host_session(1), leaves, dies, buffer;

    leaves = host_session(2);
    dies = host_session(3);
    assert_int_equal(CALL(leaves, op_subscribe, 4), 0);
    assert_int_equal(host_alloc(leaves, SIZE, 0, &buffer), 0);
    assert_int_equal(host_bind(leaves, buffer, "gone", 1, 0), 0);
    host.n_events = 0;
    assert_int_equal(CALL(leaves, op_goodbye), 0);
    assert_int_equal(host.n_disconnected, 1);
    assert_ptr_equal(host.disconnected[0], (void *)2);
    assert_int_equal(broker_session_exited(host.broker, dies), 0);
    assert_int_equal(host.n_disconnected, 2);
    assert_ptr_equal(host.disconnected[1], (void *)3);
    assert_int_equal(CALL(dies, op_subscribe, 0), STATUS_STALE);
    host_settle();
    assert_int_equal(host.n_disconnected, 2);
    assert_int_equal(host.n_events, 0);
    assert_int_equal(host_check(admin), 0);
}

static void I4_an_overflow_loses_nothing(void **state)
{
    static struct sys_calls lossy;
    enum { N = 40 };
    uint64_t admin = host_session(1), buffers[N];
    int fds[N], paths[N];

    lossy = sys_kernel;
    lossy.read = lossy_read;
    lossy.set_lease = lossy_lease;
    sys = &lossy;
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(host_alloc(admin, 4096, 0, &buffers[i]), 0);
        fds[i] = host_export(admin, buffers[i], RIGHT_READ);
        paths[i] = i % 2 ? fd_reopen(fds[i], O_PATH) : -1;
        assert_int_equal(host_release(admin, buffers[i]), 0);
    }
    host_settle();
    assert_int_equal(host_used(), N * 4096);
    /* every event of these closes is lost */
    lose_events = true;
    for (unsigned i = 0; i < N; i++)
        close(fds[i]);
    for (int i = 0; i < 5; i++)
        host_turn(5);
    assert_int_equal(host_used(), N * 4096);
    overflow_once = true;
    assert_int_equal(broker_watch_ready(host.broker), 0);
    assert_true(HOST_UNTIL(host_used() == N / 2 * 4096));
    for (unsigned i = 1; i < N; i += 2)
        close(paths[i]);
    assert_true(HOST_UNTIL(host_used() == 0));
    sys = &sys_kernel;
    assert_int_equal(host_check(admin), 0);
}

static void I4_who_has_it_is_not_known_and_its_contents_stay(void **state)
{
    static struct sys_calls silent;
    uint64_t admin = host_session(1), holder = host_session(2), buffer, other;
    struct buffer_info info;
    char *p, word = 'y';
    int fd, forced;

    silent = sys_kernel;
    silent.set_lease = host_no_lease;
    sys = &silent;
    assert_int_equal(host_alloc(holder, SIZE, 0, &buffer), 0);
    fd = host_export(holder, buffer, RW);
    p = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    *p = 'x';
    assert_int_equal(host_release(holder, buffer), 0);
    host_settle();
    /* it is charged as long as somebody has it, and since when is told */
    assert_int_equal(host_info(admin, buffer, &info), 0);
    assert_int_equal(info.state, 3);
    assert_true(info.detached_ms != 0);
    assert_int_equal(host_used(), SIZE);
    assert_int_equal(host_import(admin, fd, NULL), STATUS_FD_FOREIGN);
    assert_true(strstr(host_sentence, "does not say who has"));
    assert_int_equal(host_check(admin), 0);
    /* an administrator who insists takes the contents */
    assert_int_equal(host_alloc(holder, SIZE, 0, &other), 0);
    forced = host_export(holder, other, RW);
    assert_int_equal(pwrite(forced, "x", 1, 0), 1);
    assert_int_equal(CALL(admin, op_destroy, other, true), 0);
    assert_int_equal(pread(forced, &word, 1, 0), 1);
    assert_int_equal(word, 0);
    assert_int_equal(host_used(), 2 * SIZE);
    close(forced);
    assert_true(HOST_UNTIL(host_used() == SIZE));
    /* others whom the kernel does answer about are emptied as ever */
    sys = &sys_kernel;
    assert_int_equal(host_alloc(holder, SIZE, 0, &other), 0);
    close(host_export(holder, other, RIGHT_READ));
    host_settle();
    assert_int_equal(host_release(holder, other), 0);
    assert_true(HOST_UNTIL(host_used() == SIZE));
    assert_int_equal(*p, 'x');
    close(fd);
    assert_ok(munmap(p, SIZE));
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(host_check(admin), 0);
}

/* As a kernel does that was interrupted between the event of a close and its end. */
static unsigned still_busy, asked;

static int slow_lease(int fd, int type)
{
    if (type == F_WRLCK && still_busy > 0) {
        still_busy--;
        asked++;
        errno = EAGAIN;
        return -1;
    }
    return sys_kernel.set_lease(fd, type);
}

static void I4_a_close_that_was_told_too_early_is_asked_about_again(void **state)
{
    static struct sys_calls slow;
    uint64_t admin = host_session(1), buffer;
    int fd;

    slow = sys_kernel;
    slow.set_lease = slow_lease;
    sys = &slow;
    /* the last event comes when the claim has gone already */
    assert_int_equal(host_alloc(admin, 4096, 0, &buffer), 0);
    fd = host_export(admin, buffer, RIGHT_READ);
    assert_int_equal(host_release(admin, buffer), 0);
    host_settle();
    assert_int_equal(state_of(admin, buffer), 2);
    still_busy = 5;
    close(fd);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(still_busy, 0);
    /* or before that, and then none comes at all */
    assert_int_equal(host_alloc(admin, 4096, 0, &buffer), 0);
    fd = host_export(admin, buffer, RIGHT_READ);
    close(fd);
    host_settle();
    still_busy = 5;
    assert_int_equal(host_release(admin, buffer), 0);
    assert_true(HOST_UNTIL(host_used() == 0));
    assert_int_equal(still_busy, 0);
    /* but not for ever */
    assert_int_equal(host_alloc(admin, 4096, 0, &buffer), 0);
    fd = host_export(admin, buffer, RIGHT_READ);
    close(fd);
    host_settle();
    still_busy = UINT_MAX;
    asked = 0;
    assert_int_equal(host_release(admin, buffer), 0);
    assert_true(HOST_UNTIL(asked >= 11));
    assert_true(asked < 20);
    still_busy = 0;
    sys = &sys_kernel;
    assert_int_equal(host_check(admin), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)
        TEST(never_exported_ends_at_once),
        TEST(I4_a_descriptor_in_flight_keeps_the_contents),
        TEST(I4_who_has_it_is_not_known_and_its_contents_stay),
        TEST(I4_a_forked_mapping_keeps_the_contents),
        TEST(I4_a_published_one_ends_as_well),
        TEST(I4_an_inode_that_nobody_sees_stays_charged),
        TEST(I4_an_overflow_loses_nothing),
        TEST(I4_a_close_that_was_told_too_early_is_asked_about_again),
        TEST(an_ended_session_forgets_its_connection),
        TEST(destroying_ends_all_claims),
        TEST(the_charge_follows_the_oldest_hold),
        TEST(I6_death_is_the_processs_and_nothing_else),
        TEST(I6_a_lost_connection_ends_it_when_nothing_is_in_use),
        TEST(I7_a_few_buffers_are_asked_about_in_a_turn),
        TEST(I6_a_stopped_process_keeps_what_it_does_not_use),
        TEST(I6_a_connection_that_goes_with_the_broker_ends_nothing),
        TEST(I5_a_release_log_has_no_page_of_the_brokers),
        TEST(I3_only_the_same_process_resumes),
#undef TEST
    };

    return test_run(tests, NULL, NULL);
}
