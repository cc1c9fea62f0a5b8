/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hold cache: what a client holds though its program has given it back, since the program will soon want it again.
 * It is the second part of the memory that has the release log (release_log.h), so that client and broker both see it.
 *
 * Asking for a buffer, and giving it back, is a request each. A client that keeps the hold, and the mapping, spares
 * both. But then memory that nobody uses is charged, and the client may be idle for hours. So a state word decides who
 * has such a hold, and the broker ends those that it wins, without asking the client:
 *
 *     0 ──client──► CACHED ──client, compare and swap──► 0
 *                   CACHED ──broker, or──► CACHED|TAKEN ──broker──► CACHED|TAKEN|DONE ──client──► 0
 *
 * The client gives back by writing `buffer` and `claims`, then CACHED, then looking at `changes` and `wanted`: if they
 * say that the broker would want it, the client takes it back at once, and releases it as ever. It has it again if the
 * swap succeeds. The broker writes `changes` or `wanted` first and looks at the state afterwards, so that one of the
 * two always sees what the other has done. A slot that was TAKEN is the broker's until it is DONE, that is, until the
 * end of the hold is recorded; should the broker die before that, the next one does it.
 *
 * The broker never touches this memory by an instruction of its own, for the client can take the page away. It reads by
 * pread(), writes by pwrite(), and has the kernel set TAKEN and DONE, all of which fail where a store would raise a
 * signal. It believes nothing: what names no hold of the session is passed over. So a client that writes nonsense ends
 * holds of its own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/release_log.h"

#define HOLD_CACHE_SLOTS   64
#define HOLD_CACHE_CHANGES 64

/* Of the memory: the release log, and this behind it. */
#define SESSION_MEMORY_SIZE 8192

enum hold_cache_state {
    HOLD_CACHED = 1,
    HOLD_TAKEN = 2, /* without CACHED it means nothing: the client was faster */
    HOLD_DONE = 4,
};

struct hold_cache_slot {
    uint64_t buffer;
    uint32_t state;
    uint32_t claims; /* that the client gives back by it */
};

struct hold_cache {
    /* Written by the client: 1 as long as it has given no descriptor of a buffer to others since its session began, and
     * has not forked with one mapped. A client that does not write here says nothing, so it may have. */
    uint32_t in_hand;
    /* Written by the broker: somebody needs memory, so nothing is to be cached. */
    uint32_t wanted;
    uint64_t zero;
    /* Written by the broker: counts, for the buffers whose id has this remainder, that others came or went, so that
     * what the client holds may be the last hold, or not the only one. */
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

/* Where the words are, in the memory. */
#define HOLD_CACHE_AT(member) (offsetof(struct session_memory, cache) + offsetof(struct hold_cache, member))

/* Is there a hold in it that is the broker's to end, or to take? */
static inline int hold_cache_is_open(const struct hold_cache_slot *slot)
{
    return (slot->state & (HOLD_CACHED | HOLD_DONE)) == HOLD_CACHED;
}
