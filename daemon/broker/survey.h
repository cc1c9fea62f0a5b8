/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says of each buffer's descriptor that was handed over: two system calls for each, which is a good
 * part of what a start with many buffers takes. So a worker begins with the oldest while the loop's thread recovers
 * the newest, and what it has seen by then need not be asked again. Nobody waits for it: what it has not seen is asked
 * where it is needed.
 */
#pragma once

#include <stddef.h>

#include "broker/jobs.h"
#include "keeper/key.h"
#include "mem/handle.h"

struct survey;

/* Of things in the order of their keys. NULL: there are too few to be worth it, or there is no memory. */
struct survey *survey_begin(struct jobs *jobs, const struct keeper_thing *things, size_t n);
/* What was seen of one of them, by its place among them; or NULL. The survey may be NULL. */
const struct handle_look *survey_seen(const struct survey *survey, size_t i);
/* From now on the descriptors may go: the worker looks at none of them any more. It frees all of it. */
struct survey *survey_end(struct survey *survey);
