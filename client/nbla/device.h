/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device is what a device id means: memory of certain nodes, or of a pool. Nothing else here knows nodes and pools.
 *
 *     ""                 the broker's default
 *     numa:0-1,3         bound to these nodes
 *     interleave:0,1     spread over these nodes
 *     anything else      a pool's name
 */
#pragma once

#include <memclient/memclient.h>

/* Has a count of references: the blocks of one allocation have the same device. */
struct device;

/* Parses the id, and asks the broker whether what it names exists. NULL: it has failed, see fail(). */
struct device *device_new(struct memclient_context *ctx, const char *id);
struct device *device_ref(struct device *device);
/* Accepts NULL. */
void device_unref(struct device *device);

/* Do both mean the same memory? */
bool device_is_same(const struct device *a, const struct device *b);

/* Sets where memory comes from. The options are valid as long as the device. */
void device_choose(const struct device *device, struct memclient_alloc_options *options);
