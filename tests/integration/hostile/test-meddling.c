/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a holder can do to a buffer besides reading and writing: locks, leases, opening it again to truncate it, and
 * userfaultfd over its mapping. And what a stranger can do to the processes of the broker.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define TIGHT "[pool tight]\nnodes = 0\ncapacity = 64M\n"
#define SIZE  MIB

static struct memclient_buffer *make(struct memclient_context *ctx, uint64_t size, unsigned flags)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;

    options.pool = "tight";
    options.flags = flags;
    options.wait_ms = PATIENCE_MS;
    CHECK_DONE(memclient_alloc(ctx, size, &options, &buf));
    return buf;
}

/* ---- locks, leases, truncating ----------------------------------------------------------------------------------- */

struct holder {
    uid_t uid;
    bool owns_inode;
};

/* All locks that there are, over all of it, as far as another one of this process is not in the way. */
static void lock_all(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

    CHECK(flock(fd, (type == F_RDLCK ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 || errno == EWOULDBLOCK);
    CHECK(fcntl(fd, F_OFD_SETLK, &lock) == 0 || errno == EAGAIN);
    CHECK(fcntl(fd, F_SETLK, &lock) == 0 || errno == EAGAIN);
}

static void no_leases(int fd, const struct holder *holder)
{
    /* T is open for writing, so not even the owner of the inode gets one: opening it would have to wait for that */
    CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_RDLCK), holder->owns_inode ? EAGAIN : EACCES);
    CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_WRLCK), holder->owns_inode ? EAGAIN : EACCES);
}

static void no_truncating(int fd, const struct holder *holder)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    CHECK_ERRNO(open(path, O_RDWR | O_TRUNC | O_CLOEXEC), holder->owns_inode ? EPERM : EACCES);
    CHECK_ERRNO(open(path, O_RDONLY | O_TRUNC | O_CLOEXEC), holder->owns_inode ? EPERM : EACCES);
    CHECK(ftruncate(fd, 0) < 0);
    CHECK(lseek(fd, 0, SEEK_END) == (off_t)SIZE);
}

static void lock_what_is_handed_over(int channel, void *context)
{
    const struct holder *holder = context;
    int writer = fd_receive_one(channel), reader = fd_receive_one(channel);

    if (holder->uid)
        become(holder->uid);
    CHECK(writer >= 0 && reader >= 0);
    lock_all(reader, F_RDLCK);
    lock_all(writer, F_WRLCK);
    no_leases(reader, holder);
    no_leases(writer, holder);
    no_truncating(writer, holder);
    tell(channel);
    hear(channel); /* the broker has done all it does */
    CHECK(close(reader) == 0);
    tell(channel);
    hear(channel);
    CHECK(close(writer) == 0);
    tell(channel);
    hear(channel);
}

static void locks_change_nothing(const struct holder *holder)
{
    struct broker_process *broker = broker_for_test(TIGHT);
    struct memclient_buffer *buf, *theirs;
    struct memclient_context *ctx, *other;
    struct memclient_token token;
    struct child child;
    int writer, reader;
    void *p;

    child_start(&child, lock_what_is_handed_over, (void *)holder);
    ctx = broker_connect(broker);
    other = broker_connect(broker);
    buf = make(ctx, SIZE, MEMCLIENT_ALLOC_PUBLISHABLE);
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &writer));
    assert_done(memclient_export_fd(buf, MEMCLIENT_READ, &reader));
    assert_int_equal(fd_send_one(child.channel, writer), 1);
    assert_int_equal(fd_send_one(child.channel, reader), 1);
    assert_ok(close(writer));
    child_hear(&child);
    assert_done(memclient_share(buf, NULL, &token));
    assert_done(memclient_open_token(other, &token, 0, &theirs));
    assert_done(memclient_map(theirs, NULL, &p));
    memset(p, 1, SIZE);
    assert_done(memclient_discard(buf, 0, 0));
    assert_true(all_zero(p, SIZE));
    assert_done(memclient_unmap(other, p, 0));
    assert_done(memclient_publish(buf, 0));
    memclient_buffer_unref(theirs);
    memclient_buffer_unref(buf);
    assert_ok(close(reader));
    /* who has it open keeps it, as always, and no longer */
    assert_done(memclient_broker_ping(ctx));
    assert_int_equal(broker_pool_used(ctx, "tight"), SIZE);
    child_tell(&child);
    child_hear(&child);
    assert_int_equal(broker_pool_used(ctx, "tight"), SIZE);
    child_tell(&child);
    child_hear(&child);
    assert_true(WAIT_UNTIL(broker_pool_used(ctx, "tight") == 0));
    child_tell(&child);
    child_finish(&child);
    memclient_context_close(other);
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void locks_of_a_stranger_change_nothing(void **state)
{
    test_needs_root();
    locks_change_nothing(&(struct holder){.uid = UID_STRANGER});
}

