/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See watch.h. As in signal_wait.c, a change writes the value and then checks for watchers; a watcher counts itself,
 * then reads the words, then the values. All of that is sequentially consistent, so one of the two sees the other.
 */
#include "hsa/watch.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic uint32_t watch_changes; /* made by this process to watched signals */

void watch_wake(void)
{
    atomic_fetch_add(&watch_changes, 1);
    (void)syscall(SYS_futex, &watch_changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void watch_begin(struct watch *watch)
{
    atomic_fetch_add(&watch->signal->watched, 1);
    if (watch->signal->buffer)
        atomic_fetch_add(&watch->signal->cell->waiting, 1);
}

void watch_end(struct watch *watch)
{
    if (watch->signal->buffer)
        atomic_fetch_sub(&watch->signal->cell->waiting, 1);
    atomic_fetch_sub(&watch->signal->watched, 1);
}

void watch_set_begin(struct watch_set *set)
{
    set->n_words = 1;
    set->polls = false;
    set->words[0] = (struct watch_word){&watch_changes, atomic_load(&watch_changes)};
}

bool watch_check(struct watch_set *set, struct watch *watch)
{
    struct cell *cell = watch->signal->cell;

    if (watch->signal->buffer && set->n_words < WATCH_WORDS_MAX)
        set->words[set->n_words++] = (struct watch_word){&cell->changes, atomic_load(&cell->changes)};
    else if (watch->signal->buffer)
        set->polls = true;
    if (atomic_load(&cell->is_exposed))
        set->polls = true;
    watch->value = atomic_load(&cell->value);
    return signal_meets(watch->value, watch->condition, watch->compare);
}

/* Sleeps only on the process's own word. */
static void watch_sleep_on_one(const struct watch_set *set, uint64_t left)
{
    struct timespec time = {.tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC)};

    (void)syscall(SYS_futex, set->words[0].word, FUTEX_WAIT_PRIVATE, set->words[0].seen,
                  left == UINT64_MAX ? NULL : &time, NULL, 0);
}

/* Sleeps on all words. False if the kernel cannot do that. */
static bool watch_sleep_on_all(const struct watch_set *set, uint64_t left)
{
    struct futex_waitv words[WATCH_WORDS_MAX] = {{0}};
    uint64_t until = deadline_after_ns(left);
    struct timespec time = {.tv_sec = (time_t)(until / NSEC_PER_SEC), .tv_nsec = (long)(until % NSEC_PER_SEC)};

    for (unsigned i = 0; i < set->n_words; i++) {
        words[i].uaddr = (uintptr_t)set->words[i].word;
        words[i].val = set->words[i].seen;
        words[i].flags = i ? FUTEX_32 : FUTEX_32 | FUTEX_PRIVATE_FLAG;
    }
    return syscall(SYS_futex_waitv, words, set->n_words, 0, left == UINT64_MAX ? NULL : &time, CLOCK_MONOTONIC) >= 0 ||
           errno != ENOSYS;
}

void watch_set_sleep(const struct watch_set *set, uint64_t deadline)
{
    uint64_t left = deadline_left(deadline, clock_now_ns());
    uint64_t poll = left < SIGNAL_POLL_NS ? left : SIGNAL_POLL_NS;

    if (!left)
        return;
    if (set->n_words == 1)
        watch_sleep_on_one(set, set->polls ? poll : left);
    else if (!watch_sleep_on_all(set, set->polls ? poll : left))
        watch_sleep_on_one(set, poll);
}
