/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a broker, losing it, starting one. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/clients.h"

#define SIZE 65536

static int open_at(const char *path, struct memclient_context **ctx)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;

    options.socket = path;
    options.deadline_ms = 10000; /* one call waits for its end */
    return memclient_context_open(&options, ctx);
}

static void each_reason_for_no_broker_has_its_errno(void **state)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx = NULL;
    char path[300];

    assert_refused(open_at("/nonexistent/socket", &ctx), ENOENT);
    snprintf(path, sizeof(path), "%0200d", 0);
    assert_refused(open_at(path, &ctx), ENAMETOOLONG);
    options.autostart = 77;
    assert_refused(memclient_context_open(&options, &ctx), EINVAL);
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    assert_ok(unsetenv("MEMORYD_SOCKET"));
    if (access("/run/memoryd/memoryd.sock", F_OK))
        assert_refused(memclient_context_open(&options, &ctx), ENOENT);
    assert_ok(setenv("MEMORYD_SOCKET", "/nonexistent/socket", 1));
    assert_refused(memclient_context_open(NULL, &ctx), ENOENT);
    assert_ok(unsetenv("MEMORYD_SOCKET"));
    assert_null(ctx);
}

/* The broker of now has not given out that range: what is mapped there has no home that others could find. */
static void homes_are_not_in_what_was_reserved_before(struct memclient_context *ctx, struct memclient_reservation *res)
{
    struct memclient_alloc_options no_address = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf;
    void *at;

    no_address.flags = MEMCLIENT_ALLOC_NO_HOME;
    assert_done(memclient_alloc(ctx, SIZE, &no_address, &buf));
    options.address = memclient_reservation_address(res);
    assert_done(memclient_map(buf, &options, &at));
    assert_null(memclient_buffer_home(buf));
    assert_refused(memclient_make_home(buf), EADDRNOTAVAIL);
    assert_done(memclient_unmap(ctx, at, 0));
    memclient_buffer_unref(buf);
    assert_done(memclient_reservation_release(res));
}

static void a_broker_that_went_and_came_gets_a_new_session(void **state)
{
    struct broker_process broker, next;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buf = NULL, *other = NULL;
    struct memclient_reservation *res;
    struct memclient_context *ctx;
    unsigned fds = fd_count();
    void *p = NULL, *q = NULL;

    broker_start(&broker, NULL, 0);
    assert_done(open_at(broker.socket, &ctx));
    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    memset(p, 'x', SIZE);
    next = broker;
    broker_crash(&broker);
    /* it may come back, so a call waits for that as long as it may */
    assert_refused(memclient_broker_ping(ctx), ETIMEDOUT);
    /* memory that is mapped is there whatever becomes of the broker */
    assert_int_equal(((char *)p)[SIZE - 1], 'x');

    broker_start(&broker, NULL, 0);
    memclient_context_close(ctx);
    /* the same again with a client that lives through it */
    ctx = broker_connect(&broker);
    buf = memclient_buffer_unref(buf);
    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    assert_done(memclient_reserve(ctx, SIZE, NULL, &res));
    broker_crash(&broker);
    unlink(broker.config);
    unlink(broker.log);
    unlink(next.config);
    unlink(next.log);
    unlink(next.socket);
    {
        char path[sizeof(broker.socket)];

        memcpy(path, broker.socket, sizeof(path));
        broker_start(&next, NULL, 0);
        assert_ok(unlink(path));
        assert_ok(symlink(next.socket, path));
        assert_done(memclient_broker_ping(ctx));
        assert_refused(memclient_buffer_query(buf, &info), ESTALE);
        assert_done(memclient_alloc(ctx, SIZE, NULL, &other));
        assert_ptr_not_equal(other, buf);
        assert_done(memclient_unmap(ctx, p, 0));
        assert_done(memclient_map(other, NULL, &q));
        homes_are_not_in_what_was_reserved_before(ctx, res);
        memclient_buffer_unref(buf);
        memclient_buffer_unref(other);
        memclient_context_close(ctx);
        assert_ok(unlink(path));
    }
    broker_stop(&next);
    assert_int_equal(fd_count(), fds);
}

