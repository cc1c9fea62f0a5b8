/* SPDX-License-Identifier: Apache-2.0 */
/* See carrier.h. */

#include "keeper/carrier.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/steal.h"
#include "log/log.h"
#include "proto/sockio.h"

/* What clients have not taken yet counts against us; they get this long. */
#define TURN_MS 3000

int carrier_new(int ret[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0 ? -errno : 0;
}

void carrier_begin(struct carrier *carrier, int outer)
{
    carrier->outer = outer;
    carrier->crate[0] = carrier->crate[1] = -1;
    carrier->packet = (struct packet){.type = PACKET_HOLD};
}

void carrier_abandon(struct carrier *carrier)
{
    carrier->crate[0] = fd_close(carrier->crate[0]);
    carrier->crate[1] = fd_close(carrier->crate[1]);
}

static int load(int outer, int crate)
{
    const struct packet packet = {.type = PACKET_HOLD, .n = 1, .keys = {KEEPER_KEY(KEEPER_CRATE, 0)}};
    int r = packet_send(outer, &packet, &crate);

    return r <= 0 ? r : r == SOCKIO_E_AGAIN ? -ENOBUFS : -EPIPE;
}

static int ship(struct carrier *carrier)
{
    int r = carrier->crate[1] < 0 ? 0 : load(carrier->outer, carrier->crate[1]);

    carrier_abandon(carrier);
    return r;
}

/* Sends the packet into the crate, or into a fresh one if that one is full. */
static int pack(struct carrier *carrier)
{
    uint64_t deadline = deadline_after_ms(TURN_MS);
    int r;

    if (!carrier->packet.n)
        return 0;
    for (bool fresh = false;;) {
        if (carrier->crate[0] < 0) {
            r = carrier_new(carrier->crate);
            if (r)
                return r;
            fresh = true;
        }
        r = packet_send(carrier->crate[0], &carrier->packet, carrier->fds);
        if (!r)
            break;
        if (r == SOCKIO_E_TOO_MANY_IN_FLIGHT && !deadline_passed(deadline, clock_now_ns())) {
            (void)poll(NULL, 0, 1);
            continue;
        }
        if (r != SOCKIO_E_AGAIN || fresh)
            return r < 0 ? r : -ENOBUFS;
        r = ship(carrier);
        if (r)
            return r;
    }
    carrier->packet.n = 0;
    return 0;
}

int carrier_put(struct carrier *carrier, struct keeper_key key, int fd)
{
    unsigned i = carrier->packet.n++;

    carrier->packet.keys[i] = key;
    carrier->fds[i] = fd;
    return carrier->packet.n == PACKET_KEYS_MAX ? pack(carrier) : 0;
}

int carrier_finish(struct carrier *carrier)
{
    int r = pack(carrier);

    return r ? r : ship(carrier);
}

/* ------------------------------------------------------------------------------------------------------ unpacking */

static int unpack(int socket, keeper_take_fn *fn, void *userdata);

/* A crate or a thing. */
static int take(enum keeper_kind kind, uint64_t id, int fd, keeper_take_fn *fn, void *userdata)
{
    _cleanup_close_ int crate = fd;

    if (kind == KEEPER_CRATE)
        return unpack(crate, fn, userdata);
    return fn(userdata, kind, id, steal_fd(&crate));
}

/* Until nothing is left: the outer socket is empty then, a crate at its end. */
static int unpack(int socket, keeper_take_fn *fn, void *userdata)
{
    for (;;) {
        _cleanup_fdset_ struct fdset fds = FDSET_NULL;
        struct packet packet;
        int r = packet_receive(socket, &packet, &fds);

        if (r < 0)
            return fatal(r);
        if (r == SOCKIO_E_AGAIN || r == SOCKIO_E_EOF)
            return 0;
        if (r) {
            log_error("something in the carrier cannot be read (%d) and is lost", r);
            continue;
        }
        for (unsigned i = 0; packet.type == PACKET_HOLD && i < packet.n && !r; i++)
            r = take((enum keeper_kind)packet.keys[i].kind, packet.keys[i].id, fdset_steal(&fds, i), fn, userdata);
        if (r)
            return r;
    }
}

int carrier_take(int outer, keeper_take_fn *fn, void *userdata)
{
    return unpack(outer, fn, userdata);
}
