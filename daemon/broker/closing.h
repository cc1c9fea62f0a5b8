/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the memory of a buffer that is ENDING is given back.
 *
 * Not before its end is committed: else there could be a record of contents that are gone. Then a small one is emptied
 * and closed here and now. A larger one is emptied by a worker, slice by slice, each behind what else waits to be given
 * back, and credited by the slice. The keeper has its copy meanwhile: this broker may end after any slice, and does not
 * close the last descriptor of much memory when it does; the next one goes on. Somebody may still have the inode by an
 * O_PATH descriptor, which nobody can see; the pages go all the same.
 *
 * What cannot be emptied goes with its inode, by one call that takes as long as it is large: of a published one the
 * keeper closes its copy first, so that the slow last close is a worker's.
 */
#pragma once

#include <stdbool.h>

struct broker;
struct buffer;

/* At the next commit, if it may be closed now: while an operation has it pinned, or it still has tokens, it is asked
 * again when they have gone. */
void closing_request(struct broker *broker, struct buffer *buffer);
/* It is closed, and somebody who cannot be seen has its inode still: the watch will tell of its end. */
bool closing_awaits_inode(const struct buffer *buffer);
/* What was added is committed. */
void closing_run(struct broker *broker);
/* Nothing of it is left anywhere: it is credited, and gone. */
void closing_ended(struct broker *broker, struct buffer *buffer);
