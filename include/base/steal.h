/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handing ownership on.
 *
 * Both take the value out of a variable and leave the "owns nothing" value
 * behind, so that the cleanup attribute or a destructor no longer releases it.
 * That makes the moment of the hand-over one visible word, and releasing twice
 * impossible.
 */
#pragma once

#include <stddef.h>

static inline int steal_fd(int *fd)
{
    int stolen = *fd;

    *fd = -1;
    return stolen;
}

/* steal_ptr(&p): the value of p; p is NULL afterwards. */
#define steal_ptr(pp)                                \
    ({                                               \
        __typeof__(pp) _steal_pp = (pp);             \
        __typeof__(*_steal_pp) _stolen = *_steal_pp; \
                                                     \
        *_steal_pp = NULL;                           \
        _stolen;                                     \
    })
