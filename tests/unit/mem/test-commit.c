/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers as they are made: committed, sealed, private, on their node; and every way in which that can fail. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem/commit.h"
#include "proto/status.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/settings.h"
#include "tests/unit/mem/faults.h"

static struct topology machine;

static int setup(void **state)
{
    return topology_load(&machine, 0);
}

static uint32_t a_node(void)
{
    for (uint32_t i = 0; i < machine.n_nodes; i++)
        if (machine.nodes[i].total)
            return machine.nodes[i].number;
    return 0;
}

/* All on the node that the buffers are to be on. */
static void have_huge_pages(unsigned n)
{
    settings_huge_pages_on_node(huge_page_size(), n, machine.n_nodes > 1 ? (int)a_node() : -1);
}

static void prepare(struct commit *c, enum pages pages, uint64_t bytes, bool strict)
{
    commit_init(c);
    c->topology = &machine;
    memcpy(c->label, "memoryd-test", sizeof("memoryd-test"));
    c->pages = pages;
    c->page_size = pages == PAGES_THP ? thp_size() : pages == PAGES_HUGETLB ? huge_page_size() : page_size();
    plan_unpack(&c->plan,
                &(struct plan_brief){
                    .bytes = bytes,
                    .n_nodes = 1,
                    .node = a_node(),
                    .strict = strict,
                    .placement = strict ? PLACEMENT_BIND : PLACEMENT_PREFERRED,
                },
                NULL);
}

static void must(struct commit *c)
{
    if (commit_run(c))
        fail_msg("%s: %s", "commit", c->problem.sentence);
}

