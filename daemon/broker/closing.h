/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the memory of a buffer that is ENDING is given back.
 *
 * That begins when its end is committed: before, a record could outlive its contents. A small buffer is emptied and
 * closed on the loop, unless a cache may still have it open: then emptying it may wait for a write() of that process. A
 * worker empties a larger one slice by slice, each behind what else waits to be given back, and
 * each is credited. The keeper has its copy meanwhile. So this broker may end after any slice without the last close of
 * much memory, and the next one goes on. Somebody may still have the inode by an O_PATH descriptor, which nobody can
 * see; the pages go all the same.
 *
 * A published buffer cannot be emptied: its memory goes with its inode, by one close() that takes as long as it is
 * large. There the keeper closes its copy first, so that the last close is a worker's.
 */
#pragma once

#include <stdbool.h>

struct broker;
struct buffer;

/* Has it closed at the next commit. Does nothing while an operation has it pinned, or while it has tokens: this is
 * called again when they have gone. */
void closing_request(struct broker *broker, struct buffer *buffer);
/* T is closed, but its inode is still there: the watch will tell of its end. */
bool closing_awaits_inode(const struct buffer *buffer);
/* The ends of those that were requested are committed. */
void closing_run(struct broker *broker);
/* Nothing of it is left anywhere: credits and frees it. */
void closing_ended(struct broker *broker, struct buffer *buffer);
