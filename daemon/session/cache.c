/* SPDX-License-Identifier: Apache-2.0 */
/* See cache.h. */
#include "session/cache.h"

#include <stdatomic.h>
#include <unistd.h>

#include "sys/sys.h"

static bool read_at(const struct session *session, size_t offset, void *bytes, size_t size)
{
    return session->release_log >= 0 && pread(session->release_log, bytes, size, (off_t)offset) == (ssize_t)size;
}

static size_t slot_at(unsigned slot)
{
    return HOLD_CACHE_AT(slots) + slot * sizeof(struct hold_cache_slot);
}

/*
 * Where the client has no page, writing would make one that is the broker's, for as long as the client likes. One that
 * was allocated but never written to is none: whoever has a cache writes to it when its session begins.
 */
static bool change_word(const struct session *session, size_t offset, enum sys_change how, unsigned operand)
{
    return session->release_log >= 0 && !sys_change_word(session->release_log, offset, how, operand);
}

static bool set_bits(const struct session *session, unsigned slot, unsigned bits)
{
    return change_word(session, slot_at(slot) + offsetof(struct hold_cache_slot, state), SYS_SET_BITS, bits);
}

bool session_read_cache(const struct session *session, struct hold_cache_slot slots[static HOLD_CACHE_SLOTS])
{
    return read_at(session, HOLD_CACHE_AT(slots), slots, HOLD_CACHE_SLOTS * sizeof(slots[0]));
}

int session_find_cached(const struct session *session, uint64_t buffer)
{
    struct hold_cache_slot slots[HOLD_CACHE_SLOTS];

    if (!session_read_cache(session, slots))
        return -1;
    for (int i = 0; i < HOLD_CACHE_SLOTS; i++)
        if (slots[i].buffer == buffer && hold_cache_is_open(&slots[i]))
            return i;
    return -1;
}

/*
 * The client changes `buffer` and `claims` only while the slot is its own. So what is read of them before the state is
 * seen to be TAKEN was there when it was.
 */
bool session_take_cached(const struct session *session, unsigned slot, struct hold_cache_slot *ret)
{
    struct hold_cache_slot now;
    uint32_t state;

    if (!set_bits(session, slot, HOLD_TAKEN) || !read_at(session, slot_at(slot), &now, sizeof(now)))
        return false;
    atomic_thread_fence(memory_order_seq_cst);
    if (!read_at(session, slot_at(slot) + offsetof(struct hold_cache_slot, state), &state, sizeof(state)) ||
        (state & (HOLD_CACHED | HOLD_TAKEN | HOLD_DONE)) != (HOLD_CACHED | HOLD_TAKEN))
        return false;
    *ret = now;
    return true;
}

void session_cache_done(const struct session *session, unsigned slot)
{
    (void)set_bits(session, slot, HOLD_DONE);
}

void session_tell_change(const struct session *session, uint64_t buffer)
{
    size_t at = HOLD_CACHE_AT(changes) + buffer % HOLD_CACHE_CHANGES * sizeof(uint32_t);

    (void)change_word(session, at, SYS_ADD, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

bool session_tell_wanted(const struct session *session, bool wanted)
{
    uint32_t before;

    if (!read_at(session, HOLD_CACHE_AT(wanted), &before, sizeof(before)) || before == wanted ||
        !change_word(session, HOLD_CACHE_AT(wanted), SYS_SET, wanted))
        return false;
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

bool session_has_let_out(const struct session *session)
{
    uint32_t word;

    return !read_at(session, HOLD_CACHE_AT(in_hand), &word, sizeof(word)) || word != 1;
}
