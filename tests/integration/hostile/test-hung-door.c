/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs show descriptors that nobody can close, so that the doors of their users hang. What goes on beside them:
 * other programs of that user, the accounts, whatever an administrator or service manager does with the broker, and
 * the keeper where it is the first process of a container.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "tests/integration/hostile/doors.h"
#include "tests/support/fuse.h"

#define SIZE        (100 * KIB)
#define BUFFER_SIZE (1 << 20)

/* Processes that were killed and have not ended: of one user, and of all but administrators (daemon/door/doors.c). */
#define DOORS_MAX 128
/* Of users who make a door hang. */
#define USERS 200
/* Of the unit. */
#define TASKS_MAX 256
/* Threads that may come yet: those for what the kernel may keep waiting (daemon/work). */
#define THREADS_MORE 32

static struct fuse unclosable = FUSE_NULL;
static int alien = -1;
static int namespace_before = -1;
static struct child victim = {.channel = -1};

static void alien_open(void)
{
    fuse_start(&unclosable);
    alien = fuse_open(&unclosable);
    assert_ok(alien);
}

/* What hangs goes on. */
static void alien_close(void)
{
    fuse_stop(&unclosable);
    alien = fd_close(alien);
}

/* Whatever has failed. */
static int teardown(void **state)
{
    alien_close();
    /* a process that nobody has taken note of keeps its container, too */
    if (victim.channel >= 0)
        child_kill(&victim);
    if (namespace_before >= 0)
        (void)setns(namespace_before, CLONE_NEWPID);
    namespace_before = fd_close(namespace_before);
    unsetenv("MEMORYD");
    return broker_cleanup(state);
}

/* ---- other programs of that user --------------------------------------------------------------------------------- */

/* Hangs itself, too: the library closes a duplicate. */
static void show_what_hangs(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *buf;
    int fd = fuse_open(&unclosable);

    (void)channel;
    CHECK(fd >= 0);
    (void)memclient_import_fd(ctx, fd, &buf);
}

