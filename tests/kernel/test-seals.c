/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals: the size of a buffer is fixed before anybody else has it (I1), nobody can add a seal behind the
 * broker's back, and what is published is immutable for all, root included (I2). The order of committing,
 * sealing and publishing in daemon/mem follows from these.
 */
#include "tests/kernel/kinds.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <sys/uio.h>

/* ---- a buffer's size --------------------------------------------------------------------------------------------- */

/* No holder can shrink or grow what is sealed so; a shrunk file is a SIGBUS for everybody else. */
static void I1_a_sealed_size_cannot_change(struct kind kind)
{
    int fd = kind_buffer(kind), holder = fd_reopen(fd, O_RDWR);

    assert_ok(holder);
    assert_errno(ftruncate(holder, 0), EPERM);
    assert_errno(ftruncate(holder, (off_t)(kind.size + kind.page)), EPERM);
    assert_errno(fallocate(holder, 0, 0, (off_t)(kind.size + kind.page)), EPERM);
    assert_errno(fd_reopen(fd, O_RDWR | O_TRUNC), EPERM);
    close(holder);
    close(fd);
}
TEST_ON_BOTH_KINDS(I1_a_sealed_size_cannot_change)

/* Pages can still be given back and committed anew inside the sealed size: a buffer can be discarded. */
static void I1_inside_a_sealed_size_pages_come_and_go(struct kind kind)
{
    int fd = kind_buffer(kind);

    assert_int_equal(memfd_allocated(fd), kind.size);
    assert_ok(memfd_punch(fd, 0, kind.size));
    assert_int_equal(memfd_allocated(fd), 0);
    assert_ok(fallocate(fd, 0, 0, (off_t)kind.size));
    assert_int_equal(memfd_allocated(fd), kind.size);
    close(fd);
}
TEST_ON_BOTH_KINDS(I1_inside_a_sealed_size_pages_come_and_go)

/* ---- the set of seals -------------------------------------------------------------------------------------------- */

/* Seals belong to the inode: added through one description they are there through all. The broker seals
 * through the description it has re-opened and keeps. */
static void seals_are_the_inodes(struct kind kind)
{
    int original = memfd_new(kind.size, kind.flags);
    int fd = fd_reopen(original, O_RDWR), reader = fd_reopen(original, O_RDONLY);

    assert_ok(fcntl(fd, F_ADD_SEALS, SEALS_BUFFER));
    assert_int_equal(fcntl(original, F_GET_SEALS) & SEALS_BUFFER, SEALS_BUFFER);
    assert_int_equal(fcntl(reader, F_GET_SEALS) & SEALS_BUFFER, SEALS_BUFFER);
    close(reader);
    close(fd);
    close(original);
}
TEST_ON_BOTH_KINDS(seals_are_the_inodes)

/* Without F_SEAL_SEAL any holder with WRITE can make the buffer unwritable for all, the broker included.
 * A reader cannot. */
static void without_seal_seal_a_writer_can_add_seals(struct kind kind)
{
    int fd = kind_unsealed_buffer(kind);
    int reader = fd_reopen(fd, O_RDONLY), writer = fd_reopen(fd, O_RDWR);

    assert_errno(fcntl(reader, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
    assert_ok(fcntl(writer, F_ADD_SEALS, F_SEAL_WRITE));
    assert_errno(pwrite(fd, "x", 1, 0), kind.flags ? EINVAL : EPERM); /* hugetlb has no write(2) */
    assert_map_errno(map_shared(fd, kind.size, PROT_READ | PROT_WRITE), EPERM);
    close(reader);
    close(writer);
    close(fd);
}
TEST_ON_BOTH_KINDS(without_seal_seal_a_writer_can_add_seals)

/* With F_SEAL_SEAL nobody can, so that is what leaves the broker, unless a buffer is to be published. */
static void with_seal_seal_nobody_can_add_seals(struct kind kind)
{
    int fd = kind_buffer(kind);

    assert_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
    assert_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), EPERM);
    close(fd);
}
TEST_ON_BOTH_KINDS(with_seal_seal_nobody_can_add_seals)

/* ---- publishing -------------------------------------------------------------------------------------------------- */

/* A writable mapping anywhere refuses F_SEAL_WRITE; once it is gone the seal holds. Publishing answers
 * -EBUSY to the first. */
static void write_seal_waits_for_no_writable_mapping(struct kind kind)
{
    int fd = kind_unsealed_buffer(kind);
    char *map = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);

    assert_mapped(map);
    assert_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), EBUSY);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_SEAL), 0);
    map[0] = 1;
    munmap(map, kind.size);
    assert_ok(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    close(fd);
}
TEST_ON_BOTH_KINDS(write_seal_waits_for_no_writable_mapping)

