/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory on the right node (I1: each page size has its own right way, and what was got is verified). These
 * facts need two nodes with memory; on a machine with one they are tried by `make check-vm`.
 */
#include "tests/kernel/kinds.h"
#include "tests/support/child.h"

#include <errno.h>
#include <numaif.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#define BITS (NODES_MAX + 1) /* the kernel wants one more than there are */

/* The first two nodes with memory, or skip. This process runs on a CPU of the first, if it has one. */
static void two_nodes(int nodes[2])
{
    unsigned long memory = nodes_with_memory(), cpus = nodes_with_cpu();
    int n = 0;

    for (int node = 0; node < NODES_MAX && n < 2; node++)
        if (memory >> node & 1)
            nodes[n++] = node;
    if (n < 2)
        test_skip("one NUMA node: make check-vm proves this on several");
    if (cpus >> nodes[0] & 1) {
        cpu_set_t set;

        /* the test machines have one CPU a node, with the node's number */
        CPU_ZERO(&set);
        CPU_SET((size_t)nodes[0], &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
    }
}

static int bind_mapping(void *address, size_t size, int mode, unsigned long mask)
{
    return (int)mbind(address, size, mode, &mask, BITS, 0);
}

static size_t pages_on(const void *address, size_t size, size_t step, int node)
{
    size_t counts[NODES_MAX];

    pages_by_node(address, size, step, counts);
    return counts[node];
}

/* ---- 4 KiB pages ------------------------------------------------------------------------------------------------- */

/* mbind on any mapping of a memfd, then fallocate: every page lies on the node that was bound, wherever
 * the caller runs. Tried for every node, with and without CPUs. */
static void I1_shmem_bound_then_allocated_lies_on_its_node(void **state)
{
    size_t page = page_size(), size = 64 * page;
    int nodes[2];

    two_nodes(nodes);
    for (int node = 0; node < NODES_MAX; node++) {
        char *map;
        int fd;

        if (!(nodes_with_memory() >> node & 1))
            continue;
        map = memfd_mapped(size, 0, &fd);
        assert_ok(bind_mapping(map, size, MPOL_BIND, 1UL << node));
        assert_ok(fallocate(fd, 0, 0, (off_t)size));
        assert_int_equal(pages_on(map, size, page, node), 64);
        munmap(map, size);
        close(fd);
    }
}

struct elsewhere {
    size_t size;
    int node;
};

static void touch_from_elsewhere(int channel, void *context)
{
    const struct elsewhere *elsewhere = context;
    int fd = fd_receive_one(channel);
    unsigned long mask = 1UL << elsewhere->node;
    char *map = map_shared(fd, elsewhere->size, PROT_READ | PROT_WRITE);

    CHECK(map != MAP_FAILED);
    CHECK(set_mempolicy(MPOL_BIND, &mask, BITS) == 0);
    memset(map, 1, elsewhere->size);
}

/* The policy belongs to the memfd, not to the process or the mapping that set it: with everything unmapped
 * it still holds for whoever touches a lazily committed page first, against that process's own policy. */
static void shmem_policy_belongs_to_the_memfd(void **state)
{
    size_t page = page_size(), size = 64 * page;
    struct elsewhere elsewhere = {.size = size};
    struct child child;
    int nodes[2], fd;
    char *map;

    two_nodes(nodes);
    elsewhere.node = nodes[0];
    map = memfd_mapped(size, 0, &fd);
    assert_ok(bind_mapping(map, size, MPOL_BIND, 1UL << nodes[1]));
    munmap(map, size);
    child_start(&child, touch_from_elsewhere, &elsewhere);
    assert_int_equal(fd_send_one(child.channel, fd), 1);
    child_finish(&child);
    map = map_shared(fd, size, PROT_READ);
    assert_mapped(map);
    assert_int_equal(pages_on(map, size, page, nodes[1]), 64);
    munmap(map, size);
    close(fd);
}

/* Interleaving spreads the pages evenly, one by one. */
static void shmem_interleaves_evenly(void **state)
{
    size_t page = page_size(), size = 64 * page;
    int nodes[2], fd;
    char *map;

    two_nodes(nodes);
    map = memfd_mapped(size, 0, &fd);
    assert_ok(bind_mapping(map, size, MPOL_INTERLEAVE, 1UL << nodes[0] | 1UL << nodes[1]));
    assert_ok(fallocate(fd, 0, 0, (off_t)size));
    assert_int_equal(pages_on(map, size, page, nodes[0]), 32);
    assert_int_equal(pages_on(map, size, page, nodes[1]), 32);
    munmap(map, size);
    close(fd);
}

/* Any split, in parts of any size, is made of ranges bound one by one: what the broker does for interleave
 * with a part size and for split by weights, on every kernel. */
static void shmem_ranges_are_bound_one_by_one(void **state)
{
    size_t page = page_size(), size = 64 * page;
    int nodes[2], fd;
    char *map;

    two_nodes(nodes);
    map = memfd_mapped(size, 0, &fd);
    assert_ok(bind_mapping(map, 48 * page, MPOL_BIND, 1UL << nodes[1]));
    assert_ok(bind_mapping(map + 48 * page, 16 * page, MPOL_BIND, 1UL << nodes[0]));
    assert_ok(fallocate(fd, 0, 0, (off_t)size));
    assert_int_equal(pages_on(map, 48 * page, page, nodes[1]), 48);
    assert_int_equal(pages_on(map + 48 * page, 16 * page, page, nodes[0]), 16);
    munmap(map, size);
    close(fd);
}

/* Pages of a memfd are moved by binding it anew with MPOL_MF_MOVE. */
static void shmem_pages_can_be_moved(void **state)
{
    size_t page = page_size(), size = 64 * page;
    unsigned long mask;
    int nodes[2], fd;
    char *map;

    two_nodes(nodes);
    map = memfd_mapped(size, 0, &fd);
    assert_ok(bind_mapping(map, size, MPOL_BIND, 1UL << nodes[1]));
    assert_ok(fallocate(fd, 0, 0, (off_t)size));
    memset(map, 1, size);
    mask = 1UL << nodes[0];
    assert_ok(mbind(map, size, MPOL_BIND, &mask, BITS, MPOL_MF_MOVE));
    assert_int_equal(pages_on(map, size, page, nodes[0]), 64);
    assert_int_equal(map[size - 1], 1);
    munmap(map, size);
    close(fd);
}

/* Where a page is in another process's page tables it stays, and mbind does not tell: so the pages have to be
 * looked at. A mapping that is there untouched, or was emptied since, is no obstacle. */
static void look_and_let_go(int channel, void *context)
{
    int fd = *(int *)context;
    size_t size = 64 * page_size();
    char *map = map_shared(fd, size, PROT_READ);

    CHECK(map != MAP_FAILED && map[size - 1] == 1);
    tell(channel);
    hear(channel);
    CHECK(!madvise(map, size, MADV_DONTNEED));
    tell(channel);
    hear(channel);
    CHECK(map[0] == 1 && map[size - 1] == 1);
}

static void shmem_pages_that_others_have_touched_stay(void **state)
{
    size_t page = page_size(), size = 64 * page;
    struct child child;
    unsigned long mask;
    int nodes[2], fd;
    char *map;

    two_nodes(nodes);
    map = memfd_mapped(size, 0, &fd);
    assert_ok(bind_mapping(map, size, MPOL_BIND, 1UL << nodes[1]));
    assert_ok(fallocate(fd, 0, 0, (off_t)size));
    memset(map, 1, size);
    child_start(&child, look_and_let_go, &fd);
    child_hear(&child);
    mask = 1UL << nodes[0];
    assert_ok(mbind(map, size, MPOL_BIND, &mask, BITS, MPOL_MF_MOVE));
    assert_in_range(pages_on(map, size, page, nodes[1]), 1, 64);
    child_tell(&child);
    child_hear(&child);
    assert_ok(mbind(map, size, MPOL_BIND, &mask, BITS, MPOL_MF_MOVE));
    assert_int_equal(pages_on(map, size, page, nodes[0]), 64);
    child_tell(&child);
    child_finish(&child);
    munmap(map, size);
    close(fd);
}

/* A node that is not there is refused when it is bound, not when memory is wanted. */
static void binding_to_a_missing_node_is_refused(void **state)
{
    size_t size = page_size();
    int fd;
    char *map = memfd_mapped(size, 0, &fd);

    assert_false(nodes_with_memory() >> 63 & 1);
    errno = 0;
    if (bind_mapping(map, size, MPOL_BIND, 1UL << 0) < 0 && errno == ENOSYS)
        test_skip("this kernel has no NUMA policies");
    assert_errno(bind_mapping(map, size, MPOL_BIND, 1UL << 62), EINVAL);
    munmap(map, size);
    close(fd);
}

/* ---- transparent huge pages -------------------------------------------------------------------------------------- */

/* mbind holds for transparent huge pages as well, which are populated and not allocated. */
static void I1_thp_bound_then_populated_lies_on_its_node(void **state)
{
    size_t thp = thp_size(), size = 2 * thp;
    int nodes[2], fd;
    char *map;

    two_nodes(nodes);
    map = memfd_mapped_thp(size, &fd);
    assert_ok(bind_mapping(map, size, MPOL_BIND, 1UL << nodes[1]));
    map_populate(map, size);
    assert_int_equal(memfd_allocated(fd), size);
    assert_int_equal(pages_on(map, size, page_size(), nodes[1]), size / page_size());
    munmap(map, size);
    close(fd);
}

/* ---- hugetlb ----------------------------------------------------------------------------------------------------- */

static void huge_pages_on_both(const int nodes[2], unsigned each)
{
    settings_huge_pages_on_node(huge_page_size(), each, nodes[0]);
    settings_huge_pages_on_node(huge_page_size(), each, nodes[1]);
}

/* For huge pages the policy of the thread that allocates decides: set_mempolicy, then fallocate. Hence a
 * worker, whose policy is nobody else's. */
static void I1_hugetlb_is_placed_by_the_threads_policy(void **state)
{
    size_t page = huge_page_size(), size = 4 * page;
    int nodes[2];

    two_nodes(nodes);
    huge_pages_on_both(nodes, 8);
    for (size_t i = 0; i < 2; i++) {
        unsigned long mask = 1UL << nodes[i];
        int fd = memfd_new(size, MFD_HUGETLB), result;
        char *map;

        assert_ok(set_mempolicy(MPOL_BIND, &mask, BITS));
        result = fallocate(fd, 0, 0, (off_t)size);
        assert_ok(set_mempolicy(MPOL_DEFAULT, NULL, 0));
        assert_ok(result);
        map = map_shared(fd, size, PROT_READ);
        assert_mapped(map);
        assert_int_equal(pages_on(map, size, page, nodes[i]), 4);
        munmap(map, size);
        close(fd);
    }
}

/* mbind on a mapping does not bind what fallocate does to a hugetlb file: the pages come from where the
 * thread runs. The way that is right for shared memory is wrong here. */
static void I1_hugetlb_bound_then_allocated_lies_elsewhere(void **state)
{
    size_t page = huge_page_size(), size = 4 * page;
    int nodes[2], fd;
    char *map;

    two_nodes(nodes);
    huge_pages_on_both(nodes, 8);
    map = memfd_mapped(size, MFD_HUGETLB, &fd);
    assert_ok(bind_mapping(map, size, MPOL_BIND, 1UL << nodes[1]));
    assert_ok(fallocate(fd, 0, 0, (off_t)size));
    assert_int_equal(pages_on(map, size, page, nodes[0]), 4);
    munmap(map, size);
    close(fd);
}

/* A bound node that has too few is an error, though another has enough; and nothing was taken there. */
static void I1_hugetlb_does_not_stray_from_a_bound_node(void **state)
{
    size_t page = huge_page_size(), size = 4 * page;
    unsigned long mask;
    int nodes[2], fd, result, error;

    two_nodes(nodes);
    settings_huge_pages_on_node(page, 8, nodes[0]);
    settings_huge_pages_on_node(page, 2, nodes[1]);
    mask = 1UL << nodes[1];
    fd = memfd_new(size, MFD_HUGETLB);
    assert_ok(set_mempolicy(MPOL_BIND, &mask, BITS));
    result = fallocate(fd, 0, 0, (off_t)size);
    error = errno;
    assert_ok(set_mempolicy(MPOL_DEFAULT, NULL, 0));
    errno = error;
    assert_errno(result, ENOSPC);
    assert_in_range(memfd_allocated(fd), 0, 2 * page);
    assert_ok(memfd_punch(fd, 0, size));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I1_shmem_bound_then_allocated_lies_on_its_node),
        cmocka_unit_test(shmem_policy_belongs_to_the_memfd),
        cmocka_unit_test(shmem_interleaves_evenly),
        cmocka_unit_test(shmem_ranges_are_bound_one_by_one),
        cmocka_unit_test(shmem_pages_can_be_moved),
        cmocka_unit_test(shmem_pages_that_others_have_touched_stay),
        cmocka_unit_test(binding_to_a_missing_node_is_refused),
        test_with_settings(I1_thp_bound_then_populated_lies_on_its_node),
        test_with_settings(I1_hugetlb_is_placed_by_the_threads_policy),
        test_with_settings(I1_hugetlb_bound_then_allocated_lies_elsewhere),
        test_with_settings(I1_hugetlb_does_not_stray_from_a_bound_node),
    };

    return test_run(tests, NULL, NULL);
}
