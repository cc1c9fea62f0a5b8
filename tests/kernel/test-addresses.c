/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same address everywhere (I9): where the arena may lie, how a buffer is put at an address without
 * ever replacing what a process has there, and what a reservation costs.
 */
#include "tests/kernel/kinds.h"
#include "tests/support/child.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* The default arena, and the one of builds with the thread and memory sanitizers. */
#define ARENA            ((void *)(uintptr_t)0x400000000000)
#define ARENA_SIZE       (16 * TIB)
#define SMALL_ARENA      ((void *)(uintptr_t)0x566000000000)
#define SMALL_ARENA_SIZE (128 * GIB)

static void *reserve(void *address, size_t size)
{
    return mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

/* The whole default arena can be reserved at once in an ordinary process. */
static void I9_the_default_arena_is_free(void **state)
{
    void *map;

    if (TEST_TSAN || TEST_MSAN)
        test_skip("this sanitizer keeps its shadow in the default arena");
    map = reserve(ARENA, ARENA_SIZE);
    assert_mapped(map);
    assert_ptr_equal(map, ARENA);
    munmap(map, ARENA_SIZE);
}

/* So can the smaller one, under every sanitizer: what test builds configure. */
static void I9_the_arena_for_sanitizers_is_free(void **state)
{
    void *map = reserve(SMALL_ARENA, SMALL_ARENA_SIZE);

    assert_mapped(map);
    assert_ptr_equal(map, SMALL_ARENA);
    munmap(map, SMALL_ARENA_SIZE);
}

/* MAP_FIXED_NOREPLACE gives just this address or EEXIST; it never replaces, as MAP_FIXED does silently, and
 * never gives another, as a mere hint does. */
static void I9_noreplace_never_replaces(void **state)
{
    size_t page = page_size();
    char *taken = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *hint;
    int fd = kind_buffer(kind_shmem());

    assert_mapped(taken);
    taken[page] = 'k';
    assert_map_errno(reserve(taken, page), EEXIST);
    assert_map_errno(reserve(taken + page, 4 * page), EEXIST); /* overlapped in part */
    assert_map_errno(mmap(taken + page, page, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0), EEXIST);
    assert_int_equal(taken[page], 'k');

    hint = mmap(taken, page, PROT_READ, MAP_SHARED, fd, 0);
    assert_mapped(hint);
    assert_ptr_not_equal(hint, taken);
    munmap(hint, page);
    munmap(taken, 3 * page);
    close(fd);
}

/* A part of a reservation is mapped over with MAP_FIXED and reserved again in the same way, in one step:
 * no other thread's mmap can slip in between. */
static void I9_a_mapping_takes_the_place_of_its_reservation(struct kind kind)
{
    int fd = kind_buffer(kind);
    char *range = reserve(SMALL_ARENA, 4 * kind.size), *map;

    assert_mapped(range);
    map = mmap(range + kind.size, kind.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    assert_mapped(map);
    assert_ptr_equal(map, range + kind.size);
    map[0] = 1;
    map[kind.size - 1] = 1;
    map = mmap(range + kind.size, kind.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    assert_mapped(map);
    assert_map_errno(reserve(range + kind.size, kind.size), EEXIST);
    munmap(range, 4 * kind.size);
    close(fd);
}
TEST_ON_BOTH_KINDS(I9_a_mapping_takes_the_place_of_its_reservation)

/* A huge page needs an address that is a multiple of it; a 4 KiB-aligned one is refused, so the arena
 * aligns by the pool's granule. */
static void I9_huge_pages_need_aligned_addresses(void **state)
{
    struct kind kind = kind_hugetlb();
    int fd = kind_buffer(kind);
    char *range = reserve(SMALL_ARENA, 4 * kind.size);

    assert_mapped(range);
    assert_map_errno(mmap(range + page_size(), kind.size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), EINVAL);
    munmap(range, 4 * kind.size);
    close(fd);
}

struct list {
    struct list *next;
    char text[16];
};

static void read_at_the_same_address(int channel, void *context)
{
    int fd = fd_receive_one(channel);
    size_t size = KIND_PAGES * page_size();
    struct list *list;

    CHECK(fd >= 0);
    if (context != NULL) /* as inherited, it is still there */
        CHECK(munmap(SMALL_ARENA, size) == 0);
    list = mmap(SMALL_ARENA, size, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    CHECK(list != MAP_FAILED);
    CHECK(list == SMALL_ARENA);
    CHECK(strcmp(list->text, "first") == 0);
    CHECK(strcmp(list->next->text, "second") == 0);
}

/* Pointers inside a buffer are good in every process that placed it at the same address. */
static void I9_pointers_hold_in_another_process(void **state)
{
    struct kind kind = kind_shmem();
    int fd = kind_buffer(kind);
    struct child child;
    struct list *list = mmap(SMALL_ARENA, kind.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

    assert_mapped(list);
    memcpy(list[0].text, "first", sizeof("first"));
    memcpy(list[1].text, "second", sizeof("second"));
    list[0].next = &list[1];
    child_start(&child, read_at_the_same_address, list);
    assert_int_equal(fd_send_one(child.channel, fd), 1);
    child_finish(&child);
    munmap(list, kind.size);
    close(fd);
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

static void reserve_under_an_address_limit(int channel, void *context)
{
    struct rlimit limit = {GIB, GIB};
    void *map;

    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK_MAP_ERRNO(reserve(SMALL_ARENA, 2 * GIB), ENOMEM);
    map = reserve(SMALL_ARENA, 64 * MIB);
    CHECK(map != MAP_FAILED);
}

/* A reservation counts in RLIMIT_AS although it holds nothing: a process reserves only what its session
 * holds, never the arena. */
static void I9_reservations_count_in_the_address_limit(void **state)
{
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN)
        test_skip("a sanitizer's shadow is larger than the limit that this needs");
    child_run(reserve_under_an_address_limit, NULL);
}

static void reserve_under_mlockall(int channel, void *context)
{
    struct rlimit limit;

    if (geteuid() == 0)
        become(UID_STRANGER);
    CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (limit.rlim_cur > 8 * MIB)
        limit.rlim_cur = 8 * MIB;
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (mlockall(MCL_FUTURE) < 0)
        child_skip("mlockall is refused here");
    CHECK_MAP_ERRNO(reserve(SMALL_ARENA, 64 * MIB), EAGAIN);
}

/* And under mlockall(MCL_FUTURE) against RLIMIT_MEMLOCK, PROT_NONE or not. */
static void I9_reservations_count_in_the_lock_limit(void **state)
{
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN)
        test_skip("sanitizers make mlockall do nothing");
    child_run(reserve_under_mlockall, NULL);
}

/* A shared mapping is its own descriptor: moved with no size it stays, and another shows the file from there on, also
 * behind where it ends itself, and may be written if it may. The library maps again by that without a call. */
static void a_shared_mapping_is_duplicated(void **state)
{
    size_t page = page_size(), size = KIND_PAGES * page;
    int fd = kind_buffer(kind_shmem());
    char *part = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)page), *rest, *place;

    assert_mapped(part);
    close(fd);
    assert_ok(mprotect(part, page, PROT_NONE));
    rest = mremap(part, 0, size - page, MREMAP_MAYMOVE);
    assert_mapped(rest);
    assert_ok(mprotect(rest, size - page, PROT_READ | PROT_WRITE));
    rest[0] = 1;
    rest[size - page - 1] = 2;
    assert_ok(mprotect(part, page, PROT_READ));
    assert_int_equal(part[0], 1);
    /* and on to where it is wanted, over what keeps the place */
    place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_mapped(place);
    assert_ptr_equal(mremap(rest, size - page, size - page, MREMAP_MAYMOVE | MREMAP_FIXED, place + page), place + page);
    assert_int_equal(place[size - 1], 2);
    munmap(place, size);
    munmap(part, page);
}

/* Pages of hugetlb cannot: the library needs a descriptor for those. */
static void huge_pages_are_not_duplicated(void **state)
{
    int fd = kind_buffer(kind_hugetlb());
    char *there = mmap(NULL, huge_page_size(), PROT_READ, MAP_SHARED, fd, 0);

    assert_mapped(there);
    assert_map_errno(mremap(there, 0, huge_page_size(), MREMAP_MAYMOVE), EINVAL);
    munmap(there, huge_page_size());
    close(fd);
}

/* A mapping costs one of vm.max_map_count (65 530 unless set), so one process cannot have each of 100 000
 * buffers mapped: the library's slabs are the answer for many small objects. */
static void a_process_has_a_limited_number_of_mappings(void **state)
{
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    size_t page = page_size(), n = 0;
    int fd = kind_buffer(kind_shmem());
    long limit = 0;
    char *range;

    if (TEST_TSAN || TEST_MSAN)
        test_skip("this sanitizer needs mappings of its own beside each of ours");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &limit), 1);
    fclose(file);
    if (limit > 300000)
        test_skip("vm.max_map_count is %ld: too many to try", limit);
    range = reserve(SMALL_ARENA, 2 * (size_t)limit * page);
    assert_mapped(range);
    while (n < (size_t)limit &&
           mmap(range + 2 * n * page, page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
        n++;
    assert_int_equal(errno, ENOMEM);
    assert_in_range(n, limit / 2 - 1000, limit / 2); /* each one leaves a piece of reservation beside it */
    munmap(range, 2 * (size_t)limit * page);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(I9_the_default_arena_is_free),
        cmocka_unit_test(I9_the_arena_for_sanitizers_is_free),
        cmocka_unit_test(I9_noreplace_never_replaces),
        on_both_kinds(I9_a_mapping_takes_the_place_of_its_reservation),
        test_with_settings(I9_huge_pages_need_aligned_addresses),
        cmocka_unit_test(I9_pointers_hold_in_another_process),
        cmocka_unit_test(I9_reservations_count_in_the_address_limit),
        cmocka_unit_test(I9_reservations_count_in_the_lock_limit),
        cmocka_unit_test(a_shared_mapping_is_duplicated),
        test_with_settings(huge_pages_are_not_duplicated),
        cmocka_unit_test(a_process_has_a_limited_number_of_mappings),
    };

    return test_run(tests, NULL, NULL);
}
