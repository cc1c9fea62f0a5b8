/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of buffers (I4), and who pays (I5).
 *
 *     LIVE ──last hold, name and keeping token gone──► unreferenced
 *     unreferenced, never exported ─────────────────────────────────► ENDING
 *     unreferenced, exported: lease on T ── nobody has it ──────────► ENDING
 *                                └─ somebody has ──► DETACHED ──close, nobody now──► ENDING
 *                                                    DETACHED ──import──► LIVE
 *     ENDING: once that is committed, pages discarded, slice by slice and credited by the slice, and T closed; the last
 *             of it is credited, if a descriptor ever left, when the watch says that the inode is gone
 *
 * The tokens of an unreferenced one are STALE at once, and go a slice at a turn (I7). T stays open until the last is
 * gone, and so do record and charge: the broker after one that died in between drops the rest.
 *
 * Nobody polls: a description's last close is an event of the watch. But the kernel tells of it a moment before it is
 * true, so after each the kernel is asked for two seconds, less and less often. If events were lost, the
 * unreferenced are asked about in slices, and the kernel's list of watches says which inodes still exist.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "mem/buffer.h"
#include "mem/watch.h"

struct broker;
struct timer;

/* A hold, name or token has gone: the buffer ends if that was the last, else the charge moves to a user who keeps it.
 * The buffer may be freed afterwards. */
void lifecycle_claim_gone(struct broker *broker, struct buffer *buffer);
/* Drops all that keeps the buffer: names, holds and tokens. Then it is unreferenced, and ends as above. */
void lifecycle_destroy(struct broker *broker, struct buffer *buffer);
/* May it be imported again by a descriptor? 0; BUSY while it has many tokens, which must not become valid again. */
int lifecycle_may_revive(struct broker *broker, struct buffer *buffer, struct problem *problem);
/* It was imported, and is held now. */
void lifecycle_revived(struct broker *broker, struct buffer *buffer);
/* Ends a buffer that was never LIVE. A worker closes T if that is slow. */
void lifecycle_abort(struct broker *broker, struct buffer *buffer);

/* Drops the tokens and stops the timer of a buffer that is about to be freed in whatever state. */
void lifecycle_abandon(struct broker *broker, struct buffer *buffer);

/* T stays open until it is unpinned; the buffer may end meanwhile. */
void lifecycle_pin(struct buffer *buffer);
void lifecycle_unpin(struct broker *broker, struct buffer *buffer);

/* For a buffer that another broker left: goes on with its end, or begins it. The buffer may be freed afterwards. */
void lifecycle_restore(struct broker *broker, struct buffer *buffer);
/* Events may have been lost: soon probes all buffers that end, in slices. */
void lifecycle_rescan(struct broker *broker);

/* An event of the watch; a watch_fn. */
void lifecycle_watch_event(void *broker, int wd, enum watch_event event);
void lifecycle_overflow_turn(struct timer *timer);
