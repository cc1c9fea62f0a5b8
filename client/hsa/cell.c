/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting without asking again and again, and changing without a system call where nobody waits.
 *
 * A wait looks at the value for a moment, and then sleeps on `changes`, which moves with every change that somebody
 * waits for. (The value itself has 64 bits, of which the kernel would compare 32.) The one side writes the value and
 * then looks for waiters; the other counts itself as one and then reads `changes` and the value. All of that is in
 * one order for everybody, so one of the two sees the other. A process that was killed while it waited leaves its
 * count behind, which costs the others a system call per change, and nothing else.
 */
#include "hsa/cell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define MAGIC        UINT64_C(0x3c6e676973617368)
#define SPINS        100
#define SPINS_ACTIVE 10000

static inline void relax(void)
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

static void sleep_while(struct cell *cell, bool own, uint32_t changes, uint64_t left)
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

void cell_store(struct cell *cell, bool own, hsa_signal_value_t value)
{
    atomic_store(&cell->value, value);
    if (atomic_load(&cell->waiting))
        cell_wake(cell, own);
}

void cell_add(struct cell *cell, bool own, hsa_signal_value_t value)
{
    atomic_fetch_add(&cell->value, value);
    if (atomic_load(&cell->waiting))
        cell_wake(cell, own);
}

static bool meets(hsa_signal_value_t value, const struct cell_wish *wish)
{
    switch (wish->condition) {
    case HSA_SIGNAL_CONDITION_EQ:
        return value == wish->compare;
    case HSA_SIGNAL_CONDITION_NE:
        return value != wish->compare;
    case HSA_SIGNAL_CONDITION_LT:
        return value < wish->compare;
    case HSA_SIGNAL_CONDITION_GTE:
        return value >= wish->compare;
    }
    /* what is no condition cannot be waited for */
    return true;
}

hsa_signal_value_t cell_wait(struct cell *cell, bool own, const struct cell_wish *wish, const _Atomic bool *dead)
{
    unsigned spins = wish->state == HSA_WAIT_STATE_ACTIVE ? SPINS_ACTIVE : SPINS;
    hsa_signal_value_t value;

    for (unsigned i = 0; i < spins; i++) {
        value = cell_load(cell);
        if (meets(value, wish))
            return value;
        relax();
    }
    atomic_fetch_add(&cell->waiting, 1);
    for (;;) {
        uint32_t changes = atomic_load(&cell->changes);
        uint64_t left = deadline_left(wish->deadline, clock_now_ns());

        value = cell_load(cell);
        if (meets(value, wish) || !left || atomic_load(dead))
            break;
        sleep_while(cell, own, changes, left);
    }
    atomic_fetch_sub(&cell->waiting, 1);
    return value;
}
