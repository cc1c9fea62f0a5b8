/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's hold cache (proto/hold_cache.h), as the broker sees it. The client can write anything there, and take the
 * memory away: every answer may be "there is none", and the contents are only what the client says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/hold_cache.h"
#include "session/session.h"

/* Copies the slots. False: the session has no cache. */
bool session_read_cache(const struct session *session, struct hold_cache_slot slots[static HOLD_CACHE_SLOTS]);
/* The slot in which the client says that it has released this buffer; -1: there is none. */
int session_find_cached(const struct session *session, uint64_t buffer);
/* Takes what the client has cached in the slot away from it, and returns what the slot says now. False: the client
 * uses it again, or never cached it. */
bool session_take_cached(const struct session *session, unsigned slot, struct hold_cache_slot *ret);
/* Its end is recorded: the slot is the client's again. */
void session_cache_done(const struct session *session, unsigned slot);

/* Tells the client that holders of this buffer came or went. */
void session_tell_change(const struct session *session, uint64_t buffer);
/* Tells the client whether anybody needs memory. True if that is news. */
bool session_tell_wanted(const struct session *session, bool wanted);
/* May its process have passed descriptors or mappings on to others? True if it does not say. */
bool session_has_let_out(const struct session *session);