static void I8_a_door_that_hangs_is_left(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf, *again;
    struct child child;
    int fd;

    (void)state;
    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    fuse_start(&unclosable);
    assert_done(memclient_import_fd(ctx, fd, &again));
    memclient_buffer_unref(again);
    child_start(&child, show_what_hangs, broker->socket);
    assert_true(WAIT_UNTIL(fuse_flushes(&unclosable) == 2));
    assert_done(memclient_import_fd(ctx, fd, &again));
    memclient_buffer_unref(again);
    assert_int_equal(fuse_flushes(&unclosable), 2);
    fuse_stop(&unclosable);
    child_kill(&child);
    close(fd);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

/* The door of that user, of which none hangs yet. A status if it has none. */
static uint32_t hang_a_door(struct wire *wire)
{
    unsigned before = fuse_flushes(&unclosable);
    uint32_t status;
    FD_AUTO int door = doors_ask(wire, &status);

    if (door < 0)
        return status;
    doors_show(door, DOOR_IMPORT, alien);
    assert_true(WAIT_UNTIL(fuse_flushes(&unclosable) > before));
    return STATUS_OK;
}

/* Through a door, and back. */
static uint32_t adopt(struct wire *wire)
{
    FD_AUTO int memory = memfd_create("honest", MFD_CLOEXEC);
    Memoryd__V1__AdoptRequest m = MEMORYD__V1__ADOPT_REQUEST__INIT;
    uint32_t status;

    assert_ok(ftruncate(memory, 4096));
    status = doors_show_and_hear(wire, DOOR_ADOPT, memory, &m.ticket);
    if (!status)
        (void)wire_do(wire, METHOD_ADOPT, &m.base, STATUS_OK);
    return status;
}

/* ---- the accounts ------------------------------------------------------------------------------------------------ */

/* A buffer of the attacker's, by a descriptor. Its session has it no more. */
static int take_buffer(struct wire *wire)
{
    Memoryd__V1__AllocRequest alloc = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__ReleaseRequest release = MEMORYD__V1__RELEASE_REQUEST__INIT;
    uint64_t size = BUFFER_SIZE, id;
    struct wire_packet request, *reply;
    const Memoryd__V1__Buffers *buffers;
    int fd;

    alloc.sizes = &size;
    alloc.n_sizes = 1;
    alloc.flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    wire_request(wire, &request, METHOD_ALLOC, &alloc.base);
    reply = wire_call(wire, &request);
    assert_int_equal(reply->n_fds, 1);
    fd = reply->fds[0];
    buffers = wire_message(reply);
    id = buffers->ids[0];
    release.buffers = &id;
    release.n_buffers = 1;
    (void)wire_do(wire, METHOD_RELEASE, &release.base, STATUS_OK);
    return fd;
}

/* Are these all that memctl says of leaks? */
static bool leaks_are(const struct broker_process *broker, const char *filter)
{
    const char *builddir = getenv("builddir");
    char command[600];

    snprintf(command, sizeof(command), "MEMORYD_SOCKET=%s %s/client/memctl/memctl --json leaks | jq -e '%s' >/dev/null",
             broker->socket, builddir ? builddir : ".", filter);
    return system(command) == 0; /* NOLINT */
}

/* In a process of its own: whoever has what cannot be closed open can execute no program, like memctl. */
static void leave_a_buffer_in_a_door(int channel, void *context)
{
    struct wire wire;
    uint32_t status;
    int file = fuse_open(&unclosable);
    int door, buffer;

    CHECK(file >= 0);
    wire_open_as(&wire, context, UID_STRANGER);
    door = doors_ask(&wire, &status);
    buffer = take_buffer(&wire);
    /* one too many, so that both are closed, in this order */
    CHECK(fd_send(door, "", 1, (const int[]){file, buffer}, 2, 0) == 1);
    CHECK(WAIT_UNTIL(fuse_flushes(&unclosable) == 1));
    close(buffer);
    wire_close(&wire);
    tell(channel);
    for (;;)
        pause();
}

/* Only a process of the broker has that memory, and cannot end: its user pays, and one sees who has it. */
static void I4_what_a_hung_door_has_is_charged_and_shown(void **state)
{
    struct broker_process *broker = broker_for_test_as(UID_BROKER, NULL);
    pid_t server = broker_child(broker);
    struct child attacker;
    char wanted[200];

    fuse_start(&unclosable);
    child_start(&attacker, leave_a_buffer_in_a_door, broker);
    child_hear(&attacker);
    assert_int_equal(doors_count(server), 1);
    snprintf(wanted, sizeof(wanted),
             "length == 1 and "
             "(.[0] | .bytes == %d and .charged_uid == %d and .open_in == [%d])",
             BUFFER_SIZE, UID_STRANGER, (int)doors_seen(0));
    assert_true(WAIT_UNTIL(leaks_are(broker, wanted)));
    broker_kill_child(broker);
    assert_true(WAIT_UNTIL(leaks_are(broker, wanted)));
    broker_check(broker);
    fuse_stop(&unclosable);
    child_kill(&attacker);
    broker_finish(broker);
}

/* ---- administrators and service managers ------------------------------------------------------------------------- */

static bool was_read_again(const struct broker_process *broker)
{
    return broker_said(broker, "was read again");
}

static void I8_a_broker_is_replaced_and_stopped_beside_doors_that_hang(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;
    struct wire attackers[2];
    pid_t before;

    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    alien_open();
    for (unsigned i = 0; i < 2; i++) {
        wire_open_as(&attackers[i], broker, UID_STRANGER + i);
        assert_int_equal(hang_a_door(&attackers[i]), STATUS_OK);
    }
    assert_int_equal(doors_count(broker_child(broker)), 2);
    assert_ok(kill(broker->pid, SIGHUP));
    assert_true(WAIT_UNTIL(was_read_again(broker)));
    before = broker_child(broker);
    assert_done(memclient_broker_upgrade(ctx));
    assert_true(WAIT_UNTIL(broker_child(broker) != before));
    assert_int_equal(broker_info(buf).holds, 1);
    /* the broker takes the keeper's place, and has others' doors for children */
    broker_kill_keeper(broker);
    assert_int_equal(broker_info(buf).holds, 1);
    broker_kill_child(broker);
    assert_int_equal(broker_info(buf).holds, 1);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    for (unsigned i = 0; i < 2; i++)
        wire_lose(&attackers[i]);
    assert_int_equal(doors_living(), 2);
    /* as a service manager does, each process */
    assert_ok(kill(-broker->group, SIGTERM));
    broker_stop(broker);
    assert_int_equal(doors_living(), 2);
    alien_close();
    assert_true(WAIT_UNTIL(!doors_living()));
}

/* ---- the first process of a container ---------------------------------------------------------------------------- */

/* Another memoryd for whoever starts one now: it has a /proc of its own, and so the numbers of its own processes. */
static void begin_container(void)
{
    const char *builddir = getenv("builddir"), *folder = getenv("TMPDIR");
    static char path[300];
    FILE *script;

    snprintf(path, sizeof(path), "%s/in-container", folder ? folder : "/tmp");
    script = fopen(path, "we");
    assert_non_null(script);
    fprintf(script,
            "#!/bin/sh\nexec unshare --mount sh -c 'mount -t proc proc /proc && exec \"$0\" \"$@\"' "
            "%s/daemon/memoryd \"$@\"\n",
            builddir ? builddir : ".");
    assert_int_equal(fclose(script), 0);
    assert_ok(chmod(path, 0755));
    setenv("MEMORYD", path, 1);
    namespace_before = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    assert_ok(namespace_before);
    if (unshare(CLONE_NEWPID) < 0)
        test_skip("there are no namespaces of processes here");
}

/* It is the keeper's from then on. */
static void leave_a_child_that_hangs(int channel, void *context)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (!pid)
        show_what_hangs(channel, context);
}

