/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a packet of the broker: for a moment by looking again and again, where that is likely to be worth it
 * (base/look.h), and then asleep. Nothing else in the library knows that there are two ways.
 */
#pragma once

#include "base/look.h"
#include "proto/limits.h"
#include "proto/sockio.h"

/* sockio_recv_wait() of a packet that has MEMORYD_FRAME_MAX bytes. */
static inline int spin_recv(int socket, uint8_t *packet, size_t *size, struct fdset *fds)
{
    static _Thread_local struct look look; /* what this thread knows of looking */

    if (!look.count_lost)
        look_init(&look, look_may_pay(), look_count_lost);
    if (look_begin(&look, clock_now_ns())) {
        do {
            int r = sockio_recv(socket, packet, MEMORYD_FRAME_MAX, size, fds);

            if (r != SOCKIO_E_AGAIN) {
                look_found(&look);
                return r;
            }
        } while (look_again(&look, clock_now_ns()));
    }
    return sockio_recv_wait(socket, packet, MEMORYD_FRAME_MAX, size, fds);
}
