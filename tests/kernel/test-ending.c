/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free means freed, proven (I4). The broker keeps one description of each buffer (T: re-opened O_RDWR, the
 * original closed), and asks two things of the kernel: a write lease on T tells whether anybody else has
 * the buffer open or mapped; an inotify watch on it tells when that may have changed, and when the inode
 * is gone. Here is what each of them sees, and what it is blind to.
 */
#include "tests/kernel/kinds.h"
#include "tests/kernel/watch.h"
#include "tests/support/child.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* "Does nobody but T's holders have it?" The broker asks just so. */
static bool alone(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0) {
        assert_int_equal(errno, EAGAIN);
        return false;
    }
    assert_ok(fcntl(fd, F_SETLEASE, F_UNLCK));
    return true;
}

/* From Linux 7.0 on a file system opts into leases, and hugetlbfs does not. */
static void need_leases(struct kind kind)
{
    int fd = memfd_new(kind.page, kind.flags);
    bool given = fcntl(fd, F_SETLEASE, F_RDLCK) == 0 || errno != EINVAL;

    close(fd);
    if (!given && kind.flags & MFD_HUGETLB)
        test_skip("no leases on hugetlbfs from Linux 7.0 on");
}

static int kind_leased_buffer(struct kind kind)
{
    need_leases(kind);
    return kind_buffer(kind);
}

/* ---- what the lease sees ----------------------------------------------------------------------------------------- */

/* A grant counts while its descriptor is open, for reading as for writing. */
static void I4_lease_sees_an_open_grant(struct kind kind)
{
    static const int modes[] = {O_RDONLY, O_RDWR};
    int fd = kind_leased_buffer(kind);

    assert_true(alone(fd));
    for (size_t i = 0; i < 2; i++) {
        int grant = fd_reopen(fd, modes[i]);

        assert_false(alone(fd));
        close(grant);
        assert_true(alone(fd));
    }
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_lease_sees_an_open_grant)

/* A mapping counts when its descriptor is long closed. */
static void I4_lease_sees_a_mapping_without_a_descriptor(struct kind kind)
{
    static const int modes[] = {O_RDONLY, O_RDWR};
    int fd = kind_leased_buffer(kind);

    for (size_t i = 0; i < 2; i++) {
        int grant = fd_reopen(fd, modes[i]);
        char *map = map_shared(grant, kind.size, PROT_READ);

        assert_mapped(map);
        close(grant);
        assert_false(alone(fd));
        munmap(map, kind.size);
        assert_true(alone(fd));
    }
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_lease_sees_a_mapping_without_a_descriptor)

static void map_and_wait(int channel, void *context)
{
    struct kind kind = *(const struct kind *)context;
    int fd = fd_receive_one(channel);
    char *map = map_shared(fd, kind.size, PROT_READ);

    CHECK(map != MAP_FAILED);
    close(fd);
    tell(channel);
    hear(channel);
}

/* It counts in any process, and no longer from the moment that the process was killed. */
static void I4_lease_sees_another_process_until_it_dies(struct kind kind)
{
    int fd = kind_leased_buffer(kind), grant = fd_reopen(fd, O_RDONLY);
    struct child child;

    child_start(&child, map_and_wait, &kind);
    assert_int_equal(fd_send_one(child.channel, grant), 1);
    close(grant);
    assert_false(alone(fd)); /* in flight, or there */
    child_hear(&child);
    assert_false(alone(fd)); /* mapped */
    child_kill(&child);
    assert_true(WAIT_UNTIL(alone(fd)));
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_lease_sees_another_process_until_it_dies)

static void wait_with_the_inherited(int channel, void *context)
{
    tell(channel);
    hear(channel);
}

