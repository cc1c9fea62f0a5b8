/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this descriptor, which a client sent, one of our buffers? Inode numbers can repeat and whatever can be
 * read from the file could be imitated. The inotify instance knows inodes themselves: adding a watch on an
 * inode that it already watches gives the watch that is there. So the broker proves an import by adding its
 * watch again through the client's descriptor and comparing watch descriptors.
 */
#include "tests/kernel/kinds.h"
#include "tests/kernel/watch.h"
#include "tests/support/child.h"

#include <sys/socket.h>

#ifndef IN_MASK_CREATE
#define IN_MASK_CREATE 0x10000000
#endif

/* How the broker would ask. */
#define ASK (IN_CLOSE | IN_MASK_ADD)

/* Every way in which a client can have a buffer's descriptor gives the one watch: a duplicate, a
 * description for reading or for writing, and O_PATH. Only one watch is there afterwards. */
static void the_same_inode_gives_the_same_watch(struct kind kind)
{
    int fd = kind_buffer(kind), watch = watch_instance(), wd = watch_add(watch, fd, IN_CLOSE);
    int ways[] = {dup(fd), fd_reopen(fd, O_RDONLY), fd_reopen(fd, O_RDWR), fd_reopen(fd, O_PATH)};

    assert_ok(wd);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        assert_ok(ways[i]);
        assert_int_equal(watch_add(watch, ways[i], ASK), wd);
    }
    assert_int_equal(watch_take(watch, NULL), 0); /* asking is no event */
    assert_ok(inotify_rm_watch(watch, wd));
    assert_int_equal(watch_take(watch, NULL), IN_IGNORED);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        close(ways[i]);
    assert_int_equal(watch_take(watch, NULL), 0);
    close(watch);
    close(fd);
}
TEST_ON_BOTH_KINDS(the_same_inode_gives_the_same_watch)

static void send_back_what_comes(int channel, void *context)
{
    int fd = fd_receive_one(channel), again;

    CHECK(fd >= 0);
    again = fd_reopen(fd, O_RDONLY); /* 0600: as root or as its owner */
    CHECK(fd_send_one(channel, again >= 0 ? again : fd) == 1);
}

/* Through the hands of another process as well, which may have re-opened it. */
static void an_imported_fd_gives_the_same_watch(struct kind kind)
{
    int fd = kind_buffer(kind), watch = watch_instance(), wd = watch_add(watch, fd, IN_CLOSE);
    int grant = fd_reopen(fd, O_RDWR), back;
    struct child child;

    assert_ok(wd);
    child_start(&child, send_back_what_comes, NULL);
    assert_int_equal(fd_send_one(child.channel, grant), 1);
    back = fd_receive_one(child.channel);
    assert_ok(back);
    assert_int_equal(watch_add(watch, back, ASK), wd);
    child_finish(&child);
    close(back);
    close(grant);
    close(watch);
    close(fd);
}
TEST_ON_BOTH_KINDS(an_imported_fd_gives_the_same_watch)

/* Another inode gives another watch, a new one: made just like ours, or something else altogether. The
 * broker removes it again, which costs it an IN_IGNORED event of a watch that it never knew. */
static void another_inode_gives_another_watch(struct kind kind)
{
    int fd = kind_buffer(kind), watch = watch_instance(), wd = watch_add(watch, fd, IN_CLOSE);
    int pipe_ends[2], socket_ends[2];

    assert_ok(wd);
    assert_ok(pipe2(pipe_ends, O_CLOEXEC));
    assert_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket_ends));
    {
        int others[] = {
            kind_buffer(kind),
            pipe_ends[0],
            socket_ends[0],
            open("/dev/null", O_RDONLY | O_CLOEXEC),
            open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        };

        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            int other = watch_add(watch, others[i], ASK);

            assert_true(other > 0 || errno == EACCES);
            assert_int_not_equal(other, wd);
            if (other > 0) {
                assert_ok(inotify_rm_watch(watch, other));
                assert_true(watch_take(watch, NULL) & IN_IGNORED);
            }
            close(others[i]);
        }
    }
    assert_int_equal(watch_add(watch, fd, ASK), wd); /* ours is untouched */
    close(pipe_ends[1]);
    close(socket_ends[1]);
    close(watch);
    close(fd);
}
TEST_ON_BOTH_KINDS(another_inode_gives_another_watch)

