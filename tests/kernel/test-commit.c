/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte is committed before a buffer leaves the broker, and running out is an error that a call
 * returns, never a signal that somebody gets later (I1). Each page size has its own right way; the obvious
 * ways that are wrong are here as well.
 */
#include "tests/kernel/kinds.h"
#include "tests/support/child.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* ---- fallocate --------------------------------------------------------------------------------------------------- */

/* Setting the size allocates nothing; fallocate allocates every page, zeroed. */
static void I1_fallocate_allocates_every_page(struct kind kind)
{
    int fd = memfd_new(kind.size, kind.flags);
    const char *map;

    assert_int_equal(memfd_allocated(fd), 0);
    assert_ok(fallocate(fd, 0, 0, (off_t)kind.size));
    assert_int_equal(memfd_allocated(fd), kind.size);
    map = map_shared(fd, kind.size, PROT_READ);
    assert_mapped(map);
    for (size_t i = 0; i < kind.size; i += kind.page)
        assert_int_equal(map[i], 0);
    assert_int_equal(memfd_allocated(fd), kind.size);
    munmap((void *)(uintptr_t)map, kind.size);
    close(fd);
}
TEST_ON_BOTH_KINDS(I1_fallocate_allocates_every_page)

/* After a hole was punched, fallocate fills just that in again, with zeros: how a discarded buffer is used
 * anew, and why the committed size is asked of the kernel and not remembered. */
static void I1_fallocate_fills_holes_with_zeros(struct kind kind)
{
    int fd = kind_buffer(kind);
    char *map = map_shared(fd, kind.size, PROT_READ | PROT_WRITE);

    assert_mapped(map);
    memset(map, 'x', kind.size);
    assert_ok(memfd_punch(fd, kind.page, kind.page));
    assert_int_equal(memfd_allocated(fd), kind.size - kind.page);
    assert_ok(fallocate(fd, 0, 0, (off_t)kind.size));
    assert_int_equal(memfd_allocated(fd), kind.size);
    assert_int_equal(map[kind.page - 1], 'x');
    assert_int_equal(map[kind.page], 0);
    assert_int_equal(map[2 * kind.page - 1], 0);
    assert_int_equal(map[2 * kind.page], 'x');
    munmap(map, kind.size);
    close(fd);
}
TEST_ON_BOTH_KINDS(I1_fallocate_fills_holes_with_zeros)

static void ignore_the_signal(int number)
{
    (void)number;
}

static void commit_under_a_timer(int channel, void *context)
{
    const struct sigaction action = {.sa_handler = ignore_the_signal};
    const struct itimerval soon = {.it_value.tv_usec = 2000}, never = {0};
    size_t size = 64 * MIB;
    struct stat st;
    int fd = memfd_create("large", MFD_CLOEXEC), result;

    CHECK(fd >= 0);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    do { /* larger, until it takes longer than the timer */
        size *= 2;
        CHECK(ftruncate(fd, (off_t)size) == 0);
        CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
        result = fallocate(fd, 0, 0, (off_t)size);
        CHECK(result == 0 || errno == EINTR);
        CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
        CHECK(fstat(fd, &st) == 0);
        CHECK(st.st_blocks == (result == 0 ? (blkcnt_t)(size / 512) : 0));
        CHECK(memfd_punch(fd, 0, size) == 0);
    } while (result == 0 && size < GIB / 2);
    printf("a signal %s fallocate of %zu MiB\n", result == 0 ? "did not disturb" : "interrupted", size / MIB);
}

/* A signal may interrupt fallocate of shared memory (younger kernels let only a deadly one do so). Then the
 * kernel takes back all that it had allocated: the answer is everything or nothing, and workers try again. */
static void I1_fallocate_is_all_or_nothing_under_signals(void **state)
{
    child_run(commit_under_a_timer, NULL);
}

/* ---- huge pages -------------------------------------------------------------------------------------------------- */

/* Too few huge pages are an error of fallocate, and what it got up to there stays allocated: the broker
 * punches it out before it reports the failure. */
static void I1_hugetlb_exhaustion_is_an_error_to_be_undone(void **state)
{
    size_t page = huge_page_size();
    int fd;

    settings_huge_pages(page, 4);
    fd = memfd_new(6 * page, MFD_HUGETLB);
    assert_errno(fallocate(fd, 0, 0, (off_t)(6 * page)), ENOSPC);
    print_message("%zu of 6 pages were left allocated\n", memfd_allocated(fd) / page);
    assert_in_range(memfd_allocated(fd), 0, 4 * page);
    assert_ok(memfd_punch(fd, 0, 6 * page));
    assert_int_equal(memfd_allocated(fd), 0);
    assert_int_equal(meminfo_kib("HugePages_Free"), 4);
    close(fd);
}

