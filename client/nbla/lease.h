/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease reserves addresses of the arena for several ranges by one request. Each range gets one part of it.
 *
 * The native library makes a request for each range, since it could not use a part again: only the broker knows when
 * the last buffer with its home in it is gone (client/core/reserve.c). Here a part in which a buffer had its home is
 * used once, and one that only showed chunks, as most do, is used again. A lease is kept while it has parts left, so
 * that a program with one block after the other makes one request. Each lease has more parts than the one before, up to
 * a bound. A process without virtual memory reserves nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#define LEASE_PART (UINT64_C(256) << 20)

struct lease;

/* Takes a part, at a multiple of 2 MiB. NULL: there is none, which is no failure. */
struct lease *lease_take_part(struct memclient_context *ctx, struct memclient_reservation **reservation,
                              uint64_t *base);
/* Returns the part that begins there, in which nothing is mapped any more. `again`: no buffer had its home in it. */
void lease_end_part(struct lease *lease, uint64_t base, bool again);
/* Drops the leases that are kept: each ends with the last of its parts. */
void lease_release_all(void);
