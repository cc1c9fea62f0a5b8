/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that come with the buffers, for programs that share what they allocate.
 *
 * Whether this is such a program is seen by what it does: an allocation makes it a little less likely, the first token
 * of a buffer that was allocated here more so. While it is likely, what is allocated brings the token along that
 * memclient_share() without any terms would make, and this then takes it and makes no call. Each is given out once;
 * what is not given out ends with its buffer. At most READY_MAX wait in a context, and where a limit of tokens is
 * reached they make room.
 *
 * They are of a session: another one, and the child of a fork, has none of them.
 */
#pragma once

#include <stdbool.h>

#include <memclient/memclient.h>

#include "core/context.h"

#define READY_MAX 64

/* One buffer is about to be allocated: should it come with a token? */
bool ready_wanted(struct memclient *ctx);

/* The buffer was allocated alone, and came with this token or, all zero, without one. */
void ready_put(struct memclient_buffer *buf, const struct memclient_token *token);

/* A token of the buffer without any terms is asked for: false if there is none ready. */
bool ready_take(struct memclient_buffer *buf, struct memclient_token *token);

/* It is not to be given out any more; with the context's lock. */
void ready_forget(struct memclient_buffer *buf);
void ready_forget_all(struct memclient *ctx);

/* The same, without the lock, of a buffer that is being ended or whose tokens are being revoked. */
void ready_forget_id(struct memclient *ctx, uint64_t id);

/* Revokes all that wait, to make room for others. False if none did. */
bool ready_revoke_all(struct memclient *ctx, uint64_t deadline);
