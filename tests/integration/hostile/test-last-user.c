/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I8: a process of a stranger hangs in execve(): it has mapped a file in user space, with something to write, whose
 * server does not answer, and the kernel takes its old memory apart. Meanwhile whoever reads its /proc/PID/stat waits
 * as long. The broker needs to know of such a process who it is, and whether it is stopped, and serves others.
 */
#include "tests/integration/clients.h"
#include "tests/support/fuse.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

static const char short_grace[] = "[session]\ngrace = 50ms\n";

static struct fuse fuse = {.server = {.channel = -1}, .caches = true};

struct stranger {
    const char *socket;
    enum {
        STRANGER_IS_UNKNOWN,
        STRANGER_HAS_CONNECTED,
        STRANGER_HAD_A_SESSION,
    } kind;
};

static void stranger_connect(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0); /* not closed by execve() */

    CHECK(fd >= 0 && strlen(socket_path) < sizeof(address.sun_path));
    memcpy(address.sun_path, socket_path, strlen(socket_path));
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
}

static void stranger_begins_to_hang(int channel, void *context)
{
    const struct stranger *stranger = context;
    int file = fuse_open(&fuse);
    char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    CHECK(file >= 0 && mapped != MAP_FAILED);
    become(UID_STRANGER);
    if (stranger->kind == STRANGER_HAS_CONNECTED)
        stranger_connect(stranger->socket);
    if (stranger->kind == STRANGER_HAD_A_SESSION)
        (void)broker_connect_in_child(stranger->socket);
    tell(channel);
    hear(channel);
    fuse_write(file);
    mapped[0] = 1;
    /* what execve() closes it closes after it has hung */
    if (stranger->kind == STRANGER_HAD_A_SESSION)
        CHECK(close_range((unsigned)file + 1, ~0U, 0) == 0);
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    child_give_up("exec /bin/sleep", __FILE__, __LINE__);
}

/* One that can be made to hang, and what it connects to. */
static void stranger_start(struct child *child, struct stranger *stranger)
{
    child_start(child, stranger_begins_to_hang, stranger);
    child_hear(child);
}

static void stranger_hang(struct child *child)
{
    child_tell(child);
    assert_true(WAIT_UNTIL(fuse_writes(&fuse) > 0));
}

/* It ends when the server has, not before. */
static void stranger_end(struct child *child)
{
    assert_int_equal(waitpid(child->pid, NULL, WNOHANG), 0);
    fuse_stop(&fuse);
    child_kill(child);
}

/* Older kernels, on which the broker has to read stat. */
static void needs_inodes_of_pidfds(void)
{
    FD_AUTO int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    struct statfs fs;

    if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != PID_FS_MAGIC)
        test_skip("pidfds have no inodes of their own here, as from Linux 6.9 on");
}

static void start_server(void)
{
    fuse.caches = true;
    fuse_start(&fuse);
}

static int stop_server(void **state)
{
    fuse_stop(&fuse);
    return broker_cleanup(state);
}

static void I8_a_token_for_who_hangs(void **state)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct stranger stranger = {.kind = STRANGER_IS_UNKNOWN};
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    struct memclient_token token;
    struct child child;
    pid_t serves;

    needs_inodes_of_pidfds();
    start_server();
    broker = broker_for_test(NULL);
    serves = broker_child(broker);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, 4096, NULL, &buf));
    stranger_start(&child, &stranger);
    stranger_hang(&child);
    options.flags = MEMCLIENT_TOKEN_ONLY_PID;
    options.pid = child.pid;
    assert_done(memclient_share(buf, &options, &token));
    assert_int_equal(broker_child(broker), serves);
    stranger_end(&child);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I8_a_connection_of_who_hangs(void **state)
{
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct stranger stranger = {.kind = STRANGER_HAS_CONNECTED};
    struct child child;
    pid_t serves;

    needs_inodes_of_pidfds();
    start_server();
    broker = broker_for_test(NULL);
    serves = broker_child(broker);
    stranger.socket = broker->socket;
    /* it sees the stranger only when that hangs already */
    assert_ok(kill(serves, SIGSTOP));
    stranger_start(&child, &stranger);
    stranger_hang(&child);
    assert_ok(kill(serves, SIGCONT));
    ctx = broker_connect(broker);
    broker_check(broker);
    assert_int_equal(broker_child(broker), serves);
    stranger_end(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void I8_the_grace_of_who_hangs_ends(void **state)
{
    struct stranger stranger = {.kind = STRANGER_HAD_A_SESSION};
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child child;
    pid_t serves;

    start_server();
    broker = broker_for_test(short_grace);
    serves = broker_child(broker);
    stranger.socket = broker->socket;
    ctx = broker_connect(broker);
    stranger_start(&child, &stranger);
    assert_int_equal(broker_status(ctx).sessions, 2);
    stranger_hang(&child);
    assert_true(WAIT_UNTIL(broker_status(ctx).sessions == 1));
    assert_int_equal(broker_child(broker), serves);
    stranger_end(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void run_memctl_leaks(int channel, void *context)
{
    const struct broker_process *broker = context;
    const char *builddir = getenv("builddir");
    char command[600];

    CHECK(!setenv("MEMORYD_SOCKET", broker->socket, 1));
    (void)snprintf(command, sizeof(command), "exec %s/client/memctl/memctl leaks >/dev/null",
                   builddir ? builddir : ".");
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
}

/* An administrator who looks for memory that nobody gives back looks into every process, and passes over this one. */
static void I8_leaks_are_found_beside_who_hangs(void **state)
{
    struct stranger stranger = {.kind = STRANGER_IS_UNKNOWN};
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    struct child child, memctl;
    int fd, status = -1;

    start_server();
    broker = broker_for_test(NULL);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, 4096, NULL, &buf));
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    memclient_buffer_unref(buf);
    assert_true(WAIT_UNTIL(broker_status(ctx).buffers_detached == 1));
    stranger_start(&child, &stranger);
    stranger_hang(&child);
    child_start(&memctl, run_memctl_leaks, broker);
    assert_true(WAIT_UNTIL(waitpid(memctl.pid, &status, WNOHANG) == memctl.pid));
    assert_int_equal(status, 0);
    close(memctl.channel);
    close(fd);
    stranger_end(&child);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(I8_a_token_for_who_hangs, stop_server),
        cmocka_unit_test_teardown(I8_a_connection_of_who_hangs, stop_server),
        cmocka_unit_test_teardown(I8_the_grace_of_who_hangs_ends, stop_server),
        cmocka_unit_test_teardown(I8_leaks_are_found_beside_who_hangs, stop_server),
    };

    return test_run(tests, NULL, NULL);
}
