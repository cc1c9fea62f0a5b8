/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process; see door.h. Any line that touches a client's descriptor may be its last one, so the broker and the
 * client hear first, and the descriptor is closed afterwards.
 */
#include "door/door.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "door/message.h"
#include "proto/door.h"
#include "proto/fdset.h"
#include "proto/sockio.h"
#include "proto/status.h"
#include "sandbox/sandbox.h"

/* With one more, the socket that came first is closed: its client gets another one when it needs it. */
#define SOCKETS_MAX 256

struct door {
    struct door_state *state;
    int link;
    unsigned n;
    struct pollfd polls[1 + SOCKETS_MAX]; /* the link, then the clients' sockets */
    uint64_t sessions[1 + SOCKETS_MAX];
};

/* From now on it may hang, or not any more. */
static void door_set_busy(const struct door *door, bool busy)
{
    atomic_store(&door->state->busy_since, busy ? clock_now_ns() : 0);
}

static void door_remove(struct door *door, unsigned i)
{
    fd_close(door->polls[i].fd);
    door->n--;
    memmove(&door->polls[i], &door->polls[i + 1], (door->n - i) * sizeof(door->polls[0]));
    memmove(&door->sessions[i], &door->sessions[i + 1], (door->n - i) * sizeof(door->sessions[0]));
}

static void door_add(struct door *door, int fd, uint64_t session)
{
    if (door->n == 1 + SOCKETS_MAX)
        door_remove(door, 1);
    door->polls[door->n] = (struct pollfd){.fd = fd, .events = POLLIN};
    door->sessions[door->n++] = session;
}

/* ---- what a client shows ----------------------------------------------------------------------------------------- */

/* 0 or a status. */
static int door_look(int fd, enum door_kind kind, struct handle_shown *ret, struct problem *problem)
{
    struct handle_identity identity;
    int r;

    if (kind == DOOR_IMPORT)
        return handle_show(fd, geteuid(), ret, problem);
    r = handle_adoptable(fd, &identity, problem);
    if (!r)
        *ret = (struct handle_shown){.identity = identity, .writable = handle_is_writable(fd), .fd = -1};
    return r;
}

/* Tells the broker what was shown. 0; a status; or as sockio_send(), negative, if the broker is gone. */
static int door_report(const struct door *door, uint64_t session, int fd, enum door_kind kind,
                       struct door_answer *answer)
{
    struct door_message message = {.type = DOOR_SHOWN, .session = session, .memory = kind == DOOR_ADOPT};
    struct problem problem = PROBLEM_NULL;
    int r = door_look(fd, kind, &message.shown, &problem);

    /* new for each, so that one of an earlier broker or door never names another descriptor */
    while (!r && !message.ticket)
        if (getrandom(&message.ticket, sizeof(message.ticket), 0) != (ssize_t)sizeof(message.ticket) && errno != EINTR)
            r = refuse(&problem, STATUS_NO_MEMORY, "there are no random numbers");
    answer->status = (uint32_t)r;
    answer->ticket = r ? 0 : message.ticket;
    memcpy(answer->sentence, problem.sentence, sizeof(answer->sentence));
    if (r)
        return 0;
    /* if it waits here, then for the broker */
    door_set_busy(door, false);
    r = door_message_send(door->link, &message, kind == DOOR_ADOPT ? fd : -1);
    door_set_busy(door, true);
    return r;
}

/* False: the socket is to be closed. */
static bool door_serve(const struct door *door, unsigned i)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    uint8_t packet[MEMORYD_DOOR_REQUEST + 1], reply[DOOR_ANSWER_MAX];
    struct iovec iov = {.iov_base = reply};
    struct door_answer answer = {.status = STATUS_OK};
    enum door_kind kind;
    size_t size;
    int r = sockio_recv(door->polls[i].fd, packet, sizeof(packet), &size, &fds);

    if (r == SOCKIO_E_AGAIN)
        return true;
    if (r || !door_request_decode(packet, size, &kind) || fdset_count(&fds) != 1)
        return false;
    if (door_report(door, door->sessions[i], fdset_get(&fds, 0), kind, &answer))
        _exit(EXIT_SUCCESS);
    iov.iov_len = door_answer_encode(reply, &answer);
    /* a client that does not read its answers needs none */
    return !sockio_send(door->polls[i].fd, &iov, 1, NULL, 0);
}

/* ---- the broker -------------------------------------------------------------------------------------------------- */

/* False: it is gone. */
static bool door_hear(struct door *door)
{
    struct door_message message;
    int fd;
    int r = door_message_receive(door->link, &message, &fd);

    if (r == SOCKIO_E_AGAIN)
        return true;
    if (r)
        return false;
    if (message.type == DOOR_SERVE && fd >= 0)
        door_add(door, fd, message.session);
    else
        fd_close(fd);
    return true;
}

/* What is closed or received here may take for ever. False: the broker is gone. */
static bool door_turn(struct door *door)
{
    bool goes_on = true;

    for (unsigned i = door->n; i-- > 1;) {
        if (!door->polls[i].revents)
            continue;
        door_set_busy(door, true);
        if (!door_serve(door, i))
            door_remove(door, i);
    }
    if (door->polls[0].revents) {
        door_set_busy(door, true);
        goes_on = door_hear(door);
    }
    door_set_busy(door, false);
    return goes_on;
}

int door_run(int link, pid_t broker, struct door_state *state)
{
    static const struct sigaction ignore = {.sa_handler = SIG_IGN};
    static struct door door;

    (void)prctl(PR_SET_NAME, "memoryd-door");
    /* The link need not end with a broker that hangs in dying. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != broker)
        return EXIT_SUCCESS;
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sandbox_enter(SANDBOX_DOOR);
    door = (struct door){.state = state, .link = link, .n = 1};
    door.polls[0] = (struct pollfd){.fd = link, .events = POLLIN};
    do {
        if (poll(door.polls, door.n, -1) < 0 && errno != EINTR)
            return EXIT_FAILURE;
    } while (door_turn(&door));
    return EXIT_SUCCESS;
}
