/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on numbers that somebody else chose.
 *
 * A size or offset from a peer, a file or a command line passes through here before anything is computed from it. Each
 * function returns true and writes the result, or returns false and leaves the result untouched; none wraps.
 *
 * On the wire and in the broker sizes are uint64_t. size_t is used only where memory is mapped or copied, and
 * checked_size() makes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/align.h"

static inline bool checked_add_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
    uint64_t v;

    if (__builtin_add_overflow(a, b, &v))
        return false;
    *sum = v;
    return true;
}

static inline bool checked_mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    uint64_t v;

    if (__builtin_mul_overflow(a, b, &v))
        return false;
    *product = v;
    return true;
}

/* The alignment may come from a peer too: false also when it is no power of two. */
static inline bool checked_align_up_u64(uint64_t v, uint64_t alignment, uint64_t *aligned)
{
    if (!is_power_of_two(alignment) || v > UINT64_MAX - (alignment - 1))
        return false;
    *aligned = align_up(v, alignment);
    return true;
}

static inline bool checked_add_size(size_t a, size_t b, size_t *sum)
{
    size_t v;

    if (__builtin_add_overflow(a, b, &v))
        return false;
    *sum = v;
    return true;
}

static inline bool checked_mul_size(size_t a, size_t b, size_t *product)
{
    size_t v;

    if (__builtin_mul_overflow(a, b, &v))
        return false;
    *product = v;
    return true;
}

static inline bool checked_align_up_size(size_t v, size_t alignment, size_t *aligned)
{
    if (!is_power_of_two(alignment) || v > SIZE_MAX - (alignment - 1))
        return false;
    *aligned = (size_t)align_up(v, alignment);
    return true;
}

/* Narrows to what one object in memory can have: at most PTRDIFF_MAX. */
static inline bool checked_size(uint64_t v, size_t *size)
{
    if (v > PTRDIFF_MAX)
        return false;
    *size = (size_t)v;
    return true;
}

/* Narrows to a file offset or length. */
static inline bool checked_off(uint64_t v, off_t *off)
{
    if (v > INT64_MAX || (uint64_t)(off_t)v != v)
        return false;
    *off = (off_t)v;
    return true;
}
