/* SPDX-License-Identifier: Apache-2.0 */
/* See pages.h. */
#include "core/pages.h"

#include <errno.h>
#include <sys/mman.h>

#include <memclient/memclient.h>

#include "base/align.h"
#include "core/span.h"

int map_prot(unsigned access)
{
    if (access & MEMCLIENT_WRITE)
        return PROT_READ | PROT_WRITE;
    return access & MEMCLIENT_READ ? PROT_READ : PROT_NONE;
}

/* The kernel never counts inaccessible pages as committed, whatever its overcommit policy is. */
void *pages_map_inaccessible(uint64_t start, uint64_t size, int flags)
{
    return mmap((void *)(uintptr_t)start, (size_t)size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags,
                -1, 0);
}

int pages_reserve(uint64_t start, uint64_t size, int flags)
{
    void *at = pages_map_inaccessible(start, size, flags);

    if (at != MAP_FAILED && (uintptr_t)at != start) {
        munmap(at, (size_t)size);
        at = MAP_FAILED;
        errno = EEXIST; /* a kernel without MAP_FIXED_NOREPLACE takes the address for a hint */
    }
    return at == MAP_FAILED ? -1 : 0;
}

/*
 * Reserving a part of a mapping again splits the mapping, and so may need more mappings than the kernel allows
 * (vm.max_map_count). It refuses mmap() then, and nothing could be unmapped in a reservation any more. So while there
 * are reservations a spare mapping is kept, which is given up at that moment. It is shared, so that the kernel never
 * merges it with another.
 */
static void *spare;

void pages_keep_spare(void)
{
    void *at = spare ? spare : mmap(NULL, page_size(), PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    spare = at == MAP_FAILED ? NULL : at;
}

static void pages_drop_spare(void)
{
    if (spare)
        munmap(spare, page_size());
    spare = NULL;
}

/* Reserves pages again, whatever is mapped there. */
static int pages_reserve_again(uint64_t start, uint64_t size)
{
    int r = pages_reserve(start, size, MAP_FIXED);

    if (r < 0 && spare) {
        pages_drop_spare();
        r = pages_reserve(start, size, MAP_FIXED);
    }
    pages_keep_spare();
    return r;
}

void pages_unreserve(uint64_t start, uint64_t size)
{
    struct sweep sweep;
    struct span span;

    sweep_begin(&sweep, &process_space, start, size);
    while (sweep_next(&sweep, &span))
        if (!span.mapped)
            munmap((void *)(uintptr_t)span.start, (size_t)span.size);
    if (range_index_is_empty(&process_space.reserved))
        pages_drop_spare();
}

int pages_unmap(uint64_t start, uint64_t size)
{
    int r = 0;

    while (!r && size) {
        struct range_entry next = {.start = UINT64_MAX};
        bool in = range_index_next(&process_space.reserved, start, &next) && next.start <= start;
        uint64_t end = in ? next.start + next.size : next.start;
        uint64_t part = size < end - start ? size : end - start;

        r = in ? pages_reserve_again(start, part) : munmap((void *)(uintptr_t)start, (size_t)part);
        start += part;
        size -= part;
    }
    return r;
}

int pages_dontfork(uint64_t start, uint64_t size)
{
    struct sweep sweep;
    struct span span;

    sweep_begin(&sweep, &process_space, start, size);
    while (sweep_next(&sweep, &span))
        if (span.mapped && !span.for_children &&
            madvise((void *)(uintptr_t)span.start, (size_t)span.size, MADV_DONTFORK) < 0)
            return -1;
    return 0;
}
