/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions on a signal's value: load, store, change and wait, in all memory orders of HSA.
 *
 * All of them use the strongest order: weaker ones would not be faster, since finding the signal costs more. A handle
 * that is no signal has the value 0, which never changes.
 */
#include <memclient/hsa/hsa/hsa.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "hsa/signal.h"

DEFINE_CLEANUP(struct signal *, signal_unref);

static hsa_signal_value_t value_load(hsa_signal_t handle)
{
    _cleanup_(signal_unrefp) struct signal *signal = signal_find(handle);

    return signal ? atomic_load(&signal->cell->value) : 0;
}

static hsa_signal_value_t value_change(hsa_signal_t handle, enum signal_operation change, hsa_signal_value_t operand)
{
    _cleanup_(signal_unrefp) struct signal *signal = signal_find(handle);

    return signal ? signal_change(signal, change, operand) : 0;
}

static hsa_signal_value_t value_cas(hsa_signal_t handle, hsa_signal_value_t expected, hsa_signal_value_t value)
{
    _cleanup_(signal_unrefp) struct signal *signal = signal_find(handle);

    return signal ? signal_cas(signal, expected, value) : 0;
}

static void value_store_silently(hsa_signal_t handle, hsa_signal_value_t value)
{
    _cleanup_(signal_unrefp) struct signal *signal = signal_find(handle);

    if (signal)
        atomic_store(&signal->cell->value, value);
}

/* A tick is a nanosecond. */
static hsa_signal_value_t value_wait(hsa_signal_t handle, hsa_signal_condition_t condition, hsa_signal_value_t compare,
                                     uint64_t ticks, hsa_wait_state_t state)
{
    _cleanup_(signal_unrefp) struct signal *signal = signal_find(handle);

    return signal ? signal_wait(signal, condition, compare, deadline_after_ns(ticks), state) : 0;
}

#define LOAD(order)                                                 \
    hsa_signal_value_t hsa_signal_load_##order(hsa_signal_t signal) \
    {                                                               \
        return value_load(signal);                                  \
    }
LOAD(relaxed)
LOAD(scacquire)
LOAD(acquire)

#define STORE(order)                                                             \
    void hsa_signal_store_##order(hsa_signal_t signal, hsa_signal_value_t value) \
    {                                                                            \
        (void)value_change(signal, SIGNAL_EXCHANGE, value);                      \
    }
STORE(relaxed)
STORE(screlease)
STORE(release)

#define SILENT_STORE(order)                                                             \
    void hsa_signal_silent_store_##order(hsa_signal_t signal, hsa_signal_value_t value) \
    {                                                                                   \
        value_store_silently(signal, value);                                            \
    }
SILENT_STORE(relaxed)
SILENT_STORE(screlease)

#define WAIT(order)                                                                                     \
    hsa_signal_value_t hsa_signal_wait_##order(hsa_signal_t signal, hsa_signal_condition_t condition,   \
                                               hsa_signal_value_t compare_value, uint64_t timeout_hint, \
                                               hsa_wait_state_t wait_state_hint)                        \
    {                                                                                                   \
        return value_wait(signal, condition, compare_value, timeout_hint, wait_state_hint);             \
    }
WAIT(relaxed)
WAIT(scacquire)
WAIT(acquire)

/* clang-format off */
#define IN_EVERY_ORDER(function, ...)   \
    function(relaxed, __VA_ARGS__)      \
    function(scacquire, __VA_ARGS__)    \
    function(acquire, __VA_ARGS__)      \
    function(screlease, __VA_ARGS__)    \
    function(release, __VA_ARGS__)      \
    function(scacq_screl, __VA_ARGS__)  \
    function(acq_rel, __VA_ARGS__)
/* clang-format on */

#define CHANGE(order, name, change)                                                 \
    void hsa_signal_##name##_##order(hsa_signal_t signal, hsa_signal_value_t value) \
    {                                                                               \
        (void)value_change(signal, change, value);                                  \
    }
IN_EVERY_ORDER(CHANGE, add, SIGNAL_ADD)
IN_EVERY_ORDER(CHANGE, subtract, SIGNAL_SUBTRACT)
IN_EVERY_ORDER(CHANGE, and, SIGNAL_AND)
IN_EVERY_ORDER(CHANGE, or, SIGNAL_OR)
IN_EVERY_ORDER(CHANGE, xor, SIGNAL_XOR)

#define EXCHANGE(order, change)                                                                   \
    hsa_signal_value_t hsa_signal_exchange_##order(hsa_signal_t signal, hsa_signal_value_t value) \
    {                                                                                             \
        return value_change(signal, change, value);                                               \
    }
IN_EVERY_ORDER(EXCHANGE, SIGNAL_EXCHANGE)

#define CAS(order, swap)                                                                        \
    hsa_signal_value_t hsa_signal_cas_##order(hsa_signal_t signal, hsa_signal_value_t expected, \
                                              hsa_signal_value_t value)                         \
    {                                                                                           \
        return swap(signal, expected, value);                                                   \
    }
IN_EVERY_ORDER(CAS, value_cas)
