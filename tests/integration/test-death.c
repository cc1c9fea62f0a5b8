/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I6, no timeout takes data: what ends a session is the death of its process, at once and whatever hides it, and
 * nothing that a living process may suffer.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define SIZE (2 * MIB)

/* so short that a timeout that takes data would take it */
static const char short_grace[] = "[session]\ngrace = 50ms\nstall_timeout = 100ms\n";

static void wait_for_twice_the_grace(void)
{
    struct timespec a_while = {.tv_nsec = 200 * 1000000L};

    nanosleep(&a_while, NULL);
}

struct client {
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    void *p;
    uint64_t session;
};

static struct client client_with_a_buffer(const char *socket)
{
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct client client = {.ctx = broker_connect_in_child(socket)};

    CHECK_DONE(memclient_alloc(client.ctx, SIZE, NULL, &client.buf));
    CHECK_DONE(memclient_map(client.buf, NULL, &client.p));
    pattern_write(client.p, SIZE, 5);
    CHECK_DONE(memclient_context_query(client.ctx, &connection));
    client.session = connection.session;
    return client;
}

static void check_has_all(const struct client *client)
{
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    CHECK(pattern_holds(client->p, SIZE, 5));
    CHECK_DONE(memclient_context_query(client->ctx, &connection));
    CHECK(connection.session == client->session);
    CHECK_DONE(memclient_buffer_query(client->buf, &info));
    CHECK(info.state == MEMCLIENT_BUFFER_STATE_LIVE);
    CHECK(info.holds == 1);
}

/* ---- alive ------------------------------------------------------------------------------------------------------- */

static void work_and_be_stopped(int channel, void *context)
{
    struct client client = client_with_a_buffer(context);

    tell(channel);
    hear(channel);
    CHECK_DONE(memclient_broker_ping(client.ctx));
    check_has_all(&client);
    memclient_buffer_unref(client.buf);
    memclient_context_close(client.ctx);
}

