/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting without polling, and changing without a system call while nobody waits.
 *
 * A wait spins for a moment and then sleeps on `changes`, which increases with every change while there are waiters.
 * (The value itself has 64 bits, of which the kernel would compare 32.) A change writes the value and then checks for
 * waiters; a wait counts itself as a waiter and then reads `changes` and the value. All of that is sequentially
 * consistent, so one of the two sees the other. A process that is killed during a wait leaves its count behind, which
 * only costs the others a system call per change.
 *
 * Once a program has requested the value's address (`is_exposed`), changes may come without a wake-up, so waits sleep
 * for half a millisecond at a time.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hsa/watch.h"

void signal_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The kernel handles futexes of one process faster. */
static int signal_futex(struct signal *signal, int operation, uint32_t value, const struct timespec *time)
{
    return (int)syscall(SYS_futex, &signal->cell->changes, signal->buffer ? operation : operation | FUTEX_PRIVATE_FLAG,
                        value, time, NULL, 0);
}

static void signal_sleep(struct signal *signal, uint32_t changes, uint64_t left)
{
    struct timespec time = {.tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC)};

    (void)signal_futex(signal, FUTEX_WAIT, changes, left == UINT64_MAX ? NULL : &time);
}

/* A watcher counts itself before it reads the value, as a waiter does. */
static void signal_wake_watchers(const struct signal *signal)
{
    if (atomic_load(&signal->watched))
        watch_wake();
}

void signal_wake(struct signal *signal)
{
    atomic_fetch_add(&signal->cell->changes, 1);
    (void)signal_futex(signal, FUTEX_WAKE, INT_MAX, NULL);
    signal_wake_watchers(signal);
}

/* After a change. */
static void signal_wake_waiting(struct signal *signal)
{
    if (atomic_load(&signal->cell->waiting))
        signal_wake(signal);
    else
        signal_wake_watchers(signal);
}

static hsa_signal_value_t signal_apply(struct cell *cell, enum signal_operation change, hsa_signal_value_t operand)
{
    switch (change) {
    case SIGNAL_EXCHANGE:
        return atomic_exchange(&cell->value, operand);
    case SIGNAL_ADD:
        return atomic_fetch_add(&cell->value, operand);
    case SIGNAL_SUBTRACT:
        return atomic_fetch_sub(&cell->value, operand);
    case SIGNAL_AND:
        return atomic_fetch_and(&cell->value, operand);
    case SIGNAL_OR:
        return atomic_fetch_or(&cell->value, operand);
    case SIGNAL_XOR:
        return atomic_fetch_xor(&cell->value, operand);
    }
    return atomic_load(&cell->value);
}

hsa_signal_value_t signal_change(struct signal *signal, enum signal_operation change, hsa_signal_value_t operand)
{
    hsa_signal_value_t before = signal_apply(signal->cell, change, operand);

    signal_wake_waiting(signal);
    return before;
}

hsa_signal_value_t signal_cas(struct signal *signal, hsa_signal_value_t expected, hsa_signal_value_t value)
{
    int64_t before = expected;

    if (atomic_compare_exchange_strong(&signal->cell->value, &before, value))
        signal_wake_waiting(signal);
    return before;
}

hsa_signal_value_t signal_wait(struct signal *signal, hsa_signal_condition_t condition, hsa_signal_value_t compare,
                               uint64_t deadline, hsa_wait_state_t state)
{
    unsigned spins = state == HSA_WAIT_STATE_ACTIVE ? SIGNAL_SPINS_ACTIVE : SIGNAL_SPINS;
    struct cell *cell = signal->cell;
    hsa_signal_value_t value;

    for (unsigned i = 0; i < spins; i++) {
        value = atomic_load(&cell->value);
        if (signal_meets(value, condition, compare))
            return value;
        signal_relax();
    }
    atomic_fetch_add(&cell->waiting, 1);
    for (;;) {
        uint32_t changes = atomic_load(&cell->changes);
        uint64_t left = deadline_left(deadline, clock_now_ns());

        value = atomic_load(&cell->value);
        if (signal_meets(value, condition, compare) || !left || atomic_load(&signal->dead))
            break;
        signal_sleep(signal, changes, atomic_load(&cell->is_exposed) && left > SIGNAL_POLL_NS ? SIGNAL_POLL_NS : left);
    }
    atomic_fetch_sub(&cell->waiting, 1);
    return value;
}
