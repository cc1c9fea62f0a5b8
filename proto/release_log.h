/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The release log: a page of memory that a client shares with its broker, where it notes what it gives back.
 *
 * A client does not wait for the reply when it gives something back, and may then be idle for hours. If the broker dies
 * before it has read that request, nobody repeats it, and the memory stays charged all that time. So the client writes
 * such a request (RELEASE, UNRESERVE) into the log before it sends it, and removes it when the reply has arrived. The
 * keeper holds the log's descriptor; the next broker reads what is in the log and serves it. Serving twice does no
 * harm: the requests have sequences, and the replies of recorded requests are kept.
 *
 * The client alone writes it and the broker alone relies on it, so a client can only deceive itself: what is read is
 * copied first, checked like any packet, and served in the client's own session.
 *
 * A packet lies in as many cells, one after the other, as it needs. `sizes` has its length where it begins and 0
 * elsewhere; it is written last, so that a packet is there wholly or not at all.
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
 * Writes a packet of two pieces into the log. Returns its place, from 1 on, or 0 if there is no room for it. One thread
 * at a time.
 */
unsigned release_log_put(struct release_log *log, const struct iovec iov[2]);

/* Removes the packet at this place. */
void release_log_remove(struct release_log *log, unsigned place);

/*
 * Finds the packet with the smallest sequence above *sequence, and makes *sequence that. What is no sound packet of a
 * client, has descriptors or lies in the cells of another one is passed over. The log is a copy, which nobody writes.
 * False if there is none. The packet points into the log.
 */
bool release_log_next(const struct release_log *log, uint64_t *sequence, const void **packet, size_t *size);
