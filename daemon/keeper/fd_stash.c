/* SPDX-License-Identifier: Apache-2.0 */
/* See fd_stash.h. */

#include "keeper/fd_stash.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/steal.h"
#include "log/log.h"
#include "proto/sockio.h"

/* What clients have not taken yet counts against us; they get this long. */
#define TURN_MS 3000

int fd_stash_new(int ret[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0 ? -errno : 0;
}

void fd_stash_begin(struct fd_stash *fd_stash, int outer)
{
    fd_stash->outer = outer;
    fd_stash->bundle[0] = fd_stash->bundle[1] = -1;
    fd_stash->packet = (struct packet){.type = PACKET_HOLD};
}

void fd_stash_abandon(struct fd_stash *fd_stash)
{
    fd_stash->bundle[0] = fd_close(fd_stash->bundle[0]);
    fd_stash->bundle[1] = fd_close(fd_stash->bundle[1]);
}

static int load(int outer, int bundle)
{
    const struct packet packet = {.type = PACKET_HOLD, .n = 1, .keys = {KEEPER_KEY(KEEPER_FD_BUNDLE, 0)}};
    int r = packet_send(outer, &packet, &bundle);

    return r <= 0 ? r : r == SOCKIO_E_AGAIN ? -ENOBUFS : -EPIPE;
}

static int ship(struct fd_stash *fd_stash)
{
    int r = fd_stash->bundle[1] < 0 ? 0 : load(fd_stash->outer, fd_stash->bundle[1]);

    fd_stash_abandon(fd_stash);
    return r;
}

/* Sends the packet into the bundle, or into a fresh one if that one is full. */
static int pack(struct fd_stash *fd_stash)
{
    uint64_t deadline = deadline_after_ms(TURN_MS);
    int r;

    if (!fd_stash->packet.n)
        return 0;
    for (bool fresh = false;;) {
        if (fd_stash->bundle[0] < 0) {
            r = fd_stash_new(fd_stash->bundle);
            if (r)
                return r;
            fresh = true;
        }
        r = packet_send(fd_stash->bundle[0], &fd_stash->packet, fd_stash->fds);
        if (!r)
            break;
        if (r == SOCKIO_E_TOO_MANY_IN_FLIGHT && !deadline_passed(deadline, clock_now_ns())) {
            (void)poll(NULL, 0, 1);
            continue;
        }
        if (r != SOCKIO_E_AGAIN || fresh)
            return r < 0 ? r : -ENOBUFS;
        r = ship(fd_stash);
        if (r)
            return r;
    }
    fd_stash->packet.n = 0;
    return 0;
}

int fd_stash_put(struct fd_stash *fd_stash, struct keeper_key key, int fd)
{
    unsigned i = fd_stash->packet.n++;

    fd_stash->packet.keys[i] = key;
    fd_stash->fds[i] = fd;
    return fd_stash->packet.n == PACKET_KEYS_MAX ? pack(fd_stash) : 0;
}

int fd_stash_finish(struct fd_stash *fd_stash)
{
    int r = pack(fd_stash);

    return r ? r : ship(fd_stash);
}

/* ------------------------------------------------------------------------------------------------------ unpacking */

static int unpack(int socket, keeper_take_fn *fn, void *userdata);

/* A bundle or a thing. */
static int take(enum keeper_kind kind, uint64_t id, int fd, keeper_take_fn *fn, void *userdata)
{
    _cleanup_close_ int bundle = fd;

    if (kind == KEEPER_FD_BUNDLE)
        return unpack(bundle, fn, userdata);
    return fn(userdata, kind, id, steal_fd(&bundle));
}

/* Until nothing is left: the outer socket is empty then, a bundle at its end. */
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
            log_error("something in the fd stash cannot be read (%d) and is lost", r);
            continue;
        }
        for (unsigned i = 0; packet.type == PACKET_HOLD && i < packet.n && !r; i++)
            r = take((enum keeper_kind)packet.keys[i].kind, packet.keys[i].id, fdset_steal(&fds, i), fn, userdata);
        if (r)
            return r;
    }
}

int fd_stash_drain(int outer, keeper_take_fn *fn, void *userdata)
{
    return unpack(outer, fn, userdata);
}
