/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The keeper's child: how it is started, what is sent to it and received from it, and whether it lives.
 *
 * The keeper never waits for it. Handing over goes on as the socket has room, and nothing is read meanwhile: the broker
 * sends nothing before it has everything, and the table must not change under the hand-over.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/keeper.h"
#include "keeper/service.h"
#include "log/log.h"
#include "proto/sockio.h"

#define PACKETS_AT_ONCE 64
/* The kernel may give less. */
#define SOCKET_BYTES (8 << 20)
/* Descriptors besides what is held: the standard ones, signal_fd, low_fd, lock, the socket pair of a broker, two in
 * /proc, the installed program, cleaners. */
#define FDS_IN_RESERVE (13 + KEEPER_DEPARTED_MAX)

void keeper_kill_broker(struct keeper *keeper, const char *why)
{
    if (keeper->pid <= 0)
        return;
    if (why)
        log_error("killing broker %d, which %s", keeper->pid, why);
    (void)kill(keeper->pid, SIGKILL);
    keeper_dying_begin(keeper);
}

void keeper_start_broker(struct keeper *keeper)
{
    int previous = keeper->use_previous ? store_get(&keeper->store, KEEPER_KEY(KEEPER_PROGRAM, 0)) : -1;
    _cleanup_close_ int theirs = -1;
    int ends[2];
    pid_t pid;

    keeper->use_previous = false;
    keeper->runs_previous = previous >= 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        log_error("cannot make a socket for the broker: %s", strerror(errno));
        return;
    }
    keeper->socket = ends[0];
    theirs = ends[1];
    keeper->state = KEEPER_HANDING;
    keeper->position = 0;
    keeper->unresponsive_ms = 0;
    /* enough for everything, unless that is some thousand descriptors */
    (void)setsockopt(keeper->socket, SOL_SOCKET, SO_SNDBUF, &(int){SOCKET_BYTES}, sizeof(int));
    pid = dup3(theirs, keeper->low_fd, O_CLOEXEC) < 0 ? -errno : start_broker(&keeper->start, previous, keeper->low_fd);
    (void)dup3(keeper->signal_fd, keeper->low_fd, O_CLOEXEC);
    if (pid < 0) {
        log_error("cannot start the broker: %s", strerror(-pid));
        keeper->socket = fd_close(keeper->socket);
        keeper->state = KEEPER_DOWN;
        return;
    }
    keeper->pid = pid;
    /* while the program is still being loaded */
    keeper_send(keeper, PACKET_COUNT, (uint32_t)keeper->store.n, NULL);
    keeper_hand_over(keeper);
}

/* What a send to the broker came to. Its end is noticed where its socket is read. */
static void child_check_send(struct keeper *keeper, int r)
{
    /* it may ask for no more than there is room for answers, so it does not read them */
    if (r && r != SOCKIO_E_GONE)
        keeper_kill_broker(keeper, "does not read what it is sent");
}

void keeper_send(struct keeper *keeper, enum packet_type type, uint32_t value, const struct keeper_key *key)
{
    struct packet packet = {.type = type, .value = value, .n = key ? 1 : 0};

    if (keeper->socket < 0)
        return;
    if (key)
        packet.keys[0] = *key;
    child_check_send(keeper, packet_send(keeper->socket, &packet, NULL));
}