static void I6_a_stopped_client_keeps_all(void **state)
{
    struct broker_process *broker = broker_for_test(short_grace);
    struct memclient_context *ctx = broker_connect(broker);
    struct child child;

    child_start(&child, work_and_be_stopped, broker->socket);
    child_hear(&child);
    assert_ok(kill(child.pid, SIGSTOP));
    wait_for_twice_the_grace();
    assert_int_equal(broker_status(ctx).buffers, 1);
    assert_int_equal(broker_status(ctx).sessions, 2);
    assert_ok(kill(child.pid, SIGCONT));
    child_tell(&child);
    child_finish(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* As daemons do that tidy up: every descriptor closed, the library's connection too. */
static void close_everything_else(int channel)
{
    for (int fd = 3; fd < 200; fd++)
        if (fd != channel)
            close(fd);
}

static void work_and_lose_the_connection(int channel, void *context)
{
    struct memclient_map_options not_home = MEMCLIENT_MAP_OPTIONS_INIT;
    struct client client = client_with_a_buffer(context);
    unsigned before;
    void *again;

    not_home.flags = MEMCLIENT_MAP_NOT_HOME;
    close_everything_else(channel);
    before = fd_count();
    /* others get the numbers now: they are neither to be written to, nor to be mapped, nor to be closed */
    for (size_t i = 0; i < 100; i++)
        CHECK(open("/dev/zero", O_RDWR | O_CLOEXEC) >= 0);
    tell(channel);
    hear(channel);
    CHECK(pattern_holds(client.p, SIZE, 5));
    /* the first call may say that the connection was lost; then it is made anew */
    if (memclient_broker_ping(client.ctx) < 0)
        CHECK_DONE(memclient_broker_ping(client.ctx));
    check_has_all(&client);
    CHECK_DONE(memclient_map(client.buf, &not_home, &again));
    CHECK(pattern_holds(again, SIZE, 5));
    memclient_buffer_unref(client.buf);
    memclient_context_close(client.ctx);
    CHECK(fd_count() == before + 100);
}

static void I6_losing_the_connection_ends_nothing(void **state)
{
    struct broker_process *broker = broker_for_test(short_grace);
    struct memclient_context *ctx = broker_connect(broker);
    struct child child;

    child_start(&child, work_and_lose_the_connection, broker->socket);
    child_hear(&child);
    wait_for_twice_the_grace();
    assert_int_equal(broker_status(ctx).buffers, 1);
    assert_int_equal(broker_status(ctx).sessions, 2);
    child_tell(&child);
    child_finish(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void work_and_become_another_program(int channel, void *context)
{
    struct client client = client_with_a_buffer(context);

    (void)client;
    tell(channel);
    hear(channel);
    execl("/bin/sleep", "sleep", "300", NULL);
    _exit(EXIT_FAILURE);
}

/* The process lives, but nothing of the buffer is open or mapped anywhere: after the grace the session ends. */
static void after_exec_nothing_is_kept_longer_than_the_grace(void **state)
{
    struct broker_process *broker = broker_for_test(short_grace);
    struct child child;

    child_start(&child, work_and_become_another_program, broker->socket);
    child_hear(&child);
    child_tell(&child);
    broker_wait_until_empty(broker);
    assert_int_equal(waitpid(child.pid, NULL, WNOHANG), 0);
    child_kill(&child);
    broker_finish(broker);
}

/* ---- dead -------------------------------------------------------------------------------------------------------- */

static void hold_much(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_reservation *reservation;
    struct memclient_token token;
    struct memclient_buffer *buf;
    void *p;

    for (size_t i = 0; i < 32; i++) {
        char name[16];

        CHECK_DONE(memclient_alloc(ctx, 2 * MIB, NULL, &buf));
        CHECK_DONE(memclient_map(buf, NULL, &p));
        CHECK_DONE(memclient_share(buf, NULL, &token));
        snprintf(name, sizeof(name), "free/%zu", i);
        options.policy = MEMCLIENT_NAME_FREE;
        CHECK_DONE(memclient_bind_name(buf, name, &options));
        CHECK_DONE(memclient_reserve(ctx, 16 * MIB, NULL, &reservation));
    }
    tell(channel);
    hear(channel);
}

static void I6_a_killed_client_leaves_nothing(void **state)
{
    struct broker_process *broker = broker_for_test(NULL); /* a grace of a minute: it must not matter */
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;
    struct child child;
    void *p;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    pattern_write(p, SIZE, 6);
    child_start(&child, hold_much, broker->socket);
    child_hear(&child);
    assert_int_equal(broker_status(ctx).buffers, 33);
    child_kill_unreaped(&child); /* a zombie is dead enough */
    assert_true(WAIT_UNTIL(broker_status(ctx).bytes == SIZE));
    assert_int_equal(broker_status(ctx).sessions, 1);
    assert_true(pattern_holds(p, SIZE, 6));
    child_kill(&child);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void fork_and_wait(int channel, void *context)
{
    struct client client = client_with_a_buffer(context);
    pid_t grandchild = fork();

    (void)client;
    CHECK(grandchild >= 0);
    if (grandchild == 0) {
        /* it holds all that was inherited, the connection too, and closes nothing */
        for (;;)
            pause();
    }
    CHECK(pass_bytes(channel, &grandchild, sizeof(grandchild)));
    hear(channel);
}

static void I6_a_child_that_holds_the_connection_hides_no_death(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct child child;
    pid_t grandchild;

    child_start(&child, fork_and_wait, broker->socket);
    assert_true(take_bytes(child.channel, &grandchild, sizeof(grandchild)));
    child_kill(&child);
    assert_true(WAIT_UNTIL(broker_status(ctx).sessions == 1));
    /* what the grandchild has mapped stays (I4), until it goes as well */
    assert_true(WAIT_UNTIL(broker_status(ctx).buffers_detached == 1));
    assert_ok(kill(grandchild, SIGKILL));
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- a broker that does not answer ------------------------------------------------------------------------------- */

/* A deadline is the caller's; what the broker grants afterwards is nobody's, and is given back. */
static void I5_what_comes_after_the_deadline_is_given_back(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx, *other = broker_connect(broker);
    struct memclient_reservation *res;
    struct memclient_buffer *buf, *kept;
    struct memclient_token token;
    uint64_t sizes[8] = {1, 1, 1, 1, MIB, 1, 1, 1};
    struct memclient_buffer *bufs[8];

    assert_done(memclient_alloc(other, SIZE, NULL, &kept));
    assert_done(memclient_share(kept, NULL, &token));
    options.socket = broker->socket;
    options.deadline_ms = 100;
    /* on a machine that is busy that is too little for a greeting, too, now and then */
    assert_true(WAIT_UNTIL(memclient_context_open(&options, &ctx) == 0));
    assert_ok(kill(broker_child(broker), SIGSTOP));
    assert_refused(memclient_alloc(ctx, SIZE, NULL, &buf), ETIMEDOUT);
    assert_refused(memclient_alloc_many(ctx, 8, sizes, NULL, bufs), ETIMEDOUT);
    assert_refused(memclient_open_token(ctx, &token, 0, &buf), ETIMEDOUT);
    assert_refused(memclient_reserve(ctx, SIZE, NULL, &res), ETIMEDOUT);
    assert_ok(kill(broker_child(broker), SIGCONT));
    /* without a thread of its own the library finds a late answer when it looks for the next one */
    assert_true(WAIT_UNTIL(memclient_broker_ping(ctx) == 0 && broker_status(other).buffers == 1));
    assert_true(WAIT_UNTIL(memclient_broker_ping(ctx) == 0 && broker_status(other).reservations == 0));
    assert_true(WAIT_UNTIL(memclient_broker_ping(ctx) == 0 && broker_info(kept).holds == 1));
    broker_check(broker);
    memclient_buffer_unref(kept);
    memclient_context_close(ctx);
    memclient_context_close(other);
    broker_finish(broker);
}

/* ---- what outlives its maker ------------------------------------------------------------------------------------- */

static void leave_something(int channel, void *context)
{
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_name_options names = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_token tokens[2];
    struct memclient_buffer *buf;
    void *p;

    for (size_t i = 0; i < 4; i++) {
        CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &buf));
        CHECK_DONE(memclient_map(buf, NULL, &p));
        pattern_write(p, SIZE, 10 + i);
        switch (i) {
        case 0:
            CHECK_DONE(memclient_bind_name(buf, "left/kept", NULL));
            break;
        case 1:
            names.policy = MEMCLIENT_NAME_KEEP_FOR;
            names.keep_ms = 100;
            CHECK_DONE(memclient_bind_name(buf, "left/for-a-while", &names));
            break;
        case 2:
            terms.flags = MEMCLIENT_TOKEN_KEEPING;
            terms.uses = 1;
            CHECK_DONE(memclient_share(buf, &terms, &tokens[0]));
            break;
        default:
            CHECK_DONE(memclient_share(buf, NULL, &tokens[1])); /* a weak one */
            break;
        }
    }
    CHECK(pass_bytes(channel, tokens, sizeof(tokens)));
    hear(channel);
    /* no good-bye: as a crash */
    _exit(0);
}

static void names_and_keeping_tokens_outlive_their_maker(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_token tokens[2];
    struct memclient_buffer *buf, *none;
    struct child child;
    void *p;

    child_start(&child, leave_something, broker->socket);
    assert_true(take_bytes(child.channel, tokens, sizeof(tokens)));
    child_tell(&child);
    child_finish(&child);
    assert_true(WAIT_UNTIL(broker_status(ctx).sessions == 1));

    assert_true(WAIT_UNTIL(memclient_open_token(ctx, &tokens[1], 0, &none) == -ESTALE));
    assert_true(WAIT_UNTIL(memclient_open_name(ctx, "left/for-a-while", 0, &none) == -ENOENT));

    assert_done(memclient_open_name(ctx, "left/kept", 0, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    assert_true(pattern_holds(p, SIZE, 10));
    memclient_buffer_unref(buf);
    assert_done(memclient_unmap(ctx, p, 0));
    assert_done(memclient_unbind_name(ctx, "left/kept"));
    assert_refused(memclient_open_name(ctx, "left/kept", 0, &none), ENOENT);

    assert_done(memclient_open_token(ctx, &tokens[0], 0, &buf));
    assert_done(memclient_map(buf, NULL, &p));
    assert_true(pattern_holds(p, SIZE, 12));
    assert_refused(memclient_open_token(ctx, &tokens[0], 0, &none), EKEYEXPIRED);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* free, keep for a time that is long and one that is short, persist */
static void leave_names(int channel, void *context)
{
    static const struct {
        const char *name;
        unsigned policy;
        uint64_t keep_ms;
    } names[] = {
        {"free", MEMCLIENT_NAME_FREE, 0},
        {"long", MEMCLIENT_NAME_KEEP_FOR, 3600 * 1000},
        {"short", MEMCLIENT_NAME_KEEP_FOR, 100},
        {"persists", MEMCLIENT_NAME_KEEP, 0},
    };
    struct memclient_context *ctx = broker_connect_in_child(context);

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct memclient_name_options options = MEMCLIENT_NAME_OPTIONS_INIT;
        struct memclient_buffer *buf;

        options.policy = names[i].policy;
        options.keep_ms = names[i].keep_ms;
        CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &buf));
        CHECK_DONE(memclient_bind_name(buf, names[i].name, &options));
    }
    tell(channel);
    hear(channel);
}

static void policies_go_on_when_brokers_die(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf, *none;
    struct child child;

    child_start(&child, leave_names, broker->socket);
    child_hear(&child);
    broker_kill_child(broker);
    /* while its binder lives no time begins */
    assert_int_equal(broker_status(ctx).names, 4);
    child_kill(&child);
    broker_kill_child(broker);
    assert_true(WAIT_UNTIL(broker_status(ctx).names <= 3));
    broker_kill_child(broker);
    assert_true(WAIT_UNTIL(broker_status(ctx).names == 2));
    assert_refused(memclient_open_name(ctx, "free", 0, &none), ENOENT);
    assert_refused(memclient_open_name(ctx, "short", 0, &none), ENOENT);
    assert_true(WAIT_UNTIL(broker_buffers(ctx) == 2));
    broker_kill_child(broker);
    assert_int_equal(broker_status(ctx).names, 2);
    assert_done(memclient_open_name(ctx, "long", 0, &buf));
    memclient_buffer_unref(buf);
    assert_done(memclient_open_name(ctx, "persists", 0, &buf));
    memclient_buffer_unref(buf);
    assert_done(memclient_unbind_name(ctx, "long"));
    assert_done(memclient_unbind_name(ctx, "persists"));
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I6_a_stopped_client_keeps_all),
        at_broker(I6_losing_the_connection_ends_nothing),
        at_broker(after_exec_nothing_is_kept_longer_than_the_grace),
        at_broker(I6_a_killed_client_leaves_nothing),
        at_broker(I6_a_child_that_holds_the_connection_hides_no_death),
        at_broker(I5_what_comes_after_the_deadline_is_given_back),
        at_broker(names_and_keeping_tokens_outlive_their_maker),
        at_broker(policies_go_on_when_brokers_die),
    };

    return test_run(tests, NULL, NULL);
}