/* A mapping that a forked child inherited counts, though its parent's is gone. */
static void I4_lease_sees_a_forked_childs_mapping(struct kind kind)
{
    int fd = kind_leased_buffer(kind), grant = fd_reopen(fd, O_RDWR);
    char *map = map_shared(grant, kind.size, PROT_READ | PROT_WRITE);
    struct child child;

    assert_mapped(map);
    close(grant);
    child_start(&child, wait_with_the_inherited, NULL);
    child_hear(&child);
    munmap(map, kind.size);
    assert_false(alone(fd));
    child_kill(&child);
    assert_true(WAIT_UNTIL(alone(fd)));
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_lease_sees_a_forked_childs_mapping)

/* A descriptor in flight counts, though no process has it: an exported handle in a socket's queue. */
static void I4_lease_sees_a_descriptor_in_flight(struct kind kind)
{
    int fd = kind_leased_buffer(kind), grant = fd_reopen(fd, O_RDONLY), ends[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    assert_int_equal(fd_send_one(ends[0], grant), 1);
    close(grant);
    assert_false(alone(fd));
    close(ends[0]);
    close(ends[1]);
    assert_true(WAIT_UNTIL(alone(fd)));
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_lease_sees_a_descriptor_in_flight)

/* ---- what the lease does not count ------------------------------------------------------------------------------- */

static void hold_the_inherited_and_ask(int channel, void *context)
{
    const int *fd = context;

    tell(channel);
    hear(channel);
    CHECK(fcntl(*fd, F_SETLEASE, F_WRLCK) == 0);
    CHECK(fcntl(*fd, F_SETLEASE, F_UNLCK) == 0);
}

/* T itself does not count however many have it: a duplicate, another process (the keeper), the broker's
 * own mappings through it. All of them can ask. */
static void I4_lease_does_not_count_the_brokers_own(struct kind kind)
{
    int fd = kind_leased_buffer(kind), copy = dup(fd);
    struct child child;
    char *map;

    assert_true(alone(fd));
    close(copy);
    child_start(&child, hold_the_inherited_and_ask, &fd);
    child_hear(&child);
    assert_true(alone(fd));
    child_tell(&child);
    child_finish(&child);
    map = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);
    assert_mapped(map);
    map[0] = 1;
    assert_true(alone(fd));
    munmap(map, kind.size);
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_lease_does_not_count_the_brokers_own)

/* memfd_create's own description is not counted, nor what is mapped through it, and asking on it always
 * fails. That is why it is closed at once and only T is kept. */
static void I4_lease_is_blind_to_the_original_description(struct kind kind)
{
    int original, fd;
    char *map;

    need_leases(kind);
    original = memfd_new(kind.size, kind.flags);
    fd = fd_reopen(original, O_RDWR);
    map = map_shared(original, kind.size, PROT_READ);
    assert_mapped(map);
    assert_true(alone(fd));
    munmap(map, kind.size);
    close(fd);
    assert_false(alone(original));
    close(original);
}
TEST_ON_BOTH_KINDS(I4_lease_is_blind_to_the_original_description)

/* An O_PATH descriptor is not counted either, and keeps the memory: the lease's "nobody" is not yet the
 * end. The end is IN_IGNORED, below. */
static void I4_lease_is_blind_to_o_path(struct kind kind)
{
    int fd = kind_leased_buffer(kind), grant = fd_reopen(fd, O_RDONLY), locator = fd_reopen(grant, O_PATH);

    assert_ok(locator);
    close(grant);
    assert_true(alone(fd));
    close(locator);
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_lease_is_blind_to_o_path)

/* And to a page that a pipe holds: a reader can keep the page when it has closed and unmapped. If such
 * memory were wiped and given to somebody else, the reader would read on in it. When it is discarded
 * instead, the reader keeps an old page of its own. Hence "only as new pages, never scrubbed in place". */
