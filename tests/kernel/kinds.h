/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two kinds of shared memory that buffers are made of. Most facts must hold for both, so such a test is
 * written once, over a kind, and listed as on_both_kinds(name): it then runs as name_shmem and name_hugetlb.
 */
#pragma once

#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/settings.h"
#include "tests/support/test.h"

#include <sys/stat.h>
#include <unistd.h>

struct kind {
    unsigned flags; /* for memfd_create */
    size_t page;
    size_t size; /* of a buffer in these tests: some pages */
};

#define KIND_PAGES 4

static inline struct kind kind_shmem(void)
{
    return (struct kind){.page = page_size(), .size = KIND_PAGES * page_size()};
}

/* Takes the lock on settings, and twice the pages that one buffer needs. */
static inline struct kind kind_hugetlb(void)
{
    settings_huge_pages(huge_page_size(), 2 * KIND_PAGES);
    return (struct kind){
        .flags = MFD_HUGETLB,
        .page = huge_page_size(),
        .size = KIND_PAGES * huge_page_size(),
    };
}

#define TEST_ON_BOTH_KINDS(name)             \
    static void name##_shmem(void **state)   \
    {                                        \
        name(kind_shmem());                  \
    }                                        \
    static void name##_hugetlb(void **state) \
    {                                        \
        name(kind_hugetlb());                \
    }

#define on_both_kinds(name) cmocka_unit_test(name##_shmem), test_with_settings(name##_hugetlb)

/* Committed, mode 0600, re-opened with the original closed, as the broker makes it; not sealed yet. */
static inline int kind_unsealed_buffer(struct kind kind)
{
    int original = memfd_new(kind.size, kind.flags), fd;

    assert_ok(fallocate(original, 0, 0, (off_t)kind.size));
    assert_ok(fchmod(original, 0600));
    fd = fd_reopen(original, O_RDWR);
    assert_ok(fd);
    close(original);
    return fd;
}

/* The same, sealed as a buffer is. */
static inline int kind_buffer(struct kind kind)
{
    int fd = kind_unsealed_buffer(kind);

    assert_ok(fcntl(fd, F_ADD_SEALS, SEALS_BUFFER));
    return fd;
}