static void use_and_administrate(int channel, void *context)
{
    struct memclient_context *ctx = broker_connect_in_child(context);
    struct memclient_buffer *buf, *more;
    void *p;

    CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    pattern_write(p, SIZE, 5);
    for (;;) {
        tell(channel);
        hear(channel);
        CHECK_DONE(memclient_broker_upgrade(ctx));
        CHECK(pattern_holds(p, SIZE, 5));
        CHECK_DONE(memclient_alloc(ctx, SIZE, NULL, &more));
        memclient_buffer_unref(more);
    }
}

static void I8_a_keeper_of_a_container_goes_on_beside_what_hangs(void **state)
{
    struct broker_process *broker;
    pid_t server;
    int status;

    test_needs_root();
    fuse_start(&unclosable);
    begin_container();
    broker = broker_for_test(NULL);
    child_start(&victim, use_and_administrate, broker->socket);
    child_hear(&victim);
    server = broker_child(broker);
    child_run(leave_a_child_that_hangs, broker->socket);
    assert_true(WAIT_UNTIL(fuse_flushes(&unclosable) == 2)); /* the door and that child */
    assert_int_equal(doors_count(server), 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(kill(i ? broker_child(broker) : server, SIGKILL));
        child_tell(&victim);
        child_hear(&victim);
    }
    assert_ok(kill(broker->pid, SIGHUP));
    assert_true(WAIT_UNTIL(was_read_again(broker)));
    assert_ok(kill(broker->pid, SIGTERM));
    assert_true(WAIT_UNTIL(access(broker->socket, F_OK) < 0));
    child_kill(&victim);
    /* the kernel lets no container end before all of its processes have */
    assert_int_equal(waitpid(broker->pid, &status, WNOHANG), 0);
    fuse_stop(&unclosable);
    assert_true(WAIT_UNTIL(waitpid(broker->pid, &status, WNOHANG) == broker->pid));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    broker->pid = 0;
}

/* ---- many users -------------------------------------------------------------------------------------------------- */

/* Threads of all processes in that group. */
static unsigned tasks_of_group(pid_t group)
{
    unsigned n = 0;
    glob_t paths;

    assert_int_equal(glob("/proc/[0-9]*/task/[0-9]*/stat", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        char line[256] = "";
        FILE *f = fopen(paths.gl_pathv[i], "re");
        const char *rest = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
        int of;

        n += rest && sscanf(rest, ") %*c %*d %d", &of) == 1 && of == group;
        if (f)
            fclose(f);
    }
    globfree(&paths);
    return n;
}

static void I7_users_in_turn_have_so_many_doors_that_hang(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_buffer *buf;
    struct wire wire;
    unsigned n = 0;
    pid_t server = broker_child(broker);

    alien_open();
    for (unsigned i = 0; i < USERS; i++) {
        wire_open_as(&wire, broker, UID_STRANGER + i);
        n += hang_a_door(&wire) == STATUS_OK;
        wire_close(&wire);
    }
    assert_int_equal(n, DOORS_MAX);
    assert_int_equal(doors_count(server), DOORS_MAX);
    assert_in_range(tasks_of_group(broker->group), DOORS_MAX, TASKS_MAX - THREADS_MORE);
    /* nobody else imports, but an administrator, and all else goes on */
    wire_open_as(&wire, broker, UID_STRANGER + USERS);
    assert_int_equal(adopt(&wire), STATUS_LIMIT);
    assert_done(memclient_alloc(ctx, SIZE, NULL, &buf));
    memclient_buffer_unref(buf);
    assert_int_equal(broker_child(broker), server);
    alien_close();
    assert_true(WAIT_UNTIL(adopt(&wire) == STATUS_OK));
    wire_close(&wire);
    memclient_context_close(ctx);
    broker_finish(broker);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(I8_a_door_that_hangs_is_left),
        TEST(I4_what_a_hung_door_has_is_charged_and_shown),
        TEST(I8_a_broker_is_replaced_and_stopped_beside_doors_that_hang),
        TEST(I8_a_keeper_of_a_container_goes_on_beside_what_hangs),
        TEST(I7_users_in_turn_have_so_many_doors_that_hang),
    };

    return test_run(tests, NULL, NULL);
}
