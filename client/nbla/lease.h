/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the arena for several ranges, by one request: parts of LEASE_PART bytes, each for one range.
 *
 * The native library asks for each range of its own, since only the broker knows when the home of the last buffer that
 * was placed in a range has gone, so that what was cut could not be used again (client/core/reserve.c). Here a part
 * where a buffer had its home is used once; one that only showed chunks, which most do, is used again. A lease is kept
 * while it has parts, used or not, so that a program that has one block after the other asks once. Each lease has more
 * parts than the one before, up to a bound. A process without virtual memory has reserved nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#define LEASE_PART (UINT64_C(256) << 20)

struct lease;

/* The next part, at a multiple of 2 MiB. NULL: there is none, which is no failure. */
struct lease *lease_take_part(struct memclient *ctx, struct memclient_reservation **reservation, uint64_t *base);
/* Nothing is mapped any more in the part that begins there; `again`: nor has been a home in it. */
void lease_end_part(struct lease *lease, uint64_t base, bool again);
/* Those that are kept end, with the last of their parts. */
void lease_release_all(void);