/* The library's own socket, which no function hands out. */
static void cut_connections(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        int type = 0;
        socklen_t size = sizeof(type);

        if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET)
            shutdown(fd, SHUT_RDWR);
    }
}

static void a_session_is_resumed_on_a_new_connection_I6(void **state)
{
    struct memclient_context_info before = MEMCLIENT_CONTEXT_INFO_INIT, after = before;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_reservation *res = NULL;
    struct memclient_buffer *buf = NULL;
    struct broker_process broker;
    struct memclient_context *ctx;
    void *p = NULL;

    broker_start(&broker, NULL, 0);
    ctx = broker_connect(&broker);
    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    assert_done(memclient_reserve(ctx, SIZE, NULL, &res));
    assert_done(memclient_context_query(ctx, &before));
    for (unsigned i = 0; i < 3; i++) {
        cut_connections();
        assert_done(memclient_buffer_query(buf, &info));
        assert_int_equal(info.holds, 1);
    }
    assert_done(memclient_context_query(ctx, &after));
    assert_int_equal(after.session, before.session);
    *(char *)p = 1;
    assert_done(memclient_unmap(ctx, p, 0));
    assert_done(memclient_reservation_release(res));
    memclient_buffer_unref(buf);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 0));
    broker_check(&broker);
    memclient_context_close(ctx);
    broker_stop(&broker);
}

struct busy {
    pthread_t thread;
    struct memclient_context *ctx;
    unsigned rounds; /* atomic */
    bool enough;     /* atomic */
    int result;      /* atomic */
};

static int one_round(struct memclient_context *ctx)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_token token;
    struct memclient_reservation *res = NULL;
    struct memclient_buffer *buf = NULL;
    void *p = NULL;
    int r;

    r = memclient_alloc(ctx, SIZE, NULL, &buf);
    if (!r)
        r = memclient_share(buf, NULL, &token);
    if (!r)
        r = memclient_map(buf, NULL, &p);
    if (!r)
        r = memclient_buffer_query(buf, &info);
    if (!r && info.holds != 1)
        r = -EBADE;
    if (!r)
        r = memclient_unmap(ctx, p, 0);
    memclient_buffer_unref(buf);
    if (!r)
        r = memclient_reserve(ctx, SIZE, NULL, &res);
    if (!r)
        r = memclient_reservation_release(res);
    return r;
}

static void *be_busy(void *data)
{
    struct busy *busy = data;

    while (!busy->result && !__atomic_load_n(&busy->enough, __ATOMIC_RELAXED)) {
        __atomic_store_n(&busy->result, one_round(busy->ctx), __ATOMIC_RELAXED);
        __atomic_add_fetch(&busy->rounds, 1, __ATOMIC_RELAXED);
    }
    if (busy->result)
        fprintf(stderr, "%s\n", memclient_error());
    return NULL;
}

/* False if one has failed. */
static bool span_of_rounds(struct busy busy[static 4], unsigned *least, unsigned *most)
{
    bool all_work = true;

    *least = UINT_MAX;
    *most = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned rounds = __atomic_load_n(&busy[i].rounds, __ATOMIC_RELAXED);

        *least = rounds < *least ? rounds : *least;
        *most = rounds > *most ? rounds : *most;
        all_work = all_work && !__atomic_load_n(&busy[i].result, __ATOMIC_RELAXED);
    }
    return all_work;
}

