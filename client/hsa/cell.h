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

/* Processes share it, so its layout is fixed. */
struct cell {
    uint64_t magic;
    _Atomic int64_t value;
    _Atomic uint32_t changes; /* not all of them: those that somebody waited for */
    _Atomic uint32_t waiting;
};

/* What is waited for, until when, and how. */
struct cell_wish {
    hsa_signal_condition_t condition;
    hsa_signal_value_t compare;
    uint64_t deadline;
    hsa_wait_state_t state;
};

void cell_init(struct cell *cell, hsa_signal_value_t value);
/* Did cell_init() make it? */
bool cell_is_one(const struct cell *cell);

hsa_signal_value_t cell_load(const struct cell *cell);
/* They wake who waits. */
void cell_store(struct cell *cell, bool own, hsa_signal_value_t value);
void cell_add(struct cell *cell, bool own, hsa_signal_value_t value);
/* Has all that wait look again. */
void cell_wake(struct cell *cell, bool own);
/* Also until *dead; whoever sets that then calls cell_wake(). The value last seen. */
hsa_signal_value_t cell_wait(struct cell *cell, bool own, const struct cell_wish *wish, const _Atomic bool *dead);
