/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal's value: a number in memory that threads change and wait for, of one process or of several that have the
 * memory mapped.
 *
 * `own` says that all of them are of this process, which the kernel serves quicker.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>

#include "base/clock.h"

/* How often a wait compares the value before it sleeps. */
#define CELL_SPINS        100
#define CELL_SPINS_ACTIVE 10000
/* For how long it sleeps at most where the value may change without a wake-up. */
#define CELL_POLL_NS (500 * NSEC_PER_USEC)

/* Processes share it, so its layout is fixed. */
struct cell {
    uint64_t magic;
    _Atomic int64_t value;
    _Atomic uint32_t changes; /* not all of them: those that were waited for */
    _Atomic uint32_t waiting;
    _Atomic uint32_t is_exposed; /* some process has the value's address, and may change it without a wake-up */
    uint32_t reserved;
};

/* How a value becomes another, given an operand. */
enum cell_change { CELL_EXCHANGE, CELL_ADD, CELL_SUBTRACT, CELL_AND, CELL_OR, CELL_XOR };

/* What is waited for, until when, and how. */
struct wait_options {
    hsa_signal_condition_t condition;
    hsa_signal_value_t compare;
    uint64_t deadline;
    hsa_wait_state_t state;
};

void cell_init(struct cell *cell, hsa_signal_value_t value);
/* Did cell_init() make it? */
bool cell_is_one(const struct cell *cell);

hsa_signal_value_t cell_load(const struct cell *cell);
/* They wake all waiters, and return what the value was before. */
hsa_signal_value_t cell_change(struct cell *cell, bool own, enum cell_change change, hsa_signal_value_t operand);
hsa_signal_value_t cell_cas(struct cell *cell, bool own, hsa_signal_value_t expected, hsa_signal_value_t value);
/* Wakes no waiter. */
void cell_store_silently(struct cell *cell, hsa_signal_value_t value);
static inline bool cell_is_condition(hsa_signal_condition_t condition)
{
    return condition >= HSA_SIGNAL_CONDITION_EQ && condition <= HSA_SIGNAL_CONDITION_GTE;
}

/* Does a value meet the condition? Every value meets what is no condition. */
bool cell_meets(hsa_signal_value_t value, hsa_signal_condition_t condition, hsa_signal_value_t compare);
/* Between two comparisons, for a moment. */
void cell_relax(void);
/* Has all that wait compare again. */
void cell_wake(struct cell *cell, bool own);
/* Also until *dead, which is followed by cell_wake(). The value last seen. */
hsa_signal_value_t cell_wait(struct cell *cell, bool own, const struct wait_options *options, const _Atomic bool *dead);
