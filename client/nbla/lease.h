/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the arena for several ranges, by one request: parts of LEASE_PART bytes, each for one range.
 *
 * The native library asks for each range of its own, since only the broker knows when the home of the last buffer that
 * was placed in a range has gone, so that what was cut could not be used again (client/core/reserve.c). Here a part is
 * used once, and the next lease is as cheap as one range was. So a cold block of virtual memory costs one request, for
 * its memory, where others are bound: 7 of 8 times. With the last of its parts the lease ends; a process without
 * virtual memory has reserved nothing.
 */
#pragma once

#include <stdint.h>

#include <memclient/memclient.h>

#define LEASE_PART (UINT64_C(256) << 20)

struct lease;

/* The next part, at a multiple of 2 MiB. NULL: there is none, which is no failure. */
struct lease *lease_take_part(struct memclient *ctx, struct memclient_reservation **reservation, uint64_t *base);
/* Nothing is mapped in the part any more. */
void lease_end_part(struct lease *lease);
