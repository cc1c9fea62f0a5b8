/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: numbers that threads wait for.
 *
 * A handle is a number that is looked up, and never reused. The object behind it is counted: by its handle, by threads
 * that wait for it, and by pending copies. So a signal may be destroyed while it is in use, which ends all waits for
 * it.
 *
 * The value is in a cell: the signal's own or, if it is shared with other processes, one in a page of a buffer. Each
 * process has its own object for such a signal. All of them can write to the page, so its contents are neither followed
 * nor trusted; they can at most disturb waits.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/memclient.h>

#include "base/clock.h"
#include "base/hash.h"

/* The number of comparisons of a wait before it sleeps. */
#define SIGNAL_SPINS        100
#define SIGNAL_SPINS_ACTIVE 10000
/* The longest sleep where the value may change without a wake-up. */
#define SIGNAL_POLL_NS (500 * NSEC_PER_USEC)

/* Its layout is fixed, since processes share it. */
struct cell {
    uint64_t magic; /* CELL_MAGIC */
    _Atomic int64_t value;
    _Atomic uint32_t changes; /* counts only those with waiters */
    _Atomic uint32_t waiting;
    _Atomic uint32_t is_exposed; /* some process has the value's address, and may change it without waking anybody */
    uint32_t reserved;
};

#define CELL_MAGIC UINT64_C(0x3c6e676973617368)

struct signal {
    uint64_t id;
    UT_hash_handle hh;
    _Atomic unsigned refs;
    _Atomic bool dead;
    _Atomic unsigned watched; /* the number of watchers (watch.h), which changes wake */
    struct cell *cell;        /* `own`, or mapped */
    struct cell own;
    bool may_be_exposed;                   /* hsa_amd_signal_value_pointer() is allowed */
    struct memclient_buffer *buffer;       /* a reference; NULL: of this process only */
    struct memclient_token token;          /* of the buffer */
    _Atomic uint64_t copy_start, copy_end; /* of the last timed copy that it completed, or 0 */
};

/* A new reference, or NULL. */
struct signal *signal_find(hsa_signal_t handle);
/* Ignores NULL. The last reference to a shared signal calls the broker. */
void signal_unref(struct signal *signal);

/* At the last hsa_shut_down(), while the session is still open: ends all signals and waits, and returns when nothing
 * refers to any of them. So all copies are done. */
void signals_stop(void);
/* Around a fork. The child has no signals. */
void signals_fork_prepare(void);
void signals_fork_parent(void);
void signals_fork_child(void);

/* ---- signal_wait.c ----------------------------------------------------------------------------------------------- */

/* Operations on a value, with one operand. */
enum signal_operation { SIGNAL_EXCHANGE, SIGNAL_ADD, SIGNAL_SUBTRACT, SIGNAL_AND, SIGNAL_OR, SIGNAL_XOR };

/* Both wake all waiters, and return the value before. */
hsa_signal_value_t signal_change(struct signal *signal, enum signal_operation change, hsa_signal_value_t operand);
hsa_signal_value_t signal_cas(struct signal *signal, hsa_signal_value_t expected, hsa_signal_value_t value);
/* Waits until the value meets the condition, the deadline passes or the signal is dead. Returns the last value seen. */
hsa_signal_value_t signal_wait(struct signal *signal, hsa_signal_condition_t condition, hsa_signal_value_t compare,
                               uint64_t deadline, hsa_wait_state_t state);
/* Makes all waiters and watchers compare again. */
void signal_wake(struct signal *signal);
/* A short pause between two comparisons. */
void signal_relax(void);

static inline bool signal_is_condition(hsa_signal_condition_t condition)
{
    return condition >= HSA_SIGNAL_CONDITION_EQ && condition <= HSA_SIGNAL_CONDITION_GTE;
}

/* Does the value meet the condition? Every value meets an invalid condition. */
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
