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
 * What changes a signal of this process wakes all watchers, by one word that they sleep on. A signal for other
 * processes is slept on itself, beside that word, which takes a kernel of 5.16 and at most 127 such signals; else, and
 * where values may change without a wake-up, they are polled.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hsa/signal.h"

struct watch {
    struct signal *signal; /* counted by the watcher */
    hsa_signal_condition_t condition;
    hsa_signal_value_t compare;
    hsa_signal_value_t value; /* as last seen */
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
/* Has all watchers check again. */
void watch_wake(void);

void watch_set_begin(struct watch_set *set);
/* Is its condition met now? */
bool watch_check(struct watch_set *set, struct watch *watch);
/* Until something may have changed since watch_set_begin(), or the deadline. */
void watch_set_sleep(const struct watch_set *set, uint64_t deadline);

/* ---- several.c ------------------------------------------------------------------------------------------- */

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
