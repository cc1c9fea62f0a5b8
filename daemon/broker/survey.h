/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prescan of the descriptors that are handed over. Each buffer's costs two system calls, a good part of what a start
 * with many buffers takes. So a thread makes them while more descriptors come and while the ledger is read. Nobody
 * waits for it: who needs a result that is not there makes the calls itself.
 */
#pragma once

#include <stddef.h>

#include "mem/handle.h"

struct survey;

/* So many things will come. NULL: they are too few to be worth a thread, or there is no room for one. */
struct survey *survey_begin(size_t n);
/* The next one has come; fd is -1 if it is not of a buffer. The descriptor stays open until the survey has ended. Here
 * and below the survey may be NULL. */
void survey_add(struct survey *survey, int fd);
/* What was seen of the i-th that came, from 0 on; valid until the survey ends. NULL: the caller has to look. */
const struct handle_probe *survey_seen(struct survey *survey, size_t i);
/* From now on the descriptors may go. */
struct survey *survey_end(struct survey *survey);
