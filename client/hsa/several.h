/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for any of several signals, for groups of them as well.
 */
#pragma once

#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>

#define SEVERAL_NONE UINT32_MAX

/* What the caller waits for: n of each. */
struct several_list {
    uint32_t n;
    const hsa_signal_t *signals;
    const hsa_signal_condition_t *conditions;
    const hsa_signal_value_t *values; /* to compare with */
};

/* The index of the first whose condition is met, and its value if that is asked for. SEVERAL_NONE: the deadline has
 * passed, none of them is a signal, one was destroyed meanwhile, a condition is none, or there is no memory. */
uint32_t several_wait_any(const struct several_list *list, uint64_t deadline, hsa_wait_state_t state,
                          hsa_signal_value_t *value);
