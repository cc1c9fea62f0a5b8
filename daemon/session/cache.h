/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's hold cache (proto/hold_cache.h), as the broker sees it. The client can write whatever it likes there, and
 * take the memory away: every answer may be "there is none", and what is in it is only what the client says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/hold_cache.h"
#include "session/session.h"

/* Copies the slots. False: the session has no cache. */
bool session_read_cache(const struct session *session, struct hold_cache_slot slots[static HOLD_CACHE_SLOTS]);
/* The slot in which the client says that it has given this buffer back; -1: there is none. */
int session_find_cached(const struct session *session, uint64_t buffer);
/* Of what the client has cached there, nothing is its own any more, but what the slot says now. False: it has it
 * again, or it never had. */
bool session_take_cached(const struct session *session, unsigned slot, struct hold_cache_slot *ret);
/* The end of it is recorded: the slot is the client's. */
void session_cache_done(const struct session *session, unsigned slot);

/* Others that had this buffer came or went. */
void session_tell_change(const struct session *session, uint64_t buffer);
/* Does anybody need memory? True if the client is told something new. */
bool session_tell_wanted(const struct session *session, bool wanted);
/* May its process have let out descriptors or mappings, so that others have them? True if it does not say. */
bool session_has_let_out(const struct session *session);