/* What counts is what a mapping might become: one that was made read-only, or has been made so by
 * mprotect, still blocks the seal if its description was opened for writing; one of an O_RDONLY
 * description does not. So the client library must drop its mappings before it publishes and map again
 * through a read-only descriptor: mprotect is not enough. */
static void a_mapping_of_a_writable_description_blocks_the_write_seal(struct kind kind)
{
    int fd = kind_unsealed_buffer(kind), reader = fd_reopen(fd, O_RDONLY);
    char *of_reader = map_shared(reader, kind.size, PROT_READ);
    char *of_writer = map_shared(fd, kind.size, PROT_READ);

    assert_mapped(of_reader);
    assert_mapped(of_writer);
    assert_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), EBUSY);
    munmap(of_writer, kind.size);

    of_writer = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);
    assert_mapped(of_writer);
    assert_ok(mprotect(of_writer, kind.size, PROT_READ));
    assert_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), EBUSY);
    munmap(of_writer, kind.size);

    assert_ok(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    assert_int_equal(of_reader[0], 0);
    munmap(of_reader, kind.size);
    close(reader);
    close(fd);
}
TEST_ON_BOTH_KINDS(a_mapping_of_a_writable_description_blocks_the_write_seal)

/* A page pinned by somebody (here by a pipe) makes the kernel wait before it refuses: sealing belongs on
 * a worker. */
static void write_seal_waits_for_pinned_pages(void **state)
{
    struct kind kind = kind_shmem();
    int fd = kind_unsealed_buffer(kind), ends[2];
    char *map = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);
    struct iovec page = {map, kind.page};
    int64_t begin;

    assert_mapped(map);
    assert_ok(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    map[0] = 1;
    assert_int_equal(vmsplice(ends[1], &page, 1, 0), kind.page);
    munmap(map, kind.size);
    begin = wait_now_ms();
    assert_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), EBUSY);
    assert_true(wait_now_ms() - begin >= 50);
    close(ends[0]);
    close(ends[1]);
    assert_ok(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    close(fd);
}

static void try_everything_on_a_published_buffer(int channel, void *context)
{
    struct kind kind = kind_shmem();
    const int *fd = context;
    int writer, memory;
    char *map;

    writer = fd_reopen(*fd, O_RDWR);
    CHECK(writer >= 0); /* the owner and root may open it */
    CHECK_MAP_ERRNO(map_shared(writer, kind.size, PROT_READ | PROT_WRITE), EPERM);
    CHECK_ERRNO(pwrite(writer, "x", 1, 0), EPERM);
    CHECK_ERRNO(memfd_punch(writer, 0, kind.page), EPERM);
    CHECK_ERRNO(fallocate(writer, FALLOC_FL_ZERO_RANGE, 0, (off_t)kind.page), EOPNOTSUPP);
    CHECK_ERRNO(ftruncate(writer, 0), EPERM);

    /* a reader's mapping stays a reader's */
    map = map_shared(fd_reopen(*fd, O_RDONLY), kind.size, PROT_READ);
    CHECK(map != MAP_FAILED);
    CHECK_ERRNO(mprotect(map, kind.size, PROT_READ | PROT_WRITE), EACCES);
    CHECK(madvise(map, kind.size, MADV_REMOVE) < 0);
    memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC); /* writes through protections where it may */
    if (memory >= 0) {
        CHECK(pwrite(memory, "x", 1, (off_t)(uintptr_t)map) < 0);
        close(memory);
    }
    CHECK(map[0] == 'p');

    /* one's own copy is one's own */
    map = mmap(NULL, kind.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, *fd, 0);
    CHECK(map != MAP_FAILED);
    map[0] = 'x';
}