/* What every buffer is, whatever its pages. */
static void check_buffer(const struct commit *c)
{
    struct stat st;

    assert_ok(fstat(c->fd, &st));
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal((uint64_t)st.st_size, c->plan.brief.bytes);
    assert_true(st.st_ino == c->identity.ino && st.st_dev == c->identity.dev);
    assert_int_equal(fcntl(c->fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(c->fd, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_int_equal(fcntl(c->fd, F_GET_SEALS) & (SEALS_BUFFER | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE),
                     c->publishable ? SEALS_BUFFER & ~F_SEAL_SEAL : SEALS_BUFFER);
    assert_errno(ftruncate(c->fd, 0), EPERM);
    assert_errno(ftruncate(c->fd, st.st_size * 2), EPERM);
    /* T is the only description, or no lease would be given */
    if (fcntl(c->fd, F_SETLEASE, F_WRLCK) == 0)
        assert_ok(fcntl(c->fd, F_SETLEASE, F_UNLCK));
    else /* Linux 7.0 and later give none there */
        assert_true(errno == EINVAL && c->page_size > page_size());
}

static void I1_every_byte_has_its_page(void **state)
{
    static const uint64_t pages[] = {1, 2, 31, 33, 1000, 20000};
    unsigned fds = fd_count();
    struct commit c;

    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        for (int publishable = 0; publishable < 2; publishable++) {
            prepare(&c, PAGES_BASE, pages[i] * page_size(), publishable);
            c.publishable = publishable;
            assert_int_equal(commit_is_small(&c), pages[i] * page_size() <= COMMIT_INLINE_MAX);
            must(&c);
            check_buffer(&c);
            assert_int_equal(memfd_allocated(c.fd), pages[i] * page_size());
            assert_int_equal(c.verified, publishable);
            commit_deinit(&c);
            commit_deinit(&c);
        }
    assert_int_equal(fd_count(), fds);
}

static ssize_t write_a_page(int fd, const void *bytes, size_t size, off_t offset)
{
    return sys_kernel.pwrite(fd, bytes, size < page_size() ? size : page_size(), offset);
}

static void I1_what_is_written_in_part_is_written_on(void **state)
{
    struct commit c;

    fault_set(FAULT_KINDS, 0, 0);
    faulty.pwrite = write_a_page;
    prepare(&c, PAGES_BASE, 5 * page_size(), false);
    must(&c);
    check_buffer(&c);
    assert_int_equal(memfd_allocated(c.fd), 5 * page_size());
    commit_deinit(&c);
}

/* What is made for stock: all of it is written, in pieces of what is written at once. */
static void I1_what_is_to_be_cleared_is_written(void **state)
{
    struct commit c;

    prepare(&c, PAGES_BASE, 4 * COMMIT_INLINE_MAX + page_size(), false);
    c.clear = true;
    fault_set(FAULT_fallocate, 1, ENOSPC);
    must(&c);
    fault_clear(NULL);
    check_buffer(&c);
    assert_int_equal(memfd_allocated(c.fd), 4 * COMMIT_INLINE_MAX + page_size());
    commit_deinit(&c);
}

static void lazy_buffers_have_none(void **state)
{
    struct commit c;

    prepare(&c, PAGES_BASE, GIB * 64, true);
    c.lazy = true;
    assert_true(commit_is_small(&c));
    must(&c);
    check_buffer(&c);
    assert_int_equal(memfd_allocated(c.fd), 0);
    assert_false(c.verified);
    commit_deinit(&c);
}

/* As where there are several nodes: policies are set and every page is looked at. */
static void pages_are_verified_on_their_node(void **state)
{
    size_t counts[NODES_MAX];
    struct commit c;
    char *map;

    machine.one_node = false;
    prepare(&c, PAGES_BASE, 80 * MIB, true);
    must(&c);
    check_buffer(&c);
    assert_true(c.verified);
    map = map_shared(c.fd, 80 * MIB, PROT_READ);
    assert_mapped(map);
    pages_by_node(map, 80 * MIB, page_size(), counts);
    assert_int_equal(counts[topology_node(&machine, a_node())->physical], 80 * MIB / page_size());
    munmap(map, 80 * MIB);
    commit_deinit(&c);
}

static long lie_about_nodes(unsigned long count, void **pages, int *status)
{
    long r = sys_kernel.page_nodes(count, pages, status);

    status[count / 2]++;
    return r;
}

static void a_misplaced_page_is_found(void **state)
{
    unsigned fds = fd_count();
    struct commit c;

    machine.one_node = false;
    fault_set(FAULT_KINDS, 0, 0);
    faulty.page_nodes = lie_about_nodes;
    prepare(&c, PAGES_BASE, 4 * MIB, true);
    assert_int_equal(commit_run(&c), STATUS_MISPLACED);
    assert_int_equal(c.fd, -1);
    assert_int_equal(fd_count(), fds);
    /* who only prefers a node is not told */
    prepare(&c, PAGES_BASE, 4 * MIB, false);
    must(&c);
    assert_false(c.verified);
    commit_deinit(&c);
}

static void a_node_that_is_not_ours_is_misplaced(void **state)
{
    struct commit c;

    machine.one_node = false;
    for (uint32_t i = 0; i < machine.n_nodes; i++)
        machine.nodes[i].physical = 200;
    prepare(&c, PAGES_BASE, MIB, true);
    assert_int_equal(commit_run(&c), STATUS_MISPLACED);
    assert_non_null(strstr(c.problem.sentence, "node 200"));
}

static void thp_buffers_get_huge_pages(void **state)
{
    size_t huge = thp_size();
    struct commit c;

    settings_shmem_thp();
    for (int several = 0; several < 2; several++) {
        machine.one_node = !several && machine.one_node;
        prepare(&c, PAGES_THP, 40 * huge + 3 * page_size(), several);
        must(&c);
        check_buffer(&c);
        assert_int_equal(memfd_allocated(c.fd) / page_size(), c.plan.brief.bytes / page_size());
        assert_in_range(c.huge_bytes, 36 * huge, 40 * huge); /* memory may be in pieces */
        commit_deinit(&c);
    }
}

static void no_huge_page_is_given_unasked(void **state)
{
    struct commit c;

    settings_shmem_thp();
    settings_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always");
    assert_int_equal(topology_load(&machine, 0), 0);
    for (uint64_t pages = 1; pages < 600; pages += 149) {
        prepare(&c, PAGES_BASE, pages * page_size(), false);
        must(&c);
        check_buffer(&c);
        assert_int_equal(memfd_allocated(c.fd), pages * page_size());
        commit_deinit(&c);
    }
}

static int no_populate(void *address, size_t length, int advice)
{
    if (advice == MADV_POPULATE_WRITE) {
        errno = EINVAL;
        return -1;
    }
    return sys_kernel.madvise(address, length, advice);
}

static int no_noexec(const char *name, unsigned flags)
{
    if (flags & MFD_NOEXEC_SEAL) {
        errno = EINVAL;
        return -1;
    }
    return sys_kernel.memfd_create(name, flags);
}

static void old_kernels_do_as_well(void **state)
{
    size_t huge = thp_size();
    struct commit c;

    fault_set(FAULT_KINDS, 0, 0);
    faulty.madvise = no_populate;
    faulty.memfd_create = no_noexec;
    prepare(&c, PAGES_BASE, MIB, false);
    must(&c);
    check_buffer(&c);
    commit_deinit(&c);
    settings_shmem_thp();
    prepare(&c, PAGES_THP, 20 * huge + page_size(), false);
    must(&c);
    check_buffer(&c);
    assert_int_equal(memfd_allocated(c.fd), c.plan.brief.bytes);
    assert_in_range(c.huge_bytes, 16 * huge, 20 * huge);
    commit_deinit(&c);
}

static void hugetlb_buffers_are_committed(void **state)
{
    size_t huge = huge_page_size();
    unsigned fds;
    struct commit c;
    struct commit second;
    int mode;

    have_huge_pages(8);
    fds = fd_count();
    machine.one_node = false;
    prepare(&c, PAGES_HUGETLB, 5 * huge, true);
    assert_false(commit_is_small(&c));
    must(&c);
    check_buffer(&c);
    assert_int_equal(memfd_allocated(c.fd), 5 * huge);
    assert_true(c.verified);
    assert_int_equal(sys->get_mempolicy(&mode, NULL), 0);
    assert_int_equal(mode, MPOL_DEFAULT);

    /* I1: more than there is fails at once and keeps nothing; what was given stays whole */
    prepare(&second, PAGES_HUGETLB, 4 * huge, true);
    assert_int_equal(commit_run(&second), STATUS_NO_MEMORY);
    assert_non_null(strstr(second.problem.sentence, "huge pages"));
    assert_int_equal(meminfo_kib("HugePages_Free"), 3);
    assert_int_equal(sys->get_mempolicy(&mode, NULL), 0);
    assert_int_equal(mode, MPOL_DEFAULT);
    prepare(&second, PAGES_HUGETLB, 3 * huge, true);
    must(&second);
    commit_deinit(&second);
    commit_deinit(&c);
    assert_int_equal(meminfo_kib("HugePages_Free"), 8);
    assert_int_equal(fd_count(), fds);
}

struct toucher {
    int fd;
    size_t size;
};

static void touch_all(int channel, void *context)
{
    const struct toucher *t = context;
    volatile char *map = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);

    (void)channel;
    CHECK(map != MAP_FAILED);
    for (size_t i = 0; i < t->size; i += page_size())
        map[i]++;
}

static void I1_touching_is_no_SIGBUS_when_nothing_is_left(void **state)
{
    size_t huge = huge_page_size();
    struct toucher t = {.size = 4 * huge};
    struct commit c;
    struct commit rest;

    have_huge_pages(4);
    prepare(&c, PAGES_HUGETLB, t.size, false);
    must(&c);
    prepare(&rest, PAGES_HUGETLB, huge, false);
    assert_int_equal(commit_run(&rest), STATUS_NO_MEMORY);
    t.fd = c.fd;
    assert_int_equal(child_signal(touch_all, &t), 0);
    commit_deinit(&c);
}

static void stranger_opens(int channel, void *context)
{
    const struct toucher *t = context;
    char path[40];

    (void)channel;
    become(UID_STRANGER);
    CHECK_MAP_ERRNO(mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0), EACCES);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", t->fd);
    CHECK_ERRNO(open(path, O_RDONLY | O_CLOEXEC), EACCES);
    CHECK_ERRNO(open(path, O_RDWR | O_CLOEXEC), EACCES);
    CHECK_ERRNO(ftruncate(t->fd, 0), EINVAL);
    CHECK_ERRNO(fchmod(t->fd, 0777), EPERM);
}

static void I2_another_user_gets_what_he_was_given(void **state)
{
    struct toucher t = {.size = MIB};
    struct commit c;

    test_needs_root();
    prepare(&c, PAGES_BASE, MIB, false);
    must(&c);
    t.fd = fd_reopen(c.fd, O_RDONLY);
    assert_ok(t.fd);
    child_run(stranger_opens, &t);
    close(t.fd);
    commit_deinit(&c);
}

static uint64_t next_to_nothing(int node)
{
    (void)node;
    return 70 * MIB;
}

static void exhaustion_is_a_refusal(void **state)
{
    unsigned fds = fd_count();
    struct commit c;

    fault_set(FAULT_KINDS, 0, 0);
    faulty.available = next_to_nothing;
    prepare(&c, PAGES_BASE, 8 * MIB, false);
    assert_int_equal(commit_run(&c), STATUS_NO_MEMORY);
    assert_int_equal(c.fd, -1);
    assert_int_equal(fd_count(), fds);
    prepare(&c, PAGES_BASE, 4 * MIB, false);
    must(&c);
    commit_deinit(&c);
}

static struct commit *cancelled;
static uint64_t asked_for;

static int cancel_at_the_second(int fd, int mode, off_t offset, off_t length)
{
    asked_for += (uint64_t)length;
    if (offset)
        atomic_store(&cancelled->cancel, true);
    return sys_kernel.fallocate(fd, mode, offset, length);
}

static void a_dead_clients_commit_stops(void **state)
{
    unsigned fds = fd_count();
    struct commit c;

    asked_for = 0;
    fault_set(FAULT_KINDS, 0, 0);
    faulty.fallocate = cancel_at_the_second;
    prepare(&c, PAGES_BASE, 16 * GIB, false);
    cancelled = &c;
    assert_int_equal(commit_run(&c), STATUS_TIMED_OUT);
    assert_int_equal(c.fd, -1);
    assert_int_equal(fd_count(), fds);
    assert_in_range(asked_for, 1, GIB);
}

/* Others wait all the time. It gets on by a slice each time, and is as it would be without pauses. */
static void it_goes_on_where_it_paused(void **state)
{
    static const atomic_bool pause = true;
    unsigned runs = 1, fds = fd_count();
    struct commit c;

    prepare(&c, PAGES_BASE, 2 * COMMIT_SLICE + page_size(), true);
    c.pause = &pause;
    for (; commit_run(&c) == 0 && c.paused; runs++)
        assert_int_equal(c.fd, -1);
    assert_int_equal(c.status, 0);
    assert_int_equal(runs, machine.one_node ? 3 : 5);
    check_buffer(&c);
    assert_int_equal(memfd_allocated(c.fd), 2 * COMMIT_SLICE + page_size());
    commit_deinit(&c);

    prepare(&c, PAGES_BASE, 2 * COMMIT_SLICE, false);
    c.pause = &pause;
    assert_int_equal(commit_run(&c), 0);
    assert_true(c.paused);
    atomic_store(&c.cancel, true);
    assert_int_equal(commit_run(&c), STATUS_TIMED_OUT);
    assert_false(c.paused);
    assert_int_equal(fd_count(), fds);

    /* given up without being run again */
    prepare(&c, PAGES_BASE, 2 * COMMIT_SLICE, false);
    c.pause = &pause;
    assert_int_equal(commit_run(&c), 0);
    commit_deinit(&c);
    assert_int_equal(fd_count(), fds);
}

static ssize_t cancel_at_the_second_write(int fd, const void *bytes, size_t size, off_t offset)
{
    asked_for += size;
    if (offset)
        atomic_store(&cancelled->cancel, true);
    return sys_kernel.pwrite(fd, bytes, size, offset);
}

static void so_does_one_that_clears(void **state)
{
    unsigned fds = fd_count();
    struct commit c;

    asked_for = 0;
    fault_set(FAULT_KINDS, 0, 0);
    faulty.pwrite = cancel_at_the_second_write;
    prepare(&c, PAGES_BASE, 16 * MIB, false);
    c.clear = true;
    cancelled = &c;
    assert_int_equal(commit_run(&c), STATUS_TIMED_OUT);
    assert_int_equal(c.fd, -1);
    assert_int_equal(fd_count(), fds);
    assert_int_equal(asked_for, 2 * COMMIT_INLINE_MAX);
}

/* Every call of every kind fails once: nothing stays open, nothing stays allocated, and it is said why. */
static void fail_everywhere(enum pages pages, uint64_t bytes, int error)
{
    unsigned fds = fd_count();
    unsigned refused = 0;
    struct commit c;

    for (enum fault kind = 0; kind < FAULT_KINDS; kind++)
        for (unsigned n = 1;; n++) {
            unsigned long mask[SYS_NODE_MASK_WORDS];
            int mode;

            fault_set(kind, n, error);
            prepare(&c, pages, bytes, true);
            commit_run(&c);
            fault_clear(NULL);
            assert_int_equal(sys->get_mempolicy(&mode, mask), 0);
            assert_int_equal(mode, MPOL_DEFAULT);
            if (c.status) {
                assert_true(c.status > 0);
                assert_true(strlen(c.problem.sentence) > 10);
                assert_int_equal(c.fd, -1);
                assert_true(fault_hit);
                refused++;
            } else {
                check_buffer(&c);
                assert_true(memfd_allocated(c.fd) >= bytes);
                commit_deinit(&c);
            }
            assert_int_equal(fd_count(), fds);
            if (!fault_hit)
                break;
        }
    assert_true(refused >= 8);
}

static void faults_leave_nothing_behind(void **state)
{
    static const int errors[] = {ENOMEM, EMFILE, EPERM, EINVAL};

    machine.one_node = false;
    for (size_t i = 0; i < 4; i++) {
        fail_everywhere(PAGES_BASE, 3 * MIB, errors[i]);
        fail_everywhere(PAGES_BASE, 3 * page_size(), errors[i]);
    }
}

static void faults_leave_nothing_behind_thp(void **state)
{
    machine.one_node = false;
    settings_shmem_thp();
    fail_everywhere(PAGES_THP, 3 * thp_size(), ENOMEM);
}

static void faults_leave_nothing_behind_hugetlb(void **state)
{
    machine.one_node = false;
    have_huge_pages(3);
    fail_everywhere(PAGES_HUGETLB, 3 * huge_page_size(), ENOSPC);
    assert_int_equal(meminfo_kib("HugePages_Free"), 3);
}

static void outcomes_have_their_status(void **state)
{
    struct commit c;

    fault_set(FAULT_memfd_create, 1, EMFILE);
    prepare(&c, PAGES_BASE, MIB, false);
    assert_int_equal(commit_run(&c), STATUS_NO_DESCRIPTORS);
    fault_set(FAULT_reopen, 1, ENFILE);
    assert_int_equal(commit_run(&c), STATUS_NO_DESCRIPTORS);
    fault_set(FAULT_fallocate, 1, ENOSPC);
    assert_int_equal(commit_run(&c), STATUS_NO_MEMORY);
    fault_set(FAULT_fallocate, 1, EINTR);
    assert_int_equal(commit_run(&c), 0);
    commit_deinit(&c);
    prepare(&c, PAGES_BASE, COMMIT_INLINE_MAX, false);
    fault_set(FAULT_pwrite, 1, ENOSPC);
    assert_int_equal(commit_run(&c), STATUS_NO_MEMORY);
    fault_set(FAULT_pwrite, 1, EINTR);
    assert_int_equal(commit_run(&c), 0);
    commit_deinit(&c);
    fault_set(FAULT_reopen, 1, ENOENT);
    assert_int_equal(commit_run(&c), STATUS_NOT_SUPPORTED);
    fault_clear(NULL);
    c.pages = PAGES_HUGETLB;
    c.page_size = UINT64_C(1) << 13;
    assert_int_equal(commit_run(&c), STATUS_NOT_SUPPORTED);
}

static void *run_one(void *argument)
{
    commit_run(argument);
    return NULL;
}

static void threads_commit_side_by_side(void **state)
{
    enum { N = 4 };
    struct commit c[N];
    pthread_t threads[N];

    machine.one_node = false;
    for (int i = 0; i < N; i++) {
        prepare(&c[i], PAGES_BASE, 70 * MIB, true);
        assert_int_equal(pthread_create(&threads[i], NULL, run_one, &c[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(c[i].status, 0);
        check_buffer(&c[i]);
        commit_deinit(&c[i]);
    }
}

static int release(void **state)
{
    fault_clear(state);
    return settings_release(state);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, release)
    const struct CMUnitTest tests[] = {
        TEST(I1_every_byte_has_its_page),
        TEST(I1_touching_is_no_SIGBUS_when_nothing_is_left),
        TEST(I2_another_user_gets_what_he_was_given),
        TEST(I1_what_is_written_in_part_is_written_on),
        TEST(I1_what_is_to_be_cleared_is_written),
        TEST(lazy_buffers_have_none),
        TEST(pages_are_verified_on_their_node),
        TEST(a_misplaced_page_is_found),
        TEST(a_node_that_is_not_ours_is_misplaced),
        TEST(thp_buffers_get_huge_pages),
        TEST(no_huge_page_is_given_unasked),
        TEST(old_kernels_do_as_well),
        TEST(hugetlb_buffers_are_committed),
        TEST(exhaustion_is_a_refusal),
        TEST(a_dead_clients_commit_stops),
        TEST(it_goes_on_where_it_paused),
        TEST(so_does_one_that_clears),
        TEST(faults_leave_nothing_behind),
        TEST(faults_leave_nothing_behind_thp),
        TEST(faults_leave_nothing_behind_hugetlb),
        TEST(outcomes_have_their_status),
        TEST(threads_commit_side_by_side),
    };

    return test_run(tests, NULL, NULL);
}
