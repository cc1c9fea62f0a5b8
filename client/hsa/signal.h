/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: numbers that threads wait for.
 *
 * A handle is a number that is looked up, and never used again. The object behind it is counted: by its handle, and by
 * threads that wait for it or have a copy pending on it. So a signal may be destroyed under them, which ends their
 * wait.
 *
 * The value is in a cell: the signal's own, or for other processes in a page of a buffer of the broker's, where each
 * process has an object of its own for it. All these processes may write to that page: nothing there is followed or
 * trusted, waits excepted.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/memclient.h>

#include "base/clock.h"
#include "base/hash.h"

/* How often a wait compares the value before it sleeps. */
#define SIGNAL_SPINS        100
#define SIGNAL_SPINS_ACTIVE 10000
/* For how long it sleeps at most where the value may change without a wake-up. */
#define SIGNAL_POLL_NS (500 * NSEC_PER_USEC)

/* Processes share it, so its layout is fixed. */
struct cell {
    uint64_t magic; /* CELL_MAGIC */
    _Atomic int64_t value;
    _Atomic uint32_t changes; /* not all of them: those that were waited for */
    _Atomic uint32_t waiting;
    _Atomic uint32_t is_exposed; /* some process has the value's address, and may change it without a wake-up */
    uint32_t reserved;
};

#define CELL_MAGIC UINT64_C(0x3c6e676973617368)

struct signal {
    uint64_t id;
    UT_hash_handle hh;
    _Atomic unsigned refs;
    _Atomic bool dead;
    _Atomic unsigned watched; /* by how many of watch.h, which changes then wake */
    struct cell *cell;        /* its own, or mapped */
    struct cell own;
    bool may_be_exposed;             /* its value's address may be asked for */
    struct memclient_buffer *buffer; /* counted; NULL = of this process only */
    struct memclient_token token;    /* of it */
    _Atomic uint64_t copy_start, copy_end; /* of the last copy that counted it down while copies were timed, or 0 */
};

/* Counted up, or NULL. */
struct signal *signal_find(hsa_signal_t handle);
/* NULL is ignored. May call the broker, at the end of one for other processes. */
void signal_unref(struct signal *signal);

/* At the last hsa_shut_down(), while the session is still open: ends all signals and waits, and returns when nothing
 * has a reference to any of them; so all copies are done. */
void signals_stop(void);
/* Around a fork. The child has no signal. */
void signals_fork_prepare(void);
void signals_fork_parent(void);
void signals_fork_child(void);

/* ---- signal_wait.c --------------------------------------------------------------------------------------- */

/* How a value becomes another, given an operand. */
enum signal_change { SIGNAL_EXCHANGE, SIGNAL_ADD, SIGNAL_SUBTRACT, SIGNAL_AND, SIGNAL_OR, SIGNAL_XOR };

/* They wake all waiters, and return what the value was before. */
hsa_signal_value_t signal_change(struct signal *signal, enum signal_change change, hsa_signal_value_t operand);
hsa_signal_value_t signal_cas(struct signal *signal, hsa_signal_value_t expected, hsa_signal_value_t value);
/* Until it meets the condition, the deadline passes or it is dead; the value last seen. */
hsa_signal_value_t signal_wait(struct signal *signal, hsa_signal_condition_t condition, hsa_signal_value_t compare,
                               uint64_t deadline, hsa_wait_state_t state);
/* Has all that wait compare again. */
void signal_wake(struct signal *signal);
/* Between two comparisons, for a moment. */
void signal_relax(void);

static inline bool signal_is_condition(hsa_signal_condition_t condition)
{
    return condition >= HSA_SIGNAL_CONDITION_EQ && condition <= HSA_SIGNAL_CONDITION_GTE;
}

/* Does a value meet the condition? Every value meets what is no condition. */
static inline bool signal_meets(hsa_signal_value_t value, hsa_signal_condition_t condition, hsa_signal_value_t compare)
{
    switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
        return value == compare;
    case HSA_SIGNAL_CONDITION_NE:
        return value != compare;
    case HSA_SIGNAL_CONDITION_LT:
        return value < compare;
    case HSA_SIGNAL_CONDITION_GTE:
        return value >= compare;
    }
    return true;
}
