/* SPDX-License-Identifier: Apache-2.0 */
/* See packet.h. */

#include "keeper/packet.h"

#include <stddef.h>

#include "proto/sockio.h"

#define HEAD_SIZE offsetof(struct packet, keys)

static_assert(HEAD_SIZE == 8 && sizeof(struct keeper_key) == 16, "the form of a packet stays");

static size_t packet_size(const struct packet *packet)
{
    return HEAD_SIZE + packet->n * sizeof(packet->keys[0]);
}

int packet_send(int socket, const struct packet *packet, const int *fds)
{
    struct iovec iov = {.iov_base = (struct packet *)(uintptr_t)packet, .iov_len = packet_size(packet)};

    return sockio_send(socket, &iov, 1, fds, packet->type == PACKET_HOLD ? packet->n : 0);
}

int packet_receive(int socket, struct packet *ret, struct fdset *fds)
{
    struct packet packet;
    size_t length = 0;
    int r = sockio_recv(socket, &packet, sizeof(packet), &length, fds);

    if (r)
        return r;
    if (length < HEAD_SIZE || packet.n > PACKET_KEYS_MAX || length != packet_size(&packet) ||
        fdset_count(fds) != (packet.type == PACKET_HOLD ? packet.n : 0U)) {
        fdset_deinit(fds);
        return PACKET_E_MALFORMED;
    }
    memcpy(ret, &packet, length);
    return 0;
}