/* As with a private broker. Root may take a lease of any inode, its own or not. */
static void locks_of_the_brokers_own_user_change_nothing(void **state)
{
    locks_change_nothing(&(struct holder){.owns_inode = true});
}

/* ---- userfaultfd ------------------------------------------------------------------------------------------------- */

static void *touch(void *argument)
{
    *(volatile char *)argument = 1;
    return NULL;
}

/* What is reported: pages that are not there or not mapped, or writes. */
struct guard {
    const char *socket;
    uint64_t features;
    uint64_t modes;
};

/* Registers what there is of it, makes a thread hang in it, and waits to be killed. */
static void guard_a_mapping(int channel, void *context)
{
    const struct guard *guard = context;
    struct uffdio_api api = {.api = UFFD_API, .features = guard->features};
    int pages = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_register range = {.mode = guard->modes};
    struct uffdio_writeprotect protect = {.mode = UFFDIO_WRITEPROTECT_MODE_WP};
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    pthread_t thread;
    uint64_t id;
    void *p;

    if (pages < 0 || ioctl(pages, UFFDIO_API, &api) < 0)
        child_skip("there is no userfaultfd for shared memory here");
    become(UID_STRANGER);
    ctx = broker_connect_in_child(guard->socket);
    buf = make(ctx, SIZE, MEMCLIENT_ALLOC_PUBLISHABLE);
    CHECK_DONE(memclient_map(buf, NULL, &p));
    if (guard->modes == UFFDIO_REGISTER_MODE_WP)
        memset(p, 1, SIZE);
    else
        CHECK(madvise(p, SIZE, MADV_DONTNEED) == 0);
    range.range = (struct uffdio_range){.start = (uintptr_t)p, .len = SIZE};
    CHECK(ioctl(pages, UFFDIO_REGISTER, &range) == 0);
    protect.range = range.range;
    CHECK(guard->modes != UFFDIO_REGISTER_MODE_WP || ioctl(pages, UFFDIO_WRITEPROTECT, &protect) == 0);
    CHECK(pthread_create(&thread, NULL, touch, p) == 0);
    CHECK(wait_readable(pages));
    id = memclient_buffer_id(buf);
    CHECK(write(channel, &id, sizeof(id)) == sizeof(id));
    hear(channel); /* it is killed */
}

static void guarded_mapping_stops_nobody(struct guard guard)
{
    struct broker_process *broker;
    struct memclient_buffer *buf, *rest;
    struct memclient_context *ctx;
    struct child child;
    uint64_t id;

    test_needs_root();
    broker = broker_for_test(TIGHT);
    ctx = broker_connect(broker);
    guard.socket = broker->socket;
    child_start(&child, guard_a_mapping, &guard);
    if (!take_bytes(child.channel, &id, sizeof(id))) {
        child_finish(&child);
        return;
    }
    assert_done(memclient_open_id(ctx, id, 0, &buf));
    assert_done(memclient_discard(buf, 0, 0));
    assert_refused(memclient_publish(buf, 0), EBUSY);
    memclient_buffer_unref(buf);
    assert_done(memclient_destroy_id(ctx, id, MEMCLIENT_DESTROY_FORCE));
    rest = make(ctx, 64 * MIB - SIZE, 0);
    assert_done(memclient_broker_ping(ctx));
    memclient_buffer_unref(rest);
    child_kill(&child);
    memclient_buffer_unref(make(ctx, 64 * MIB, 0));
    memclient_context_close(ctx);
    broker_finish(broker);
}

static void a_mapping_without_pages_stops_nobody(void **state)
{
    guarded_mapping_stops_nobody((struct guard){.features = UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_MINOR_SHMEM,
                                                .modes = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR});
}

static void a_mapping_that_may_not_be_written_stops_nobody(void **state)
{
    guarded_mapping_stops_nobody(
        (struct guard){.features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM, .modes = UFFDIO_REGISTER_MODE_WP});
}

