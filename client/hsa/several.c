/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for any or all of several signals.
 */
#include "hsa/watch.h"

#include <stdlib.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* A signal that is waited for, and its index in the caller's list. */
struct awaited {
    struct watch watch;
    uint32_t index;
    bool is_met;
};

struct several {
    uint32_t n;
    struct awaited *signals;
};

static void several_deinit(struct several *several)
{
    for (uint32_t i = 0; i < several->n; i++)
        signal_unref(several->signals[i].watch.signal);
    free(several->signals);
}

/* Takes those entries of the list that are signals. False without memory, or if a condition is invalid. */
static bool several_init(struct several *several, const struct several_list *list)
{
    several->signals = calloc(list->n, sizeof(several->signals[0]));
    if (!several->signals)
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        struct signal *signal = signal_find(list->signals[i]);
        struct watch watch = {signal, list->conditions[i], list->values[i], 0};

        if (!signal)
            continue;
        several->signals[several->n++] = (struct awaited){watch, i, false};
        if (!signal_is_condition(watch.condition))
            return false;
    }
    return true;
}

enum outcome { NOT_YET, DONE, BROKEN };

/* A condition that was met once counts as met from then on. *met is the last one. */
static enum outcome several_check(struct several *several, struct watch_set *set, bool all, struct awaited **met)
{
    uint32_t n_unmet = 0;

    for (uint32_t i = 0; i < several->n; i++) {
        struct awaited *awaited = &several->signals[i];

        if (awaited->is_met)
            continue;
        if (atomic_load(&awaited->watch.signal->dead))
            return BROKEN;
        awaited->is_met = watch_check(set, &awaited->watch);
        if (!awaited->is_met) {
            n_unmet++;
            continue;
        }
        *met = awaited;
        if (!all)
            return DONE;
    }
    return n_unmet ? NOT_YET : DONE;
}

/* Spins for a moment, then sleeps. */
static enum outcome several_wait(struct several *several, bool all, uint64_t deadline, hsa_wait_state_t state,
                                 struct awaited **met)
{
    uint32_t spins = state == HSA_WAIT_STATE_ACTIVE ? SIGNAL_SPINS_ACTIVE : SIGNAL_SPINS;
    enum outcome outcome = NOT_YET;
    struct watch_set set;

    for (uint32_t i = 0; i < spins && outcome == NOT_YET; i += several->n) {
        watch_set_begin(&set);
        outcome = several_check(several, &set, all, met);
        signal_relax();
    }
    if (outcome != NOT_YET)
        return outcome;
    for (uint32_t i = 0; i < several->n; i++)
        watch_begin(&several->signals[i].watch);
    for (;;) {
        bool is_over = deadline_passed(deadline, clock_now_ns());

        watch_set_begin(&set);
        outcome = several_check(several, &set, all, met);
        if (outcome != NOT_YET || is_over)
            break;
        watch_set_sleep(&set, deadline);
    }
    for (uint32_t i = 0; i < several->n; i++)
        watch_end(&several->signals[i].watch);
    return outcome;
}

uint32_t several_wait_any(const struct several_list *list, uint64_t deadline, hsa_wait_state_t state,
                          hsa_signal_value_t *value)
{
    _cleanup_(several_deinit) struct several several = {0};
    struct awaited *met = NULL;

    if (!list->n || !several_init(&several, list) || !several.n ||
        several_wait(&several, false, deadline, state, &met) != DONE)
        return SEVERAL_NONE;
    if (value)
        *value = met->watch.value;
    return met->index;
}

uint32_t hsa_amd_signal_wait_any(uint32_t signal_count, hsa_signal_t *signals, hsa_signal_condition_t *conds,
                                 hsa_signal_value_t *values, uint64_t timeout_hint, hsa_wait_state_t wait_hint,
                                 hsa_signal_value_t *satisfying_value)
{
    struct several_list list = {signal_count, signals, conds, values};

    return several_wait_any(&list, deadline_after_ns(timeout_hint), wait_hint, satisfying_value);
}

uint32_t hsa_amd_signal_wait_all(uint32_t signal_count, hsa_signal_t *signals, hsa_signal_condition_t *conds,
                                 hsa_signal_value_t *values, uint64_t timeout_hint, hsa_wait_state_t wait_hint,
                                 hsa_signal_value_t *satisfying_values)
{
    _cleanup_(several_deinit) struct several several = {0};
    struct several_list list = {signal_count, signals, conds, values};
    struct awaited *met = NULL;

    if (!signal_count)
        return 0;
    if (!several_init(&several, &list))
        return SEVERAL_NONE;
    if (several.n && several_wait(&several, true, deadline_after_ns(timeout_hint), wait_hint, &met) != DONE)
        return SEVERAL_NONE;
    if (!satisfying_values)
        return 0;
    /* entries that are no signals have the value 0 */
    memset(satisfying_values, 0, signal_count * sizeof(satisfying_values[0]));
    for (uint32_t i = 0; i < several.n; i++)
        satisfying_values[several.signals[i].index] = several.signals[i].watch.value;
    return 0;
}