void keeper_hand_over(struct keeper *keeper)
{
    const struct packet end = {.type = PACKET_END, .value = (uint32_t)getpid()};
    int r;

    keeper->wait_for_turn = false;
    for (;;) {
        struct packet packet = {.type = PACKET_HOLD};
        size_t position = keeper->position;
        const struct store_slot *slot;
        int fds[PACKET_KEYS_MAX];

        while (packet.n < PACKET_KEYS_MAX && (slot = store_next(&keeper->store, &position))) {
            packet.keys[packet.n] = slot->key;
            fds[packet.n++] = slot->fd;
        }
        r = packet.n ? packet_send(keeper->socket, &packet, fds) : packet_send(keeper->socket, &end, NULL);
        if (r)
            break;
        keeper->position = position;
        if (!packet.n) {
            keeper->state = KEEPER_STARTING;
            return;
        }
    }
    /* poll() tells when there is room; nothing tells when fewer descriptors are in flight */
    keeper->wait_for_turn = r == SOCKIO_E_TOO_MANY_IN_FLIGHT;
    if (r != SOCKIO_E_AGAIN && r != SOCKIO_E_TOO_MANY_IN_FLIGHT)
        child_check_send(keeper, r);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* No broker may change these. */
static bool child_is_ours(const struct keeper_key *key)
{
    return key->kind == KEEPER_LISTENER || key->kind == KEEPER_LOCK || key->kind == KEEPER_PROGRAM ||
           key->kind == KEEPER_FD_STASH;
}

static void child_hold(struct keeper *keeper, const struct packet *packet, struct fdset *fds)
{
    /* dropped, since the next broker needs a few descriptors, too */
    if (keeper->store.n + packet->n + FDS_IN_RESERVE > keeper->most) {
        keeper_kill_broker(keeper, "has had so much held that no other could be started");
        return;
    }
    for (unsigned i = 0; i < packet->n; i++) {
        struct keeper_key key = packet->keys[i];

        if (child_is_ours(&key))
            continue;
        (void)store_take_in(&keeper->store, (enum keeper_kind)key.kind, key.id, fdset_steal(fds, i));
        if (key.kind == KEEPER_LEDGER && keeper->has_served && service_has_store())
            service_store_ledger(store_get(&keeper->store, key));
    }
}

static void child_drop(struct keeper *keeper, const struct packet *packet)
{
    for (unsigned i = 0; i < packet->n; i++) {
        if (!child_is_ours(&packet->keys[i]))
            (void)fd_close(store_remove(&keeper->store, packet->keys[i]));
        if (packet->type == PACKET_DROP_ASK)
            keeper_send(keeper, PACKET_DROPPED, 0, &packet->keys[i]);
    }
}

/* As if it had ended. Its process will, some time. */
static void child_note_left(struct keeper *keeper)
{
    if (keeper->pid <= 0)
        return;
    keeper->ended = (siginfo_t){.si_code = CLD_EXITED, .si_pid = keeper->pid};
    keeper_dying_ended(keeper, keeper->pid, false);
    keeper->pid = 0;
}

static void child_handle_packet(struct keeper *keeper, const struct packet *packet, struct fdset *fds)
{
    if (keeper->goal == KEEPER_GOAL_SERVE)
        keeper->unresponsive_ms = 0;
    switch (packet->type) {
    case PACKET_HOLD:
        child_hold(keeper, packet, fds);
        break;
    case PACKET_DROP:
    case PACKET_DROP_ASK:
        child_drop(keeper, packet);
        break;
    case PACKET_READY:
        keeper_broker_is_ready(keeper);
        break;
    case PACKET_RELOADED:
        if (keeper->state == KEEPER_SERVING)
            service_ready(&keeper->store, false, false);
        keeper->line = (struct service_line){.pause = 0};
        break;
    case PACKET_HEARTBEAT:
        if (keeper->state == KEEPER_SERVING && keeper->goal == KEEPER_GOAL_SERVE)
            service_heartbeat(&keeper->line, packet);
        break;
    case PACKET_UPGRADE:
        keeper_preflight_begin(keeper);
        break;
    case PACKET_CLEANER:
        keeper_note_cleaner(keeper, (pid_t)packet->value);
        break;
    case PACKET_LEFT:
        child_note_left(keeper);
        break;
    default: /* a packet of a later version */
        break;
    }
}

bool keeper_receive(struct keeper *keeper)
{
    for (unsigned n = 0; n < PACKETS_AT_ONCE; n++) {
        _cleanup_fdset_ struct fdset fds = FDSET_NULL;
        struct packet packet;
        int r = packet_receive(keeper->socket, &packet, &fds);

        switch (r) {
        case 0:
            child_handle_packet(keeper, &packet, &fds);
            break;
        case SOCKIO_E_AGAIN:
            /* after its end and its cleaner's there is nothing more to come, even if somebody else has its end of the
             * socket */
            return keeper->pid > 0 || keeper_awaits_cleaner(keeper);
        case SOCKIO_E_EOF:
            return false;
        case SOCKIO_E_RESET: /* what it sent comes after this */
            break;
        default:
            if (r < 0)
                return false;
            /* it relies on what we do not hold */
            keeper_kill_broker(keeper, "sent something that cannot be held");
            break;
        }
    }
    return true;
}

static void child_note_end(struct keeper *keeper, const siginfo_t *info)
{
    if (info->si_pid == keeper->pid) {
        keeper->ended = *info;
        keeper->pid = 0;
        keeper_dying_ended(keeper, 0, true);
    } else if (info->si_pid == keeper->preflight.pid) {
        keeper_preflight_ended(keeper, info);
    } else {
        keeper_departed_ended(keeper, info->si_pid);
    }
}

/* The broker stays a zombie for a while. When a process is reaped, the kernel forgets all that was ever looked up in
 * its folder of /proc, a name for each descriptor: with ten thousand of them that keeps a processor busy for as long as
 * the next broker needs until it serves. */
void keeper_note_exit(struct keeper *keeper)
{
    siginfo_t info = {0};

    if (keeper->pid > 0 && !waitid(P_PID, (id_t)keeper->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid)
        child_note_end(keeper, &info);
    keeper->has_zombies = true;
}

void keeper_reap(struct keeper *keeper)
{
    siginfo_t info;

    keeper->has_zombies = false;
    while (info = (siginfo_t){0}, !waitid(P_ALL, 0, &info, WEXITED | WNOHANG) && info.si_pid)
        child_note_end(keeper, &info);
}
