/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting without polling, and changing without a system call where nothing waits.
 *
 * A wait spins for a moment, and then sleeps on `changes`, which moves with every change while there are waiters. (The
 * value itself has 64 bits, of which the kernel would compare 32.) The one side writes the value and then checks for
 * waiters; the other counts itself as one and then reads `changes` and the value. All of that is sequentially
 * consistent, so one of the two sees the other. A process that was killed while it waited leaves its count behind,
 * which costs the others a system call per change, and nothing else.
 *
 * Where a program has asked for the value's address (`is_exposed`), changes may come without a wake-up, so waits sleep
 * for half a millisecond at a time.
 */
#include "hsa/cell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define MAGIC UINT64_C(0x3c6e676973617368)

void cell_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int futex_operation(int operation, bool own)
{
    return own ? operation | FUTEX_PRIVATE_FLAG : operation;
}

static void cell_sleep(struct cell *cell, bool own, uint32_t changes, uint64_t left)
{
    struct timespec time = {.tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC)};

    (void)syscall(SYS_futex, &cell->changes, futex_operation(FUTEX_WAIT, own), changes,
                  left == UINT64_MAX ? NULL : &time, NULL, 0);
}

void cell_wake(struct cell *cell, bool own)
{
    atomic_fetch_add(&cell->changes, 1);
    (void)syscall(SYS_futex, &cell->changes, futex_operation(FUTEX_WAKE, own), INT_MAX, NULL, NULL, 0);
}

void cell_init(struct cell *cell, hsa_signal_value_t value)
{
    cell->magic = MAGIC;
    atomic_store(&cell->value, value);
}

bool cell_is_one(const struct cell *cell)
{
    return cell->magic == MAGIC;
}

hsa_signal_value_t cell_load(const struct cell *cell)
{
    return atomic_load(&cell->value);
}

static hsa_signal_value_t cell_apply(struct cell *cell, enum cell_change change, hsa_signal_value_t operand)
{
    switch (change) {
    case CELL_EXCHANGE:
        return atomic_exchange(&cell->value, operand);
    case CELL_ADD:
        return atomic_fetch_add(&cell->value, operand);
    case CELL_SUBTRACT:
        return atomic_fetch_sub(&cell->value, operand);
    case CELL_AND:
        return atomic_fetch_and(&cell->value, operand);
    case CELL_OR:
        return atomic_fetch_or(&cell->value, operand);
    case CELL_XOR:
        return atomic_fetch_xor(&cell->value, operand);
    }
    return cell_load(cell);
}

static void cell_wake_waiting(struct cell *cell, bool own)
{
    if (atomic_load(&cell->waiting))
        cell_wake(cell, own);
}

hsa_signal_value_t cell_change(struct cell *cell, bool own, enum cell_change change, hsa_signal_value_t operand)
{
    hsa_signal_value_t before = cell_apply(cell, change, operand);

    cell_wake_waiting(cell, own);
    return before;
}

hsa_signal_value_t cell_cas(struct cell *cell, bool own, hsa_signal_value_t expected, hsa_signal_value_t value)
{
    int64_t before = expected;

    if (atomic_compare_exchange_strong(&cell->value, &before, value))
        cell_wake_waiting(cell, own);
    return before;
}

void cell_store_silently(struct cell *cell, hsa_signal_value_t value)
{
    atomic_store(&cell->value, value);
}

bool cell_meets(hsa_signal_value_t value, hsa_signal_condition_t condition, hsa_signal_value_t compare)
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

static bool cell_meets_options(hsa_signal_value_t value, const struct wait_options *options)
{
    return cell_meets(value, options->condition, options->compare);
}

hsa_signal_value_t cell_wait(struct cell *cell, bool own, const struct wait_options *options, const _Atomic bool *dead)
{
    unsigned spins = options->state == HSA_WAIT_STATE_ACTIVE ? CELL_SPINS_ACTIVE : CELL_SPINS;
    hsa_signal_value_t value;

    for (unsigned i = 0; i < spins; i++) {
        value = cell_load(cell);
        if (cell_meets_options(value, options))
            return value;
        cell_relax();
    }
    atomic_fetch_add(&cell->waiting, 1);
    for (;;) {
        uint32_t changes = atomic_load(&cell->changes);
        uint64_t left = deadline_left(options->deadline, clock_now_ns());

        value = cell_load(cell);
        if (cell_meets_options(value, options) || !left || atomic_load(dead))
            break;
        cell_sleep(cell, own, changes, atomic_load(&cell->is_exposed) && left > CELL_POLL_NS ? CELL_POLL_NS : left);
    }
    atomic_fetch_sub(&cell->waiting, 1);
    return value;
}
