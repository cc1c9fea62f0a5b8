/* SPDX-License-Identifier: Apache-2.0 */
/* See keeper.h: the loop, and what happens when the broker has ended. */

#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>

#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "keeper/link.h"
#include "keeper/service.h"
#include "log/log.h"
#include "sys/peer.h"

#define TICK_MS 1000
/* A broker that serves sends a heartbeat once a second. */
#define UNRESPONSIVE_MS 10000
#define HANGS_MS        200
/* A broker may take so long until it serves, on a busy machine. */
#define START_MS 60000
/* A broker that shuts down gives replies and last events two seconds (app/loop.c); then it is killed. */
#define STOP_MS         5000
#define BACK_OFF_MIN_MS 10
#define BACK_OFF_MAX_MS 5000
/* After a SIGKILL from outside, which says nothing about the next broker. */
#define BACK_OFF_KILLED_MS 100

int keeper_init(struct keeper *keeper, uint64_t most, char *const *argv)
{
    sigset_t none;
    int r;

    *keeper = (struct keeper){
        .store = STORE_NULL,
        .signal_fd = -1,
        .low_fd = -1,
        .socket = -1,
        .most = most,
        .tick_ms = TICK_MS,
        .unresponsive_max_ms = UNRESPONSIVE_MS,
        .hangs_ms = HANGS_MS,
        .preflight = {.output = -1},
        .program = -1,
    };
    keeper_dying_init(keeper);
    /* opened before anything is held, so that their numbers are low; keeper_prepare() names the signals */
    (void)sigemptyset(&none);
    keeper->signal_fd = signalfd(-1, &none, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper->low_fd = keeper->signal_fd < 0 ? -1 : fcntl(keeper->signal_fd, F_DUPFD_CLOEXEC, 0);
    if (keeper->low_fd < 0)
        return -errno;
    r = start_init(&keeper->start, argv);
    return r ? r : store_init(&keeper->store, most);
}

void keeper_deinit(struct keeper *keeper)
{
    keeper->signal_fd = fd_close(keeper->signal_fd);
    keeper->low_fd = fd_close(keeper->low_fd);
    keeper->socket = fd_close(keeper->socket);
    keeper->preflight.output = fd_close(keeper->preflight.output);
    keeper->program = fd_close(keeper->program);
    keeper_dying_deinit(keeper);
    store_deinit(&keeper->store);
    start_deinit(&keeper->start);
}

/* ---- what the broker sends --------------------------------------------------------------------------------------- */

void keeper_broker_is_ready(struct keeper *keeper)
{
    if (keeper->state != KEEPER_STARTING)
        return;
    keeper->state = KEEPER_SERVING;
    keeper->back_off_ms = 0;
    keeper->line = (struct service_line){.pause = 0};
    if (keeper->goal == KEEPER_GOAL_SERVE)
        service_ready(&keeper->store, !keeper->has_served, keeper->own_listener);
    if (!keeper->has_served && keeper->served)
        keeper->served(keeper->userdata);
    keeper->has_served = true;
}

static void keeper_ask_to_stop(struct keeper *keeper, enum keeper_goal goal)
{
    keeper->goal = goal;
    keeper->unresponsive_ms = 0;
    if (keeper->state == KEEPER_SERVING || keeper->state == KEEPER_STARTING)
        keeper_send(keeper, PACKET_STOP, goal == KEEPER_GOAL_STOP ? service_at_stop() : KEEPER_STOP_NEXT, NULL);
    else if (keeper->state == KEEPER_HANDING)
        keeper_kill_broker(keeper, NULL); /* which has done nothing yet */
}

void keeper_begin_upgrade(struct keeper *keeper)
{
    if (keeper->over || keeper->goal != KEEPER_GOAL_SERVE)
        return;
    if (keeper->state == KEEPER_DOWN)
        keeper_upgrade(keeper);
    else
        keeper_ask_to_stop(keeper, KEEPER_GOAL_UPGRADE);
}

/* ---- the broker's end -------------------------------------------------------------------------------------------- */

static void keeper_schedule_start(struct keeper *keeper, uint64_t most_ms)
{
    if (keeper->back_off_ms > most_ms)
        keeper->back_off_ms = most_ms;
    keeper->due = deadline_after_ms(keeper->back_off_ms);
    keeper->back_off_ms = keeper->back_off_ms ? keeper->back_off_ms * 2 : BACK_OFF_MIN_MS;
}

static bool was_killed(const siginfo_t *info)
{
    return info->si_code == CLD_KILLED && info->si_status == SIGKILL;
}

static void keeper_log_end(const siginfo_t *info, bool served)
{
    const char *when = served ? "" : " before it served";

    if (!info->si_pid)
        return; /* it hangs, and that was logged */
    if (info->si_code == CLD_EXITED)
        log_error("broker %d ended%s with status %d", info->si_pid, when, info->si_status);
    else
        log_error("broker %d ended%s by signal %d (%s)", info->si_pid, when, info->si_status,
                  strsignal(info->si_status));
    if (info->si_code != CLD_EXITED && info->si_status == SIGSYS)
        log_error("it made a system call that its sandbox forbids, which may be an attack; the kernel's log says which "
                  "(journalctl -k --grep SECCOMP; ausyscall names the number)");
}

/* Does the keeper end with this broker, which was not told to stop? Otherwise the next one is started. */
static bool keeper_ends_too(struct keeper *keeper, const siginfo_t *info, bool served)
{
    if (info->si_code != CLD_EXITED)
        return false;
    if (served && info->si_status == 0)
        return true; /* it was not needed any more */
    if (info->si_status == KEEPER_EXIT_LEDGER) {
        /* for one start only: the previous program may fail the same way */
        keeper->use_previous = store_get(&keeper->store, KEEPER_KEY(KEEPER_PROGRAM, 0)) >= 0;
        if (keeper->use_previous)
            log_error("this program cannot read the ledger; the previous one is started instead");
        return !keeper->use_previous;
    }
    return !keeper->has_served && !keeper->inherited;
}

static void broker_ended(struct keeper *keeper)
{
    bool served = keeper->state == KEEPER_SERVING;

    keeper->state = KEEPER_DOWN;
    keeper->due = 0;
    keeper->dying.clean_until = 0;
    if (keeper->goal == KEEPER_GOAL_STOP) {
        keeper_end(keeper, 0);
    } else if (keeper->goal == KEEPER_GOAL_UPGRADE) {
        keeper->goal = KEEPER_GOAL_SERVE;
        keeper_upgrade(keeper);
    } else if (keeper_ends_too(keeper, &keeper->ended, served)) {
        keeper_end(keeper, keeper->ended.si_status);
    } else {
        keeper_log_end(&keeper->ended, served);
        (void)sd_notify(0, "STATUS=The broker has ended, the next one starts");
        keeper_schedule_start(keeper, was_killed(&keeper->ended) ? BACK_OFF_KILLED_MS : BACK_OFF_MAX_MS);
    }
}

static void keeper_read_socket(struct keeper *keeper)
{
    if (keeper_receive(keeper))
        return;
    keeper->socket = fd_close(keeper->socket);
    /* a broker that has closed its socket is of no use: if it has not ended, it does now */
    keeper_kill_broker(keeper, NULL);
}

/* The broker is gone when it has ended and all was read that it sent, in whatever order that comes. */
static void keeper_check_ended(struct keeper *keeper)
{
    if (keeper->state == KEEPER_DOWN || keeper->pid)
        return;
    if (keeper->socket >= 0)
        keeper_read_socket(keeper);
    if (keeper->socket < 0)
        broker_ended(keeper);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void keeper_on_reload(struct keeper *keeper)
{
    /* there is no broker, or it is still going to read the file */
    if (keeper->state == KEEPER_DOWN || keeper->state == KEEPER_HANDING || keeper->goal != KEEPER_GOAL_SERVE)
        return;
    if (keeper->state == KEEPER_SERVING)
        (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)clock_now_us());
    keeper_send(keeper, PACKET_RELOAD, 0, NULL);
}

static void keeper_on_stop(struct keeper *keeper)
{
    if (keeper->state == KEEPER_DOWN) {
        keeper_end(keeper, 0);
        return;
    }
    if (keeper->goal == KEEPER_GOAL_STOP) {
        keeper_kill_broker(keeper, NULL); /* a second signal: at once */
        return;
    }
    (void)sd_notify(0, "STOPPING=1");
    keeper_ask_to_stop(keeper, KEEPER_GOAL_STOP);
}

static void keeper_on_signals(struct keeper *keeper)
{
    struct signalfd_siginfo info;

    while (read(keeper->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGHUP)
            keeper_on_reload(keeper);
        else if (info.ssi_signo == SIGCHLD)
            keeper_note_exit(keeper);
        else
            keeper_on_stop(keeper);
    }
}

/* Counts ticks, not time: while this process itself does not run, nothing counts against the broker. */
static void keeper_tick(struct keeper *keeper)
{
    uint64_t patience = keeper->state == KEEPER_SERVING ? keeper->unresponsive_max_ms : START_MS;

    if (keeper->watchdog)
        (void)sd_notify(0, "WATCHDOG=1");
    keeper_preflight_tick(keeper);
    keeper_departed_tick(keeper);
    if (keeper->state == KEEPER_DOWN)
        return;
    if (keeper->goal != KEEPER_GOAL_SERVE)
        patience = STOP_MS;
    keeper->unresponsive_ms += keeper->tick_ms;
    if (keeper->unresponsive_ms <= patience)
        return;
    keeper->unresponsive_ms = 0;
    if (keeper->goal != KEEPER_GOAL_SERVE)
        keeper_kill_broker(keeper, "does not stop");
    else if (!process_pauses(keeper->pid))
        keeper_kill_broker(keeper, "is unresponsive");
}

static uint64_t keeper_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int keeper_prepare(struct keeper *keeper)
{
    static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
    static const int ignored[] = {SIGPIPE, SIGIO, SIGXFSZ};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    uint64_t watchdog_ms = service_watchdog_ms();
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        (void)sigaddset(&set, ours[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    /* A broker that has taken its keeper's place has ignored these signals. A parent may have ignored SIGCHLD, and then
     * nobody learns how children end. */
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        (void)sigaction(ours[i], &by_default, NULL);
    (void)sigaction(SIGABRT, &by_default, NULL);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
        (void)sigaction(ignored[i], &ignore, NULL);
    if (signalfd(keeper->signal_fd, &set, SFD_CLOEXEC | SFD_NONBLOCK) < 0)
        return -errno;
    keeper->watchdog = watchdog_ms > 0;
    if (keeper->watchdog)
        keeper->tick_ms = keeper_earlier(keeper->tick_ms, watchdog_ms / 2);
    return 0;
}

/* Waits for the broker, a signal, or what is due next, and handles the former two. */
static void keeper_poll(struct keeper *keeper)
{
    bool handing = keeper->state == KEEPER_HANDING;
    bool wait_for_turn = handing && keeper->wait_for_turn;
    short events = handing ? POLLOUT : POLLIN;
    struct pollfd fds[] = {
        {.fd = keeper->signal_fd, .events = POLLIN},
        {.fd = keeper->socket, .events = wait_for_turn ? 0 : events},
    };
    uint64_t now = clock_now_ns();
    uint64_t next = keeper->state == KEEPER_DOWN ? keeper_earlier(keeper->due, keeper->tick_due) : keeper->tick_due;

    if (wait_for_turn)
        next = keeper_earlier(next, now + PACKET_TURN_MS * NSEC_PER_MSEC);
    next = keeper_earlier(next, keeper_dying_due(keeper));
    if (poll(fds, 2, deadline_poll_ms(next, now)) < 0)
        return;
    if (handing && (wait_for_turn || fds[1].revents & POLLOUT) && !(fds[1].revents & (POLLHUP | POLLERR)))
        keeper_hand_over(keeper);
    else if (fds[1].revents)
        keeper_read_socket(keeper);
    if (fds[0].revents)
        keeper_on_signals(keeper);
}

static void keeper_run_due(struct keeper *keeper)
{
    uint64_t now = clock_now_ns();

    if (keeper->tick_due <= now) {
        keeper->tick_due = deadline_after_ms(keeper->tick_ms);
        keeper_tick(keeper);
    }
    keeper_dying_run(keeper);
    if (keeper->state == KEEPER_DOWN && keeper->due <= now && !keeper_has_room_for_another(keeper))
        keeper->due = deadline_after_ms(TICK_MS);
    if (keeper->state == KEEPER_DOWN && keeper->due <= now) {
        keeper_start_broker(keeper);
        if (keeper->state == KEEPER_DOWN)
            keeper_schedule_start(keeper, BACK_OFF_MAX_MS);
    }
    /* not while the next broker starts, or the cleaner of the last one works, which need the processor */
    if (keeper->has_zombies && !keeper_awaits_cleaner(keeper) &&
        (keeper->state == KEEPER_SERVING || keeper->state == KEEPER_DOWN))
        keeper_reap(keeper);
}

int keeper_run(struct keeper *keeper)
{
    int r = keeper_prepare(keeper);

    if (r) {
        log_error("cannot listen to signals: %s", strerror(-r));
        return 1;
    }
    keeper->due = 0;
    keeper->tick_due = deadline_after_ms(keeper->tick_ms);
    while (!keeper->over) {
        keeper_poll(keeper);
        if (!keeper->over)
            keeper_check_ended(keeper);
        if (!keeper->over)
            keeper_run_due(keeper);
    }
    return keeper->status;
}
