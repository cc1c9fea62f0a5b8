/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare chunks: a small buffer costs the broker little and the way to it and back much, so who asks for the same one
 * again and again gets several by one request, twice as many each time. What is not used yet waits here, sealed and
 * never seen by anybody, each a buffer of its own, with its descriptor and without a mapping.
 *
 * Meanwhile the library keeps it (memclient_cache_put()): listings show it as cached, and the broker gives its memory
 * to others when they find no room or meet a limit. A descriptor keeps one granule charged until it is closed, so what
 * is refused here is tried again without spare chunks. A child of fork() has none of them.
 */
#pragma once

#include "nbla/device.h"

/* How many are spare in a process at most, and what one request asks for. */
#define SPARE_MOST       32
#define SPARE_MOST_BYTES (UINT64_C(2) << 20)

/*
 * A buffer of the device of so many bytes, without an address. 0, or a negative errno as of memclient_alloc(). `flags`
 * are of that, where it is asked for alone.
 */
int spare_alloc(struct memclient *ctx, struct device *device, uint64_t bytes, unsigned flags,
                struct memclient_buffer **buffer);

/* memclient_alloc_many(); where the broker refuses it, again without spare chunks, if there are any. */
int spare_alloc_many(struct memclient *ctx, size_t n, const uint64_t *sizes,
                     const struct memclient_alloc_options *options, struct memclient_buffer **buffers);

/* All go back. False: there was none. */
bool spare_release_all(void);

/* Around a fork. */
void spare_fork_prepare(void);
void spare_fork_parent(void);
void spare_fork_child(void);
