/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for several signals at once, asleep.
 *
 *     watch_begin(&each)                          before it is first checked: from now on changes wake
 *     for (;;) {
 *         watch_set_begin(&set);
 *         if (watch_check(&set, &each)) ...       enters it in the set
 *         watch_set_sleep(&set, deadline);
 *     }
 *     watch_end(&each)
 *
 * A change of a signal of this process wakes all watchers, by one word that they sleep on. A shared signal has a word
 * of its own, and the kernel can wait for up to 127 of them beside the first since version 5.16. Further shared
 * signals, older kernels, and values that may change without a wake-up need polling.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hsa/signal.h"

struct watch {
    struct signal *signal; /* a reference */
    hsa_signal_condition_t condition;
    hsa_signal_value_t compare;
    hsa_signal_value_t value; /* the last value seen */
};

#define WATCH_WORDS_MAX 128 /* the kernel's FUTEX_WAITV_MAX */

struct watch_set {
    unsigned n_words; /* the first is the process's own */
    bool polls;
    struct watch_word {
        _Atomic uint32_t *word;
        uint32_t seen;
    } words[WATCH_WORDS_MAX];
};

void watch_begin(struct watch *watch);
void watch_end(struct watch *watch);
/* Makes all watchers check again. */
void watch_wake(void);

void watch_set_begin(struct watch_set *set);
/* Is its condition met now? Enters it in the set. */
bool watch_check(struct watch_set *set, struct watch *watch);
/* Sleeps until something may have changed since watch_set_begin(), or until the deadline. */
void watch_set_sleep(const struct watch_set *set, uint64_t deadline);

/* ---- several.c --------------------------------------------------------------------------------------------------- */

#define SEVERAL_NONE UINT32_MAX

/* What the caller waits for: arrays of n. */
struct several_list {
    uint32_t n;
    const hsa_signal_t *signals;
    const hsa_signal_condition_t *conditions;
    const hsa_signal_value_t *values; /* to compare with */
};

/*
 * The index of the first signal whose condition is met, and its value if `value` is not NULL. SEVERAL_NONE if the
 * deadline has passed, there is no signal in the list, one was destroyed, a condition is invalid, or memory is short.
 */
uint32_t several_wait_any(const struct several_list *list, uint64_t deadline, hsa_wait_state_t state,
                          hsa_signal_value_t *value);
