/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory a pool could still give. Only the broker knows.
 *
 * A reply is kept for some milliseconds, so frequent queries rarely call the broker. It is dropped whenever this
 * process takes or releases memory, so that the process always sees the effect of its own calls.
 *
 * The value that the application saw last is remembered. An allocation above it is the caller's mistake
 * (INVALID_ALLOCATION); one within it that fails means that the pool is short (OUT_OF_RESOURCES).
 */
#pragma once

#include <stdint.h>

#include "hsa/topology.h"

/* ALLOC_MAX_SIZE, which is remembered as reported. Needs the runtime; may call the broker. */
hsa_status_t headroom_get(const struct pool *pool, uint64_t *bytes);
/* The same as a put() of info.h. The value is a size_t. */
hsa_status_t headroom_put(const void *pool, void *value);
/* MEMORY_AVAIL: the ordinary pages that the node could give. 0 if it has no memory. */
hsa_status_t headroom_of_agent(const struct agent *agent, uint64_t *bytes);
/* To be called after this process has taken or released memory. It does not call the broker. */
void headroom_changed(void);
/* The status for r, a failure of the native API: one of the two above, or another one for other failures. */
hsa_status_t headroom_refusal(const struct pool *pool, uint64_t size, int r);
/* At the first hsa_init(): the present headroom of all pools counts as reported. */
void headroom_start(void);
void headroom_fork_child(void);
