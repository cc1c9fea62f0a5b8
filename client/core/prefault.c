/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefaulting: entering pages into the page tables before they are touched.
 *
 * All pages of a buffer are there, but the first write to a shared mapping faults for each of them, and clears what
 * fallocate() only allocated: that takes half as long again as writing fresh memory of malloc(). The kernel does it in
 * bulk in little more than half the time: for 256 MiB of base pages, 70 instead of 119 ms of processor time. Where
 * pages are cleared already, as those of stock are, reading one makes the kernel enter all 64 KiB around it, as
 * writable as the mapping is: 12 ms for all.
 *
 * A process that has allocated memory is about to write it, so the first mapping for writing is prefaulted, up to
 * PREFAULT_MAX. What others map, and what is mapped once more, is entered as it is touched, since nobody knows how much
 * of it that will be. Prefaulting allocates nothing but page tables, 8 bytes a page. The kernel touches the pages, so a
 * lost one raises no signal here, and what the kernel refuses is left to the first touch.
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

/* The kernel's fault_around_bytes, which nobody changes. */
#define FAULT_AROUND (UINT64_C(64) << 10)
/* Of one buffer: mapping a very large one, of which a part may never be written, must not take seconds. */
#define PREFAULT_MAX (UINT64_C(1) << 30)
/* In one step, during which other threads of the process cannot map anything. */
#define PREFAULT_STEP (UINT64_C(2) << 20)

void map_prefault_when_mapped(struct memclient_buffer *buf)
{
    uint64_t bytes = buf->bytes < PREFAULT_MAX ? buf->bytes : PREFAULT_MAX;

    /* a huge page takes one fault anyway */
    if (buf->granule == page_size())
        __atomic_store_n(&buf->to_prefault, bytes, __ATOMIC_RELAXED);
}

/* Takes up to `length` bytes off what is still to be prefaulted. */
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

/* Page faults of this thread, with those that the kernel takes during a madvise(). */
static long prefault_count_faults(void)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

/* The end of the pages that the kernel enters together with the one at the address. */
static uint64_t prefault_window_end(uint64_t at, uint64_t end)
{
    uint64_t next = align_down(at, FAULT_AROUND) + FAULT_AROUND;

    return next < end ? next : end;
}

/*
 * The first pages show whether all are cleared: reading one has then entered the others of its window, so that they do
 * not fault. If the last page does not fault either, all is one huge page.
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
    /* for less than four pages it costs as much as it saves */
    if (!(access & MEMCLIENT_WRITE) || length < 4 * page_size() || buffer_flags(buf) & MEMCLIENT_BUFFER_LAZY ||
        options->flags & MEMCLIENT_MAP_SPARSE)
        return;
    if (length > FAULT_AROUND) {
        prefault_all(start, start + prefault_take_share(buf, length));
        return;
    }
    /* a small buffer that is mapped for writing will soon be written, whoever allocated it */
    for (uint64_t at = start; at < start + length; at = prefault_window_end(at, start + length))
        prefault_window(at);
}