/* Whatever was under way was done once: nobody notices, and nothing is left. */
static void calls_of_many_threads_outlive_connections_and_brokers_I6(void **state)
{
    struct memclient_reservation *res = NULL;
    struct broker_process broker;
    struct busy busy[4];
    struct memclient_context *ctx;
    unsigned least = 0, most = 0, bar = 0, deaths = 0;

    broker_start(&broker, NULL, 0);
    ctx = broker_connect(&broker);
    for (unsigned i = 0; i < 4; i++) {
        busy[i] = (struct busy){.ctx = ctx};
        assert_int_equal(pthread_create(&busy[i].thread, NULL, be_busy, &busy[i]), 0);
    }
    while (least < 100 || deaths < 10) {
        cut_connections();
        wait_a_moment();
        if (!span_of_rounds(busy, &least, &most))
            break;
        /* no request is to meet two deaths */
        if (deaths < 10 && least > bar) {
            assert_ok(kill(broker_child(&broker), SIGKILL));
            deaths++;
            bar = most + 1;
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        __atomic_store_n(&busy[i].enough, true, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(busy[i].thread, NULL), 0);
        assert_int_equal(busy[i].result, 0);
    }
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 0));
    /* no reservation is left in the way */
    assert_done(memclient_reserve(ctx, SIZE, NULL, &res));
    assert_done(memclient_reservation_release(res));
    broker_check(&broker);
    memclient_context_close(ctx);
    broker_stop(&broker);
}

/* The socket is the keeper's, so there is always somebody to wait for. */
static void a_broker_that_dies_costs_a_call_nothing_but_time(void **state)
{
    struct broker_process broker;
    struct memclient_buffer *buf = NULL;
    struct memclient_context *ctx;
    void *p = NULL;

    broker_start(&broker, NULL, 0);
    ctx = broker_connect(&broker);
    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    memset(p, 'x', SIZE);
    for (unsigned i = 0; i < 5; i++) {
        assert_ok(kill(broker_child(&broker), SIGKILL));
        assert_done(memclient_broker_ping(ctx));
    }
    assert_int_equal(((char *)p)[SIZE - 1], 'x');
    assert_done(memclient_unmap(ctx, p, 0));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_stop(&broker);
}

/* ---- autostart --------------------------------------------------------------------------------------------------- */

static void start_and_tell(int channel, void *data)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct memclient_context *ctx = NULL;

    (void)data;
    hear(channel);
    CHECK_DONE(memclient_context_open(NULL, &ctx));
    CHECK_DONE(memclient_broker_query(ctx, &status));
    CHECK(write(channel, &status.keeper_pid, sizeof(status.keeper_pid)) == sizeof(status.keeper_pid));
    hear(channel);
    memclient_context_close(ctx);
}

/* If nothing is left of it, a client that would have started one does so again. The other's keeper. */
static int32_t goes_on_with_another_private_broker(int32_t keeper)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct memclient_context *ctx = NULL;

    assert_done(memclient_context_open(NULL, &ctx));
    assert_done(memclient_broker_query(ctx, &status));
    assert_int_equal(status.keeper_pid, keeper);
    assert_ok(kill(status.keeper_pid, SIGKILL));
    assert_ok(kill(status.broker_pid, SIGKILL));
    assert_done(memclient_broker_query(ctx, &status));
    assert_int_not_equal(status.keeper_pid, keeper);
    memclient_context_close(ctx);
    return status.keeper_pid;
}