static void I4_lease_is_blind_to_a_vmspliced_page(void **state)
{
    for (int discard = 0; discard < 2; discard++) {
        struct kind kind = kind_shmem();
        int fd = kind_buffer(kind), grant = fd_reopen(fd, O_RDONLY), ends[2];
        char *theirs = map_shared(grant, kind.size, PROT_READ), *ours;
        struct iovec page = {theirs, kind.page};
        char stolen[16] = "";

        assert_mapped(theirs);
        assert_int_equal(theirs[0], 0);
        assert_ok(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
        assert_int_equal(vmsplice(ends[1], &page, 1, 0), kind.page);
        munmap(theirs, kind.size);
        close(grant);
        assert_true(alone(fd));

        ours = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);
        assert_mapped(ours);
        if (discard)
            assert_ok(memfd_punch(fd, 0, kind.size));
        else
            memset(ours, 0, kind.size);
        memcpy(ours, "secret", sizeof("secret"));
        assert_int_equal(read(ends[0], stolen, sizeof(stolen)), sizeof(stolen));
        assert_string_equal(stolen, discard ? "" : "secret");

        munmap(ours, kind.size);
        close(ends[0]);
        close(ends[1]);
        close(fd);
    }
}

/* A mapping left over from an earlier holder sees all that is written later, discarding in between or not:
 * while anybody is there (the lease says so) memory is nobody else's. */
static void a_leftover_mapping_sees_the_next_contents(struct kind kind)
{
    int fd = kind_leased_buffer(kind), grant = fd_reopen(fd, O_RDONLY);
    char *theirs = map_shared(grant, kind.size, PROT_READ);
    char *ours = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);

    assert_mapped(theirs);
    assert_mapped(ours);
    close(grant);
    ours[0] = 'a';
    assert_ok(memfd_punch(fd, 0, kind.size));
    assert_int_equal(theirs[0], 0);
    ours[0] = 'b';
    assert_int_equal(theirs[0], 'b');
    assert_false(alone(fd));
    munmap(ours, kind.size);
    munmap(theirs, kind.size);
    close(fd);
}
TEST_ON_BOTH_KINDS(a_leftover_mapping_sees_the_next_contents)