/* ---- the processes ----------------------------------------------------------------------------------------------- */

static void cannot_open(pid_t pid, const char *what, int flags)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
    CHECK_ERRNO(open(path, flags | O_CLOEXEC), EACCES);
}

static void look_into(pid_t pid)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    CHECK_ERRNO(ptrace(PTRACE_SEIZE, pid, NULL, NULL), EPERM);
    CHECK_ERRNO(ptrace(PTRACE_ATTACH, pid, NULL, NULL), EPERM);
    CHECK_ERRNO(process_vm_readv(pid, &here, 1, &there, 1, 0), EPERM);
    CHECK_ERRNO(process_vm_writev(pid, &here, 1, &there, 1, 0), EPERM);
    cannot_open(pid, "mem", O_RDWR);
    cannot_open(pid, "mem", O_RDONLY);
    cannot_open(pid, "environ", O_RDONLY);
    cannot_open(pid, "maps", O_RDONLY);
    cannot_open(pid, "auxv", O_RDONLY);
    cannot_open(pid, "map_files", O_RDONLY | O_DIRECTORY);
    cannot_open(pid, "fd", O_RDONLY | O_DIRECTORY);
    for (int fd = 0; fd < 64; fd++) {
        char name[32];

        snprintf(name, sizeof(name), "fd/%d", fd);
        cannot_open(pid, name, O_RDONLY);
        if (pidfd >= 0)
            CHECK_ERRNO(syscall(SYS_pidfd_getfd, pidfd, fd, 0), EPERM);
    }
    if (pidfd >= 0)
        CHECK(close(pidfd) == 0);
}

static void look_into_both(int channel, void *context)
{
    const struct memclient_broker_info *status = context;

    become(UID_STRANGER);
    look_into(status->broker_pid);
    look_into(status->keeper_pid);
    CHECK_ERRNO(kill(status->broker_pid, SIGSTOP), EPERM);
    CHECK_ERRNO(kill(status->keeper_pid, SIGIO), EPERM);
}

static void a_stranger_cannot_look_into_them(void **state)
{
    struct memclient_broker_info status;
    struct memclient_buffer *buf;
    struct broker_process *broker;
    struct memclient_context *ctx;

    test_needs_root();
    broker = broker_for_test_as(UID_BROKER, TIGHT);
    ctx = broker_connect(broker);
    buf = make(ctx, SIZE, 0);
    status = broker_status(ctx);
    child_run(look_into_both, &status);
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* Who got that far still cannot reach what the keeper has. The manual says so, and that the broker can be traced. */
static void look_as_the_same_user(int channel, void *context)
{
    const struct memclient_broker_info *status = context;

    become(UID_BROKER);
    look_into(status->keeper_pid);
    if (access("/proc/sys/kernel/yama/ptrace_scope", F_OK) < 0)
        CHECK(ptrace(PTRACE_SEIZE, status->broker_pid, NULL, NULL) == 0);
}

/* For good: a /run of this process's own, so that its broker is the system's. */
static void settle_in_run(void)
{
    test_needs_root();
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", "/run", "tmpfs", 0, "mode=755") < 0)
        test_skip("root may not mount anything here: %s", strerror(errno));
    assert_ok(mkdir("/run/memoryd", 0755));
    assert_ok(setenv("TMPDIR", "/run/memoryd", 1));
}

static void the_brokers_own_user_cannot_look_into_the_keeper(void **state)
{
    struct memclient_broker_info status;
    struct broker_process *broker;
    struct memclient_context *ctx;

    if (TEST_ASAN || TEST_TSAN)
        test_skip("with a sanitizer there is no sandbox, and the keeper does not hide");
    settle_in_run();
    broker = broker_for_test_as(UID_BROKER, TIGHT);
    ctx = broker_connect(broker);
    status = broker_status(ctx);
    child_run(look_as_the_same_user, &status);
    assert_done(memclient_broker_ping(ctx));
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(locks_of_a_stranger_change_nothing),   at_broker(locks_of_the_brokers_own_user_change_nothing),
        at_broker(a_mapping_without_pages_stops_nobody), at_broker(a_mapping_that_may_not_be_written_stops_nobody),
        at_broker(a_stranger_cannot_look_into_them),     at_broker(the_brokers_own_user_cannot_look_into_the_keeper),
    };

    return test_run(tests, NULL, NULL);
}