static void send_a_memfd_as_a_stranger(int channel, void *context)
{
    const mode_t *mode = context;
    int fd;

    become(UID_STRANGER);
    fd = memfd_create("foreign", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(fchmod(fd, *mode) == 0);
    CHECK(fd_send_one(channel, fd) == 1);
    hear(channel);
}

static void ask_as_the_broker(int channel, void *context)
{
    struct kind kind = kind_shmem();
    int original, fd, watch, wd, other;

    become(UID_BROKER);
    original = memfd_create("ours", MFD_CLOEXEC);
    CHECK(original >= 0);
    CHECK(ftruncate(original, (off_t)kind.size) == 0);
    CHECK(fchmod(original, 0600) == 0);
    fd = fd_reopen(original, O_RDWR);
    CHECK(fd >= 0);
    watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch >= 0);
    wd = watch_add(watch, fd, IN_CLOSE);
    CHECK(wd > 0);
    tell(channel);

    other = fd_receive_one(channel); /* of mode 0600 */
    CHECK(other >= 0);
    CHECK_ERRNO(watch_add(watch, other, ASK), EACCES);
    CHECK(fcntl(other, F_SETLEASE, F_WRLCK) < 0);

    other = fd_receive_one(channel); /* of the mode that a memfd is born with */
    CHECK(other >= 0);
    CHECK(watch_add(watch, other, ASK) > 0);
    CHECK(watch_add(watch, other, ASK) != wd);
    CHECK(watch_add(watch, fd, ASK) == wd);
}

/* For a broker without capabilities, another uid's private file is EACCES: not ours either. Our own, mode
 * 0600, can be asked about through a descriptor of any kind, since we own it. */
static void a_foreign_private_inode_is_refused(void **state)
{
    mode_t modes[] = {0600, 0777};
    struct child broker;

    test_needs_root();
    child_start(&broker, ask_as_the_broker, NULL);
    child_hear(&broker);
    for (size_t i = 0; i < 2; i++) {
        struct child stranger;
        int fd;

        child_start(&stranger, send_a_memfd_as_a_stranger, &modes[i]);
        fd = fd_receive_one(stranger.channel);
        assert_ok(fd);
        assert_int_equal(fd_send_one(broker.channel, fd), 1);
        close(fd);
        child_tell(&stranger);
        child_finish(&stranger);
    }
    child_finish(&broker);
}

/* IN_MASK_ADD adds to what is watched for; without it the mask would be replaced and events lost. */
static void asking_keeps_the_mask_only_with_mask_add(void **state)
{
    int fd = kind_buffer(kind_shmem()), watch = watch_instance();
    int wd = watch_add(watch, fd, IN_CLOSE_NOWRITE);

    assert_int_equal(watch_add(watch, fd, IN_CLOSE_WRITE | IN_MASK_ADD), wd);
    close(fd_reopen(fd, O_RDONLY));
    close(fd_reopen(fd, O_RDWR));
    assert_int_equal(watch_take(watch, NULL), IN_CLOSE);
    assert_int_equal(watch_add(watch, fd, IN_CLOSE_WRITE), wd);
    close(fd_reopen(fd, O_RDONLY));
    assert_int_equal(watch_take(watch, NULL), 0);

    /* and IN_MASK_CREATE refuses what is watched already */
    assert_errno(watch_add(watch, fd, IN_CLOSE | IN_MASK_CREATE), EEXIST);
    close(watch);
    close(fd);
}

/* A watch descriptor is not given again when its watch is gone: an event that was still queued for the old
 * one cannot be taken for the new one's. */
static void watch_descriptors_are_not_reused(void **state)
{
    int watch = watch_instance(), last = 0;

    for (int i = 0; i < 1000; i++) {
        int fd = kind_buffer(kind_shmem()), wd = watch_add(watch, fd, IN_CLOSE);

        assert_true(wd > last);
        last = wd;
        close(fd);
        if (i % 100 == 99)
            watch_take(watch, NULL);
    }
    close(watch);
}

/* The owner of the inode, which fstat tells, is the kernel's word too: a descriptor whose st_uid is not the
 * broker's cannot be a buffer, whatever else it looks like. */
static void the_owner_tells_what_cannot_be_ours(void **state)
{
    mode_t mode = 0600;
    struct child stranger;
    struct stat st;
    int fd;

    test_needs_root();
    child_start(&stranger, send_a_memfd_as_a_stranger, &mode);
    fd = fd_receive_one(stranger.channel);
    assert_ok(fstat(fd, &st));
    assert_int_equal(st.st_uid, UID_STRANGER);
    close(fd);
    child_tell(&stranger);
    child_finish(&stranger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_both_kinds(the_same_inode_gives_the_same_watch),
        on_both_kinds(an_imported_fd_gives_the_same_watch),
        on_both_kinds(another_inode_gives_another_watch),
        cmocka_unit_test(a_foreign_private_inode_is_refused),
        cmocka_unit_test(asking_keeps_the_mask_only_with_mask_add),
        cmocka_unit_test(watch_descriptors_are_not_reused),
        cmocka_unit_test(the_owner_tells_what_cannot_be_ours),
    };

    return test_run(tests, NULL, NULL);
}