static void ask_without_capabilities(int channel, void *context)
{
    struct kind kind = kind_shmem();
    int original, fd;

    if (geteuid() == 0)
        become(UID_BROKER);
    original = memfd_create("own", MFD_CLOEXEC);
    CHECK(original >= 0);
    CHECK(ftruncate(original, (off_t)kind.size) == 0);
    fd = fd_reopen(original, O_RDWR);
    close(original);
    CHECK(fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
    CHECK(fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
}

/* The broker needs no privilege for this: a file's owner may take leases on it. */
static void I4_the_owner_may_ask_without_capabilities(void **state)
{
    child_run(ask_without_capabilities, NULL);
}

/* ---- what the watch tells ---------------------------------------------------------------------------------------- */

/* IN_CLOSE comes when a description's last descriptor and last mapping are gone; not before, and not for
 * each of them. It comes once for each description that was given out. */
static void I4_watch_tells_the_end_of_a_description(struct kind kind)
{
    int fd = kind_buffer(kind), watch = watch_instance();
    int grant, copy;
    char *map;

    assert_ok(watch_add(watch, fd, IN_CLOSE));
    grant = fd_reopen(fd, O_RDWR);
    copy = dup(grant);
    close(grant);
    assert_true(stays_quiet(watch));
    map = map_shared(copy, kind.size, PROT_READ);
    assert_mapped(map);
    munmap(map, kind.size);
    map = map_shared(copy, kind.size, PROT_READ);
    assert_mapped(map);
    close(copy);
    assert_true(stays_quiet(watch)); /* the mapping is left */
    munmap(map, kind.size);
    assert_int_equal(watch_wait(watch), IN_CLOSE_WRITE);

    grant = fd_reopen(fd, O_RDONLY);
    close(grant);
    assert_int_equal(watch_wait(watch), IN_CLOSE_NOWRITE);
    close(watch);
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_watch_tells_the_end_of_a_description)

/* It comes for a killed process that only had a mapping: nobody has to poll for that. */
static void I4_watch_tells_a_killed_holders_end(struct kind kind)
{
    int fd = kind_leased_buffer(kind), watch = watch_instance(), grant = fd_reopen(fd, O_RDONLY);
    struct child child;

    assert_ok(watch_add(watch, fd, IN_CLOSE));
    child_start(&child, map_and_wait, &kind);
    assert_int_equal(fd_send_one(child.channel, grant), 1);
    close(grant);
    child_hear(&child);
    assert_true(stays_quiet(watch));
    kill(child.pid, SIGKILL);
    assert_int_equal(watch_wait(watch), IN_CLOSE_NOWRITE);
    assert_true(WAIT_UNTIL(alone(fd)));
    child_kill(&child);
    close(watch);
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_watch_tells_a_killed_holders_end)

/* It comes for a descriptor that dies in flight, when its socket is closed unread. */
static void I4_watch_tells_the_end_of_a_descriptor_in_flight(struct kind kind)
{
    int fd = kind_leased_buffer(kind), watch = watch_instance(), grant = fd_reopen(fd, O_RDONLY), ends[2];

    assert_ok(watch_add(watch, fd, IN_CLOSE));
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    assert_int_equal(fd_send_one(ends[0], grant), 1);
    close(grant);
    assert_true(stays_quiet(watch));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(watch_wait(watch), IN_CLOSE_NOWRITE);
    assert_true(WAIT_UNTIL(alone(fd)));
    close(watch);
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_watch_tells_the_end_of_a_descriptor_in_flight)

/* Even for one that was hidden in a socket which was sent to itself: the kernel collects such cycles, at
 * the latest when some other socket is closed. */
static void I4_watch_tells_the_end_of_a_cycle_in_flight(void **state)
{
    struct kind kind = kind_shmem();
    int fd = kind_buffer(kind), watch = watch_instance(), grant = fd_reopen(fd, O_RDONLY);
    int ends[2], fds[3];
    int64_t end = wait_now_ms() + PATIENCE_MS;

    assert_ok(watch_add(watch, fd, IN_CLOSE));
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    fds[0] = grant;
    fds[1] = ends[0];
    fds[2] = ends[1];
    assert_int_equal(fd_send(ends[0], "x", 1, fds, 3, 0), 1);
    for (size_t i = 0; i < 3; i++)
        close(fds[i]);
    while (wait_for_events(watch, POLLIN, 10) == 0 && wait_now_ms() < end) {
        assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
        assert_int_equal(fd_send_one(ends[0], ends[1]), 1);
        close(ends[0]);
        close(ends[1]);
    }
    assert_int_equal(watch_take(watch, NULL), IN_CLOSE_NOWRITE);
    assert_true(WAIT_UNTIL(alone(fd)));
    close(watch);
    close(fd);
}

/* Asking causes no event; asking on a description opened for the purpose would, and would answer itself
 * for ever. */
static void I4_asking_on_t_makes_no_event(struct kind kind)
{
    int fd = kind_leased_buffer(kind), watch = watch_instance(), other;

    assert_ok(watch_add(watch, fd, IN_CLOSE));
    assert_true(alone(fd));
    assert_int_equal(watch_take(watch, NULL), 0);
    other = fd_reopen(fd, O_RDWR);
    assert_false(alone(other)); /* T is in its way */
    close(other);
    assert_int_equal(watch_take(watch, NULL), IN_CLOSE_WRITE);
    close(watch);
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_asking_on_t_makes_no_event)

/* The event is sent a moment before the kernel has let the description go: who asks at once may hear "not
 * alone", and no further event would come. So the broker asks again, on a short timer, until it hears
 * "alone" or has reason to believe that somebody else is there. */
static void I4_the_event_may_come_a_moment_before_the_lease_agrees(void **state)
{
    int fd = kind_buffer(kind_shmem()), watch = watch_instance();
    unsigned early = 0;

    assert_ok(watch_add(watch, fd, IN_CLOSE));
    for (int i = 0; i < 500; i++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            close(fd_reopen(fd, O_RDONLY));
            _exit(0);
        }
        while (watch_take(watch, NULL) == 0)
            assert_int_not_equal(wait_for_events(watch, POLLIN, PATIENCE_MS), 0);
        if (!alone(fd)) {
            early++;
            assert_true(WAIT_UNTIL(alone(fd)));
        }
        waitpid(pid, NULL, 0);
    }
    print_message("%u of 500 events came before the lease agreed\n", early);
    close(watch);
    close(fd);
}

/* ---- when the memory is back ------------------------------------------------------------------------------------- */

/* A discarded buffer's pages are back at once, whoever still has it: what an administrator's --force does,
 * and the broker before it closes what nobody has. */
static void I4_discarded_pages_are_back_at_once(struct kind kind)
{
    int fd = kind_buffer(kind), grant = fd_reopen(fd, O_RDONLY);

    assert_ok(memfd_punch(fd, 0, kind.size));
    assert_int_equal(memfd_allocated(fd), 0);
    if (kind.flags & MFD_HUGETLB)
        assert_int_equal(meminfo_kib("HugePages_Free"), 2 * KIND_PAGES);
    close(grant);
    close(fd);
}
TEST_ON_BOTH_KINDS(I4_discarded_pages_are_back_at_once)

/* A published buffer cannot be discarded. Its pages are back, and IN_IGNORED is there, when close() of the
 * last descriptor has returned. IN_IGNORED alone does not say so: the kernel sends it first and frees the
 * pages after (for 1 GiB, more than 100 ms after). So the credit waits for both. */
static void I4_pages_are_back_when_the_last_close_has_returned(void **state)
{
    struct kind kind = kind_hugetlb();
    int fd = kind_unsealed_buffer(kind), watch = watch_instance();

    assert_ok(fcntl(fd, F_ADD_SEALS, SEALS_BUFFER | F_SEAL_WRITE));
    assert_errno(memfd_punch(fd, 0, kind.size), EPERM);
    assert_ok(watch_add(watch, fd, IN_CLOSE));
    assert_int_equal(meminfo_kib("HugePages_Free"), KIND_PAGES);
    close(fd);
    assert_int_equal(meminfo_kib("HugePages_Free"), 2 * KIND_PAGES);
    assert_int_equal(watch_take(watch, NULL), IN_CLOSE_WRITE | IN_IGNORED);
    close(watch);
}

/* Whoever kept an O_PATH descriptor keeps the inode and, if they were not discarded, the pages. IN_IGNORED
 * comes only when it is closed as well: it is the proof that the inode is gone. */
static void I4_in_ignored_waits_for_o_path(struct kind kind)
{
    int fd = kind_buffer(kind), watch = watch_instance();
    int grant = fd_reopen(fd, O_RDONLY), locator = fd_reopen(grant, O_PATH);

    assert_ok(watch_add(watch, fd, IN_CLOSE));
    close(grant);
    assert_int_equal(watch_wait(watch), IN_CLOSE_NOWRITE);
    if (!(kind.flags & MFD_HUGETLB)) /* it may not tell of those, see need_leases() */
        assert_true(alone(fd));
    close(fd);
    assert_int_equal(watch_wait(watch), IN_CLOSE_WRITE);
    assert_true(stays_quiet(watch));
    assert_int_equal(memfd_allocated(locator), kind.size);
    close(locator);
    assert_int_equal(watch_wait(watch), IN_IGNORED);
    if (kind.flags & MFD_HUGETLB)
        assert_true(WAIT_UNTIL(meminfo_kib("HugePages_Free") == 2 * KIND_PAGES));
    close(watch);
}
TEST_ON_BOTH_KINDS(I4_in_ignored_waits_for_o_path)

/* ---- the instance ------------------------------------------------------------------------------------------------ */

static void add_a_watch_and_die(int channel, void *context)
{
    const int *fds = context;

    CHECK(watch_add(fds[0], fds[1], IN_CLOSE) > 0);
    kill(getpid(), SIGKILL);
}

/* Watches belong to the instance, not to the process that added them, and events gather while nobody
 * reads: an instance that the keeper holds loses nothing between two brokers. */
static void an_instance_outlives_who_added_the_watch(void **state)
{
    int fds[2] = {watch_instance(), kind_buffer(kind_shmem())};
    struct child child;

    child_start(&child, add_a_watch_and_die, fds);
    child_wait(&child);
    close(fd_reopen(fds[1], O_RDONLY));
    assert_int_equal(watch_wait(fds[0]), IN_CLOSE_NOWRITE);
    close(fds[1]);
    assert_true(watch_wait(fds[0]) & IN_IGNORED);
    close(fds[0]);
}

static long queue_limit(void)
{
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    long limit = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &limit), 1);
    fclose(file);
    return limit;
}

