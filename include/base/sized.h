/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public structs that tell their size in the first member, a size_t, so that a program and a library of different
 * versions work together. The rule is that of <memclient/memclient.h>: new versions add fields at the end, and zero
 * means what was before there was the field.
 *
 * - A struct that the program fills in may be shorter than the library's: the rest is zero. It may be longer if what
 *   comes after is zero: fields that the library does not know must not be silently ignored.
 * - A struct that the library fills in gets as much as the program's has room for.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* No struct of any version is larger. */
#define SIZED_MAX 65536

/* -EINVAL: the size is not set. */
static inline int sized_check(const void *from)
{
    size_t given;

    memcpy(&given, from, sizeof(given));
    return given < sizeof(given) || given > SIZED_MAX ? -EINVAL : 0;
}

/* The same, and -E2BIG: beyond the `size` bytes that we know, something is not zero. */
static inline int sized_accept(const void *from, size_t size)
{
    const uint8_t *bytes = from;
    size_t given;

    if (sized_check(from))
        return -EINVAL;
    memcpy(&given, from, sizeof(given));
    for (size_t i = size; i < given; i++)
        if (bytes[i])
            return -E2BIG;
    return 0;
}

/* Copies the program's struct into ours; NULL gives defaults. On failure, as sized_accept(), `to` is untouched. */
static inline int sized_read(void *to, size_t size, const void *from)
{
    size_t given = 0;
    int r = from ? sized_accept(from, size) : 0;

    if (r)
        return r;
    memset(to, 0, size);
    if (from) {
        memcpy(&given, from, sizeof(given));
        memcpy(to, from, given < size ? given : size);
    }
    memcpy(to, &size, sizeof(size));
    return 0;
}

/* Copies ours into the program's, which was checked, and whose size stays. */
static inline void sized_write(void *to, const void *from, size_t size)
{
    size_t given;

    memcpy(&given, to, sizeof(given));
    memcpy((uint8_t *)to + sizeof(given), (const uint8_t *)from + sizeof(given),
           (given < size ? given : size) - sizeof(given));
}
