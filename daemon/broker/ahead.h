/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers ahead: given to their session before it needs them, and shown to nobody until they are used (mem/buffer.h).
 *
 * They may make nobody the worse. So they are given only where there is plenty, of the pool, of what the user and the
 * session may have, and of descriptors, and no more than a small part of each; and from the warm stock only, so that
 * nobody waits for one.
 *
 * A session takes one by a lock on a byte of it, through the description that it got, and sends nothing (PROTOCOL.md,
 * section 17). The kernel keeps that lock as long as the session has the buffer open or mapped, and across brokers; it
 * is asked before anything is shown, and so it is right even if this broker has never heard of the session's taking it.
 * In time the session tells.
 *
 * The broker could lock the byte as well, and so take back what is not taken yet. It does not: without its session's
 * help the memory would not be free, since the session has it open (I4).
 */
#pragma once

#include <stdbool.h>

#include "broker/internal.h"

/* How many all sessions may have together. */
uint64_t ahead_most(void);
/* May the session have these now? */
bool ahead_may_be(const struct broker *broker, const struct session *session, const struct pool *pool,
                  const struct alloc_args *args);
/* This one, which is LIVE, was given ahead, and so were its tokens. */
void ahead_begin(struct broker *broker, struct buffer *buffer);
/* Somebody uses it, by whatever way: it is a buffer like others from now on, if it was not. */
void ahead_used(struct broker *broker, struct buffer *buffer);
/* Something is about to be shown: those that were taken are used. */
void ahead_look(struct broker *broker);
/* The session says that it has taken these. Those that it does not hold are none of its business. */
void ahead_told(struct broker *broker, struct session *session, const struct ids *ids);
