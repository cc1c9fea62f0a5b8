/* SPDX-License-Identifier: Apache-2.0 */
/* See measure.h. */
#include "memctl/measure.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* More than what the processor remembers of addresses, and little beside what a machine has. */
#define BYTES      ((size_t)64 << 20)
#define READS      400000
#define TRIES      2
#define WAYS_TRIES 5
#define NODES_MAX  1024

double measure_now(void)
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

bool measure_ways(double (*good)(void *data), double (*other)(void *data), void *data, struct measured_ways *ret)
{
    struct measured_ways best = {.good = 0}, one;

    for (unsigned i = 0; i < WAYS_TRIES; i++) {
        one.good = good(data);
        one.other = other(data);
        if (one.good < 0 || one.other < 0)
            return false;
        if (!i || one.good < best.good)
            best.good = one.good;
        if (!i || one.other < best.other)
            best.other = one.other;
    }
    *ret = best;
    return best.good > 0 && best.other > 0;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

unsigned measure_node(void)
{
    unsigned cpu = 0, node = 0;

    (void)syscall(SYS_getcpu, &cpu, &node, NULL);
    return node;
}

/* Its pages are on the node. MAP_FAILED: that node has none to give. */
static void *measure_map_node(unsigned node)
{
    unsigned long mask[NODES_MAX / 8 / sizeof(unsigned long)] = {0};
    const size_t bits = 8 * sizeof(mask[0]);
    void *map = MAP_FAILED;

    if (node < NODES_MAX - 1)
        map = measure_map_shared(0);
    if (map == MAP_FAILED)
        return map;
    mask[node / bits] |= 1UL << node % bits;
    (void)madvise(map, BYTES, MADV_NOHUGEPAGE);
    if (!syscall(SYS_mbind, map, BYTES, MPOL_BIND, mask, (unsigned long)NODES_MAX, MPOL_MF_STRICT)) {
        memset(map, 0, BYTES);
        return map;
    }
    (void)munmap(map, BYTES);
    return MAP_FAILED;
}

struct measured_maps {
    void *near, *far;
};

static double measure_read_of(void *map)
{
    double begin = measure_now();

    measure_reads(map);
    return measure_now() - begin;
}

static double measure_read_near(void *data)
{
    return measure_read_of(((struct measured_maps *)data)->near);
}

static double measure_read_far(void *data)
{
    return measure_read_of(((struct measured_maps *)data)->far);
}

static bool measure_between(unsigned near, unsigned far, struct measured_ways *ret)
{
    struct measured_maps maps = {measure_map_node(near), measure_map_node(far)};
    bool ok = maps.near != MAP_FAILED && maps.far != MAP_FAILED &&
              measure_ways(measure_read_near, measure_read_far, &maps, ret);

    if (maps.near != MAP_FAILED)
        (void)munmap(maps.near, BYTES);
    if (maps.far != MAP_FAILED)
        (void)munmap(maps.far, BYTES);
    return ok;
}

bool measure_nodes(unsigned near, unsigned far, struct measured_ways *ret)
{
    cpu_set_t before, here;
    bool ok;

    /* another processor may be nearer to the other node */
    if (sched_getaffinity(0, sizeof(before), &before) < 0)
        return false;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    ok = !sched_setaffinity(0, sizeof(here), &here) && measure_node() == near && measure_between(near, far, ret);
    (void)sched_setaffinity(0, sizeof(before), &before);
    return ok;
}
