/* SPDX-License-Identifier: Apache-2.0 */
/* See fd_stash.h. */

#include "keeper/fd_stash.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/packet.h"
#include "log/log.h"
#include "proto/sockio.h"

/* The kernel counts what clients have not received yet against us; they get this long. */
#define TURN_MS 3000

struct filling {
    int outer;
    int bundle[2]; /* to be filled, and to be sent */
    struct packet packet;
    int fds[PACKET_KEYS_MAX]; /* borrowed until the packet is sent */
};

int fd_stash_new(int ret[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0 ? -errno : 0;
}

static void filling_close_bundle(struct filling *filling)
{
    filling->bundle[0] = fd_close(filling->bundle[0]);
    filling->bundle[1] = fd_close(filling->bundle[1]);
}

static int filling_send_bundle(struct filling *filling)
{
    const struct packet packet = {.type = PACKET_HOLD, .n = 1, .keys = {KEEPER_KEY(KEEPER_FD_BUNDLE, 0)}};
    int r = filling->bundle[1] < 0 ? 0 : packet_send(filling->outer, &packet, &filling->bundle[1]);

    filling_close_bundle(filling);
    return r <= 0 ? r : r == SOCKIO_E_AGAIN ? -ENOBUFS : -EPIPE;
}

/* Sends the packet into the bundle, or into a new one if that one is full. */
static int filling_flush(struct filling *filling)
{
    uint64_t deadline = deadline_after_ms(TURN_MS);
    int r;

    if (!filling->packet.n)
        return 0;
    for (bool fresh = false;;) {
        if (filling->bundle[0] < 0) {
            r = fd_stash_new(filling->bundle);
            if (r)
                return r;
            fresh = true;
        }
        r = packet_send(filling->bundle[0], &filling->packet, filling->fds);
        if (!r)
            break;
        if (r == SOCKIO_E_TOO_MANY_IN_FLIGHT && !deadline_passed(deadline, clock_now_ns())) {
            (void)poll(NULL, 0, 1);
            continue;
        }
        if (r != SOCKIO_E_AGAIN || fresh)
            return r < 0 ? r : -ENOBUFS;
        r = filling_send_bundle(filling);
        if (r)
            return r;
    }
    filling->packet.n = 0;
    return 0;
}

static int filling_put(void *userdata, enum keeper_kind kind, uint64_t id, int fd)
{
    struct filling *filling = userdata;
    unsigned i = filling->packet.n++;

    filling->packet.keys[i] = KEEPER_KEY(kind, id);
    filling->fds[i] = fd;
    return filling->packet.n == PACKET_KEYS_MAX ? filling_flush(filling) : 0;
}

int fd_stash_fill(int outer, keeper_enumerate_fn *enumerate, void *userdata)
{
    struct filling filling = {.outer = outer, .bundle = {-1, -1}, .packet = {.type = PACKET_HOLD}};
    int r = enumerate(userdata, filling_put, &filling);

    if (!r)
        r = filling_flush(&filling);
    if (!r)
        r = filling_send_bundle(&filling);
    filling_close_bundle(&filling);
    return r;
}

static int drain_one(enum keeper_kind kind, uint64_t id, int fd, keeper_take_fn *fn, void *userdata)
{
    _cleanup_close_ int bundle = fd;

    if (kind == KEEPER_FD_BUNDLE)
        return fd_stash_drain(bundle, fn, userdata);
    return fn(userdata, kind, id, steal_fd(&bundle));
}

/* Until nothing is left: the outer socket is empty then, a bundle at its end. */
int fd_stash_drain(int outer, keeper_take_fn *fn, void *userdata)
{
    for (;;) {
        _cleanup_fdset_ struct fdset fds = FDSET_NULL;
        struct packet packet;
        int r = packet_receive(outer, &packet, &fds);

        if (r < 0)
            return fatal(r);
        if (r == SOCKIO_E_AGAIN || r == SOCKIO_E_EOF)
            return 0;
        if (r) {
            log_error("something in the fd stash cannot be read (%d) and is lost", r);
            continue;
        }
        for (unsigned i = 0; packet.type == PACKET_HOLD && i < packet.n && !r; i++)
            r = drain_one((enum keeper_kind)packet.keys[i].kind, packet.keys[i].id, fdset_steal(&fds, i), fn, userdata);
        if (r)
            return r;
    }
}
