/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the memory of a buffer that is ENDING is given back.
 *
 * Not before its end is committed: else there could be a record of contents that are gone. Then a small one is emptied
 * and closed here and now, and it does not matter that the keeper closes its copy a moment later. Of a larger one the
 * keeper closes first, so that the slow last close is a worker's; what left the broker is emptied before, slice by
 * slice, each behind what else waits to be given back, and credited by the slice.
 */
#pragma once

struct broker;
struct buffer;

/* At the next commit. */
void closing_add(struct broker *broker, struct buffer *buffer);
/* What was added is committed. */
void closing_run(struct broker *broker);
