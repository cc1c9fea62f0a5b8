/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a packet of the broker: the thread spins for a moment where that is likely to pay (base/spin.h), and then
 * sleeps. Nothing else in the library knows that there are two ways.
 */
#pragma once

#include "base/spin.h"
#include "proto/limits.h"
#include "proto/sockio.h"

/* As sockio_recv_wait(), for a packet of up to MEMORYD_FRAME_MAX bytes. */
static inline int spin_recv(int socket, uint8_t *packet, size_t *size, struct fdset *fds)
{
    static _Thread_local struct spin spin; /* this thread's */

    if (!spin.count_preempted)
        spin_init(&spin, spin_may_pay(), spin_count_preempted);
    if (spin_begin(&spin, clock_now_ns())) {
        do {
            int r = sockio_recv(socket, packet, MEMORYD_FRAME_MAX, size, fds);

            if (r != SOCKIO_E_AGAIN) {
                spin_found(&spin);
                return r;
            }
        } while (spin_again(&spin, clock_now_ns()));
    }
    return sockio_recv_wait(socket, packet, MEMORYD_FRAME_MAX, size, fds);
}
