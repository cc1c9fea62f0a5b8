/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The release log: a page of memory that a client shares with its broker, in which it writes what it releases.
 *
 * A client does not wait for the reply to a release, and may then be idle for hours. If the broker dies before it has
 * read that request, nobody repeats it, and the memory stays charged all that time. So the client writes such a request
 * (RELEASE, UNRESERVE) into the log before it sends it, and removes it when the reply has arrived. The keeper holds the
 * log's descriptor; the next broker reads the log and serves the requests in it. Serving one twice is harmless:
 * requests have sequences, and the replies of recorded requests are kept.
 *
 * Only the client writes it and only the broker relies on it, so a client can only deceive itself: the broker copies
 * the log, checks its packets like any other, and serves them in the client's own session.
 *
 * A packet takes as many consecutive cells as it needs. `sizes` has its length where it begins and 0 elsewhere; the
 * length is written last, so that a packet is there completely or not at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RELEASE_LOG_SIZE  4096
#define RELEASE_LOG_CELL  64
#define RELEASE_LOG_CELLS 62

struct release_log {
    uint16_t sizes[RELEASE_LOG_CELLS];
    uint32_t zero;
    uint8_t cells[RELEASE_LOG_CELLS][RELEASE_LOG_CELL];
};

_Static_assert(sizeof(struct release_log) == RELEASE_LOG_SIZE, "the release log fills a page");

/*
 * Writes a packet of two pieces into the log. Returns its place, from 1 on, or 0 if there is no room. One thread at a
 * time.
 */
unsigned release_log_put(struct release_log *log, const struct iovec iov[2]);

/* Removes the packet at this place. */
void release_log_remove(struct release_log *log, unsigned place);

/*
 * Finds the packet with the smallest sequence above *sequence, and sets *sequence to it. Anything that is not a sound
 * packet of a client, has descriptors or overlaps another packet is skipped. The log is a copy, which nobody writes,
 * and the packet points into it. False: there is none.
 */
bool release_log_next(const struct release_log *log, uint64_t *sequence, const void **packet, size_t *size);
