/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of what all users have in common: a user may have so many percent of what the others leave. With less than all
 * of it something is left for one more user, however many there are.
 */
#pragma once

#include <stdint.h>

/* The share of a user who may have all that the others leave. */
#define SHARE_ALL 100

/* What somebody with this share may have of a total when the others have so much of it. */
static inline uint64_t share_of(uint64_t total, uint64_t others, unsigned share)
{
    uint64_t rest = total > others ? total - others : 0;

    return rest / SHARE_ALL * share + rest % SHARE_ALL * share / SHARE_ALL;
}
