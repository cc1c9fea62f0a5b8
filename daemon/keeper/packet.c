/* SPDX-License-Identifier: Apache-2.0 */
/* See packet.h. */

#include "keeper/packet.h"

#include <poll.h>
#include <stddef.h>

#include "base/clock.h"
#include "proto/sockio.h"

#define HEAD_SIZE offsetof(struct packet, keys)
/* A turn comes when others have taken what is on its way to them; nothing tells when. */
#define TURN_MS 1

static_assert(HEAD_SIZE == 8 && sizeof(struct keeper_key) == 16, "the form of a packet stays");

static size_t size_of(const struct packet *packet)
{
    return HEAD_SIZE + packet->n * sizeof(packet->keys[0]);
}

int packet_send(int socket, const struct packet *packet, const int *fds)
{
    struct iovec iov = {.iov_base = (struct packet *)(uintptr_t)packet, .iov_len = size_of(packet)};

    return sockio_send(socket, &iov, 1, fds, packet->type == PACKET_HOLD ? packet->n : 0);
}

int packet_send_wait(int socket, const struct packet *packet, const int *fds, uint64_t deadline)
{
    for (;;) {
        int r = packet_send(socket, packet, fds);
        uint64_t now;

        if (r != SOCKIO_E_AGAIN && r != SOCKIO_E_TOO_MANY_IN_FLIGHT)
            return r;
        now = clock_now_ns();
        if (deadline_passed(deadline, now))
            return SOCKIO_E_AGAIN;
        if (r == SOCKIO_E_AGAIN)
            (void)poll(&(struct pollfd){.fd = socket, .events = POLLOUT}, 1, deadline_poll_ms(deadline, now));
        else
            (void)poll(NULL, 0, TURN_MS);
    }
}

int packet_receive(int socket, struct packet *ret, struct fdset *fds)
{
    struct packet packet;
    size_t length = 0;
    int r = sockio_recv(socket, &packet, sizeof(packet), &length, fds);

    if (r)
        return r;
    if (length < HEAD_SIZE || packet.n > PACKET_KEYS_MAX || length != size_of(&packet) ||
        fdset_count(fds) != (packet.type == PACKET_HOLD ? packet.n : 0U)) {
        fdset_deinit(fds);
        return PACKET_E_MALFORMED;
    }
    memcpy(ret, &packet, length);
    return 0;
}