static void many_starters_get_one_private_broker(void **state)
{
    enum { N = 4 };
    const char *builddir = getenv("builddir");
    const char *folder = getenv("TMPDIR");
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx = NULL;
    struct child starters[N];
    char runtime[300], path[4200];
    int32_t pid = 0;

    if (!access("/run/memoryd/memoryd.sock", F_OK))
        test_skip("the system's broker is running here, so no private one would be started");
    snprintf(runtime, sizeof(runtime), "%s/start.%d", folder ? folder : "/tmp", getpid());
    assert_ok(mkdir(runtime, 0700));
    snprintf(path, sizeof(path), "%s/daemon:%s", builddir ? builddir : ".", getenv("PATH"));
    assert_ok(setenv("PATH", path, 1));
    assert_ok(setenv("XDG_RUNTIME_DIR", runtime, 1));
    assert_ok(setenv("XDG_CONFIG_HOME", runtime, 1));
    assert_ok(setenv("MEMORYD_AUTOSTART", "0", 1));
    assert_refused(memclient_context_open(NULL, &ctx), ENOENT);
    assert_ok(setenv("MEMORYD_AUTOSTART", "1", 1));
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    assert_refused(memclient_context_open(&options, &ctx), ENOENT);

    for (unsigned i = 0; i < N; i++)
        child_start(&starters[i], start_and_tell, NULL);
    for (unsigned i = 0; i < N; i++)
        child_tell(&starters[i]);
    for (unsigned i = 0; i < N; i++) {
        int32_t its = 0;

        assert_true(wait_readable(starters[i].channel));
        assert_int_equal(read(starters[i].channel, &its, sizeof(its)), sizeof(its));
        if (pid)
            assert_int_equal(its, pid);
        pid = its;
    }
    for (unsigned i = 0; i < N; i++) {
        child_tell(&starters[i]);
        child_finish(&starters[i]);
    }
    pid = goes_on_with_another_private_broker(pid);
    assert_ok(kill(pid, SIGTERM));
    assert_true(WAIT_UNTIL(kill(pid, 0) < 0));
    snprintf(path, sizeof(path), "rm -rf '%s'", runtime);
    assert_int_equal(system(path), 0);
}

/* Instead of memoryd a script is started here, which writes down what it has open, and fails. */
static void a_started_broker_inherits_no_descriptors(void **state)
{
    static const char script[] = "#!/bin/sh\n"
                                 "open=$(for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done)\n"
                                 "echo \"$open\" >\"$XDG_RUNTIME_DIR/seen\"\n"
                                 "[ ! -e /proc/$$/fd/%d ] || echo more >>\"$XDG_RUNTIME_DIR/seen\"\n"
                                 "exit 1\n";
    static const char wanted[] = "/dev/null\n/dev/null\n/dev/null\n";
    const char *tmp = getenv("TMPDIR");
    struct memclient_context *ctx = NULL;
    char folder[300], path[4200], seen[100] = "";
    int ours = fcntl(STDIN_FILENO, F_DUPFD, 50); // NOLINT(android-cloexec-dup)
    FILE *file;

    if (!access("/run/memoryd/memoryd.sock", F_OK))
        test_skip("the system's broker is running here, so no private one would be started");
    snprintf(folder, sizeof(folder), "%s/spawn.%d", tmp ? tmp : "/tmp", getpid());
    assert_ok(mkdir(folder, 0700));
    snprintf(path, sizeof(path), "%s/memoryd", folder);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fprintf(file, script, ours) > 0);
    assert_ok(fchmod(fileno(file), 0755));
    assert_ok(fclose(file));
    snprintf(path, sizeof(path), "%s:%s", folder, getenv("PATH"));
    assert_ok(setenv("PATH", path, 1));
    assert_ok(setenv("XDG_RUNTIME_DIR", folder, 1));
    assert_ok(setenv("MEMORYD_AUTOSTART", "1", 1));
    assert_refused(memclient_context_open(NULL, &ctx), ECONNREFUSED);
    snprintf(path, sizeof(path), "%s/seen", folder);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(seen, 1, sizeof(seen) - 1, file) > 0);
    assert_ok(fclose(file));
    assert_string_equal(seen, wanted);
    close(ours);
    snprintf(path, sizeof(path), "rm -rf '%s'", folder);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_for_no_broker_has_its_errno),
        cmocka_unit_test(a_broker_that_went_and_came_gets_a_new_session),
        cmocka_unit_test(a_session_is_resumed_on_a_new_connection_I6),
        cmocka_unit_test(calls_of_many_threads_outlive_connections_and_brokers_I6),
        cmocka_unit_test(a_broker_that_dies_costs_a_call_nothing_but_time),
        cmocka_unit_test(many_starters_get_one_private_broker),
        cmocka_unit_test(a_started_broker_inherits_no_descriptors),
    };

    return test_run(tests, NULL, NULL);
}
