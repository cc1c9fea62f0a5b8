/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public structs that say in their first member, a size_t, how large they are: what lets a program and a library of
 * different versions work together. One rule is for all of them, as <memclient/memclient.h> tells it: new versions add
 * fields at the end, and zero is what was before there was the field.
 *
 * - What the program fills in may be shorter than the library's: the rest is zero. It may be longer, as long as all
 *   that is behind is zero: what the library does not know must not be silently ignored.
 * - What the library fills in gets as much as the program's has room for.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* No struct of any version is larger: more is no size. */
#define SIZED_MAX 65536

/* -EINVAL: it does not say how large it is. */
static inline int sized_check(const void *from)
{
    size_t given;

    memcpy(&given, from, sizeof(given));
    return given < sizeof(given) || given > SIZED_MAX ? -EINVAL : 0;
}

/* The same, and -E2BIG: beyond the `size` bytes of ours it has something that is not zero. */
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

/* Makes ours of the program's, or, of NULL, one of defaults. As sized_accept(); then `to` is untouched. */
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

/* Makes the program's, which was checked, of ours; its size stays what it is. */
static inline void sized_write(void *to, const void *from, size_t size)
{
    size_t given;

    memcpy(&given, to, sizeof(given));
    memcpy((uint8_t *)to + sizeof(given), (const uint8_t *)from + sizeof(given),
           (given < size ? given : size) - sizeof(given));
}
