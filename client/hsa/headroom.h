/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a pool could still give, which only the broker knows.
 *
 * An answer is kept for some milliseconds, so that asking often costs no call, and dropped whenever this process takes
 * or releases memory, so that it always sees what it has done itself.
 *
 * What was reported to the application last is remembered: an allocation beyond it is the caller's mistake
 * (INVALID_ALLOCATION), one within it that fails is the pool's shortage (OUT_OF_RESOURCES).
 */
#pragma once

#include <stdint.h>

#include "hsa/topology.h"

/* Between enter and leave; may call the broker. ALLOC_MAX_SIZE: remembered as reported. */
hsa_status_t headroom_get(const struct pool *pool, uint64_t *bytes);
/* The same for a program, as put() of info.h: a size_t. */
hsa_status_t headroom_put(const void *pool, void *value);
/* What the node could give of ordinary pages, for MEMORY_AVAIL; 0 if it has no memory. */
hsa_status_t headroom_of_agent(const struct agent *agent, uint64_t *bytes);
/* This process has taken or released memory. Makes no call. */
void headroom_changed(void);
/* Which of the two statuses, or another one for another failure: r is what the native API returned. */
hsa_status_t headroom_refusal(const struct pool *pool, uint64_t size, int r);
/* At the first hsa_init(): what all pools could give at that moment counts as reported. */
void headroom_start(void);
void headroom_fork_child(void);
