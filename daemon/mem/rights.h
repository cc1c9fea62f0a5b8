/* SPDX-License-Identifier: Apache-2.0 */
/* What a holder may do: the numbers of Right on the wire. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    RIGHT_READ = 1,
    RIGHT_WRITE = 2, /* implies READ */
    RIGHT_SHARE = 4,
    RIGHT_MANAGE = 8,
};

#define RIGHTS_ALL ((uint32_t)15)

static inline uint32_t rights_complete(uint32_t rights)
{
    return rights & RIGHT_WRITE ? rights | RIGHT_READ : rights;
}

/* Are these all among those? */
static inline bool rights_cover(uint32_t have, uint32_t wanted)
{
    return !(wanted & ~have);
}
