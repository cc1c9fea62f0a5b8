/* SPDX-License-Identifier: Apache-2.0 */
/* See measure.h. */
#include "memctl/measure.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* More than what the processor remembers of addresses, and little beside what a machine has. */
#define BYTES ((size_t)64 << 20)
#define READS 400000
#define TRIES 2

static double measure_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *measure_map_shared(unsigned flags)
{
    _cleanup_close_ int fd = memfd_create("memctl-doctor", MFD_CLOEXEC | flags);

    if (fd < 0 || ftruncate(fd, (off_t)BYTES) < 0)
        return MAP_FAILED;
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void *measure_map(enum measured_pages pages)
{
    void *map;

    switch (pages) {
    case MEASURE_HUGETLB:
        return measure_map_shared(MFD_HUGETLB);
    case MEASURE_PRIVATE:
        map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        break;
    default:
        map = measure_map_shared(0);
    }
    if (map != MAP_FAILED)
        (void)madvise(map, BYTES, pages == MEASURE_BASE ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    return map;
}

/* Each word says which is read next, so that no two reads are under way at a time. */
static void measure_reads(uint64_t *words)
{
    const size_t n = BYTES / sizeof(*words);
    uint64_t at = 1;

    for (unsigned i = 0; i < READS; i++)
        at =
            (at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407) + ((volatile uint64_t *)words)[at % n]);
}

static void measure_once(void *map, struct measured *ret)
{
    double begin = measure_now(), touched;

    memset(map, 0, BYTES);
    touched = measure_now();
    measure_reads(map);
    *ret = (struct measured){.touch = touched - begin, .read = measure_now() - touched};
}

bool measure_pages(enum measured_pages pages, struct measured *ret)
{
    struct measured best = {.touch = 0}, one;

    for (unsigned i = 0; i < TRIES; i++) {
        void *map = measure_map(pages);

        if (map == MAP_FAILED)
            return false;
        measure_once(map, &one);
        (void)munmap(map, BYTES);
        if (!i || one.touch < best.touch)
            best.touch = one.touch;
        if (!i || one.read < best.read)
            best.read = one.read;
    }
    *ret = best;
    return true;
}