/* The number of free huge pages is no budget: a mapping that nobody has touched has been promised some of
 * them ("reserved"), and fallocate fails though they are free. Hence pools count what they committed. */
static void I1_free_huge_pages_may_be_promised(void **state)
{
    size_t page = huge_page_size();
    char *promised;
    int other, fd;

    settings_huge_pages(page, 4);
    promised = memfd_mapped(3 * page, MFD_HUGETLB, &other);
    assert_int_equal(meminfo_kib("HugePages_Free"), 4);
    assert_int_equal(meminfo_kib("HugePages_Rsvd"), 3);
    fd = memfd_new(2 * page, MFD_HUGETLB);
    assert_errno(fallocate(fd, 0, 0, (off_t)(2 * page)), ENOSPC);
    close(fd);
    munmap(promised, 3 * page);
    close(other);
}

struct touched {
    char *map;
    size_t size, page;
};

static void touch_every_page(int channel, void *context)
{
    const struct touched *touched = context;

    for (size_t i = 0; i < touched->size; i += touched->page)
        touched->map[i] = 1;
}

/* Huge pages that were not committed are a SIGBUS for whoever touches them when there are none left;
 * MADV_POPULATE_WRITE makes an error of it, where the kernel has it. */
static void I1_uncommitted_huge_pages_are_a_sigbus(void **state)
{
    size_t page = huge_page_size();
    struct touched touched = {.size = 6 * page, .page = page};
    int fd;

    settings_huge_pages(page, 4);
    fd = memfd_new(touched.size, MFD_HUGETLB);
    touched.map = mmap(NULL, touched.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    assert_mapped(touched.map);
    assert_int_equal(child_signal(touch_every_page, &touched), SIGBUS);
    assert_ok(memfd_punch(fd, 0, touched.size));
    assert_true(madvise(touched.map, touched.size, MADV_POPULATE_WRITE) < 0);
    if (errno != EINVAL)
        assert_true(errno == EFAULT || errno == ENOMEM);
    assert_ok(memfd_punch(fd, 0, touched.size));
    munmap(touched.map, touched.size);
    close(fd);
}

/* Committed ones are not, whoever maps them, also when the machine has none left. */
static void I1_committed_huge_pages_are_no_sigbus(void **state)
{
    size_t page = huge_page_size();
    struct touched touched = {.size = 4 * page, .page = page};
    int fd, other;

    settings_huge_pages(page, 4);
    fd = memfd_new(touched.size, MFD_HUGETLB);
    assert_ok(fallocate(fd, 0, 0, (off_t)touched.size));
    other = memfd_new(page, MFD_HUGETLB);
    assert_errno(fallocate(other, 0, 0, (off_t)page), ENOSPC);
    close(other);
    touched.map = map_shared(fd, touched.size, PROT_READ | PROT_WRITE);
    assert_mapped(touched.map);
    assert_int_equal(child_signal(touch_every_page, &touched), 0);
    munmap(touched.map, touched.size);
    close(fd);
}

/* What is not promised (design, "Not promised"): a co-holder with WRITE may punch huge pages out; if
 * somebody else has taken them by then, an innocent holder gets the signal. */
static void a_writers_hole_in_huge_pages_can_be_a_sigbus(void **state)
{
    size_t page = huge_page_size();
    struct touched touched = {.size = 4 * page, .page = page};
    int fd, other;

    settings_huge_pages(page, 4);
    fd = memfd_new(touched.size, MFD_HUGETLB);
    assert_ok(fallocate(fd, 0, 0, (off_t)touched.size));
    touched.map = map_shared(fd, touched.size, PROT_READ | PROT_WRITE);
    assert_mapped(touched.map);
    assert_ok(memfd_punch(fd, 0, touched.size));
    other = memfd_new(4 * page, MFD_HUGETLB);
    if (fallocate(other, 0, 0, (off_t)(4 * page)) == 0)
        assert_int_equal(child_signal(touch_every_page, &touched), SIGBUS);
    else /* a kernel that keeps a mapping's promise over a hole */
        assert_int_equal(child_signal(touch_every_page, &touched), 0);
    close(other);
    munmap(touched.map, touched.size);
    close(fd);
}

/* The same in 1 GiB pages, where the machine has them to give. */
static void I1_gigantic_pages_commit_alike(void **state)
{
    int fd;

    settings_huge_pages(GIB, 1);
    fd = memfd_new(GIB, MFD_HUGETLB | (30U << 26));
    assert_ok(fallocate(fd, 0, 0, (off_t)GIB));
    assert_int_equal(memfd_allocated(fd), GIB);
    close(fd);
    fd = memfd_new(2 * GIB, MFD_HUGETLB | (30U << 26));
    assert_errno(fallocate(fd, 0, 0, (off_t)(2 * GIB)), ENOSPC);
    close(fd);
}

/* ---- transparent huge pages -------------------------------------------------------------------------------------- */

/* KiB of the mapping that begins at address which are mapped by huge pages. */
static long mapped_huge_kib(const void *address)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    unsigned long begin, end;
    bool inside = false;
    char line[512];
    long kib = -1;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            inside = begin == (unsigned long)(uintptr_t)address;
        else if (inside && strncmp(line, "ShmemPmdMapped:", 15) == 0)
            kib = strtol(line + 15, NULL, 10);
    }
    fclose(file);
    return kib;
}