/* What has F_SEAL_WRITE and F_SEAL_SEAL is not changed by anybody: not by its owner, not by root. */
static void I2_a_published_buffer_is_immutable_for_all(void **state)
{
    struct kind kind = kind_shmem();
    int fd = kind_unsealed_buffer(kind);
    char byte;

    assert_int_equal(pwrite(fd, "p", 1, 0), 1);
    assert_ok(fcntl(fd, F_ADD_SEALS, SEALS_BUFFER | F_SEAL_WRITE));
    child_run(try_everything_on_a_published_buffer, &fd);
    assert_int_equal(pread(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 'p');
    close(fd);
}

/* The same for huge pages, which know no read(2) and write(2). */
static void I2_a_published_hugetlb_buffer_is_immutable(void **state)
{
    struct kind kind = kind_hugetlb();
    int fd = kind_unsealed_buffer(kind), writer, reader;
    char *map;

    assert_ok(fcntl(fd, F_ADD_SEALS, SEALS_BUFFER | F_SEAL_WRITE));
    writer = fd_reopen(fd, O_RDWR);
    reader = fd_reopen(fd, O_RDONLY);
    assert_ok(writer);
    assert_map_errno(map_shared(writer, kind.size, PROT_READ | PROT_WRITE), EPERM);
    assert_errno(memfd_punch(writer, 0, kind.page), EPERM);
    map = map_shared(reader, kind.size, PROT_READ);
    assert_mapped(map);
    assert_errno(mprotect(map, kind.size, PROT_READ | PROT_WRITE), EACCES);
    munmap(map, kind.size);
    close(reader);
    close(writer);
    close(fd);
}

/* F_SEAL_FUTURE_WRITE lets the mappings that exist go on writing and refuses new ones: the weaker way to
 * publish, and the info must say so. */
static void future_write_seal_leaves_old_mappings_writable(struct kind kind)
{
    int fd = kind_unsealed_buffer(kind), reader = fd_reopen(fd, O_RDONLY);
    char *old = map_shared(fd, kind.size, PROT_READ | PROT_WRITE), *map;

    assert_mapped(old);
    assert_ok(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    old[0] = 7;
    assert_map_errno(map_shared(fd, kind.size, PROT_READ | PROT_WRITE), EPERM);
    map = map_shared(fd, kind.size, PROT_READ);
    assert_mapped(map);
    assert_errno(mprotect(map, kind.size, PROT_READ | PROT_WRITE), EACCES);
    assert_int_equal(map[0], 7);
    old[0] = 8;
    assert_int_equal(map[0], 8);
    assert_errno(memfd_punch(fd, 0, kind.size), EPERM); /* nor can it be discarded */
    munmap(map, kind.size);
    map = map_shared(reader, kind.size, PROT_READ);
    assert_mapped(map);
    munmap(map, kind.size);
    munmap(old, kind.size);
    assert_ok(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE)); /* and may become the strong one later */
    close(reader);
    close(fd);
}
TEST_ON_BOTH_KINDS(future_write_seal_leaves_old_mappings_writable)

/* A published buffer can be mapped by every reader, through an O_RDONLY descriptor on every kernel. */
static void a_published_buffer_is_mapped_through_a_read_only_fd(struct kind kind)
{
    int fd = kind_unsealed_buffer(kind), reader;
    char *map;

    assert_ok(fcntl(fd, F_ADD_SEALS, SEALS_BUFFER | F_SEAL_WRITE));
    reader = fd_reopen(fd, O_RDONLY);
    map = map_shared(reader, kind.size, PROT_READ);
    assert_mapped(map);
    assert_int_equal(map[kind.size - 1], 0);
    munmap(map, kind.size);

    /* Through a writable one only since Linux 6.7, so the library does not try. */
    map = map_shared(fd, kind.size, PROT_READ);
    if (map != MAP_FAILED)
        munmap(map, kind.size);
    else
        assert_int_equal(errno, EPERM);
    close(reader);
    close(fd);
}
TEST_ON_BOTH_KINDS(a_published_buffer_is_mapped_through_a_read_only_fd)

/* ---- execution --------------------------------------------------------------------------------------------------- */

/* MFD_NOEXEC_SEAL (Linux 6.3): memory that can never be executed as a program. */
static void noexec_seal_forbids_the_execute_bit_for_good(void **state)
{
    int fd = memfd_create("noexec", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    struct stat st;

    if (fd < 0 && errno == EINVAL)
        test_skip("this kernel has no MFD_NOEXEC_SEAL (it came with Linux 6.3)");
    assert_ok(fd);
    assert_true(fcntl(fd, F_GET_SEALS) & F_SEAL_EXEC);
    assert_false(fcntl(fd, F_GET_SEALS) & F_SEAL_SEAL); /* it implies MFD_ALLOW_SEALING */
    assert_ok(fstat(fd, &st));
    assert_int_equal(st.st_mode & 0111, 0);
    assert_errno(fchmod(fd, 0700), EPERM);
    assert_ok(fchmod(fd, 0600));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_both_kinds(I1_a_sealed_size_cannot_change),
        on_both_kinds(I1_inside_a_sealed_size_pages_come_and_go),
        on_both_kinds(seals_are_the_inodes),
        on_both_kinds(without_seal_seal_a_writer_can_add_seals),
        on_both_kinds(with_seal_seal_nobody_can_add_seals),
        on_both_kinds(write_seal_waits_for_no_writable_mapping),
        on_both_kinds(a_mapping_of_a_writable_description_blocks_the_write_seal),
        cmocka_unit_test(write_seal_waits_for_pinned_pages),
        cmocka_unit_test(I2_a_published_buffer_is_immutable_for_all),
        test_with_settings(I2_a_published_hugetlb_buffer_is_immutable),
        on_both_kinds(future_write_seal_leaves_old_mappings_writable),
        on_both_kinds(a_published_buffer_is_mapped_through_a_read_only_fd),
        cmocka_unit_test(noexec_seal_forbids_the_execute_bit_for_good),
    };

    return test_run(tests, NULL, NULL);
}
