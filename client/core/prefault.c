/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entering pages into the page tables before they are touched.
 *
 * All pages of a buffer are there, but a first write to a shared mapping faults for each of them, and clears what
 * fallocate() only allocated: half as long again as writing fresh memory of malloc() takes. The kernel does that in
 * bulk for little more than half of it: of 256 MiB of base pages in 70 instead of 119 ms of processor time. And where
 * pages are cleared, as those of stock are, reading one has it enter all around, 64 KiB of them, as writable as the
 * mapping is: all in 12 ms.
 *
 * Whoever has allocated memory is about to write it, so the first mapping of it for writing enters its pages, up to
 * PREFAULT_MAX. What others map, and what is mapped once more, is entered as it is touched: nobody knows how much of it
 * that will be. Entering allocates nothing but page tables, 8 bytes a page. It is the kernel that touches the pages, so
 * one that is lost raises no signal here, and whatever it refuses is left to the first touch.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/align.h"
#include "core/map.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* 5.14 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The kernel's fault_around_bytes, as nobody changes it. */
#define FAULT_AROUND (UINT64_C(64) << 10)
/* Of one buffer: so that mapping a very large one does not take seconds, of which a part may never be written. */
#define PREFAULT_MAX (UINT64_C(1) << 30)
/* At once: as long as that takes other threads of the process cannot map anything. */
#define PREFAULT_STEP (UINT64_C(2) << 20)

void map_prefault_when_mapped(struct memclient_buffer *buf)
{
    uint64_t bytes = buf->bytes < PREFAULT_MAX ? buf->bytes : PREFAULT_MAX;

    /* a huge page is one fault anyway */
    if (buf->granule == page_size())
        __atomic_store_n(&buf->to_prefault, bytes, __ATOMIC_RELAXED);
}

/* How much of so many bytes is to be entered now, and not again. */
static uint64_t prefault_take_share(struct memclient_buffer *buf, uint64_t length)
{
    uint64_t left = __atomic_load_n(&buf->to_prefault, __ATOMIC_RELAXED), share;

    do
        share = left < length ? left : length;
    while (share && !__atomic_compare_exchange_n(&buf->to_prefault, &left, left - share, true, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED));
    return share;
}

static void prefault_window(uint64_t at)
{
    (void)madvise((void *)(uintptr_t)at, (size_t)page_size(), MADV_POPULATE_READ);
}

static int prefault_each(uint64_t start, uint64_t end)
{
    return madvise((void *)(uintptr_t)start, (size_t)(end - start), MADV_POPULATE_WRITE);
}

/* Of this thread, those that the kernel takes for a madvise() included. */
static long prefault_count_faults(void)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

/* Where the pages around the address end that the kernel enters with it. */
static uint64_t prefault_window_end(uint64_t at, uint64_t end)
{
    uint64_t next = align_down(at, FAULT_AROUND) + FAULT_AROUND;

    return next < end ? next : end;
}

/*
 * Whether pages are cleared the first of them show: reading one has then entered the others of its window, so that they
 * do not fault. And if the last one does not either, all is one huge page.
 */
static int prefault_step(uint64_t start, uint64_t end)
{
    uint64_t at = prefault_window_end(start, end);
    long before;

    prefault_window(start);
    before = prefault_count_faults();
    if (prefault_each(start, at) < 0)
        return -1;
    if (at == end)
        return 0;
    if (prefault_count_faults() != before || at - start == page_size())
        return prefault_each(at, end);
    prefault_window(end - page_size());
    if (prefault_count_faults() == before)
        return 0;
    for (; at < end; at = prefault_window_end(at, end))
        prefault_window(at);
    return 0;
}

static void prefault_all(uint64_t start, uint64_t end)
{
    for (uint64_t at = start, next; at < end; at = next) {
        next = align_down(at, PREFAULT_STEP) + PREFAULT_STEP;
        if (next > end)
            next = end;
        if (prefault_step(at, next) < 0)
            return;
    }
}

void map_prefault(struct memclient_buffer *buf, const struct memclient_map_options *options, unsigned access,
                     uint64_t start, uint64_t length)
{
    /* with less than four pages it costs as much as it spares */
    if (!(access & MEMCLIENT_WRITE) || length < 4 * page_size() || buffer_flags(buf) & MEMCLIENT_BUFFER_LAZY ||
        options->flags & MEMCLIENT_MAP_SPARSE)
        return;
    if (length > FAULT_AROUND) {
        prefault_all(start, start + prefault_take_share(buf, length));
        return;
    }
    /* what is so small, and mapped for writing, will soon be written, by whomever */
    for (uint64_t at = start; at < start + length; at = prefault_window_end(at, start + length))
        prefault_window(at);
}