/* MADV_HUGEPAGE and MADV_POPULATE_WRITE give transparent huge pages, and commit them. Any later mapping at
 * a suitable address, in any process, has them without asking. */
static void I1_populating_gives_transparent_huge_pages(void **state)
{
    size_t thp = thp_size(), size = 2 * thp;
    char *map, *other;
    int fd;

    map = memfd_mapped_thp(size, &fd);
    map_populate(map, size);
    assert_int_equal(memfd_allocated(fd), size);
    assert_int_equal(mapped_huge_kib(map), size / KIB);

    other = map_aligned(fd, size, thp);
    other[0] = other[thp] = 1;
    assert_int_equal(mapped_huge_kib(other), size / KIB);
    munmap(other, size);
    munmap(map, size);
    close(fd);
}

/* So does touching each of them, with MADV_HUGEPAGE before: what is left on kernels without
 * MADV_POPULATE_WRITE. */
static void I1_touching_gives_transparent_huge_pages(void **state)
{
    size_t thp = thp_size(), size = 2 * thp;
    char *map;
    int fd;

    map = memfd_mapped_thp(size, &fd);
    map[0] = map[thp] = 0;
    assert_int_equal(memfd_allocated(fd), size);
    assert_int_equal(mapped_huge_kib(map), size / KIB);
    munmap(map, size);
    close(fd);
}

/* fallocate commits small pages, even when a mapping has asked for huge ones; and small pages stay small
 * when they are populated afterwards. So the order matters. */
static void I1_fallocate_gives_no_transparent_huge_pages(void **state)
{
    size_t thp = thp_size(), size = 2 * thp;
    char *map;
    int fd;

    map = memfd_mapped_thp(size, &fd);
    assert_ok(fallocate(fd, 0, 0, (off_t)size));
    assert_int_equal(memfd_allocated(fd), size);
    if (madvise(map, size, MADV_POPULATE_WRITE) < 0)
        for (size_t i = 0; i < size; i += page_size())
            map[i] = 1;
    assert_int_equal(mapped_huge_kib(map), 0);
    munmap(map, size);
    close(fd);
}

/* A buffer that is no multiple of the huge page is committed whole all the same. */
static void I1_populating_commits_an_odd_size(void **state)
{
    size_t thp = thp_size(), size = thp + 3 * page_size();
    char *map;
    int fd;

    map = memfd_mapped_thp(size, &fd);
    map_populate(map, size);
    assert_true(memfd_allocated(fd) >= size);
    print_message("%zu KiB are allocated for %zu\n", memfd_allocated(fd) / KIB, size / KIB);
    munmap(map, size);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_both_kinds(I1_fallocate_allocates_every_page),
        on_both_kinds(I1_fallocate_fills_holes_with_zeros),
        cmocka_unit_test(I1_fallocate_is_all_or_nothing_under_signals),
        test_with_settings(I1_hugetlb_exhaustion_is_an_error_to_be_undone),
        test_with_settings(I1_free_huge_pages_may_be_promised),
        test_with_settings(I1_uncommitted_huge_pages_are_a_sigbus),
        test_with_settings(I1_committed_huge_pages_are_no_sigbus),
        test_with_settings(a_writers_hole_in_huge_pages_can_be_a_sigbus),
        test_with_settings(I1_gigantic_pages_commit_alike),
        test_with_settings(I1_populating_gives_transparent_huge_pages),
        test_with_settings(I1_touching_gives_transparent_huge_pages),
        test_with_settings(I1_fallocate_gives_no_transparent_huge_pages),
        test_with_settings(I1_populating_commits_an_odd_size),
    };

    return test_run(tests, NULL, NULL);
}
