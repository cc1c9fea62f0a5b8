/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hold cache: holds that a client keeps although its program has released them, because the program will probably
 * want them again. It is the second part of the memory that has the release log (release_log.h), which client and
 * broker share.
 *
 * Getting a buffer and releasing it take a request each. A client that keeps the hold, and the mapping, saves both. But
 * then memory that nobody uses is charged, and the client may be idle for hours. So a state word decides who has such a
 * hold, and the broker ends those that it wins, without asking the client:
 *
 *     0 ──client──► CACHED ──client, compare and swap──► 0
 *                   CACHED ──broker, or──► CACHED|TAKEN ──broker──► CACHED|TAKEN|DONE ──client──► 0
 *
 * The client caches a hold by writing `buffer` and `claims`, then CACHED, and reads `changes` and `wanted` afterwards:
 * if they say that the broker wants the memory, the client takes the hold back at once, and releases it by a request.
 * It has it again if the swap succeeds. The broker writes `changes` or `wanted` first and reads the state afterwards,
 * so that one of the two always sees what the other has done. A slot that was TAKEN is the broker's until it is DONE,
 * that is, until the end of the hold is recorded; if the broker dies before that, the next one records it.
 *
 * The broker never accesses this memory directly, because the client can remove the page. It reads by pread() and has
 * the kernel change words, all of which fail where a store would raise a signal; and never by write(), which would wait
 * for a write() of the client. It trusts nothing: a slot that names no hold of the session is skipped. So a client that
 * writes nonsense ends only holds of its own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/release_log.h"

#define HOLD_CACHE_SLOTS   64
#define HOLD_CACHE_CHANGES 64

/* The memory is the release log and, after it, the hold cache. */
#define SESSION_MEMORY_SIZE 8192

enum hold_cache_state {
    HOLD_CACHED = 1,
    HOLD_TAKEN = 2, /* without CACHED, no effect: the client was faster */
    HOLD_DONE = 4,
};

struct hold_cache_slot {
    uint64_t buffer;
    uint32_t state;
    uint32_t claims; /* that this releases */
};

struct hold_cache {
    /* Written by the client: 1 as long as it has given no descriptor of a buffer to others since its session began, and
     * has not forked with one mapped. 0, which is what other clients leave here, means that it may have. */
    uint32_t in_hand;
    /* Written by the broker: somebody needs memory, so nothing may be cached. */
    uint32_t wanted;
    uint64_t zero;
    /* Written by the broker: a count of holders that came or went, for the buffers whose id has this remainder. The
     * client's hold may then be the last one, or no longer the only one. */
    uint32_t changes[HOLD_CACHE_CHANGES];
    struct hold_cache_slot slots[HOLD_CACHE_SLOTS];
    uint8_t unused[2800];
};

struct session_memory {
    struct release_log releases;
    struct hold_cache cache;
};

_Static_assert(sizeof(struct hold_cache_slot) == 16, "layout");
_Static_assert(sizeof(struct session_memory) == SESSION_MEMORY_SIZE, "layout");

/* The offset of a member in the memory. */
#define HOLD_CACHE_AT(member) (offsetof(struct session_memory, cache) + offsetof(struct hold_cache, member))

/* Does it have a hold that the broker may take or end? */
static inline int hold_cache_is_open(const struct hold_cache_slot *slot)
{
    return (slot->state & (HOLD_CACHED | HOLD_DONE)) == HOLD_CACHED;
}
