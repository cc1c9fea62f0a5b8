/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a broker's death until the next one may start.
 *
 * Usually the broker ends at once. But a thread of it may hang in the kernel, forever, by what a client has sent: then
 * there is no end to wait for. The next broker may start as soon as no thread of this one can do anything more: none
 * runs its program again once SIGKILL is pending for it, and one that only closes or receives something touches no
 * memory (sys/death.h). One that is in a call about memory soon comes out of it, so it is waited for; not without an
 * end, since a client can hold the lock of a file that it may write.
 *
 * The cleaner of the dead broker, which shares its descriptors, closes what clients and next broker wait for.
 */

#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "keeper/cleaner.h"
#include "keeper/keeper.h"
#include "log/log.h"
#include "sys/death.h"
#include "sys/sys.h"

/* How often it is looked at. */
#define LOOK_MS 10
/* So long a call about memory is waited for. */
#define WORKS_MS 5000
/* So long the cleaner is waited for: it closes descriptors, and gives back the pages of what was still being made. */
#define CLEAN_MS 10000

void keeper_dying_init(struct keeper *keeper)
{
    keeper->dying = (struct dying){.cleaner_fd = -1};
    for (unsigned i = 0; i < KEEPER_DEPARTED_MAX; i++)
        keeper->departed[i] = (struct departed){.cleaner = -1};
}

void keeper_dying_deinit(struct keeper *keeper)
{
    keeper->dying.cleaner_fd = fd_close(keeper->dying.cleaner_fd);
    for (unsigned i = 0; i < KEEPER_DEPARTED_MAX; i++)
        keeper->departed[i].cleaner = fd_close(keeper->departed[i].cleaner);
}

void keeper_note_cleaner(struct keeper *keeper, pid_t pid)
{
    if (keeper->pid <= 0 || pid <= 0 || keeper->dying.cleaner)
        return;
    keeper->dying.cleaner = pid;
    keeper->dying.cleaner_fd = sys->pidfd_open(pid, 0);
}

/* ---- those that are not waited for ------------------------------------------------------------------------------- */

static bool departed_is_free(struct departed *departed)
{
    struct pollfd polled = {.fd = departed->cleaner, .events = POLLIN};

    if (departed->cleaner >= 0 && poll(&polled, 1, 0) > 0 && polled.revents)
        departed->cleaner = fd_close(departed->cleaner);
    return !departed->pid && departed->cleaner < 0;
}

bool keeper_has_room_for_another(struct keeper *keeper)
{
    for (unsigned i = 0; i < KEEPER_DEPARTED_MAX; i++) {
        if (departed_is_free(&keeper->departed[i])) {
            keeper->dying.crowded = false;
            return true;
        }
    }
    if (!keeper->dying.crowded)
        log_error("%d brokers were killed and hang in the kernel, because of files that clients sent; no other is "
                  "started until one of them has ended",
                  KEEPER_DEPARTED_MAX);
    keeper->dying.crowded = true;
    return false;
}

void keeper_departed_tick(struct keeper *keeper)
{
    for (unsigned i = 0; i < KEEPER_DEPARTED_MAX; i++)
        (void)departed_is_free(&keeper->departed[i]);
}

void keeper_departed_ended(struct keeper *keeper, pid_t pid)
{
    for (unsigned i = 0; i < KEEPER_DEPARTED_MAX; i++) {
        if (keeper->departed[i].pid != pid)
            continue;
        keeper->departed[i].pid = 0;
        log_debug("broker %d, which was not waited for, has ended", (int)pid);
        return;
    }
}

void keeper_dying_ended(struct keeper *keeper, pid_t pid, bool await_cleaner)
{
    struct dying *dying = &keeper->dying;

    for (unsigned i = 0; i < KEEPER_DEPARTED_MAX; i++) {
        struct departed *departed = &keeper->departed[i];

        /* there was a free one when this broker was started */
        if (!departed_is_free(departed))
            continue;
        *departed = (struct departed){.pid = pid, .cleaner = dying->cleaner_fd};
        break;
    }
    dying->begun = 0;
    dying->hangs = 0;
    dying->clean_until = await_cleaner && dying->cleaner ? deadline_after_ms(CLEAN_MS) : 0;
    dying->cleaner = 0;
    dying->cleaner_fd = -1;
}

bool keeper_awaits_cleaner(const struct keeper *keeper)
{
    return keeper->dying.clean_until > clock_now_ns();
}

/* ---- this one ---------------------------------------------------------------------------------------------------- */

void keeper_dying_begin(struct keeper *keeper)
{
    struct dying *dying = &keeper->dying;

    if (keeper->pid <= 0 || dying->begun)
        return;
    dying->begun = clock_now_ns();
    dying->look_due = deadline_after_ms(LOOK_MS);
}

uint64_t keeper_dying_due(const struct keeper *keeper)
{
    if (keeper->dying.begun)
        return keeper->dying.look_due;
    return keeper_awaits_cleaner(keeper) ? keeper->dying.clean_until : UINT64_MAX;
}

/* Nothing more comes of it. Its process ends some time, or never. */
static void dying_give_up(struct keeper *keeper, enum death death, const struct death_cause *cause)
{
    pid_t pid = keeper->pid;

    log_error("broker %d was killed and does not end: its thread %d %s (system call %ld); it is not waited for",
              (int)pid, (int)cause->thread,
              death == DEATH_HANGS ? "hangs in the kernel, probably by what a client has sent" : "works in the kernel",
              cause->call);
    if (keeper->dying.cleaner)
        (void)kill(keeper->dying.cleaner, CLEANER_SIGNAL); /* a child of this broker, so the number is still its */
    else
        log_error("… and nobody takes apart what it has open: its clients wait until it has ended");
    keeper->ended = (siginfo_t){.si_code = CLD_KILLED}; /* without a pid: it has not */
    keeper->ended.si_status = SIGKILL;
    keeper->pid = 0;
    keeper_dying_ended(keeper, pid, true);
}

void keeper_dying_run(struct keeper *keeper)
{
    struct dying *dying = &keeper->dying;
    uint64_t now = clock_now_ns();
    struct death_cause cause;
    enum death death;

    if (!dying->begun || dying->look_due > now)
        return;
    dying->look_due = deadline_after_ms(LOOK_MS);
    death = process_death(keeper->pid, &cause);
    if (death != DEATH_HANGS)
        dying->hangs = 0;
    else if (!dying->hangs)
        dying->hangs = now;
    if ((dying->hangs && now - dying->hangs >= keeper->hangs_ms * NSEC_PER_MSEC) ||
        (death == DEATH_WORKS && now - dying->begun >= WORKS_MS * NSEC_PER_MSEC))
        dying_give_up(keeper, death, &cause);
}
