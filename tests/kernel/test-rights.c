/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights are the kernel's (I2): what a holder can do follows from the description that it was given and
 * from the owner and mode of the inode, not from what our library lets it do. And where they end: what the
 * same uid can do, which is why a private broker promises less.
 */
#include "tests/kernel/kinds.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* ---- the mode ---------------------------------------------------------------------------------------------------- */

static void reopen_for_writing_as_a_stranger(int channel, void *context)
{
    const int *fd = context;
    int writer;

    become(UID_STRANGER);
    writer = fd_reopen(*fd, O_RDWR);
    CHECK(writer >= 0);
    CHECK(pwrite(writer, "x", 1, 0) == 1);
}

/* A new memfd has mode 0777: whoever is given it for reading opens it again for writing. Hence 0600. */
static void a_new_memfd_is_open_to_all(void **state)
{
    int fd = memfd_new(page_size(), 0), reader = fd_reopen(fd, O_RDONLY);
    struct stat st;

    test_needs_root();
    assert_ok(fstat(fd, &st));
    assert_int_equal(st.st_mode & 07777, 0777);
    assert_int_equal(st.st_uid, geteuid());
    child_run(reopen_for_writing_as_a_stranger, &reader);
    close(reader);
    close(fd);
}

static void reopen_in_every_way_as_a_stranger(int channel, void *context)
{
    const int *fd = context;
    char path[40];
    int watcher, locator;

    become(UID_STRANGER);
    CHECK_ERRNO(fd_reopen(*fd, O_RDWR), EACCES);
    CHECK_ERRNO(fd_reopen(*fd, O_WRONLY), EACCES);
    CHECK_ERRNO(fd_reopen(*fd, O_RDONLY), EACCES);

    /* O_PATH is not an opening; what it locates cannot be opened either */
    locator = fd_reopen(*fd, O_PATH);
    CHECK(locator >= 0);
    CHECK_ERRNO(fd_reopen(locator, O_RDONLY), EACCES);

    watcher = inotify_init1(IN_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
    CHECK_ERRNO(inotify_add_watch(watcher, path, IN_CLOSE), EACCES);
}

/* With mode 0600 another uid cannot open what it has been given in any other way than it was given. */
static void I2_another_uid_cannot_reopen(struct kind kind)
{
    int fd = kind_buffer(kind), reader = fd_reopen(fd, O_RDONLY), writer = fd_reopen(fd, O_RDWR);

    test_needs_root();
    child_run(reopen_in_every_way_as_a_stranger, &reader);
    child_run(reopen_in_every_way_as_a_stranger, &writer);
    close(reader);
    close(writer);
    close(fd);
}
TEST_ON_BOTH_KINDS(I2_another_uid_cannot_reopen)

static void reopen_as_the_owner(int channel, void *context)
{
    int fd, reader;

    if (geteuid() == 0)
        become(UID_BROKER);
    fd = memfd_create("own", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(fchmod(fd, 0600) == 0);
    reader = fd_reopen(fd, O_RDONLY);
    CHECK(reader >= 0);
    CHECK(fd_reopen(reader, O_RDWR) >= 0); /* the same uid: a private broker's clients can do this */
    CHECK(fchmod(fd, 0400) == 0);
    CHECK_ERRNO(fd_reopen(fd, O_RDWR), EACCES); /* and 0400 would lock the broker itself out */
}

/* The owner can open it again as it likes. So it is the broker's uid that nobody else may have, and a
 * private broker, which has its user's, can only promise that published buffers stay as they are. */
static void I2_the_same_uid_can_reopen(void **state)
{
    child_run(reopen_as_the_owner, NULL);
}

/* ---- what a reader can do ---------------------------------------------------------------------------------------- */

static void do_what_a_reader_can(struct kind kind, int reader)
{
    char *map = map_shared(reader, kind.size, PROT_READ);

    CHECK(map != MAP_FAILED);
    CHECK(map[0] == 'r');
    CHECK_ERRNO(mprotect(map, kind.size, PROT_READ | PROT_WRITE), EACCES);
    CHECK_ERRNO(madvise(map, kind.size, MADV_REMOVE), EACCES);
    CHECK(madvise(map, kind.size, MADV_POPULATE_WRITE) < 0);
    munmap(map, kind.size);
    CHECK_MAP_ERRNO(map_shared(reader, kind.size, PROT_READ | PROT_WRITE), EACCES);
    CHECK_MAP_ERRNO(map_shared(reader, kind.size, PROT_WRITE), EACCES);
    CHECK_ERRNO(pwrite(reader, "x", 1, 0), EBADF);
    CHECK_ERRNO(ftruncate(reader, 0), EINVAL);
    CHECK_ERRNO(memfd_punch(reader, 0, kind.size), EBADF);
    CHECK_ERRNO(fallocate(reader, 0, 0, (off_t)kind.size), EBADF);
    CHECK_ERRNO(fcntl(reader, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
    CHECK(fcntl(reader, F_SETFL, O_RDWR) == 0); /* F_SETFL ignores the access mode */
    CHECK((fcntl(reader, F_GETFL) & O_ACCMODE) == O_RDONLY);
}

struct grant {
    struct kind kind;
    int fd;
};

static void be_a_reader(int channel, void *context)
{
    const struct grant *grant = context;

    if (geteuid() == 0)
        become(UID_STRANGER);
    do_what_a_reader_can(grant->kind, grant->fd);
}

/* A reader's description gives reading and nothing else: no writable mapping, by mmap or by mprotect
 * later, no write, no hole, no commit, no seal. */
static void I2_a_reader_can_only_read(struct kind kind)
{
    int fd = kind_buffer(kind);
    char *map = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);
    struct grant grant = {kind, fd_reopen(fd, O_RDONLY)};

    assert_mapped(map);
    map[0] = 'r';
    child_run(be_a_reader, &grant);
    assert_int_equal(map[0], 'r');
    assert_int_equal(memfd_allocated(fd), kind.size);
    munmap(map, kind.size);
    close(grant.fd);
    close(fd);
}
TEST_ON_BOTH_KINDS(I2_a_reader_can_only_read)

/* A reader may write into a private mapping: that is a copy, and nobody else's memory. */
static void I2_a_readers_private_mapping_is_a_copy(struct kind kind)
{
    int fd = kind_buffer(kind), reader = fd_reopen(fd, O_RDONLY);
    char *shared = map_shared(fd, kind.size, PROT_READ);
    char *copy = mmap(NULL, kind.page, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0);

    assert_mapped(shared);
    assert_mapped(copy);
    copy[0] = 1;
    assert_int_equal(shared[0], 0);
    munmap(copy, kind.page);
    munmap(shared, kind.size);
    close(reader);
    close(fd);
}
TEST_ON_BOTH_KINDS(I2_a_readers_private_mapping_is_a_copy)

/* ---- what a writer can do ---------------------------------------------------------------------------------------- */

static void be_a_writer(int channel, void *context)
{
    const struct grant *grant = context;
    char *map;

    become(UID_STRANGER);
    map = map_shared(grant->fd, grant->kind.size, PROT_READ | PROT_WRITE);
    CHECK(map != MAP_FAILED);
    map[0] = 'w';
    CHECK_ERRNO(fchmod(grant->fd, 0777), EPERM);
    CHECK_ERRNO(fchown(grant->fd, UID_STRANGER, (gid_t)-1), EPERM);
    CHECK_ERRNO(ftruncate(grant->fd, 0), EPERM);
    CHECK_ERRNO(fcntl(grant->fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
    CHECK_ERRNO(fcntl(grant->fd, F_SETLEASE, F_RDLCK), EACCES);
    CHECK_ERRNO(fcntl(grant->fd, F_SETLEASE, F_WRLCK), EACCES);
}

/* A writer of another uid can change the bytes, but neither owner nor mode nor seals nor size, and takes
 * no lease, which would make the broker's fail. */
static void I2_a_writer_can_change_only_the_contents(struct kind kind)
{
    int fd = kind_buffer(kind);
    char *map = map_shared(fd, kind.size, PROT_READ);
    struct grant grant = {kind, fd_reopen(fd, O_RDWR)};

    test_needs_root();
    assert_mapped(map);
    child_run(be_a_writer, &grant);
    assert_int_equal(map[0], 'w');
    munmap(map, kind.size);
    close(grant.fd);
    close(fd);
}
TEST_ON_BOTH_KINDS(I2_a_writer_can_change_only_the_contents)

/* What a writer can do to co-holders, and what is therefore not promised (design, "Not promised"): it can
 * punch pages out; the others read zeros, get no signal, and the kernel's count of pages shows it. */
static void a_writer_can_punch_and_others_read_zeros(void **state)
{
    struct kind kind = kind_shmem();
    int fd = kind_buffer(kind), writer = fd_reopen(fd, O_RDWR);
    char *map = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);

    assert_mapped(map);
    memset(map, 'x', kind.size);
    assert_ok(memfd_punch(writer, 0, kind.size));
    assert_int_equal(memfd_allocated(fd), 0);
    assert_int_equal(map[0], 0);
    assert_int_equal(map[kind.size - 1], 0);
    assert_ok(fallocate(fd, 0, 0, (off_t)kind.size));
    assert_int_equal(memfd_allocated(fd), kind.size);
    munmap(map, kind.size);
    close(writer);
    close(fd);
}

/* ---- descriptions ------------------------------------------------------------------------------------------------ */

/* A re-opened description has an offset, status flags and flocks of its own, a duplicate shares them: so
 * each client gets a description of its own, and none can disturb another through it. */
static void a_reopened_description_is_independent(void **state)
{
    int fd = kind_buffer(kind_shmem()), copy = dup(fd), other = fd_reopen(fd, O_RDWR);

    assert_ok(copy);
    assert_ok(other);
    assert_int_equal(lseek(copy, 7, SEEK_SET), 7);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 7);
    assert_int_equal(lseek(other, 0, SEEK_CUR), 0);
    assert_ok(fcntl(copy, F_SETFL, O_APPEND));
    assert_true(fcntl(fd, F_GETFL) & O_APPEND);
    assert_false(fcntl(other, F_GETFL) & O_APPEND);
    assert_ok(flock(copy, LOCK_EX | LOCK_NB));
    assert_ok(flock(fd, LOCK_EX | LOCK_NB));
    assert_errno(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    close(copy);
    close(other);
    close(fd);
}

static void give_it_a_name(int channel, void *context)
{
    const int *fd = context;
    char path[40], name[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
    snprintf(name, sizeof(name), "/dev/shm/memoryd-test-%d", (int)getpid());
    if (linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
        unlink(name);
        CHECK(!"a memfd was given a name");
    }
}

/* Nobody can give a memfd a name in a file system, by which it would outlive its holders. */
static void a_memfd_cannot_be_linked(void **state)
{
    int fd = kind_buffer(kind_shmem());

    child_run(give_it_a_name, &fd);
    close(fd);
}

/* ---- re-opening inside a sandbox --------------------------------------------------------------------------------- */

static void reopen_own(void)
{
    int fd = memfd_create("own", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK(fchmod(fd, 0600) == 0);
    CHECK(fd_reopen(fd, O_RDWR) >= 0);
}

static void reopen_in_a_sandbox(int channel, void *context)
{
    int fd = memfd_create("before", MFD_CLOEXEC), folder;
    char name[16];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        child_skip("no mount namespace to be had here");
    folder = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(folder >= 0);
    if (mount("proc", "/proc", "proc", 0, "hidepid=2,subset=pid") < 0)
        child_skip("this kernel has no subset=pid for proc");
    become(UID_BROKER);
    reopen_own();
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
    reopen_own();
    CHECK(fd >= 0);

    /* a directory descriptor kept from before serves as well, for this process only */
    snprintf(name, sizeof(name), "%d", fd);
    CHECK(openat(folder, name, O_RDONLY | O_CLOEXEC) >= 0);
}

/* The broker re-opens through /proc/self/fd, which works under ProtectProc=invisible and
 * ProcSubset=pid, and for a process that may not be dumped. */
static void reopening_works_under_the_units_sandbox(void **state)
{
    test_needs_root();
    child_run(reopen_in_a_sandbox, NULL);
}

static void reopen_without_proc(int channel, void *context)
{
    int fd = memfd_create("own", MFD_CLOEXEC);

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/proc", "tmpfs", 0, "") < 0)
        child_skip("no mount namespace to be had here");
    CHECK_ERRNO(fd_reopen(fd, O_RDWR), ENOENT);
}

/* Without /proc it does not work: the broker must say so at start, not fail at the first allocation. */
static void reopening_needs_proc(void **state)
{
    test_needs_root();
    child_run(reopen_without_proc, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_memfd_is_open_to_all),
        on_both_kinds(I2_another_uid_cannot_reopen),
        cmocka_unit_test(I2_the_same_uid_can_reopen),
        on_both_kinds(I2_a_reader_can_only_read),
        on_both_kinds(I2_a_readers_private_mapping_is_a_copy),
        on_both_kinds(I2_a_writer_can_change_only_the_contents),
        cmocka_unit_test(a_writer_can_punch_and_others_read_zeros),
        cmocka_unit_test(a_reopened_description_is_independent),
        cmocka_unit_test(a_memfd_cannot_be_linked),
        cmocka_unit_test(reopening_works_under_the_units_sandbox),
        cmocka_unit_test(reopening_needs_proc),
    };

    return test_run(tests, NULL, NULL);
}
