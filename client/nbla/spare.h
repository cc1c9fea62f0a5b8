/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare chunks. A small buffer costs the broker little and the request much, so chunks of a frequent size are requested
 * several at a time, twice as many each time. A chunk that is not used yet waits here: a sealed buffer of its own,
 * which nobody has seen, with its descriptor and without a mapping.
 *
 * Meanwhile the native library caches it (memclient_cache_put()): listings show it as cached, and the broker gives its
 * memory to others that find no room or reach a limit. A descriptor keeps one granule charged until it is closed, so a
 * refused allocation is tried again without spare chunks. A child of fork() has none of them.
 */
#pragma once

#include "nbla/device.h"

/* How many are spare in a process at most, and the most bytes of one request. */
#define SPARE_MOST       32
#define SPARE_MOST_BYTES (UINT64_C(2) << 20)

/*
 * Allocates a buffer on the device, without an address. 0, or a negative errno as of memclient_alloc(). `flags` are for
 * a request that has no spare chunks.
 */
int spare_alloc(struct memclient_context *ctx, struct device *device, uint64_t bytes, unsigned flags,
                struct memclient_buffer **buffer);

/* Calls memclient_alloc_many(). If the broker refuses, it releases the spare chunks and tries again. */
int spare_alloc_many(struct memclient_context *ctx, size_t n, const uint64_t *sizes,
                     const struct memclient_alloc_options *options, struct memclient_buffer **buffers);

/* Releases all spare chunks. False: there was none. */
bool spare_release_all(void);

/* Around a fork. */
void spare_fork_prepare(void);
void spare_fork_parent(void);
void spare_fork_child(void);
