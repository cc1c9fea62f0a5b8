/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says of each buffer's descriptor that is handed over: two system calls for each, which is a good part
 * of what a start with many buffers takes. So a thread asks for what has come while the rest still comes and while the
 * ledger is read. Nobody waits for it: what it has not seen by the time when it is needed is asked for there.
 */
#pragma once

#include <stddef.h>

#include "mem/handle.h"

struct survey;

/* Of so many things that will come. NULL: they are too few to be worth a thread, or there is no room for one. */
struct survey *survey_begin(size_t n);
/* The next one has come; with -1 if it is none of a buffer. The descriptor stays open until the survey has ended. Here
 * as below, the survey may be NULL. */
void survey_add(struct survey *survey, int fd);
/* What was seen of the one that came as the i-th, from 0 on, for as long as the survey lasts; NULL: it is the caller's
 * to look. */
const struct handle_probe *survey_seen(struct survey *survey, size_t i);
/* From now on the descriptors may go. */
struct survey *survey_end(struct survey *survey);