/* A queue that overflows says so (IN_Q_OVERFLOW) and drops what comes later. The broker then asks the
 * lease of every detached buffer, in slices. Equal neighbours are merged, so it takes two buffers. */
static void an_overflowing_queue_says_so(void **state)
{
    int fds[2] = {kind_buffer(kind_shmem()), kind_buffer(kind_shmem())}, watch = watch_instance();
    long limit = queue_limit();
    unsigned count;

    if (limit > 1000000)
        test_skip("fs.inotify.max_queued_events is %ld: too many to fill", limit);
    assert_ok(watch_add(watch, fds[0], IN_CLOSE));
    assert_ok(watch_add(watch, fds[1], IN_CLOSE));
    for (long i = 0; i < limit + 100; i++)
        close(fd_reopen(fds[i % 2], O_RDONLY));
    assert_true(watch_take(watch, &count) & IN_Q_OVERFLOW);
    assert_int_equal(count, limit + 1);
    close(fds[0]);
    assert_true(watch_wait(watch) & IN_IGNORED); /* and it works on */
    close(watch);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_both_kinds(I4_lease_sees_an_open_grant),
        on_both_kinds(I4_lease_sees_a_mapping_without_a_descriptor),
        on_both_kinds(I4_lease_sees_another_process_until_it_dies),
        on_both_kinds(I4_lease_sees_a_forked_childs_mapping),
        on_both_kinds(I4_lease_sees_a_descriptor_in_flight),
        on_both_kinds(I4_lease_does_not_count_the_brokers_own),
        on_both_kinds(I4_lease_is_blind_to_the_original_description),
        on_both_kinds(I4_lease_is_blind_to_o_path),
        cmocka_unit_test(I4_lease_is_blind_to_a_vmspliced_page),
        on_both_kinds(a_leftover_mapping_sees_the_next_contents),
        cmocka_unit_test(I4_the_owner_may_ask_without_capabilities),
        on_both_kinds(I4_watch_tells_the_end_of_a_description),
        on_both_kinds(I4_watch_tells_a_killed_holders_end),
        on_both_kinds(I4_watch_tells_the_end_of_a_descriptor_in_flight),
        cmocka_unit_test(I4_watch_tells_the_end_of_a_cycle_in_flight),
        on_both_kinds(I4_asking_on_t_makes_no_event),
        cmocka_unit_test(I4_the_event_may_come_a_moment_before_the_lease_agrees),
        on_both_kinds(I4_discarded_pages_are_back_at_once),
        test_with_settings(I4_pages_are_back_when_the_last_close_has_returned),
        on_both_kinds(I4_in_ignored_waits_for_o_path),
        cmocka_unit_test(an_instance_outlives_who_added_the_watch),
        cmocka_unit_test(an_overflowing_queue_says_so),
    };

    return test_run(tests, NULL, NULL);
}
