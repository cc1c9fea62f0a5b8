/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alignment of values that are known to be sane.
 *
 * Everything is in uint64_t, because an offset or an address of another process need not fit the size_t of this one.
 * align_up() must not overflow; for a number from a peer use checked_align_up_u64() in checked.h. The page size is
 * asked for, never assumed: arm64 has 4, 16 and 64 KiB.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/* Zero is no power of two. */
static inline bool is_power_of_two(uint64_t v)
{
    return v && !(v & (v - 1));
}

/* `alignment` is a power of two in all of these. */
static inline uint64_t align_down(uint64_t v, uint64_t alignment)
{
    assert(is_power_of_two(alignment));
    return v & ~(alignment - 1);
}

static inline uint64_t align_up(uint64_t v, uint64_t alignment)
{
    assert(is_power_of_two(alignment));
    assert(v <= UINT64_MAX - (alignment - 1));
    return (v + (alignment - 1)) & ~(alignment - 1);
}

static inline bool is_aligned(uint64_t v, uint64_t alignment)
{
    assert(is_power_of_two(alignment));
    return !(v & (alignment - 1));
}

/* The system's base page. sysconf() makes no system call, but searches, so each source file asks once. */
static inline uint64_t page_size(void)
{
    static uint64_t known;
    uint64_t size = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (!size) {
        long asked = sysconf(_SC_PAGESIZE);

        assert(asked > 0);
        size = (uint64_t)asked;
        __atomic_store_n(&known, size, __ATOMIC_RELAXED);
    }
    return size;
}

static inline uint64_t page_align_down(uint64_t v)
{
    return align_down(v, page_size());
}

static inline uint64_t page_align_up(uint64_t v)
{
    return align_up(v, page_size());
}

static inline bool is_page_aligned(uint64_t v)
{
    return is_aligned(v, page_size());
}
